"""What a bug is."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bug"]


@dataclass(frozen=True)
class Bug:
    """A replacement of `old` by `new` in one file of the package."""

    name: str
    file: str
    old: str
    new: str

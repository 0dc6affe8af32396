"""What retrievers that are made of others have in common: size, usage and close of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["MadeOfOthers"]


class MadeOfOthers:
    """A retriever made of others, which it names in :attr:`members`."""

    @property
    def members(self) -> Sequence[Any]:
        """What it is made of: retrievers, rerankers."""
        raise NotImplementedError

    @property
    def size(self) -> int | None:
        """Bytes of all indexes that say how large they are; None if none does."""
        sizes = [getattr(member, "size", None) for member in self.members]
        known = [size for size in sizes if isinstance(size, int)]
        return sum(known) if known else None

    def usage(self) -> dict[str, float]:
        """What all of them have used up."""
        total: dict[str, float] = {}
        for member in self.members:
            used = getattr(member, "usage", None)
            for unit, amount in (used() if callable(used) else {}).items():
                total[unit] = total.get(unit, 0) + amount
        return total

    def close(self) -> None:
        """Close those that can be closed."""
        for member in self.members:
            close = getattr(member, "close", None)
            if callable(close):
                close()

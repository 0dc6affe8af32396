"""Retrievers to measure others against, and adapters of those you have.

Each stands in a file of its own and needs the library of one extra at most, loaded when the
retriever is made. All have the two methods of :class:`rankgauge.Retriever`, and ``settings`` that
tell them apart.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES: dict[str, tuple[str, ...]] = {}
# What plans and settings call them; a type's options are the parameters of its class.
TYPES: dict[str, str] = {}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["TYPES", *_HOME_OF]  # noqa: PLE0604 - all are text


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rankgauge.retrievers' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"rankgauge.retrievers.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

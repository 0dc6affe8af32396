"""Retrievers to measure others against, and adapters of those you have.

Each stands in a file of its own and needs the library of one extra at most, loaded when the
retriever is made. All have the two methods of :class:`rankgauge.Retriever`, and ``settings`` that
tell them apart.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankgauge.retrievers.chunked import Chunked as Chunked
    from rankgauge.retrievers.chunked import FixedChunker as FixedChunker
    from rankgauge.retrievers.chunked import RecursiveChunker as RecursiveChunker
    from rankgauge.retrievers.chunked import SentenceChunker as SentenceChunker
    from rankgauge.retrievers.chunked import TokenChunker as TokenChunker
    from rankgauge.retrievers.filtered import Filtered as Filtered

_HOMES: dict[str, tuple[str, ...]] = {
    "chunked": (
        "Chunked", "FixedChunker", "RecursiveChunker", "SentenceChunker", "TokenChunker",
    ),
    "filtered": ("Filtered",),
}  # fmt: skip
# What plans and settings call them; a type's options are the parameters of its class.
TYPES: dict[str, str] = {
    "chunked": "Chunked",
    "filtered": "Filtered",
    "fixed": "FixedChunker",
    "recursive": "RecursiveChunker",
    "sentence": "SentenceChunker",
    "token": "TokenChunker",
}
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

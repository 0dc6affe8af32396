"""Helpers shared by the included retrievers."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from rankgauge.corpus.collection import Document
from rankgauge.errors import InputError
from rankgauge.retrievers.protocol import settings_of

Item = TypeVar("Item")
Ranking: TypeAlias = list[tuple[str, float]]
_OWN = frozenset({"title", "text"})


@dataclass(eq=False, repr=False)
class CallableDelegate:
    """Base of objects that wrap a callable; other attributes are those of the callable."""

    _call: Callable[..., Any]

    @property
    def members(self) -> Sequence[Any]:
        """The callable."""
        return (self._call,)

    def __getattr__(self, name: str) -> Any:
        # For example settings, usage, and close.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._call, name)


@dataclass(eq=False, repr=False)
class CompositeRetriever:
    """A retriever composed of other parts; its fields are its settings."""

    # Type name in plans; fields that hold retrievers, rerankers, encoders, or chunkers.
    TYPE: ClassVar[str]
    PARTS: ClassVar[tuple[str, ...]]

    @property
    def members(self) -> Sequence[Any]:
        """The parts."""
        return tuple(getattr(self, name) for name in self.PARTS)

    @property
    def settings(self) -> Mapping[str, Any] | None:
        """Type and fields; None if a part has no settings."""
        parts = part_settings(*(getattr(self, name) for name in self.PARTS))
        if parts is None:
            return None
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"type": self.TYPE, **plain, **dict(zip(self.PARTS, parts, strict=True))}

    @property
    def size(self) -> int | None:
        """Total bytes of the indexes that report their size; None if none does."""
        sizes = [getattr(member, "size", None) for member in self.members]
        known = [size for size in sizes if isinstance(size, int)]
        return sum(known) if known else None

    def usage(self) -> dict[str, float]:
        """Return the combined usage of all parts."""
        total: dict[str, float] = {}
        for member in self.members:
            usage = getattr(member, "usage", None)
            for unit, amount in (usage() if callable(usage) else {}).items():
                total[unit] = total.get(unit, 0) + amount
        return total

    def close(self) -> None:
        """Close the parts that can be closed."""
        for member in self.members:
            close = getattr(member, "close", None)
            if callable(close):
                close()


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of ``size`` items; the last may be shorter."""
    rest = iter(items)
    while batch := list(itertools.islice(rest, size)):
        yield batch


def part_settings(*parts: Any) -> list[dict[str, Any]] | None:
    """Return the settings of each part; None if any part has no settings."""
    settings = [settings_of(part) for part in parts]
    known = [dict(mapping) for mapping in settings if mapping is not None]
    return known if len(known) == len(settings) else None


def field_names(fields: Any) -> tuple[str, ...] | None:
    """Return the names of the fields to search; None for title and text."""
    if fields is None:
        return None
    listed = isinstance(fields, Sequence) and not isinstance(fields, bytes)
    names = (fields,) if isinstance(fields, str) else tuple(fields) if listed else ()
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(
            f"got {fields!r:.60} for the fields", where="fields", fix='name the fields to search: ["title", "text"]'
        )
    return names


def document_texts(documents: Iterable[Document], fields: Sequence[str] | None = None) -> Iterator[tuple[str, str]]:
    """Yield the id and text of each document.

    Example:
        >>> list(document_texts([Document("d1", "Hours", "Nine to five.")], ["text"]))
        [('d1', 'Nine to five.')]
    """
    unseen = set(fields or ()) - _OWN
    empty = True
    for document in documents:
        if not isinstance(document, Document):
            raise InputError(
                f"got {type(document).__name__}, expected a document",
                where="documents",
                fix='pass rankgauge.Document("d1", text="..."), or Collection.of(...).documents.values()',
            )
        empty = False
        unseen.difference_update(document.fields)
        yield document.id, document.full_text if fields is None else _joined(document, fields)
    if unseen and not empty:
        raise InputError(
            f"no document has a field {min(unseen)!r}",
            where="fields",
            fix="name title, text, or a field that the documents have",
        )


def _joined(document: Document, fields: Sequence[str]) -> str:
    parts = (getattr(document, name) if name in _OWN else document.fields.get(name) for name in fields)
    return " ".join(str(part) for part in parts if part is not None and part != "")


def top_rows(scores: npt.NDArray[Any], k: int) -> npt.NDArray[np.int64]:
    """Return the rows of the `k` highest scores, highest first; ties keep their order.

    Example:
        >>> top_rows(np.array([0.5, 0.75, 0.5, 0.25]), 2).tolist()
        [1, 0]
    """
    if k <= 0:
        return np.zeros(0, dtype=np.int64)
    chosen = np.arange(len(scores))
    if k < len(scores):
        # Include all ties at the k-th score: np.partition alone would pick among them arbitrarily.
        chosen = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
    return chosen[np.argsort(-scores[chosen], kind="stable")][:k].astype(np.int64)


def indexed(retriever: object, index: Item | None) -> Item:
    """Return what a retriever has indexed; raise `InputError` for a search before indexing."""
    if index is None:
        raise InputError(
            f"{type(retriever).__name__} has no documents yet", where="search", fix="call index(documents) first"
        )
    return index

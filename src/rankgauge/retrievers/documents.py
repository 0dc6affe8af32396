"""What retrievers have in common: the text of a document, the best of all scores, first things."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rankgauge.corpus.collection import Document
from rankgauge.errors import InputError

__all__ = ["best", "fields_named", "texts_of", "unindexed"]

_OWN = frozenset({"title", "text"})


def fields_named(given: Any) -> tuple[str, ...] | None:
    """The names of the fields that make up the text of a document; None is title and text.

    Raises:
        InputError: If they are not names.
    """
    if given is None:
        return None
    names = (given,) if isinstance(given, str) else tuple(given) if _listed(given) else ()
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(
            f"got {given!r:.60} for the fields", where="fields",
            fix='name those that are searched: ["title", "text"]',
        )  # fmt: skip
    return names


def texts_of(
    documents: Iterable[Document], fields: Sequence[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Id and text of each document.

    Args:
        documents: The documents.
        fields: What makes up the text, joined by blanks: ``title``, ``text`` or others; if left
            out, title and text, the title once.

    Raises:
        InputError: If something is no document, or no document has one of these fields.

    Example:
        >>> list(texts_of([Document("d1", "Hours", "Nine to five.")], ["text"]))
        [('d1', 'Nine to five.')]
    """
    unseen = set(fields or ()) - _OWN
    empty = True
    for document in documents:
        if not isinstance(document, Document):
            raise InputError(
                f"got {type(document).__name__} where a document was wanted", where="documents",
                fix='give rankgauge.Document("d1", text="..."), or Collection.of(...).documents.'
                "values()",
            )  # fmt: skip
        empty = False
        unseen.difference_update(document.fields)
        yield document.id, document.whole if fields is None else _joined(document, fields)
    if unseen and not empty:
        raise InputError(
            f"no document has a field {min(unseen)!r}", where="fields",
            fix="name title, text, or a field that the documents have",
        )  # fmt: skip


def best(scores: npt.NDArray[Any], k: int) -> npt.NDArray[np.int64]:
    """The places of the `k` highest scores, highest first, equal ones in their order.

    Example:
        >>> best(np.array([0.5, 0.75, 0.5, 0.25]), 2).tolist()
        [1, 0]
    """
    if k <= 0:
        return np.zeros(0, dtype=np.int64)
    chosen = np.arange(len(scores))
    if k < len(scores):
        # All that reach the k-th score: a partition alone would choose among equals at will.
        chosen = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
    order = np.argsort(-scores[chosen], kind="stable")
    return chosen[order][:k].astype(np.int64)


def unindexed(retriever: object) -> InputError:
    """The error for a search before there is an index."""
    return InputError(
        f"{type(retriever).__name__} has no documents yet", where="search",
        fix="call index(documents) first",
    )  # fmt: skip


def _listed(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, bytes)


def _joined(document: Document, fields: Sequence[str]) -> str:
    parts = (
        getattr(document, name) if name in _OWN else document.fields.get(name) for name in fields
    )
    return " ".join(str(part) for part in parts if part is not None and part != "")

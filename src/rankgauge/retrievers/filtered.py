"""Filtering of retrieved documents by a field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from rankgauge.core.arguments import integer, of_kind
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers.base import CompositeRetriever, Ranking, not_indexed, search_deeper
from rankgauge.retrievers.hits import Hits
from rankgauge.retrievers.protocol import has_index, index_documents

# The number of documents behind a callable is unknown.
_ANY = 1_000_000


@dataclass(eq=False, repr=False)
class Filtered(CompositeRetriever):
    """A metadata filter over the hits of another retriever (a post-filter).

    A document passes if its field equals the value, or is a list that contains the value. The value
    is `value`, the same for all queries, or the field `query_field` of each query; if the value is
    a list, any of its items may match. Queries without that field are not filtered. If too few
    documents pass, more are requested until the retriever has no more.

    Args:
        retriever: Any retriever.
        field: The field of the documents; ``id`` and ``title`` are fields, too.
        query_field: The field of the queries.
        value: The value, or a list of values.
        depth: The initial number of hits to request per requested document.

    Raises:
        InputError: If neither or both of `query_field` and `value` are given.

    Example:
        >>> def newest(text, k):
        ...     return ["d2", "d1", "d3"][:k]
        >>> german = Filtered(newest, field="language", value="de")
        >>> german.index([Document(f"d{n}", fields={"language": "de"}) for n in (1, 3)])
        >>> german.search([Query("q1", "hours")], 1)
        [[('d1', 2.0)]]
    """

    TYPE = "filtered"
    PARTS = ("retriever",)

    retriever: Any
    _: KW_ONLY
    field: str
    query_field: str | None = None
    value: Any = None
    depth: int = 3

    def __post_init__(self) -> None:
        if (self.query_field is None) == (self.value is None):
            text = "neither" if self.value is None else "both"
            raise InputError(
                f"got {text} of query_field and value",
                where="Filtered",
                fix="pass a value for all queries, or the query field that contains it",
            )
        of_kind("field", self.field or None, str, "pass the name of a field")
        if self.query_field is not None:
            of_kind("query_field", self.query_field or None, str, "pass the name of a field")
        self.depth = integer("depth", self.depth)
        self._values: dict[str, tuple[Any, ...]] | None = None
        self._most = 0

    def index(self, documents: Iterable[Document]) -> None:
        """Index the documents, and store the field of each.

        Raises:
            InputError: If no document has the field, or no document has the value.
        """
        self._values = None
        index_documents(self.retriever, documents)
        values: dict[str, tuple[Any, ...]] = {}
        count = 0
        for document in documents:
            count += 1
            has = _field(document, self.field)
            if has is not None:
                values[document.id] = _several(has)
        if count and not values:
            raise InputError(
                f"no document has a field {self.field!r}", where="Filtered", fix="name a field of the documents"
            )
        self._check_value(values)
        self._values = values
        self._most = count if has_index(self.retriever) else _ANY

    def _check_value(self, values: Mapping[str, tuple[Any, ...]]) -> None:
        """Reject a value that no document has, such as a number where documents have text."""
        any_of = _several(self.value)
        if self.query_field is not None or not values:
            return
        if not any(one in any_of for has in values.values() for one in has):
            first = next(iter(values.values()))
            raise InputError(
                f"no document has {self.value!r:.60} in {self.field!r}",
                where="Filtered",
                fix=f"use an existing value, such as {next(iter(first), None)!r:.60}",
            )

    def search(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        """Return at most k documents that pass for each query, in the order of the retriever."""
        if self._values is None:
            raise not_indexed(self)
        return search_deeper(self.retriever, queries, k, depth=self.depth, most=self._most, select=self._passing)

    def _passing(self, query: Query, hits: Hits) -> Ranking:
        wanted = self.value if self.query_field is None else query.fields.get(self.query_field)
        if wanted is None:
            return hits.pairs()
        any_of = _several(wanted)
        has = self._values or {}
        return [row for row in hits.pairs() if any(one in any_of for one in has.get(row[0], ()))]


def _field(document: Document, name: str) -> Any:
    if name in {"id", "title"}:
        return getattr(document, name)
    return document.fields.get(name)


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)

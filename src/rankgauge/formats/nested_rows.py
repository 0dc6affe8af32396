"""Rows that hold all documents of a query: ``{"query_id": "q1", "results": [...]}``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rankgauge.errors import FormatError
from rankgauge.formats.layout import RUN, Columns, Layout, columns_of, wrong_columns
from rankgauge.formats.memory import short

__all__ = ["Nested"]

# The names of what holds the documents, as search tools and their clients write them.
_INNER = {
    "run": ("results", "hits", "ranking", "docs", "documents", "ctxs", "passages"),
    "judgments": ("judgments", "judgements", "ratings", "qrels"),
}
# A document among those of a query may be called just this.
_IDS = ("id", "_id")
_PAIR = 2


class Nested:
    """Takes such rows apart: into a query, a document and a number each.

    Attributes:
        columns: The names that are read; those of ours where documents stand without names.
        inner: The name of what holds the documents.
    """

    def __init__(self, name: str, layout: Layout, query: str, inner: str) -> None:
        self.columns = Columns(query, *layout.columns[1:])
        self.inner = inner
        self._name, self._layout, self._query = name, layout, query
        self._doc = self._value = ""
        self._ordered: set[Any] = set()

    @classmethod
    def of(cls, row: Mapping[str, Any], name: str, layout: Layout) -> Nested | None:
        """What takes rows as this one apart; None if it is no such row.

        Args:
            row: The first row.
            name: The file, for messages.
            layout: Judgments or run.
        """
        inner = next(
            (key for key in _INNER[layout.name] if isinstance(row.get(key), list | dict)), None
        )
        outer = [key for key in row if key != inner]
        found = columns_of((*outer, *layout.columns[1:]), layout)
        if inner is None or found is None or found.query not in row:
            return None
        return cls(name, layout, found.query, inner)

    def rows(self, row: Mapping[str, Any], line: int = 0) -> Iterator[tuple[Any, Any, Any]]:
        """Query, document and number of each document in a row.

        Args:
            row: The row.
            line: Its line, 0 where there are none.

        Raises:
            FormatError: If it is not like the first one.
        """
        for key in (self._query, self.inner):
            if key not in row:
                raise self._fault(line, f"there is no {key!r}", f"give {key!r} for every query")
        query, held = row[self._query], row[self.inner]
        if isinstance(held, dict):
            pairs: Iterable[tuple[Any, Any]] = held.items()
        elif isinstance(held, list):
            pairs = self._listed(query, held, line)
        else:
            raise self._fault(
                line, f"{self.inner!r} is {short(held)}, wanted a list",
                f'write "{self.inner}": [{{"doc_id": "d1", "{self._layout.value}": 2}}, ...]',
            )  # fmt: skip
        return ((query, doc, number) for doc, number in pairs)

    def _listed(self, query: Any, held: list[Any], line: int) -> list[tuple[Any, Any]]:
        if held and all(isinstance(one, dict) for one in held):
            return [self._named(one, line) for one in held]
        if held and all(isinstance(one, list) and len(one) == _PAIR for one in held):
            return [(doc, number) for doc, number in held]
        if any(isinstance(one, dict | list) for one in held):
            raise self._fault(
                line, f"the documents in {self.inner!r} are not all given alike",
                "give all as objects, all as pairs, or all as ids",
            )  # fmt: skip
        if self._layout is not RUN:
            return [(doc, 1) for doc in held]
        # Only their order says how good they are: two rows of a query would mix theirs.
        if short(query) in self._ordered:
            raise self._fault(
                line, f"query {short(query)} has two lists of documents", "give one, best first"
            )
        self._ordered.add(short(query))
        return list(zip(held, range(len(held), 0, -1), strict=True))

    def _named(self, one: Mapping[str, Any], line: int) -> tuple[Any, Any]:
        """Document and number of an object."""
        if not self._doc:
            self._choose(one, line)
        for key in (self._doc, self._value):
            if key not in one:
                raise self._fault(
                    line, f"there is no {key!r} in {short(one)}", f"give {key!r} for every document"
                )
        return one[self._doc], one[self._value]

    def _choose(self, one: Mapping[str, Any], line: int) -> None:
        query, document, _ = self._layout.columns
        keys = [key for key in one if key != query]
        found = columns_of((query, *keys), self._layout)
        known = next((key for key in _IDS if key in one), None)
        if found is None and known is not None:
            found = columns_of((query, document, *keys), self._layout)
            found = None if found is None else found._replace(doc=known)
        if found is None:
            what, fix = wrong_columns(one, self._layout)
            what = what.replace("columns are", f"keys in {self.inner!r} are", 1)
            raise self._fault(line, what, fix)
        self._doc, self._value = found.doc, found.value
        self.columns = found._replace(query=self._query)

    def _fault(self, line: int, what: str, fix: str) -> FormatError:
        return FormatError(what, path=self._name, line=line, fix=fix)

"""Read and write JSON: one object per line, or one document (mapping, columns, or list of rows)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rankgauge.core.pair_table import PairTable
from rankgauge.errors import FormatError
from rankgauge.formats.columns import RUN, Columns, Layout, columns_of, number_text, plain_number, wrong_columns
from rankgauge.formats.frames import from_columns, short
from rankgauge.formats.lines import shorten
from rankgauge.formats.mappings import from_mapping
from rankgauge.formats.rows import PairInput, Rows, by_query, number_or_nan, score_lines, text_pairs
from rankgauge.formats.search_tools import json_text, shaped

Lines = Iterable[tuple[int, bytes]]
_JSON = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "true or false", type(None): "null"}
# Keys for the documents of a query, as written by search tools and their clients.
_INNER = {
    "run": ("results", "hits", "ranking", "docs", "documents", "ctxs", "passages"),
    "judgments": ("judgments", "judgements", "ratings", "qrels"),
}


def json_line_pieces(  # noqa: C901 - one shape of an object after another
    lines: Lines, rows: Rows
) -> Iterator[PairTable]:
    """Read one JSON object per line, each with a query, a document, and a number.

    Yield a table whenever the rows are full.
    """
    columns: Columns | None = None
    nested: Nested | None = None

    def table() -> PairTable:
        if len(rows.ranks) != len(rows.lines):
            rows.ranks.clear()
        if nested is not None:
            return rows.table(nested.columns).with_notes(nested.note())
        return rows.table(columns)

    for number, value in objects(lines, rows.name, rows.report):
        if rows.full:
            yield table()
            rows.clear()
        columns = columns or columns_of(value, rows.layout)
        if columns is None:
            nested = nested or Nested.of(value, rows.origin)
        if nested is not None:
            for query, doc, grade in nested.rows(value, number):
                rows.add(number, query, doc, grade)
            continue
        if columns is None:
            what, fix = wrong_columns(value, rows.layout)
            rows.refuse(number, what.replace("columns", "keys", 1), fix)
            continue
        try:
            rows.add(number, *(value[name] for name in columns.read))
        except KeyError as error:
            rows.refuse(number, f"there is no {error}", f"add {error} to every line")
            continue
        if rows.with_ranks and "rank" in value and not columns.has_ranks:
            rows.ranks.append(number_or_nan(value["rank"]))
    if not rows.ended:
        yield table()


def objects(
    lines: Lines, name: str, on_error: Callable[[FormatError], object] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and the object of each line; report invalid lines to `on_error`."""
    for number, line in lines:
        if not line.strip():
            continue
        fix = "use one JSON object per line"
        try:
            value = json.loads(line.decode("utf-8"), object_pairs_hook=_no_repeats)
        except (ValueError, RecursionError) as error:
            what = _reason(error)
        else:
            if isinstance(value, dict):
                yield number, value
                continue
            what = f"got {_JSON[type(value)]}, expected an object"
            fix += ': {"query_id": "q1", "doc_id": "d1", ...}'
        fault = FormatError(what, path=name, line=number, text=shorten(line), fix=fix)
        if on_error is None:
            raise fault
        on_error(fault)


def read_json(lines: Lines, rows: Rows) -> PairTable:
    """Read a JSON document: query id to documents, columns, rows, or a search tool's format."""
    name, layout = rows.name, rows.layout
    value = json_document(lines, name, f"one object: {layout.mapping}")
    result = shaped(value, rows.origin)
    if result is not None:
        return from_mapping(result.rankings, rows.origin).with_notes(*result.notes)
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return _of_objects(value, rows)
    if not isinstance(value, dict):
        raise FormatError(
            f"got {_JSON[type(value)]}, expected an object",
            path=name,
            fix=f"use an object: {layout.mapping}, or rows as one object a line (.jsonl)",
        )
    return from_mapping(value, rows.origin)


def _of_objects(records: list[dict[str, Any]], rows: Rows) -> PairTable:
    """Read a list of objects with a query, a document, and a number each (records orientation)."""
    name, layout = rows.name, rows.layout
    columns = columns_of(records[0], layout)
    if columns is not None:
        names = dict.fromkeys((*columns.read, *columns.beside, *columns.rivals))
        data = {key: [row.get(key) for row in records] for key in names}
        return from_mapping(data, rows.origin)
    nested = Nested.of(records[0], rows.origin)
    if nested is None:
        what, fix = wrong_columns(records[0], layout)
        raise FormatError(what.replace("columns", "keys", 1), path=name, fix=fix)
    parts = list(itertools.chain.from_iterable(map(nested.rows, records)))
    if not parts:
        return rows.table()  # raises the error
    queries, docs, values = map(list, zip(*parts, strict=True))
    return from_columns(queries, docs, values, rows.origin, columns=nested.columns).with_notes(nested.note())


def json_document(lines: Lines, name: str, wanted: str) -> Any:
    """Parse a JSON file; duplicate keys in an object are an error."""
    data = b"".join(line for _, line in lines)
    fix = f"use {wanted}"
    if not data.strip():
        raise FormatError("the file is empty", path=name, fix=fix)
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_no_repeats)
    except (ValueError, RecursionError) as error:
        if isinstance(error, _RepeatedKeyError):
            fix = "keep one of them"
        elif getattr(error, "msg", "") == "Extra data":
            fix += "; a file with one object per line needs a name that ends in .jsonl"
        line = getattr(error, "lineno", 0)
        raise FormatError(_reason(error), path=name, line=line, fix=fix) from None


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not valid JSON: byte {error.start + 1} is not UTF-8"
    if isinstance(error, RecursionError):
        return "the JSON is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON: {error.msg}, at column {error.colno}"
    return str(error)


class _RepeatedKeyError(ValueError):
    pass


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _RepeatedKeyError(f"the key {twice!r} occurs twice in one object")
    return value


class Nested:
    """Reader of rows with all documents of a query: ``{"query_id": "q1", "results": [...]}``.

    Attributes:
        columns: Names of the keys that are read; our own names if documents have none.
        inner: The key of the documents.
    """

    def __init__(self, origin: PairInput, query: str, inner: str) -> None:
        self._layout, self._name, *_ = origin
        self.columns = Columns(query, *self._layout.columns[1:])
        self.inner, self._query = inner, query
        self._doc = self._value = ""
        self._ordered: set[Any] = set()

    @classmethod
    def of(cls, row: Mapping[str, Any], origin: PairInput) -> Nested | None:
        """Return a reader for rows like this one; None if it has no documents."""
        inner = next((key for key in _INNER[origin.layout.name] if isinstance(row.get(key), list | dict)), None)
        outer = [key for key in row if key != inner]
        columns = columns_of((*outer, *origin.layout.columns[1:]), origin.layout)
        if inner is None or columns is None or columns.query not in row:
            return None
        return cls(origin, columns.query, inner)

    def rows(self, row: Mapping[str, Any], line: int = 0) -> Iterator[tuple[Any, Any, Any]]:
        """Yield query, document, and number of each document in a row."""
        for key in (self._query, self.inner):
            if key not in row:
                raise self._fault(line, f"there is no {key!r}", f"add {key!r} to every query")
        query, held = row[self._query], row[self.inner]
        if isinstance(held, dict):
            pairs: Iterable[tuple[Any, Any]] = held.items()
        elif isinstance(held, list):
            pairs = self._listed(query, held, line)
        else:
            raise self._fault(
                line,
                f"{self.inner!r} is {short(held)}, expected a list",
                f'write "{self.inner}": [{{"doc_id": "d1", "{self._layout.value}": 2}}, ...]',
            )
        return ((query, doc, number) for doc, number in pairs)

    def note(self) -> str:
        """Note that describes how the rows were read."""
        return f"{self._name}: the documents of each query are those in {self.inner!r}"

    def _listed(self, query: Any, held: list[Any], line: int) -> list[tuple[Any, Any]]:
        if held and all(isinstance(document, dict) for document in held):
            return [self._named(document, line) for document in held]
        if held and all(isinstance(document, list) and len(document) == 2 for document in held):
            return [(doc, number) for doc, number in held]
        if any(isinstance(document, dict | list) for document in held):
            raise self._fault(
                line,
                f"the documents in {self.inner!r} have different forms",
                "use all as objects, all as pairs, or all as ids",
            )
        if self._layout is not RUN:
            return [(doc, 1) for doc in held]
        # Only order ranks these documents: two rows for a query would interleave their rankings.
        if short(query) in self._ordered:
            raise self._fault(line, f"query {short(query)} has two lists of documents", "use one, best first")
        self._ordered.add(short(query))
        return list(zip(held, range(len(held), 0, -1), strict=True))

    def _named(self, entry: Mapping[str, Any], line: int) -> tuple[Any, Any]:
        """Return document and number of an object."""
        if not self._doc:
            query, document, _ = self._layout.columns
            keys = [key for key in entry if key != query]
            columns = columns_of((query, *keys), self._layout)
            known = next((key for key in ("id", "_id") if key in entry), None)
            if columns is None and known is not None:
                columns = columns_of((query, document, *keys), self._layout)
                columns = None if columns is None else columns._replace(doc=known)
            if columns is None:
                what, fix = wrong_columns(entry, self._layout)
                what = what.replace("columns are", f"keys in {self.inner!r} are", 1)
                raise self._fault(line, what, fix)
            self._doc, self._value = columns.doc, columns.value
            self.columns = columns._replace(query=self._query)
        for key in (self._doc, self._value):
            if key not in entry:
                raise self._fault(line, f"there is no {key!r} in {short(entry)}", f"add {key!r} to every document")
        return entry[self._doc], entry[self._value]

    def _fault(self, line: int, what: str, fix: str) -> FormatError:
        return FormatError(what, path=self._name, line=line, fix=fix)


def json_by_query(tables: Iterable[PairTable], layout: Layout, *_: object) -> Iterator[str]:
    """Write a JSON object, query id to document id to number, query by query."""
    before = "{"
    for query, table, rows in by_query(tables, whole=True):
        lines = score_lines(table, rows, ('"', '": ', ", ")) if layout is RUN else None
        if lines:
            numbers = f"{{{lines[:-2].decode()}}}"
        else:
            pairs = text_pairs(table, rows)
            numbers = json_text({doc: plain_number(value, layout) for doc, value in pairs})
        yield f"{before}{json_text(query)}: {numbers}"
        before = ",\n"
    yield "{}\n" if before == "{" else "}\n"


def json_lines(tables: Iterable[PairTable], layout: Layout, *_: object) -> Iterator[bytes | str]:
    """Write one JSON object per row, query by query."""
    query_key, doc_key, value_key = map(json_text, layout.columns)
    for query, table, rows in by_query(tables):
        start = f"{{{query_key}: {json_text(query)}, {doc_key}: "
        middle = f", {value_key}: "
        lines = None
        if layout is RUN:
            lines = score_lines(table, rows, (f'{start}"', f'"{middle}', "}\n"))
        yield lines or "".join(
            f"{start}{json_text(doc)}{middle}{number_text(value, layout)}}}\n" for doc, value in text_pairs(table, rows)
        )

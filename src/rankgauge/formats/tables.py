"""Text tables with a header (CSV, TSV, JSON lines) and JSON mappings."""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any, BinaryIO

from rankgauge.core.ids import Blame, Ids, show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.delimited import check_header, check_width, decoded_line, quoting_error
from rankgauge.formats.layout import (
    Columns,
    Layout,
    columns_of,
    number_text,
    numbers_of,
    plain_number,
    read_number,
    table_of,
    wrong_columns,
    wrong_number,
)
from rankgauge.formats.lines import numbered_lines, shorten
from rankgauge.formats.memory import from_columns, from_mapping
from rankgauge.formats.nested_rows import Nested

__all__ = [
    "by_query",
    "delimited_text",
    "json_document",
    "json_lines",
    "json_lines_text",
    "json_text",
    "objects",
    "read_delimited",
    "read_json",
    "read_json_lines",
]

Lines = Iterable[tuple[int, bytes]]
# Rows that are written at once: their Python objects take far more memory than they.
_AT_ONCE = 1 << 16
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_ROUNDED = re.compile(r"\d(\.\d+)?[eE]\+?\d+")
_DECIMAL = re.compile(r"\d+\.0+")


class _Rows:
    """Three columns that grow row by row, with the line of each."""

    def __init__(self, name: str, layout: Layout) -> None:
        self.name, self.layout = name, layout
        self.queries: list[Any] = []
        self.docs: list[Any] = []
        self.values: list[Any] = []
        self.lines: list[int] = []

    def add(self, line: int, query: Any, doc: Any, value: Any) -> None:
        self.lines.append(line)
        self.queries.append(query)
        self.docs.append(doc)
        self.values.append(value)

    def warnings(self) -> list[str]:
        """What a spreadsheet may have done to ids."""
        found = []
        for what, ids in (("query", self.queries), ("document", self.docs)):
            strange = next((one for one in ids if _ROUNDED.fullmatch(one)), None)
            if strange is None and all(map(_DECIMAL.fullmatch, ids)):
                strange = ids[0]
            if strange is not None:
                found.append(
                    f"WARNING: {self.name}: {what} id {strange!r} looks like a number that a "
                    "spreadsheet or a data frame made of an id: write ids as text"
                )
        return found

    def table(self, columns: Columns, places: tuple[int, int, int] = (0, 0, 0)) -> PairTable:
        """All rows; `places` are the column numbers for messages, 0 where there are none."""

        def blame(column: int) -> Blame:
            return lambda row, what, fix: FormatError(
                what, path=self.name, line=self.lines[row], column=column, fix=fix
            )

        if not self.lines:
            raise _no_row(self.name, self.layout)
        return table_of(
            Ids.of(self.queries, "query id", blame(places[0])),
            Ids.of(self.docs, "document id", blame(places[1])),
            numbers_of(self.values, self.layout, blame(places[2])),
            self.layout,
            source=self.name,
            columns=columns,
            lines=self.lines,
        )


def read_delimited(lines: Lines, name: str, layout: Layout, form: str) -> PairTable:
    """CSV or TSV (``form``) with a header.

    Raises:
        FormatError: With line and column of the first cell that does not fit.
    """
    texts = _texts(lines, name)
    start = list(itertools.islice(texts, 1))
    by = _delimiter("".join(start), layout, form)
    reader = csv.reader(itertools.chain(start, texts), delimiter=by, strict=True)
    rows = _Rows(name, layout)
    unrated = behind = 0
    try:
        header = next(reader, None)
        if header is None:
            raise _no_row(name, layout)
        behind = reader.line_num
        columns, (query, doc, value) = _header(header, name, layout)
        # A list of queries and documents to be rated has some that are not, yet.
        rated = header[value].strip().strip("'\"").lower() == "rating"
        for row in reader:
            if rated and (len(row) == 1 or (len(row) == len(header) and not row[value].strip())):
                unrated += 1
            elif len(row) == len(header) or "".join(row).strip():
                check_width(row, header, name, (reader.line_num, by))
                number = _cell(row[value], rows, (name, reader.line_num, value + 1))
                rows.add(reader.line_num, row[query], row[doc], number)
            behind = reader.line_num
    except csv.Error as error:
        raise quoting_error(error, name, behind + 1) from None
    table = rows.table(columns, (query + 1, doc + 1, value + 1))
    if by != _DELIMITERS[form]:
        table = table.said(f"{name}: read with {by!r} between the columns")
    if unrated:
        table = table.said(f"{name}: {unrated} lines without a rating are not judged")
    return table.said(*rows.warnings())


def _delimiter(header: str, layout: Layout, form: str) -> str:
    """What stands between columns: what the format says, or else what parts a header of ours."""
    usual = _DELIMITERS[form]
    for by in (usual, ",", ";", "|", "\t"):
        if columns_of(header.split(by), layout) is not None:
            return by
    return usual


def _header(header: list[str], name: str, layout: Layout) -> tuple[Columns, tuple[int, int, int]]:
    """The chosen columns and their places."""
    columns = columns_of(header, layout)
    if columns is None:
        what, fix = wrong_columns(header, layout)
        names, mark, more = fix.partition("; ")
        fix = f"{names}, in the first line{mark}{more}"
        raise FormatError(what, path=name, line=1, fix=fix)
    chosen = (columns.query, columns.doc, columns.value)
    check_header(header, name, read=chosen)
    return columns, (header.index(chosen[0]), header.index(chosen[1]), header.index(chosen[2]))


def _cell(text: str, rows: _Rows, place: tuple[str, int, int]) -> float:
    try:
        return read_number(text.encode())
    except ValueError:
        what, fix = wrong_number(text, rows.layout)
        name, line, column = place
        raise FormatError(what, path=name, line=line, column=column, fix=fix) from None


def _texts(lines: Lines, name: str) -> Iterator[str]:
    for number, line in lines:
        yield decoded_line(line, name, number)


def read_json_lines(lines: Lines, name: str, layout: Layout) -> PairTable:
    """One JSON object a line, with a query, a document and a number in each.

    Raises:
        FormatError: With the first line that does not fit.
    """
    rows = _Rows(name, layout)
    columns = nested = None
    for number, value in objects(lines, name):
        columns = columns or columns_of(value, layout)
        if columns is None:
            nested = nested or Nested.of(value, name, layout)
        if nested is not None:
            for query, doc, found in nested.rows(value, number):
                rows.add(number, query, doc, found)
            continue
        if columns is None:
            what, fix = wrong_columns(value, layout)
            raise FormatError(what.replace("columns", "keys", 1), path=name, line=number, fix=fix)
        try:
            rows.add(number, value[columns.query], value[columns.doc], value[columns.value])
        except KeyError as error:
            raise FormatError(
                f"there is no {error}", path=name, line=number, fix=f"give {error} in every line"
            ) from None
    if nested is not None:
        return rows.table(nested.columns).said(_taken_from(nested, name))
    if columns is None:
        raise _no_row(name, layout)
    return rows.table(columns)


def _taken_from(nested: Nested, name: str) -> str:
    return f"{name}: the documents of each query are those in {nested.inner!r}"


def json_lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON lines file, each with its line number.

    Raises:
        FormatError: With the first line that is no object.
    """
    return objects(numbered_lines(stream, name), name)


def objects(lines: Lines, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The object of each line, with its number.

    Raises:
        FormatError: With the first line that is no object.
    """
    for number, line in lines:
        if not line.strip():
            continue
        try:
            value = json.loads(line.decode("utf-8"), object_pairs_hook=_no_repeats)
        except (ValueError, RecursionError) as error:
            raise FormatError(
                _reason(error),
                path=name,
                line=number,
                text=shorten(line),
                fix="give one JSON object a line",
            ) from None
        if not isinstance(value, dict):
            raise FormatError(
                f"got {_JSON[type(value)]}, wanted an object",
                path=name,
                line=number,
                text=shorten(line),
                fix='give one JSON object a line: {"query_id": "q1", "doc_id": "d1", ...}',
            )
        yield number, value


def read_json(lines: Lines, name: str, layout: Layout) -> PairTable:
    """A JSON object: query id to documents, as :func:`from_mapping` takes it.

    Raises:
        FormatError: If it is not a JSON object.
        InputError: If its parts do not fit.
    """
    value = json_document(lines, name, f"one object: {layout.mapping}")
    from rankgauge.formats.json_shapes import shaped

    found = shaped(value, layout, name)
    if found is not None:
        return from_mapping(found.rankings, layout, source=name).said(*found.notes)
    rows = _of_objects(value, name, layout) if isinstance(value, list) else None
    if rows is not None:
        return rows
    if not isinstance(value, dict):
        raise FormatError(
            f"got {_JSON[type(value)]}, wanted an object",
            path=name,
            fix=f"give an object: {layout.mapping}, or rows as one object a line (.jsonl)",
        )
    return from_mapping(value, layout, source=name)


def _of_objects(rows: list[Any], name: str, layout: Layout) -> PairTable | None:
    """A list of objects with a query, a document and a number each, as data frames write it."""
    if not rows or not all(isinstance(row, dict) for row in rows):
        return None
    columns = columns_of(rows[0], layout)
    nested = Nested.of(rows[0], name, layout) if columns is None else None
    if nested is not None:
        parts = list(itertools.chain.from_iterable(map(nested.rows, rows)))
        if not parts:
            raise _no_row(name, layout)
        queries, docs, numbers = map(list, zip(*parts, strict=True))
        table = from_columns(queries, docs, numbers, layout, columns=nested.columns, source=name)
        return table.said(_taken_from(nested, name))
    if columns is None:
        what, fix = wrong_columns(rows[0], layout)
        raise FormatError(what.replace("columns", "keys", 1), path=name, fix=fix)
    names = dict.fromkeys((*columns[:3], *columns.beside, *columns.rivals))
    return from_mapping({key: [row.get(key) for row in rows] for key in names}, layout, name)


def json_document(lines: Lines, name: str, wanted: str) -> Any:
    """What a JSON file holds; no key stands twice in one object of it.

    Args:
        lines: The lines with their numbers.
        name: The file, for messages.
        wanted: What it should hold, for messages.

    Raises:
        FormatError: If it is empty, or no JSON.
    """
    data = b"".join(line for _, line in lines)
    fix = f"give {wanted}"
    if not data.strip():
        raise FormatError("the file is empty", path=name, fix=fix)
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_no_repeats)
    except (ValueError, RecursionError) as error:
        if isinstance(error, _RepeatedKeyError):
            fix = "keep one of them"
        elif getattr(error, "msg", "") == "Extra data":
            fix += "; of one object a line the name ends in .jsonl"
        line = getattr(error, "lineno", 0)
        raise FormatError(_reason(error), path=name, line=line, fix=fix) from None


_JSON = {
    list: "a list",
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


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
        raise _RepeatedKeyError(f"the key {twice!r} stands twice in one object")
    return value


def _no_row(name: str, layout: Layout) -> FormatError:
    return FormatError(
        "there is no row to read", path=name, fix=f"give rows of {', '.join(layout.columns)}"
    )


def delimited_text(table: PairTable, layout: Layout, form: str) -> Iterator[str]:
    """A table with a header, query by query."""
    parts: list[str] = []
    # A cell is quoted if it holds a part of the line end: with this one, a lone return as well.
    sink = SimpleNamespace(write=lambda row: parts.append(row.removesuffix("\r\n") + "\n"))
    writer = csv.writer(sink, delimiter=_DELIMITERS[form], lineterminator="\r\n")
    writer.writerow(layout.columns)
    for query, docs in by_query(table, _AT_ONCE):
        writer.writerows((query, doc, number_text(value, layout)) for doc, value in docs)
        yield "".join(parts)
        parts.clear()
    yield "".join(parts)


def json_text(table: PairTable, layout: Layout) -> Iterator[str]:
    """A JSON object, query id to document id to number, query by query.

    Raises:
        InputError: If a pair stands twice, which an object cannot say.
    """
    repeats = table.repeats()
    if repeats:
        raise table.repeat_error(repeats[0], fix="remove it, or write another format than JSON")
    before = "{"
    for query, docs in by_query(table):
        numbers = {doc: plain_number(value, layout) for doc, value in docs}
        yield f"{before}{_json(query)}: {_json(numbers)}"
        before = ",\n"
    yield "{}\n" if before == "{" else "}\n"


def json_lines_text(table: PairTable, layout: Layout) -> Iterator[str]:
    """One JSON object a row, query by query."""
    query_key, doc_key, value_key = map(_json, layout.columns)
    for query, docs in by_query(table, _AT_ONCE):
        start = f"{{{query_key}: {_json(query)}, {doc_key}: "
        middle = f", {value_key}: "
        yield "".join(
            [f"{start}{_json(d)}{middle}{number_text(value, layout)}}}\n" for d, value in docs]
        )


# As json.dumps, which makes a new encoder each time that it is asked for other characters.
_json = json.JSONEncoder(ensure_ascii=False).encode


def by_query(
    table: PairTable, most: int | None = None
) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """Each query with its documents and their numbers, as text.

    Args:
        table: Judgments or a run.
        most: So many documents at once; a query with more comes again.

    Raises:
        InputError: If an id is not UTF-8.
    """
    ends = table.offsets.tolist()
    for number, query in enumerate(_texts_of(table.queries)):
        start, stop = ends[number], ends[number + 1]
        for first in range(start, max(stop, start + 1), most or max(stop - start, 1)):
            rows = slice(first, stop if most is None else min(first + most, stop))
            docs = _texts_of(table.docs.take(rows), table.docs)
            yield query, list(zip(docs, table.values[rows].tolist(), strict=True))


def _texts_of(ids: Ids, column: Ids | None = None) -> list[str]:
    """Ids as text; `column` is all of those that they are part of."""
    try:
        return [value.decode("utf-8") for value in ids.tolist()]
    except UnicodeDecodeError as error:
        many = (column or ids).not_text()
        others = "" if many == 1 else f" ({many} ids are not)"
        raise InputError(
            f"id '{show_id(error.object)}' is not UTF-8, so it cannot be written as text{others}",
            fix="write TREC format, which keeps the bytes",
        ) from None

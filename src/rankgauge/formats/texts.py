"""Files of texts: documents and queries, with an id each, some with a title and other fields."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rankgauge.errors import FormatError
from rankgauge.formats.files import format_of
from rankgauge.formats.lines import Source, numbered_lines, opened, shorten, source_name
from rankgauge.formats.tables import objects
from rankgauge.ids import id_bytes, show_id

__all__ = ["TextRow", "read_texts"]

# The names of each part, the one to recommend first.
_IDS = ("_id", "id", "doc_id", "docno", "docid", "query_id", "qid", "query-id", "corpus-id")
_TEXTS = ("text", "contents", "body", "abstract", "query", "question")
_TITLES = ("title", "heading")
_EXAMPLE = '{"_id": "d1", "title": "...", "text": "..."}'
_CELLS = 3


@dataclass(frozen=True, slots=True)
class TextRow:
    """One text.

    Attributes:
        id: Its id as text, as ids are shown.
        title: Its title, empty without one.
        text: The text itself, without the title.
        fields: What else stands with it.
    """

    id: str
    title: str
    text: str
    fields: Mapping[str, Any]


def read_texts(source: Source) -> Iterator[TextRow]:
    """The texts of a file: JSON lines, or TSV or CSV of id and text or of id, title and text.

    Args:
        source: A path; gzip too; ``-`` for standard input.

    Raises:
        FormatError: With the first line that does not fit, or for an id that stands twice.
        InputError: If the file cannot be read.
    """
    name = source_name(source)
    seen: dict[str, int] = {}
    with opened(source) as stream:
        for number, row in _rows(numbered_lines(stream, name), name):
            if row.id in seen:
                raise FormatError(
                    f"id {row.id!r} stands in line {seen[row.id]}, too",
                    path=name,
                    line=number,
                    fix="keep one text of each id",
                )
            seen[row.id] = number
            yield row
    if not seen:
        raise FormatError("there is no text to read", path=name, fix=f"give lines of {_EXAMPLE}")


def _rows(lines: Iterator[tuple[int, bytes]], name: str) -> Iterator[tuple[int, TextRow]]:
    first = next(((number, line) for number, line in lines if line.strip()), None)
    if first is None:
        return
    rest = itertools.chain([first], lines)
    form = format_of(name) or ("jsonl" if first[1].lstrip().startswith(b"{") else "tsv")
    if form in {"json", "jsonl"}:
        for number, found in objects(rest, name):
            yield number, _of_object(found, name, number)
    else:
        yield from _of_cells(rest, name, "," if form == "csv" else "\t")


def _of_object(found: Mapping[str, Any], name: str, number: int) -> TextRow:
    key = next((key for key in _IDS if key in found), None)
    body = next((key for key in _TEXTS if key in found), None)
    if key is None or body is None:
        wanted, names = ("id", _IDS) if key is None else ("text", _TEXTS)
        raise FormatError(
            f"there is no {wanted}: the keys are {', '.join(map(repr, found))}",
            path=name,
            line=number,
            fix=f"call it {names[0]!r}, as in {_EXAMPLE}",
        )
    title = next((key for key in _TITLES if key in found), None)
    fields = {k: v for k, v in found.items() if k not in {key, body, title}}
    return TextRow(
        id=_id(found[key], name, number),
        title="" if title is None else _text(found[title], name, number),
        text=_text(found[body], name, number),
        fields=fields,
    )


def _id(value: Any, name: str, number: int) -> str:
    text = value if isinstance(value, str | int) and not isinstance(value, bool) else None
    if text is None or text == "":
        raise FormatError(
            f"got {value!r:.60} for an id", path=name, line=number,
            fix="an id is text or a whole number",
        )  # fmt: skip
    return show_id(id_bytes(text))


def _text(value: Any, name: str, number: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise FormatError(
            f"got {value!r:.60} for a text", path=name, line=number, fix="give text in quotes"
        )
    return value


def _of_cells(
    lines: Iterable[tuple[int, bytes]], name: str, delimiter: str
) -> Iterator[tuple[int, TextRow]]:
    columns: list[str] | None = None
    for at, row in _cells(lines, name, delimiter):
        if columns is None:
            columns = [cell.strip().lower() for cell in row]
            if columns[0] in _IDS and any(cell in _TEXTS for cell in columns):
                continue
            columns = []
        if columns:
            yield at, _of_object(dict(zip(columns, row, strict=False)), name, at)
            continue
        if not 1 < len(row) <= _CELLS:
            raise FormatError(
                f"the line has {len(row)} fields, wanted id and text, or id, title and text",
                path=name,
                line=at,
                text=shorten(delimiter.join(row).encode()),
                fix="put one separator between two fields, or write JSON lines",
            )
        title = row[1] if len(row) == _CELLS else ""
        yield at, TextRow(_id(row[0].strip(), name, at), title, row[-1], {})


def _cells(
    lines: Iterable[tuple[int, bytes]], name: str, delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line that has some, with its number."""
    at = 0

    def decoded() -> Iterator[str]:
        nonlocal at
        for number, line in lines:
            at = number
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise FormatError(
                    f"byte {error.start + 1} is not UTF-8", path=name, line=number,
                    text=shorten(line), fix="save the file as UTF-8",
                ) from None  # fmt: skip

    if delimiter == "\t":
        # A quotation mark in a line of tabs is a quotation mark, and a text may be of any length.
        rows: Iterator[list[str]] = (line.rstrip("\r\n").split("\t") for line in decoded())
    else:
        rows = csv.reader(decoded(), delimiter=delimiter)
    try:
        for row in rows:
            if any(row):
                yield at, row
    except csv.Error as error:
        raise FormatError(
            f"the fields cannot be told apart: {error}", path=name, line=at,
            fix="quote fields by the rules of CSV, or write JSON lines",
        ) from None  # fmt: skip

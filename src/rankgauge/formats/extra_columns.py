"""Read and write special judgments, with columns beyond query, document, and grade.

A :class:`Wide` declares their columns; :func:`wide_rows` reads them from any source: a file, a
mapping of columns, a data frame, or rows.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rankgauge.core.ids import Ids, IntArray
from rankgauge.core.pair_table import FloatArray
from rankgauge.core.text import many
from rankgauge.errors import FormatError, InputError, UnknownName
from rankgauge.formats.columns import JUDGMENTS, column_word, columns_of, finite_numbers, read_number
from rankgauge.formats.datasets import ir_rows
from rankgauge.formats.delimited import DELIMITERS, csv_line, named_cells
from rankgauge.formats.frames import frame_columns, is_frame, listed, short
from rankgauge.formats.json_files import json_document, objects
from rankgauge.formats.lines import (
    Source,
    is_columnar,
    is_content,
    numbered_lines,
    opened,
    shorten,
    source_name,
    start_of,
)
from rankgauge.formats.mappings import ROW_FAULTS, is_list, row_picker
from rankgauge.formats.readers import first_object
from rankgauge.formats.registry import QRELS_FORMATS, RUN_FORMATS, InFormat, format_of
from rankgauge.formats.writers import written

_FORMATS = tuple(name for name in QRELS_FORMATS if name in RUN_FORMATS)
_OWN = ("query", "document", "grade")

# Cells of each column by name, and the line number of each row if known.
_Cells: TypeAlias = tuple[dict[str, list[Any]], list[int] | None]


class Wide(NamedTuple):
    """Declaration of a kind of rows."""

    words: str  # their meaning, as a phrase
    # Fields of a line in TREC format; those that start with ``-`` are skipped.
    fields: tuple[str, ...]
    # Accepted names of each additional column in a table, best first.
    columns: Mapping[str, tuple[str, ...]]
    example: str  # a line in TREC format
    mapping: str  # a small valid mapping, for messages
    # Yields the rows of such a mapping, with cells in the order of the fields.
    rows_of: Callable[[Mapping[Any, Any]], Iterable[tuple[Any, ...]]]

    @property
    def parts(self) -> list[str]:
        """The fields that are read."""
        return [field for field in self.fields if not field.startswith("-")]

    @property
    def written(self) -> tuple[str, ...]:
        """Column names for writing a table."""
        own = dict(zip(_OWN, JUDGMENTS.columns, strict=True))
        return tuple(own.get(field) or self.columns[field][0] for field in self.parts)


class WideRows(NamedTuple):
    """Columns of rows."""

    queries: Ids  # query of each row
    docs: Ids  # document of each row
    grades: FloatArray  # grade of each row
    labels: Mapping[str, Ids]  # additional columns
    source: str  # name of the source
    lines: IntArray | None  # line number of each row, if known


def wide_rows(source: Any, wide: Wide, form: str | None = None) -> WideRows:
    """Read the columns of special judgments."""
    if isinstance(source, InFormat):
        source, form = source.path, form or source.format
    name = JUDGMENTS.name
    if isinstance(source, str) and source.startswith("ir_datasets:"):
        name, (cells, lines) = source, _of_memory(ir_rows(source), wide)
    elif isinstance(source, str | os.PathLike):
        name, (cells, lines) = source_name(source), _of_file(source, wide, form)
    else:
        is_array = isinstance(source, np.ndarray) and source.dtype.names
        if is_array or is_frame(source):
            source = {key: source[key] for key in source.dtype.names} if is_array else frame_columns(source, name)
            if _names(source, wide) is None:
                what, fix = _wrong(source, wide)
                raise InputError(what, where=name, fix=fix)
        cells, lines = _of_memory(source, wide)
    sizes = {len(column) for column in cells.values()}
    if len(sizes) != 1 or sizes == {0}:
        what = "there are no rows" if sizes == {0} else "the columns have different lengths"
        raise InputError(what, where=name, fix=f"pass rows of {', '.join(wide.written)}")

    def blame(row: int, what: str, fix: str) -> InputError:
        if lines is None:
            return InputError(what, where=f"{name}, row {row + 1}", fix=fix)
        return FormatError(what, path=name, line=lines[row], fix=fix)

    grades = [_number(cell) if isinstance(cell, bytes) else cell for cell in cells["grade"]]
    return WideRows(
        queries=Ids.of(cells["query"], "query id", blame),
        docs=Ids.of(cells["document"], "document id", blame),
        grades=finite_numbers(grades, JUDGMENTS, blame),
        labels={key: Ids.of(cells[key], f"{key} id", blame) for key in wide.columns},
        source=name,
        lines=None if lines is None else np.array(lines, dtype=np.int64),
    )


def _number(cell: bytes) -> Any:
    try:
        return read_number(cell)
    except ValueError:
        return cell.decode("utf-8", "replace")


def _names(names: Iterable[Any], wide: Wide) -> dict[str, Any] | None:
    """Map each field to a column name; return None if a column is missing."""
    every = list(names)
    own = columns_of(every, JUDGMENTS)
    if own is None:
        return None
    columns: dict[str, Any] = dict(zip(_OWN, own.read, strict=True))
    words = {column_word(name): name for name in reversed(every)}
    for key, wanted in wide.columns.items():
        there = [words[word] for word in wanted if word in words]
        if not there:
            return None
        columns[key] = there[0]
    return columns


def _wrong(names: Iterable[Any], wide: Wide) -> tuple[str, str]:
    shown = ", ".join(repr(str(name)) for name in itertools.islice(names, 8))
    return (
        f"the columns are {shown or 'none'}; {wide.words} need {', '.join(wide.written)}",
        f"name them {', '.join(wide.written)}",
    )


def _of_memory(data: Any, wide: Wide) -> _Cells:
    """Read columns, a nested mapping, or rows."""
    if isinstance(data, Mapping):
        names = _names(data, wide)
        if names is not None and all(is_list(data[name]) for name in names.values()):
            return {key: listed(data[name]) for key, name in names.items()}, None
        data = list(wide.rows_of(data))
    if not is_list(data):
        raise InputError(
            f"got {type(data).__name__}, expected {wide.words}",
            where=JUDGMENTS.name,
            fix=f"pass a mapping {wide.mapping}, a data frame, a path, or rows",
        )
    return _of_rows(enumerate(data, start=1), wide)


def _of_rows(rows: Iterable[tuple[int, Any]], wide: Wide, path: str = "") -> _Cells:
    """Read numbered rows by position or by name; rows of a file keep their line numbers."""
    wanted = wide.parts
    cells: dict[str, list[Any]] = {key: [] for key in wanted}
    lines: list[int] = []

    def choose(names: Iterable[Any]) -> list[Any] | None:
        columns = _names(names, wide)
        return None if columns is None else [columns[field] for field in wanted]

    kind, pick = None, None
    for number, row in rows:
        try:
            if type(row) is not kind:
                kind, pick = type(row), row_picker(row, choose)
            for key, value in zip(wanted, row if pick is None else pick(row), strict=True):
                cells[key].append(value)
        except ROW_FAULTS:
            what = f"got {short(row)}, expected {', '.join(wanted)}"
            fix = f"pass rows ({', '.join(wanted)}), or a mapping: {wide.mapping}"
            if path and pick is None:
                what, fix = _wrong(row, wide)
            where = {"path": path, "line": number} if path else {"where": f"{JUDGMENTS.name}, row {number}"}
            raise (FormatError if path else InputError)(what, fix=fix, **where) from None
        lines.append(number)
    return cells, lines if path else None


def _of_file(source: Source, wide: Wide, form: str | None) -> _Cells:
    if form is not None and form not in _FORMATS:
        raise UnknownName(
            f"{wide.words} cannot be read from the format {form!r}",
            where="format",
            fix=f"choose one of: {', '.join(_FORMATS)}",
        )
    name = source_name(source)
    if os.path.isdir(source):  # noqa: PTH112 - a path may be text
        raise InputError("this is a folder", where=name, fix="name the file of judgments in it")
    with opened(source) as stream:
        if is_columnar(start_of(stream), name):
            raise FormatError(
                f"{wide.words} cannot be read from columnar files",
                path=name,
                fix="read the file with pandas or polars, and pass the data frame",
            )
        lines = numbered_lines(stream, name)
        head = list(itertools.islice(((at, line) for at, line in lines if is_content(line)), 1))
        chosen = form or format_of(name) or _guess(head[0][1].strip() if head else b"", wide)
        everything = itertools.chain(head, lines)
        if chosen == "json":
            document = json_document(everything, name, f"rows of {', '.join(wide.written)}")
            return _of_memory(document if isinstance(document, Mapping | list) else [document], wide)
        if chosen == "jsonl":
            return _of_rows(objects(everything, name), wide, name)
        if chosen == "trec":
            return _of_rows(_trec_rows(everything, name, wide), wide, name)
        cells, numbers = _of_rows(named_cells(everything, name, DELIMITERS[chosen], key=str), wide, name)
        return cells | {"grade": [_number(cell.encode()) for cell in cells["grade"]]}, numbers


def _guess(first: bytes, wide: Wide) -> str:
    if first.startswith((b"{", b"[")):
        value = first_object(first)
        is_row = isinstance(value, dict) and _names(value, wide) is not None
        return "jsonl" if is_row else "json"
    for form, by in DELIMITERS.items():
        cells = first.decode("utf-8", "replace").split(by)
        if len(cells) > 1 and _names(cells, wide) is not None:
            return form
    return "trec"


def _trec_rows(lines: Iterable[tuple[int, bytes]], name: str, wide: Wide) -> Iterator[tuple[int, list[bytes]]]:
    kept = [place for place, field in enumerate(wide.fields) if not field.startswith("-")]
    for number, line in lines:
        parts = line.split()
        if len(parts) == len(wide.fields) and is_content(line):
            yield number, [parts[place] for place in kept]
        elif is_content(line):
            raise FormatError(
                f"got {many(len(parts), 'field')}, expected {len(wide.fields)}: "
                + " ".join(wide.fields).replace("-", ""),
                path=name,
                line=number,
                text=shorten(line),
                fix=f"write lines such as: {wide.example}",
            )


def write_wide(
    rows: Iterable[tuple[str, ...]], mapping: Mapping[str, Any], wide: Wide, target: Source, *, form: str | None = None
) -> None:
    """Write rows in a form that :func:`wide_rows` can read.

    Args:
        rows: Cells of each row, in the column order of a table, grades as text.
        mapping: The same as a nested mapping, for JSON.
        wide: Declaration of the rows.
        target: The file; ``-`` is standard output.
        form: The format, if not implied by the name.
    """
    chosen = form or (None if target == "-" else format_of(source_name(target))) or "trec"
    if chosen not in _FORMATS:
        raise UnknownName(
            f"{wide.words} cannot be written in the format {chosen!r}",
            where="format",
            fix=f"choose one of: {', '.join(_FORMATS)}",
        )
    with written(target) as stream:
        if chosen == "json":
            stream.write(json.dumps(mapping, ensure_ascii=False).encode() + b"\n")
            return
        by = DELIMITERS.get(chosen)
        for row in itertools.chain([wide.written] if by else (), rows):
            if by:
                stream.write(csv_line(row, by).encode())
            elif chosen == "jsonl":
                values = dict(zip(wide.written, (*row[:-1], json.loads(row[-1])), strict=True))
                stream.write(json.dumps(values, ensure_ascii=False).encode() + b"\n")
            else:
                bad = next((cell for cell in row if cell.split() != [cell]), None)
                if bad is not None or row[0].startswith("#"):
                    raise InputError(
                        f"{bad or row[0]!r:.60} cannot be written: blanks separate fields, # is a comment",
                        where=source_name(target),
                        fix="choose another format: a name that ends in .csv or .json",
                    )
                cells = iter(row)
                parts = ["0" if field.startswith("-") else next(cells) for field in wide.fields]
                stream.write(f"{' '.join(parts)}\n".encode())


def subtopic_advice(path: str, lines: Sequence[int]) -> str:
    """Return the fix for duplicate pairs if they may be judgments by subtopic; else empty."""
    # A pipe cannot be read again.
    if not os.path.isfile(path):  # noqa: PTH113 - a path may be text
        return ""
    seconds: list[str] = []
    with suppress(InputError), opened(path) as stream:
        for number, line in itertools.islice(numbered_lines(stream, path), max(lines)):
            parts = line.split()
            if number in lines and len(parts) == 4:
                seconds.append(parts[1].decode("utf-8", "replace"))
    if len(set(seconds)) < len(lines):
        return ""
    shown = " and ".join(map(repr, seconds[:2]))
    return (
        f"; if {shown} in the second field are subtopics, use a measure that reads them, such "
        "as alpha_nDCG@10, or read_subtopic_qrels(path).qrels"
    )

"""Read judgments and runs from files, folders, archives, and datasets, choosing the reader."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

import numpy as np

from rankgauge.core.ids import Ids
from rankgauge.core.pair_table import PairTable
from rankgauge.core.text import many
from rankgauge.errors import FormatError, InputError, UnknownName
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout
from rankgauge.formats.detection import guess_format, has_header, refuse_lookalike
from rankgauge.formats.fast_trec import packed_table, quick_table
from rankgauge.formats.lines import (
    AROUND,
    Source,
    Text,
    archive_of,
    is_columnar,
    is_content,
    is_plain_file,
    is_zip,
    numbered_lines,
    opened,
    opened_bytes,
    refuse,
    rest_of_stream,
    source_name,
    start_of,
)
from rankgauge.formats.mappings import from_mapping
from rankgauge.formats.registry import QRELS_FORMATS, RUN_FORMATS, InFormat, format_named, format_of, load
from rankgauge.formats.rows import OnError, Rows
from rankgauge.formats.trec import THIRD_COLUMNS, is_line, read_third_column, read_trec

if TYPE_CHECKING:
    from rankgauge.formats.delimited import PlainCells
    from rankgauge.formats.texts import TextSource

# Number of lines searched for content; they stay in memory.
_HEAD = 1 << 12
# Formats with fields separated by white space, or (cells) by single tabs.
CELLS = "cells"
FIELDS = ("trec", CELLS, *THIRD_COLUMNS)
DELIMITED = ("csv", "tsv")
# Formats of question tables, and a pattern for their first line.
_NAMED = (*DELIMITED, "jsonl")
_QUESTION = re.compile(rb"(^|[\t,\"])\s*(question|query)\s*([\t,\"]|$)", re.IGNORECASE)
_TAB, _BLANK = 9, 32
DATASETS = ("ir_datasets:", "hf:")


def read_table(
    source: Source,
    layout: Layout,
    form: str | None = None,
    *,
    split: str | None = None,
    ranks: bool = False,
    on_error: OnError | None = None,
) -> PairTable:
    """Read a file (``-``: standard input), or the judgments of a collection or dataset.

    With `on_error`, invalid rows are reported and skipped.
    """
    source, form = path_and_format(source, layout, form)
    # pathlib is avoided here and below: importing it takes longer than reading a small file.
    if isinstance(source, str) and source.startswith(DATASETS) and not os.path.exists(source):  # noqa: PTH110
        from rankgauge.formats.datasets import read_dataset

        return read_dataset(source, layout, split)
    if os.path.isdir(source):  # noqa: PTH112
        return _read_folder(source, layout, form, split=split, on_error=on_error)
    with opened_bytes(source) as stream:
        if is_zip(start_of(stream)):
            from rankgauge.formats.folders import pairs_in_archive

            chosen, note = pairs_in_archive(archive_of(stream, source), layout, split)
            if isinstance(chosen, Mapping):
                return from_mapping(chosen, JUDGMENTS, source_name(source)).with_notes(note)
            with chosen.open() as member:
                table = read_stream(member, chosen.name, layout, form, ranks=ranks, on_error=on_error)
            return table.with_notes(*([note] if note else []), source=chosen.name)
        if split is not None:
            raise InputError(
                f"got split={split!r}, but this is a single file",
                where=source_name(source),
                fix="omit split, or name the folder that contains qrels/",
            )
        return read_stream(stream, source_name(source), layout, form, ranks=ranks, on_error=on_error)


def parquet_parts(folder: Source) -> list[str]:
    """Return the files of a folder that contains only Parquet, as written by Spark and others."""
    if folder == "-" or not os.path.isdir(folder):  # noqa: PTH112
        return []
    path = os.fsdecode(folder)
    # Other files are success markers, checksums, and the like.
    names = sorted(name for name in os.listdir(path) if not name.startswith(("_", ".")))  # noqa: PTH208
    if not all(name.endswith(".parquet") for name in names):
        return []
    return [os.path.join(path, name) for name in names]  # noqa: PTH118


def _read_folder(
    folder: Source, layout: Layout, form: str | None, *, split: str | None, on_error: OnError | None
) -> PairTable:
    """Read a folder of Parquet files, or the judgments of a collection."""
    parts = parquet_parts(folder)
    if parts:
        return _read_parts(parts, source_name(folder), layout, on_error)
    if layout is RUN:
        raise InputError(
            "this is a folder",
            where=source_name(folder),
            fix="name a file in it, or a folder with nothing but .parquet files",
        )
    from rankgauge.formats.folders import judgments_in_folder

    chosen, note = judgments_in_folder(folder, split)
    if isinstance(chosen, Mapping):
        return from_mapping(chosen, JUDGMENTS, source_name(folder)).with_notes(note)
    return read_judgments(chosen, form, on_error=on_error).with_notes(note)


def _read_parts(parts: list[str], name: str, layout: Layout, on_error: OnError | None) -> PairTable:
    """Read several files into one table; a query may be in more than one of them."""
    from rankgauge.formats.parquet import no_rows, read_columnar

    tables = []
    for path in parts:
        with opened_bytes(path) as stream:
            table = read_columnar(stream, path, layout, on_error, part=True)
        # Spark writes a file without rows for each empty partition.
        tables += [table] if len(table) else []
    if not tables:
        raise no_rows(name, layout)
    whole = PairTable.of_rows(
        Ids.joined([table.queries.take(table.query_numbers()) for table in tables]),
        Ids.joined([table.docs for table in tables]),
        np.concatenate([table.values for table in tables]),
    )
    return whole.with_notes(*tables[0].notes, source=name)


def read_judgments(source: TextSource, form: str | None = None, *, on_error: OnError | None = None) -> PairTable:
    """Read judgments from a file or from a member of an archive."""
    with source.open() as stream:
        table = read_stream(stream, source.name, JUDGMENTS, form, on_error=on_error)
    return table.with_notes(source=source.name)


def path_and_format(source: Source, layout: Layout, form: str | None) -> tuple[Source, str | None]:
    """Return the path of a source, and its format if specified."""
    if isinstance(source, InFormat):
        form = form or source.format
        source = source.path
    known = RUN_FORMATS if layout is RUN else QRELS_FORMATS
    if form is not None and form not in known:
        raise UnknownName(f"unknown format {form!r}", where="format", fix=f"choose one of: {', '.join(known)}")
    return source, form


def read_stream(
    stream: BinaryIO,
    name: str,
    layout: Layout,
    form: str | None = None,
    *,
    ranks: bool = False,
    on_error: OnError | None = None,
) -> PairTable:
    """Read an open file, such as a member of an archive, like :func:`read_table`."""
    if is_columnar(start_of(stream), name):
        from rankgauge.formats.parquet import read_columnar

        return read_columnar(stream, name, layout, on_error)
    text = begin_text(stream, name, layout, form)
    head, lines = text.head, text.lines
    rows = Rows(name, layout, with_ranks=ranks, on_error=on_error)
    if on_error is not None:
        lines = _up_to_fault(lines, rows)
    if text.form not in FIELDS:
        table = _read_cells(stream, text, rows) if on_error is None else None
        if table is not None:
            return table
        return _read_named(itertools.chain(head, lines), rows, text.form, text.first)
    separator = b"\t" if text.form == CELLS else None
    if on_error is None and not text.cut:
        table = _read_quickly(head, stream, rows, separator)
    else:
        table = read_trec(itertools.chain(head, lines), rows, separator)
    if layout is RUN and text.width == 3:
        return read_third_column(table, name, None if form == "trec" else form)
    return table


class TextStart(NamedTuple):
    """The beginning of a text of judgments or a run."""

    head: list[tuple[int, bytes]]  # lines through the first one with content
    lines: Iterator[tuple[int, bytes]]  # remaining lines
    form: str  # name of the format

    @property
    def line(self) -> bytes:
        """The first line with content."""
        return self.head[-1][1] if self.head else b""

    @property
    def first(self) -> bytes:
        """The first line with content, without surrounding white space."""
        return self.line.strip()

    @property
    def width(self) -> int:
        """Number of fields in the first line."""
        return width_of(self.first, self.form)

    @property
    def cut(self) -> bool:
        """Whether a line ends with a carriage return: `head` may then hold only part of it."""
        return any(line.endswith(b"\r") for _, line in self.head)


def begin_text(stream: BinaryIO, name: str, layout: Layout, given: str | None) -> TextStart:
    """Read the beginning of a text and detect its format."""
    refuse(start_of(stream), name)
    lines = numbered_lines(stream, name)
    head = list(head_of(lines))
    number, line = head[-1] if head else (0, b"")
    first = line.strip()
    if b"\0" in first:
        raise FormatError(
            "the line contains a NUL byte: this is UTF-16 or not text",
            path=name,
            line=number,
            fix="save it as UTF-8 text",
        )
    form = given or format_of(name) or guess_format(first, layout)
    if form == "tsv" and not (has_header(first, layout) or asks(first, layout)):
        form = CELLS
    if form in FIELDS and given is None:
        refuse_lookalike(line, name, number, layout)
    elif form in THIRD_COLUMNS and len(first.split()) != 3:
        raise FormatError(
            f"got {many(len(first.split()), 'field')}, expected 3: {THIRD_COLUMNS[form]}",
            path=name,
            fix="name another format, or omit it: it is usually detected",
        )
    return TextStart(head, lines, form)


def asks(first: bytes, layout: Layout) -> bool:
    """Return whether a first line without judgment columns may name question columns."""
    return (
        layout is not RUN
        and _QUESTION.search(first) is not None
        and not is_line(first.split(), layout)
        and guess_format(first, layout) not in _NAMED
    )


def _read_named(lines: Iterable[tuple[int, bytes]], rows: Rows, form: str, first: bytes) -> PairTable:
    """Read rows with named cells; for judgments, possibly questions with relevant documents."""
    if form in _NAMED and asks(first, rows.layout):
        from rankgauge.formats.questions import may_be_questions, read_questions
        from rankgauge.formats.texts import TextSource

        lines = list(lines)
        data = b"".join(line for _, line in lines)
        source = TextSource(rows.name, lambda: BytesIO(data), len(data), rows.name)
        if may_be_questions(source):
            _, grades = read_questions(source, {})
            return from_mapping(grades or {}, JUDGMENTS, rows.name)
    declared = format_named(form)
    table: PairTable
    if declared.pieces:
        (table,) = load(declared.pieces)(iter(lines), rows)
    else:
        table = load(declared.reader)(iter(lines), rows)
    return table


def _read_cells(stream: BinaryIO, text: TextStart, rows: Rows) -> PairTable | None:
    """Read plain cells as arrays; None for other cells."""
    if not (is_plain_file(stream) and stream.seekable()):
        return None
    place = stream.tell()
    size = stream.seek(0, os.SEEK_END)
    stream.seek(place)
    name, layout = rows.name, rows.layout
    cells = plain_cells(stream, text, name, layout, ranks=rows.with_ranks)
    found = None
    if cells is not None:
        lines = cast("BinaryIO", cells)
        found = packed_table(lines, cells.start, name, layout, line=2, size=size, shape=cells.shape)
    if cells is None or found is None:
        stream.seek(place)
        return None
    return found.with_notes(*cells.notes)


def plain_cells(
    stream: BinaryIO, text: TextStart, name: str, layout: Layout, *, ranks: bool = False
) -> PlainCells | None:
    """Begin to read a table of plain cells after its header; None for any other text."""
    if text.form not in DELIMITED or text.cut or len(text.head) != 1 or asks(text.first, layout):
        return None
    from rankgauge.formats.delimited import PlainCells

    return PlainCells.of(stream, text.line, Rows(name, layout, with_ranks=ranks), text.form)


def _up_to_fault(lines: Iterator[tuple[int, bytes]], rows: Rows) -> Iterator[tuple[int, bytes]]:
    """Yield lines; if compressed data is truncated, report it as the last fault."""
    try:
        yield from lines
    except FormatError as error:
        rows.report(error)


def width_of(line: bytes, form: str) -> int:
    """Return the number of fields in a line."""
    return len(line.rstrip(b"\r\n").split(b"\t") if form == CELLS else line.split())


def _read_quickly(head: list[tuple[int, bytes]], stream: BinaryIO, rows: Rows, separator: bytes | None) -> PairTable:
    """Read fields as arrays if all lines have the same number of them, otherwise line by line."""
    again = is_plain_file(stream) and stream.seekable()
    if head and again and separator is None and not rows.with_ranks:
        place, (number, start) = stream.tell(), head[-1]
        size = stream.seek(0, os.SEEK_END)
        stream.seek(place)
        found = packed_table(stream, start, rows.name, rows.layout, line=number, size=size)
        if found is not None:
            return found
        stream.seek(place)
    text = rest_of_stream(stream, b"".join(line for _, line in head))
    found = None
    if head and text.fault is None:
        before, number = sum(len(line) for _, line in head[:-1]), head[-1][0]
        found = quick_table(text, rows.name, rows.layout, skip=before, line=number, ranks=rows.with_ranks)
    if found is None or (separator is not None and not _tabs_only(text, head[-1][1], len(found))):
        # Restart from the beginning: only the plain reader reports the line of an error.
        return read_trec(numbered_lines(text.lines(), rows.name), rows, separator)
    return found


def _tabs_only(text: Text, first: bytes, rows: int) -> bool:
    """Return whether splitting at white space is the same as splitting at tabs."""
    data = text.data[AROUND : AROUND + text.size]
    tabs = (len(first.split()) - 1) * rows
    return not (data == _BLANK).any() and int((data == _TAB).sum()) == tabs


def head_of(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield lines through the first one with content, up to a limit."""
    for number, line in lines:
        yield number, line
        if number == _HEAD or is_content(line):
            return


def read_ids(source: Source) -> list[bytes]:
    """Read one id per line; skip empty lines."""
    name = source_name(source)
    with opened(source) as stream:
        lines = [line.strip(b"\r\n") for _, line in numbered_lines(stream, name)]
    ids = [line for line in lines if line.strip()]
    if not ids:
        raise InputError("there are no ids", where=name, fix="write one id per line")
    return ids

"""Read judgments and runs from files, folders, archives, and datasets, choosing the reader.

The format of a file is detected by its name and its first line, which also shows files of other
kinds.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from rankgauge.core.ids import Ids
from rankgauge.core.pair_table import PairTable
from rankgauge.core.text import many
from rankgauge.errors import FormatError, InputError, UnknownName
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout, columns_of
from rankgauge.formats.fast_trec import FieldLines, Shape, quick_table
from rankgauge.formats.lines import (
    KeptStream,
    Source,
    archive_of,
    is_columnar,
    is_content,
    is_zip,
    numbered_lines,
    opened,
    opened_bytes,
    refuse,
    shorten,
    source_name,
    start_of,
)
from rankgauge.formats.mappings import from_mapping
from rankgauge.formats.registry import FORMATS, QRELS_FORMATS, RUN_FORMATS, InFormat, format_named, format_of, load
from rankgauge.formats.rows import OnError, PairInput, Rows
from rankgauge.formats.trec import THIRD_COLUMNS, is_line, places_of, read_third_column, trec_pieces

if TYPE_CHECKING:
    from rankgauge.formats.questions import Grades
    from rankgauge.formats.texts import TextSource

# Names of measures in the output of trec_eval; -Z prefixes a Z.
_MEASURE = (
    rb"Z?(runid|num_\w+|map\w*|gm_\w+|P_\w+|recall_\w+|iprec_at_recall_[\d.]+|ndcg\w*|Rndcg\w*|"
    rb"bpref\w*|recip_rank|Rprec\w*|success_\w+|set_\w+|infAP|11pt_avg|relative_P\w*|relstring\w*|"
    rb"utility|G|binG|rbp\w*|prefs_\w+)"
)
_PRINTED = rb"(?P<name>" + _MEASURE + rb")(?P<pad> *)\t(?P<query>\S+)\t\S+\s*$"
_DEVIATIONS = rb"(?P<query>\S+) (?P<name>" + _MEASURE + rb") -?\d+\.\d+ -?\d+\.\d+\s*$"

# Formats with fields separated by white space, or (cells) by single tabs.
CELLS = "cells"
FIELDS = ("trec", CELLS, *THIRD_COLUMNS)
DELIMITED = ("csv", "tsv")
# Formats of question tables, and a pattern for their first line.
_NAMED = (*DELIMITED, "jsonl")
_QUESTION = re.compile(rb"(^|[\t,\"])\s*(question|query)\s*([\t,\"]|$)", re.IGNORECASE)
DATASETS = ("ir_datasets:", "hf:")


def guess_format(first: bytes, layout: Layout) -> str:
    """Return the format of judgments or a run that begins with this line."""
    fields = first.split()
    # A line of SMART judgments is one of TREC judgments, too: of document 0.
    if is_line(fields, layout) and fields[2] != b"0":
        return "trec"
    if first.startswith((b"{", b"[")):
        return "jsonl" if _is_row(first, layout) else "json"
    if _has_columns(first.split(b"\t"), layout):
        return "tsv"
    if is_header(first, layout):
        return "csv"
    content = "run" if layout is RUN else "qrels"
    for form in FORMATS:
        if form.begins and content in form.reads and load(form.begins)(first):
            return form.name
    return "trec"


def is_header(line: bytes, layout: Layout) -> bool:
    """Return whether this line is a table header with known columns."""
    return any(_has_columns(line.split(by), layout) for by in (b"\t", b",", b";", b"|"))


def first_object(first: bytes) -> Any:
    """Parse a first line as JSON; return None if it is not a complete value."""
    import json

    try:
        return json.loads(first)
    except (ValueError, RecursionError):
        return None  # an object of several lines, or broken: the reader reports it


def _has_columns(cells: list[bytes], layout: Layout) -> bool:
    names = [cell.decode("utf-8", "replace") for cell in cells]
    return columns_of(names, layout) is not None


def _is_row(first: bytes, layout: Layout) -> bool:
    value = first_object(first)
    if not isinstance(value, dict):
        return False
    columns = columns_of(value, layout)
    if columns is None:
        from rankgauge.formats.json_files import Nested

        nested = Nested.of(value, PairInput(layout, ""))
        columns = None if nested is None else nested.columns
    return columns is not None and not isinstance(value[columns.query], list | dict)


def refuse_lookalike(first: bytes, number: int, origin: PairInput) -> None:
    """Refuse a file whose first line belongs to another kind of file."""
    doubtful = first.startswith((b"<", b".I ")) or b" \t" in first or b"\tall\t" in first or first.count(b"\t") == 1
    doubtful = doubtful or (first.count(b".") > 1 and all(b"." in word for word in first.split()[2:4]))
    what, fix = _taken_for(first, origin.layout) if doubtful else ("", "")
    if what:
        wanted = f"{what}, expected {origin.layout.words}"
        raise FormatError(wanted, path=origin.name, line=number, text=shorten(first), fix=fix)


def _taken_for(first: bytes, layout: Layout) -> tuple[str, str]:
    from rankgauge.formats import classic_formats, sgml

    insist = "pass the judgments and the run that it was made from; if it is the name of a query: trec:FILE"
    printed = re.match(_PRINTED, first)
    if printed is not None and (printed["pad"] or printed["query"] == b"all"):
        return f"this is output of trec_eval ({printed['name'].decode()})", insist
    deviations = re.match(_DEVIATIONS, first)
    if deviations is not None:
        name = deviations["name"].decode()
        return f"these are means and deviations for trec_eval -Z ({name})", insist
    what = ""
    key, tab, text = first.rstrip().partition(b"\t")
    fields = first.split()
    size, place = (6, 4) if layout is RUN else (4, 3)
    is_pair = len(fields) == size and fields[1].upper() in {b"0", b"Q0"} and re.fullmatch(rb"[-+.\deE]+", fields[place])
    if first.startswith(b"<") and sgml.begins(first):
        what = "these are topics or documents with tags"
    elif classic_formats.begins_text(first):
        what = "these are queries or documents in SMART format"
    elif tab and b"\t" not in text and b" " in text.strip() and b" " not in key and not is_pair:
        what = "these are pairs of id and text"
    texts = f"use {layout.words}, with lines such as: {layout.example}; texts are read by "
    return what, texts + "--collection"


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
    origin = PairInput(layout, source_name(source), on_error, ranks)
    # pathlib is avoided here and below: importing it takes longer than reading a small file.
    if isinstance(source, str) and source.startswith(DATASETS) and not os.path.exists(source):  # noqa: PTH110
        from rankgauge.formats.datasets import read_dataset

        return read_dataset(source, layout, split)
    if os.path.isdir(source):  # noqa: PTH112
        parts = parquet_parts(source)
        if parts:
            return _read_parts(parts, origin)
        if layout is RUN:
            raise InputError(
                "this is a folder",
                where=origin.name,
                fix="name a file in it, or a folder with nothing but .parquet files",
            )
        from rankgauge.formats.folders import judgments_in_folder

        chosen, notes = judgments_in_folder(source, split)
        return read_source(chosen, origin, form).with_notes(*notes)
    with opened_bytes(source) as stream:
        if is_zip(start_of(stream)):
            from rankgauge.formats.folders import pairs_in_archive

            chosen, notes = pairs_in_archive(archive_of(stream, source), layout, split)
            return read_source(chosen, origin, form).with_notes(*notes)
        if split is not None:
            raise InputError(
                f"got split={split!r}, but this is a single file",
                where=origin.name,
                fix="omit split, or name the folder that contains qrels/",
            )
        return read_stream(stream, origin, form)


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


def _read_parts(parts: list[str], origin: PairInput) -> PairTable:
    """Read several files into one table; a query may be in more than one of them."""
    from rankgauge.formats.parquet import no_rows, read_columnar

    tables = []
    for path in parts:
        with opened_bytes(path) as stream:
            table = read_columnar(stream, origin._replace(name=path), part=True)
        # Spark writes a file without rows for each empty partition.
        tables += [table] if len(table) else []
    if not tables:
        raise no_rows(origin)
    whole = PairTable.of_rows(
        Ids.joined([table.queries.take(table.query_numbers()) for table in tables]),
        Ids.joined([table.docs for table in tables]),
        np.concatenate([table.values for table in tables]),
    )
    return whole.with_notes(*tables[0].notes, source=origin.name)


def read_source(
    source: TextSource | Grades,
    origin: PairInput = PairInput(JUDGMENTS, ""),  # noqa: B008 - cannot be changed
    form: str | None = None,
) -> PairTable:
    """Read a file, a member of an archive, or the grades in a file of questions."""
    if isinstance(source, Mapping):
        return from_mapping(source, PairInput(JUDGMENTS, origin.name))
    with source.open() as stream:
        return read_stream(stream, origin._replace(name=source.name), form).with_notes(source=source.name)


def path_and_format(source: Source, layout: Layout, form: str | None) -> tuple[Source, str | None]:
    """Return the path of a source, and its format if specified."""
    if isinstance(source, InFormat):
        form = form or source.format
        source = source.path
    known = RUN_FORMATS if layout is RUN else QRELS_FORMATS
    if form is not None and form not in known:
        raise UnknownName(f"unknown format {form!r}", where="format", fix=f"choose one of: {', '.join(known)}")
    return source, form


def read_stream(stream: BinaryIO, origin: PairInput, form: str | None = None) -> PairTable:
    """Read an open file, such as a member of an archive, like :func:`read_table`."""
    if is_columnar(start_of(stream), origin.name):
        from rankgauge.formats.parquet import read_columnar

        return read_columnar(stream, origin)
    text = begin_text(stream if stream.seekable() else KeptStream(stream), origin, form)
    table = _read_quickly(text) if origin.on_error is None else None
    if table is not None:
        return text.whole(table)
    rows = Rows(origin)
    rest = text.lines if origin.on_error is None else _up_to_fault(text.lines, rows)
    lines: Iterator[tuple[int, bytes]] = itertools.chain(text.head, rest)
    if text.form in FIELDS:
        (table,) = trec_pieces(lines, rows, text.separator)
        return text.whole(table)
    if text.form in _NAMED and text.asks:
        from rankgauge.formats.questions import may_be_questions, read_questions
        from rankgauge.formats.texts import TextSource

        every = list(lines)
        data = b"".join(line for _, line in every)
        source = TextSource(origin.name, lambda: BytesIO(data), len(data), origin.name)
        if may_be_questions(source):
            _, grades = read_questions(source, {})
            return from_mapping(grades or {}, PairInput(JUDGMENTS, origin.name))
        lines = iter(every)
    declared = format_named(text.form)
    if declared.pieces:
        (table,) = load(declared.pieces)(lines, rows)
    else:
        table = load(declared.reader)(lines, rows)
    return table


class TextStart(NamedTuple):
    """The beginning of a text of judgments or a run."""

    stream: BinaryIO  # the text
    origin: PairInput
    requested: str | None  # format, if specified
    form: str  # name of the format
    head: list[tuple[int, bytes]]  # lines through the first one with content
    lines: Iterator[tuple[int, bytes]]  # remaining lines
    asks: bool  # whether the columns may be a question and its relevant documents

    @property
    def separator(self) -> bytes | None:
        """Separator of fields; None for white space."""
        return b"\t" if self.form == CELLS else None

    @property
    def has_third_column(self) -> bool:
        """Whether a run has three fields, the last of which is a rank or a score."""
        line = self.head[-1][1].rstrip(b"\r\n") if self.head else b""
        return self.origin.layout is RUN and self.form in FIELDS and len(line.split(self.separator)) == 3

    def whole(self, table: PairTable) -> PairTable:
        """Interpret the third column, if there is one, of a table of whole queries."""
        if not self.has_third_column:
            return table
        return read_third_column(table, self.origin.name, None if self.requested == "trec" else self.requested)

    def field_lines(self) -> FieldLines | None:
        """Return lines of fields or of plain cells; None for any other text."""
        # If a line ends with a carriage return, `head` may hold only part of it.
        if not self.head or any(line.endswith(b"\r") for _, line in self.head):
            return None
        number, line = self.head[-1]
        shape = Shape.of(line, self.origin) if self.form in FIELDS else None
        if shape is not None and self.separator is None:
            return FieldLines(self.stream, line, number, shape)
        if shape is None and (self.form not in DELIMITED or number > 1 or self.asks):
            return None
        from rankgauge.formats.delimited import PlainCells, plain_table

        if shape is not None:
            return PlainCells(self.stream, "\t", shape).lines(line, number)
        return plain_table(self.stream, line, Rows(self.origin), self.form)


def begin_text(stream: BinaryIO, origin: PairInput, requested: str | None) -> TextStart:
    """Read the beginning of a text and detect its format."""
    layout, name, *_ = origin
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
    form = requested or format_of(name) or guess_format(first, layout)
    # Without columns of judgments, a first line may name those of a table of questions.
    asks = (
        layout is not RUN
        and _QUESTION.search(first) is not None
        and not is_line(first.split(), layout)
        and guess_format(first, layout) not in _NAMED
    )
    if form == "tsv" and not (asks or is_header(first, layout)):
        # A line of the right width without a number is a header with unknown names.
        cells = first.split(b"\t")
        if places_of(cells, layout) is None or is_line(cells, layout):
            form = CELLS
    if form in FIELDS and requested is None:
        refuse_lookalike(line, number, origin)
    elif form in THIRD_COLUMNS and len(first.split()) != 3:
        raise FormatError(
            f"got {many(len(first.split()), 'field')}, expected 3: {THIRD_COLUMNS[form]}",
            path=name,
            fix="name another format, or omit it: it is usually detected",
        )
    return TextStart(stream, origin, requested, form, head, lines, asks)


def _read_quickly(text: TextStart) -> PairTable | None:
    """Read fields or plain cells as arrays; return None, at the same place, for other lines."""
    stream = text.stream
    place = stream.tell()
    size = stream.seek(0, os.SEEK_END)
    stream.seek(place)
    lines = text.field_lines()
    table = None if lines is None else quick_table(lines, text.origin, size=size)
    if table is None:
        stream.seek(place)
    return table


def _up_to_fault(lines: Iterator[tuple[int, bytes]], rows: Rows) -> Iterator[tuple[int, bytes]]:
    """Yield lines; if compressed data is truncated, report it as the last fault."""
    try:
        yield from lines
    except FormatError as error:
        rows.report(error)


def head_of(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield lines through the first one with content, at most 4,096, which stay in memory."""
    for number, line in lines:
        yield number, line
        if number == 4096 or is_content(line):
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

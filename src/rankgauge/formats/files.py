"""Which reader a file gets: by its name, else by its first line."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO, TypeAlias

from rankgauge.errors import FormatError, InputError, UnknownName
from rankgauge.formats.layout import Layout, columns_of
from rankgauge.formats.lines import Source, gathered, numbered_lines, opened, source_name
from rankgauge.formats.naming import FORMATS, format_of
from rankgauge.formats.quick import quick_blocks, quick_table
from rankgauge.formats.trec import is_line, places_of, read_trec
from rankgauge.table import PairTable

__all__ = ["read_blocks", "read_ids", "read_stream", "read_table"]


def read_table(
    source: Source, layout: Layout, form: str | None = None, *, ranks: bool = False
) -> PairTable:
    """Read a file (``-`` is standard input).

    Args:
        source: The path.
        layout: Judgments or run.
        form: One of `FORMATS`; found by name and first line if left out.
        ranks: Whether ranks that stand beside the scores are wanted too, where that is quick.

    Raises:
        UnknownName: If there is no such format.
        InputError: If the file cannot be read.
    """
    if form is not None and form not in FORMATS:
        raise UnknownName(
            f"no format is called {form!r}",
            where="format",
            fix=f"choose one of: {', '.join(FORMATS)}",
        )
    with opened(source) as stream:
        return read_stream(stream, source_name(source), layout, form, ranks=ranks)


def read_stream(
    stream: BinaryIO, name: str, layout: Layout, form: str | None = None, *, ranks: bool = False
) -> PairTable:
    """Read what is open already, such as a member of an archive; `name` is for messages."""
    lines = numbered_lines(stream, name)
    head = list(_head(lines))
    first = head[-1][1].strip() if head else b""
    if b"\0" in first:
        raise FormatError(
            "the line holds a NUL byte: this is UTF-16 or no text at all",
            path=name,
            line=head[-1][0],
            fix="save it as UTF-8 text",
        )
    form = form or format_of(name) or _guess(first, layout)
    if form == "tsv" and _headless(first, layout):
        form = "cells"
    if form == "trec":
        return _read_trec((head, lines, stream), name, layout, ranks=ranks)
    return _read(itertools.chain(head, lines), name, layout, form)


def read_blocks(
    source: Source, layout: Layout, *, ranks: bool = False
) -> Iterator[PairTable | None]:
    """Read a file in tables of whole queries; None, and no more, if that is not to be had.

    Then :func:`read_table` reads it, or says what is wrong with it. A table is good until the next
    is asked for.

    Args:
        source: The path.
        layout: Judgments or run.
        ranks: Whether the ranks are wanted too, and the number of each line.
    """
    name = source_name(source)
    # Without pathlib, here and below: loading it takes longer than to read a small file.
    if source == "-" or not os.path.isfile(source):  # noqa: PTH113
        # What is no file of its own, such as a pipe, can be read once only.
        yield None
        return
    with opened(source) as stream:
        lines = numbered_lines(stream, name)
        head = list(_head(lines))
        start = head[-1][1] if head else b""
        form = format_of(name) or _guess(start.strip(), layout)
        if not start or form != "trec" or b"\0" in start or _cut_up(head):
            yield None
            return
        line = head[-1][0] if ranks else None
        yield from quick_blocks(stream, start, name, layout, line=line)


def _cut_up(head: list[tuple[int, bytes]]) -> bool:
    """Whether a line ends with a lone carriage return: its rest may be in the iterator of lines."""
    return any(line.endswith(b"\r") for _, line in head)


_Begun: TypeAlias = tuple[list[tuple[int, bytes]], Iterator[tuple[int, bytes]], BinaryIO]


def _read_trec(begun: _Begun, name: str, layout: Layout, *, ranks: bool) -> PairTable:
    """Read it as whole arrays if it is as simple as that, else line by line."""
    head, lines, stream = begun
    start = b"".join(line for _, line in head)
    if _cut_up(head):
        return read_trec(itertools.chain(head, lines), name, layout)
    text = gathered(stream, start)
    before = sum(len(line) for _, line in head[:-1])
    found = None
    if head and text.fault is None:
        found = quick_table(text, name, layout, skip=before, line=head[-1][0], ranks=ranks)
    if found is None:
        # From the start: only what is read line by line says what is wrong with which.
        return read_trec(numbered_lines(text.lines(), name), name, layout)
    return found


def _head(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The lines up to the first that says something."""
    for number, line in lines:
        yield number, line
        if line.strip() and not line.lstrip().startswith(b"#"):
            return


def _read(lines: Iterable[tuple[int, bytes]], name: str, layout: Layout, form: str) -> PairTable:
    if form == "cells":
        return read_trec(lines, name, layout, b"\t")
    from rankgauge.formats.tables import read_delimited, read_json, read_json_lines

    match form:
        case "csv" | "tsv":
            return read_delimited(lines, name, layout, form)
        case "jsonl":
            return read_json_lines(lines, name, layout)
        case _:
            return read_json(lines, name, layout)


def _headless(first: bytes, layout: Layout) -> bool:
    """Whether this line between tabs is to be read by the place of its cells: it is no header."""
    cells = first.split(b"\t")
    if _columns(cells, layout):
        return False
    # A line of the right width that has no number is a header in words we do not know.
    return places_of(len(cells), layout) is None or is_line(cells, layout)


def _columns(cells: list[bytes], layout: Layout) -> bool:
    names = [cell.decode("utf-8", "replace").strip('"') for cell in cells]
    return columns_of(names, layout) is not None


def _guess(first: bytes, layout: Layout) -> str:
    """The format that begins with this line."""
    if is_line(first.split(), layout):
        return "trec"
    if first.startswith((b"{", b"[")):
        return "jsonl" if _is_row(first, layout) else "json"
    if _columns(first.split(b"\t"), layout):
        return "tsv"
    return "csv" if _columns(first.split(b","), layout) else "trec"


def _is_row(first: bytes, layout: Layout) -> bool:
    import json

    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return False  # an object of many lines, or broken: the reader says so
    columns = columns_of(value, layout) if isinstance(value, dict) else None
    return columns is not None and not isinstance(value[columns.query], list | dict)


def read_ids(source: Source) -> list[bytes]:
    """Ids, one a line; empty lines are passed over.

    Raises:
        InputError: If the file cannot be read, or holds no id.
    """
    name = source_name(source)
    with opened(source) as stream:
        lines = [line.strip(b"\r\n") for _, line in numbered_lines(stream, name)]
    ids = [line for line in lines if line.strip()]
    if not ids:
        raise InputError("there is no id to read", where=name, fix="write one id a line")
    return ids

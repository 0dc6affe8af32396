"""Which reader and which writer a file gets: by its name, else by its first line."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO, TypeAlias

import numpy as np

from rankgauge.errors import FormatError, InputError, UnknownName
from rankgauge.formats.layout import JUDGMENTS, Layout, columns_of
from rankgauge.formats.lines import Source, gathered, numbered_lines, opened, source_name
from rankgauge.formats.quick import quick_blocks, quick_table
from rankgauge.formats.trec import is_line, places_of, read_trec, trec_lines
from rankgauge.ids import show_id
from rankgauge.table import PairTable

__all__ = [
    "FORMATS",
    "format_of",
    "read_blocks",
    "read_ids",
    "read_stream",
    "read_table",
    "write_table",
]

FORMATS = ("trec", "csv", "tsv", "json", "jsonl")
_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}

# Smaller by a few percent and four times as slow beyond it.
_LEVEL = 6


def read_table(source: Source, layout: Layout, form: str | None = None) -> PairTable:
    """Read a file (``-`` is standard input).

    Args:
        source: The path.
        layout: Judgments or run.
        form: One of `FORMATS`; found by name and first line if left out.

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
        return read_stream(stream, source_name(source), layout, form)


def read_stream(stream: BinaryIO, name: str, layout: Layout, form: str | None = None) -> PairTable:
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
        return _read_trec((head, lines, stream), name, layout)
    return _read(itertools.chain(head, lines), name, layout, form)


def read_blocks(source: Source, layout: Layout) -> Iterator[PairTable | None]:
    """Read a file in tables of whole queries; None, and no more, if that is not to be had.

    Then :func:`read_table` reads it, or says what is wrong with it. A table is good until the next
    is asked for.

    Args:
        source: The path.
        layout: Judgments or run.
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
        yield from quick_blocks(stream, start, name, layout)


def _cut_up(head: list[tuple[int, bytes]]) -> bool:
    """Whether a line ends with a lone carriage return: its rest may be in the iterator of lines."""
    return any(line.endswith(b"\r") for _, line in head)


_Begun: TypeAlias = tuple[list[tuple[int, bytes]], Iterator[tuple[int, bytes]], BinaryIO]


def _read_trec(begun: _Begun, name: str, layout: Layout) -> PairTable:
    """Read it as whole arrays if it is as simple as that, else line by line."""
    head, lines, stream = begun
    start = b"".join(line for _, line in head)
    if _cut_up(head):
        return read_trec(itertools.chain(head, lines), name, layout)
    text = gathered(stream, start)
    before = sum(len(line) for _, line in head[:-1])
    found = None
    if head and text.fault is None:
        found = quick_table(text, name, layout, skip=before, line=head[-1][0])
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


def format_of(name: str) -> str | None:
    """The format that a file name stands for, without ``.gz``; None if it says nothing."""
    if not any(suffix in name.lower() for suffix in _SUFFIXES):
        return None
    from pathlib import PurePath

    path = PurePath(name)
    if path.suffix.lower() == ".gz":
        path = path.with_suffix("")
    return _SUFFIXES.get(path.suffix.lower())


def write_table(table: PairTable, target: Source, layout: Layout, tag: str = "") -> None:
    """Write a file: the whole of it or, if something fails, nothing.

    The name decides: ``.csv``, ``.tsv``, ``.json``, ``.jsonl``, else TREC; ``.gz`` behind any.
    ``-`` is standard output, in TREC format.

    Raises:
        InputError: If the file cannot be written, or the format cannot carry an id.
    """
    import secrets
    from pathlib import Path

    empty = np.flatnonzero(np.diff(table.offsets) == 0)
    if layout is JUDGMENTS and len(empty) and format_of(source_name(target)) != "json":
        raise InputError(
            f"query '{show_id(table.queries[int(empty[0])])}' has no judgment, so it has no line",
            where=source_name(target),
            fix="drop the query, or write JSON: give a path that ends in .json",
        )
    if target == "-":
        # All of it is made before the first byte goes out: ids may not fit.
        sys.stdout.buffer.writelines(list(_chunks(table, layout, None, tag)))
        return
    path = Path(target)
    if path.is_file():
        path = path.resolve()  # through a link, to what it points at
    if path.is_dir():
        raise InputError("this is a folder", where=source_name(target), fix="name a file in it")
    chunks = _chunks(table, layout, format_of(source_name(target)), tag)
    packed = source_name(target).lower().endswith(".gz")
    # Beside the target, so that the last step is one rename. Pipes and devices are not replaced.
    whole = not path.exists() or path.is_file()
    writable = path.with_name(f".{secrets.token_hex(8)}.part") if whole else path
    try:
        with writable.open("wb") as raw:
            _pour(chunks, raw, packed=packed)
            if whole:
                raw.flush()
                os.fsync(raw.fileno())
        if whole:
            writable.replace(path)
    except InputError as error:
        raise InputError(error.what, where=source_name(target), fix=error.fix) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot be written: {reason}",
            where=source_name(target),
            fix="check that the folder is there and may be written to",
        ) from None
    finally:
        if whole:
            with contextlib.suppress(OSError, ValueError):
                writable.unlink(missing_ok=True)


def _pour(chunks: Iterator[bytes], raw: BinaryIO, *, packed: bool) -> None:
    if not packed:
        raw.writelines(chunks)
        return
    from gzip import GzipFile

    # No time and no name inside, so that the same run gives the same bytes.
    with GzipFile("", "wb", _LEVEL, raw, mtime=0) as stream:
        stream.writelines(chunks)


def _chunks(table: PairTable, layout: Layout, form: str | None, tag: str) -> Iterator[bytes]:
    if form is None:
        return trec_lines(table, layout, tag)
    from rankgauge.formats.tables import delimited_text, json_lines_text, json_text

    match form:
        case "csv" | "tsv":
            texts = delimited_text(table, layout, form)
        case "jsonl":
            texts = json_lines_text(table, layout)
        case _:
            texts = json_text(table)
    return (text.encode() for text in texts)


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

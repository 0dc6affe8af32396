"""A copy of a file of judgments or of a run, with some lines left out and some fields changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath

import numpy as np

from rankgauge.errors import InputError
from rankgauge.formats.layout import Layout, number_text
from rankgauge.formats.lines import numbered_lines, opened
from rankgauge.formats.naming import format_of
from rankgauge.formats.trec import places_of
from rankgauge.formats.writing import write_bytes, write_table
from rankgauge.table import PairTable

__all__ = ["copy_lines", "copy_name"]

# What text may be packed in, but for gzip, which is written, too.
_PACKED = (".xz", ".lzma", ".zst", ".lz4", ".bz2")
# What is no text.
_OTHERS = (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".zip")
_FIELD = re.compile(rb"\S+")

_Rows = dict[int, tuple[bytes, bytes, float]]


def copy_name(source: str, layout: Layout) -> str:
    """What the copy of a file is called; of data in memory too."""
    name = PurePath(source).name or layout.name
    for ending in _PACKED:
        name = name.removesuffix(ending)
    for ending in _OTHERS:
        if name.endswith(ending):
            return name.removesuffix(ending) + ".txt"
    return name if PurePath(name).suffix else f"{name}.txt"


def copy_lines(
    source: str, target: Path, pair: tuple[PairTable, PairTable], layout: Layout
) -> None:
    """Write a copy of a file.

    Args:
        source: The file.
        target: The copy; its folder is made.
        pair: The rows as they were, and as they are to be, in the same order.
        layout: Judgments or run.

    Raises:
        InputError: If it cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder cannot be made: {error.strerror or error}",
            where=os.fspath(target.parent), fix="name another folder",
        ) from None  # fmt: skip
    before, after = (_by_line(table) for table in pair)
    if before is None or after is None or not _is_text(source):
        write_table(pair[1], target, layout, PurePath(target).stem)
        return
    changed = {number: row for number, row in after.items() if row != before[number]}
    if changed and format_of(source) is not None:
        write_table(pair[1], target, layout, PurePath(target).stem)
        return
    write_bytes(_edited(source, (before, after, changed), layout), target)


def _is_text(source: str) -> bool:
    return Path(source).is_file() and not source.lower().endswith(_OTHERS)


def _by_line(table: PairTable) -> _Rows | None:
    """The rows by the number of their line; None if they have none."""
    if table.lines is None:
        return None
    queries = table.queries.tolist()
    rows = zip(
        table.query_numbers().tolist(), table.docs.tolist(), table.values.tolist(), strict=True
    )
    found = {
        number: (queries[query], doc, value)
        for number, (query, doc, value) in zip(table.lines.tolist(), rows, strict=True)
    }
    return found if len(found) == len(table) else None


def _edited(source: str, rows: tuple[_Rows, _Rows, _Rows], layout: Layout) -> Iterator[bytes]:
    """The lines of a file without those that are gone, and with new fields where rows differ."""
    before, after, changed = rows
    first = min(before, default=0)
    with opened(source) as stream:
        for number, line in numbered_lines(stream, source):
            if number in changed:
                yield _with_fields(line, before[number], changed[number], layout)
            elif number in after or _is_beside(line, number, first):
                yield line


def _is_beside(line: bytes, number: int, first: int) -> bool:
    """Whether it is no row, nor meant to be one: a header, a comment, an empty line."""
    return number < first or not line.strip() or line.lstrip().startswith(b"#")


def _with_fields(
    line: bytes, old: tuple[bytes, bytes, float], new: tuple[bytes, bytes, float], layout: Layout
) -> bytes:
    found = list(_FIELD.finditer(line))
    places = places_of(len(found), layout)
    if places is None:
        raise InputError("the line has changed while it was read", where=old[0].decode("utf-8", "replace"))
    for place, was, now in sorted(zip(places, old, new, strict=True), reverse=True):
        if was != now:
            text = now if isinstance(now, bytes) else number_text(now, layout).encode()
            line = line[: found[place].start()] + text + line[found[place].end() :]
    return line

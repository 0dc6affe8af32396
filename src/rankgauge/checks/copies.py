"""Copies of judgment and run files with some lines removed and some fields changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeAlias

import numpy as np

from rankgauge.core.ids import Ids, IntArray
from rankgauge.core.pair_table import FloatArray, PairTable
from rankgauge.data.judged_run import BoolArray
from rankgauge.errors import InputError
from rankgauge.formats.columns import RUN, Layout, number_text, read_number
from rankgauge.formats.detection import is_header
from rankgauge.formats.lines import numbered_lines, opened, start_of
from rankgauge.formats.registry import format_of, target_format
from rankgauge.formats.trec import places_of
from rankgauge.formats.writers import write_table, written

_FIELD = re.compile(rb"\S+")
_BOM = b"\xef\xbb\xbf"
# Number of fields of a run without scores: query, document, rank.
_RANKED = 3
_Fields: TypeAlias = tuple[bytes, bytes, bytes | None]
# Rows converted to Python objects at a time, to limit memory.
_AT_ONCE = 1 << 16
_END: tuple[int, bool, _Fields] = (0, False, (b"", b"", None))


def copy_name(source: str, layout: Layout) -> str:
    """Return the file name for the copy of an input."""
    name = PurePath(source).name or layout.name
    if name.endswith(".zip"):
        name = name.removesuffix(".zip")
    return name if PurePath(name).suffix else f"{name}.txt"


def copy_lines(source: str, target: Path, pair: tuple[PairTable, PairTable], layout: Layout) -> bool:
    """Write a copy of an input, with its original lines if possible; return whether it was."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder cannot be created: {error.strerror or error}",
            where=os.fspath(target.parent),
            fix="name another folder",
        ) from None
    edit = _Edit.of(source, pair, layout)
    ranked = edit is not None and _counts_ranks(source, pair[0], layout)
    if edit is None or (ranked and len(pair[0]) != len(pair[1])):
        # Ranks with gaps would be read as scores: write new ranks.
        form = "msmarco" if ranked else None
        write_table(pair[1], target, layout, PurePath(target).stem, form=form)
        return False
    with written(target) as stream:
        stream.writelines(edit.lines(source))
    return True


def _counts_ranks(source: str, before: PairTable, layout: Layout) -> bool:
    """Return whether the lines have ranks instead of scores and no header that says so."""
    if layout is not RUN or before.lines is None or not len(before):
        return False
    row = int(np.argmin(before.lines))
    with opened(source) as stream:
        lines = numbered_lines(stream, source)
        line = next(line for number, line in lines if number == before.lines[row])
    parts = line.split(b"\t") if line.count(b"\t") == _RANKED - 1 else line.split()
    return len(parts) == _RANKED and read_number(parts[-1]) != before.values[row]


def _rows_span_lines(source: str, layout: Layout) -> bool:
    """Return whether any row spans several lines: a quotation mark is open at the end of a line.

    A single quotation mark inside a cell also counts; then all rows are rewritten.
    """
    with opened(source) as stream:
        lines = (line for _, line in numbered_lines(stream, source))
        first = next((line for line in lines if line.strip()), b"")
        if not is_header(first, layout):
            return False
        return first.count(b'"') % 2 == 1 or any(line.count(b'"') % 2 for line in lines)


@dataclass(frozen=True, eq=False)
class _Edit:
    """The lines of a file to keep, with changed fields."""

    layout: Layout
    numbers: IntArray
    changed: BoolArray
    other_value: BoolArray
    queries: Ids
    docs: Ids
    values: FloatArray

    @classmethod
    def of(cls, source: str, pair: tuple[PairTable, PairTable], layout: Layout) -> _Edit | None:
        """Return None if rows do not match lines, or if changed lines cannot be edited in place."""
        before, after = pair
        if before.lines is None or after.lines is None or not Path(source).is_file():
            return None
        first, then = np.argsort(before.lines), np.argsort(after.lines)
        numbers = after.lines[then]
        ordered = before.lines[first]
        if (ordered[1:] == ordered[:-1]).any() or target_format(source) in {"parquet", "arrow"}:
            return None
        old = first[np.searchsorted(ordered, numbers)]
        queries = after.queries.take(after.query_numbers()[then])
        docs, values = after.docs.take(then), after.values[then]
        rows = np.arange(len(then))
        other = before.values[old] != values
        same = before.queries.take(before.query_numbers()[old]).same(rows, queries, rows)
        same &= before.docs.take(old).same(rows, docs, rows) & ~other
        # Fields are edited in place only in TREC format; other formats have quotes and escapes.
        if not same.all() and format_of(source) is not None:
            return None
        if _rows_span_lines(source, layout):
            return None
        return cls(layout, numbers, ~same, other, queries, docs, values)

    def lines(self, source: str) -> Iterator[bytes]:
        """Yield the lines of the copy."""
        # After a header, and in JSON Lines, a line that begins with # is an ordinary row.
        remarks, begun = format_of(source) != "jsonl", False
        rows = self._rows()
        at, changed, new = next(rows, _END)
        with opened(source) as stream:
            if start_of(stream).startswith(_BOM):
                yield _BOM
            for number, line in numbered_lines(stream, source):
                if number == at:
                    yield self._with_fields(line, new) if changed else line
                    at, changed, new = next(rows, _END)
                    begun = True
                elif not line.strip() or (remarks and line.lstrip().startswith(b"#")):
                    yield line
                elif not begun and is_header(line, self.layout):
                    yield line
                    remarks, begun = False, True

    def _rows(self) -> Iterator[tuple[int, bool, _Fields]]:
        """Yield for each row its line number, whether it changes, and the fields to write."""
        for start in range(0, len(self.numbers), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            values = (
                number_text(value, self.layout).encode() if other else None
                for value, other in zip(self.values[part].tolist(), self.other_value[part].tolist(), strict=True)
            )
            fields = zip(self.queries.take(part).tolist(), self.docs.take(part).tolist(), values, strict=True)
            yield from zip(self.numbers[part].tolist(), self.changed[part].tolist(), fields, strict=True)

    def _with_fields(self, line: bytes, new: _Fields) -> bytes:
        """Replace the fields of a line, keeping the separators."""
        found = list(_FIELD.finditer(line))
        places = places_of([one[0] for one in found], self.layout) or (0, 0, 0)
        # From right to left, so that earlier positions stay valid.
        for at, text in sorted(zip(places, new, strict=True), key=lambda pair: -pair[0]):
            if text is not None:
                line = line[: found[at].start()] + text + line[found[at].end() :]
        return line

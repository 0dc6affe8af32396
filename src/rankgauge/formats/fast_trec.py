"""TREC runs and judgments read as whole arrays, a piece of the file at a time.

It reads what nearly all files are: the same number of fields on every line, blanks or tabs between
them. Whatever else a file holds it declines, and then the plain reader of ``trec.py`` reads the
whole of it: same values, same errors, same numbers of lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from rankgauge.core.pair_table import PairTable
from rankgauge.formats.decimals import words_of
from rankgauge.formats.fields import Rows, Shape
from rankgauge.formats.layout import Layout
from rankgauge.formats.lines import AROUND, Text, read_into
from rankgauge.formats.trec import as_read

__all__ = ["quick_blocks", "quick_table"]

_PIECE = 1 << 20
_BLOCK = 1 << 23
_LINE = 10
_SPACE = b" \t\n\r\v\f"
_LOOK = 1 << 12
_Bytes = npt.NDArray[np.uint8]


def quick_table(
    text: Text, name: str, layout: Layout, *, skip: int = 0, line: int = 1, ranks: bool = False
) -> PairTable | None:
    """Read a whole text; None where it is not as simple as that.

    Args:
        text: The text; a line feed may be written behind it.
        name: The name of the file.
        layout: Judgments or run.
        skip: Bytes before the first line of fields, such as comments.
        line: The number of that line.
        ranks: Whether the ranks are read too, if all are numbers.
    """
    data = text.data
    start, stop = AROUND + skip, AROUND + text.size
    # Empty lines at the end say nothing, and the last line need not end.
    stop = _said_until(data, start, stop)
    if stop < 0:
        return None
    rows = Rows(stop - start)
    kept, data[stop] = data[stop], _LINE
    try:
        taken = _taken(_Lines(data, layout, ranks=ranks), start, stop + 1, rows)
    finally:
        data[stop] = kept
    return _named(rows.table(data, line, rows.count), rows, name) if taken else None


def quick_blocks(
    stream: BinaryIO, start: bytes, name: str, layout: Layout, *, line: int | None = None
) -> Iterator[PairTable | None]:
    """Read a text in tables of whole queries; None, and no more, where it is not as simple as that.

    It is not if a query stands in two places. A table is good until the next is asked for: it lies
    in memory that is used again. Its lines have no numbers, unless asked for.

    Args:
        stream: The text.
        start: What was read of it before.
        name: The name of the file.
        layout: Judgments or run.
        line: Where given, the number of the first line: then lines have numbers, and the ranks are
            read too, if all are numbers.
    """
    data = np.zeros(len(start) + _BLOCK + 2 * AROUND, dtype=np.uint8)
    data[AROUND : AROUND + len(start)] = np.frombuffer(start, dtype=np.uint8)
    lines = _Lines(data, layout, ranks=line is not None)
    rows = Rows(len(data))
    size = AROUND + len(start)
    seen: set[bytes] = set()
    ended = False
    while not ended:
        size, ended = _filled(stream, lines, size, rows)
        if size < 0 or not rows.grouped:
            yield None
            return
        # The last query may go on.
        count = rows.count if ended else rows.last[0]
        if count:
            # A view, since the table makes its arrays read-only.
            table = _named(rows.table(data.view(), line, count), rows, name)
            line = None if line is None else line + count
            names = table.queries.tolist()
            if not seen.isdisjoint(names):
                yield None
                return
            seen.update(names)
            yield table
        elif not ended:
            # One query fills it all: it needs more room.
            data = np.concatenate([data, np.zeros(len(data), dtype=np.uint8)])
            lines = _Lines(data, layout, ranks=line is not None)
            rows = Rows(len(data))
            continue
        rest = rows.last[1]
        data[AROUND : AROUND + size - rest] = data[rest:size].copy()
        size += AROUND - rest
        rows.clear()


class _Lines:
    """Lines of a text in memory, and what they look like."""

    def __init__(self, data: _Bytes, layout: Layout, *, ranks: bool = False) -> None:
        self.data = data
        self.words = words_of(data)
        self.layout, self.ranks = layout, ranks
        self.shape: Shape | None = None

    def take(self, start: int, stop: int, rows: Rows) -> bool:
        """Add these lines to the rows, unless they are not that simple."""
        if self.shape is None:
            self.shape = Shape.of(
                _first_line(self.data, start, stop), self.layout, ranks=self.ranks
            )
        return self.shape is not None and rows.add(self.data, self.words, (start, stop), self.shape)


def _taken(lines: _Lines, start: int, stop: int, rows: Rows) -> bool:
    """Add all lines to the rows; False where one is not simple."""
    while start < stop:
        end = _last_line(lines.data, start, min(start + _PIECE, stop))
        if end <= start or not lines.take(start, end, rows):
            return False
        start = end
    return True


def _filled(stream: BinaryIO, lines: _Lines, size: int, rows: Rows) -> tuple[int, bool]:
    """Read on until memory or the text ends, each piece taken while it is at hand.

    Returns:
        Where the text in memory ends, -1 where it is not simple; and whether nothing follows.
    """
    data = lines.data
    room = len(data) - AROUND
    taken = AROUND
    # What was left of the last block comes first.
    while True:
        stop = _said_until(data, taken, _last_line(data, taken, size))
        if stop > taken:
            stop = _next_line(data, stop)
            if not _taken(lines, taken, stop, rows):
                return -1, True
            taken = stop
        if size >= room:
            return size, False
        # With what is left of the last line it makes one piece; a longer line is not taken.
        ahead = _PIECE - (size - taken)
        if ahead <= 0:
            return -1, True
        read = read_into(stream, data[size : min(size + ahead, room)])
        if read is None:
            return -1, True
        if not read:
            break
        size += read
    stop = _said_until(data, taken, size)
    if stop > taken:
        data[stop] = _LINE
        if not _taken(lines, taken, stop + 1, rows):
            return -1, True
    return (size if rows.count else -1), True


def _said_until(data: _Bytes, start: int, stop: int) -> int:
    """Where the text ends, without the white space at its end; -1 if there is nothing else."""
    while stop > start:
        first = max(start, stop - _LOOK)
        said = len(data[first:stop].tobytes().rstrip(_SPACE))
        if said:
            return first + said
        stop = first
    return -1


def _first_line(data: _Bytes, start: int, stop: int) -> bytes:
    parts = []
    for at in range(start, stop, _LOOK):
        part, ended, _ = data[at : min(at + _LOOK, stop)].tobytes().partition(b"\n")
        parts.append(part)
        if ended:
            break
    return b"".join(parts)


def _next_line(data: _Bytes, at: int) -> int:
    """Where the line after this place begins; there is one."""
    while True:
        found = data[at : at + _LOOK].tobytes().find(b"\n")
        if found >= 0:
            return at + found + 1
        at += _LOOK


def _last_line(data: _Bytes, start: int, end: int) -> int:
    """Where the last line that ends before this place does so; `start` if none does."""
    for at in range(end, start, -_LOOK):
        first = max(at - _LOOK, start)
        found = data[first:at].tobytes().rfind(b"\n")
        if found >= 0:
            return first + found + 1
    return start


def _named(table: PairTable, rows: Rows, name: str) -> PairTable:
    return table.said(source=name) if rows.ascii else as_read(table, name)

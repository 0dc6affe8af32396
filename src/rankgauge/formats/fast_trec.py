"""Read TREC runs and judgments as arrays, one block of the file at a time.

This reader handles files with the same number of blank- or tab-separated fields on every line. It
declines all others; ``trec.py`` then reads the whole file, with the same values, errors, and line
numbers. Rows of plain cells (:class:`delimited.PlainCells`) are such lines, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.core import native
from rankgauge.core.ids import Ids, IntArray
from rankgauge.core.pair_table import FloatArray, PairTable, offsets_of
from rankgauge.core.threads import check_stopped
from rankgauge.formats.columns import EXACT, Layout, read_number
from rankgauge.formats.lines import AROUND, Text, read_into, report_read
from rankgauge.formats.trec import as_read, places_of, rank_place

_PIECE = 1 << 20
_BLOCK = 1 << 23
_TAB, _LINE, _RETURN, _BLANK, _COMMENT = 9, 10, 13, 32, 35
_SPACE = b" \t\n\r\v\f"
_LOOK = 1 << 12
_ASCII = 128
_SPARE = 1 << 10
_SPARE_BYTES = 16
_Bytes: TypeAlias = npt.NDArray[np.uint8]


def quick_table(
    text: Text, name: str, layout: Layout, *, skip: int = 0, line: int = 1, ranks: bool = False
) -> PairTable | None:
    """Read a whole text; return None if its lines differ in their number of fields."""
    data = text.data
    start, stop = AROUND + skip, AROUND + text.size
    # Ignore trailing empty lines; the last line may lack a line feed.
    stop = _text_end(data, start, stop)
    if stop < 0:
        return None
    rows = _Rows(stop - start, ranks=ranks)
    kept, data[stop] = data[stop], _LINE
    try:
        shape = Shape.of(_first_line(data, start, stop), layout, ranks=ranks)
        taken = _add_lines(rows, data, (start, stop + 1), shape)
    finally:
        data[stop] = kept
    return _named(rows.table(data, line, rows.count), rows, name) if taken else None


def packed_table(
    stream: BinaryIO, start: bytes, name: str, layout: Layout, *, line: int, size: int, shape: Shape | None = None
) -> PairTable | None:
    """Read the rest of a file of `size` bytes, keeping only its ids in memory.

    Return None if :func:`quick_table` would, or without the compiled core.
    """
    if native.core is None:
        return None
    buffer = _Buffer(stream, start, 2 * _PIECE)
    # Untouched pages take no physical memory.
    packed = np.empty(size + AROUND, dtype=np.uint8)
    rows = _Rows(size, ranks=False)
    while not buffer.ended:
        if not buffer.fill():
            return None
        span = (AROUND, buffer.stop)
        shape = shape or Shape.of(_first_line(buffer.data, *span), layout)
        if not (_add_lines(rows, buffer.data, span, shape) and rows.pack(buffer.data, packed)):
            return None
        buffer.drop(buffer.stop)
    if not rows.count:
        return None
    stop = rows.used + _SPARE_BYTES
    packed[rows.used : stop] = 0
    return _named(rows.table(packed[:stop], line, rows.count), rows, name)


class UnevenLinesError(Exception):
    """Lines differ in their number of fields."""


def quick_pieces(
    stream: BinaryIO,
    start: bytes,
    name: str,
    layout: Layout,
    *,
    line: int | None = None,
    size: int | None = None,
    shape: Shape | None = None,
) -> Iterator[tuple[PairTable, bool]]:
    """Yield tables of consecutive lines, each with whether it is the last.

    A table is valid only until the next one is yielded, because the memory is reused. Rows have
    line numbers only if `line`, the number of the first line, is given.

    Raises:
        UnevenLinesError: If a line has a different number of fields or a field is not a number. The
            rest must then be read by another reader.
    """
    buffer = _Buffer(stream, start, size or _BLOCK)
    data, ranks, found = buffer.data, line is not None, False
    rows = _Rows(len(data), ranks=ranks)
    while not buffer.ended:
        filled, span = buffer.fill(), (AROUND, buffer.stop)
        shape = shape or Shape.of(_first_line(data, *span), layout, ranks=ranks)
        if not (filled and _add_lines(rows, data, span, shape)):
            raise UnevenLinesError
        if rows.count:
            found = True
            # A view, because the table makes its arrays read-only.
            yield _named(rows.table(data.view(), line, rows.count), rows, name), buffer.ended
            line = None if line is None else line + rows.count
        buffer.drop(buffer.stop)
        rows.clear()
    if not found:
        raise UnevenLinesError  # another reader reports a text without lines


class LinesPiece(NamedTuple):
    """Complete lines of a text."""

    data: _Bytes  # followed by at least `AROUND` - 1 bytes
    start: int  # start of the first line
    stop: int  # end of the last line, after its line feed
    fields: tuple[int, int, int, int, int]  # width; query, document, number, rank (-1)
    last: bool  # whether this is the end of the text


def pass_lines(
    stream: BinaryIO,
    start: bytes,
    layout: Layout,
    read: Callable[[LinesPiece], int | None],
    *,
    shape: Shape | None = None,
) -> bool:
    """Pass the lines of a text to `read` piece by piece; return False if the text is declined.

    `read` returns the start of the last query, whose lines are passed again together with those
    that follow, or None to decline.
    """
    buffer = _Buffer(stream, start, _PIECE)
    while not buffer.ended:
        filled, stop = buffer.fill(), buffer.stop
        shape = shape or Shape.of(_first_line(buffer.data, AROUND, stop), layout)
        if shape is None or not filled or stop == AROUND:
            return False
        fields = (shape.width, shape.query, shape.doc, shape.number, -1)
        taken = read(LinesPiece(buffer.data, AROUND, stop, fields, buffer.ended))
        if taken is None or (taken == AROUND and not buffer.enlarge()):
            return False
        buffer.drop(taken)
    return True


class _Buffer:
    """Complete lines of a stream, in memory that is used again.

    Attributes:
        data: The memory; lines begin at `AROUND`.
        stop: The end of the complete lines.
        ended: Whether the stream has ended.
    """

    def __init__(self, stream: BinaryIO, start: bytes, size: int) -> None:
        self.data = np.zeros(len(start) + size + 2 * AROUND, dtype=np.uint8)
        self._stream, self._end = stream, AROUND + len(start)
        self.data[AROUND : self._end] = np.frombuffer(start, dtype=np.uint8)
        self.stop, self.ended = AROUND, False

    def fill(self) -> bool:
        """Read more lines; return False if there is no complete line, or reading fails."""
        check_stopped()
        data, room = self.data, len(self.data) - AROUND
        size = read_into(self._stream, data[self._end : room])
        if size is None:
            return False
        report_read(self._stream)
        self._end += size
        self.ended = self._end < room
        end = self._end if self.ended else _last_line(data, AROUND, self._end)
        stop = _text_end(data, AROUND, end)
        if stop < 0:
            self.stop = AROUND
            return self.ended
        if self.ended:
            data[stop] = _LINE
        self.stop = _next_line(data, stop)
        return True

    def drop(self, taken: int) -> None:
        """Move the rest of the text to the beginning, to make room."""
        rest = self.data[taken : self._end].copy()
        self.data[AROUND : AROUND + len(rest)] = rest
        self._end = AROUND + len(rest)

    def enlarge(self) -> bool:
        """Double the memory for the lines of one query; return False if it is large already."""
        if len(self.data) > _BLOCK:
            return False
        self.data = np.concatenate([self.data, np.zeros_like(self.data)])
        return True


def _add_lines(rows: _Rows, data: _Bytes, span: tuple[int, int], shape: Shape | None) -> bool:
    """Add lines in pieces that fit in the cache; return False if they do not match the shape."""
    start, stop = span
    while start < stop:
        check_stopped()
        end = _last_line(data, start, min(start + _PIECE, stop))
        if shape is None or end <= start or not rows.add(data, (start, end), shape):
            return False
        start = end
    return True


def _text_end(data: _Bytes, start: int, stop: int) -> int:
    """Return the end of the text without trailing white space; -1 if there is only white space."""
    while stop > start:
        first = max(start, stop - _LOOK)
        length = len(data[first:stop].tobytes().rstrip(_SPACE))
        if length:
            return first + length
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
    """Return the start of the next line; a line feed must follow."""
    while True:
        found = data[at : at + _LOOK].tobytes().find(b"\n")
        if found >= 0:
            return at + found + 1
        at += _LOOK


def _last_line(data: _Bytes, start: int, end: int) -> int:
    """Return the end of the last complete line before `end`; `start` if there is none."""
    for at in range(end, start, -_LOOK):
        first = max(at - _LOOK, start)
        found = data[first:at].tobytes().rfind(b"\n")
        if found >= 0:
            return first + found + 1
    return start


def _named(table: PairTable, rows: _Rows, name: str) -> PairTable:
    return table.with_notes(source=name) if rows.ascii else as_read(table, name)


@dataclass(frozen=True)
class Shape:
    """Number of fields per line, and indices of the fields to read (rank -1: none)."""

    width: int
    query: int
    doc: int
    number: int
    rank: int = -1

    @classmethod
    def of(cls, line: bytes, layout: Layout, *, ranks: bool = False) -> Shape | None:
        """Return the shape of lines in TREC format; None if the fields do not fit."""
        fields = line.split()
        places = places_of(fields, layout)
        if places is None:
            return None
        return cls(len(fields), *places, rank_place(len(fields), layout) if ranks else -1)


class _Rows:
    """Columns of rows, filled piece by piece in reusable memory.

    Attributes:
        count: Number of rows.
        ascii: Whether all text is ASCII.
        grouped: Whether the rows of each query are adjacent.
        ranked: Whether every row has a numeric rank.
        used: Number of bytes of packed ids.
    """

    def __init__(self, size: int, *, ranks: bool) -> None:
        self._size = size
        self._core: Any = native.core
        self._numbers = np.empty(0, dtype=np.int32)
        self._starts = np.empty(0, dtype=np.int64)
        self._lengths = np.empty(0, dtype=np.int64)
        self._hashes = np.empty(0, dtype=np.uint64)
        self._values = np.empty(0, dtype=np.float64)
        self._ranks = np.empty(0, dtype=np.float64)
        self.ranked = ranks
        self.ascii = True
        self.clear()

    def clear(self) -> None:
        self.count = self._read = self.used = self._packed = 0
        self._names = {} if self._core is None else self._core.numbering()
        self.grouped = True
        if not self._starts.flags.writeable:
            # The table that was returned owns the reordered arrays.
            self._starts = np.empty(0, dtype=np.int64)

    def add(self, data: _Bytes, span: tuple[int, int], shape: Shape) -> bool:
        """Add the lines in `span`; return False if their fields do not match `shape`."""
        if self._core is not None:
            return self._scan(self._core, data, span, shape)
        start, stop = span
        fields = _fields(data[start:stop], shape.width)
        values = None if fields is None else _numbers(data[start:stop], fields[:, shape.number])
        if fields is None or values is None:
            return False
        docs, queries = (_ids(data[start:], fields[:, n]) for n in (shape.doc, shape.query))
        self._read += stop - start
        self._make_room(len(docs))
        here = slice(self.count, self.count + len(docs))
        self._starts[here], self._lengths[here] = docs.starts + start, docs.lengths
        self._hashes[here], self._values[here] = docs.hashes(), values
        if self.ranked:
            ranks = _numbers(data[start:stop], fields[:, shape.rank]) if shape.rank >= 0 else None
            self.ranked = ranks is not None
            self._make_room_for_ranks()
            self._ranks[here] = 0 if ranks is None else ranks
        runs, number_of = queries.runs(), self._names
        codes = [number_of.setdefault(query, len(number_of)) for query in runs.ids.tolist()]
        self._numbers[here] = np.repeat(codes, runs.counts)
        steps = np.diff(self._numbers[max(self.count - 1, 0) : here.stop])
        self.grouped = self.grouped and not (steps < 0).any()
        self.count = here.stop
        self.ascii = self.ascii and int(data[start:stop].max()) < _ASCII
        return True

    def _scan(self, core: Any, data: _Bytes, span: tuple[int, int], shape: Shape) -> bool:
        """Add lines with the compiled core."""
        start, stop = span
        self._read += stop - start
        self._make_room(int(np.count_nonzero(data[start:stop] == _LINE)))
        self.ranked &= shape.rank >= 0
        if self.ranked:
            self._make_room_for_ranks()
        rank = shape.rank if self.ranked else -1
        found = core.scan(
            self._names,
            data,
            start,
            stop,
            (shape.width, shape.query, shape.doc, shape.number, rank),
            self.count,
            self._starts,
            self._lengths,
            self._hashes,
            self._values,
            self._numbers,
            self._ranks,
        )
        if found is None:
            return False
        rows, grouped, plain, *_ = found
        if self.ranked:
            self.ranked = not np.isnan(self._ranks[self.count : self.count + rows]).any()
        self.count += rows
        self.grouped &= grouped
        self.ascii &= plain
        return True

    def pack(self, data: _Bytes, packed: _Bytes) -> bool:
        """Copy the ids of new rows into `packed`; return False if it is too small."""
        places = (self._starts, self._lengths, self._packed, self.count)
        self.used = self._core.pack_ids(data, *places, packed, self.used)
        self._packed = self.count
        return self.used >= 0

    def _make_room_for_ranks(self) -> None:
        if len(self._ranks) < len(self._values):
            larger = np.empty(len(self._values))
            larger[: self.count] = self._ranks[: self.count]
            self._ranks = larger

    def _make_room(self, more: int) -> None:
        """Make room for `more` rows; estimate the total from the part read so far."""
        wanted = self.count + more
        if wanted <= len(self._starts):
            return
        guessed = int(1.02 * wanted * max(self._size / self._read, 1.0)) + _SPARE
        for name in ("_numbers", "_starts", "_lengths", "_hashes", "_values"):
            old = getattr(self, name)
            new = np.empty(guessed, dtype=old.dtype)
            new[: self.count] = old[: self.count]
            setattr(self, name, new)

    def table(self, data: _Bytes, line: int | None, count: int) -> PairTable:
        numbers = self._numbers[:count]
        different = int(numbers[-1] if self.grouped else numbers.max()) + 1
        if self._core is None:
            names = Ids.of([*itertools.islice(self._names, different)])
        else:
            names = Ids.of(self._core.names(self._names)[:different])
        if self.grouped:
            heads = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
            offsets = np.concatenate([[0], heads, [count]])
            docs = Ids(data, self._starts[:count], self._lengths[:count], self._hashes[:count])
            lines = None if line is None else np.arange(line, line + count)
            ranks = self._ranks[:count] if self.ranked else None
            values = self._values[:count]
            return PairTable(names, offsets, docs, values, lines=lines, ranks=ranks)
        offsets = offsets_of(np.bincount(numbers, minlength=len(names)))
        grouped = self._grouping(numbers, offsets)
        # One array after the other, each into the memory of the previous one.
        spare = np.empty(count, dtype=np.int64)
        for name in ("_starts", "_lengths", "_hashes", "_values"):
            column = getattr(self, name)
            setattr(self, name, grouped(column[:count], spare[:count].view(column.dtype)))
            spare = column
        ranks = grouped(self._ranks[:count], np.empty(count)) if self.ranked else None
        docs = Ids(data, self._starts, self._lengths, self._hashes)
        lines = None
        if line is not None:
            lines = np.arange(line, line + count, dtype=np.int64)
            lines = grouped(lines, spare[:count].view(np.int64))
        return PairTable(names, offsets, docs, self._values, lines=lines, ranks=ranks)

    def _grouping(
        self, numbers: npt.NDArray[np.int32], offsets: IntArray
    ) -> Callable[[npt.NDArray[Any], npt.NDArray[Any]], npt.NDArray[Any]]:
        """Return a function that copies a column into an array, grouped by query."""
        if self._core is None:
            order = np.argsort(numbers, kind="stable")
            return lambda column, into: np.take(column, order, out=into, mode="clip")

        def grouped(column: npt.NDArray[Any], into: npt.NDArray[Any]) -> npt.NDArray[Any]:
            self._core.group(numbers, offsets[:-1].copy(), column, into)
            return into

        return grouped


def _fields(text: _Bytes, width: int) -> IntArray | None:
    """Return start and end of each field, (lines, fields, 2); None for any other text."""
    blank = text <= _BLANK
    bounds = np.flatnonzero(np.diff(blank, prepend=True))
    feeds, returns = np.flatnonzero(text == _LINE), np.flatnonzero(text == _RETURN)
    separators = np.count_nonzero((text == _BLANK) | (text == _TAB)) + len(feeds) + len(returns)
    if (
        len(bounds) != 2 * width * len(feeds)
        or separators != np.count_nonzero(blank)
        # A carriage return alone also ends a line.
        or (text[returns + 1] != _LINE).any()
    ):
        return None
    fields = bounds.reshape(-1, width, 2)
    first, last = fields[:, 0, 0], fields[:, -1, 1]
    if (last > feeds).any() or (first[1:] < feeds[:-1]).any() or (text[first] == _COMMENT).any():
        return None
    return fields


def _ids(text: _Bytes, spans: IntArray) -> Ids:
    return Ids(text.view(), spans[:, 0].copy(), spans[:, 1] - spans[:, 0])


def _numbers(text: _Bytes, spans: IntArray) -> FloatArray | None:
    """Return the numbers in these spans; None if one is not a finite number."""
    data, (starts, ends) = text.tobytes(), spans.T.tolist()
    texts = [*map(data.__getitem__, map(slice, starts, ends))]
    try:
        found = np.array([*map(float, texts)])
        underscores = b"_" in data and b"_" in b"".join(texts)
        if underscores or (np.abs(found) >= EXACT).any():
            found = np.array([*map(read_number, texts)])
    except ValueError:
        return None
    return found if np.isfinite(found).all() else None

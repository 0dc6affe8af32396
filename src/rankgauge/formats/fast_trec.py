"""Read TREC runs and judgments as arrays, one block of the file at a time.

This reader handles files with the same number of blank- or tab-separated fields on every line. It
declines all others; ``trec.py`` then reads the whole file, with the same values, errors, and line
numbers. Rows of plain cells (:class:`delimited.PlainCells`) are such lines, too.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.core import native
from rankgauge.core.ids import Ids, IntArray
from rankgauge.core.pair_table import FloatArray, PairTable, group_rows
from rankgauge.core.threads import check_stopped
from rankgauge.errors import InputError
from rankgauge.formats.columns import EXACT, read_number
from rankgauge.formats.lines import AROUND, read_into, report_read
from rankgauge.formats.rows import PairInput
from rankgauge.formats.trec import as_read, places_of, rank_place

_PIECE = 1 << 20
_BLOCK = 1 << 23
_TAB, _LINE, _RETURN, _BLANK, _COMMENT = 9, 10, 13, 32, 35
_LOOK = 1 << 12
_LONG = 1 << 18  # lines of a query that is too long for `pass_lines`
_Bytes: TypeAlias = npt.NDArray[np.uint8]


class FieldLines(NamedTuple):
    """Lines with the same number of fields, to be read as arrays."""

    stream: BinaryIO  # after the first line
    start: bytes  # the first line
    number: int  # its number
    shape: Shape  # fields to read
    notes: tuple[str, ...] = ()  # notes on the columns
    by: bytes | None = None  # separator of fields in the file; None for white space
    size: int = sys.maxsize  # most bytes to read from the stream


def quick_table(lines: FieldLines, origin: PairInput, *, size: int) -> PairTable | None:
    """Read lines of at most `size` bytes, keeping only their ids in memory.

    Return None if the lines differ in their number of fields.
    """
    buffer = _Buffer(lines, 2 * _PIECE)
    # Untouched pages take no physical memory.
    packed = np.empty(size + AROUND, dtype=np.uint8)
    rows = _Rows(size, ranks=origin.ranks)
    while not buffer.ended:
        if not (buffer.fill() and _add_lines(rows, buffer) and rows.pack(buffer.data, packed)):
            return None
        buffer.drop(buffer.stop)
    if not rows.count:
        return None
    stop = rows.used + 16  # spare bytes
    packed[rows.used : stop] = 0
    return rows.table(packed[:stop], lines.number, origin.name).with_notes(*lines.notes)


class NotInBlocksError(InputError):
    """A file must be read by another reader; users see the error of that reader, if any."""


def quick_pieces(lines: FieldLines, origin: PairInput, *, size: int | None = None) -> Iterator[tuple[PairTable, bool]]:
    """Yield tables of consecutive lines, each with whether it is the last.

    A table is valid only until the next one is yielded, because the memory is reused. Rows have
    line numbers only if ranks are read.

    Raises:
        NotInBlocksError: If a line has a different number of fields or a field is not a number. The
            rest must then be read by another reader.
    """
    buffer = _Buffer(lines, size or _BLOCK)
    data, number, any_rows = buffer.data, lines.number, False
    rows = _Rows(len(data), ranks=origin.ranks)
    while not buffer.ended:
        if not (buffer.fill() and _add_lines(rows, buffer)):
            raise NotInBlocksError("a line is unusual")
        if rows.count:
            any_rows = True
            # A view, because the table makes its arrays read-only.
            table = rows.table(data.view(), number if origin.ranks else None, origin.name)
            yield table.with_notes(*lines.notes), buffer.ended
            number += rows.count
        buffer.drop(buffer.stop)
        rows.clear()
    if not any_rows:
        raise NotInBlocksError("there are no lines")  # the other reader reports it


class LinesPiece(NamedTuple):
    """Complete lines of a text."""

    data: _Bytes  # followed by at least `AROUND` - 1 bytes
    start: int  # start of the first line
    stop: int  # end of the last line, after its line feed
    fields: tuple[int, int, int, int, int]  # width; query, document, number, rank (-1)
    last: bool  # whether this is the end of the text


def pass_lines(lines: FieldLines, read: Callable[[LinesPiece], int | None]) -> bool:
    """Pass lines to `read` piece by piece; return False if they are declined.

    `read` returns the start of the last query, whose lines are passed again together with those
    that follow, or None to decline.
    """
    buffer = _Buffer(lines, _PIECE)
    while not buffer.ended:
        filled, stop, shape = buffer.fill(), buffer.stop, buffer.shape
        if not filled or stop == AROUND:
            return False
        fields = (shape.width, shape.query, shape.doc, shape.number, -1)
        taken = read(LinesPiece(buffer.data, AROUND, stop, fields, buffer.ended))
        if taken is None or (taken == AROUND and not buffer.enlarge()):
            return False
        buffer.drop(taken)
    return True


def query_bounds(lines: FieldLines, file: BinaryIO, size: int, count: int) -> list[int]:
    """Return up to `count` positions in a file of `size` bytes, the start of its lines and of further queries.

    They divide the lines into parts of similar size. `file` is where the lines come from; it is at
    the end of the first line.
    """
    query = slice(lines.shape.query, lines.shape.query + 1)
    bounds = [file.tell() - len(lines.start)]
    for part in range(1, count):
        file.seek(max(size * part // count, bounds[-1]))
        file.readline()
        name = file.readline().split(lines.by)[query]
        place = file.tell()
        for line in itertools.islice(file, _LONG):
            if line.split(lines.by)[query] != name:
                bounds.append(place)
                break
            place += len(line)
    return bounds


class _Buffer:
    """Complete lines of a stream, in memory that is used again.

    Attributes:
        data: The memory; lines begin at `AROUND`.
        stop: The end of the complete lines.
        ended: Whether the stream has ended.
        shape: The fields to read.
    """

    def __init__(self, lines: FieldLines, size: int) -> None:
        self._stream, self._left, self._end = lines.stream, lines.size, AROUND + len(lines.start)
        self.data = np.zeros(self._end + size + AROUND, dtype=np.uint8)
        self.data[AROUND : self._end] = np.frombuffer(lines.start, dtype=np.uint8)
        self.stop, self.ended = AROUND, False
        self.shape = lines.shape

    def fill(self) -> bool:
        """Read more lines; return False if there is no complete line, or reading fails."""
        check_stopped()
        data, room = self.data, len(self.data) - AROUND
        size = read_into(self._stream, data[self._end : min(room, self._end + self._left)])
        if size is None:
            return False
        report_read(self._stream)
        self._end += size
        self._left -= size
        self.ended = self._end < room
        end = self._end if self.ended else _last_line(data, AROUND, self._end)
        # The last field nearly always ends shortly before the end of the lines.
        for look in (_LOOK, len(data)):
            first = max(AROUND, end - look)
            tail = data[first:end].tobytes().rstrip()
            if tail:
                break
        else:
            self.stop = AROUND
            return self.ended
        stop = first + len(tail)
        if self.ended:
            data[stop], end = _LINE, stop + 1
        self.stop = stop + data[stop:end].tobytes().index(b"\n") + 1
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


def _add_lines(rows: _Rows, buffer: _Buffer) -> bool:
    """Add lines in pieces that fit in the cache; return False if they do not match the shape."""
    data, start, stop = buffer.data, AROUND, buffer.stop
    while start < stop:
        check_stopped()
        end = _last_line(data, start, min(start + _PIECE, stop))
        if end <= start or not rows.add(data, (start, end), buffer.shape):
            return False
        start = end
    return True


def _last_line(data: _Bytes, start: int, end: int) -> int:
    """Return the end of the last complete line before `end`; `start` if there is none."""
    for at in range(end, start, -_LOOK):
        first = max(at - _LOOK, start)
        feed = data[first:at].tobytes().rfind(b"\n")
        if feed >= 0:
            return first + feed + 1
    return start


@dataclass(frozen=True)
class Shape:
    """Number of fields per line, and indices of the fields to read (rank -1: none)."""

    width: int
    query: int
    doc: int
    number: int
    rank: int = -1

    @classmethod
    def of(cls, line: bytes, origin: PairInput) -> Shape | None:
        """Return the shape of lines in TREC format; None if the fields do not fit."""
        fields = line.split()
        places = places_of(fields, origin.layout)
        if places is None:
            return None
        return cls(len(fields), *places, rank_place(len(fields), origin.layout) if origin.ranks else -1)


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
        self._numbers, self._starts, self._lengths, self._hashes, self._values, self._ranks = (
            np.empty(0, dtype) for dtype in ("i4", "i8", "i8", "u8", "f8", "f8")
        )
        self.ranked = ranks
        self.ascii = True
        self.clear()

    def clear(self) -> None:
        self.count = self._read = self.used = self._packed = 0
        self._names = {} if self._core is None else self._core.numbering()
        self.grouped = True

    def add(self, data: _Bytes, span: tuple[int, int], shape: Shape) -> bool:
        """Add the lines in `span`; return False if their fields do not match `shape`."""
        if self._core is not None:
            return self._scan(data, span, shape)
        start, stop = span
        fields = _fields(data[start:stop], shape.width)
        values = None if fields is None else _numbers(data[start:stop], fields[:, shape.number])
        if fields is None or values is None:
            return False
        docs, queries = (
            Ids(data[start:].view(), fields[:, place, 0].copy(), fields[:, place, 1] - fields[:, place, 0])
            for place in (shape.doc, shape.query)
        )
        self._read += stop - start
        self._make_room(len(docs))
        here = slice(self.count, self.count + len(docs))
        self._starts[here], self._lengths[here] = docs.starts + start, docs.lengths
        self._hashes[here], self._values[here] = docs.hashes(), values
        if self.ranked:
            ranks = _numbers(data[start:stop], fields[:, shape.rank]) if shape.rank >= 0 else None
            self.ranked = ranks is not None
            self._ranks[here] = 0 if ranks is None else ranks
        runs, number_of = queries.runs(), self._names
        codes = [number_of.setdefault(query, len(number_of)) for query in runs.ids.tolist()]
        self._numbers[here] = np.repeat(codes, runs.counts)
        steps = np.diff(self._numbers[max(self.count - 1, 0) : here.stop])
        self.grouped = self.grouped and not (steps < 0).any()
        self.count = here.stop
        self.ascii = self.ascii and int(data[start:stop].max()) < 128
        return True

    def _scan(self, data: _Bytes, span: tuple[int, int], shape: Shape) -> bool:
        """Add lines with the compiled core."""
        start, stop = span
        self._read += stop - start
        self.ranked &= shape.rank >= 0
        self._make_room(int(np.count_nonzero(data[start:stop] == _LINE)))
        rank = shape.rank if self.ranked else -1
        scanned = self._core.scan(
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
        if scanned is None:
            return False
        rows, grouped, plain, *_ = scanned
        if self.ranked:
            self.ranked = not np.isnan(self._ranks[self.count : self.count + rows]).any()
        self.count += rows
        self.grouped &= grouped
        self.ascii &= plain
        return True

    def pack(self, data: _Bytes, packed: _Bytes) -> bool:
        """Copy the ids of new rows into `packed`; return False if it is too small."""
        if self._core is not None:
            places = (self._starts, self._lengths, self._packed, self.count)
            self.used = self._core.pack_ids(data, *places, packed, self.used)
        else:
            new = slice(self._packed, self.count)
            ids = Ids(data.view(), self._starts[new], self._lengths[new])
            text = ids.bytes()
            packed[self.used : self.used + len(text)] = text
            self._starts[new] = self.used + np.cumsum(ids.lengths) - ids.lengths
            self.used += len(text)
        self._packed = self.count
        return self.used >= 0

    def _make_room(self, more: int) -> None:
        """Make room for `more` rows; estimate the total from the part read so far."""
        wanted = self.count + more
        if wanted <= len(self._starts):
            return
        guessed = int(1.02 * wanted * max(self._size / self._read, 1.0)) + 1024
        for name in ("_numbers", *self._columns()):
            old = getattr(self, name)
            new = np.empty(guessed, dtype=old.dtype)
            new[: self.count] = old[: self.count]
            setattr(self, name, new)

    def _columns(self) -> tuple[str, ...]:
        return ("_starts", "_lengths", "_hashes", "_values", *(("_ranks",) if self.ranked else ()))

    def table(self, data: _Bytes, line: int | None, name: str) -> PairTable:
        """Return all rows; `line` is the number of the first line, if lines are numbered."""
        count = self.count
        numbers = self._numbers[:count]
        different = int(numbers[-1] if self.grouped else numbers.max()) + 1
        known = self._names if self._core is None else self._core.names(self._names)
        names = Ids.of([*itertools.islice(known, different)])
        lines = None if line is None else np.arange(line, line + count)
        if self.grouped:
            heads = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
            offsets = np.concatenate([[0], heads, [count]])
        else:
            offsets, grouped = group_rows(numbers, len(names))
            for column in self._columns():
                setattr(self, column, grouped(getattr(self, column)[:count]))
            lines = None if lines is None else grouped(lines)
        docs = Ids(data, self._starts[:count], self._lengths[:count], self._hashes[:count])
        ranks = self._ranks[:count] if self.ranked else None
        table = PairTable(names, offsets, docs, self._values[:count], lines=lines, ranks=ranks, adjacent=self.grouped)
        return table.with_notes(source=name) if self.ascii else as_read(table, name)


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


def _numbers(text: _Bytes, spans: IntArray) -> FloatArray | None:
    """Return the numbers in these spans; None if one is not a finite number."""
    data, (starts, ends) = text.tobytes(), spans.T.tolist()
    texts = [*map(data.__getitem__, map(slice, starts, ends))]
    try:
        numbers = np.array([*map(float, texts)])
        underscores = b"_" in data and b"_" in b"".join(texts)
        if underscores or (np.abs(numbers) >= EXACT).any():
            numbers = np.array([*map(read_number, texts)])
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None

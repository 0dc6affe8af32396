"""TREC runs and judgments read as whole arrays, a piece of the file at a time.

It reads what most files are: the same fields on every line, one blank or tab between two. Whatever
else a file holds it declines, and then the plain reader of ``trec.py`` reads the whole of it: same
values, same errors, same numbers of lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from rankgauge.formats.decimals import decimals, words_of
from rankgauge.formats.layout import Layout, read_number
from rankgauge.formats.lines import AROUND, Text, read_into
from rankgauge.formats.trec import places_of
from rankgauge.ids import Ids, IntArray
from rankgauge.table import FloatArray, PairTable, offsets_of

__all__ = ["quick_blocks", "quick_table"]

_PIECE = 1 << 20
_BLOCK = 1 << 24
_SHORT = 1 << 16
_LINE, _BLANK, _TAB, _COMMENT = 10, 32, 9, 35
_SPACE = frozenset(b" \t\n\r\v\f")
_WORD = 8
# The first n of eight bytes.
_FIRST = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)
_Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class _Piece:
    """Some lines, as places in the text.

    Attributes:
        heads: Rows where another query begins than that of the row before.
        queries: Where the queries of those rows start.
        query_lengths: Bytes of them.
        docs: Where documents start, of every row.
        doc_lengths: Bytes of them.
        hashes: Their hashes.
        values: Scores or grades.
    """

    heads: IntArray
    queries: IntArray
    query_lengths: IntArray
    docs: IntArray
    doc_lengths: IntArray
    hashes: npt.NDArray[np.uint64]
    values: FloatArray


def quick_table(text: Text, layout: Layout, *, skip: int = 0, line: int = 1) -> PairTable | None:
    """Read a whole text; None where it is not as simple as that.

    Args:
        text: The text; a line feed may be written behind it.
        layout: Judgments or run.
        skip: Bytes before the first line of fields, such as comments.
        line: The number of that line.
    """
    pieces: list[_Piece] = []
    for piece in _pieces(text, skip, layout):
        if piece is None:
            return None
        pieces.append(piece)
    return _table(text.data, pieces, line) if pieces else None


def quick_blocks(
    stream: BinaryIO, start: bytes, layout: Layout, *, line: int = 1
) -> Iterator[PairTable | None]:
    """Read a text in tables of whole queries; None, and no more, where it is not as simple as that.

    It is not if a query stands in two places. A table is good until the next is asked for: its
    ids lie in memory that is used again.

    Args:
        stream: The text.
        start: What was read of it before.
        layout: Judgments or run.
        line: The number of its first line.
    """
    data = np.zeros(len(start) + _BLOCK + 2 * AROUND, dtype=np.uint8)
    data[AROUND : AROUND + len(start)] = np.frombuffer(start, dtype=np.uint8)
    size, ended = len(start), False
    seen: set[bytes] = set()
    while True:
        while not ended and AROUND + size + AROUND < len(data):
            read = read_into(stream, data[AROUND + size : len(data) - AROUND])
            size, ended = size + read, not read
        stop = size if ended else _last_line(data, AROUND, AROUND + size) + 1 - AROUND
        pieces = list(_pieces(Text(data, stop), 0, layout)) if stop > 0 else [None]
        if any(piece is None for piece in pieces):
            yield None
            return
        table, rest = _whole_queries(data, [p for p in pieces if p is not None], line, ended=ended)
        if table is not None:
            names = table.queries.tolist()
            if not seen.isdisjoint(names):
                yield None
                return
            seen.update(names)
            line += len(table)
            yield table
        if ended:
            return
        if table is None:
            # One query fills it all: it needs more room.
            data = np.concatenate([data, np.zeros(len(data), dtype=np.uint8)])
            continue
        size = AROUND + size - rest
        data[AROUND : AROUND + size] = data[rest : rest + size].copy()


def _whole_queries(
    data: _Bytes, pieces: list[_Piece], line: int, *, ended: bool
) -> tuple[PairTable | None, int]:
    """A table of all queries but the last, which may go on; and where that begins."""
    if ended:
        return _table(data.view(), pieces, line), 0
    bases = np.cumsum([0, *(len(piece.values) for piece in pieces)])
    heads = np.concatenate([p.heads + b for p, b in zip(pieces, bases, strict=False)])
    if len(heads) < 2:
        return None, 0
    rest = int(next(p.queries[-1] for p in reversed(pieces) if len(p.queries)))
    return _table(data.view(), pieces, line, rows=int(heads[-1])), rest


def _pieces(text: Text, skip: int, layout: Layout) -> Iterator[_Piece | None]:
    """The lines, piece by piece; None and no more for what is not simple."""
    data = text.data
    start, stop = AROUND + skip, AROUND + text.size
    # Empty lines at the end say nothing, and the last line need not end.
    while stop > start and data[stop - 1] in _SPACE:
        stop -= 1
    kept, data[stop] = data[stop], _LINE
    try:
        yield from _until(text, start, stop + 1, layout)
    finally:
        data[stop] = kept


def _until(text: Text, start: int, stop: int, layout: Layout) -> Iterator[_Piece | None]:
    data = text.data
    words = words_of(data)
    width = len(data[start : start + _first(data, start, stop)].tobytes().split())
    places = places_of(width, layout)
    before: bytes | None = None
    while start < stop:
        end = min(start + _PIECE, stop)
        if end < stop:
            back = _last_line(data, start, end)
            if back < 0:
                yield None
                return
            end = back + 1
        if places is None:
            yield None
            return
        piece = _piece(_Lines(data, words, start, end), width, places, before)
        yield piece
        if piece is None:
            return
        if len(piece.heads):
            at = int(piece.queries[-1])
            before = data[at : at + int(piece.query_lengths[-1])].tobytes()
        start = end


def _first(data: _Bytes, start: int, stop: int) -> int:
    """Bytes of the first line."""
    step = 1 << 12
    for at in range(start, stop, step):
        found = np.flatnonzero(data[at : min(at + step, stop)] == _LINE)
        if len(found):
            return at - start + int(found[0])
    return stop - start


def _last_line(data: _Bytes, start: int, end: int) -> int:
    """Where the last line of this piece ends; -1 if none does."""
    step = 1 << 12
    for at in range(end, start, -step):
        first = max(at - step, start)
        found = data[first:at].tobytes().rfind(b"\n")
        if found >= 0:
            return first + found
    return -1


@dataclass(frozen=True)
class _Lines:
    """Whole lines of a text: from where to where they stand in it."""

    data: _Bytes
    words: npt.NDArray[np.uint64]
    start: int
    end: int


def _piece(
    lines_of: _Lines, width: int, places: tuple[int, int, int], before: bytes | None
) -> _Piece | None:
    data, words = lines_of.data, lines_of.words
    query, doc, number = places
    text = data[lines_of.start : lines_of.end]
    blank = np.empty(AROUND + len(text), dtype=bool)
    blank[:AROUND] = False
    np.less_equal(text, _BLANK, out=blank[AROUND:])
    ends = np.flatnonzero(blank)
    # No field is empty, so blanks stand one by one.
    if not len(ends) or len(ends) % width or ends[0] == AROUND or (blank[1:] & blank[:-1]).any():
        return None
    # From here on places count from a little before the text, where numbers are looked at.
    base = lines_of.start - AROUND
    data, words = data[base:], words[base:]
    if not _alike(data[ends], width):
        return None
    grid = ends.reshape(-1, width)
    starts = np.empty(len(grid), dtype=np.int64)
    starts[0] = AROUND
    np.add(grid[:-1, -1], 1, out=starts[1:])
    query_starts = starts if query == 0 else grid[:, query - 1] + 1
    if (data[starts] == _COMMENT).any():
        return None
    values, sure = decimals(data, words, grid[:, number - 1] + 1, grid[:, number])
    if not sure.all():
        rows = np.flatnonzero(~sure)
        rest = _read_rest(data, grid[rows, number - 1] + 1, grid[rows, number])
        if rest is None:
            return None
        values[rows] = rest
    query_lengths = grid[:, query] - query_starts
    first = data[query_starts[0] : query_starts[0] + query_lengths[0]].tobytes()
    heads = _heads(words, query_starts, query_lengths, goes_on=first == before)
    docs = grid[:, doc - 1] + 1
    lengths = grid[:, doc] - docs
    hashes = Ids(data.view(), docs, lengths).hashes()
    return _Piece(
        heads=heads,
        queries=query_starts[heads] + base,
        query_lengths=query_lengths[heads],
        docs=docs + base,
        doc_lengths=lengths,
        hashes=hashes,
        values=values,
    )


def _alike(kinds: _Bytes, width: int) -> bool:
    """Whether these are the blanks of lines of so many fields: tabs or blanks, and a line feed.

    Most files have the same ones in each line, which is one comparison of bytes.
    """
    first = kinds[:width]
    if kinds.tobytes() != first.tobytes() * (len(kinds) // width):
        grid = kinds.reshape(-1, width)
        if not (grid[:, -1] == _LINE).all():
            return False
        first = grid[:, :-1]
    elif first[-1] != _LINE:
        return False
    else:
        first = first[:-1]
    return bool(((first == _BLANK) | (first == _TAB)).all())


def _read_rest(data: _Bytes, starts: IntArray, ends: IntArray) -> FloatArray | None:
    """These numbers, read one by one; None if one of them is none, or not finite."""
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    try:
        read = np.array([read_number(data[start:end].tobytes()) for start, end in spans])
    except ValueError:
        return None
    return read if np.isfinite(read).all() else None


def _heads(
    words: npt.NDArray[np.uint64], starts: IntArray, lengths: IntArray, *, goes_on: bool
) -> IntArray:
    """Rows whose query is not that of the row before; `goes_on` says it of the first row."""
    new = np.empty(len(starts), dtype=bool)
    new[0] = not goes_on
    np.not_equal(lengths[1:], lengths[:-1], out=new[1:])
    for number in range(-(-int(lengths.max()) // _WORD)):
        left = np.minimum(np.maximum(lengths - _WORD * number, 0), _WORD)
        # The last bytes of a word are those of what follows.
        word = words[starts + _WORD * number] & _FIRST[left]
        new[1:] |= word[1:] != word[:-1]
    return np.flatnonzero(new)


def _table(data: _Bytes, pieces: list[_Piece], line: int, rows: int | None = None) -> PairTable:
    bases = np.cumsum([0, *(len(piece.values) for piece in pieces)])
    heads = np.concatenate([p.heads + b for p, b in zip(pieces, bases, strict=False)])
    count = int(bases[-1]) if rows is None else rows
    known = slice(int(np.searchsorted(heads, count)))
    heads = heads[known]
    queries = Ids(
        data,
        np.concatenate([p.queries for p in pieces])[known],
        np.concatenate([p.query_lengths for p in pieces])[known],
    )
    docs = Ids(
        data,
        np.concatenate([p.docs for p in pieces])[:count],
        np.concatenate([p.doc_lengths for p in pieces])[:count],
        np.concatenate([p.hashes for p in pieces])[:count],
    )
    values = np.concatenate([piece.values for piece in pieces])[:count]
    lines = np.arange(line, line + count)
    codes, names = queries.unique()
    sizes = np.diff(np.append(heads, count))
    if len(names) == len(queries):
        return PairTable(names, offsets_of(sizes), docs, values, lines=lines)
    # Numbers of two bytes are put in order without comparing any.
    small = np.uint16 if len(names) <= _SHORT else np.int64
    of_row = np.repeat(codes.astype(small), sizes)
    order = np.argsort(of_row, kind="stable")
    counts = np.bincount(of_row, minlength=len(names))
    return PairTable(names, offsets_of(counts), docs.take(order), values[order], lines=lines[order])

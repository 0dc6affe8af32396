"""Partition rows by a hash of their query into buckets on disk, to read back whole queries.

The temporary file is unnamed, so nothing remains however a process ends. It is created in the
folder for temporary files, set by the environment variable TMPDIR.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Ids, IntArray
from rankgauge.core.pair_table import PairTable, offsets_of, ranges_of
from rankgauge.errors import StorageError

_BITS = 9
_COUNT = 1 << _BITS
# Levels of recursive splitting: a bucket that is still too large contains a query that is.
_LEVELS = 4
_ONE = 0.9
_MIX = np.uint64(0xA0761D6478BD642F)
_SPARE = 8
# Share of memory for the raw bytes of a bucket (evaluating it takes far more), and their maximum:
# smaller buckets fit into the CPU cache and are faster.
_SHARE, _MOST = 24, 1 << 24
# Bytes to read at a time when a bucket is split again.
_PIECE = 1 << 23


class Positioned(NamedTuple):
    """A table, with the position of each query in the order of first appearance."""

    table: PairTable
    positions: IntArray


def positioned(pieces: Iterable[PairTable]) -> Iterator[Positioned]:
    """Yield tables with the positions of their queries."""
    before = 0
    for table in pieces:
        yield Positioned(table, np.arange(before, before + len(table.queries)))
        before += len(table.queries)


class Buckets:
    """Rows partitioned by a hash of their query.

    Args:
        pieces: Tables of consecutive rows, each with the positions of its queries.
        level: Number of the bits of the hash to use.
    """

    def __init__(self, pieces: Iterable[Positioned], level: int = 0) -> None:
        self._level = level
        # One row per segment: bucket, offset, and numbers of queries, rows, and bytes of ids.
        self._segments = np.zeros((0, 6), dtype=np.int64)
        self._file = temporary_file(self)
        self._source, self._notes = "", dict[str, None]()
        segments = [self._segments]
        end = 0
        for piece in pieces:
            self._source = self._source or piece.table.source
            self._notes.update(dict.fromkeys(piece.table.notes))
            found, parts = _split(piece, level, end)
            segments.append(found)
            end += write_all(self._file, parts)
        self._segments = np.concatenate(segments)
        self._sizes = np.bincount(self._segments[:, 0], weights=_bytes_of(self._segments), minlength=_COUNT).astype(
            np.int64
        )

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self._segments[:, 3].sum())

    def tables(self, most: int) -> Iterator[Positioned]:
        """Yield whole queries, about `most` bytes at a time; larger queries alone."""
        waiting: list[int] = []
        for bucket in np.flatnonzero(self._sizes).tolist():
            size = int(self._sizes[bucket])
            # A bucket with nearly all rows contains one large query, which cannot be split.
            if most < size < _ONE * self._sizes.sum() and self._level < _LEVELS:
                again = Buckets(self._parts_of(bucket), self._level + 1)
                yield from again.tables(most)
                continue
            if waiting and int(self._sizes[waiting].sum()) + size > most:
                yield self._read(np.isin(self._segments[:, 0], waiting))
                waiting = []
            waiting.append(bucket)
        if waiting:
            yield self._read(np.isin(self._segments[:, 0], waiting))

    def _parts_of(self, bucket: int) -> Iterator[Positioned]:
        """Yield the rows of a bucket in pieces."""
        rows = np.flatnonzero(self._segments[:, 0] == bucket)
        ends = np.cumsum(_bytes_of(self._segments[rows])) // _PIECE
        for chosen in np.split(rows, np.flatnonzero(np.diff(ends)) + 1):
            yield self._read(chosen)

    def _read(self, chosen: npt.NDArray[np.bool_] | IntArray) -> Positioned:
        """Return the rows of some segments, grouped by query."""
        heads, positions, lengths, values, names, docs = zip(
            *map(self._segment, self._segments[chosen].tolist()), strict=True
        )
        head = np.concatenate(heads).astype(np.int64)
        entries = _ids_of(names, head[:, 0])
        codes, queries = entries.unique()
        order = np.argsort(codes, kind="stable")
        starts = offsets_of(head[:, 1])[:-1]
        rows = ranges_of(starts[order], head[order, 1])
        first = np.zeros(len(queries), dtype=np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        sizes = np.bincount(codes, weights=head[:, 1], minlength=len(queries))
        table = PairTable(
            queries,
            offsets_of(sizes.astype(np.int64)),
            _ids_of(docs, np.concatenate(lengths).astype(np.int64)).take(rows),
            np.concatenate(values)[rows],
            source=self._source,
            notes=tuple(self._notes),
        )
        return Positioned(table, np.concatenate(positions)[first])

    def _segment(self, place: list[int]) -> tuple[npt.NDArray[np.generic], ...]:
        _, start, queries, rows, *sizes = place
        self._file.seek(start)
        raw = self._file.read(_bytes(queries, rows, *sizes))
        at = 0

        def column(count: int, kind: str) -> npt.NDArray[np.generic]:
            nonlocal at
            found = np.frombuffer(raw, kind, count, at)
            at += found.nbytes
            return found

        return (
            column(2 * queries, "<i4").reshape(-1, 2),
            column(queries, "<i8"),
            column(rows, "<i4"),
            column(rows, "<f8"),
            column(sizes[0], "u1"),
            column(sizes[1], "u1"),
        )


def most_bytes(memory: int) -> int:
    """Return the maximum bytes of a bucket that is read at once, given a memory limit."""
    return min(memory // _SHARE, _MOST)


def temporary_file(owner: object) -> BinaryIO:
    """Return an unnamed file that is deleted with its owner or when the process ends."""
    try:
        file = cast("BinaryIO", tempfile.TemporaryFile(buffering=0))  # noqa: SIM115 - its owner's
    except OSError as error:
        raise _unwritable(error) from None
    weakref.finalize(owner, file.close)
    return file


def write_all(file: BinaryIO, parts: Iterable[memoryview]) -> int:
    """Write all bytes and return their number."""
    data = memoryview(b"".join(parts))
    done = 0
    try:
        while done < len(data):
            done += file.write(data[done:])
    except OSError as error:
        raise _unwritable(error) from None
    return done


def _unwritable(error: OSError) -> StorageError:
    return StorageError(
        f"temporary data cannot be written: {error.strerror or error}",
        where=tempfile.gettempdir(),
        fix="free about as much space as the unpacked input needs, or use another folder: TMPDIR=/path/to/folder",
    )


def _ids_of(parts: Iterable[npt.NDArray[np.generic]], lengths: IntArray) -> Ids:
    """Build ids from their concatenated bytes."""
    data = np.concatenate([*parts, np.zeros(_SPARE, dtype=np.uint8)])
    return Ids(data.view(np.uint8), offsets_of(lengths)[:-1], lengths)


def _bytes(queries: int, rows: int, names: int, docs: int) -> int:
    return 16 * queries + 12 * rows + names + docs


def _bytes_of(segments: IntArray) -> IntArray:
    found: IntArray = segments[:, 2:] @ np.array([16, 12, 1, 1])
    return found


def _split(piece: Positioned, level: int, end: int) -> tuple[IntArray, list[memoryview]]:
    """Return the segments of a piece, one for each nonempty bucket, and their bytes."""
    table = piece.table
    hashes = table.queries.hashes() * _MIX
    hashes ^= hashes >> np.uint64(29)
    hashes *= _MIX
    hashes >>= np.uint64(64 - _BITS * (level + 1))
    bucket = (hashes & np.uint64(_COUNT - 1)).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")
    sizes = np.diff(table.offsets)[order]
    rows = ranges_of(table.offsets[:-1][order], sizes)
    docs, queries = table.docs.take(rows), table.queries.take(order)
    columns = (
        np.stack([queries.lengths, sizes], axis=1).astype("<i4"),
        piece.positions[order].astype("<i8"),
        docs.lengths.astype("<i4"),
        table.values[rows].astype("<f8"),
        queries.bytes(),
        docs.bytes(),
    )
    of_queries = np.searchsorted(bucket[order], np.arange(_COUNT + 1))
    of_rows = offsets_of(sizes)[of_queries]
    cuts = (
        of_queries,
        of_queries,
        of_rows,
        of_rows,
        offsets_of(queries.lengths)[of_queries],
        offsets_of(docs.lengths)[of_rows],
    )
    found = np.zeros((_COUNT, 6), dtype=np.int64)
    found[:, 0] = np.arange(_COUNT)
    for place, cut in zip((2, 3, 4, 5), (cuts[0], cuts[2], cuts[4], cuts[5]), strict=True):
        found[:, place] = np.diff(cut)
    found[:, 1] = end + offsets_of(_bytes_of(found))[:-1]
    there = np.flatnonzero(found[:, 2])
    bounds = [cut.tolist() for cut in cuts]
    parts = [
        column[cut[bucket] : cut[bucket + 1]].data
        for bucket in there.tolist()
        for column, cut in zip(columns, bounds, strict=True)
    ]
    return found[there], [part.cast("B") for part in parts if part.nbytes]

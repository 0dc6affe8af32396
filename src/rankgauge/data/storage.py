"""Rows on disk: buckets of whole queries, and judgments that do not fit into memory.

Buckets partition rows by a hash of their query, to read back whole queries. Temporary files are
unnamed, so nothing remains however a process ends. They are created in the folder for temporary
files, set by the environment variable TMPDIR.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import BinaryIO, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Ids, IntArray
from rankgauge.core.pair_table import PairTable, heads_of, offsets_of, ranges_of
from rankgauge.core.progress import report
from rankgauge.core.text import many
from rankgauge.data.qrels import Qrels
from rankgauge.errors import StorageError
from rankgauge.formats.columns import JUDGMENTS
from rankgauge.formats.fast_trec import NotInBlocksError
from rankgauge.formats.lines import Source
from rankgauge.formats.pieces import PairFile

_T = TypeVar("_T")
_BITS = 9
_COUNT = 1 << _BITS
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
            piece_segments, parts = _split(piece, level, end)
            segments.append(piece_segments)
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
            # A bucket with nearly all rows, or still too large after four splits, contains one large
            # query, which cannot be split.
            if most < size < 0.9 * self._sizes.sum() and self._level < 4:
                rows = np.flatnonzero(self._segments[:, 0] == bucket)
                ends = np.cumsum(_bytes_of(self._segments[rows])) // _PIECE
                pieces = map(self._read, np.split(rows, np.flatnonzero(np.diff(ends)) + 1))
                yield from Buckets(pieces, self._level + 1).tables(most)
                continue
            if waiting and int(self._sizes[waiting].sum()) + size > most:
                yield self._read(np.isin(self._segments[:, 0], waiting))
                waiting = []
            waiting.append(bucket)
        if waiting:
            yield self._read(np.isin(self._segments[:, 0], waiting))

    def _read(self, chosen: npt.NDArray[np.bool_] | IntArray) -> Positioned:
        """Return the rows of some segments, grouped by query."""
        heads, positions, lengths, values, names, docs = zip(
            *map(self._segment, self._segments[chosen].tolist()), strict=True
        )
        head = np.concatenate(heads).astype(np.int64)
        codes, queries = _ids_of(names, head[:, 0]).unique()
        order = np.argsort(codes, kind="stable")
        rows = ranges_of(offsets_of(head[:, 1])[:-1][order], head[order, 1])
        first = np.zeros(len(queries), dtype=np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        sizes = np.bincount(codes, weights=head[:, 1], minlength=len(queries))
        doc_ids = _ids_of(docs, np.concatenate(lengths).astype(np.int64))
        table = PairTable(
            queries,
            offsets_of(sizes.astype(np.int64)),
            doc_ids.take(rows),
            np.concatenate(values)[rows],
            source=self._source,
            notes=tuple(self._notes),
        )
        return Positioned(table, np.concatenate(positions)[first])

    def _segment(self, place: list[int]) -> tuple[npt.NDArray[np.generic], ...]:
        _, start, queries, rows, names, docs = place
        self._file.seek(start)
        raw = self._file.read(16 * queries + 12 * rows + names + docs)
        kinds = ("<i4", "<i8", "<i4", "<f8", "u1", "u1")
        columns, at = [], 0
        for kind, count in zip(kinds, (2 * queries, queries, rows, rows, names, docs), strict=True):
            columns.append(np.frombuffer(raw, kind, count, at))
            at += columns[-1].nbytes
        return columns[0].reshape(-1, 2), *columns[1:]


def use_whole_queries(file: PairFile, use: Callable[[Iterator[Positioned]], _T]) -> _T:
    """Call a function with tables of whole queries of a file that has a memory limit.

    If the rows of a query are not adjacent, the function is called again, with tables from buckets
    on disk.
    """

    def from_buckets(memory: int) -> Iterator[Positioned]:
        buckets = Buckets(positioned(table for table, _ in file.pieces()))
        done = 0
        for part in buckets.tables(min(memory // _SHARE, _MOST)):
            yield part._replace(table=file.whole(part.table))
            done += len(part.table)
            report(done, buckets.rows, "evaluated")

    assert file.memory is not None  # noqa: S101 - only called with a limit
    # A source that can be read only once is partitioned at once.
    if file.again:
        with suppress(NotInBlocksError):
            return use(positioned(file.blocks()))
    return use(from_buckets(file.memory))


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


def _bytes_of(segments: IntArray) -> IntArray:
    return segments[:, 2:] @ np.array([16, 12, 1, 1])


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
    of_names, of_docs = offsets_of(queries.lengths)[of_queries], offsets_of(docs.lengths)[of_rows]
    segments = np.zeros((_COUNT, 6), dtype=np.int64)
    segments[:, 0] = np.arange(_COUNT)
    segments[:, 2:] = np.diff(np.stack([of_queries, of_rows, of_names, of_docs], axis=1), axis=0)
    segments[:, 1] = end + offsets_of(_bytes_of(segments))[:-1]
    filled = np.flatnonzero(segments[:, 2])
    cuts = [cut.tolist() for cut in (of_queries, of_queries, of_rows, of_rows, of_names, of_docs)]
    parts = [
        column[cut[bucket] : cut[bucket + 1]].data
        for bucket in filled.tolist()
        for column, cut in zip(columns, cuts, strict=True)
    ]
    return segments[filled], [part.cast("B") for part in parts if part.nbytes]


class StoredQrels:
    """Judgments on disk: query ids are in memory, documents are loaded for a few queries at a time.

    Created by :func:`rankgauge.evaluation.read_judgments` with `memory`; evaluates any number of
    runs.

    Attributes:
        queries: Query ids, in order of first appearance.
        judgments: Number of judgments.
        source: Name of the source.
        notes: Notes of the reader.
        low_grades: As in `Qrels`.
        highest: (Q,) highest grade of each query.
    """

    def __init__(self, source: Source, memory: int) -> None:
        file = PairFile(source, JUDGMENTS, memory)
        self.source = file.name
        use_whole_queries(file, self._store)

    def _store(self, tables: Iterable[Positioned]) -> None:
        self._files = temporary_file(self), temporary_file(self), temporary_file(self)
        parts = []
        notes: dict[str, None] = {}
        for table, places in tables:
            qrels = Qrels(table)  # refuses invalid judgments
            offsets = table.offsets
            sizes = np.diff(offsets), np.diff(offsets_of(table.docs.lengths)[offsets])
            parts.append((table.queries.compact(), places, *sizes, qrels.highest, qrels.low_grades))
            notes.update(dict.fromkeys(table.notes))
            columns = table.values.astype("<f8"), table.docs.lengths.astype("<i4"), table.docs.bytes()
            for file, column in zip(self._files, columns, strict=True):
                write_all(file, [column.data.cast("B")])
        names, *numbers = zip(*parts, strict=True)
        positions, rows, width, highest, self.low_grades = map(np.concatenate, numbers)
        order = np.argsort(positions, kind="stable")
        self.queries = Ids.joined(names)
        if (order[1:] < order[:-1]).any():
            self.queries = self.queries.take(order)
        # For each query, the offsets of its rows and of the bytes of its documents, and their
        # numbers.
        self._starts = offsets_of(rows)[:-1][order], offsets_of(width)[:-1][order]
        self._counts = rows[order].astype(np.int32), width[order]
        self.judgments = int(rows.sum())
        self.highest = highest[order]
        self.notes = tuple(notes)
        # Hash a copy, so that the hashes are not cached with `queries`.
        hashes = self.queries.take(slice(None)).hashes()
        self._by_hash = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._by_hash]

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        return f"<StoredQrels: {many(len(self), 'query')}, {many(self.judgments, 'judgment')}>"

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """Query ids as text, shared by all evaluations."""
        return tuple(self.queries.shown())

    def numbers_of(self, queries: Ids) -> IntArray:
        """Return the number of each query, or -1 if it is not judged."""
        numbers = np.full(len(queries), -1, dtype=np.int64)
        hashes = queries.hashes()
        places = np.searchsorted(self._hashes, hashes)
        rows = np.flatnonzero(places < len(self))
        rows = rows[self._hashes[places[rows]] == hashes[rows]]
        candidates = self._by_hash[places[rows]]
        same = queries.same(rows, self.queries, candidates)
        numbers[rows[same]] = candidates[same]
        rows = rows[~same]
        if len(rows):
            # Different ids have the same hash.
            known = {query: number for number, query in enumerate(self.queries.tolist())}
            numbers[rows] = [known.get(query, -1) for query in queries.take(rows).tolist()]
        return numbers

    def part(self, numbers: IntArray) -> Qrels:
        """Return the judgments of these queries, in this order."""
        starts, widths = (start[numbers] for start in self._starts)
        rows, width = (count[numbers].astype(np.int64) for count in self._counts)
        by_place = np.argsort(starts, kind="stable")
        values, lengths, docs = (
            self._read(file, first[by_place], count[by_place], item)
            for file, first, count, item in zip(
                self._files, (starts, starts, widths), (rows, rows, width), (8, 4, 1), strict=True
            )
        )
        ids = np.frombuffer(lengths, "<i4").astype(np.int64)
        column = Ids(np.frombuffer(docs + bytes(_SPARE), "u1"), offsets_of(ids)[:-1], ids)
        grades = np.frombuffer(values, "<f8")
        if (by_place[1:] < by_place[:-1]).any():
            back = np.empty_like(by_place)
            back[by_place] = np.arange(len(by_place))
            order = ranges_of(offsets_of(rows[by_place])[:-1][back], rows)
            column, grades = column.take(order), grades[order]
        queries = self.queries.take(numbers)
        return Qrels(PairTable(queries, offsets_of(rows), column, grades, unique=True, source=self.source))

    def _read(self, file: BinaryIO, starts: IntArray, counts: IntArray, item: int) -> bytes:
        """Return the items in these ascending ranges; adjacent ranges are read together."""
        if not len(starts):
            return b""
        ends = np.cumsum(counts)
        heads = heads_of(starts - ends + counts)
        sizes = np.diff(np.append(0, ends[np.append(heads[1:] - 1, len(ends) - 1)]))
        parts = []
        for start, size in zip((starts[heads] * item).tolist(), sizes.tolist(), strict=True):
            file.seek(start)
            left = size * item
            while left:  # one read may return only a part
                parts.append(file.read(left))
                left -= len(parts[-1])
        return b"".join(parts)

    def outline(self, numbers: Iterable[int] = (), leading: int = 0) -> Qrels:
        """Return all queries, but documents only for `numbers` and the first queries.

        The first queries have at least `leading` documents in total, if there are that many.
        """
        first = int(np.searchsorted(np.cumsum(self._counts[0]), leading)) + 1 if leading else 0
        chosen = sorted({*range(min(first, len(self))), *islice(numbers, len(self))})
        table = self.part(np.array(chosen, dtype=np.int64)).table
        counts = np.zeros(len(self), dtype=np.int64)
        counts[chosen] = np.diff(table.offsets)
        whole = PairTable(
            self.queries,
            offsets_of(counts),
            table.docs,
            table.values,
            unique=True,
            source=self.source,
            notes=self.notes,
        )
        outline = _Outline(whole)
        # The table has only a part of the judgments: these are the properties of all.
        vars(outline).update(stored=self, judgments=self.judgments, low_grades=self.low_grades, highest=self.highest)
        return outline


class _Outline(Qrels):
    """Judgments on disk, in the form needed by notes and checks of an evaluation."""

    stored: StoredQrels

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        return self.stored.query_ids

    def number_of(self, query: bytes) -> int | None:
        number = int(self.stored.numbers_of(Ids.of([query]))[0])
        return None if number < 0 else number

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
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Ids, IntArray, Numbering
from rankgauge.core.pair_table import FloatArray, PairTable, group_rows, heads_of, offsets_of, ranges_of
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
_SPARE = 8
# Share of memory for the raw bytes of a bucket (evaluating it takes far more), and their maximum:
# smaller buckets fit into the CPU cache and are faster.
_SHARE, _MOST = 24, 1 << 24
# Bytes of memory per row besides its document; bytes to read at a time when a bucket is split again.
_ROW = 24
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


class _Rows(NamedTuple):
    """Rows of any queries."""

    numbers: npt.NDArray[np.int32]  # number of the query of each row
    docs: Ids
    values: FloatArray


class _Split:
    """Rows on disk in buckets.

    Args:
        parts: Hashes of the queries of rows, and the rows.
        level: Number of the bits of the hash to use.
    """

    def __init__(self, parts: Iterable[tuple[npt.NDArray[np.uint64], _Rows]], level: int = 0) -> None:
        self._level, self._file = level, temporary_file(self)
        starts, cuts = [0], [np.zeros((0, 2, _COUNT + 1), dtype=np.int64)]
        for hashes, (numbers, ids, values) in parts:
            bits = hashes >> np.uint64(64 - _BITS * (level + 1)) & np.uint64(_COUNT - 1)
            offsets, grouped = group_rows(bits.astype(np.int32), _COUNT)
            docs = Ids(ids.data, grouped(ids.starts), grouped(ids.lengths))
            keys = np.stack([grouped(numbers.astype(np.int64)), docs.lengths], axis=1).astype("<i4")
            columns = keys, grouped(values).astype("<f8"), docs.bytes()
            starts.append(starts[-1] + write_all(self._file, columns))
            cuts.append(np.stack([offsets, offsets_of(docs.lengths)[offsets]])[None])
        # For each part: its place in the file, and where each bucket starts in its rows and in the bytes of their ids.
        self._starts, self._cuts = np.array(starts[:-1]), np.concatenate(cuts)
        self.rows = int(self._cuts[:, 0, -1].sum())

    def parts(self, most: int, hashes: npt.NDArray[np.uint64]) -> Iterator[_Rows]:
        """Yield rows of whole queries, about `most` bytes at a time, given the hashes of all queries."""
        of_parts = np.array([_ROW, 1]) @ np.diff(self._cuts)
        sizes, first = of_parts.sum(axis=0), 0
        for bucket, size in enumerate(sizes.tolist()):
            # A bucket with nearly all rows, or still too large after four splits, contains one large query, which
            # cannot be split.
            large = most < size < 0.9 * sizes.sum() and self._level < 4
            if first < bucket and (large or sizes[first : bucket + 1].sum() > most):
                yield self._read(first, bucket)
                first = bucket
            if large:
                ends = np.cumsum(of_parts[:, bucket]) // _PIECE
                pieces = np.split(np.arange(len(ends)), np.flatnonzero(np.diff(ends)) + 1)
                again = (self._read(bucket, bucket + 1, piece) for piece in pieces)
                yield from _Split(((hashes[rows.numbers], rows) for rows in again), self._level + 1).parts(most, hashes)
                first = bucket + 1
        if first < _COUNT:
            yield self._read(first, _COUNT)

    def _read(self, first: int, last: int, chosen: IntArray | slice = slice(None)) -> _Rows:
        """Return the rows of buckets from `first` to before `last`, of all parts or of those `chosen`."""
        cuts, starts = self._cuts[chosen], self._starts[chosen]
        rows, places = cuts[:, 0, first], cuts[:, 1, first]
        count, size = cuts[:, 0, last] - rows, cuts[:, 1, last] - places
        behind = starts + 8 * cuts[:, 0, -1]
        keys = np.frombuffer(read_ranges(self._file, starts + 8 * rows, 8 * count), "<i4").reshape(-1, 2)
        values = np.frombuffer(read_ranges(self._file, behind + 8 * rows, 8 * count), "<f8")
        docs = read_ranges(self._file, behind + 8 * cuts[:, 0, -1] + places, size)
        return _Rows(np.ascontiguousarray(keys[:, 0]), _ids_of(docs, keys[:, 1].astype(np.int64)), values)


class Buckets:
    """Rows of a source, partitioned by a hash of their query.

    Args:
        tables: Tables of consecutive rows.
    """

    def __init__(self, tables: Iterable[PairTable]) -> None:
        self._source, self._notes = "", dict[str, None]()
        names: list[Ids] = []
        self._split = _Split(self._numbered(tables, names))
        self.rows, self._queries = self._split.rows, Ids.joined(names)

    def _numbered(
        self, tables: Iterable[PairTable], names: list[Ids]
    ) -> Iterator[tuple[npt.NDArray[np.uint64], _Rows]]:
        """Yield hashes and rows of tables, and add their queries to `names` in the order of their numbers."""
        numbering = Numbering()
        for table in tables:
            self._source = self._source or table.source
            self._notes.update(dict.fromkeys(table.notes))
            numbers, new = numbering.add(table.queries)
            names.append(new)
            hashes, sizes = table.queries.hashes(), np.diff(table.offsets)
            yield np.repeat(hashes, sizes), _Rows(np.repeat(numbers, sizes), table.docs, table.values)

    def tables(self, most: int) -> Iterator[Positioned]:
        """Yield whole queries, about `most` bytes at a time; larger queries alone."""
        hashes = self._queries.hashes()
        order = np.argsort(hashes, kind="stable")
        places = np.empty(len(order), dtype=np.int32)
        places[order] = np.arange(len(order))
        for numbers, docs, values in self._split.parts(most, hashes):
            if not len(numbers):
                continue
            # The queries of adjacent buckets are adjacent in the order of hashes.
            codes = places[numbers]
            first, last = int(codes.min()), int(codes.max()) + 1
            offsets, grouped = group_rows(codes - first, last - first)
            table = PairTable(
                self._queries.take(order[first:last]),
                offsets,
                Ids(docs.data, grouped(docs.starts), grouped(docs.lengths)),
                grouped(values),
                source=self._source,
                notes=tuple(self._notes),
            )
            yield Positioned(table, order[first:last])


def use_whole_queries(file: PairFile, use: Callable[[Iterator[Positioned]], _T]) -> _T:
    """Call a function with tables of whole queries of a file that has a memory limit.

    If the rows of a query are not adjacent, the function is called again, with tables from buckets
    on disk.
    """

    def from_buckets(memory: int) -> Iterator[Positioned]:
        buckets = Buckets(table for table, _ in file.pieces())
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


def write_all(file: BinaryIO, parts: Iterable[Any]) -> int:
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


def read_ranges(file: BinaryIO, starts: IntArray, counts: IntArray) -> bytes:
    """Return the bytes in these ascending ranges; adjacent ranges are read together."""
    before = offsets_of(counts)
    heads = heads_of(starts - before[:-1])
    sizes = np.diff(before[np.append(heads, len(starts))])
    parts = []
    for start, size in zip(starts[heads].tolist(), sizes.tolist(), strict=True):
        file.seek(start)
        left = size
        while left:  # one read may return only a part
            parts.append(file.read(left))
            left -= len(parts[-1])
    return b"".join(parts)


def _ids_of(data: bytes, lengths: IntArray) -> Ids:
    """Return ids, given their concatenated bytes."""
    return Ids(np.frombuffer(data + bytes(_SPARE), "u1"), offsets_of(lengths)[:-1], lengths)


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
                write_all(file, [column])
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
            read_ranges(file, item * first[by_place], item * count[by_place])
            for file, first, count, item in zip(
                self._files, (starts, starts, widths), (rows, rows, width), (8, 4, 1), strict=True
            )
        )
        column = _ids_of(docs, np.frombuffer(lengths, "<i4").astype(np.int64))
        grades = np.frombuffer(values, "<f8")
        if (by_place[1:] < by_place[:-1]).any():
            back = np.empty_like(by_place)
            back[by_place] = np.arange(len(by_place))
            order = ranges_of(offsets_of(rows[by_place])[:-1][back], rows)
            column, grades = column.take(order), grades[order]
        queries = self.queries.take(numbers)
        return Qrels(PairTable(queries, offsets_of(rows), column, grades, unique=True, source=self.source))

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

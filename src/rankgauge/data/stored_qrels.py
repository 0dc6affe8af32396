"""Judgments stored on disk, for judgments that do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Ids, IntArray
from rankgauge.core.pair_table import FloatArray, PairTable, heads_of, offsets_of, ranges_of
from rankgauge.core.text import many
from rankgauge.data.buckets import Buckets, Positioned, most_bytes, positioned, temporary_file, write_all
from rankgauge.data.qrels import Qrels
from rankgauge.formats.columns import JUDGMENTS
from rankgauge.formats.lines import Source
from rankgauge.formats.pieces import Pieces, ScatteredQueriesError, whole_queries

_SPARE = 8


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
        pieces = Pieces(source, JUDGMENTS, memory)
        self.source = pieces.name
        scattered = not pieces.again
        if not scattered:
            try:
                self._store(positioned(whole_queries((piece, False) for piece in pieces)))
            except ScatteredQueriesError:
                scattered = True
        if scattered:
            self._store(Buckets(positioned(pieces)).tables(most_bytes(memory)))

    def _store(self, tables: Iterable[Positioned]) -> None:
        self._files = temporary_file(self), temporary_file(self), temporary_file(self)
        names, positions, sizes, widths, highest, low = [], [], [], [], [], [np.zeros(0)]
        notes: dict[str, None] = {}
        for table, places in tables:
            qrels = Qrels(table)  # refuses invalid judgments
            offsets = table.offsets
            names.append(table.queries.compact())
            positions.append(places)
            sizes.append(np.diff(offsets))
            widths.append(np.diff(offsets_of(table.docs.lengths)[offsets]))
            highest.append(_highest(table))
            low.append(qrels.low_grades)
            notes.update(dict.fromkeys(table.notes))
            lengths = table.docs.lengths.astype("<i4")
            columns = table.values.astype("<f8"), lengths, table.docs.bytes()
            for file, column in zip(self._files, columns, strict=True):
                write_all(file, [column.data.cast("B")])
        order = np.argsort(np.concatenate(positions), kind="stable")
        self.queries = Ids.joined(names)
        if (order[1:] < order[:-1]).any():
            self.queries = self.queries.take(order)
        rows, width = np.concatenate(sizes), np.concatenate(widths)
        # For each query, the offsets of its rows and of the bytes of its documents, and their
        # numbers.
        self._starts = offsets_of(rows)[:-1][order], offsets_of(width)[:-1][order]
        self._counts = rows[order].astype(np.int32), width[order]
        self.judgments = int(rows.sum())
        self.highest = np.concatenate(highest)[order]
        self.low_grades = np.concatenate(low)
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
        found = np.full(len(queries), -1, dtype=np.int64)
        hashes = queries.hashes()
        places = np.searchsorted(self._hashes, hashes)
        rows = np.flatnonzero(places < len(self))
        rows = rows[self._hashes[places[rows]] == hashes[rows]]
        candidates = self._by_hash[places[rows]]
        same = queries.same(rows, self.queries, candidates)
        found[rows[same]] = candidates[same]
        rows = rows[~same]
        if len(rows):
            # Different ids have the same hash.
            known = {query: number for number, query in enumerate(self.queries.tolist())}
            found[rows] = [known.get(query, -1) for query in queries.take(rows).tolist()]
        return found

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
        table = PairTable(queries, offsets_of(rows), column, grades, unique=True)
        return Qrels(table.with_notes(source=self.source))

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
            parts.append(_all_of(file, size * item))
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
        return _Outline(whole, self)


class _Outline(Qrels):
    """Judgments on disk, in the form needed by notes and checks of an evaluation."""

    stored: StoredQrels

    def __init__(self, table: PairTable, stored: StoredQrels) -> None:
        super().__init__(table)
        object.__setattr__(self, "stored", stored)

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        return self.stored.query_ids

    def number_of(self, query: bytes) -> int | None:
        number = int(self.stored.numbers_of(Ids.of([query]))[0])
        return None if number < 0 else number

    @property
    def judgments(self) -> int:
        return self.stored.judgments

    @cached_property
    def low_grades(self) -> FloatArray:
        return self.stored.low_grades

    def lacking(self, level: float) -> npt.NDArray[np.bool_]:
        lack: npt.NDArray[np.bool_] = self.stored.highest < level
        return lack


def _highest(table: PairTable) -> FloatArray:
    """Return the highest value of each query."""
    sizes = np.diff(table.offsets)
    found = np.full(len(sizes), -np.inf)
    filled = sizes > 0
    found[filled] = np.maximum.reduceat(table.values, table.offsets[:-1][filled])
    return found


def _all_of(file: BinaryIO, size: int) -> bytes:
    """Read exactly `size` bytes, in several reads if necessary."""
    data = file.read(size)
    while len(data) < size:
        data += file.read(size - len(data))
    return data

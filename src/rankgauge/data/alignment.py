"""Alignment of runs: each document of a query once, with its row in every run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, takewhile
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from rankgauge.core import native
from rankgauge.core.ids import Ids, IntArray, freeze
from rankgauge.core.pair_table import FloatArray, PairTable, heads_of, offsets_of
from rankgauge.data.run import Run, joined_run, name_of
from rankgauge.data.subsets import of_queries
from rankgauge.errors import InputError
from rankgauge.formats.columns import RUN
from rankgauge.formats.pieces import PairFile

_T = TypeVar("_T")

# Number of rows of all runs that are aligned at once: fits in the cache.
_ROWS = 1 << 15


@dataclass(frozen=True, eq=False)
class Alignment:
    """Aligned runs: R runs, Q queries, and U distinct pairs of query and document.

    Attributes:
        tables: The runs, each in rank order.
        queries: The queries of all runs, in order of first appearance.
        offsets: (Q + 1,) offsets of the queries: the pairs of query q are
            ``offsets[q]:offsets[q + 1]``.
        docs: The document of each pair.
        rows: (U, R) the row of each pair in each table; -1 if the run has not retrieved it.
        starts: (Q, R) the first row of each query in each table.
        retrieved: (Q, R) the number of documents retrieved by each run for each query.
    """

    tables: tuple[PairTable, ...]
    queries: Ids
    offsets: IntArray
    docs: Ids
    rows: IntArray
    starts: IntArray
    retrieved: IntArray

    def __post_init__(self) -> None:
        freeze(self.offsets, self.rows, self.starts, self.retrieved)

    def of_runs(self, runs: Sequence[int]) -> Alignment:
        """Return the pairs that any of these runs retrieved; queries remain even without pairs."""
        if len(runs) == len(self.tables):
            return self
        rows = self.rows[:, runs]
        kept = np.flatnonzero((rows >= 0).any(axis=1))
        return Alignment(
            tables=tuple(self.tables[run] for run in runs),
            queries=self.queries,
            offsets=np.searchsorted(kept, self.offsets),
            docs=self.docs.take(kept),
            rows=rows[kept],
            starts=self.starts[:, runs],
            retrieved=self.retrieved[:, runs],
        )

    def table(self, values: FloatArray, source: str = "") -> PairTable:
        """Return a table of the pairs with these values."""
        return PairTable(self.queries, self.offsets, self.docs, values, unique=True, source=source)

    def blocks(self) -> Iterator[Block]:
        """Yield the pairs in blocks of whole queries."""
        sizes, heads = np.diff(self.offsets), heads_of(self.offsets[:-1] * len(self.tables) // _ROWS)
        for first, stop in pairwise([*heads.tolist(), len(sizes)]):
            rows = self.rows[self.offsets[first] : self.offsets[stop]]
            query, present = np.repeat(np.arange(stop - first), sizes[first:stop]), rows >= 0
            yield Block(
                rows=rows,
                rank=(rows - np.repeat(self.starts[first:stop] - 1, sizes[first:stop], axis=0)) * present,
                present=present,
                query=query,
                retrieved=self.retrieved[first:stop],
            )


@dataclass(frozen=True, eq=False)
class Block:
    """A block of queries of aligned runs.

    Attributes:
        rows: (U, R) the row of each pair in each table; -1 if missing.
        rank: (U, R) the rank in each run, from 1; 0 if missing.
        present: (U, R) whether each run retrieved the pair.
        query: (U,) the number of the query in this block, ascending.
        retrieved: (Q, R) the number of documents retrieved by each run for each query.
    """

    rows: IntArray
    rank: IntArray
    present: npt.NDArray[np.bool_]
    query: IntArray
    retrieved: IntArray

    @cached_property
    def cells(self) -> IntArray:
        """(U, R) the place of each rank in a table with a row for each rank and a column for each run."""
        return self.rank * self.rank.shape[1] + np.arange(self.rank.shape[1])

    @property
    def sizes(self) -> IntArray:
        """(Q,) number of distinct documents of each query."""
        return np.bincount(self.query, minlength=len(self.retrieved))


class _Queue:
    """Queries of a run that have been read but not taken; the last block is in a reused buffer."""

    def __init__(self, source: Any) -> None:
        name = name_of(source)
        self._blocks = (
            iter([source])
            if isinstance(source, Run)
            else (Run(table, name=name) for table in PairFile(source, RUN).blocks())
        )
        self._parts: list[Run] = []
        self.ended = False

    def read(self) -> None:
        """Read the next block."""
        if self._parts:
            last = self._parts.pop()
            self._parts += [replace(last, table=last.table.compact())] if len(last) else []
        block = next(self._blocks, None)
        self.ended = block is None
        self._parts += [] if block is None else [block]

    @property
    def queries(self) -> list[bytes]:
        """Query ids in the order of the file."""
        return [query for part in self._parts for query in part.query_index]

    def take(self, queries: Collection[bytes]) -> Run:
        """Remove these queries from the queue, if present, and return them as a run."""
        taken = []
        for place, part in enumerate(self._parts):
            inside = np.array([query in queries for query in part.query_index], dtype=bool)
            if inside.all():
                taken.append(part)
                self._parts[place] = Run.of({})
                continue
            taken.append(replace(part, table=of_queries(part.table, np.flatnonzero(inside))))
            self._parts[place] = replace(part, table=of_queries(part.table, np.flatnonzero(~inside)))
        last = self._parts[-1:]
        self._parts = [part for part in self._parts[:-1] if len(part)] + last
        return joined_run([part for part in taken if len(part)] or [Run.of({})])


def query_blocks(sources: Sequence[Any]) -> Iterator[list[Run]]:
    """Yield blocks of queries of all runs, in order of first appearance, reading files lazily.

    A block is valid until the next is requested. If files have different orders of queries, queries
    are kept in memory until they have been read from every file.

    Raises:
        NotInBlocksError: If a file cannot be read in blocks.
    """
    queues = [_Queue(source) for source in sources]
    for place, lead in enumerate(queues):
        others = queues[place + 1 :]
        while True:
            ahead = lead.queries
            if not ahead:
                if lead.ended:
                    break
                lead.read()
                continue
            known = [None if queue.ended else {*queue.queries} for queue in others]
            ready = takewhile(lambda query: all(k is None or query in k for k in known), ahead)  # noqa: B023
            some = dict.fromkeys(ready)
            if some:
                yield [queue.take(some) for queue in queues]
                continue
            for queue, there in zip(others, known, strict=True):
                if there is not None and ahead[0] not in there:
                    queue.read()


def map_query_blocks(sources: Sequence[Any], function: Callable[[Iterator[list[Run]]], _T]) -> _T:
    """Call a function with blocks of runs; again with whole runs if a run cannot be split."""
    with suppress(InputError):
        return function(query_blocks(sources))
    # An error in a block occurs again here, with the correct line numbers.
    return function(query_blocks([Run.of(source) for source in sources]))


def align(runs: Sequence[Run]) -> Alignment:
    """Align runs.

    Args:
        runs: The runs, each in rank order (see `ranked`) and without duplicate documents.
    """
    tables = tuple(run.table for run in runs)
    codes, queries = Ids.joined([table.queries.compact() for table in tables]).unique()
    starts = np.zeros((len(queries), len(tables)), dtype=np.int64)
    sizes = np.zeros_like(starts)
    ends = np.cumsum([len(table.queries) for table in tables])
    numbers = np.split(codes, ends[:-1])
    for number, (own, table) in enumerate(zip(numbers, tables, strict=True)):
        starts[own, number] = table.offsets[:-1]
        sizes[own, number] = np.diff(table.offsets)
    rows, counts, docs = _documents(tables, numbers, starts, sizes)
    return Alignment(
        tables=tables, queries=queries, offsets=offsets_of(counts), docs=docs, rows=rows, starts=starts, retrieved=sizes
    )


def _documents(
    tables: Sequence[PairTable], numbers: Sequence[IntArray], starts: IntArray, sizes: IntArray
) -> tuple[IntArray, IntArray, Ids]:
    """Return rows of documents in each table, numbers of documents per query, and documents."""
    if native.core is not None:
        columns = [(*table.docs.columns(), table.docs.hashes()) for table in tables]
        aligned = native.core.align(columns, starts, sizes)
        if aligned is not None:
            rows, counts, first, lengths = (np.frombuffer(aligned[n], np.int64) for n in (0, 1, 3, 4))
            hashes = np.frombuffer(aligned[5], np.uint64)
            docs = Ids(np.frombuffer(aligned[2], np.uint8), first, lengths, hashes)
            return rows.reshape(-1, len(tables)), counts, docs
    docs = Ids.joined([table.docs for table in tables])
    codes, names = docs.unique()
    query = np.concatenate([own[table.query_numbers()] for own, table in zip(numbers, tables, strict=True)])
    keys = query * len(names) + codes
    order = np.argsort(keys, kind="stable")
    new = np.append(True, np.diff(keys[order]) != 0)[: len(order)]
    many = [len(table) for table in tables]
    rows = np.full((int(np.count_nonzero(new)), len(tables)), -1, dtype=np.int64)
    group, run = np.cumsum(new) - 1, np.repeat(np.arange(len(tables)), many)
    rows[group, run[order]] = np.concatenate([np.arange(size) for size in many])[order]
    heads = order[new]
    return rows, np.bincount(query[heads], minlength=len(sizes)), docs.take(heads)

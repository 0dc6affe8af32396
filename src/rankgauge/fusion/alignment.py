"""Several runs side by side: each document of a query once, with its row in every run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from rankgauge.core import native
from rankgauge.core.ids import Ids, IntArray, freeze
from rankgauge.core.pair_table import PairTable, offsets_of, ranges_of
from rankgauge.data.run import NotInBlocksError, Run, joined_run, sure_blocks
from rankgauge.data.subsets import of_queries
from rankgauge.errors import InputError

_T = TypeVar("_T")

# Rows of all runs that are aligned at once: small enough for the cache.
_ROWS = 1 << 15
# Rows of each run, documents of the pairs, pairs of each query, and places with the same document.
_Aligned: TypeAlias = tuple[IntArray, IntArray, IntArray, tuple[IntArray, IntArray]]
# A key holds the number of the query in its block above so many bits of the hash of a document.
_HASH_BITS = 48
_QUERIES = 1 << (64 - _HASH_BITS)


@dataclass(frozen=True, eq=False)
class Alignment:
    """R runs side by side: Q queries with U pairs of query and document, each once.

    Attributes:
        tables: The runs, each in the order of its ranks.
        queries: The queries that any run has, in order of first appearance.
        offsets: (Q + 1,) the pairs of query q are ``offsets[q]:offsets[q + 1]``.
        docs: The document of each pair.
        rows: (U, R) its row in each table, -1 where a run has not retrieved it.
        starts: (Q, R) the first row of each query in each table.
        retrieved: (Q, R) how many documents each run retrieved for each query.
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

    def blocks(self, runs: IntArray) -> Iterator[Block]:
        """All pairs that one of these runs retrieved, whole queries at a time."""
        sizes = np.diff(self.offsets)
        for first, stop in _cut(sizes * len(runs)):
            pairs = np.arange(self.offsets[first], self.offsets[stop])
            query = np.repeat(np.arange(stop - first), sizes[first:stop])
            rows = self.rows[self.offsets[first] : self.offsets[stop]]
            if len(runs) < rows.shape[1]:
                rows = rows[:, runs]
                kept = np.flatnonzero((rows >= 0).any(axis=1))
                pairs, rows, query = pairs[kept], rows[kept], query[kept]
            found = rows >= 0
            yield Block(
                pairs=pairs,
                rows=rows,
                rank=(rows - (self.starts[first:stop, runs] - 1)[query]) * found,
                found=found,
                query=query,
                retrieved=self.retrieved[first:stop, runs],
            )


@dataclass(frozen=True, eq=False)
class Block:
    """Some queries of aligned runs.

    Attributes:
        pairs: (U,) which pairs they are.
        rows: (U, R) the row of each in the table of each run, -1 where it is missing.
        rank: (U, R) its rank in each run, from 1; 0 where it is missing.
        found: (U, R) whether a run retrieved it.
        query: (U,) the number of its query in this block, ascending.
        retrieved: (Q, R) how many documents each run retrieved for each query.
    """

    pairs: IntArray
    rows: IntArray
    rank: IntArray
    found: npt.NDArray[np.bool_]
    query: IntArray
    retrieved: IntArray

    @property
    def sizes(self) -> IntArray:
        """(Q,) how many different documents each query has."""
        return np.bincount(self.query, minlength=len(self.retrieved))


class _Queue:
    """Queries of a run that were read and not taken yet, the last in memory that is used again."""

    def __init__(self, source: Any) -> None:
        self._blocks = sure_blocks(source)
        self._parts: list[Run] = []
        self.ended = False

    def read(self) -> None:
        """Read a block."""
        if self._parts:
            last = self._parts.pop()
            self._parts += [replace(last, table=last.table.compact())] * bool(len(last))
        block = next(self._blocks, None)
        self.ended = block is None
        self._parts += [] if block is None else [block]

    @property
    def queries(self) -> list[bytes]:
        """Their ids, in the order of the file."""
        return [query for part in self._parts for query in part.query_index]

    def take(self, queries: Collection[bytes]) -> Run:
        """Take these queries out, those that are there."""
        taken = []
        for place, part in enumerate(self._parts):
            inside = np.array([query in queries for query in part.query_index], dtype=bool)
            if inside.all():
                taken.append(part)
                self._parts[place] = Run.of({})
                continue
            taken.append(replace(part, table=of_queries(part.table, np.flatnonzero(inside))))
            left = of_queries(part.table, np.flatnonzero(~inside))
            self._parts[place] = replace(part, table=left)
        last = self._parts[-1:]
        self._parts = [part for part in self._parts[:-1] if len(part)] + last
        return joined_run([part for part in taken if len(part)] or [Run.of({})])


def query_blocks(sources: Sequence[Any]) -> Iterator[list[Run]]:
    """Some queries of all runs at a time, in order of first appearance; of files as little as can.

    A block is good until the next is asked for. Files whose queries are in different orders stay
    in memory until both have been read.

    Raises:
        NotInBlocksError: If one of the files must be read whole.
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
            known = [None if one.ended else {*one.queries} for one in others]
            ready = takewhile(lambda query: all(k is None or query in k for k in known), ahead)  # noqa: B023
            some = dict.fromkeys(ready)
            if some:
                yield [one.take(some) for one in queues]
                continue
            for one, there in zip(others, known, strict=True):
                if there is not None and ahead[0] not in there:
                    one.read()


def map_query_blocks(sources: Sequence[Any], function: Callable[[Iterator[list[Run]]], _T]) -> _T:
    """Call a function with the blocks of runs; again with whole runs if one cannot be cut."""
    with suppress(NotInBlocksError, InputError):
        return function(query_blocks(sources))
    # What was refused of a block is refused of the whole, with the numbers of its lines.
    return function(query_blocks([Run.of(source) for source in sources]))


def align(runs: Sequence[Run]) -> Alignment:
    """Put runs side by side.

    Args:
        runs: Each in the order of its ranks (see `ranked`), every document once.
    """
    tables = tuple(run.table for run in runs)
    codes, queries = Ids.joined([table.queries.compact() for table in tables]).unique()
    starts = np.zeros((len(queries), len(tables)), dtype=np.int64)
    sizes = np.zeros_like(starts)
    before = 0
    for number, table in enumerate(tables):
        own = codes[before : before + len(table.queries)]
        before += len(table.queries)
        starts[own, number] = table.offsets[:-1]
        sizes[own, number] = np.diff(table.offsets)
    rows, counts, docs = _documents(tables, starts, sizes)
    return Alignment(
        tables=tables,
        queries=queries,
        offsets=offsets_of(counts),
        docs=docs,
        rows=rows,
        starts=starts,
        retrieved=sizes,
    )


def _documents(
    tables: Sequence[PairTable], starts: IntArray, sizes: IntArray
) -> tuple[IntArray, IntArray, Ids]:
    """Rows of each document in each table, documents of each query, and the documents."""
    if native.core is not None:
        columns = [(*table.docs.columns(), table.docs.hashes()) for table in tables]
        found = native.core.align(columns, starts, sizes)
        if found is not None:
            rows, counts, first, lengths = (np.frombuffer(found[n], np.int64) for n in (0, 1, 3, 4))
            hashes = np.frombuffer(found[5], np.uint64)
            docs = Ids(np.frombuffer(found[2], np.uint8), first, lengths, hashes)
            return rows.reshape(-1, len(tables)), counts, docs
    docs = Ids.joined([table.docs for table in tables])
    bases = offsets_of([len(table) for table in tables])[:-1]
    cuts = [*_cut(sizes.sum(axis=1))] or [(0, 0)]
    parts = [_side_by_side(docs, bases, starts[a:b].T, sizes[a:b].T) for a, b in cuts]
    alike = np.concatenate([part[3] for part in parts], axis=1)
    if not docs.same(alike[0], docs, alike[1]).all():
        # Two different ids have one hash.
        parts = [
            _side_by_side(docs, bases, starts[a:b].T, sizes[a:b].T, by_id=True) for a, b in cuts
        ]
    rows, heads, counts = (np.concatenate([part[n] for part in parts]) for n in range(3))
    return rows, counts, docs.take(heads)


def _side_by_side(
    docs: Ids, bases: IntArray, starts: IntArray, sizes: IntArray, *, by_id: bool = False
) -> _Aligned:
    """Align queries by the hashes of their documents, or by their ids."""
    runs, queries = starts.shape
    flat = sizes.ravel()
    local = ranges_of(starts.ravel(), flat)
    run = np.repeat(np.arange(runs), sizes.sum(axis=1))
    query = np.repeat(np.tile(np.arange(queries), runs), flat)
    place = bases[run] + local
    new = np.ones(len(place), dtype=bool)
    if by_id:
        order = docs.descending(place, query)
        at = place[order]
        new[1:] = (np.diff(query[order]) != 0) | ~docs.same(at[1:], docs, at[:-1])
    else:
        keys = query.astype(np.uint64) << np.uint64(_HASH_BITS)
        keys |= docs.hashes()[place] >> np.uint64(64 - _HASH_BITS)
        order = np.argsort(keys)
        at, keys = place[order], keys[order]
        new[1:] = keys[1:] != keys[:-1]
    group = np.cumsum(new) - 1
    rows = np.full((int(np.count_nonzero(new)), runs), -1, dtype=np.int64)
    rows[group, run[order]] = local[order]
    alike = np.flatnonzero(~new)
    counts = np.bincount(query[order[new]], minlength=queries)
    return rows, at[new], counts, (at[alike], at[alike - 1])


def _cut(width: IntArray) -> Iterator[tuple[int, int]]:
    """Ranges of queries with at most so many rows, one query at least."""
    ends = np.cumsum(width)
    first = 0
    while first < len(width):
        before = int(ends[first - 1]) if first else 0
        stop = int(np.searchsorted(ends, before + _ROWS, side="right"))
        stop = max(first + 1, min(stop, first + _QUERIES))
        yield first, stop
        first = stop

"""Rank documents by a tie policy; join judgments and a run once, as the input of every measure.

Three steps of the join operate on whole columns:

1. *match*: find the rows of the run that are judged. Candidates are found by 64-bit keys and
   confirmed by comparing ids, so a collision costs time but never changes a number;
2. *rank*: compute the ranks of those rows from their scores, comparing ids only within groups of
   equal scores that contain a judged document;
3. *lay out*: arrange the rows of each query side by side, in blocks of bounded size. No value
   depends on how queries are divided into blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from rankgauge.core import native
from rankgauge.core.arguments import integer
from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import FloatArray, PairTable, distinct, heads_of, offsets_of, ranges_of
from rankgauge.core.policies import BY_GRADE, Order, order_of
from rankgauge.data.judged_run import UNRANKED, JudgedRun
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run

# Cells per block: small enough for the CPU cache, large enough to amortize NumPy calls.
CELLS = 1 << 17
_T = TypeVar("_T", bound=np.generic)


def by_grade(query: IntArray, group: tuple[IntArray, IntArray], grade: FloatArray, ties: str) -> IntArray:
    """Return the ranks of judged documents if ties are broken by grade.

    Within groups of equal scores, higher grades come first and unjudged documents last; ``worst``
    reverses this. Ids do not matter: documents with equal grades are interchangeable in every
    measure.
    """
    first, last = group
    rank = first.copy()
    tied = np.flatnonzero(last > first)
    if not len(tied):
        return rank
    query, first, last, grade = query[tied], first[tied], last[tied], grade[tied]
    order = np.lexsort((grade if ties == "worst" else -grade, first, query))
    query, first, last = query[order], first[order], last[order]
    heads = heads_of(query, first)
    members = np.diff(np.append(heads, len(order)))
    places = np.arange(len(order)) - np.repeat(heads, members)
    if ties == "worst":
        # Unjudged documents come first.
        places += last - first + 1 - np.repeat(members, members)
    rank[tied[order]] = first + places
    return rank


def ranked(run: Run, *, ties: Order = "trec", depth: int | None = None) -> Run:
    """Return the run with the documents of each query in ranked order.

    Evaluation does not need this, since it ranks only judged documents. Use it to print rankings or
    to create other runs.

    Args:
        run: The run.
        ties: Order of documents with equal scores.
        depth: Number of documents to keep for each query; default: all.

    Raises:
        InputError: If a ranking has a duplicate document, or the depth is invalid.
        UnknownName: If the tie policy requires judgments.

    Example:
        >>> list(ranked(Run.of({"q1": {"d1": 0.5, "d2": 0.75, "d3": 0.5}}))["q1"])
        ['d2', 'd3', 'd1']
    """
    ties = order_of(ties)
    table = run.without_repeats("error").table
    depth = None if depth is None else min(integer("depth", depth, least=0), len(table))
    order = table.ranked_rows(by_id=ties == "trec")
    if depth is not None:
        sizes = np.minimum(np.diff(table.offsets), depth)
        top = ranges_of(table.offsets[:-1], sizes)
        order = top if order is None else order[top]
        table = replace(table, offsets=offsets_of(sizes))
    if order is not None:
        table = replace(table, docs=table.docs.take(order), values=table.values[order])
    return replace(run, table=replace(table, unique=True, lines=None, ranks=None))


def tie_groups(table: PairTable) -> tuple[IntArray, IntArray]:
    """Return the query and the size of each group of two or more documents with equal scores."""
    heads = table.best_first(by_id=False)[1]
    sizes = np.diff(heads)
    tied = np.flatnonzero(sizes > 1)
    return query_of(table, heads[tied]), sizes[tied]


def query_of(table: PairTable, rows: IntArray) -> IntArray:
    """Return the number of each row's query."""
    return np.searchsorted(table.offsets, rows, side="right") - 1


def ranks_of(table: PairTable, rows: IntArray, ties: str) -> tuple[IntArray, IntArray, IntArray]:
    """Return the ranks of these rows within their queries, and of the ends of their tie groups."""
    order, heads = table.best_first(by_id=ties == "trec")
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    place = places[rows]
    group = np.searchsorted(heads, place, side="right") - 1
    before = table.offsets[query_of(table, rows)]
    return place - before + 1, heads[group] - before + 1, heads[group + 1] - before


def cut(order: IntArray, width: IntArray, cells: int) -> Iterator[IntArray]:
    """Split `order` (by ascending width) into pieces with at most `cells` padded cells each."""
    start = 0
    while start < len(order):
        ahead = width[order[start : start + cells]]
        fits = np.searchsorted(np.arange(1, len(ahead) + 1) * ahead, cells, side="right")
        stop = start + max(1, int(fits))
        yield order[start:stop]
        start = stop


def padded(starts: IntArray, sizes: IntArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Return row indices from each start on, (n, J) with J >= 1, and a mask without padding."""
    columns = np.arange(max(1, int(sizes.max(initial=0))))
    filled = columns < sizes[:, None]
    return np.where(filled, starts[:, None] + columns, 0), filled


def gather(values: npt.NDArray[_T], rows: IntArray, filled: npt.NDArray[np.bool_], pad: float) -> npt.NDArray[_T]:
    """Return the values at these rows; `pad` in padding cells."""
    if not len(values):
        return np.full(rows.shape, pad, dtype=values.dtype)
    cells = values[rows]
    cells[~filled] = pad
    return cells


@dataclass(frozen=True, eq=False)
class Joined:
    """Ranked judged documents of a run, in order of query number and rank."""

    qrels: Qrels  # the judgments
    numbers: IntArray  # (n,) numbers in the judgments of the queries that the run has, ascending
    offsets: IntArray  # (n + 1,) entries of its i-th query are `offsets[i]:offsets[i + 1]`
    rank: IntArray  # rank of each entry
    tie_first: IntArray  # first rank of its group of equal scores
    tie_last: IntArray  # last rank of its group
    grade: FloatArray  # its grade
    retrieved: IntArray  # (n,) number of documents retrieved
    in_run: IntArray  # (n,) numbers of these queries in the run
    unknown_queries: IntArray  # numbers in the run of queries without judgments
    rows: IntArray  # row of each entry's judgment

    @classmethod
    def of_entries(
        cls,
        qrels: Qrels,
        of_run: IntArray,
        rows: IntArray,
        ranks: Sequence[IntArray],
        *,
        retrieved: IntArray,
        ties: str,
    ) -> Joined:
        """Join entries in any order, given their judgment rows and their ranks by score and id.

        `of_run` is the number in the judgments of each query of the run, or -1; `retrieved` is its
        number of documents.
        """
        rank, first, last = ranks
        number, grade = query_of(qrels.table, rows), qrels.table.values[rows]
        if ties in BY_GRADE:
            rank = by_grade(number, (first, last), grade, ties)
        # By number in the judgments; queries without judgments sort first and are dropped.
        by_number = np.argsort(of_run, kind="stable")
        by_number = by_number[of_run[by_number] >= 0]
        numbers = of_run[by_number]
        order = _order(number, rank)
        starts = np.searchsorted(number[order], numbers)
        return cls(
            qrels=qrels,
            numbers=numbers,
            offsets=np.append(starts, len(number)),
            rank=rank[order],
            tie_first=first[order],
            tie_last=last[order],
            grade=grade[order],
            retrieved=retrieved[by_number],
            in_run=by_number,
            unknown_queries=np.flatnonzero(of_run < 0),
            rows=rows[order],
        )

    @classmethod
    def empty(cls, qrels: Qrels) -> Joined:
        """Return the join of a run without queries."""
        none = np.zeros(0, dtype=np.int64)
        return cls(qrels, none, np.zeros(1, dtype=np.int64), none, none, none, np.zeros(0), none, none, none, none)

    def blocks(self, queries: IntArray, cells: int = CELLS) -> Iterator[tuple[IntArray, JudgedRun]]:
        """Yield judged runs of blocks of these queries, with their indices in `queries`.

        Queries that the run does not have retrieve nothing.
        """
        grades, ideal_offsets = self.qrels.ideal
        starts, sizes, retrieved = self._entries(queries)
        pools = ideal_offsets[queries + 1] - ideal_offsets[queries]
        width = np.maximum(np.maximum(sizes, pools), 1)
        # Group queries of similar width, so that a deep query does not pad the others.
        for places in cut(np.argsort(width, kind="stable"), width, cells):
            rows, filled = padded(starts[places], sizes[places])
            grade = gather(self.grade, rows, filled, 0.0)
            pool, pooled = padded(ideal_offsets[queries[places]], pools[places])
            yield (
                places,
                JudgedRun(
                    rank=gather(self.rank, rows, filled, UNRANKED),
                    grade=grade,
                    in_qrels=filled,
                    judged=filled & (grade >= 0),
                    tie_first=gather(self.tie_first, rows, filled, UNRANKED),
                    tie_last=gather(self.tie_last, rows, filled, UNRANKED),
                    retrieved=retrieved[places],
                    ideal=gather(grades, pool, pooled, -1.0),
                    n_judged=pools[places],
                ),
            )

    def reordered(self, ties: str) -> Joined:
        """Return the join with equal scores ordered by grade."""
        numbers = np.repeat(self.numbers, np.diff(self.offsets))
        rank = by_grade(numbers, (self.tie_first, self.tie_last), self.grade, ties)
        order = np.lexsort((rank, numbers))
        # Documents stay within their groups, whose bounds do not change.
        return replace(self, rank=rank[order], grade=self.grade[order], rows=self.rows[order])

    def of_judgments(self, fewer: Qrels, kept: npt.NDArray[np.bool_]) -> Joined:
        """Return the join with `fewer` judgments of the same queries, those that are `kept`."""
        some = np.flatnonzero(kept[self.rows])
        columns = {name: getattr(self, name)[some] for name in ("rank", "tie_first", "tie_last", "grade")}
        rows = (np.cumsum(kept) - 1)[self.rows[some]]
        return replace(self, qrels=fewer, offsets=np.searchsorted(some, self.offsets), rows=rows, **columns)

    def _entries(self, queries: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return the first entry, number of entries, and documents retrieved for each query."""
        nothing = np.zeros(len(queries), dtype=np.int64)
        if not len(self.numbers):
            return nothing, nothing, nothing
        at = np.minimum(np.searchsorted(self.numbers, queries), len(self.numbers) - 1)
        present = self.numbers[at] == queries
        return (
            np.where(present, self.offsets[at], 0),
            np.where(present, self.offsets[at + 1] - self.offsets[at], 0),
            np.where(present, self.retrieved[at], 0),
        )

    def touched(self, queries: IntArray) -> npt.NDArray[np.bool_]:
        """Return which of these queries have a judged document in a group of equal scores."""
        tied = np.append(0, np.cumsum(self.tie_first < self.tie_last))
        starts, sizes, _ = self._entries(queries)
        return tied[starts + sizes] > tied[starts]

    def tied(self, unjudged: int = 0) -> IntArray:
        """Return the queries in which a tie could change a value.

        They have a group of equal scores with documents of different grades. Missing and negative
        grades count as 0; if `unjudged` is 1, they differ from 0, and if 2, they do not count.
        """
        numbers, _ = self.deciding(unjudged)
        return distinct(numbers) if len(numbers) else numbers

    def deciding(self, unjudged: int = 0) -> tuple[IntArray, IntArray]:
        """Return query and size of each group of equal scores whose order could change a value (see `tied`)."""
        if not len(self.rank) or (self.tie_first == self.tie_last).all():
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        numbers = np.repeat(self.numbers, np.diff(self.offsets))
        heads = heads_of(numbers, self.tie_first)
        members = np.diff(np.append(heads, len(numbers)))
        worth = self.grade if unjudged == 1 else np.maximum(self.grade, 0.0)
        if unjudged == 2:
            # Documents that are only pooled are removed, too: give them the highest grade of their
            # group.
            beside = np.maximum.reduceat(worth, heads).repeat(members)
            worth = np.where(self.grade >= 0, self.grade, beside)
        highest = np.maximum.reduceat(worth, heads)
        lowest = np.minimum.reduceat(worth, heads)
        size = self.tie_last[heads] - self.tie_first[heads] + 1
        if unjudged != 2:
            lowest = np.where(members < size, np.minimum(lowest, -np.inf if unjudged else 0.0), lowest)
        chosen = highest > lowest
        return numbers[heads[chosen]], size[chosen]


def find_judged(qrels: Qrels, table: PairTable) -> tuple[IntArray, IntArray]:
    """Return the number in the judgments of each query, and the row of the judgment of each document; -1 without."""
    falling = Run(replace(table, values=np.arange(len(table), 0, -1.0)))
    joined, docs = join(qrels, falling, ties="input"), np.full(len(table), -1)
    # Ranks by falling scores are positions.
    docs[np.repeat(table.offsets[joined.in_run], np.diff(joined.offsets)) + joined.rank - 1] = joined.rows
    return _judged_numbers(qrels, falling), docs


def join(qrels: Qrels, run: Run, *, ties: str, judged: tuple[IntArray, IntArray] | None = None) -> Joined:
    """Join a run without duplicate documents with judgments, and rank its judged documents.

    `judged` is the result of `find_judged`, if known, for joining a run again with other scores.

    The cost depends on the run, not on the number of judgments: their preparation is cached, so a
    run may be joined in many small blocks.
    """
    table, retrieved = run.table, np.diff(run.table.offsets)
    of_run = _judged_numbers(qrels, run) if judged is None else judged[0]
    if native.core is not None and (judged is not None or qrels.judged is not None):
        known, keys = (qrels.judged, table.docs.hashes()) if judged is None else (None, judged[1])
        columns = *table.docs.columns(), keys, np.ascontiguousarray(table.values), table.offsets, of_run
        judged_buffer, places = native.core.join(known, *columns, ties == "trec")
        judged_rows = np.frombuffer(judged_buffer, np.int64)
        ranks: Sequence[IntArray] = [*np.frombuffer(places, np.int64).reshape(-1, 3).T]
    else:
        rows, judged_rows = (
            match(qrels, run) if judged is None else (np.flatnonzero(judged[1] >= 0), judged[1][judged[1] >= 0])
        )
        ranks = ranks_of(table, rows, ties)
    return Joined.of_entries(qrels, of_run, judged_rows, ranks, retrieved=retrieved, ties=ties)


def _order(numbers: IntArray, ranks: IntArray) -> IntArray:
    """Return the order by number, then by rank."""
    most = int(ranks.max(initial=0)) + 1
    if most * (int(numbers.max(initial=0)) + 1) < 2**63:
        # A single key is usually sorted already, which a stable sort detects.
        return np.argsort(numbers * most + ranks, kind="stable")
    return np.lexsort((ranks, numbers))


def match(qrels: Qrels, run: Run) -> tuple[IntArray, IntArray]:
    """Return the rows of a run that are judged, and the rows of their judgments."""
    # Most documents are not judged for any query.
    rows = qrels.likely_judged(run.table.docs)
    numbers = _judged_numbers(qrels, run)[query_of(run.table, rows)].tolist()
    wanted = zip(numbers, run.table.docs.take(rows).tolist(), strict=True)
    known = qrels.rows
    judged = np.array([known.get(pair, -1) for pair in wanted], dtype=np.int64)
    return rows[judged >= 0], judged[judged >= 0]


def _judged_numbers(qrels: Qrels, run: Run) -> IntArray:
    """Return the number in the judgments of each query of the run, or -1."""
    known = qrels.query_index
    return np.array([known.get(query, -1) for query in run.query_index], dtype=np.int64)

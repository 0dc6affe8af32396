"""Judged runs: the complete input of ordinary measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache, partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import IntArray, freeze
from rankgauge.core.pair_table import FloatArray

Values: TypeAlias = FloatArray
# Integers for one order, means over all orders for averaged runs.
Counts: TypeAlias = IntArray | FloatArray
# Lowest grade that counts as relevant; "best" is the highest grade of each query.
Level: TypeAlias = float | str
BoolArray: TypeAlias = npt.NDArray[np.bool_]
_T = TypeVar("_T")

# Greater than any cutoff, and safe to add 1 to.
UNRANKED = 2**62


@lru_cache(maxsize=64)
def _discounts(size: int, b: float | None) -> FloatArray:
    """Return the discounts of ranks 0, 1, ..., computed with ``math``, so that all blocks agree."""
    ranks = range(1, size)
    if b is None:
        return np.array([0.0, *(1 / math.log2(rank + 1) for rank in ranks)])
    return np.array([0.0, *(1.0 if rank <= b else math.log(b) / math.log(rank) for rank in ranks)])


def discount_table(ranks: int, b: float | None = None) -> FloatArray:
    """Return the discounts of ranks 0, 1, ... up to at least `ranks`.

    They are 1 / log2(rank + 1); with `b`, 1 up to rank b, then 1 / log_b(rank).
    """
    return _discounts(max(1024, 1 << int(ranks).bit_length()), b)


def discounts(ranks: IntArray, b: float | None = None) -> FloatArray:
    """Return the discount of each rank (see `discount_table`); 0 for padding."""
    return _of_ranks(ranks, partial(discount_table, b=b))


def _of_ranks(ranks: IntArray, table: Callable[[int], FloatArray]) -> FloatArray:
    """Return the table entry for each rank; that of rank 0 for padding."""
    ranked = np.where(ranks < UNRANKED, ranks, 0)
    return table(int(ranked.max(initial=0)))[ranked]


def best_grade(pool: FloatArray) -> FloatArray:
    """Return the highest grade of each query as a level, (Q, 1); infinite if none is above 0."""
    highest = pool.max(axis=1, keepdims=True)
    return np.where(highest > 0, highest, np.inf)


def ratio(values: npt.NDArray[Any], whole: Counts) -> FloatArray:
    """Return values / whole, NaN (undefined) where `whole` is not above 0."""
    return values / np.where(whole > 0, whole, np.nan)


@dataclass(frozen=True, eq=False)
class Cached:
    """Input of measures, with a cache of arrays that several use; the cache is neither compared nor pickled."""

    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return the cached value for `key`, computing it if missing; arrays become read-only."""
        value: _T | None = self._made.get(key)
        if value is None:
            value = self._made[key] = make()
            if isinstance(value, np.ndarray):
                freeze(value)
        return value

    @staticmethod
    def count(flags: BoolArray) -> IntArray:
        """Return the number of flags set in each row, (Q,); cheaper than `np.count_nonzero`."""
        return np.add.reduce(flags, axis=1, dtype=np.int64)

    @staticmethod
    def total(values: npt.NDArray[Any]) -> FloatArray:
        """Return the sum of each row, (Q,), added one by one from the left.

        Kernels add numbers only this way: other NumPy sums add in an order that depends on the
        padding, so that the last bit of a value would depend on other queries in the block.
        """
        if len(values) < 64:
            return np.cumsum(values, axis=1, dtype=np.float64)[:, -1]
        # The same additions, one column at a time for all rows, are faster for many rows.
        first, *others = values.T
        result = first.astype(np.float64)
        for column in others:
            result += column
        return result


@dataclass(frozen=True, eq=False)
class RankedRun(Cached):
    """Documents of queries with their ranks."""

    rank: IntArray

    def within(self, k: int) -> BoolArray:
        """Return whether each document is in the first `k`, (Q, J)."""
        return self.once(("within", k), lambda: self.rank <= k)


@dataclass(frozen=True, eq=False)
class JudgedRun(RankedRun):
    """A run joined with judgments: the input of measures.

    Row q is a query; column j is the j-th document that was retrieved and is in the judgments, best
    rank first. There is always at least one column; rows are padded at the end.

    Attributes:
        rank: (Q, J) int, 1-based rank in the run; `UNRANKED` where padded.
        grade: (Q, J) float, grade; 0 where padded.
        in_qrels: (Q, J) bool, False where padded.
        judged: (Q, J) bool, whether it is in the judgments with a grade >= 0. A negative grade
            means pooled but not judged.
        tie_first: (Q, J) int, first rank of its group of equal scores (its own rank if untied).
        tie_last: (Q, J) int, last rank of that group.
        retrieved: (Q,) int, number of documents retrieved.
        ideal: (Q, I) float, all grades >= 0 of the query in descending order, including documents
            that were not retrieved; padded with -1.
        n_judged: (Q,) int, number of documents with a grade >= 0.

    Example:
        >>> JudgedRun.from_grades([3, 0, 2]).rank.tolist()
        [[1, 2, 3]]
    """

    grade: FloatArray
    in_qrels: BoolArray
    judged: BoolArray
    tie_first: IntArray
    tie_last: IntArray
    retrieved: IntArray
    ideal: FloatArray
    n_judged: IntArray

    @classmethod
    def from_grades(cls, grades: Sequence[float], ideal: Sequence[float] | None = None) -> JudgedRun:
        """Return a run of one query whose ranking has these grades from rank 1 on, all judged.

        Args:
            grades: (n,) grades in rank order.
            ideal: All grades >= 0 of the query; default: those of the ranking.
        """
        row = np.array([list(grades) or [0.0]], dtype=np.float64)
        known = np.full(row.shape, bool(len(grades)))
        rank = np.where(known, np.arange(1, row.shape[1] + 1), UNRANKED)
        pool = sorted(grades if ideal is None else ideal, reverse=True)
        pool = [grade for grade in pool if grade >= 0]
        return cls(
            rank=rank,
            grade=row,
            in_qrels=known,
            judged=known & (row >= 0),
            tie_first=rank,
            tie_last=rank,
            retrieved=np.array([len(grades)]),
            ideal=np.array([pool or [-1.0]], dtype=np.float64),
            n_judged=np.array([len(pool)]),
        )

    def __len__(self) -> int:
        return len(self.retrieved)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JudgedRun):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, part.name), getattr(other, part.name)) for part in fields(self) if part.init
        )

    __hash__ = None  # type: ignore[assignment] # holds arrays

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self) if part.init}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _made={})

    def share(self, k: int) -> FloatArray:
        """Return the share of each document in the first `k`, (Q, J): 1 or 0."""
        return self.once(("share", k), lambda: self.within(k).astype(np.float64))

    def least(self, rel: Level) -> float | FloatArray:
        """Return the lowest relevant grade: a number for all queries, or (Q, 1) for each."""
        return best_grade(self.ideal[:, :1]) if isinstance(rel, str) else rel

    def hits(self, rel: Level, k: int | None = None) -> BoolArray:
        """Return whether each document is relevant, (Q, J): judged, grade >= `rel`, rank <= `k`."""
        if k is None:
            return self.once(("hits", rel), lambda: self.judged & (self.grade >= self.least(rel)))
        return self.once(("hits", rel, k), lambda: self.hits(rel) & self.within(k))

    def found(self, rel: Level, k: int | None = None) -> Counts:
        """Return the number of relevant documents retrieved in the first `k`, (Q,)."""
        return self.once(("found", rel, k), lambda: self.count(self.hits(rel, k)))

    def among(self, flags: BoolArray, k: int | IntArray | None) -> Counts:
        """Return the number of flagged documents in the first `k`, (Q,).

        Args:
            flags: (Q, J) flags.
            k: A rank, or (Q,) one for each query; None counts all that were retrieved.
        """
        if k is None:
            return self.count(flags)
        within = self.rank <= k[:, None] if isinstance(k, np.ndarray) else self.within(k)
        return self.count(flags & within)

    def first(self, rel: Level) -> IntArray:
        """Return the rank of the first relevant document, (Q,); `UNRANKED` if there is none."""
        return self.once(("first", rel), lambda: np.where(self.hits(rel), self.rank, UNRANKED).min(axis=1))

    def relevant(self, rel: Level) -> IntArray:
        """Return the number of relevant documents of the query, (Q,), retrieved or not."""
        return self.once(("relevant", rel), lambda: self.count(self.ideal >= self.least(rel)))

    def divisor(self, rel: Level) -> FloatArray:
        """Return the result of `relevant` as a divisor, (Q,): NaN, so undefined, instead of 0."""
        whole = self.relevant(rel)
        return self.once(("divisor", rel), lambda: np.where(whole > 0, whole, np.nan))

    def non_relevant(self, rel: Level) -> IntArray:
        """Return the number of documents judged not relevant, (Q,), retrieved or not."""
        return self.count((self.ideal >= 0) & (self.ideal < self.least(rel)))

    def discounts(self, k: int | None = None, b: float | None = None) -> FloatArray:
        """Return the discount of each document's rank, (Q, J); 0 past `k` and where padded."""
        return self.weights(("discounts", b), partial(discount_table, b=b), k)

    def weights(self, key: Hashable, table: Callable[[int], FloatArray], k: int | None = None) -> FloatArray:
        """Return the weight of each document's rank, (Q, J); 0 past `k` and where padded.

        Args:
            key: Cache key: a name with all parameters of the weights.
            table: Function that returns the weights of ranks 0, 1, ... up to at least its argument;
                rank 0 has weight 0.
            k: Number of ranks with a weight.
        """
        if k is not None:
            return self.once((key, k), lambda: np.where(self.within(k), self.weights(key, table), 0.0))
        return self.once(key, lambda: _of_ranks(self.rank, table))

    def in_groups(self, flags: BoolArray) -> tuple[IntArray, IntArray]:
        """Return the number of flagged documents above each group of equal scores, (Q, J).

        Also return the number within the group, (Q, J). Both are given for each document.
        """
        upto = np.cumsum(flags, axis=1, dtype=np.int64)
        above = _group_bound(self.tie_first, upto - flags)
        return above, _group_bound(self.tie_first[:, ::-1], upto[:, ::-1])[:, ::-1] - above

    def of_queries(self, rows: IntArray) -> JudgedRun:
        """Return the judged run of the queries in these rows."""
        return type(self)(**{name: part[rows] for name, part in self.__getstate__().items()})

    def averaged(self) -> Averaged:
        """Return the run averaged over all orders of equal scores."""
        return self.once("averaged", lambda: Averaged(**self.__getstate__()))

    def depth(self, k: int | None) -> IntArray:
        """Return the number of retrieved documents, (Q,), at most `k`."""
        return self.retrieved if k is None else np.minimum(self.retrieved, k)

    def judged_only(self) -> JudgedRun:
        """Return the run without documents that lack a grade >= 0, ranked again."""
        return self.once("judged_only", self._of_judged)

    def _of_judged(self) -> JudgedRun:
        first = np.argsort(~self.judged, axis=1, kind="stable")
        judged = np.take_along_axis(self.judged, first, axis=1)
        rank = np.where(judged, np.arange(1, judged.shape[1] + 1), UNRANKED)
        # Removed documents must not count in the group of equal scores that they were in.
        old_first = np.where(judged, np.take_along_axis(self.tie_first, first, axis=1), UNRANKED)
        return JudgedRun(
            rank=rank,
            grade=np.where(judged, np.take_along_axis(self.grade, first, axis=1), 0.0),
            in_qrels=judged,
            judged=judged,
            tie_first=_group_bound(old_first, rank),
            tie_last=_group_bound(old_first[:, ::-1], rank[:, ::-1])[:, ::-1],
            retrieved=np.count_nonzero(judged, axis=1),
            ideal=self.ideal,
            n_judged=self.n_judged,
        )


class Averaged(JudgedRun):
    """A judged run averaged over all orders of equal scores, all equally likely.

    For a measure that is a sum of rank weights, its value on this run is the mean over all orders,
    because the mean of a sum is the sum of the means. Its kernel can therefore be called with this
    run instead of a run in one order. Methods for which this does not hold raise an error.

    Example:
        >>> from dataclasses import replace
        >>> run = JudgedRun.from_grades([1, 0])
        >>> tied = replace(run, tie_first=np.array([[1, 1]]), tie_last=np.array([[2, 2]]))
        >>> tied.averaged().found(1, k=1).tolist()
        [0.5]
    """

    def share(self, k: int | IntArray) -> FloatArray:
        """Return the probability that each document is in the first `k`, (Q, J)."""
        last = k[:, None] if isinstance(k, np.ndarray) else k
        size = self.tie_last - self.tie_first + 1
        within = np.minimum(self.tie_last, last) - self.tie_first + 1
        return np.where(self.in_qrels, np.maximum(within, 0) / size, 0.0)

    def within(self, k: int) -> BoolArray:
        """Raise an error: the answer differs between orders."""
        raise TypeError(f"whether a document is in the top {k} depends on the order")

    def first(self, rel: Level) -> IntArray:
        """Raise an error: the answer differs between orders."""
        raise TypeError(f"the first document of grade {rel} depends on the order")

    def found(self, rel: Level, k: int | None = None) -> Counts:
        """Return the mean number of relevant documents retrieved in the first `k`, (Q,)."""
        return self.once(("found", rel, k), lambda: self.among(self.hits(rel), k))

    def among(self, flags: BoolArray, k: int | IntArray | None) -> Counts:
        """Return the mean number of flagged documents in the first `k`, (Q,)."""
        return self.count(flags) if k is None else self.total(np.where(flags, self.share(k), 0.0))

    def weights(self, key: Hashable, table: Callable[[int], FloatArray], k: int | None = None) -> FloatArray:
        """Return the mean weight of the ranks of each document's tie group, (Q, J)."""
        return self.once((key, k), lambda: self._means(table, k))

    def _means(self, table: Callable[[int], FloatArray], k: int | None) -> FloatArray:
        last = np.where(self.in_qrels, self.tie_last, 0)
        first = np.where(self.in_qrels, self.tie_first, 0)
        deepest = int(last.max(initial=0))
        last_rank = last if k is None else np.minimum(last, k)
        weights = table(deepest)
        sums, rest = _sums(weights[: deepest + 1])
        start = np.minimum(np.maximum(first - 1, 0), last_rank)
        added = (sums[last_rank] - sums[start]) + (rest[last_rank] - rest[start])
        alone = weights[first] if k is None else np.where(first <= k, weights[first], 0.0)
        means = np.where(last > first, added / np.maximum(last - first + 1, 1), alone)
        return np.where(self.in_qrels, means, 0.0)


def _sums(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return cumulative sums and their rounding errors: together, twice the precision."""
    sums = np.cumsum(values)
    before = np.zeros_like(sums)
    before[1:] = sums[:-1]
    # Knuth: exact rounding error of one addition.
    added = sums - before
    return sums, np.cumsum((before - (sums - added)) + (values - added))


def _group_bound(groups: IntArray, rank: IntArray) -> IntArray:
    """Propagate the value of `rank` at the start of each run of equal groups, from the left."""
    starts = np.ones(groups.shape, dtype=bool)
    starts[:, 1:] = groups[:, 1:] != groups[:, :-1]
    columns = np.where(starts, np.arange(groups.shape[1]), 0)
    return np.take_along_axis(rank, np.maximum.accumulate(columns, axis=1), axis=1)

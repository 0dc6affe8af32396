"""Means over all orders of equal scores, for measures that are not sums of rank weights.

A measure that is a sum of rank weights is declared ``linear``, and its kernel is applied to an
averaged run. The functions of this module are for other measures. They have the parameters of the
kernel, and return exactly its values if there are no ties.

In a group of n documents with equal scores, m of them relevant, all orders are equally likely.
McSherry and Najork (2008), Computing information retrieval performance measures efficiently in the
presence of tied scores, ECIR.

The means of measures without a closed form are estimated from random orders, on request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.core.policies import Policies
from rankgauge.data.judged_run import JudgedRun, Level, Values
from rankgauge.measures.measure import Measure

# Cells per batch, as in the join.
_CELLS = 1 << 17


def _first_group(run: JudgedRun, rel: Level) -> tuple[IntArray, IntArray, IntArray]:
    """Return the group with the first relevant document of each query.

    Its first rank, its number of documents, and its number of relevant documents, (Q,) each; 0 relevant
    ones if a query has none.
    """
    hits = run.hits(rel)
    _, members = run.in_groups(hits)
    rows = np.arange(len(hits))
    column = hits.argmax(axis=1)
    some = hits[rows, column]
    first = np.where(some, run.tie_first[rows, column], 1)
    last = np.where(some, run.tie_last[rows, column], 1)
    return first, last - first + 1, np.where(some, members[rows, column], 0)


def chance_of_success(run: JudgedRun, *, k: int, rel: Level) -> Values:
    """Return the probability that a relevant document is in the first k."""
    first, size, relevant = _first_group(run, rel)
    slots = np.clip(k - first + 1, 0, size)
    # The probability of a miss is symmetric in `slots` and `relevant`: loop over the smaller.
    fewer, more = np.minimum(slots, relevant), np.maximum(slots, relevant)

    def missed(rows: IntArray, places: IntArray) -> Values:
        left = np.maximum(size[rows, None] - places, 1)
        ratio = np.maximum(left - more[rows, None], 0) / left
        return np.multiply.accumulate(np.where(places < fewer[rows, None], ratio, 1.0), axis=1)[:, -1]

    return 1.0 - _by_rows(fewer, missed, 1.0)


def expected_reciprocal(run: JudgedRun, *, k: int | None, rel: Level) -> Values:
    """Return the mean reciprocal rank of the first relevant document, 0 below rank k."""
    first, size, relevant = _first_group(run, rel)
    # Number of possible ranks: all nonrelevant documents of the group may be above it.
    upto = np.where(relevant > 0, size - relevant + 1, 0)
    if k is not None:
        upto = np.clip(k - first + 1, 0, upto)

    def means(rows: IntArray, places: IntArray) -> Values:
        # Probability that no relevant document is at a place, if none is above it.
        left = np.maximum(size[rows, None] - places, 1)
        stay = np.maximum(left - relevant[rows, None], 0) / left
        reached = np.ones(stay.shape)
        reached[:, 1:] = np.multiply.accumulate(stay, axis=1)[:, :-1]
        chances = reached * (relevant[rows, None] / left)
        inside = places < upto[rows, None]
        return run.total(np.where(inside, chances / (first[rows, None] + places), 0.0))

    return np.where(run.relevant(rel) > 0, _by_rows(upto, means, 0.0), np.nan)


def expected_first(run: JudgedRun, *, rel: Level) -> Values:
    """Return the mean rank of the first relevant document."""
    first, size, relevant = _first_group(run, rel)
    # m relevant documents divide the others into m + 1 parts of equal mean size.
    rank = first + (size - relevant) / (relevant + 1)
    return np.where(relevant > 0, rank, np.nan)


def expected_ap(run: JudgedRun, *, k: int | None, rel: Level, norm: str) -> Values:
    """Return the mean of average precision."""
    whole = run.relevant(rel)
    total = run.total(_expected_precisions(run, k, rel))
    if norm == "k" and k is not None:
        value = total / k
    elif norm == "retrieved" and k is None:
        value = total / np.maximum(run.found(rel), 1)
    elif norm == "retrieved":
        value = _by_found(run, total, k or 0, rel)
    elif norm == "min(k,R)" and k is not None:
        value = total / np.maximum(np.minimum(whole, k), 1)
    else:
        value = total / np.maximum(whole, 1)
    return np.where(whole > 0, value, np.nan)


def _expected_precisions(run: JudgedRun, k: int | None, rel: Level) -> Values:
    """Return the mean precision at each relevant document, 0 below rank k, (Q, J)."""
    hits = run.hits(rel)
    above, members = run.in_groups(hits)
    first = np.where(hits, run.tie_first, 1)
    size = np.where(hits, run.tie_last, 1) - first + 1
    slots = size if k is None else np.clip(k - first + 1, 0, size)
    # At place x of a group of n documents, m of them relevant, a relevant document has on average
    # (x - 1) q other relevant documents of the group above it, with q = (m - 1) / (n - 1). This is
    # the sum over the places above the cut-off of (above + 1 + (x - 1) q) / (first + x - 1), divided by n.
    rate = (members - 1) / np.maximum(size - 1, 1)
    inverse = run.averaged().weights("inverse", _inverse_ranks, k)
    tied = (above + 1 - rate * first) * inverse + rate * (slots / size)
    # Untied documents: exactly the values of the kernel.
    alone = np.where(slots > 0, (above + 1) / first, 0.0)
    return np.where(hits, np.where(size > 1, tied, alone), 0.0)


def _inverse_ranks(ranks: int) -> Values:
    places = np.arange(ranks + 2)
    return np.where(places > 0, 1 / np.maximum(places, 1), 0.0)


class _Split(NamedTuple):
    """Group of equal scores that a cut-off splits.

    Attributes:
        size: Number of documents.
        slots: Number of places above the cut-off.
        relevant: Number of relevant documents.
    """

    size: IntArray
    slots: IntArray
    relevant: IntArray

    def least(self) -> IntArray:
        """Return the smallest possible number of relevant documents above the cut-off."""
        return np.maximum(self.slots - (self.size - self.relevant), 0)

    def steps(self) -> IntArray:
        """Return how many different numbers of relevant documents are possible there."""
        return np.minimum(self.slots, self.relevant) - self.least() + 1

    def chances(self, number: IntArray) -> Values:
        """Return the probability of each number above the cut-off, ascending from the smallest."""
        mode = (self.slots + 1) * (self.relevant + 1) // (self.size + 2)
        mode = np.clip(mode, self.least(), np.minimum(self.slots, self.relevant))
        # From the mode outwards: from one end, the first weight could underflow.
        rising, falling = self._ratio(number - 1), self._ratio(number)
        up = np.multiply.accumulate(np.where(number > mode, rising, 1.0), axis=1)
        turned = np.where(number < mode, 1 / np.where(falling > 0, falling, 1.0), 1.0)[:, ::-1]
        weights = up * np.multiply.accumulate(turned, axis=1)[:, ::-1]
        return weights / JudgedRun.total(weights)[:, None]

    def _ratio(self, number: IntArray) -> Values:
        """Return the probability of one more, divided by that of this number."""
        good = np.maximum(self.relevant - number, 0) * np.maximum(self.slots - number, 0)
        others = self.size - self.relevant - self.slots + number + 1
        return good / np.maximum((number + 1) * others, 1)


def _by_found(run: JudgedRun, total: Values, k: int, rel: Level) -> Values:
    """Return the mean of the sum of precisions divided by the number of relevant documents found.

    In most queries, this number does not depend on the order. If the cut-off splits a group, the
    mean is over the possible numbers of its relevant documents above the cut-off.
    """
    hits = run.hits(rel)
    above, members = run.in_groups(hits)
    parted = hits & (run.tie_first <= k) & (run.tie_last > k)
    rows, column = np.arange(len(hits)), parted.argmax(axis=1)
    some = parted[rows, column]
    first = np.where(some, run.tie_first[rows, column], 1)
    last = np.where(some, run.tie_last[rows, column], 1)
    split = _Split(last - first + 1, np.minimum(k, last) - first + 1, members[rows, column])
    sure = run.total(np.where(parted, 0.0, _expected_precisions(run, k, rel)))
    inverse = run.averaged().weights("inverse", _inverse_ranks, k)[rows, column] * split.size
    before = above[rows, column]

    def means(chosen: IntArray, places: IntArray) -> Values:
        part = _Split(*(values[chosen, None] for values in split))
        number = part.least() + places
        slots, start = part.slots, before[chosen, None]
        rate = (number - 1) / np.maximum(slots - 1, 1)
        contribution = (start + 1 - rate * first[chosen, None]) * inverse[chosen, None] / slots + rate
        value = (sure[chosen, None] + number * contribution) / np.maximum(start + number, 1)
        return run.total(part.chances(number) * value)

    counts = np.maximum(run.count(hits & (run.tie_last <= k)), 1)
    return np.where(some, _by_rows(np.where(some, split.steps(), 0), means, 0.0), total / counts)


def expected_bpref(run: JudgedRun, *, rel: Level) -> Values:
    """Return the mean of bpref: all numbers of tied nonrelevant documents above are as likely."""
    hits = run.hits(rel)
    whole = run.relevant(rel)
    above, inside = run.in_groups(run.judged & ~hits)
    bound = np.maximum(np.minimum(run.non_relevant(rel), whole), 1)
    # min(above + u, R) for u from 0 to `inside` grows for `rising` steps, then is constant.
    rising = np.clip(whole[:, None] - above, 0, inside)
    grown = (rising + 1) * np.minimum(above, whole[:, None]) + rising * (rising + 1) / 2
    lost = (grown + (inside - rising) * whole[:, None]) / (inside + 1)
    return run.total(np.where(hits, 1 - lost / bound[:, None], 0.0)) / run.divisor(rel)


def _by_rows(width: IntArray, make: Callable[[IntArray, IntArray], Values], nothing: float) -> Values:
    """Return a value for each query, computed in batches of queries with similar widths.

    Args:
        width: Number of columns that each query needs, (Q,).
        make: Function from queries (n,) and column numbers (n, W) to a value for each query, which
            must not depend on columns that a query does not need.
        nothing: Value of a query that needs no columns.
    """
    values = np.full(len(width), nothing)
    # Widest first; queries that need no columns come last.
    order = np.argsort(-width, kind="stable")[: int(np.count_nonzero(width))]
    while len(order):
        widest = int(width[order[0]])
        rows = order[: max(1, _CELLS // widest)]
        values[rows] = make(rows, np.broadcast_to(np.arange(widest), (len(rows), widest)))
        order = order[len(rows) :]
    return values


def estimate(
    run: JudgedRun, queries: Sequence[bytes], measures: Sequence[Measure], policies: Policies
) -> tuple[Values, Values]:
    """Estimate the mean of each measure over all orders of equal scores, with standard errors."""
    means = np.full((len(run), len(measures)), np.nan)
    errors = np.zeros(means.shape)
    for row, query in enumerate(queries):
        orders = drawn_orders(run, row, generator_of(query, policies.seed), policies.draws)
        for column, measure in enumerate(measures):
            values = measure.values(orders).tolist()
            if any(map(math.isnan, values)):
                continue
            mean = math.fsum(values) / len(values)
            spread = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
            means[row, column] = mean
            errors[row, column] = math.sqrt(spread / len(values))
    return means, errors


def generator_of(query: bytes, seed: int) -> np.random.Generator:
    """Return the random generator of a query, independent of other queries and their order."""
    from hashlib import blake2b

    digest = blake2b(query, digest_size=16).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "big")])


def drawn_orders(run: JudgedRun, row: int, rng: np.random.Generator, number: int) -> JudgedRun:
    """Return a judged run with one row for each random order of a query."""
    rank = np.tile(run.rank[row], (number, 1))
    first, last = run.tie_first[row], run.tie_last[row]
    tied = run.in_qrels[row] & (last > first)
    for start in np.unique(first[tied]).tolist():
        columns = np.flatnonzero(tied & (first == start))
        size = int(last[columns[0]]) - start + 1
        rank[:, columns] = start + _places(rng, (number, len(columns)), size)
    order = np.argsort(rank, axis=1, kind="stable")
    ranked = np.take_along_axis(rank, order, axis=1)
    return JudgedRun(
        rank=ranked,
        grade=run.grade[row][order],
        in_qrels=run.in_qrels[row][order],
        judged=run.judged[row][order],
        tie_first=ranked,
        tie_last=ranked,
        retrieved=np.repeat(run.retrieved[row], number),
        ideal=np.repeat(run.ideal[row : row + 1], number, axis=0),
        n_judged=np.repeat(run.n_judged[row], number),
    )


def _places(rng: np.random.Generator, shape: tuple[int, int], size: int) -> IntArray:
    """Return random positions from 0 of the judged documents of a group of ties.

    All orders of the group are equally likely: each document gets a random number, and sorting by
    these numbers gives the order. For unjudged documents, only the number of them between two
    judged documents is drawn, so the cost does not depend on how many there are.
    """
    keys = rng.random(shape)
    order = np.argsort(keys, axis=1)
    sorted_keys = np.take_along_axis(keys, order, axis=1)
    left = np.full(shape[0], size - shape[1], dtype=np.int64)
    before = np.zeros(shape[0])
    above = np.zeros(shape[0], dtype=np.int64)
    places = np.empty(shape, dtype=np.int64)
    for column, key in enumerate(sorted_keys.T):
        between = rng.binomial(left, (key - before) / (1 - before))
        above += between
        left -= between
        before = key
        places[:, column] = above + column
    result = np.empty(shape, dtype=np.int64)
    np.put_along_axis(result, order, places, axis=1)
    return result

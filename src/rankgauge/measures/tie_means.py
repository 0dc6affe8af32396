"""The mean of a measure over all orders of equal scores, where it is more than a sum of weights.

A measure that only adds up what ranks are worth needs nothing from here: it is declared ``linear``,
and its kernel gets an averaged run. These functions are for the others. Each takes a judged run and
the words of its kernel, and each gives the value of the kernel itself where nothing is tied.

In a group of n documents with equal scores, of which m are relevant, every order is alike likely.
McSherry and Najork (2008), Computing information retrieval performance measures efficiently in the
presence of tied scores, ECIR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.data.judged_run import JudgedRun, Level, Values

# Cells that are worked on at a time, as in the join.
_CELLS = 1 << 17


class _Groups(NamedTuple):
    """One group of equal scores of each query.

    Attributes:
        first: (Q,) its first rank.
        size: (Q,) how many documents it has.
        relevant: (Q,) how many of them are relevant; 0 where a query has no such group.
    """

    first: IntArray
    size: IntArray
    relevant: IntArray


def _first_group(run: JudgedRun, rel: Level) -> _Groups:
    """The group with the first relevant document."""
    hits = run.hits(rel)
    _, members = run.in_groups(hits)
    rows = np.arange(len(hits))
    column = hits.argmax(axis=1)
    some = hits[rows, column]
    first = np.where(some, run.tie_first[rows, column], 1)
    last = np.where(some, run.tie_last[rows, column], 1)
    return _Groups(first, last - first + 1, np.where(some, members[rows, column], 0))


def chance_of_success(run: JudgedRun, *, k: int, rel: Level) -> Values:
    """How likely a relevant document is in the first k."""
    first, size, relevant = _first_group(run, rel)
    slots = np.clip(k - first + 1, 0, size)
    # None of `slots` drawn ones is relevant: both numbers may change places, so the lower counts.
    fewer, more = np.minimum(slots, relevant), np.maximum(slots, relevant)

    def missed(rows: IntArray, places: IntArray) -> Values:
        left = np.maximum(size[rows, None] - places, 1)
        ratio = np.maximum(left - more[rows, None], 0) / left
        return np.multiply.accumulate(np.where(places < fewer[rows, None], ratio, 1.0), axis=1)[
            :, -1
        ]

    return 1.0 - _by_rows(fewer, missed, 1.0)


def expected_reciprocal(run: JudgedRun, *, k: int | None, rel: Level) -> Values:
    """The mean reciprocal of the rank of the first relevant document, if it is in the first k."""
    first, size, relevant = _first_group(run, rel)
    # It can be as far down as all that is not relevant allows.
    upto = np.where(relevant > 0, size - relevant + 1, 0)
    if k is not None:
        upto = np.clip(k - first + 1, 0, upto)

    def means(rows: IntArray, places: IntArray) -> Values:
        chances = _chances_of_first(size[rows, None], relevant[rows, None], places)
        inside = places < upto[rows, None]
        return run.total(np.where(inside, chances / (first[rows, None] + places), 0.0))

    value = _by_rows(upto, means, 0.0)
    return np.where(run.relevant(rel) > 0, value, np.nan)


def _chances_of_first(size: IntArray, relevant: IntArray, places: IntArray) -> Values:
    """How likely the first relevant document has so many others of its group above it."""
    # Of the documents from a place on, all relevant ones are there still: as many stay below.
    left = np.maximum(size - places, 1)
    stay = np.maximum(left - relevant, 0) / left
    reached = np.ones(stay.shape)
    reached[:, 1:] = np.multiply.accumulate(stay, axis=1)[:, :-1]
    return reached * (relevant / left)


def expected_first(run: JudgedRun, *, rel: Level) -> Values:
    """The mean rank of the first relevant document."""
    first, size, relevant = _first_group(run, rel)
    # m relevant documents part the others into m + 1 heaps of the same mean size.
    rank = first + (size - relevant) / (relevant + 1)
    return np.where(relevant > 0, rank, np.nan)


def expected_ap(run: JudgedRun, *, k: int | None, rel: Level, norm: str) -> Values:
    """The mean of average precision."""
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


def expected_gmap(run: JudgedRun, *, rel: Level) -> Values:
    """The mean of average precision; the geometric mean over queries is of these."""
    return expected_ap(run, k=None, rel=rel, norm="R")


def _expected_precisions(run: JudgedRun, k: int | None, rel: Level) -> Values:
    """(Q, J) what each relevant document adds on the average: the precision at its rank."""
    hits = run.hits(rel)
    above, members = run.in_groups(hits)
    first = np.where(hits, run.tie_first, 1)
    last = np.where(hits, run.tie_last, 1)
    size = last - first + 1
    slots = size if k is None else np.clip(k - first + 1, 0, size)
    inverse = run.averaged().weights("inverse", _inverse_ranks, k)
    added = _precisions_in(first, size, slots, above, members, inverse)
    # One by one the very numbers of the kernel.
    alone = np.where(slots > 0, (above + 1) / first, 0.0)
    return np.where(hits, np.where(size > 1, added, alone), 0.0)


def _inverse_ranks(ranks: int) -> Values:
    places = np.arange(ranks + 2)
    return np.where(places > 0, 1 / np.maximum(places, 1), 0.0)


def _precisions_in(  # noqa: PLR0917 - six numbers of each group
    first: IntArray,
    size: IntArray,
    slots: IntArray,
    above: IntArray,
    members: IntArray,
    inverse: Values,
) -> Values:
    """The mean of one relevant document's precision over the places of its group.

    At the x-th place of it there are above, on the average, (x - 1)(m - 1)/(n - 1) others of its
    group, so that the sum over x of (above + 1 + (x - 1) q) / (first + x - 1) is needed, for the
    first `slots` places, each with chance 1/n.

    Args:
        first: The first rank of the group.
        size: How many documents it has.
        slots: How many of its places are looked at.
        above: How many relevant documents are above it.
        members: How many are in it.
        inverse: The sum of 1 / rank over those places, by n.
    """
    pace = (members - 1) / np.maximum(size - 1, 1)
    return (above + 1 - pace * first) * inverse + pace * (slots / size)


class _Split(NamedTuple):
    """A group of equal scores of which a cut-off takes the first part.

    Attributes:
        size: How many documents it has.
        slots: How many of its places are above the cut-off.
        relevant: How many of its documents are relevant.
    """

    size: IntArray
    slots: IntArray
    relevant: IntArray

    def least(self) -> IntArray:
        """The fewest relevant documents that can be above the cut-off."""
        return np.maximum(self.slots - (self.size - self.relevant), 0)

    def steps(self) -> IntArray:
        """How many numbers of relevant documents are possible there."""
        return np.minimum(self.slots, self.relevant) - self.least() + 1

    def chances(self, number: IntArray) -> Values:
        """How likely each of these numbers (ascending from the least) stand there."""
        usual = (self.slots + 1) * (self.relevant + 1) // (self.size + 2)
        usual = np.clip(usual, self.least(), np.minimum(self.slots, self.relevant))
        # From the likeliest number outwards: from one end the first could be too small to hold.
        rising, falling = self._ratio(number - 1), self._ratio(number)
        up = np.multiply.accumulate(np.where(number > usual, rising, 1.0), axis=1)
        turned = np.where(number < usual, 1 / np.where(falling > 0, falling, 1.0), 1.0)[:, ::-1]
        weights = up * np.multiply.accumulate(turned, axis=1)[:, ::-1]
        return weights / JudgedRun.total(weights)[:, None]

    def _ratio(self, number: IntArray) -> Values:
        """How much likelier one more is than this number."""
        good = np.maximum(self.relevant - number, 0) * np.maximum(self.slots - number, 0)
        others = self.size - self.relevant - self.slots + number + 1
        return good / np.maximum((number + 1) * others, 1)


def _by_found(run: JudgedRun, total: Values, k: int, rel: Level) -> Values:
    """The mean of the sum of precisions over the number of relevant documents found.

    In most queries that number does not depend on the order. Where a group reaches past k, it is
    read how many of its relevant documents are above.
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
        pace = (number - 1) / np.maximum(slots - 1, 1)
        each = (start + 1 - pace * first[chosen, None]) * inverse[chosen, None] / slots + pace
        value = (sure[chosen, None] + number * each) / np.maximum(start + number, 1)
        return run.total(part.chances(number) * value)

    found = np.maximum(run.count(hits & (run.tie_last <= k)), 1)
    return np.where(some, _by_rows(np.where(some, split.steps(), 0), means, 0.0), total / found)


def expected_bpref(run: JudgedRun, *, rel: Level) -> Values:
    """The mean of bpref: all numbers of judged others above a document are alike likely."""
    hits = run.hits(rel)
    whole = run.relevant(rel)
    above, inside = run.in_groups(run.judged & ~hits)
    bound = np.maximum(np.minimum(run.non_relevant(rel), whole), 1)
    # min(above + u, R) for u from 0 to `inside`: it grows for `rising` steps, and then stays.
    rising = np.clip(whole[:, None] - above, 0, inside)
    grown = (rising + 1) * np.minimum(above, whole[:, None]) + rising * (rising + 1) / 2
    lost = (grown + (inside - rising) * whole[:, None]) / (inside + 1)
    total = run.total(np.where(hits, 1 - lost / bound[:, None], 0.0))
    return np.where(whole > 0, total / np.maximum(whole, 1), np.nan)


def _by_rows(
    width: IntArray, make: Callable[[IntArray, IntArray], Values], nothing: float
) -> Values:
    """Values of queries that need so many columns each, in parts of bounded size.

    Args:
        width: (Q,) how many columns.
        make: From (n,) queries and (n, W) the numbers of columns to a value for each query. It may
            not depend on how many columns there are more than a query needs.
        nothing: The value of a query that needs none.
    """
    values = np.full(len(width), nothing)
    for rows in _parts(width):
        places = np.broadcast_to(np.arange(int(width[rows[0]])), (len(rows), int(width[rows[0]])))
        values[rows] = make(rows, places)
    return values


def _parts(width: IntArray) -> Iterator[IntArray]:
    """The queries that need columns, the widest first, so many at a time as cells allow."""
    order = np.argsort(-width, kind="stable")
    order = order[: int(np.count_nonzero(width))]
    while len(order):
        most = max(1, _CELLS // int(width[order[0]]))
        yield order[:most]
        order = order[most:]

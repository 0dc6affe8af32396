"""Rank documents within each query, breaking ties in scores by a policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from rankgauge.core import native
from rankgauge.core.arguments import integer
from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import (
    FloatArray,
    PairTable,
    distinct,
    heads_of,
    offsets_of,
    ranges_of,
)
from rankgauge.core.policies import BY_GRADE, Order, order_of
from rankgauge.data.run import Run

# Cells per block: small enough for the CPU cache, large enough to amortize NumPy calls.
CELLS = 1 << 17
_T = TypeVar("_T", bound=np.generic)


def by_grade(
    query: IntArray, group: tuple[IntArray, IntArray], grade: FloatArray, ties: str
) -> IntArray:
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
    table = run.without_repeats("error")
    depth = None if depth is None else min(integer("depth", depth, least=0), len(table))
    order = _rank_rows(table, ties, depth)
    if depth is not None:
        sizes = np.minimum(np.diff(table.offsets), depth)
        rows = ranges_of(table.offsets[:-1], sizes)
        order = rows if order is None else order[rows]
        table = replace(table, offsets=offsets_of(sizes))
    if order is not None:
        table = replace(table, docs=table.docs.take(order), values=table.values[order])
    return replace(run, table=replace(table, unique=True, lines=None, ranks=None))


def _rank_rows(table: PairTable, ties: str, depth: int | None) -> IntArray | None:
    """Return the rows of each query in ranked order, at least up to `depth`; None if unchanged."""
    if native.core is not None:
        values = np.ascontiguousarray(table.values)
        rows = native.core.rank_rows(*table.docs.columns(), values, table.offsets, ties == "trec")
        return None if rows is None else np.frombuffer(rows, np.int64)
    order = _best_first(table.values, table.offsets)
    if order is None:
        order = np.arange(len(table))
    heads = _heads(table.values[order], table.offsets)
    tied = np.flatnonzero(np.diff(heads) > 1)
    if depth is not None:
        # Documents below `depth` are dropped, so their order does not matter.
        above = heads[tied] - table.offsets[query_of(table, heads[tied])]
        tied = tied[above < depth]
    at, by_rule = _in_groups(table, order, (heads[tied], heads[tied + 1]), ties)
    order[at] = order[at][by_rule]
    return order


def tie_groups(table: PairTable) -> tuple[IntArray, IntArray]:
    """Return the query and the size of each group of two or more documents with equal scores."""
    order = _best_first(table.values, table.offsets)
    heads = _heads(table.values if order is None else table.values[order], table.offsets)
    sizes = np.diff(heads)
    tied = np.flatnonzero(sizes > 1)
    return query_of(table, heads[tied]), sizes[tied]


def query_of(table: PairTable, rows: IntArray) -> IntArray:
    """Return the number of each row's query."""
    return np.searchsorted(table.offsets, rows, side="right") - 1


def ranks_of(table: PairTable, rows: IntArray, ties: str) -> tuple[IntArray, IntArray, IntArray]:
    """Return the ranks of these rows within their queries, and of the ends of their tie groups."""
    query = query_of(table, rows)
    start, stop = table.offsets[query], table.offsets[query + 1]
    scores, place = table.values, rows
    unsorted = _unsorted(table.values, table.offsets)
    wanted = np.zeros(len(table.queries), dtype=bool)
    wanted[query] = True
    unsorted = unsorted[wanted[unsorted]]
    if len(unsorted):
        scores = _descending(table, unsorted)
        place = _first_place(scores, start, stop, table.values[rows])
    rank = place - start
    first, last = rank.copy(), rank.copy()
    # Neighbors may belong to different queries; the next step checks this.
    below = np.minimum(place + 1, len(scores) - 1)
    same = (scores[place - 1] == scores[place]) | (scores[below] == scores[place])
    tied = np.flatnonzero(same)
    if len(tied):
        # Few documents are tied: rank only their queries again.
        rank[tied], first[tied], last[tied] = _ranks_in_ties(table, rows[tied], query[tied], ties)
    return rank + 1, first + 1, last + 1


def _ranks_in_ties(
    table: PairTable, rows: IntArray, query: IntArray, ties: str
) -> tuple[IntArray, IntArray, IntArray]:
    """Return ranks from 0 of tied rows, and the first and last ranks of their groups."""
    queries = distinct(query)
    spans, offsets = _spans(table, queries)
    number = np.searchsorted(queries, query)
    base = offsets[number]
    at = rows - table.offsets[query] + base
    values = table.values[spans]
    order = _best_first(values, offsets)
    place = at if order is None else _inverse(order)[at]
    heads = _heads(values if order is None else values[order], offsets)
    group = np.searchsorted(heads, place, side="right") - 1
    if ties not in BY_GRADE:
        groups = distinct(group)
        members = spans if order is None else spans[order]
        inside, by_rule = _in_groups(table, members, (heads[groups], heads[groups + 1]), ties)
        place = _moved(place, inside, by_rule)
    return place - base, heads[group] - base, heads[group + 1] - 1 - base


def _first_place(
    scores: FloatArray, start: IntArray, stop: IntArray, wanted: FloatArray
) -> IntArray:
    """Return the first index of each score in its range of `scores`, which is descending."""
    low, high = start.copy(), stop.copy()
    for _ in range(int((stop - start).max()).bit_length()):
        middle = (low + high) >> 1
        above = scores[np.minimum(middle, len(scores) - 1)] > wanted
        above &= low < high
        np.copyto(low, middle + 1, where=above)
        np.copyto(high, middle, where=~above)
    return low


def _spans(table: PairTable, queries: IntArray) -> tuple[IntArray, IntArray]:
    """Return the concatenated rows of these queries (ascending), and their offsets."""
    sizes = np.diff(table.offsets)[queries]
    return ranges_of(table.offsets[queries], sizes), offsets_of(sizes)


def _heads(scores: FloatArray, offsets: IntArray) -> IntArray:
    """Return the start of each group of equal scores within a query, and the total length."""
    starts = np.ones(len(scores) + 1, dtype=bool)
    np.not_equal(scores[1:], scores[:-1], out=starts[1:-1])
    starts[offsets] = True
    return np.flatnonzero(starts)


def _in_groups(
    table: PairTable, members: IntArray, groups: tuple[IntArray, IntArray], ties: str
) -> tuple[IntArray, IntArray]:
    """Return the indices in groups of equal scores, and their order by the tie policy."""
    starts, stops = groups
    sizes = stops - starts
    at = ranges_of(starts, sizes)
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    if ties == "trec":
        return at, table.docs.descending(members[at], numbers)
    return at, np.lexsort((members[at], numbers))


def _unsorted(values: FloatArray, offsets: IntArray) -> IntArray:
    """Return the queries in which a score is greater than the previous one."""
    rising = np.zeros(len(values) + 1, dtype=bool)
    np.greater(values[1:], values[:-1], out=rising[1:-1])
    rising[offsets] = False
    if not rising.any():
        return np.zeros(0, dtype=np.int64)
    sizes = np.diff(offsets)
    some = np.flatnonzero(sizes)
    found: IntArray = some[np.logical_or.reduceat(rising[:-1], offsets[:-1][some])]
    return found


def _blocks_of(
    values: FloatArray, offsets: IntArray, queries: IntArray
) -> Iterator[tuple[IntArray, npt.NDArray[np.bool_], FloatArray]]:
    """Yield blocks of queries of similar length: rows, mask of cells that are not padding, scores.

    Scores are negated, so that ascending order is best first and padding comes last.
    """
    sizes = np.diff(offsets)[queries]
    for chosen in cut(np.argsort(sizes, kind="stable"), sizes, CELLS):
        rows, filled = padded(offsets[queries[chosen]], sizes[chosen])
        scores = gather(values, rows, filled, -np.inf)
        yield rows, filled, np.negative(scores, out=scores)


def _descending(table: PairTable, queries: IntArray) -> FloatArray:
    """Return all scores, sorted in descending order for these queries."""
    scores = table.values.copy()
    for rows, filled, found in _blocks_of(table.values, table.offsets, queries):
        found.sort(axis=1)
        scores[rows[filled]] = -found[filled]
    return scores


def _best_first(values: FloatArray, offsets: IntArray) -> IntArray | None:
    """Return the rows of each query by descending score, equal scores in any order.

    Return None if they are already in that order.
    """
    unsorted = _unsorted(values, offsets)
    if not len(unsorted):
        return None
    order = np.arange(len(values))
    for rows, filled, found in _blocks_of(values, offsets, unsorted):
        inside = np.argsort(found, axis=1)
        order[rows[filled]] = np.take_along_axis(rows, inside, axis=1)[filled]
    return order


def _moved(place: IntArray, spans: IntArray, order: IntArray) -> IntArray:
    """Map positions after the members at `spans` (ascending) were reordered by `order`."""
    new = np.empty(len(spans), dtype=np.int64)
    new[order] = spans
    at = np.minimum(np.searchsorted(spans, place), len(spans) - 1)
    return np.where(spans[at] == place, new[at], place)


def _inverse(order: IntArray) -> IntArray:
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places


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


def gather(
    values: npt.NDArray[_T], rows: IntArray, filled: npt.NDArray[np.bool_], pad: float
) -> npt.NDArray[_T]:
    """Return the values at these rows; `pad` in padding cells."""
    if not len(values):
        return np.full(rows.shape, pad, dtype=values.dtype)
    cells = values[rows]
    cells[~filled] = pad
    return cells

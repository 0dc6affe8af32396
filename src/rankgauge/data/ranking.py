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
from rankgauge.core.pair_table import FloatArray, PairTable, heads_of, offsets_of, ranges_of
from rankgauge.core.policies import Order, order_of
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
    order = _rank_rows(table, ties)
    if depth is not None:
        sizes = np.minimum(np.diff(table.offsets), depth)
        rows = ranges_of(table.offsets[:-1], sizes)
        order = rows if order is None else order[rows]
        table = replace(table, offsets=offsets_of(sizes))
    if order is not None:
        table = replace(table, docs=table.docs.take(order), values=table.values[order])
    return replace(run, table=replace(table, unique=True, lines=None, ranks=None))


def _rank_rows(table: PairTable, ties: str) -> IntArray | None:
    """Return the rows of each query in ranked order; None if unchanged."""
    if native.core is None:
        return table.best_first(by_id=ties == "trec")[0]
    values = np.ascontiguousarray(table.values)
    rows = native.core.rank_rows(*table.docs.columns(), values, table.offsets, ties == "trec")
    return None if rows is None else np.frombuffer(rows, np.int64)


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

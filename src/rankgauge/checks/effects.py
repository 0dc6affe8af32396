"""Corrected tables, and the effects of faults on measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import PairTable
from rankgauge.data.join import Joined, join
from rankgauge.data.judged_run import JudgedRun, Values
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.evaluation.unjudged import filled
from rankgauge.measures.measure import Measure, parse


def without_repeats(
    table: PairTable, keep: Literal["first", "best", "lowest"] = "best", *, alike: bool = False
) -> PairTable:
    """Return the table with each document only once per query."""
    kept = np.ones(len(table), dtype=bool)
    for group in table.repeats():
        values = table.values[group]
        if alike and (values != values[0]).any():
            continue
        kept[group] = False
        at = {"first": 0, "best": int(np.argmax(values)), "lowest": int(np.argmin(values))}
        kept[group[at[keep]]] = True
    return table if kept.all() else table.keep(np.flatnonzero(kept))


def self_retrieved_rows(table: PairTable) -> IntArray:
    """Return the rows whose document id equals the query id."""
    numbers = table.query_numbers()
    rows = np.flatnonzero(table.docs.hashes() == table.queries.hashes()[numbers])
    return rows[table.docs.same(rows, table.queries, numbers[rows])]


def without_self_retrieved(table: PairTable) -> PairTable:
    """Return the table without documents whose id equals the query id."""
    rows = self_retrieved_rows(table)
    return table.keep(np.delete(np.arange(len(table)), rows)) if len(rows) else table


def negated(table: PairTable) -> PairTable:
    """Return the table with negated scores."""
    # Subtract from 0 instead of negating: -0.0 would be written differently.
    return replace(table, values=0.0 - table.values)


def ranks_as_scores(table: PairTable) -> PairTable:
    """Return the table with scores that descend with rank: n for the first of n documents."""
    if table.ranks is None:
        return table
    numbers = table.query_numbers()
    order = np.lexsort((np.arange(len(table)), table.ranks, numbers))
    values = np.empty(len(table))
    values[order] = np.diff(table.offsets)[numbers] + table.offsets[numbers] - np.arange(len(table))
    return replace(table, values=values)


_View: TypeAlias = Callable[[JudgedRun], JudgedRun]

_DEPTH = 10


def values_of(
    joined: Joined, measure: Measure, queries: IntArray | None = None, *, view: _View | None = None
) -> Values | None:
    """Return the values of a measure for these queries (default: all judged queries).

    None if the measure rejects the judgments. `view` transforms each judged run before it is
    measured.
    """
    wanted = np.arange(len(joined.qrels)) if queries is None else queries
    found = np.full(len(wanted), np.nan)
    for places, block in joined.blocks(wanted):
        try:
            found[places] = measure.values(block if view is None else view(block))
        except InputError:
            return None
    return found


def means(
    joined: Joined, measures: Iterable[Measure], queries: IntArray | None = None, *, view: _View | None = None
) -> list[float]:
    """Return the mean of each measure over these queries; NaN if it rejects the judgments."""
    columns = [(measure, values_of(joined, measure, queries, view=view)) for measure in measures]
    return [math.nan if values is None else measure.mean(values) for measure, values in columns]


def least_rel(measures: Iterable[Measure]) -> float:
    """Return the lowest grade that is relevant for one of the measures."""
    return min((m.level for m in measures if m.level is not None), default=1.0)


def cutoff_of(measures: Iterable[Measure]) -> int:
    """Return the largest cut-off of the measures; 10 if there is none."""
    found = [value for m in measures for word, value in m.params if word == "k"]
    return max((int(value) for value in found if isinstance(value, int)), default=_DEPTH)


def reversed_rankings(joined: Joined) -> Joined:
    """Return the ranks for reversed rankings."""
    sizes = np.diff(joined.offsets)
    last = np.repeat(joined.retrieved, sizes) + 1
    first = last - joined.tie_last
    rank = first + (joined.rank - joined.tie_first)
    order = np.lexsort((rank, np.repeat(np.arange(len(sizes)), sizes)))
    return replace(
        joined,
        rank=rank[order],
        tie_first=first[order],
        tie_last=(last - joined.tie_first)[order],
        grade=joined.grade[order],
        rows=joined.rows[order],
    )


def best_rankings(joined: Joined, depth: int) -> Joined:
    """Return the ideal rankings of the same queries, cut at this depth."""
    table = joined.qrels.table
    query = table.query_numbers()
    order, _ = table.best_first(by_id=False)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - table.offsets[query[order]]
    rows = np.flatnonzero((place < depth) & np.isin(query, joined.numbers))
    best = replace(table.keep(rows), values=-place[rows].astype(np.float64))
    return join(joined.qrels, Run(best), ties="trec")


def unjudged_as(k: int, grade: float) -> _View:
    """Return a view that gives this grade to every unjudged document in the first k ranks."""

    def view(block: JudgedRun) -> JudgedRun:
        depth = block.depth(k)
        return filled(block, depth, np.full((len(block), int(depth.max(initial=0))), float(grade)))

    return view


def precision(k: int, rel: float) -> Measure:
    """Return P at this cut-off."""
    return parse(f"P@{k}") if rel == 1 else parse("P")(rel=rel) @ k


def relevant_counts(qrels: Qrels, rel: float) -> IntArray:
    """Return the number of relevant documents of each query."""
    table = qrels.table
    return np.bincount(table.query_numbers()[table.values >= rel], minlength=len(qrels))

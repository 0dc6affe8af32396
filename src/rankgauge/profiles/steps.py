"""Steps that several tools share: what they make of scores, order, queries and judgments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import FloatArray, PairTable
from rankgauge.data.qrels import Qrels
from rankgauge.data.subsets import of_queries
from rankgauge.profiles.deviations import Case, Change, Deviation

__all__ = [
    "ASCENDING_IDS",
    "AS_GIVEN",
    "BINARY_GRADES",
    "EXPECTED_TIES",
    "INPUT_TIES",
    "NEGATIVES_JUDGED",
    "NO_FIRST",
    "NO_SELF",
    "POSITIVE_SCORES",
    "POSITIVE_SCORES_COUNT",
    "RANKED_QUERIES_JUDGED",
    "RELEVANT_QUERIES",
    "RETRIEVED_ONLY",
    "RUN_QUERIES_ONLY",
    "SINGLE_PRECISION",
    "UNDEFINED_LEFT_OUT",
    "WHOLE_GRADES",
    "clipped",
    "rewritten",
]  # fmt: skip


def rewritten(name: str, why: str, **params: Any) -> Deviation:
    """The tool's measure of this name is ours with these parameters."""
    return Deviation(
        name, why, "measure", lambda case: case._replace(measure=case.measure(**params))
    )


# ---- of the run


def _run(of_table: Callable[[PairTable], PairTable]) -> Change:
    return lambda case: case._replace(run=replace(case.run, table=of_table(case.run.table)))


def _single(table: PairTable) -> PairTable:
    with np.errstate(over="ignore"):  # beyond the largest one is infinite there, too
        values = table.values.astype(np.float32).astype(np.float64)
    return replace(table, values=values)


def _as_given(table: PairTable) -> PairTable:
    starts = np.repeat(table.offsets[:-1], np.diff(table.offsets))
    return replace(table, values=(starts - np.arange(len(table))).astype(np.float64))


def _without_self(table: PairTable) -> PairTable:
    same = table.docs.same(np.arange(len(table)), table.queries, table.query_numbers())
    return table.keep(np.flatnonzero(~same))


def _without_first(table: PairTable) -> PairTable:
    numbers = table.query_numbers()
    # lexsort is stable: of equal scores the one that is given first.
    order = np.lexsort((-table.values, numbers))
    first = table.offsets[:-1][np.diff(table.offsets) > 0]
    kept = np.ones(len(table), dtype=bool)
    kept[order[first]] = False
    return table.keep(np.flatnonzero(kept))


SINGLE_PRECISION = Deviation(
    "32-bit scores",
    "scores are kept as 32-bit floats: what differs beyond that is a tie",
    "run",
    _run(_single),
)
AS_GIVEN = Deviation(
    "order as given",
    "documents are ranked in the order in which they are given; scores are not read",
    "run",
    _run(_as_given),
)
NO_SELF = Deviation(
    "no self-retrieval",
    "a document whose id is that of the query is removed from its ranking",
    "run",
    _run(_without_self),
)
NO_FIRST = Deviation(
    "first result skipped",
    "the document with the highest score is removed from each ranking, whatever it is; of several "
    "the one that is given first",
    "run",
    _run(_without_first),
)
POSITIVE_SCORES = Deviation(
    "only scores above 0",
    "a document whose score is 0 or less never counts as relevant, wherever it stands",
    "run",
    _run(lambda table: table.keep(np.flatnonzero(table.values > 0))),
)


# ---- of the order of equal scores


def _ascending(case: Case) -> Case:
    table = case.run.table
    numbers = table.query_numbers()
    by_id = table.docs.descending(np.arange(len(table)), numbers)[::-1]
    # lexsort is stable: where scores are equal, ids stay as they are.
    order = by_id[np.lexsort((-table.values[by_id], numbers[by_id]))]
    return _input(case._replace(run=replace(case.run, table=_reordered(table, order))))


def _reordered(table: PairTable, order: IntArray) -> PairTable:
    """The rows in this order, which leaves each query where it is."""
    return replace(
        table, docs=table.docs.take(order), values=table.values[order], lines=None, ranks=None
    )


def _input(case: Case) -> Case:
    return case._replace(policies=replace(case.policies, ties="input"))


def _expected(case: Case) -> Case:
    return case._replace(policies=replace(case.policies, ties="mean"))


ASCENDING_IDS = Deviation(
    "ties by ascending id",
    "equal scores stand by document id ascending",
    "order",
    _ascending,
)
INPUT_TIES = Deviation(
    "ties as given",
    "equal scores stand in the order in which they are given (a stable sort)",
    "order",
    _input,
)
EXPECTED_TIES = Deviation(
    "ties averaged",
    "a value is the mean over all orders of equal scores",
    "order",
    _expected,
)


# ---- of the judgments


def _judgments(of_table: Callable[[PairTable], PairTable]) -> Change:
    return lambda case: case._replace(qrels=Qrels(of_table(case.qrels.table)))


def _grades(of_values: Callable[[FloatArray], FloatArray]) -> Change:
    return _judgments(lambda table: replace(table, values=of_values(table.values)))


def _binary(values: FloatArray) -> FloatArray:
    return np.where(values >= 1, 1.0, np.minimum(values, 0.0))


def _of_relevant_queries(table: PairTable) -> PairTable:
    relevant = np.bincount(table.query_numbers()[table.values >= 1], minlength=len(table.queries))
    return of_queries(table, np.flatnonzero(relevant))


def _found(case: Case, wanted: Callable[[FloatArray], npt.NDArray[np.bool_]]) -> IntArray:
    """The rows of the judgments whose document is in the run with a score that is wanted."""
    run = case.run.table
    numbers = {query: number for number, query in enumerate(run.queries.tolist())}
    docs, kept = run.docs.tolist(), wanted(run.values).tolist()
    judged, mine = case.qrels.table, case.qrels.table.docs.tolist()
    ends, found = judged.offsets.tolist(), []
    for query, (start, stop) in zip(judged.queries.tolist(), pairwise(ends), strict=True):
        number = numbers.get(query)
        if number is not None:
            rows = range(int(run.offsets[number]), int(run.offsets[number + 1]))
            known = {docs[row] for row in rows if kept[row]}
            found += [row for row in range(start, stop) if mine[row] in known]
    return np.array(found, dtype=np.int64)


def _retrieved_only(case: Case) -> Case:
    rows = _found(case, lambda scores: np.ones(len(scores), dtype=bool))
    return case._replace(qrels=Qrels(case.qrels.table.keep(rows)))


def _nothing_without_ranking(case: Case) -> Case:
    known = set(case.run.table.queries.tolist())
    table = case.qrels.table
    ranked = np.array([query in known for query in table.queries.tolist()], dtype=bool)
    rows = np.flatnonzero(ranked[table.query_numbers()])
    return case._replace(qrels=Qrels(table.keep(rows)))


def _worthless(case: Case) -> Case:
    table = case.qrels.table
    values = table.values.copy()
    values[_found(case, lambda scores: scores <= 0)] = 0
    return case._replace(qrels=Qrels(replace(table, values=values)))


RETRIEVED_ONLY = Deviation(
    "only retrieved documents are known",
    "judgments are given with the scores: a relevant document that was not retrieved is unknown",
    "judgments",
    _retrieved_only,
)
RANKED_QUERIES_JUDGED = Deviation(
    "nothing is judged without a ranking",
    "a query that the run does not have counts as one without relevant documents",
    "judgments",
    _nothing_without_ranking,
)
POSITIVE_SCORES_COUNT = Deviation(
    POSITIVE_SCORES.name, POSITIVE_SCORES.why, "judgments", _worthless
)
RELEVANT_QUERIES = Deviation(
    "only queries with a relevant document",
    "a query without a relevant document is left out of the mean, not counted 0",
    "judgments",
    _judgments(_of_relevant_queries),
)
WHOLE_GRADES = Deviation(
    "whole grades",
    "grades are cut to whole numbers: 0.5 is 0 and 2.9 is 2",
    "judgments",
    _grades(lambda values: np.trunc(values) + 0.0),
)
BINARY_GRADES = Deviation(
    "binary grades",
    "a document is relevant or not: every grade from 1 on is 1, and those below are 0",
    "judgments",
    _grades(_binary),
)
NEGATIVES_JUDGED = Deviation(
    "negative grades are judged",
    "a document with a negative grade is judged not relevant, not pooled only",
    "judgments",
    _grades(lambda values: np.maximum(values, 0.0)),
)


@lru_cache(maxsize=64)
def clipped(top: float) -> Deviation:
    """Grades above a top count as it; one and the same for each top."""
    return Deviation(
        "grades clipped at the top",
        f"grades above the top that is stated ({top:g}) are taken for it",
        "judgments",
        _grades(lambda values: np.minimum(values, top)),
    )


# ---- of a policy


def _run_queries(case: Case) -> Case:
    return case._replace(policies=replace(case.policies, queries="intersection"))


RUN_QUERIES_ONLY = Deviation(
    "only queries of the run",
    "a judged query that the run does not have is left out of the mean, not counted 0",
    "policy",
    _run_queries,
)


def _left_out(case: Case) -> Case:
    return case._replace(policies=replace(case.policies, undefined="skip"))


UNDEFINED_LEFT_OUT = Deviation(
    "undefined values left out",
    "a query without a value is left out of the mean, not counted 0",
    "policy",
    _left_out,
)

"""Inputs of an explanation: the case, its values, and the ranking of one query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from rankgauge.core.ids import show_id
from rankgauge.core.policies import Policies
from rankgauge.data.judged_run import Values
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.data.subsets import keep_queries
from rankgauge.evaluation.evaluation import Queries, evaluate, queries_policy, selected_ids
from rankgauge.evaluation.profile_deviations import Case
from rankgauge.evaluation.result import Evaluation
from rankgauge.explanation.calculation import RankedDocument, RankedQuery, ranked
from rankgauge.measures.measure import Measure, parse

ANY_GRADE = 1e-9


def make_case(
    qrels: Any,
    run: Any,
    measure: str | Measure,
    *,
    queries: Queries,
    policies: Policies,
) -> Case:
    """Return the inputs and policies of a number, reduced to the selected queries."""
    truth = Qrels.of(qrels)
    word = queries_policy(queries)
    ids = selected_ids(queries)
    if ids is not None:
        truth = keep_queries(truth, ids)
        word = "all"
    return Case(truth, Run.of(run), parse(measure), replace(policies, queries=word))


def evaluate_case(case: Case, measures: Sequence[Measure] = (), source: Any = None) -> Evaluation:
    """Evaluate a case, optionally with other measures or another source of the run."""
    policies = asdict(case.policies)
    if policies["queries"] == "given":
        # The judgments of a case contain only its queries.
        policies["queries"] = "all"
    run = case.run if source is None else source
    return evaluate(case.qrels, run, measures or case.measure, **policies)


def counted_by_query(evaluation: Evaluation, column: int = 0) -> dict[str, float]:
    """Return the values that are averaged, by query."""
    values = counted_values(evaluation, column)
    kept = ~np.isnan(values)
    return {
        query: value for query, value, there in zip(evaluation.query_ids, values.tolist(), kept, strict=True) if there
    }


def counted_values(evaluation: Evaluation, column: int) -> Values:
    """Return the (Q,) values as counted in the mean, NaN for queries that are left out."""
    values: Values = evaluation.measures[column].counted(
        evaluation.per_query[:, column], skip_undefined=evaluation.policies.undefined == "skip"
    )
    return values


def ranked_query(case: Case, query: bytes) -> RankedQuery:
    """Return a query of a case, ranked independently of the join.

    A query missing from the run has no documents.
    """
    judgments = _rows(case.qrels, query)
    grades = dict(judgments)
    found = _rows(case.run.without_repeats(case.policies.duplicates), query)
    order = sorted(range(len(found)), key=lambda row: _place(case, found, grades, row))
    documents = [
        RankedDocument(0, show_id(document), score, grades.get(document), 0, 0)
        for document, score in (found[row] for row in order)
    ]
    shown = sorted(((show_id(d), grade) for d, grade in judgments), key=lambda pair: -pair[1])
    in_run = query in case.run.query_index
    whole = RankedQuery(show_id(query), ranked(documents), tuple(shown), in_run)
    return whole.judged_only() if case.policies.unjudged == "removed" else whole


def _rows(pairs: Qrels | Run, query: bytes) -> list[tuple[bytes, float]]:
    number = pairs.query_index.get(query)
    if number is None:
        return []
    start, stop = pairs.table.offsets[number : number + 2].tolist()
    docs = pairs.table.docs.take(slice(start, stop)).tolist()
    return list(zip(docs, pairs.table.values[start:stop].tolist(), strict=True))


def _place(
    case: Case, found: Sequence[tuple[bytes, float]], grades: dict[bytes, float], row: int
) -> tuple[float, tuple[float, ...]]:
    """Return the sort key of a document: its score, then the tie policy."""
    document, score = found[row]
    # Ids in descending order; of two ids with a common prefix, the longer is first.
    rule: tuple[float, ...] = (*(-byte - 1 for byte in document), 0)
    match case.policies.ties:
        case "input":
            rule = (row,)
        case "best" | "worst" as side:
            # Unjudged documents are last with ties=best and first with ties=worst.
            grade = grades.get(document, -math.inf)
            rule = (-grade if side == "best" else grade, *rule)
    return -score, rule


def parameters_of(measure: Measure, query: RankedQuery) -> dict[str, Any]:
    """Return all parameters of a measure, with rel=best replaced by the best grade of the query."""
    words: dict[str, Any] = measure.arguments
    if words.get("rel") == "best":
        highest = max((grade for _, grade in query.judgments), default=0.0)
        # Without a grade above 0, no document is relevant.
        words["rel"] = highest if highest > 0 else math.inf
    return words


def level_of(measure: Measure, query: RankedQuery) -> float:
    """Return the lowest relevant grade: the relevance level, or any grade above 0."""
    level = parameters_of(measure, query).get("rel")
    return float(level) if isinstance(level, int | float) else ANY_GRADE

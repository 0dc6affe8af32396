"""A case: the inputs and policies of one number, its values, and the ranking of one query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from rankgauge.core.ids import show_id
from rankgauge.core.policies import Duplicates, Policies, Ties, Undefined, Unjudged
from rankgauge.data.judged_run import Values
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.data.subsets import keep_queries
from rankgauge.evaluation.evaluation import Queries, evaluate, queries_policy, selected_ids
from rankgauge.evaluation.result import Evaluation
from rankgauge.explanation.calculation import RankedDocument, RankedQuery, ranked
from rankgauge.measures.measure import Measure, parse
from rankgauge.profiles.deviations import Case

ANY_GRADE = 1e-9


def case_of(
    qrels: Any,
    run: Any,
    measure: str | Measure,
    *,
    ties: Ties,
    queries: Queries,
    duplicates: Duplicates,
    undefined: Undefined,
    unjudged: Unjudged,
) -> Case:
    """What a number is made of; queries that were given by their ids are all that is left."""
    truth = Qrels.of(qrels)
    word = queries_policy(queries)
    ids = selected_ids(queries)
    if ids is not None:
        truth = keep_queries(truth, ids)
        word = "all"
    policies = Policies(
        ties=ties, queries=word, duplicates=duplicates, undefined=undefined, unjudged=unjudged
    )
    return Case(truth, Run.of(run), parse(measure), policies)


def evaluated(case: Case, measures: Sequence[Measure] = (), source: Any = None) -> Evaluation:
    """The values of a case: of its measure, or of others instead; its run, or where it is."""
    policies = asdict(case.policies)
    if policies["queries"] == "given":
        # The judged queries are unknown here; a case has only its own.
        policies["queries"] = "all"
    run = case.run if source is None else source
    return evaluate(case.qrels, run, measures or case.measure, **policies)


def counted(evaluation: Evaluation, column: int = 0) -> dict[str, float]:
    """Query to its value as it counts in the mean; a query that is left out is not there."""
    values = counted_values(evaluation, column)
    kept = ~np.isnan(values)
    return {
        query: value
        for query, value, there in zip(evaluation.query_ids, values.tolist(), kept, strict=True)
        if there
    }


def counted_values(evaluation: Evaluation, column: int) -> Values:
    """(Q,) the values of a measure as they count in the mean, NaN where one is left out."""
    values: Values = evaluation.measures[column].counted(
        evaluation.per_query[:, column], skip_undefined=evaluation.policies.undefined == "skip"
    )
    return values


def ranked_query(case: Case, query: bytes) -> RankedQuery:
    """A query of a case, read by a separate loop; a query missing from the run has no documents."""
    judgments = _rows(case.qrels, query)
    grades = dict(judgments)
    table = case.run.without_repeats(case.policies.duplicates)
    found = _rows(replace(case.run, table=table), query)
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
    """Sort key of a document: its score, then the rule for ties."""
    document, score = found[row]
    # Ids in descending order; of two with a common prefix, the longer first.
    rule: tuple[float, ...] = (*(-byte - 1 for byte in document), 0)
    match case.policies.ties:
        case "input":
            rule = (row,)
        case "best" | "worst" as side:
            # Unjudged documents are last by best, and first by worst.
            grade = grades.get(document, -math.inf)
            rule = (-grade if side == "best" else grade, *rule)
    return -score, rule


def words_of(measure: Measure, query: RankedQuery) -> dict[str, Any]:
    """All parameters of a measure; for a query, "best" is a grade."""
    words: dict[str, Any] = measure.arguments
    if words.get("rel") == "best":
        highest = max((grade for _, grade in query.judgments), default=0.0)
        # Of a query without a grade above 0 nothing is relevant.
        words["rel"] = highest if highest > 0 else math.inf
    return words


def level_of(measure: Measure, query: RankedQuery) -> float:
    """Return the grade from which a document counts: the relevance level, or any grade above 0."""
    level = words_of(measure, query).get("rel")
    return float(level) if isinstance(level, int | float) else ANY_GRADE

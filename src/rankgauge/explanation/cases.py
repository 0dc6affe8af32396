"""A case evaluated: what was asked for brought into one, and the values that come of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankgauge.core.ids import id_bytes
from rankgauge.core.policies import Duplicates, Policies, Ties, Undefined, Unjudged
from rankgauge.data.judged_run import Values
from rankgauge.data.model import Qrels, Run
from rankgauge.data.subsets import keep_queries
from rankgauge.evaluation.evaluation import Queries, evaluate, queries_policy, selected_ids
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure, parse
from rankgauge.profiles.deviations import Case

__all__ = ["case_of", "counted", "evaluated", "query_bytes"]


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


def evaluated(case: Case, measures: Sequence[Measure] = ()) -> Evaluation:
    """The values of a case: of its measure, or of others instead."""
    policies = case.policies
    if policies.queries == "given":
        # Which they are is not known here; those of a case are all that it has.
        queries: Queries = "all"
    else:
        queries = policies.queries
    return evaluate(
        case.qrels,
        case.run,
        measures or case.measure,
        ties=policies.ties,
        queries=queries,
        duplicates=policies.duplicates,
        undefined=policies.undefined,
        unjudged=policies.unjudged,
        draws=policies.draws,
        seed=policies.seed,
    )


def counted(evaluation: Evaluation, column: int = 0) -> dict[str, float]:
    """Query to its value as it counts in the mean; a query that is left out is not there."""
    measure = evaluation.measures[column]
    values: Values = measure.counted(
        evaluation.per_query[:, column], skip_undefined=evaluation.policies.undefined == "skip"
    )
    kept = ~np.isnan(values)
    return {
        query: value
        for query, value, there in zip(evaluation.query_ids, values.tolist(), kept, strict=True)
        if there
    }


def query_bytes(qrels: Qrels, query: Any) -> bytes | None:
    """A query of the judgments as it is kept; None if it is none of them."""
    number = qrels.query_index.get(id_bytes(query, "query id"))
    if number is not None:
        return qrels.table.queries[number]
    shown = {name: row for row, name in enumerate(qrels.query_ids)}.get(query)
    return None if shown is None else qrels.table.queries[shown]

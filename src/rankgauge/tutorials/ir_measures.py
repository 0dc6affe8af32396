"""``calc_aggregate`` and ``iter_calc`` of ir_measures, as wrappers of ``evaluate``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rankgauge.evaluation.evaluation import evaluate
from rankgauge.measures.measure import Measure


class Metric(NamedTuple):
    """Value of one measure for one query."""

    query_id: str
    measure: Measure
    value: float


def iter_calc(measures: Sequence[str | Measure], qrels: Any, run: Any) -> Iterator[Metric]:
    """Yield the value of each judged query by each measure; an undefined value is 0.0.

    Args:
        measures: Measures or their names; a curve (``IPrec``) is replaced by all of its points.
        qrels: Judgments in any form that :meth:`Qrels.of` accepts.
        run: A run in any form that :meth:`Run.of` accepts.

    Example:
        >>> list(iter_calc(["P@1"], {"q1": {"d1"}}, {"q1": ["d1"]}))
        [Metric(query_id='q1', measure=P@1, value=1.0)]
    """
    found = evaluate(qrels, run, measures)
    for column, measure in enumerate(found.measures):
        values = measure.counted(found.per_query[:, column])
        for query, value in zip(found.query_ids, values.tolist(), strict=True):
            yield Metric(query, measure, 0.0 if math.isnan(value) else value)


def calc_aggregate(measures: Sequence[str | Measure], qrels: Any, run: Any) -> dict[Measure, float]:
    """Return the mean of each measure over all judged queries.

    Args:
        measures: Measures or their names.
        qrels: Judgments in any form that :meth:`Qrels.of` accepts.
        run: A run in any form that :meth:`Run.of` accepts.

    Example:
        >>> calc_aggregate(["RR"], {"q1": {"d1"}, "q2": {"d1"}}, {"q1": ["d1"]})
        {RR: 0.5}
    """
    found = evaluate(qrels, run, measures)
    means = found.mean()
    return {measure: means[str(measure)] for measure in found.measures}

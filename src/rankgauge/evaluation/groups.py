"""`group_means()`: means of all queries and of groups of queries, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.core.text import many
from rankgauge.measures.measure import Measure
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table, by_column

_LEVEL = 0.95
# With a smaller (effective) sample size, intervals cover the mean less often than their level.
_FEW = 8


@dataclass(frozen=True, slots=True)
class GroupMean:
    """The mean of a measure over a group of queries.

    Attributes:
        group: The group; ``all`` for all queries.
        measure: The name of the measure.
        queries: The number of queries with a value.
        effective: The effective sample size (Kish 1965); without weights, the number of queries.
        mean: The mean, weighted if the evaluation has weights.
        low: The lower bound of the 95% interval; NaN without an interval.
        high: The upper bound of the 95% interval; NaN without an interval.
        weighted: Whether the mean is weighted.
        by_judge: Whether the mean is that by a judge of answers, not corrected for its errors.
    """

    group: str
    measure: str
    queries: int
    effective: float
    mean: float
    low: float
    high: float
    weighted: bool
    by_judge: bool = False

    @property
    def name(self) -> str:
        """Name of the measure for a table."""
        return f"{self.measure} (by judge)" if self.by_judge else self.measure


@dataclass(frozen=True)
class GroupMeans(Result):
    """Means of all queries and of each group of queries.

    Attributes:
        run_name: The name of the run.
        means: Sorted by measure, then by group; all queries come first, weighted and unweighted.
    """

    _attributes = "*"

    run_name: str
    means: tuple[GroupMean, ...]

    def table(self) -> Table:
        """Return a table with one row per mean."""
        measures = list(dict.fromkeys(group.name for group in self.means))
        weighted = any(group.weighted for group in self.means)
        names = (group.group + (", unweighted" if weighted and not group.weighted else "") for group in self.means)
        return Table(
            *by_column(
                len(measures) > 1 and ("measure", (group.name for group in self.means)),
                ("group", names),
                ("queries", (group.queries for group in self.means)),
                weighted and ("effective", (f"{group.effective:.1f}" for group in self.means)),
                (measures[0] if len(measures) == 1 else "mean", (group.mean for group in self.means)),
                (
                    "95% CI",
                    ("–" if math.isnan(group.low) else f"[{group.low:.3f}, {group.high:.3f}]" for group in self.means),
                ),
            ),
            title=self.run_name,
        )

    _columns = " ".join(("means", *GroupMean.__dataclass_fields__))

    def summary(self) -> str:
        """Return the number of groups."""
        groups = {group.group for group in self.means} - {"all"}
        return f"{self.run_name}: {many(len(groups), 'group')} of queries"


def group_means(evaluation: Any, max_measures: int | None = None) -> GroupMeans:
    """Return the means over all queries and over each group, with 95% intervals.

    Means are those of :meth:`Evaluation.mean`. With weights w they are sum(w v) / sum(w); the
    unweighted mean of all queries is added. Intervals are those of ``Measure.mean_interval``;
    with weights, they are t intervals from the jackknife
    (:func:`rankgauge.stats.weighted_mean_interval`), clipped to the bounds of the measure. Sums,
    geometric means, groups with an effective size below 8, and means by a judge of answers have no
    interval.

    Args:
        evaluation: An `Evaluation` with groups or weights.
        max_measures: The largest number of measures to include; with more, only nDCG@10 or the
            first.

    Example:
        >>> from rankgauge import evaluate
        >>> qrels, run = {"q1": {"d1"}, "q2": {"d2"}}, {"q1": ["d1"], "q2": ["x", "d2"]}
        >>> evaluation = evaluate(qrels, run, "RR", weights={"q1": 3, "q2": 1})
        >>> [(mean.mean, mean.effective) for mean in group_means(evaluation).means]
        [(0.875, 1.6), (0.75, 2.0)]
    """
    chosen = list(evaluation.measures)
    if max_measures is not None and len(chosen) > max_measures:
        chosen = [next((m for m in chosen if str(m) == "nDCG@10"), chosen[0])]
    rows = {"all": np.arange(len(evaluation.query_ids))}
    labels = np.array(evaluation.groups or (), dtype=object)
    for label in dict.fromkeys(evaluation.groups or ()):
        rows[label if label != "all" else "group all"] = np.flatnonzero(labels == label)
    return GroupMeans(
        evaluation.run_name, tuple(mean for measure in chosen for mean in _means(evaluation, measure, rows))
    )


def _means(evaluation: Any, measure: Measure, rows: dict[str, IntArray]) -> Iterator[GroupMean]:
    counted = evaluation.counted(measure)
    by_judge = measure.judged_by_model(evaluation.settings)
    weights = None if evaluation.weights is None else np.array(evaluation.weights)
    for label, places in rows.items():
        used = places[~np.isnan(counted[places])]
        for shares in (weights, None) if weights is not None and label == "all" else (weights,):
            own = None if shares is None else shares[used]
            mean = measure.mean(counted[used], None if own is None else own.tolist(), skip_undefined=True)
            effective, low, high = _interval(measure, counted[used], own)
            if by_judge:
                low = high = math.nan
            yield GroupMean(label, str(measure), len(used), effective, mean, low, high, own is not None, by_judge)


def _interval(measure: Measure, values: Any, weights: Any) -> tuple[float, float, float]:
    """Return the effective sample size and the bounds of the interval of the mean."""
    from rankgauge import stats

    used = len(values) if weights is None else int(np.count_nonzero(weights))
    effective = float(used) if weights is None or not used else stats.effective_size(weights)
    if effective < _FEW or measure.declaration.mean != "arithmetic":
        return effective, math.nan, math.nan
    if weights is None:
        return effective, *measure.mean_interval(values)
    interval = stats.weighted_mean_interval(values, weights, _LEVEL)
    lowest, highest = measure.declaration.bounds
    return effective, max(interval.low, lowest), min(interval.high, highest)

"""What repeated runs of one system differ by: a loss smaller than that says nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rankgauge.core.text import many
from rankgauge.data.judged_run import Values
from rankgauge.data.model import Qrels, Run
from rankgauge.errors import InputError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.measures.measure import Measure

__all__ = ["Noise"]

# Of a normal distribution, 95 % lie within so many standard deviations.
_BAND = 1.959963984540054


@dataclass(frozen=True)
class Noise:
    """How much runs of the same system differ.

    Attributes:
        runs: How many were looked at.
        bands: Measure to the difference of two means that 95 % of pairs of runs stay within.
        jitter: Query to measure to the largest value less the smallest.
    """

    runs: int
    bands: Mapping[str, float]
    jitter: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, truth: Qrels, runs: Sequence[Run], measures: Sequence[Measure]) -> Noise:
        """The noise of these runs.

        With s_q the standard deviation of a query's value over the runs, the means of two runs
        differ by a normal variable of variance 2 sum(s_q^2) / Q^2, if queries jitter
        independently: the band is 1.96 of its standard deviations. Where the means seen differ by
        more (queries that jitter together), the 95 % quantile of their differences is taken.

        Raises:
            InputError: For fewer than two runs.
        """
        if len(runs) < 2:
            raise InputError(
                f"got {many(len(runs), 'repeated run')}, wanted two or more", where="noise",
                fix="run the system of the baseline again: --noise first.run --noise second.run",
            )  # fmt: skip
        found = [evaluate(truth, run, measures) for run in runs]
        values = np.stack([evaluation.per_query for evaluation in found], axis=1)
        bands = {}
        jitter: dict[str, dict[str, float]] = {query: {} for query in found[0].query_ids}
        for column, measure in enumerate(found[0].measures):
            # What has no value in some run, and is left out of means, jitters in none.
            counted = measure.counted(values[:, :, column])
            known = ~np.isnan(counted).any(axis=1)
            bands[str(measure)] = _band(counted[known].T)
            spread = np.where(known, counted.max(axis=1) - counted.min(axis=1), 0.0)
            for query, width in zip(jitter, spread.tolist(), strict=True):
                jitter[query][str(measure)] = width
        return cls(runs=len(runs), bands=bands, jitter=jitter)


def _band(values: Values) -> float:
    """The band of one measure; `values` are (runs, queries)."""
    queries = values.shape[1]
    if not (values != values[0]).any():
        return 0.0  # exactly: a mean of equal numbers may differ from them in the last bit
    variances = values.var(axis=0, ddof=1).tolist()
    independent = _BAND * math.sqrt(2 * math.fsum(variances)) / queries
    means = [math.fsum(row) / queries for row in values.tolist()]
    seen = [abs(one - other) for one, other in combinations(means, 2)]
    return max(independent, float(np.quantile(seen, 0.95)))

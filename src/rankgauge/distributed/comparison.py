"""Comparison of runs from sums over all queries, without values per query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankgauge import stats
from rankgauge.comparison.comparison import PairedComparison, design_object, difference_object
from rankgauge.comparison.conclusions import best_sentence, difference_sentences, findings_of_difference
from rankgauge.comparison.differences import (
    CORRECTIONS,
    FEWEST_FOR_INTERVAL,
    Design,
    Difference,
    DifferenceSample,
    make_difference,
    unit_of,
)
from rankgauge.core.findings import Finding
from rankgauge.distributed.worker import (
    Key,
    PairJob,
    PairSums,
    SpreadJob,
    SpreadSums,
    Sum,
    mean_of,
    moments_of,
    skewness_of,
)
from rankgauge.errors import InputError
from rankgauge.measures.measure import parse
from rankgauge.stats.resampling import interval_of_sums


@dataclass(frozen=True, repr=False)
class DistributedComparison(PairedComparison):
    """Comparison of runs without values per query, with conclusions about their differences.

    Returned by :func:`rankgauge.distributed.spark.compare`. It has a subset of the content of
    :class:`rankgauge.comparison.Comparison`, with the same numbers.

    Attributes:
        run_means: Run to measure to mean.
        design: What is compared, and how it is tested.
        differences: One difference for each pair of runs and measure, by pair.
        sentences: Conclusions.
        findings: Properties of the inputs that limit the conclusions.
    """

    run_means: Mapping[str, Mapping[str, float]]

    def means(self) -> dict[str, dict[str, float]]:
        """Return a dictionary of run to measure to mean, in the order of the input."""
        return {run: dict(by_measure) for run, by_measure in self.run_means.items()}

    def _data(self) -> dict[str, Any]:
        return {
            "design": design_object(self.design),
            "measures": [str(measure) for measure in self.measures],
            "runs": [{"name": run, "means": means} for run, means in self.means().items()],
            "differences": [difference_object(d) for d in self.differences],
            "sentences": list(self.sentences),
            "findings": [finding.to_dict() for finding in self.findings],
        }


def spread_job(pairs: PairJob, sums: Mapping[Key, PairSums], design: Design) -> SpreadJob:
    """Return the settings of the second pass, from the sums of the first one."""
    centers = {key: (s.exponent, s.center) for key, s in sums.items() if s.spreads}
    draws = design.draws if design.interval == "percentile" else 0
    return SpreadJob(pairs, centers, draws, design.seed)


def compare_sums(  # noqa: PLR0917 - results of the workers
    runs: Sequence[str],
    design: Design,
    values: Mapping[tuple[str, str], Sum],
    sums: Mapping[Key, PairSums],
    spreads: Mapping[Key, SpreadSums],
    *,
    skip_undefined: bool,
) -> DistributedComparison:
    """Compare runs from sums over all queries.

    Args:
        runs: Names of the runs.
        design: A t test, with intervals by t or percentile.
        values: Sum of the values for each run and measure.
        sums: Sums of the differences for each pair and measure.
        spreads: Sums around the mean, for differences that vary.
        skip_undefined: Whether undefined values are excluded from the means.

    Raises:
        InputError: If there are fewer than two queries.
    """
    queries = max((s.queries for s in values.values()), default=0)
    if queries < 2:
        few = "one query is too few for a comparison" if queries else "there are no values"
        raise InputError(few, where="values", fix="judge more queries")
    means: dict[str, dict[str, float]] = {run: {} for run in runs}
    for (run, name), value in values.items():
        means[run][name] = mean_of(name, value, skip_undefined=skip_undefined)
    tested = [key for key in sums if parse(key[2]) in design.tested]
    moments = {key: moments_of(total, spreads.get(key)) for key, total in sums.items()}
    raw = []
    for key in tested:
        mean, sd = moments[key]
        varied = sums[key].queries >= 2 and (mean or sd)
        raw.append(stats.t_test_from_moments(mean, sd, sums[key].queries).p if varied else 1.0)
    corrected = dict(zip(tested, zip(raw, CORRECTIONS[design.correction](raw).tolist(), strict=True), strict=True))
    level = design.level_of(len(runs), len(design.pairs_of(runs)))
    differences: list[Difference] = []
    doubts: list[Finding] = []
    for key, total in sums.items():
        run, base, name = key
        spread = spreads.get(key)
        mean, sd = moments[key]
        sample = DifferenceSample(
            mean,
            *_interval((mean, sd), total, spread, design),
            sd,
            total.queries,
            total.above,
            total.below,
            unit_of(total.extremes),
        )
        both = (means[run][name], means[base][name])
        p, after = corrected.get(key, (None, None))
        d = make_difference((run, base, parse(name)), both, sample, p, after, level)
        differences.append(d)
        if d.measure == design.tested[0]:
            doubts += findings_of_difference(d, skewness_of(total, spread))
    primary = {run: of_run[str(design.tested[0])] for run, of_run in means.items()}
    sentences = (best_sentence(primary, design, differences, None), *difference_sentences(differences))
    return DistributedComparison(design, tuple(differences), sentences, tuple(doubts), means)


def _interval(
    moments: tuple[float, float], sums: PairSums, spread: SpreadSums | None, design: Design
) -> tuple[float, float]:
    """Return the bounds of the interval; NaN if too few queries differ."""
    mean, sd = moments
    if spread is None or not sd or sums.above + sums.below < FEWEST_FOR_INTERVAL:
        return math.nan, math.nan
    if design.interval == "percentile":
        return interval_of_sums(spread.weights, spread.sums, sums.exponent, 0.95)
    interval = stats.t_interval_from_moments(mean, sd, sums.queries)
    return interval.low, interval.high

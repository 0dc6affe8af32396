"""Rates estimated by a fallible judge, the errors of the judge, and corrected rates.

Items of the same question are similar, so standard errors are computed from sums over clusters, and
intervals use the t distribution. With few labels, the estimated spread can be 0 by chance.
Intervals, but not values, therefore include pseudo-labels, half of them of each kind: two in each
group if rates are compared (Agresti and Caffo 2000), four for a mean (Agresti and Coull 1998).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rankgauge.errors import InputError
from rankgauge.stats.arrays import LEVEL, FloatArray, check_share, cluster_numbers
from rankgauge.stats.intervals import student_t_quantile, wilson_interval

# Pseudo-labels for each of two groups, for a mean, and for groups of differences.
_EACH, _TWICE = np.array([1.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0])
_FEWEST_LABELS = 2
_HALVES = np.array([0.5, -0.5])
# Smallest lower bound of Youden's J, sensitivity + specificity - 1, of a usable judge: a corrected
# interval is 1 / J as wide as an uncorrected one, so at most twice.
USABLE = 0.5


@dataclass(frozen=True)
class Estimate:
    """Estimate with its interval.

    Attributes:
        value: The estimate; NaN if undefined or withheld.
        low: Lower bound of the interval; NaN if there is none.
        high: Upper bound.
        level: Confidence level of the interval.
        count: Number of labels or items that it is computed from.
        reason: Why there is no value or no interval; empty otherwise.
    """

    value: float
    low: float
    high: float
    level: float
    count: int
    reason: str = ""

    @property
    def width(self) -> float:
        """Width of the interval; infinite if there is none."""
        return math.inf if math.isnan(self.high - self.low) else self.high - self.low


def clustered_rate(hits: npt.ArrayLike, clusters: npt.ArrayLike | None = None) -> Estimate:
    """Return a proportion with Wilson's interval for the effective number of items.

    The effective number is n / max(1, D), where D is the variance between clusters divided by that
    of independent items (Kish 1965; Dean and Pagano 2015).

    Args:
        hits: (N,) 0 or 1.
        clusters: (N,) cluster of each item; by default, each item is its own cluster.

    Example:
        >>> estimate = clustered_rate([1, 1, 1, 0, 1, 1, 0, 1, 1, 1])
        >>> estimate.value, round(estimate.low, 3), round(estimate.high, 3)
        (0.8, 0.49, 0.943)
    """
    values = _zero_to_one(hits, "hits")
    n = len(values)
    if not n:
        return _undefined("no label", LEVEL)
    mean = math.fsum(values) / n
    effective = float(n)
    groups = cluster_numbers(clusters, n, "item")
    if clusters is not None and 0 < mean < 1:
        ratio = _variance((values - mean) / n, groups) / (mean * (1 - mean) / n)
        effective = n / max(1.0, ratio)
    low, high = wilson_interval(mean * effective, effective, LEVEL)
    return Estimate(mean, float(low), float(high), LEVEL, n)


def clustered_difference(
    values: npt.ArrayLike, group: npt.ArrayLike, clusters: npt.ArrayLike | None = None, *, level: float = 0.95
) -> Estimate:
    """Return the mean of values in a group minus that of the other items, with an interval.

    Args:
        values: (N,) numbers from -1 to 1, such as label of the judge minus label of a person.
        group: (N,) bool, whether each item is in the group.
        clusters: (N,) cluster of each item; by default, each item is its own cluster.
        level: Confidence level of the interval.

    Example:
        >>> estimate = clustered_difference([1, 0, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0])
        >>> estimate.value, round(estimate.low, 2), round(estimate.high, 2)
        (0.75, -0.15, 1.15)
    """
    check_share(level, "level")
    numbers, inside = np.asarray(values, dtype=np.float64), np.asarray(group, dtype=bool)
    if numbers.shape != inside.shape or not (np.abs(numbers) <= 1).all():
        raise InputError(
            "values and group do not match",
            where="clustered_difference",
            fix="pass a number from -1 to 1, and whether it is in the group, for each item",
        )
    groups = cluster_numbers(clusters, len(numbers), "item")
    if min(inside.sum(), (~inside).sum()) < 2:
        return _undefined("fewer than 2 labels in a group", level)
    value = float(numbers[inside].mean() - numbers[~inside].mean())
    influence = np.zeros(len(numbers) + 4)
    center = 0.0
    for row, (part, sign) in enumerate(((inside, 1.0), (~inside, -1.0))):
        some = np.append(numbers[part], _HALVES)
        at = np.append(np.flatnonzero(part), len(numbers) + 2 * row + np.arange(2))
        influence[at] = sign * (some - some.mean()) / len(some)
        center += sign * float(some.mean())
    spread = math.sqrt(_variance(influence, _append_clusters(groups, 4)))
    half = spread * _t_quantile(level, len(np.unique(groups)))
    low, high = min(center - half, value), max(center + half, value)
    return Estimate(value, low, high, level, len(numbers))


@dataclass(frozen=True)
class JudgeErrors:
    """Errors of a judge: its mean value is a line, intercept + slope * true value.

    For labels, the intercept is 1 - specificity, and the slope is Youden's J, sensitivity +
    specificity - 1: 1 for a perfect judge, and 0 for a judge that guesses. A difference between two
    systems in which the judge errs as often shrinks to slope * true difference.

    Attributes:
        intercept: Mean value of the judge where the true value is 0.
        slope: Mean value of the judge where the true value is 1, minus the intercept.
        smoothed: Both with four pseudo-labels, two right and two wrong.
        covariance: Variance of the smoothed intercept, covariance, variance of the smoothed slope.
        quantile: Quantile of the t distribution.
        level: Confidence level of intervals.
        count: Number of labels of people.
        reason: Why the errors are unknown; empty otherwise.
    """

    intercept: float
    slope: float
    smoothed: tuple[float, float]
    covariance: tuple[float, float, float]
    quantile: float
    level: float
    count: int
    reason: str = ""

    @property
    def gain(self) -> Estimate:
        """The slope with its interval, within -1 and 1."""
        if self.reason:
            return _undefined(self.reason, self.level, self.count)
        half = self.quantile * math.sqrt(self.covariance[2])
        low, high = self.smoothed[1] - half, self.smoothed[1] + half
        low, high = max(-1.0, min(low, self.slope)), min(1.0, max(high, self.slope))
        return Estimate(self.slope, low, high, self.level, self.count)

    def corrected(self, mean: float, variance: float) -> Estimate:
        """Return a mean corrected for the errors, as by :func:`rogan_gladen`.

        Args:
            mean: The mean of the judge's values.
            variance: The variance of this mean.
        """
        gain = self.gain
        if self.reason or gain.low < USABLE:
            withheld = (
                f"withheld: sensitivity + specificity - 1 is {gain.value:.2f} [{gain.low:.2f}, "
                f"{gain.high:.2f}]; its lower bound must be {USABLE:g} or more"
            )
            return _undefined(self.reason or withheld, self.level, self.count)
        # Usable judges are selected by their estimated slope, which is thus too high on average.
        ends = (1 - (1 - self.level) / 10, (1 + self.level) / 2)
        wider = NormalDist().inv_cdf(ends[0]) / NormalDist().inv_cdf(ends[1])
        square, (v, shared, w) = self.quantile**2, (wider**2 * x for x in self.covariance)
        rate, slope = mean - self.smoothed[0], self.smoothed[1]
        # Rates within the quantile of the estimate: the bounds solve a quadratic equation.
        a = slope**2 - square * w
        b = rate * slope + square * shared
        c = rate**2 - square * (variance + v)
        reach = math.sqrt(max(0.0, b**2 - a * c))
        value = min(1.0, max(0.0, (mean - self.intercept) / self.slope))
        low, high = max(0.0, (b - reach) / a), min(1.0, (b + reach) / a)
        return Estimate(value, min(low, value), max(high, value), self.level, self.count)


def judge_errors(judge: npt.ArrayLike, human: npt.ArrayLike, clusters: npt.ArrayLike | None = None) -> JudgeErrors:
    """Return the errors of a judge, by least squares of its values on those of people.

    Args:
        judge: (N,) values of the judge, from 0 to 1.
        human: (N,) values of people, from 0 to 1; NaN where missing.
        clusters: (N,) cluster of each item; by default, each item is its own cluster.

    Example:
        >>> errors = judge_errors([1, 1, 1, 0, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0])
        >>> errors.intercept, errors.slope
        (0.25, 0.5)
    """
    says = _zero_to_one(judge, "values of the judge")
    labels, known = _labels(human, len(says))
    groups = cluster_numbers(clusters, len(says), "item")
    count, nan = int(known.sum()), math.nan
    missing = [
        f"no item was labeled {name} by people"
        for name, there in (("positive", (labels[known] > 0).any()), ("negative", (labels[known] < 1).any()))
        if not there
    ]
    if not missing and np.ptp(labels[known]) == 0:
        missing = ["people gave all items the same value"]
    if missing:
        return JudgeErrors(nan, nan, (nan, nan), (nan, nan, nan), nan, LEVEL, count, missing[0])
    x, y = np.append(labels[known], _TWICE), np.append(says[known], np.tile(_EACH, 2))
    raw, smoothed = _least_squares(x[:-4], y[:-4]), _least_squares(x, y)
    centered, residual = x - x.mean(), y - smoothed[0] - smoothed[1] * x
    on_slope = centered * residual / (centered @ centered)
    on_intercept = residual / len(x) - x.mean() * on_slope
    own = _append_clusters(np.unique(groups[known], return_inverse=True)[1], 4)
    sums = np.stack([np.bincount(own, row) for row in (on_intercept, on_slope)])
    number = sums.shape[1]
    (v, shared), (_, w) = (sums @ sums.T * number / (number - 1)).tolist()
    return JudgeErrors(*raw, smoothed, (v, shared, w), _t_quantile(LEVEL, number - 4), LEVEL, count)


def _least_squares(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Return intercept and slope."""
    centered = x - x.mean()
    slope = float(centered @ y / (centered @ centered))
    return float(y.mean() - slope * x.mean()), slope


def rogan_gladen(
    judge: npt.ArrayLike,
    human: npt.ArrayLike,
    clusters: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> Estimate:
    """Return the rate of positive items, corrected for the errors of the judge.

    The rate is (p + specificity - 1) / (sensitivity + specificity - 1), where p is the rate
    according to the judge (Rogan and Gladen 1978), with Fieller's interval, which includes the
    variance of sensitivity and specificity (as in Lee et al. 2025, arXiv 2511.21140), at the
    level 99% for these, because judges count as usable if their estimates are
    high. People may label other items than those whose rate is estimated, if the judge errs as
    often on both. The rate is withheld unless the judge is usable: the lower bound of sensitivity +
    specificity - 1 is at least 0.5.

    Args:
        judge: (N,) labels of the judge, 0 or 1.
        human: (N,) labels of people, 0 or 1; NaN where missing.
        clusters: (N,) cluster of each item; by default, each item is its own cluster.
        weights: (N,) weight of each item in the rate; 0 for items used only for their labels.

    Example:
        >>> from math import nan
        >>> judge = [1] * 90 + [0] * 10 + [1] * 10 + [0] * 90 + [1] * 150 + [0] * 50
        >>> human = [1] * 100 + [0] * 100 + [nan] * 200
        >>> estimate = rogan_gladen(judge, human, weights=[0] * 200 + [1] * 200)
        >>> round(estimate.value, 4)  # 0.75 according to the judge
        0.8125
    """
    errors = judge_errors(judge, human, clusters)
    says = _zero_to_one(judge, "labels of the judge")
    labels, known = _labels(human, len(says))
    if not np.isin(labels[known], (0, 1)).all():
        raise InputError("labels of people are not 0 or 1", where="rogan_gladen", fix="pass 0, 1, or NaN")
    share = np.ones(len(says)) if weights is None else np.asarray(weights, dtype=np.float64)
    if share.shape != says.shape or not (share >= 0).all() or not share.any():
        raise InputError(
            "weights do not match",
            where="rogan_gladen",
            fix="pass one number of 0 or more for each item, at least one above 0",
        )
    share /= share.sum()
    rate = float(share @ says)
    return errors.corrected(rate, _variance(share * (says - rate), cluster_numbers(clusters, len(says), "item")))


def prediction_powered_mean(
    judge: npt.ArrayLike,
    human: npt.ArrayLike,
    clusters: npt.ArrayLike | None = None,
    *,
    power: float | None = None,
) -> Estimate:
    """Return a mean from labels of a judge on all items and of people on a random sample.

    The estimate is mean(human) + w (mean of judge on the rest - mean of judge on the sample). It is
    unbiased whatever the errors of the judge (Angelopoulos et al. 2023). The weight w, between 0
    and 1, minimizes the variance (PPI++, arXiv 2311.01453).

    Args:
        judge: (N,) values of the judge, from 0 to 1.
        human: (N,) values of people, from 0 to 1; NaN where missing.
        clusters: (N,) cluster of each item; by default, each item is its own cluster.
        power: The weight w; 0 uses only the labels of people.

    Example:
        >>> from math import nan
        >>> judge = [1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1]
        >>> human = [1, 0, 0, 1, 0, 1] + [nan] * 6
        >>> estimate = prediction_powered_mean(judge, human)
        >>> round(estimate.value, 3), round(estimate.low, 2), round(estimate.high, 2)
        (0.562, 0.15, 0.97)
    """
    predicted = _zero_to_one(judge, "labels of the judge")
    labels, known = _labels(human, len(predicted))
    groups = cluster_numbers(clusters, len(predicted), "item")
    sample, rest = int(known.sum()), int((~known).sum())
    if len(np.unique(groups[known])) < 2:
        return _undefined("labels of people on fewer than 2 questions", LEVEL, sample)
    own, other = predicted[known], predicted[~known]
    weight, leverage = _best_weight(own, labels[known], rest) if power is None else (power, np.zeros(sample))
    shift = weight * (float(other.mean()) - float(own.mean())) if rest else 0.0
    value = float(labels[known].mean()) + shift
    # Pseudo-labels are on items with the average value of the judge.
    residual = np.append(labels[known] - weight * own, _TWICE - weight * own.mean())
    added = len(_TWICE)
    center = residual.mean() + (weight * float(other.mean()) if rest else weight * own.mean())
    influence = np.zeros(len(predicted) + added)
    at = np.append(np.flatnonzero(known), len(predicted) + np.arange(added))
    # The weight is fitted to these items, so their residuals are too small.
    fitted = 1 - np.append(leverage, np.zeros(added))
    influence[at] = (residual - residual.mean()) / fitted / (sample + added)
    if rest:
        influence[np.flatnonzero(~known)] = weight * (other - other.mean()) / rest
    spread = math.sqrt(_variance(influence, _append_clusters(groups, added)))
    half = spread * _t_quantile(LEVEL, len(np.unique(groups[known])))
    value, center = min(1.0, max(0.0, value)), float(center)
    low, high = max(0.0, center - half), min(1.0, center + half)
    return Estimate(value, min(low, value), max(high, value), LEVEL, sample)


def prediction_powered_values(
    judge: npt.ArrayLike, human: npt.ArrayLike, clusters: npt.ArrayLike | None = None
) -> FloatArray:
    """Return one value for each cluster whose mean is the prediction-powered mean.

    Each value is a weighted value of the judge plus, where people labeled the item, the error of
    the judge divided by the share of labeled items. The mean and the spread of these values are
    those of the mean by prediction-powered inference (its influence function), so that tests and
    intervals of means apply.

    Args:
        judge: (N,) values of the judge, such as differences between two systems.
        human: (N,) values of people on a random sample of the items; NaN where missing.
        clusters: (N,) cluster of each item; by default, each item is its own cluster.

    Returns:
        (G,) values.

    Example:
        >>> values = prediction_powered_values([1, 0, 1, 1], [1, 0, float("nan"), float("nan")])
        >>> float(values.mean())
        0.75
    """
    said, labels = (np.asarray(column, dtype=np.float64) for column in (judge, human))
    groups = cluster_numbers(clusters, len(said), "item")
    known = ~np.isnan(labels)
    count = int(known.sum())
    if labels.shape != said.shape or count < _FEWEST_LABELS:
        raise InputError(
            f"{count} labels of people on {len(said)} items",
            where="prediction_powered_values",
            fix=f"pass a value for each item, NaN where missing; at least {_FEWEST_LABELS} labels",
        )
    weight, _ = _best_weight(said[known], labels[known], len(said))
    weight = min(1.0, weight * (1 + count / len(said)))
    errors = labels[known] - weight * said[known]
    values = weight * said + errors.mean()
    # Two parameters, weight and mean error, are fitted to the labels.
    fitted = math.sqrt(count / max(1, count - 2))
    values[known] += (errors - errors.mean()) * fitted * len(said) / count
    totals = np.bincount(groups, values)
    return np.asarray(totals * (len(totals) / len(said)), dtype=np.float64)


def _best_weight(own: FloatArray, labels: FloatArray, rest: int) -> tuple[float, FloatArray]:
    """Return the weight of the judge with the smallest variance, and the leverage of each item."""
    centered = own - own.mean()
    squares = float(centered @ centered)
    if not rest or not squares:
        return 0.0, np.zeros(len(own))
    least = 1 / (1 + len(own) / rest)
    weight = least * float(centered @ (labels - labels.mean())) / squares
    return min(1.0, max(0.0, weight)), np.minimum(least * centered**2 / squares, 0.5)


def naive_rate(judge: npt.ArrayLike, clusters: npt.ArrayLike | None = None) -> Estimate:
    """Return the mean of the values of a judge, with an interval that assumes they are correct.

    This interval is usually reported, but covers the true mean only if the judge is right.

    Args:
        judge: (N,) values of the judge, from 0 to 1.
        clusters: (N,) cluster of each item; by default, each item is its own cluster.

    Example:
        >>> naive_rate([1, 1, 0, 1]).value
        0.75
    """
    values = _zero_to_one(judge, "labels of the judge")
    if len(values) < 2:
        return _undefined("fewer than 2 questions", LEVEL, len(values))
    groups = cluster_numbers(clusters, len(values), "item")
    mean = float(values.mean())
    spread = math.sqrt(_variance((values - mean) / len(values), groups))
    half = spread * NormalDist().inv_cdf((1 + LEVEL) / 2)
    return Estimate(mean, max(0.0, mean - half), min(1.0, mean + half), LEVEL, len(values))


def _variance(influence: FloatArray, groups: npt.NDArray[np.intp]) -> float:
    """Return the variance of a sum over independent clusters."""
    sums = np.bincount(groups, influence)
    number = len(sums)
    return float(sums @ sums) * number / max(1, number - 1)


def _append_clusters(groups: npt.NDArray[np.intp], count: int) -> npt.NDArray[np.intp]:
    """Return these clusters, followed by `count` clusters of one item."""
    return np.append(groups, groups.max() + 1 + np.arange(count))


def _t_quantile(level: float, clusters: int) -> float:
    return student_t_quantile((1 + level) / 2, max(1, clusters - 1))


def _undefined(reason: str, level: float, count: int = 0) -> Estimate:
    return Estimate(math.nan, math.nan, math.nan, level, count, reason)


def _zero_to_one(numbers: npt.ArrayLike, what: str) -> FloatArray:
    try:
        values = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array([math.nan])
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"{what} are not numbers from 0 to 1", where=what, fix="pass one for each item")
    return values


def _labels(human: npt.ArrayLike, n: int) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return the labels of people, 0 where missing, and whether each is known."""
    try:
        labels = np.asarray(human, dtype=np.float64)
    except (TypeError, ValueError):
        labels = np.empty(0)
    known = ~np.isnan(labels)
    if labels.shape != (n,):
        raise InputError(
            f"labels of people do not match the {n} of the judge",
            where="human",
            fix="pass one for each item, NaN where there is none",
        )
    return _zero_to_one(np.where(known, labels, 0.0), "labels of people"), known

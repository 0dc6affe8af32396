"""Ratios of sums over clusters, such as clicks per answer with users as clusters.

Answers to the same user are similar, so an interval for independent answers is too narrow. All
results are computed from six numbers for each group (`ClusterSums`), which a database can compute.

Confidence sequences are for the difference of two arms that is examined repeatedly. A test at level
5% that is repeated every day has far more than 5% false positives: the difference of two equal arms
fluctuates, and eventually exceeds any fixed bound. The bounds of a confidence sequence contain the
true difference at all looks simultaneously. They are computed from the estimate and its
variance at each look (`ClusterSums`), so events of one user may be dependent.

The bounds follow from the mixture sequential probability ratio test (Robbins 1970; Johari, Pekelis,
and Walsh 2015; Howard et al. 2021): with a normal distribution with standard deviation tau over the
true difference, the likelihood ratio of d with variance V is

    L(d) = sqrt(V / (V + tau²)) · exp(tau² d² / (2 V (V + tau²))),

and without a true difference, L exceeds 1 / alpha at any time with probability at most alpha. With
estimated variances and approximately normal sums, this holds asymptotically (Waudby-Smith et al.
2024); for simulations with rates from 0.01 to 0.5 and returning users, see
docs/explain/experiments.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rankgauge.errors import InputError
from rankgauge.stats.arrays import LEVEL, FloatArray, check_amount, check_share, root
from rankgauge.stats.intervals import student_t_quantile, wilson_interval
from rankgauge.stats.judge_error import Estimate


@dataclass(frozen=True)
class ClusterSums:
    """Sums over clusters with numerators y and denominators x.

    Attributes:
        clusters: Number of clusters with a denominator above 0.
        y: Sum of y.
        x: Sum of x.
        yy: Sum of y².
        xy: Sum of x y.
        xx: Sum of x².
    """

    clusters: int
    y: float
    x: float
    yy: float
    xy: float
    xx: float

    @classmethod
    def of(cls, y: npt.ArrayLike, x: npt.ArrayLike) -> ClusterSums:
        """Return the sums of (C,) numerators and denominators, one of each per cluster.

        Raises:
            InputError: If their lengths differ, or a denominator is negative.

        Example:
            >>> ClusterSums.of([1, 0, 2], [2, 1, 3]).ratio
            0.5
        """
        over, under = np.asarray(y, dtype=np.float64), np.asarray(x, dtype=np.float64)
        if over.ndim != 1 or over.shape != under.shape or not (under >= 0).all():
            raise InputError(
                "numerators and denominators do not match",
                where="ClusterSums",
                fix="pass two numbers for each cluster, denominators of 0 or more",
            )
        sums = (over, under, over * over, over * under, under * under)
        return cls(int(np.count_nonzero(under)), *(math.fsum(terms) for terms in sums))

    @property
    def ratio(self) -> float:
        """Sum of y / sum of x; NaN if the sum of x is 0."""
        return self.y / self.x if self.x else math.nan

    @property
    def variance(self) -> float:
        """Cluster-robust variance of the ratio: C / (C - 1) · Σ (y - ratio x)² / (Σ x)².

        Linearized (Cochran 1977, section 6.4); NaN with fewer than two clusters.
        """
        if self.clusters < 2:
            return math.nan
        residual = self.yy - 2 * self.ratio * self.xy + self.ratio**2 * self.xx
        return max(0.0, residual) * self.clusters / (self.clusters - 1) / self.x**2

    @property
    def effective_clusters(self) -> float:
        """Effective number of clusters with hits, (Σy)² / Σy², or with misses, whichever is smaller.

        Without hits or without misses, the number cannot be estimated, and is 0.
        """
        misses, squares = self.x - self.y, self.xx - 2 * self.xy + self.yy
        return min(self.y**2 / self.yy if self.yy else 0.0, misses**2 / squares if squares > 0 else 0.0)

    @property
    def design_effect(self) -> float:
        """Variance of a proportion divided by that of independent items, at least 1.

        A weighted mean of the observed design effect and that of clusters whose items are all
        equal, Σx² / Σx. The weight of the observed one is :attr:`effective_clusters`; the weight of
        the other one is 1. Without hits or without misses, the spread is unknown, and only the
        sizes of the clusters count.
        """
        weight = self.effective_clusters
        independent = self.ratio * (1 - self.ratio) / self.x
        seen = max(1.0, self.variance / independent) if weight and independent > 0 else 1.0
        return (weight * seen + self.xx / self.x) / (weight + 1)


def clustered_proportion(sums: ClusterSums, level: float = 0.95) -> Estimate:
    """Return a proportion of items in clusters, with Wilson's interval.

    The number of items is divided by the design effect (:attr:`ClusterSums.design_effect`), and the
    normal quantile is replaced by that of the t distribution with clusters - 1 degrees of freedom
    (as in Dean and Pagano 2015; Korn and Graubard 1998 for few clusters).

    Args:
        sums: Hits y and items x, 0 <= y <= x in each cluster.
        level: Confidence level of the interval.

    Returns:
        The estimate; its `count` is the number of items. A single cluster has a value but no
        interval.

    Raises:
        InputError: If there are more hits than items.

    Example:
        >>> estimate = clustered_proportion(ClusterSums.of([2, 0, 1, 3], [4, 1, 2, 3]))
        >>> round(estimate.value, 2), round(estimate.low, 2), round(estimate.high, 2)
        (0.6, 0.15, 0.93)
    """
    check_share(level, "level")
    if not 0 <= sums.y <= sums.x:
        raise InputError(
            f"{sums.y:g} hits of {sums.x:g} items are not possible",
            where="clustered_proportion",
            fix="pass hits from 0 to the number of items, or use clustered_mean()",
        )
    missing = _without_interval(sums, level)
    if missing is not None:
        return missing
    effective = sums.x / sums.design_effect
    # Wilson's interval depends only on n / z²: fewer items have the effect of a larger quantile.
    normal = NormalDist().inv_cdf((1 + level) / 2)
    effective *= (normal / student_t_quantile((1 + level) / 2, sums.clusters - 1)) ** 2
    low, high = wilson_interval(sums.ratio * effective, effective, level)
    return Estimate(sums.ratio, float(low), float(high), level, round(sums.x))


def clustered_mean(
    sums: ClusterSums, level: float = 0.95, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> Estimate:
    """Return a ratio of sums, such as a mean of items in clusters, with a t interval.

    Args:
        sums: Numerators and denominators.
        level: Confidence level of the interval.
        bounds: Smallest and largest possible ratio.

    Returns:
        The estimate; its `count` is the sum of denominators. A single cluster, or clusters without
        any variation, have a value but no interval.

    Example:
        >>> sums = ClusterSums.of([4, 3, 8, 4], [2, 1, 3, 4])
        >>> estimate = clustered_mean(sums, bounds=(1, float("inf")))
        >>> round(estimate.value, 2), round(estimate.low, 2), round(estimate.high, 2)
        (1.9, 1, 3.52)
    """
    check_share(level, "level")
    missing = _without_interval(sums, level)
    if missing is not None:
        return missing
    value, count = sums.ratio, round(sums.x)
    # The variance is a difference of rounded sums: if rounding can explain it, it is 0.
    if sums.variance * sums.x**2 <= 1e-9 * sums.yy:
        return Estimate(value, math.nan, math.nan, level, count, "all values are equal")
    half = math.sqrt(sums.variance) * student_t_quantile((1 + level) / 2, sums.clusters - 1)
    low, high = max(bounds[0], value - half), min(bounds[1], value + half)
    return Estimate(value, low, high, level, count)


def _without_interval(sums: ClusterSums, level: float) -> Estimate | None:
    if sums.clusters >= 2:
        return None
    reason = "a single cluster: the spread is unknown" if sums.clusters else "nothing to count"
    return Estimate(sums.ratio, math.nan, math.nan, level, round(sums.x), reason)


# With fewer effective clusters, rare events have more than 5% false positives
# (docs/explain/experiments.md).
_LEAST = 10


@dataclass(frozen=True, eq=False)
class ConfidenceSequence:
    """Intervals that contain the true difference at all looks simultaneously.

    Attributes:
        difference: (T,) estimate at each look.
        low: (T,) lower bounds; -inf where the variance is unknown.
        high: (T,) upper bounds; inf where the variance is unknown.
        p: (T,) always-valid p-values of no difference: the running minimum over looks.
    """

    difference: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray


def confidence_sequence(differences: npt.ArrayLike, variances: npt.ArrayLike, *, mixing: float) -> ConfidenceSequence:
    """Return the 95% confidence sequence of a difference (Robbins 1970; Howard et al. 2021).

    d ± sqrt(V (V + tau²) / tau² · log((V + tau²) / (V alpha²))).

    Args:
        differences: (T,) estimate at each look, from all data so far.
        variances: (T,) variance of each estimate; NaN if unknown, which makes a look inconclusive.
        mixing: tau, which must not depend on the differences; see :func:`mixing_sd`.

    Raises:
        InputError: If lengths differ, or a variance is not above 0.

    Example:
        >>> sequence = confidence_sequence([0.1, 0.05], [0.002, 0.0002], mixing=0.05)
        >>> sequence.low.round(4).tolist(), sequence.p.round(4).tolist()
        ([-0.0565, 0.0069], [0.374, 0.0113])
    """
    check_amount(mixing, "mixing", positive=True)
    estimates, variance = (np.asarray(values, dtype=np.float64) for values in (differences, variances))
    if estimates.ndim != 1 or estimates.shape != variance.shape or (variance <= 0).any():
        raise InputError(
            "differences and variances do not match",
            where="confidence_sequence",
            fix="pass one of each for every look, variances above 0 or NaN",
        )
    known = np.isfinite(variance) & np.isfinite(estimates)
    v = np.where(known, variance, 1.0)
    d = np.where(known, estimates, 0.0)
    prior = mixing**2
    half = np.sqrt(v * (v + prior) / prior * (np.log1p(prior / v) - 2 * math.log(1 - LEVEL)))
    log_ratio = prior * d**2 / (2 * v * (v + prior)) - np.log1p(prior / v) / 2
    p = np.where(known, np.exp(-np.maximum(log_ratio, 0.0)), 1.0)
    half = np.where(known, half, math.inf)
    return ConfidenceSequence(estimates, d - half, d + half, np.minimum.accumulate(p))


def mixing_sd(variance: float) -> float:
    """Return the mixing standard deviation tau for the narrowest interval at a variance.

    At variance V, the half-width is smallest where r - log(1 + r) = -2 log(alpha), with
    r = tau² / V.

    Args:
        variance: Variance expected at the end of the experiment, such as that of a single question
            divided by the number of questions.

    Example:
        >>> round(mixing_sd(0.0001), 4)
        0.0287
    """
    check_amount(variance, "variance", positive=True)

    def past(r: float) -> bool:
        return r - math.log1p(r) + 2 * math.log(1 - LEVEL) >= 0

    high = 1.0
    while not past(high):
        high *= 2
    return math.sqrt(variance * root(past, 0.0, high))


def variance_needed(difference: float, *, mixing: float) -> float:
    """Return the variance at which a look detects a true difference with 80% power.

    Solves abs(d) = half-width(V) + z(0.8) sqrt(V). Earlier looks add to the probability.

    Args:
        difference: True difference, not 0.
        mixing: tau.

    Example:
        >>> round(variance_needed(0.05, mixing=0.05), 6)
        0.000164
    """
    check_amount(abs(difference), "difference", positive=True)
    check_amount(mixing, "mixing", positive=True)
    z = NormalDist().inv_cdf(0.8)

    def too_large(v: float) -> bool:
        half = confidence_sequence([0.0], [v], mixing=mixing).high[0]
        return bool(half + z * math.sqrt(v) >= abs(difference))

    return root(too_large, 0.0, difference**2)


def difference_variance(new: ClusterSums, baseline: ClusterSums) -> tuple[float, float]:
    """Return the difference between the ratios of two independent arms, and its variance.

    The variance is NaN while the effective number of clusters of either arm
    (:attr:`ClusterSums.effective_clusters`) is below 10.

    Example:
        >>> first, second = ClusterSums.of([1, 0] * 20, [1] * 40), ClusterSums.of([1] * 30, [2] * 30)
        >>> difference_variance(first, second)
        (0.0, 0.006410256410256411)
    """
    enough = min(new.effective_clusters, baseline.effective_clusters) >= _LEAST
    variance = new.variance + baseline.variance if enough else math.nan
    return new.ratio - baseline.ratio, variance if variance > 0 else math.nan

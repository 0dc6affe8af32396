"""Ratios of sums over clusters, such as clicks per answer with users as clusters.

Answers to the same user are similar, so an interval for independent answers is too narrow. All
results are computed from six numbers for each group (`ClusterSums`), which a database can compute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rankgauge.errors import InputError
from rankgauge.stats.arrays import check_share
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
        return cls(int(np.count_nonzero(under)), *(math.fsum(each) for each in sums))

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
    def design_effect(self) -> float:
        """Variance of a proportion divided by that of independent items, at least 1.

        A weighted mean of the observed design effect and that of clusters whose items are all
        equal, Σx² / Σx. The weight of the observed one is the effective number of clusters with
        hits, (Σy)² / Σy², or of clusters with misses, whichever is smaller; the weight of the other
        one is 1. Without hits or without misses, the spread is unknown, and only the sizes of the
        clusters count.
        """
        misses = self.x - self.y
        missed = self.xx - 2 * self.xy + self.yy
        weight = min(self.y**2 / self.yy if self.yy else 0.0, misses**2 / missed if missed > 0 else 0.0)
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
        >>> found = clustered_proportion(ClusterSums.of([2, 0, 1, 3], [4, 1, 2, 3]))
        >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
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
        >>> found = clustered_mean(sums, bounds=(1, float("inf")))
        >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
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

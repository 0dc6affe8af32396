"""Ratios of sums over clusters, such as clicks per answer, whose items belong to users.

Answers to one user are similar, so that an interval for independent answers is too narrow.
Everything here is computed from six numbers for each group (`ClusterSums`), which a database can
add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rankgauge.errors import InputError
from rankgauge.stats.arrays import check_share
from rankgauge.stats.intervals import wilson_interval
from rankgauge.stats.judge_error import Estimate
from rankgauge.stats.t_distribution import student_t_quantile


@dataclass(frozen=True)
class ClusterSums:
    """Sums over clusters of their numerators y and denominators x.

    Attributes:
        clusters: Clusters whose denominator is not 0.
        y: The sum of y.
        x: The sum of x.
        yy: The sum of y².
        xy: The sum of x y.
        xx: The sum of x².
    """

    clusters: int
    y: float
    x: float
    yy: float
    xy: float
    xx: float

    @classmethod
    def of(cls, y: npt.ArrayLike, x: npt.ArrayLike) -> ClusterSums:
        """Return the sums of (C,) numerators and denominators, one of each a cluster.

        Raises:
            InputError: If they differ in length, or a denominator is negative.

        Example:
            >>> ClusterSums.of([1, 0, 2], [2, 1, 3]).ratio
            0.5
        """
        over, under = np.asarray(y, dtype=np.float64), np.asarray(x, dtype=np.float64)
        if over.ndim != 1 or over.shape != under.shape or not (under >= 0).all():
            raise InputError(
                "numerators and denominators do not match", where="ClusterSums",
                fix="give two numbers for each cluster, denominators of 0 or more",
            )  # fmt: skip
        sums = (over, under, over * over, over * under, under * under)
        return cls(int(np.count_nonzero(under)), *(math.fsum(each) for each in sums))

    @property
    def ratio(self) -> float:
        """Sum of y / sum of x; NaN without a denominator."""
        return self.y / self.x if self.x else math.nan

    @property
    def variance(self) -> float:
        """The cluster-robust variance of the ratio: C / (C - 1) · Σ (y - ratio x)² / (Σ x)².

        Linearized (Cochran 1977, section 6.4); NaN with fewer than two clusters.
        """
        if self.clusters < 2:
            return math.nan
        residual = self.yy - 2 * self.ratio * self.xy + self.ratio**2 * self.xx
        return max(0.0, residual) * self.clusters / (self.clusters - 1) / self.x**2

    @property
    def design_effect(self) -> float:
        """How many times the variance of independent items a proportion has, from 1.

        The observed one is averaged with that of clusters whose items are all equal, Σx² / Σx. The
        observed one has the weight of the number of clusters that say something on the spread: of
        those with hits or those without, whichever are fewer, (Σy)² / Σy². The other has the weight
        of one cluster. Without a hit the spread is unknown, and the clusters are what counts.
        """
        misses = self.x - self.y
        missed = self.xx - 2 * self.xy + self.yy
        weight = min(
            self.y**2 / self.yy if self.yy else 0.0, misses**2 / missed if missed > 0 else 0.0
        )
        independent = self.ratio * (1 - self.ratio) / self.x
        seen = max(1.0, self.variance / independent) if weight and independent > 0 else 1.0
        return (weight * seen + self.xx / self.x) / (weight + 1)


def clustered_proportion(sums: ClusterSums, level: float = 0.95) -> Estimate:
    """Return a proportion of items in clusters, with Wilson's interval.

    Wilson's interval for items / design effect (:attr:`ClusterSums.design_effect`), with the
    quantile of the t distribution with clusters - 1 degrees of freedom in place of the normal one
    (as Dean and Pagano 2015; Korn and Graubard 1998 for few clusters).

    Args:
        sums: Hits y and items x, 0 <= y <= x in each cluster.
        level: Confidence of the interval.

    Returns:
        The estimate; its `count` is the number of items. A single cluster has a value and no
        interval.

    Raises:
        InputError: If there are more hits than items.

    Example:
        >>> found = clustered_proportion(ClusterSums.of([2, 0, 1, 3], [4, 1, 2, 3]))
        >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
        (0.6, 0.15, 0.93)
    """
    check_share(level, "level", "clustered_proportion")
    if not 0 <= sums.y <= sums.x:
        raise InputError(
            f"{sums.y:g} hits of {sums.x:g} items are not possible", where="clustered_proportion",
            fix="give hits from 0 to the number of items, or use clustered_mean()",
        )  # fmt: skip
    missing = _without_interval(sums, level)
    if missing is not None:
        return missing
    effective = sums.x / sums.design_effect
    # Wilson's interval depends on n / z² only: fewer items do what a larger quantile does.
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
        level: Confidence of the interval.
        bounds: Between which the ratio always is.

    Returns:
        The estimate; its `count` is the sum of denominators. A single cluster, or clusters that do
        not vary at all, have a value and no interval.

    Example:
        >>> found = clustered_mean(ClusterSums.of([4, 3, 8, 4], [2, 1, 3, 4]), bounds=(1, math.inf))
        >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
        (1.9, 1, 3.52)
    """
    check_share(level, "level", "clustered_mean")
    missing = _without_interval(sums, level)
    if missing is not None:
        return missing
    value, count = sums.ratio, round(sums.x)
    # Differences of rounded sums: a spread that rounding can explain is 0.
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

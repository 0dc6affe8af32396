"""Weighted means: their effective sample size and interval."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rankgauge.errors import InputError
from rankgauge.stats.arrays import FloatArray, check_share, one_column
from rankgauge.stats.paired_tests import Interval
from rankgauge.stats.t_distribution import student_t_quantile


def effective_size(weights: npt.ArrayLike) -> float:
    """Return the number of equal weights that give as sure a mean: (sum w)² / sum w² (Kish 1965).

    Args:
        weights: (Q,) from 0; at least one is above 0.

    Example:
        >>> effective_size([1, 1, 1, 1]), round(effective_size([9, 1, 1, 1]), 2)
        (4.0, 1.71)
    """
    found = _weights(weights, "effective_size")
    return 1 / math.fsum((found**2).tolist())


def weighted_mean_interval(
    values: npt.ArrayLike, weights: npt.ArrayLike, level: float = 0.95
) -> Interval:
    """Interval of a weighted mean of independent values: t, with the error of the jackknife.

    With u = w / sum w and the mean m = sum u v it is
    m ± t(df) * sqrt((n - 1) / n * sum (u (v - m) / (1 - u))²), df = effective size - 1 (not below
    1), n the number of weights above 0: the error is that of means that leave one value out
    (Quenouille 1956, Tukey 1958). With equal weights it is :func:`t_interval`. In simulations it
    covers 94 to 95% where values do not depend on their weights, and 87 to 94% where they strongly
    do, the least at effective sizes below 20. In a sample without replacement the error is
    smaller: then the interval is wider than need be.

    Args:
        values: (Q,) numbers.
        weights: (Q,) from 0; at least two are above 0.
        level: Its confidence, between 0 and 1.

    Example:
        >>> found = weighted_mean_interval([0.2, 0.0, 0.4, 0.0, 0.1], [2, 1, 1, 1, 1])
        >>> round(found.mean, 4), round(found.low, 4), round(found.high, 4)
        (0.15, -0.0364, 0.3364)
    """
    where = "weighted_mean_interval"
    column, shares = one_column(values, where), _weights(weights, where)
    check_share(level, "level", where)
    used = int(np.count_nonzero(shares))
    if len(column) != len(shares) or used < 2:
        raise InputError(
            f"{len(column)} values and {len(shares)} weights, {used} of them above 0", where=where,
            fix="give each value a weight, and at least two weights above 0",
        )  # fmt: skip
    mean = math.fsum((shares * column).tolist())
    # Without its value a weight that is nearly all of the sum leaves nothing.
    left_out = shares * (column - mean) / np.maximum(1 - shares, 1e-12)
    error = math.sqrt((used - 1) / used * math.fsum((left_out**2).tolist()))
    df = max(1.0, effective_size(shares) - 1)
    half = student_t_quantile((1 + level) / 2, df) * error
    return Interval(mean, mean - half, mean + half, level, "t")


def _weights(given: npt.ArrayLike, where: str) -> FloatArray:
    """The weights as shares of their sum."""
    weights = np.asarray(given, dtype=np.float64)
    if weights.ndim != 1 or not np.isfinite(weights).all() or not (weights > 0).any():
        weights = np.full(1, -1.0)
    if weights.min() < 0:
        raise InputError(
            "weights are numbers from 0, and one is above 0", where=where, fix="check the weights"
        )
    # The largest becomes 1: sums of huge weights must not overflow.
    weights = weights / weights.max()
    shares: FloatArray = weights / math.fsum(weights.tolist())
    return shares

"""Agreement of raters beyond chance, with intervals from a bootstrap over units or clusters.

Ratings are a table (U, R) with a row for each unit (a task, a query-document pair) and a column for
each rater; NaN if a rater did not rate a unit. Units with fewer than two ratings are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.core.arguments import option
from rankgauge.errors import InputError
from rankgauge.stats.arrays import (
    LEVEL,
    BoolArray,
    FloatArray,
    blocks,
    check_amount,
    check_draws,
    cluster_numbers,
)

# Intervals are withheld if a larger share of draws is undefined.
_UNDEFINED = 0.05

IntArray: TypeAlias = npt.NDArray[np.intp]
# Function from weights of units (B, U) to values (B,); NaN where undefined.
_Statistic = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Agreement:
    """Coefficient of agreement with its interval.

    Attributes:
        value: The coefficient; NaN if undefined.
        low: Lower bound of the interval; NaN if there is none.
        high: Upper bound.
        level: Confidence level of the interval.
        units: Number of units with at least two ratings.
        ratings: Number of their ratings.
        reason: Why there is no value or no interval; empty otherwise.
    """

    value: float
    low: float
    high: float
    level: float
    units: int
    ratings: int
    reason: str = ""

    @property
    def defined(self) -> bool:
        """Whether the coefficient has a value."""
        return not math.isnan(self.value)


def krippendorff_alpha(
    ratings: npt.ArrayLike,
    metric: str = "nominal",
    *,
    draws: int = 1000,
    seed: int = 0,
    clusters: npt.ArrayLike | None = None,
) -> Agreement:
    """Return Krippendorff's alpha = 1 - Do / De with a bootstrap interval over units.

    Do is the mean difference between ratings of the same unit, and De that between any two ratings.
    1 is perfect agreement, 0 is agreement by chance, and values below 0 are systematic disagreement
    (Krippendorff 2011, "Computing Krippendorff's alpha-reliability"). Undefined if all ratings are
    equal or no unit has two.

    Args:
        ratings: (U, R) numbers, NaN where missing; codes of categories if `metric` is nominal.
        metric: Difference between two ratings: ``nominal`` (0 or 1), ``ordinal`` (squared number of
            ratings between them), or ``interval`` (squared difference).
        draws: Number of resamples; 0 for no interval.
        seed: Seed of the draws.
        clusters: (U,) cluster of each unit, such as its question; whole clusters are resampled.

    Example:
        >>> from math import nan
        >>> agreement = krippendorff_alpha([[1, 1], [2, 2], [3, 2], [1, nan], [2, 2]])
        >>> round(agreement.value, 3), agreement.units
        (0.588, 4)
    """
    option("metric", metric, ("nominal", "ordinal", "interval"))
    values, counts, groups = _count_values(ratings, clusters)
    sizes = counts.sum(axis=1)

    def alpha(weights: FloatArray) -> FloatArray:
        totals = weights @ counts
        number = totals.sum(axis=1)
        if metric == "nominal":
            within = weights @ ((sizes**2 - (counts**2).sum(axis=1)) / (sizes - 1))
            expected = number**2 - (totals**2).sum(axis=1)
        else:
            # Squared differences are between ratings, or between their mid-ranks in this sample.
            ranks = np.cumsum(totals, axis=1) - totals / 2
            scale = ranks if metric == "ordinal" else np.broadcast_to(values, ranks.shape)
            # Centered to avoid the cancellation of large squares.
            scale = scale - (totals * scale).sum(axis=1, keepdims=True) / number[:, None]
            squares = 2 * (sizes * (scale**2 @ counts.T) - (scale @ counts.T) ** 2)
            within = (weights * squares / (sizes - 1)).sum(axis=1)
            expected = 2 * number * (totals * scale**2).sum(axis=1)
        return _one_minus(within * (number - 1), expected, (totals > 0).sum(axis=1) > 1)

    return _with_interval(alpha, groups, int(sizes.sum()), draws=draws, seed=seed)


def percent_agreement(
    ratings: npt.ArrayLike,
    *,
    draws: int = 1000,
    seed: int = 0,
    clusters: npt.ArrayLike | None = None,
) -> Agreement:
    """Return the share of pairs of ratings of a unit that are equal, as a mean over units.

    It is not corrected for chance: if one answer is frequent, raters who guess often agree.

    Args:
        ratings: (U, R) numbers, NaN where missing.
        draws: Number of resamples; 0 for no interval.
        seed: Seed of the draws.
        clusters: (U,) cluster of each unit, such as its question; whole clusters are resampled.

    Example:
        >>> round(percent_agreement([[1, 1, 2], [3, 3, 3]], draws=0).value, 3)
        0.667
    """
    _, counts, groups = _count_values(ratings, clusters)
    sizes = counts.sum(axis=1)
    shares = (counts * (counts - 1)).sum(axis=1) / (sizes * (sizes - 1))
    return _with_interval(
        lambda weights: weights @ shares / weights.sum(axis=1),
        groups,
        int(sizes.sum()),
        draws=draws,
        seed=seed,
    )


def cohen_kappa(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    weights: str = "none",
    *,
    draws: int = 1000,
    seed: int = 0,
    clusters: npt.ArrayLike | None = None,
) -> Agreement:
    """Return Cohen's kappa of two raters with a bootstrap interval over units.

    kappa = 1 - observed / expected disagreement. The expected disagreement is that of independent
    ratings with each rater's distribution of ratings (Cohen 1960, 1968). Undefined if all ratings
    of both raters are equal.

    Args:
        first: (U,) ratings of one rater, NaN where missing.
        second: (U,) ratings of the other rater.
        weights: Disagreement between ratings a and b: ``none`` (0 or 1), ``linear`` (|a - b|), or
            ``quadratic`` ((a - b)²).
        draws: Number of resamples; 0 for no interval.
        seed: Seed of the draws.
        clusters: (U,) cluster of each unit, such as its question; whole clusters are resampled.

    Example:
        >>> round(cohen_kappa([0, 1, 1, 2], [0, 1, 2, 2], draws=0).value, 3)
        0.636
    """
    option("weights", weights, ("none", "linear", "quadratic"))
    try:
        pairs = np.stack([np.asarray(first, np.float64), np.asarray(second, np.float64)], axis=1)
    except (TypeError, ValueError):
        pairs = np.empty((0, 0, 0))
    if pairs.ndim != 2:
        raise InputError(
            "the ratings of two raters must be two rows of numbers of equal length",
            where="cohen_kappa",
            fix="pass one number per unit and rater, NaN where it is missing",
        )
    both = np.flatnonzero(~np.isnan(pairs).any(axis=1))
    groups = _clusters_of(clusters, pairs, both)
    pairs = pairs[both]
    _check_finite(pairs)
    values = np.unique(pairs)
    by_rater = (pairs.T[:, :, None] == values).astype(np.float64)
    apart = np.abs(values[:, None] - values)
    cost = {"none": (apart > 0).astype(np.float64), "linear": apart, "quadratic": apart**2}[weights]
    observed = cost[tuple(np.searchsorted(values, pairs.T))]

    def kappa(drawn: FloatArray) -> FloatArray:
        of_first, of_second = drawn @ by_rater[0], drawn @ by_rater[1]
        varied = ((of_first + of_second) > 0).sum(axis=1) > 1
        return _one_minus(drawn @ observed * drawn.sum(axis=1), ((of_first @ cost) * of_second).sum(axis=1), varied)

    return _with_interval(kappa, groups, 2 * len(pairs), draws=draws, seed=seed)


def units_needed(half_width: float, shares: npt.ArrayLike, alpha: float = 0.5) -> int:
    """Return the number of units that two raters must rate for an interval of alpha of this width.

    Computed for nominal alpha from the variance of its influence function, if a unit gets the same
    answer twice with probability alpha, and two independent answers otherwise.

    Args:
        half_width: Half of the width of the interval: 0.1 for alpha ± 0.1.
        shares: (V,) relative frequencies of the answers.
        alpha: Expected alpha, from 0 to below 1.

    Example:
        >>> units_needed(0.1, [0.4, 0.2, 0.2, 0.2])
        169
    """
    check_amount(half_width, "half_width", positive=True)
    p = np.asarray(shares, dtype=np.float64)
    if p.ndim != 1 or not (p >= 0).all() or not 0 <= alpha < 1 or (p > 0).sum() < 2:
        raise InputError(
            f"alpha={alpha} with these shares of answers is not valid",
            where="units_needed",
            fix="pass the shares of two answers or more, and an alpha from 0 to below 1",
        )
    p = p / p.sum()
    expected = 1 - float(p @ p)
    observed = (1 - alpha) * expected
    joint = (1 - alpha) * np.outer(p, p) + alpha * np.diag(p)
    # d alpha = -d Do / De + Do d De / De², and De = 1 - sum p² falls by 2 p with each rating.
    differ = 1.0 - np.eye(len(p))
    rarer = -((p[:, None] - p @ p) + (p - p @ p))
    influence = -(differ - observed) / expected + observed * rarer / expected**2
    variance = float((joint * influence**2).sum())
    return math.ceil(variance * (NormalDist().inv_cdf((1 + LEVEL) / 2) / half_width) ** 2)


def _count_values(ratings: npt.ArrayLike, clusters: npt.ArrayLike | None) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the values, and the counts (U, V) and clusters of units with two or more ratings."""
    try:
        table = np.asarray(ratings, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim != 2:
        raise InputError(
            "the ratings are not a table of numbers",
            where="ratings",
            fix="pass a row per unit and a column per rater, NaN where a rating is missing",
        )
    rated = ~np.isnan(table)
    _check_finite(table[rated])
    paired = rated & (rated.sum(axis=1, keepdims=True) > 1)
    units = np.flatnonzero(paired.any(axis=1))
    values, codes = np.unique(table[paired], return_inverse=True)
    rows = np.searchsorted(units, np.nonzero(paired)[0])
    counts = np.zeros((len(units), len(values)))
    np.add.at(counts, (rows, codes), 1)
    return values, counts, _clusters_of(clusters, table, units)


def _clusters_of(clusters: npt.ArrayLike | None, ratings: npt.ArrayLike, units: IntArray) -> IntArray:
    """Return the cluster number of each of these units."""
    numbers = cluster_numbers(clusters, len(np.asarray(ratings)), "unit")
    return np.unique(numbers[units], return_inverse=True)[1]


def _check_finite(values: FloatArray) -> None:
    if not np.isfinite(values).all():
        raise InputError("a rating is infinite", where="ratings", fix="pass finite numbers, NaN where one is missing")


def _one_minus(observed: FloatArray, expected: FloatArray, varied: BoolArray) -> FloatArray:
    """Return 1 - observed / expected where ratings vary, NaN elsewhere."""
    ratio = np.full(len(observed), np.nan)
    np.divide(observed, expected, out=ratio, where=varied)
    return 1 - ratio


def _with_interval(statistic: _Statistic, groups: IntArray, ratings: int, *, draws: int, seed: int) -> Agreement:
    """Return the statistic of all units, with a percentile interval from resampled clusters."""
    units = len(groups)
    check_draws(draws or 1, seed)
    nan = math.nan
    if not units:
        return Agreement(nan, nan, nan, LEVEL, 0, 0, "no unit has two ratings")
    value = float(statistic(np.ones((1, units)))[0])
    if math.isnan(value):
        reason = "all ratings are equal, so expected agreement is also perfect"
        return Agreement(nan, nan, nan, LEVEL, units, ratings, reason)
    if not draws:
        return Agreement(value, nan, nan, LEVEL, units, ratings, "no interval was computed")
    count = int(groups.max()) + 1
    if count == 1:
        only = "one unit" if units == 1 else "one cluster"
        return Agreement(value, nan, nan, LEVEL, units, ratings, f"{only}: no interval")
    rng = np.random.default_rng(seed)
    drawn = np.empty(draws)
    for start, size in blocks(draws, units):
        weights = rng.multinomial(count, np.full(count, 1 / count), size=size)[:, groups]
        drawn[start : start + size] = statistic(weights.astype(np.float64))
    defined = drawn[~np.isnan(drawn)]
    if draws - len(defined) > _UNDEFINED * draws:
        reason = f"no interval: undefined in {draws - len(defined)} of {draws} resamples"
        return Agreement(value, nan, nan, LEVEL, units, ratings, reason)
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Agreement(value, float(low), float(high), LEVEL, units, ratings)

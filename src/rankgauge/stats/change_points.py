"""Changes of a rate over time: shifts and linear trends."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rankgauge.errors import InputError
from rankgauge.stats.arrays import FloatArray, check_draws, check_share, seed_of
from rankgauge.stats.intervals import student_t_cdf, student_t_quantile

LEAST = 3  # smallest number of periods on each side of a change
FEWEST_PERIODS = 8  # smallest number of periods for change points and trends


@dataclass(frozen=True)
class ChangePoint:
    """Change of a rate at a period.

    Attributes:
        index: First period after the change.
        before: Rate between the previous change and this one.
        after: Rate between this change and the next one.
        p: P-value of the largest shift in the segment that is split here.
    """

    index: int
    before: float
    after: float
    p: float


@dataclass(frozen=True)
class LinearTrend:
    """Straight line fitted to the rates of periods.

    Attributes:
        slope: Change per unit of time.
        change: Change of the line from the first to the last period.
        low: Lower bound of the interval of `change`.
        high: Upper bound.
        p: Two-sided p-value of the null hypothesis that the slope is 0.
    """

    slope: float
    change: float
    low: float
    high: float
    p: float


def find_change_points(
    y: npt.ArrayLike, x: npt.ArrayLike, *, alpha: float = 0.05, draws: int = 999, seed: int | None = None
) -> tuple[ChangePoint, ...]:
    """Return the periods where a ratio of sums changes, by binary segmentation.

    The statistic of a split after period k is |S_k - S X_k / X| / sqrt(X_k (X - X_k) / X), with
    S_k and X_k the sums of the residuals y - R x and of x up to period k, S and X the sums of all
    periods, and R the overall ratio. Its maximum over all splits with at least three periods on
    each side is compared with that of permuted periods, whose residuals are scaled to the size of
    the period they move to. The test thus uses the observed spread between periods, whatever its
    cause (weekdays, or users who ask often). If p <= alpha, the segment is split there, and both
    parts are searched.

    Args:
        y: (T,) numerators of the periods, in order of time.
        x: (T,) denominators; periods with 0 are ignored.
        alpha: Significance level of each test.
        draws: Number of permutations.
        seed: Seed of the permutations; derived from the data if omitted.

    Returns:
        Changes in order of time; none if fewer than eight periods have a denominator above 0.

    Example:
        >>> changes = find_change_points([5, 4, 6, 5, 5, 6, 9, 8, 9, 10, 9, 8], [20] * 12)
        >>> [(change.index, change.before, change.p) for change in changes]
        [(6, 0.25833333333333336, 0.003)]
    """
    over, under, kept = _periods(y, x)
    check_share(alpha, "alpha")
    chosen = seed_of(over, under) if seed is None else seed
    check_draws(draws, chosen)
    splits = sorted(_splits(over, under, 0, alpha, draws, np.random.default_rng(chosen)))
    edges = [0, *(index for index, _ in splits), len(over)]
    rates = [float(over[start:end].sum() / under[start:end].sum()) for start, end in pairwise(edges) if end > start]
    return tuple(ChangePoint(int(kept[index]), rates[n], rates[n + 1], p) for n, (index, p) in enumerate(splits))


def first_change(y: npt.ArrayLike, x: npt.ArrayLike, *, draws: int = 999, seed: int | None = None) -> float:
    """Return the p-value of the largest shift over all periods (see :func:`find_change_points`).

    Args:
        y: (T,) numerators of the periods, in order of time.
        x: (T,) denominators; periods with 0 are ignored.
        draws: Number of permutations.
        seed: Seed of the permutations; derived from the data if omitted.

    Returns:
        The p-value; NaN if fewer than eight periods have a denominator above 0.

    Example:
        >>> first_change([5, 4, 6, 5, 5, 6, 9, 8, 9, 10, 9, 8], [20] * 12)
        0.003
    """
    over, under, _ = _periods(y, x)
    chosen = seed_of(over, under) if seed is None else seed
    if len(over) < FEWEST_PERIODS:
        return math.nan
    return _largest_shift(over, under, draws, np.random.default_rng(chosen))[1]


def linear_trend(
    y: npt.ArrayLike,
    x: npt.ArrayLike,
    time: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> LinearTrend | None:
    """Return the line through the ratios y / x, weighted by x, with a t interval.

    The spread around the line is estimated from the periods, with two fewer degrees of freedom than
    periods.

    Args:
        y: (T,) numerators of the periods.
        x: (T,) denominators; periods with 0 are ignored.
        time: (T,) times of the periods; 0, 1, 2, ... if omitted.
        level: Confidence level of the interval.
        bounds: Smallest and largest possible ratio. The change and its interval are limited to the
            distance between them.

    Returns:
        The line; None if fewer than eight periods have a denominator above 0.

    Example:
        >>> trend = linear_trend([1, 2, 1, 2, 3, 3, 4, 3], [10] * 8, bounds=(0, 1))
        >>> round(trend.change, 3), round(trend.low, 3), round(trend.high, 3), round(trend.p, 3)
        (0.258, 0.1, 0.417, 0.007)
    """
    over, under, kept = _periods(y, x)
    check_share(level, "level")
    if len(over) < FEWEST_PERIODS:
        return None
    at = kept.astype(np.float64) if time is None else np.asarray(time, dtype=np.float64)[kept]
    rate = over / under
    centered = at - float(under @ at / under.sum())
    squares = float(under @ centered**2)
    slope = float(under @ (centered * rate)) / squares
    left = rate - float(over.sum() / under.sum()) - slope * centered
    df = len(rate) - 2
    error = math.sqrt(max(0.0, float(under @ left**2)) / df / squares)
    span = float(at[-1] - at[0])
    half = error * student_t_quantile((1 + level) / 2, df)
    if error <= 1e-12 * abs(slope) or error == 0:
        p = 1.0 if slope == 0 else 0.0
    else:
        p = 2 * student_t_cdf(-abs(slope / error), df)
    widest = bounds[1] - bounds[0]
    change, low, high = (max(-widest, min(widest, bound * span)) for bound in (slope, slope - half, slope + half))
    return LinearTrend(slope, change, low, high, p)


def _periods(y: npt.ArrayLike, x: npt.ArrayLike) -> tuple[FloatArray, FloatArray, npt.NDArray[np.intp]]:
    """Return numerators and denominators of periods with a denominator above 0, and their index."""
    over, under = np.asarray(y, dtype=np.float64), np.asarray(x, dtype=np.float64)
    if over.ndim != 1 or over.shape != under.shape or not (under >= 0).all():
        raise InputError(
            "numerators and denominators do not match",
            where="periods",
            fix="pass two numbers for each period, denominators of 0 or more",
        )
    kept = np.flatnonzero(under)
    return over[kept], under[kept], kept


def _splits(  # noqa: PLR0917 - the arguments of the search
    y: FloatArray, x: FloatArray, start: int, alpha: float, draws: int, rng: np.random.Generator
) -> Iterator[tuple[int, float]]:
    """Yield the index and p-value of each split of the periods from `start` on."""
    if len(y) < FEWEST_PERIODS:
        return
    place, p = _largest_shift(y, x, draws, rng)
    if p <= alpha:
        yield start + place, p
        yield from _splits(y[:place], x[:place], start, alpha, draws, rng)
        yield from _splits(y[place:], x[place:], start + place, alpha, draws, rng)


def _largest_shift(y: FloatArray, x: FloatArray, draws: int, rng: np.random.Generator) -> tuple[int, float]:
    """Return the first period after the most likely split, and its permutation p-value."""
    size = np.sqrt(x)
    scaled = (y - float(y.sum() / x.sum()) * x) / size
    orders = rng.permuted(np.tile(np.arange(len(y)), (draws, 1)), axis=1)
    rows = np.concatenate([scaled[None], scaled[orders]]) * size
    sums, under = np.cumsum(rows, axis=1), np.cumsum(x)
    whole = under[-1]
    inner = slice(LEAST - 1, len(y) - LEAST)
    spread = np.sqrt(under[inner] * (whole - under[inner]) / whole)
    shifts = np.abs(sums[:, inner] - sums[:, -1:] * under[inner] / whole) / spread
    largest = shifts.max(axis=1)
    # Shifts that are equal up to rounding count as reached.
    reached = int(np.count_nonzero(largest[1:] >= largest[0] * (1 - 1e-9)))
    return int(shifts[0].argmax()) + LEAST, (1 + reached) / (1 + draws)

"""Changes of a rate over days: shifts, linear trends, and weeks that differ.

Days are not exchangeable: users return, so their habits stay for days, and disturbances such as an
outage last. Each test here therefore needs two kinds of evidence, and its p-value is the larger one:

- Beyond chance in who asked: the residuals of each user are multiplied by a random sign (wild
  bootstrap; Wu 1986, Cameron, Gelbach, and Miller 2008), which keeps the days of a user together.
- Beyond disturbances that users share: shifts and trends are compared with those of normal noise
  that is correlated between neighboring days (0.6, falling exponentially); a week is compared with
  the spread of the other weeks.

Without users, only the second kind is available, the noise has a correlation of 0.85, because
users return, and at least ten weeks are required. For
simulations, see docs/explain/online-metrics.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rankgauge.errors import InputError
from rankgauge.stats.arrays import FloatArray, seed_of
from rankgauge.stats.clustered import ClusterSums
from rankgauge.stats.intervals import student_t_cdf, student_t_quantile

CORRELATION = 0.6  # of the disturbances of neighboring days that the tests allow for
_ALPHA = 0.05
_WITHOUT_USERS = 0.85  # the same if users are unknown: their habits stay for days, too
LEAST = 3  # smallest number of days on each side of a shift
FEWEST_DAYS = 8  # smallest number of days for shifts and trends
FEWEST_WEEKS = 5  # smallest number of weeks for a week that differs
FEWEST_WEEKS_WITHOUT_USERS = 10


@dataclass(frozen=True)
class ChangePoint:
    """Change of a rate at a day.

    Attributes:
        index: Column of the first day after the change.
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
    """Straight line fitted to the rates of days.

    Attributes:
        change: Change of the line from the first to the last day.
        low: Lower bound of the 95% interval of `change`.
        high: Upper bound.
        p: Two-sided p-value of the null hypothesis that the slope is 0.
    """

    change: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, eq=False)
class DifferentWeek:
    """The week that differs most from the other weeks.

    Attributes:
        week: Number of the week: its days divided by 7.
        sums: Sums of the week over users.
        others: Rate of all other weeks.
        weeks: Number of weeks.
        p: P-value, corrected for the number of weeks.
    """

    week: int
    sums: ClusterSums
    others: float
    weeks: int
    p: float


@dataclass(frozen=True, eq=False)
class DailySums:
    """Numerators and denominators by user and day.

    Attributes:
        y: (U, T) numerators, a row for each user, or for each group of users.
        x: (U, T) denominators. No column is 0.
        days: (T,) numbers of the days, ascending; weeks begin at multiples of 7.
    """

    y: FloatArray
    x: FloatArray
    days: FloatArray

    @classmethod
    def of(cls, y: npt.ArrayLike, x: npt.ArrayLike, days: npt.ArrayLike | None = None) -> DailySums:
        """Return the sums without days whose denominator is 0.

        Args:
            y: (U, T) numerators by user and day, or (T,) by day if users are unknown.
            x: Denominators of the same shape.
            days: (T,) numbers of the days; 0, 1, 2, ... if omitted.

        Raises:
            InputError: If shapes differ, or a denominator is negative.

        Example:
            >>> DailySums.of([1, 0, 2], [2, 0, 3]).days.tolist()
            [0.0, 2.0]
        """
        over, under = np.atleast_2d(np.asarray(y, dtype=np.float64), np.asarray(x, dtype=np.float64))
        if over.ndim != 2 or over.shape != under.shape or not (under >= 0).all():
            raise InputError(
                "numerators and denominators do not match",
                where="days",
                fix="pass two numbers for each user and day, denominators of 0 or more",
            )
        kept = under.sum(axis=0) > 0
        numbers = np.arange(len(kept)) if days is None else np.asarray(days)
        return cls(over[:, kept], under[:, kept], numbers[kept].astype(np.float64))

    @property
    def users_known(self) -> bool:
        """Whether there are rows of users."""
        return len(self.y) > 1

    @property
    def withheld(self) -> str:
        """Why shifts and trends cannot be tested, or empty."""
        if len(self.days) < FEWEST_DAYS:
            return f"fewer than {FEWEST_DAYS} days"
        if not self.users_known and len(np.unique(self.days // 7)) < FEWEST_WEEKS_WITHOUT_USERS:
            return f"fewer than {FEWEST_WEEKS_WITHOUT_USERS} weeks, and users are unknown: log user_id, or wait"
        return ""

    @cached_property
    def size(self) -> FloatArray:
        """(T,) denominators of the days."""
        return np.asarray(self.x.sum(axis=0))

    @cached_property
    def residuals(self) -> FloatArray:
        """(U, T) numerators minus those expected at the overall rate."""
        left = self.y - self.y.sum() / self.x.sum() * self.x
        # What rounding can explain is 0.
        return np.where(np.abs(left) > 1e-9 * self.size, left, 0.0)


def find_change_points(sums: DailySums) -> tuple[ChangePoint, ...]:
    """Return the days where a ratio of sums changes, by binary segmentation.

    If the p-value of the largest shift (:func:`first_change`) is at most 0.05, the days are split
    there, and both parts are searched. The split is where |S_k| / sqrt(X_k (X - X_k)) is largest,
    with S_k and X_k the sums of the residuals and of x up to day k, and X the sum of all x.

    Args:
        sums: The sums by user and day.

    Returns:
        Changes in order of time; none if the test is withheld (:attr:`DailySums.withheld`).

    Example:
        >>> y = [[(user + day) % 10 < (1 if day < 8 else 4) for day in range(16)] for user in range(90)]
        >>> changes = find_change_points(DailySums.of(y, [[1] * 16] * 90))
        >>> [(change.index, change.before, change.after) for change in changes]
        [(8, 0.1, 0.4)]
    """
    splits = sorted(_splits(sums, 0))
    edges = [0, *(index for index, _ in splits), len(sums.days)]
    rates = [float(sums.y[:, a:b].sum() / sums.x[:, a:b].sum()) for a, b in pairwise(edges) if b > a]
    return tuple(ChangePoint(index, rates[n], rates[n + 1], p) for n, (index, p) in enumerate(splits))


def first_change(sums: DailySums, *, draws: int = 1999) -> float:
    """Return the p-value of the largest shift over all days.

    The larger one of two p-values: of the largest shift, with random signs of users (if known); and
    of the largest self-normalized shift (Shao and Zhang 2010), compared with that of normal noise
    whose correlation is 0.6 between neighboring days (0.85 if users are unknown). Shifts are searched
    in all days (at 80% of the level) and in halves and three quarters of them, with at least three
    days on each side.

    Args:
        sums: The sums by user and day.
        draws: Number of random draws, with a seed derived from the data.

    Returns:
        The p-value; NaN if the test is withheld (:attr:`DailySums.withheld`).

    Example:
        >>> first_change(DailySums.of([1] * 7, [10] * 7))
        nan
    """
    return math.nan if sums.withheld else _largest_shift(sums, draws)[1]


def linear_trend(
    sums: DailySums, *, bounds: tuple[float, float] = (-math.inf, math.inf), draws: int = 1999
) -> LinearTrend | None:
    """Return the line through the daily ratios, weighted by denominators, with a 95% interval.

    The interval is the wider one of two: clustered by user (if known); and with a standard error
    from the lowest frequencies of the residuals (Lazarus, Lewis, Stock, and Watson 2018), multiplied
    by the quantile of normal noise whose correlation is 0.6 between neighboring days (0.85 if users
    are unknown). If all rates are equal and bounded, it is that of the smallest change from the
    lowest value that n users (days if users are unknown) would show with a probability of 95%:
    6 / n of the distance between the bounds.

    Args:
        sums: The sums by user and day.
        bounds: Smallest and largest possible ratio. The change and its interval are limited to the
            distance between them.
        draws: Number of random draws, with a seed derived from the data.

    Returns:
        The line; None if the test is withheld (:attr:`DailySums.withheld`).

    Example:
        >>> y = [[(user + day) % 10 < 2 + day for day in range(8)] for user in range(90)]
        >>> round(linear_trend(DailySums.of(y, [[1] * 8] * 90), bounds=(0, 1)).change, 3)
        0.7
    """
    if sums.withheld:
        return None
    size, days = sums.size, sums.days
    centered = days - float(size @ days) / float(size.sum())
    squares = float(size @ centered**2)
    slope = float(sums.residuals.sum(axis=0) @ centered) / squares
    span = float(days[-1] - days[0])
    slope = slope if abs(slope * span) > 1e-12 else 0.0  # what rounding can explain is 0
    of_users = (sums.residuals - slope * centered * sums.x) @ centered / squares
    half, p = 0.0, 0.0
    if sums.users_known and (variance := float(of_users @ of_users)):
        # Few users with many questions have few degrees of freedom.
        df = max(1.0, variance**2 / float((of_users**2) @ (of_users**2)) - 1)
        half = math.sqrt(variance) * student_t_quantile(0.975, df)
        p = 2 * student_t_cdf(-abs(slope) / math.sqrt(variance), df)
    rows = np.concatenate([sums.residuals.sum(axis=0)[None], _correlated(sums, draws)])
    slopes = rows @ centered / squares
    scores = (rows - slopes[:, None] * centered * size) * centered / squares
    frequencies = np.arange(1, max(2, round(0.41 * len(days) ** (2 / 3))) + 1)[:, None]
    waves = np.cos(np.pi * frequencies * (np.arange(len(days)) + 0.5) / len(days))
    errors = np.sqrt(2 * np.mean((scores @ waves.T) ** 2, axis=1))
    noise = np.abs(slopes[1:] / errors[1:])
    half = max(half, float(errors[0] * np.quantile(noise, 0.95)))
    p = max(p, (1 + int(np.count_nonzero(noise * errors[0] >= abs(slope)))) / (1 + draws))
    widest = bounds[1] - bounds[0]
    if math.isfinite(widest) and not sums.residuals.any():
        # With n users, a rate that rises from 0 to c is never seen with a probability of exp(-n c / 2).
        half = -2 * math.log(_ALPHA) / (np.count_nonzero(sums.x.any(axis=1)) if sums.users_known else len(days))
        half *= widest / span
    change, low, high = (max(-widest, min(widest, end * span)) for end in (slope, slope - half, slope + half))
    return LinearTrend(change, low, high, p)


def different_week(sums: DailySums, *, draws: int = 1999) -> DifferentWeek | None:
    """Return the week whose rate differs most from that of the other weeks.

    Its p-value is the larger one of two: of the largest difference over weeks, with random signs of
    users; and of a t-test of the week against the spread of the other weeks (Bonferroni).

    Args:
        sums: The sums by user and day.
        draws: Number of random draws, with a seed derived from the data.

    Returns:
        The week; None if users are unknown, or there are fewer than five weeks.

    Example:
        >>> different_week(DailySums.of([1] * 70, [10] * 70)) is None
        True
    """
    weeks, place = np.unique(sums.days // 7, return_inverse=True)
    if not sums.users_known or len(weeks) < FEWEST_WEEKS:
        return None
    sets = place == np.arange(len(weeks))[:, None]
    y, x = sets @ sums.y.sum(axis=0), sets @ sums.size
    rest = x.sum() - x
    rates = (y.sum() - y) / rest
    left = y - rates[:, None] * x
    own = np.diag(left)
    squares = (left**2 / x).sum(axis=1) - own**2 / x
    spread = np.sqrt(np.maximum(squares, 0) / (len(weeks) - 2))
    distances = np.abs(own) / np.sqrt(x * (1 + x / rest))
    p = _p_of_users(sums, sets, draws)
    for week, distance in enumerate(distances):
        if distance <= spread[week] * 1e9:  # otherwise, the other weeks are equal
            t = distance / spread[week] if distance else 0.0
            p[week] = max(p[week], min(1.0, 2 * len(weeks) * student_t_cdf(-float(t), len(weeks) - 2)))
    best = int(np.lexsort((-distances, p))[0])
    of_week = ClusterSums.of(sums.y @ sets[best], sums.x @ sets[best])
    return DifferentWeek(int(weeks[best]), of_week, float(rates[best]), len(weeks), float(p[best]))


def _splits(sums: DailySums, start: int) -> Iterator[tuple[int, float]]:
    """Yield the index and p-value of each split of the days from `start` on."""
    place, p = (0, 1.0) if sums.withheld else _largest_shift(sums, 1999)
    if p <= 0.05:
        yield start + place, p
        for part, first in ((slice(None, place), start), (slice(place, None), start + place)):
            yield from _splits(DailySums(sums.y[:, part], sums.x[:, part], sums.days[part]), first)


def _largest_shift(sums: DailySums, draws: int) -> tuple[int, float]:
    """Return the first day after the most likely split, and the p-value of a shift."""
    count = len(sums.days)
    splits = np.arange(LEAST, count - LEAST + 1)
    share = np.cumsum(sums.size)[splits - 1] / sums.size.sum()
    observed = sums.residuals.sum(axis=0)
    distances = np.abs(np.cumsum(observed)[splits - 1]) / np.sqrt(share * (1 - share))
    rows = np.concatenate([observed[None], _correlated(sums, draws)])
    # A second change increases the fluctuation on one side of the first, so parts of the days are
    # searched, too, at a fifth of the level.
    shortest, step = max(FEWEST_DAYS, count // 2), count // 4
    parts = [
        _self_normalized(rows[:, start:end], sums.size[start:end])
        for start in (0, step, 2 * step)
        for end in (count, 3 * step, 2 * step)
        if end - start >= shortest
    ]
    p = _p_of_first(parts[0]) / (0.8 if parts[1:] else 1)
    if parts[1:]:
        p = min(1.0, p, _p_of_first(np.max(parts[1:], axis=0)) / 0.2)
    if sums.users_known:
        p = max(p, float(_p_of_users(sums, np.arange(count) < splits[:, None], draws).min()))
    return int(splits[distances.argmax()]), p


def _p_of_first(values: FloatArray) -> float:
    """Return the share of values that reach the first one; those equal up to rounding do."""
    return float(np.mean(values >= values[0] * (1 - 1e-9)))


def _self_normalized(rows: FloatArray, size: FloatArray) -> FloatArray:
    """Return the largest squared shift of each row, in units of the fluctuation on both sides."""
    count = rows.shape[1]

    def fluctuation(rows: FloatArray, size: FloatArray) -> FloatArray:
        # The sum over t <= k of (S_t - X_t / X_k S_k)², for each k.
        sums, under = np.cumsum(rows, axis=1), np.cumsum(size)
        ratio = sums / under
        return np.asarray(
            np.cumsum(sums**2, axis=1) - 2 * ratio * np.cumsum(sums * under, axis=1) + ratio**2 * np.cumsum(under**2)
        )

    before = fluctuation(rows, size)[:, LEAST - 1 : count - LEAST]
    after = fluctuation(rows[:, ::-1], size[::-1])[:, ::-1][:, LEAST : count - LEAST + 1]
    sums = np.cumsum(rows, axis=1)
    floor = 1e-9 * (sums**2).sum(axis=1, keepdims=True) + 1e-300
    shifts = sums - sums[:, -1:] * np.cumsum(size) / size.sum()
    return np.asarray((shifts[:, LEAST - 1 : count - LEAST] ** 2 / np.maximum(before + after, floor)).max(axis=1))


def _correlated(sums: DailySums, draws: int) -> FloatArray:
    """Return rows of normal noise with correlated days, without an overall residual."""
    size = sums.size
    correlation = CORRELATION if sums.users_known else _WITHOUT_USERS
    root = np.linalg.cholesky(correlation ** np.abs(np.subtract.outer(sums.days, sums.days)))
    rng = np.random.default_rng(seed_of(sums.y, sums.x))
    noise = rng.standard_normal((draws, len(size))) @ root.T * np.sqrt(size)
    return np.asarray(noise - noise.sum(axis=1, keepdims=True) / size.sum() * size)


def _p_of_users(sums: DailySums, sets: npt.NDArray[np.bool_], draws: int) -> FloatArray:
    """Return the p-value of each set of days, compared with the largest of all sets under random signs."""
    share = sets @ sums.size / sums.size.sum()
    parts = sums.residuals @ sets.T - sums.residuals.sum(axis=1)[:, None] * share
    parts /= np.sqrt(share * (1 - share))
    rng = np.random.default_rng(seed_of(sums.y, sums.x))
    largest = np.abs(rng.choice([-1.0, 1.0], (draws, len(parts))) @ parts).max(axis=1)
    # Differences that are equal up to rounding count as reached.
    reached = largest[:, None] >= np.abs(parts.sum(axis=0)) * (1 - 1e-9)
    return np.asarray((1 + np.count_nonzero(reached, axis=0)) / (1 + draws))

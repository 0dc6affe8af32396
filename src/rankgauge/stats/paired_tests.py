"""One comparison: a test, an interval, an effect size for one column of differences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.threads import map_in_threads
from rankgauge.stats.arrays import (
    FloatArray,
    blocks,
    check_amount,
    check_choice,
    check_draws,
    check_share,
    moments,
    one_column,
    t_statistic,
    total,
    whole_numbers,
)
from rankgauge.stats.intervals import Interval, mean_lower_bound, unseen_value
from rankgauge.stats.t_distribution import beyond, student_t_cdf, student_t_quantile

_WILCOXON_EXACT = 50
_NORMAL = NormalDist()


@dataclass(frozen=True)
class PairedTest:
    """A test of one column of differences.

    Attributes:
        name: Of the test.
        hypothesis: The null hypothesis, in words.
        statistic: Of the test.
        p: Two-sided p-value.
        exact: True if p is from the exact distribution, False if from an approximation or a model.
    """

    name: str
    hypothesis: str
    statistic: float
    p: float
    exact: bool


@dataclass(frozen=True)
class Bounds:
    """One-sided bounds for the mean difference, for "not worse by more than a margin".

    Attributes:
        mean: The mean difference, new minus baseline.
        margin: The loss that is accepted.
        lower: With confidence `level` the true mean is above it.
        upper: With confidence `upper_level` the true mean is below it.
        level: Of the lower bound.
        upper_level: Of the upper bound.
        unseen: The loss that was not seen and is reckoned with (see `mean_lower_bound`).
        p_worse: One-sided p of "there is no loss"; small means worse.
    """

    mean: float
    margin: float
    lower: float
    upper: float
    level: float
    upper_level: float
    unseen: float
    p_worse: float

    @property
    def not_inferior(self) -> bool:
        """True if the lower bound is above -margin."""
        return self.lower > -self.margin


def t_interval(differences: npt.ArrayLike, level: float = 0.95) -> Interval:
    """Interval for the mean difference: mean ± t(df = Q - 1) * sd / sqrt(Q) (Student 1908).

    It covers as promised at every number of queries that was tried, also where the bootstrap does
    not. If all differences are equal (up to rounding) its width is 0: there is no spread to judge
    by. A single query is refused.

    Args:
        differences: (Q,) one per query, at least two.
        level: Its confidence, between 0 and 1.

    Example:
        >>> found = t_interval([0.2, 0.0, 0.4, 0.0, 0.1])
        >>> round(found.low, 4), round(found.high, 4)
        (-0.0678, 0.3478)
    """
    column = one_column(differences, "t_interval")
    check_share(level, "level", "t_interval")
    return t_interval_from_moments(*moments(column), len(column), level)


def t_interval_from_moments(mean: float, sd: float, queries: int, level: float = 0.95) -> Interval:
    """:func:`t_interval` from the mean and standard deviation of at least two differences.

    Example:
        >>> round(t_interval_from_moments(0.01, 0.2, 10_000).low, 5)
        0.00608
    """
    half = student_t_quantile((1 + level) / 2, queries - 1) * sd / math.sqrt(queries)
    return Interval(mean, mean - half, mean + half, level, "t")


def t_test(differences: npt.ArrayLike) -> PairedTest:
    """Paired t test: t = mean / (sd / sqrt(Q)), two-sided by Student's t with df = Q - 1.

    Null hypothesis: the mean difference is 0. All differences 0 give t = 0, p = 1. All equal and
    not 0 give t = ±inf, p = 0, the limit of the formula: the model cannot judge without spread,
    :func:`randomization_test` can.

    Example:
        >>> round(t_test([0.2, 0.0, 0.4, 0.0, 0.1]).p, 4)
        0.1347
    """
    column = one_column(differences, "t_test")
    return t_test_from_moments(*moments(column), len(column))


def t_test_from_moments(mean: float, sd: float, queries: int) -> PairedTest:
    """:func:`t_test` from the mean and standard deviation of at least two differences.

    Example:
        >>> round(t_test_from_moments(0.01, 0.2, 1_000).p, 4)
        0.1142
    """
    t = t_statistic(mean, sd, queries)
    p = 0.0 if math.isinf(t) else beyond(t * t, queries - 1)
    return PairedTest("paired t", "the mean difference is 0", t, p, exact=False)


def wilcoxon(differences: npt.ArrayLike) -> PairedTest:
    """Wilcoxon's signed-rank test (1945), two-sided; the statistic is the smaller sum of ranks.

    Null hypothesis: differences are spread symmetrically about 0. It does **not** test the mean,
    and rejects true "equal means" too often where differences are skewed, as those of retrieval
    are. Differences of 0 are left out, ties get the mean rank (what is nearer than 1e-12 of the
    largest difference is a tie). Exact up to 50 differences without ties; else the normal
    approximation with its variance corrected for ties, without continuity correction.

    Example:
        >>> wilcoxon([0.2, 0.0, 0.4, 0.0, 0.1]).p
        0.25
    """
    column = one_column(differences, "wilcoxon")
    near = TOLERANCE * float(np.abs(column).max())
    kept = column[np.abs(column) > near]
    kept = kept[np.argsort(np.abs(kept), kind="stable")]
    n = len(kept)
    name, null = "Wilcoxon", "differences are symmetric about 0 (not a test of the mean)"
    if not n:
        return PairedTest(name, null, 0.0, 1.0, exact=True)
    starts = np.flatnonzero(np.diff(np.abs(kept), prepend=-math.inf) > near)
    sizes = np.diff(np.append(starts, n))
    ranks = np.repeat(starts + (sizes + 1) / 2, sizes)
    plus = float(ranks[kept > 0].sum())  # multiples of 1/2: exact
    least = min(plus, n * (n + 1) / 2 - plus)
    if n <= _WILCOXON_EXACT and len(sizes) == n:
        ways = np.zeros(n * (n + 1) // 2 + 1)
        ways[0] = 1
        for rank in range(1, n + 1):
            ways[rank:] += ways[:-rank].copy()
        p = min(1.0, 2 * float(ways[: int(least) + 1].sum()) / 2**n)
        return PairedTest(name, null, least, p, exact=True)
    ties = float((sizes.astype(np.float64) ** 3 - sizes).sum())
    variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
    z = (least - n * (n + 1) / 4) / math.sqrt(variance)
    return PairedTest(name, null, least, math.erfc(abs(z) / math.sqrt(2)), exact=False)


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value of the exact sign test; ties are left out.

    min(1, 2 P(X >= max(wins, losses))) with X binomial of wins + losses and 1/2.

    Example:
        >>> sign_test(9, 1)
        0.021484375
    """
    check_amount(wins, "wins", "sign_test")
    check_amount(losses, "losses", "sign_test")
    total, most = wins + losses, max(wins, losses)
    if total < 1000:  # whole numbers: exact
        return min(
            1.0, 2 * sum(math.comb(total, each) for each in range(most, total + 1)) / 2**total
        )
    each = np.arange(most, total + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, total + 1)))])
    chances = np.exp(logs[total] - logs[each] - logs[total - each] - total * math.log(2))
    return min(1.0, 2 * float(chances.sum()))


def effect_size(differences: npt.ArrayLike) -> float:
    """Cohen's d_z = mean / sd of the paired differences (Cohen 1988).

    0 if all differences are 0; ±inf if all are equal and not 0.

    Example:
        >>> round(effect_size([0.2, 0.0, 0.4, 0.0, 0.1]), 3)
        0.837
    """
    return t_statistic(*moments(one_column(differences, "effect_size")), 1)


def non_inferiority(
    differences: npt.ArrayLike,
    margin: float,
    level: float = 0.95,
    upper_level: float = 0.99,
    *,
    lowest: float = -math.inf,
) -> Bounds:
    """One-sided bounds of the mean difference: is the new system worse by less than the margin?

    The lower bound is that of :func:`mean_lower_bound`, upper = mean + t(upper_level) * sd /
    sqrt(Q). Null hypothesis of `p_worse`: the true mean is 0 or more. The margin is set before
    looking at the data (Piaggio et al., CONSORT 2012).

    Args:
        differences: (Q,) new minus baseline.
        margin: The loss that is accepted, 0 or more.
        level: Confidence of the lower bound.
        upper_level: Confidence of the upper bound.
        lowest: The lowest difference that is possible, such as -1 for nDCG.

    Example:
        >>> bounds = non_inferiority([0.2, 0.0, 0.4, 0.0, 0.1], margin=0.02)
        >>> round(bounds.lower, 4), bounds.not_inferior
        (-0.0195, True)
    """
    where = "non_inferiority"
    column = one_column(differences, where)
    check_share(level, "level", where)
    check_share(upper_level, "upper_level", where)
    check_amount(margin, "margin", where)
    mean, sd = moments(column)
    df, error = len(column) - 1, sd / math.sqrt(len(column))
    return Bounds(
        mean=mean,
        margin=float(margin),
        lower=mean_lower_bound(column, level, lowest),
        upper=mean + student_t_quantile(upper_level, df) * error,
        level=level,
        upper_level=upper_level,
        unseen=unseen_value(column, lowest),
        p_worse=student_t_cdf(t_statistic(mean, sd, len(column)), df),
    )


def bootstrap_interval(
    differences: npt.ArrayLike,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
    *,
    method: str = "percentile",
    jobs: int = 1,
) -> Interval:
    """Bootstrap interval for the mean difference: queries drawn with replacement.

    ``percentile`` takes the quantiles of the drawn means; ``bca`` moves them for bias and skewness
    (Efron 1987). Below about 100 queries both cover less than they promise; prefer
    :func:`t_interval`. If all differences are equal its width is 0.

    Args:
        differences: (Q,) one per query, at least two.
        level: Its confidence, between 0 and 1.
        draws: Number of resamples.
        seed: Seed of the draws.
        method: ``percentile`` or ``bca``.
        jobs: Threads; the interval does not depend on their number.

    Example:
        >>> bootstrap_interval([0.0, 0.2, 0.0, 0.2], draws=999).low
        0.0
    """
    where = "bootstrap_interval"
    column = one_column(differences, where)
    check_share(level, "level", where)
    check_draws(draws, seed, where)
    check_choice(method, ("percentile", "bca"), "method", where)
    mean, sd = moments(column)
    if sd == 0:
        return Interval(mean, mean, mean, level, method)
    whole, unit = whole_numbers(column)
    rng = np.random.Generator(np.random.PCG64(seed))
    # Drawn in the calling thread, one block after the other.
    drawn = (
        rng.integers(len(whole), size=(count, len(whole))) for _, count in blocks(draws, len(whole))
    )
    sums = np.concatenate(list(map_in_threads(lambda rows: whole[rows].sum(axis=1), drawn, jobs)))
    shares = [(1 - level) / 2, (1 + level) / 2]
    if method == "bca":
        shares = _bca_shares(shares, whole, sums)
    low, high = (float(np.ldexp(s, unit)) / len(whole) for s in np.quantile(sums, shares))
    return Interval(mean, low, high, level, method)


def _bca_shares(shares: list[float], whole: FloatArray, sums: FloatArray) -> list[float]:
    """The quantiles to take instead, by bias and acceleration."""
    observed = float(total(whole))
    below = float((sums < observed).mean() + (sums <= observed).mean()) / 2
    bias = _NORMAL.inv_cdf(min(max(below, 0.5 / len(sums)), 1 - 0.5 / len(sums)))
    away = (whole - observed / len(whole)) / float(np.abs(whole).max())
    skew = float(total(away**3)) / (6 * float(total(away**2)) ** 1.5)
    moved = []
    for share in shares:
        z = bias + _NORMAL.inv_cdf(share)
        moved.append(_NORMAL.cdf(bias + z / (1 - skew * z)))
    return moved

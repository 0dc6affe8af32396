"""Tests, intervals, and effect sizes for one column of paired differences; corrected p-values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rankgauge.core.arguments import option
from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.stats.arrays import (
    FloatArray,
    blocks,
    check_amount,
    check_draws,
    check_share,
    moments,
    one_column,
    p_values,
    t_statistic,
    total,
    whole_numbers,
)
from rankgauge.stats.intervals import (
    Interval,
    beyond,
    collapse_distance,
    collapse_p,
    mean_lower_bound,
    student_t_cdf,
    student_t_quantile,
    unseen_value,
    weighted_mean_cdf,
)

_WILCOXON_EXACT = 50
_UPPER_LEVEL = 0.99
_NORMAL = NormalDist()


@dataclass(frozen=True)
class PairedTest:
    """Result of a test of paired differences.

    Attributes:
        statistic: Test statistic.
        p: Two-sided p-value.
        exact: True if p is from the exact distribution, False if from an approximation or a model.
    """

    statistic: float
    p: float
    exact: bool


@dataclass(frozen=True)
class Bounds:
    """One-sided confidence bounds of a mean difference, for tests of non-inferiority.

    `lower`, `upper`, and `p_worse` allow for a share of queries that have the lowest or highest
    possible difference and are too rare to be in the sample (a collapse, or its opposite).

    Attributes:
        mean: The mean difference, new minus baseline.
        sd: Standard deviation of the differences.
        margin: Accepted loss.
        lower: Bound that the true mean is above, with confidence `level`.
        lower_unless_rare: The same if there is no such share: `mean_lower_bound`.
        upper: Bound that the true mean is below, with confidence `upper_level`.
        level: Confidence level of the lower bounds.
        upper_level: Confidence level of the upper bound.
        lowest: Lowest possible difference.
        highest: Highest possible difference.
        p_worse: One-sided p-value of the null hypothesis of no loss; small if the system is worse.
    """

    mean: float
    sd: float
    margin: float
    lower: float
    lower_unless_rare: float
    upper: float
    level: float
    upper_level: float
    lowest: float
    highest: float
    p_worse: float

    @property
    def not_inferior(self) -> bool:
        """Whether the lower bound is above -margin."""
        return self.lower > -self.margin

    @property
    def not_inferior_unless_rare(self) -> bool:
        """Whether the lower bound is above -margin if no unobserved queries collapse."""
        return self.lower_unless_rare > -self.margin


def t_interval(differences: npt.ArrayLike, level: float = 0.95) -> Interval:
    """Return Student's t interval (1908) of the mean: mean ± t(df = Q - 1) * sd / sqrt(Q).

    In simulations, its coverage is as stated for every number of queries, even where that of the
    bootstrap is not. If all differences are equal (up to rounding), its width is 0, since they have
    no spread. A single query is an error.

    Args:
        differences: (Q,) one per query, at least two.
        level: Confidence level of the interval, between 0 and 1.

    Example:
        >>> interval = t_interval([0.2, 0.0, 0.4, 0.0, 0.1])
        >>> round(interval.low, 4), round(interval.high, 4)
        (-0.0678, 0.3478)
    """
    column = one_column(differences)
    check_share(level, "level")
    return t_interval_from_moments(*moments(column), len(column), level)


def t_interval_from_moments(mean: float, sd: float, queries: int, level: float = 0.95) -> Interval:
    """Compute :func:`t_interval` from the mean and standard deviation of two or more differences.

    Example:
        >>> round(t_interval_from_moments(0.01, 0.2, 10_000).low, 5)
        0.00608
    """
    half = student_t_quantile((1 + level) / 2, queries - 1) * sd / math.sqrt(queries)
    return Interval(mean, mean - half, mean + half)


def t_test(differences: npt.ArrayLike) -> PairedTest:
    """Perform the two-sided paired t test: t = mean / (sd / sqrt(Q)) with df = Q - 1.

    Null hypothesis: the mean difference is 0. If all differences are 0, t = 0 and p = 1. If they
    are equal but not 0, t = ±inf and p = 0, the limit of the formula. Unlike this test,
    :func:`randomization_test` is valid without spread.

    Example:
        >>> round(t_test([0.2, 0.0, 0.4, 0.0, 0.1]).p, 4)
        0.1347
    """
    column = one_column(differences)
    return t_test_from_moments(*moments(column), len(column))


def t_test_from_moments(mean: float, sd: float, queries: int) -> PairedTest:
    """Perform :func:`t_test` from the mean and standard deviation of two or more differences.

    Example:
        >>> round(t_test_from_moments(0.01, 0.2, 1_000).p, 4)
        0.1142
    """
    t = t_statistic(mean, sd, queries)
    return PairedTest(t, 0.0 if math.isinf(t) else beyond(t * t, queries - 1), exact=False)


def wilcoxon(differences: npt.ArrayLike) -> PairedTest:
    """Perform Wilcoxon's two-sided signed-rank test (1945).

    The statistic is the smaller rank sum.

    Null hypothesis: differences are symmetric about 0. It does **not** test the mean: if
    differences are skewed, as in retrieval, it rejects equal means too often. Differences of 0 are
    excluded, and ties get their mean rank (differences within 1e-12 of the largest one are tied).
    Exact for up to 50 differences without ties; otherwise the normal approximation, with the
    variance corrected for ties and without continuity correction.

    Example:
        >>> wilcoxon([0.2, 0.0, 0.4, 0.0, 0.1]).p
        0.25
    """
    column = one_column(differences)
    near = TOLERANCE * float(np.abs(column).max())
    kept = column[np.abs(column) > near]
    kept = kept[np.argsort(np.abs(kept), kind="stable")]
    n = len(kept)
    if not n:
        return PairedTest(0.0, 1.0, exact=True)
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
        return PairedTest(least, p, exact=True)
    ties = float((sizes.astype(np.float64) ** 3 - sizes).sum())
    variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
    z = (least - n * (n + 1) / 4) / math.sqrt(variance)
    return PairedTest(least, math.erfc(abs(z) / math.sqrt(2)), exact=False)


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value of the exact sign test; ties are excluded.

    min(1, 2 P(X >= max(wins, losses))), with X binomial(wins + losses, 1/2).

    Example:
        >>> sign_test(9, 1)
        0.021484375
    """
    check_amount(wins, "wins")
    check_amount(losses, "losses")
    total, most = wins + losses, max(wins, losses)
    if total < 1000:  # integers: exact
        return min(1.0, 2 * sum(math.comb(total, count) for count in range(most, total + 1)) / 2**total)
    counts = np.arange(most, total + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, total + 1)))])
    chances = np.exp(logs[total] - logs[counts] - logs[total - counts] - total * math.log(2))
    return min(1.0, 2 * float(chances.sum()))


def non_inferiority(
    differences: npt.ArrayLike,
    margin: float,
    level: float = 0.95,
    *,
    lowest: float = -math.inf,
    highest: float = math.inf,
) -> Bounds:
    """Return one-sided bounds of the mean difference, to test whether a loss is below a margin.

    The lower bound is the lower of :func:`mean_lower_bound` and a t bound that allows for rare
    collapses: a share q of all queries may have the lowest possible difference, and none of them is
    in the sample with probability (1 - q)^n. The upper bound does the same with the highest
    possible difference. The null hypothesis of `p_worse` is that the true mean is 0 or more. Set
    the margin before looking at the data (Piaggio et al., CONSORT 2012).

    Args:
        differences: (Q,) new minus baseline.
        margin: Accepted loss, 0 or more.
        level: Confidence level of the lower bound; that of the upper bound is 99%.
        lowest: Lowest possible difference, such as -1 for nDCG. Without one, `lower` is -inf.
        highest: Highest possible difference. Without one, `upper` is inf, and `p_worse` is 1.

    Example:
        >>> gains = [0.01, -0.01] * 20
        >>> bounds = non_inferiority(gains, margin=0.02, lowest=-1.0)
        >>> bounds.not_inferior, round(bounds.lower, 4)
        (False, -0.0686)
        >>> bounds.not_inferior_unless_rare, round(bounds.lower_unless_rare, 4)
        (True, -0.0027)
    """
    column = one_column(differences)
    check_share(level, "level")
    check_amount(margin, "margin")
    mean, sd = moments(column)
    usual, lower = _lower_bounds(column, level, lowest)
    p_worse, queries = 1.0, len(column)
    if not math.isinf(highest):
        # The level at which `upper_bound` is 0.
        p_worse = max(
            student_t_cdf(t_statistic(mean, sd, queries), queries - 1),
            weighted_mean_cdf(np.append(-column, unseen_value(-column, -highest)), 0.0),
            collapse_p(-mean, sd, queries, -highest),
        )
    return Bounds(
        mean=mean,
        sd=sd,
        margin=float(margin),
        lower=lower,
        lower_unless_rare=usual,
        upper=upper_bound(column, _UPPER_LEVEL, highest),
        level=level,
        upper_level=_UPPER_LEVEL,
        lowest=lowest,
        highest=highest,
        p_worse=p_worse,
    )


def upper_bound(column: FloatArray, level: float, highest: float) -> float:
    """Return the upper bound of :func:`non_inferiority`."""
    return -_lower_bounds(-column, level, -highest)[1]


def _lower_bounds(column: FloatArray, level: float, lowest: float) -> tuple[float, float]:
    """Return lower bounds without and with an allowance for rare collapses."""
    usual = mean_lower_bound(column, level, lowest)
    if math.isinf(lowest):
        return usual, -math.inf
    mean, sd = moments(column)
    return usual, min(usual, mean - collapse_distance(sd, len(column), mean - lowest, level))


def bootstrap_interval(
    differences: npt.ArrayLike,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
    *,
    method: str = "percentile",
) -> Interval:
    """Return a bootstrap interval of the mean difference, with queries drawn with replacement.

    ``percentile`` uses the quantiles of the resampled means; ``bca`` corrects them for bias and
    skewness (Efron 1987). With fewer than about 100 queries, the coverage of both is too low;
    prefer :func:`t_interval`. If all differences are equal, the width is 0.

    Args:
        differences: (Q,) one per query, at least two.
        level: Confidence level of the interval, between 0 and 1.
        draws: Number of resamples.
        seed: Seed of the draws.
        method: ``percentile`` or ``bca``.

    Example:
        >>> bootstrap_interval([0.0, 0.2, 0.0, 0.2], draws=999).low
        0.0
    """
    column = one_column(differences)
    check_share(level, "level")
    check_draws(draws, seed)
    option("method", method, ("percentile", "bca"))
    mean, sd = moments(column)
    if sd == 0:
        return Interval(mean, mean, mean)
    whole, unit = whole_numbers(column)
    rng = np.random.Generator(np.random.PCG64(seed))
    sums = np.empty(draws)
    for start, count in blocks(draws, 64 * len(whole)):  # in the cache
        rows = rng.integers(len(whole), size=(count, len(whole)))
        sums[start : start + count] = whole.take(rows).sum(axis=1)
    shares = [(1 - level) / 2, (1 + level) / 2]
    if method == "bca":
        shares = _bca_shares(shares, whole, sums)
    low, high = (np.ldexp(np.quantile(sums, shares), unit) / len(whole)).tolist()
    return Interval(mean, low, high)


def _bca_shares(shares: list[float], whole: FloatArray, sums: FloatArray) -> list[float]:
    """Return the probabilities of the quantiles, corrected for bias and acceleration."""
    observed = float(total(whole))
    below = float((sums < observed).mean() + (sums <= observed).mean()) / 2
    bias = _NORMAL.inv_cdf(min(max(below, 0.5 / len(sums)), 1 - 0.5 / len(sums)))
    away = (whole - observed / len(whole)) / float(np.abs(whole).max())
    skew = float(total(away**3)) / (6 * float(total(away**2)) ** 1.5)
    shifted = [bias + _NORMAL.inv_cdf(share) for share in shares]
    return [_NORMAL.cdf(bias + z / (1 - skew * z)) for z in shifted]


def bonferroni(p: npt.ArrayLike) -> FloatArray:
    """Return p-values corrected by Bonferroni's method: min(1, m * p), in the order of the input.

    Example:
        >>> bonferroni([0.01, 0.5]).tolist()
        [0.02, 1.0]
    """
    values = p_values(p)
    return np.minimum(1.0, values * len(values))


def holm(p: npt.ArrayLike) -> FloatArray:
    """Return p-values corrected by Holm's step-down method (1979), never above Bonferroni's.

    It controls the family-wise error rate. The result is the running maximum of the i-th smallest p
    times (m - i + 1), at most 1, in the order of the input.

    Example:
        >>> holm([0.5, 0.01, 0.02]).tolist()
        [0.5, 0.03, 0.04]
    """
    values = p_values(p)
    order = np.argsort(values, kind="stable")
    return _in_input_order(np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)), order)


def benjamini_hochberg(p: npt.ArrayLike) -> FloatArray:
    """Return p-values corrected by the method of Benjamini and Hochberg (1995), for exploration.

    It controls the false discovery rate. The result is the running minimum, from the largest p
    down, of the i-th smallest p times m / i, in the order of the input.

    Example:
        >>> benjamini_hochberg([0.5, 0.01, 0.02]).tolist()
        [0.5, 0.03, 0.03]
    """
    values = p_values(p)
    order = np.argsort(values, kind="stable")[::-1]
    return _in_input_order(np.minimum.accumulate(values[order] * len(values) / np.arange(len(values), 0, -1)), order)


def _in_input_order(corrected: FloatArray, order: npt.NDArray[np.intp]) -> FloatArray:
    """Return sorted p-values, limited to 1, in the order of the input."""
    result = np.empty_like(corrected)
    result[order] = np.minimum(1.0, corrected)
    return result

"""Student's t distribution, and intervals of weighted means, bounded means, and proportions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.ids import IntArray
from rankgauge.errors import InputError
from rankgauge.stats.arrays import FloatArray, check_share, moments, one_column, root


def student_t_cdf(t: float, df: float) -> float:
    """Return the probability that a variable with Student's t distribution is at most `t`.

    For t <= 0, it is I(x; df/2, 1/2) / 2 with x = df / (df + t^2) and the regularized incomplete
    beta function I (DLMF 8.17.22, its continued fraction by the modified Lentz method).

    Example:
        >>> round(student_t_cdf(2.0, 10), 6)
        0.963306
    """
    if math.isnan(t) or not df > 0 or math.isinf(df):
        raise InputError(
            f"t={t} with df={df} is not valid", where="student_t_cdf", fix="t is a number, df a number above 0"
        )
    if math.isinf(t):
        return float(t > 0)
    tail = 0.5 * beyond(t * t, df)
    return tail if t < 0 else 1.0 - tail


def beyond(square: float, df: float) -> float:
    """Return I(df / (df + t^2); df/2, 1/2), the probability of a larger |t|."""
    if square == 0:
        return 1.0
    a = df / 2
    x, y = df / (df + square), square / (df + square)
    # Logarithm of Gamma(a + 1/2) / Gamma(a): for large a, a difference of lgamma loses digits.
    if a < 50:
        log_ratio = math.lgamma(a + 0.5) - math.lgamma(a)
    else:
        log_ratio = 0.5 * math.log(a) - 1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5)
    front = math.exp(log_ratio - 0.5 * math.log(math.pi) - a * math.log1p(square / df) + 0.5 * math.log(y))
    if x < (a + 1) / (a + 2.5):
        return front * _beta_fraction(x, a, 0.5) / a
    return max(0.0, 1.0 - front * _beta_fraction(y, 0.5, a) / 0.5)


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta function."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1) or tiny)
    result = d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1.0 / (1.0 + step * d or tiny)
            c = 1.0 + step / c or tiny
            result *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return result


@lru_cache(maxsize=4096)
def student_t_quantile(probability: float, df: float) -> float:
    """Return the quantile of Student's t distribution for a probability.

    Computed by bisection of :func:`student_t_cdf`.

    Example:
        >>> round(student_t_quantile(0.975, 10), 6)
        2.228139
    """
    check_share(probability, "probability")
    if probability == 0.5:
        return 0.0
    sign, tail = (-1.0, probability) if probability < 0.5 else (1.0, 1.0 - probability)
    high = 1.0
    while student_t_cdf(-high, df) > tail and high < 1e150:
        high *= 2
    return sign * root(lambda t: student_t_cdf(-t, df) <= tail, 0.0, high)


@dataclass(frozen=True)
class Interval:
    """Confidence interval of a mean difference.

    Attributes:
        mean: The mean difference.
        low: Lower bound.
        high: Upper bound.
    """

    mean: float
    low: float
    high: float


def effective_size(weights: npt.ArrayLike) -> float:
    """Return the effective sample size of weights: (sum w)² / sum w² (Kish 1965).

    Args:
        weights: (Q,) numbers of 0 or more, at least one above 0.

    Example:
        >>> effective_size([1, 1, 1, 1]), round(effective_size([9, 1, 1, 1]), 2)
        (4.0, 1.71)
    """
    return 1 / math.fsum((_weights(weights) ** 2).tolist())


def weighted_mean_interval(values: npt.ArrayLike, weights: npt.ArrayLike, level: float = 0.95) -> Interval:
    """Return a t interval of a weighted mean of independent values, with the jackknife error.

    With u = w / sum w and the mean m = sum u v, the interval is
    m ± t(df) * sqrt((n - 1) / n * sum (u (v - m) / (1 - u))²), where df = effective size - 1 (at
    least 1) and n is the number of weights above 0. The error comes from means that leave out one
    value (Quenouille 1956, Tukey 1958). With equal weights, it is :func:`t_interval`. In
    simulations, it covers 94 to 95% if values do not depend on their weights, and 87 to 94% if they
    strongly do, least at effective sizes below 20. For samples without replacement, the error is
    smaller, and the interval is wider than necessary.

    Args:
        values: (Q,) numbers.
        weights: (Q,) numbers of 0 or more, at least two above 0.
        level: Confidence level of the interval, between 0 and 1.

    Example:
        >>> interval = weighted_mean_interval([0.2, 0.0, 0.4, 0.0, 0.1], [2, 1, 1, 1, 1])
        >>> round(interval.mean, 4), round(interval.low, 4), round(interval.high, 4)
        (0.15, -0.0364, 0.3364)
    """
    column, shares = one_column(values), _weights(weights)
    check_share(level, "level")
    used = int(np.count_nonzero(shares))
    if len(column) != len(shares) or used < 2:
        raise InputError(
            f"{len(column)} values and {len(shares)} weights, {used} of them above 0",
            where="weighted_mean_interval",
            fix="give each value a weight, and at least two weights above 0",
        )
    mean = math.fsum((shares * column).tolist())
    # If one weight is nearly the whole sum, nothing remains without it.
    left_out = shares * (column - mean) / np.maximum(1 - shares, 1e-12)
    error = math.sqrt((used - 1) / used * math.fsum((left_out**2).tolist()))
    half = student_t_quantile((1 + level) / 2, max(1.0, effective_size(shares) - 1)) * error
    return Interval(mean, mean - half, mean + half)


def _weights(values: npt.ArrayLike) -> FloatArray:
    """Return the weights as shares of their sum."""
    weights = np.asarray(values, dtype=np.float64)
    if weights.ndim != 1 or not np.isfinite(weights).all() or not (weights > 0).any():
        weights = np.full(1, -1.0)
    if weights.min() < 0:
        raise InputError(
            "weights are not all 0 or more, with at least one above 0", where="weights", fix="check the weights"
        )
    # Scaled to a maximum of 1, so that sums of huge weights do not overflow.
    weights = weights / weights.max()
    return np.asarray(weights / math.fsum(weights.tolist()))


# If a smaller share of differences is nonzero, the additional value is the lowest possible one.
_SPARSE = 1 / 3
# From simulations: docs/explain/gate-rates.md.
_DEVIATIONS, _PER_SKEWNESS = 0.5, 20.0
_STEPS, _NEAR = 100, 1e-7  # Newton's method squares the error of the last step
_CLOSE = 1e-8  # of a normal quantile; the last step is far more accurate
_EPSILON = 2.0**-53
_TINY = 1e-90  # the cubes of smaller numbers underflow
_NORMAL = NormalDist()


def mean_lower_bound(differences: npt.ArrayLike, level: float = 0.95, lowest: float = -math.inf) -> float:
    """Return a lower confidence bound of the mean difference; -inf if there is none.

    The bound is the lower of two: the t bound, and the (1 - level) quantile of a weighted mean of
    the differences and one additional value, with weights from a flat Dirichlet distribution. The
    second is a form of the Bayesian bootstrap (Rubin 1981). For differences that are 0 or `lowest`,
    it is the bound of Clopper and Pearson (1934); for any bounded values, it is the bound of Gaffke
    (2005) and Learned-Miller and Thomas (2019). The additional value is

    - `lowest`, if fewer than a third of the differences are nonzero: nothing is known about
      unobserved losses;
    - otherwise ``mean - c * max|d - mean|`` with c = 0.5 + 20 / n * max(0, -skewness), but at least
      `lowest`.

    Args:
        differences: (n,) new minus baseline, at least two.
        level: Probability that the true mean is above the bound.
        lowest: Lowest possible difference, such as -1 for nDCG.

    Example:
        >>> few = [-1.0] + [0.0] * 99
        >>> round(mean_lower_bound(few, lowest=-1.0), 4)  # Clopper and Pearson: 0.0466
        -0.0466
    """
    values = one_column(differences)
    check_share(level, "level")
    unseen = unseen_value(values, lowest)
    return -math.inf if math.isinf(unseen) else _lower_bound(values, level, unseen, moments(values))


def mean_interval(differences: npt.ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Return a lower and an upper confidence bound of the mean difference.

    Each is the bound of :func:`mean_lower_bound` with half of the error probability, and always
    with the additional value ``mean - c * max|d - mean|``. In simulations, the interval covers 93
    to 99% if at least 8 differences are nonzero (for exceptions, see
    docs/explain/interval-coverage.md).

    Args:
        differences: (n,) new minus baseline, at least two.
        level: Probability that the true mean is between the bounds.

    Example:
        >>> low, high = mean_interval([0.2, 0.0, 0.4, 0.0, 0.1, -0.1, 0.3, 0.2, 0.2, -0.1])
        >>> round(low, 3), round(high, 3)
        (-0.001, 0.241)
    """
    values = one_column(differences)
    check_share(level, "level")
    return interval_around(moments(values), values, level)


def interval_around(both: tuple[float, float], values: FloatArray, level: float) -> tuple[float, float]:
    """Return :func:`mean_interval` of values whose mean and standard deviation are known."""
    top = float(np.abs(values).max())
    if 0 < top < _TINY:
        low, high = mean_interval(values / top, level)
        return low * top, high * top
    mean, sd = both
    skew = _skewness(values, mean, sd)
    low, high = (
        _lower_bound(side, (1 + level) / 2, beyond_worst(side, center, tail), (center, sd))
        for side, center, tail in ((values, mean, skew), (-values, -mean, -skew))
    )
    return low, -high


def _lower_bound(values: FloatArray, level: float, unseen: float, both: tuple[float, float]) -> float:
    """Return the lower of the t bound and the Bayesian bootstrap with the value `unseen`."""
    mean, sd = both
    by_t = mean - student_t_quantile(level, len(values) - 1) * sd / math.sqrt(len(values))
    parts, counts = np.unique(np.append(values, unseen), return_counts=True)
    target = _NORMAL.inv_cdf(1 - level)

    def excess(at: float) -> float:
        share = min(max(_share_below(parts - at, counts), _TINY), 1 - _EPSILON)
        return _NORMAL.inv_cdf(share) - target

    # The secant method: normal quantiles are nearly linear, and the share below the mean is about 1/2.
    low, high = float(parts[0]), mean
    last, before = high, -target
    point = by_t if low < by_t < high else (low + high) / 2
    for _ in range(_STEPS):
        value = excess(point)
        moved = point - value * (point - last) / (value - before) if value != before else low
        if abs(value) <= _CLOSE or point == last:
            return float(min(by_t, moved))
        low, high = (point, high) if value < 0 else (low, point)
        last, before = point, value
        point = moved if low < moved < high else (low + high) / 2
    return float(min(by_t, point))


def unseen_value(values: FloatArray, lowest: float) -> float:
    """Return the additional value of `mean_lower_bound` for these differences."""
    if np.count_nonzero(np.abs(values) > TOLERANCE) < _SPARSE * len(values):
        return lowest
    mean = moments(values)[0]
    return max(min(lowest, mean), beyond_worst(values, mean, skewness(values)))


def beyond_worst(values: FloatArray, mean: float, skew: float) -> float:
    """Return mean - c * max|d - mean|, where c increases with the skewness of losses."""
    c = _DEVIATIONS + _PER_SKEWNESS / len(values) * max(0.0, -skew)
    return mean - c * float(np.abs(values - mean).max())


def skewness(values: FloatArray) -> float:
    """Return the skewness of finite values; 0 if they are equal.

    Example:
        >>> import numpy as np
        >>> round(skewness(np.array([0.0, 0.0, 0.0, 1.0])), 3)
        1.155
    """
    top = float(np.abs(values).max())
    if 0 < top < _TINY:
        values = values / top
    return _skewness(values, *moments(values))


def _skewness(values: FloatArray, mean: float, sd: float) -> float:
    moved, spread = values - mean, sd * math.sqrt(1 - 1 / len(values))
    return float((moved * moved * moved).mean()) / spread**3 if sd else 0.0


def collapse_distance(sd: float, queries: int, unseen: float, level: float) -> float:
    """Return how far below the observed mean the true one may be if rare queries collapse.

    A share q of all queries may have the lowest possible value, `unseen` below the observed mean.
    None of them is in the sample with probability (1 - q)^n. The distance is the largest one over
    all q for which this probability times that of the t statistic of the other queries is 1 -
    `level`. Without spread, it is that of Clopper and Pearson, 1 - (1 - level)^(1 / n) of `unseen`.

    Example:
        >>> round(collapse_distance(0.0, 100, 1.0, 0.95), 4), round(1 - 0.05 ** (1 / 100), 4)
        (0.0295, 0.0295)
    """
    points, chances = _t_chances(queries - 1)
    shares = 1 - np.minimum(1, (1 - level) / chances) ** (1 / queries)
    others = -points * sd / math.sqrt(queries)
    least = student_t_quantile(level, queries - 1) * sd / math.sqrt(queries)
    distances = np.where(shares > 0, (1 - shares) * others + shares * unseen, least)
    return max(least, float(distances.max()))


def collapse_p(mean: float, sd: float, queries: int, lowest: float) -> float:
    """Return the p-value of a true mean of 0 or less, as in :func:`collapse_distance`."""
    points, chances = _t_chances(queries - 1)
    others = mean + points * sd / math.sqrt(queries)
    known = others > 0
    probabilities = chances[known] * (1 - others[known] / (others[known] - lowest)) ** queries
    return float(probabilities.max(initial=0.0))


@lru_cache(maxsize=256)
def _t_chances(df: int) -> tuple[FloatArray, FloatArray]:
    """Return points from -8 to 6, and the probabilities that t is at most these."""
    points = np.linspace(-8, 6, 141)
    return points, np.array([student_t_cdf(point, df) for point in points.tolist()])


def weighted_mean_cdf(values: FloatArray, at: float) -> float:
    """Return the probability that a weighted mean of the values is at most `at`.

    The weights have a flat Dirichlet distribution. With independent exponential E_i,
    sum(E_i * x_i) / sum(E_i) <= at is equivalent to sum(E_i * (x_i - at)) <= 0, whose probability
    is computed by the saddlepoint approximation of Lugannani and Rice (1980). Its error is below
    0.001 for three or more values (verified with the binomial distribution and by simulation).

    Example:
        >>> round(weighted_mean_cdf(np.array([-1.0, -1.0, 0.0, 0.0, 0.0]), -0.2), 3)
        0.819
    """
    parts, counts = np.unique(values, return_counts=True)
    return _share_below(parts - at, counts)


def _share_below(parts: FloatArray, counts: IntArray) -> float:
    """Return the probability that the sum of parts with exponential weights is at most 0."""
    if parts[0] >= 0:
        return 0.0
    if parts[-1] <= 0:
        return 1.0
    low, high = 1 / parts[0], 1 / parts[-1]
    point, close = 0.0, False
    for _ in range(_STEPS):
        ratios = parts / (1 - parts * point)
        terms = counts * ratios
        slope, curve = float(np.add.reduce(terms)), float(np.add.reduce(terms * ratios))
        if close:
            break
        low, high = (point, high) if slope < 0 else (low, point)
        step = slope / curve
        moved = point - step if low < point - step < high else (low + high) / 2
        close = abs(moved - point) <= _NEAR * abs(moved)
        point = moved
    exponent = -2 * float((counts * -np.log1p(-parts * point)).sum())
    signed = math.copysign(math.sqrt(max(exponent, 0.0)), point)
    scaled = point * math.sqrt(curve)
    if abs(signed) < 1e-4:  # at the mean, where both terms diverge
        return 0.5
    return _NORMAL.cdf(signed) + _NORMAL.pdf(signed) * (1 / signed - 1 / scaled)


def wilson_interval(
    successes: npt.ArrayLike, trials: npt.ArrayLike, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper bounds of Wilson's score interval of proportions.

    The interval contains the proportions that a score test does not reject: with p' = successes /
    trials, (p' + z²/2n ± z sqrt(p'(1 - p')/n + z²/4n²)) / (1 + z²/n) (Wilson 1927). Without trials,
    the bounds are 0 and 1.

    Args:
        successes: Counts from 0 to `trials`, of any shape.
        trials: Counts of the same shape, or one for all.
        level: Confidence level of the interval, between 0 and 1.

    Raises:
        InputError: If there are more successes than trials, or counts are negative or not finite.

    Example:
        >>> low, high = wilson_interval([0, 3], [5, 10])
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([0.0, 0.108], [0.434, 0.603])
    """
    check_share(level, "level")
    hits, n = np.broadcast_arrays(np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    wrong = ~((hits >= 0) & (hits <= n) & np.isfinite(n))
    if wrong.any():
        raise InputError(
            f"{hits[wrong][0]:g} successes of {n[wrong][0]:g} trials are not possible",
            where="wilson_interval",
            fix="pass counts from 0 to the number of trials",
        )
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    center = (hits + z2 / 2) / (n + z2)
    # In this form, nothing is divided by 0 if there are no trials.
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.where(n > 0, hits * (n - hits) / n, 0.0)
    half = np.sqrt(z2 * (spread + z2 / 4)) / (n + z2)
    # Exact where no or all trials succeeded.
    return np.where(hits == 0, 0.0, center - half), np.where(hits == n, 1.0, center + half)


def ratio_interval(value: float, low: float, high: float, divisor: tuple[float, float, float]) -> tuple[float, float]:
    """Return the interval of a ratio of two independent estimates, from their intervals.

    Args:
        value: The first estimate.
        low: The lower bound of its interval.
        high: The upper bound.
        divisor: The second estimate and the bounds of its interval, all above 0; the upper bound is
            below twice the estimate.

    Source:
        Donner and Zou: Closed-form confidence intervals for functions of the normal mean and
        standard deviation, Statistical Methods in Medical Research 2012 (MOVER-R).

    Example:
        >>> ends = ratio_interval(0.1, 0.04, 0.16, (0.8, 0.7, 0.9))
        >>> [round(end, 4) for end in ends]
        [0.0497, 0.2042]
    """
    middle, least, most = divisor

    def end(limit: float, sign: float) -> float:
        # A bound away from 0 needs a small divisor, a bound near 0 a large one.
        half = middle - least if sign * limit > 0 else most - middle
        a = middle**2 - half**2
        reach = (value * middle) ** 2 - a * (value**2 - (limit - value) ** 2)
        return (value * middle + sign * math.sqrt(max(0.0, reach))) / a

    return end(low, -1.0), end(high, 1.0)

"""Student's t distribution, without SciPy."""

from __future__ import annotations

import math
from functools import lru_cache

from rankgauge.errors import InputError
from rankgauge.stats.arrays import check_share, root


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
    check_share(probability, "probability", "student_t_quantile")
    if probability == 0.5:
        return 0.0
    sign, tail = (-1.0, probability) if probability < 0.5 else (1.0, 1.0 - probability)
    high = 1.0
    while student_t_cdf(-high, df) > tail and high < 1e150:
        high *= 2
    return sign * root(lambda t: student_t_cdf(-t, df) <= tail, 0.0, high)

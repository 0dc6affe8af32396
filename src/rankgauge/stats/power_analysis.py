"""Power, detectable differences, and queries needed, for two-sided paired t tests.

The power of the t test is exact for normally distributed differences (noncentral t, to about 1e-8):
the probability that |T| exceeds its critical value, integrated over log s by the trapezoid rule,
where s is the standard deviation in the sample.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from rankgauge.errors import InputError
from rankgauge.stats.arrays import check_amount, check_share, root
from rankgauge.stats.intervals import student_t_quantile

_MOST_QUERIES = 10**8
_NORMAL = NormalDist()
_NODES = 100  # for many queries; few queries have large critical values and need more
_NODES_OF_FEW = 20_000
_KURTOSIS = 6  # of differences between real runs: docs/explain/interval-coverage.md


def planning_sd(sd: float, queries: int) -> float:
    """Return the standard deviation to plan with, if `sd` is an estimate from a few queries.

    sd * sqrt((Q - 1) / (Q - 6)), infinite for six queries or fewer. Most samples contain too few of
    the largest differences, so their standard deviation is too low. For differences of kurtosis k,
    the observed variance has about the distribution of a chi-square variable with 2 (Q - 1) / (k -
    1) degrees of freedom; given the observed one, the expected variance is (Q - 1) / (Q - k) times
    as large. k = 6 is that with which the stated power is reached on average for pairs of real runs
    (docs/explain/interval-coverage.md); 3 would be that of normal differences.

    Args:
        sd: Observed standard deviation of the differences.
        queries: Number of queries from which it was computed, at least two.

    Example:
        >>> [round(planning_sd(0.12, queries), 3) for queries in (10, 25, 100)]
        [0.18, 0.135, 0.123]
    """
    _check(sd, 0.05)
    _check_queries(queries)
    if not sd:
        return 0.0
    return sd * math.sqrt((queries - 1) / (queries - _KURTOSIS)) if queries > _KURTOSIS else math.inf


def power(sd: float, queries: int, difference: float, alpha: float = 0.05, *, changed: float = 1.0) -> float:
    """Return the power of the two-sided paired t test for a true mean difference.

    P(|T| > t(1 - alpha/2; Q - 1)), with T noncentral t with noncentrality difference * sqrt(Q) /
    sd.

    Args:
        sd: Standard deviation of the differences, from a pilot or a similar comparison.
        queries: Number of queries, at least two.
        difference: True mean difference; its sign does not matter.
        alpha: Significance level of the test.
        changed: Share of queries that differ. If it is small, more queries must differ for a large
            difference: it is assumed to be sqrt(changed² + (difference / d)²), where d is the root
            mean square of the differences that are not 0.

    Example:
        >>> round(power(sd=0.12, queries=50, difference=0.05), 3)
        0.823
        >>> round(power(sd=0.12, queries=50, difference=0.05, changed=0.1), 3)
        0.612
    """
    _check(sd, alpha, changed=changed)
    _check_queries(queries)
    check_amount(abs(difference), "difference")
    if sd == 0:
        return 1.0 if difference else 0.0
    share = math.hypot(changed, difference * math.sqrt(changed) / sd)
    effect = abs(difference) / sd * math.sqrt(changed / min(1.0, share))
    return _power(effect, int(queries), alpha)


def detectable_difference(
    sd: float, queries: int, power: float = 0.8, alpha: float = 0.05, *, changed: float = 1.0
) -> float:
    """Return the smallest true mean difference that the t test detects with this power.

    0 if `sd` is 0.

    Args:
        sd: Standard deviation of the differences.
        queries: Number of queries, at least two.
        power: Required probability of detection, above `alpha`.
        alpha: Significance level of the test.
        changed: Share of queries that differ, as for :func:`power`.

    Example:
        >>> round(detectable_difference(sd=0.12, queries=50), 4)
        0.0485
    """
    _check(sd, alpha, power, changed=changed)
    _check_queries(queries)
    effect = _detectable_effect(int(queries), power, alpha)
    # x = effect * sqrt(hypot(changed, x)) in units of the differences that are not 0
    share = min(1.0, (effect**2 + math.hypot(effect**2, 2 * changed)) / 2)
    return sd * effect * math.sqrt(share / changed)


@lru_cache(maxsize=256)
def _detectable_effect(queries: int, power: float, alpha: float) -> float:
    high = 1.0
    while _power(high, queries, alpha) < power:
        high *= 2
    return root(lambda effect: _power(effect, queries, alpha) >= power, 0.0, high)


def queries_needed(sd: float, difference: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Return the smallest number of queries with which the t test has this power.

    Args:
        sd: Standard deviation of the differences.
        difference: True mean difference, not 0.
        power: Required probability of detection, above `alpha`.
        alpha: Significance level of the test.

    Raises:
        InputError: If an argument is invalid, or more than 10**8 queries would be needed.

    Example:
        >>> queries_needed(sd=0.12, difference=0.05)
        48
    """
    _check(sd, alpha, power)
    check_amount(abs(difference), "difference", positive=True)
    if sd == 0:
        return 2
    effect = abs(difference) / sd
    # Start at the normal approximation, which is slightly too low, and search in growing steps.
    reach = _NORMAL.inv_cdf(1 - alpha / 2) + _NORMAL.inv_cdf(power)
    low = int(min(max(reach / effect, 1.0) ** 2, _MOST_QUERIES)) - 1
    step = 1
    while low > 1 and _power(effect, low, alpha) >= power:
        low, step = max(1, low - step), 2 * step
    low = max(low, 1)
    high, step = low + 1, 1
    while high <= _MOST_QUERIES and _power(effect, high, alpha) < power:
        low, high, step = high, high + step, 2 * step
    if high > _MOST_QUERIES:
        raise InputError(
            f"a difference of {difference:g} with sd={sd:g} needs more than 10**8 queries",
            where="queries_needed",
            fix="pass a larger difference",
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(effect, middle, alpha) >= power else (middle, high)
    return high


def _power(effect: float, queries: int, alpha: float) -> float:
    critical = student_t_quantile(1 - alpha / 2, queries - 1)
    spread, weight = _spreads(queries - 1)
    shift = effect * math.sqrt(queries)
    chances = (
        math.erfc((critical * s - shift) / math.sqrt(2)) + math.erfc((critical * s + shift) / math.sqrt(2))
        for s in spread
    )
    return min(1.0, math.fsum(w * c for w, c in zip(weight, chances, strict=True)) / 2)


@lru_cache(maxsize=64)
def _spreads(df: int) -> tuple[list[float], list[float]]:
    """Return nodes and weights of s = sqrt(chi2(df) / df), for integration over log s."""
    reach = 9 / math.sqrt(2 * df)
    log_s = np.linspace(-reach - 40 / df, reach, _NODES + _NODES_OF_FEW // df)
    density = np.exp(df * (log_s - np.expm1(2 * log_s) / 2))
    return np.exp(log_s).tolist(), (density / math.fsum(density.tolist())).tolist()


def _check(sd: float, alpha: float, power: float | None = None, *, changed: float = 1.0) -> None:
    check_amount(sd, "sd")
    check_share(alpha, "alpha")
    if changed != 1.0:
        check_share(changed, "changed")
    if power is not None:
        check_share(power, "power")
        if power <= alpha:
            raise InputError(
                f"power={power} is not above alpha={alpha}", where="power", fix="write, for example, power=0.8"
            )


def _check_queries(queries: int) -> None:
    if isinstance(queries, bool) or not 2 <= queries <= _MOST_QUERIES or queries != int(queries):
        raise InputError(
            f"queries={queries!r} is not valid", where="queries", fix="queries is a whole number from 2 to 10**8"
        )

"""Power, detectable differences, and queries needed, for two-sided paired t and sign tests.

The power of the t test is exact for normally distributed differences (noncentral t, to about 1e-8):
the probability that |T| exceeds its critical value, integrated over log s by the trapezoid rule,
where s is the standard deviation in the sample.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from rankgauge.errors import InputError
from rankgauge.stats.arrays import FloatArray, check_amount, check_share, root
from rankgauge.stats.t_distribution import student_t_quantile

_MOST_QUERIES = 10**8
_NORMAL = NormalDist()
_RARE = 1e-9
_STEPS = 1000  # detectable differences of sign tests are multiples of 1 / 1000
_NODES = 400  # for many queries; few queries have large critical values and need more
_NODES_OF_FEW = 20_000


def power(sd: float, queries: int, difference: float, alpha: float = 0.05) -> float:
    """Return the power of the two-sided paired t test for a true mean difference.

    P(|T| > t(1 - alpha/2; Q - 1)), with T noncentral t with noncentrality difference * sqrt(Q) /
    sd.

    Args:
        sd: Standard deviation of the differences, from a pilot or a similar comparison.
        queries: Number of queries, at least two.
        difference: True mean difference; its sign does not matter.
        alpha: Significance level of the test.

    Example:
        >>> round(power(sd=0.12, queries=50, difference=0.05), 3)
        0.823
    """
    _check(sd, alpha, "power")
    _check_queries(queries, "power")
    check_amount(abs(difference), "difference", "power")
    if sd == 0:
        return 1.0 if difference else 0.0
    return _power(abs(difference) / sd, int(queries), alpha)


def detectable_difference(
    sd: float, queries: int, power: float = 0.8, alpha: float = 0.05
) -> float:
    """Return the smallest true mean difference that the t test detects with this power.

    0 if `sd` is 0.

    Args:
        sd: Standard deviation of the differences.
        queries: Number of queries, at least two.
        power: Required probability of detection, above `alpha`.
        alpha: Significance level of the test.

    Example:
        >>> round(detectable_difference(sd=0.12, queries=50), 4)
        0.0485
    """
    where = "detectable_difference"
    _check(sd, alpha, where, power)
    _check_queries(queries, where)
    return sd * _detectable_effect(int(queries), power, alpha)


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
    where = "queries_needed"
    _check(sd, alpha, where, power)
    check_amount(abs(difference), "difference", where, positive=True)
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
            where=where,
            fix="pass a larger difference",
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(effect, middle, alpha) >= power else (middle, high)
    return high


def sign_test_power(changed: float, queries: int, difference: float, alpha: float = 0.05) -> float:
    """Return the power of the exact sign test for differences that are -1, 0, or 1.

    The number of queries that differ is binomial, with probability `changed`. Each of them is a win
    with the probability that gives the true mean difference.

    Args:
        changed: Expected share of the queries that differ; at least `difference`.
        queries: Number of queries, at least two.
        difference: True mean difference, from -1 to 1; its sign does not matter.
        alpha: Significance level of the test.

    Example:
        >>> round(sign_test_power(changed=0.2, queries=100, difference=0.13), 3)
        0.817
    """
    where = "sign_test_power"
    _check_queries(queries, where)
    check_share(alpha, "alpha", where)
    share = min(1.0, max(changed, abs(difference)))
    counts = _binomial(queries, share)
    seen = np.flatnonzero(counts > _RARE)
    winning = (1 + abs(difference) / share) / 2 if share else 0.5
    return math.fsum(
        float(counts[many]) * _upper_tail(int(many), winning, _wins_needed(int(many), alpha))
        for many in seen
    )


def detectable_by_sign_test(
    changed: float, queries: int, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Return the smallest mean difference that the sign test detects with this power, or None.

    Args:
        changed: Expected share of the queries that differ.
        queries: Number of queries, at least two.
        power: Required probability of detection.
        alpha: Significance level of the test.

    Example:
        >>> round(detectable_by_sign_test(changed=0.2, queries=100), 2)
        0.13
    """
    if sign_test_power(changed, queries, 1.0, alpha) < power:
        return None

    def enough(step: int) -> bool:
        return sign_test_power(changed, queries, step / _STEPS, alpha) >= power

    return (1 + bisect_left(range(1, _STEPS), x=True, key=enough)) / _STEPS


def _binomial(trials: int, share: float) -> FloatArray:
    """Return the probability of each number of successes."""
    if share >= 1:
        certain = np.zeros(trials + 1)
        certain[trials] = 1.0
        return certain
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials + 1)))])
    found = np.arange(trials + 1)
    return np.exp(
        logs[-1] - logs - logs[::-1] + found * math.log(share or 1e-300)
        + (trials - found) * math.log1p(-share)
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _wins_needed(changed: int, alpha: float) -> int:
    """Return the smallest number of wins among the changed queries that is significant."""
    tails = np.cumsum(_binomial(changed, 0.5)[::-1])[::-1]
    return int(np.count_nonzero(2 * tails > alpha * (1 - 1e-12)))


def _upper_tail(trials: int, share: float, least: int) -> float:
    return float(_binomial(trials, share)[least:].sum())


def _power(effect: float, queries: int, alpha: float) -> float:
    critical = student_t_quantile(1 - alpha / 2, queries - 1)
    spread, weight = _spreads(queries - 1)
    shift = effect * math.sqrt(queries)
    chances = (
        math.erfc((critical * s - shift) / math.sqrt(2))
        + math.erfc((critical * s + shift) / math.sqrt(2))
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


def _check(sd: float, alpha: float, where: str, power: float | None = None) -> None:
    check_amount(sd, "sd", where)
    check_share(alpha, "alpha", where)
    if power is not None:
        check_share(power, "power", where)
        if power <= alpha:
            raise InputError(
                f"power={power} is not above alpha={alpha}",
                where=where,
                fix="write, for example, power=0.8",
            )


def _check_queries(queries: int, where: str) -> None:
    if isinstance(queries, bool) or not 2 <= queries <= _MOST_QUERIES or queries != int(queries):
        raise InputError(
            f"queries={queries!r} is not valid",
            where=where,
            fix="queries is a whole number from 2 to 10**8",
        )

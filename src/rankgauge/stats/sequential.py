"""Confidence sequences for the difference of two arms that is examined repeatedly.

A test at level 5% that is repeated every day has far more than 5% false positives: the difference
of two equal arms fluctuates, and eventually exceeds any fixed bound. The bounds of a confidence
sequence contain the true difference at all looks simultaneously. They are computed from the
estimate and its variance at each look (`ClusterSums`), so events of one user may be dependent.

The bounds follow from the mixture sequential probability ratio test (Robbins 1970; Johari, Pekelis,
and Walsh 2015; Howard et al. 2021): with a normal distribution with standard deviation tau over the
true difference, the likelihood ratio of d with variance V is

    L(d) = sqrt(V / (V + tau²)) · exp(tau² d² / (2 V (V + tau²))),

and without a true difference, L exceeds 1 / alpha at any time with probability at most alpha. With
estimated variances and approximately normal sums, this holds asymptotically (Waudby-Smith et al.
2024); for simulations with rates from 0.01 to 0.5 and returning users, see
docs/explain/experiments.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rankgauge.errors import InputError
from rankgauge.stats.arrays import FloatArray, check_amount, check_share, root
from rankgauge.stats.clustered import ClusterSums

# With fewer effective clusters, rare events have more than 5% false positives
# (docs/explain/experiments.md).
_LEAST = 10


@dataclass(frozen=True, eq=False)
class ConfidenceSequence:
    """Intervals that contain the true difference at all looks simultaneously.

    Attributes:
        difference: (T,) estimate at each look.
        low: (T,) lower bounds; -inf where the variance is unknown.
        high: (T,) upper bounds; inf where the variance is unknown.
        p: (T,) always-valid p-values of no difference: the running minimum over looks.
        level: Probability that every interval contains the true difference.
        mixing: Standard deviation tau.
    """

    difference: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray
    level: float
    mixing: float


def confidence_sequence(
    differences: npt.ArrayLike, variances: npt.ArrayLike, *, mixing: float, level: float = 0.95
) -> ConfidenceSequence:
    """Return the confidence sequence of a difference (Robbins 1970; Howard et al. 2021).

    d ± sqrt(V (V + tau²) / tau² · log((V + tau²) / (V alpha²))).

    Args:
        differences: (T,) estimate at each look, from all data so far.
        variances: (T,) variance of each estimate; NaN if unknown, which makes a look inconclusive.
        mixing: tau, which must not depend on the differences; see :func:`mixing_sd`.
        level: Probability that every interval contains the true difference.

    Raises:
        InputError: If lengths differ, or a variance is not above 0.

    Example:
        >>> found = confidence_sequence([0.1, 0.05], [0.002, 0.0002], mixing=0.05)
        >>> found.low.round(4).tolist(), found.p.round(4).tolist()
        ([-0.0565, 0.0069], [0.374, 0.0113])
    """
    check_share(level, "level")
    check_amount(mixing, "mixing", positive=True)
    given, variance = (np.asarray(each, dtype=np.float64) for each in (differences, variances))
    if given.ndim != 1 or given.shape != variance.shape or (variance <= 0).any():
        raise InputError(
            "differences and variances do not match",
            where="confidence_sequence",
            fix="pass one of each for every look, variances above 0 or NaN",
        )
    known = np.isfinite(variance) & np.isfinite(given)
    v = np.where(known, variance, 1.0)
    d = np.where(known, given, 0.0)
    prior = mixing**2
    half = np.sqrt(v * (v + prior) / prior * (np.log1p(prior / v) - 2 * math.log(1 - level)))
    log_ratio = prior * d**2 / (2 * v * (v + prior)) - np.log1p(prior / v) / 2
    p = np.where(known, np.exp(-np.maximum(log_ratio, 0.0)), 1.0)
    half = np.where(known, half, math.inf)
    return ConfidenceSequence(given, d - half, d + half, np.minimum.accumulate(p), level, mixing)


def mixing_sd(variance: float, level: float = 0.95) -> float:
    """Return the mixing standard deviation tau for the narrowest interval at a variance.

    At variance V, the half-width is smallest where r - log(1 + r) = -2 log(alpha), with
    r = tau² / V.

    Args:
        variance: Variance expected at the end of the experiment, such as that of a single question
            divided by the number of questions.
        level: Confidence level of the sequence.

    Example:
        >>> round(mixing_sd(0.0001), 4)
        0.0287
    """
    check_share(level, "level")
    check_amount(variance, "variance", positive=True)

    def past(r: float) -> bool:
        return r - math.log1p(r) + 2 * math.log(1 - level) >= 0

    high = 1.0
    while not past(high):
        high *= 2
    return math.sqrt(variance * root(past, 0.0, high))


def variance_needed(difference: float, *, mixing: float, level: float = 0.95, power: float = 0.8) -> float:
    """Return the variance at which a look detects a true difference with this probability.

    Solves abs(d) = half-width(V) + z(power) sqrt(V). Earlier looks add to the probability.

    Args:
        difference: True difference, not 0.
        mixing: tau.
        level: Confidence level of the sequence.
        power: Required probability of detection.

    Example:
        >>> round(variance_needed(0.05, mixing=0.05), 6)
        0.000164
    """
    check_amount(abs(difference), "difference", positive=True)
    check_amount(mixing, "mixing", positive=True)
    check_share(level, "level")
    check_share(power, "power")
    z = NormalDist().inv_cdf(power)

    def too_large(v: float) -> bool:
        half = confidence_sequence([0.0], [v], mixing=mixing, level=level).high[0]
        return bool(half + z * math.sqrt(v) >= abs(difference))

    return root(too_large, 0.0, difference**2)


def difference_variance(new: ClusterSums, baseline: ClusterSums) -> tuple[float, float]:
    """Return the difference between the ratios of two independent arms, and its variance.

    The variance is NaN while the effective number of clusters of either arm is below 10: (Σy)² /
    Σy² over clusters with hits, or over those with misses, whichever is smaller.

    Example:
        >>> one, other = ClusterSums.of([1, 0] * 20, [1] * 40), ClusterSums.of([1] * 30, [2] * 30)
        >>> difference_variance(one, other)
        (0.0, 0.006410256410256411)
    """
    enough = min(map(_informative, (new, baseline))) >= _LEAST
    variance = new.variance + baseline.variance if enough else math.nan
    return new.ratio - baseline.ratio, variance if variance > 0 else math.nan


def _informative(sums: ClusterSums) -> float:
    """Return the effective number of clusters with hits or of those with misses, the smaller."""
    misses, squares = sums.x - sums.y, sums.xx - 2 * sums.xy + sums.yy
    # Without misses, the number of clusters cannot be estimated.
    return min(sums.y**2 / sums.yy if sums.yy else 0.0, misses**2 / squares if squares else 0.0)

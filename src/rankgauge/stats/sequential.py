"""Differences of two arms that may be examined at any time and repeatedly.

A test at level 5% that is repeated every day errs far more often than 5%: the difference of two
equal arms wanders, and sooner or later it is beyond any fixed bound. A confidence sequence has
bounds that contain the true difference at all looks at once. It is computed from the estimate and
its variance at each look (`ClusterSums`), so that events of one user may depend on each other.

The bounds follow from the mixture sequential probability ratio test (Robbins 1970; Johari, Pekelis,
and Walsh 2015; Howard et al. 2021): with a normal distribution of standard deviation tau over the
true difference, the ratio of the likelihoods of d with variance V is

    L(d) = sqrt(V / (V + tau²)) · exp(tau² d² / (2 V (V + tau²))),

and with no true difference L exceeds 1 / alpha at any time with probability alpha at most. With
estimated variances and sums that are only nearly normal this holds asymptotically (Waudby-Smith et
al. 2024); simulations for rates from .01 to .5 and users who return are in
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

# Below it, false alarms of rare events are above 5% (docs/explain/experiments.md).
_LEAST = 10


@dataclass(frozen=True, eq=False)
class ConfidenceSequence:
    """Intervals of a difference that contain the true one at all looks at once.

    Attributes:
        difference: (T,) the estimate at each look.
        low: (T,) lower bounds; -inf where the variance is unknown.
        high: (T,) upper bounds.
        p: (T,) always-valid p-values of "there is no difference": the smallest until each look.
        level: The probability that every interval contains the true difference.
        mixing: The standard deviation tau.
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
    """Return the confidence sequence of a difference.

    d ± sqrt(V (V + tau²) / tau² · log((V + tau²) / (V alpha²))).

    Args:
        differences: (T,) the estimate at each look, over everything up to then.
        variances: (T,) its variance; NaN where it is unknown: such a look decides nothing.
        mixing: tau. It must not depend on the differences; :func:`mixing_sd`.
        level: The probability that every interval contains the true difference.

    Raises:
        InputError: If lengths differ, or a variance is not above 0.

    Example:
        >>> found = confidence_sequence([0.1, 0.05], [0.002, 0.0002], mixing=0.05)
        >>> found.low.round(4).tolist(), found.p.round(4).tolist()
        ([-0.0565, 0.0069], [0.374, 0.0113])
    """
    where = "confidence_sequence"
    check_share(level, "level", where)
    check_amount(mixing, "mixing", where, positive=True)
    given, variance = (np.asarray(each, dtype=np.float64) for each in (differences, variances))
    if given.ndim != 1 or given.shape != variance.shape or (variance <= 0).any():
        raise InputError(
            "differences and variances do not match", where=where,
            fix="give one of each for every look, variances above 0 or NaN",
        )  # fmt: skip
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
    """Return the tau whose confidence sequence is narrowest at a variance.

    At V, the half-width over tau is smallest where r - log(1 + r) = -2 log(alpha), r = tau² / V.

    Args:
        variance: Expected when the experiment ends, such as that of one question / questions.
        level: Of the confidence sequence.

    Example:
        >>> round(mixing_sd(0.0001), 4)
        0.0287
    """
    check_share(level, "level", "mixing_sd")
    check_amount(variance, "variance", "mixing_sd", positive=True)

    def past(r: float) -> bool:
        return r - math.log1p(r) + 2 * math.log(1 - level) >= 0

    high = 1.0
    while not past(high):
        high *= 2
    return math.sqrt(variance * root(past, 0.0, high))


def variance_needed(
    difference: float, *, mixing: float, level: float = 0.95, power: float = 0.8
) -> float:
    """Return the variance at which a true difference is found by a look with this probability.

    Solves abs(d) = half-width(V) + z(power) sqrt(V). Looks before it add to the probability.

    Args:
        difference: The true difference, not 0.
        mixing: tau.
        level: Of the confidence sequence.
        power: The probability.

    Example:
        >>> round(variance_needed(0.05, mixing=0.05), 6)
        0.000164
    """
    where = "variance_needed"
    check_amount(abs(difference), "difference", where, positive=True)
    check_amount(mixing, "mixing", where, positive=True)
    check_share(level, "level", where)
    check_share(power, "power", where)
    z = NormalDist().inv_cdf(power)

    def too_large(v: float) -> bool:
        half = confidence_sequence([0.0], [v], mixing=mixing, level=level).high[0]
        return bool(half + z * math.sqrt(v) >= abs(difference))

    return root(too_large, 0.0, difference**2)


def difference_variance(new: ClusterSums, baseline: ClusterSums) -> tuple[float, float]:
    """Return the difference of two ratios of independent arms, and its variance.

    The variance is NaN while either arm has an effective number of clusters below 10: (Σy)² / Σy²
    over clusters with hits, or over those with misses, whichever is smaller.

    Example:
        >>> one, other = ClusterSums.of([1, 0] * 20, [1] * 40), ClusterSums.of([1] * 30, [2] * 30)
        >>> difference_variance(one, other)
        (0.0, 0.006410256410256411)
    """
    enough = min(map(_informative, (new, baseline))) >= _LEAST
    variance = new.variance + baseline.variance if enough else math.nan
    return new.ratio - baseline.ratio, variance if variance > 0 else math.nan


def _informative(sums: ClusterSums) -> float:
    """The effective number of clusters with hits, or of those with misses."""
    misses, squares = sums.x - sums.y, sums.xx - 2 * sums.xy + sums.yy
    # Without misses, the number of clusters cannot be estimated.
    return min(sums.y**2 / sums.yy if sums.yy else 0.0, misses**2 / squares if squares else 0.0)

"""Confidence intervals of proportions: how often something was chosen, of this many times."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rankgauge.errors import InputError
from rankgauge.stats.arrays import FloatArray, check_share


def wilson_interval(
    successes: npt.ArrayLike, trials: npt.ArrayLike, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper bounds of Wilson's score interval of proportions.

    The proportions p that a score test does not reject: with p' = successes / trials,
    (p' + z²/2n ± z sqrt(p'(1 - p')/n + z²/4n²)) / (1 + z²/n) (Wilson 1927). Without trials it is
    from 0 to 1.

    Args:
        successes: Counts from 0 to `trials`, of any shape.
        trials: Counts of the same shape, or one for all.
        level: The confidence, between 0 and 1.

    Raises:
        InputError: If there are more successes than trials, or counts are negative or no numbers.

    Example:
        >>> low, high = wilson_interval([0, 3], [5, 10])
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([0.0, 0.108], [0.434, 0.603])
    """
    where = "wilson_interval"
    check_share(level, "level", where)
    hits, n = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    )
    wrong = ~((hits >= 0) & (hits <= n) & np.isfinite(n))
    if wrong.any():
        raise InputError(
            f"{hits[wrong][0]:g} successes of {n[wrong][0]:g} trials are not possible",
            where=where,
            fix="give counts from 0 to the number of trials",
        )
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    center = (hits + z2 / 2) / (n + z2)
    # Under one root, so that nothing is divided by trials of 0.
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.where(n > 0, hits * (n - hits) / n, 0.0)
    half = np.sqrt(z2 * (spread + z2 / 4)) / (n + z2)
    # Exact where no or all trials succeeded.
    low = np.where(hits == 0, 0.0, center - half)
    return low, np.where(hits == n, 1.0, center + half)

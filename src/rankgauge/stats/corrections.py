"""P-values of many comparisons, corrected for their number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rankgauge.stats.arrays import FloatArray, p_values


def bonferroni(p: npt.ArrayLike) -> FloatArray:
    """Bonferroni's correction: min(1, m * p), in the order given.

    Example:
        >>> bonferroni([0.01, 0.5]).tolist()
        [0.02, 1.0]
    """
    given = p_values(p, "bonferroni")
    return np.minimum(1.0, given * len(given))


def holm(p: npt.ArrayLike) -> FloatArray:
    """Holm's step-down correction (1979): family-wise, never worse than Bonferroni.

    The i-th smallest p times (m - i + 1), the running maximum of these, at most 1; in the order
    given.

    Example:
        >>> holm([0.5, 0.01, 0.02]).tolist()
        [0.5, 0.03, 0.04]
    """
    given = p_values(p, "holm")
    order = np.argsort(given, kind="stable")
    steps = given[order] * np.arange(len(given), 0, -1)
    return _placed(np.maximum.accumulate(steps), order)


def benjamini_hochberg(p: npt.ArrayLike) -> FloatArray:
    """Benjamini and Hochberg's correction (1995): the false discovery rate, for explorations.

    The i-th smallest p times m / i, the running minimum from the largest on; in the order given.

    Example:
        >>> benjamini_hochberg([0.5, 0.01, 0.02]).tolist()
        [0.5, 0.03, 0.03]
    """
    given = p_values(p, "benjamini_hochberg")
    order = np.argsort(given, kind="stable")[::-1]
    steps = given[order] * len(given) / np.arange(len(given), 0, -1)
    return _placed(np.minimum.accumulate(steps), order)


def _placed(corrected: FloatArray, order: npt.NDArray[np.intp]) -> FloatArray:
    """Sorted p-values, at most 1, in the order given."""
    result = np.empty_like(corrected)
    result[order] = np.minimum(1.0, corrected)
    return result

"""Corrections of p-values for multiple comparisons."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rankgauge.stats.arrays import FloatArray, p_values


def bonferroni(p: npt.ArrayLike) -> FloatArray:
    """Return p-values corrected by Bonferroni's method: min(1, m * p), in the order of the input.

    Example:
        >>> bonferroni([0.01, 0.5]).tolist()
        [0.02, 1.0]
    """
    given = p_values(p, "bonferroni")
    return np.minimum(1.0, given * len(given))


def holm(p: npt.ArrayLike) -> FloatArray:
    """Return p-values corrected by Holm's step-down method (1979), never above Bonferroni's.

    It controls the family-wise error rate. The result is the running maximum of the i-th smallest p
    times (m - i + 1), at most 1, in the order of the input.

    Example:
        >>> holm([0.5, 0.01, 0.02]).tolist()
        [0.5, 0.03, 0.04]
    """
    given = p_values(p, "holm")
    order = np.argsort(given, kind="stable")
    steps = given[order] * np.arange(len(given), 0, -1)
    return _in_input_order(np.maximum.accumulate(steps), order)


def benjamini_hochberg(p: npt.ArrayLike) -> FloatArray:
    """Return p-values corrected by the method of Benjamini and Hochberg (1995), for exploration.

    It controls the false discovery rate. The result is the running minimum, from the largest p
    down, of the i-th smallest p times m / i, in the order of the input.

    Example:
        >>> benjamini_hochberg([0.5, 0.01, 0.02]).tolist()
        [0.5, 0.03, 0.03]
    """
    given = p_values(p, "benjamini_hochberg")
    order = np.argsort(given, kind="stable")[::-1]
    steps = given[order] * len(given) / np.arange(len(given), 0, -1)
    return _in_input_order(np.minimum.accumulate(steps), order)


def _in_input_order(corrected: FloatArray, order: npt.NDArray[np.intp]) -> FloatArray:
    """Return sorted p-values, limited to 1, in the order of the input."""
    result = np.empty_like(corrected)
    result[order] = np.minimum(1.0, corrected)
    return result

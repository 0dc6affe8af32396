"""Sums and products with error terms, so that sums do not depend on the order of addition."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.core import native

FloatArray: TypeAlias = npt.NDArray[np.float64]

# Smaller differences are due to rounding.
TOLERANCE = 1e-12
# The compiled core compares all pairs of terms of a row: up to this many, this takes less time than sorting.
_FEW = 8


def total(high: FloatArray, low: FloatArray | None = None, weights: FloatArray | None = None) -> FloatArray:
    """Return the sum of each row of ``high x weights + low`` in double-double precision (2 x 53 bits)."""
    sums, core = np.empty(len(high)), native.core
    if core is not None and high.shape[1] <= _FEW:
        given = (high, np.zeros(0) if low is None else low, np.zeros(0) if weights is None else weights)
        core.sum_terms(*map(np.ascontiguousarray, given), sums)
        return sums
    if weights is not None:
        high, error = product(high, weights)
        low = error if low is None else low + error
    terms = np.empty(high.shape, dtype=np.complex128)
    terms.real = high
    terms.imag = 0.0 if low is None else low
    # Complex numbers sort by real part, then by imaginary part: the terms are in the same order for
    # every order of the runs.
    terms.sort(axis=1)
    result, rest = np.zeros(len(high)), np.zeros(len(high))
    for column in terms.T:
        term = column.real
        more = result + term
        back = more - result
        rest += (result - (more - back)) + (term - back) + column.imag
        result = more
    return result + rest


def as_integer(values: FloatArray) -> int:
    """Return the exact sum of numbers times 2 ** 1074.

    Partial sums can be added in any order and on any machine; `as_float` of the total equals
    ``math.fsum`` of all numbers.

    Example:
        >>> as_float(as_integer(np.array([1e16, 1.0])) + as_integer(np.array([-1e16])))
        1.0
    """
    fractions, exponents = np.frexp(values)
    mantissas = np.ldexp(fractions, 53).astype(np.int64)
    whole = 0
    for exponent in np.unique(exponents).tolist():
        chosen = mantissas[exponents == exponent]
        # Split into halves, so that billions of them can be added in 64 bits.
        added = (int((chosen >> 26).sum()) << 26) + int((chosen & (2**26 - 1)).sum())
        whole += added * 2 ** (exponent + 1074) // 2**53
    return whole


def as_float(whole: int) -> float:
    """Return ``whole / 2 ** 1074``, correctly rounded."""
    return whole / 2**1074


def product(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a product and its rounding error (Dekker 1971)."""
    result = left * right
    (a, b), (c, d) = _halves(left), _halves(right)
    return result, ((a * c - result) + a * d + b * c) + b * d


def quotient(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a quotient and its rounding error."""
    result = left / right
    back, lost = product(result, right)
    return result, ((left - back) - lost) / right


def _halves(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split numbers into two summands of at most 26 bits (Veltkamp)."""
    scaled = values * 134217729.0  # 2^27 + 1
    high = scaled - (scaled - values)
    return high, values - high

"""Sums and products that keep what rounding loses, so that no order of adding changes them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]

# Values nearer to each other than this differ by rounding only.
TOLERANCE = 1e-12


def total(high: FloatArray, low: FloatArray | None = None) -> FloatArray:
    """The sum of each row of ``high + low``, added exactly as far as twice 53 bits go."""
    terms = np.empty(high.shape, dtype=np.complex128)
    terms.real = high
    terms.imag = 0.0 if low is None else low
    # Complex numbers are ordered by their first part, then by the second: runs in any order give
    # the same terms in the same order.
    terms.sort(axis=1)
    result, rest = np.zeros(len(high)), np.zeros(len(high))
    for column in terms.T:
        term = column.real
        more = result + term
        back = more - result
        rest += (result - (more - back)) + (term - back) + column.imag
        result = more
    exact: FloatArray = result + rest
    return exact


def as_integer(values: FloatArray) -> int:
    """The exact sum of numbers, times 2 ** 1074.

    Such sums of parts can be added in any order and on any machine; `as_float` of them is
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
        # Halves, so that billions of them can be added in 64 bits.
        added = (int((chosen >> 26).sum()) << 26) + int((chosen & (2**26 - 1)).sum())
        whole += added * 2 ** (exponent + 1074) // 2**53
    return whole


def as_float(whole: int) -> float:
    """The number of which this is 2 ** 1074 times, correctly rounded."""
    return whole / 2**1074


def product(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A product and what its rounding lost (Dekker 1971)."""
    result = left * right
    (a, b), (c, d) = _halves(left), _halves(right)
    return result, ((a * c - result) + a * d + b * c) + b * d


def quotient(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A quotient and what its rounding lost."""
    result = left / right
    back, lost = product(result, right)
    return result, ((left - back) - lost) / right


def _halves(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two numbers of at most 26 bits with this sum (Veltkamp)."""
    scaled = values * 134217729.0  # 2^27 + 1
    high = scaled - (scaled - values)
    return high, values - high

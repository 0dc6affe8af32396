"""Shared helpers: input checks, exact sums, moments, and blocks of draws."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.core.arguments import integer
from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.errors import InputError

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

TIE = 1e-9  # of the largest possible sum: sums that differ by less are equal
LEVEL = 0.95  # confidence level of intervals
_CELLS = 1 << 22  # cells in a block of draws: 32 MB
_LARGEST = 1e100  # above all measures; its square does not overflow


def seed_of(*arrays: npt.ArrayLike) -> int:
    """Return a seed below 2**32 derived from the data, the same on all platforms.

    SHA-256 over shapes and 64-bit little-endian bytes; 0 and -0 are equal.

    Example:
        >>> seed_of([0.2, 0.0]) == seed_of([0.2, -0.0]) != seed_of([0.0, 0.2])
        True
    """
    digest = hashlib.sha256()
    for array in arrays:
        values = np.asarray(array, dtype=np.float64) + 0.0
        digest.update(repr(values.shape).encode())
        digest.update(values.astype("<f8").tobytes())
    return int.from_bytes(digest.digest()[:4], "big")


def _numbers(numbers: npt.ArrayLike, what: str) -> FloatArray:
    try:
        values = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} are not numbers in rows of equal length", where=what, fix="pass an array") from None
    if not values.size:
        raise InputError(f"no {what}", where=what, fix="pass at least one")
    wrong = ~(np.abs(values) <= _LARGEST)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"{what} contain {values[at]} at index {', '.join(map(str, at))}",
            where=what,
            fix="remove undefined queries, or count them as 0, before testing",
        )
    return values


def one_column(differences: npt.ArrayLike) -> FloatArray:
    """Return (Q,) finite differences, at least two."""
    values = _numbers(differences, "differences")
    if values.ndim != 1:
        raise InputError(
            f"differences have {values.ndim} dimensions, not 1",
            where="differences",
            fix="pass one difference per query, one comparison at a time",
        )
    return table_of(values)[:, 0]


def table_of(table: npt.ArrayLike) -> FloatArray:
    """Return (Q, M) finite values of at least two queries; (Q,) becomes one column."""
    values = _numbers(table, "values")
    if values.ndim not in {1, 2}:
        raise InputError(
            f"values have {values.ndim} dimensions",
            where="values",
            fix="pass one row per query, one column per comparison or system",
        )
    if len(values) < 2:
        raise InputError("one query: its spread is unknown", where="values", fix="pass two queries or more")
    return values.reshape(len(values), -1)


def p_values(p: npt.ArrayLike) -> FloatArray:
    """Return (m,) p-values, each from 0 to 1."""
    values = _numbers(p, "p-values")
    if values.ndim != 1 or values.min() < 0 or values.max() > 1:
        raise InputError(
            "p-values are not a row of numbers from 0 to 1",
            where="p",
            fix="pass the p-values of one family, uncorrected",
        )
    return values


def check_share(value: float, name: str) -> None:
    """Raise InputError unless the value is between 0 and 1."""
    if not 0 < value < 1:
        raise InputError(f"{name}={value} is not between 0 and 1", where=name, fix=f"write, for example, {name}=0.95")


def check_amount(value: float, name: str, *, positive: bool = False) -> None:
    """Raise InputError if the value is negative (or 0, if `positive`), NaN, or too large."""
    if not 0 <= value <= _LARGEST or (positive and value == 0):
        least = "above 0" if positive else "0 or more"
        raise InputError(f"{name}={value} is not valid", where=name, fix=f"{name} is a number, {least}")


def check_draws(draws: Any, seed: Any) -> None:
    """Raise InputError unless `draws` and `seed` are integers, of at least 1 and 0."""
    integer("draws", draws)
    integer("seed", seed, least=0)


def cluster_numbers(clusters: npt.ArrayLike | None, count: int, unit: str) -> npt.NDArray[np.intp]:
    """Return the cluster number of each unit, (count,); by default, each unit is a cluster."""
    if clusters is None:
        return np.arange(count)
    labels = np.asarray(clusters)
    if labels.shape != (count,):
        raise InputError(
            f"got {labels.size} clusters for {count} {unit}s", where="clusters", fix=f"pass the cluster of each {unit}"
        )
    return np.unique(labels, return_inverse=True)[1]


def root(reached: Callable[[float], bool], low: float, high: float) -> float:
    """Return where `reached` changes from False to True, by bisection to the last bit."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def moments(column: FloatArray) -> tuple[float, float]:
    """Return the mean and standard deviation (n - 1) of at least two finite values.

    The standard deviation is 0 if values differ only by rounding.

    Example:
        >>> import numpy as np
        >>> moments(np.array([0.0, 0.25, 0.5]))
        (0.25, 0.25)
    """
    top = float(np.abs(column).max())
    low, high = float(column.min()), float(column.max())
    if low == high:
        return low, 0.0
    exponent = math.frexp(top)[1]  # so that no square overflows or underflows
    scaled = np.ldexp(column, -exponent)
    mean = math.fsum(scaled.tolist()) / len(scaled)
    if high - low <= TOLERANCE * top:
        return math.ldexp(mean, exponent), 0.0
    variance = math.fsum(((scaled - mean) ** 2).tolist()) / (len(scaled) - 1)
    return math.ldexp(mean, exponent), math.ldexp(math.sqrt(variance), exponent)


def t_statistic(mean: float, sd: float, queries: int) -> float:
    """Return mean / (sd / sqrt(queries)); if sd is 0, 0 for a mean of 0, else ±inf."""
    if sd == 0:
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / sd * math.sqrt(queries)


def blocks(draws: int, cells: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the number of draws of each block; `cells` is the number per draw."""
    size = max(1, _CELLS // cells)
    for start in range(0, draws, size):
        yield start, min(size, draws - start)


def whole_numbers(values: FloatArray, *, joint: bool = False) -> tuple[FloatArray, Any]:
    """Return (..., Q) values as integer multiples of a power of two, and the exponents of that power.

    Values keep 52 - log2(Q) bits, and no sum of signed values over the last axis exceeds 2**52, so
    sums are exact in any order. With `joint`, the exponent is the same along the last two axes.
    """
    largest = np.abs(values).max(axis=(-2, -1) if joint else -1, keepdims=True, initial=0.0)
    unit = np.frexp(largest)[1] + (values.shape[-1] - 1).bit_length() - 52
    return np.rint(np.ldexp(values, -unit)), unit


def slack(whole: FloatArray) -> float:
    """Return the difference up to which sums are equal: 1e-9 of the largest, or rounding error."""
    return max(TIE * float(total(np.abs(whole))), len(whole))


def total(values: FloatArray) -> Any:
    """Return the sum of each column, added in the order of the rows."""
    return np.cumsum(values, axis=0)[-1:].sum(axis=0)

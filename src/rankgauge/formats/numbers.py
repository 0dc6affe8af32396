"""Convert scores and grades to 64-bit floats, with messages for invalid numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Blame
from rankgauge.core.pair_table import FloatArray
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout

_SHOWN = 40
# A number with a comma, whose meaning depends on the locale.
_COMMA = re.compile(r"[+-]?\d+(,\d+)+")
# Integers of smaller magnitude are exact as floats.
EXACT = 2**53
_WORD, _HALF = 8, 32


def read_number(text: bytes) -> float:
    """Parse a number like `float`, but reject underscores and inexact integers."""
    if b"_" in text:
        raise ValueError(text)
    number = float(text)
    if abs(number) >= EXACT and is_lost(text, number):
        raise ValueError(text)
    return number


def is_lost(value: Any, number: float) -> bool:
    """Return whether an integer, or text of one, changed when converted to a 64-bit float.

    From 2^53 on, distinct integers can have the same float, so two scores could tie. Fractions are
    rounded as usual; text with a fraction of zeros counts as an integer.
    """
    if not EXACT <= abs(number) < math.inf or isinstance(value, float):
        return False
    if isinstance(value, str | bytes):
        text = value if isinstance(value, str) else value.decode("utf-8", "replace")
        whole, _, fraction = text.strip().partition(".")
        value = text if fraction.strip("0") else whole
    try:
        return int(value) != int(number)
    except (TypeError, ValueError, OverflowError):
        return False


def number_text(value: float, layout: Layout) -> str:
    """Format a number with all its digits; integer grades without a decimal point."""
    return repr(plain_number(value, layout))


def plain_number(value: float, layout: Layout) -> float | int:
    """Return the number; a whole grade as an integer, except for -0."""
    whole = layout is JUDGMENTS and value.is_integer() and abs(value) < EXACT
    return int(value) if whole and (value or math.copysign(1, value) > 0) else value


def is_missing(value: Any) -> bool:
    """Return whether the value is missing: None, empty text, or NA of pandas."""
    empty = isinstance(value, str | bytes) and not value.strip()
    return empty or value is None or type(value).__name__ == "NAType"


def wrong_number(value: Any, layout: Layout) -> tuple[str, str]:
    """Return the problem and the fix for a value that is not a finite number."""
    if is_missing(value):
        return f"the {layout.value} is missing", layout.fix
    lost = lost_number(value, layout)
    if lost is not None:
        return lost
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."
    fix = f"write every {layout.value} as a number"
    if isinstance(value, str) and _COMMA.fullmatch(value.strip()):
        fix += ", with a decimal point: a comma may be a thousands separator"
    if isinstance(value, str | bytes | bytearray):
        return f"{layout.value} {shown} is text, not a number", fix
    return f"{layout.value} {shown} is of type {type(value).__name__}, not a number", fix


def lost_number(value: Any, layout: Layout) -> tuple[str, str] | None:
    """Return the problem and the fix for an integer that no 64-bit float represents, or None."""
    if not (isinstance(value, str | bytes) or _is_number(type(value))):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if not is_lost(value, number):
        return None
    shown = value.decode() if isinstance(value, bytes) else value
    fix = "subtract the same integer from all scores, or list the documents, best first"
    what = (
        f"{layout.value} {shown} is not exactly representable as a 64-bit float: it would "
        f"become {int(number)}, and could tie with another {layout.value}"
    )
    return what, fix if layout is RUN else f"use a smaller {layout.value}"


def numbers_of(values: Sequence[Any], layout: Layout, blame: Blame) -> FloatArray:
    """Convert numbers of any type to 64-bit floats."""
    bad = tuple(kind for kind in set(map(type, values)) if not _is_number(kind))
    if bad:
        row = next(row for row, value in enumerate(values) if type(value) in bad)
        raise blame(row, *wrong_number(values[row], layout))
    try:
        with np.errstate(over="ignore"):  # overflow gives infinity, which is refused
            found = np.fromiter(values, dtype=np.float64, count=len(values))
    except (OverflowError, TypeError, ValueError):
        found = np.array([_number(value, row, layout, blame) for row, value in enumerate(values)])
    for row in np.flatnonzero(np.abs(found) >= EXACT).tolist():
        if is_lost(values[row], float(found[row])):
            raise blame(row, *wrong_number(values[row], layout))
    return found


def whole_numbers_of(values: npt.NDArray[Any], layout: Layout, blame: Blame) -> FloatArray:
    """Convert an array of integers to 64-bit floats."""
    found: FloatArray = values.astype(np.float64)
    if values.itemsize == _WORD:
        # If the conversion is exact, subtracting the upper half leaves exactly the lower half.
        rest = found - (values >> _HALF).astype(np.float64) * 2.0**_HALF
        lost = np.flatnonzero(rest != (values & (2**_HALF - 1)).astype(np.float64))
        if len(lost):
            raise blame(int(lost[0]), *wrong_number(int(values[lost[0]]), layout))
    return found


def finite_numbers(values: Sequence[Any], layout: Layout, blame: Blame) -> FloatArray:
    """Convert numbers of any type to 64-bit floats; all must be finite."""
    found = numbers_of(values, layout, blame)
    bad = first_not_finite(found)
    if bad is not None:
        row, shown = bad
        raise blame(row, f"{layout.value} {shown} is not a finite number", layout.fix)
    return found


def first_not_finite(values: FloatArray) -> tuple[int, str] | None:
    """Return the index and the text of the first number that is not finite."""
    bad = np.flatnonzero(~np.isfinite(values))
    if not len(bad):
        return None
    value = float(values[bad[0]])
    return int(bad[0]), "NaN" if math.isnan(value) else str(value)


def _is_number(kind: type) -> bool:
    # Complex numbers would lose their imaginary part; dates would become counts.
    strange = str | bytes | bytearray | np.ndarray | np.complexfloating | np.datetime64
    return hasattr(kind, "__float__") and not issubclass(kind, strange)


def _number(value: Any, row: int, layout: Layout, blame: Blame) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        raise blame(row, *wrong_number(value, layout)) from None

"""Decimal numbers in bytes as 64-bit floats, a whole column at once, rounded to the last bit.

Eight digits are taken at a time as one 64-bit word. A number ``m / 10^d`` of at most 15 digits is
one division of two exact floats, and so correctly rounded (Clinger, How to Read Floating Point
Numbers Accurately, 1990). Of a longer one the remainder of that division is computed exactly
(Dekker, A Floating-Point Technique for Extending the Available Precision, 1971) and corrects it.
Where the result lies too near the middle between two floats to be sure, it is left to others, as is
everything that is not plain digits with at most one point.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["decimals", "words_of"]

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_U = np.uint64
_ZEROS = _U(0x3030303030303030)
_HIGH = _U(0xF0F0F0F0F0F0F0F0)
_SIX = _U(0x0606060606060606)
_PAIRS = _U(0x000000FF000000FF)
_SCALES = (_U(0x000F424000000064), _U(0x0000271000000001))  # 100 + 10^6 2^32, 1 + 10^4 2^32
_TEN = _U(10)
_UNITS = (_U(1), _U(10**8), _U(10**16))
_EIGHT, _SIXTEEN, _HALF, _FIFTY_SIX = _U(8), _U(16), _U(32), _U(56)
# The last n of eight bytes.
_LAST = np.array([0, *(((1 << 8 * n) - 1) << (64 - 8 * n) for n in range(1, 9))], dtype=np.uint64)
_POWERS = np.array([10.0**n for n in range(23)])
_LONGEST = 19  # digits that fit into 64 bits
_EXACT = 15  # digits that fit into a float
_SPLITTER = 134217729.0  # 2^27 + 1
_NONE = 99  # no point
_POINT, _MINUS, _PLUS = ord("."), ord("-"), ord("+")
_MANTISSA = _U((1 << 52) - 1)


def words_of(data: Bytes) -> Words:
    """A 64-bit word starting at every byte; the last seven bytes begin none."""
    return np.ndarray((len(data) - 7,), dtype="<u8", buffer=data.data, strides=(1,))


def decimals(data: Bytes, words: Words, starts: Ints, ends: Ints) -> tuple[Floats, Bools]:
    """The numbers in these places, and which of them are sure.

    Args:
        data: The bytes, with at least 32 before the first number and behind the last.
        words: Those of :func:`words_of`.
        starts: Where each number starts.
        ends: Where it ends, one byte behind its last.

    Returns:
        The values, and whether each was read: what was not is for Python's ``float`` to read, or to
        refuse.
    """
    first = data[starts]
    minus, begins = None, starts
    if len(first) and int(first.min()) <= _MINUS:
        minus = first == _MINUS
        begins = starts + (minus | (first == _PLUS))
    places, power = _places(data, begins, ends)
    digits = ends - begins - (places < _NONE)
    sure = (digits > 0) & (digits <= _LONGEST)
    longest = min(int(digits.max(initial=0)), _LONGEST)
    number = np.zeros(0, dtype=np.uint64)
    here = words[ends - 8]
    for place, scale in enumerate(_UNITS):
        if 8 * place >= longest:
            break
        if longest > 8 * (place + 1):
            above = words[ends - 8 * (place + 2)]
        else:
            # Of what stands before, only the last byte counts: the point may take its place.
            above = data[ends - 8 * (place + 1) - 1].astype(np.uint64) << _FIFTY_SIX
        word = _eight(here, above, places - 8 * place)
        here = above
        last = _LAST[np.clip(digits - 8 * place if place else digits, 0, 8)]
        # Other bytes become zeros, as digits.
        word ^= _ZEROS
        word &= last
        # A digit is 0 to 9 now; with six more it still is below sixteen.
        strange = word + _SIX
        strange |= word
        strange &= _HIGH
        if strange.any():
            sure &= strange == 0
        number = _number(word) if place == 0 else number + _number(word) * scale
    values = number.astype(np.float64)
    values /= power
    long = np.flatnonzero(sure & (digits > _EXACT)) if longest > _EXACT else digits[:0]
    if len(long):
        powers = power[long] if isinstance(power, np.ndarray) else np.full(len(long), power)
        values[long], sure[long] = _corrected(number[long], powers)
    if minus is not None:
        np.negative(values, out=values, where=minus)
    return values, sure


def _places(data: Bytes, begins: Ints, ends: Ints) -> tuple[Ints | int, Floats | float]:
    """How many digits stand behind the point of each number, and that power of ten.

    One for all where they are written alike, as in most files. Without a point it is `_NONE`.
    """
    if len(ends):
        token = data[begins[0] : ends[0]].tobytes()
        point = token.rfind(b".")
        alike = len(token) - 1 - point
        if point >= 0 and alike <= _LONGEST:
            at = ends - 1 - alike
            if (data[at] == _POINT).all() and (at >= begins).all():
                return alike, float(_POWERS[alike])
    # The point stands behind a few digits: look there, nearest first, until all have theirs.
    found = np.full(len(ends), _NONE)
    left = None
    for place in range(_LONGEST + 1):
        if left is None:
            hit = np.flatnonzero(data[begins + place] == _POINT)
            found[hit] = (ends - 1 - place - begins)[hit]
            left = np.flatnonzero(found == _NONE)
        else:
            hit = data[begins[left] + place] == _POINT
            rows = left[hit]
            found[rows] = ends[rows] - 1 - place - begins[rows]
            left = left[~hit]
        if not len(left):
            break
    # A point behind the end is that of another field.
    found[found < 0] = _NONE
    power = _POWERS[np.where(found <= _LONGEST, found, 0)]
    return found, power


def _eight(here: Words, above: Words, behind: Ints | int) -> Words:
    """Eight digits, without the point among them.

    Args:
        here: The eight bytes where they would stand if there were no point.
        above: The eight bytes before those.
        behind: How many of them stand behind the point: below 1 none, above 7 all.
    """
    if isinstance(behind, int) and behind >= 8:
        return here.copy()
    moved = (here << _EIGHT) | (above >> _FIFTY_SIX)
    if isinstance(behind, int) and behind <= 0:
        return moved
    last = _LAST[np.clip(behind, 0, 8)]
    return (here & last) | (moved & ~last)


def _number(word: Words) -> Words:
    """The number of eight digits, each 0 to 9 in its byte, the first of them in the lowest."""
    pairs = word * _TEN
    pairs += word >> _EIGHT
    low = pairs >> _SIXTEEN
    low &= _PAIRS
    low *= _SCALES[1]
    pairs &= _PAIRS
    pairs *= _SCALES[0]
    pairs += low
    pairs >>= _HALF
    return pairs


def _corrected(number: Words, power: Floats) -> tuple[Floats, Bools]:
    """Whole numbers below 10^19 divided by a power of ten, rounded once; and which are sure."""
    head = number.astype(np.float64)
    rest = (number - head.astype(np.uint64)).astype(np.int64).astype(np.float64)
    quotient = head / power
    product, error = _product(quotient, power)
    remainder = ((head - product) - error) + rest
    correction = remainder / power
    value = quotient + correction
    left = correction - (value - quotient)
    half = np.spacing(value) / 2
    # What is lost so far is far less than this; and below a power of two floats lie closer.
    near = np.abs(np.abs(left) - half) <= np.abs(correction) * 2.0**-40 + half * 2.0**-40
    sure = ~near & ((value.view(np.uint64) & _MANTISSA) != 0)
    return value, sure


def _product(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """A product, and what rounding took from it."""
    product = one * other
    scaled = _SPLITTER * one
    high = scaled - (scaled - one)
    low = one - high
    scaled_other = _SPLITTER * other
    other_high = scaled_other - (scaled_other - other)
    other_low = other - other_high
    error = ((high * other_high - product) + high * other_low + low * other_high) + low * other_low
    return product, error

"""Parse whole columns of decimal numbers into correctly rounded 64-bit floats.

Eight digits are processed at a time as one 64-bit word. A number ``m / 10^d`` with at most 15
digits is one division of two exact floats and therefore correctly rounded (Clinger, How to Read
Floating Point Numbers Accurately, 1990). For longer numbers, the remainder of that division is
computed exactly (Dekker, A Floating-Point Technique for Extending the Available Precision, 1971)
and corrects the quotient. Results too close to the midpoint between two floats are left to another
parser, as is everything except plain digits with at most one point.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_U = np.uint64
_ZEROS = _U(0x3030303030303030)
_HIGH = _U(0xF0F0F0F0F0F0F0F0)
_SIX = _U(0x0606060606060606)
_POINTS = _U(0x2E2E2E2E2E2E2E2E)
_ONES, _TOPS = _U(0x0101010101010101), _U(0x8080808080808080)
_PAIRS = _U(0x000000FF000000FF)
_SCALES = (_U(0x000F424000000064), _U(0x0000271000000001))  # 100 + 10^6 2^32, 1 + 10^4 2^32
_TEN = _U(10)
_UNITS = (_U(1), _U(10**8), _U(10**16))
_EIGHT, _SIXTEEN, _HALF = _U(8), _U(16), _U(32)
_WORD = 8
# Masks for the last n of eight bytes.
_LAST = np.array([0, *(((1 << 8 * n) - 1) << (64 - 8 * n) for n in range(1, 9))], dtype=np.uint64)
_POWERS = np.array([10.0**n for n in range(23)])
_LONGEST = 19  # digits that fit into 64 bits
_WHOLE_POWERS = np.array([10**n for n in range(_LONGEST + 1)], dtype=np.uint64)
_EXACT = 15  # digits that a float represents exactly
_INEXACT = 2.0**53  # from here on, adjacent floats differ by more than 1
_SPLITTER = 134217729.0  # 2^27 + 1
_NONE = 99  # no decimal point
_POINT, _MINUS, _PLUS = ord("."), ord("-"), ord("+")
_MANTISSA, _EXPONENT = _U((1 << 52) - 1), _U(2047 << 52)
_HALF_UNIT = 2.0**-53
_MARGIN = 2.0**-40


def words_of(data: Bytes) -> Words:
    """Return the 64-bit words that start at each byte, except for the last seven bytes."""
    return np.ndarray((len(data) - 7,), dtype="<u8", buffer=data.data, strides=(1,))


def decimals(data: Bytes, words: Words, starts: Ints, ends: Ints) -> tuple[Floats, Bools]:
    """Parse numbers, and return which were parsed; Python's ``float`` must parse the others.

    `data` must have at least 32 bytes before the first number and after the last.
    """
    first = data[starts]
    minus, begins = None, starts
    if len(first) and int(first.min()) <= _MINUS:
        minus = first == _MINUS
        begins = starts + (minus | (first == _PLUS))
    places, power = _places(data, words, begins, ends)
    digits = ends - begins - (places < _NONE)
    sure = (digits > 0) & (digits <= _LONGEST)
    longest = min(int(digits.max(initial=0)), _LONGEST)
    if longest <= _WORD:
        number = _short(data, words, (ends, digits, places), sure)
    else:
        number = _long_number(words, (ends, digits, places), sure)
    values = number.astype(np.float64)
    values /= power
    long = np.flatnonzero(sure & (digits > _EXACT)) if longest > _EXACT else digits[:0]
    if len(long):
        powers = power[long] if isinstance(power, np.ndarray) else np.full(len(long), power)
        values[long], sure[long] = _corrected(number[long], powers)
        # Refuse integers that no float represents, also with zeros after the point.
        large = values[long] >= _INEXACT
        long, units = long[large], powers[large].astype(np.uint64)
        whole, fraction = np.divmod(number[long], units)
        sure[long] &= (fraction != 0) | (values[long].astype(np.uint64) == whole)
    if minus is not None:
        np.negative(values, out=values, where=minus)
    return values, sure


def _short(data: Bytes, words: Words, token: tuple[Ints, Ints, Ints | int], sure: Bools) -> Words:
    """Parse tokens of up to eight digits as integers, ignoring the decimal point."""
    ends, digits, behind = token
    here = words[ends - _WORD]
    if isinstance(behind, int) and behind >= _WORD:
        return _number(_digits(here, digits, sure))
    # Remove the point by moving the preceding digits up one byte.
    moved = data[ends - (_WORD + 1)].astype(np.uint64)
    moved |= here << _EIGHT
    if isinstance(behind, int) and behind <= 0:
        return _number(_digits(moved, digits, sure))
    last = _LAST[np.clip(behind, 0, _WORD)]
    here &= last
    moved &= ~last
    here |= moved
    return _number(_digits(here, digits, sure))


def _long_number(words: Words, token: tuple[Ints, Ints, Ints | int], sure: Bools) -> Words:
    """Parse tokens of more digits; those before and after the point are parsed separately."""
    ends, digits, places = token
    if isinstance(places, int):
        # All have the same number of decimals.
        behind: Ints | int = places
        power: Words | np.uint64 = _WHOLE_POWERS[places]
    else:
        behind = np.where(places < _NONE, places, 0)
        power = _WHOLE_POWERS[np.minimum(behind, _LONGEST)]
    number = _part(words, (ends - behind - (places < _NONE), digits - behind), sure)
    number *= power
    if np.any(behind):
        number += _part(words, (ends, behind), sure)
    return number


def _part(words: Words, part: tuple[Ints, Ints | int], sure: Bools) -> Words:
    """Parse integers of `digits` digits that end at `ends`; no digits give 0."""
    ends, digits = part
    number = None
    for place, scale in enumerate(_UNITS):
        if place and _WORD * place >= np.max(digits, initial=0):
            break
        word = _digits(words[ends - _WORD * (place + 1)], digits - _WORD * place, sure)
        more = _number(word)
        if number is None:
            number = more
        else:
            more *= scale
            number += more
    return np.zeros(len(ends), dtype=np.uint64) if number is None else number


def _digits(word: Words, count: Ints | int, sure: Bools) -> Words:
    """Return the values of the last `count` of eight digits, one per byte; 0 in the other bytes.

    Set `sure` to False where a byte is not a digit.
    """
    word ^= _ZEROS
    if isinstance(count, int):
        word &= _LAST[min(max(count, 0), _WORD)]
    elif int(count.min(initial=_WORD)) < _WORD:
        word &= _LAST[np.clip(count, 0, _WORD)]
    # Digits are now 0 to 9; adding six keeps them below sixteen.
    strange = word + _SIX
    strange |= word
    strange &= _HIGH
    if strange.any():
        sure &= strange == 0
    return word


def _places(
    data: Bytes, words: Words, begins: Ints, ends: Ints
) -> tuple[Ints | int, Floats | float]:
    """Return the number of decimals of each number, and the matching power of ten.

    Both are scalars if all numbers have the same number of decimals, as in most files. Numbers
    without a point have `_NONE` decimals.
    """
    if len(ends):
        token = data[begins[0] : ends[0]].tobytes()
        point = token.rfind(b".")
        alike = len(token) - 1 - point
        if point >= 0 and alike <= _LONGEST:
            at = ends - 1 - alike
            if (data[at] == _POINT).all() and (at >= begins).all():
                return alike, float(_POWERS[alike])
    from_begin = _first_point(data, words, begins, ends)
    found = np.where(from_begin < _NONE, ends - 1 - begins - from_begin, _NONE)
    # A point after the end belongs to another field.
    found[found < 0] = _NONE
    power = _POWERS[np.where(found <= _LONGEST, found, 0)]
    return found, power


def _first_point(data: Bytes, words: Words, begins: Ints, ends: Ints) -> Ints:
    """Return the offset of the first point in each token; `_NONE` if there is none."""
    word = words[begins] ^ _POINTS
    # Set the top bit of the first byte that is zero after the xor, and of no earlier byte.
    found = word - _ONES
    found &= ~word
    found &= _TOPS
    found &= ~found + _U(1)
    # The exponent of a float is the position of that bit.
    exponent: Ints = found.astype(np.float64).view(np.int64) >> 52
    point: Ints = (exponent - 1023) >> 3
    missing = point < 0
    point[missing] = _NONE
    left = np.flatnonzero(missing & (ends - begins > _WORD))
    for place in range(_WORD, _LONGEST + 1):
        if not len(left):
            break
        hit = data[begins[left] + place] == _POINT
        point[left[hit]] = place
        left = left[~hit]
    return point


def _number(word: Words) -> Words:
    """Combine eight digits, one per byte, most significant first, into an integer."""
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
    """Divide integers below 10^19 by a power of ten, rounded once; also return which are sure."""
    head = number.astype(np.float64)
    rest = (number - head.astype(np.uint64)).view(np.int64).astype(np.float64)
    quotient = head / power
    product, error = _product(quotient, power)
    # Exact remainder.
    head -= product
    head -= error
    head += rest
    correction = np.divide(head, power, out=head)
    value = quotient + correction
    bits = value.view(np.uint64)
    half = (bits & _EXPONENT).view(np.float64)
    half *= _HALF_UNIT
    left = np.abs(correction - (value - quotient))
    # Earlier rounding errors are much smaller than this. Below a power of two, floats are closer.
    margin = np.abs(correction, out=correction)
    margin += half
    margin *= _MARGIN
    left -= half
    sure = np.abs(left, out=left) > margin
    sure &= (bits & _MANTISSA) != 0
    return value, sure


def _product(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Return a product and its exact rounding error."""
    product = one * other
    one_high, one_low = _halves(one)
    other_high, other_low = _halves(other)
    error = one_high * other_high
    error -= product
    one_high *= other_low
    error += one_high
    other_high *= one_low
    error += other_high
    one_low *= other_low
    error += one_low
    return product, error


def _halves(value: Floats) -> tuple[Floats, Floats]:
    """Split each float into a sum of two with half as many digits."""
    high = value * _SPLITTER
    high -= high - value
    return high, value - high

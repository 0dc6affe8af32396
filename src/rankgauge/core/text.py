"""Formatting of numbers and ids in messages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

SHOWN = 3
# Maximum length of a message and of a word in it, and the length of the end that is kept.
_TEXT, _WORD = (1500, 200), (300, 40)
_LONG_WORD = re.compile(rf"\S{{{_WORD[0] + 1},}}")


def shortened(text: str) -> str:
    """Return a text shortened for a message: ids and values may be megabytes long.

    Example:
        >>> len(shortened("document '" + "d" * 10_000_000 + "' occurs twice"))
        327
    """
    if len(text) > _WORD[0]:
        text = _LONG_WORD.sub(lambda match: _cut(match[0], *_WORD), text)
    return _cut(text, *_TEXT)


def _cut(text: str, most: int, end: int) -> str:
    return text if len(text) <= most else f"{text[: most - end]} ... {text[-end:]}"


def some(ids: Iterable[str]) -> str:
    """Format the first few ids for a message."""
    shown = [repr(str(value)) for _, value in zip(range(SHOWN), ids, strict=False)]
    return ", ".join(shown) + ", ..." if len(shown) == SHOWN else ", ".join(shown) or "none"


def either(names: Sequence[str], word: str = "or") -> str:
    """Join names by "or" or another word: "a", "a or b", "a, b, or c"."""
    *rest, last = names
    comma = "," if len(rest) > 1 else ""
    return f"{', '.join(rest)}{comma} {word} {last}" if rest else last


def many(number: int, noun: str) -> str:
    """Format a number with its noun in the singular or plural."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") and not noun.endswith("ey") else f"{noun}s"
    return f"{number:,} {plural}"


def lower_first(text: str) -> str:
    """Return a sentence that begins with a small letter, to follow a colon."""
    return text[:1].lower() + text[1:]


def keep(*items: object) -> tuple[Any, ...]:
    """Return notes or rows without those whose condition is false.

    Example:
        >>> failed, left = 0, 2
        >>> keep("each row is a run", failed and f"{failed} failed", left and f"{left} left")
        ('each row is a run', '2 left')
    """
    return tuple(filter(None, items))


def inflect(number: int, singular: str, plural: str) -> str:
    """Return the form of a word that agrees with a number."""
    return singular if number == 1 else plural


def span(ends: Iterable[float], form: str) -> str | None:
    """Format an interval; None if it is undefined or unbounded.

    Example:
        >>> span((0.25, 0.5), ".1%"), span(map(Ratio, (0.0004, 0.5)), ".2f")
        ('25.0% to 50.0%', '<0.01 to 0.50')
    """
    low, high = ends
    return f"{low:{form}} to {high:{form}}" if math.isfinite(low + high) else None


class Ratio(float):
    """A share, rate, or coefficient, formatted so that only exact values print as -1, 0, or 1.

    Example:
        >>> [f"{Ratio(each):.3f}" for each in (1.0, 0.9996, 0.0004, 0.0, -0.9996)]
        ['1.000', '>0.999', '<0.001', '0.000', '<-0.999']
        >>> f"{Ratio(0.9996):.0%}, {Ratio(0.0004):.0%}"
        '>99%, <1%'
    """

    def __format__(self, form: str) -> str:
        """Format with decimals (``.3f``) or as a percentage (``.0%``)."""
        shown, limit = format(float(self), form), round(self) if math.isfinite(self) else 0
        # Rounding errors of sums are ignored.
        if shown.lstrip("-") != format(abs(limit), form) or abs(self - limit) <= 1e-12:
            return shown
        step = float(f"1e-{form[1:-1]}") / (100 if form[-1] == "%" else 1)
        inside = limit + math.copysign(step, self - limit)
        return f"{'<' if self < inside else '>'}{inside:{form}}"

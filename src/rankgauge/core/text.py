"""Formatting of numbers and ids in messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SHOWN = 3


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
    return f"{number} {plural}"


def inflect(number: int, singular: str, plural: str) -> str:
    """Return the form of a word that agrees with a number."""
    return singular if number == 1 else plural

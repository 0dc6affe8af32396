"""Options of retrievers: what is not possible is said where the retriever is made."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from rankgauge.core.grammar import plain_key, unknown
from rankgauge.errors import InputError

__all__ = ["number", "one_of", "whole"]


def one_of(word: str, given: Any, known: Iterable[str]) -> str:
    """A name, in any spelling of case and joints.

    Raises:
        UnknownName: If it is none of these.

    Example:
        >>> one_of("search", "Exact", ("exact", "usearch"))
        'exact'
    """
    names = list(known)
    found = {plain_key(name): name for name in names}.get(
        plain_key(given) if isinstance(given, str) else ""
    )
    if found is None:
        raise unknown(word, str(given), names)
    return found


def whole(word: str, given: Any, *, least: int = 1) -> int:
    """A whole number.

    Raises:
        InputError: If it is none, or smaller than `least`.
    """
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise InputError(
            f"{word}={given!r:.60} is not possible", where=word,
            fix=f"give a whole number from {least} on",
        )  # fmt: skip
    return given


def number(word: str, given: Any, *, low: float = 0.0, high: float = math.inf) -> float:
    """A finite number.

    Raises:
        InputError: If it is none, or not between `low` and `high`.
    """
    fits = isinstance(given, int | float) and not isinstance(given, bool)
    if not fits or not math.isfinite(given) or not low <= given <= high:
        wanted = f"from {low:g} on" if high == math.inf else f"from {low:g} to {high:g}"
        raise InputError(
            f"{word}={given!r:.60} is not possible", where=word, fix=f"give a number {wanted}"
        )
    return float(given)

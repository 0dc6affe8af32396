"""What a value worked out by hand is made of, and how numbers and sums are written down."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from rankgauge.explanation.listing import Listed, Listing
from rankgauge.measures.measure import Measure

__all__ = [
    "ANY_GRADE", "WORKED", "IdealRow", "Term", "Work", "Worked", "Working", "bracketed", "level_of",
    "number", "summed", "words_of", "worked",
]  # fmt: skip

# So many terms of a sum are written down, and the last of a longer one.
_TERMS = 6
ANY_GRADE = 1e-9
Term: TypeAlias = float | str | None


class Worked(NamedTuple):
    """A document of a ranking with what it is worth.

    Attributes:
        listed: The document.
        terms: A number or a word for each column of the working; None where it has none.
        counts: Whether it adds anything to the value.
    """

    listed: Listed
    terms: tuple[Term, ...]
    counts: bool


class IdealRow(NamedTuple):
    """A place of the ideal ranking, which nDCG divides by."""

    rank: int
    document: str
    grade: float
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Working:
    """A value worked out by hand.

    Attributes:
        columns: The heads of the terms of each document.
        rows: The documents that the measure looks at, best first.
        steps: The formula with the numbers put in, a line each.
        value: What comes out; NaN where it is undefined.
        ideal: The ideal ranking, of measures that have one.
    """

    columns: tuple[str, ...]
    rows: tuple[Worked, ...]
    steps: tuple[str, ...]
    value: float
    ideal: tuple[IdealRow, ...] = ()


# The measure as it is written, the query, and the words of the measure by name.
Work: TypeAlias = Callable[[str, Listing, Any], Working]
WORKED: dict[str, Work] = {}


def worked(*names: str) -> Callable[[Work], Work]:
    """Declare how measures of these names are worked out by hand."""

    def declare(work: Work) -> Work:
        for name in names:
            WORKED[name] = work
        return work

    return declare


def number(value: float) -> str:
    """A number as it is written in a working: whole ones short, others with four decimals.

    Example:
        >>> number(3.0), number(1 / 3), number(math.nan), number(0.00001)
        ('3', '0.3333', 'undefined', '1e-05')
    """
    if math.isnan(value):
        return "undefined"
    if float(value).is_integer() and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.4f}" if 0.00095 <= abs(value) < 1e6 else f"{value:.4g}"


def summed(terms: Iterable[str]) -> str:
    """A sum as it is written: all terms, or the first and the last of many.

    Example:
        >>> summed(["1/1", "2/3"]), summed([])
        ('1/1 + 2/3', '0')
    """
    written: Sequence[str] = list(terms)
    if not written:
        return "0"
    if len(written) > _TERMS + 2:
        left = len(written) - _TERMS - 1
        written = [*written[:_TERMS], f"... ({left} more terms) ...", written[-1]]
    return " + ".join(written)


def bracketed(terms: Sequence[str]) -> str:
    """A sum that is divided or multiplied as a whole."""
    return f"({summed(terms)})" if len(terms) > 1 else summed(terms)


def words_of(measure: Measure, listing: Listing) -> dict[str, Any]:
    """The words of a measure with those that were left out; for a query, "best" is a grade."""
    words = measure.arguments
    if words.get("rel") == "best":
        highest = max((grade for _, grade in listing.judgments), default=0.0)
        # Of a query without a grade above 0 nothing is relevant.
        words["rel"] = highest if highest > 0 else math.inf
    return words


def level_of(measure: Measure, listing: Listing) -> float:
    """The grade from which a document counts: the relevance level, or any grade above 0."""
    level = words_of(measure, listing).get("rel")
    return float(level) if isinstance(level, int | float) else ANY_GRADE

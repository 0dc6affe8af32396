"""A value calculated step by step: one query, its documents, and how sums are written.

The loops of the families (`binary`, `graded`, `preferences`, `user_models`) are written from the
papers and use only this module: neither kernels nor the join. So they are a second opinion on
both, and the oracles of the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

# This many terms of a sum are written down, and the last of a longer one.
_TERMS = 6
Term: TypeAlias = float | str | None


class RankedDocument(NamedTuple):
    """A document of a ranking.

    Attributes:
        rank: Its rank, from 1.
        document: Its id, as text.
        score: Its score.
        grade: Its grade; None without a judgment.
        first: The first rank of its group of equal scores; its rank if alone.
        last: The last one.
    """

    rank: int
    document: str
    score: float
    grade: float | None
    first: int
    last: int

    @property
    def tied(self) -> bool:
        """Whether another document has the same score."""
        return self.first < self.last

    @property
    def judged(self) -> bool:
        """Whether it has a grade of 0 or more; a negative one means unjudged."""
        return self.grade is not None and self.grade >= 0

    def reaches(self, rel: float) -> bool:
        """Return whether it is relevant at this level."""
        return self.grade is not None and self.grade >= rel


@dataclass(frozen=True)
class RankedQuery:
    """A query: its ranking and its judgments.

    Attributes:
        query: Its id, as text.
        documents: The ranking, best first.
        judgments: (document, grade), the best grades first; also of documents not retrieved.
        in_run: Whether the run has the query.
    """

    query: str
    documents: tuple[RankedDocument, ...]
    judgments: tuple[tuple[str, float], ...]
    in_run: bool = True

    def relevant(self, rel: float) -> int:
        """How many documents are relevant, retrieved or not."""
        return sum(grade >= rel for _, grade in self.judgments)

    def within(self, k: int | None) -> tuple[RankedDocument, ...]:
        """Return the first k documents."""
        return self.documents[:k]

    def missed(self) -> tuple[tuple[str, float], ...]:
        """Documents with a grade above 0 that were not retrieved."""
        found = {one.document for one in self.documents}
        return tuple((name, g) for name, g in self.judgments if g > 0 and name not in found)

    def judged_only(self) -> RankedQuery:
        """Return the same without unjudged documents, ranked again."""
        return replace(self, documents=ranked([one for one in self.documents if one.judged]))


def ranked(documents: Sequence[RankedDocument]) -> tuple[RankedDocument, ...]:
    """The documents with their ranks, and the ranks that each group of equal scores spans."""
    spans: dict[float, list[int]] = {}
    for rank, one in enumerate(documents, start=1):
        spans.setdefault(one.score + 0.0, []).append(rank)
    return tuple(
        one._replace(rank=rank, first=spans[one.score + 0.0][0], last=spans[one.score + 0.0][-1])
        for rank, one in enumerate(documents, start=1)
    )


class Step(NamedTuple):
    """A document of a ranking with its contribution.

    Attributes:
        ranked: The document.
        terms: A number or a word for each column of the calculation; None where it has none.
        counts: Whether it contributes to the value.
    """

    ranked: RankedDocument
    terms: tuple[Term, ...]
    counts: bool


class IdealDocument(NamedTuple):
    """A document of the ideal ranking, whose DCG is the divisor of nDCG."""

    rank: int
    document: str
    grade: float
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Calculation:
    """A value calculated step by step.

    Attributes:
        columns: The column names of the terms of each document.
        rows: The documents that the measure uses, best first.
        steps: The formula with the numbers inserted, one line each.
        value: The result; NaN where it is undefined.
        ideal: The ideal ranking, of measures that have one.
    """

    columns: tuple[str, ...]
    rows: tuple[Step, ...]
    steps: tuple[str, ...]
    value: float
    ideal: tuple[IdealDocument, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What the value is made of, as JSON has it."""
        return {
            "columns": list(self.columns),
            "rows": [
                {
                    "rank": row.ranked.rank,
                    "document": row.ranked.document,
                    "score": row.ranked.score,
                    "grade": row.ranked.grade,
                    "tie": [row.ranked.first, row.ranked.last],
                    "counts": row.counts,
                    "terms": list(row.terms),
                }
                for row in self.rows
            ],
            "ideal": [{**row._asdict(), "terms": list(row.terms)} for row in self.ideal],
            "steps": list(self.steps),
        }


# The measure as it is written, the query, and the parameters of the measure by name.
Calculate: TypeAlias = Callable[[str, RankedQuery, Any], Calculation]
CALCULATIONS: dict[str, Calculate] = {}


def calculates(*names: str) -> Callable[[Calculate], Calculate]:
    """Declare how measures of these names are calculated."""

    def declare(calculate: Calculate) -> Calculate:
        CALCULATIONS.update(dict.fromkeys(names, calculate))
        return calculate

    return declare


def number(value: float) -> str:
    """A number as it is written in a calculation: whole ones short, others with four decimals.

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
    """Return a sum as it is written: all terms, or the first and the last of many."""
    written: Sequence[str] = list(terms)
    if not written:
        return "0"
    if len(written) > _TERMS + 2:
        left = len(written) - _TERMS - 1
        written = [*written[:_TERMS], f"... ({left} more terms) ...", written[-1]]
    return " + ".join(written)


def bracketed(terms: Sequence[str]) -> str:
    """Return a sum that is divided or multiplied as a whole."""
    return f"({summed(terms)})" if len(terms) > 1 else summed(terms)

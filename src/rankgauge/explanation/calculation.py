"""Step-by-step calculation of a value: one query, its documents, and the formatting of sums.

The calculations of the families of measures (`binary`, `graded`) are written from the papers and
use only this module, neither the kernels nor the join. They are therefore independent
implementations, which tests compare with both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

# Longer sums are shown as this many terms and the last doc.
_TERMS = 6
Term: TypeAlias = float | str | None


class RankedDocument(NamedTuple):
    """A document of a ranking.

    Attributes:
        rank: The rank, from 1.
        document: The document id, as text.
        score: The score.
        grade: The grade; None without a judgment.
        first: The first rank of its group of equal scores; equal to `rank` without ties.
        last: The last rank of its group of equal scores.
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
        """Whether the grade is 0 or more; a negative grade means unjudged."""
        return self.grade is not None and self.grade >= 0

    def reaches(self, rel: float) -> bool:
        """Return whether the document is relevant at this level."""
        return self.grade is not None and self.grade >= rel


@dataclass(frozen=True)
class RankedQuery:
    """The ranking and the judgments of a query.

    Attributes:
        query: The query id, as text.
        documents: The ranking, best first.
        judgments: (document, grade) of all judged documents, retrieved or not, highest grade first.
        in_run: Whether the run contains the query.
    """

    query: str
    documents: tuple[RankedDocument, ...]
    judgments: tuple[tuple[str, float], ...]
    in_run: bool = True

    def relevant(self, rel: float) -> int:
        """Return the number of relevant documents, retrieved or not."""
        return sum(grade >= rel for _, grade in self.judgments)

    def within(self, k: int | None) -> tuple[RankedDocument, ...]:
        """Return the first k documents."""
        return self.documents[:k]

    def missed(self) -> tuple[tuple[str, float], ...]:
        """Return the documents with a grade above 0 that were not retrieved."""
        retrieved = {doc.document for doc in self.documents}
        return tuple((name, g) for name, g in self.judgments if g > 0 and name not in retrieved)

    def judged_only(self) -> RankedQuery:
        """Return a copy without unjudged documents, with new ranks."""
        return replace(self, documents=ranked([doc for doc in self.documents if doc.judged]))


@dataclass(frozen=True)
class MeasuredQuery(RankedQuery):
    """A query with the measure to calculate.

    Attributes:
        name: The measure, as printed.
        words: The parameters of the measure by name; `rel` is a grade.
    """

    name: str = ""
    words: Mapping[str, Any] = field(default_factory=dict)

    @property
    def k(self) -> Any:
        """The cut-off; None without one."""
        return self.words.get("k")

    @property
    def count(self) -> int:
        """The number of relevant documents, retrieved or not."""
        return self.relevant(self.words["rel"])


def ranked(documents: Sequence[RankedDocument]) -> tuple[RankedDocument, ...]:
    """Return documents with their ranks and the rank range of their group of equal scores."""
    spans: dict[float, list[int]] = {}
    for rank, doc in enumerate(documents, start=1):
        spans.setdefault(doc.score + 0.0, []).append(rank)
    return tuple(
        doc._replace(rank=rank, first=spans[doc.score + 0.0][0], last=spans[doc.score + 0.0][-1])
        for rank, doc in enumerate(documents, start=1)
    )


class Step(NamedTuple):
    """The contribution of a document of a ranking.

    Attributes:
        ranked: The document.
        terms: A number for each column of the calculation; None for an empty cell.
        counts: Whether the document contributes to the value.
    """

    ranked: RankedDocument
    terms: tuple[float | None, ...]
    counts: bool


class IdealDocument(NamedTuple):
    """A document of the ideal ranking.

    Attributes:
        rank: The rank in the ideal ranking, from 1.
        document: The document id, as text.
        grade: The grade.
        terms: A number for each column of the calculation; None for an empty cell.
    """

    rank: int
    document: str
    grade: float
    terms: tuple[float | None, ...]


_Row = TypeVar("_Row", Step, IdealDocument)


def with_sums(rows: Iterable[_Row]) -> tuple[tuple[_Row, ...], float]:
    """Append to the terms of each row the sum of the last terms so far; return the rows and the total."""
    total = 0.0
    summed_rows: list[_Row] = []
    row: _Row  # mypy cannot infer it
    for row in rows:
        total += row.terms[-1] or 0.0
        summed_rows.append(row._replace(terms=(*row.terms, total)))
    return tuple(summed_rows), total


def contributions(rows: Iterable[Step | IdealDocument]) -> list[str]:
    """Format the contributions, the terms before the sum, of the rows that have one."""
    return [number(row.terms[-2]) for row in rows if row.terms[-2] is not None]


@dataclass(frozen=True)
class Calculation:
    """A value calculated step by step.

    Attributes:
        columns: The column names of the terms.
        rows: The documents that the measure uses, best first.
        steps: The formula with numbers inserted, one line per step.
        value: The result; NaN if undefined.
        ideal: The ideal ranking; empty for measures without one.
    """

    columns: tuple[str, ...]
    rows: tuple[Step, ...]
    steps: tuple[str, ...]
    value: float
    ideal: tuple[IdealDocument, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the calculation as JSON data."""
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


Calculate: TypeAlias = Callable[[MeasuredQuery], Calculation]
CALCULATIONS: dict[str, Calculate] = {}


def calculates(*names: str) -> Callable[[Calculate], Calculate]:
    """Register the decorated function for measures of these names."""

    def declare(calculate: Calculate) -> Calculate:
        CALCULATIONS.update(dict.fromkeys(names, calculate))
        return calculate

    return declare


def number(value: float) -> str:
    """Format a number in a calculation: integers without decimals, others with four.

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
    """Format a sum: all terms, or the first few and the last."""
    written: Sequence[str] = list(terms)
    if not written:
        return "0"
    if len(written) > _TERMS + 2:
        left = len(written) - _TERMS - 1
        written = [*written[:_TERMS], f"... ({left} more terms) ...", written[-1]]
    return " + ".join(written)


def bracketed(terms: Sequence[str]) -> str:
    """Format a sum that is divided or multiplied as a whole."""
    return f"({summed(terms)})" if len(terms) > 1 else summed(terms)

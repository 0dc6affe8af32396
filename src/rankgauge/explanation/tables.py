"""Tables of a calculation: the rows that count, with a line for omitted ranks; also as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rankgauge.core.grammar import Value
from rankgauge.core.text import many
from rankgauge.explanation.calculation import Calculation, RankedDocument, RankedQuery, Step, Term, number
from rankgauge.explanation.inputs import level_of
from rankgauge.measures.measure import Measure
from rankgauge.rendering.tables import Cell, Table

UNJUDGED = "·"
GAP = "..."
# The first ranks are always shown; below them, only rows that count, up to a limit.
_HEAD, _MOST = 10, 25
_WORDS = {"document", "relevant", "tie"}


def tables_of(
    measure: Measure, calculation: Calculation, ranking: RankedQuery, *, title: str, full: bool = True
) -> tuple[Table, ...]:
    """Return tables of the ranking with all contributions, and of the ideal ranking if any.

    Args:
        measure: The measure.
        calculation: The contributions of the documents to the value.
        ranking: The documents of the query.
        title: The title of the first table.
        full: Whether to show the first ranks even if they contribute nothing.
    """
    head = _HEAD if full else 0
    first = replace(_ranking(measure, calculation, ranking, head), title=title)
    return (first, _ideal(calculation)) if calculation.ideal else (first,)


def shown_rows(calculation: Calculation, head: int = _HEAD) -> list[Step]:
    """Return the first rows, and below them the rows that count."""
    most = _MOST if head else _HEAD
    return [row for place, row in enumerate(calculation.rows) if place < head or row.counts][:most]


def _ranking(measure: Measure, calculation: Calculation, ranking: RankedQuery, head: int) -> Table:
    level, columns = level_of(measure, ranking), calculation.columns
    shown = shown_rows(calculation, head)
    k = dict(measure.params).get("k")
    ties = any(row.ranked.tied for row in shown)
    binary = measure.declaration.reads == "binary" and "rel" in measure.declaration.words
    extra = (*(("tie",) if ties else ()), "grade", *(("relevant",) if binary else ()))
    heads = ("rank", "document", "score", *extra, *columns)
    rows: list[tuple[Cell, ...]] = []
    best: set[tuple[int, int]] = set()
    last = 0
    for row, terms in zip(shown, terms_of([row.terms for row in shown]), strict=True):
        place = row.ranked.rank
        if place > last + 1:
            rows.append(_line(_between(ranking.documents[last : place - 1], level, k), heads))
        last = place
        if row.counts:
            best.add((len(rows), 1))
        rows.append((*_document(row.ranked, level, ties=ties, binary=binary), *terms))
    rest = ranking.documents[last:]
    if rest:
        rows.append(_line(_between(rest, level, k), heads))
    return Table(columns=heads, rows=tuple(rows), best=frozenset(best), right=_right(heads))


def _document(one: RankedDocument, level: float, *, ties: bool, binary: bool) -> Iterator[Cell]:
    """Yield the cells that do not depend on the calculation."""
    yield str(one.rank)
    yield one.document
    yield score_of(one.score)
    if ties:
        yield f"{one.first}-{one.last}" if one.tied else ""
    yield grade_of(one.grade)
    if binary:
        yield "yes" if one.reaches(level) else ""


def _right(heads: Sequence[str]) -> frozenset[int]:
    """Return the right-aligned columns: all except documents and text."""
    return frozenset(place for place, head in enumerate(heads) if head not in _WORDS)


def _line(text: str, heads: Sequence[str]) -> tuple[Cell, ...]:
    return (GAP, text, *([""] * (len(heads) - 2)))


def _between(documents: Sequence[RankedDocument], level: float, k: Value) -> str:
    """Return a description of omitted rows."""
    cut = k if isinstance(k, int) else math.inf
    hits = [one.rank for one in documents if one.reaches(level)]
    below = " below the cut-off"
    text = "none relevant"
    if hits:
        where = below if hits[0] > cut >= documents[0].rank else ""
        shown = ", ".join(map(str, hits[:3])) + (", ..." * (len(hits) > 3))
        text = f"{len(hits)} relevant{where}, at {shown}"
    return f"{many(len(documents), 'more document')}{below * (documents[0].rank > cut)}, {text}"


def _ideal(calculation: Calculation) -> Table:
    ideal = calculation.ideal
    heads = ("rank", "document", "grade", *calculation.columns)
    terms = terms_of([row.terms for row in ideal])
    rows: list[tuple[Cell, ...]] = [
        (str(row.rank), row.document, grade_of(row.grade), *written)
        for row, written in zip(ideal[:_HEAD], terms, strict=False)
    ]
    if len(ideal) > _HEAD:
        whole = number(float(ideal[-1].terms[-1] or 0))
        more = many(len(ideal) - _HEAD, "more document")
        rows.append(_line(f"{more}, sum {whole}", heads))
    return Table(heads, tuple(rows), title="the ideal ranking", right=_right(heads))


def terms_of(rows: Sequence[tuple[Term, ...]]) -> list[tuple[str, ...]]:
    """Format terms uniformly within a column: integers without decimals, others with four."""
    columns = zip(*rows, strict=True)
    written = [_format_column(column) for column in columns]
    return list(zip(*written, strict=True)) if written else [()] * len(rows)


def _format_column(column: Sequence[Term]) -> list[str]:
    numbers = [term for term in column if isinstance(term, int | float)]
    whole = all(float(term).is_integer() for term in numbers)
    return ["" if term is None else term if isinstance(term, str) else _four(term, whole=whole) for term in column]


def _four(value: float, *, whole: bool) -> str:
    if whole:
        return number(value)
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.00095 else f"{value:.3g}"


def score_of(score: float) -> str:
    """Format a score with enough digits to distinguish it from its neighbors."""
    return f"{score:.10g}"


def grade_of(grade: float | None) -> str:
    """Format a grade, or the mark of an unjudged document."""
    return UNJUDGED if grade is None else number(grade)

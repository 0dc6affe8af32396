"""Reports on explanations (ranking, ideal ranking, formula with numbers) and on reconciliations of two numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from rankgauge.core.escaping import for_html, for_latex, for_terminal
from rankgauge.core.text import keep, many
from rankgauge.explanation.calculation import Step, Term, number
from rankgauge.explanation.explanation import UNJUDGED, Explanation, grade_of, shown_rows, terms_of
from rankgauge.explanation.reconciliation import QueryChange, Reconciliation
from rankgauge.explanation.reproduction import Reproduction
from rankgauge.rendering.tables import WIDTH, Detail, Table, by_column, shorten, wrapped
from rankgauge.reports.registry import Options, Report

_MISSED = 5


def _explanation_blocks(explanation: Explanation, options: Options) -> list[Table | str]:
    """Yield the ranking, the ideal ranking, the formula with numbers, and notes."""
    title = f"{explanation.measure} = {number(explanation.value)} for query {explanation.query}"
    tables = explanation.tables() if explanation.rows else [Table((), (), title=title)]
    return [*tables, steps_text(explanation.steps, options.format), Table((), (), notes=_notes(explanation))]


def steps_text(steps: Sequence[str], format: str) -> str:
    """Format the lines of a formula as preformatted text."""
    if format == "html":
        return "<pre>" + "\n".join(map(for_html, steps)) + "</pre>\n"
    if format == "latex":
        return "".join(f"\\noindent {for_latex(step)}\\par\n" for step in steps)
    lines = [for_terminal(step) for step in steps]
    if format == "markdown":
        fence = "```"
        while any(fence in line for line in lines):
            fence += "`"
        return f"{fence}text\n" + "".join(f"{line}\n" for line in lines) + f"{fence}\n"
    return "".join(f"{_folded(line)}\n" for line in lines)


def _folded(line: str) -> str:
    """Wrap a line of a formula, aligned below its equals sign or first word."""
    before = line.partition("= ")[0]
    words = len(line) - len(line.removeprefix("there: ").removeprefix("here:  ").lstrip())
    indent = " " * (2 + (len(before) + 2 if len(before) < WIDTH // 2 and "= " in line else words))
    return "\n".join(wrapped(line, first="  ", indent=indent))


def _notes(explanation: Explanation) -> tuple[str, ...]:
    mean, chosen = number(explanation.mean), explanation.why
    how = {"arithmetic": "mean", "geometric": "geometric mean", "sum": "sum"}[explanation.measure.declaration.mean]
    average = f"{how} over {many(explanation.queries, 'query')}: {mean}"
    others = ", ".join(f"{other.query} ({other.what}, {number(other.value)})" for other in explanation.others)
    shown = [row.ranked for row in shown_rows(explanation.calculation)]
    missed = explanation.ranking.missed()
    names = ", ".join(f"{name} (grade {number(grade)})" for name, grade in missed[:_MISSED])
    return keep(
        *explanation.notes,
        chosen and f"query {explanation.query} was chosen: {chosen}",
        # The reason for choosing the query may name the mean.
        Detail(average) if f"({mean})" in chosen else average,
        others and f"others with --query ID: {others}",
        any(listed.grade is None for listed in shown) and f"grade {UNJUDGED}: not judged, counted as not relevant",
        any((listed.grade or 0) < 0 for listed in shown)
        and "a grade below 0: the document is unjudged and counts as not relevant",
        any(listed.tied for listed in shown)
        and f"tie: ranks of documents with the same score (ties={explanation.policies.ties})",
        missed
        and f"not retrieved: {many(len(missed), 'document')} with a grade above 0: {names}"
        + (", ..." if len(missed) > _MISSED else ""),
    )


# ---- reconciliations: steps between two numbers

_QUERIES, _RANKS, _MOST = 5, 10, 20
_FEW = 3
_DOCUMENT, _BY = 20, 44
_SHOWN, _SAME = 4, 3


def _reconciliation_blocks(reconciliation: Reconciliation, options: Options) -> tuple[Table | str, ...]:
    """Return the steps; the queries, and one computed both ways, are details."""
    here, there = reconciliation.queries
    moved = reconciliation.moved
    averaged = f"{many(here, 'query')} averaged " + ("by both" if here == there else f"here, {there} there")
    differ = f"{len(moved)} differ" if moved else "all have the same value there"
    changes = ", ".join(f"{change.query} ({_value(change.ours)} to {_value(change.theirs)})" for change in moved[:_FEW])
    notes = keep(
        *reconciliation.notes,
        f"{averaged}; {differ}",
        any(contribution.left or contribution.entered for contribution in reconciliation.contributions)
        and "queries: number changed (-excluded from the mean +added to it)",
        moved and f"largest changes: {changes}",
    )
    left = len(moved) - _QUERIES
    rows = tuple(
        (
            change.query,
            _value(change.ours),
            _value(change.theirs),
            "" if math.isnan(change.change) else f"{change.change:+.4f}",
            _by(change),
        )
        for change in moved[:_QUERIES]
    )
    sides = reconciliation.sides
    return keep(
        replace(reconciliation.table(), notes=()),
        Table((), (), notes=notes),
        rows
        and Table(
            ("query", "here", "there", "change", "largest step"),
            rows,
            title=Detail("queries with the largest changes"),
            right=frozenset({1, 2, 3}),
            notes=keep(left > 0 and f"{many(left, 'more query')} changed"),
        ),
        sides and _side_by_side(*sides),
        sides and Detail(steps_text([*_formulas(*sides)], options.format)),
        sides and Table((), (), notes=(Detail(first_difference(*sides)),)),
    )


def _value(value: float | None) -> str:
    return "left out" if value is None else f"{value:.4f}"


def _by(query_change: QueryChange) -> str:
    if len(query_change.by) == 1:
        return shorten(query_change.by[0][0], _BY)
    # Largest change first; changes that do not fit are counted.
    by = sorted(query_change.by, key=lambda part: -math.inf if math.isnan(part[1]) else -abs(part[1]))
    parts = [shorten(name, _BY // 2) + ("" if math.isnan(change) else f" {change:+.4f}") for name, change in by]
    shown = [part for place, part in enumerate(parts) if len(", ".join(parts[: place + 1])) <= _BY]
    left = len(parts) - len(shown)
    return ", ".join(shown) + (f", {left} more" if left else "")


def _side_by_side(ours: Explanation, theirs: Explanation) -> Table:
    """Return both rankings of a query side by side."""
    pairs = list(zip_longest(ours.rows, theirs.rows))
    kept = [
        place
        for place, pair in enumerate(pairs)
        if place < _RANKS or any(row is not None and row.counts for row in pair)
    ][:_MOST]
    compared = ({row and (row.ranked.document, row.ranked.grade, row.counts) for row in pairs[place]} for place in kept)
    return Table(
        *by_column(
            ("rank", (str(place + 1) for place in kept)),
            *_side("here", ours, [pairs[place][0] for place in kept]),
            *_side("there", theirs, [pairs[place][1] for place in kept]),
            ("", ("<" if len(both) > 1 else "" for both in compared)),
        ),
        title=Detail(f"query {ours.query} on both sides: {number(ours.value)} here, {number(theirs.value)} there"),
        right=frozenset({0, 2, 3, 5, 6}),
    )


def _side(name: str, explanation: Explanation, rows: Sequence[Step | None]) -> tuple[tuple[str, list[str]], ...]:
    """Return the columns of one side: documents, grades, and the most informative term."""
    columns = explanation.calculation.columns
    place = columns.index("contribution") if "contribution" in columns else len(columns) - 1
    terms: list[tuple[Term, ...]] = [
        (None if row is None else row.terms[place] if row.terms else ("yes" if row.counts else ""),) for row in rows
    ]
    return (
        (name, ["" if row is None else shorten(row.ranked.document, _DOCUMENT) for row in rows]),
        ("grade", ["" if row is None else grade_of(row.ranked.grade) for row in rows]),
        (columns[place] if columns else "counts", [term for (term,) in terms_of(terms)]),
    )


def _formulas(ours: Explanation, theirs: Explanation) -> Iterator[str]:
    """Yield the lines that differ between the two calculations."""
    same = set(ours.steps) & set(theirs.steps)
    for side, explanation in (("here:  ", ours), ("there: ", theirs)):
        own = [step for step in explanation.steps if step not in same]
        yield from (f"{'       ' if place else side}{step}" for place, step in enumerate(own))


def first_difference(ours: Explanation, theirs: Explanation) -> str:
    """Describe the first difference between two calculations of a query."""
    also = f"; here {ours.measure}, there {theirs.measure}" if str(ours.measure) != str(theirs.measure) else ""
    for rank, (left, right) in enumerate(zip_longest(ours.rows, theirs.rows), start=1):
        if left is None or right is None:
            side = "there" if left is None else "here"
            return f"the rankings differ from rank {rank}: evaluated only {side}{also}"
        if left.ranked.document != right.ranked.document:
            tie = " (a tie here)" if left.ranked.tied else " (a tie there)" if right.ranked.tied else ""
            return f"the rankings differ from rank {rank}: different documents{tie}{also}"
        if left.ranked.grade != right.ranked.grade:
            grades = f"grade {grade_of(left.ranked.grade)} here, {grade_of(right.ranked.grade)} there"
            return f"the grades differ from rank {rank}: {grades}{also}"
        if left.terms != right.terms:
            return f"the same ranking, but contributions differ from rank {rank}{also}"
    for place, (own, other) in enumerate(zip_longest(ours.calculation.ideal, theirs.calculation.ideal), start=1):
        if own is None or other is None or own.grade != other.grade or own.terms != other.terms:
            return f"the same ranking; the ideal rankings differ from rank {place}{also}"
    return f"the same ranking{also or ': the same calculation'}"


# ---- how a number from another source was computed


def _reproduction(reproduction: Reproduction, options: Options) -> Iterator[Table | str]:
    """Yield the variants that fit best, and ours; the steps from ours to the number are details."""
    ours = next(place for place, fit in enumerate(reproduction.fits) if not fit.deviations or fit.ours)
    shown = [*range(len(reproduction.fits))][:_SHOWN]
    if ours not in shown:
        shown[-1] = ours
    digits = max(4, min(reproduction.given.digits, 8))
    yield replace(reproduction.table().part(rows=shown), digits=digits, notes=_fit_notes(reproduction))
    for part in _reconciliation_blocks(reproduction.reconciliation, options):
        yield Detail(part) if isinstance(part, str) else replace(part, title=Detail(part.title))


def _fit_notes(reproduction: Reproduction) -> tuple[str, ...]:
    best, known = reproduction.best, reproduction.sure != "not found"
    more = len(best.same) - _SAME
    names = ", ".join(best.same[:_SAME]) + (f" and {more} more" if more > 0 else "")
    return keep(
        f"{reproduction.sure}: {reproduction.why}",
        reproduction.tied
        and f"{reproduction.tied} of the {best.missed} values that are missed are within the "
        "range of some order of tied documents: an unstable sort explains them",
        *reproduction.given.notes,
        known and f"found: {best.name}",
        known and best.same and f"these variants give the same values here: {names}",
        f"{reproduction.tried} variants were tried: other tools, and combinations of up to three known deviations",
    )


REPORTS = {
    "Explanation": Report(_explanation_blocks),
    "Reconciliation": Report(_reconciliation_blocks),
    "Reproduction": Report(_reproduction),
}

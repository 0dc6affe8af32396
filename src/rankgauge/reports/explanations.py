"""Reports on explanations (ranking, ideal ranking, formula with numbers) and on reconciliations of two numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from rankgauge.core.escaping import for_html, for_latex, for_terminal
from rankgauge.core.text import many
from rankgauge.explanation.calculation import Step, Term, number
from rankgauge.explanation.explanation import UNJUDGED, Explanation, grade_of, shown_rows, terms_of
from rankgauge.explanation.reconciliation import QueryChange, Reconciliation
from rankgauge.explanation.reproduction import Reproduction
from rankgauge.rendering.tables import WIDTH, Cell, Detail, Table, shorten, wrapped
from rankgauge.reports.registry import Options, Report

_MISSED = 5


def _explanation_blocks(explanation: Explanation, options: Options) -> Iterator[Table | str]:
    """Yield the ranking, the ideal ranking, the formula with numbers, and notes."""
    if explanation.rows:
        yield from explanation.tables()
    else:
        yield Table((), (), title=f"{explanation.measure} = {number(explanation.value)} for query {explanation.query}")
    yield steps_text(explanation.steps, options.format)
    yield Table((), (), notes=tuple(_notes(explanation)))


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


def _notes(explanation: Explanation) -> Iterator[str]:
    yield from explanation.notes
    if explanation.why:
        yield f"query {explanation.query} was chosen: {explanation.why}"
    measure = explanation.measure
    kind = {"arithmetic": "mean", "geometric": "geometric mean", "sum": "sum"}
    how = kind[measure.declaration.mean]
    # The reason for choosing the query may name the mean.
    average = f"{how} over {many(explanation.queries, 'query')}: {number(explanation.mean)}"
    yield Detail(average) if f"({number(explanation.mean)})" in explanation.why else average
    others = ", ".join(f"{other.query} ({other.what}, {number(other.value)})" for other in explanation.others)
    if others:
        yield f"others with --query ID: {others}"
    shown = [row.ranked for row in shown_rows(explanation.calculation)]
    if any(listed.grade is None for listed in shown):
        yield f"grade {UNJUDGED}: not judged, counted as not relevant"
    if any(listed.grade is not None and listed.grade < 0 for listed in shown):
        yield "a grade below 0: the document is unjudged and counts as not relevant"
    if any(listed.tied for listed in shown):
        yield f"tie: ranks of documents with the same score (ties={explanation.policies.ties})"
    missed = explanation.ranking.missed()
    if missed:
        names = ", ".join(f"{name} (grade {number(grade)})" for name, grade in missed[:_MISSED])
        more = ", ..." if len(missed) > _MISSED else ""
        yield f"not retrieved: {many(len(missed), 'document')} with a grade above 0: {names}{more}"


# ---- reconciliations: steps between two numbers

_QUERIES, _RANKS, _MOST = 5, 10, 20
_FEW = 3
_DOCUMENT, _STEP, _BY = 20, 44, 44
_FEWEST, _MANY = 6, 12
_SHOWN, _WAY, _SAME = 4, 58, 3


def _reconciliation_blocks(reconciliation: Reconciliation, options: Options) -> Iterator[Table | str]:
    """Yield the steps; the queries, and one computed both ways, are details."""
    yield _steps(reconciliation)
    here, there = reconciliation.queries
    averaged = f"{many(here, 'query')} averaged " + ("by both" if here == there else f"here, {there} there")
    differ = f"{len(reconciliation.moved)} differ" if reconciliation.moved else "all have the same value there"
    notes = [*reconciliation.notes, f"{averaged}; {differ}"]
    if any(contribution.left or contribution.entered for contribution in reconciliation.contributions):
        notes.append("queries: number changed (-excluded from the mean +added to it)")
    if reconciliation.moved:
        changes = (
            f"{change.query} ({_value(change.ours)} to {_value(change.theirs)})"
            for change in reconciliation.moved[:_FEW]
        )
        notes.append(f"largest changes: {', '.join(changes)}")
    yield Table((), (), notes=tuple(notes))
    if reconciliation.moved:
        left = len(reconciliation.moved) - _QUERIES
        yield Table(
            ("query", "here", "there", "change", "largest step"),
            tuple(
                (
                    change.query,
                    _value(change.ours),
                    _value(change.theirs),
                    "" if math.isnan(change.change) else f"{change.change:+.4f}",
                    _by(change),
                )
                for change in reconciliation.moved[:_QUERIES]
            ),
            title=Detail("queries with the largest changes"),
            right=frozenset({1, 2, 3}),
            notes=(f"{many(left, 'more query')} changed",) if left > 0 else (),
        )
    if reconciliation.sides is not None:
        yield _side_by_side(*reconciliation.sides)
        yield Detail(steps_text(_formulas(*reconciliation.sides), options.format))
        yield Table((), (), notes=(Detail(first_difference(*reconciliation.sides)),))


def _steps(reconciliation: Reconciliation) -> Table:
    """Return the steps from our mean to the other; changes are differences of the printed means."""
    # As many decimals as make the smallest change visible.
    changes = [abs(contribution.change) for contribution in reconciliation.contributions] + [abs(reconciliation.rest)]
    least = min((change for change in changes if change > 10.0**-_MANY), default=1.0)
    digits = min(max(_FEWEST, 2 - math.floor(math.log10(least))), _MANY)
    rows: list[tuple[Cell, ...]] = [("rankgauge", f"{reconciliation.ours:.{digits}f}", "", "")]
    before = round(reconciliation.ours, digits)
    for contribution in reconciliation.contributions:
        after = round(contribution.mean, digits)
        gone = contribution.left + contribution.entered
        touched = f"{contribution.touched}" + (f" (-{contribution.left} +{contribution.entered})" if gone else "")
        rows.append((contribution.name, f"{after:.{digits}f}", f"{after - before:+.{digits}f}", touched))
        before = after
    last = round(reconciliation.theirs, digits)
    if reconciliation.rest:
        rows.append((reconciliation.left_over(), f"{last:.{digits}f}", f"{last - before:+.{digits}f}", ""))
    whole = last - round(reconciliation.ours, digits)
    rows.append(
        (reconciliation.target.name, f"{last:.{digits}f}", f"{whole:+.{digits}f}", str(len(reconciliation.moved)))
    )
    return Table(
        ("step", "mean", "change", "queries"), tuple(rows), title=reconciliation.title(), right=frozenset({1, 2, 3})
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
    sides = [
        _cells(explanation, [pairs[place][side] for place in kept]) for side, explanation in enumerate((ours, theirs))
    ]
    heads = [
        explanation.calculation.columns[_contribution(explanation)] if explanation.calculation.columns else "counts"
        for explanation in (ours, theirs)
    ]
    rows = (
        (str(place + 1), *left, *right, "" if _compared(pairs[place][0]) == _compared(pairs[place][1]) else "<")
        for place, left, right in zip(kept, *sides, strict=True)
    )
    return Table(
        ("rank", "here", "grade", heads[0], "there", "grade", heads[1], ""),
        tuple(rows),
        title=Detail(f"query {ours.query} on both sides: {number(ours.value)} here, {number(theirs.value)} there"),
        right=frozenset({0, 2, 3, 5, 6}),
    )


def _contribution(explanation: Explanation) -> int:
    """Return the column of the most informative term of a document."""
    columns = explanation.calculation.columns
    return columns.index("contribution") if "contribution" in columns else len(columns) - 1


def _cells(explanation: Explanation, rows: Sequence[Step | None]) -> list[tuple[str, str, str]]:
    place = _contribution(explanation)
    terms: list[tuple[Term, ...]] = [
        (None if row is None else row.terms[place] if row.terms else ("yes" if row.counts else ""),) for row in rows
    ]
    return [
        ("", "", "") if row is None else (shorten(row.ranked.document, _DOCUMENT), grade_of(row.ranked.grade), term)
        for row, (term,) in zip(rows, terms_of(terms), strict=True)
    ]


def _compared(row: Step | None) -> tuple[str, float | None, bool] | None:
    return None if row is None else (row.ranked.document, row.ranked.grade, row.counts)


def _formulas(ours: Explanation, theirs: Explanation) -> tuple[str, ...]:
    """Return the lines that differ between the two calculations."""
    same = set(ours.steps) & set(theirs.steps)
    lines: list[str] = []
    for side, explanation in (("here:  ", ours), ("there: ", theirs)):
        own = [step for step in explanation.steps if step not in same]
        lines += [f"{'       ' if place else side}{step}" for place, step in enumerate(own)]
    return tuple(lines)


def first_difference(ours: Explanation, theirs: Explanation) -> str:
    """Describe the first difference between two calculations of a query."""
    also = f"; here {ours.measure}, there {theirs.measure}" if str(ours.measure) != str(theirs.measure) else ""
    for rank, (left, right) in enumerate(zip_longest(ours.rows, theirs.rows), start=1):
        if left is None or right is None:
            side = "there" if left is None else "here"
            return f"the rankings differ from rank {rank}: evaluated only {side}{also}"
        if left.ranked.document != right.ranked.document:
            tie = " (a tie here)" if left.ranked.tied else ""
            tie += " (a tie there)" if right.ranked.tied and not left.ranked.tied else ""
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
    yield _ways(reproduction)
    yield Table((), (), notes=tuple(_fit_notes(reproduction)))
    for part in _reconciliation_blocks(reproduction.reconciliation, options):
        yield Detail(part) if isinstance(part, str) else replace(part, title=Detail(part.title))


def _ways(reproduction: Reproduction) -> Table:
    """Return the variants that fit best, and ours."""
    whole = bool(reproduction.given.values)
    ours = next(fit for fit in reproduction.fits if not fit.deviations or fit.ours)
    shown = list(reproduction.fits[:_SHOWN])
    if ours not in shown:
        shown[-1] = ours
    digits = max(4, min(reproduction.given.digits, 8))
    rows: list[tuple[Cell, ...]] = []
    for fit in shown:
        text = f"{fit.reproduced} of {fit.reproduced + fit.missed}"
        off = fit.mean - reproduction.given.mean
        rows.append(
            (shorten(fit.name, _WAY), *((text,) if whole else ()), f"{fit.mean:.{digits}f}", f"{off:+.{digits}f}")
        )
    heads = ("variant", *(("reproduced",) if whole else ()), "mean", "difference")
    return Table(heads, tuple(rows), title=reproduction.title(), right=frozenset(range(1, len(heads))))


def _fit_notes(reproduction: Reproduction) -> Iterator[str]:
    yield f"{reproduction.sure}: {reproduction.why}"
    if reproduction.tied:
        yield (
            f"{reproduction.tied} of the {reproduction.best.missed} values that are missed are within the "
            "range of some order of tied documents: an unstable sort explains them"
        )
    yield from reproduction.given.notes
    if reproduction.sure != "not found":
        yield f"found: {reproduction.best.name}"
        if reproduction.best.same:
            more = len(reproduction.best.same) - _SAME
            names = ", ".join(reproduction.best.same[:_SAME]) + (f" and {more} more" if more > 0 else "")
            yield f"these variants give the same values here: {names}"
    yield (f"{reproduction.tried} variants were tried: other tools, and combinations of up to three known deviations")


REPORTS = {
    Explanation: Report(_explanation_blocks),
    Reconciliation: Report(_reconciliation_blocks),
    Reproduction: Report(_reproduction),
}

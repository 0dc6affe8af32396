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


def _explanation_blocks(found: Explanation, options: Options) -> Iterator[Table | str]:
    """Yield the ranking, the ideal ranking, the formula with numbers, and notes."""
    if found.rows:
        yield from found.tables()
    else:
        yield Table((), (), title=f"{found.measure} = {number(found.value)} for query {found.query}")
    yield steps_text(found.steps, options.format)
    yield Table((), (), notes=tuple(_notes(found)))


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


def _notes(found: Explanation) -> Iterator[str]:
    yield from found.notes
    if found.why:
        yield f"query {found.query} was chosen: {found.why}"
    measure = found.measure
    kind = {"arithmetic": "mean", "geometric": "geometric mean", "sum": "sum"}
    how = kind[measure.declaration.mean]
    # The reason for choosing the query may name the mean.
    average = f"{how} over {many(found.queries, 'query')}: {number(found.mean)}"
    yield Detail(average) if f"({number(found.mean)})" in found.why else average
    others = ", ".join(f"{other.query} ({other.what}, {number(other.value)})" for other in found.others)
    if others:
        yield f"others with --query ID: {others}"
    shown = [row.ranked for row in shown_rows(found.calculation)]
    if any(listed.grade is None for listed in shown):
        yield f"grade {UNJUDGED}: not judged, counted as not relevant"
    if any(listed.grade is not None and listed.grade < 0 for listed in shown):
        yield "a grade below 0: the document is unjudged and counts as not relevant"
    if any(listed.tied for listed in shown):
        yield f"tie: ranks of documents with the same score (ties={found.policies.ties})"
    missed = found.ranking.missed()
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


def _reconciliation_blocks(found: Reconciliation, options: Options) -> Iterator[Table | str]:
    """Yield the steps; the queries, and one computed both ways, are details."""
    yield _steps(found)
    here, there = found.queries
    averaged = f"{many(here, 'query')} averaged " + ("by both" if here == there else f"here, {there} there")
    differ = f"{len(found.moved)} differ" if found.moved else "all have the same value there"
    notes = [*found.notes, f"{averaged}; {differ}"]
    if any(one.left or one.entered for one in found.contributions):
        notes.append("queries: number changed (-excluded from the mean +added to it)")
    if found.moved:
        changes = (f"{one.query} ({_value(one.ours)} to {_value(one.theirs)})" for one in found.moved[:_FEW])
        notes.append(f"largest changes: {', '.join(changes)}")
    yield Table((), (), notes=tuple(notes))
    if found.moved:
        left = len(found.moved) - _QUERIES
        yield Table(
            ("query", "here", "there", "change", "largest step"),
            tuple(
                (
                    one.query,
                    _value(one.ours),
                    _value(one.theirs),
                    "" if math.isnan(one.change) else f"{one.change:+.4f}",
                    _by(one),
                )
                for one in found.moved[:_QUERIES]
            ),
            title=Detail("queries with the largest changes"),
            right=frozenset({1, 2, 3}),
            notes=(f"{many(left, 'more query')} changed",) if left > 0 else (),
        )
    if found.sides is not None:
        yield _side_by_side(*found.sides)
        yield Detail(steps_text(_formulas(*found.sides), options.format))
        yield Table((), (), notes=(Detail(first_difference(*found.sides)),))


def _steps(found: Reconciliation) -> Table:
    """Return the steps from our mean to the other; changes are differences of the printed means."""
    # As many decimals as make the smallest change visible.
    changes = [abs(one.change) for one in found.contributions] + [abs(found.rest)]
    least = min((change for change in changes if change > 10.0**-_MANY), default=1.0)
    digits = min(max(_FEWEST, 2 - math.floor(math.log10(least))), _MANY)
    rows: list[tuple[Cell, ...]] = [("rankgauge", f"{found.ours:.{digits}f}", "", "")]
    before = round(found.ours, digits)
    for one in found.contributions:
        after = round(one.mean, digits)
        gone = one.left + one.entered
        touched = f"{one.touched}" + (f" (-{one.left} +{one.entered})" if gone else "")
        rows.append((one.name, f"{after:.{digits}f}", f"{after - before:+.{digits}f}", touched))
        before = after
    last = round(found.theirs, digits)
    if found.rest:
        rows.append((found.left_over(), f"{last:.{digits}f}", f"{last - before:+.{digits}f}", ""))
    whole = last - round(found.ours, digits)
    rows.append((found.target.name, f"{last:.{digits}f}", f"{whole:+.{digits}f}", str(len(found.moved))))
    return Table(("step", "mean", "change", "queries"), tuple(rows), title=found.title(), right=frozenset({1, 2, 3}))


def _value(value: float | None) -> str:
    return "left out" if value is None else f"{value:.4f}"


def _by(one: QueryChange) -> str:
    if len(one.by) == 1:
        return shorten(one.by[0][0], _BY)
    # Largest change first; changes that do not fit are counted.
    by = sorted(one.by, key=lambda part: -math.inf if math.isnan(part[1]) else -abs(part[1]))
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
    sides = [_cells(one, [pairs[place][side] for place in kept]) for side, one in enumerate((ours, theirs))]
    heads = [
        one.calculation.columns[_contribution(one)] if one.calculation.columns else "counts" for one in (ours, theirs)
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


def _contribution(found: Explanation) -> int:
    """Return the column of the most informative term of a document."""
    columns = found.calculation.columns
    return columns.index("contribution") if "contribution" in columns else len(columns) - 1


def _cells(found: Explanation, rows: Sequence[Step | None]) -> list[tuple[str, str, str]]:
    place = _contribution(found)
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
    for side, found in (("here:  ", ours), ("there: ", theirs)):
        own = [step for step in found.steps if step not in same]
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
    for place, (one, other) in enumerate(zip_longest(ours.calculation.ideal, theirs.calculation.ideal), start=1):
        if one is None or other is None or one.grade != other.grade or one.terms != other.terms:
            return f"the same ranking; the ideal rankings differ from rank {place}{also}"
    return f"the same ranking{also or ': the same calculation'}"


# ---- how a number from another source was computed


def _reproduction(found: Reproduction, options: Options) -> Iterator[Table | str]:
    yield _ways(found)
    yield Table((), (), notes=tuple(_fit_notes(found)))
    for part in _reconciliation_blocks(found.reconciliation, options):
        yield Detail(part) if isinstance(part, str) else replace(part, title=Detail(part.title))


def _ways(found: Reproduction) -> Table:
    """Return the variants that fit best, and ours."""
    whole = bool(found.given.values)
    ours = next(fit for fit in found.fits if not fit.deviations or fit.ours)
    shown = list(found.fits[:_SHOWN])
    if ours not in shown:
        shown[-1] = ours
    digits = max(4, min(found.given.digits, 8))
    rows: list[tuple[Cell, ...]] = []
    for fit in shown:
        text = f"{fit.reproduced} of {fit.reproduced + fit.missed}"
        off = fit.mean - found.given.mean
        rows.append(
            (shorten(fit.name, _WAY), *((text,) if whole else ()), f"{fit.mean:.{digits}f}", f"{off:+.{digits}f}")
        )
    heads = ("variant", *(("reproduced",) if whole else ()), "mean", "difference")
    return Table(heads, tuple(rows), title=found.title(), right=frozenset(range(1, len(heads))))


def _fit_notes(found: Reproduction) -> Iterator[str]:
    yield f"{found.sure}: {found.why}"
    if found.tied:
        yield (
            f"{found.tied} of the {found.best.missed} values that are missed are within the "
            "range of some order of tied documents: an unstable sort explains them"
        )
    yield from found.given.notes
    if found.sure != "not found":
        yield f"found: {found.best.name}"
        if found.best.same:
            more = len(found.best.same) - _SAME
            names = ", ".join(found.best.same[:_SAME]) + (f" and {more} more" if more > 0 else "")
            yield f"these variants give the same values here: {names}"
    yield (f"{found.tried} variants were tried: other tools, and combinations of up to three known deviations")


REPORTS = {
    Explanation: Report(_explanation_blocks),
    Reconciliation: Report(_reconciliation_blocks),
    Reproduction: Report(_reproduction),
}

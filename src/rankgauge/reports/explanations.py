"""Reports on explanations: ranking, ideal ranking, and formula with numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from rankgauge.core.escaping import for_html, for_latex, for_terminal
from rankgauge.core.text import many
from rankgauge.explanation.calculation import number
from rankgauge.explanation.explanation import Explanation
from rankgauge.explanation.tables import GAP, UNJUDGED, shown_rows
from rankgauge.rendering.tables import WIDTH, Table, render_table
from rankgauge.reports.registry import Options, Report

# Columns that have a separate table on a terminal.
_FACTS = {"score", "relevant"}
_MISSED = 5


def _blocks(found: Explanation, format: str, options: Options) -> Iterator[Table | str]:
    """Yield the ranking, the ideal ranking, the formula with numbers, and notes."""
    short = format == "table" and not options.full
    if not found.rows:
        yield Table((), (), title=f"{found.measure} = {number(found.value)} for query {found.query}")
    elif format != "table":
        yield from found.tables()
    else:
        tables = found.tables(full=options.full)
        for table in tables[:1] if short else tables:
            chosen = _without(table, _FACTS)
            yield (_without_gaps(chosen) if options.quiet else _table_text(chosen, color=options.color))
        if options.full:
            yield replace(_without(tables[0], found.calculation.columns), title="scores")
    yield steps_text(found.steps, format)
    yield Table((), (), notes=tuple(_notes(found, short=short)))


def _without(table: Table, names: Container[str]) -> Table:
    """Return a table without these columns."""
    kept = [place for place, name in enumerate(table.columns) if name not in names]
    return table.part(columns=kept)


def _without_gaps(table: Table) -> Table:
    """Return a table without the rows that count omitted rows."""
    return table.part(rows=[place for place, row in enumerate(table.rows) if row[0] != GAP])


def _table_text(table: Table, *, color: bool) -> str:
    """Format a table, with rows that count omitted rows spanning all columns."""
    gaps = {place: str(row[1]) for place, row in enumerate(table.rows) if row[0] == GAP}
    column = table.columns.index("document")
    rows = [(*row[:column], row[column] if row[0] != GAP else "", *row[column + 1 :]) for row in table.rows]
    narrow = replace(table, rows=tuple(rows), shortened=frozenset({column}))
    lines = render_table(narrow, "table", color=color).splitlines()
    above = 3 if table.title else 2
    for place, text in gaps.items():
        lines[above + place] = f"{GAP:>{len(table.columns[0])}}   {text}"
    return "".join(f"{line}\n" for line in lines)


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
    return textwrap.fill(
        line,
        WIDTH,
        initial_indent="  ",
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )


def _notes(found: Explanation, *, short: bool) -> Iterator[str]:
    yield from found.notes
    if found.why:
        yield f"query {found.query} was chosen: {found.why}"
    measure = found.measure
    kind = {"arithmetic": "mean", "geometric": "geometric mean", "sum": "sum"}
    how = kind[measure.declaration.mean]
    # The reason for choosing the query may name the mean.
    if not short or f"({number(found.mean)})" not in found.why:
        yield f"{how} over {many(found.queries, 'query')}: {number(found.mean)}"
    others = ", ".join(f"{other.query} ({other.what}, {number(other.value)})" for other in found.others)
    if others:
        yield f"others with --query ID: {others}"
    head = {"head": 0} if short else {}
    shown = [row.ranked for row in shown_rows(found.calculation, **head)]
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
    if short:
        ideal = ", the ideal ranking" if found.calculation.ideal else ""
        yield f"every rank{ideal}, and scores: --full (full=True)"


REPORTS = {Explanation: Report(_blocks)}

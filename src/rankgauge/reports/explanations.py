"""An explanation as text: the ranking, the ideal, the formula with the numbers put in."""

from __future__ import annotations

import textwrap
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from rankgauge.core.escaping import for_html, for_markdown, for_terminal
from rankgauge.core.grammar import unknown
from rankgauge.core.text import many
from rankgauge.explanation.calculation import number
from rankgauge.explanation.explanation import Explanation
from rankgauge.explanation.tables import GAP, UNJUDGED, shown_of
from rankgauge.rendering.tables import Table, render

__all__ = ["report_explanation"]

_FORMS = ("table", "markdown", "html", "json")
_ESCAPES = {"table": for_terminal, "markdown": for_markdown, "html": for_html}
_WIDE = 100
_BETWEEN = 3
# However wide the rest is, so much of an id is shown.
_SHORTEST = 16
_MISSED = 5


def report_explanation(found: Explanation, form: str = "table", *, color: bool = False) -> str:
    """An explanation as text.

    Args:
        found: Made by :func:`explain`.
        form: ``table`` (for a terminal, 100 columns wide), ``markdown``, ``html`` or ``json``
            (everything, in one document).
        color: Whether a table may use the colours of a terminal.

    Raises:
        UnknownName: For another form.

    Example:
        >>> from rankgauge.explanation.explanation import explain
        >>> print(report_explanation(explain({"q1": {"d2"}}, {"q1": ["d1", "d2"]}, "RR", "q1")))
        RR = 0.5000 of query q1 in run
        rank   document   score   grade   relevant   contribution
        ─────────────────────────────────────────────────────────
           1   d1             2       ·
           2   d2             1       1   yes              0.5000
        <BLANKLINE>
          the first relevant document stands at rank 2
          RR = 1 / 2 = 0.5000
        <BLANKLINE>
        • mean over 1 query...
    """
    if form not in _FORMS:
        raise unknown("form", form, _FORMS)
    if form == "json":
        return found.to_json() + "\n"
    tables = found.tables() if found.rows else ()
    parts = [table_text(table, form, color=color) for table in tables]
    parts += [steps_text(found.steps, form), notes_text(tuple(_notes(found)), form)]
    if not tables:
        text = f"{found.measure} = {number(found.value)} of query {found.query}"
        parts.insert(0, f"{_ESCAPES[form](text)}\n")
    return "\n".join(filter(None, parts))


def table_text(table: Table, form: str, *, color: bool = False) -> str:
    """A table with its lines for what is not shown, which on a terminal run on over the columns."""
    if form != "table":
        return render(table, form)
    gaps = {place: str(row[1]) for place, row in enumerate(table.rows) if row[0] == GAP}
    lines = render(_narrowed(table, gaps), form, color=color).splitlines()
    above = 3 if table.title else 2
    first = max((len(str(row[0])) for row in table.rows), default=0)
    first = max(first, len(table.columns[0]))
    for place, text in gaps.items():
        lines[above + place] = f"{GAP:>{first}}   {text}"
    return "".join(f"{line}\n" for line in lines)


def _narrowed(table: Table, gaps: Container[int]) -> Table:
    """A table for a terminal: ids that are too long for it without their middle."""
    column = table.columns.index("document")
    rows = [
        (*row[:column], "" if place in gaps else row[column], *row[column + 1 :])
        for place, row in enumerate(table.rows)
    ]
    others = sum(
        max(len(head), *(len(str(row[place])) for row in rows)) + _BETWEEN
        for place, head in enumerate(table.columns)
        if place != column
    )
    room = max(_WIDE - others, _SHORTEST)
    cut = [(*row[:column], middle_cut(str(row[column]), room), *row[column + 1 :]) for row in rows]
    return replace(table, rows=tuple(cut))


def steps_text(steps: Sequence[str], form: str) -> str:
    """Lines of a formula, where each form keeps them as they are."""
    if form == "html":
        return "<pre>" + "\n".join(map(for_html, steps)) + "</pre>\n"
    lines = [for_terminal(step) for step in steps]
    if form == "markdown":
        fence = "```"
        while any(fence in line for line in lines):
            fence += "`"
        return f"{fence}text\n" + "".join(f"{line}\n" for line in lines) + f"{fence}\n"
    return "".join(f"{_folded(line)}\n" for line in lines)


def notes_text(notes: Sequence[str], form: str) -> str:
    """Sentences below tables."""
    if form == "html":
        return "<ul>" + "".join(f"<li>{for_html(note)}</li>" for note in notes) + "</ul>\n"
    if form == "markdown":
        return "".join(f"- {for_markdown(note)}\n" for note in notes)
    return "".join(f"{_wrapped(f'• {for_terminal(note)}')}\n" for note in notes)


def _folded(line: str) -> str:
    """A line of a formula, continued below its equals sign, or below where its words begin."""
    before = line.partition("= ")[0]
    words = len(line) - len(line.removeprefix("there: ").removeprefix("here:  ").lstrip())
    indent = " " * (2 + (len(before) + 2 if len(before) < _WIDE // 2 and "= " in line else words))
    return textwrap.fill(
        line, _WIDE, initial_indent="  ", subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False, drop_whitespace=True,
    )  # fmt: skip


def _wrapped(text: str) -> str:
    return textwrap.fill(
        text, _WIDE, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def middle_cut(text: str, room: int) -> str:
    """A long id without its middle: ids of one kind differ at the end."""
    if len(text) <= room:
        return text
    begin = room // 3
    return text[:begin] + "…" + text[begin + 1 - room :]


def _notes(found: Explanation) -> Iterator[str]:
    yield from found.notes
    if found.why:
        yield f"query {found.query} was chosen: {found.why}"
    measure = found.measure
    kind = {"arithmetic": "mean", "geometric": "geometric mean", "sum": "sum"}
    how = kind[measure.declaration.mean]
    yield f"{how} over {many(found.queries, 'query')}: {number(found.mean)}"
    others = ", ".join(
        f"{other.query} ({other.what}, {number(other.value)})" for other in found.others
    )
    if others:
        yield f"others with --query ID: {others}"
    shown = [row.ranked for row in shown_of(found.calculation)]
    if any(listed.grade is None for listed in shown):
        yield f"grade {UNJUDGED}: not judged, counted as not relevant"
    if any(listed.grade is not None and listed.grade < 0 for listed in shown):
        yield "a grade below 0: nobody judged the document, and it counts as not relevant"
    if any(listed.tied for listed in shown):
        yield f"tie: the ranks of its equal scores; they stand by ties={found.policies.ties}"
    missed = found.ranking.missed()
    if missed:
        names = ", ".join(f"{name} (grade {number(grade)})" for name, grade in missed[:_MISSED])
        more = ", ..." if len(missed) > _MISSED else ""
        yield f"not retrieved: {many(len(missed), 'document')} with a grade above 0: {names}{more}"

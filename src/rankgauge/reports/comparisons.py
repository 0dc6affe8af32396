"""Comparisons: means side by side, then the differences; and reports of ties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rankgauge.comparison.comparison import Comparison
from rankgauge.rendering.tables import BEST, Table
from rankgauge.reports.registry import Options, Report
from rankgauge.sensitivity.tie_sensitivity import TieReport

# Measures of a short report if there are more than fit a screen.
_MOST, _FITTING = 6, 9


def comparison_tables(found: Comparison, format: str, options: Options) -> Iterator[Table]:
    """The means, and the differences with conclusions."""
    means = found.table(transposed=options.transposed)
    marks = (BEST,) if format == "table" and means.best else ()
    notes = (*marks, *means.notes)
    if options.full:
        yield replace(means, notes=notes)
        yield found.differences_table()
        return
    if len(means.rows) > _FITTING and not options.transposed:
        means = _shortened(means, _overview(found))
        notes = (*notes, f"{_more(found)} more measures: --full (full=True)")
    yield replace(means, notes=notes)
    yield found.differences_table(described=False)


def _overview(found: Comparison) -> list[int]:
    """The rows of the tested measures, and of the first others at the same or no cut-off."""
    measures = found.evaluations[0].measures
    cut = dict(found.primary.params).get("k")
    own = [m for m in measures if m in found.tested]
    near = [m for m in measures if m not in own and dict(m.params).get("k") in {cut, None}]
    chosen = [*own, *near[: max(0, _MOST - len(own))]]
    return [place for place, measure in enumerate(measures) if measure in chosen]


def _more(found: Comparison) -> int:
    return len(found.evaluations[0].measures) - len(_overview(found))


def _shortened(table: Table, places: Sequence[int]) -> Table:
    """The table with these rows only."""
    new = {old: place for place, old in enumerate(places)}
    return replace(
        table,
        rows=tuple(table.rows[place] for place in places),
        best=frozenset((new[row], column) for row, column in table.best if row in new),
        marks={(new[row], column): m for (row, column), m in table.marks.items() if row in new},
    )


def _ties(found: TieReport, options: Options) -> Table:
    return found.table(per_query=options.per_query)


REPORTS = {
    Comparison: Report(comparison_tables),
    TieReport: Report(lambda found, _format, options: (_ties(found, options),), _ties),
}

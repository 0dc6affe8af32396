"""Reports on comparisons: means side by side, then differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rankgauge.comparison.comparison import Comparison, PairedComparison
from rankgauge.core.text import many
from rankgauge.distributed import DistributedComparison
from rankgauge.evaluation.tie_sensitivity import TieReport
from rankgauge.measures.measure import Measure
from rankgauge.rendering.tables import BEST, Cell, Table
from rankgauge.reports.registry import Options, Report

# Number of measures in a short report, if there are more than fit on a screen.
_MOST, FITTING = 6, 9


def comparison_tables(found: PairedComparison, format: str, options: Options) -> Iterator[Table]:
    """Yield the means, and the differences with conclusions."""
    means = found.table(transposed=options.transposed)
    marks = (BEST,) if format == "table" and means.best else ()
    notes = (*marks, *means.notes)
    terminal, short = format == "table", not options.full
    left = []
    if short and len(means.rows) > FITTING and not options.transposed:
        places = overview(found.measures, found.tested)
        left = [many(len(means.rows) - len(places), "more measure")]
        means = means.part(rows=places)
    more = () if terminal else (f"{text}: --full (full=True)" for text in left)
    yield replace(means, notes=(*notes, *more))
    table = found.differences_table(described=options.full)
    if terminal and short:
        warnings = len(found.warnings) - 1
        left += [many(warnings, "more warning")] if warnings > 0 else []
        rest = f"{', '.join(left)}, test, and seed" if left else "test and seed"
        table = replace(table, notes=(*conclusions(found), f"{rest}: --full (full=True)"))
    yield from _by_run(found, table) if terminal else (table,)


def conclusions(found: PairedComparison) -> Iterator[str]:
    """Yield the conclusion about the runs and the first warning."""
    said = found.sentences[len(found.withheld_sentences) :]
    # For two runs, the second sentence names the better run and the difference.
    yield from said[1:2] if len(found.means()) == 2 and len(said) > 1 else said[:1]
    for text in found.warnings[:1]:
        yield f"WARNING: {text}"


def overview(measures: Sequence[Measure], tested: Sequence[Measure]) -> list[int]:
    """Return the positions of the tested measures and of some with the same or no cut-off."""
    cut = dict(tested[0].params).get("k")
    own = [m for m in measures if m in tested]
    near = [m for m in measures if m not in own and dict(m.params).get("k") in {cut, None}]
    chosen = [*own, *near[: max(0, _MOST - len(own))]]
    return [place for place, measure in enumerate(measures) if measure in chosen]


def _by_run(found: PairedComparison, table: Table) -> Iterator[Table]:
    """Yield the differences for a terminal: one table for a single measure, else one per pair."""
    heads = table.columns.index("measure")  # number of columns that name the runs
    measures = {row[heads] for row in table.rows}
    if len(measures) == 1:
        columns = [n for n in range(len(table.columns)) if n != heads]
        between = ", " if heads > 1 else " "  # all pairs, or compared with the baseline
        title = f"{measures.pop()}{between}{table.title}"
        yield replace(table.part(columns=columns), title=title)
        return
    places: dict[tuple[Cell, ...], list[int]] = {}
    for place, row in enumerate(table.rows):
        places.setdefault(row[:heads], []).append(place)
    for number, (names, rows) in enumerate(places.items(), start=1):
        run, against = (*names, found.baseline)[:2]
        yield replace(
            table.part(rows=rows, columns=range(heads, len(table.columns))),
            title=f"{run} compared with {against}",
            notes=table.notes if number == len(places) else (),
        )


def _ties(found: TieReport, options: Options) -> Table:
    return found.table(per_query=options.per_query)


REPORTS = {
    Comparison: Report(comparison_tables),
    DistributedComparison: Report(comparison_tables),
    TieReport: Report(lambda found, _format, options: (_ties(found, options),), _ties),
}

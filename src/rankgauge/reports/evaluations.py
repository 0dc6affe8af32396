"""Reports on evaluations: measures by cut-off or by run, and trec_eval's format."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rankgauge.core.escaping import for_terminal
from rankgauge.evaluation.result import Evaluation, mean_cell
from rankgauge.measures.measure import Measure
from rankgauge.rendering.tables import Cell, Detail, Table, by_column
from rankgauge.reports.registry import Options, Report

_NOTES = 2  # number of notes in a short report with group means
_MOST = 3  # maximum number of measures for which all group means are shown


def _blocks(evaluations: Sequence[Evaluation], options: Options) -> list[Table]:
    """Return the tables of a report; the last one has the notes.

    Measures of a single run with cut-offs are shown as a grid (cut-offs by measures); otherwise there is one row for
    each run.
    """
    if options.per_query:
        tables = [_query_table(evaluations)]
    elif len(evaluations) == 1 and is_grid(evaluations[0].measures):
        tables = [*grids(evaluations[0].run_name, evaluations[0].measures, evaluations[0].mean())]
    else:
        tables = [_run_table(evaluations)]
    grouped = [e for e in evaluations if e.groups is not None or e.weights is not None]
    if grouped and not options.per_query:
        from rankgauge.evaluation.groups import group_means

        tables += [group_means(evaluation, _MOST).table() for evaluation in grouped]
    notes = notes_of(evaluations)
    if grouped:
        notes = [note if place < _NOTES or "WARNING" in note else Detail(note) for place, note in enumerate(notes)]
    tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, *notes))
    return tables


def notes_of(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return the notes of all runs: shared notes once, the others with the name of their run, as details.

    Example:
        >>> import rankgauge
        >>> ev = rankgauge.evaluate({"q1": {"d1"}}, {"q1": ["d1"]}, ["P@1"])
        >>> notes_of([ev, ev])[0]
        '1 query: all judged queries'
    """
    shared = [note for note in evaluations[0].notes if all(note in e.notes for e in evaluations)]
    own = [f"{e.run_name}: {note}" for e in evaluations for note in e.notes if note not in shared]
    return shared + [note if "WARNING" in note else Detail(note) for note in own]


def is_grid(measures: Sequence[Measure]) -> bool:
    """Return whether measures and cut-offs form a mostly complete grid."""
    cut = [m for m in measures if m.cutoff is not None]
    families, cutoffs = {m.family for m in cut}, {m.cutoff for m in cut}
    cells = len(families) * len(cutoffs)
    return len(families) > 1 and len(cutoffs) > 1 and 2 * len(cut) > cells


def grids(title: str, measures: Sequence[Measure], means: Mapping[str, float]) -> Iterator[Table]:
    """Yield a table of means (cut-offs by measures), then those without a cut-off.

    Args:
        title: Name of the run.
        measures: Measures.
        means: Means by name of the measure.
    """
    cut = [m for m in measures if m.cutoff is not None]
    families = list(dict.fromkeys(m.family for m in cut))
    values = {(m.family, m.cutoff): mean_cell(m, means[str(m)]) for m in cut}
    cutoffs = sorted({m.cutoff for m in cut if m.cutoff is not None})
    rows = tuple((k, *(values.get((name, k)) for name in families)) for k in cutoffs)
    yield Table(("k", *map(str, families)), rows, title=title)
    whole = [m for m in measures if m not in cut]
    if whole:
        yield Table(tuple(map(str, whole)), (tuple(mean_cell(m, means[str(m)]) for m in whole),))


def _run_table(evaluations: Sequence[Evaluation]) -> Table:
    """Return one row for each run; in a grid of cut-offs, those below the largest are details."""
    measures = _all_measures(evaluations)
    deepest = max(m.cutoff or 0 for m in measures) if all(is_grid(e.measures) for e in evaluations) else None
    means = [evaluation.mean() for evaluation in evaluations]
    columns = {measure: [mean.get(str(measure), math.nan) for mean in means] for measure in measures}
    # Without a query in common, no run is better.
    disjoint = any(
        set(evaluation.query_ids).isdisjoint(other.query_ids)
        for evaluation, other in itertools.combinations(evaluations, 2)
    )
    return Table(
        *by_column(
            ("run", (evaluation.run_name for evaluation in evaluations)),
            *(
                (
                    Detail(m) if deepest is not None and m.cutoff is not None and m.cutoff != deepest else str(m),
                    [mean_cell(m, value) for value in values],
                )
                for m, values in columns.items()
            ),
        ),
        best=frozenset(
            (row, column)
            for column, (measure, values) in enumerate(columns.items(), start=1)
            if not disjoint and sum(not math.isnan(value) for value in values) > 1
            for row in measure.best(values)
        ),
        starred=True,
    )


def _all_measures(evaluations: Sequence[Evaluation]) -> tuple[Measure, ...]:
    """Return the measures of all runs, each once; runs may lack some of them."""
    return tuple(dict.fromkeys(m for evaluation in evaluations for m in evaluation.measures))


def _query_table(evaluations: Sequence[Evaluation]) -> Table:
    measures = _all_measures(evaluations)
    rows: list[tuple[Cell, ...]] = []
    for evaluation in evaluations:
        for query, values in zip(evaluation.query_ids, evaluation.per_query.tolist(), strict=True):
            known = dict(zip(evaluation.measures, values, strict=True))
            rows.append((evaluation.run_name, query, *(mean_cell(m, known.get(m, math.nan)) for m in measures)))
    table = Table(("run", "query", *map(str, measures)), tuple(rows))
    if len(evaluations) > 1:
        return table
    return replace(table.part(columns=range(1, len(table.columns))), title=evaluations[0].run_name)


def _data(evaluations: Sequence[Evaluation], options: Options) -> Table:
    return _query_table(evaluations) if options.per_query else _run_table(evaluations)


def _trec(evaluations: Sequence[Evaluation], options: Options) -> str:
    """Format the values as trec_eval prints them."""
    lines = []
    for evaluation in evaluations:
        named = [(measure.trec_name() or str(measure), measure) for measure in evaluation.measures]
        rows = zip(evaluation.query_ids, evaluation.per_query.tolist(), strict=True) if options.per_query else ()
        for query, values in rows:
            lines += [_trec_line(name, query, m, value) for (name, m), value in zip(named, values, strict=True)]
        lines.append(f"{'runid':<22}\tall\t{for_terminal(evaluation.run_name)}\n")
        lines.append(f"{'num_q':<22}\tall\t{len(evaluation.query_ids)}\n")
        means = evaluation.mean()
        lines += [_trec_line(name, "all", measure, means[str(measure)]) for name, measure in named]
    return "".join(lines)


def _trec_line(name: str, query: str, measure: Measure, value: float) -> str:
    value = 0.0 if math.isnan(value) else value  # trec_eval has no undefined values
    shown = f"{value:.0f}" if measure.declaration.mean == "sum" else f"{value:6.4f}"
    return f"{name:<22}\t{for_terminal(query)}\t{shown}\n"


REPORTS = {"Evaluation": Report(_blocks, _data, {"trec": _trec}, several=True)}

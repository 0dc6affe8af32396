"""Reports on evaluations: measures by cut-off or by run, and trec_eval's format."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from rankgauge.core.escaping import for_terminal
from rankgauge.core.text import many
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure
from rankgauge.rendering.tables import BEST, Cell, Table
from rankgauge.reports.registry import Options, Report

_MOST = 3  # maximum number of measures for which all group means are shown
_NOTES = 2  # number of notes in a short report with group means


def _blocks(evaluations: Sequence[Evaluation], options: Options) -> list[Table]:
    """Return the tables of a report; the last one has the notes.

    Measures with cut-offs are shown as one grid per run (cut-offs by measures); otherwise there is
    one row for each run.
    """
    if options.per_query:
        found = [_query_table(evaluations)]
    elif options.short and len(evaluations) > 1:
        found = [_overview(evaluations)]
    elif all(is_grid(evaluation.measures) for evaluation in evaluations):
        best = _best_of(evaluations)
        found = [
            table
            for e, own in zip(evaluations, best, strict=True)
            for table in grids(e.run_name, e.measures, e.mean(), own)
        ]
    else:
        found = [_run_table(evaluations)]
    grouped = [e for e in evaluations if e.groups is not None or e.weights is not None]
    if grouped and not options.per_query:
        from rankgauge.evaluation.groups import group_means

        found += [group_means(each, _MOST).table() for each in grouped]
    marks = [BEST] if options.on_terminal and any(table.best for table in found) else []
    notes = notes_of(evaluations)
    if options.short and (len(evaluations) > 1 or grouped):
        notes = _short(evaluations, notes)
    found[-1] = replace(found[-1], notes=(*marks, *found[-1].notes, *notes))
    return found


def _overview(evaluations: Sequence[Evaluation]) -> Table:
    """Return one row for each run; if there are many cut-offs, only the largest."""
    measures = _all_measures(evaluations)
    if not all(is_grid(evaluation.measures) for evaluation in evaluations):
        return _run_table(evaluations)
    deepest = max(m.k or 0 for m in measures)
    chosen = [m for m in measures if "k" not in dict(m.params) or m.k == deepest]
    more = len(measures) - len(chosen)
    notes = (f"{many(more, 'measure')} at smaller cut-offs: --full (full=True)",)
    return replace(_run_table(evaluations, chosen), notes=notes)


def notes_of(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return the notes of all runs: shared notes once, the others with the name of their run.

    Example:
        >>> import rankgauge
        >>> ev = rankgauge.evaluate({"q1": {"d1"}}, {"q1": ["d1"]}, ["P@1"])
        >>> notes_of([ev, ev])[0]
        '1 query: all judged queries'
    """
    shared = [note for note in evaluations[0].notes if all(note in e.notes for e in evaluations)]
    own = [(e.run_name, note) for e in evaluations for note in e.notes if note not in shared]
    return shared + [f"{name}: {note}" for name, note in own]


def _short(evaluations: Sequence[Evaluation], notes: Sequence[str]) -> list[str]:
    """Return warnings and the notes shared by all runs; for a single run, its first notes."""
    shared = [note for note in notes if all(note in e.notes for e in evaluations)]
    if len(evaluations) == 1:
        shared = shared[:_NOTES]
    warned = [note for note in notes if note not in shared and "WARNING" in note]
    more = len(notes) - len(shared) - len(warned)
    return [*shared, *warned, *([f"{many(more, 'more note')}: --full (full=True)"] if more else [])]


def _family(measure: Measure) -> str:
    """Return the name of a measure without its cut-off."""
    return str(Measure(measure.name, tuple(p for p in measure.params if p[0] != "k")))


def is_grid(measures: Sequence[Measure]) -> bool:
    """Return whether measures and cut-offs form a mostly complete grid."""
    cut = [measure for measure in measures if "k" in dict(measure.params)]
    families, cutoffs = {_family(m) for m in cut}, {m.k for m in cut}
    cells = len(families) * len(cutoffs)
    return len(families) > 1 and len(cutoffs) > 1 and 2 * len(cut) > cells


def grids(
    title: str, measures: Sequence[Measure], means: Mapping[str, float], best: Collection[Measure] = ()
) -> Iterator[Table]:
    """Yield a table of means (cut-offs by measures), then those without a cut-off.

    Args:
        title: Name of the run.
        measures: Measures.
        means: Means by name of the measure.
        best: Measures by which the run is the best of several.
    """
    cut = [m for m in measures if "k" in dict(m.params)]
    families = list(dict.fromkeys(map(_family, cut)))
    values = {(_family(m), m.k): _cell(m, means[str(m)]) for m in cut}
    cutoffs: list[int] = sorted({int(m.k) for m in cut})  # type: ignore[arg-type] # k is a number
    yield Table(
        columns=("k", *families),
        rows=tuple((k, *(values.get((name, k)) for name in families)) for k in cutoffs),
        title=title,
        best=frozenset(
            (cutoffs.index(m.k), families.index(_family(m)) + 1)  # type: ignore[arg-type] # k is a number
            for m in cut
            if m in best
        ),
        starred=True,
    )
    whole = [m for m in measures if m not in cut]
    if whole:
        yield Table(
            columns=tuple(map(str, whole)),
            rows=(tuple(_cell(m, means[str(m)]) for m in whole),),
            best=frozenset((0, column) for column, m in enumerate(whole) if m in best),
            starred=True,
        )


def _best_of(evaluations: Sequence[Evaluation]) -> list[set[Measure]]:
    """Return for each run the measures by which it is the best."""
    best: list[set[Measure]] = [set() for _ in evaluations]
    if _disjoint(evaluations):
        return best
    means = [evaluation.mean() for evaluation in evaluations]
    for measure in _all_measures(evaluations):
        for place in _ahead(measure, [mean.get(str(measure), math.nan) for mean in means]):
            best[place].add(measure)
    return best


def _disjoint(evaluations: Sequence[Evaluation]) -> bool:
    """Return whether two runs have no query in common, so that neither is better."""
    sets = {evaluation.query_ids: set(evaluation.query_ids) for evaluation in evaluations}
    return any(one.isdisjoint(other) for one, other in itertools.combinations(sets.values(), 2))


def _ahead(measure: Measure, values: Sequence[float]) -> tuple[int, ...]:
    """Return the positions of the best values if there are several values."""
    several = sum(not math.isnan(value) for value in values) > 1
    return measure.best(values) if several else ()


def _all_measures(evaluations: Sequence[Evaluation]) -> tuple[Measure, ...]:
    """Return the measures of all runs, each once; runs may lack some of them."""
    return tuple(dict.fromkeys(m for evaluation in evaluations for m in evaluation.measures))


def _run_table(evaluations: Sequence[Evaluation], measures: Sequence[Measure] | None = None) -> Table:
    measures = measures or _all_measures(evaluations)
    rows = []
    for evaluation in evaluations:
        means = evaluation.mean()
        cells = (_cell(m, means.get(str(m), math.nan)) for m in measures)
        rows.append((evaluation.run_name, *cells))
    return Table(
        columns=("run", *map(str, measures)),
        rows=tuple(rows),
        best=frozenset(
            (row, measures.index(measure) + 1)
            for row, best in enumerate(_best_of(evaluations))
            for measure in best.intersection(measures)
        ),
        starred=True,
    )


def _query_table(evaluations: Sequence[Evaluation]) -> Table:
    many = len(evaluations) > 1
    measures = _all_measures(evaluations)
    rows: list[tuple[Cell, ...]] = []
    for evaluation in evaluations:
        head: tuple[str, ...] = (evaluation.run_name,) if many else ()
        for query, values in zip(evaluation.query_ids, evaluation.per_query.tolist(), strict=True):
            known = dict(zip(evaluation.measures, values, strict=True))
            rows.append((*head, query, *(_cell(m, known.get(m, math.nan)) for m in measures)))
    return Table(
        columns=(*(("run",) if many else ()), "query", *map(str, measures)),
        rows=tuple(rows),
        title="" if many else evaluations[0].run_name,
    )


def _cell(measure: Measure, value: float) -> Cell:
    if math.isnan(value):
        return None
    return int(value) if measure.declaration.mean == "sum" else value


def _data(evaluations: Sequence[Evaluation], options: Options) -> Table:
    return _query_table(evaluations) if options.per_query else _run_table(evaluations)


def _trec(evaluations: Sequence[Evaluation], options: Options) -> str:
    """Format the values as trec_eval prints them."""
    lines = (_trec_lines(one, per_query=options.per_query) for one in evaluations)
    return "".join(line for of_one in lines for line in of_one)


def _trec_lines(evaluation: Evaluation, *, per_query: bool) -> Iterator[str]:
    names = [measure.trec_name() or str(measure) for measure in evaluation.measures]
    if per_query:
        for query, values in zip(evaluation.query_ids, evaluation.per_query.tolist(), strict=True):
            for name, measure, value in zip(names, evaluation.measures, values, strict=True):
                yield _trec_line(name, query, measure, value)
    yield f"{'runid':<22}\tall\t{for_terminal(evaluation.run_name)}\n"
    yield f"{'num_q':<22}\tall\t{len(evaluation.query_ids)}\n"
    means = evaluation.mean()
    for name, measure in zip(names, evaluation.measures, strict=True):
        yield _trec_line(name, "all", measure, means[str(measure)])


def _trec_line(name: str, query: str, measure: Measure, value: float) -> str:
    value = 0.0 if math.isnan(value) else value  # trec_eval has no undefined values
    shown = f"{value:.0f}" if measure.declaration.mean == "sum" else f"{value:6.4f}"
    return f"{name:<22}\t{for_terminal(query)}\t{shown}\n"


REPORTS = {Evaluation: Report(_blocks, _data, {"trec": _trec}, several=True)}

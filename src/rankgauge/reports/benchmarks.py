"""A benchmark as text: the comparison of its runs, then latency and cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import get_args

from rankgauge.benchmark.comparison import BenchmarkComparison, cost_table
from rankgauge.benchmark.run import BenchmarkRun
from rankgauge.comparison.comparison import Comparison
from rankgauge.core.grammar import unknown
from rankgauge.core.text import many
from rankgauge.diagnosis.diagnosis import Diagnosis
from rankgauge.rendering.tables import BEST, Cell, Form, Table, render
from rankgauge.reports.comparisons import report_comparison
from rankgauge.reports.diagnoses import report_diagnosis
from rankgauge.reports.sections import Section

__all__ = ["benchmark_section", "report_benchmark", "report_costs"]

_WIDTH = 100


def report_benchmark(
    found: BenchmarkComparison,
    form: str = "table",
    *,
    diagnosis: Diagnosis | None = None,
    full: bool = False,
    color: bool = False,
) -> str:
    """Runs of a benchmark side by side as text: means, conclusion, warnings, likely cause.

    Args:
        found: Made by :meth:`Benchmark.compare`.
        form: ``table`` (for a terminal), ``markdown``, ``latex``, ``html``, ``csv`` (a line for
            each run: means, latency, cost) or ``json`` (all of it, see
            :meth:`BenchmarkComparison.to_json`).
        diagnosis: The diagnosis of one of the runs; ``csv`` and ``json`` leave it out.
        full: Also every difference, latency and cost, and the whole diagnosis; ``csv`` and ``json``
            are whole anyway.
        color: Whether a table may use the colours of a terminal.

    Raises:
        UnknownName: For another form.
    """
    if form not in get_args(Form):
        raise unknown("form", form, get_args(Form))
    if form == "json":
        return found.to_json() + "\n"
    if form == "csv":
        return render(_data(found), form)
    if not full:
        return _overview(found, diagnosis, form, color=color)
    costs = found.cost_table()
    costs = replace(costs, notes=(*costs.notes, *found.notes))
    parts = [report_comparison(found.comparison, form, color=color)]
    parts.append(render(costs, form, color=color))
    if diagnosis is not None:
        parts.append(report_diagnosis(diagnosis, form, color=color, full=True))
    return "\n".join(parts)


def _overview(
    found: BenchmarkComparison, diagnosis: Diagnosis | None, form: str, *, color: bool
) -> str:
    """The means with the median latency, and below them what decides, on one screen."""
    means, costs, first = found.table(), found.cost_table(), found.runs[0]
    rows = means.rows
    for head in ("p50 ms", "failed"):
        if head in costs.columns:
            place = costs.columns.index(head)
            rows += ((head, *(row[place] for row in costs.rows)),)
    documents = first.settings.get("collection", {}).get("documents")
    title = (
        f"{many(first.tally.queries, 'query')}"
        f"{f', {documents:,} documents' if documents else ''}, k = {first.settings.get('k')}"
    )
    lines = [*_conclusions(found.comparison), *found.notes]
    if diagnosis is not None:
        lines.append(diagnosis.summary())
    marks = (BEST, *means.notes) if form == "table" else means.notes
    table = replace(
        means,
        rows=rows,
        title=title,
        notes=(*lines, *marks),
        width=_WIDTH,
        right=frozenset(range(1, len(means.columns))),
    )
    return render(table, form, color=color)


def _conclusions(comparison: Comparison) -> Iterator[str]:
    """What withholds a verdict, the conclusion about the runs, and the first of the warnings."""
    withheld = len(comparison.withheld)
    yield from comparison.sentences[:withheld]
    conclusions = comparison.sentences[withheld:]
    # Of two runs the first sentence names the better one; the second has the difference, too.
    yield from conclusions[1:2] if len(comparison.evaluations) == 2 else conclusions[:1]
    for text in comparison.warnings[:1]:
        yield f"WARNING: {text}"
    more = len(comparison.warnings) - 1
    if more > 0:
        yield f"{many(more, 'more warning')}: --full"


def report_costs(runs: Sequence[BenchmarkRun], form: str = "table", *, color: bool = False) -> str:
    """Latency, index and cost of runs as text, with what was seen when they were run.

    Args:
        runs: Made by :meth:`Benchmark.run`.
        form: As for :func:`report_benchmark`, but for ``json``.
        color: Whether a table may use the colours of a terminal.

    Raises:
        UnknownName: For another form.
    """
    if form not in get_args(Form):
        raise unknown("form", form, get_args(Form))
    table = cost_table(runs)
    notes = [f"{run.name}: {note}" for run in runs for note in run.notes]
    return render(replace(table, notes=(*table.notes, *notes)), form, color=color)


def benchmark_section(found: BenchmarkComparison, *, plots: bool = True) -> Section:
    """Latency and cost as a part of a report, see :func:`html_report`.

    Args:
        found: Made by :meth:`Benchmark.compare`.
        plots: Whether quality is drawn over latency, where all runs were timed and there are more
            than two; needs ``rankgauge[plots]`` when the report is made.
    """
    table = replace(found.cost_table(), title="")
    drawn = (found.plot(),) if plots and found.pareto and len(found.runs) > 2 else ()
    return Section("Latency and cost", (table, *drawn, *found.notes))


def _data(found: BenchmarkComparison) -> Table:
    """A row for each run, in plain numbers: seconds, bytes."""
    measures = [str(measure) for measure in found.comparison.evaluations[0].measures]
    rows: list[tuple[Cell, ...]] = []
    for evaluation, run in zip(found.comparison.evaluations, found.runs, strict=True):
        mean = evaluation.mean()
        latency, index = run.latency, run.index
        quantiles = [
            None if latency is None or (one := getattr(latency, name)) is None else one.value
            for name in ("p50", "p95", "p99")
        ]
        rows.append(
            (
                run.name,
                *(mean[measure] for measure in measures),
                *quantiles,
                None if latency is None else latency.throughput,
                None if index is None else index.seconds,
                None if index is None else index.size,
                run.cost,
                run.tally.failed + run.tally.missing,
                "yes" if run.name in found.pareto else "no",
            )
        )
    heads = (
        "p50_seconds", "p95_seconds", "p99_seconds", "queries_per_second", "index_seconds",
        "index_bytes", "cost_per_1000_queries", "failed", "pareto",
    )  # fmt: skip
    return Table(columns=("run", *measures, *heads), rows=tuple(rows), digits=6)

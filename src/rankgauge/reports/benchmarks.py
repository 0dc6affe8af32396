"""A benchmark as text: the comparison of its runs, then latency and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from rankgauge.bench.compared import BenchmarkComparison, cost_table
from rankgauge.bench.outcome import BenchmarkRun
from rankgauge.catalogue import unknown
from rankgauge.render import Cell, Form, Table, render
from rankgauge.reports.comparisons import report_comparison
from rankgauge.reports.sections import Section

__all__ = ["benchmark_section", "report_benchmark", "report_costs"]


def report_benchmark(
    found: BenchmarkComparison, form: str = "table", *, described: bool = True, color: bool = False
) -> str:
    """Runs of a benchmark side by side as text.

    Args:
        found: Made by :meth:`Benchmark.compare`.
        form: ``table`` (for a terminal), ``markdown``, ``latex``, ``html``, ``csv`` (a line for
            each run: means, latency, cost) or ``json`` (all of it, see
            :meth:`BenchmarkComparison.to_json`).
        described: Whether differences that are not tested are shown too.
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
    quality = report_comparison(found.comparison, form, described=described, color=color)
    costs = found.cost_table()
    costs = replace(costs, notes=(*costs.notes, *found.notes))
    return f"{quality}\n{render(costs, form, color=color)}"


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

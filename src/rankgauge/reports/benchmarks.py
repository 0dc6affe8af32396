"""Reports on benchmarks: comparison of runs, latency, and cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rankgauge.benchmark.comparison import BenchmarkComparison, cost_table
from rankgauge.benchmark.exploration import Exploration
from rankgauge.benchmark.run import BenchmarkRun
from rankgauge.core.text import many
from rankgauge.rendering.tables import Detail, Table
from rankgauge.reports.comparisons import comparison_tables
from rankgauge.reports.diagnoses import diagnosis_tables
from rankgauge.reports.registry import Options, Report
from rankgauge.reports.sections import Section


def _blocks(comparison: BenchmarkComparison, options: Options) -> Iterator[Table]:
    """Yield the means with the median latency and the conclusion; differences, costs, and diagnosis are details."""
    costs, first, compared = comparison.cost_table(), comparison.runs[0], comparison.comparison
    means, *differences, conclusions = comparison_tables(compared, options)
    places = {head: costs.columns.index(head) for head in ("p50 ms", "failed") if head in costs.columns}
    rows = (*means.rows, *((head, *(row[place] for row in costs.rows)) for head, place in places.items()))
    counts = first.settings.get("collection", {})
    documents, asked = counts.get("documents"), counts.get("queries", 0)
    run = first.tally.queries
    queries = f"{run:,} of {asked:,} queries have judgments" if asked > run else many(run, "query")
    size = f", {documents:,} documents" if documents else ""
    diagnosis = options.diagnosis
    yield replace(
        means,
        rows=rows,
        title=f"{queries}{size}, k = {first.settings.get('k')}",
        right=frozenset(range(1, len(means.columns))),
        notes=(
            *means.notes,
            *compared.withheld_sentences,
            *conclusions.notes,
            *([diagnosis.summary()] if diagnosis else []),
        ),
    )
    yield from (replace(table, title=Detail(table.title)) for table in differences)
    yield replace(costs, title=Detail(costs.title), notes=(*costs.notes, *comparison.notes))
    if diagnosis is not None:
        yield from (replace(table, title=Detail(table.title)) for table in diagnosis_tables(diagnosis))


def benchmark_section(comparison: BenchmarkComparison, *, plots: bool = True) -> Section:
    """Return latency and cost as a section of a report (see :func:`html_report`).

    Args:
        comparison: Returned by :meth:`Benchmark.compare`.
        plots: Whether to plot quality over latency if there are more than two runs and all were
            timed; needs ``rankgauge[plots]``.
    """
    table = replace(comparison.cost_table(), title="")
    drawn = (comparison.plot(),) if plots and comparison.pareto and len(comparison.runs) > 2 else ()
    return Section("Latency and cost", (table, *drawn, *comparison.notes))


def _costs(runs: tuple[BenchmarkRun, ...], _options: Options) -> Iterator[Table]:
    """Yield latency, index, and cost, with remarks on the runs."""
    table = cost_table(runs)
    notes = [f"{run.name}: {note}" for run in runs for note in run.notes]
    yield replace(table, notes=(*table.notes, *notes))


def _exploration(exploration: Exploration, options: Options) -> Iterator[Table]:
    """Yield the trials, the best trial on other queries, and the effect of single settings."""
    yield exploration.table()
    if exploration.comparison is not None:
        title = f"best and before on {len(exploration.test)} test queries"
        yield replace(exploration.comparison.differences_table(), title=Detail(title))
        if options.short:  # the diagnoses take time
            yield Table((), (), title=Detail("failure patterns of both configurations"))
        else:
            yield exploration.before_after(options.collection, k=options.k)
    ablation = exploration.ablation()
    if ablation.rows:
        yield replace(ablation, title=Detail(ablation.title))


REPORTS = {
    "BenchmarkComparison": Report(_blocks),
    "BenchmarkRun": Report(_costs, lambda runs, _options: cost_table(runs), several=True),
    "Exploration": Report(_exploration),
}

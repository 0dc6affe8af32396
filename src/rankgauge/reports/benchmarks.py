"""Reports on benchmarks: comparison of runs, latency, and cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rankgauge.benchmark.comparison import BenchmarkComparison, cost_table
from rankgauge.benchmark.exploration import Exploration
from rankgauge.benchmark.run import BenchmarkRun
from rankgauge.core.text import many
from rankgauge.rendering.tables import BEST, Table
from rankgauge.reports.comparisons import comparison_tables, conclusions
from rankgauge.reports.diagnoses import diagnosis_tables
from rankgauge.reports.registry import Options, Report
from rankgauge.reports.sections import Section

_TRIALS, _SENTENCES = 8, 3  # number of rows in a short report on an exploration


def _blocks(found: BenchmarkComparison, options: Options) -> Iterator[Table]:
    """Yield the full report, or means, median latency, and conclusion on one screen."""
    if not options.full:
        yield _overview(found, options)
        return
    costs = found.cost_table()
    yield from comparison_tables(found.comparison, options)
    yield replace(costs, notes=(*costs.notes, *found.notes))
    if options.diagnosis is not None:
        yield from diagnosis_tables(options.diagnosis)


def _overview(found: BenchmarkComparison, options: Options) -> Table:
    """Return the means with the median latency and, below, the conclusion."""
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
    compared = found.comparison
    lines = [*compared.withheld_sentences, *conclusions(compared)]
    if options.diagnosis is not None:
        lines.append(options.diagnosis.summary())
    left = [many(n, "more warning")] if (n := len(compared.warnings) - 1) > 0 else []
    left += [many(n, "note")] if (n := len(found.notes)) else []
    if left:
        lines.append(f"{', '.join(left)}: --full (full=True)")
    marks = (BEST, *means.notes) if options.on_terminal else means.notes
    return replace(means, rows=rows, title=title, notes=(*lines, *marks), right=frozenset(range(1, len(means.columns))))


def benchmark_section(found: BenchmarkComparison, *, plots: bool = True) -> Section:
    """Return latency and cost as a section of a report (see :func:`html_report`).

    Args:
        found: Returned by :meth:`Benchmark.compare`.
        plots: Whether to plot quality over latency if there are more than two runs and all were
            timed; needs ``rankgauge[plots]``.
    """
    table = replace(found.cost_table(), title="")
    drawn = (found.plot(),) if plots and found.pareto and len(found.runs) > 2 else ()
    return Section("Latency and cost", (table, *drawn, *found.notes))


def _costs(runs: tuple[BenchmarkRun, ...], _options: Options) -> Iterator[Table]:
    """Yield latency, index, and cost, with remarks on the runs."""
    table = cost_table(runs)
    notes = [f"{run.name}: {note}" for run in runs for note in run.notes]
    yield replace(table, notes=(*table.notes, *notes))


def _exploration(found: Exploration, options: Options) -> Iterator[Table]:
    """Yield the trials, the best trial on other queries, and the effect of single settings."""
    table = found.table()
    if options.short:
        more = "failure patterns of both configurations, and one setting changed at a time: --full"
        left = [many(n, "more warning")] if (n := len(found.warnings) - 1) > 0 else []
        yield replace(
            table.part(rows=range(min(len(table.rows), _TRIALS))),
            notes=(
                *found.sentences[:_SENTENCES],
                *(() if found.comparison is None else list(conclusions(found.comparison))[:1]),
                *(f"WARNING: {text}" for text in found.warnings[:1]),
                f"{', '.join([*left, more])} (full=True)",
            ),
        )
        return
    yield table
    if found.comparison is not None:
        title = f"best and before on {len(found.test)} test queries"
        yield replace(found.comparison.differences_table(), title=title)
        yield found.before_after(options.collection, k=options.k)
    ablation = found.ablation()
    if ablation.rows:
        yield ablation


REPORTS = {
    BenchmarkComparison: Report(_blocks),
    BenchmarkRun: Report(_costs, lambda runs, _options: cost_table(runs), several=True),
    Exploration: Report(_exploration),
}

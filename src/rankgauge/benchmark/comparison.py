"""Comparison of the runs of a benchmark: quality with uncertainty, latency, and cost."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankgauge.benchmark.run import BenchmarkRun, Errors
from rankgauge.comparison.comparison import COMPARED, Comparison, compare
from rankgauge.comparison.differences import Design
from rankgauge.core.text import keep, many
from rankgauge.diagnosis.diagnosis import Diagnosis
from rankgauge.errors import InputError
from rankgauge.evaluation.context import make_plan
from rankgauge.measures.measure import Measure
from rankgauge.rendering.plot_drawing import Panel, Plot, Series
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Cell, Table, by_column

_LOG = 20


@dataclass(frozen=True)
class ParetoPoint:
    """Quality and latency of a run or configuration."""

    name: str  # name of the run or configuration
    quality: float  # mean of a measure
    latency: float  # seconds per query


def pareto_front(points: Iterable[ParetoPoint], *, lower: bool = False) -> tuple[ParetoPoint, ...]:
    """Return the points that no other point dominates in quality and latency.

    Example:
        >>> rows = [("a", 0.5, 0.1), ("b", 0.6, 0.2), ("c", 0.5, 0.3)]
        >>> [point.name for point in pareto_front(ParetoPoint(*row) for row in rows)]
        ['a', 'b']
    """
    sign = -1 if lower else 1
    known = [p for p in points if not (math.isnan(p.quality) or math.isnan(p.latency))]
    front: list[ParetoPoint] = []
    # Fastest first, the best of equally fast points first: a point that beats all faster ones is on
    # the front.
    for point in sorted(known, key=lambda p: (p.latency, -sign * p.quality)):
        last = front[-1] if front else None
        same = last and (last.latency, last.quality) == (point.latency, point.quality)
        if last is None or same or sign * point.quality > sign * last.quality:
            front.append(point)
    return tuple(front)


def plot_pareto(points: Sequence[ParetoPoint], measure: str, *, lower: bool = False) -> Plot:
    """Plot quality over latency with the Pareto front (needs ``rankgauge[plots]``)."""
    front = pareto_front(points, lower=lower)
    if not front:
        raise InputError(
            "no configuration has a quality and a latency",
            where="plot of the Pareto front",
            fix="measure the latency of each query",
        )
    fast = min(p.latency for p in front)
    known = [p for p in points if not (math.isnan(p.quality) or math.isnan(p.latency))]
    others = [p for p in known if p not in front]
    panel = Panel(
        "points",
        keep(_series("on the front", front), others and _series("others", others)),
        across="milliseconds per query",
        down=measure,
        log=fast > 0 and max(p.latency for p in known) / fast > _LOG,
    )
    text = "; ".join(f"{p.name}: {p.quality:.3f} in {p.latency * 1000:.3g} ms" for p in front)
    return Plot(
        "pareto",
        f"{measure} and latency of {many(len(known), 'configuration')}",
        f"Points. On the front, fastest first: {text}.",
        (panel,),
        "On the front: no other configuration is at least as good in both, and better in one.",
    )


def _series(name: str, points: Sequence[ParetoPoint]) -> Series:
    return Series(
        name,
        tuple(p.quality for p in points),
        tuple(p.latency * 1000 for p in points),
        texts=tuple(p.name for p in points),
    )


# Above this number of hits, runs are evaluated in blocks to save memory.
_IN_MEMORY = 20_000_000
_MIB = 2**20


@dataclass(frozen=True)
class BenchmarkComparison(Result):
    """Result of :meth:`Benchmark.compare`.

    Attributes:
        comparison: The comparison of quality: means, differences, intervals, p-values, sentences.
        runs: The runs in the same order, with latency, index, and cost.
        pareto: Names of the runs on the Pareto front of quality and latency (p50); empty if not all
            runs were timed.
        notes: Observations during the runs.
    """

    _schema = "rankgauge/benchmark/1"
    _attributes = "comparison runs pareto notes"

    comparison: Comparison
    runs: tuple[BenchmarkRun, ...]
    pareto: tuple[str, ...]
    notes: tuple[str, ...]

    def table(self) -> Table:
        """Return the means, with a row per measure and a column per run."""
        return self.comparison.table()

    def cost_table(self) -> Table:
        """Return latency, throughput, index, and cost, with a row per run."""
        marked = self.pareto if len(self.runs) > 2 else ()
        return cost_table(self.runs, pareto=marked, primary=str(self.comparison.primary))

    def data_table(self) -> Table:
        """Return one row for each run with unformatted numbers (seconds, bytes)."""
        means = [evaluation.mean() for evaluation in self.comparison.evaluations]
        quantiles = {
            name: [None if run.latency is None else getattr(run.latency, name) for run in self.runs]
            for name in ("p50", "p95", "p99")
        }
        return Table(
            *by_column(
                ("run", (run.name for run in self.runs)),
                *((measure, [mean[measure] for mean in means]) for measure in means[0]),
                *((f"{name}_seconds", [e and e.value for e in column]) for name, column in quantiles.items()),
                ("queries_per_second", (None if run.latency is None else run.latency.throughput for run in self.runs)),
                ("index_seconds", (None if run.index is None else run.index.seconds for run in self.runs)),
                ("index_bytes", (None if run.index is None else run.index.size for run in self.runs)),
                ("cost_per_1000_queries", (run.cost for run in self.runs)),
                ("failed", (run.tally.failed + run.tally.missing for run in self.runs)),
                ("pareto", ("yes" if run.name in self.pareto else "no" for run in self.runs)),
            ),
            digits=6,
        )

    def plot(self) -> Plot:
        """Plot quality over latency (p50) with the Pareto front (needs ``rankgauge[plots]``).

        Raises:
            InputError: If not every run was timed.
        """
        points, measure = _points(self.runs, self.comparison), self.comparison.primary
        return plot_pareto(points, str(measure), lower=measure.declaration.better == "lower")

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        return self.comparison.summary()


def compare_runs(
    runs: Sequence[BenchmarkRun],
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    baseline: str | None = None,
    design: Design | None = None,
    errors: Errors = "raise",
) -> BenchmarkComparison:
    """Compare the runs of a benchmark with a baseline; arguments as for `Benchmark.compare`."""
    if len(runs) < 2:
        raise InputError(
            f"got {many(len(runs), 'run')}, expected two or more", where="compare", fix="run another retriever"
        )
    for run in runs:
        if run.queries != runs[0].queries:
            raise InputError(
                f"{run.name!r} and {runs[0].name!r} were run on different queries",
                where="compare",
                fix="run both again: responses in the store are reused",
            )
    shown = make_plan(COMPARED if measures is None else measures).measures
    chosen = Design(shown[:1], baseline or runs[0].name) if design is None else design
    wanted = tuple(dict.fromkeys([*chosen.tested, *shown]))
    in_blocks = max(len(run.queries) * run.settings.get("k", 1) for run in runs) > _IN_MEMORY
    comparison = compare(
        [run.evaluate(wanted, errors=errors) for run in runs] if in_blocks else runs[0].qrels,
        None if in_blocks else [run.ranked(errors) for run in runs],
        wanted,
        tested=chosen.tested,
        baseline=chosen.baseline,
        pairs=chosen.pairs,
        test=chosen.test,
        correction=chosen.correction,
        interval=chosen.interval,
        draws=chosen.draws,
    )
    known = {evaluation.run_name: evaluation.input_findings for evaluation in comparison.evaluations}
    findings = {run.name: run.tally.findings(known[run.name]) for run in runs}
    if any(findings.values()):
        comparison = comparison.with_findings(findings)
    lower = comparison.primary.declaration.better == "lower"
    best = {point.name for point in pareto_front(_points(runs, comparison), lower=lower)}
    return BenchmarkComparison(
        comparison=comparison,
        runs=tuple(runs),
        pareto=tuple(run.name for run in runs if run.name in best),
        notes=tuple(_notes(runs, comparison)),
    )


def _points(runs: Sequence[BenchmarkRun], comparison: Comparison) -> list[ParetoPoint]:
    """Return quality and latency of each run, or nothing if any run was not timed."""
    means = [evaluation.mean()[str(comparison.primary)] for evaluation in comparison.evaluations]
    points = [
        ParetoPoint(run.name, mean, run.latency.p50.value)
        for run, mean in zip(runs, means, strict=True)
        if run.latency is not None and run.latency.p50 is not None
    ]
    return points if len(points) == len(runs) else []


def changed_settings(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the dotted names of the settings in which two retrievers differ.

    Example:
        >>> changed_settings({"type": "bm25", "k1": 0.9}, {"type": "bm25", "k1": 1.2, "b": 0.4})
        ('b', 'k1')
    """
    flat = [dict(_flat(settings, "")) for settings in (first, second)]
    names = sorted(flat[0].keys() | flat[1].keys())
    missing = object()
    return tuple(n for n in names if flat[0].get(n, missing) != flat[1].get(n, missing))


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key != "versions":  # they may differ, but are not settings
                yield from _flat(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, json.dumps(value, default=str)


def _notes(runs: Sequence[BenchmarkRun], comparison: Comparison) -> Iterator[str]:
    yield from (f"{run.name}: {note}" for run in runs for note in run.notes)
    baseline = next(run for run in runs if run.name == comparison.baseline)
    for run in runs:
        ours, theirs = (r.settings.get("retriever", {}) for r in (run, baseline))
        changed = changed_settings(theirs, ours)
        if "type" in ours and ours["type"] == theirs.get("type") and len(changed) > 1:
            yield (
                f"{run.name} and {baseline.name} differ in {many(len(changed), 'setting')} "
                f"({', '.join(changed)}): their effects cannot be separated"
            )


def before_after(before: Diagnosis, after: Diagnosis) -> Table:
    """Compare means and failure patterns of two diagnoses.

    Example:
        >>> from rankgauge import diagnose
        >>> qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
        >>> old = diagnose(qrels, {"q1": ["x", "y"], "q2": ["x", "d2"]}, k=1)
        >>> new = diagnose(qrels, {"q1": ["d1"], "q2": ["x", "d2"]}, k=1)
        >>> [row[1:] for row in before_after(old, new).rows if row[0] == "rankings cut: queries"]
        [(1, 0, '-1')]
    """
    for word in ("k", "rel", "queries"):
        if getattr(before, word) != getattr(after, word):
            raise InputError(
                f"{word} is {getattr(before, word)} before and {getattr(after, word)} after",
                where="before_after",
                fix="diagnose both runs with the same judgments and k",
            )
    rows: list[tuple[Cell, ...]] = [
        (name, value, after.now[name], f"{after.now[name] - value:+.4f}")
        for name, value in before.now.items()
        if name in after.now
    ]
    withheld = [f"WARNING: {d.run_name}: {reason}" for d in (before, after) for reason in d.withheld]
    if before.failing is not None and after.failing is not None:
        rows.append(
            _counts(f"queries that miss a relevant document in the top {before.k}", before.failing, after.failing)
        )
    # If an input fault explains the numbers of one run, causes are not compared.
    for old, new in () if withheld else zip(before.totals, after.totals, strict=True):
        if not (old.checked and new.checked):
            continue
        if old.queries or new.queries:
            rows.append(_counts(f"{old.cause.name}: queries", old.queries, new.queries))
            if old.documents is not None and new.documents is not None:
                rows.append(_counts(f"{old.cause.name}: documents", old.documents, new.documents))
    return Table(
        columns=("", "before", "after", "change"),
        rows=tuple(rows),
        title=f"{before.run_name} and {after.run_name}, {many(before.queries, 'query')}",
        notes=tuple(dict.fromkeys([*withheld, *(f"not checked: {t}" for t in before.not_checked)])),
    )


def _counts(what: str, before: int, after: int) -> tuple[Cell, ...]:
    return what, before, after, f"{after - before:+d}" if after != before else "0"


# ---- latency and cost


def cost_table(runs: Sequence[BenchmarkRun], *, pareto: Sequence[str] = (), primary: str = "") -> Table:
    """Return latency, throughput, index, and cost, with a row per run and without empty columns."""
    latencies = [run.latency for run in runs]
    indexes = [run.index for run in runs]
    quantiles = {
        f"{name} ms": [getattr(latency, name) if latency else None for latency in latencies]
        for name in ("p50", "p95", "p99")
    }
    recalls = [index.recall if index else None for index in indexes]
    numbers: dict[str, list[float | None]] = {
        **{name: [quantile and quantile.value * 1000 for quantile in column] for name, column in quantiles.items()},
        "queries/s": [latency.throughput if latency else None for latency in latencies],
        "index s": [index.seconds if index else None for index in indexes],
        "index MiB": [index.size / _MIB if index and index.size is not None else None for index in indexes],
        "peak MiB": [index.peak / _MIB if index and index.peak is not None else None for index in indexes],
        # The recall of exact search is 1: the column is shown only if a run is approximate.
        "recall@10": recalls if any(recall is not None and recall < 1 for recall in recalls) else [],
        **{
            f"{unit}/query": [run.usage[unit] / run.asked if unit in run.usage and run.asked else None for run in runs]
            for unit in sorted({unit for run in runs for unit, used in run.usage.items() if used})
        },
        "cost/1,000": [run.cost for run in runs],
    }
    known = {name: column for name, column in numbers.items() if any(number is not None for number in column)}
    failed = [run.tally.failed + run.tally.missing for run in runs]
    columns, rows = by_column(
        ("run", (run.name for run in runs)),
        *((name, [None if n is None else _figures(n) for n in column]) for name, column in known.items()),
        any(failed) and ("failed", map(str, failed)),
    )
    marks = {(row, 0): "°" for row, run in enumerate(runs) if run.name in pareto}
    counts = sorted({len(latency.seconds) for latency in latencies if latency})
    asked = " to ".join(dict.fromkeys(map(str, (*counts[:1], *counts[-1:]))))
    return Table(
        columns,
        rows,
        title="latency and cost",
        notes=keep(
            counts and f"latency: {asked} queries, one at a time; p95 needs 20 queries, p99 needs 100",
            marks and f"° no other run has {primary} as high and p50 as low",
        ),
        marks=marks,
        right=frozenset(range(1, len(columns))),
    )


def _figures(value: float) -> str:
    """Format a number with three significant figures and without an exponent."""
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(decimals, 6)}f}"

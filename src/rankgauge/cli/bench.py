"""``rankgauge bench`` and ``explore``: run and compare retrievers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import (
    Output,
    check_writable,
    make_folder,
    output_format,
    print_message,
    print_text,
    working,
    write_report,
)
from rankgauge.cli.parameters import Count, Positive, command, option
from rankgauge.core.escaping import for_terminal

_ERROR = 2


@command()
def bench(
    *,
    path: str | None = options.project,
    only: tuple[str, ...] = option("Run only this retriever; repeat for more.", "NAME"),
    measures: tuple[str, ...] = options.measures(
        "A measure; repeat for more. The differences of the first are tested.  [default: those of the project]"
    ),
    baseline: str | None = options.baseline,
    resume: bool | None = option(
        "--resume uses all stored responses, including those of a retriever without settings; "
        "--fresh repeats every query.  [default: use responses with the same settings, and "
        "those of an unfinished run if the file of the retriever has not changed]",
        "--resume/--fresh",
    ),
    failed: bool = option("Also repeat failed queries."),
    errors: Literal["raise", "empty"] = option(
        "Reject a run with failed queries, or count them as empty rankings.", default="raise"
    ),
    repeat: Positive = option(
        "Run everything N times without the store, and report whether each retriever returns the same rankings.",
        "N",
        default=1,
    ),
    timed: Count | None = option(
        "Time N queries, one at a time, after the run; 0 for none.  [default: as in the project]", "N"
    ),
    responses: str | None = options.responses,
    trust: bool = options.trust,
    runs_folder: str | None = option(
        "Write each run to this folder as NAME.run, with a header that describes its origin.", "--runs FOLDER"
    ),
    plain: bool = option("Write runs without this header, for trec_eval."),
    diagnosed: str | None = option(
        "Diagnose this run; without a name, the one with the lowest mean.",
        "--diagnose [NAME]",
        is_flag=False,
        flag_value="worst",
    ),
    page: str | None = option("Also write a report as one HTML file.", "--report FILE"),
    saving: options.Saving,
    out: Output = output_format("Show all differences, latency, cost, and the whole diagnosis."),
) -> int:
    """Run the retrievers of a project over its collection and compare them.

    PROJECT is a project file or its folder (default: the project of the current folder or of one
    above it; rankgauge init creates one), or a folder of documents and questions, on which BM25
    (needs rankgauge[bm25]) and vector search are run: with the best model on this machine
    (rankgauge[vectors] has one), or hashing without a model. Responses are stored as they arrive:
    to resume after an interruption, repeat the command.

    \b
    Examples:
      rankgauge bench
      rankgauge bench handbook
      rankgauge bench handbook --diagnose
      rankgauge bench --only hashing --fresh --diagnose
      rankgauge bench --runs runs --report report.html --save
    """
    if failed and resume is False:
        raise click.UsageError("--fresh runs every query again: omit --failed")
    plan = rankgauge.BenchmarkPlan.read(path, trust=trust)
    plan = plan.with_measures(measures) if measures else plan
    project = rankgauge.Project(plan.file.path.parent) if plan.file.data else None
    kept = saving.open(project, default=project is not None)
    _check_targets(page, runs_folder)
    _check_names(plan, baseline, diagnosed)
    rerun: Literal["missing", "failed", "resume", "all"] = "failed" if failed else "missing"
    if resume is not None:
        rerun = "resume" if resume else "all"
    outcome = _ran(plan, project, only, rerun, store=responses, timed=timed)
    benchmark = outcome.bench
    for name, error in outcome.failed.items():
        click.echo(f"error: {for_terminal(name)} was not run: {error}\n", err=True)
    with working("comparing"):
        measured = plan.measures or None
        shown = _PrintedResult.of(benchmark, measured, baseline or plan.baseline, errors)
    shown.print(out, None if diagnosed is None else _diagnosis(benchmark, diagnosed, shown, errors))
    hints = () if plan.file.data or "hashing" not in benchmark.runs else (options.NO_MODEL,)
    for note in (*benchmark.collection.notes, *benchmark.notes, *hints):
        print_message(note)
    if repeat > 1:
        with working(f"running {repeat} times"):
            lines = list(rankgauge.benchmark.repeat_plan(plan, benchmark, repeat, str(shown.primary), errors=errors))
        print_text("".join(f"{for_terminal(line)}\n" for line in lines))
    # The report of a diagnosis ends with what --full adds.
    step = rankgauge.core.next_step("bench", run=shown.worst_and_best[0])
    out.print_next_step(step if diagnosed is None else "")
    if runs_folder is not None:
        _write(list(benchmark.runs.values()), Path(runs_folder), errors, head=not plain)
    if page is not None:
        write_report(page, shown.page(benchmark, errors, diagnosed))
        print_message(f"wrote {page}")
    if kept is not None:
        for run, evaluation in zip(shown.runs, shown.evaluations, strict=True):
            collection = None if project is None else project.collection
            saving.add(
                kept, evaluation, qrels=run.qrels, run=run.ranked(errors), collection=collection, project=project
            )
    return _ERROR if outcome.failed else 0


def _check_targets(page: str | None, folder: str | None) -> None:
    """Reject files and folders that cannot be written, before any work is done."""
    check_writable(page)
    if folder is not None:
        make_folder(folder)


def _check_names(plan: rankgauge.BenchmarkPlan, baseline: str | None, diagnosed: str | None) -> None:
    """Reject unknown names before any search."""
    known = [retriever.name for retriever in plan.retrievers]
    asked = {"--baseline": baseline, "--diagnose": None if diagnosed == "worst" else diagnosed}
    for place, name in asked.items():
        if name is not None and name not in known:
            raise rankgauge.InputError(
                f"unknown retriever of the project {name!r}", where=place, fix=f"retrievers are: {', '.join(known)}"
            )


def _ran(
    plan: rankgauge.BenchmarkPlan,
    project: rankgauge.Project | None,
    only: Sequence[str],
    rerun: Literal["missing", "failed", "resume", "all"],
    *,
    store: str | None,
    timed: int | None,
) -> rankgauge.benchmark.PlanOutcome:
    try:
        with working("reading the collection"):
            given = (None, None) if project is None else (project.collection, project.judgments)
            bench = plan.load(*given, store=store)
        return rankgauge.benchmark.run_plan(plan, only=only, rerun=rerun, store=store, timed=timed, bench=bench)
    except KeyboardInterrupt:
        print_message(
            f"stopped; responses are stored in {store or plan.store}: the same command continues from there "
            "(add --resume for a retriever without settings whose code cannot be compared)"
        )
        raise


@dataclass(frozen=True)
class _PrintedResult:
    """Result to print: a comparison, or the evaluation of a single run."""

    runs: Sequence[rankgauge.benchmark.BenchmarkRun]
    evaluations: Sequence[rankgauge.Evaluation]
    comparison: rankgauge.benchmark.BenchmarkComparison | None

    @classmethod
    def of(
        cls,
        bench: rankgauge.Benchmark,
        measures: Sequence[str] | None,
        baseline: str | None,
        errors: Literal["raise", "empty"],
    ) -> _PrintedResult:
        runs = list(bench.runs.values())
        if len(runs) == 1:
            return cls(runs, [runs[0].evaluate(measures, errors=errors)], None)
        # A baseline excluded by --only is not an error.
        chosen = baseline if baseline in bench.runs else None
        comparison = bench.compare(measures, baseline=chosen, errors=errors)
        return cls(runs, comparison.comparison.evaluations, comparison)

    @property
    def primary(self) -> rankgauge.Measure:
        return self.evaluations[0].measures[0]

    @property
    def worst_and_best(self) -> tuple[str, str]:
        sign = -1 if self.primary.declaration.better == "lower" else 1
        means = {e.run_name: sign * e.mean()[str(self.primary)] for e in self.evaluations}
        return min(means, key=means.__getitem__), max(means, key=means.__getitem__)

    def print(self, out: Output, diagnosis: rankgauge.diagnosis.Diagnosis | None) -> None:
        """Print the comparison, or the evaluation and the cost, then the diagnosis."""
        report_options = rankgauge.reports.Options(diagnosis=diagnosis)
        if self.comparison is not None:
            out.print(self.comparison, report_options)
            if not out.is_data:
                return
        else:
            out.print(self.evaluations)
            if not out.is_data:
                out.print_plain("\n")
                out.print(self.runs)
        if diagnosis is None or out.quiet:
            return
        out.print_plain("\n")
        if out.format == "table" and not out.full:
            print_text(f"{for_terminal(diagnosis.summary())}\n")
        else:
            out.print(diagnosis, report_options)

    def page(self, bench: rankgauge.Benchmark, errors: Literal["raise", "empty"], diagnosed: str | None) -> str:
        comparison = self.comparison
        return rankgauge.html_report(
            bench.qrels,
            [run.ranked(errors) for run in self.runs],
            result=self.evaluations[0] if comparison is None else comparison.comparison,
            collection=bench.collection if bench.collection.documents else None,
            diagnosed=diagnosed,
            sections=() if comparison is None else (rankgauge.reports.benchmark_section(comparison),),
        )


def _diagnosis(
    bench: rankgauge.Benchmark, name: str, shown: _PrintedResult, errors: Literal["raise", "empty"]
) -> rankgauge.diagnosis.Diagnosis:
    worst, best = shown.worst_and_best
    run = bench.runs.get(worst if name == "worst" else name)
    if run is None:
        raise rankgauge.InputError(
            f"unknown run {name!r}", where="--diagnose", fix=f"runs are: {', '.join(bench.runs)}"
        )
    return rankgauge.diagnose(
        bench.qrels,
        run.ranked(errors),
        bench.collection,
        measure=shown.primary,
        worst=2,
        also=bench.runs[best].ranked(errors) if run.name != best else None,
    )


def _write(
    runs: Sequence[rankgauge.benchmark.BenchmarkRun], folder: Path, errors: Literal["raise", "empty"], *, head: bool
) -> None:
    for run in runs:
        target = folder / f"{run.name.replace('/', '-')}.run"
        rankgauge.benchmark.write_benchmark_run(run, target, errors=errors, head=head)
    print_message(f"wrote {len(runs)} run{'s' if len(runs) > 1 else ''} to {folder}")


@command()
def explore(
    *,
    path: str | None = options.project,
    responses: str | None = options.responses,
    trust: bool = options.trust,
    timed: Count = option("Time N queries, one at a time, with each configuration; 0 for none.", "N", default=50),
    k: Positive = option("The cut-off for failure patterns of the current and the best configuration.", default=5),
    out: Output = output_format(
        "Show all configurations, failure patterns of the current and the best one, and single settings."
    ),
) -> None:
    """Try the configurations in the table [explore] of a project, and choose the best.

    The best configuration is chosen on one part of the queries and compared with the current
    configuration on the other part, because the best of many is partly luck. After an interruption
    or at the time limit, the results so far are printed; to continue, repeat the command.

    \b
    In the project:
      [explore]
      retriever = "bm25"
      method = "grid"
      [explore.space]
      k1 = [0.6, 0.9, 1.2]
      b = [0.4, 0.75]

    \b
    Examples:
      rankgauge explore
      rankgauge explore handbook/rankgauge.toml --as markdown
    """
    plan = rankgauge.BenchmarkPlan.read(path, trust=trust)
    exploration, bench = rankgauge.benchmark.explore_plan(plan, store=responses, timed=timed)
    out.print(exploration, rankgauge.reports.Options(collection=bench.collection, k=k))

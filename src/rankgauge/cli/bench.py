"""``rankgauge bench``: run and compare retrievers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import (
    check_writable,
    print_message,
    print_result,
    print_text,
    quiet,
    working,
    write_report,
)
from rankgauge.core.escaping import for_terminal

_ERROR = 2


@click.command(short_help="Run retrievers over a collection and compare them.")
@click.argument("path", metavar="PLAN")
@click.option(
    "--only", multiple=True, metavar="NAME", help="Run only this retriever; repeat for more."
)
@options.measures(
    "A measure; repeat for more. The differences of the first are tested.  [default: those of "
    "the plan]"
)
@options.baseline()
@click.option(
    "--resume/--fresh", default=None,
    help="--resume uses all stored responses, including those of a retriever without settings; "
    "--fresh repeats every query.  [default: use responses with the same settings, and those of "
    "an unfinished run if the file of the retriever has not changed]",
)  # fmt: skip
@click.option("--failed", is_flag=True, help="Also repeat failed queries.")
@click.option(
    "--errors", type=click.Choice(["raise", "empty"]), default="raise", show_default=True,
    help="Reject a run with failed queries, or count them as empty rankings.",
)  # fmt: skip
@click.option(
    "--repeat", type=click.IntRange(1), default=1, metavar="N",
    help=(
        "Run everything N times without the store, and report whether each retriever returns "
        "the same rankings."
    ),
)  # fmt: skip
@click.option(
    "--timed", type=click.IntRange(0), metavar="N",
    help="Time N queries, one at a time, after the run; 0 for none.  [default: as in the plan]",
)  # fmt: skip
@click.option(
    "--store",
    "folder",
    metavar="FOLDER",
    help="The folder in which responses are stored.  [default: as in the plan]",
)
@click.option(
    "--runs", "runs_folder", metavar="FOLDER",
    help="Write each run to this folder as NAME.run, with a header that describes its origin.",
)  # fmt: skip
@click.option("--plain", is_flag=True, help="Write runs without this header, for trec_eval.")
@click.option(
    "--diagnose", "diagnosed", is_flag=False, flag_value="worst", metavar="[NAME]",
    help="Diagnose this run; without a name, the one with the lowest mean.",
)  # fmt: skip
@click.option("--report", "page", metavar="FILE", help="Also write a report as one HTML file.")
@options.jobs
@options.save
@options.store
@options.label
@options.output_format()
@click.option(
    "--full", is_flag=True,
    help="Show all differences, latency, cost, and the whole diagnosis.",
)  # fmt: skip
def bench(
    path: str,
    only: tuple[str, ...],
    measures: tuple[str, ...],
    baseline: str | None,
    resume: bool | None,
    failed: bool,
    errors: Literal["raise", "empty"],
    repeat: int,
    timed: int | None,
    folder: str | None,
    runs_folder: str | None,
    plain: bool,
    diagnosed: str | None,
    page: str | None,
    jobs: int,
    save: bool,
    store: str | None,
    label: str,
    format: str,
    full: bool,
) -> int:
    """Run the retrievers of PLAN over its collection and compare them.

    PLAN is a TOML file, or a folder of documents and questions, on which BM25 (needs
    rankgauge[bm25]) and hashed dense vectors are run. Responses are stored as they arrive: to
    resume after an interruption, repeat the command.

    \b
    A plan:
      collection = "handbook"
      measures = ["nDCG@10", "R@10"]
      [retrievers.bm25]
      type = "bm25"
      [retrievers.dense]
      type = "dense"
      encoder = { type = "hashing" }

    \b
    Examples:
      rankgauge bench handbook --diagnose
      rankgauge bench plan.toml
      rankgauge bench plan.toml --only dense --fresh --diagnose
      rankgauge bench plan.toml --runs runs --report report.html --save
    """
    _check(save or not (store or label), resume is not False or not failed, page, runs_folder)
    plan = rankgauge.BenchmarkPlan.read(path)
    plan = plan.with_measures(measures) if measures else plan
    _check_names(plan, baseline, diagnosed)
    kept = rankgauge.History.open(store) if save else None
    rerun: Literal["missing", "failed", "resume", "all"] = "failed" if failed else "missing"
    if resume is not None:
        rerun = "resume" if resume else "all"
    outcome = _ran(plan, only, rerun, folder, timed)
    made = outcome.bench
    for name, error in outcome.failed.items():
        click.echo(f"error: {for_terminal(name)} was not run: {error}\n", err=True)
    with working("comparing"):
        measured = plan.measures or None
        first = baseline or plan.baseline
        shown = _PrintedResult.of(made, measured, first, errors, jobs=jobs)
    found = None if diagnosed is None else _diagnosis(made, diagnosed, shown, errors)
    shown.print(format, found, full=full)
    for note in made.notes:
        print_message(note)
    if repeat > 1:
        with working(f"running {repeat} times"):
            measure = str(shown.primary)
            lines = list(
                rankgauge.benchmark.repeat_plan(plan, made, repeat, measure, errors=errors)
            )
        print_text("".join(f"{for_terminal(line)}\n" for line in lines))
    if format == "table" and not full and not quiet():
        state = "bench" if diagnosed is None else "bench: diagnosed"
        print_text(f"Next step: {rankgauge.core.next_step(state)}\n")
    if runs_folder is not None:
        _write(list(made.runs.values()), Path(runs_folder), errors, head=not plain)
    if page is not None:
        write_report(page, shown.page(made, errors, diagnosed))
        print_message(f"wrote {page}")
    if kept is not None:
        _keep(kept, shown, errors, label)
    return _ERROR if outcome.failed else 0


def _check(kept: bool, asked: bool, page: str | None, folder: str | None) -> None:
    """Reject incompatible options before any work is done."""
    if not kept:
        raise click.UsageError("--history and --label need --save")
    if not asked:
        raise click.UsageError("--fresh runs every query again: omit --failed")
    if page is not None:
        check_writable(page)
    if folder is None:
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise rankgauge.InputError(
            f"cannot be created: {error.strerror}", where=folder, fix="name another folder"
        ) from None


def _check_names(
    plan: rankgauge.BenchmarkPlan, baseline: str | None, diagnosed: str | None
) -> None:
    """Reject unknown names before any search."""
    known = [one.name for one in plan.retrievers]
    asked = {"--baseline": baseline, "--diagnose": None if diagnosed == "worst" else diagnosed}
    for option, given in asked.items():
        if given is not None and given not in known:
            raise rankgauge.InputError(
                f"unknown retriever of the plan {given!r}", where=option,
                fix=f"retrievers are: {', '.join(known)}",
            )  # fmt: skip


def _keep(
    history: rankgauge.History,
    shown: _PrintedResult,
    errors: Literal["raise", "empty"],
    label: str,
) -> None:
    for run, evaluation in zip(shown.runs, shown.evaluations, strict=True):
        entry = history.add(evaluation, run.qrels, run=run.ranked(errors), label=label)
        print_message(f"saved as {entry.id} in {history.where}")


def _ran(
    plan: rankgauge.BenchmarkPlan,
    only: Sequence[str],
    rerun: Literal["missing", "failed", "resume", "all"],
    store: str | None,
    timed: int | None,
) -> rankgauge.benchmark.PlanOutcome:
    try:
        return rankgauge.benchmark.run_plan(plan, only=only, rerun=rerun, store=store, timed=timed)
    except KeyboardInterrupt:
        place = store or plan.store
        print_message(
            f"stopped; responses are stored in {place}: the same command continues from there "
            "(add --resume for a retriever without settings whose code cannot be compared)"
        )
        raise


class _PrintedResult:
    """Result to print: a comparison, or the evaluation of a single run."""

    def __init__(
        self,
        runs: Sequence[rankgauge.benchmark.BenchmarkRun],
        evaluations: Sequence[rankgauge.Evaluation],
        comparison: rankgauge.benchmark.BenchmarkComparison | None,
    ) -> None:
        self.runs = runs
        self.evaluations = evaluations
        self.comparison = comparison

    @classmethod
    def of(
        cls,
        bench: rankgauge.Benchmark,
        measures: Sequence[str] | None,
        baseline: str | None,
        errors: Literal["raise", "empty"],
        *,
        jobs: int,
    ) -> _PrintedResult:
        runs = list(bench.runs.values())
        if len(runs) == 1:
            return cls(runs, [runs[0].evaluate(measures, errors=errors)], None)
        # A baseline excluded by --only is not an error.
        chosen = baseline if baseline in bench.runs else None
        found = bench.compare(measures, baseline=chosen, errors=errors, jobs=jobs)
        return cls(runs, found.comparison.evaluations, found)

    @property
    def primary(self) -> rankgauge.Measure:
        return self.evaluations[0].measures[0]

    def print(
        self, format: str, diagnosis: rankgauge.diagnosis.Diagnosis | None, *, full: bool
    ) -> None:
        """Print the comparison, or the evaluation and the cost, then the diagnosis."""
        report_options = rankgauge.reports.Options(full=full, diagnosis=diagnosis)
        values = format in {"csv", "json"}
        if self.comparison is not None:
            print_result(self.comparison, format, report_options)
            if not values:
                return
        else:
            print_result(self.evaluations, format)
            if not values:
                click.echo()
                print_result(self.runs, format)
        if diagnosis is None or quiet():
            return
        click.echo()
        if format == "table" and not full:
            print_text(f"{for_terminal(diagnosis.summary())}\n")
        else:
            print_result(diagnosis, format, report_options)

    def ends(self) -> tuple[str, str]:
        """Return the names of the worst and the best run."""
        sign = -1 if self.primary.declaration.better == "lower" else 1
        means = {one.run_name: sign * one.mean()[str(self.primary)] for one in self.evaluations}
        return min(means, key=means.__getitem__), max(means, key=means.__getitem__)

    def page(
        self,
        bench: rankgauge.Benchmark,
        errors: Literal["raise", "empty"],
        diagnosed: str | None,
    ) -> str:
        found = self.comparison
        return rankgauge.html_report(
            bench.qrels,
            [run.ranked(errors) for run in self.runs],
            result=self.evaluations[0] if found is None else found.comparison,
            collection=bench.collection if bench.collection.documents else None,
            diagnosed=diagnosed,
            sections=() if found is None else (rankgauge.reports.benchmark_section(found),),
        )


def _diagnosis(
    bench: rankgauge.Benchmark, name: str, shown: _PrintedResult, errors: Literal["raise", "empty"]
) -> rankgauge.diagnosis.Diagnosis:
    worst, best = shown.ends()
    run = bench.runs.get(worst if name == "worst" else name)
    if run is None:
        raise rankgauge.InputError(
            f"unknown run {name!r}",
            where="--diagnose",
            fix=f"runs are: {', '.join(bench.runs)}",
        )
    return rankgauge.diagnose(
        bench.qrels, run.ranked(errors), bench.collection, measure=shown.primary, worst=2,
        also=bench.runs[best].ranked(errors) if run.name != best else None,
    )  # fmt: skip


def _write(
    runs: Sequence[rankgauge.benchmark.BenchmarkRun],
    folder: Path,
    errors: Literal["raise", "empty"],
    *,
    head: bool,
) -> None:
    for run in runs:
        target = folder / f"{run.name.replace('/', '-')}.run"
        rankgauge.benchmark.write_benchmark_run(run, target, errors=errors, head=head)
    print_message(f"wrote {len(runs)} run{'s' if len(runs) > 1 else ''} to {folder}")

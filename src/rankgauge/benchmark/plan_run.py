"""A plan carried out: each of its retrievers run, whatever becomes of the others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankgauge.benchmark.benchmark import Again, Benchmark
from rankgauge.benchmark.plan import BenchmarkPlan
from rankgauge.benchmark.run import BenchmarkRun, Errors
from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.data.fingerprints import fingerprint
from rankgauge.errors import FormatError, InputError, RankgaugeError, UnknownName
from rankgauge.evaluation.result import Evaluation

__all__ = ["PlanOutcome", "repeat_plan", "run_plan"]


@dataclass(frozen=True)
class PlanOutcome:
    """What came of a plan.

    Attributes:
        bench: The benchmark with its runs.
        failed: Why retrievers could not be run at all, by name.
    """

    bench: Benchmark
    failed: Mapping[str, RankgaugeError]


def run_plan(
    plan: BenchmarkPlan,
    *,
    only: Iterable[str] = (),
    again: Again = "missing",
    store: str | os.PathLike[str] | None = None,
    timed: int | None = None,
    progress: bool | None = None,
) -> PlanOutcome:
    """Run the retrievers of a plan.

    Args:
        plan: The plan.
        only: Names of the retrievers that are run; all of the plan if left out.
        again: Which queries are asked, as for :meth:`Benchmark.run`.
        store: Another folder for the answers.
        timed: How many queries are timed, where not as the plan says.
        progress: Whether to show how far it has come.

    Raises:
        InputError: If the collection cannot be loaded, or no query has judgments.
    """
    chosen = plan.chosen(only)
    plan.check()
    bench = plan.load(store=store, progress=progress)
    build = plan.builder(bench)
    built: dict[str, Any] = {}
    failed: dict[str, RankgaugeError] = {}
    for planned in chosen:
        try:
            built[planned.name] = build(planned.name)
        except (FormatError, UnknownName):
            raise  # the plan is at fault: nothing is run before it is mended
        except RankgaugeError as error:
            failed[planned.name] = error
    for planned in chosen:
        if planned.name in failed:
            continue
        try:
            bench.run(
                planned.name,
                built[planned.name],
                settings=planned.settings,
                limits=planned.limits,
                again=again,
                timed=plan.timed if timed is None else timed,
                prices=planned.prices,
            )
        except RankgaugeError as error:
            # One that cannot be made or indexed must not cost the others.
            failed[planned.name] = error
    if failed and not bench.runs:
        raise next(iter(failed.values()))
    return PlanOutcome(bench, failed)


def repeat_plan(
    plan: BenchmarkPlan,
    first: Benchmark,
    times: int,
    measure: str,
    *,
    errors: Errors = "refuse",
) -> Iterator[str]:
    """Run the retrievers again from nothing, and say whether they give the same each time.

    Args:
        plan: The plan.
        first: What was made before; it counts as the first time.
        times: How often in all.
        measure: The measure whose values are held against each other.
        errors: ``refuse`` runs in which queries failed, or take their rankings as ``empty``.

    Returns:
        A sentence for each retriever.

    Raises:
        InputError: With less than two times.
    """
    if times < 2:
        raise InputError(f"got {times} for repeat", where="repeat", fix="give 2 or more")
    runs: dict[str, list[BenchmarkRun]] = {name: [run] for name, run in first.runs.items()}
    for number in range(2, times + 1):
        # Beside the answers that are kept: to ask anew is the point.
        store = first.store / f"repeat-{number}"
        made = run_plan(plan, only=tuple(runs), again="all", store=store, timed=0)
        for name, run in made.bench.runs.items():
            runs[name].append(run)
    for name, made_runs in runs.items():
        yield _repeated(name, made_runs, measure, errors)
    for number in range(2, times + 1):
        shutil.rmtree(Path(first.store) / f"repeat-{number}", ignore_errors=True)


def _repeated(name: str, runs: Sequence[BenchmarkRun], measure: str, errors: Errors) -> str:
    times = len(runs)
    if len({fingerprint(run.ranked(errors)) for run in runs}) == 1:
        return f"{name}: the same rankings and scores, {times} times"
    evaluations = [run.evaluate(measure, errors=errors) for run in runs]
    means = [mean for one in evaluations for mean in one.mean().values()]
    moved = _moved(evaluations)
    return (
        f"{name}: {measure} between {min(means):.4f} and {max(means):.4f} in {times} times; its "
        f"value differs for {moved} of {len(evaluations[0].query_ids)} queries"
    )


def _moved(evaluations: Sequence[Evaluation]) -> int:
    first, *others = evaluations
    moved = {
        row
        for other in others
        for row in range(len(first.query_ids))
        if abs(float(other.per_query[row, 0]) - float(first.per_query[row, 0])) > TOLERANCE
    }
    return len(moved)

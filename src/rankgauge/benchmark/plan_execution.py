"""Execution of plans: run retrievers, repeat runs, and explore configurations."""

from __future__ import annotations

import copy
import inspect
import itertools
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgauge import retrievers
from rankgauge.benchmark.benchmark import Benchmark
from rankgauge.benchmark.exploration import Exploration, explore
from rankgauge.benchmark.plan import BenchmarkPlan, PlanBuilder
from rankgauge.benchmark.retriever_run import PartialSettings, Rerun
from rankgauge.benchmark.run import BenchmarkRun, Errors
from rankgauge.core.arguments import integer, known_name
from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.keyed_hash import keyed_hash
from rankgauge.corpus.loading import unjudged_error
from rankgauge.data.qrels import fingerprint
from rankgauge.errors import FormatError, RankgaugeError, UnknownName

_EXPLORE_CHOICES: dict[str, tuple[type, ...]] = {
    "method": (str,),
    "trials": (int,),
    "budget": (float,),
    "tuning_share": (float,),
    "seed": (int,),
}
_EXPLORE_KEYS = {"retriever": (str,), "measure": (str,), "space": (dict,), **_EXPLORE_CHOICES}


@dataclass(frozen=True)
class PlanOutcome:
    """The result of a plan.

    Attributes:
        bench: The benchmark with its runs.
        failed: Retrievers that could not be run, with the reasons.
    """

    bench: Benchmark
    failed: Mapping[str, RankgaugeError]


def run_plan(
    plan: BenchmarkPlan,
    *,
    only: Iterable[str] = (),
    rerun: Rerun = "missing",
    store: str | os.PathLike[str] | None = None,
    timed: int | None = None,
    progress: bool | None = None,
    bench: Benchmark | None = None,
) -> PlanOutcome:
    """Run the retrievers of a plan.

    Args:
        plan: The plan.
        only: Names of the retrievers to run; default: all in the plan.
        rerun: The queries to send, as for :meth:`Benchmark.run`.
        store: Another folder for the responses.
        timed: The number of queries to time, 0 for none; default: that of the plan.
        progress: Whether to show a progress bar.
        bench: The benchmark of the plan, if it is loaded already.

    Raises:
        InputError: If the collection cannot be loaded, or no query has judgments.
    """
    chosen = plan.selected(only)
    plan.check()
    bench = plan.load(store=store, progress=progress) if bench is None else bench
    if not bench.queries:
        raise unjudged_error(bench.collection, plan.collection.get("source", ""))
    builder = PlanBuilder(plan, bench)
    built: dict[str, Any] = {}
    failed: dict[str, RankgaugeError] = {}
    for planned in chosen:
        try:
            built[planned.name] = builder.named(planned.name)
        except (FormatError, UnknownName):
            raise  # errors in the plan stop the run
        except RankgaugeError as error:
            failed[planned.name] = error
    for planned in chosen:
        if planned.name in failed:
            continue
        settings, arguments = planned.settings, planned.options.get("arguments")
        if settings is None and arguments:  # which may contain secrets
            settings = PartialSettings(arguments=keyed_hash(repr(arguments)))
        try:
            run = bench.run(
                planned.name,
                built[planned.name],
                settings=settings,
                limits=planned.limits,
                rerun=rerun,
                timed=plan.timed if timed is None else timed,
                prices=planned.prices,
            )
            run.check("empty")
        except RankgaugeError as error:
            # A retriever that cannot be created, indexed, or reached must not affect the others.
            failed[planned.name] = error
            bench.drop_run(planned.name)
    if failed and not bench.runs:
        raise next(iter(failed.values()))
    return PlanOutcome(bench, failed)


def repeat_plan(
    plan: BenchmarkPlan, first: Benchmark, times: int, measure: str, *, errors: Errors = "raise"
) -> Iterator[str]:
    """Repeat runs without stored responses, and report whether the results are equal.

    Args:
        plan: The plan.
        first: The first outcome.
        times: The total number of runs, including the first.
        measure: The measure whose values are compared.
        errors: ``raise`` to raise an error for failed queries; ``empty`` to count their rankings
            as empty.

    Returns:
        One sentence per retriever.

    Raises:
        InputError: If `times` is less than two.
    """
    integer("repeat", times, least=2)
    runs: dict[str, list[BenchmarkRun]] = {name: [run] for name, run in first.runs.items()}
    # Separate stores, so that every query is sent again.
    stores = [first.store / f"repeat-{number}" for number in range(2, times + 1)]
    for store in stores:
        for name, run in run_plan(plan, only=tuple(runs), rerun="all", store=store, timed=0).bench.runs.items():
            runs[name].append(run)
    for name, repeated in runs.items():
        if len({fingerprint(run.ranked(errors)) for run in repeated}) == 1:
            yield f"{name}: the same rankings and scores in {len(repeated)} repetitions"
            continue
        evaluations = [run.evaluate(measure, errors=errors) for run in repeated]
        means = [mean for evaluation in evaluations for mean in evaluation.mean().values()]
        values = np.stack([evaluation.per_query[:, 0] for evaluation in evaluations])
        changed = np.count_nonzero((np.abs(values - values[0]) > TOLERANCE).any(axis=0))
        yield (
            f"{name}: {measure} between {min(means):.4f} and {max(means):.4f} in {len(repeated)} "
            f"repetitions; its value differs for {changed} of {values.shape[1]} queries"
        )
    for store in stores:
        shutil.rmtree(store, ignore_errors=True)


def explore_plan(
    plan: BenchmarkPlan, *, store: str | os.PathLike[str] | None = None, timed: int = 50, progress: bool | None = None
) -> tuple[Exploration, Benchmark]:
    """Search the configurations of a retriever described in the table ``explore`` of a plan.

    .. code-block:: toml

        [explore]
        retriever = "passages"     # the plan describes the current configuration
        measure = "nDCG@10"        # default: the first measure of the plan
        method = "optuna"          # or "grid", which tries all configurations
        budget = 600               # seconds

        [explore.space]
        "chunker.size" = [64, 128, 256]
        "retriever.k1" = [0.9, 1.2]
        roll_up = ["max", "sum"]

    Names in the space are options of that retriever, with dots for nested options and numbers for
    list items, as in ``"of.0.k1"``. The current configuration consists of the options in the plan
    and the defaults.

    Args:
        plan: The plan.
        store: Another folder for the responses.
        timed: The number of queries to time with each configuration; 0 for none.
        progress: Whether to show progress bars.

    Returns:
        The result of the search, and the benchmark with its collection.

    Raises:
        FormatError: If the table is missing or does not match the retriever.
        UnknownName: For an unknown key, retriever, or option.
    """
    file = plan.file
    settings = file.inside("explore").checked("explore", _EXPLORE_KEYS)
    name, space = settings.get("retriever"), settings.get("space")
    if not name or not space:
        raise file.error(
            "the project has no retriever and space to explore",
            "explore",
            fix='write [explore] with retriever = "bm25", and [explore.space] with k1 = [0.9, 1.2]',
        )
    plan.check()
    today = plan.options(name)
    for setting, values in space.items():
        if not isinstance(values, list) or not values:
            raise file.error(
                f"got {values!r:.60}",
                "explore",
                "space",
                setting,
                fix=f'use a list of values: "{setting}" = [1, 2]',
            )
    for outer, inner in itertools.permutations(space, 2):
        if inner.startswith(f"{outer}."):  # it would be overwritten
            raise file.error(
                f"{inner!r} is a part of {outer!r}, which is also varied",
                "explore",
                "space",
                inner,
                fix=f"remove one of them, or list whole tables for {outer}",
            )
    start = {setting: _read(plan, name, today, setting) for setting in space}
    bench = plan.load(store=store, progress=progress)

    def build(configuration: Mapping[str, Any]) -> Any:
        table: Any = copy.deepcopy(today)
        for setting, value in configuration.items():
            *parts, last = setting.split(".")
            inner = table
            for part in parts:
                inner = _inside(inner, part)
            inner[int(last) if isinstance(inner, list) else last] = value
        return PlanBuilder(plan, bench).value("", table, ("explore",))

    exploration = explore(
        build,
        bench.runner(timed=timed),
        bench.qrels,
        space,
        measure=settings.get("measure") or next(iter(plan.measures), "nDCG@10"),
        start=start,
        **{key: settings[key] for key in _EXPLORE_CHOICES if key in settings},
    )
    return exploration, bench


def _read(plan: BenchmarkPlan, name: str, table: Any, setting: str) -> Any:
    """Return the current value of a setting: that of the plan, or the default."""
    *parts, last = setting.split(".")
    keys = ("explore", "space", setting)
    for place, part in enumerate(parts):
        table = _inside(table, part)
        if table is None:
            raise plan.file.error(
                f"{'.'.join(parts[: place + 1])!r} is not part of the retriever",
                *keys,
                fix="name an option, with dots for parts: part.option",
            )
    value = _inside(table, last)
    if value is not None:
        return value
    default: Any = inspect.Parameter.empty
    kind = table.get("type") if isinstance(table, Mapping) else None
    if isinstance(kind, str) and kind in retrievers.TYPES:
        parameters = inspect.signature(getattr(retrievers, retrievers.TYPES[kind])).parameters
        with plan.file.at(*keys):
            known_name(f"option of {kind}", last, parameters)
        default = parameters[last].default
    if default is inspect.Parameter.empty:
        raise plan.file.error(
            "the project has no current value",
            *keys,
            fix=f"also write it in [retrievers.{name}]",
        )
    return default


def _inside(table: Any, part: str) -> Any:
    if isinstance(table, Mapping):
        return table.get(part)
    if isinstance(table, list) and part.isdecimal() and int(part) < len(table):
        return table[int(part)]
    return None

"""Configuration search: selection on tuning queries, measurement on test queries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rankgauge.benchmark.comparison import ParetoPoint, before_after, pareto_front, plot_pareto
from rankgauge.benchmark.search_space import Sampler, Space, key_of
from rankgauge.comparison.comparison import Comparison, compare
from rankgauge.core.arguments import integer, is_number, known_name, number
from rankgauge.core.ids import show_id
from rankgauge.core.text import keep, many
from rankgauge.corpus.collection import Collection
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.data.subsets import drawn, only
from rankgauge.diagnosis.diagnosis import Diagnosis, diagnose
from rankgauge.errors import InputError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.measures.measure import Measure, parse_directed
from rankgauge.rendering.plot_drawing import Plot
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Detail, Table, by_column, first_rows

_BEFORE, _BEST = "before", "best"
_TRIALS, _SENTENCES = 8, 3  # rows and sentences of a short table
_METHODS = ("grid", "optuna")
_FEW = 20

Build = Callable[[Mapping[str, Any]], Any]
Runner = Callable[[str, Any], tuple[Any, float | None]]


@dataclass(frozen=True)
class Trial:
    """One configuration that was tried.

    Attributes:
        name: ``before``, or the number of the trial.
        configuration: The settings.
        value: The mean over the tuning queries; NaN if the trial failed.
        latency: Seconds per query; None if not measured.
        seconds: The time to build and run the configuration.
        error: The error message; empty without an error.
    """

    name: str
    configuration: Mapping[str, Any]
    value: float
    latency: float | None
    seconds: float
    error: str = ""

    def differs(self, other: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the settings that differ from another configuration."""
        mine = self.configuration
        names = dict.fromkeys([*mine, *other])
        return tuple(n for n in names if (n in mine, mine.get(n)) != (n in other, other.get(n)))


@dataclass(frozen=True, repr=False)
class Exploration(Result):
    """Configurations chosen on tuning queries and tested on test queries.

    Returned by :func:`explore`.

    Attributes:
        measure: The measure that was optimized.
        method: ``grid`` or ``optuna``.
        trials: The configurations tried, in order.
        points: The number of configurations in the space.
        best: The best trial on the tuning queries; the first of ties.
        before: The current configuration; None if it was not given or failed.
        values: The means of ``best`` and ``before`` over the test queries.
        tuning: The tuning queries.
        test: The test queries.
        seed: The seed of the split.
        runs: The runs of ``best`` and ``before`` for the test queries.
        qrels: The judgments of the test queries.
        comparison: The comparison of ``best`` and ``before`` on the test queries; None if they are
            the same, or there are too few queries.
        sentences: The procedure and the result.
        warnings: Limitations.
        settings: The names of the settings that were searched.
    """

    measure: Measure
    method: str
    trials: tuple[Trial, ...]
    points: int
    best: Trial
    before: Trial | None
    values: Mapping[str, float]
    tuning: tuple[str, ...]
    test: tuple[str, ...]
    seed: int
    runs: Mapping[str, Run]
    qrels: Qrels
    comparison: Comparison | None
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
    settings: tuple[str, ...] = field(default=())

    @property
    def lower(self) -> bool:
        """Whether lower values of the measure are better."""
        return self.measure.declaration.better == "lower"

    @property
    def pareto(self) -> tuple[Trial, ...]:
        """Trials on the Pareto front of quality and latency, fastest first.

        Quality is measured on the tuning queries. Empty without latencies.
        """
        by_name = {trial.name: trial for trial in self.trials}
        points = [
            ParetoPoint(name, trial.value, trial.latency)
            for name, trial in by_name.items()
            if trial.latency is not None
        ]
        return tuple(by_name[point.name] for point in pareto_front(points, lower=self.lower))

    def plot(self) -> Plot:
        """Plot quality over latency with the Pareto front (needs ``rankgauge[plots]``).

        Raises:
            InputError: If no latency was measured.
        """
        names = self._varied()
        points = [
            ParetoPoint(_settings_text(trial.configuration, names), trial.value, trial.latency)
            for trial in self.trials
            if trial.latency is not None
        ]
        return plot_pareto(points, f"{self.measure} (tuning queries)", lower=self.lower)

    @property
    def untried(self) -> tuple[Mapping[str, Any], ...]:
        """Untried configurations that combine ``before`` and ``best``.

        Each is ``before`` with one setting of ``best``, or ``best`` with one setting of ``before``.
        Empty if the two differ in at most one setting.
        """
        new = self.best.configuration
        old = new if self.before is None else self.before.configuration
        apart = self.best.differs(old)
        if len(apart) < 2:
            return ()
        steps = [{**old, name: new.get(name)} for name in apart] + [{**new, name: old.get(name)} for name in apart]
        tried = [trial.configuration for trial in self.trials]
        return tuple(step for place, step in enumerate(steps) if step not in [*tried, *steps[:place]])

    def table(self) -> Table:
        """Return a table of all trials, best first, with the conclusions as notes."""
        sign = 1 if self.lower else -1
        trials = sorted(self.trials, key=lambda t: (math.isnan(t.value), 0 if t.error else sign * t.value))
        front = {trial.name for trial in self.pareto}
        marks = (
            keep(
                trial is self.best and _BEST,
                trial.name in front and "Pareto front",
                trial.error and f"failed: {trial.error:.80}",
            )
            for trial in trials
        )
        columns, rows = by_column(
            ("configuration", (trial.name for trial in trials)),
            *((name, [_value_text(t.configuration.get(name)) for t in trials]) for name in self.settings),
            (f"{self.measure}, tuning", (trial.value for trial in trials)),
            any(trial.latency is not None for trial in trials)
            and ("ms/query", (trial.latency and trial.latency * 1000 for trial in trials)),
            ("", map(", ".join, marks)),
        )
        return Table(
            columns,
            tuple(first_rows(rows, _TRIALS)),
            unit="trial",
            best=frozenset({(0, len(self.settings) + 1)}),
            notes=(
                *self.sentences[:_SENTENCES],
                *map(Detail, self.sentences[_SENTENCES:]),
                *(f"WARNING: {text}" for text in self.warnings),
            ),
        )

    def ablation(self) -> Table:
        """Return the tried configurations that differ from the best in a single setting.

        The effects of settings may be different for other configurations.
        """
        best = self.best.configuration
        apart = ((trial, trial.differs(best)) for trial in self.trials if not trial.error)
        alone = [(names[0], trial) for trial, names in apart if len(names) == 1]
        without = ", ".join(name for name in self._varied() if name not in dict(alone))
        return Table(
            columns=("setting", _BEST, "instead", str(self.measure), "difference", "configuration"),
            rows=tuple(
                (
                    name,
                    _value_text(best.get(name)),
                    _value_text(trial.configuration.get(name)),
                    trial.value,
                    f"{trial.value - self.best.value:+.4f}",
                    trial.name,
                )
                for name, trial in sorted(alone, key=lambda pair: self.settings.index(pair[0]))
            ),
            title="one setting changed at a time",
            notes=keep(
                f"on {many(len(self.tuning), 'tuning query')}; best: {self.best.value:.4f}",
                without and f"no neighboring value was tried for: {without}",
            ),
        )

    def _varied(self) -> list[str]:
        first = self.trials[0].configuration
        apart = {name for trial in self.trials for name in trial.differs(first)}
        return [name for name in self.settings if name in apart]

    def diagnoses(self, collection: Collection | None = None, *, k: int = 5) -> tuple[Diagnosis, Diagnosis]:
        """Return the diagnoses of ``before`` and ``best`` on the test queries.

        Args:
            collection: The texts; see :func:`diagnose`.
            k: The cut-off.

        Raises:
            InputError: If there is no ``before``.
        """
        if _BEFORE not in self.runs:
            raise InputError(
                "there is no current configuration to compare the best with",
                where="before and after",
                fix="give explore() the current configuration: start={...}",
            )
        old, new = (diagnose(self.qrels, self.runs[n], collection, k=k) for n in (_BEFORE, _BEST))
        return old, new

    def before_after(self, collection: Collection | None = None, *, k: int = 5) -> Table:
        """Compare the failure patterns of ``before`` and ``best`` on the test queries."""
        return before_after(*self.diagnoses(collection, k=k))


def _settings_text(configuration: Mapping[str, Any], names: Sequence[str] | None = None) -> str:
    """Format all or some settings in one line."""
    wanted = configuration if names is None else names
    return ", ".join(f"{name}={_value_text(configuration.get(name))}" for name in wanted) or "no settings"


def _value_text(value: Any) -> str:
    """Format a setting; a table with a type becomes ``type(other=...)``."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{k}={_value_text(v)}" for k, v in value.items() if k != "type")
        return f"{value.get('type', '')}({inner})"
    return value if isinstance(value, str) else f"{value!r:.40}"


def explore(  # noqa: PLR0913 - each is a choice that is printed
    build: Build,
    run: Runner,
    qrels: Any,
    space: Mapping[str, Sequence[Any]],
    *,
    measure: str | Measure = "nDCG@10",
    method: str = "grid",
    trials: int | None = None,
    budget: float | None = None,
    tuning_share: float = 0.5,
    seed: int = 0,
    start: Mapping[str, Any] | None = None,
) -> Exploration:
    """Choose the best configuration on tuning queries and measure it on test queries.

    The judged queries are split into tuning and test queries by the SHA-256 of seed and id. Every
    configuration is evaluated on the tuning queries. Only the best and the current configuration
    are evaluated on the test queries, so that the reported value is not biased by the selection.

    If the budget is used up or Ctrl-C is pressed, the results so far are returned. A failed
    configuration is recorded with its error.

    Args:
        build: A function from a configuration (setting to value) to a retriever, indexed or not.
        run: A function from a name and a retriever to the run over all queries and the latency in
            seconds per query or None. It must close the resources it opens.
        qrels: The judgments, in any form accepted by :meth:`Qrels.of`.
        space: The values to try for each setting.
        measure: The measure to optimize.
        method: ``grid`` tries every combination, with the last setting changing fastest; ``optuna``
            proposes promising combinations (needs ``rankgauge[tuning]``; TPE: Bergstra et al.,
            Algorithms for Hyper-Parameter Optimization, NeurIPS 2011).
        trials: Maximum number of configurations.
        budget: Seconds after which no further configuration is started.
        tuning_share: The share of judged queries used for tuning.
        seed: The seed of the split and of Optuna.
        start: The current configuration, which is tried first and compared with the best. Its
            settings outside the space are the same in all configurations.

    Raises:
        InputError: If the space is empty, there are fewer than two judged queries, or no
            configuration could be run.
        MissingExtra: If Optuna is needed and not installed.
        UnknownName: For an unknown measure or method.

    Example:
        >>> qrels = {f"q{n}": {"d1": 1} for n in range(40)}
        >>> def run(name, place):
        ...     return {q: ["x"] * place + ["d1"] for q in qrels}, 0.01 * place
        >>> found = explore(lambda c: c["place"], run, qrels, {"place": [0]}, start={"place": 0})
        >>> found.best.configuration, found.values
        ({'place': 0}, {'best': 1.0, 'before': 1.0})
    """
    truth = Qrels.of(qrels)
    wanted = parse_directed(measure)
    _check(method, trials, budget, tuning_share)
    integer("seed", seed, least=None)
    tried = Space.of(space, start)
    order = drawn(truth.query_index, seed)
    if len(order) < 2:
        raise InputError(
            f"{many(len(order), 'judged query')} cannot be split", where="explore", fix="judge more queries"
        )
    first = min(max(round(tuning_share * len(order)), 1), len(order) - 1)
    tuning, test = order[:first], order[first:]
    sampler = None if method == "grid" else Sampler(tried, seed, lower=wanted.declaration.better == "lower")
    search = _Search(build, run, truth, wanted, tuning, tried, sampler)
    limit = tried.points if trials is None else min(trials, tried.points)
    search.run(start, limit, budget)
    if search.best is None:
        raise InputError(
            f"none of {many(len(search.trials), 'configuration')} could be run; the first "
            f"error: {search.trials[0].error:.200}",
            where="explore",
            fix="check that build() and run() work with one configuration",
        )
    return _exploration(search, search.best, test, method, seed)


def _check(method: Any, trials: Any, budget: Any, share: Any) -> None:
    known_name("method of a search", method, _METHODS)
    if trials is not None:
        integer("trials", trials)
    if budget is not None:
        number("budget", budget, above=True)
    number("tuning_share", share, above=True, high=math.nextafter(1.0, 0.0))
    if method == "optuna" and trials is None and budget is None:
        raise InputError(
            "a search with Optuna needs a limit", where="explore", fix="pass trials=30, or budget=600 (seconds)"
        )


@dataclass
class _Search:
    """A search that tries configurations in turn and keeps the runs of the best and the current.

    Attributes:
        trials: The trials so far.
        best: The best trial on the tuning queries; the first of ties.
        before: The current configuration; None if it was not given or failed.
        runs: The runs of both.
        stopped: Why the search stopped early; empty otherwise.
    """

    build: Build
    runner: Runner
    truth: Qrels
    measure: Measure
    tuning: Sequence[bytes]
    space: Space
    sampler: Sampler | None
    trials: list[Trial] = field(default_factory=list)
    best: Trial | None = None
    before: Trial | None = None
    runs: dict[str, Run] = field(default_factory=dict)
    stopped: str = ""

    def run(self, start: Mapping[str, Any] | None, limit: int, budget: float | None) -> None:
        """Try configurations until none is left, the budget is used up, or Ctrl-C is pressed."""
        ends = math.inf if budget is None else time.monotonic() + budget
        proposals = iter(self.space) if self.sampler is None else iter(self.sampler.propose, None)
        known: set[str] = set()
        name = _BEFORE
        try:
            if start is not None:
                known.add(key_of(start))
                self._run_trial(name, start)
            inside = int(start is not None and self.space.holds(start))
            for number in range(1 + inside, limit + 1):
                if time.monotonic() >= ends:
                    self.stopped = f"the budget of {budget:g} s was used up"
                    return
                configuration = next((proposal for proposal in proposals if key_of(proposal) not in known), None)
                if configuration is None:
                    return
                name = str(number)
                known.add(key_of(configuration))
                self._run_trial(name, configuration)
        except KeyboardInterrupt:
            if not self.trials:
                raise
            self.stopped = f"interrupted in {name if name == _BEFORE else f'number {name}'}"

    def _run_trial(self, name: str, configuration: Mapping[str, Any]) -> None:
        """Build and run a configuration, and measure it on the tuning queries."""
        began = time.perf_counter()
        value, latency, error, run = math.nan, None, "", None
        try:
            run, latency = _checked_result(self.runner(name, self.build(configuration)))
            value = self.mean(run, self.tuning)
        except Exception as problem:  # noqa: BLE001 - any failure is recorded
            error = f"{type(problem).__name__}: {problem}".splitlines()[0]
        if not error and math.isnan(value):
            error = f"{self.measure} is undefined for all tuning queries"
        seconds = time.perf_counter() - began
        trial = Trial(name, dict(configuration), value, None if error else latency, seconds, error)
        self.trials.append(trial)
        if run is not None and not error:
            sign = -1 if self.measure.declaration.better == "lower" else 1
            # The first of ties is kept, so that the current configuration has to be beaten.
            if self.best is None or sign * value > sign * self.best.value:
                self.best, self.runs[_BEST] = trial, run
            if name == _BEFORE:
                self.before, self.runs[_BEFORE] = trial, run
        if self.sampler is not None and self.space.holds(configuration):
            self.sampler.record(configuration, value)

    def mean(self, run: Run, queries: Sequence[bytes]) -> float:
        """Return the mean over the queries."""
        return evaluate(self.truth, run, self.measure, queries=list(queries)).mean()[str(self.measure)]


def _checked_result(result: Any) -> tuple[Run, float | None]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise InputError(
            f"run() returned {type(result).__name__}, expected a pair",
            where="explore",
            fix="return (run, seconds per query), or (run, None)",
        )
    latency = result[1]
    if latency is not None and not (is_number(latency) and latency >= 0):
        raise InputError(
            f"run() returned {latency!r:.60} for the latency", where="explore", fix="return seconds per query, or None"
        )
    return Run.of(result[0]), None if latency is None else float(latency)


# ---- the result


def _exploration(  # noqa: PLR0917 - a search and its options
    search: _Search, best: Trial, test: Sequence[bytes], method: str, seed: int
) -> Exploration:
    # Ids as bytes, so that each query counts once.
    runs = {name: replace(only(run, test), name=name) for name, run in search.runs.items()}
    qrels = only(search.truth, test)
    comparison = None
    if search.before is not None and search.before is not best and len(test) > 1 and all(map(len, runs.values())):
        comparison = compare(qrels, {name: runs[name] for name in (_BEFORE, _BEST)}, search.measure, baseline=_BEFORE)
    bare = Exploration(
        measure=search.measure,
        method=method,
        trials=tuple(search.trials),
        points=search.space.points,
        best=best,
        before=search.before,
        values={name: search.mean(runs[name], test) for name in sorted(runs)[::-1]},
        tuning=tuple(map(show_id, search.tuning)),
        test=tuple(map(show_id, test)),
        seed=seed,
        runs=runs,
        qrels=qrels,
        comparison=comparison,
        sentences=(),
        warnings=(),
        settings=tuple(search.space.axes),
    )
    sentences, warnings = _sentences(bare, search), _warnings(bare)
    return replace(bare, sentences=tuple(sentences), warnings=tuple(warnings))


def _sentences(exploration: Exploration, search: _Search) -> Iterator[str]:
    measure, best, before = exploration.measure, exploration.best, exploration.before
    inside = sum(search.space.holds(trial.configuration) for trial in exploration.trials)
    outside = " and the current one" if inside < len(exploration.trials) else ""
    yield (
        f"{inside} of {many(exploration.points, 'configuration')}{outside} tried ({exploration.method}), "
        f"chosen by {measure} on {many(len(exploration.tuning), 'query')}, tested on "
        f"{many(len(exploration.test), 'other')} (seed {exploration.seed})"
    )
    if search.stopped:
        yield f"not all were tried: {search.stopped}"
    yield (
        f"best: {_settings_text(best.configuration, exploration.settings)}; {measure} {best.value:.4f} "
        f"on the tuning queries, {exploration.values[_BEST]:.4f} on the test queries (report this one)"
    )
    if before is None:
        return
    yield (
        f"before: {measure} {before.value:.4f} on the tuning queries, "
        f"{exploration.values[_BEFORE]:.4f} on the test queries"
    )
    changed = best.differs(before.configuration)
    if not changed:
        yield "the current configuration is the best of those tried"
    elif len(changed) == 1:
        yield f"the best and the current configuration differ in one setting: {changed[0]}"
    else:
        names = " and ".join(changed) if len(changed) < 3 else ", ".join(changed)
        yield (
            f"the best and the current configuration differ in {len(changed)} settings "
            f"({names}): their effects cannot be separated"
        )
        if untried := exploration.untried:
            steps = "; ".join(_settings_text(configuration, exploration.settings) for configuration in untried[:3])
            more = f"; and {len(untried) - 3} more" if len(untried) > 3 else ""
            yield f"to separate them, try one setting at a time: {steps}{more}"
        else:
            yield "each single change was tried: see the ablation"


def _warnings(exploration: Exploration) -> tuple[str, ...]:
    tuning, test = len(exploration.tuning), len(exploration.test)
    failed = [f"{trial.name}: {trial.error:.200}" for trial in exploration.trials if trial.error]
    empty = " and ".join(sorted(name for name, run in exploration.runs.items() if not len(run)))
    return keep(
        min(tuning, test) < _FEW
        and f"{tuning} tuning and {test} test queries are too few to distinguish "
        f"configurations: use {_FEW} or more of each",
        failed and f"{many(len(failed), 'configuration')} failed; {failed[0]}",
        empty and f"no test query has results in {empty}",
    )

"""``explore()``: configurations tried side by side, chosen on some queries, proven on others."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from rankgauge.benchmark.exploration_result import BEFORE, BEST, Exploration, Trial, shown_settings
from rankgauge.benchmark.proposals import Grid, Sampler, Space, key_of
from rankgauge.comparison.comparison import Comparison, compare
from rankgauge.core.grammar import unknown
from rankgauge.core.ids import show_id
from rankgauge.core.text import many
from rankgauge.data.model import Qrels, Run
from rankgauge.data.subsets import drawn, only
from rankgauge.errors import InputError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.measures.measure import Measure, parse

__all__ = ["explore"]

_METHODS = ("grid", "optuna")
_FEW = 20

Build = Callable[[Mapping[str, Any]], Any]
Runner = Callable[[str, Any], tuple[Any, float | None]]


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
    """Try configurations, choose the best on some queries, and look at it on the others.

    The judged queries are split in two, by SHA-256 of seed and id. Every configuration is measured
    on the tuning queries. On the test queries only two are: the best, and the one of today. So the
    value that is reported is not that of the luckiest.

    What was tried is kept when the budget is over or Ctrl-C is pressed. A configuration that fails
    is kept with its error.

    Args:
        build: From a configuration (setting to value) to a retriever, indexed or not.
        run: From a name and a retriever to its run over all queries and its latency in seconds a
            query, or None. What it opens it closes.
        qrels: The judgments: anything that :meth:`Qrels.of` takes.
        space: Setting to the values that are tried.
        measure: What is searched for.
        method: ``grid`` tries every combination, the last setting changing fastest; ``optuna``
            proposes what looks promising (needs ``rankgauge[tuning]``; TPE: Bergstra et al.,
            Algorithms for Hyper-Parameter Optimization, NeurIPS 2011).
        trials: The most configurations of the space that are tried.
        budget: Seconds; after these no other configuration is begun.
        tuning_share: The share of the judged queries to choose on.
        seed: Any whole number: it decides the split, and what Optuna proposes.
        start: The configuration of today. It is tried first, and the best is held against it.
            Settings that are not in the space are the same in all configurations.

    Raises:
        InputError: If there is nothing to choose from, fewer than two judged queries, or if no
            configuration could be run.
        MissingExtra: If Optuna is asked for and not installed.
        UnknownName: For a measure or method nobody knows.

    Example:
        >>> qrels = {f"q{n}": {"d1": 1} for n in range(40)}
        >>> def run(name, place):
        ...     return {q: ["x"] * place + ["d1"] for q in qrels}, 0.01 * place
        >>> found = explore(lambda c: c["place"], run, qrels, {"place": [0]}, start={"place": 0})
        >>> found.best.configuration, found.values
        ({'place': 0}, {'best': 1.0, 'before': 1.0})
    """
    truth = Qrels.of(qrels)
    wanted = _measure(measure)
    _check(method, trials, budget, seed)
    tried = Space.of(space, start)
    tuning, test = _split(truth, tuning_share, seed)
    work = _Work(build, run, truth, wanted, tuple(tuning))
    search = _Search(work, tried, _limit(trials, tried), budget)
    lower = wanted.declaration.better == "lower"
    proposals = Grid(tried) if method == "grid" else Sampler(tried, seed, lower=lower)
    search.go(proposals, start)
    if work.best is None:
        first = search.trials[0].error
        raise InputError(
            f"none of {many(len(search.trials), 'configuration')} could be run; the first said: "
            f"{first:.200}",
            where="explore", fix="see that build() and run() work with one configuration",
        )  # fmt: skip
    return _Told(work, search, tuple(test), method, seed).exploration()


# ---- what is given


def _measure(given: str | Measure) -> Measure:
    wanted = parse(given)
    if wanted.declaration.better == "neither":
        raise InputError(
            f"{wanted} is neither better high nor low", where="measure",
            fix="search for another, such as nDCG@10 or AP",
        )  # fmt: skip
    return wanted


def _check(method: Any, trials: Any, budget: Any, seed: Any) -> None:
    if method not in _METHODS:
        raise unknown("method of a search", str(method), _METHODS)
    for word, given, least in (("trials", trials, 1), ("seed", seed, None)):
        if given is None and word == "trials":
            continue
        whole = isinstance(given, int) and not isinstance(given, bool)
        if not whole or (least is not None and given < least):
            raise InputError(
                f"{word}={given!r:.60} is not possible", where="explore",
                fix=f"{word} is a whole number" + ("" if least is None else f" from {least}"),
            )  # fmt: skip
    number = isinstance(budget, int | float) and not isinstance(budget, bool)
    if budget is not None and not (number and 0 < budget < math.inf):
        raise InputError(
            f"budget={budget!r:.60} is not possible", where="explore",
            fix="budget is a number of seconds above 0",
        )  # fmt: skip
    if method == "optuna" and trials is None and budget is None:
        raise InputError(
            "how long Optuna may search is not said", where="explore",
            fix="give trials=30, or budget=600 (seconds)",
        )  # fmt: skip


def _limit(trials: int | None, space: Space) -> int:
    return space.points if trials is None else min(trials, space.points)


def _split(truth: Qrels, share: Any, seed: int) -> tuple[list[bytes], list[bytes]]:
    """Queries to choose on, and the others."""
    number = isinstance(share, int | float) and not isinstance(share, bool)
    if not number or not 0 < share < 1:
        raise InputError(
            f"tuning_share={share!r:.60} is not possible", where="explore",
            fix="tuning_share is a number between 0 and 1",
        )  # fmt: skip
    order = drawn(truth.query_index, seed)
    if len(order) < 2:
        raise InputError(
            f"{many(len(order), 'judged query')} cannot be split", where="explore",
            fix="judge more queries",
        )  # fmt: skip
    first = min(max(round(share * len(order)), 1), len(order) - 1)
    return order[:first], order[first:]


# ---- the search


class _Proposals(Protocol):
    def propose(self) -> Mapping[str, Any] | None: ...
    def told(self, configuration: Mapping[str, Any], value: float) -> None: ...


@dataclass(eq=False)
class _Work:
    """One configuration after the other; the runs of two are kept."""

    build: Build
    run: Runner
    truth: Qrels
    measure: Measure
    tuning: tuple[bytes, ...]
    best: Trial | None = None
    before: Trial | None = None
    runs: dict[str, Run] = field(default_factory=dict)

    def trial(self, name: str, configuration: Mapping[str, Any]) -> Trial:
        """Build it, run it, and measure it on the tuning queries."""
        began = time.perf_counter()
        value, latency, error, found = math.nan, None, "", None
        try:
            found, latency = _answer(self.run(name, self.build(configuration)))
            value = self.mean(found, self.tuning)
        except Exception as problem:  # noqa: BLE001 - whatever fails is what is to be told of it
            error = f"{type(problem).__name__}: {problem}".splitlines()[0]
        if not error and math.isnan(value):
            error = f"{self.measure} is undefined for all tuning queries"
        trial = Trial(
            name, dict(configuration), value, None if error else latency,
            time.perf_counter() - began, error,
        )  # fmt: skip
        if found is not None and not error:
            self._keep(trial, found)
        return trial

    def _keep(self, trial: Trial, found: Run) -> None:
        sign = -1 if self.measure.declaration.better == "lower" else 1
        # The first of equals stays, so that today's has to be beaten.
        if self.best is None or sign * trial.value > sign * self.best.value:
            self.best = trial
            self.runs[BEST] = found
        if trial.name == BEFORE:
            self.before = trial
            self.runs[BEFORE] = found

    def mean(self, found: Run, queries: Sequence[bytes]) -> float:
        """The mean over these queries."""
        evaluation = evaluate(self.truth, found, self.measure, queries=list(queries))
        return evaluation.mean()[str(self.measure)]


def _answer(given: Any) -> tuple[Run, float | None]:
    if not isinstance(given, tuple) or len(given) != 2:
        raise InputError(
            f"run() gave {type(given).__name__}, wanted two things", where="explore",
            fix="return (run, seconds a query), or (run, None)",
        )  # fmt: skip
    latency = given[1]
    number = isinstance(latency, int | float) and not isinstance(latency, bool)
    if latency is not None and not (number and 0 <= latency < math.inf):
        raise InputError(
            f"run() gave {latency!r:.60} for the latency", where="explore",
            fix="give seconds a query, or None",
        )  # fmt: skip
    return Run.of(given[0]), None if latency is None else float(latency)


@dataclass(eq=False)
class _Search:
    """What was tried so far, and when to stop."""

    work: _Work
    space: Space
    limit: int
    budget: float | None
    trials: list[Trial] = field(default_factory=list)
    stopped: str = ""

    def go(self, proposals: _Proposals, start: Mapping[str, Any] | None) -> None:
        """Try until everything asked for was tried, time is over, or Ctrl-C is pressed."""
        ends = math.inf if self.budget is None else time.monotonic() + self.budget
        known: set[str] = set()
        name = BEFORE
        try:
            if start is not None:
                known.add(key_of(start))
                self._try(name, start, proposals)
            inside = int(start is not None and self.space.holds(start))
            for number in itertools.count(1 + inside):
                if number > self.limit:
                    return
                if time.monotonic() >= ends:
                    self.stopped = f"the budget of {self.budget:g} s was over"
                    return
                configuration = self._next(proposals, known)
                if configuration is None:
                    return
                name = str(number)
                known.add(key_of(configuration))
                self._try(name, configuration, proposals)
        except KeyboardInterrupt:
            if not self.trials:
                raise
            self.stopped = f"interrupted in {name if name == BEFORE else f'number {name}'}"

    @staticmethod
    def _next(proposals: _Proposals, known: set[str]) -> Mapping[str, Any] | None:
        while (configuration := proposals.propose()) is not None:
            if key_of(configuration) not in known:
                return configuration
        return None

    def _try(self, name: str, configuration: Mapping[str, Any], proposals: _Proposals) -> None:
        trial = self.work.trial(name, configuration)
        self.trials.append(trial)
        if self.space.holds(configuration):
            proposals.told(configuration, trial.value)


# ---- what came of it


@dataclass(frozen=True, eq=False)
class _Told:
    """From a search to what is told of it."""

    work: _Work
    search: _Search
    test: tuple[bytes, ...]
    method: str
    seed: int

    @property
    def best(self) -> Trial:
        """There is one, or nothing would be told."""
        return self.work.best or self.search.trials[0]

    def exploration(self) -> Exploration:
        """The whole of it."""
        work = self.work
        # By ids as bytes: one query is one query, whatever it looks like.
        runs = {name: replace(only(found, self.test), name=name) for name, found in
                work.runs.items()}  # fmt: skip
        qrels = only(work.truth, self.test)
        values = {name: work.mean(work.runs[name], self.test) for name in sorted(work.runs)[::-1]}
        bare = Exploration(
            measure=work.measure, method=self.method, trials=tuple(self.search.trials),
            points=self.search.space.points, best=self.best, before=work.before, values=values,
            tuning=tuple(map(show_id, work.tuning)), test=tuple(map(show_id, self.test)),
            seed=self.seed, runs=runs, qrels=qrels, comparison=self._comparison(runs, qrels),
            sentences=(), warnings=(), settings=self.search.space.settings,
        )  # fmt: skip
        return replace(
            bare, sentences=tuple(self._sentences(bare)), warnings=tuple(self._warnings())
        )

    def _comparison(self, runs: Mapping[str, Run], qrels: Qrels) -> Comparison | None:
        same = self.work.before is None or self.work.before is self.best
        if same or len(self.test) < 2 or not all(map(len, runs.values())):
            return None
        pair = {BEFORE: runs[BEFORE], BEST: runs[BEST]}
        return compare(qrels, pair, self.work.measure, baseline=BEFORE)

    def _sentences(self, found: Exploration) -> Iterator[str]:
        search, measure = self.search, self.work.measure
        inside = sum(search.space.holds(trial.configuration) for trial in search.trials)
        outside = " and that of today" if inside < len(search.trials) else ""
        yield (
            f"{inside} of {many(found.points, 'configuration')}{outside} tried ({self.method}), "
            f"chosen by {measure} on {many(len(found.tuning), 'query')}, looked at on "
            f"{many(len(found.test), 'other')} (seed {self.seed})"
        )
        if search.stopped:
            yield f"not all were tried: {search.stopped}"
        yield (
            f"best: {shown_settings(self.best.configuration, found.settings)}; {measure} "
            f"{self.best.value:.4f} on the tuning queries, {found.values[BEST]:.4f} on the test "
            "queries, which is the one to report"
        )
        if found.before is not None:
            yield (
                f"before: {measure} {found.before.value:.4f} on the tuning queries, "
                f"{found.values[BEFORE]:.4f} on the test queries"
            )
            yield from self._steps(found, found.before)

    def _steps(self, found: Exploration, before: Trial) -> Iterator[str]:
        apart = self.best.differs(before.configuration)
        if not apart:
            yield "the configuration of today is the best of those that were tried"
            return
        names = " and ".join(apart) if len(apart) < 3 else ", ".join(apart)
        if len(apart) == 1:
            yield f"best and before differ in one setting: {names}"
            return
        yield (
            f"best and before differ in {len(apart)} settings ({names}): nobody knows which did it"
        )
        untried = found.untried
        if untried:
            shown = "; ".join(shown_settings(one, found.settings) for one in untried[:3])
            more = f"; and {len(untried) - 3} more" if len(untried) > 3 else ""
            yield f"to know it, try one setting at a time: {shown}{more}"
        else:
            yield "every step of one setting was tried: see the ablation"

    def _warnings(self) -> Iterator[str]:
        tuning, test = len(self.work.tuning), len(self.test)
        if tuning < _FEW or test < _FEW:
            yield (
                f"{many(tuning, 'query')} to choose on and {test} to look at are too few to tell "
                f"configurations apart: give {_FEW} or more of each"
            )
        failed = [trial for trial in self.search.trials if trial.error]
        if failed:
            yield (
                f"{many(len(failed), 'configuration')} failed; {failed[0].name}: "
                f"{failed[0].error:.200}"
            )
        empty = [name for name, found in self.work.runs.items() if not len(only(found, self.test))]
        if empty:
            yield f"no test query has a ranking in {' and '.join(sorted(empty))}"

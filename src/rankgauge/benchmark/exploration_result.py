"""What came of a search over configurations: what was tried, what is best, and what that says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankgauge.benchmark.pareto import Point, pareto_front, plot_pareto
from rankgauge.comparison.comparison import Comparison
from rankgauge.core.text import many
from rankgauge.corpus.collection import Collection
from rankgauge.data.model import Qrels, Run
from rankgauge.diagnosis.diagnosis import Diagnosis, diagnose
from rankgauge.errors import InputError
from rankgauge.measures.measure import Measure
from rankgauge.rendering.plotting import Plot
from rankgauge.rendering.tables import Cell, Table, to_html

__all__ = ["BEFORE", "BEST", "Exploration", "Trial", "before_after", "shown_settings"]

BEFORE, BEST = "before", "best"


@dataclass(frozen=True)
class Trial:
    """One configuration that was tried.

    Attributes:
        name: What it is called: ``before``, or its number.
        configuration: Its settings.
        value: The mean over the tuning queries; NaN if it failed.
        latency: Seconds a query; None if that was not measured.
        seconds: How long it took to build and run.
        error: What went wrong; empty if nothing did.
    """

    name: str
    configuration: Mapping[str, Any]
    value: float
    latency: float | None
    seconds: float
    error: str = ""

    def differs(self, other: Mapping[str, Any]) -> tuple[str, ...]:
        """The settings in which it is another configuration."""
        mine = self.configuration
        names = dict.fromkeys([*mine, *other])
        return tuple(n for n in names if (n in mine, mine.get(n)) != (n in other, other.get(n)))


@dataclass(frozen=True, repr=False)
class Exploration:
    """Configurations side by side: chosen on some queries, looked at on others.

    Made by :func:`explore`. Shows itself as a table in a notebook.

    Attributes:
        measure: What was searched for.
        method: ``grid`` or ``optuna``.
        trials: What was tried, in this order.
        points: How many configurations the space has.
        best: The best trial by the tuning queries; of equals the first.
        before: The configuration of today; None if none was given, or it failed.
        values: The means of ``best`` and ``before`` over the test queries.
        tuning: The queries it was chosen on.
        test: The other judged queries.
        seed: What decided which are which.
        runs: The runs of ``best`` and ``before``, of the test queries.
        qrels: The judgments of the test queries.
        comparison: The two compared on the test queries; None if they are the same, or there are
            too few queries.
        sentences: What was done, and what came of it.
        warnings: What speaks against it.
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
        """Whether the measure is better the lower it is."""
        return self.measure.declaration.better == "lower"

    @property
    def pareto(self) -> tuple[Trial, ...]:
        """The trials that none is at least as good as in both, and better than in one.

        By quality on the tuning queries and latency; fastest first. Empty without latencies.
        """
        by_name = {trial.name: trial for trial in self.trials}
        points = [
            Point(name, trial.value, trial.latency)
            for name, trial in by_name.items()
            if trial.latency is not None
        ]
        return tuple(by_name[point.name] for point in pareto_front(points, lower=self.lower))

    def plot(self) -> Plot:
        """Quality over latency with the Pareto front (needs ``rankgauge[plots]`` to be shown).

        Raises:
            InputError: If no latency was measured.
        """
        names = self._varied()
        points = [
            Point(shown_settings(trial.configuration, names), trial.value, trial.latency)
            for trial in self.trials
            if trial.latency is not None
        ]
        return plot_pareto(points, f"{self.measure} (tuning queries)", lower=self.lower)

    @property
    def untried(self) -> tuple[Mapping[str, Any], ...]:
        """The configurations one setting away from ``before`` or ``best`` that would tell.

        Each has one setting of ``before`` as it is in ``best``, or one of ``best`` as it was
        before; those that were tried are left out. Empty if the two differ in one setting or none.
        """
        if self.before is None:
            return ()
        old, new = self.before.configuration, self.best.configuration
        apart = self.best.differs(old)
        if len(apart) < 2:
            return ()
        steps = [{**old, name: new.get(name)} for name in apart]
        steps += [{**new, name: old.get(name)} for name in apart]
        tried = [trial.configuration for trial in self.trials]
        found: list[Mapping[str, Any]] = []
        for step in steps:
            if step not in tried and step not in found:
                found.append(step)
        return tuple(found)

    def table(self) -> Table:
        """One line for each trial, the best first, with the sentences below."""
        sign = 1 if self.lower else -1
        order = sorted(
            self.trials, key=lambda t: (math.isnan(t.value), 0 if t.error else sign * t.value)
        )
        front = {trial.name for trial in self.pareto}
        timed = any(trial.latency is not None for trial in self.trials)
        rows = tuple(
            (
                trial.name,
                *(shown_value(trial.configuration.get(name)) for name in self.settings),
                trial.value,
                *((_milliseconds(trial.latency),) if timed else ()),
                ", ".join(self._marks(trial, front)),
            )
            for trial in order
        )
        return Table(
            columns=(
                "configuration", *self.settings, f"{self.measure}, tuning",
                *(("ms a query",) if timed else ()), "",
            ),
            rows=rows,
            best=frozenset({(0, len(self.settings) + 1)}),
            notes=(*self.sentences, *(f"WARNING: {text}" for text in self.warnings)),
        )  # fmt: skip

    def _marks(self, trial: Trial, front: set[str]) -> Iterator[str]:
        if trial is self.best:
            yield BEST
        if trial.name in front:
            yield "Pareto front"
        if trial.error:
            yield f"failed: {trial.error:.80}"

    def ablation(self) -> Table:
        """The neighbours of the best that were tried: one setting changed, all others as they are.

        What a setting does next to the best, and no more: next to others it may do something else.
        """
        rows: list[tuple[Cell, ...]] = []
        seen: set[str] = set()
        for trial in self.trials:
            apart = trial.differs(self.best.configuration)
            if len(apart) != 1 or trial.error:
                continue
            name = apart[0]
            seen.add(name)
            rows.append((
                name, shown_value(self.best.configuration.get(name)),
                shown_value(trial.configuration.get(name)), trial.value,
                f"{trial.value - self.best.value:+.4f}", trial.name,
            ))  # fmt: skip
        rows.sort(key=lambda row: self.settings.index(str(row[0])))
        without = [name for name in self._varied() if name not in seen]
        notes = [f"on {many(len(self.tuning), 'tuning query')}; best: {self.best.value:.4f}"]
        if without:
            notes.append(f"no neighbour was tried in: {', '.join(without)}")
        return Table(
            columns=("setting", BEST, "instead", str(self.measure), "difference", "configuration"),
            rows=tuple(rows),
            title="one setting changed at a time",
            notes=tuple(notes),
        )

    def _varied(self) -> list[str]:
        first = self.trials[0].configuration
        apart = {name for trial in self.trials for name in trial.differs(first)}
        return [name for name in self.settings if name in apart]

    def diagnoses(
        self, collection: Collection | None = None, *, k: int = 5
    ) -> tuple[Diagnosis, Diagnosis]:
        """Why ``before`` and ``best`` are as they are, on the test queries.

        Args:
            collection: The texts; see :func:`diagnose`.
            k: The cut-off.

        Raises:
            InputError: If there is no ``before``.
        """
        if BEFORE not in self.runs:
            raise InputError(
                "there is nothing to hold the best against", where="before and after",
                fix="give explore() the configuration of today: start={...}",
            )  # fmt: skip
        old, new = (diagnose(self.qrels, self.runs[n], collection, k=k) for n in (BEFORE, BEST))
        return old, new

    def before_after(self, collection: Collection | None = None, *, k: int = 5) -> Table:
        """Failure patterns of ``before`` and ``best`` on the test queries, side by side."""
        return before_after(*self.diagnoses(collection, k=k))

    def _repr_html_(self) -> str:
        return to_html(self.table())

    def __repr__(self) -> str:
        return (
            f"<Exploration of {many(len(self.trials), 'configuration')} by {self.measure}: best is "
            f"{shown_settings(self.best.configuration)}>"
        )


def before_after(before: Diagnosis, after: Diagnosis) -> Table:
    """Means and failure patterns of two diagnoses side by side: what went away, what came.

    Args:
        before: The diagnosis of the run of today.
        after: That of the other run, with the same judgments and cut-off.

    Raises:
        InputError: If they are of different queries or cut-offs.

    Example:
        >>> qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
        >>> old = diagnose(qrels, {"q1": ["x", "y"], "q2": ["x", "d2"]}, k=1)
        >>> new = diagnose(qrels, {"q1": ["d1"], "q2": ["x", "d2"]}, k=1)
        >>> [row[1:] for row in before_after(old, new).rows if row[0] == "not retrieved: queries"]
        [(1, 0, '-1')]
    """
    for word in ("k", "rel", "queries"):
        if getattr(before, word) != getattr(after, word):
            raise InputError(
                f"{word} is {getattr(before, word)} before and {getattr(after, word)} after",
                where="before_after", fix="diagnose both runs with the same judgments and k",
            )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (name, value, after.now[name], f"{after.now[name] - value:+.4f}")
        for name, value in before.now.items()
        if name in after.now
    ]
    withheld = [f"WARNING: {d.run_name}: {one}" for d in (before, after) for one in d.withheld]
    if before.failing is not None and after.failing is not None:
        rows.append(_counts(f"queries that miss a relevant document in the first {before.k}",
                            before.failing, after.failing))  # fmt: skip
    # Where the input explains the numbers of one, no causes are named.
    for old, new in () if withheld else zip(before.totals, after.totals, strict=True):
        if not (old.looked_at and new.looked_at):
            continue
        if old.queries or new.queries:
            rows.append(_counts(f"{old.cause.name}: queries", old.queries, new.queries))
            if old.documents is not None and new.documents is not None:
                rows.append(_counts(f"{old.cause.name}: documents", old.documents, new.documents))
    return Table(
        columns=("", BEFORE, "after", "change"),
        rows=tuple(rows),
        title=f"{before.run_name} and {after.run_name}, {many(before.queries, 'query')}",
        notes=tuple(
            dict.fromkeys([*withheld, *(f"not looked at: {t}" for t in before.not_looked_at)])
        ),
    )


def _counts(what: str, before: int, after: int) -> tuple[Cell, ...]:
    return what, before, after, f"{after - before:+d}" if after != before else "0"


def shown_settings(configuration: Mapping[str, Any], names: Sequence[str] | None = None) -> str:
    """Settings in one line, all or some of them."""
    wanted = configuration if names is None else names
    shown = (f"{name}={shown_value(configuration.get(name))}" for name in wanted)
    return ", ".join(shown) or "no settings"


def shown_value(value: Any) -> str:
    """A setting for people: a table with a type as ``type(other=...)``."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{k}={shown_value(v)}" for k, v in value.items() if k != "type")
        return f"{value.get('type', '')}({inner})"
    return value if isinstance(value, str) else f"{value!r:.40}"


def _milliseconds(latency: float | None) -> Cell:
    return None if latency is None else latency * 1000

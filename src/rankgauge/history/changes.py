"""Two saved evaluations, query by query: what changed, and whether they may be compared at all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from rankgauge import stats
from rankgauge.errors import InputError, MismatchError
from rankgauge.evaluation import Evaluation
from rankgauge.history.entries import Entry
from rankgauge.kernels.measure import Measure, parse
from rankgauge.notes import many
from rankgauge.render import Table, to_html
from rankgauge.table import FloatArray

__all__ = ["Change", "Step", "apart", "change_between", "obstacles", "step_between"]

Verdict: TypeAlias = Literal["better", "worse", "changed", "cannot tell", "borderline", "identical"]

_ALPHA = 0.05
_DRAWS = 10_000
# Values are sums of a few products; what is nearer than this is the same value.
_SAME = 1e-12


@dataclass(frozen=True)
class Step:
    """From one evaluation to another by one measure, over the queries that both have.

    Attributes:
        measure: The measure.
        queries: How many queries were compared.
        before: The mean of the first over these queries, undefined counted as in its mean.
        after: The mean of the second.
        difference: The mean of the differences per query, second minus first.
        low: Lower end of the confidence interval of the difference (paired t).
        high: Upper end.
        level: The confidence of the interval.
        p: Two-sided p-value (paired randomisation); None where it was not tested.
        wins: Queries in which the second has the better value.
        ties: Queries in which both have the same.
        losses: Queries in which the first has the better value.
    """

    measure: Measure
    queries: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    level: float
    p: float | None
    wins: int
    ties: int
    losses: int

    @property
    def is_worse(self) -> bool:
        """Whether the whole interval lies on the worse side of zero."""
        better = self.measure.declaration.better
        return self.low > 0 if better == "lower" else better == "higher" and self.high < 0

    @property
    def verdict(self) -> Verdict | None:
        """What the test and the interval say; None where nothing was tested."""
        if self.p is None:
            return None
        if not self.wins + self.losses:
            return "identical"
        sure = self.low > 0 or self.high < 0
        if (self.p < _ALPHA) != sure:
            return "borderline"
        if not sure:
            return "cannot tell"
        if self.measure.declaration.better == "neither":
            return "changed"
        return "worse" if self.is_worse else "better"


@dataclass(frozen=True, repr=False)
class Change:
    """Two saved evaluations side by side. Made by :meth:`History.compare`.

    Attributes:
        before: The first.
        after: The second.
        steps: One for each measure; the first is tested, the others are described.
        differs: What makes the two not comparable, in sentences; not empty only where the
            comparison was asked for all the same.
        notes: What else a reader has to know.
    """

    before: Entry
    after: Entry
    steps: tuple[Step, ...]
    differs: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What can be said by the first measure."""
        step = self.steps[0]
        spread = f"difference {step.difference:+.3f}, interval {step.low:+.3f} to {step.high:+.3f}"
        pair = f"{self.after.name} against {self.before.name} by {step.measure}"
        match step.verdict:
            case "identical":
                return f"{pair}: identical in every query"
            case "better" | "worse" | "changed":
                return f"{pair}: {step.verdict}, {spread}"
            case "borderline":
                return f"{pair}: {spread}: borderline (interval and p-value disagree)"
            case _:
                return f"{pair}: {spread}: cannot tell"

    def table(self) -> Table:
        """One line a measure, with the sentences below."""
        return Table(
            columns=(
                "measure",
                str(self.before.id),
                str(self.after.id),
                "difference",
                "95 % interval",
                "win/tie/loss",
                "p",
                "verdict",
            ),
            rows=tuple(_line(step) for step in self.steps),
            title=f"{self.after.name} against {self.before.name}",
            notes=(
                *(f"WARNING: not comparable: {text}" for text in self.differs),
                self.sentence,
                *self.notes,
            ),
        )

    def data_table(self) -> Table:
        """One line a measure, in plain numbers, for programs."""
        return Table(
            columns=(
                "measure", "before_id", "after_id", "queries", "before", "after", "difference",
                "low", "high", "p", "wins", "ties", "losses", "verdict", "differs",
            ),
            rows=tuple(
                (
                    str(step.measure),
                    self.before.id,
                    self.after.id,
                    step.queries,
                    step.before,
                    step.after,
                    step.difference,
                    step.low,
                    step.high,
                    step.p,
                    step.wins,
                    step.ties,
                    step.losses,
                    step.verdict or "",
                    "; ".join(self.differs),
                )
                for step in self.steps
            ),
        )  # fmt: skip

    def _repr_html_(self) -> str:
        return to_html(self.table())

    def __repr__(self) -> str:
        return f"<Change from {self.before.name} to {self.after.name} by {self.steps[0].measure}>"


def _line(step: Step) -> tuple[str | float | None, ...]:
    return (
        str(step.measure),
        step.before,
        step.after,
        f"{step.difference:+.3f}",
        f"{step.low:+.3f} to {step.high:+.3f}",
        f"{step.wins}/{step.ties}/{step.losses}",
        None if step.p is None else f"{step.p:.4f}",
        step.verdict or "",
    )


def obstacles(before: Entry, after: Entry) -> Iterator[str]:
    """Why two evaluations cannot be compared: other judgments, other policies, other weights."""
    if before.qrels != after.qrels:
        yield (
            f"other judgments ({before.qrels[:8]} in {before.id}, {after.qrels[:8]} in {after.id})"
        )
    # Which queries were averaged does not matter here: those that both have are compared.
    for name in ("ties", "duplicates", "undefined", "unjudged"):
        one, other = getattr(before.policies, name), getattr(after.policies, name)
        if one != other:
            yield f"another policy ({name}={one} in {before.id}, {name}={other} in {after.id})"
    if before.weighted != after.weighted:
        plain, weighted = (before, after) if after.weighted else (after, before)
        yield f"means of {weighted.id} are weighted by query, those of {plain.id} are not"


def change_between(
    first: tuple[Entry, Evaluation],
    second: tuple[Entry, Evaluation],
    wanted: Iterable[str | Measure] | None,
    *,
    anyway: bool,
) -> Change:
    """What changed from one evaluation to another.

    Raises:
        MismatchError: If they cannot be compared, unless `anyway`.
        InputError: If they have fewer than two queries, or no measure, in common.
    """
    (before, one), (after, other) = first, second
    differs = list(obstacles(before, after))
    pairs = list(_measure_pairs(before, after, wanted))
    differs += [
        f"another definition ({own} in {before.id}, {its} in {after.id})"
        for own, its in pairs
        if own != its
    ]
    if differs and not anyway:
        raise MismatchError(
            f"evaluations {before.id} and {after.id} are not comparable: {'; '.join(differs)}",
            where="history",
            fix="evaluate both runs on the same judgments; or compare what queries they share "
            "with --anyway (anyway=True), knowing that",
        )
    steps = [
        step_between(one, other, own, its, tested=place == 0)
        for place, (own, its) in enumerate(pairs)
    ]
    return Change(before, after, tuple(steps), tuple(differs), tuple(_notes(first, second, steps)))


def _measure_pairs(
    before: Entry, after: Entry, wanted: Iterable[str | Measure] | None
) -> Iterator[tuple[Measure, Measure]]:
    """The measures of each side that are held against each other."""
    if wanted is None:
        shared = [name for name in before.means if name in after.means]
        if not shared:
            raise InputError(
                f"evaluations {before.id} and {after.id} have no measure in common",
                where="history",
                fix=f"they have {', '.join(before.means)}; and {', '.join(after.means)}",
            )
        # What the first evaluation calls its first measure decides, unless nDCG@10 is there.
        shared.sort(key=lambda name: name != "nDCG@10")
        yield from ((parse(name), parse(name)) for name in shared)
        return
    for name in wanted:
        measure = parse(name)
        yield _nearest(before, measure), _nearest(after, measure)


def _nearest(entry: Entry, wanted: Measure) -> Measure:
    """The measure, or the only one of its name and cut-off with other parameters."""
    if str(wanted) in entry.means:
        return wanted
    cut = dict(wanted.params).get("k")
    others = [parse(name) for name in entry.means]
    near = [m for m in others if m.name == wanted.name and dict(m.params).get("k") == cut]
    if len(near) != 1:
        raise InputError(
            f"{wanted} was not evaluated in {entry.id}",
            where="history",
            fix=f"evaluated: {', '.join(entry.means)}",
        )
    return near[0]


def apart(
    one: Evaluation, other: Evaluation, own: Measure, its: Measure
) -> tuple[FloatArray, FloatArray]:
    """The values of both, for the queries they share, undefined as in the mean."""
    columns = one.measures.index(own), other.measures.index(its)
    mine = one.per_query[:, columns[0]]
    theirs = other.per_query[:, columns[1]]
    if one.query_ids != other.query_ids:
        rows = {query: row for row, query in enumerate(other.query_ids)}
        shared = [(row, rows[q]) for row, q in enumerate(one.query_ids) if q in rows]
        mine = mine[[row for row, _ in shared]]
        theirs = theirs[[row for _, row in shared]]
    if own.declaration.undefined == "skip" or one.policies.undefined == "skip":
        both = ~np.isnan(mine) & ~np.isnan(theirs)
        return mine[both], theirs[both]
    return np.nan_to_num(mine, nan=0.0), np.nan_to_num(theirs, nan=0.0)


def step_between(
    one: Evaluation,
    other: Evaluation,
    own: Measure,
    its: Measure | None = None,
    *,
    level: float = 0.95,
    tested: bool = False,
) -> Step:
    """From one evaluation to another by one measure.

    Raises:
        InputError: If they share fewer than two queries.
    """
    mine, theirs = apart(one, other, own, own if its is None else its)
    if len(mine) < 2:
        raise InputError(
            f"the two evaluations share {many(len(mine), 'query')} with a value of {own}",
            where="history",
            fix="compare evaluations that share two queries or more",
        )
    moved = theirs - mine
    moved[np.abs(moved) <= _SAME] = 0.0
    interval = stats.t_interval(moved, level)
    p = None
    if tested:
        seed = stats.seed_of(mine, theirs)
        p = float(stats.randomisation_test(moved, _DRAWS, seed).p[0]) if moved.any() else 1.0
    gains = -moved if own.declaration.better == "lower" else moved
    return Step(
        measure=own,
        queries=len(moved),
        before=math.fsum(mine.tolist()) / len(mine),
        after=math.fsum(theirs.tolist()) / len(theirs),
        difference=interval.mean,
        low=interval.low,
        high=interval.high,
        level=level,
        p=p,
        wins=int((gains > 0).sum()),
        ties=int((gains == 0).sum()),
        losses=int((gains < 0).sum()),
    )


def _notes(
    first: tuple[Entry, Evaluation], second: tuple[Entry, Evaluation], steps: Sequence[Step]
) -> Iterator[str]:
    (before, one), (after, other) = first, second
    shared = len(set(one.query_ids) & set(other.query_ids))
    if one.query_ids != other.query_ids and shared < max(before.queries, after.queries):
        yield (
            f"{many(shared, 'query')} in common, of {before.queries} in {before.id} and "
            f"{after.queries} in {after.id}: only these are compared"
        )
    if before.weighted or after.weighted:
        yield "weights of queries are left out: every query counts the same here"
    if any(step.measure.declaration.mean != "arithmetic" for step in steps):
        yield "means here are arithmetic, also of measures whose own mean is another"
    if before.ranking is not None and before.ranking == after.ranking:
        yield "both are evaluations of the same ranking"
    made = [_release(entry) for entry in (before, after)]
    if made[0] != made[1]:
        yield (
            f"made by rankgauge {made[0]} and {made[1]}: the changelog says which numbers changed"
        )
    yield (
        f"tested: {steps[0].measure}, two-sided, paired randomisation; the other measures are "
        "described only"
        if len(steps) > 1
        else f"tested: {steps[0].measure}, two-sided, paired randomisation"
    )


def _release(entry: Entry) -> str:
    return ".".join(str(entry.versions.get("rankgauge", "?")).split(".")[:2])

"""Two saved evaluations, query by query: what changed, and whether they may be compared at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankgauge.comparison.conclusions import units
from rankgauge.comparison.differences import (
    Design,
    Difference,
    Verdict,
    described,
    differences,
    seed_of,
)
from rankgauge.core.text import many
from rankgauge.errors import InputError, MismatchError
from rankgauge.evaluation.result import Evaluation
from rankgauge.history.entries import Entry
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.tables import Table, to_html

__all__ = ["Change", "Step", "change_between", "obstacles", "step_between"]

# Two evaluations may be of one run: here they are called by what they are to each other.
_BEFORE, _AFTER = "before", "after"
_LEVEL = 0.95


@dataclass(frozen=True)
class Step:
    """From one evaluation to another by one measure, over the queries that both have.

    Attributes:
        measure: The measure.
        queries: How many queries were compared.
        before: The mean of the first, over the queries that both evaluations have.
        after: The mean of the second.
        difference: The mean of the differences per query, second minus first.
        low: Lower end of the confidence interval of the difference (paired t).
        high: Upper end.
        level: The confidence of the interval.
        p: Two-sided p-value (paired randomisation); None where it was not tested.
        wins: Queries in which the second has the better value.
        ties: Queries in which both have the same.
        losses: Queries in which the first has the better value.
        verdict: As in a comparison (see :class:`Difference`); None where it was not tested.
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
    verdict: Verdict | None

    @property
    def is_worse(self) -> bool:
        """Whether the whole interval lies on the worse side of zero."""
        better = self.measure.declaration.better
        return self.low > 0 if better == "lower" else better == "higher" and self.high < 0

    @classmethod
    def of(cls, found: Difference, level: float) -> Step:
        """A step from the difference that was found, with an interval of this level."""
        return cls(
            measure=found.measure,
            queries=found.queries,
            before=found.baseline_mean,
            after=found.mean,
            difference=found.difference,
            low=found.low,
            high=found.high,
            level=level,
            p=found.p,
            wins=found.wins,
            ties=found.ties,
            losses=found.losses,
            verdict=found.verdict,
        )


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
        spread = f"difference {step.difference:+.3f} (95% CI {step.low:+.3f} to {step.high:+.3f})"
        pair = f"{self.after.name} against {self.before.name} by {step.measure}"
        match step.verdict:
            case "identical":
                return f"{pair}: identical in every query"
            case "better" | "worse" | "higher" | "lower":
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
    for name in ("ties", "duplicates", "undefined", "unjudged", "draws", "seed"):
        one, other = getattr(before.policies, name), getattr(after.policies, name)
        if one != other:
            yield f"another policy ({name}={one} in {before.id}, {name}={other} in {after.id})"
    named = ["ours" if e.profile is None else e.profile.name for e in (before, after)]
    if named[0] != named[1]:
        yield f"another tool's way (profile {named[0]} in {before.id}, {named[1]} in {after.id})"
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
    design = None
    steps = []
    for own, its in pairs:
        sides = _side_by_side(one, other, own, its)
        if design is None:
            design = Design((own,), _BEFORE, seed=seed_of(sides, [own]))
            found = next(differences(sides, design))
        else:
            found = described(sides[1], sides[0], own, _LEVEL)
        if found.queries < 2:
            raise InputError(
                f"the two evaluations share {many(found.queries, 'query')} with a value of {own}",
                where="history",
                fix="compare evaluations that share two queries or more",
            )
        steps.append(Step.of(found, _LEVEL))
    notes = _notes(first, second, steps)
    how = () if design is None else (design.in_words(),)
    return Change(before, after, tuple(steps), tuple(differs), (*notes, *how))


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


def _side_by_side(
    one: Evaluation, other: Evaluation, own: Measure, its: Measure
) -> tuple[Evaluation, Evaluation]:
    """Both by one measure, as a comparison takes them: cut to the queries that both have.

    Weights are left out: in a difference every query counts the same.
    """
    rows = {other.query_ids[row]: row for row in _counted(other, its)}
    mine = [(row, one.query_ids[row]) for row in _counted(one, own)]
    shared = [(row, rows[query]) for row, query in mine if query in rows]
    after = _cut(other, [row for _, row in shared], its, _AFTER)
    return (
        _cut(one, [row for row, _ in shared], own, _BEFORE),
        replace(after, measures=(own,)),
    )


def _counted(whole: Evaluation, measure: Measure) -> Sequence[int]:
    """The rows of the queries that count for a measure."""
    if whole.left_out is None:
        return range(len(whole.query_ids))
    rows: list[int] = np.flatnonzero(~whole.left_out[:, whole.measures.index(measure)]).tolist()
    return rows


def _cut(whole: Evaluation, rows: Sequence[int], measure: Measure, name: str) -> Evaluation:
    places = np.ix_(rows, [whole.measures.index(measure)])
    return replace(
        whole,
        run_name=name,
        query_ids=tuple(whole.query_ids[row] for row in rows),
        measures=(measure,),
        per_query=whole.per_query[places],
        undefined=whole.undefined[places],
        weights=None,
        groups=None,
        left_out=None,
    )


def step_between(
    one: Evaluation, other: Evaluation, measure: Measure, level: float = _LEVEL
) -> Step | None:
    """From one evaluation to another by one measure, untested.

    None where they share fewer than two queries that have a value.
    """
    before, after = _side_by_side(one, other, measure, measure)
    found = described(after, before, measure, level)
    return None if found.queries < 2 else Step.of(found, level)


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
    yield from units([step.measure for step in steps])
    fewer = [f"{step.measure} {step.queries}" for step in steps if step.queries < shared]
    if fewer:
        yield (
            f"queries left out of differences, having no value in one or both; compared are: "
            f"{', '.join(fewer)}"
        )
    if before.ranking is not None and before.ranking == after.ranking:
        yield "both are evaluations of the same ranking"
    made = [_release(entry) for entry in (before, after)]
    if made[0] != made[1]:
        yield (
            f"made by rankgauge {made[0]} and {made[1]}: the changelog says which numbers changed"
        )


def _release(entry: Entry) -> str:
    return ".".join(str(entry.versions.get("rankgauge", "?")).split(".")[:2])

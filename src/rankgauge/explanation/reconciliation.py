"""`reconcile()`: explain the difference between two means, deviation by deviation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.ids import Id
from rankgauge.core.policies import Duplicates, Policies, Ties, Undefined, Unjudged
from rankgauge.core.text import keep
from rankgauge.evaluation.evaluation import Queries
from rankgauge.evaluation.profile_deviations import Case, Deviation, Profile
from rankgauge.evaluation.profiles import profile_of
from rankgauge.explanation.calculation import number
from rankgauge.explanation.cases import counted_by_query, evaluate_case, make_case
from rankgauge.explanation.explanation import Explanation, explain_case
from rankgauge.measures.measure import Measure
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Signed, Table, by_column

_LEFT = "unexplained"
_FEWEST, _MANY = 6, 12  # decimals of the means


@dataclass(frozen=True)
class Contribution:
    """The effect of one deviation on a mean.

    Attributes:
        name: The name of the deviation, such as ``32-bit scores``.
        why: A description in one sentence.
        of: The part that it changes: the run, the judgments, a policy, or the measure.
        mean: The mean with this and all previous deviations.
        change: The change of the mean.
        touched: The number of queries whose value changes.
        left: The number of queries removed from the mean.
        entered: The number of queries added to the mean.
    """

    name: str
    why: str
    of: str
    mean: float
    change: float
    touched: int
    left: int
    entered: int


@dataclass(frozen=True)
class QueryChange:
    """A query whose value differs between the two sides.

    Attributes:
        query: The query id, as text.
        ours: The value of rankgauge; None if it is not in the mean.
        theirs: The other value; None if it is not in the mean.
        by: (deviation, change) for each deviation that changed the value, in order; the change is
            NaN if the deviation removed the query from the mean or added it.
    """

    query: str
    ours: float | None
    theirs: float | None
    by: tuple[tuple[str, float], ...]

    @property
    def change(self) -> float:
        """Change of the value; NaN if it is missing on one side."""
        return math.nan if self.ours is None or self.theirs is None else self.theirs - self.ours


@dataclass(frozen=True)
class Target:
    """The source of the other mean, and the mean itself if given.

    Attributes:
        name: The name of a profile or file.
        mean: The given mean; None if it results from the deviations.
        values: The given values by query; None if not given.
        slack: The rounding error of the given mean.
        digits: The number of decimals to which the tool rounds its mean; None without rounding.
    """

    name: str
    mean: float | None = None
    values: Mapping[str, float] | None = None
    slack: float = TOLERANCE
    digits: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Reconciliation(Result):
    """Contributions of deviations to the difference between two means of one run.

    Returned by :func:`reconcile`. Prints as a table.

    Attributes:
        run_name: The name of the run.
        measure: The measure as defined in rankgauge.
        target: The source of the other number.
        ours: The mean of rankgauge.
        theirs: The other mean.
        queries: The number of queries averaged on each side.
        contributions: The deviations in the order in which they are applied.
        rest: The unexplained remainder: 0 if the deviations fully explain the other mean.
        moved: The queries whose value differs, largest change first, then queries missing on one
            side.
        sides: The calculation of one of these queries on both sides; None if no value differs.
        policies: The policies of the rankgauge side.
        notes: Further notes, one sentence each.

    Example:
        >>> run = {"q1": {"a": 0.1234567892, "z": 0.1234567891}}
        >>> reconciliation = reconcile({"q1": {"a"}}, run, "RR", "pytrec_eval")
        >>> reconciliation.ours, reconciliation.theirs
        (1.0, 0.5)
        >>> [(step.name, step.change) for step in reconciliation.contributions if step.change]
        [('32-bit scores', -0.5)]
    """

    _schema = "rankgauge/reconciliation/1"

    run_name: str
    measure: Measure
    target: Target
    ours: float
    theirs: float
    queries: tuple[int, int]
    contributions: tuple[Contribution, ...]
    rest: float
    moved: tuple[QueryChange, ...]
    sides: tuple[Explanation, Explanation] | None
    policies: Policies
    notes: tuple[str, ...] = ()

    @property
    def difference(self) -> float:
        """Theirs minus ours (the sum of the contributions and the remainder)."""
        return self.theirs - self.ours

    def table(self) -> Table:
        """Return the steps from the mean of rankgauge to the other mean; changes are those of the printed means."""
        steps = list(self._steps())
        # As many decimals as make the smallest change visible.
        changes = [abs(contribution.change) for contribution in self.contributions] + [abs(self.rest)]
        least = min((change for change in changes if change > 10.0**-_MANY), default=1.0)
        digits = min(max(_FEWEST, 2 - math.floor(math.log10(least))), _MANY)
        means = [round(mean, digits) for _, mean, *_ in steps]
        before = [*means[:-2], means[0]]  # the last mean is compared with the first
        return Table(
            *by_column(
                ("step", (name for name, *_ in steps)),
                ("mean", means),
                ("change", ["", *(Signed(mean - last) for mean, last in zip(means[1:], before, strict=True))]),
                ("queries", (text for *_, text in steps)),
            ),
            title=self.title(),
            notes=self.notes,
            digits=digits,
            right=frozenset({3}),
        )

    def data_table(self) -> Table:
        """Return the steps with unformatted numbers."""
        return Table(("step", "mean", "change", "queries"), tuple(step[:-1] for step in self._steps()))

    def _steps(self) -> Iterator[tuple[str, float, float | None, int | None, str]]:
        """Yield name, mean, change, and number of changed queries of each step, and the number as text."""
        yield "rankgauge", self.ours, None, None, ""
        for step in self.contributions:
            gone = f" (-{step.left} +{step.entered})" if step.left + step.entered else ""
            yield step.name, step.mean, step.change, step.touched, f"{step.touched}{gone}"
        if self.rest:
            yield self.left_over(), self.theirs, self.rest, None, ""
        yield self.target.name, self.theirs, self.difference, len(self.moved), str(len(self.moved))

    def left_over(self) -> str:
        """Return the name of the remainder: rounding, or unexplained."""
        digits = self.target.digits
        slack = self.target.slack if digits is None else 10.0**-digits
        return "rounding" if abs(self.rest) <= slack else _LEFT

    def title(self) -> str:
        """Return both means in one line."""
        return (
            f"{self.measure} of {self.run_name}: {number(self.ours)} here, {number(self.theirs)} by {self.target.name}"
        )

    def _data(self) -> dict[str, Any]:
        return {
            "run": self.run_name,
            "measure": str(self.measure),
            "target": self.target.name,
            "policies": self.policies.describe(),
            "ours": self.ours,
            "theirs": self.theirs,
            "difference": self.difference,
            "queries": self.queries,
            "contributions": self.contributions,
            "rest": self.rest,
            "moved": [
                {
                    "query": query_change.query,
                    "ours": query_change.ours,
                    "theirs": query_change.theirs,
                    "by": [{"name": name, "change": change} for name, change in query_change.by],
                }
                for query_change in self.moved
            ],
            "sides": [
                {"query": side.query, "value": side.value, **side.calculation.to_dict()} for side in self.sides or ()
            ],
            "notes": self.notes,
        }

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        changes = [contribution for contribution in self.contributions if contribution.change]
        if not changes:
            return self.title()
        most = max(changes, key=lambda contribution: abs(contribution.change))
        return f"{self.title()}; most of the difference: {most.name} ({most.change:+.4f})"


def reconcile(  # noqa: PLR0913 - one parameter a choice
    qrels: Any,
    run: Any,
    measure: str | Measure,
    against: str | Profile,
    *,
    query: Id | None = None,
    ties: Ties = "trec",
    queries: Queries = "all",
    duplicates: Duplicates = "error",
    undefined: Undefined = "zero",
    unjudged: Unjudged = "not relevant",
) -> Reconciliation:
    """Explain why another tool gives a different value for the same run.

    The deviations of the tool are applied one after the other, with an evaluation after each; the
    changes of the mean add up to the difference.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` accepts.
        run: The run: anything that :meth:`Run.of` accepts.
        measure: The measure.
        against: A profile or its name (see `PROFILES`).
        query: The query to calculate on both sides; default: the query with the largest change.
        ties: As for :func:`evaluate`, like the other policies. They apply to the rankgauge side.
        queries: The queries to average.
        duplicates: Treatment of duplicate documents in a ranking.
        undefined: Treatment of undefined values in the mean.
        unjudged: Treatment of unjudged documents.

    Raises:
        UnknownName: For an unknown profile, or a measure that the tool does not have.
        InputError: If an input is not valid.
    """
    profile = profile_of(against)
    case = make_case(
        qrels,
        run,
        measure,
        queries=queries,
        policies=Policies(ties=ties, duplicates=duplicates, undefined=undefined, unjudged=unjudged),
    )
    target = Target(profile.name, digits=profile.decimals(case.measure))
    reconciliation = reconcile_case(case, profile.deviations(case.measure), target, query=query)
    notes = keep(
        *reconciliation.notes,
        f"{profile.name} reproduces {profile.tool}",
        target.digits is not None and f"{profile.name} rounds means to {target.digits} decimals",
        profile.beware and f"caution with {profile.name}: {profile.beware}",
    )
    return replace(reconciliation, notes=notes)


def reconcile_case(
    case: Case, deviations: Sequence[Deviation], target: Target, *, query: Id | None = None
) -> Reconciliation:
    """Return the steps from a case through the deviations to the given mean."""
    first = evaluate_case(case)
    ours = first.mean()[str(case.measure)]
    start = before = counted_by_query(first)
    mean, changed = ours, case
    contributions: list[Contribution] = []
    steps: list[tuple[str, Mapping[str, float], Mapping[str, float], float]] = []
    for deviation in deviations:
        changed = deviation.change(changed)
        evaluation = evaluate_case(changed)
        after, new = counted_by_query(evaluation), evaluation.mean()[str(changed.measure)]
        both = before.keys() & after.keys()
        contributions.append(
            Contribution(
                deviation.name,
                deviation.why,
                deviation.of,
                new,
                new - mean,
                touched=sum(abs(after[query] - before[query]) > TOLERANCE for query in both),
                left=len(before.keys() - both),
                entered=len(after.keys() - both),
            )
        )
        steps.append((deviation.name, before, after, TOLERANCE))
        before, mean = after, new
    if target.values is not None:
        steps.append((_LEFT, before, target.values, target.slack))
        before = dict(target.values)
    theirs = mean if target.mean is None else target.mean
    if target.digits is not None:
        theirs = round(theirs, target.digits)
    changes_of: dict[str, list[tuple[str, float]]] = {}
    for name, earlier, later, slack in steps:
        for query_id in earlier.keys() | later.keys():
            # NaN if the query enters or leaves the mean.
            change = later.get(query_id, math.nan) - earlier.get(query_id, math.nan)
            if math.isnan(change) or abs(change) > slack:
                changes_of.setdefault(query_id, []).append((name, change))
    changes = [
        QueryChange(query, start.get(query), before.get(query), tuple(changes_of.get(query, ())))
        for query in dict.fromkeys([*start, *before])
    ]
    # Comparisons with NaN, the change of a query that is missing on one side, are false.
    moved = [change for change in changes if abs(change.change) > target.slack]
    moved.sort(key=lambda change: -abs(change.change))
    other_measure = str(changed.measure) != str(case.measure)
    return Reconciliation(
        run_name=first.run_name,
        measure=case.measure,
        target=target,
        ours=ours,
        theirs=theirs,
        queries=(len(start), len(before)),
        contributions=tuple(contributions),
        rest=theirs - mean,
        moved=(*moved, *(change for change in changes if math.isnan(change.change))),
        sides=_sides(case, changed, moved, query),
        policies=case.policies,
        notes=keep(
            *(f"{deviation.name}: {deviation.why}" for deviation in contributions),
            other_measure and f"computed there: {changed.measure}",
        ),
    )


def _sides(
    case: Case, changed: Case, moved: Sequence[QueryChange], query: Id | None
) -> tuple[Explanation, Explanation] | None:
    """Explain the requested query, or the query with the largest change, on both sides."""
    if query is None:
        if not moved:
            return None
        # A query that only the remainder changed has the same calculation on both sides.
        explainable = [change for change in moved if any(name != _LEFT for name, _ in change.by)]
        query = (explainable or moved)[0].query
    return explain_case(case, query), explain_case(changed, query)

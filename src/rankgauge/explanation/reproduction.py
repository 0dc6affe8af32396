"""`reproduce()`: find out how a number from another source was computed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from rankgauge.core.ids import Id, IntArray
from rankgauge.core.policies import Duplicates, Policies, Ties, Undefined, Unjudged
from rankgauge.core.text import many, some
from rankgauge.data.judged_run import BoolArray, Values
from rankgauge.data.subsets import keep_queries
from rankgauge.errors import MismatchError, RankgaugeError
from rankgauge.evaluation.evaluation import Queries
from rankgauge.evaluation.profile_deviations import Case, apply_all
from rankgauge.evaluation.result import Evaluation
from rankgauge.explanation.calculation import number
from rankgauge.explanation.cases import (
    AVERAGED,
    DATA,
    ORDERS,
    Combination,
    combined,
    evaluate_case,
    make_case,
    of_measure,
    of_profiles,
)
from rankgauge.explanation.given_values import GivenValues
from rankgauge.explanation.reconciliation import Reconciliation, Target, reconcile_case
from rankgauge.measures.measure import Measure
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Signed, Table, by_column

_MOST, _FEW_ROWS = 3, 3_000_000
_SHOWN = 8
# Confidence: number of queries that must distinguish the best variant for "sure"; for a mean alone,
# the largest expected number of chance matches for "sure" and for "likely".
_SURE, _CHANCE, _LIKELY = 5, 0.05, 0.2
# Number of nearest means used to estimate the density of means.
_NEAR = 20
_OURS = "as in rankgauge"
# Tolerance for values on the boundary of the interval that rounds to the given value.
_ROUNDING = 1e-10


@dataclass(frozen=True)
class Fit:
    """A variant of the computation, and how well it reproduces the given values.

    Attributes:
        name: The combined deviations, or the profile of a tool.
        deviations: The names of the deviations.
        profile: Whether the variant is the profile of a tool.
        mean: The mean of the variant.
        reproduced: The number of queries whose value is reproduced, to the given decimals.
        missed: The number of queries whose value is not reproduced.
        same: Other variants with the same values, which these data cannot distinguish; tools first.
        ours: Whether the values are those of rankgauge.
    """

    name: str
    deviations: tuple[str, ...]
    profile: bool
    mean: float
    reproduced: int
    missed: int
    same: tuple[str, ...] = ()
    ours: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Reproduction(Result):
    """The variant of the computation that best reproduces given numbers, and its confidence.

    Returned by :func:`reproduce`. Prints as a table.

    Attributes:
        measure: The measure as defined in rankgauge.
        given: The given values.
        fits: The best variants, best first, including that of rankgauge.
        tried: The number of variants tried.
        sure: The confidence: ``sure``, ``likely``, ``undecided``, ``partly`` (some values are not
            reproduced), or ``not found``.
        why: The reason, in one sentence.
        tied: The number of values that the best variant misses and a different order of tied
            documents would produce, as from an unstable sort.
        reconciliation: The steps from the mean of rankgauge to the given mean according to the best
            variant, with the unexplained remainder.
    """

    _schema = "rankgauge/reproduction/1"

    measure: Measure
    given: GivenValues
    fits: tuple[Fit, ...]
    tried: int
    sure: str
    why: str
    tied: int
    reconciliation: Reconciliation

    @property
    def best(self) -> Fit:
        """The best variant."""
        return self.fits[0]

    def table(self) -> Table:
        """Return one row for each variant, best first."""
        reproduced = [f"{fit.reproduced} of {fit.reproduced + fit.missed}" for fit in self.fits]
        return Table(
            *by_column(
                ("variant", (fit.name for fit in self.fits)),
                bool(self.given.values) and ("reproduced", reproduced),
                ("mean", (fit.mean for fit in self.fits)),
                ("difference", (Signed(fit.mean - self.given.mean) for fit in self.fits)),
            ),
            title=self.title(),
            notes=(f"{self.sure}: {self.why}",),
            right=frozenset({1}),
        )

    def title(self) -> str:
        """Return a title with the number and its source."""
        values = f", {many(len(self.given.values), 'value')}" if self.given.values else ""
        return f"{self.measure} = {number(self.given.mean)} ({self.given.source}{values})"

    def _data(self) -> dict[str, Any]:
        return {
            "measure": str(self.measure),
            "given": {
                "source": self.given.source,
                "mean": self.given.mean,
                "values": len(self.given.values),
                "digits": self.given.digits,
                "slack": self.given.slack,
                "notes": self.given.notes,
            },
            "tried": self.tried,
            "sure": self.sure,
            "why": self.why,
            "tied": self.tied,
            "fits": self.fits,
            "reconciliation": self.reconciliation._data(),  # noqa: SLF001 - without schema
        }

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        return f"{self.title()}: {self.best.name} ({self.sure})"


def reproduce(  # noqa: PLR0913 - one parameter a choice
    qrels: Any,
    run: Any,
    measure: str | Measure,
    values: Any,
    *,
    query: Id | None = None,
    ties: Ties = "trec",
    queries: Queries = "all",
    duplicates: Duplicates = "error",
    undefined: Undefined = "zero",
    unjudged: Unjudged = "not relevant",
) -> Reproduction:
    """Find out how numbers from another source were computed.

    The variants tried are the profiles of other tools (`PROFILES`) and combinations of up to three
    known deviations: tie breaking, the ideal ranking, gains, denominators, relevance levels,
    cut-offs, and the averaged queries. The result is the variant that reproduces most values, with
    its confidence: only queries for which variants differ are evidence.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` accepts.
        run: The run: anything that :meth:`Run.of` accepts.
        measure: The measure.
        values: The given values: anything that :meth:`GivenValues.of` accepts. Values per query are
            far more informative than a mean.
        query: The query to calculate on both sides; default: the query with the largest change.
        ties: As for :func:`evaluate`, like the other policies. They apply to the rankgauge side.
        queries: The queries to average.
        duplicates: Treatment of duplicate documents in a ranking.
        undefined: Treatment of undefined values in the mean.
        unjudged: Treatment of unjudged documents.

    Raises:
        UnknownName: For an unknown measure or policy.
        InputError: If the values cannot be read, or none of their queries is judged.

    Example:
        >>> qrels = {"q1": {"a": 1, "b": 3}, "q2": {"a": 1, "b": 2}}
        >>> reproduction = reproduce(qrels, {"q1": ["a"], "q2": ["a"]}, "nDCG@10", {"q1": 1.0, "q2": 1.0})
        >>> reproduction.best.name
        'ideal of retrieved documents'
    """
    case = make_case(
        qrels,
        run,
        measure,
        queries=queries,
        policies=Policies(ties=ties, duplicates=duplicates, undefined=undefined, unjudged=unjudged),
    )
    given = GivenValues.of(values, case.measure)
    known = set(case.qrels.query_ids)
    if given.values and known.isdisjoint(given.values):
        raise MismatchError(
            f"the values are of {some(given.values)}, the judgments of {some(known)}",
            where=given.source,
            fix="pass values of judged queries",
        )
    case, given, trials = _best_of(case, given)
    fits = _distinct(sorted(trials.every, key=lambda trial: trial.order(given.mean)))
    best = fits[0]
    sure, why = _certainty(fits, trials)
    # A variant that explains less than half of the values would be misleading.
    deviations = best.variant.deviations if sure != "not found" else ()
    target = Target(given.source, given.mean, given.values or None, given.slack)
    shown = fits[:_SHOWN]
    ours = next(trial for trial in fits if trial.fit.ours)
    return Reproduction(
        measure=case.measure,
        given=given,
        fits=tuple(trial.fit for trial in (shown if ours in shown else [*shown[:-1], ours])),
        tried=len(trials.every),
        sure=sure,
        why=why,
        tied=_tied(case, best, trials) if best.fit.missed and given.values else 0,
        reconciliation=reconcile_case(case, deviations, target, query=query),
    )


@dataclass(eq=False)
class _Trial:
    """The values of a variant, and how well they reproduce the given values."""

    variant: Combination
    values: Values
    kept: BoolArray
    fit: Fit

    def order(self, target: float) -> tuple[float, ...]:
        """Return the sort key: missed values first, then the number of assumptions."""
        tier = 0 if self.fit.ours else 2 if self.variant.profile else 2 * len(self.variant.deviations) - 1
        off = abs(self.fit.mean - target)
        # If only the mean is given, sort variants that miss it by their distance from it.
        first = off if self.fit.missed and self.fit.reproduced + self.fit.missed == 1 else 0.0
        return self.fit.missed, first, tier, off


class _Trials:
    """The given values, aligned with the judged queries, and the variants tried."""

    def __init__(self, case: Case, given: GivenValues) -> None:
        self.given = given
        self.rows = {query: row for row, query in enumerate(case.qrels.query_ids)}
        self.in_run = np.array([query in case.run for query in self.rows], dtype=bool)
        self.values = np.array([given.values.get(query, np.nan) for query in self.rows], dtype=np.float64)
        self.strange = sum(query not in self.rows for query in given.values)
        self.every: list[_Trial] = []
        # The measures of one evaluation follow each other.
        self.places = lru_cache(maxsize=1)(self._places_of)

    def add(self, variant: Combination, measure: Measure, values: Values, kept: BoolArray) -> None:
        """Add a variant with its values and averaged queries."""
        mean = measure.mean(values[kept])
        if self.given.values:
            have = ~np.isnan(self.values)
            matched = int(np.count_nonzero(self.close(values, kept)))
            missed = int(np.count_nonzero(kept | have)) - matched + self.strange
        else:
            matched = int(abs(mean - self.given.mean) <= self.given.slack + _ROUNDING)
            missed = 1 - matched
        names = tuple(deviation.name for deviation in variant.deviations)
        fit = Fit(variant.name or _OURS, names, variant.profile, mean, matched, missed, ours=not variant.deviations)
        self.every.append(_Trial(variant, values, kept, fit))

    def close(self, values: Values, kept: BoolArray) -> BoolArray:
        """Return which values agree with the given values, to their decimals."""
        with np.errstate(invalid="ignore"):
            return (np.abs(values - self.values) <= self.given.slack + _ROUNDING) & kept

    def aligned(self, evaluation: Evaluation, column: int) -> tuple[Values, BoolArray]:
        """Return the values of an evaluation as counted in the mean, and the averaged queries."""
        values = np.zeros(len(self.rows))
        kept = np.zeros(len(self.rows), dtype=bool)
        counted = evaluation.counted(evaluation.measures[column])
        places = self.places(evaluation.query_ids)
        there = np.flatnonzero(~np.isnan(counted) & (places >= 0))
        values[places[there]] = counted[there]
        kept[places[there]] = True
        return values, kept

    def _places_of(self, query_ids: tuple[str, ...]) -> IntArray:
        """Return the row of each query, -1 for other queries."""
        return np.array([self.rows.get(query, -1) for query in query_ids], dtype=np.int64)


def _best_of(case: Case, given: GivenValues) -> tuple[Case, GivenValues, _Trials]:
    """Try all variants on all queries, or on those with a given value if that fits better."""
    trials = _try_all(case, given)
    fewest = min(trial.fit.missed for trial in trials.every)
    here = [query for query in case.qrels.query_ids if query in given.values]
    if not fewest or not here or len(here) == len(case.qrels.query_ids):
        return case, given, trials
    fewer = case._replace(qrels=keep_queries(case.qrels, here))
    again = _try_all(fewer, given)
    # Each query without a given value counts as missed by every variant that averages it.
    if min(trial.fit.missed for trial in again.every) * 2 > fewest:
        return case, given, trials
    text = (
        f"{given.source} has values of {len(here)} of the {len(case.qrels.query_ids)} judged "
        "queries: only these are compared and averaged by both"
    )
    return fewer, replace(given, notes=(*given.notes, text)), again


def _try_all(case: Case, given: GivenValues) -> _Trials:
    """Evaluate all variants."""
    trials = _Trials(case, given)
    choices = list(of_measure(case.measure))
    # Each combination requires a pass through the run, so fewer are tried for large runs.
    most = 2 if len(case.run.table) <= _FEW_ROWS else 1
    for variant in combined(DATA, most):
        changed = apply_all(case, variant.deviations)
        left = _MOST - len(variant.deviations)
        wanted = [(own, measure) for own, measure in choices if len(own.deviations) <= left]
        for own, measure, evaluation, column in _evaluated(changed, wanted):
            _add(trials, (_combine(variant, own), measure), evaluation, column)
    for variant in of_profiles(case.measure):
        try:
            changed = apply_all(case, variant.deviations)
            evaluation = evaluate_case(changed)
        except RankgaugeError:
            # The tool cannot have computed the numbers if it does not accept these inputs.
            continue
        trials.add(variant, changed.measure, *trials.aligned(evaluation, 0))
    return trials


def _add(trials: _Trials, variant: tuple[Combination, Measure], evaluation: Evaluation, column: int) -> None:
    """Add a variant, and the same variant with other averaged queries."""
    both, measure = variant
    values, kept = trials.aligned(evaluation, column)
    trials.add(both, measure, values, kept)
    if len(both.deviations) == _MOST:
        return
    defined = kept.copy()
    defined[trials.places(evaluation.query_ids)[evaluation.undefined[:, column]]] = False
    for deviation, fewer in zip(AVERAGED, (kept & trials.in_run, defined), strict=True):
        if fewer.any() and (fewer != kept).any():
            trials.add(_combine(both, Combination(deviation.name, (deviation,))), measure, values, fewer)


def _evaluated(
    case: Case, wanted: Sequence[tuple[Combination, Measure]]
) -> Iterator[tuple[Combination, Measure, Evaluation, int]]:
    """Yield evaluations of variants of a measure: all at once, or one by one if one fails."""
    try:
        evaluation = evaluate_case(case, [measure for _, measure in wanted])
    except RankgaugeError:
        for variant, measure in wanted:
            try:
                alone = evaluate_case(case, [measure])
            except RankgaugeError:
                continue
            yield variant, measure, alone, 0
        return
    for column, (variant, measure) in enumerate(wanted):
        yield variant, measure, evaluation, column


def _combine(first: Combination, second: Combination) -> Combination:
    return Combination(" + ".join(filter(None, (first.name, second.name))), (*first.deviations, *second.deviations))


def _distinct(trials: Sequence[_Trial]) -> list[_Trial]:
    """Return the variants with different values; each has the names of equivalent variants."""
    distinct: dict[tuple[bytes, bytes], _Trial] = {}
    for trial in trials:
        values = np.round(np.where(trial.kept, trial.values, 0.0), 9) + 0.0
        first = distinct.setdefault((values.tobytes(), trial.kept.tobytes()), trial)
        if first is trial:
            continue
        same = first.fit.same
        if trial.variant.profile:
            same = (trial.fit.name, *same)
        elif not set(first.variant.deviations) < set(trial.variant.deviations):
            same = (*same, trial.fit.name)
        # A variant with the values of rankgauge is always marked as such.
        first.fit = replace(first.fit, same=same, ours=first.fit.ours or trial.fit.ours)
    return list(distinct.values())


def _certainty(fits: Sequence[_Trial], trials: _Trials) -> tuple[str, str]:
    """Return the confidence in the best variant and the reason."""
    given, best = trials.given, fits[0]
    if not given.values:
        return _of_mean(fits, given)
    whole = best.fit.reproduced + best.fit.missed
    if best.fit.missed:
        every = np.logical_and.reduce([trials.close(trial.values, trial.kept) for trial in fits])
        text = (
            f"the best variant reproduces {best.fit.reproduced} of {whole} values, "
            f"{int(np.count_nonzero(every))} of which every variant reproduces; "
            "the rest is unexplained"
        )
        return ("partly" if best.fit.missed * 2 <= whole else "not found"), text
    rivals = [other.fit.name for other in fits[1:] if not other.fit.missed]
    if rivals:
        names = " and ".join(f"'{name}'" for name in rivals[:2])
        return "undecided", (
            f"all {whole} values are reproduced, but also by {names}: no query distinguishes "
            f"them to {many(given.digits, 'digit')}"
        )
    if len(fits) == 1:
        return "undecided", f"all {whole} values are reproduced, also by every other variant"
    # The number of queries that distinguish two variants, to the given decimals.
    apart = (
        (best.kept != other.kept) | (best.kept & (np.abs(best.values - other.values) > 2 * given.slack))
        for other in fits[1:]
    )
    least = min(int(np.count_nonzero(differ)) for differ in apart)
    text = (
        f"all {whole} values are reproduced; {many(least, 'query')} "
        f"distinguish{'es' if least == 1 else ''} this variant from the next best"
    )
    return ("sure" if least >= _SURE else "likely"), text


def _tied(case: Case, best: _Trial, trials: _Trials) -> int:
    """Return how many of the missed values a different order of equal scores could produce."""
    # A deviation of the order leaves no ties.
    changed = apply_all(case, (deviation for deviation in best.variant.deviations if deviation.name not in ORDERS))
    bounds = []
    for ties in ("best", "worst"):
        bound = changed._replace(policies=replace(changed.policies, ties=ties, draws=0, seed=0))
        bounds.append(trials.aligned(evaluate_case(bound), 0)[0])
    low, high = np.minimum(*bounds), np.maximum(*bounds)
    slack = trials.given.slack + _ROUNDING
    with np.errstate(invalid="ignore"):
        inside = (trials.values >= low - slack) & (trials.values <= high + slack) & (low < high)
    return int(np.count_nonzero(inside & best.kept & ~trials.close(best.values, best.kept)))


def _of_mean(fits: Sequence[_Trial], given: GivenValues) -> tuple[str, str]:
    """Return the confidence and the reason if only the mean is known."""
    fitting = [trial for trial in fits if not trial.fit.missed]
    means = [trial.fit.mean for trial in fits if not math.isnan(trial.fit.mean)]
    if not fitting:
        return "not found", f"none of {len(means)} different variants gives this mean"
    # The expected number of variants that match the mean by chance, from the local density of means.
    distances = sorted(abs(mean - given.mean) for mean in means)
    near = [distance for distance in distances if distance > given.slack + _ROUNDING][:_NEAR]
    chance = len(near) * max(given.slack, _ROUNDING) / near[-1] if near else math.inf
    # Means of variants cluster around the middle, the more so the more deviations are combined.
    joined = 0 if fitting[0].variant.profile else len(fitting[0].variant.deviations)
    text = (
        f"{len(fitting)} of {len(means)} different variants "
        f"{'give' if len(fitting) > 1 else 'gives'} this mean to {many(given.digits, 'digit')}; "
        f"{chance:.2g} expected by chance"
    )
    if len(fitting) > 1 or chance > (_CHANCE if joined == _MOST else _LIKELY):
        return "undecided", f"{text}; pass the values of each query"
    return ("sure" if chance <= _CHANCE and joined < _MOST else "likely"), text

"""Non-inferiority tests of a run against a baseline, query by query.

IDENTICAL if all values and the first documents of every ranking equal those of the baseline. PASS
if the one-sided 95% lower bound of the mean gain (`stats.non_inferiority`) is above the negative
margin. Otherwise FAIL if the Holm-corrected p-value of "there is no loss", over all gated measures,
is below 0.01, for the baseline and the anchor separately. Otherwise PASS unless rare collapse if
the bound is above the negative margin unless queries that are too rare to be observed fail
completely. Otherwise INCONCLUSIVE.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from rankgauge import stats
from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.pair_table import FloatArray
from rankgauge.core.text import inflect, many, some
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.evaluation.answer_judge import JudgeCorrection, comparable_means, correct_differences, judge_name
from rankgauge.gates.baseline import Baseline, Noise
from rankgauge.gates.result import (
    UNSURE,
    GateCheck,
    GateNumbers,
    GateVerdict,
    QueryLoss,
    rounded_up,
    shown_margin,
    values_fingerprint,
)
from rankgauge.gates.rules import GatedMeasure, GateRules
from rankgauge.measures.measure import Measure
from rankgauge.stats import Bounds
from rankgauge.stats.intervals import collapse_distance
from rankgauge.stats.paired_tests import upper_bound

LEVEL = 0.95
ALPHA_FAIL = 0.01
_POWER_80 = 0.8416212335729143
_MOST_QUERIES = 10**7
_LOSERS = 20
_MOVED = 2
_NOTED = 0.05
# An anchor is never updated.
RENEW = {
    "baseline": "update it with --update-baseline",
    "anchor": "write another one with --baseline FILE --update-baseline, and pass --anchor FILE",
}


# ---- decisions from gains


# Reasons for missing values, and the additional measure to gate.
_LOST = {
    "query": "nothing relevant was found), which no mean shows; gate R@k or Success@k as well",
    "question": 'nothing to judge, as in "I don\'t know"), which no mean shows; gate Completeness',
}


@dataclass(frozen=True)
class Decision:
    """Verdict on a measure.

    Attributes:
        verdict: The verdict.
        bounds: Confidence bounds of the mean gain; None with fewer than two queries.
        p_worse: One-sided p-value of "there is no loss", Holm-corrected.
        changed: Number of queries whose value changed.
    """

    verdict: GateVerdict
    bounds: Bounds | None
    p_worse: float
    changed: int


def decide(
    gains: Sequence[FloatArray], margins: Sequence[float], possible: Sequence[tuple[float, float]]
) -> list[Decision]:
    """Return the verdicts on several measures that are tested together.

    The upper bounds agree with the corrected p-values. With m measures, of which Holm's procedure
    finds r to be worse, the i-th smallest p-value (i = 0, 1, ...) is compared with 0.01 / (m -
    min(i, r)). The bound uses the same level and is thus below 0 exactly if the p-value is below
    that level.

    Args:
        gains: Gains of the queries by measure (new minus baseline, positive if better).
        margins: Accepted loss of each measure.
        possible: Lowest and highest possible gain of each measure, such as -1 and 1 for nDCG.

    Example:
        >>> decisions = decide([np.array([0.2, 0.0, 0.4, 0.0, 0.1])], [0.02], [(-1.0, 1.0)])
        >>> decisions[0].verdict, round(decisions[0].bounds.lower, 4)
        ('PASS unless rare collapse', -0.3049)
    """
    changed = [int((np.abs(column) > TOLERANCE).sum()) for column in gains]
    every = [
        stats.non_inferiority(column, margin, LEVEL, lowest=least, highest=most) if len(column) >= 2 else None
        for column, margin, (least, most) in zip(gains, margins, possible, strict=True)
    ]
    raw = [bounds.p_worse if bounds and number else 1.0 for bounds, number in zip(every, changed, strict=True)]
    corrected = stats.holm(raw).tolist()
    worse = sum(p < ALPHA_FAIL for p in corrected)
    order = np.argsort(raw, kind="stable").tolist()
    steps = {place: min(step, worse) for step, place in enumerate(order)}
    decisions = []
    for place, (column, tested) in enumerate(zip(gains, every, strict=True)):
        level = 1 - ALPHA_FAIL / (len(gains) - steps[place])
        bounds = tested and replace(tested, upper=upper_bound(column, level, tested.highest), upper_level=level)
        verdict: GateVerdict = "INCONCLUSIVE"
        if bounds and bounds.not_inferior:
            verdict = "PASS"
        elif bounds and corrected[place] < ALPHA_FAIL:
            verdict = "FAIL"
        elif bounds and bounds.not_inferior_unless_rare:
            verdict = "PASS unless rare collapse"
        decisions.append(Decision(verdict, bounds, corrected[place], changed[place]))
    return decisions


def queries_to_decide(bounds: Bounds, queries: int) -> int | None:
    """Return the approximate number of queries for PASS or FAIL, given mean and spread.

    It is the smallest n for which the upper bound is expected to be below 0, or the lower bound
    above the negative margin, with 80% power. None above ten million.

    Example:
        >>> gains = [0.2, -0.1, 0.1, -0.2, 0.0]
        >>> queries_to_decide(stats.non_inferiority(gains, margin=0.02, lowest=-1.0), 5)
        388
    """
    mean = bounds.mean
    ways = (
        (-mean, bounds.upper - mean, bounds.highest - mean, bounds.upper_level),
        (mean + bounds.margin, mean - bounds.lower, mean - bounds.lowest, bounds.level),
    )
    numbers = (_needed(bounds.sd, queries, way) for way in ways if way[0] > 0 and 0 < way[1] < math.inf)
    return min((needed for needed in numbers if needed is not None), default=None)


def testable_margin(bounds: Bounds, queries: int) -> float | None:
    """Return the margin that a run without a loss passes with 80% power, or None.

    Example:
        >>> gains = [0.2, -0.1, 0.1, -0.2, 0.0]
        >>> round(testable_margin(stats.non_inferiority(gains, margin=0.02, lowest=-1.0), 5), 3)
        0.447
    """
    if math.isinf(bounds.lower):
        return None
    return _POWER_80 * bounds.sd / math.sqrt(queries) + bounds.mean - bounds.lower


def _needed(sd: float, queries: int, way: tuple[float, float, float, float]) -> int | None:
    """Return from how many queries on a bound is expected within a distance of the mean.

    The way has this distance, that of the bound with `queries` queries, that of the unobserved
    value, and the level.
    """
    distance, width, unseen, level = way
    wider = width / collapse_distance(sd, queries, unseen, level)

    def enough(n: int) -> bool:
        return _POWER_80 * sd / math.sqrt(n) + wider * collapse_distance(sd, n, unseen, level) <= distance

    counts = range(2, _MOST_QUERIES + 1)
    place = bisect_left(counts, 1, key=enough)
    return counts[place] if place < len(counts) else None


def untestable_margins(baseline: Baseline, rules: GateRules) -> Iterator[str]:
    """Yield a message for each margin that even an unchanged run does not pass.

    With few queries, an unobserved loss cannot be excluded.
    """
    for gated in rules.measures:
        name = str(gated.measure)
        before = gated.measure.counted(np.array([query.values[name] for query in baseline.queries.values()]))
        known = before[~np.isnan(before)]
        lowest, _ = _possible_gains(gated.measure, known)
        same = correct_differences(
            gated.measure, before - before, list(baseline.queries), run=baseline.settings, baseline=baseline.settings
        )
        units = np.count_nonzero(~np.isnan(same.values))
        if units < 2 or not math.isfinite(lowest):
            continue
        least = -stats.mean_lower_bound(np.zeros(units), LEVEL, lowest) * same.unseen / same.gain[1]
        if least > gated.margin:
            yield (
                f"{name}: {many(len(known), baseline.unit)} are too few for your margin of "
                f"{gated.margin:g}: a run that changes nothing needs a margin of "
                f"{shown_margin(least, gated.margin)} or more to pass; add "
                f"{_plural(baseline.unit)}, or expect the verdict INCONCLUSIVE or 'PASS unless "
                "rare collapse'"
            )


# ---- comparisons with references


@dataclass(frozen=True)
class Reference:
    """A baseline as the reference of a run.

    Attributes:
        kind: ``baseline`` or ``anchor``.
        stored: The baseline.
        new: The values of the run.
    """

    kind: Literal["baseline", "anchor"]
    stored: Baseline
    new: Baseline

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """Queries of both."""
        return tuple(query for query in self.new.queries if query in self.stored.queries)

    def refusal(self, rules: GateRules) -> str:
        """Return why the run is not comparable; empty if it is."""
        mine, theirs, unit = set(self.new.queries), set(self.stored.queries), self.new.unit
        if rules.queries == "same" and mine != theirs:
            gone, came = sorted(theirs - mine), sorted(mine - theirs)
            parts = [f"{many(len(came), unit)} new ({some(came)})"] if came else []
            parts += [f"{many(len(gone), unit)} missing ({some(gone)})"] if gone else []
            return (
                f"the {_plural(unit)} differ from those of the {self.kind}: {', '.join(parts)}; "
                f"{RENEW[self.kind]}, "
                'or write queries = "intersection" in the rules to compare those in both'
            )
        if not self.queries:
            return f"no {unit} of the {self.kind} is judged any more; {RENEW[self.kind]}"
        judges = [judge_name(baseline.settings) for baseline in (self.stored, self.new)]
        if None not in judges and judges[0] != judges[1]:
            return (
                f"{judges[1]} judged, but {judges[0]} judged the {self.kind}: judge the answers of both "
                f"with the same judge, and write a new {self.kind}"
            )
        return self._redefined() or ("" if rules.depth == "any" else self._other_depth(rules))

    def _redefined(self) -> str:
        """Return why judgments or definitions differ; empty if they do not."""
        kind, stored, new = self.kind, self.stored, self.new
        prints = {
            q: {baseline.queries[q].judgments for baseline in (stored, new)} - {None} for q in sorted(self.queries)
        }
        other = [query for query, known in prints.items() if len(known) > 1]
        if other:
            return (
                f"the judgments of {many(len(other), new.unit)} differ from those of the {kind} "
                f"({some(other)}); evaluate its run on the new judgments: {RENEW[kind]}"
            )
        for name, definition in new.measures.items():
            if name not in stored.measures:
                return f"the {kind} has no {name}; {RENEW[kind]}"
            if stored.measures[name] != definition:
                creator = f"rankgauge {stored.version}, which made the {kind}"
                return f"{name} was defined differently in {creator}; {RENEW[kind]}"
        return ""

    def _other_depth(self, rules: GateRules) -> str:
        """Return which measure depends on a depth that differs; empty if none does."""
        before, now = self.stored.depth, self.new.depth
        if before is None or now is None:
            return ""
        for gated in rules.measures:
            cut = gated.measure.cutoff or math.inf
            if min(cut, before) != min(cut, now):
                return (
                    f"the longest ranking has {many(now, 'document')}, that of the {self.kind} "
                    f"{before}, and {gated.measure} uses "
                    f"{'all of them' if math.isinf(cut) else f'the first {cut:g}'}; cut both at the "
                    'same rank, or, if lengths differ by design, write depth = "any" in the rules'
                )
        return ""


def loss_checks(
    references: Sequence[Reference],
    rules: GateRules,
    *,
    noise: Noise | None,
    truth: Qrels | None,
    rankings: Callable[[Collection[str]], Run],
) -> Iterator[GateCheck]:
    """Yield a check for each reference and measure.

    The measures of a reference are decided together. An anchor is another question than the
    baseline, whether too much was lost since then, and does not change the level of the baseline.

    Args:
        references: Comparable baselines.
        rules: Rules with measures and margins.
        noise: Noise of the baseline system, if known.
        truth: Judgments, if available.
        rankings: Function that returns the rankings of some queries; called only with judgments.
    """
    groups = [[_Comparison.of(reference, gated) for gated in rules.measures] for reference in references]
    lost_most = {query for group in groups for pair in group for _, query, _, _ in pair.losers}
    run = rankings(lost_most) if lost_most and truth is not None else None
    for group in groups:
        decisions = decide([p.gains for p in group], [p.shown_margin for p in group], [p.possible for p in group])
        changed = [int((np.abs(pair.correction.counted) > TOLERANCE).sum()) for pair in group]
        identical = group[0].same_rankings and not any(changed)
        for pair, decision, number in zip(group, decisions, changed, strict=True):
            decided = replace(decision, verdict="IDENTICAL" if identical else decision.verdict, changed=number)
            yield pair.check(decided, noise, rules.max_failed, truth=truth, run=run)


@dataclass(frozen=True)
class _Comparison:
    """A measure of a run compared with a reference.

    Attributes:
        reference: The reference.
        gated: The measure with its margin.
        queries: The queries with a value in both.
        before: Their values in the reference.
        after: Their values in the run.
        moved: Their differences, by the judge for answers.
        correction: The differences corrected for the errors of the judge of answers.
    """

    reference: Reference
    gated: GatedMeasure
    queries: list[str]
    before: FloatArray
    after: FloatArray
    moved: FloatArray
    correction: JudgeCorrection

    @classmethod
    def of(cls, reference: Reference, gated: GatedMeasure) -> _Comparison:
        """Compare the values of the queries of a reference."""
        measure, stored, new = gated.measure, reference.stored, reference.new
        name = str(measure)
        pairs = [(stored.queries[q].values[name], new.queries[q].values[name]) for q in reference.queries]
        values = measure.counted(np.array(pairs, dtype=float).reshape(-1, 2))
        known = np.flatnonzero(~np.isnan(values).any(axis=1))
        queries, before, after = [reference.queries[row] for row in known], values[known, 0], values[known, 1]
        moved = measure.differences(after, before)
        correction = correct_differences(measure, moved, queries, run=new.settings, baseline=stored.settings)
        return cls(reference, gated, queries, before, after, moved, correction)

    @cached_property
    def gains(self) -> FloatArray:
        """Gains of the queries, corrected for the errors of the judge."""
        return self.gated.measure.improvements(self.correction.values) / self.correction.gain[0]

    @property
    def shown_margin(self) -> float:
        """Margin of the gains: a true loss shows at least as the lower bound of the judge's gain."""
        return self.gated.margin * self.correction.gain[1] / self.correction.gain[0]

    @property
    def possible(self) -> tuple[float, float]:
        """Range of the gains: a labeled question counts for those without a label."""
        scale = self.correction.unseen / self.correction.gain[0]
        ends = _possible_gains(self.gated.measure, np.concatenate([self.before, self.after]))
        low, high = (end * scale for end in ends)
        return min(low, float(self.gains.min(initial=low))), max(high, float(self.gains.max(initial=high)))

    @cached_property
    def losers(self) -> list[tuple[float, str, float, float]]:
        """Largest losses as (gain, query, old value, new value)."""
        gains = self.gated.measure.improvements(self.moved)
        rows = sorted(zip(gains.tolist(), self.queries, self.before.tolist(), self.after.tolist(), strict=True))
        return [row for row in rows[:_LOSERS] if row[0] < 0]

    def means(self) -> tuple[float, float, bool]:
        """Return the old and the new mean, and whether they are those by the judge of answers.

        Refuse a margin as large as the baseline mean if the mean cannot be below 0.
        """
        measure, both = self.gated.measure, (self.reference.stored, self.reference.new)
        raw = [_mean(self.before), _mean(self.after)]
        (before, after), by_judge = comparable_means(measure, [baseline.settings for baseline in both], raw)
        # A mean is corrected over all questions of an evaluation.
        if [before, after] != raw and any(len(self.queries) != len(baseline.known(measure)) for baseline in both):
            (before, after), by_judge = raw, True
        declared, margin = measure.declaration, self.gated.margin
        never_below_0 = declared.better == "higher" and declared.bounds[0] == 0
        if not (by_judge and self.correction.condition) and never_below_0 and 0 < before <= margin:
            raise InputError(
                f"with a margin of {margin:g}, every run passes: the mean of the baseline is {before:.4g}",
                where=str(measure),
                fix=f"choose a smaller loss, such as a twentieth of the mean: {before / 20:.2g}",
            )
        return before, after, by_judge

    @property
    def same_rankings(self) -> bool:
        """Whether the first documents of every ranking are known and the same."""
        stored, new = self.reference.stored.queries, self.reference.new.queries
        pairs = [(stored[query].top, new[query].top) for query in self.reference.queries]
        return all(before is not None and before == now for before, now in pairs)

    def jitter(self, noise: Noise | None) -> FloatArray:
        """Return the range of each query in repeated runs; 0 if unknown."""
        known, name = {} if noise is None else noise.jitter, str(self.gated.measure)
        ranges = [known.get(query, {}).get(name, 0.0) for query in self.queries]
        count = len(self.correction.counted)
        # Conversations of several questions have no range.
        return np.array(ranges if len(ranges) == count else [0.0] * count)

    def check(
        self, decision: Decision, noise: Noise | None, max_failed: float, *, truth: Qrels | None, run: Run | None
    ) -> GateCheck:
        """Return the check with its numbers and sentences."""
        measure, kind, stored, new = self.gated.measure, self.reference.kind, self.reference.stored, self.reference.new
        baseline_mean, mean, by_judge = self.means()
        lost = set(stored.known(measure)).intersection(self.reference.queries).difference(new.known(measure))
        # No mean shows that queries lost their value.
        if measure.declaration.undefined == "skip" and len(lost) > max_failed * len(self.reference.queries):
            why = (
                f"{measure}: {many(len(lost), new.unit)} had a value in the {kind} and "
                f"{inflect(len(lost), 'has', 'have')} none now ({_LOST[new.unit]}, or raise max_failed"
            )
            return GateCheck(kind, str(measure), "NOT COMPARABLE", why)
        bounds, jitter, count = decision.bounds, self.jitter(noise), len(self.gains)
        moved = measure.improvements(self.correction.counted)
        level = 1.0 if measure.level is None else measure.level
        testable = None if bounds is None else testable_margin(bounds, count)
        numbers = GateNumbers(
            measure=measure,
            baseline_mean=baseline_mean,
            mean=mean,
            gain=_mean(self.gains),
            lower=self._true_bound(bounds.lower) if bounds else -math.inf,
            lower_unless_rare=self._true_bound(bounds.lower_unless_rare) if bounds else -math.inf,
            upper=-self._true_bound(-bounds.upper) if bounds else math.inf,
            upper_level=bounds.upper_level if bounds else math.nan,
            margin=self.gated.margin,
            p_worse=decision.p_worse,
            queries=count,
            wins=int((moved > jitter).sum()),
            ties=int((np.abs(moved) <= jitter).sum()),
            losses=int((moved < -jitter).sum()),
            queries_needed=queries_to_decide(bounds, count) if bounds and decision.verdict in UNSURE else None,
            testable_margin=testable and testable * self.correction.gain[0] / self.correction.gain[1],
            losers=tuple(
                QueryLoss(
                    query,
                    was,
                    now,
                    _moved(level, query, stored.queries[query].top, truth=truth, run=run),
                )
                for _, query, was, now in self.losers
            ),
            by_judge=by_judge,
            baseline_fingerprint=values_fingerprint(self.queries, self.before.tolist()),
            fingerprint=values_fingerprint(self.queries, self.after.tolist()),
        )
        sentence = f"{measure}: {_sentence(self.reference, decision, numbers)}"
        condition = self.correction.condition
        return GateCheck(
            kind=kind,
            name=str(measure),
            verdict=decision.verdict,
            sentence=f"{sentence}; {condition}" if condition else sentence,
            note=_note(self.reference, decision.verdict, numbers),
            numbers=numbers,
        )

    def _true_bound(self, lower: float) -> float:
        """Return a lower bound that allows for the error of the share of a gain that a judge shows."""
        gain = self.correction.gain
        return lower * gain[0] / gain[1 if lower < 0 else 2]


def _possible_gains(measure: Measure, values: FloatArray) -> tuple[float, float]:
    """Return the lowest and the highest possible gain, from the bounds of the measure.

    Where the measure has no bound, a value that a query loses or had before is at most the highest
    observed one.
    """
    low, high = measure.declaration.bounds
    least = float(values.min(initial=high)) if math.isinf(low) else low
    most = float(values.max(initial=low)) if math.isinf(high) else high
    better = measure.declaration.better == "higher"
    return (low - most if better else least - high), most - least


def _mean(values: FloatArray) -> float:
    return math.fsum(values.tolist()) / len(values) if len(values) else math.nan


def _moved(level: float, query: str, top: Sequence[str] | None, *, truth: Qrels | None, run: Run | None) -> str:
    """Describe rank changes of relevant documents among the first of the baseline."""
    if truth is None or run is None or top is None:
        return ""
    if query not in run or not run[query]:
        return "no results now"
    grades = truth[query]
    ranks = {doc: rank for rank, doc in enumerate(run[query], start=1)}
    fallen = [
        f"{doc} from rank {before}" + (f" to {ranks[doc]}" if doc in ranks else ", not retrieved now")
        for before, doc in enumerate(top, start=1)
        if grades.get(doc, -math.inf) >= level and ranks.get(doc, math.inf) > before
    ]
    more = f", +{len(fallen) - _MOVED} more" if len(fallen) > _MOVED else ""
    return ", ".join(fallen[:_MOVED]) + more if fallen else f"only below the first {len(top)}"


# ---- sentences


def _sentence(reference: Reference, decision: Decision, n: GateNumbers) -> str:
    verdict, kind, loss = decision.verdict, reference.kind, f"a loss above your margin of {n.margin:g}"
    unit = reference.stored.unit
    if verdict == "IDENTICAL":
        return (
            f"values and top documents equal those of the {kind} in {_these(n.queries, unit)}; "
            f"{_unseen(n.queries, unit)} could still differ"
        )
    if decision.bounds is None:
        return f"{many(n.queries, unit)} in common with the {kind}: too few for a verdict"
    if verdict == "INCONCLUSIVE":
        return f"{_evidence(reference, decision, n)}; {loss} cannot be excluded; {_would_decide(n, unit)}"
    if verdict == "PASS unless rare collapse":
        shown = replace(n, lower=n.lower_unless_rare)
        text = (
            f"the new run is {_between(shown)} than the {kind} if no {unit} outside the sample fails completely; "
            f"{loss} is excluded unless {_plural(unit)} outside the sample fail completely: "
            f"{_unseen(n.queries, unit)} could"
        )
        return text if math.isinf(n.lower) else f"{text}; to exclude this, it {_would_decide(n, unit)}"
    text = f"the new run is {_between(n)} than the {kind}"
    if verdict == "PASS":
        return f"{text}; {loss} is excluded"
    worse = f"it is worse, and {loss} cannot be excluded"
    if n.upper < -n.margin:
        worse = f"the loss is above your margin of {n.margin:g}"
    return f"{text}: {worse}"


def _evidence(reference: Reference, decision: Decision, n: GateNumbers) -> str:
    """Return the evidence for an inconclusive measure."""
    unit = reference.stored.unit
    if not decision.changed:
        these, unseen = _these(n.queries, unit), _unseen(n.queries, unit)
        return f"no value changed in {these}, but {unseen} could lose"
    if math.isinf(n.lower):
        return f"only {decision.changed} of {many(n.queries, unit)} changed, and losses are unbounded"
    return f"the new run is {_between(n)} than the {reference.kind}"


def _plural(unit: str) -> str:
    return "queries" if unit == "query" else f"{unit}s"


def _these(queries: int, unit: str) -> str:
    return f"this {unit}" if queries == 1 else f"all {queries} {_plural(unit)}"


def _unseen(queries: int, unit: str) -> str:
    """Return the 95% bound of a share with no observed case (Clopper and Pearson)."""
    return f"up to {100 * (1 - 0.05 ** (1 / queries)):.2g}% of unseen {_plural(unit)}"


def _between(n: GateNumbers) -> str:
    digits = _digits(n.margin)
    low, high = f"{abs(n.lower):.{digits}f}", f"{abs(n.upper):.{digits}f}"
    if math.isinf(n.lower):
        return f"at least {high} worse"
    if n.upper < 0:
        return f"between {low} and {high} worse"
    if n.lower > 0:
        return f"between {low} and {high} better"
    return f"between {low} worse and {high} better"


def _would_decide(n: GateNumbers, unit: str) -> str:
    if math.isinf(n.lower):
        return f"compare more {_plural(unit)}"
    if n.queries_needed is None:
        return f"more than {_MOST_QUERIES:,} {_plural(unit)} of this kind would be needed"
    needed = rounded_up(n.queries_needed)
    return f"needs about {needed:,} {_plural(unit)} ({needed - n.queries:,} more of this kind)"


def _note(reference: Reference, verdict: GateVerdict, n: GateNumbers) -> str:
    if verdict == "INCONCLUSIVE" and n.gain < -n.margin:
        return f"suspicious: the observed loss ({-n.gain:.{_digits(n.margin)}f}) is above the margin"
    if reference.kind == "anchor" and n.gain < -TOLERANCE:
        return f"{-n.gain:.{_digits(n.margin)}f} lost since the anchor"
    if verdict == "PASS" and n.gain < 0 and n.p_worse < _NOTED:
        return (
            f"worse than the {reference.kind}, but within the margin; an anchor detects the accumulation of such losses"
        )
    return ""


def _digits(margin: float) -> int:
    """Return the decimals that show two significant digits of a margin, at least three."""
    return max(3, 1 - math.floor(math.log10(margin)))

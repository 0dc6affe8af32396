"""Non-inferiority: a run compared with a baseline, query by query, and the verdict on each measure.

PASS if no query changed, or if the one-sided 95% lower bound of the mean paired gain (t) is above
minus the margin. Otherwise FAIL if the p-value of "there is no loss", corrected by Holm over
everything that is gated, is below .01. Otherwise INCONCLUSIVE.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankgauge import stats
from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.pair_table import FloatArray
from rankgauge.core.text import many, some
from rankgauge.data.model import Qrels, Run
from rankgauge.errors import InputError
from rankgauge.gates.baseline import Baseline, Noise
from rankgauge.gates.result import GateCheck, GateNumbers, QueryLoss
from rankgauge.gates.rules import GatedMeasure, GateRules
from rankgauge.measures.measure import Measure
from rankgauge.stats import Bounds

__all__ = ["Decision", "Reference", "decide", "loss_checks", "queries_to_decide", "refusal"]

LEVEL = 0.95
ALPHA_FAIL = 0.01
_POWER_80 = 0.8416212335729143
_MOST_QUERIES = 10**7
_LOSERS = 20
_MOVED = 2
_NOTED = 0.05
_RENEW = "--update-baseline"


# ---- the decision, from gains


@dataclass(frozen=True)
class Decision:
    """The verdict on one measure.

    Attributes:
        verdict: ``PASS``, ``FAIL`` or ``INCONCLUSIVE``.
        bounds: The bounds that it follows from; None with fewer than two queries.
        p_worse: One-sided p-value of "there is no loss", corrected by Holm.
        identical: Whether no query changed.
    """

    verdict: Literal["PASS", "FAIL", "INCONCLUSIVE"]
    bounds: Bounds | None
    p_worse: float
    identical: bool


def decide(gains: Sequence[FloatArray], margins: Sequence[float]) -> list[Decision]:
    """Return the verdicts on several measures, tested together.

    The upper bound agrees with the corrected p-value: with m measures of which Holm finds r to be
    worse, the i-th smallest p-value (i = 0, 1, ...) is compared with .01 / (m - min(i, r)), and the
    bound has that level, so that it is below 0 exactly if the p-value is below that.

    Args:
        gains: For each measure one number a query: new minus baseline, above 0 if better.
        margins: For each measure the loss that is accepted.

    Example:
        >>> found = decide([np.array([0.2, 0.0, 0.4, 0.0, 0.1])], [0.02])
        >>> found[0].verdict, round(found[0].bounds.lower, 4)
        ('PASS', -0.0195)
    """
    changed = [bool((np.abs(column) > TOLERANCE).any()) for column in gains]
    raw = [
        stats.non_inferiority(column, margin).p_worse if different and len(column) >= 2 else 1.0
        for column, margin, different in zip(gains, margins, changed, strict=True)
    ]
    corrected = stats.holm(raw).tolist()
    worse = sum(p < ALPHA_FAIL for p in corrected)
    order = np.argsort(raw, kind="stable").tolist()
    steps = {place: min(step, worse) for step, place in enumerate(order)}
    found = []
    for place, (column, margin) in enumerate(zip(gains, margins, strict=True)):
        p_worse, bounds = corrected[place], None
        identical = bool(len(column)) and not changed[place]
        passes = identical
        if len(column) >= 2:
            level = 1 - ALPHA_FAIL / (len(gains) - steps[place])
            bounds = stats.non_inferiority(column, margin, LEVEL, level)
            passes = identical or bounds.not_inferior
        verdict: Literal["PASS", "FAIL", "INCONCLUSIVE"] = "PASS" if passes else "INCONCLUSIVE"
        if not passes and p_worse < ALPHA_FAIL:
            verdict = "FAIL"
        found.append(Decision(verdict, bounds, p_worse, identical))
    return found


def queries_to_decide(bounds: Bounds, queries: int) -> int | None:
    """Return about how many queries would decide, if mean and spread stay as they are.

    The fewest for which one of the bounds is expected to be beyond its limit with a chance of 80%:
    (t + 0.84) * sd / sqrt(n) is at most the distance of the mean gain to minus the margin (for
    PASS), or to 0 (for FAIL). None beyond ten million.

    Example:
        >>> bounds = stats.non_inferiority([0.2, -0.1, 0.1, -0.2, 0.0], margin=0.02)
        >>> queries_to_decide(bounds, 5)
        388
    """
    width = (bounds.mean - bounds.lower) / stats.student_t_quantile(bounds.level, queries - 1)
    sd = width * math.sqrt(queries)
    distances = (
        (bounds.mean + bounds.margin, bounds.level),
        (-bounds.mean, bounds.upper_level),
    )
    found = (_needed(sd / distance, level) for distance, level in distances if distance > 0)
    return min((needed for needed in found if needed is not None), default=None)


def _needed(spread: float, level: float) -> int | None:
    def enough(n: int) -> bool:
        wide = stats.student_t_quantile(level, n - 1) + _POWER_80
        return wide * spread <= math.sqrt(n)

    low, high = 1, 2
    while not enough(high):
        low, high = high, high * 2
        if high > _MOST_QUERIES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


# ---- a run and its references


@dataclass(frozen=True)
class Reference:
    """A baseline that a run is compared with.

    Attributes:
        kind: ``baseline`` or ``anchor``.
        stored: Its values.
        queries: The compared queries.
    """

    kind: Literal["baseline", "anchor"]
    stored: Baseline
    queries: tuple[str, ...]


def refusal(kind: str, stored: Baseline, new: Baseline, rules: GateRules) -> str:
    """Return why these two cannot be compared; empty if they can."""
    mine, theirs = set(new.queries), set(stored.queries)
    both = mine & theirs
    if rules.queries == "same" and mine != theirs:
        gone, came = sorted(theirs - mine), sorted(mine - theirs)
        parts = [f"{many(len(came), 'query')} came ({some(came)})"] if came else []
        parts += [f"{many(len(gone), 'query')} went ({some(gone)})"] if gone else []
        return (
            f"the queries are not those of the {kind}: {', '.join(parts)}; renew it with {_RENEW}, "
            'or write queries = "intersection" in the rules to compare those in both'
        )
    if not both:
        return f"no query of the {kind} is judged now; renew it with {_RENEW}"
    other = [q for q in sorted(both) if _rejudged(stored, new, q)]
    if other:
        return (
            f"the judgments of {many(len(other), 'query')} are not those of the {kind} "
            f"({some(other)}); evaluate its run on the new judgments: {_RENEW}"
        )
    for name, definition in new.measures.items():
        if name not in stored.measures:
            return f"the {kind} has no {name}; add it with {_RENEW}"
        if stored.measures[name] != definition:
            return (
                f"{name} was defined otherwise in rankgauge {stored.version}, which made the "
                f"{kind}; renew it with {_RENEW}"
            )
    return "" if rules.depth == "any" else _depth(kind, stored, new, rules)


def _rejudged(stored: Baseline, new: Baseline, query: str) -> bool:
    prints = {one.queries[query].judgments for one in (stored, new)} - {None}
    return len(prints) > 1


def _depth(kind: str, stored: Baseline, new: Baseline, rules: GateRules) -> str:
    if stored.depth is None or new.depth is None:
        return ""
    for gated in rules.measures:
        cut = float(dict(gated.measure.params).get("k") or math.inf)  # type: ignore[arg-type] # k is a number
        if min(cut, stored.depth) != min(cut, new.depth):
            return (
                f"the longest ranking has {many(new.depth, 'document')}, that of the {kind} "
                f"{stored.depth}, and {gated.measure} looks at "
                f"{'all of them' if math.isinf(cut) else f'the first {cut:g}'}; cut both alike, "
                'or, if lengths differ by nature, write depth = "any" in the rules'
            )
    return ""


def loss_checks(
    references: Sequence[Reference],
    new: Baseline,
    rules: GateRules,
    *,
    noise: Noise | None,
    truth: Qrels | None,
    run: Run | None,
) -> Iterator[GateCheck]:
    """Yield a check for each reference and measure, decided together.

    Args:
        references: The baselines that can be compared.
        new: The values of the run.
        rules: With the measures and margins.
        noise: The jitter of the baseline's system, if known.
        truth: The judgments, if at hand.
        run: The run, its documents in rank order, if at hand.
    """
    pairs = [(reference, gated) for reference in references for gated in rules.measures]
    columns = [_values(gated.measure, new, reference) for reference, gated in pairs]
    gains = [
        gated.measure.improvements(gated.measure.differences(after, before))
        for (_, gated), (_, before, after) in zip(pairs, columns, strict=True)
    ]
    if not pairs:
        return
    decisions = decide(gains, [gated.margin for _, gated in pairs])
    for (reference, gated), column, gain, decision in zip(
        pairs, columns, gains, decisions, strict=True
    ):
        queries, before, after = column
        _check_margin(gated, _mean(before))
        lost = _lost_values(gated.measure, new, reference)
        if lost > rules.max_failed * len(reference.queries):
            yield GateCheck(
                reference.kind, str(gated.measure), "NOT COMPARABLE",
                f"{gated.measure}: {many(lost, 'query')} had a value in the {reference.kind} and "
                "have none now (nothing relevant was found), which no mean shows; gate R@k or "
                "Success@k as well, or raise max_failed",
            )  # fmt: skip
            continue
        rows = sorted(zip(gain.tolist(), queries, before.tolist(), after.tolist(), strict=True))
        bounds, jitter = decision.bounds, _jitter(noise, gated, queries)
        stored = reference.stored.queries
        level = 1.0 if gated.measure.level is None else gated.measure.level
        undecided = decision.verdict == "INCONCLUSIVE" and bounds is not None
        numbers = GateNumbers(
            measure=gated.measure,
            baseline_mean=_mean(before),
            mean=_mean(after),
            gain=_mean(gain),
            lower=bounds.lower if bounds else -math.inf,
            upper=bounds.upper if bounds else math.inf,
            upper_level=bounds.upper_level if bounds else math.nan,
            margin=gated.margin,
            p_worse=decision.p_worse,
            queries=len(gain),
            wins=int((gain > jitter).sum()),
            ties=int((np.abs(gain) <= jitter).sum()),
            losses=int((gain < -jitter).sum()),
            queries_needed=queries_to_decide(bounds, len(gain)) if undecided and bounds else None,
            losers=tuple(
                QueryLoss(q, was, now, _moved(level, q, stored[q].top, truth=truth, run=run))
                for change, q, was, now in rows[:_LOSERS]
                if change < 0
            ),
        )
        yield GateCheck(
            kind=reference.kind,
            name=str(gated.measure),
            verdict=decision.verdict,
            sentence=f"{gated.measure}: {_sentence(reference, decision, numbers)}",
            note=_note(reference, decision, numbers),
            numbers=numbers,
        )


def _values(
    measure: Measure, new: Baseline, reference: Reference
) -> tuple[list[str], FloatArray, FloatArray]:
    """The queries that have a value in both, their values before and now."""
    name, queries, stored = str(measure), reference.queries, reference.stored.queries
    pairs = [(stored[q].values[name], new.queries[q].values[name]) for q in queries]
    values = measure.counted(np.array(pairs, dtype=float).reshape(-1, 2))
    known = np.flatnonzero(~np.isnan(values).any(axis=1))
    return [queries[row] for row in known.tolist()], values[known, 0], values[known, 1]


def _check_margin(gated: GatedMeasure, mean: float) -> None:
    """Refuse a margin as large as the mean of the baseline, where the mean cannot be below 0."""
    declared = gated.measure.declaration
    if declared.better == "higher" and declared.bounds[0] == 0 and 0 < mean <= gated.margin:
        raise InputError(
            f"a margin of {gated.margin:g} lets every run pass: the mean of the baseline is "
            f"{mean:.4g}",
            where=str(gated.measure),
            fix=f"choose a smaller loss, such as a twentieth of the mean: {mean / 20:.2g}",
        )


def _lost_values(measure: Measure, new: Baseline, reference: Reference) -> int:
    """How many queries had a value and have none now: no mean shows their loss."""
    if measure.declaration.undefined != "skip":
        return 0
    name, stored = str(measure), reference.stored.queries
    return sum(
        math.isnan(new.queries[query].values[name]) and not math.isnan(stored[query].values[name])
        for query in reference.queries
    )


def _jitter(noise: Noise | None, gated: GatedMeasure, queries: Sequence[str]) -> FloatArray:
    known = {} if noise is None else noise.jitter
    name = str(gated.measure)
    return np.array([known.get(query, {}).get(name, 0.0) for query in queries], dtype=float)


def _mean(values: FloatArray) -> float:
    return math.fsum(values.tolist()) / len(values) if len(values) else math.nan


def _moved(
    level: float, query: str, top: Sequence[str] | None, *, truth: Qrels | None, run: Run | None
) -> str:
    """The changed ranks of the relevant documents among the first of the baseline."""
    if truth is None or run is None or top is None:
        return ""
    if query not in run or not run[query]:
        return "no ranking now"
    grades = truth[query]
    ranks = {doc: rank for rank, doc in enumerate(run[query], start=1)}
    fallen = [
        f"{doc} from rank {before} to {ranks.get(doc, 'nowhere')}"
        for before, doc in enumerate(top, start=1)
        if grades.get(doc, -math.inf) >= level and ranks.get(doc, math.inf) > before
    ]
    more = f", +{len(fallen) - _MOVED} more" if len(fallen) > _MOVED else ""
    return ", ".join(fallen[:_MOVED]) + more if fallen else f"only below the first {len(top)}"


# ---- the verdict in words


def _sentence(reference: Reference, decision: Decision, n: GateNumbers) -> str:
    kind = reference.kind
    if decision.identical:
        return f"the same as in the {kind} in every query"
    if decision.bounds is None:
        return f"{many(n.queries, 'query')} in common with the {kind}: no ground for a verdict"
    text = f"the new run is {_between(n)} than the {kind}"
    loss = f"a loss above your margin of {n.margin:g}"
    if decision.verdict == "PASS":
        return f"{text}; {loss} is excluded"
    if decision.verdict == "INCONCLUSIVE":
        return f"{text}; {loss} cannot be excluded; {_would_decide(n)}"
    if n.upper < -n.margin:
        return f"{text}: the loss is above your margin of {n.margin:g}"
    return f"{text}: it is worse, and {loss} cannot be excluded"


def _between(n: GateNumbers) -> str:
    digits = _digits(n.margin)
    low, high = f"{abs(n.lower):.{digits}f}", f"{abs(n.upper):.{digits}f}"
    if n.upper < 0:
        return f"between {low} and {high} worse"
    if n.lower > 0:
        return f"between {low} and {high} better"
    return f"between {low} worse and {high} better"


def _would_decide(n: GateNumbers) -> str:
    digits = _digits(n.margin)
    # Rounded up, so that the margin named does pass.
    margin = math.ceil(-n.lower * 10**digits + TOLERANCE) / 10**digits
    if n.queries_needed is None:
        return f"a margin of {margin:g} would pass"
    unit: int = 10 ** max(0, len(str(n.queries_needed)) - 2)
    needed = -(-n.queries_needed // unit) * unit  # two figures: an estimate should not look exact
    return (
        f"needs about {needed:,} queries ({needed - n.queries:,} more of this kind) or a margin "
        f"of {margin:g}"
    )


def _note(reference: Reference, decision: Decision, n: GateNumbers) -> str:
    if decision.verdict == "INCONCLUSIVE" and n.gain < -n.margin:
        return f"suspect: the loss seen ({-n.gain:.{_digits(n.margin)}f}) is above the margin"
    if decision.verdict == "PASS" and n.gain < 0 and n.p_worse < _NOTED:
        return (
            f"worse than the {reference.kind}, but within the margin; an anchor shows such losses "
            "when they add up"
        )
    return ""


def _digits(margin: float) -> int:
    """Decimals that show two figures of a margin, at least three."""
    return max(3, 1 - math.floor(math.log10(margin)))

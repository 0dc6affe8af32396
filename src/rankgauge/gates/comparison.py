"""A run held against a baseline, query by query: whether it may be, and what it lost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from rankgauge.comparison.differences import SAME
from rankgauge.core.pair_table import FloatArray
from rankgauge.core.text import many, some
from rankgauge.data.model import Qrels, Run
from rankgauge.errors import InputError
from rankgauge.gates.baseline import Baseline
from rankgauge.gates.checks import GateCheck, GateNumbers, QueryChange
from rankgauge.gates.decision import Decision, decide, queries_to_decide
from rankgauge.gates.noise import Noise
from rankgauge.gates.rules import GatedMeasure, GateRules
from rankgauge.measures.measure import Measure

__all__ = ["Reference", "loss_checks", "refusal"]

_LOSERS = 20
_MOVED = 2
_NOTED = 0.05
_RENEW = "--update-baseline"


@dataclass(frozen=True)
class Reference:
    """What a run is held against.

    Attributes:
        kind: ``baseline`` or ``anchor``.
        stored: Its values.
        queries: The queries that are compared.
    """

    kind: Literal["baseline", "anchor"]
    stored: Baseline
    queries: tuple[str, ...]


def refusal(kind: str, stored: Baseline, new: Baseline, rules: GateRules) -> str:
    """Why these two cannot be compared; empty if they can."""
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
    other = [q for q in sorted(both) if stored.queries[q].judgments != new.queries[q].judgments]
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


def _depth(kind: str, stored: Baseline, new: Baseline, rules: GateRules) -> str:
    for gated in rules.measures:
        cut = float(dict(gated.measure.params).get("k") or math.inf)  # type: ignore[arg-type] # k is a number
        before, now = min(cut, stored.depth), min(cut, new.depth)
        if before != now:
            return (
                f"the longest ranking has {many(new.depth, 'document')}, that of the {kind} "
                f"{stored.depth}, and {gated.measure} looks at "
                f"{'all of them' if math.isinf(cut) else f'the first {cut:g}'}; cut both alike, "
                'or, if lengths differ by nature, write depth = "any" in the rules'
            )
    return ""


def _values(
    measure: Measure, new: Baseline, stored: Baseline, queries: Sequence[str]
) -> tuple[list[str], FloatArray, FloatArray]:
    """The queries that have a value in both, their values before and now."""
    name = str(measure)
    pairs = [(stored.queries[q].values[name], new.queries[q].values[name]) for q in queries]
    values = measure.counted(np.array(pairs, dtype=float).reshape(-1, 2))
    known = np.flatnonzero(~np.isnan(values).any(axis=1))
    return [queries[row] for row in known.tolist()], values[known, 0], values[known, 1]


def loss_checks(
    references: Sequence[Reference],
    new: Baseline,
    rules: GateRules,
    *,
    noise: Noise | None,
    truth: Qrels,
    run: Run,
) -> Iterator[GateCheck]:
    """A check for each reference and measure, decided together.

    Args:
        references: What can be compared.
        new: The values of the run.
        rules: With the measures and margins.
        noise: What the system of the baseline jitters by, if that is known.
        truth: The judgments.
        run: The run, its documents in rank order.
    """
    pairs = [(reference, gated) for reference in references for gated in rules.measures]
    columns = [_values(g.measure, new, r.stored, r.queries) for r, g in pairs]
    gained = [
        g.measure.improvements(g.measure.differences(after, before))
        for (_, g), (_, before, after) in zip(pairs, columns, strict=True)
    ]
    if not pairs:
        return
    decisions = decide(gained, [gated.margin for _, gated in pairs])
    for (reference, gated), column, gain, decision in zip(
        pairs, columns, gained, decisions, strict=True
    ):
        queries, before, after = column
        _check_margin(gated, _mean(before))
        lost = _lost_values(gated.measure, new, reference)
        if lost > rules.max_failed * len(reference.queries):
            yield _undefined(reference, gated, lost)
            continue
        relevant = partial(_relevant, truth, gated.measure)
        losers = tuple(
            QueryChange(q, was, now, _moved(relevant(q), reference.stored.queries[q].top, run, q))
            for q, was, now in _losses(queries, before, after, gain)
        )
        jitter = _jitter(noise, gated, queries)
        numbers = GateNumbers(
            measure=gated.measure,
            baseline_mean=_mean(before),
            mean=_mean(after),
            gain=_mean(gain),
            lower=decision.bounds.lower if decision.bounds else -math.inf,
            upper=decision.bounds.upper if decision.bounds else math.inf,
            upper_level=decision.bounds.upper_level if decision.bounds else math.nan,
            margin=gated.margin,
            p_worse=decision.p_worse,
            queries=len(gain),
            wins=int((gain > jitter).sum()),
            ties=int((np.abs(gain) <= jitter).sum()),
            losses=int((gain < -jitter).sum()),
            queries_needed=_needed(decision, len(gain)),
            losers=losers,
        )
        yield _check(reference, decision, numbers)


def _jitter(noise: Noise | None, gated: GatedMeasure, queries: Sequence[str]) -> FloatArray:
    if noise is None:
        return np.zeros(len(queries))
    name = str(gated.measure)
    return np.array([noise.jitter.get(query, {}).get(name, 0.0) for query in queries], dtype=float)


def _lost_values(measure: Measure, new: Baseline, reference: Reference) -> int:
    """How many queries had a value and have none now: their loss is in no mean."""
    if measure.declaration.undefined != "skip":
        return 0
    name = str(measure)
    return sum(
        math.isnan(new.queries[query].values[name])
        and not math.isnan(reference.stored.queries[query].values[name])
        for query in reference.queries
    )


def _undefined(reference: Reference, gated: GatedMeasure, lost: int) -> GateCheck:
    return GateCheck(
        kind=reference.kind,
        name=str(gated.measure),
        verdict="NOT COMPARABLE",
        sentence=(
            f"{gated.measure}: {many(lost, 'query')} had a value in the {reference.kind} and "
            "have none now (nothing relevant was found), which no mean shows; gate R@k or "
            "Success@k as well, or raise max_failed"
        ),
    )


def _mean(values: FloatArray) -> float:
    return math.fsum(values.tolist()) / len(values) if len(values) else math.nan


def _needed(decision: Decision, queries: int) -> int | None:
    if decision.verdict != "INCONCLUSIVE" or decision.bounds is None:
        return None
    return queries_to_decide(decision.bounds, queries)


def _losses(
    queries: Sequence[str], before: FloatArray, after: FloatArray, gain: FloatArray
) -> list[tuple[str, float, float]]:
    """The queries that lost most, the worst first; equal losses by id."""
    rows = sorted(zip(gain.tolist(), queries, before.tolist(), after.tolist(), strict=True))
    return [(query, was, now) for lost, query, was, now in rows[:_LOSERS] if lost < 0]


def _relevant(truth: Qrels, measure: Measure, query: str) -> set[str]:
    level = 1.0 if measure.level is None else measure.level
    return {doc for doc, grade in truth[query].items() if grade >= level}


def _moved(relevant: set[str], top: Sequence[str], run: Run, query: str) -> str:
    """Where the relevant documents went that stood among the first of the baseline."""
    if query not in run or not run[query]:
        return "no ranking now"
    ranks = {doc: rank for rank, doc in enumerate(run[query], start=1)}
    fallen = []
    for before, doc in enumerate(top, start=1):
        if doc not in relevant:
            continue
        now = ranks.get(doc)
        if now is None:
            fallen.append(f"{doc} from rank {before} to nowhere")
        elif now > before:
            fallen.append(f"{doc} from rank {before} to {now}")
    more = f", +{len(fallen) - _MOVED} more" if len(fallen) > _MOVED else ""
    below = f"only below the first {len(top)}"
    return ", ".join(fallen[:_MOVED]) + more if fallen else below


def _check(reference: Reference, decision: Decision, numbers: GateNumbers) -> GateCheck:
    return GateCheck(
        kind=reference.kind,
        name=str(numbers.measure),
        verdict=decision.verdict,
        sentence=f"{numbers.measure}: {_said(reference, decision, numbers)}",
        note=_noted(reference, decision, numbers),
        numbers=numbers,
    )


def _said(reference: Reference, decision: Decision, n: GateNumbers) -> str:
    kind = reference.kind
    if decision.identical:
        return f"the same as in the {kind} in every query"
    if decision.bounds is None:
        return f"{many(n.queries, 'query')} in common with the {kind}: no ground for a verdict"
    text = f"the new run is {_between(n)} than the {kind}"
    loss = f"a loss above your margin of {n.margin:g}"
    if decision.verdict == "PASS":
        return f"{text}; {loss} is excluded"
    if decision.verdict == "FAIL":
        if n.upper < -n.margin:
            return f"{text}: the loss is above your margin of {n.margin:g}"
        return f"{text}: it is worse, and {loss} cannot be excluded"
    return f"{text}; {loss} cannot be excluded; {_would_decide(n)}"


def _would_decide(n: GateNumbers) -> str:
    digits = _digits(n.margin)
    # Rounded up, so that the margin named does pass.
    margin = math.ceil(-n.lower * 10**digits + SAME) / 10**digits
    if n.queries_needed is None:
        return f"a margin of {margin:g} would pass"
    needed = _two_figures(n.queries_needed)
    return (
        f"needs about {needed:,} queries ({needed - n.queries:,} more of this kind) or a margin "
        f"of {margin:g}"
    )


def _two_figures(number: int) -> int:
    """Rounded up: an estimate should not look exact."""
    unit: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // unit) * unit


def _between(n: GateNumbers) -> str:
    digits = _digits(n.margin)
    low, high = f"{abs(n.lower):.{digits}f}", f"{abs(n.upper):.{digits}f}"
    if n.upper < 0:
        return f"between {low} and {high} worse"
    if n.lower > 0:
        return f"between {low} and {high} better"
    return f"between {low} worse and {high} better"


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


def _digits(margin: float) -> int:
    """Decimals that show two figures of a margin, at least three."""
    return max(3, 1 - math.floor(math.log10(margin)))


def _noted(reference: Reference, decision: Decision, n: GateNumbers) -> str:
    if decision.verdict == "INCONCLUSIVE" and n.gain < -n.margin:
        return f"suspect: the loss seen ({-n.gain:.{_digits(n.margin)}f}) is above the margin"
    if decision.verdict == "PASS" and n.gain < 0 and n.p_worse < _NOTED:
        return (
            f"worse than the {reference.kind}, but within the margin; an anchor shows such losses "
            "when they add up"
        )
    return ""

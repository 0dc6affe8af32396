"""What a gate finds: verdicts, one for each thing that was held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from rankgauge.measures.measure import Measure

__all__ = ["VERDICTS", "GateCheck", "GateNumbers", "Kind", "QueryChange", "Verdict"]

Verdict: TypeAlias = Literal["PASS", "INCONCLUSIVE", "NOT COMPARABLE", "FAIL"]
Kind: TypeAlias = Literal["run", "contract", "floor", "baseline", "anchor", "latency"]

# From the best to the worst.
VERDICTS: tuple[Verdict, ...] = ("PASS", "INCONCLUSIVE", "NOT COMPARABLE", "FAIL")


@dataclass(frozen=True)
class QueryChange:
    """A query that lost.

    Attributes:
        query: The query.
        before: Its value in the baseline.
        after: Its value now.
        moved: Where its relevant documents went, in words.
    """

    query: str
    before: float
    after: float
    moved: str = ""


@dataclass(frozen=True)
class GateNumbers:
    """A run held against a baseline by one measure.

    Gains are positive where the run is better, also where lower values are.

    Attributes:
        measure: The measure.
        baseline_mean: Its mean in the baseline, over the compared queries.
        mean: Its mean now.
        gain: The mean gain.
        lower: One-sided 95 % bound: the true gain is above it.
        upper: One-sided bound of `upper_level`: the true gain is below it.
        upper_level: 99 %, or more where several measures are gated (Holm).
        margin: The loss that is accepted.
        p_worse: One-sided p-value of "there is no loss", corrected by Holm.
        queries: How many queries were compared.
        wins: In how many the run is better.
        ties: In how many it is the same (within the jitter, if that is known).
        losses: In how many it is worse.
        queries_needed: About how many queries would decide; None if decided, or beyond counting.
        losers: The queries that lost most, the worst first.
    """

    measure: Measure
    baseline_mean: float
    mean: float
    gain: float
    lower: float
    upper: float
    upper_level: float
    margin: float
    p_worse: float
    queries: int
    wins: int
    ties: int
    losses: int
    queries_needed: int | None = None
    losers: tuple[QueryChange, ...] = ()


@dataclass(frozen=True)
class GateCheck:
    """One thing that was held, and what came of it.

    Attributes:
        kind: ``run``, ``contract``, ``floor``, ``baseline``, ``anchor`` or ``latency``.
        name: What was held: a measure, a query, a quantile.
        verdict: ``PASS``, ``FAIL``, ``INCONCLUSIVE`` or ``NOT COMPARABLE``.
        sentence: The verdict in words.
        note: What else a reviewer should know; empty if nothing.
        numbers: What the verdict rests on, where a measure was held against a baseline.
    """

    kind: Kind
    name: str
    verdict: Verdict
    sentence: str
    note: str = ""
    numbers: GateNumbers | None = None

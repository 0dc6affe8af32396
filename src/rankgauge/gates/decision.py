"""The decision of the gate: three verdicts from paired gains, by bounds set beforehand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankgauge import stats
from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.pair_table import FloatArray
from rankgauge.stats import Bounds

__all__ = ["ALPHA_FAIL", "Decision", "decide", "queries_to_decide"]

LEVEL = 0.95
ALPHA_FAIL = 0.01
_POWER_80 = 0.8416212335729143
_MOST_QUERIES = 10**7


@dataclass(frozen=True)
class Decision:
    """What the gains of one measure say.

    Attributes:
        verdict: ``PASS``, ``FAIL`` or ``INCONCLUSIVE``.
        bounds: The bounds it rests on; None with fewer than two queries.
        p_worse: One-sided p-value of "there is no loss", corrected by Holm.
        identical: Whether no query changed.
    """

    verdict: Literal["PASS", "FAIL", "INCONCLUSIVE"]
    bounds: Bounds | None
    p_worse: float
    identical: bool


def decide(gains: Sequence[FloatArray], margins: Sequence[float]) -> list[Decision]:
    """Verdicts of several measures, tested together.

    PASS if no query changed, or the one-sided 95 % lower bound of the mean gain (paired t) is above
    minus the margin. Otherwise FAIL if the p-value of "there is no loss", corrected by Holm over
    all that is gated, is below .01. Otherwise INCONCLUSIVE.

    The upper bound that is given fits the corrected p-value: with m measures of which Holm finds r
    to be worse, the i-th smallest p-value (i = 0, 1, ...) is held against .01 / (m - min(i, r)),
    and the bound has that level, so that it is below 0 exactly if the p-value says so.

    Args:
        gains: For each measure one number a query: new minus baseline, above 0 if better.
        margins: For each measure the loss that is accepted.

    Example:
        >>> found = decide([np.array([0.2, 0.0, 0.4, 0.0, 0.1])], [0.02])
        >>> found[0].verdict, round(found[0].bounds.lower, 4)
        ('PASS', -0.0195)
    """
    raw = [
        stats.non_inferiority(column, margin).p_worse if _tested(column) else 1.0
        for column, margin in zip(gains, margins, strict=True)
    ]
    corrected = stats.holm(raw).tolist()
    worse = sum(p < ALPHA_FAIL for p in corrected)
    order = np.argsort(raw, kind="stable").tolist()
    steps = {place: min(step, worse) for step, place in enumerate(order)}
    found = []
    for place, (column, margin) in enumerate(zip(gains, margins, strict=True)):
        if len(column) < 2:
            identical = bool(len(column)) and not _changed(column)
            verdict: Literal["PASS", "INCONCLUSIVE"] = "PASS" if identical else "INCONCLUSIVE"
            found.append(Decision(verdict, None, 1.0, identical))
            continue
        level = 1 - ALPHA_FAIL / max(1, len(gains) - steps[place])
        bounds = stats.non_inferiority(column, margin, LEVEL, level)
        found.append(_decision(bounds, corrected[place], identical=not _changed(column)))
    return found


def _decision(bounds: Bounds, p_worse: float, *, identical: bool) -> Decision:
    if identical or bounds.not_inferior:
        return Decision("PASS", bounds, p_worse, identical)
    verdict: Literal["FAIL", "INCONCLUSIVE"] = "FAIL" if p_worse < ALPHA_FAIL else "INCONCLUSIVE"
    return Decision(verdict, bounds, p_worse, identical)


def _changed(column: FloatArray) -> bool:
    return bool((np.abs(column) > TOLERANCE).any())


def _tested(column: FloatArray) -> bool:
    return len(column) >= 2 and _changed(column)


def queries_to_decide(bounds: Bounds, queries: int) -> int | None:
    """About how many queries would decide, if mean and spread stay as they are.

    The fewest for which one of the bounds is expected to be beyond its mark with a chance of 80 %:
    (t + 0.84) * sd / sqrt(n) is at most the distance of the mean gain to minus the margin (for
    PASS), or to 0 (for FAIL). None beyond ten million.

    Example:
        >>> bounds = stats.non_inferiority([0.2, -0.1, 0.1, -0.2, 0.0], margin=0.02)
        >>> queries_to_decide(bounds, 5)
        388
    """
    width = (bounds.mean - bounds.lower) / stats.student_t_quantile(bounds.level, queries - 1)
    sd = width * math.sqrt(queries)
    found = [
        needed
        for distance, level in (
            (bounds.mean + bounds.margin, bounds.level),
            (-bounds.mean, bounds.upper_level),
        )
        if distance > 0 and (needed := _needed(sd / distance, level)) is not None
    ]
    return min(found, default=None)


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

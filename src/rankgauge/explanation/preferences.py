"""Step-by-step calculations of measures that compare pairs of documents or rankings."""

from __future__ import annotations

import math
from typing import Any

from rankgauge.explanation.binary import level
from rankgauge.explanation.calculation import (
    Calculation,
    IdealDocument,
    RankedQuery,
    Step,
    bracketed,
    calculates,
    number,
    summed,
)


@calculates("PairAcc")
def _pairs(name: str, query: RankedQuery, words: Any) -> Calculation:
    rel, window = words["rel"], query.within(words["k"])
    if words["among"] == "retrieved":
        good = sum(one.reaches(rel) for one in window)
        others, label = len(window) - good, "other documents evaluated"
    else:
        good = query.relevant(rel)
        others = sum(0 <= grade < rel for _, grade in query.judgments)
        label = "judged not relevant"
    above, right, rows, terms = 0, 0, [], []
    for one in window:
        if one.reaches(rel):
            right += others - above
            terms.append(str(others - above))
            rows.append(Step(one, (above, others - above, right), counts=True))
            continue
        above += one.judged or words["among"] == "retrieved"
        rows.append(Step(one, (above, None, right), counts=False))
    whole = good * others
    value = right / whole if whole else math.nan
    steps = (
        f"{good} relevant{level(words)} and {others} {label} form {whole} pairs",
        "below: number of others below it or not retrieved",
        f"{name} = {bracketed(terms)} / {whole} = {number(value)}",
    )
    return Calculation(("others above", "below", "sum"), tuple(rows), steps, value)


@calculates("Compat")
def _compatible(name: str, query: RankedQuery, words: Any) -> Calculation:
    p, k = words["p"], words["k"]
    worth, weights = _from_rank_on(p, k)
    wanted = {document: grade for document, grade in query.judgments if grade > 0}
    places = {one.document: one.rank for one in query.documents}
    best = sorted(wanted, key=lambda name: (-wanted[name], places.get(name, math.inf)))
    ideal, whole = [], 0.0
    for rank, document in enumerate(best[:k], start=1):
        whole += worth[rank]
        row = (rank, rank, worth[rank], whole)
        ideal.append(IdealDocument(rank, document, wanted[document], row))
    places = {document: rank for rank, document in enumerate(best, start=1)}
    rows, found, terms = [], 0.0, []
    for one in query.documents:
        place = places.get(one.document)
        lower = max(one.rank, place or 0)
        counts = place is not None and lower <= k
        added = worth[lower] if counts else None
        found += added or 0.0
        terms += [number(worth[lower])] if counts else []
        shared = lower if counts else None
        rows.append(Step(one, (place, shared, added, found), counts))
    divisor, norm = (whole, "of the ideal with itself") if words["normalize"] else (weights, "")
    value = found / divisor if wanted else math.nan
    steps = (
        "ideal: its rank in the ideal ranking by grade, ties in the order of the run",
        (f"both from: from this rank on both rankings have it, and each rank i adds {number(p)}^(i - 1) / i"),
        f"overlap = {summed(terms)}{f' = {number(found)}' if len(terms) > 1 else ''}",
        f"{name} = {number(found)} / {number(divisor)} = {number(value)}",
        f"divided by the overlap {norm}" if norm else "divided by the sum of all weights, p^(i - 1)",
    )
    heads = ("ideal", "both from", "contribution", "sum")
    return Calculation(heads, tuple(rows), steps, value, tuple(ideal))


def _from_rank_on(p: float, k: int) -> tuple[list[float], float]:
    """Return the contribution of a common document by its lower rank, and the sum of weights."""
    worth, weights = [0.0] * (k + 2), 0.0
    for rank in range(k, 0, -1):
        weight = p ** (rank - 1)
        worth[rank] = worth[rank + 1] + weight / rank
        weights += weight
    return worth, weights

"""Independent implementations: every measure as a slow loop, written from its paper.

Most are the loops with which `explain` calculates step by step: a contract of import-linter keeps
these independent of the kernels and of the join. The others are here and in `reader_loops`, on
plain Python data. Undefined values are ``None``.

Where a definition leaves details open, the loops assume:

* a grade below 0 means unjudged; only infAP uses it, and a document with such a grade is still in
  the judgments (Judged);
* a ranking shorter than k is still divided by k if the measure divides by k;
* a sum over relevant documents divided by their number is undefined without any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import reader_loops
from seeing import Seen, Value, ranked

from rankgauge.explanation import binary, graded
from rankgauge.explanation.calculation import CALCULATIONS, MeasuredQuery, RankedDocument

__all__ = ["ORACLES", "Seen", "Value", "ranked", "value"]

FAMILIES = (binary, graded)


def _query(seen: Seen, name: str, words: Any) -> MeasuredQuery:
    """Return a query as the loops of `explain` take it: without ties, in the given order."""
    documents = tuple(
        RankedDocument(rank, doc, -float(rank), seen.grades.get(doc), rank, rank)
        for rank, doc in enumerate(seen.ranking, start=1)
    )
    judgments = sorted(seen.grades.items(), key=lambda pair: -pair[1])
    return MeasuredQuery("q", documents, tuple(judgments), name=name, words=words)


def _by_steps(name: str) -> Callable[..., Value]:
    def loop(seen: Seen, **words: Any) -> Value:
        found = CALCULATIONS[name](_query(seen, name, words)).value
        return None if math.isnan(found) else found

    return loop


Gain: TypeAlias = str | tuple[tuple[float, float], ...] | Mapping[float, float]


def _gain(grade: float | None, gain: Gain) -> float:
    if grade is None or grade < 0:
        return 0.0
    if gain == "linear":
        return grade
    if gain == "exp":
        return 2.0**grade - 1
    assert not isinstance(gain, str)
    return dict(gain).get(grade, grade)


def _ndcg(seen: Seen, k: int | None, gain: Gain) -> float:
    words = {"k": k, "gain": gain, "ideal": "judged", "rel": None, "b": None}
    return value("nDCG", words, seen) or 0.0


def RnDCG(seen: Seen, *, gain: Gain = "linear") -> Value:
    # At the ranks where the ideal gain decreases, and after two more documents, as in trec_eval.
    gains = [worth for grade in seen.grades.values() if (worth := _gain(grade, gain))]
    if not gains:
        return None
    ranks = [sum(other >= worth for other in gains) for worth in set(gains)]
    if len(seen.ranking) >= len(gains) + 2:
        ranks.append(len(seen.ranking))
    points = [_ndcg(seen, rank, gain) for rank in ranks]
    return sum(points) / len(points)


def nDCGrel(seen: Seen, *, gain: Gain = "linear") -> Value:
    wanted = [doc for doc, grade in seen.grades.items() if _gain(grade, gain)]
    if not wanted:
        return None
    total = 0.0
    for doc in wanted:
        rank = seen.ranking.index(doc) + 1 if doc in seen.ranking else None
        total += _ndcg(seen, rank, gain)
    return total / len(wanted)


def G(seen: Seen, *, gain: Gain = "linear") -> Value:
    best = sorted((_gain(grade, gain) for grade in seen.grades.values()), reverse=True)
    if not any(best):
        return None
    total = cost = sofar = 0.0
    for place, doc in enumerate(seen.ranking):
        worth = _gain(seen.grades.get(doc), gain)
        sofar += worth
        cost += max(best[place], 1.0) if place < len(best) else 1.0
        if worth:
            total += worth / (math.log(2 + cost - sofar) / math.log(2))
    return total / sum(best)


ORACLES: dict[str, Callable[..., Value]] = {
    **{
        name: _by_steps(name)
        for name, loop in CALCULATIONS.items()
        if loop.__module__ in {family.__name__ for family in FAMILIES}
    },
    **{loop.__name__: loop for loop in (G, RnDCG, nDCGrel, *reader_loops.LOOPS)},
}


def value(name: str, params: Mapping[str, Any], seen: Seen) -> Value:
    """Return the value of a measure for one query, None if undefined.

    Args:
        name: The measure.
        params: All of its parameters, defaults included.
        seen: The query.
    """
    words = dict(params)
    if words.pop("judged_only", False):
        seen = seen.judged_only()
    if words.get("rel") == "best":
        highest = max(seen.grades.values())
        words["rel"] = highest if highest > 0 else math.inf
    if isinstance(words.get("k"), str):
        relevant = sum(grade >= (words.get("rel") or 1) for grade in seen.grades.values())
        if not relevant:
            return None
        words["k"] = max(math.floor(float(words["k"].replace("R", "") or "1") * relevant + 0.9), 1)
    return ORACLES[name](seen, **words)

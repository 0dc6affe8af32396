"""Step-by-step calculations of means over all orders of equal scores.

Supported for measures that are sums of rank weights. Each document of a group of equal scores is
equally likely at each rank of the group, so its weight is the mean weight of these ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from rankgauge.explanation.calculation import CALCULATIONS, Calculation, RankedQuery, Step, number, summed
from rankgauge.explanation.graded import describe_gain, relevant_gain
from rankgauge.explanation.inputs import parameters_of
from rankgauge.measures.measure import Measure

# Larger numbers of orders are shown as powers of ten.
_MOST_DIGITS = 9
# The weight of a rank, from the rank and the parameters of the measure.
_Weight: TypeAlias = Callable[[int, Any], float]


def _within(rank: int, words: Any) -> float:
    return float(rank <= words["k"])


def _patience(rank: int, words: Any) -> float:
    within = words["k"] is None or rank <= words["k"]
    return words["p"] ** (rank - 1) if within else 0.0


def _discount(rank: int, words: Any) -> float:
    if words["k"] is not None and rank > words["k"]:
        return 0.0
    base = words["b"]
    if base is None:
        return 1 / math.log2(rank + 1)
    return 1.0 if rank <= base else math.log(base) / math.log(rank)


WEIGHTS: dict[str, tuple[str, _Weight]] = {
    "P": ("chance", _within),
    "R": ("chance", _within),
    "RelP": ("chance", _within),
    "RBP": ("weight", _patience),
    "DCG": ("discount", _discount),
    "nDCG": ("discount", _discount),
}
_DESCRIPTIONS = {
    "chance": "chance: the probability of being in the first k; in a tie, the share of its ranks there",
    "weight": "weight: in a tie, the mean weight of its ranks, p^(i - 1)",
    "discount": "discount: in a tie, the mean discount of its ranks",
}


def tie_mean(measure: Measure, query: RankedQuery) -> Calculation | None:
    """Return the mean of a measure over all orders of equal scores, or None if not supported."""
    words, name = parameters_of(measure, query), measure.name
    if name not in WEIGHTS or words.get("residual") or (words.get("ideal") == "topk" and words["k"] is not None):
        return None
    head, weight = WEIGHTS[name]
    total, rows, terms = 0.0, [], []
    for one in query.documents:
        if words["k"] is not None and one.first > words["k"]:
            break
        gain = relevant_gain(one.grade, words) if "gain" in words else float(one.reaches(words["rel"]))
        ranks = range(one.first, one.last + 1)
        mean = math.fsum(weight(rank, words) for rank in ranks) / len(ranks)
        counts = gain > 0
        total += gain * mean
        terms += [number(mean) if gain == 1 else f"{number(gain)}·{number(mean)}"] if counts else []
        added = gain * mean if counts else None
        rows.append(Step(one, (gain if counts else None, mean, added, total), counts))
    # The ideal ranking, and whether the value is defined, do not depend on the order.
    plain = CALCULATIONS[name](str(measure), query, words)
    value, text = _divided(name, plain, (query, words), total)
    steps = (
        *((describe_gain(words),) if "gain" in words else ()),
        _DESCRIPTIONS[head],
        f"sum = {summed(terms)}{f' = {number(total)}' if len(terms) > 1 else ''}",
        f"{measure} = {text} = {number(value)}",
    )
    heads = ("gain", head, "contribution", "sum")
    return Calculation(heads, tuple(rows), steps, value, plain.ideal)


def _divided(name: str, plain: Calculation, asked: tuple[RankedQuery, Any], total: float) -> tuple[float, str]:
    """Return the value of the measure from the weighted sum, and its formula as text."""
    query, words = asked
    if name == "DCG":
        return total, "sum"
    if name == "RBP":
        rest = 1 - words["p"]
        return rest * total, f"{number(rest)} · {number(total)}"
    if name == "nDCG":
        whole = float(plain.ideal[-1].terms[3] or 0) if plain.ideal else 0.0
        text = f"sum / IDCG = {number(total)} / {number(whole)}"
    else:
        relevant = query.relevant(words["rel"])
        whole = {"P": words["k"], "R": relevant, "RelP": min(words["k"], relevant)}[name]
        text = f"{number(total)} / {number(whole)}"
    if math.isnan(plain.value):
        return math.nan, text
    return total / whole if whole else 0.0, text


def orders_of(query: RankedQuery) -> str:
    """Return the number of orders of equal scores, as text."""
    sizes = {one.first: one.last - one.first + 1 for one in query.documents}
    logarithm = math.fsum(math.lgamma(size + 1) for size in sizes.values()) / math.log(10)
    if logarithm > _MOST_DIGITS:
        return f"about 10^{round(logarithm)}"
    return f"{math.prod(math.factorial(size) for size in sizes.values()):,}"

"""By hand: measures that read how relevant a document is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from rankgauge.catalogue import Value
from rankgauge.explaining.listing import Listing
from rankgauge.explaining.working import IdealRow, Worked, Working, number, summed, worked

__all__ = ["gain_of"]

_HEADS = ("gain", "discount", "contribution", "sum")
_WORTH = {"linear": "its grade", "exp": "2^grade - 1"}


def gain_of(grade: float | None, gain: Value) -> float:
    """What a grade is worth; what has none, or a negative one, is worth nothing.

    Example:
        >>> gain_of(3.0, "linear"), gain_of(3.0, "exp"), gain_of(None, "exp")
        (3.0, 7.0, 0.0)
    """
    if grade is None or grade < 0:
        return 0.0
    if gain == "exp":
        return math.expm1(grade * math.log(2.0)) if grade % 1 else math.ldexp(1.0, int(grade)) - 1
    return dict(gain).get(grade, grade) if isinstance(gain, tuple) else grade


def _gain(grade: float | None, words: Any) -> float:
    """What a grade is worth to a measure: nothing below its relevance level."""
    low = words["rel"] is not None and (grade is None or grade < words["rel"])
    return 0.0 if low else gain_of(grade, words["gain"])


def _divisor(rank: int, words: Any) -> tuple[float, str]:
    """What a gain at this rank is divided by, and how that is written."""
    base = words["b"]
    if base is None:
        return math.log2(rank + 1), f"/log2({rank + 1})"
    if rank <= base:
        return 1.0, ""
    return math.log(rank) / math.log(base), f"/log{number(base)}({rank})"


def _discounted(query: Listing, words: Any) -> tuple[tuple[Worked, ...], float, list[str]]:
    """The documents with their gains, DCG, and its terms as they are written."""
    total, rows, terms = 0.0, [], []
    for listed in query.within(words["k"]):
        gain = _gain(listed.grade, words)
        divisor, written = _divisor(listed.rank, words)
        discount = 1 / divisor
        total += gain * discount
        counts = gain > 0
        added = gain * discount if counts else None
        rows.append(Worked(listed, (gain if counts else None, discount, added, total), counts))
        if counts:
            terms.append(f"{number(gain)}{written}")
    return tuple(rows), total, terms


def _worth(words: Any) -> str:
    gain, level = words["gain"], words["rel"]
    below = "" if level is None else f", from grade {number(level)} on"
    if isinstance(gain, tuple):
        pairs = ", ".join(f"{number(grade)} is worth {number(own)}" for grade, own in gain)
        return f"gain: grade {pairs}; any other its own value{below}"
    return f"gain of a document: {_WORTH[str(gain)]}{below}"


@worked("DCG")
def _dcg(name: str, query: Listing, words: Any) -> Working:
    rows, total, terms = _discounted(query, words)
    steps = (_worth(words), f"{name} = {summed(terms)}", *_sum(name, rows, total))
    return Working(_HEADS, rows, steps, total)


def _sum(left: str, rows: Iterable[Worked], total: float) -> tuple[str, ...]:
    """The second line of a sum: its terms as numbers."""
    terms = [number(float(row.terms[2] or 0)) for row in rows if row.counts]
    if not terms:
        return ()
    if len(terms) == 1:
        return (f"{' ' * len(left)} = {number(total)}",)
    return (f"{' ' * len(left)} = {summed(terms)} = {number(total)}",)


@worked("nDCG")
def _ndcg(name: str, query: Listing, words: Any) -> Working:
    k = words["k"]
    rows, found, terms = _discounted(query, words)
    pool, said = _pool(query, words)
    gains = sorted(((_gain(g, words), g, d) for d, g in pool), key=lambda one: -one[0])
    ideal, whole, best = [], 0.0, []
    for rank, (gain, grade, document) in enumerate(gains[:k], start=1):
        if gain <= 0:
            break
        divisor, written = _divisor(rank, words)
        discount = 1 / divisor
        whole += gain * discount
        ideal.append(IdealRow(rank, document, grade, (gain, discount, gain * discount, whole)))
        best.append(f"{number(gain)}{written}")
    at = "" if k is None else f"@{k}"
    steps = [_worth(words), f"ideal: {said}", f"DCG{at}  = {summed(terms)}"]
    steps += _sum(f"DCG{at} ", rows, found)
    steps.append(f"IDCG{at} = {summed(best)}")
    if ideal:
        numbers = summed(number(float(row.terms[2] or 0)) for row in ideal)
        numbers = f"{numbers} = {number(whole)}" if len(ideal) > 1 else number(whole)
        steps.append(f"{' ' * len(f'IDCG{at}')} = {numbers}")
    if all(_gain(grade, words) <= 0 for _, grade in query.judgments):
        steps.append(f"no judged document brings a gain: {name} is undefined")
        return Working(_HEADS, rows, tuple(steps), math.nan, tuple(ideal))
    value = found / whole if whole else 0.0
    steps.append(f"{name} = DCG / IDCG = {number(found)} / {number(whole)} = {number(value)}")
    return Working(_HEADS, rows, tuple(steps), value, tuple(ideal))


def _pool(query: Listing, words: Any) -> tuple[list[tuple[str, float]], str]:
    """What the ideal ranking is made of: document and grade; and what that is."""
    if words["ideal"] == "judged":
        known = [(document, grade) for document, grade in query.judgments if grade >= 0]
        return known, "the best order of all judged documents, found or not"
    depth = words["k"] if words["ideal"] == "topk" else None
    seen = [(x.document, x.grade) for x in query.within(depth) if x.judged and x.grade is not None]
    which = "the first k" if words["ideal"] == "topk" else "the documents retrieved"
    return seen, f"the best order of {which} only (ideal={words['ideal']}), which inflates nDCG"


@worked("ERR")
def _err(name: str, query: Listing, words: Any) -> Working:
    scale = 2.0 ** words["top"]
    total, reached, rows, terms = 0.0, 1.0, [], []
    for listed in query.within(words["k"]):
        stop = gain_of(listed.grade, "exp") / scale
        added = reached * stop / listed.rank
        total += added
        counts = stop > 0
        rows.append(Worked(listed, (stop, reached, added if counts else None, total), counts))
        if counts:
            terms.append(f"{number(stop)}·{number(reached)}/{listed.rank}")
        reached *= 1 - stop
    steps = (
        f"stop: the chance to stop at a document, (2^grade - 1) / 2^{number(words['top'])}",
        "reached: the chance to come that far; a contribution is stop · reached / rank",
        f"{name} = {summed(terms)} = {number(total)}",
    )
    return Working(("stop", "reached", "contribution", "sum"), tuple(rows), steps, total)

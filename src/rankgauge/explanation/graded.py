"""Step-by-step calculations of measures of graded relevance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rankgauge.core.grammar import Value
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

_HEADS = ("gain", "discount", "contribution", "sum")
_GAINS = {"linear": "its grade", "exp": "2^grade - 1"}


def gain_of(grade: float | None, gain: Value) -> float:
    """Return the gain of a grade; 0 for None or a negative grade."""
    if grade is None or grade < 0:
        return 0.0
    if gain == "exp":
        return math.expm1(grade * math.log(2.0)) if grade % 1 else math.ldexp(1.0, int(grade)) - 1
    return dict(gain).get(grade, grade) if isinstance(gain, tuple) else grade


def relevant_gain(grade: float | None, words: Any) -> float:
    """Return the gain of a grade, or 0 below the relevance level of the measure."""
    low = words["rel"] is not None and (grade is None or grade < words["rel"])
    return 0.0 if low else gain_of(grade, words["gain"])


def _divisor(rank: int, words: Any) -> tuple[float, str]:
    """Return the discount divisor at a rank, as a number and as text."""
    base = words["b"]
    if base is None:
        return math.log2(rank + 1), f"/log2({rank + 1})"
    if rank <= base:
        return 1.0, ""
    return math.log(rank) / math.log(base), f"/log{number(base)}({rank})"


def _discounted(query: RankedQuery, words: Any) -> tuple[tuple[Step, ...], float, list[str]]:
    """Return the documents with their gains, the DCG, and its terms as text."""
    total, rows, terms = 0.0, [], []
    for one in query.within(words["k"]):
        gain = relevant_gain(one.grade, words)
        divisor, written = _divisor(one.rank, words)
        discount = 1 / divisor
        total += gain * discount
        counts = gain > 0
        added = gain * discount if counts else None
        rows.append(Step(one, (gain if counts else None, discount, added, total), counts))
        if counts:
            terms.append(f"{number(gain)}{written}")
    return tuple(rows), total, terms


def describe_gain(words: Any) -> str:
    """Return a description of the gain function."""
    gain, level = words["gain"], words["rel"]
    below = "" if level is None else f", from grade {number(level)} on"
    if isinstance(gain, tuple):
        pairs = ", ".join(f"{number(grade)} is {number(own)}" for grade, own in gain)
        return f"gain: grade {pairs}; any other grade is its own gain{below}"
    return f"gain of a document: {_GAINS[str(gain)]}{below}"


@calculates("DCG")
def _dcg(name: str, query: RankedQuery, words: Any) -> Calculation:
    rows, total, terms = _discounted(query, words)
    steps = (describe_gain(words), f"{name} = {summed(terms)}", *_sum(name, rows, total))
    return Calculation(_HEADS, rows, steps, total)


def _sum(left: str, rows: Iterable[Step], total: float) -> tuple[str, ...]:
    """Return the second line of a sum, with the terms as numbers."""
    terms = [number(float(row.terms[2] or 0)) for row in rows if row.counts]
    if not terms:
        return ()
    if len(terms) == 1:
        return (f"{' ' * len(left)} = {number(total)}",)
    return (f"{' ' * len(left)} = {summed(terms)} = {number(total)}",)


@calculates("nDCG")
def _ndcg(name: str, query: RankedQuery, words: Any) -> Calculation:
    k = words["k"]
    rows, found, terms = _discounted(query, words)
    pool, pool_name = _pool(query, words)
    ideal, whole, best = [], 0.0, []
    for rank, (gain, grade, document) in enumerate(_best_first(pool, words)[:k], start=1):
        if gain <= 0:
            break
        divisor, written = _divisor(rank, words)
        discount = 1 / divisor
        whole += gain * discount
        ideal.append(IdealDocument(rank, document, grade, (gain, discount, gain * discount, whole)))
        best.append(f"{number(gain)}{written}")
    at = "" if k is None else f"@{k}"
    steps = [describe_gain(words), f"ideal: {pool_name}", f"DCG{at}  = {summed(terms)}"]
    steps += _sum(f"DCG{at} ", rows, found)
    steps.append(f"IDCG{at} = {summed(best)}")
    if ideal:
        numbers = summed(number(float(row.terms[2] or 0)) for row in ideal)
        numbers = f"{numbers} = {number(whole)}" if len(ideal) > 1 else number(whole)
        steps.append(f"{' ' * len(f'IDCG{at}')} = {numbers}")
    if all(relevant_gain(grade, words) <= 0 for _, grade in query.judgments):
        steps.append(f"no judged document has a gain: {name} is undefined")
        return Calculation(_HEADS, rows, tuple(steps), math.nan, tuple(ideal))
    value = found / whole if whole else 0.0
    steps.append(f"{name} = DCG / IDCG = {number(found)} / {number(whole)} = {number(value)}")
    return Calculation(_HEADS, rows, tuple(steps), value, tuple(ideal))


def _best_first(pool: Iterable[tuple[str, float]], words: Any) -> list[tuple[float, float, str]]:
    """Return the gain, grade, and id of documents in ideal order."""
    return sorted(((relevant_gain(g, words), g, d) for d, g in pool), key=lambda one: -one[0])


def _pool(query: RankedQuery, words: Any) -> tuple[list[tuple[str, float]], str]:
    """Return the documents and grades of the ideal ranking, and a description."""
    if words["ideal"] == "judged":
        known = [(document, grade) for document, grade in query.judgments if grade >= 0]
        return known, "the best order of all judged documents, found or not"
    depth = words["k"] if words["ideal"] == "topk" else None
    seen = [(x.document, x.grade) for x in query.within(depth) if x.judged and x.grade is not None]
    which = "the first k" if words["ideal"] == "topk" else "the documents retrieved"
    return seen, f"the best order of {which} only (ideal={words['ideal']}), which inflates nDCG"


@calculates("NCG")
def _ncg(name: str, query: RankedQuery, words: Any) -> Calculation:
    k, found, rows, terms = words["k"], 0.0, [], []
    for one in query.within(k):
        gain = relevant_gain(one.grade, words)
        found += gain
        rows.append(Step(one, (gain if gain > 0 else None, found), gain > 0))
        terms += [number(gain)] if gain > 0 else []
    ideal, whole = [], 0.0
    for rank, (gain, grade, document) in enumerate(_best_first(query.judgments, words)[:k], 1):
        if gain > 0:
            whole += gain
            ideal.append(IdealDocument(rank, document, grade, (gain, whole)))
    steps = [
        describe_gain(words),
        f"gain in the first {k}: {_added(terms, found)}",
        f"the maximum: {_added([number(float(row.terms[0] or 0)) for row in ideal], whole)}",
        (f"{name} = {number(found)} / {number(whole)} = {number(found / whole if whole else math.nan)}"),
    ]
    value = found / whole if whole else math.nan
    return Calculation(("gain", "sum"), tuple(rows), tuple(steps), value, tuple(ideal))


def _added(terms: Sequence[str], total: float) -> str:
    """Format a sum with its result, or only the result if it has one term."""
    return f"{summed(terms)} = {number(total)}" if len(terms) > 1 else number(total)


_CASCADE = ("stop", "reached", "contribution", "sum")


def _stops(top: float) -> tuple[str, str]:
    return (
        f"stop: the probability of stopping at a document, (2^grade - 1) / 2^{number(top)}",
        "reached: the probability of reaching the rank; a contribution is stop · reached / rank",
    )


def _cascade(grades: Iterable[float | None], top: float) -> list[tuple[float, float, float, float]]:
    """Return the probabilities of stopping and of reaching, contribution, and sum for each rank."""
    total, reached, found = 0.0, 1.0, []
    for rank, grade in enumerate(grades, start=1):
        stop = gain_of(grade, "exp") / 2.0**top
        added = reached * stop / rank
        total += added
        found.append((stop, reached, added, total))
        reached *= 1 - stop
    return found


def _read(query: RankedQuery, words: Any) -> tuple[tuple[Step, ...], float, list[str]]:
    """Return the steps of ERR, its value, and its terms as text."""
    documents = query.within(words["k"])
    cascade = _cascade((one.grade for one in documents), words["top"])
    rows = tuple(
        Step(one, (stop, reached, added if stop > 0 else None, total), stop > 0)
        for one, (stop, reached, added, total) in zip(documents, cascade, strict=True)
    )
    terms = [
        f"{number(stop)}·{number(reached)}/{rank}"
        for rank, (stop, reached, _, _) in enumerate(cascade, start=1)
        if stop > 0
    ]
    return rows, cascade[-1][3] if cascade else 0.0, terms


@calculates("ERR")
def _err(name: str, query: RankedQuery, words: Any) -> Calculation:
    rows, total, terms = _read(query, words)
    steps = (*_stops(words["top"]), f"{name} = {summed(terms)} = {number(total)}")
    return Calculation(_CASCADE, rows, steps, total)


@calculates("nERR")
def _nerr(name: str, query: RankedQuery, words: Any) -> Calculation:
    rows, found, terms = _read(query, words)
    best = query.judgments[: words["k"]]
    cascade = _cascade((grade for _, grade in best), words["top"])
    ideal = tuple(
        IdealDocument(rank, document, grade, terms)
        for rank, ((document, grade), terms) in enumerate(zip(best, cascade, strict=True), start=1)
        if terms[0] > 0
    )
    whole = float(ideal[-1].terms[3] or 0) if ideal else 0.0
    value = found / whole if whole else math.nan
    steps = (
        *_stops(words["top"]),
        f"ERR of the ranking = {summed(terms)}{f' = {number(found)}' if terms else ''}",
        f"ERR of the ideal ranking, all judged documents best first = {number(whole)}",
        f"{name} = {number(found)} / {number(whole)} = {number(value)}",
    )
    return Calculation(_CASCADE, rows, steps, value, ideal)


@calculates("binG")
def _fallen_behind(name: str, query: RankedQuery, words: Any) -> Calculation:
    whole, wrong, total, rows, terms = query.relevant(words["rel"]), 0, 0.0, [], []
    for one in query.documents:
        counts = one.reaches(words["rel"])
        added = 1 / math.log2(2 + wrong) if counts else None
        total += added or 0.0
        terms += [f"1/log2({2 + wrong})"] if counts else []
        rows.append(Step(one, (wrong, added, total), counts))
        wrong += not counts
    value = total / whole if whole else math.nan
    steps = (
        "each relevant document contributes 1 / log2(2 + the irrelevant documents above it)",
        f"{name} = {bracketed(terms)} / {whole} = {number(value)}",
    )
    return Calculation(("others above", "contribution", "sum"), tuple(rows), steps, value)

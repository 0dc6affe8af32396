"""Step-by-step calculations of measures of binary relevance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rankgauge.core.text import inflect, many
from rankgauge.explanation.calculation import (
    Calculation,
    RankedDocument,
    RankedQuery,
    Step,
    bracketed,
    calculates,
    number,
)

_SO_FAR = ("so far", "precision")
_FOUND = ("so far",)
_SMOOTHED = 0.00001


def level(words: Any) -> str:
    """Return a description of the relevance level, unless it is 1."""
    if math.isinf(words["rel"]):
        return " (the best grade, but none is above 0)"
    return "" if words["rel"] == 1 else f" (grade {number(words['rel'])} or more)"


def _count(query: RankedQuery, words: Any, k: int | None) -> tuple[int, tuple[Step, ...]]:
    """Return the number of relevant documents in the first k, and the steps with running counts."""
    found, rows = 0, []
    for one in query.within(k):
        hit = one.reaches(words["rel"])
        found += hit
        rows.append(Step(one, (found, found / one.rank), hit))
    return found, tuple(rows)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _fraction(heads: tuple[str, ...], rows: tuple[Step, ...], text: str, part: tuple[str, int, int]) -> Calculation:
    """Return the calculation of a ratio of two numbers of documents."""
    name, above, below = part
    value = _share(above, below)
    end = ": undefined" if math.isnan(value) else f" = {number(value)}"
    shown = tuple(row._replace(terms=row.terms[: len(heads)]) for row in rows)
    return Calculation(heads, shown, (text, f"{name} = {number(above)} / {number(below)}{end}"), value)


@calculates("P")
def _precision(name: str, query: RankedQuery, words: Any) -> Calculation:
    k = words["k"]
    found, rows = _count(query, words, k)
    text = f"relevant{level(words)} in the first {k}: {found}"
    return _fraction(_SO_FAR, rows, text, (name, found, k))


@calculates("R", "SetR")
def _recall(name: str, query: RankedQuery, words: Any) -> Calculation:
    found, rows = _count(query, words, words.get("k"))
    whole = query.relevant(words["rel"])
    text = f"relevant{level(words)}: {whole} in the judgments, {found} of them found"
    return _fraction(_FOUND, rows, text, (name, found, whole))


@calculates("SetP")
def _set_precision(name: str, query: RankedQuery, words: Any) -> Calculation:
    found, rows = _count(query, words, None)
    text = f"relevant{level(words)} among the {many(len(rows), 'document')} retrieved: {found}"
    return _fraction(_SO_FAR, rows, text, (name, found, len(rows)))


def _are_relevant(whole: int, words: Any) -> str:
    return f"{many(whole, 'document')} {inflect(whole, 'is', 'are')} relevant{level(words)}"


@calculates("Rprec")
def _r_precision(name: str, query: RankedQuery, words: Any) -> Calculation:
    whole = query.relevant(words["rel"])
    found, rows = _count(query, words, whole)
    text = f"R = {_are_relevant(whole, words)}, the number of ranks evaluated"
    return _fraction(_SO_FAR, rows, text, (name, found, whole))


@calculates("RprecMult")
def _at_multiple(name: str, query: RankedQuery, words: Any) -> Calculation:
    whole, mult = query.relevant(words["rel"]), words["mult"]
    # As in trec_eval: the product plus 0.9, rounded down, but at least 1.
    places = max(int(mult * whole + 0.9), 1)
    found, rows = _count(query, words, places)
    text = f"R = {_are_relevant(whole, words)}: {number(mult)} · R = {places}"
    text += " rank" if places == 1 else " ranks"
    shown = _fraction(_SO_FAR, rows, text, (name, found, places))
    if whole:
        return shown
    steps = (text, f"{name} = {found} / {places}: undefined")
    return replace(shown, steps=steps, value=math.nan)


@calculates("RelP", "SetRelP")
def _relative(name: str, query: RankedQuery, words: Any) -> Calculation:
    k = words.get("k")
    found, rows = _count(query, words, k)
    whole = query.relevant(words["rel"])
    places = k or len(rows)
    step = f"in the first {k}" if k else f"in {many(len(rows), 'document')}"
    best = min(places, whole)
    step = f"relevant{level(words)}: {whole} in the judgments, so at most {best} can be {step}"
    shown = _fraction(_FOUND, rows, step, (name, found, best))
    if whole and not best:
        return replace(shown, steps=(step, f"{name} = 0: nothing was retrieved"), value=0.0)
    return shown


@calculates("F", "SetF")
def _f_measure(name: str, query: RankedQuery, words: Any) -> Calculation:
    k = words.get("k")
    found, rows = _count(query, words, k)
    depth = len(query.documents) if k is None else k
    whole = query.relevant(words["rel"])
    if not whole:
        text = f"relevant{level(words)}: none in the judgments, so that recall is 0 / 0"
        return Calculation(_SO_FAR, rows, (text, f"{name}: undefined"), math.nan)
    p, r = _share(found, depth), found / whole
    weight = words["beta"] ** 2
    value = (1 + weight) * p * r / (weight * p + r) if found else 0.0
    last = "0: nothing relevant was found"
    if found:
        above = f"{number(1 + weight)} · {number(p)} · {number(r)}"
        last = f"{above} / {number(weight * p + r)} = {number(value)}"
    steps = (
        f"P = {found} / {depth} = {number(p)}, R = {found} / {whole} = {number(r)}",
        f"{name} = (1 + {number(weight)}) · P · R / ({number(weight)} · P + R)",
        f"{' ' * len(name)} = {last}",
    )
    return Calculation(_SO_FAR, rows, steps, value)


@calculates("SetAP")
def _set_average(name: str, query: RankedQuery, words: Any) -> Calculation:
    found, rows = _count(query, words, None)
    whole = query.relevant(words["rel"])
    p, r = _share(found, len(rows)) if rows else 0.0, _share(found, whole)
    steps = (
        f"P = {found} / {len(rows)} = {number(p)}, R = {found} / {whole} = {number(r)}",
        f"{name} = P · R = {number(p * r)}",
    )
    return Calculation(_SO_FAR, rows, steps, p * r)


@calculates("Success")
def _success(name: str, query: RankedQuery, words: Any) -> Calculation:
    found, rows = _count(query, words, words["k"])
    where = ", ".join(str(row.ranked.rank) for row in rows if row.counts)
    text = f"at {where[:60]}" if found else "nowhere"
    step = f"relevant{level(words)} in the first {words['k']}: {text}, so that {name} = "
    rows = tuple(row._replace(terms=row.terms[:1]) for row in rows)
    return Calculation(_FOUND, rows, (f"{step}{int(found > 0)}",), float(found > 0))


@calculates("RR", "FirstRel")
def _first(name: str, query: RankedQuery, words: Any) -> Calculation:
    reciprocal = "k" in words
    rows, first = [], 0
    for one in query.within(words.get("k")):
        counts = not first and one.reaches(words["rel"])
        first = one.rank if counts else first
        terms = (1 / one.rank if counts else None,) if reciprocal else ()
        rows.append(Step(one, terms, counts))
    heads = ("contribution",) if reciprocal else ()
    steps, value = (_of_reciprocal if reciprocal else _of_rank)(name, query, words, first)
    return Calculation(heads, tuple(rows), steps, value)


def _of_reciprocal(name: str, query: RankedQuery, words: Any, first: int) -> tuple[tuple[str, ...], float]:
    if not query.relevant(words["rel"]):
        return (f"no document is relevant{level(words)}: {name} is undefined",), math.nan
    if not first:
        return (f"no relevant document{level(words)} was found: {name} = 0",), 0.0
    text = f"the first relevant document{level(words)} is at rank {first}"
    return (text, f"{name} = 1 / {first} = {number(1 / first)}"), 1 / first


def _of_rank(name: str, _: RankedQuery, words: Any, first: int) -> tuple[tuple[str, ...], float]:
    rank = float(first) if first else math.nan
    text = "the rank of the first one" if first else "no relevant document was found"
    return (f"{name} = {number(rank)}: {text}{level(words)}",), rank


@calculates("AP", "GMAP")
def _average_precision(name: str, query: RankedQuery, words: Any) -> Calculation:
    k, found, total, rows, terms = words.get("k"), 0, 0.0, [], []
    for one in query.within(k):
        if not one.reaches(words["rel"]):
            rows.append(Step(one, (found, found / one.rank, None, total), counts=False))
            continue
        found += 1
        precision = found / one.rank
        total += precision
        terms.append(f"{found}/{one.rank}")
        rows.append(Step(one, (found, precision, precision, total), counts=True))
    whole = query.relevant(words["rel"])
    norm, divisor = _divisor(words, found, whole)
    value = total / norm if whole and norm else (0.0 if whole else math.nan)
    steps = (
        f"divided by {divisor}",
        f"{name} = {bracketed(terms)} / {norm}",
        f"{' ' * len(name)} = {number(total)} / {norm} = {number(value)}",
    )
    return Calculation((*_SO_FAR, "contribution", "sum"), tuple(rows), steps, value)


def _divisor(words: Any, found: int, whole: int) -> tuple[int, str]:
    """Return the divisor of AP and its description."""
    k, norm = words.get("k"), words.get("norm", "R")
    relevant = f"relevant documents in the judgments{level(words)}"
    if norm == "k" and k is not None:
        return k, f"k = {k}, for any number of relevant documents (norm=k)"
    if norm == "retrieved":
        return found, f"the relevant documents found: {found} of {whole} (norm=retrieved)"
    if norm == "min(k,R)" and k is not None:
        return min(k, whole), f"the smaller of k = {k} and R = {whole}, the {relevant}"
    return whole, f"R = {whole}, the {relevant}, found or not"


@calculates("YAAP")
def _log_odds(name: str, query: RankedQuery, words: Any) -> Calculation:
    plain = _average_precision("AP", query, words)
    whole = query.relevant(words["rel"])
    if not whole:
        return replace(plain, steps=(*plain.steps, f"{name}: undefined"))
    total = plain.value * whole
    value = math.log((1 + total) / (1 + whole - total))
    odds = f"ln({number(1 + total)} / {number(1 + whole - total)})"
    steps = (f"{name} = ln((1 + AP · R) / (1 + R - AP · R))", f"{' ' * len(name)} = {odds} = {number(value)}")
    return replace(plain, steps=(*plain.steps, *steps), value=value)


@calculates("IPrec", "IPrecAvg")
def _interpolated(name: str, query: RankedQuery, words: Any) -> Calculation:
    _, rows = _count(query, words, None)
    whole = query.relevant(words["rel"])
    if not whole:
        step = f"no document is relevant: {name} is undefined"
        return Calculation(_SO_FAR, rows, (step,), math.nan)
    if "recall" in words:
        needed = _needed(words["recall"], whole, words)
        value, step = _highest(rows, needed)
        reached = f"{many(whole, 'relevant document')} is reached with {needed}"
        steps = [f"recall {number(words['recall'])} of {reached}", f"{name} = {step}"]
    else:
        levels = [_needed(tenth / 10, whole, words) for tenth in range(11)]
        points = [_highest(rows, count)[0] for count in levels]
        value = sum(points) / 11
        steps = [
            "interpolated precision at recall 0, 0.1 ... 1:",
            f"  {', '.join(map(number, points))}",
            f"{name} = {number(sum(points))} / 11 = {number(value)}",
        ]
    return Calculation(_SO_FAR, rows, tuple(steps), value)


def _needed(recall: float, whole: int, words: Any) -> int:
    """Return how many relevant documents reach a recall, rounded as in trec_eval or to nearest."""
    return int(recall * whole + (0.5 if words["points"] == "nearest" else 0.9))


def _highest(rows: tuple[Step, ...], needed: int) -> tuple[float, str]:
    """Return the highest precision at `needed` or more relevant documents, with its description."""
    best, text, found = 0.0, "0: fewer were found", 0
    for row in rows:
        found += row.counts
        rank = row.ranked.rank
        if row.counts and found >= needed and found / rank > best:
            best = found / rank
            text = f"the highest precision from there on = {found}/{rank} = {number(best)}"
    return best, text


@calculates("RBP")
def _rank_biased(name: str, query: RankedQuery, words: Any) -> Calculation:
    p, total, weight, rows, powers = words["p"], 0.0, 1.0, [], []
    for one in query.within(words["k"]):
        counts = one.judged if words["residual"] else one.reaches(words["rel"])
        total += weight if counts else 0.0
        if counts:
            powers.append(f"{number(p)}^{one.rank - 1}")
        rows.append(Step(one, (weight, weight if counts else None, total), counts))
        weight *= p
    if words["residual"]:
        value = 1 - (1 - p) * total
        steps = [
            "judged documents are known; the residual is the remaining weight",
            f"{name} = 1 - (1 - {number(p)}) · {number(total)} = {number(value)}",
        ]
        return Calculation(("weight", "known", "sum"), tuple(rows), tuple(steps), value)
    value = (1 - p) * total
    steps = [
        f"the user continues with probability p = {number(p)}: rank i has weight p^(i - 1)",
        f"{name} = (1 - {number(p)}) · {bracketed(powers)}",
        f"{' ' * len(name)} = {number(1 - p)} · {number(total)} = {number(value)}",
    ]
    return Calculation(("weight", "contribution", "sum"), tuple(rows), tuple(steps), value)


def _count_if(
    query: RankedQuery, k: int | None, counts: Callable[[RankedDocument], bool]
) -> tuple[int, tuple[Step, ...]]:
    """Return how many of the first k documents count, and the steps."""
    rows = tuple(Step(one, (), counts(one)) for one in query.within(k))
    return sum(row.counts for row in rows), rows


@calculates("Judged")
def _judged(name: str, query: RankedQuery, words: Any) -> Calculation:
    known, rows = _count_if(query, words["k"], lambda one: one.grade is not None)
    text = f"judged: {known} of the {many(len(rows), 'document')} evaluated"
    return _fraction((), rows, text, (name, known, len(rows)))


@calculates("Unjudged")
def _unjudged(name: str, query: RankedQuery, words: Any) -> Calculation:
    bare, rows = _count_if(query, words["k"], lambda one: not one.judged)
    text = f"unjudged documents in the first {words['k']}: {bare}"
    return _fraction((), rows, text, (name, bare, words["k"]))


@calculates("NumRet")
def _retrieved(name: str, query: RankedQuery, words: Any) -> Calculation:  # noqa: ARG001 - as all
    found, rows = _count_if(query, None, lambda _: True)
    return Calculation((), rows, (f"{name} = {found}",), float(found))


@calculates("NumRel")
def _relevant(name: str, query: RankedQuery, words: Any) -> Calculation:
    _, rows = _count_if(query, None, lambda one: one.reaches(words["rel"]))
    whole = query.relevant(words["rel"])
    text = f"{name} = {whole}{level(words)}, retrieved or not"
    return Calculation((), rows, (text,), float(whole))


@calculates("NumRelRet")
def _relevant_retrieved(name: str, query: RankedQuery, words: Any) -> Calculation:
    found, rows = _count(query, words, words["k"])
    rows = tuple(row._replace(terms=row.terms[:1]) for row in rows)
    return Calculation(_FOUND, rows, (f"{name} = {found}{level(words)}",), float(found))


@calculates("NumNonrelRet")
def _others_retrieved(name: str, query: RankedQuery, words: Any) -> Calculation:
    rel = words["rel"]
    others, rows = _count_if(query, words["k"], lambda one: one.judged and not one.reaches(rel))
    text = f"{name} = {others}: judged, but not relevant{level(words)}"
    return Calculation((), rows, (text,), float(others))


@calculates("Utility")
def _utility(name: str, query: RankedQuery, words: Any) -> Calculation:
    hit, noise, miss = words["hit"], words["noise"], words["miss"]
    rows, total, found = [], 0.0, 0
    for one in query.documents:
        counts = one.reaches(words["rel"])
        found += counts
        worth = hit if counts else noise
        total += worth
        rows.append(Step(one, (worth, total), counts))
    others, missed = len(rows) - found, query.relevant(words["rel"]) - found
    value = float(hit * found + noise * others + miss * missed)
    of_each = (
        f"found: {found} at {number(hit)} each; others retrieved: {others} at {number(noise)}; "
        f"missed: {missed} at {number(miss)}"
    )
    product = f"{found} · {number(hit)} + {others} · {number(noise)} + {missed} · {number(miss)}"
    steps = (f"relevant{level(words)} and {of_each}", f"{name} = {product} = {number(value)}")
    return Calculation(("worth", "sum"), tuple(rows), steps, value)


@calculates("Bpref", "GMBpref")
def _binary_preference(name: str, query: RankedQuery, words: Any) -> Calculation:
    rel, whole = words["rel"], query.relevant(words["rel"])
    others = sum(0 <= grade < rel for _, grade in query.judgments)
    bound, above, total, rows, terms = min(whole, others), 0, 0.0, [], []
    for one in query.documents:
        if not one.reaches(rel):
            above += one.judged
            rows.append(Step(one, (above, None, total), counts=False))
            continue
        lost = min(above, whole) / bound if bound else 0.0
        total += 1 - lost
        terms.append(f"(1 - {min(above, whole)}/{bound})" if bound else "1")
        rows.append(Step(one, (above, 1 - lost, total), counts=True))
    value = _share(total, whole)
    steps = (
        f"R = {whole} relevant, N = {others} judged not relevant: min(N, R) = {bound}",
        f"{name} = {bracketed(terms)} / {whole}",
        f"{' ' * len(name)} = {number(total)} / {whole} = {number(value)}",
    )
    return Calculation(("others above", "contribution", "sum"), tuple(rows), steps, value)


@calculates("infAP")
def _inferred(name: str, query: RankedQuery, words: Any) -> Calculation:
    rel, whole = words["rel"], query.relevant(words["rel"])
    pool, hits, misses, total, rows, terms = 0, 0, 0, 0.0, [], []
    for one in query.documents:
        expected: float | None = None
        if one.reaches(rel):
            chance = (hits + _SMOOTHED) / (hits + misses + 2 * _SMOOTHED)
            expected = 1 / one.rank + pool / one.rank * chance
            total += expected
            terms.append(number(expected))
        rows.append(Step(one, (pool, hits, misses, expected, total), expected is not None))
        pool += one.grade is not None
        hits += one.reaches(rel)
        misses += one.judged and not one.reaches(rel)
    value = _share(total, whole)
    steps = (
        "at each relevant rank i: 1/i + (pool above)/i · (relevant above) / (judged above)",
        f"{name} = {bracketed(terms)} / {whole} = {number(value)}",
    )
    heads = ("pooled above", "found", "others", "expected", "sum")
    return Calculation(heads, tuple(rows), steps, value)

"""Step-by-step calculations of measures of binary relevance, of pairs, and of compatibility."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, repeat
from operator import mul

from rankgauge.core.text import inflect, many
from rankgauge.explanation.calculation import (
    Calculation,
    IdealDocument,
    MeasuredQuery,
    RankedDocument,
    Step,
    bracketed,
    calculates,
    contributions,
    number,
    summed,
    with_sums,
)

_SO_FAR = ("so far", "precision")
_SMOOTHED = 0.00001


def level(query: MeasuredQuery) -> str:
    """Return a description of the relevance level, unless it is 1."""
    if math.isinf(query.words["rel"]):
        return " (the best grade, but none is above 0)"
    return "" if query.words["rel"] == 1 else f" (grade {number(query.words['rel'])} or more)"


def _count(
    query: MeasuredQuery,
    k: int | None,
    counts: Callable[[RankedDocument], bool] | None = None,
    *,
    columns: int = 2,
) -> tuple[int, tuple[Step, ...]]:
    """Return how many of the first k documents are relevant or `counts`, and the steps with the counts so far."""
    number_so_far, rows = 0, []
    for doc in query.within(k):
        hit = doc.reaches(query.words["rel"]) if counts is None else counts(doc)
        number_so_far += hit
        rows.append(Step(doc, (number_so_far, number_so_far / doc.rank)[:columns], hit))
    return number_so_far, tuple(rows)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _fraction(query: MeasuredQuery, rows: tuple[Step, ...], below: int, text: str, *, columns: int = 2) -> Calculation:
    """Return the calculation of the share of documents that count; the rows have this many columns."""
    above = sum(row.counts for row in rows)
    value = _share(above, below)
    end = ": undefined" if math.isnan(value) else f" = {number(value)}"
    steps = (text, f"{query.name} = {number(above)} / {number(below)}{end}")
    return Calculation(_SO_FAR[:columns], rows, steps, value)


@calculates("P")
def _precision(query: MeasuredQuery) -> Calculation:
    hits, rows = _count(query, query.k)
    return _fraction(query, rows, query.k, f"relevant{level(query)} in the first {query.k}: {hits}")


@calculates("R", "SetR")
def _recall(query: MeasuredQuery) -> Calculation:
    hits, rows = _count(query, query.k, columns=1)
    text = f"relevant{level(query)}: {query.count} in the judgments, {hits} of them found"
    return _fraction(query, rows, query.count, text, columns=1)


@calculates("SetP")
def _set_precision(query: MeasuredQuery) -> Calculation:
    hits, rows = _count(query, None)
    text = f"relevant{level(query)} among the {many(len(rows), 'document')} retrieved: {hits}"
    return _fraction(query, rows, len(rows), text)


@calculates("Rprec", "RprecMult")
def _r_precision(query: MeasuredQuery) -> Calculation:
    whole, mult = query.count, query.words.get("mult")
    text = f"R = {many(whole, 'document')} {inflect(whole, 'is', 'are')} relevant{level(query)}"
    if mult is None:
        return _fraction(query, _count(query, whole)[1], whole, f"{text}, the number of ranks evaluated")
    # As in trec_eval: the product plus 0.9, rounded down, but at least 1.
    places = max(int(mult * whole + 0.9), 1)
    text += f": {number(mult)} · R = {many(places, 'rank')}"
    shown = _fraction(query, _count(query, places)[1], places, text)
    if whole:
        return shown
    return replace(shown, steps=(text, f"{query.name} = 0 / {places}: undefined"), value=math.nan)


@calculates("RelP", "SetRelP")
def _relative(query: MeasuredQuery) -> Calculation:
    _, rows = _count(query, query.k, columns=1)
    best = min(query.k or len(rows), query.count)
    where = f"in the first {query.k}" if query.k else f"in {many(len(rows), 'document')}"
    step = f"relevant{level(query)}: {query.count} in the judgments, so at most {best} can be {where}"
    shown = _fraction(query, rows, best, step, columns=1)
    if query.count and not best:
        return replace(shown, steps=(step, f"{query.name} = 0: nothing was retrieved"), value=0.0)
    return shown


@calculates("F", "SetF")
def _f_measure(query: MeasuredQuery) -> Calculation:
    hits, rows = _count(query, query.k)
    depth, whole = query.k or len(rows), query.count
    if not whole:
        text = f"relevant{level(query)}: none in the judgments, so that recall is 0 / 0"
        return Calculation(_SO_FAR, rows, (text, f"{query.name}: undefined"), math.nan)
    p, r = _share(hits, depth), hits / whole
    weight = query.words["beta"] ** 2
    value = (1 + weight) * p * r / (weight * p + r) if hits else 0.0
    last = "0: nothing relevant was found"
    if hits:
        above = f"{number(1 + weight)} · {number(p)} · {number(r)}"
        last = f"{above} / {number(weight * p + r)} = {number(value)}"
    steps = (
        f"P = {hits} / {depth} = {number(p)}, R = {hits} / {whole} = {number(r)}",
        f"{query.name} = (1 + {number(weight)}) · P · R / ({number(weight)} · P + R)",
        f"{' ' * len(query.name)} = {last}",
    )
    return Calculation(_SO_FAR, rows, steps, value)


@calculates("SetAP")
def _set_average(query: MeasuredQuery) -> Calculation:
    hits, rows = _count(query, None)
    whole = query.count
    p, r = _share(hits, len(rows)) if rows else 0.0, _share(hits, whole)
    steps = (
        f"P = {hits} / {len(rows)} = {number(p)}, R = {hits} / {whole} = {number(r)}",
        f"{query.name} = P · R = {number(p * r)}",
    )
    return Calculation(_SO_FAR, rows, steps, p * r)


@calculates("Success")
def _success(query: MeasuredQuery) -> Calculation:
    hits, rows = _count(query, query.k, columns=1)
    where = ", ".join(str(row.ranked.rank) for row in rows if row.counts)
    text = f"at {where[:60]}" if hits else "nowhere"
    step = f"relevant{level(query)} in the first {query.k}: {text}, so that {query.name} = {int(hits > 0)}"
    return Calculation(_SO_FAR[:1], rows, (step,), float(hits > 0))


@calculates("RR")
def _reciprocal_rank(query: MeasuredQuery) -> Calculation:
    first, rows = _first(query)
    rows = tuple(row._replace(terms=(1 / first if row.counts else None,)) for row in rows)
    value = 1 / first if first else 0.0 if query.count else math.nan
    steps: tuple[str, ...] = (
        f"the first relevant document{level(query)} is at rank {first}",
        f"{query.name} = 1 / {first} = {number(value)}",
    )
    if not query.count:
        steps = (f"no document is relevant{level(query)}: {query.name} is undefined",)
    elif not first:
        steps = (f"no relevant document{level(query)} was found: {query.name} = 0",)
    return Calculation(("contribution",), rows, steps, value)


@calculates("FirstRel")
def _first_rank(query: MeasuredQuery) -> Calculation:
    first, rows = _first(query)
    text = "the rank of the first one" if first else "no relevant document was found"
    rank = float(first) if first else math.nan
    return Calculation((), rows, (f"{query.name} = {number(rank)}: {text}{level(query)}",), rank)


def _first(query: MeasuredQuery) -> tuple[int, tuple[Step, ...]]:
    """Return the rank of the first relevant document, 0 without one, and the steps."""
    hits = (doc.rank for doc in query.within(query.k) if doc.reaches(query.words["rel"]))
    first = next(hits, 0)
    return first, tuple(Step(doc, (), doc.rank == first) for doc in query.within(query.k))


@calculates("AP", "GMAP")
def _average_precision(query: MeasuredQuery) -> Calculation:
    hits, steps_to_k = _count(query, query.k)
    precisions = (step._replace(terms=(*step.terms, step.terms[1] if step.counts else None)) for step in steps_to_k)
    rows, total = with_sums(precisions)
    terms = [f"{row.terms[0]}/{row.ranked.rank}" for row in rows if row.counts]
    norm, divisor = _divisor(query, hits)
    value = total / norm if query.count and norm else (0.0 if query.count else math.nan)
    steps = (
        f"divided by {divisor}",
        f"{query.name} = {bracketed(terms)} / {norm}",
        f"{' ' * len(query.name)} = {number(total)} / {norm} = {number(value)}",
    )
    return Calculation((*_SO_FAR, "contribution", "sum"), rows, steps, value)


def _divisor(query: MeasuredQuery, hits: int) -> tuple[int, str]:
    """Return the divisor of AP and its description."""
    k, norm, whole = query.k, query.words.get("norm", "R"), query.count
    relevant = f"relevant documents in the judgments{level(query)}"
    if norm == "k" and k is not None:
        return k, f"k = {k}, for any number of relevant documents (norm=k)"
    if norm == "retrieved":
        return hits, f"the relevant documents found: {hits} of {whole} (norm=retrieved)"
    if norm == "min(k,R)" and k is not None:
        return min(k, whole), f"the smaller of k = {k} and R = {whole}, the {relevant}"
    return whole, f"R = {whole}, the {relevant}, found or not"


@calculates("YAAP")
def _log_odds(query: MeasuredQuery) -> Calculation:
    plain = _average_precision(replace(query, name="AP"))
    whole = query.count
    if not whole:
        return replace(plain, steps=(*plain.steps, f"{query.name}: undefined"))
    total = plain.value * whole
    value = math.log((1 + total) / (1 + whole - total))
    odds = f"ln({number(1 + total)} / {number(1 + whole - total)})"
    steps = (
        f"{query.name} = ln((1 + AP · R) / (1 + R - AP · R))",
        f"{' ' * len(query.name)} = {odds} = {number(value)}",
    )
    return replace(plain, steps=(*plain.steps, *steps), value=value)


@calculates("IPrec", "IPrecAvg")
def _interpolated(query: MeasuredQuery) -> Calculation:
    _, rows = _count(query, None)
    whole = query.count
    if not whole:
        step = f"no document is relevant: {query.name} is undefined"
        return Calculation(_SO_FAR, rows, (step,), math.nan)
    if "recall" in query.words:
        needed = _needed(query.words["recall"], query)
        value, step = _highest(rows, needed)
        reached = f"{many(whole, 'relevant document')} is reached with {needed}"
        steps = [f"recall {number(query.words['recall'])} of {reached}", f"{query.name} = {step}"]
    else:
        points = [_highest(rows, _needed(tenth / 10, query))[0] for tenth in range(11)]
        value = sum(points) / 11
        steps = [
            "interpolated precision at recall 0, 0.1 ... 1:",
            f"  {', '.join(map(number, points))}",
            f"{query.name} = {number(sum(points))} / 11 = {number(value)}",
        ]
    return Calculation(_SO_FAR, rows, tuple(steps), value)


def _needed(recall: float, query: MeasuredQuery) -> int:
    """Return how many relevant documents reach a recall, rounded as in trec_eval or to nearest."""
    return int(recall * query.count + (0.5 if query.words["points"] == "nearest" else 0.9))


def _highest(rows: tuple[Step, ...], needed: int) -> tuple[float, str]:
    """Return the highest precision at `needed` or more relevant documents, with its description."""
    best, text, hits = 0.0, "0: fewer were found", 0
    for row in rows:
        hits += row.counts
        rank = row.ranked.rank
        if row.counts and hits >= needed and hits / rank > best:
            best = hits / rank
            text = f"the highest precision from there on = {hits}/{rank} = {number(best)}"
    return best, text


@calculates("RBP")
def _rank_biased(query: MeasuredQuery) -> Calculation:
    p, residual, rel = query.words["p"], query.words["residual"], query.words["rel"]
    weights = accumulate(repeat(p), mul, initial=1.0)
    counting = ((doc, doc.judged if residual else doc.reaches(rel)) for doc in query.within(query.k))
    rows, total = with_sums(
        Step(doc, (weight, weight if counts else None), counts)
        for (doc, counts), weight in zip(counting, weights, strict=False)
    )
    if residual:
        value = 1 - (1 - p) * total
        steps = (
            "judged documents are known; the residual is the remaining weight",
            f"{query.name} = 1 - (1 - {number(p)}) · {number(total)} = {number(value)}",
        )
        return Calculation(("weight", "known", "sum"), rows, steps, value)
    value = (1 - p) * total
    powers = [f"{number(p)}^{row.ranked.rank - 1}" for row in rows if row.counts]
    explained = (
        f"the user continues with probability p = {number(p)}: rank i has weight p^(i - 1)",
        f"{query.name} = (1 - {number(p)}) · {bracketed(powers)}",
        f"{' ' * len(query.name)} = {number(1 - p)} · {number(total)} = {number(value)}",
    )
    return Calculation(("weight", "contribution", "sum"), rows, explained, value)


@calculates("Judged")
def _judged(query: MeasuredQuery) -> Calculation:
    known, rows = _count(query, query.k, lambda doc: doc.grade is not None, columns=0)
    text = f"judged: {known} of the {many(len(rows), 'document')} evaluated"
    return _fraction(query, rows, len(rows), text, columns=0)


@calculates("Unjudged")
def _unjudged(query: MeasuredQuery) -> Calculation:
    bare, rows = _count(query, query.k, lambda doc: not doc.judged, columns=0)
    return _fraction(query, rows, query.k, f"unjudged documents in the first {query.k}: {bare}", columns=0)


@calculates("NumRet")
def _retrieved(query: MeasuredQuery) -> Calculation:
    count, rows = _count(query, query.k, lambda _: True, columns=0)
    return Calculation((), rows, (f"{query.name} = {count}",), float(count))


@calculates("NumRel")
def _relevant(query: MeasuredQuery) -> Calculation:
    _, rows = _count(query, query.k, columns=0)
    return Calculation((), rows, (f"{query.name} = {query.count}{level(query)}, retrieved or not",), float(query.count))


@calculates("NumRelRet")
def _relevant_retrieved(query: MeasuredQuery) -> Calculation:
    hits, rows = _count(query, query.k, columns=1)
    return Calculation(_SO_FAR[:1], rows, (f"{query.name} = {hits}{level(query)}",), float(hits))


@calculates("NumNonrelRet")
def _others_retrieved(query: MeasuredQuery) -> Calculation:
    others, rows = _count(query, query.k, lambda doc: doc.judged and not doc.reaches(query.words["rel"]), columns=0)
    text = f"{query.name} = {others}: judged, but not relevant{level(query)}"
    return Calculation((), rows, (text,), float(others))


@calculates("Utility")
def _utility(query: MeasuredQuery) -> Calculation:
    hit, noise, miss = query.words["hit"], query.words["noise"], query.words["miss"]
    hits, steps_to_end = _count(query, None)
    rows, _ = with_sums(step._replace(terms=(hit if step.counts else noise,)) for step in steps_to_end)
    others, missed = len(rows) - hits, query.count - hits
    value = float(hit * hits + noise * others + miss * missed)
    of_each = (
        f"found: {hits} at {number(hit)} each; others retrieved: {others} at {number(noise)}; "
        f"missed: {missed} at {number(miss)}"
    )
    product = f"{hits} · {number(hit)} + {others} · {number(noise)} + {missed} · {number(miss)}"
    steps = (f"relevant{level(query)} and {of_each}", f"{query.name} = {product} = {number(value)}")
    return Calculation(("worth", "sum"), rows, steps, value)


@calculates("Bpref", "GMBpref")
def _binary_preference(query: MeasuredQuery) -> Calculation:
    rel, whole = query.words["rel"], query.count
    others = sum(0 <= grade < rel for _, grade in query.judgments)
    bound, above, unsummed, terms = min(whole, others), 0, [], []
    for doc in query.documents:
        counts = doc.reaches(rel)
        above += doc.judged and not counts
        lost = min(above, whole)
        terms += [f"(1 - {lost}/{bound})" if bound else "1"] if counts else []
        unsummed.append(Step(doc, (above, (1 - lost / bound if bound else 1.0) if counts else None), counts))
    rows, total = with_sums(unsummed)
    value = _share(total, whole)
    steps = (
        f"R = {whole} relevant, N = {others} judged not relevant: min(N, R) = {bound}",
        f"{query.name} = {bracketed(terms)} / {whole}",
        f"{' ' * len(query.name)} = {number(total)} / {whole} = {number(value)}",
    )
    return Calculation(("others above", "contribution", "sum"), rows, steps, value)


@calculates("infAP")
def _inferred(query: MeasuredQuery) -> Calculation:
    rel, whole = query.words["rel"], query.count
    pool, hits, misses, unsummed = 0, 0, 0, []
    for doc in query.documents:
        counts = doc.reaches(rel)
        chance = (hits + _SMOOTHED) / (hits + misses + 2 * _SMOOTHED)
        expected = 1 / doc.rank + pool / doc.rank * chance
        unsummed.append(Step(doc, (pool, hits, misses, expected if counts else None), counts))
        pool += doc.grade is not None
        hits += counts
        misses += doc.judged and not counts
    rows, total = with_sums(unsummed)
    value = _share(total, whole)
    steps = (
        "at each relevant rank i: 1/i + (pool above)/i · (relevant above) / (judged above)",
        f"{query.name} = {bracketed(contributions(rows))} / {whole} = {number(value)}",
    )
    return Calculation(("pooled above", "found", "others", "expected", "sum"), rows, steps, value)


@calculates("PairAcc")
def _pairs(query: MeasuredQuery) -> Calculation:
    rel, window = query.words["rel"], query.within(query.k)
    if query.words["among"] == "retrieved":
        good = sum(doc.reaches(rel) for doc in window)
        others, label = len(window) - good, "other documents evaluated"
    else:
        good = query.relevant(rel)
        others = sum(0 <= grade < rel for _, grade in query.judgments)
        label = "judged not relevant"
    above, unsummed = 0, []
    for doc in window:
        counts = doc.reaches(rel)
        above += not counts and (doc.judged or query.words["among"] == "retrieved")
        unsummed.append(Step(doc, (above, others - above if counts else None), counts))
    rows, right = with_sums(unsummed)
    whole = good * others
    value = _share(right, whole)
    steps = (
        f"{good} relevant{level(query)} and {others} {label} form {whole} pairs",
        "below: number of others below it or not retrieved",
        f"{query.name} = {bracketed(contributions(rows))} / {whole} = {number(value)}",
    )
    return Calculation(("others above", "below", "sum"), rows, steps, value)


@calculates("Compat")
def _compatible(query: MeasuredQuery) -> Calculation:
    p, k = query.words["p"], query.k
    worth, weights = _from_rank_on(p, k)
    wanted = {document: grade for document, grade in query.judgments if grade > 0}
    places = {doc.document: doc.rank for doc in query.documents}
    best = sorted(wanted, key=lambda name: (-wanted[name], places.get(name, math.inf)))
    ideal, whole = with_sums(
        IdealDocument(rank, document, wanted[document], (rank, rank, worth[rank]))
        for rank, document in enumerate(best[:k], start=1)
    )
    places = {document: rank for rank, document in enumerate(best, start=1)}
    unsummed = []
    for doc in query.documents:
        place = places.get(doc.document)
        lower = max(doc.rank, place or 0)
        counts = place is not None and lower <= k
        unsummed.append(Step(doc, (place, lower, worth[lower]) if counts else (place, None, None), counts))
    rows, overlap = with_sums(unsummed)
    terms = contributions(rows)
    divisor, norm = (whole, "of the ideal with itself") if query.words["normalize"] else (weights, "")
    value = overlap / divisor if wanted else math.nan
    steps = (
        "ideal: its rank in the ideal ranking by grade, ties in the order of the run",
        (f"both from: from this rank on both rankings have it, and each rank i adds {number(p)}^(i - 1) / i"),
        f"overlap = {summed(terms)}{f' = {number(overlap)}' if len(terms) > 1 else ''}",
        f"{query.name} = {number(overlap)} / {number(divisor)} = {number(value)}",
        f"divided by the overlap {norm}" if norm else "divided by the sum of all weights, p^(i - 1)",
    )
    return Calculation(("ideal", "both from", "contribution", "sum"), rows, steps, value, ideal)


def _from_rank_on(p: float, k: int) -> tuple[list[float], float]:
    """Return the contribution of a common document by its lower rank, and the sum of weights."""
    worth, weights = [0.0] * (k + 2), 0.0
    for rank in range(k, 0, -1):
        weight = p ** (rank - 1)
        worth[rank] = worth[rank + 1] + weight / rank
        weights += weight
    return worth, weights

"""By hand: measures that ask only whether a document is relevant."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from rankgauge.explanation.listing import Listing
from rankgauge.explanation.working import Worked, Working, bracketed, number, worked

__all__ = ["level"]

_SO_FAR = ("so far", "precision")
_SMOOTHED = 0.00001


def level(words: Any) -> str:
    """The relevance level, where it is not the usual one."""
    if math.isinf(words["rel"]):
        return " (the best grade, but none is above 0)"
    return "" if words["rel"] == 1 else f" (grade {number(words['rel'])} or more)"


def _counted(query: Listing, words: Any, k: int | None) -> tuple[int, tuple[Worked, ...]]:
    """The relevant documents in the first k, and these documents with a running count."""
    found, rows = 0, []
    for listed in query.within(k):
        hit = listed.reaches(words["rel"])
        found += hit
        rows.append(Worked(listed, (found, found / listed.rank), hit))
    return found, tuple(rows)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _written(left: str, above: float, below: float, value: float) -> str:
    if math.isnan(value):
        return f"{left} = {number(above)} / {number(below)}: undefined"
    return f"{left} = {number(above)} / {number(below)} = {number(value)}"


@worked("P")
def _precision(name: str, query: Listing, words: Any) -> Working:
    found, rows = _counted(query, words, words["k"])
    value = found / words["k"]
    said = f"relevant{level(words)} in the first {words['k']}: {found}"
    return Working(_SO_FAR, rows, (said, _written(name, found, words["k"], value)), value)


@worked("R", "SetR")
def _recall(name: str, query: Listing, words: Any) -> Working:
    found, rows = _counted(query, words, words.get("k"))
    whole = query.relevant(words["rel"])
    value = _share(found, whole)
    said = f"relevant{level(words)}: {whole} in the judgments, {found} of them found"
    return Working(("so far",), _first_term(rows), (said, _written(name, found, whole, value)),
                   value)  # fmt: skip


def _first_term(rows: tuple[Worked, ...]) -> tuple[Worked, ...]:
    return tuple(row._replace(terms=row.terms[:1]) for row in rows)


@worked("F", "SetF")
def _f_measure(name: str, query: Listing, words: Any) -> Working:
    k = words.get("k")
    found, rows = _counted(query, words, k)
    looked_at = len(query.documents) if k is None else k
    whole = query.relevant(words["rel"])
    if not whole:
        said = f"relevant{level(words)}: none in the judgments, so that recall is 0 / 0"
        return Working(_SO_FAR, rows, (said, f"{name}: undefined"), math.nan)
    p, r = _share(found, looked_at), found / whole
    weight = words["beta"] ** 2
    value = (1 + weight) * p * r / (weight * p + r) if found else 0.0
    steps = [
        f"P = {found} / {looked_at} = {number(p)}, R = {found} / {whole} = {number(r)}",
        f"{name} = (1 + {number(weight)}) · P · R / ({number(weight)} · P + R)",
    ]
    if found:
        steps.append(
            f"{' ' * len(name)} = {number(1 + weight)} · {number(p)} · {number(r)} / "
            f"{number(weight * p + r)} = {number(value)}"
        )
    else:
        steps.append(f"{' ' * len(name)} = 0: nothing relevant was found")
    return Working(_SO_FAR, rows, tuple(steps), value)


@worked("Success")
def _success(name: str, query: Listing, words: Any) -> Working:
    found, rows = _counted(query, words, words["k"])
    where = ", ".join(str(row.listed.rank) for row in rows if row.counts)
    said = f"at {where[:60]}" if found else "nowhere"
    step = f"relevant{level(words)} in the first {words['k']}: {said}, so that {name} = "
    return Working(("so far",), _first_term(rows), (f"{step}{int(found > 0)}",), float(found > 0))


@worked("RR")
def _reciprocal(name: str, query: Listing, words: Any) -> Working:
    rows, first = [], 0
    for listed in query.within(words["k"]):
        counts = not first and listed.reaches(words["rel"])
        first = listed.rank if counts else first
        rows.append(Worked(listed, (1 / listed.rank if counts else None,), counts))
    return Working(("contribution",), tuple(rows), *_of_first(name, query, words, first))


def _of_first(name: str, query: Listing, words: Any, first: int) -> tuple[tuple[str, ...], float]:
    if not query.relevant(words["rel"]):
        return (f"no document is relevant{level(words)}: {name} is undefined",), math.nan
    if not first:
        return (f"no relevant document{level(words)} was found: {name} = 0",), 0.0
    said = f"the first relevant document{level(words)} stands at rank {first}"
    return (said, f"{name} = 1 / {first} = {number(1 / first)}"), 1 / first


@worked("FirstRel")
def _first(name: str, query: Listing, words: Any) -> Working:
    rows, first = [], math.nan
    for listed in query.documents:
        counts = math.isnan(first) and listed.reaches(words["rel"])
        first = float(listed.rank) if counts else first
        rows.append(Worked(listed, (), counts))
    said = "no relevant document was found" if math.isnan(first) else "the rank of the first one"
    return Working((), tuple(rows), (f"{name} = {number(first)}: {said}{level(words)}",), first)


@worked("AP", "GMAP")
def _average_precision(name: str, query: Listing, words: Any) -> Working:
    k, found, total, rows, terms = words.get("k"), 0, 0.0, [], []
    for listed in query.within(k):
        if not listed.reaches(words["rel"]):
            rows.append(Worked(listed, (found, found / listed.rank, None, total), counts=False))
            continue
        found += 1
        precision = found / listed.rank
        total += precision
        terms.append(f"{found}/{listed.rank}")
        rows.append(Worked(listed, (found, precision, precision, total), counts=True))
    whole = query.relevant(words["rel"])
    norm, said = _divisor(words, found, whole)
    value = total / norm if whole and norm else (0.0 if whole else math.nan)
    steps = (
        f"divided by {said}",
        f"{name} = {bracketed(terms)} / {norm}",
        f"{' ' * len(name)} = {number(total)} / {norm} = {number(value)}",
    )
    return Working((*_SO_FAR, "contribution", "sum"), tuple(rows), steps, value)


def _divisor(words: Any, found: int, whole: int) -> tuple[int, str]:
    """What AP is divided by, and what that is."""
    k, norm = words.get("k"), words.get("norm", "R")
    relevant = f"relevant documents in the judgments{level(words)}"
    if norm == "k" and k is not None:
        return k, f"k = {k}, however many relevant documents there are (norm=k)"
    if norm == "retrieved":
        return found, f"the relevant documents found: {found} of {whole} (norm=retrieved)"
    if norm == "min(k,R)" and k is not None:
        return min(k, whole), f"the smaller of k = {k} and R = {whole}, the {relevant}"
    return whole, f"R = {whole}, the {relevant}, found or not"


@worked("Rprec")
def _r_precision(name: str, query: Listing, words: Any) -> Working:
    whole = query.relevant(words["rel"])
    found, rows = _counted(query, words, whole)
    value = _share(found, whole)
    said = f"R = {whole} documents are relevant{level(words)}: so many ranks are looked at"
    return Working(_SO_FAR, rows, (said, _written(name, found, whole, value)), value)


@worked("RelP", "SetRelP")
def _relative(name: str, query: Listing, words: Any) -> Working:
    k = words.get("k")
    found, rows = _counted(query, words, k)
    whole = query.relevant(words["rel"])
    places, said = (k, f"in the first {k}") if k else (len(rows), f"in {len(rows)} documents")
    best = min(places, whole)
    steps = (
        f"relevant{level(words)}: {whole} in the judgments, so at most {best} can stand {said}",
        f"{name} = 0: nothing was retrieved" if whole and not best
        else _written(name, found, best, _share(found, best)),
    )  # fmt: skip
    value = 0.0 if whole and not best else _share(found, best)
    return Working(("so far",), _first_term(rows), steps, value)


@worked("RprecMult")
def _at_multiple(name: str, query: Listing, words: Any) -> Working:
    whole, mult = query.relevant(words["rel"]), words["mult"]
    # As trec_eval counts: the whole part of the product, nearly always rounded up; 1 at least.
    places = max(int(mult * whole + 0.9), 1)
    found, rows = _counted(query, words, places)
    said = f"R = {whole} documents are relevant{level(words)}: {number(mult)} · R makes {places}"
    value = _share(found, places) if whole else math.nan
    steps = (f"{said} {'rank' if places == 1 else 'ranks'}", _written(name, found, places, value))
    return Working(_SO_FAR, rows, steps, value)


@worked("YAAP")
def _log_odds(name: str, query: Listing, words: Any) -> Working:
    plain = _average_precision("AP", query, words)
    whole = query.relevant(words["rel"])
    if not whole:
        return replace(plain, steps=(*plain.steps, f"{name}: undefined"))
    total = plain.value * whole
    value = math.log((1 + total) / (1 + whole - total))
    steps = (
        f"{name} = ln((1 + AP · R) / (1 + R - AP · R))",
        (
            f"{' ' * len(name)} = ln({number(1 + total)} / {number(1 + whole - total)})"
            f" = {number(value)}"
        ),
    )
    return replace(plain, steps=(*plain.steps, *steps), value=value)


@worked("SetP")
def _set_precision(name: str, query: Listing, words: Any) -> Working:
    found, rows = _counted(query, words, None)
    value = _share(found, len(rows))
    said = f"relevant{level(words)} among the {len(rows)} documents retrieved: {found}"
    return Working(_SO_FAR, rows, (said, _written(name, found, len(rows), value)), value)


@worked("SetAP")
def _set_average(name: str, query: Listing, words: Any) -> Working:
    found, rows = _counted(query, words, None)
    whole = query.relevant(words["rel"])
    p, r = _share(found, len(rows)) if rows else 0.0, _share(found, whole)
    steps = (
        f"P = {found} / {len(rows)} = {number(p)}, R = {found} / {whole} = {number(r)}",
        f"{name} = P · R = {number(p * r)}",
    )
    return Working(_SO_FAR, rows, steps, p * r)


@worked("IPrec")
def _interpolated(name: str, query: Listing, words: Any) -> Working:
    _, rows = _counted(query, words, None)
    whole = query.relevant(words["rel"])
    if not whole:
        return Working(_SO_FAR, rows, (f"no document is relevant: {name} is undefined",), math.nan)
    wanted = _wanted(words["recall"], whole, words)
    value, said = _highest(rows, wanted)
    steps = (
        f"recall {number(words['recall'])} of {whole} relevant documents is reached with {wanted}",
        f"{name} = {said}",
    )
    return Working(_SO_FAR, rows, steps, value)


def _wanted(recall: float, whole: int, words: Any) -> int:
    """How many relevant documents reach a recall: as trec_eval counts, 9 nearly always up."""
    return int(recall * whole + (0.5 if words["points"] == "nearest" else 0.9))


def _highest(rows: tuple[Worked, ...], wanted: int) -> tuple[float, str]:
    """The highest precision from where so many are found, and where it is."""
    best, said, found = 0.0, "0: so many were not found", 0
    for row in rows:
        found += row.counts
        if row.counts and found >= wanted and found / row.listed.rank > best:
            best = found / row.listed.rank
            said = (
                f"the highest precision from there on = {found}/{row.listed.rank} = {number(best)}"
            )
    return best, said


@worked("IPrecAvg")
def _eleven_points(name: str, query: Listing, words: Any) -> Working:
    _, rows = _counted(query, words, None)
    whole = query.relevant(words["rel"])
    if not whole:
        return Working(_SO_FAR, rows, (f"no document is relevant: {name} is undefined",), math.nan)
    wanted = [_wanted(tenth / 10, whole, words) for tenth in range(11)]
    points = [_highest(rows, count)[0] for count in wanted]
    value = sum(points) / 11
    steps = (
        "interpolated precision at recall 0, 0.1 ... 1:",
        f"  {', '.join(map(number, points))}",
        f"{name} = {number(sum(points))} / 11 = {number(value)}",
    )
    return Working(_SO_FAR, rows, steps, value)


@worked("RBP")
def _rank_biased(name: str, query: Listing, words: Any) -> Working:
    if words["residual"]:
        return _residual(name, query, words)
    p, total, weight, rows, powers = words["p"], 0.0, 1.0, [], []
    for listed in query.within(words["k"]):
        hit = listed.reaches(words["rel"])
        total += weight if hit else 0.0
        if hit:
            powers.append(f"{number(p)}^{listed.rank - 1}")
        rows.append(Worked(listed, (weight, weight if hit else None, total), hit))
        weight *= p
    value = (1 - p) * total
    steps = (
        f"a reader goes on with chance p = {number(p)}: rank i weighs p^(i - 1)",
        f"{name} = (1 - {number(p)}) · {bracketed(powers)}",
        f"{' ' * len(name)} = {number(1 - p)} · {number(total)} = {number(value)}",
    )
    return Working(("weight", "contribution", "sum"), tuple(rows), steps, value)


def _residual(name: str, query: Listing, words: Any) -> Working:
    p, known, weight, rows = words["p"], 0.0, 1.0, []
    for listed in query.within(words["k"]):
        known += weight if listed.judged else 0.0
        rows.append(
            Worked(listed, (weight, weight if listed.judged else None, known), listed.judged)
        )
        weight *= p
    value = 1 - (1 - p) * known
    steps = (
        "what is judged is known; the rest of all weight is the residual",
        f"{name} = 1 - (1 - {number(p)}) · {number(known)} = {number(value)}",
    )
    return Working(("weight", "known", "sum"), tuple(rows), steps, value)


@worked("Judged")
def _judged(name: str, query: Listing, words: Any) -> Working:
    rows = tuple(Worked(x, (), x.grade is not None) for x in query.within(words["k"]))
    known = sum(row.counts for row in rows)
    value = _share(known, len(rows))
    said = f"in the judgments: {known} of the {len(rows)} documents looked at"
    return Working((), rows, (said, _written(name, known, len(rows), value)), value)


@worked("Unjudged")
def _unjudged(name: str, query: Listing, words: Any) -> Working:
    rows = tuple(Worked(x, (), not x.judged) for x in query.within(words["k"]))
    bare = sum(row.counts for row in rows)
    said = f"documents in the first {words['k']} that nobody judged: {bare}"
    value = bare / words["k"]
    return Working((), rows, (said, _written(name, bare, words["k"], value)), value)


@worked("NumRet")
def _retrieved(name: str, query: Listing, words: Any) -> Working:  # noqa: ARG001 - as all of them
    rows = tuple(Worked(listed, (), counts=True) for listed in query.documents)
    return Working((), rows, (f"{name} = {len(rows)}",), float(len(rows)))


@worked("NumRel")
def _relevant(name: str, query: Listing, words: Any) -> Working:
    whole = query.relevant(words["rel"])
    rows = tuple(Worked(x, (), x.reaches(words["rel"])) for x in query.documents)
    return Working((), rows, (f"{name} = {whole}{level(words)}, retrieved or not",), float(whole))


@worked("NumRelRet")
def _relevant_retrieved(name: str, query: Listing, words: Any) -> Working:
    found, rows = _counted(query, words, words["k"])
    return Working(
        ("so far",), _first_term(rows), (f"{name} = {found}{level(words)}",), float(found)
    )


@worked("NumNonrelRet")
def _others_retrieved(name: str, query: Listing, words: Any) -> Working:
    rows = tuple(
        Worked(x, (), x.judged and not x.reaches(words["rel"])) for x in query.within(words["k"])
    )
    others = sum(row.counts for row in rows)
    said = f"{name} = {others}: judged, but not relevant{level(words)}"
    return Working((), rows, (said,), float(others))


@worked("Utility")
def _utility(name: str, query: Listing, words: Any) -> Working:
    hit, noise, miss = words["hit"], words["noise"], words["miss"]
    rows, total, found = [], 0.0, 0
    for listed in query.documents:
        counts = listed.reaches(words["rel"])
        found += counts
        worth = hit if counts else noise
        total += worth
        rows.append(Worked(listed, (worth, total), counts))
    others, missed = len(rows) - found, query.relevant(words["rel"]) - found
    value = float(hit * found + noise * others + miss * missed)
    of_each = (
        f"found: {found}, worth {number(hit)} each; others retrieved: {others}, worth "
        f"{number(noise)}; missed: {missed}, worth {number(miss)}"
    )
    product = f"{found} · {number(hit)} + {others} · {number(noise)} + {missed} · {number(miss)}"
    steps = (f"relevant{level(words)} and {of_each}", f"{name} = {product} = {number(value)}")
    return Working(("worth", "sum"), tuple(rows), steps, value)


@worked("Bpref", "GMBpref")
def _preference(name: str, query: Listing, words: Any) -> Working:
    rel, whole = words["rel"], query.relevant(words["rel"])
    others = sum(0 <= grade < rel for _, grade in query.judgments)
    bound, above, total, rows, terms = min(whole, others), 0, 0.0, [], []
    for listed in query.documents:
        if not listed.reaches(rel):
            above += listed.judged
            rows.append(Worked(listed, (above, None, total), counts=False))
            continue
        lost = min(above, whole) / bound if bound else 0.0
        total += 1 - lost
        terms.append(f"(1 - {min(above, whole)}/{bound})" if bound else "1")
        rows.append(Worked(listed, (above, 1 - lost, total), counts=True))
    value = total / whole if whole else math.nan
    steps = (
        f"R = {whole} relevant, N = {others} judged not relevant: min(N, R) = {bound}",
        f"{name} = {bracketed(terms)} / {whole}",
        f"{' ' * len(name)} = {number(total)} / {whole} = {number(value)}",
    )
    return Working(("others above", "contribution", "sum"), tuple(rows), steps, value)


@worked("infAP")
def _inferred(name: str, query: Listing, words: Any) -> Working:
    rel, whole = words["rel"], query.relevant(words["rel"])
    pool, hits, misses, total, rows, terms = 0, 0, 0, 0.0, [], []
    for listed in query.documents:
        expected: float | None = None
        if listed.reaches(rel):
            chance = (hits + _SMOOTHED) / (hits + misses + 2 * _SMOOTHED)
            expected = 1 / listed.rank + pool / listed.rank * chance
            total += expected
            terms.append(number(expected))
        counted = (pool, hits, misses)
        rows.append(Worked(listed, (*counted, expected, total), expected is not None))
        pool += listed.grade is not None
        hits += listed.reaches(rel)
        misses += listed.judged and not listed.reaches(rel)
    value = total / whole if whole else math.nan
    steps = (
        "at each relevant rank i: 1/i + (pool above)/i · (relevant above) / (judged above)",
        f"{name} = {bracketed(terms)} / {whole} = {number(value)}",
    )
    heads = ("pooled above", "found", "others", "expected", "sum")
    return Working(heads, tuple(rows), steps, value)

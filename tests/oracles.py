"""The second opinion: every measure as a slow loop, written from its paper and not from our code.

Plain Python data only: a ranking is a list of document ids, judgments are a dictionary. Nothing of
rankgauge is imported here. A value that is not defined is ``None``.

Where a definition leaves something open, the loops say what they take for granted:

* a grade below 0 means that nobody judged the document; only infAP makes use of it, and a document
  with such a grade still stands in the judgments (Judged);
* a ranking shorter than k is still divided by k where the measure divides by k;
* a sum over relevant documents divided by their number is not defined without any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import reader_loops
from seeing import Seen, Value, ranked

__all__ = ["ORACLES", "Seen", "Value", "ranked", "value"]


def _relevant(seen: Seen, doc: str, rel: float) -> bool:
    return doc in seen.grades and seen.grades[doc] >= rel


def _all_relevant(seen: Seen, rel: float) -> int:
    return sum(1 for grade in seen.grades.values() if grade >= rel)


def _found(seen: Seen, rel: float, k: int | None) -> int:
    return sum(1 for doc in seen.ranking[:k] if _relevant(seen, doc, rel))


# ---- a set of documents, cut from the ranking or all of it


def P(seen: Seen, *, k: int, rel: float = 1) -> Value:
    return _found(seen, rel, k) / k


def R(seen: Seen, *, k: int, rel: float = 1) -> Value:
    whole = _all_relevant(seen, rel)
    return _found(seen, rel, k) / whole if whole else None


def RelP(seen: Seen, *, k: int, rel: float = 1) -> Value:
    best = min(k, _all_relevant(seen, rel))
    return _found(seen, rel, k) / best if best else None


def SetRelP(seen: Seen, *, rel: float = 1) -> Value:
    whole = _all_relevant(seen, rel)
    if not whole:
        return None
    best = min(len(seen.ranking), whole)
    return _found(seen, rel, None) / best if best else 0.0


def Utility(
    seen: Seen, *, hit: float = 1, noise: float = -1, miss: float = 0, rel: float = 1
) -> Value:
    total = 0.0
    for doc in seen.ranking:
        total += hit if _relevant(seen, doc, rel) else noise
    for doc in seen.grades:
        if doc not in seen.ranking and _relevant(seen, doc, rel):
            total += miss
    return total


def _f(precision: float, recall: float, beta: float) -> float:
    # van Rijsbergen: E = 1 - 1 / (a/P + (1-a)/R) with a = 1 / (beta^2 + 1); F = 1 - E.
    if not precision or not recall:
        return 0.0
    weight = 1 / (beta**2 + 1)
    return 1 / (weight / precision + (1 - weight) / recall)


def F(seen: Seen, *, k: int, beta: float = 1, rel: float = 1) -> Value:
    precision, recall = P(seen, k=k, rel=rel), R(seen, k=k, rel=rel)
    return None if precision is None or recall is None else _f(precision, recall, beta)


def Success(seen: Seen, *, k: int, rel: float = 1) -> Value:
    for doc in seen.ranking[:k]:
        if _relevant(seen, doc, rel):
            return 1.0
    return 0.0


def SetP(seen: Seen, *, rel: float = 1) -> Value:
    return _found(seen, rel, None) / len(seen.ranking) if seen.ranking else None


def SetR(seen: Seen, *, rel: float = 1) -> Value:
    whole = _all_relevant(seen, rel)
    return _found(seen, rel, None) / whole if whole else None


def SetF(seen: Seen, *, beta: float = 1, rel: float = 1) -> Value:
    recall = SetR(seen, rel=rel)
    return None if recall is None else _f(SetP(seen, rel=rel) or 0.0, recall, beta)


def SetAP(seen: Seen, *, rel: float = 1) -> Value:
    recall = SetR(seen, rel=rel)
    return None if recall is None else (SetP(seen, rel=rel) or 0.0) * recall


# ---- ranks of relevant documents


def RR(seen: Seen, *, k: int | None = None, rel: float = 1) -> Value:
    if not _all_relevant(seen, rel):
        return None
    for rank, doc in enumerate(seen.ranking, start=1):
        if k is not None and rank > k:
            break
        if _relevant(seen, doc, rel):
            return 1 / rank
    return 0.0


def FirstRel(seen: Seen, *, rel: float = 1) -> Value:
    for rank, doc in enumerate(seen.ranking, start=1):
        if _relevant(seen, doc, rel):
            return float(rank)
    return None


def AP(seen: Seen, *, k: int | None = None, rel: float = 1, norm: str = "R") -> Value:
    whole = _all_relevant(seen, rel)
    if not whole:
        return None
    depth = len(seen.ranking) if k is None else k
    precisions = [
        _found(seen, rel, rank) / rank
        for rank in range(1, min(depth, len(seen.ranking)) + 1)
        if _relevant(seen, seen.ranking[rank - 1], rel)
    ]
    if norm == "R":
        divisor = whole
    elif norm == "min(k,R)":
        divisor = whole if k is None else min(k, whole)
    elif norm == "k":
        assert k is not None
        divisor = k
    elif norm == "retrieved":
        divisor = len(precisions)
    else:
        raise ValueError(norm)
    return sum(precisions) / divisor if precisions else 0.0


def GMAP(seen: Seen, *, rel: float = 1) -> Value:
    return AP(seen, rel=rel)


def Rprec(seen: Seen, *, rel: float = 1) -> Value:
    whole = _all_relevant(seen, rel)
    return P(seen, k=whole, rel=rel) if whole else None


def RprecMult(seen: Seen, *, mult: float, rel: float = 1) -> Value:
    whole = _all_relevant(seen, rel)
    # How many ranks make this multiple: the manner of trec_eval, and one at least.
    return P(seen, k=max(1, int(mult * whole + 0.9)), rel=rel) if whole else None


def YAAP(seen: Seen, *, rel: float = 1) -> Value:
    whole, average = _all_relevant(seen, rel), AP(seen, rel=rel)
    if average is None:
        return None
    return math.log(1 + average * whole) - math.log(1 + whole - average * whole)


def binG(seen: Seen, *, rel: float = 1) -> Value:
    whole = _all_relevant(seen, rel)
    if not whole:
        return None
    wrong, total = 0, 0.0
    for doc in seen.ranking:
        if _relevant(seen, doc, rel):
            total += 1 / math.log2(2 + wrong)
        else:
            wrong += 1
    return total / whole


def IPrec(seen: Seen, *, recall: float, rel: float = 1, points: str = "up") -> Value:
    whole = _all_relevant(seen, rel)
    if not whole:
        return None
    # How many relevant documents make this recall: the manner of trec_eval up to version 9.
    wanted = int(recall * whole + 0.9)
    if points == "nearest":
        # Version 10 takes the nearest number, and of two the higher one.
        wanted = min(range(whole + 1), key=lambda n: (abs(n - recall * whole), -n))
    best = 0.0
    for rank in range(1, len(seen.ranking) + 1):
        found = _found(seen, rel, rank)
        if found >= wanted:
            best = max(best, found / rank)
    return best


def IPrecAvg(seen: Seen, *, rel: float = 1, points: str = "up") -> Value:
    found = [IPrec(seen, recall=tenth / 10, rel=rel, points=points) for tenth in range(11)]
    known = [point for point in found if point is not None]
    return sum(known) / 11 if known else None


def RBP(
    seen: Seen, *, p: float = 0.8, k: int | None = None, rel: float = 1, residual: bool = False
) -> Value:
    if residual:
        # The reader reaches every rank with chance p^(rank-1); known is what is judged.
        known = 0.0
        for rank, doc in enumerate(seen.ranking[:k], start=1):
            if seen.grades.get(doc, -1) >= 0:
                known += (1 - p) * p ** (rank - 1)
        return 1 - known
    total = 0.0
    for rank, doc in enumerate(seen.ranking[:k], start=1):
        if _relevant(seen, doc, rel):
            total += p ** (rank - 1)
    return (1 - p) * total


# ---- incomplete judgments


def Bpref(seen: Seen, *, rel: float = 1) -> Value:
    whole = _all_relevant(seen, rel)
    if not whole:
        return None
    bad = [doc for doc, grade in seen.grades.items() if 0 <= grade < rel]
    bound = min(whole, len(bad))
    above, total = 0, 0.0
    for doc in seen.ranking:
        if _relevant(seen, doc, rel):
            total += 1 - min(above, whole) / bound if above else 1.0
        elif doc in bad:
            above += 1
    return total / whole


def GMBpref(seen: Seen, *, rel: float = 1) -> Value:
    return Bpref(seen, rel=rel)


def infAP(seen: Seen, *, rel: float = 1) -> Value:
    # Yilmaz and Aslam: the expected precision at rank i is 1/i for the document itself and, for the
    # i-1 ranks above it, the share that was pooled times the share of those judged that is relevant
    # (Lidstone smoothing with the epsilon of trec_eval).
    whole = _all_relevant(seen, rel)
    if not whole:
        return None
    epsilon = 0.00001
    total = 0.0
    for place, doc in enumerate(seen.ranking):
        if not _relevant(seen, doc, rel):
            continue
        above = [seen.grades[other] for other in seen.ranking[:place] if other in seen.grades]
        good = sum(1 for grade in above if grade >= rel)
        bad = sum(1 for grade in above if 0 <= grade < rel)
        expected = 1 / (place + 1)
        if place:
            pooled = len(above) / place
            share = (good + epsilon) / (good + bad + 2 * epsilon)
            expected += place / (place + 1) * pooled * share
        total += expected
    return total / whole


# ---- gains

Gain: TypeAlias = str | tuple[tuple[float, float], ...] | Mapping[float, float]


def _gain(grade: float | None, gain: Gain, rel: float | None = None) -> float:
    if grade is None or grade < (0 if rel is None else rel):
        return 0.0
    if gain == "linear":
        return grade
    if gain == "exp":
        return 2.0**grade - 1
    assert not isinstance(gain, str)
    return dict(gain).get(grade, grade)


def _dcg(gains: list[float], b: float | None = None) -> float:
    total = 0.0
    for rank, gain in enumerate(gains, start=1):
        if b is None:
            total += gain / (math.log(rank + 1) / math.log(2))
        elif rank < b:
            total += gain
        else:
            total += gain / math.log(rank, b)
    return total


def DCG(
    seen: Seen,
    *,
    k: int | None = None,
    gain: Gain = "linear",
    rel: float | None = None,
    b: float | None = None,
) -> Value:
    return _dcg([_gain(seen.grades.get(doc), gain, rel) for doc in seen.ranking[:k]], b)


def nDCG(
    seen: Seen,
    *,
    k: int | None = None,
    gain: Gain = "linear",
    ideal: str = "judged",
    rel: float | None = None,
    b: float | None = None,
) -> Value:
    found = [_gain(seen.grades.get(doc), gain, rel) for doc in seen.ranking]
    pools = {
        "judged": [_gain(grade, gain, rel) for grade in seen.grades.values()],
        "retrieved": found,
        "topk": found[:k],
    }
    best = _dcg(sorted(pools[ideal], reverse=True)[:k], b)
    if best:
        return _dcg(found[:k], b) / best
    # Nothing to gain at all: not defined. Nothing gained by what was retrieved: a bad ranking.
    return 0.0 if any(pools["judged"]) else None


def NCG(seen: Seen, *, k: int, gain: Gain = "linear", rel: float | None = None) -> Value:
    found = [_gain(seen.grades.get(doc), gain, rel) for doc in seen.ranking]
    best = sorted((_gain(grade, gain, rel) for grade in seen.grades.values()), reverse=True)
    return sum(found[:k]) / sum(best[:k]) if sum(best[:k]) else None


def RnDCG(seen: Seen, *, gain: Gain = "linear") -> Value:
    # Where the ideal gain falls, and at the end where two more were retrieved: as trec_eval.
    gains = [worth for grade in seen.grades.values() if (worth := _gain(grade, gain))]
    if not gains:
        return None
    ranks = [sum(other >= worth for other in gains) for worth in set(gains)]
    if len(seen.ranking) >= len(gains) + 2:
        ranks.append(len(seen.ranking))
    points = [nDCG(seen, k=rank, gain=gain) or 0.0 for rank in ranks]
    return sum(points) / len(points)


def nDCGrel(seen: Seen, *, gain: Gain = "linear") -> Value:
    wanted = [doc for doc, grade in seen.grades.items() if _gain(grade, gain)]
    if not wanted:
        return None
    total = 0.0
    for doc in wanted:
        rank = seen.ranking.index(doc) + 1 if doc in seen.ranking else None
        total += nDCG(seen, k=rank, gain=gain) or 0.0
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


def _cascade(grades: list[float], top: float) -> float:
    reaches, total = 1.0, 0.0
    for rank, grade in enumerate(grades, start=1):
        stops = (2 ** max(grade, 0) - 1) / 2**top
        total += reaches * stops / rank
        reaches *= 1 - stops
    return total


def ERR(seen: Seen, *, k: int | None = None, top: float = 4) -> Value:
    return _cascade([seen.grades.get(doc, 0) for doc in seen.ranking[:k]], top)


def nERR(seen: Seen, *, k: int | None = None, top: float = 4) -> Value:
    best = _cascade(sorted(seen.grades.values(), reverse=True)[:k], top)
    found = ERR(seen, k=k, top=top)
    return found / best if best and found is not None else None


# ---- order


def Compat(seen: Seen, *, p: float = 0.95, k: int = 1000, normalize: bool = True) -> Value:
    wanted = [doc for doc, grade in seen.grades.items() if grade > 0]
    if not wanted:
        return None
    places = {doc: place for place, doc in enumerate(seen.ranking)}
    wanted.sort(key=lambda doc: (-seen.grades[doc], places.get(doc, len(places))))
    found = _overlap(seen.ranking, wanted, p, k)
    return found / _overlap(wanted, wanted, p, k) if normalize else found


def _overlap(one: list[str], other: list[str], p: float, k: int) -> float:
    """Rank-biased overlap down to rank k, depth by depth."""
    left, right, both = set[str](), set[str](), 0
    total = weights = 0.0
    weight = 1.0
    for depth in range(1, k + 1):
        if depth <= len(one):
            left.add(one[depth - 1])
            both += one[depth - 1] in right
        if depth <= len(other):
            right.add(other[depth - 1])
            both += other[depth - 1] in left
        total += weight * both / depth
        weights += weight
        weight *= p
    return total / weights


def PairAcc(seen: Seen, *, k: int | None = None, rel: float = 1, among: str = "judged") -> Value:
    window = seen.ranking[:k]
    places = {doc: place for place, doc in enumerate(window)}
    pool = window if among == "retrieved" else [d for d, g in seen.grades.items() if g >= 0]
    good = [doc for doc in pool if _relevant(seen, doc, rel)]
    bad = [doc for doc in pool if not _relevant(seen, doc, rel)]
    right = 0.0
    for one in good:
        for other in bad:
            if one in places and places[one] < places.get(other, math.inf):
                right += 1
    return right / (len(good) * len(bad)) if good and bad else None


# ---- counts


def Judged(seen: Seen, *, k: int | None = None) -> Value:
    window = seen.ranking[:k]
    return sum(1 for doc in window if doc in seen.grades) / len(window) if window else None


def Unjudged(seen: Seen, *, k: int) -> Value:
    return sum(1 for doc in seen.ranking[:k] if seen.grades.get(doc, -1) < 0) / k


def NumNonrelRet(seen: Seen, *, k: int | None = None, rel: float = 1) -> Value:
    return float(sum(1 for doc in seen.ranking[:k] if 0 <= seen.grades.get(doc, -1) < rel))


def NumRet(seen: Seen) -> Value:
    return float(len(seen.ranking))


def NumRel(seen: Seen, *, rel: float = 1) -> Value:
    return float(_all_relevant(seen, rel))


def NumRelRet(seen: Seen, *, k: int | None = None, rel: float = 1) -> Value:
    return float(_found(seen, rel, k))


ORACLES: dict[str, Callable[..., Value]] = {
    loop.__name__: loop
    for loop in (
        AP, Bpref, Compat, DCG, ERR, F, FirstRel, G, GMAP, GMBpref, IPrec, IPrecAvg, Judged, NCG,
        NumNonrelRet, NumRel, NumRelRet, NumRet, P, PairAcc, R, RBP, RR, RelP, RnDCG, Rprec,
        RprecMult, SetAP, SetF, SetP, SetR, SetRelP, Success, Unjudged, Utility, YAAP, binG, infAP,
        nDCG, nDCGrel, nERR, *reader_loops.LOOPS,
    )
}  # fmt: skip


def value(name: str, params: Mapping[str, Any], seen: Seen) -> Value:
    """The value of a measure for one query, None where it is not defined."""
    words = dict(params)
    if words.pop("judged_only", False):
        seen = seen.judged_only()
    if words.get("rel") == "best":
        highest = max(seen.grades.values())
        words["rel"] = highest if highest > 0 else math.inf
    return ORACLES[name](seen, **words)

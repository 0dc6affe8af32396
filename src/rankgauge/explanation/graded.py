"""Step-by-step calculations of measures of graded relevance, user models, and means over ties."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rankgauge.core.grammar import Value
from rankgauge.explanation.calculation import (
    CALCULATIONS,
    Calculation,
    IdealDocument,
    MeasuredQuery,
    RankedDocument,
    RankedQuery,
    Step,
    bracketed,
    calculates,
    contributions,
    number,
    summed,
    with_sums,
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


def _discounted(gains: Iterable[float], words: Any) -> tuple[list[tuple[float, float, float]], list[str]]:
    """Return the gain, discount, and contribution of each rank, and the terms as text."""
    cells, terms = [], []
    for rank, gain in enumerate(gains, start=1):
        divisor, written = _divisor(rank, words)
        cells.append((gain, 1 / divisor, gain * (1 / divisor)))
        terms += [f"{number(gain)}{written}"] if gain > 0 else []
    return cells, terms


def _discounted_rows(query: MeasuredQuery) -> tuple[tuple[Step, ...], float, list[str]]:
    """Return the documents with their gains, the DCG, and its terms as text."""
    documents = query.within(query.k)
    cells, terms = _discounted((relevant_gain(doc.grade, query.words) for doc in documents), query.words)
    rows, total = with_sums(
        Step(doc, (gain, discount, added) if gain > 0 else (None, discount, None), gain > 0)
        for doc, (gain, discount, added) in zip(documents, cells, strict=True)
    )
    return rows, total, terms


def describe_gain(words: Any) -> str:
    """Return a description of the gain function."""
    gain, level = words["gain"], words["rel"]
    below = "" if level is None else f", from grade {number(level)} on"
    if isinstance(gain, tuple):
        pairs = ", ".join(f"{number(grade)} is {number(own)}" for grade, own in gain)
        return f"gain: grade {pairs}; any other grade is its own gain{below}"
    return f"gain of a document: {_GAINS[str(gain)]}{below}"


@calculates("DCG")
def _dcg(query: MeasuredQuery) -> Calculation:
    rows, total, terms = _discounted_rows(query)
    steps = (describe_gain(query.words), *_sum(query.name, terms, rows, total))
    return Calculation(_HEADS, rows, steps, total)


def _sum(left: str, terms: Sequence[str], rows: Sequence[Step | IdealDocument], total: float) -> list[str]:
    """Return a sum of formulas and, below it, the same sum of numbers with its result."""
    lines = [f"{left} = {summed(terms)}"]
    return [*lines, f"{' ' * len(left)} = {_added(rows, total)}"] if terms else lines


@calculates("nDCG")
def _ndcg(query: MeasuredQuery) -> Calculation:
    k, words = query.k, query.words
    rows, dcg, terms = _discounted_rows(query)
    pool, pool_name = _pool(query)
    best_first = [best for best in _best_first(pool, words)[:k] if best[0] > 0]
    cells, best = _discounted((gain for gain, _, _ in best_first), words)
    ideal, whole = with_sums(
        IdealDocument(rank, document, grade, row)
        for rank, ((_, grade, document), row) in enumerate(zip(best_first, cells, strict=True), start=1)
    )
    at = "" if k is None else f"@{k}"
    steps = [describe_gain(words), f"ideal: {pool_name}"]
    steps += _sum(f"DCG{at} ", terms, rows, dcg) + _sum(f"IDCG{at}", best, ideal, whole)
    if all(relevant_gain(grade, words) <= 0 for _, grade in query.judgments):
        steps.append(f"no judged document has a gain: {query.name} is undefined")
        return Calculation(_HEADS, rows, tuple(steps), math.nan, ideal)
    value = dcg / whole if whole else 0.0
    steps.append(f"{query.name} = DCG / IDCG = {number(dcg)} / {number(whole)} = {number(value)}")
    return Calculation(_HEADS, rows, tuple(steps), value, ideal)


def _best_first(pool: Iterable[tuple[str, float]], words: Any) -> list[tuple[float, float, str]]:
    """Return the gain, grade, and id of documents in ideal order."""
    return sorted(((relevant_gain(g, words), g, d) for d, g in pool), key=lambda best: -best[0])


def _pool(query: MeasuredQuery) -> tuple[list[tuple[str, float]], str]:
    """Return the documents and grades of the ideal ranking, and a description."""
    if query.words["ideal"] == "judged":
        known = [(document, grade) for document, grade in query.judgments if grade >= 0]
        return known, "the best order of all judged documents, found or not"
    depth = query.k if query.words["ideal"] == "topk" else None
    seen = [(x.document, x.grade) for x in query.within(depth) if x.judged and x.grade is not None]
    which = "the first k" if query.words["ideal"] == "topk" else "the documents retrieved"
    return seen, f"the best order of {which} only (ideal={query.words['ideal']}), which inflates nDCG"


@calculates("NCG")
def _ncg(query: MeasuredQuery) -> Calculation:
    k, words = query.k, query.words
    gains = ((doc, relevant_gain(doc.grade, words)) for doc in query.within(k))
    rows, gained = with_sums(Step(doc, (gain if gain > 0 else None,), gain > 0) for doc, gain in gains)
    ideal, whole = with_sums(
        IdealDocument(rank, document, grade, (gain,))
        for rank, (gain, grade, document) in enumerate(_best_first(query.judgments, words)[:k], start=1)
        if gain > 0
    )
    value = gained / whole if whole else math.nan
    steps = (
        describe_gain(words),
        f"gain in the first {k}: {_added(rows, gained)}",
        f"the maximum: {_added(ideal, whole)}",
        f"{query.name} = {number(gained)} / {number(whole)} = {number(value)}",
    )
    return Calculation(("gain", "sum"), rows, steps, value, ideal)


def _added(rows: Iterable[Step | IdealDocument], total: float) -> str:
    """Format the sum of the contributions with its result, or only the result if there is one contribution."""
    terms = contributions(rows)
    return f"{summed(terms)} = {number(total)}" if len(terms) > 1 else number(total)


_CASCADE = ("stop", "reached", "contribution", "sum")


def _stops(top: float) -> tuple[str, str]:
    return (
        f"stop: the probability of stopping at a document, (2^grade - 1) / 2^{number(top)}",
        "reached: the probability of reaching the rank; a contribution is stop · reached / rank",
    )


def _cascade(grades: Iterable[float | None], top: float) -> Iterator[tuple[float, float, float | None]]:
    """Yield the probabilities of stopping and of reaching, and the contribution, for each rank."""
    reached = 1.0
    for rank, grade in enumerate(grades, start=1):
        stop = gain_of(grade, "exp") / 2.0**top
        yield stop, reached, reached * stop / rank if stop > 0 else None
        reached *= 1 - stop


def _read(query: MeasuredQuery) -> tuple[tuple[Step, ...], float, list[str]]:
    """Return the steps of ERR, its value, and its terms as text."""
    documents = query.within(query.k)
    cascade = list(_cascade((doc.grade for doc in documents), query.words["top"]))
    rows, total = with_sums(Step(doc, cells, cells[0] > 0) for doc, cells in zip(documents, cascade, strict=True))
    terms = [
        f"{number(stop)}·{number(reached)}/{rank}"
        for rank, (stop, reached, _) in enumerate(cascade, start=1)
        if stop > 0
    ]
    return rows, total, terms


@calculates("ERR")
def _err(query: MeasuredQuery) -> Calculation:
    rows, total, terms = _read(query)
    steps = (*_stops(query.words["top"]), f"{query.name} = {summed(terms)} = {number(total)}")
    return Calculation(_CASCADE, rows, steps, total)


@calculates("nERR")
def _nerr(query: MeasuredQuery) -> Calculation:
    rows, err, terms = _read(query)
    best = query.judgments[: query.k]
    cascade = _cascade((grade for _, grade in best), query.words["top"])
    ideal, whole = with_sums(
        IdealDocument(rank, document, grade, cells)
        for rank, ((document, grade), cells) in enumerate(zip(best, cascade, strict=True), start=1)
        if cells[0] > 0
    )
    value = err / whole if whole else math.nan
    steps = (
        *_stops(query.words["top"]),
        f"ERR of the ranking = {summed(terms)}{f' = {number(err)}' if terms else ''}",
        f"ERR of the ideal ranking, all judged documents best first = {number(whole)}",
        f"{query.name} = {number(err)} / {number(whole)} = {number(value)}",
    )
    return Calculation(_CASCADE, rows, steps, value, ideal)


@calculates("binG")
def _fallen_behind(query: MeasuredQuery) -> Calculation:
    whole, wrong, unsummed, terms = query.count, 0, [], []
    for doc in query.documents:
        counts = doc.reaches(query.words["rel"])
        terms += [f"1/log2({2 + wrong})"] if counts else []
        unsummed.append(Step(doc, (wrong, 1 / math.log2(2 + wrong) if counts else None), counts))
        wrong += not counts
    rows, total = with_sums(unsummed)
    value = total / whole if whole else math.nan
    steps = (
        "each relevant document contributes 1 / log2(2 + the irrelevant documents above it)",
        f"{query.name} = {bracketed(terms)} / {whole} = {number(value)}",
    )
    return Calculation(("others above", "contribution", "sum"), rows, steps, value)


# ---- user models, down to the last rank that may be read


MOST_RANKS = 10**6
"""Number of ranks that are calculated one by one; deeper calculations would be unreadable."""


class _Rank(NamedTuple):
    """A rank with the gain of its document and the total gain down to this rank."""

    rank: int
    gain: float
    gained: float


def _inst(at: _Rank, words: Any) -> float:
    above = max(at.rank + 2 * words["goal"] - at.gained - 1, 0.0)
    return float((above / (above + 1)) ** 2)


def _insq(at: _Rank, words: Any) -> float:
    twice = 2 * words["goal"]
    return float(((at.rank + twice - 1) / (at.rank + twice)) ** 2)


# The probability of continuing to the next rank, and its formula.
MODELS: dict[str, tuple[Callable[[_Rank, Any], float], str]] = {
    "INST": (_inst, "((i + {goal} + T - 1) / (i + {goal} + T))^2, T = {goal} - gained so far"),
    "INSQ": (_insq, "((i + {twice} - 1) / (i + {twice}))^2"),
    # Sums of fractional gains are inexact: a sum equal up to rounding reaches the goal.
    "BPM": (lambda at, words: float(at.gained < words["goal"] - 1e-9), "1 until {goal} is gained, then 0"),
    "SDCG": (lambda at, _: math.log(at.rank + 1) / math.log(at.rank + 2), "log(i + 1) / log(i + 2)"),
    "NERR8": (lambda at, _: 1 - at.gain, "1 - gain"),
    "NERR9": (lambda at, _: at.rank / (at.rank + 1) * (1 - at.gain), "i / (i + 1) · (1 - gain)"),
    "NERR10": (lambda at, words: words["p"] * (1 - at.gain), "{p} · (1 - gain)"),
    "NERR11": (
        lambda at, words: _insq(at, words) * (1 - at.gain),
        "((i + {twice} - 1) / (i + {twice}))^2 · (1 - gain)",
    ),
}


def _share_of_top(doc: RankedDocument, words: Any) -> float:
    """Return 1 for a relevant document, or its grade as a fraction of the top grade."""
    rel, top = words["rel"], words["top"]
    if doc.grade is None or doc.grade < 0:
        return 0.0
    if top is None:
        return float(doc.grade >= (1 if rel is None else rel))
    return doc.grade / top if rel is None or doc.grade >= rel else 0.0


def _describe_share(words: Any) -> str:
    rel, top = words["rel"], words["top"]
    if top is None:
        return f"gain of a document: 1 from grade {number(1 if rel is None else rel)}"
    low = "" if rel is None else f", from grade {number(rel)} on"
    return f"gain of a document: its grade / {number(top)}{low}"


@calculates(*MODELS)
def _user_model(query: MeasuredQuery) -> Calculation:
    k, documents = query.k, query.within(query.k)
    chance, text = MODELS[query.name.partition("@")[0].partition("(")[0]]
    goal, p = (query.words.get(word, math.nan) for word in ("goal", "p"))
    gains, chances, reached = [], [], [1.0]
    gained = 0.0
    for rank in range(1, k + 1):
        gain = _share_of_top(documents[rank - 1], query.words) if rank <= len(documents) else 0.0
        gained += gain
        gains.append(gain)
        chances.append(chance(_Rank(rank, gain, gained), query.words) if rank < k else 0.0)
        reached.append(reached[-1] * chances[-1])
    # Expected number of ranks viewed.
    looks = math.fsum(reached[:k])
    weighted = [(gain, on, come / looks) for gain, on, come in zip(gains, chances, reached, strict=False)]
    rows, total = with_sums(
        Step(doc, (gain, on, weight, weight * gain) if gain > 0 else (None, on, weight, None), gain > 0)
        for doc, (gain, on, weight) in zip(documents, weighted, strict=False)
    )
    terms = [f"{number(weight)}·{number(gain)}" for gain, _, weight in weighted if gain > 0]
    steps = [
        _describe_share(query.words),
        "continues: the probability of viewing rank i + 1 as well: "
        + text.format(goal=number(goal), twice=number(2 * goal), p=number(p)),
        "weight: the expected share of views of a rank",
    ]
    if len(documents) < k:
        below = math.fsum(reached[len(documents) : k]) / looks
        ranks = f"the ranks {len(documents) + 1} to {k} are empty and have weight"
        if len(documents) + 1 == k:
            ranks = f"rank {k} is empty and has weight"
        steps.append(f"below the ranking: {ranks} {number(below)} of it")
    steps.append(f"{query.name} = {summed(terms)} = {number(total)}" if terms else f"{query.name} = 0")
    return Calculation(("gain", "continues", "weight", "contribution", "sum"), rows, tuple(steps), total)


# ---- means over all orders of equal scores

# Larger numbers of orders are shown as powers of ten.
_MOST_DIGITS = 9


# The weights of the ranks down to the cut-off, from the parameters of the measure; below it, they are 0.
WEIGHTS: dict[str, tuple[str, Callable[[int, Any], float]]] = {
    **dict.fromkeys(("P", "R", "RelP"), ("chance", lambda _rank, _words: 1.0)),
    "RBP": ("weight", lambda rank, words: float(words["p"] ** (rank - 1))),
    **dict.fromkeys(("DCG", "nDCG"), ("discount", lambda rank, words: 1 / _divisor(rank, words)[0])),
}
_DESCRIPTIONS = {
    "chance": "chance: the probability of being in the first k; in a tie, the share of its ranks there",
    "weight": "weight: in a tie, the mean weight of its ranks, p^(i - 1)",
    "discount": "discount: in a tie, the mean discount of its ranks",
}


def tie_mean(name: str, query: MeasuredQuery) -> Calculation | None:
    """Return the mean of a measure over all orders of equal scores, or None if not supported.

    Supported for measures that are sums of rank weights. Each document of a group of equal scores is
    equally likely at each rank of the group, so its weight is the mean weight of these ranks.
    """
    words = query.words
    if name not in WEIGHTS or words.get("residual") or (words.get("ideal") == "topk" and words["k"] is not None):
        return None
    head, weight = WEIGHTS[name]
    k, unsummed, terms = words["k"] or math.inf, [], []
    for doc in query.documents:
        if doc.first > k:
            break
        gain = relevant_gain(doc.grade, words) if "gain" in words else float(doc.reaches(words["rel"]))
        ranks = range(doc.first, doc.last + 1)
        mean = math.fsum(weight(rank, words) for rank in ranks if rank <= k) / len(ranks)
        counts = gain > 0
        terms += [number(mean) if gain == 1 else f"{number(gain)}·{number(mean)}"] if counts else []
        unsummed.append(Step(doc, (gain, mean, gain * mean) if counts else (None, mean, None), counts))
    rows, total = with_sums(unsummed)
    # The ideal ranking, and whether the value is defined, do not depend on the order.
    plain = CALCULATIONS[name](query)
    value, text = _divided(name, plain, query, total)
    steps = (
        *((describe_gain(words),) if "gain" in words else ()),
        _DESCRIPTIONS[head],
        f"sum = {summed(terms)}{f' = {number(total)}' if len(terms) > 1 else ''}",
        f"{query.name} = {text} = {number(value)}",
    )
    return Calculation(("gain", head, "contribution", "sum"), rows, steps, value, plain.ideal)


def _divided(name: str, plain: Calculation, query: MeasuredQuery, total: float) -> tuple[float, str]:
    """Return the value of the measure from the weighted sum, and its formula as text."""
    if name == "DCG":
        return total, "sum"
    if name == "RBP":
        rest = 1 - query.words["p"]
        return rest * total, f"{number(rest)} · {number(total)}"
    if name == "nDCG":
        whole = plain.ideal[-1].terms[-1] or 0.0 if plain.ideal else 0.0
        text = f"sum / IDCG = {number(total)} / {number(whole)}"
    else:
        whole = {"P": query.k, "R": query.count, "RelP": min(query.k, query.count)}[name]
        text = f"{number(total)} / {number(whole)}"
    if math.isnan(plain.value):
        return math.nan, text
    return total / whole if whole else 0.0, text


def orders_of(query: RankedQuery) -> str:
    """Return the number of orders of equal scores, as text."""
    sizes = {doc.first: doc.last - doc.first + 1 for doc in query.documents}
    logarithm = math.fsum(math.lgamma(size + 1) for size in sizes.values()) / math.log(10)
    if logarithm > _MOST_DIGITS:
        return f"about 10^{round(logarithm)}"
    return f"{math.prod(math.factorial(size) for size in sizes.values()):,}"

"""Independent preference measures: slow loops, written from the documentation of trec_eval.

This module imports nothing from rankgauge. A ranking is a list of ids, judgments are ``{group:
{sub-group: {document: grade}}}``. Undefined values are None.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import TypeAlias

Groups: TypeAlias = Mapping[str, Mapping[str, Mapping[str, float]]]
Pair: TypeAlias = tuple[str, str]


def _preferences(subgroups: Mapping[str, Mapping[str, float]]) -> set[Pair]:
    """Return all preferences of a group, including implied ones."""
    found = {
        (one, other)
        for grades in subgroups.values()
        for one, other in product(grades, repeat=2)
        if grades[one] > grades[other] >= 0
    }
    while True:
        more = {(a, d) for (a, b), (c, d) in product(found, repeat=2) if b == c} - found
        if not more:
            return found
        found |= more


def _counts(pair: Pair, ranking: Sequence[str], scope: str) -> bool:
    there = sum(doc in ranking for doc in pair)
    return there >= {"": 0, "_imp": 1, "_ret": 2}[scope]


def _kept(pair: Pair, ranking: Sequence[str]) -> bool:
    better, worse = pair
    if better not in ranking:
        return False
    return worse not in ranking or ranking.index(better) < ranking.index(worse)


def _mean_of_shares(each: Sequence[tuple[int, int]]) -> Fraction | None:
    if not any(given for _, given in each):
        return None
    return sum((Fraction(k, g) for k, g in each if g), Fraction(0)) / len(each)


def _evened(subgroups: Mapping[str, Mapping[str, float]], ranking: Sequence[str], scope: str) -> Fraction | None:
    """Return the value as trec_eval counts it, pair by pair; None for 0 / 0."""
    grades = {doc: grade for own in subgroups.values() for doc, grade in own.items() if grade >= 0}
    order = [doc for doc in ranking if doc in grades]
    order += sorted(doc for doc in grades if doc not in ranking)
    pairs = _preferences(subgroups)
    seen = [doc for doc in order if scope == "" or doc in ranking]
    good = [doc for doc in seen if grades[doc] > 0]
    rest = [doc for doc in seen if grades[doc] == 0]
    all_good = [doc for doc in grades if grades[doc] > 0]
    if len(good) >= len(rest):
        counted = [pair for pair in pairs if _counts(pair, ranking, scope)]
        more = len(good) - len(rest)
        kept = sum(_kept(pair, ranking) for pair in counted)
        kept += more * sum(doc in ranking for doc in good)
        given = len(counted) + more * len(all_good)
    elif len([own for own in subgroups.values() if max(own.values()) >= 0]) == 1:
        chosen = rest[: len(good)]
        counted = [(a, b) for a, b in pairs if b in chosen or grades[b] > 0]
        # Its bug: nonrelevant documents are compared with nonrelevant documents.
        counted += [(a, b) for a in rest for b in chosen]
        counted = [pair for pair in counted if _counts(pair, ranking, scope)]
        kept = sum(a != b and _kept((a, b), ranking) for a, b in counted)
        given = len(counted)
    else:
        dropped = rest[len(all_good) :]
        counted = [pair for pair in pairs if not {*pair} & {*dropped}]
        counted = [pair for pair in counted if _counts(pair, ranking, scope)]
        kept = sum(_kept(pair, ranking) for pair in counted)
        given = len(counted)
    return Fraction(kept, given) if given else None


def value(name: str, ranking: Sequence[str], groups: Groups) -> float | None:
    """Return the value of a measure for one query."""
    judged = {
        name: own
        for name, own in groups.items()
        if any(grade >= 0 for grades in own.values() for grade in grades.values())
    }
    each = [_preferences(own) for own in judged.values()]
    if name.startswith("prefs_num_prefs"):
        every = [pair for pairs in each for pair in pairs]
        scope = "_ret" if name.endswith("_ret") else ""
        kept = [pair for pair in every if _kept(pair, ranking) and _counts(pair, ranking, scope)]
        return len(every if name.endswith("poss") else kept)
    kind, scope = name.removeprefix("prefs_"), ""
    for ending in ("_ret", "_imp"):
        if kind.endswith(ending):
            kind, scope = kind.removesuffix(ending), ending
    if kind == "avgjg_Rnonrel":
        shares = [_evened(own, ranking, scope) for own in judged.values()]
        if not shares or None in shares:
            return None
        return float(sum(share for share in shares if share is not None) / len(shares))
    counted = [[pair for pair in pairs if _counts(pair, ranking, scope)] for pairs in each]
    if kind == "avgjg":
        mean = _mean_of_shares([(sum(_kept(pair, ranking) for pair in pairs), len(pairs)) for pairs in counted])
        return None if mean is None else float(mean)
    if kind == "simp":
        every = [pair for own in counted for pair in own]
        return sum(_kept(pair, ranking) for pair in every) / len(every) if every else None
    total, pairs = Fraction(0), {frozenset(pair) for own in counted for pair in own}
    for pair in pairs:
        said = [one for own in counted for one in own if {*one} == pair]
        total += Fraction(sum(_kept(one, ranking) for one in said), len(said))
    return float(total / len(pairs)) if pairs else None


Judgments = dict[str, dict[str, dict[str, dict[str, float]]]]


def batch(seed: int, *, queries: int = 60) -> tuple[Judgments, dict[str, dict[str, float]]]:
    """Return random preferences and a run: ties, gaps, negative grades, contradictory groups."""
    rng = random.Random(seed)
    judged: Judgments = {}
    run: dict[str, dict[str, float]] = {}
    for number in range(queries):
        query = f"q{number}" if number % 5 else f"é{number}"
        pool = [f"d{place}" for place in rng.sample(range(20), rng.randint(1, 10))]
        judged[query] = {}
        for group in range(rng.randint(1, 3)):
            grades = rng.choice(((0, 1), (-1, 0, 1, 2), (0, 0, 0, 1), (1, 2, 3, 3.5)))
            own = {doc: float(rng.choice(grades)) for doc in pool}
            # Several parts of one opinion agree with each other.
            judged[query][f"g{group}"] = {
                str(part): {doc: own[doc] for doc in rng.sample(pool, rng.randint(1, len(pool)))}
                for part in range(rng.choice((1, 1, 2, 4)))
            }
        if number % 9:
            docs = [f"d{place}" for place in rng.sample(range(20), rng.randint(0, 15))]
            most = rng.choice((2, 10**6))
            run[query] = {doc: float(rng.randint(0, most)) for doc in docs}
    run["unknown"] = {"d1": 1.0}
    return judged, run

"""Independent diversity measures: slow loops, written from the papers.

This module imports nothing from rankgauge. A ranking is a list of ids, judgments are ``{document:
{subtopic: grade}}``. Gains are exact fractions, so that no rounding decides which document an ideal
ranking takes. Undefined values are None.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

Grades: TypeAlias = Mapping[str, Mapping[str, float]]
Value: TypeAlias = float | None


def _relevant(grades: Grades, doc: str, rel: float) -> set[str]:
    return {subtopic for subtopic, grade in grades.get(doc, {}).items() if grade >= rel}


def _subtopics(grades: Grades, rel: float) -> set[str]:
    """Return the subtopics with a relevant document, as the TREC Web tracks do."""
    return set().union(*(_relevant(grades, doc, rel) for doc in grades))


def gains(ranking: Sequence[str], grades: Grades, alpha: float, rel: float) -> list[Fraction]:
    """Clarke et al. (2008), equation 5: a document gains (1 - alpha)^r for each subtopic."""
    keep = 1 - Fraction(str(alpha))
    seen: dict[str, int] = {}
    found = []
    for doc in ranking:
        covered = _relevant(grades, doc, rel)
        found.append(sum((keep ** seen.get(subtopic, 0) for subtopic in covered), Fraction(0)))
        for subtopic in covered:
            seen[subtopic] = seen.get(subtopic, 0) + 1
    return found


def ideal(grades: Grades, alpha: float, rel: float) -> list[str]:
    """Clarke et al. (2008), section 3: greedily add the document with the largest gain.

    Among equal gains, take the highest id by bytes, as ndeval does.
    """
    chosen: list[str] = []
    left = sorted(grades, key=lambda doc: doc.encode(), reverse=True)
    while left:
        best = max(left, key=lambda doc: gains([*chosen, doc], grades, alpha, rel)[-1])
        chosen.append(best)
        left.remove(best)
    return chosen


def _discounted(found: Sequence[Fraction], k: int) -> float:
    return math.fsum(float(gain) / math.log2(i + 1) for i, gain in enumerate(found[:k], start=1))


def _reciprocal(found: Sequence[Fraction], k: int) -> float:
    return float(sum((gain / i for i, gain in enumerate(found[:k], start=1)), Fraction(0)))


def _whole(alpha: float, count: int, k: int) -> list[Fraction]:
    """Return the gains of a ranking whose documents all cover all subtopics."""
    keep = 1 - Fraction(str(alpha))
    return [count * keep ** (i - 1) for i in range(1, k + 1)]


def alpha_DCG(ranking: Sequence[str], grades: Grades, *, k: int, alpha: float = 0.5, rel: float = 1) -> Value:
    count = len(_subtopics(grades, rel))
    if not count:
        return None
    whole = _discounted(_whole(alpha, count, k), k)
    return _discounted(gains(ranking, grades, alpha, rel), k) / whole


def alpha_nDCG(ranking: Sequence[str], grades: Grades, *, k: int, alpha: float = 0.5, rel: float = 1) -> Value:
    if not _subtopics(grades, rel):
        return None
    best = gains(ideal(grades, alpha, rel), grades, alpha, rel)
    return _discounted(gains(ranking, grades, alpha, rel), k) / _discounted(best, k)


def ERR_IA(ranking: Sequence[str], grades: Grades, *, k: int, alpha: float = 0.5, rel: float = 1) -> Value:
    """Chapelle et al. (2011): the mean of ERR over subtopics, a relevant document
    satisfying the reader with probability alpha; divided by the value of full coverage.
    """
    subtopics = _subtopics(grades, rel)
    if not subtopics:
        return None
    stop = Fraction(str(alpha))
    if not stop:  # the limit: all probabilities are the same small number
        whole = _reciprocal(_whole(alpha, len(subtopics), k), k)
        return _reciprocal(gains(ranking, grades, alpha, rel), k) / whole

    def err(chances: Sequence[Fraction]) -> Fraction:
        value, reaches = Fraction(0), Fraction(1)
        for i, chance in enumerate(chances, start=1):
            value += reaches * chance / i
            reaches *= 1 - chance
        return value

    each = [err([stop if s in _relevant(grades, doc, rel) else Fraction(0) for doc in ranking[:k]]) for s in subtopics]
    return float(sum(each) / len(each) / err([stop] * k))


def nERR_IA(ranking: Sequence[str], grades: Grades, *, k: int, alpha: float = 0.5, rel: float = 1) -> Value:
    if not _subtopics(grades, rel):
        return None
    best = gains(ideal(grades, alpha, rel), grades, alpha, rel)
    return _reciprocal(gains(ranking, grades, alpha, rel), k) / _reciprocal(best, k)


def _rank_biased(found: Sequence[Fraction], p: float) -> float:
    go_on = Fraction(str(p))
    return float(sum((gain * go_on**i for i, gain in enumerate(found)), Fraction(0)))


def NRBP(ranking: Sequence[str], grades: Grades, *, alpha: float = 0.5, p: float = 0.5, rel: float = 1) -> Value:
    """Clarke, Kolla, and Vechtomova (2009), equation 9."""
    count = len(_subtopics(grades, rel))
    if not count:
        return None
    return (1 - (1 - alpha) * p) * _rank_biased(gains(ranking, grades, alpha, rel), p) / count


def nNRBP(ranking: Sequence[str], grades: Grades, *, alpha: float = 0.5, p: float = 0.5, rel: float = 1) -> Value:
    if not _subtopics(grades, rel):
        return None
    best = gains(ideal(grades, alpha, rel), grades, alpha, rel)
    return _rank_biased(gains(ranking, grades, alpha, rel), p) / _rank_biased(best, p)


def AP_IA(ranking: Sequence[str], grades: Grades, *, k: int | None = None, rel: float = 1) -> Value:
    """Agrawal et al. (2009), section 4.1, with all subtopics equally likely."""
    each = []
    for subtopic in _subtopics(grades, rel):
        total = found = 0.0
        for i, doc in enumerate(ranking[:k], start=1):
            if subtopic in _relevant(grades, doc, rel):
                found += 1
                total += found / i
        each.append(total / sum(1 for doc in grades if subtopic in _relevant(grades, doc, rel)))
    return math.fsum(each) / len(each) if each else None


def P_IA(ranking: Sequence[str], grades: Grades, *, k: int, rel: float = 1) -> Value:
    each = [
        sum(1 for doc in ranking[:k] if subtopic in _relevant(grades, doc, rel)) / k
        for subtopic in _subtopics(grades, rel)
    ]
    return math.fsum(each) / len(each) if each else None


def StRecall(ranking: Sequence[str], grades: Grades, *, k: int, rel: float = 1) -> Value:
    """Zhai, Cohen, and Lafferty (2003), section 3: S-recall at K."""
    subtopics = _subtopics(grades, rel)
    if not subtopics:
        return None
    covered = set().union(*(_relevant(grades, doc, rel) for doc in ranking[:k]))
    return len(covered) / len(subtopics)


LOOPS: dict[str, Callable[..., Value]] = {
    loop.__name__: loop for loop in (AP_IA, ERR_IA, NRBP, P_IA, StRecall, alpha_DCG, alpha_nDCG, nERR_IA, nNRBP)
}


def value(name: str, params: Mapping[str, Any], ranking: Sequence[str], grades: Grades) -> Value:
    """Return the value of a measure for one query."""
    words = dict(params)
    if words.pop("judged_only", False):
        judged = {doc for doc, own in grades.items() if own and max(own.values()) >= 0}
        ranking = [doc for doc in ranking if doc in judged]
    return LOOPS[name](ranking, grades, **words)


Judgments = dict[str, dict[str, dict[str, float]]]
Scores = dict[str, dict[str, float]]


def batch(seed: int, *, queries: int = 60, documents: int = 14) -> tuple[Judgments, Scores]:
    """Return random subtopic judgments and a run: ties, gaps, negative grades, missing queries."""
    rng = random.Random(seed)
    judged: Judgments = {}
    run: Scores = {}
    for number in range(queries):
        query = f"q{number}" if number % 5 else f"é{number}"
        names = [str(place) for place in range(rng.randint(1, 12))]
        share = rng.choice((0.1, 0.4, 0.8))
        pool = [f"d{place}" for place in rng.sample(range(30), rng.randint(1, documents))]
        grades = rng.choice(((0, 1), (-2, 0, 1, 2, 3), (0, 1, 1, 1), (0, 0.5, 1.5, 4)))
        judged[query] = {}
        for doc in pool:
            own = {name: float(rng.choice(grades)) for name in names if rng.random() < share}
            judged[query][doc] = own or {rng.choice(names): 0.0}
        if number % 9:
            docs = [f"d{place}" for place in rng.sample(range(30), rng.randint(0, 25))]
            most = rng.choice((2, 5, 10**6))
            run[query] = {doc: float(rng.randint(0, most)) for doc in docs}
    run["unknown"] = {"d1": 1.0}
    return judged, run

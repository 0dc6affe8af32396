"""Measures of diversity, computed from judgments by subtopic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.data.judged_run import UNRANKED, BoolArray, Level, Values, discounts, ratio
from rankgauge.errors import InputError
from rankgauge.measures.declaration import measure

if TYPE_CHECKING:
    from rankgauge.data.special_qrels import SubtopicRun

# Upper bound on the value of a ranking divided by that of the greedy ideal ranking.
_GREEDY = math.e / (math.e - 1)
# Gains that differ only by rounding are equal.
_ALMOST = 1 - TOLERANCE
# 1 + 2**-54 equals 1 in floating point.
_BITS = 54
# Minimum length of the ideal ranking, so that several cut-offs share one.
_LEAST = 32
_DEEPEST = 10**6


@measure(reads="subtopics", also=("alpha-DCG",))
def alpha_DCG(run: SubtopicRun, *, k: int, alpha: float = 0.5, rel: Level = 1) -> Values:
    r"""DCG with novelty: each further document of a subtopic has a smaller gain.

    $$ \alpha DCG@k = \frac{1}{Z_k} \sum_{i \le k} \frac{n_i}{\log_2 (i + 1)}, \qquad
    n_i = \sum_{s:\, g_{is} \ge rel} (1 - \alpha)^{c_s(i)}, \qquad
    Z_k = S \sum_{i \le k} \frac{(1 - \alpha)^{i - 1}}{\log_2 (i + 1)} $$

    c_s(i) is the number of documents above rank i that are relevant to subtopic s; S is the number
    of subtopics with a relevant document. Z is the value of a ranking in which every document is
    relevant to every subtopic. Undefined without a relevant document.

    Use: as a part of alpha_nDCG, or to reproduce ndeval.
    Beware: in the paper, the sum is not divided by Z; ndeval does not divide at rank 1, so its
    value there is S times this one. In most collections, no ranking reaches 1.
    Source: Clarke et al. (2008), Novelty and diversity in information retrieval evaluation, SIGIR;
    normalized as in ndeval of the TREC Web tracks.
    """
    gained = run.total(np.where(run.within(k), _gains(run, alpha, rel) * _discounts(run), 0.0))
    steps = _steps(alpha, k)
    return gained / (run.subtopics(rel) * _full_gain(alpha, discounts(np.arange(1, steps + 1))))


@measure(reads="subtopics", bounds=(0.0, _GREEDY), also=("alpha-nDCG", "a-nDCG"))
def alpha_nDCG(run: SubtopicRun, *, k: int, alpha: float = 0.5, rel: Level = 1) -> Values:
    r"""Normalized DCG with novelty: alpha-DCG divided by that of an ideal ranking.

    $$ \alpha nDCG@k = \frac{\alpha DCG@k}{\alpha DCG^*@k} $$

    The ideal ranking is built greedily: each rank gets the document with the largest gain, and
    among equal gains the one with the highest id. (Finding the best ranking is NP-hard.) Undefined
    without a relevant document.

    Use: if queries have several meanings or aspects, and a ranking should cover them early.
    Beware: a ranking can beat the ideal one, so values slightly above 1 are possible; alpha = 0
    does not reward novelty.
    Source: Clarke et al. (2008), Novelty and diversity in information retrieval evaluation, SIGIR.
    """
    ideal = _ideal(run, alpha, rel, k)[:, :k]
    gained = run.total(np.where(run.within(k), _gains(run, alpha, rel) * _discounts(run), 0.0))
    return ratio(gained, run.total(ideal * discounts(np.arange(1, ideal.shape[1] + 1))))


@measure(reads="subtopics", also=("ERR-IA",))
def ERR_IA(run: SubtopicRun, *, k: int, alpha: float = 0.5, rel: Level = 1) -> Values:
    r"""Intent-aware ERR: expected reciprocal rank for users who each want one subtopic.

    $$ ERR\text{-}IA@k = \frac{1}{Z_k} \sum_{i \le k} \frac{n_i}{i}, \qquad
    Z_k = S \sum_{i \le k} \frac{(1 - \alpha)^{i - 1}}{i} $$

    n and S are those of alpha_DCG: a relevant document satisfies a user with probability alpha, and
    all subtopics are equally likely. Z is the value of a ranking in which every document is
    relevant to every subtopic. Undefined without a relevant document.

    Use: like alpha_DCG, for users who stop at a good document.
    Beware: grades are binary, as in ndeval, which does not divide by Z at rank 1; the paper uses
    grades and does not divide.
    Source: Chapelle et al. (2011), Intent-based diversification of web search results, Information
    Retrieval 14; normalized as in ndeval of the TREC Web tracks.
    """
    gained = run.total(np.where(run.within(k), _gains(run, alpha, rel) / run.rank, 0.0))
    steps = _steps(alpha, k)
    return gained / (run.subtopics(rel) * _full_gain(alpha, 1 / np.arange(1, steps + 1)))


@measure(reads="subtopics", bounds=(0.0, _GREEDY), also=("nERR-IA",))
def nERR_IA(run: SubtopicRun, *, k: int, alpha: float = 0.5, rel: Level = 1) -> Values:
    r"""Normalized intent-aware ERR: ERR-IA divided by that of an ideal ranking.

    $$ nERR\text{-}IA@k = \frac{ERR\text{-}IA@k}{ERR\text{-}IA^*@k} $$

    The ideal ranking is that of alpha_nDCG. Undefined without a relevant document.

    Use: like ERR_IA, if the highest possible value differs between queries.
    Beware: a ranking can beat the ideal one, so values slightly above 1 are possible.
    Source: Chapelle et al. (2011), Intent-based diversification of web search results, Information
    Retrieval 14; normalized as in ndeval of the TREC Web tracks.
    """
    ideal = _ideal(run, alpha, rel, k)[:, :k]
    gained = run.total(np.where(run.within(k), _gains(run, alpha, rel) / run.rank, 0.0))
    return ratio(gained, run.total(ideal / np.arange(1, ideal.shape[1] + 1)))


@measure(reads="subtopics")
def NRBP(run: SubtopicRun, *, alpha: float = 0.5, p: float = 0.5, rel: Level = 1) -> Values:
    r"""Novelty- and rank-biased precision: RBP for users who each want one subtopic.

    $$ NRBP = \frac{1 - (1 - \alpha) p}{S} \sum_i p^{\,i-1} n_i $$

    n and S are those of alpha_DCG; p (beta in the paper and in ndeval) is the probability of
    continuing to the next rank. Undefined without a relevant document.

    Use: like alpha_DCG, with a user model and no cut-off.
    Beware: with p = 0.5, ranks below 10 hardly count; values for different p and alpha cannot be
    compared.
    Source: Clarke, Kolla, and Vechtomova (2009), An effectiveness measure for ambiguous and
    underspecified queries, ICTIR.
    """
    gained = run.total(_gains(run, alpha, rel) * _persistence(run, p))
    return (1 - (1 - alpha) * p) * gained / run.subtopics(rel)


@measure(reads="subtopics", bounds=(0.0, _GREEDY))
def nNRBP(run: SubtopicRun, *, alpha: float = 0.5, p: float = 0.5, rel: Level = 1) -> Values:
    r"""Normalized NRBP: NRBP divided by that of an ideal ranking.

    $$ nNRBP = \frac{NRBP}{NRBP^*} $$

    The ideal ranking is that of alpha_nDCG. Undefined without a relevant document.

    Use: like NRBP, if the highest possible value differs between queries.
    Beware: a ranking can beat the ideal one, so values slightly above 1 are possible; it is slow if
    p is near 1, because it then needs the complete ideal ranking.
    Source: Clarke, Kolla, and Vechtomova (2009), An effectiveness measure for ambiguous and
    underspecified queries, ICTIR; normalized as in ndeval of the TREC Web tracks.
    """
    # Terms beyond this depth are too small to change the sum, which is at least 1.
    deep = (_BITS + math.log2(run.pool.shape[2])) / -math.log2(p)
    ideal = _ideal(run, alpha, rel, math.ceil(deep))
    gained = run.total(_gains(run, alpha, rel) * _persistence(run, p))
    return ratio(gained, run.total(ideal * _powers(p, ideal.shape[1])))


@measure(reads="subtopics", also=("AP-IA", "MAP-IA"))
def AP_IA(run: SubtopicRun, *, k: int | None = None, rel: Level = 1) -> Values:
    r"""Intent-aware average precision: the mean over subtopics of AP for each subtopic alone.

    $$ AP\text{-}IA@k = \frac{1}{S} \sum_s AP_s@k $$

    The mean is over the S subtopics with a relevant document. Undefined without one.

    Use: if all documents of every subtopic should be found.
    Beware: it does not reward novelty.
    Source: Agrawal, Gollapudi, Halverson, and Ieong (2009), Diversifying search results, WSDM; with
    equally likely subtopics, as in ndeval of the TREC Web tracks.
    """
    hits, relevant = run.hits(rel), run.relevant(rel)
    upto = np.cumsum(hits, axis=1, dtype=np.int64)
    counted = hits if k is None else hits & run.within(k)[:, :, None]
    shares = np.zeros(relevant.shape)
    for subtopic in range(relevant.shape[1]):
        precisions = upto[:, :, subtopic] / run.rank
        precise = run.total(np.where(counted[:, :, subtopic], precisions, 0.0))
        shares[:, subtopic] = precise / np.maximum(relevant[:, subtopic], 1)
    return run.total(shares) / run.subtopics(rel)


@measure(reads="subtopics", also=("P-IA",))
def P_IA(run: SubtopicRun, *, k: int, rel: Level = 1) -> Values:
    r"""Intent-aware precision: the mean over subtopics of precision for each subtopic alone.

    $$ P\text{-}IA@k = \frac{1}{k\,S} \sum_s | \{ i \le k : g_{is} \ge rel \} | $$

    The mean is over the S subtopics with a relevant document. Undefined without one.

    Use: with a measure that rewards novelty.
    Beware: it does not reward novelty, and reaches 1 only if each of the first k documents covers
    every subtopic.
    Source: Agrawal, Gollapudi, Halverson, and Ieong (2009), Diversifying search results, WSDM; with
    equally likely subtopics, as in ndeval of the TREC Web tracks.
    """
    hits = np.count_nonzero(run.hits(rel) & run.within(k)[:, :, None], axis=(1, 2))
    return hits / (k * run.subtopics(rel))


@measure(reads="subtopics", also=("S-recall", "subtopic recall", "strec"))
def StRecall(run: SubtopicRun, *, k: int, rel: Level = 1) -> Values:
    r"""Subtopic recall: the share of the subtopics that the first k ranks cover.

    $$ StRecall@k = \frac{1}{S} | \{ s : \exists\, i \le k,\; g_{is} \ge rel \} | $$

    S is the number of subtopics with a relevant document. Undefined without one.

    Use: if each aspect of a question should be answered in the first k.
    Beware: it ignores order within the first k, and further documents of a subtopic.
    Source: Zhai, Cohen, and Lafferty (2003), Beyond independent relevance: methods and evaluation
    metrics for subtopic retrieval, SIGIR.
    """
    covered = (run.hits(rel) & run.within(k)[:, :, None]).any(axis=1)
    return np.count_nonzero(covered, axis=1) / run.subtopics(rel)


def _gains(run: SubtopicRun, alpha: float, rel: Level) -> Values:
    """Return the gain of each document at its rank, (Q, J): less for repeated subtopics."""
    return run.once(("gains", alpha, rel), lambda: _novelty(run.hits(rel), alpha))


def _novelty(hits: BoolArray, alpha: float) -> Values:
    above = np.cumsum(hits, axis=1, dtype=np.int64) - hits
    weights = _powers(1 - alpha, int(above.max(initial=0)) + 1)
    gained = np.zeros(hits.shape[:2])
    # In a loop: the sum must not depend on the number of subtopics of other queries.
    for subtopic in range(hits.shape[2]):
        gained += np.where(hits[:, :, subtopic], weights[above[:, :, subtopic]], 0.0)
    return gained


def _discounts(run: SubtopicRun) -> Values:
    return run.once("discounts", lambda: discounts(run.rank))


def _ideal(run: SubtopicRun, alpha: float, rel: Level, k: int) -> Values:
    """Return the gains of the ideal ranking, (Q, I), for at least `k` ranks if available."""
    ranks = max(_LEAST, 1 << (min(k, run.pool.shape[1]) - 1).bit_length())
    return run.once(("ideal", alpha, rel, ranks), lambda: _greedy(run.reaches(run.pool, rel), alpha, ranks))


def _greedy(pool: BoolArray, alpha: float, ranks: int) -> Values:
    """Return the gain of each rank of the greedy ranking; the first of equal documents is taken."""
    # Subtopics first, so that each is a contiguous matrix of 1 and 0.
    left = np.moveaxis(pool, 2, 0).astype(np.float64)
    queries = np.arange(len(pool))
    taken = np.zeros((len(pool), pool.shape[2]), dtype=np.int64)
    weights = _powers(1 - alpha, min(ranks, pool.shape[1]) + 1)
    gains = np.zeros((len(pool), min(ranks, pool.shape[1])))
    for step in range(gains.shape[1]):
        gain = np.zeros(pool.shape[:2])
        for subtopic, documents in enumerate(left):
            gain += documents * weights[taken[:, subtopic], None]
        best = gain.max(axis=1)
        if not best.any():
            break
        chosen = np.argmax(gain >= best[:, None] * _ALMOST, axis=1)
        gains[:, step] = gain[queries, chosen]
        taken += left[:, queries, chosen].T.astype(np.int64)
        left[:, queries, chosen] = 0.0
    return gains


def _steps(alpha: float, k: int) -> int:
    """Return how many of the first `k` ranks can contribute to the divisor."""
    if 0 < alpha < 1:
        k = min(k, math.ceil(_BITS / -math.log2(1 - alpha)) + 1)
    steps = 1 if alpha == 1 else k
    if steps > _DEEPEST:
        raise InputError(
            f"alpha={alpha:g} needs a sum over {steps:,} ranks",
            fix=f"use a cut-off of at most {_DEEPEST:,}, or a larger alpha",
        )
    return steps


def _full_gain(alpha: float, weights: Values) -> float:
    """Return the gain of a subtopic that every document covers."""
    return float(np.cumsum(_powers(1 - alpha, len(weights)) * weights)[-1])


def _persistence(run: SubtopicRun, p: float) -> Values:
    """Return the probability of reaching each rank, (Q, J); 0 where padded."""
    ranked = np.where(run.rank < UNRANKED, run.rank, 0)
    return np.append(0.0, _powers(p, int(ranked.max(initial=0))))[ranked]


def _powers(base: float, count: int) -> Values:
    """Return 1, base, base**2, ... (not by np.power: it may depend on the memory address)."""
    powers = np.full(count, base)
    powers[:1] = 1.0
    return np.multiply.accumulate(powers)

"""Measures of binary relevance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.data.judged_run import UNRANKED, JudgedRun, Level, Values, ratio
from rankgauge.measures.declaration import measure
from rankgauge.measures.tie_means import (
    chance_of_success,
    expected_ap,
    expected_first,
    expected_reciprocal,
)

_LEVELS = tuple(level / 10 for level in range(11))


@measure(trec="P_{k}", also=("Precision",), tie_mean="linear")
def P(run: JudgedRun, *, k: int, rel: Level = 1) -> Values:
    r"""Precision: the share of the first k ranks with a relevant document.

    $$ P@k = \frac{1}{k} \left| \{ i \le k : g_i \ge rel \} \right| $$

    The divisor is k even if the ranking is shorter.

    Use: if the documents on one page matter, and every query has at least k relevant documents.
    Beware: with R relevant documents, it is at most R/k; it ignores order within the first k.
    Source: Cleverdon, Mills, and Keen (1966), Factors determining the performance of indexing
    systems.
    """
    return run.found(rel, k) / k


@measure(trec="recall_{k}", also=("Recall",), tie_mean="linear")
def R(run: JudgedRun, *, k: int, rel: Level = 1) -> Values:
    r"""Recall: the share of the relevant documents that are in the first k ranks.

    $$ R@k = \frac{1}{R} \left| \{ i \le k : g_i \ge rel \} \right| $$

    Undefined without a relevant document.

    Use: if a later stage (a reranker, a language model) reads only the first k documents.
    Beware: it cannot reach 1 if k < R; it ignores order; it assumes complete judgments.
    Source: Cleverdon, Mills, and Keen (1966), Factors determining the performance of indexing
    systems.
    """
    return run.found(rel, k) / run.divisor(rel)


@measure(trec="relative_P_{k}", also=("R_cap", "CappedRecall"), tie_mean="linear")
def RelP(run: JudgedRun, *, k: int, rel: Level = 1) -> Values:
    r"""Relative precision: precision at k divided by its highest possible value; capped recall.

    $$ RelP@k = \frac{| \{ i \le k : g_i \ge rel \} |}{\min(k, R)} $$

    Undefined without a relevant document.

    Use: if queries differ in R, and 1 should be attainable for each query.
    Beware: it is precision for queries with R above k, and recall for the others.
    Source: trec_eval, measure relative_P; as R_cap in Thakur et al. (2021), BEIR, NeurIPS.
    """
    return run.found(rel, k) / np.minimum(run.divisor(rel), k)


@measure(
    stated=("beta",),
    tie_mean="linear",
    also=("F-measure",),
    shown={"F1": {"beta": 1}, "F2": {"beta": 2}, "F0.5": {"beta": 0.5}},
)
def F(run: JudgedRun, *, k: int, beta: float = 1, rel: Level = 1) -> Values:
    r"""F-measure: the harmonic mean of precision and recall at k; beta weighs recall.

    $$ F_\beta@k = \frac{(1 + \beta^2)\, P@k\, R@k}{\beta^2 P@k + R@k} $$

    0 if no relevant document is in the first k; undefined without a relevant document.

    Use: for a single number at a fixed cut-off, if both false hits and misses matter.
    Beware: its highest possible value depends on R; prefer to report both P and R.
    Source: van Rijsbergen (1979), Information Retrieval, chapter 7.
    """
    weight = beta * beta
    return (1 + weight) * run.found(rel, k) / (weight * run.divisor(rel) + k)


@measure(trec="success_{k}", also=("Hit", "HitRate", "HR"), tie_mean=chance_of_success)
def Success(run: JudgedRun, *, k: int, rel: Level = 1) -> Values:
    r"""Success (hit rate): 1 if a relevant document is in the first k ranks, else 0.

    $$ Success@k = [\, \exists\, i \le k : g_i \ge rel \,] $$

    Use: if one good document is enough: question answering, lookups, fact checks.
    Beware: it ignores the rank of the first relevant document, and all others.
    Source: Voorhees (2004), Overview of the TREC 2004 robust retrieval track.
    """
    return (run.first(rel) <= k).astype(np.float64)


@measure(trec="recip_rank", also=("MRR", "ReciprocalRank", "MeanReciprocalRank"), tie_mean=expected_reciprocal)
def RR(run: JudgedRun, *, k: int | None = None, rel: Level = 1) -> Values:
    r"""Reciprocal rank of the first relevant document, 0 if it is not in the first k.

    $$ RR = 1 / \min \{ i : g_i \ge rel \} $$

    Its mean over queries is MRR. With ``rel=best``, only documents with the highest grade of the
    query count as relevant. Undefined without a relevant document.

    Use: if the user wants one document: known-item search, question answering.
    Beware: a mean of 0.5 does not imply that the first relevant document is usually at rank 2: it
    may be at rank 1 for half of the queries, and missing for the others. See Success and FirstRel.
    Source: Kantor and Voorhees (2000), The TREC-5 confusion track, Information Retrieval 2.
    """
    first = run.first(rel)
    value = np.where(first <= (UNRANKED - 1 if k is None else k), 1.0 / first, 0.0)
    return _defined(value, run.relevant(rel))


@measure(
    trec=("map", "map_cut_{k}"),
    also=("MAP", "AveragePrecision"),
    tie_mean=expected_ap,
    variants={("norm", "retrieved"): {"monotone": False}},
)
def AP(run: JudgedRun, *, k: int | None = None, rel: Level = 1, norm: str = "R") -> Values:
    r"""Average precision: the mean of the precisions at the ranks of the relevant documents.

    $$ AP@k = \frac{1}{N} \sum_{i \le k,\; g_i \ge rel} P@i $$

    By default, N is R, the number of relevant documents. Other tools divide by min(k,R), by k, or
    by the number of relevant documents retrieved; ``norm`` selects the divisor. Undefined without a
    relevant document.

    Use: if the whole ranking matters, and judgments are binary and fairly complete.
    Beware: tools use four different divisors under the name MAP@k.
    Source: Harman (1995), Overview of the fourth Text REtrieval Conference; Buckley and Voorhees
    (2000), Evaluating evaluation measure stability, SIGIR.
    """
    total = _precisions(run, k, rel)
    if norm == "k" and k is not None:
        return _defined(total / k, run.relevant(rel))
    if norm == "retrieved":
        return _defined(total / np.maximum(run.found(rel, k), 1), run.relevant(rel))
    if norm == "min(k,R)" and k is not None:
        return total / np.minimum(run.divisor(rel), k)
    return total / run.divisor(rel)


@measure(trec="gm_map", mean="geometric", also=("gm_map",), tie_mean=partial(expected_ap, k=None, norm="R"))
def GMAP(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""Average precision whose mean over queries is geometric (no value below 0.00001).

    $$ GMAP = \exp\Big( \frac{1}{|Q|} \sum_q \log \max(AP_q, 10^{-5}) \Big) $$

    The value per query is AP itself. Undefined without a relevant document.

    Use: if the worst queries matter: doubling 0.01 counts as much as doubling 0.4.
    Beware: a single query without a relevant document retrieved lowers it strongly.
    Source: Robertson (2006), On GMAP: and other transformations, CIKM.
    """
    return _precisions(run, None, rel) / run.divisor(rel)


@measure(trec="yaap", bounds=(-math.inf, math.inf))
def YAAP(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""Yet another average precision: smoothed AP on a scale of log odds.

    $$ YAAP = \ln \frac{1 + S}{1 + R - S}, \qquad S = \sum_{i:\, g_i \ge rel} P@i $$

    For a single query, it orders runs as AP does. A query without a relevant document retrieved has
    a value below 0. Undefined without a relevant document.

    Use: for means over queries of very different difficulty: differences near the ends of the scale
    count as much as in its middle.
    Beware: it has no bounds, and the size of a value depends on R.
    Source: Robertson (2012), On smoothing average precision, ECIR.
    """
    total, relevant = _precisions(run, None, rel), run.relevant(rel)
    odds = (1 + total) / np.maximum(1 + relevant - total, 1.0)
    # Not np.log: its last bit may depend on the memory address of a number.
    return _defined(np.array([math.log(ratio) for ratio in odds.tolist()]), relevant)


@measure(trec="Rprec", also=("R-Precision", "RPrecision"), tie_mean="linear")
def Rprec(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""R-precision: precision at rank R, the number of relevant documents of the query.

    $$ Rprec = \frac{1}{R} \left| \{ i \le R : g_i \ge rel \} \right| $$

    At this rank, precision equals recall, and 1 is always attainable. Undefined without a relevant
    document.

    Use: if the number of relevant documents varies widely between queries.
    Beware: the cut-off differs between queries, so it does not model a page of results.
    Source: Buckley and Voorhees (2000), Evaluating evaluation measure stability, SIGIR.
    """
    return run.among(run.hits(rel), run.relevant(rel)) / run.divisor(rel)


@measure(trec="Rprec_mult_{mult:.2f}", at="mult", curve=tuple(fifth / 5 for fifth in range(1, 11)), tie_mean="linear")
def RprecMult(run: JudgedRun, *, mult: float, rel: Level = 1) -> Values:
    r"""Precision at a multiple of R: precision at rank mR, with R relevant documents.

    $$ RprecMult@m = \frac{| \{ i \le n : g_i \ge rel \} |}{n}, \qquad
    n = \max(1, \lfloor m R + 0.9 \rfloor) $$

    The name without a multiple stands for the ten multiples 0.2, 0.4, ..., 2.0. At 1, it is Rprec.
    The divisor is n even if the ranking is shorter. Undefined without a relevant document.

    Use: to see whether a run is better near the top (low multiples) or further down.
    Beware: the cut-off differs between queries; for m > 1, it is at most 1/m.
    Source: trec_eval, measure Rprec_mult.
    """
    depth = np.maximum((mult * run.relevant(rel) + 0.9).astype(np.int64), 1)
    return _defined(run.among(run.hits(rel), depth) / depth, run.relevant(rel))


@measure(trec="set_P", also=("SetPrecision",), tie_mean="same")
def SetP(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""Set precision: the share of all retrieved documents that are relevant.

    $$ SetP = |\{ i : g_i \ge rel \}| / n $$

    Undefined if nothing was retrieved.

    Use: if the retriever returns a set: a filter, a Boolean search, a threshold.
    Beware: for rankings of fixed depth it is P at that depth.
    Source: Cleverdon, Mills, and Keen (1966), Factors determining the performance of indexing
    systems.
    """
    return ratio(run.found(rel), run.retrieved)


@measure(trec="set_recall", also=("SetRecall",), tie_mean="same")
def SetR(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""Set recall: the share of the relevant documents that were retrieved at any rank.

    $$ SetR = |\{ i : g_i \ge rel \}| / R $$

    Undefined without a relevant document.

    Use: to measure the share of the relevant documents that a first stage passes on.
    Beware: it is 1 if everything is retrieved.
    Source: Cleverdon, Mills, and Keen (1966), Factors determining the performance of indexing
    systems.
    """
    return run.found(rel) / run.divisor(rel)


@measure(trec="set_relative_P", tie_mean="same")
def SetRelP(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""Set relative precision: set precision divided by its highest possible value.

    $$ SetRelP = \frac{|\{ i : g_i \ge rel \}|}{\min(n, R)} $$

    0 if nothing was retrieved; undefined without a relevant document.

    Use: if the retriever returns a set whose size it does not choose.
    Beware: it is 1 if the only document retrieved is relevant.
    Source: trec_eval, measure set_relative_P.
    """
    return run.found(rel) / np.minimum(run.divisor(rel), np.maximum(run.retrieved, 1))


@measure(trec="set_F", tie_mean="same")
def SetF(run: JudgedRun, *, beta: float = 1, rel: Level = 1) -> Values:
    r"""Set F-measure: the harmonic mean of set precision and set recall; beta weighs recall.

    $$ SetF_\beta = \frac{(1 + \beta^2)\, SetP\, SetR}{\beta^2 SetP + SetR} $$

    0 if nothing relevant was retrieved; undefined without a relevant document. trec_eval does not
    square beta, so the two agree only for beta = 1.

    Use: for a single number, if the retriever returns a set.
    Beware: see F.
    Source: van Rijsbergen (1979), Information Retrieval, chapter 7.
    """
    weight = beta * beta
    return (1 + weight) * run.found(rel) / (weight * run.divisor(rel) + run.retrieved)


@measure(trec="set_map", tie_mean="same")
def SetAP(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""Set average precision: set precision times set recall.

    $$ SetAP = SetP \cdot SetR $$

    Undefined without a relevant document.

    Use: to reproduce set_map of trec_eval, for sets without order.
    Beware: it is not an average over ranks.
    Source: trec_eval, measure set_map.
    """
    hits = run.found(rel).astype(np.float64)
    relevant = run.relevant(rel)
    return _defined(hits * hits / np.maximum(run.retrieved * relevant, 1), relevant)


@measure(trec="iprec_at_recall_{recall:.2f}", at="recall", curve=_LEVELS)
def IPrec(run: JudgedRun, *, recall: float, rel: Level = 1, points: str = "up") -> Values:
    r"""Interpolated precision: the highest precision at any rank with at least this recall.

    $$ IPrec@r = \max \{ P@i : |\{ j \le i : g_j \ge rel \}| \ge \lfloor r R + 0.9 \rfloor \} $$

    0 if that recall is not reached. The name without a recall stands for the eleven points 0.0,
    0.1, ..., 1.0. The number of documents is computed as in trec_eval up to version 9; version 10
    rounds it instead (``points=nearest``), and may report the precision of a lower recall.
    Undefined without a relevant document.

    Use: to show the trade-off between precision and recall as a curve.
    Beware: interpolation hides local drops of precision.
    Source: Manning, Raghavan, and Schütze (2008), Introduction to Information Retrieval, 8.4.
    """
    return _defined(_interpolated(run, recall, rel, points), run.relevant(rel))


@measure(trec="11pt_avg", also=("11pt_avg", "11pt", "IPrec11"))
def IPrecAvg(run: JudgedRun, *, rel: Level = 1, points: str = "up") -> Values:
    r"""Eleven-point average: the mean of interpolated precision at recall 0.0, 0.1 ... 1.0.

    $$ \frac{1}{11} \sum_{r \in \{0, 0.1, \dots, 1\}} IPrec@r $$

    Undefined without a relevant document.

    Use: to compare with results published before AP became usual.
    Beware: see IPrec.
    Source: Manning, Raghavan, and Schütze (2008), Introduction to Information Retrieval, 8.4.
    """
    precisions = np.stack([_interpolated(run, level, rel, points) for level in _LEVELS], axis=1)
    return _defined(run.total(precisions) / len(_LEVELS), run.relevant(rel))


@measure(
    stated=("p",),
    also={"rank-biased precision": {}} | {name: {"residual": True} for name in ("RBPres", "RBP residual", "rbp_resid")},
    tie_mean="linear",
    variants={("residual", True): {"better": "lower", "reads": "judged", "without": ("judged_only",)}},
)
def RBP(run: JudgedRun, *, p: float = 0.8, k: int | None = None, rel: Level = 1, residual: bool = False) -> Values:
    r"""Rank-biased precision: relevance found by a user who continues with probability p.

    $$ RBP@k = (1 - p) \sum_{i \le k,\; g_i \ge rel} p^{\,i-1} $$

    The residual is the possible increase if all unjudged documents, including those below the
    ranking or below k, were relevant: the true RBP is between RBP and RBP + residual.

    $$ RBP(residual)@k = 1 - (1 - p) \sum_{i \le k,\; judged} p^{\,i-1} $$

    Use: with a user model, or with incomplete judgments (the residual measures the uncertainty).
    Beware: values for different p cannot be compared; with few relevant documents, it is far below
    1. The residual is an upper bound, not an estimate.
    Source: Moffat and Zobel (2008), Rank-biased precision for measurement of retrieval
    effectiveness, TOIS 27.
    """
    weights = _persistence(run, p, k)
    if residual:
        return 1 - (1 - p) * run.total(np.where(run.judged, weights, 0.0))
    return (1 - p) * run.total(np.where(run.hits(rel), weights, 0.0))


def _defined(values: Values, whole: IntArray) -> Values:
    """Return the values, NaN where the denominator is 0."""
    return np.where(whole > 0, values, np.nan)


def _precisions(run: JudgedRun, k: int | None, rel: Level) -> Values:
    """Return the sum of the precisions at the ranks of relevant documents."""
    return run.total(np.where(run.hits(rel, k), _hits_down_to(run, rel) / run.rank, 0.0))


def _hits_down_to(run: JudgedRun, rel: Level) -> IntArray:
    """Return the number of relevant documents down to each document, (Q, J)."""
    return run.once(("upto", rel), lambda: np.cumsum(run.hits(rel), axis=1, dtype=np.int64))


def _interpolated(run: JudgedRun, recall: float, rel: Level, points: str) -> Values:
    counts = _hits_down_to(run, rel)
    # The number of relevant documents for this recall, as computed by trec_eval.
    needed = (recall * run.relevant(rel) + (0.9 if points == "up" else 0.5)).astype(np.int64)
    reached = run.hits(rel) & (counts >= needed[:, None])
    return np.where(reached, counts / run.rank, 0.0).max(axis=1)


def _persistence(run: JudgedRun, p: float, k: int | None) -> Values:
    """Return p ** (rank - 1) (not by np.power: it may depend on the memory address)."""

    def table(ranks: int) -> Values:
        powers = np.full(ranks + 2, p)
        powers[:2] = 0.0, 1.0
        return np.append(powers[:1], np.multiply.accumulate(powers[1:]))

    return run.weights(("persistence", p), table, k)


@measure(better="neither", reads="judged", judged_only=False, tie_mean="linear")
def Judged(run: JudgedRun, *, k: int | None = None) -> Values:
    r"""The share of the first k retrieved documents that are judged.

    $$ Judged@k = \frac{|\{ i \le k : i \text{ in the judgments} \}|}{\min(k, n)} $$

    Undefined if nothing was retrieved.

    Use: with every other measure: unjudged documents count as not relevant.
    Beware: compare two systems only if it is similar for both.
    Source: Sakai (2007), Alternatives to bpref, SIGIR.
    """
    return judged_shares(run, [k])[:, 0]


def judged_shares(run: JudgedRun, depths: Sequence[int | None]) -> Values:
    """Return Judged@k at each depth, (Q, K); None stands for the whole ranking."""
    known = np.stack([run.among(run.in_qrels, k) for k in depths], axis=1)
    depth = np.stack([run.depth(k) for k in depths], axis=1)
    return ratio(known, depth)


@measure(trec="unj_{k}", better="lower", reads="judged", judged_only=False, tie_mean="linear")
def Unjudged(run: JudgedRun, *, k: int) -> Values:
    r"""The share of the first k ranks with an unjudged document.

    $$ Unjudged@k = \frac{1}{k} | \{ i \le k : i \text{ has no grade} \ge 0 \} | $$

    Ranks below the end of a shorter ranking do not count as unjudged.

    Use: as a warning: if it is high, other values of this run are uncertain.
    Beware: it is not 1 - Judged, which divides by the number of documents retrieved, and counts
    grades below 0 (pooled, not judged) as judged. Hole@k of BEIR and MTEB differs: a document
    judged for any query counts as judged.
    Source: trec_eval 10, measure unj.
    """
    return (run.depth(k) - run.among(run.judged, k)) / k


@measure(trec="num_ret", mean="sum", better="neither", bounds=(0.0, math.inf), judged_only=False, tie_mean="same")
def NumRet(run: JudgedRun) -> Values:
    """The number of documents retrieved; the mean is the sum over queries.

    Use: to check whether runs have the same depth.
    Beware: it does not measure quality.
    Source: trec_eval, measure num_ret.
    """
    return run.retrieved.astype(np.float64)


@measure(trec="num_rel", mean="sum", better="neither", bounds=(0.0, math.inf), judged_only=False, tie_mean="same")
def NumRel(run: JudgedRun, *, rel: Level = 1) -> Values:
    """The number of relevant documents, retrieved or not; the mean is the sum over queries.

    Use: with recall, as its denominator.
    Beware: it depends on the judgments only.
    Source: trec_eval, measure num_rel.
    """
    return run.relevant(rel).astype(np.float64)


@measure(trec="num_rel_ret", mean="sum", bounds=(0.0, math.inf), judged_only=False, tie_mean="linear")
def NumRelRet(run: JudgedRun, *, k: int | None = None, rel: Level = 1) -> Values:
    """The number of relevant documents in the first k; the mean is the sum over queries.

    Use: to report recall as a count.
    Beware: queries with many relevant documents dominate it.
    Source: trec_eval, measure num_rel_ret.
    """
    return run.found(rel, k).astype(np.float64)


@measure(
    trec="num_nonrel_judged_ret",
    mean="sum",
    better="lower",
    bounds=(0.0, math.inf),
    judged_only=False,
    tie_mean="linear",
    monotone=False,
)
def NumNonrelRet(run: JudgedRun, *, k: int | None = None, rel: Level = 1) -> Values:
    """The number of documents judged not relevant in the first k; the mean is the sum over queries.

    Use: with NumRelRet, to distinguish documents judged not relevant from unjudged ones.
    Beware: it is small if few documents are judged.
    Source: trec_eval, measure num_nonrel_judged_ret.
    """
    return np.asarray(run.among(run.judged, k) - run.found(rel, k), dtype=np.float64)


@measure(trec="utility", bounds=(-math.inf, math.inf), tie_mean="same")
def Utility(run: JudgedRun, *, hit: float = 1, noise: float = -1, miss: float = 0, rel: Level = 1) -> Values:
    r"""Set utility: weights for relevant documents retrieved, other retrieved ones, missed ones.

    $$ Utility = hit \cdot f + noise \cdot (n - f) + miss \cdot (R - f) $$

    n is the number of documents retrieved, f the number of relevant ones among them, and R the
    number of all relevant documents. trec_eval has a fourth weight, for documents that are neither
    relevant nor retrieved, which needs the size of the collection; it is 0 by default, as in
    rankgauge.

    Use: if the retriever returns a set, and both kinds of errors have a cost.
    Beware: it is strongly negative for long rankings; queries with many relevant documents dominate
    the mean.
    Source: Hull (1999), The TREC-7 filtering track; trec_eval, measure utility.
    """
    hits = run.found(rel)
    wrong, missed = run.retrieved - hits, run.relevant(rel) - hits
    return np.asarray(hit * hits + noise * wrong + miss * missed, dtype=np.float64)


@measure(
    better="lower", undefined="skip", bounds=(1.0, math.inf), also=("first_relevant_rank",), tie_mean=expected_first
)
def FirstRel(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""The rank of the first relevant document.

    $$ FirstRel = \min \{ i : g_i \ge rel \} $$

    Undefined if none was retrieved; these queries are excluded from the mean, with a note.

    Use: with MRR, which does not distinguish ranks of 2 from a mix of rank 1 and no hit.
    Beware: its mean is over the queries with a hit only; report it together with Success.
    Source: Kantor and Voorhees (2000), The TREC-5 confusion track, Information Retrieval 2.
    """
    first = run.first(rel)
    return np.where(first < UNRANKED, first.astype(np.float64), np.nan)

"""Measures for incomplete and sampled judgments."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import distinct
from rankgauge.data.judged_run import BoolArray, JudgedRun, Level, Values, discounts, ratio
from rankgauge.measures.declaration import measure
from rankgauge.measures.tie_means import expected_bpref

if TYPE_CHECKING:
    from rankgauge.data.special_qrels import SampledRun

# Smoothing constant of infAP, as published and as used by trec_eval.
_EPSILON = 0.00001


@measure(trec="bpref", judged_only=False, tie_mean=expected_bpref)
def Bpref(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""Binary preference: how rarely documents judged not relevant are above relevant ones.

    $$ bpref = \frac{1}{R} \sum_{r} \left( 1 - \frac{\min(n_r, R)}{\min(N, R)} \right) $$

    The sum is over the relevant documents retrieved; n_r is the number of documents above r that
    were judged not relevant, and N the number of all documents judged not relevant. Unjudged
    documents are ignored. Undefined without a relevant document; if N is 0, every term is 1.

    Use: if judgments are incomplete, and the judged documents are a fair sample.
    Beware: if only relevant documents are judged, as in click data, it is recall.
    Source: Buckley and Voorhees (2004), Retrieval evaluation with incomplete information, SIGIR;
    in the form of trec_eval since version 8.
    """
    hits = run.hits(rel)
    relevant = run.relevant(rel)
    above = np.cumsum(run.judged & ~hits, axis=1, dtype=np.int64)
    bound = np.maximum(np.minimum(run.non_relevant(rel), relevant), 1)
    lost = np.minimum(above, relevant[:, None]) / bound[:, None]
    return run.total(np.where(hits, 1 - lost, 0.0)) / run.divisor(rel)


@measure(trec="gm_bpref", mean="geometric", judged_only=False, tie_mean=expected_bpref)
def GMBpref(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""Binary preference whose mean over queries is geometric (no value below 0.00001).

    $$ GMBpref = \exp\Big( \frac{1}{|Q|} \sum_q \log \max(bpref_q, 10^{-5}) \Big) $$

    The value per query is bpref itself. Undefined without a relevant document.

    Use: if judgments are incomplete, and the worst queries matter.
    Beware: a single query without a relevant document retrieved lowers it strongly.
    Source: trec_eval, measure gm_bpref; Robertson (2006), On GMAP: and other transformations, CIKM.
    """
    return Bpref(run, rel=rel)


@measure(trec="infAP", judged_only=False, monotone=False)
def infAP(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""Inferred average precision: AP estimated from a judged sample of the pool.

    $$ infAP = \frac{1}{R} \sum_{i:\, g_i \ge rel} \left( \frac{1}{i} + \frac{i-1}{i} \cdot
    \frac{|pool_{<i}|}{i-1} \cdot \frac{rel_{<i} + \epsilon}{rel_{<i} + nonrel_{<i} + 2\epsilon}
    \right) $$

    Counts are over the ranks above i. A grade below 0 means that a document was pooled but not
    judged; without such grades, infAP is close to AP. Undefined without a relevant document.

    Use: for pools of which a random sample was judged, with grade -1 for the others.
    Beware: estimates of single queries are noisy; use the mean.
    Source: Yilmaz and Aslam (2006), Estimating average precision with incomplete and imperfect
    judgments, CIKM.
    """
    hits = run.hits(rel)
    rel_above = _above(hits)
    nonrel_above = _above(run.judged & ~hits)
    pool_above = _above(run.in_qrels)
    rank = run.rank.astype(np.float64)
    chance = (rel_above + _EPSILON) / (rel_above + nonrel_above + 2 * _EPSILON)
    expected = 1 / rank + pool_above / rank * chance
    return run.total(np.where(hits, expected, 0.0)) / run.divisor(rel)


@measure(reads="samples", bounds=(0.0, math.inf), judged_only=False)
def xinfAP(run: SampledRun, *, rel: Level = 1) -> Values:
    r"""Extended inferred AP: AP estimated from strata with a judged sample of each.

    $$ xinfAP = \frac{1}{\hat R} \sum_{i:\, g_i \ge rel} \frac{N_{s(i)}}{J_{s(i)}}
    \left( \frac{1}{i} + \frac{1}{i} \sum_s N_s^{<i} \cdot
    \frac{rel_s^{<i} + \epsilon}{J_s^{<i} + 3\epsilon} \right),
    \qquad \hat R = \sum_s \frac{N_s}{J_s} R_s $$

    N, J, and R are the numbers of documents, judged documents, and relevant documents of a stratum;
    with "< i", of those retrieved above rank i. If no document of a stratum is judged above rank i,
    one third of them counts as relevant (infAP: one half). Undefined without a relevant document.

    Use: for pools that were sampled at different rates, such as all documents at the first ranks
    and some of the rest.
    Beware: estimates of single queries are noisy, and may exceed 1; use the mean. sample_eval.pl
    reads 1,000 documents per query; this measure reads all of them.
    Source: Yilmaz, Kanoulas, and Aslam (2008), A simple and efficient sampling method for
    estimating AP and NDCG, SIGIR; in the form of their sample_eval.pl, which calls it infAP.
    """
    least = run.least(rel)
    hits = run.judged & (run.grade >= least)
    rank = run.rank.astype(np.float64)
    expected = 1 / rank
    for stratum in range(run.strata):
        inside = run.stratum == stratum
        chance = (_above(inside & hits) + _EPSILON) / (_above(inside & run.judged) + 3 * _EPSILON)
        expected = expected + _above(inside) / rank * chance
    gained = np.zeros(len(rank))
    for stratum in range(run.strata):
        total = JudgedRun.total(np.where(hits & (run.stratum == stratum), expected, 0.0))
        gained = gained + _estimate(run, stratum, total)
    return ratio(gained, _estimated_count(run, run.pool >= least))


@measure(reads="samples", bounds=(0.0, math.inf), judged_only=False, also=("inferred nDCG",))
def infNDCG(run: SampledRun, *, k: int | None = None) -> Values:
    r"""Inferred nDCG: nDCG estimated from strata with a judged sample of each.

    $$ infNDCG@k = \frac{1}{IDCG@k} \sum_s \frac{n_s}{j_s} \sum_{i \le k,\, s(i) = s}
    \frac{g_i}{\log_2 (i + 1)} $$

    n and j are the numbers of documents and of judged documents of a stratum in the first k ranks.
    In the ideal ranking, the number of documents of each grade is estimated from the whole pool,
    and rounded. If all documents of the pool are judged, it is nDCG. Undefined if no judged
    document has a grade above 0.

    Use: like xinfAP, for graded judgments.
    Beware: estimates of single queries are noisy, and may exceed 1; use the mean. sample_eval.pl
    reads 1,000 documents per query: infNDCG@1000.
    Source: Yilmaz, Kanoulas, and Aslam (2008), A simple and efficient sampling method for
    estimating AP and NDCG, SIGIR; in the form of their sample_eval.pl.
    """
    counted = run.stratum >= 0
    if k is not None:
        counted &= run.rank <= k
    gains = run.grade * discounts(run.rank)
    gained = np.zeros(len(gains))
    for stratum in range(run.strata):
        inside = counted & (run.stratum == stratum)
        judged = inside & run.judged
        rate = JudgedRun.count(inside) / np.maximum(JudgedRun.count(judged), 1)
        gained = gained + rate * JudgedRun.total(np.where(judged, gains, 0.0))
    return ratio(gained, _ideal(run, k))


def _above(counted: BoolArray) -> IntArray:
    """Return the number of counted documents above each document."""
    return np.cumsum(counted, axis=1, dtype=np.int64) - counted


def _estimate(run: SampledRun, stratum: int, judged: Values | IntArray) -> Values:
    """Extrapolate a sum over the judged documents of a stratum to all its documents, (Q,)."""
    inside = run.pool_stratum == stratum
    sampled = JudgedRun.count(inside & run.pool_judged)
    return judged * JudgedRun.count(inside) / np.maximum(sampled, 1)


def _estimated_count(run: SampledRun, counted: BoolArray) -> Values:
    """Return the estimated number of pooled documents for which `counted` is true, (Q,)."""
    # By stratum, not by row, so that sums do not depend on the order of the input.
    total = np.zeros(len(counted))
    for stratum in range(run.strata):
        inside = counted & run.pool_judged & (run.pool_stratum == stratum)
        total = total + _estimate(run, stratum, JudgedRun.count(inside))
    return total


def _ideal(run: SampledRun, k: int | None) -> Values:
    """Return the DCG of the ideal ranking of the estimated numbers of documents by grade, (Q,)."""
    grades = run.pool[run.pool_judged & (run.pool > 0)]
    end = np.zeros(len(run.pool), dtype=np.int64)
    ends = [end]
    levels = distinct(grades)[::-1]
    for grade in levels:
        # Rounded as in sample_eval.pl, not to even.
        end = end + np.floor(_estimated_count(run, run.pool == grade) + 0.5).astype(np.int64)
        ends.append(end if k is None else np.minimum(end, k))
    upto = np.append(0.0, np.cumsum(discounts(np.arange(1, int(ends[-1].max(initial=0)) + 1))))
    total = np.zeros(len(run.pool))
    for grade, start, stop in zip(levels, ends, ends[1:], strict=False):
        total = total + grade * (upto[stop] - upto[start])
    return total

"""Measures for judgments that are known to be incomplete, or of which a sample was judged."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.data.judged_run import BoolArray, JudgedRun, Level, Values, discounts
from rankgauge.measures.declaration import measure
from rankgauge.measures.ties import expected_bpref

if TYPE_CHECKING:
    # Loaded where there are judgments of a sample.
    from rankgauge.data.sampled import SampledRun

# Smoothing of infAP as published with it and used by trec_eval.
_EPSILON = 0.00001


@measure(trec="bpref", judged_only=False, tie_mean=expected_bpref)
def Bpref(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""Binary preference: how rarely a judged non-relevant document stands above a relevant one.

    $$ bpref = \frac{1}{R} \sum_{r} \left( 1 - \frac{\min(n_r, R)}{\min(N, R)} \right) $$

    The sum goes over the relevant documents retrieved; n_r is the number of documents above r that
    were judged not relevant, N all that were. Unjudged documents are passed over. Undefined without
    a relevant document; without any judged non-relevant document every term is 1.

    Use: judgments are incomplete, and the judged part is a fair sample.
    Beware: with positive judgments only (as in click data) it is recall.
    Source: Buckley and Voorhees (2004), Retrieval evaluation with incomplete information, SIGIR;
    in the form of trec_eval since version 8.
    """
    return _bpref(run, rel)


@measure(trec="gm_bpref", mean="geometric", judged_only=False, tie_mean=expected_bpref)
def GMBpref(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""Binary preference whose mean over queries is geometric (no value below 0.00001).

    $$ GMBpref = \exp\Big( \frac{1}{|Q|} \sum_q \log \max(bpref_q, 10^{-5}) \Big) $$

    The value per query is bpref itself. Undefined without a relevant document.

    Use: incomplete judgments, and the worst queries matter.
    Beware: one query without any relevant document found pulls it down strongly.
    Source: trec_eval, measure gm_bpref; Robertson (2006), On GMAP: and other transformations, CIKM.
    """
    return _bpref(run, rel)


@measure(trec="infAP", judged_only=False, monotone=False)
def infAP(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""Inferred average precision: AP estimated from a pool of which only a sample was judged.

    $$ infAP = \frac{1}{R} \sum_{i:\, g_i \ge rel} \left( \frac{1}{i} + \frac{i-1}{i} \cdot
    \frac{|pool_{<i}|}{i-1} \cdot \frac{rel_{<i} + \epsilon}{rel_{<i} + nonrel_{<i} + 2\epsilon}
    \right) $$

    Counts are over the ranks above i. A grade below 0 means that a document was pooled and not
    judged; without such grades it is close to AP. Undefined without a relevant document.

    Use: pools that were sampled, with -1 for what was left unjudged.
    Beware: an estimate per query is noisy; it is meant for means.
    Source: Yilmaz and Aslam (2006), Estimating average precision with incomplete and imperfect
    judgments, CIKM.
    """
    found = run.hits(rel)
    relevant = run.relevant(rel)
    rel_above = _above(found)
    nonrel_above = _above(run.judged & ~found)
    pool_above = _above(run.in_qrels)
    rank = run.rank.astype(np.float64)
    chance = (rel_above + _EPSILON) / (rel_above + nonrel_above + 2 * _EPSILON)
    expected = 1 / rank + pool_above / rank * chance
    total = run.total(np.where(found, expected, 0.0))
    return np.where(relevant > 0, total / np.maximum(relevant, 1), np.nan)


@measure(reads="samples", bounds=(0.0, math.inf), judged_only=False)
def xinfAP(run: SampledRun, *, rel: Level = 1) -> Values:
    r"""Extended inferred AP: AP estimated from strata, of each of which a sample was judged.

    $$ xinfAP = \frac{1}{\hat R} \sum_{i:\, g_i \ge rel} w_{s(i)} \left( \frac{1}{i} + \frac{1}{i}
    \sum_s N_s^{<i} \cdot \frac{rel_s^{<i} + \epsilon}{rel_s^{<i} + nonrel_s^{<i} + 2\epsilon}
    \right), \qquad \hat R = \sum_s w_s R_s $$

    w is the size of a stratum over the number judged in it, N the documents of the stratum above
    rank i, rel and nonrel the judged ones among them. With one stratum it is infAP. Undefined
    without a relevant document.

    Use: pools that were sampled at different rates, such as all of the first ranks and some of the
    rest.
    Beware: an estimate per query is noisy, and may pass 1; it is meant for means.
    Source: Yilmaz, Kanoulas and Aslam (2008), A simple and efficient sampling method for estimating
    AP and NDCG, SIGIR.
    """
    least = run.least(rel)
    found = run.judged & (run.grade >= least)
    rank = run.rank.astype(np.float64)
    expected = 1 / rank
    for stratum in range(int(run.pool_stratum.max(initial=-1)) + 1):
        inside = run.stratum == stratum
        relevant = _above(inside & found)
        judged = _above(inside & run.judged)
        chance = (relevant + _EPSILON) / (judged + 2 * _EPSILON)
        expected = expected + _above(inside) / rank * chance
    gained = JudgedRun.total(np.where(found, run.expansion(run.stratum) * expected, 0.0))
    whole = _of_strata(run, run.pool_judged & (run.pool >= least))
    return np.where(whole > 0, gained / np.where(whole > 0, whole, 1.0), np.nan)


@measure(reads="samples", bounds=(0.0, math.inf), judged_only=False, also=("inferred nDCG",))
def infNDCG(run: SampledRun, *, k: int | None = None) -> Values:
    r"""Inferred nDCG: nDCG estimated from strata, of each of which a sample was judged.

    $$ infNDCG@k = \frac{\sum_{i \le k} w_{s(i)}\, g_i / \log_2 (i + 1)}{IDCG@k} $$

    w is the size of a stratum over the number judged in it, so a judged document stands for w of
    them, also in the ideal ranking. Where these are no whole numbers, two documents share a rank
    there. If all are judged it is nDCG. Undefined where no judged document has a grade above 0.

    Use: as xinfAP, for graded judgments.
    Beware: an estimate per query is noisy, and may pass 1; it is meant for means. The ideal ranking
    of sample_eval.pl may deal otherwise with numbers that are not whole: it was not compared.
    Source: Yilmaz, Kanoulas and Aslam (2008), A simple and efficient sampling method for estimating
    AP and NDCG, SIGIR.
    """
    counted = run.judged if k is None else run.judged & (run.rank <= k)
    gains = np.where(counted, run.grade * discounts(run.rank), 0.0)
    gained = JudgedRun.total(gains * run.expansion(run.stratum))
    whole = _ideal(run, k)
    return np.where(whole > 0, gained / np.where(whole > 0, whole, 1.0), np.nan)


def _bpref(run: JudgedRun, rel: Level) -> Values:
    found = run.hits(rel)
    relevant = run.relevant(rel)
    above = np.cumsum(run.judged & ~found, axis=1, dtype=np.int64)
    bound = np.maximum(np.minimum(run.non_relevant(rel), relevant), 1)
    lost = np.minimum(above, relevant[:, None]) / bound[:, None]
    total = run.total(np.where(found, 1 - lost, 0.0))
    return np.where(relevant > 0, total / np.maximum(relevant, 1), np.nan)


def _above(counted: BoolArray) -> IntArray:
    """How many of them stand above each document."""
    upto = np.cumsum(counted, axis=1, dtype=np.int64)
    return upto - counted


def _of_strata(run: SampledRun, counted: BoolArray) -> Values:
    """(Q,) the numbers of documents of the pool, each times what it stands for."""
    # In the order of the strata, not of the rows: sums do not depend on the order of the input.
    total = np.zeros(len(counted))
    for stratum in range(int(run.pool_stratum.max(initial=-1)) + 1):
        inside = run.pool_stratum == stratum
        number = JudgedRun.count(counted & inside)
        share = run.expansion(np.full((len(counted), 1), stratum))[:, 0]
        total = total + number * share
    return total


def _ideal(run: SampledRun, k: int | None) -> Values:
    """(Q,) the DCG of the best ranking of all that the judged documents stand for."""
    gains = np.where(run.pool_judged, np.maximum(run.pool, 0.0), 0.0)
    weights = np.where(gains > 0, run.expansion(run.pool_stratum), 0.0)
    # Best first, and what stands for most first, so that the order of the input changes nothing.
    order = np.lexsort((-weights, -gains), axis=1)
    gains = np.take_along_axis(gains, order, axis=1)
    ends = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    if k is not None:
        ends = np.minimum(ends, float(k))
    upto = _discounted(ends)
    spans = upto.copy()
    spans[:, 1:] -= upto[:, :-1]
    return JudgedRun.total(gains * spans)


def _discounted(ends: Values) -> Values:
    """The discounts of all ranks down to here, a part of a rank as such a part of its discount."""
    whole = np.floor(ends)
    ranks = np.arange(1, int(whole.max(initial=0)) + 2)
    single = discounts(ranks)
    upto = np.append(0.0, np.cumsum(single))
    places = whole.astype(np.int64)
    return upto[places] + (ends - whole) * single[places]

"""Measures for judgments that are known to be incomplete."""

from __future__ import annotations

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.data.judged_run import BoolArray, JudgedRun, Level, Values
from rankgauge.measures.declaration import measure
from rankgauge.measures.tie_means import expected_bpref

# Smoothing of infAP as published with it and used by trec_eval.
_EPSILON = 0.00001


@measure(trec="bpref", judged_only=False, expected=expected_bpref)
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


@measure(trec="gm_bpref", mean="geometric", judged_only=False, expected=expected_bpref)
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

"""Measures of preferences and of order."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.data.judged_run import JudgedRun, Level, Values, ratio
from rankgauge.errors import InputError
from rankgauge.measures.declaration import measure

if TYPE_CHECKING:
    from rankgauge.data.preference_qrels import PreferenceRun

_MOST_RANKS = 10**6
# Parts of the names in trec_eval.
_COUNTS = {"preferences": "simp", "pairs": "pair", "groups": "avgjg", "balanced": "avgjg_Rnonrel"}
_SCOPES = {"all": "", "both": "_ret", "any": "_imp"}


@measure(
    reads="preferences",
    judged_only=False,
    trec={
        f"prefs_{name}{ending}": {
            word: value
            for word, value, default in (("count", count, "preferences"), ("scope", scope, "all"))
            if value != default
        }
        for count, name in _COUNTS.items()
        for scope, ending in _SCOPES.items()
        if (count, scope) != ("balanced", "any")
    },
)
def Prefs(run: PreferenceRun, *, count: str = "preferences", scope: str = "all") -> Values:
    r"""Preferences satisfied: the share of the judged preferences that a ranking satisfies.

    $$ Prefs = \frac{\sum_g |\{ A \succ_g B : A \text{ above } B \}|}
    {\sum_g |\{ A \succ_g B \}|} $$

    The sums are over the groups g of judgments: a preference in two groups counts twice. A document
    that was not retrieved is below all retrieved documents; if neither was retrieved, the
    preference is not satisfied. ``scope=both`` counts only preferences between two retrieved
    documents, ``scope=any`` those with at least one. Undefined without a preference to count.

    With ``count=pairs``, it is a mean over the pairs P of documents with A ranked above B:

    $$ Prefs_{pairs} = \frac{1}{|P|} \sum_{(A, B) \in P} \frac{|\{ g : A \succ_g B \}|}
    {|\{ g : A \succ_g B \}| + |\{ g : B \succ_g A \}|} $$

    With ``count=groups``, it is the mean over the groups of the share satisfied in each, so that
    all groups have the same weight; a group without preferences counts 0.

    With ``count=balanced``, it is the same mean, with as many other documents as relevant ones in
    each group. If a group has R relevant documents (grade above 0) and N others, and N > R, only
    the first R others in the ranking count; if N < R, R (R - N) preferences are added, which are
    satisfied if the relevant document was retrieved. Undefined if a group has no preference to
    count.

    Use: if judgments are preferences; ``scope=both`` or ``scope=any`` for collections that change,
    in which documents may no longer exist.
    Beware: with ``scope=all``, preferences between two documents that were not retrieved lower the
    value; with the other scopes, the divisor depends on the run. trec_eval breaks ties by ascending
    document id for these measures. ``count=balanced`` reproduces trec_eval, which differs from its
    own description: if N > R and a group has one subgroup, each of the R relevant documents is also
    compared with all N others and with itself, so that a perfect ranking may be near 0; with
    ``scope=both`` and R > N, the added preferences are divided by all relevant documents, retrieved
    or not.
    Source: Carterette, Bennett, Chickering, and Dumais (2008), Here or there: preference judgments
    for relevance, ECIR; as the measures prefs_simp, prefs_pair, prefs_avgjg, and
    prefs_avgjg_Rnonrel of trec_eval, with the endings _ret (both) and _imp (any).
    """
    if count == "balanced":
        if scope == "any":
            raise InputError("Prefs(count=balanced) has no scope=any", fix="write scope=all or scope=both")
        satisfied, counted = np.moveaxis(run.balanced_counts(), 2, 0)[2 * (scope == "both") :][:2]
        # Not padding of queries with fewer groups.
        exists = np.arange(counted.shape[1]) < run.groups()[:, None]
        shares = _mean_of_groups(run, satisfied, counted)
        return np.where((exists & (counted == 0)).any(axis=1), np.nan, shares)
    counts = run.pairs()[:, None] if count == "pairs" else run.counts()
    both, one, of_both, of_one, of_none = np.moveaxis(counts, 2, 0)
    satisfied, counted = both, of_both
    if scope != "both":
        satisfied, counted = both + one, of_both + of_one + (of_none if scope == "all" else 0)
    if count == "groups":
        return _mean_of_groups(run, satisfied, counted)
    return ratio(JudgedRun.total(satisfied), JudgedRun.total(counted))


def _mean_of_groups(run: PreferenceRun, satisfied: IntArray, counted: IntArray) -> Values:
    """Return the mean share satisfied over groups; NaN if no group has a preference to count."""
    shares = np.where(counted > 0, satisfied / np.maximum(counted, 1), 0.0)
    groups = np.maximum(run.groups(), 1)
    return np.where((counted > 0).any(axis=1), JudgedRun.total(shares) / groups, np.nan)


@measure(
    reads="preferences",
    trec="prefs_num_prefs_poss",
    bounds=(0.0, math.inf),
    better="neither",
    mean="sum",
    judged_only=False,
)
def NumPrefs(run: PreferenceRun) -> Values:
    """The number of preferences in the judgments; the mean is the sum over queries.

    Use: with Prefs, as its denominator.
    Beware: it depends on the judgments only.
    Source: measure prefs_num_prefs_poss of trec_eval.
    """
    return _sum_of_groups(run.counts()[:, :, 2:])


@measure(
    reads="preferences",
    bounds=(0.0, math.inf),
    mean="sum",
    judged_only=False,
    trec={"prefs_num_prefs_ful": {}, "prefs_num_prefs_ful_ret": {"scope": "both"}},
)
def NumPrefsKept(run: PreferenceRun, *, scope: str = "all") -> Values:
    """The number of preferences that a ranking satisfies; the mean is the sum over queries.

    With ``scope=both``, only preferences between two retrieved documents count.

    Use: to report Prefs as a count.
    Beware: queries with many preferences dominate it.
    Source: measures prefs_num_prefs_ful and prefs_num_prefs_ful_ret of trec_eval.
    """
    return _sum_of_groups(run.counts()[:, :, : 1 if scope == "both" else 2])


def _sum_of_groups(counts: IntArray) -> Values:
    return JudgedRun.total(counts.reshape(len(counts), -1))


@measure(reads="grades", stated=("p",), also=("Compatibility",))
def Compat(run: JudgedRun, *, p: float = 0.95, k: int = 1000, normalize: bool = True) -> Values:
    r"""Compatibility: the highest rank-biased overlap with any ideal ranking.

    $$ Compat = \max_{I} \frac{RBO(I)}{RBO_I(I)}, \qquad RBO(I) =
    \frac{\sum_{i \le k} p^{\,i-1} |I_{\le i} \cap D_{\le i}| / i}{\sum_{i \le k} p^{\,i-1}} $$

    An ideal ranking I contains the documents with a grade above 0 by descending grade, with
    documents of the same grade in any order; the most similar one orders them as the ranking D
    does. RBO is computed to rank k (default 1,000), and divided by the overlap of I with itself,
    which is below 1 if few documents have a grade above 0 (``normalize=false``: not divided).
    Undefined if no document has a grade above 0.

    Use: if grades express an order, such as preferences, rather than gains.
    Beware: tools differ in the depth, and in the order of documents of the same grade that were not
    retrieved; if these get the score 0, as in ir_measures, negative scores change the value.
    Source: Clarke, Vtyurina, and Smucker (2021), Assessing top-k preferences, TOIS 39; Clarke,
    Smucker, and Vtyurina (2020), Offline evaluation by maximum similarity to an ideal ranking,
    CIKM.
    """
    # The default depth is that of the reference implementation.
    if k > _MOST_RANKS:
        raise InputError(f"Compat@{k} sums over {k:,} ranks", fix=f"write a cut-off of {_MOST_RANKS:,} or less")
    below, upto, whole = _overlaps(p, k)
    relevant_docs = run.judged & (run.grade > 0)
    ideal = run.once("ideal rank", lambda: _ideal_ranks(run))
    # A document is in both rankings from the lower of its two ranks on.
    lower = np.minimum(np.maximum(run.rank, ideal), k + 1)
    overlap = run.total(np.where(relevant_docs, below[lower], 0.0))
    relevant = run.count(run.ideal > 0)
    best = upto[np.minimum(relevant, k)] if normalize else whole
    return np.where(relevant > 0, overlap / np.where(relevant > 0, best, 1.0), np.nan)


@measure(also=("PairwiseAccuracy",), variants={("among", "retrieved"): {"monotone": False}})
def PairAcc(run: JudgedRun, *, k: int | None = None, rel: Level = 1, among: str = "judged") -> Values:
    r"""Pairwise accuracy: the probability that a relevant document is above a nonrelevant one.

    $$ PairAcc = \frac{1}{R N} \sum_{r} | \{ n : rank(r) < rank(n) \} | $$

    Pairs consist of one of the R relevant documents and one of the N documents judged not relevant.
    Documents outside the first k (default: all ranks) are below those inside; a relevant document
    outside is above none. With ``among=retrieved``, pairs consist of documents in the first k, and
    unjudged documents count as not relevant. Undefined without a pair.

    Use: to measure how well scores separate relevant from nonrelevant documents, as in training.
    Beware: all ranks have the same weight; if only relevant documents are judged, there is no pair.
    ir_measures calls it Accuracy, with the pairs of ``among=retrieved``.
    Source: Mann and Whitney (1947), On a test of whether one of two random variables is
    stochastically larger than the other, Annals of Mathematical Statistics 18: where all judged
    documents are retrieved, it is the area under the ROC curve.
    """
    hits = run.hits(rel, k)
    upto = np.cumsum(hits, axis=1, dtype=np.int64)
    number = run.found(rel, k)
    if among == "retrieved":
        others = run.depth(k) - number
        above = np.where(hits, run.rank - upto, 0)
        whole = number * others
    else:
        seen = run.judged if k is None else run.judged & run.within(k)
        others = run.non_relevant(rel)
        above = np.cumsum(seen & ~hits, axis=1, dtype=np.int64)
        whole = run.relevant(rel) * others
    return ratio(run.total(np.where(hits, others[:, None] - above, 0)), whole)


@lru_cache(maxsize=16)
def _overlaps(p: float, k: int) -> tuple[Values, Values, float]:
    """Return the overlap from a document shared from each rank on, its sums, and the weight sum."""
    weights = np.full(k, p)
    weights[0] = 1.0
    weights = np.multiply.accumulate(weights)
    below = np.zeros(k + 2)
    # Add the smallest terms first.
    below[k:0:-1] = np.cumsum((weights / np.arange(1, k + 1))[::-1])
    return below, np.cumsum(below), float(np.cumsum(weights)[-1])


def _ideal_ranks(run: JudgedRun) -> IntArray:
    """Return the rank of each document in the ideal ranking most similar to the run, (Q, J)."""
    grade = np.where(run.judged, run.grade, -1.0)
    order = np.argsort(-grade, axis=1, kind="stable")
    # All judged documents by grade; within a grade, retrieved documents come first.
    every = np.argsort(-np.concatenate([grade, run.ideal], axis=1), axis=1, kind="stable")
    place, merged = np.argsort(order, axis=1), np.argsort(every, axis=1)
    higher = merged[:, : grade.shape[1]] - place
    ordered = np.take_along_axis(grade, order, axis=1)
    starts = np.zeros(ordered.shape, dtype=np.int64)
    columns = np.arange(ordered.shape[1])
    starts[:, 1:] = np.where(ordered[:, 1:] != ordered[:, :-1], columns[1:], 0)
    first = np.maximum.accumulate(starts, axis=1)
    return higher + place - np.take_along_axis(first, place, axis=1) + 1

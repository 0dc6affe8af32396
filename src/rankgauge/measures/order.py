"""Measures of order: how near a ranking comes to the order that the judgments ask for."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.data.judged_run import JudgedRun, Level, Values
from rankgauge.errors import InputError
from rankgauge.measures.declaration import measure

# The depth of the reference implementation.
_FAR = 1000
_MOST_RANKS = 10**6


@measure(reads="grades", stated=("p",), also=("Compatibility",))
def Compat(run: JudgedRun, *, p: float = 0.95, k: int = _FAR, normalize: bool = True) -> Values:
    r"""Compatibility: the highest rank-biased overlap with any ideal ranking.

    $$ Compat = \max_{I} \frac{RBO(I)}{RBO_I(I)}, \qquad RBO(I) =
    \frac{\sum_{i \le k} p^{\,i-1} |I_{\le i} \cap D_{\le i}| / i}{\sum_{i \le k} p^{\,i-1}} $$

    An ideal ranking I holds the documents with a grade above 0 by descending grade, those of one
    grade in any order; the nearest to the ranking D has them as D has. RBO is added up to rank k,
    1,000 if left out. It is divided by the overlap of I with itself, which is below 1 where few
    documents have a grade above 0 (``normalize=false``: not divided). Undefined where none has.

    Use: grades stand for an order, such as one of preferences, and not for gains.
    Beware: tools differ in the depth and in how they order documents of one grade that were not
    retrieved; where these get the score 0, as in ir_measures, negative scores change the value.
    Source: Clarke, Vtyurina and Smucker (2021), Assessing top-k preferences, TOIS 39; Clarke,
    Smucker and Vtyurina (2020), Offline evaluation by maximum similarity to an ideal ranking, CIKM.
    """
    if k > _MOST_RANKS:
        raise InputError(
            f"Compat@{k} adds up {k:,} ranks", fix=f"write a cut-off of {_MOST_RANKS:,} or less"
        )
    below, upto, whole = _overlaps(p, k)
    wanted = run.judged & (run.grade > 0)
    ideal = run.once("ideal rank", lambda: _ideal_ranks(run))
    # Both rankings hold a document from the lower of its two ranks on.
    lower = np.minimum(np.maximum(run.rank, ideal), k + 1)
    found = run.total(np.where(wanted, below[lower], 0.0))
    relevant = run.count(run.ideal > 0)
    best = upto[np.minimum(relevant, k)] if normalize else whole
    return np.where(relevant > 0, found / np.where(relevant > 0, best, 1.0), np.nan)


@measure(also=("PairwiseAccuracy",), upset={"among": "retrieved"})
def PairAcc(
    run: JudgedRun, *, k: int | None = None, rel: Level = 1, among: str = "judged"
) -> Values:
    r"""Pairwise accuracy: how likely a relevant document stands above one that is not relevant.

    $$ PairAcc = \frac{1}{R N} \sum_{r} | \{ n : rank(r) < rank(n) \} | $$

    Pairs are made of the R relevant and the N documents judged not relevant. What is not in the
    first k (all ranks if left out) stands below what is; a relevant document that is not there
    stands above none. With ``among=retrieved`` pairs are made of the documents in the first k,
    where what nobody judged counts as not relevant. Undefined without a pair.

    Use: to see how well scores tell relevant documents from others, as in training.
    Beware: it does not ask where in the ranking a pair stands; with positive judgments only there
    is no pair. ir_measures calls it Accuracy, with the pairs of ``among=retrieved``.
    Source: Mann and Whitney (1947), On a test of whether one of two random variables is
    stochastically larger than the other, Annals of Mathematical Statistics 18: where all judged
    documents are retrieved, it is the area under the ROC curve.
    """
    found = run.hits(rel, k)
    upto = np.cumsum(found, axis=1, dtype=np.int64)
    number = run.found(rel, k)
    if among == "retrieved":
        others = run.depth(k) - number
        above = np.where(found, run.rank - upto, 0)
        whole = number * others
    else:
        seen = run.judged if k is None else run.judged & run.within(k)
        others = run.non_relevant(rel)
        above = np.cumsum(seen & ~found, axis=1, dtype=np.int64)
        whole = run.relevant(rel) * others
    right = run.total(np.where(found, others[:, None] - above, 0))
    return np.where(whole > 0, right / np.maximum(whole, 1), np.nan)


@lru_cache(maxsize=16)
def _overlaps(p: float, k: int) -> tuple[Values, Values, float]:
    """What a document adds that both rankings hold from a rank on; this for the first ranks; 1."""
    weights = np.full(k, p)
    weights[0] = 1.0
    weights = np.multiply.accumulate(weights)
    below = np.zeros(k + 2)
    # The smallest first.
    below[k:0:-1] = np.cumsum((weights / np.arange(1, k + 1))[::-1])
    return below, np.cumsum(below), float(np.cumsum(weights)[-1])


def _ideal_ranks(run: JudgedRun) -> IntArray:
    """(Q, J) the rank of each document in the ideal ranking that is nearest to this one."""
    grade = np.where(run.judged, run.grade, -1.0)
    order = np.argsort(-grade, axis=1, kind="stable")
    # All judged documents, where of one grade those of the ranking come first.
    every = np.argsort(-np.concatenate([grade, run.ideal], axis=1), axis=1, kind="stable")
    place, merged = np.argsort(order, axis=1), np.argsort(every, axis=1)
    higher = merged[:, : grade.shape[1]] - place
    ordered = np.take_along_axis(grade, order, axis=1)
    starts = np.zeros(ordered.shape, dtype=np.int64)
    columns = np.arange(ordered.shape[1])
    starts[:, 1:] = np.where(ordered[:, 1:] != ordered[:, :-1], columns[1:], 0)
    first = np.maximum.accumulate(starts, axis=1)
    return higher + place - np.take_along_axis(first, place, axis=1) + 1

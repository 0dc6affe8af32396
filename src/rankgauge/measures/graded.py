"""Measures of graded relevance."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankgauge.core.grammar import Value
from rankgauge.core.ids import IntArray
from rankgauge.data.judged_run import JudgedRun, Level, Values, discounts, ratio
from rankgauge.errors import InputError
from rankgauge.measures.declaration import measure

# 2**grade must stay finite, also in sums.
_MAX_GRADE = 900
_LN2 = math.log(2.0)
# Discounts below this rank come from a table.
_MANY = 2**20


class _Scale(NamedTuple):
    """Parameters of DCG: gain of a grade, lowest grade that counts, base of the discount."""

    gain: Value = "linear"
    rel: Level | None = None
    b: float | None = None


@measure(bounds=(0.0, math.inf), reads="grades", tie_mean="linear")
def DCG(
    run: JudgedRun, *, k: int | None = None, gain: Value = "linear", rel: Level | None = None, b: float | None = None
) -> Values:
    r"""Discounted cumulative gain: the sum of the gains of the first k ranks, discounted by rank.

    $$ DCG@k = \sum_{i \le k} \frac{gain(g_i)}{\log_2 (i + 1)} $$

    The gain is the grade (linear) or 2^grade - 1 (exp); a map sets other gains. With rel, grades
    below it have no gain. With b, the discount is that of the original publication: none before
    rank b, then 1 / log_b(i).

    Use: as a part of nDCG, or for the absolute gain of a ranking.
    Beware: it has no upper bound, so queries with many relevant documents dominate the mean.
    Source: Järvelin and Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS
    20; with the discount of Burges et al. (2005), Learning to rank using gradient descent, ICML.
    """
    return _dcg(run, _Scale(gain, rel, b), k)


@measure(
    trec=("ndcg", "ndcg_cut_{k}"),
    reads="grades",
    tie_mean="linear",
    variants={("ideal", "topk"): {"tie_mean": "", "monotone": False}},
)
def nDCG(
    run: JudgedRun,
    *,
    k: int | None = None,
    gain: Value = "linear",
    ideal: str = "judged",
    rel: Level | None = None,
    b: float | None = None,
) -> Values:
    r"""Normalized DCG: DCG divided by that of the best possible ranking.

    $$ nDCG@k = \frac{DCG@k}{IDCG@k}, \qquad IDCG@k = \sum_{i \le k}
    \frac{gain(g^*_i)}{\log_2 (i + 1)} $$

    The ideal ranking g* contains all judged documents, retrieved or not. Some tools use only the
    retrieved documents (``ideal=retrieved``) or the first k (``ideal=topk``), which inflates the
    value. With rel, grades below it have no gain; with b, the discount is that of the original
    publication (see DCG). Undefined if no judged document has a gain.

    Use: if judgments have grades, and order matters: the usual first choice for search.
    Beware: nonrelevant documents below the relevant ones do not lower the value.
    Source: Järvelin and Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS
    20; with the discount of Burges et al. (2005), Learning to rank using gradient descent, ICML.
    """
    scale = _Scale(gain, rel, b)
    dcg = _dcg(run, scale, k)
    judged = _ideal(run, scale)
    if ideal == "judged":
        best = judged
    elif ideal == "topk" and k is not None:
        best = _discounted(_best_first(np.where(run.within(k), _gains(run, scale), 0.0)), b)
    else:
        best = _discounted(_best_first(_gains(run, scale)), b)
    whole = run.total(best[:, :k])
    value = dcg / np.where(whole > 0, whole, 1.0)
    # Other ideal rankings may have no gain where judged documents have one: the value is 0.
    return np.where(judged[:, 0] > 0, value, np.nan)


@measure(reads="grades", stated=("top",), also=("ExpectedReciprocalRank",))
def ERR(run: JudgedRun, *, k: int | None = None, top: float = 4) -> Values:
    r"""Expected reciprocal rank: the mean of 1 / the rank at which a user stops.

    $$ ERR@k = \sum_{i \le k} \frac{1}{i} R_i \prod_{j<i} (1 - R_j), \qquad
    R_i = \frac{2^{g_i} - 1}{2^{top}} $$

    top is the highest grade of the scale (default 4); a grade above it is an error.

    Use: for graded judgments, and users who stop at a good document.
    Beware: values depend on top, so report it; the highest possible value is below 1.
    Source: Chapelle, Metzler, Zhang, and Grinspan (2009), Expected reciprocal rank for graded
    relevance, CIKM.
    """
    highest = float(run.ideal.max())
    if highest > top:
        raise InputError(
            f"grade {highest:g} is above the top grade {top:g} of ERR",
            fix=f"set the top of your scale, top={highest:g} or more, in every comparison",
        )
    counted = run.judged if k is None else run.judged & run.within(k)
    return run.once(("cascade", k, top), lambda: _cascade(run.grade, counted, run.rank, top))


@measure(reads="grades")
def nERR(run: JudgedRun, *, k: int | None = None, top: float = 4) -> Values:
    r"""Normalized ERR: expected reciprocal rank divided by that of the best possible ranking.

    $$ nERR@k = \frac{ERR@k}{ERR^*@k} $$

    ERR* is the value of all judged documents by descending grade, retrieved or not. Undefined if no
    judged document has a grade above 0.

    Use: like ERR, if the highest grade differs between queries.
    Beware: it depends on top, but much less than ERR.
    Source: Clarke, Craswell, Soboroff, and Ashkan (2011), A comparative analysis of cascade
    measures for novelty and diversity, WSDM; Chapelle et al. (2009) for ERR.
    """
    err = ERR(run, k=k, top=top)
    ranks = np.arange(1, run.ideal.shape[1] + 1)
    counted = run.ideal >= 0 if k is None else (run.ideal >= 0) & (ranks <= k)
    return ratio(err, _cascade(run.ideal, counted, ranks, top))


@measure(reads="grades", also=("nCG",), tie_mean="linear")
def NCG(run: JudgedRun, *, k: int, gain: Value = "linear", rel: Level | None = None) -> Values:
    r"""Normalized cumulated gain: the gain of the first k divided by the highest possible gain.

    $$ NCG@k = \frac{\sum_{i \le k} gain(g_i)}{\sum_{i \le k} gain(g^*_i)} $$

    The ideal ranking g* contains all judged documents, retrieved or not. Undefined if no judged
    document has a gain.

    Use: to measure graded recall of a first stage whose results are reranked.
    Beware: it ignores order within the first k.
    Source: Järvelin and Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS
    20; as NCG in Craswell et al. (2021), Overview of the TREC 2020 deep learning track.
    """
    scale = _Scale(gain, rel)
    gained = run.total(_gains(run, scale) * run.share(k))
    return ratio(gained, run.total(_best(run, scale)[:, :k]))


@measure(trec="Rndcg", reads="grades")
def RnDCG(run: JudgedRun, *, gain: Value = "linear") -> Values:
    r"""nDCG averaged over the ranks at which the gain of the ideal ranking decreases.

    $$ RnDCG = \frac{1}{|N|} \sum_{n \in N} nDCG@n $$

    N contains, for each gain above 0 of a judged document, the number of documents with at least
    this gain, and the length of the ranking if it exceeds the number of documents with a gain by at
    least two. Undefined if no judged document has a gain.

    Use: like nDCG, without the choice of a cut-off.
    Beware: the ranks, and their number, differ between queries.
    Source: trec_eval, measure Rndcg (experimental).
    """
    scale = _Scale(gain)
    best = _best(run, scale)
    # nDCG at ranks 1, 2, ... up to the number of judged documents.
    ideal = np.cumsum(_ideal(run, scale), axis=1)
    gained = np.zeros_like(ideal)
    rows, columns = np.nonzero(run.rank <= ideal.shape[1])
    gained[rows, run.rank[rows, columns] - 1] = _gained(run, scale)[rows, columns]
    shares = np.cumsum(gained, axis=1) / np.where(ideal > 0, ideal, 1.0)
    lower = np.zeros_like(best)
    lower[:, :-1] = best[:, 1:]
    steps = best > lower
    whole = run.total(_ideal(run, scale))
    last = run.retrieved > run.count(best > 0) + 1
    end = np.where(last, _dcg(run, scale, None) / np.where(whole > 0, whole, 1.0), 0.0)
    points = run.count(steps) + last
    total = run.total(np.where(steps, shares, 0.0)) + end
    return np.where(whole > 0, total / np.maximum(points, 1), np.nan)


@measure(trec="ndcg_rel", reads="grades")
def nDCGrel(run: JudgedRun, *, gain: Value = "linear") -> Values:
    r"""nDCG averaged over the ranks of the documents with a gain.

    $$ nDCGrel = \frac{1}{R} \sum_{d:\, gain(d) > 0} nDCG@rank(d) $$

    R is the number of documents with a gain. For those not retrieved, nDCG of the whole ranking
    counts. Undefined if no judged document has a gain.

    Use: as a summary of nDCG over all ranks, as AP is one of precision.
    Beware: ranks above the first document with a gain do not count.
    Source: trec_eval, measure ndcg_rel (experimental).
    """
    scale = _Scale(gain)
    whole = run.total(_ideal(run, scale))
    ideal = np.cumsum(_ideal(run, scale), axis=1)
    gained = _gained(run, scale)
    column = np.minimum(run.rank, ideal.shape[1]) - 1
    upto = np.take_along_axis(ideal, column, axis=1)
    has_gain = gained > 0
    shares = np.where(has_gain, np.cumsum(gained, axis=1) / np.where(upto > 0, upto, 1.0), 0.0)
    relevant = run.count(_best(run, scale) > 0)
    missed = relevant - run.count(has_gain)
    total = run.total(shares) + missed * _dcg(run, scale, None) / np.where(whole > 0, whole, 1.0)
    return np.where(whole > 0, total / np.maximum(relevant, 1), np.nan)


@measure(trec="G", reads="grades", monotone=False)
def G(run: JudgedRun, *, gain: Value = "linear") -> Values:
    r"""Normalized gain: gains discounted by the gain lost so far, compared with the ideal ranking.

    $$ G = \frac{1}{\sum_i gain(g^*_i)} \sum_i \frac{gain(g_i)}{\log_2 (2 + c_i - s_i)}, \qquad
    c_i = \sum_{j \le i} \max(1, gain(g^*_j)), \quad s_i = \sum_{j \le i} gain(g_j) $$

    g* are the judged documents by descending gain; each rank below the last of them adds 1 to c.
    Undefined if no judged document has a gain.

    Use: if the contribution of a document should depend on the documents above it, not only on its
    rank.
    Beware: rarely used outside of trec_eval.
    Source: trec_eval, measure G (experimental).
    """
    scale = _Scale(gain)
    gains, best = _gains(run, scale), _best(run, scale)
    costs = np.cumsum(np.maximum(best, 1.0), axis=1)
    known = costs.shape[1]
    column = np.minimum(run.rank, known) - 1
    beyond = np.where(run.in_qrels, run.rank, 0) - known
    spent = np.take_along_axis(costs, column, axis=1) + np.maximum(beyond, 0)
    behind = spent - np.cumsum(gains, axis=1)
    total = run.total(np.where(gains > 0, gains * _discount_behind(behind, gains > 0), 0.0))
    return ratio(total, run.total(best))


@measure(trec="binG")
def binG(run: JudgedRun, *, rel: Level = 1) -> Values:
    r"""Binary G: relevant documents discounted by the number of nonrelevant documents above them.

    $$ binG = \frac{1}{R} \sum_{i:\, g_i \ge rel} \frac{1}{\log_2 (2 + n_i)} $$

    n_i is the number of documents above rank i that are not relevant. Undefined without a relevant
    document.

    Use: if the contribution of a document should depend on the nonrelevant documents above it, not
    on its rank.
    Beware: rarely used outside of trec_eval.
    Source: trec_eval, measure binG (experimental).
    """
    hits = run.hits(rel)
    wrong = np.where(hits, run.rank - np.cumsum(hits, axis=1, dtype=np.int64), 0)
    return run.total(np.where(hits, discounts(wrong + 1), 0.0)) / run.divisor(rel)


def _cascade(grades: Values, counted: np.ndarray, rank: IntArray, top: float) -> Values:
    """Return the expected reciprocal rank at which a user stops."""
    # Probability of stopping at each document.
    stops = _gain_of(grades, counted, "exp") / math.pow(2.0, top)
    reaches = np.ones_like(stops)
    reaches[:, 1:] = np.multiply.accumulate(1 - stops, axis=1)[:, :-1]
    return JudgedRun.total(stops * reaches / rank)


def _gains(run: JudgedRun, scale: _Scale) -> Values:
    """Return the gain of each retrieved document, (Q, J)."""
    gain, rel, _ = scale
    return run.once(
        ("gains", gain, rel), lambda: _gain_of(run.grade, run.judged if rel is None else run.hits(rel), gain)
    )


def _best(run: JudgedRun, scale: _Scale) -> Values:
    """Return the gains of all judged documents, descending, (Q, I)."""
    gain, rel, _ = scale
    least = 0 if rel is None else run.least(rel)
    return run.once(("best", gain, rel), lambda: _best_first(_gain_of(run.ideal, run.ideal >= least, gain)))


def _ideal(run: JudgedRun, scale: _Scale) -> Values:
    """Return the discounted gains of the ideal ranking, (Q, I)."""
    return run.once(("ideal", scale), lambda: _discounted(_best(run, scale), scale.b))


def _best_first(gains: Values) -> Values:
    return -np.sort(-gains, axis=1)


def _discounted(best: Values, b: float | None) -> Values:
    return best * discounts(np.arange(1, best.shape[1] + 1), b)


def _discount_behind(behind: Values, counted: np.ndarray) -> Values:
    """Return 1 / log2(2 + behind) where counted."""
    usual = counted & (behind < _MANY) & (behind == np.rint(behind))
    discount = discounts(np.where(usual, behind, 0.0).astype(np.int64) + 1)
    rows, columns = np.nonzero(counted & ~usual)
    # Not np.log2: its last bit may depend on the memory address of a number.
    exact = [1 / math.log2(2 + far) for far in behind[rows, columns].tolist()]
    discount[rows, columns] = exact
    return discount


def _gain_of(grades: Values, counted: np.ndarray, gain: Value) -> Values:
    """Return the gain of each grade, 0 where not counted."""
    known = np.where(counted, grades, 0.0)
    if gain == "exp":
        known = _exponential(known)
    elif isinstance(gain, tuple):
        own = known
        for grade, value in gain:
            known = np.where(own == grade, value, known)
    return np.where(counted, known, 0.0)


def _exponential(grades: Values) -> Values:
    if grades.max(initial=0.0) > _MAX_GRADE:
        raise InputError(
            f"grade {grades.max():g} is too high for the gain 2^grade - 1",
            fix="use gain=linear, or map the grades to a small scale",
        )
    whole = np.rint(grades)
    if (whole == grades).all():
        return np.ldexp(1.0, whole.astype(np.int32)) - 1
    # Not np.exp2: its last bit may depend on the memory address of a number.
    levels, places = np.unique(grades, return_inverse=True)
    # Exact for integers, and not rounded to 0 for tiny grades.
    gains = [
        math.ldexp(1.0, int(level)) - 1 if level.is_integer() else math.expm1(level * _LN2) for level in levels.tolist()
    ]
    return np.array(gains)[places].reshape(grades.shape)


def _gained(run: JudgedRun, scale: _Scale, k: int | None = None) -> Values:
    """Return the discounted gain of each document in the first k, (Q, J)."""
    return run.once(("gained", scale, k), lambda: _gains(run, scale) * run.discounts(k, scale.b))


def _dcg(run: JudgedRun, scale: _Scale, k: int | None) -> Values:
    return run.total(_gained(run, scale, k))

"""Measures that read how relevant a document is."""

from __future__ import annotations

import math

import numpy as np

from rankgauge.catalogue import Value
from rankgauge.errors import InputError
from rankgauge.judged import JudgedRun, Values, discounts
from rankgauge.kernels.declaring import measure

# 2 ** grade must stay a number, also when many are added.
_MAX_GRADE = 900
_LN2 = math.log(2.0)


@measure(bounds=(0.0, math.inf), reads="grades", expected="linear")
def DCG(run: JudgedRun, *, k: int | None = None, gain: Value = "linear") -> Values:
    r"""Discounted cumulative gain: the gains of the first k ranks, each worth less further down.

    $$ DCG@k = \sum_{i \le k} \frac{gain(g_i)}{\log_2 (i + 1)} $$

    The gain is the grade (linear) or 2^grade - 1 (exp); a map gives other values.

    Use: as a part of nDCG, or where the absolute gain of a ranking is wanted.
    Beware: it has no upper bound, so means over queries with different numbers of relevant
    documents are dominated by the rich ones.
    Source: Järvelin and Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS
    20; with the discount of Burges et al. (2005), Learning to rank using gradient descent, ICML.
    """
    return _dcg(run, gain, k)


@measure(
    trec="ndcg",
    trec_cut="ndcg_cut_{k}",
    reads="grades",
    expected="linear",
    unless={"ideal": "topk"},
    upset={"ideal": "topk"},
)
def nDCG(
    run: JudgedRun, *, k: int | None = None, gain: Value = "linear", ideal: str = "judged"
) -> Values:
    r"""Normalised DCG: DCG divided by that of the best possible ranking.

    $$ nDCG@k = \frac{DCG@k}{IDCG@k}, \qquad IDCG@k = \sum_{i \le k}
    \frac{gain(g^*_i)}{\log_2 (i + 1)} $$

    The ideal ranking g* is made of all judged documents, found or not. Some tools take only what
    was retrieved (``ideal=retrieved``) or only the first k (``ideal=topk``): that inflates the
    value, and exists here to reproduce them. Undefined where no judged document brings a gain.

    Use: grades differ and order matters: the usual first choice for search.
    Beware: documents that are not relevant cost nothing by themselves: ten hits followed by
    rubbish and ten hits alone have the same value.
    Source: Järvelin and Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, TOIS
    20; with the discount of Burges et al. (2005), Learning to rank using gradient descent, ICML.
    """
    found = _dcg(run, gain, k)
    judged = run.once(("ideal", gain), lambda: _ideal(_pool(run, gain)))
    if ideal == "judged":
        best = judged
    elif ideal == "topk" and k is not None:
        best = _ideal(np.where(run.within(k), _gains(run, gain), 0.0))
    else:
        best = _ideal(_gains(run, gain))
    whole = run.total(best[:, :k])
    value = found / np.where(whole > 0, whole, 1.0)
    # With another ideal nothing may be gained from what was retrieved: a bad ranking, hence 0.
    return np.where(judged[:, 0] > 0, value, np.nan)


@measure(reads="grades", stated=("top",), also=("ExpectedReciprocalRank",))
def ERR(run: JudgedRun, *, k: int | None = None, top: float = 4) -> Values:
    r"""Expected reciprocal rank: where a reader stops who stops at a good document.

    $$ ERR@k = \sum_{i \le k} \frac{1}{i} R_i \prod_{j<i} (1 - R_j), \qquad
    R_i = \frac{2^{g_i} - 1}{2^{top}} $$

    top is the highest grade of the scale, 4 if left out; a grade above it is an error.

    Use: graded judgments, and readers who are content with one good document.
    Beware: values depend on top, so state it; its best possible value is below 1.
    Source: Chapelle, Metzler, Zhang and Grinspan (2009), Expected reciprocal rank for graded
    relevance, CIKM.
    """
    highest = float(run.ideal.max())
    if highest > top:
        raise InputError(
            f"grade {highest:g} is above the top grade {top:g} of ERR",
            fix=f"state the top of your scale, top={highest:g} or more, wherever you compare",
        )
    seen = run.judged if k is None else run.judged & run.within(k)
    stops = _gain_of(run.grade, seen, "exp") / math.pow(2.0, top)
    reaches = np.ones_like(stops)
    reaches[:, 1:] = np.multiply.accumulate(1 - stops, axis=1)[:, :-1]
    return run.total(stops * reaches / run.rank)


def _gains(run: JudgedRun, gain: Value) -> Values:
    """(Q, J) the gain of each document retrieved."""
    return run.once(("gains", gain), lambda: _gain_of(run.grade, run.judged, gain))


def _pool(run: JudgedRun, gain: Value) -> Values:
    """(Q, I) the gain of each document judged."""
    return _gain_of(run.ideal, run.ideal >= 0, gain)


def _ideal(gains: Values) -> Values:
    """The gains of each query best first, discounted by the rank it then has."""
    best = -np.sort(-gains, axis=1)
    return best * discounts(np.arange(1, best.shape[1] + 1))


def _gain_of(grades: Values, counted: np.ndarray, gain: Value) -> Values:
    """The gain of each grade, 0 where not counted."""
    known = np.where(counted, grades, 0.0)
    if gain == "exp":
        known = _exponential(known)
    elif isinstance(gain, tuple):
        own = known
        for grade, worth in gain:
            known = np.where(own == grade, worth, known)
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
    # Not np.exp2: its last bit may depend on where in memory a number stands.
    levels, places = np.unique(grades, return_inverse=True)
    worth = np.array([_gain_exponential(level) for level in levels.tolist()])
    return worth[places].reshape(grades.shape)


def _gain_exponential(grade: float) -> float:
    """2^grade - 1, exact for whole grades and not 0 for tiny ones."""
    return math.ldexp(1.0, int(grade)) - 1 if grade.is_integer() else math.expm1(grade * _LN2)


def _dcg(run: JudgedRun, gain: Value, k: int | None) -> Values:
    return run.total(_gains(run, gain) * run.discounts(k))

"""User models of the C/W/L framework.

Each model is defined by C(i), the probability of continuing from rank i to the next. C determines
the weights W(i), the share of inspected documents that are at rank i; the value, the expected gain
per inspected document; and the residual, the possible increase if all documents were judged.
Between two judged documents, C has a closed form, so the cost depends on the number of judged
documents and not on the number of ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rankgauge.data.judged_run import JudgedRun, Level, Values, discounts
from rankgauge.errors import InputError
from rankgauge.measures.declaration import measure

# Default depth, as in cwl_eval and the papers.
_FAR = 1000
# Longest sum over ranks without a closed form.
_MOST_RANKS = 10**6
# From this argument on, the series of the trigamma function is exact.
_LARGE = 12


class _GainRule(NamedTuple):
    """Gain of a document: 1 if its grade is at least rel, or grade / top."""

    rel: Level | None
    top: float | None


class _Path(NamedTuple):
    """Ranks 1 to k in segments of equal gain: between judged documents, and at each of them."""

    first: Values  # (Q, S) first rank of the segment
    ranks: Values  # (Q, S) number of ranks, possibly 0; if above 1, the gain is 0 or 1
    gained: Values  # (Q, S) gain of each rank in the segment, in units
    before: Values  # (Q, S) sum of the gains above the segment, in units
    unit: float  # units in a gain of 1, so that sums of integer grades are exact

    @property
    def gain(self) -> Values:
        """Gain of each rank in the segment, 0 to 1, (Q, S)."""
        return self.gained / self.unit


_RESIDUAL = ("residual", True)
# Rank weights do not depend on gains, so the residual needs only the judged ranks.
_WEIGHED_RESIDUAL: Mapping[str, Any] = {"better": "lower", "reads": "judged", "without": ("judged_only",)}
# For each segment: the probability of passing it once its first rank is reached, and the expected
# number of ranks inspected in it.
_Passage: TypeAlias = tuple[Values, Values]
_Model: TypeAlias = Callable[[_Path], _Passage]


@measure(
    reads="grades",
    stated=("goal",),
    also={"INSTres": {"residual": True}},
    variants={_RESIDUAL: {"better": "lower", "monotone": False, "without": ("judged_only",)}},
)
def INST(
    run: JudgedRun,
    *,
    goal: float = 1,
    k: int = _FAR,
    rel: Level | None = None,
    top: float | None = None,
    residual: bool = False,
) -> Values:
    r"""Adaptive inverse squares: the expected gain per rank of a user with a goal.

    $$ C(i) = \left( \frac{i + T + T_i - 1}{i + T + T_i} \right)^2, \qquad
    T_i = T - \sum_{j \le i} gain_j $$

    T is the goal, the gain that the user wants. The gain of a document is 1 if its grade is at
    least rel (default 1) or, with top, grade / top. The user reads at most k ranks (default 1,000).

    The residual is the possible increase if every unjudged document, including those below the
    ranking, had a gain of 1: $INST_{unjudged = 1} - INST$. It is an upper bound, not an estimate.

    Use: if the number of documents that users want is known: one for a fact, many for a survey.
    Beware: values for different goals or cut-offs cannot be compared; the goal is at least 0.5.
    Source: Bailey, Moffat, Scholer, and Thomas (2015), User variability and IR system evaluation,
    SIGIR; Moffat, Bailey, Scholer, and Thomas (2015), INST: an adaptive metric, ADCS; for the
    residual, Moffat, Bailey, Scholer, and Thomas (2017), Incorporating user expectations and
    behavior into the measurement of search effectiveness, TOIS 35.
    """
    return _value(run, _GainRule(rel, top), k, partial(_inst, goal=goal), residual=residual)


@measure(
    reads="grades",
    stated=("goal",),
    tie_mean="linear",
    also={"INSQres": {"residual": True}},
    variants={_RESIDUAL: _WEIGHED_RESIDUAL},
)
def INSQ(
    run: JudgedRun,
    *,
    goal: float = 1,
    k: int = _FAR,
    rel: Level | None = None,
    top: float | None = None,
    residual: bool = False,
) -> Values:
    r"""Inverse squares: the expected gain per rank of a user who becomes more patient with depth.

    $$ C(i) = \left( \frac{i + 2T - 1}{i + 2T} \right)^2, \qquad
    INSQ = \frac{\sum_{i \le k} gain_i / (i + 2T - 1)^2}{\sum_{i \le k} 1 / (i + 2T - 1)^2} $$

    T is the goal, the gain that the user wants. The gain of a document is 1 if its grade is at
    least rel (default 1) or, with top, grade / top. The user reads at most k ranks (default 1,000).

    The residual, the possible increase if every unjudged document had a gain of 1, is 1 minus the
    weights of the judged ranks.

    Use: like RBP, if users who read far down are assumed to be patient.
    Beware: values for different goals or cut-offs cannot be compared.
    Source: Moffat, Scholer, and Thomas (2012), Models and metrics: IR evaluation as a user process,
    ADCS.
    """
    whole, end = _trigamma(np.array([2.0 * goal, 2.0 * goal + k])).tolist()

    def table(ranks: int) -> Values:
        at = np.arange(1, ranks + 1) + (2 * goal - 1)
        return np.append(0.0, 1 / (at * at) / (whole - end))

    weights = run.weights(("squares", goal, k), table, k)
    if residual:
        return np.maximum(1 - run.total(np.where(run.judged, weights, 0.0)), 0.0)
    return run.total(_gains(run, _GainRule(rel, top)) * weights)


@measure(
    reads="grades",
    stated=("goal",),
    monotone=False,
    also={"BPMres": {"residual": True}},
    variants={_RESIDUAL: {"better": "lower", "without": ("judged_only",)}},
)
def BPM(
    run: JudgedRun,
    *,
    k: int,
    goal: float = 1,
    rel: Level | None = None,
    top: float | None = None,
    residual: bool = False,
) -> Values:
    r"""Bejeweled player model: the gain per rank of a user who stops at a goal or at rank k.

    $$ C(i) = [\, i < k \;\text{and}\; \sum_{j \le i} gain_j < T \,] $$

    T is the goal, the gain that the user wants. The gain of a document is 1 if its grade is at
    least rel (default 1) or, with top, grade / top. This is the static form, in which T and k do
    not change while the user reads.

    The residual is the possible increase if every unjudged document, including those below the
    ranking, had a gain of 1: $BPM_{unjudged = 1} - BPM$.

    Use: if users have both a goal and a limited effort.
    Beware: documents after the goal is reached do not count.
    Source: Zhang, Liu, Li, Zhang, Xu, and Ma (2017), Evaluating web search with a Bejeweled player
    model, SIGIR; for the residual, Moffat et al. (2017), TOIS 35.
    """
    return _value(run, _GainRule(rel, top), k, partial(_bpm, goal=goal), residual=residual)


@measure(
    reads="grades", tie_mean="linear", also={"SDCGres": {"residual": True}}, variants={_RESIDUAL: _WEIGHED_RESIDUAL}
)
def SDCG(
    run: JudgedRun, *, k: int, rel: Level | None = None, top: float | None = None, residual: bool = False
) -> Values:
    r"""Scaled DCG: DCG divided by that of k documents of the top grade.

    $$ SDCG@k = \frac{\sum_{i \le k} gain_i / \log_2 (i + 1)}{\sum_{i \le k} 1 / \log_2 (i + 1)} $$

    The gain of a document is 1 if its grade is at least rel (default 1) or, with top, grade / top.
    The user continues with probability C(i) = log(i+1) / log(i+2), and stops at rank k. The
    residual, the possible increase if every unjudged document had a gain of 1, is 1 minus the
    weights of the judged ranks.

    Use: like nDCG, with a divisor that does not depend on the judgments.
    Beware: with few relevant documents, it is far below 1; k is at most a million.
    Source: Moffat, Thomas, and Scholer (2013), Users versus models: what observation tells us about
    effectiveness metrics, CIKM.
    """
    if residual:
        seen = run.total(np.where(run.judged, run.discounts(k), 0.0))
        return np.maximum(1 - seen / _discounted(k), 0.0)
    return run.total(_gains(run, _GainRule(rel, top)) * run.discounts(k)) / _discounted(k)


@measure(reads="grades")
def NERR8(run: JudgedRun, *, k: int, rel: Level | None = None, top: float | None = None) -> Values:
    r"""Nearly ERR, first form: a user who stops at a document with probability equal to its gain.

    $$ C(i) = [\, i < k \,] \, (1 - gain_i) $$

    The gain of a document is 1 if its grade is at least rel (default 1) or, with top, grade / top.

    Use: for a form of ERR in the C/W/L framework.
    Beware: it is not ERR; the number in its name is that of the equation in the paper.
    Source: Azzopardi, Mackenzie, and Moffat (2021), ERR is not C/W/L: exploring the relationship
    between expected reciprocal rank and other metrics, ICTIR, equation 8.
    """
    return _rate(run, _GainRule(rel, top), k, partial(_stopping, onwards=_certain))


@measure(reads="grades")
def NERR9(run: JudgedRun, *, k: int, rel: Level | None = None, top: float | None = None) -> Values:
    r"""Nearly ERR, second form: like NERR8, but users also stop with probability 1 / (i + 1).

    $$ C(i) = [\, i < k \,] \, \frac{i}{i + 1} (1 - gain_i) $$

    The gain of a document is 1 if its grade is at least rel (default 1) or, with top, grade / top.

    Use: for a form of ERR with its discount 1 / i in the C/W/L framework.
    Beware: it is not ERR; the number in its name is that of the equation in the paper; k is at most
    a million.
    Source: Azzopardi, Mackenzie, and Moffat (2021), ERR is not C/W/L: exploring the relationship
    between expected reciprocal rank and other metrics, ICTIR, equation 9.
    """
    _check_depth("NERR9", k)
    return _rate(run, _GainRule(rel, top), k, partial(_stopping, onwards=_harmonic))


@measure(reads="grades", stated=("p",))
def NERR10(
    run: JudgedRun, *, p: float = 0.9, k: int = _FAR, rel: Level | None = None, top: float | None = None
) -> Values:
    r"""Nearly ERR, third form: like NERR8, with the persistence p of RBP.

    $$ C(i) = p \, (1 - gain_i) $$

    The gain of a document is 1 if its grade is at least rel (default 1) or, with top, grade / top.
    The user reads at most k ranks (default 1,000).

    Use: like ERR, with the persistence of RBP.
    Beware: it is not ERR; the number in its name is that of the equation in the paper.
    Source: Azzopardi, Mackenzie, and Moffat (2021), ERR is not C/W/L: exploring the relationship
    between expected reciprocal rank and other metrics, ICTIR, equation 10.
    """
    return _rate(
        run,
        _GainRule(rel, top),
        k,
        partial(_stopping, onwards=lambda path: _repeated(np.full_like(path.ranks, p), path.ranks)),
    )


@measure(reads="grades", stated=("goal",))
def NERR11(
    run: JudgedRun, *, goal: float = 1, k: int = _FAR, rel: Level | None = None, top: float | None = None
) -> Values:
    r"""Nearly ERR, fourth form: like NERR8, with the goal of INSQ.

    $$ C(i) = \left( \frac{i + 2T - 1}{i + 2T} \right)^2 (1 - gain_i) $$

    T is the goal, the gain that the user wants. The gain of a document is 1 if its grade is at
    least rel (default 1) or, with top, grade / top. The user reads at most k ranks (default 1,000).

    Use: like ERR, with the persistence of INSQ.
    Beware: it is not ERR; the number in its name is that of the equation in the paper.
    Source: Azzopardi, Mackenzie, and Moffat (2021), ERR is not C/W/L: exploring the relationship
    between expected reciprocal rank and other metrics, ICTIR, equation 11.
    """
    return _rate(
        run,
        _GainRule(rel, top),
        k,
        partial(_stopping, onwards=lambda path: _squared(path.first + (2 * goal - 1), path.ranks)),
    )


# ---- weights W, value, and residual


def _rate(run: JudgedRun, rule: _GainRule, k: int, model: _Model, *, unknown: float = 0.0) -> Values:
    """Return the expected gain per inspected rank if unjudged documents have the gain `unknown`."""
    first, ranks = run.once(("stretches", k), lambda: _between(run, k))
    gained = np.full(first.shape, unknown * _unit(rule))
    gained[:, 1::2] = np.where(run.judged, _in_units(run, rule), gained[:, 1::2])
    before = np.zeros(first.shape)
    before[:, 1:] = np.cumsum(gained * ranks, axis=1)[:, :-1]
    path = _Path(first, ranks, gained, before, _unit(rule))
    passed, inspected = model(path)
    empty = path.ranks == 0
    reached = np.ones_like(inspected)
    reached[:, 1:] = np.multiply.accumulate(np.where(empty, 1.0, passed), axis=1)[:, :-1]
    weight = np.where(empty, 0.0, reached * inspected)
    return run.total(weight * path.gain) / run.total(weight)


def _value(run: JudgedRun, rule: _GainRule, k: int, model: _Model, *, residual: bool) -> Values:
    """Return the expected gain per inspected rank, or its increase if unjudged documents gain 1."""
    value = _rate(run, rule, k, model)
    if not residual:
        return value
    # Rounding may give a value below 0.
    return np.maximum(_rate(run, rule, k, model, unknown=1.0) - value, 0.0)


def _between(run: JudgedRun, k: int) -> Values:
    """Return the first rank and the number of ranks of each segment, (2, Q, S).

    Segments alternate between unjudged ranks and single judged documents.
    """
    rows, columns = run.rank.shape
    ends = np.full((rows, columns + 2), k + 1.0)
    ends[:, 0] = 0.0
    ends[:, 1:-1] = np.minimum(run.rank, k + 1)
    segments = np.empty((2, rows, 2 * columns + 1))
    first, ranks = segments
    first[:, ::2], first[:, 1::2] = ends[:, :-1] + 1, ends[:, 1:-1]
    ranks[:, ::2] = np.maximum(ends[:, 1:] - first[:, ::2], 0)
    ranks[:, 1::2] = run.within(k)
    return segments


def _unit(rule: _GainRule) -> float:
    return 1.0 if rule.top is None else float(rule.top)


def _in_units(run: JudgedRun, rule: _GainRule) -> Values:
    """Return the gain of each document in units, (Q, J): 0 or 1, or its grade if top is set."""
    rel, top = rule
    if top is None:
        return run.hits(1 if rel is None else rel).astype(np.float64)
    highest = float(run.ideal.max())
    if highest > top:
        raise InputError(
            f"grade {highest:g} is above the top grade {top:g}",
            fix=f"set the top of your scale, top={highest:g} or more, in every comparison",
        )
    return np.where(run.judged if rel is None else run.hits(rel), run.grade, 0.0)


def _gains(run: JudgedRun, rule: _GainRule) -> Values:
    """Return the gain of each document, 0 to 1, (Q, J)."""
    return _in_units(run, rule) / _unit(rule)


# ---- models: C over segments


def _inst(path: _Path, goal: float) -> _Passage:
    """Return the passage of INST: C(i) = ((x - 1) / x)^2 with x = i + 2T - the gain so far."""
    if goal < 0.5:
        raise InputError(
            f"INST with goal={goal:g}: some continuation probabilities would be above 1",
            fix="write goal=0.5 or more: 1 for a user who wants one relevant document",
        )
    gain = path.gain
    # Below 0 only by rounding.
    start = np.maximum(path.first + (2 * goal - 1) - path.before / path.unit - gain, 0.0)
    passed, inspected = _squared(start, path.ranks)
    # In a segment with a gain of 1, C is the same at all ranks.
    many = (gain == 1) & (path.ranks > 1)
    chance = start[many] / (start[many] + 1)
    passed[many], inspected[many] = _repeated(chance * chance, path.ranks[many])
    return passed, inspected


def _bpm(path: _Path, goal: float) -> _Passage:
    """Return the passage of BPM: C(i) = 1 until the goal is reached."""
    missing = goal * path.unit - path.before
    gains = path.gained > 0
    steps = np.ceil(missing / np.where(gains, path.gained, 1.0)) - 1
    # Number of ranks after which the user continues.
    left = np.where(gains, steps, np.where(missing > 0, path.ranks, 0.0))
    left = np.clip(left, 0, path.ranks)
    return (left == path.ranks).astype(np.float64), np.minimum(path.ranks, left + 1)


def _stopping(path: _Path, onwards: _Model) -> _Passage:
    """Return the passage of NERR: C of another model times 1 - gain."""
    passed, inspected = onwards(path)
    gains = path.gained > 0
    return np.where(gains, passed * (1 - path.gain), passed), np.where(gains, 1.0, inspected)


def _certain(path: _Path) -> _Passage:
    return np.ones_like(path.ranks), path.ranks


def _harmonic(path: _Path) -> _Passage:
    """Return the passage of segments with C(i) = i / (i + 1)."""
    first, last = path.first.astype(np.int64), (path.first + path.ranks).astype(np.int64) - 1
    sums = _harmonic_numbers(int(last.max()))
    return first / (last + 1), first * (sums[last] - sums[first - 1])


def _repeated(chance: Values, ranks: Values) -> _Passage:
    """Return the passage of segments with the same C at each rank."""
    passed, power, left = np.ones_like(chance), chance, ranks.astype(np.int64)
    # Not np.power: its last bit may depend on the memory address of a number.
    while left.any():
        passed = np.where(left & 1, passed * power, passed)
        power, left = power * power, left >> 1
    return passed, (1 - passed) / (1 - chance)


def _squared(start: Values, ranks: Values) -> _Passage:
    """Return the passage of segments with C = (s / (s + 1))^2, ((s + 1) / (s + 2))^2, ..."""
    end = start + ranks
    passed = start / np.where(end > 0, end, 1.0)
    inspected = np.ones_like(start)
    many = (ranks > 1) & (start > 0)
    at = start[many]
    inspected[many] = at * at * (_trigamma(at) - _trigamma(end[many]))
    return passed * passed, inspected


def _trigamma(numbers: Values) -> Values:
    """Return the sum of 1 / n^2 over n = x, x + 1, x + 2, ... for each x > 0."""
    total, at = np.zeros_like(numbers), numbers.copy()
    few = np.flatnonzero(at < _LARGE)
    while len(few):
        total[few] += 1 / (at[few] * at[few])
        at[few] += 1
        few = few[at[few] < _LARGE]
    part = 1 / (at * at)
    series = np.full_like(at, 7 / 6)
    for factor in (-691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):
        series = series * part + factor
    return total + 1 / at + part / 2 + series * part / at


# ---- sums over ranks without a closed form


@lru_cache(maxsize=64)
def _discounted(k: int) -> float:
    """Return the sum of the discounts of ranks 1 to k."""
    _check_depth("SDCG", k)
    return math.fsum(discounts(np.arange(1, k + 1)).tolist())


@lru_cache(maxsize=4)
def _harmonic_numbers(most: int) -> Values:
    """Return the sums of 1 / n for n up to 0, 1, 2, ..., `most`."""
    return np.cumsum(np.concatenate([[0.0], 1 / np.arange(1, most + 1)]))


def _check_depth(name: str, k: int) -> None:
    if k > _MOST_RANKS:
        raise InputError(f"{name}@{k} sums over {k:,} ranks", fix=f"write a cut-off of {_MOST_RANKS:,} or less")

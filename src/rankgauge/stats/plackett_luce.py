"""Plackett-Luce model of choices among items or none of them, with a Gaussian prior.

From a set S of items, item i is chosen with probability exp(u_i) / (1 + sum over S of exp(u_j)),
and none of them with probability 1 / (1 + sum): "none" is an alternative with utility 0 (Luce 1959,
Plackett 1975; McFadden's conditional logit). The utility of an item thus shows, on the same scale
for all sets, whether it is preferred to none: relevance = 1 / (1 + exp(-u)). A ranking is a
sequence of choices, each among the remaining items. The prior, normal with mean 0, keeps utilities
of items that were always or never chosen finite, and makes disconnected sets comparable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import IntArray
from rankgauge.errors import InputError
from rankgauge.stats.arrays import TIE, BoolArray, FloatArray, check_amount, check_share
from rankgauge.stats.intervals import wilson_interval

NONE = -1
"""Code of "none of them" in `chosen`, and of padding in `offered`."""

# Newton's method stops at steps that would raise the log-posterior by less than rounding errors.
_STEPS, _HALVINGS, _ROUNDING = 100, 30, 1e-14
_DRAWS = 2000
_EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True, eq=False)
class PlackettLuce:
    """Plackett-Luce model fitted to choices; "none" has utility 0.

    Attributes:
        utilities: (n,) mode of the posterior.
        covariance: (n, n) inverse of the negative Hessian of the log-posterior at the mode.
    """

    utilities: FloatArray
    covariance: FloatArray

    @property
    def standard_errors(self) -> FloatArray:
        """(n,) standard deviations of the utilities."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def relevance(self) -> FloatArray:
        """(n,) probability that an item is preferred to none: 1 / (1 + exp(-u))."""
        return _sigmoid(self.utilities)

    def relevance_interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return (n,) lower and upper bounds of the relevance, by Laplace's approximation."""
        check_share(level, "level")
        reach = NormalDist().inv_cdf((1 + level) / 2) * self.standard_errors
        return _sigmoid(self.utilities - reach), _sigmoid(self.utilities + reach)

    def probability_above(self) -> FloatArray:
        """Return (n,) posterior probabilities that the relevance of an item is above 0.5."""
        return np.array([NormalDist().cdf(score) for score in (self.utilities / self.standard_errors).tolist()])

    def none_probability(self, sets: npt.ArrayLike) -> FloatArray:
        """Return (C,) probabilities that none is chosen from each set, at the mode.

        The uncertainty of the utilities is ignored; `sets` is as `offered` in
        :func:`fit_plackett_luce`.
        """
        chosen = _incidence(sets, len(self.utilities))
        top = np.where(chosen, self.utilities, 0.0).max(axis=1, initial=0.0)
        weights = np.where(chosen, np.exp(np.where(chosen, self.utilities, 0.0) - top[:, None]), 0)
        return np.exp(-top) / (np.exp(-top) + weights.sum(axis=1))

    def information(self, sets: npt.ArrayLike) -> FloatArray:
        """Return (C,) the information gain from one choice from each set.

        log det(I + F S), with the multinomial information F = diag(p) - pp' of the choice at the
        mode, and the covariance S: the D-optimal set has the largest value.

        Args:
            sets: (C, k) indices of the items of each set, all of the same size.
        """
        members, fisher = self._choice_information(sets)
        covariance = self.covariance[members[:, :, None], members[:, None, :]]
        return np.asarray(np.linalg.slogdet(np.eye(members.shape[1]) + fisher @ covariance)[1])

    def expecting(self, sets: Sequence[Sequence[int]]) -> PlackettLuce:
        """Return the model with the covariance expected after one choice from each of these sets.

        Use it for sets that are being judged. The utilities, and their expectation, do not change.
        """
        if not sets:
            return self
        precision = np.linalg.inv(self.covariance)
        for items in sets:
            members, fisher = self._choice_information([items])
            precision[np.ix_(members[0], members[0])] += fisher[0]
        return replace(self, covariance=np.linalg.inv(precision))

    def _choice_information(self, sets: npt.ArrayLike) -> tuple[IntArray, FloatArray]:
        """Return (C, k) members and (C, k, k) Fisher information of the choice from each set."""
        members = np.asarray(sets, dtype=np.int64)
        _incidence(members, len(self.utilities))
        if (members < 0).any():
            raise InputError("the sets differ in size", where="information", fix="call once for each size")
        utilities = self.utilities[members]
        top = utilities.max(axis=1, initial=0.0, keepdims=True)
        weights = np.exp(utilities - top)
        p = weights / (np.exp(-top) + weights.sum(axis=1, keepdims=True))
        return members, p[:, :, None] * (np.eye(members.shape[1]) - p[:, None, :])


def ranking_stages(shown: Sequence[int], ranking: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """Return the choices in a ranking, as `offered` and `chosen` in :func:`fit_plackett_luce`.

    The best item is chosen from all items, the second from the others, and so on; each is preferred
    to the remaining items and to none. A partial ranking says nothing more about items that were
    not ranked. Sets are padded to the number of items shown.

    Args:
        shown: Items shown.
        ranking: Items placed, best first; a single choice is a ranking of one item. `NONE` at the
            end (or alone) says that none of the remaining items is appropriate.

    Example:
        >>> ranking_stages([4, 7, 9], [9, 4])
        ([[4, 7, 9], [4, 7, -1]], [9, 4])
    """
    offered, left = [], list(shown)
    for place in ranking:
        offered.append(left + [NONE] * (len(shown) - len(left)))
        if place != NONE:
            if place not in left:
                raise InputError(
                    f"item {place} was placed, but not shown or placed before",
                    where="ranking_stages",
                    fix="rank the items shown, each once",
                )
            left = [item for item in left if item != place]
        elif len(offered) < len(ranking):
            raise InputError("a ranking continues after none", where="ranking_stages", fix="pass none last")
    return offered, list(ranking)


def fit_plackett_luce(
    items: int,
    offered: npt.ArrayLike,
    chosen: npt.ArrayLike,
    *,
    weights: npt.ArrayLike = 1.0,
    none_offered: npt.ArrayLike = True,
    prior_sd: float = 3.0,
    careless: tuple[float, float] = (0.0, 0.0),
) -> PlackettLuce:
    """Fit the utilities of items to choices: the mode of the posterior and its curvature.

    Newton's method with step halving finds the mode. Without careless choices, the log-posterior is
    strictly concave, and intervals with a prior sd of 3 cover 95% to 96% in simulations. Careless
    choices move the utilities toward 0; to bound their effect, fit the shares that are possible.

    Args:
        items: Number of items n; they are 0 to n - 1.
        offered: (S, K) items offered in each choice, padded with -1.
        chosen: (S,) item chosen, -1 for none.
        weights: (S,) weights of the choices, or one for all. A tie of two items is a choice of each
            with weight 0.5.
        none_offered: (S,) whether none could be chosen, or one value for all. If it never could,
            utilities are comparable only with each other.
        prior_sd: Standard deviation of the prior of each utility.
        careless: Assumed shares of choices that do not depend on the utilities: of any item or none
            at random, and of none.

    Raises:
        InputError: If an item is unknown, is offered twice, or is chosen but was not offered.

    Example:
        >>> fit = fit_plackett_luce(3, [[0, 1], [0, 2], [1, 2]], [0, 0, -1])
        >>> fit.relevance.round(2).tolist()
        [0.9, 0.18, 0.18]
    """
    check_amount(prior_sd, "prior_sd", positive=True)
    shown = _incidence(offered, items)
    choices = _Choices(
        shown,
        np.asarray(chosen, dtype=np.int64).reshape(len(shown)),
        np.broadcast_to(np.asarray(weights, dtype=np.float64), len(shown)),
        np.broadcast_to(np.asarray(none_offered, dtype=np.float64), len(shown)),
        careless,
    )
    choices.check()
    picks = choices.picked[:, None] == np.arange(items)
    precision = 1 / prior_sd**2
    utilities = np.zeros(items)
    probabilities, careful, likelihood = choices.probabilities(utilities)
    value = likelihood
    near = _ROUNDING * (1 + float(choices.weight.sum()))
    for _ in range(_STEPS):
        weight = choices.weight * careful
        weighted = probabilities * weight[:, None]
        gradient = weight @ picks - weighted.sum(axis=0) - precision * utilities
        curvature = np.diag(weighted.sum(axis=0) + precision) - probabilities.T @ weighted
        if any(careless):
            # Less is known because any choice may be careless (Louis 1982); far from the mode, the difference
            # need not be positive definite, and the first term alone still leads uphill.
            rest = picks - probabilities
            observed = curvature - (rest.T * weight * (1 - careful)) @ rest
            curvature = observed if (np.linalg.eigvalsh(observed) > 0).all() else curvature
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step <= near:
            break
        for _ in range(_HALVINGS):
            moved = utilities + step
            probabilities, careful, likelihood = choices.probabilities(moved)
            reached = likelihood - precision * float(moved @ moved) / 2
            if reached >= value - near:
                break
            step = step / 2
        utilities, value = moved, reached
    covariance = np.linalg.inv(curvature)
    return PlackettLuce(utilities, (covariance + covariance.T) / 2)


def choice_homogeneity(
    fit: PlackettLuce, offered: npt.ArrayLike, chosen: npt.ArrayLike, judges: Sequence[str]
) -> FloatArray:
    """Test for each item whether all judges choose it at the rates of the fit.

    The statistic is the variation between judges of chosen - expected: the sum over judges of its
    square over its variance, less that of all judges together. Its null distribution is that of
    2,000 random answers with the fitted probabilities.

    Args:
        fit: The model of all choices.
        offered: (S, K) items, as in :func:`fit_plackett_luce`.
        chosen: (S,) item chosen, -1 for none.
        judges: (S,) identifiers of the judges.

    Returns:
        (n,) p-values; NaN for an item unless two judges saw it twice or more.

    Example:
        >>> fit = fit_plackett_luce(1, [[0]] * 12, [0, -1] * 6)
        >>> bool(choice_homogeneity(fit, [[0]] * 12, [0, -1] * 6, ["ann", "bob"] * 6)[0] < 0.05)
        True
    """
    shown, picked = _incidence(offered, len(fit.utilities)), np.asarray(chosen, dtype=np.int64)
    probabilities = _Choices(shown, picked, np.ones(len(shown)), np.ones(len(shown))).probabilities(fit.utilities)[0]
    judge = np.unique(np.asarray(judges), return_inverse=True)[1]
    return np.array(
        [
            _homogeneity(picked[rows] == item, probabilities[rows, item], judge[rows])
            for item, rows in enumerate(shown.T)
        ]
    )


def _homogeneity(picks: BoolArray, expected: FloatArray, judge: IntArray) -> float:
    """Return the p-value of one item."""
    names, member, views = np.unique(judge, return_inverse=True, return_counts=True)
    if np.count_nonzero(views > 1) < 2:
        return math.nan
    by_judge = np.eye(len(names))[member]
    variance = (expected * (1 - expected)) @ by_judge

    def variation(picks: BoolArray) -> FloatArray:
        rest = (picks - expected) @ by_judge
        return np.asarray((rest**2 / variance).sum(axis=-1) - rest.sum(axis=-1) ** 2 / variance.sum())

    observed = variation(picks)
    if observed <= len(names) - 1:
        return 1.0  # below the mean of the null distribution, so the p-value is not small
    drawn = variation(np.random.default_rng(0).random((_DRAWS, len(picks))) < expected)
    return (1 + np.count_nonzero(drawn >= observed - TIE)) / (_DRAWS + 1)


@dataclass(frozen=True)
class NoneRate:
    """Observed and predicted rates of "none" for sets of similar quality.

    Attributes:
        low: Lower edge of the predicted probabilities of "none".
        high: Upper edge.
        sets: Number of sets.
        predicted: Mean predicted probability.
        observed: Share of the sets from which none was chosen.
        interval: Wilson interval of `observed`.
    """

    low: float
    high: float
    sets: int
    predicted: float
    observed: float
    interval: tuple[float, float]

    @property
    def consistent(self) -> bool:
        """Whether the interval of the observed share includes the prediction."""
        return self.interval[0] <= self.predicted <= self.interval[1]


def none_rates(predicted: npt.ArrayLike, observed: npt.ArrayLike, *, level: float = 0.95) -> tuple[NoneRate, ...]:
    """Return observed and predicted rates of "none" by predicted probability, to check the fit.

    People may pick the best item and then decide whether it is good enough. The model, in which
    none is an alternative like the items, then predicts "none" too often for some sets and too
    rarely for others.

    Args:
        predicted: (T,) probability of "none" for each set, from `PlackettLuce.none_probability` of
            a fit with a wide prior, since a narrow one shrinks them away from 0 and 1.
        observed: (T,) whether none was chosen.
        level: Confidence level of the intervals.

    Example:
        >>> [(rate.predicted, rate.observed) for rate in none_rates([0.1, 0.1, 0.9], [0, 1, 1])]
        [(0.1, 0.5), (0.9, 1.0)]
    """
    chance = np.asarray(predicted, dtype=np.float64)
    none = np.asarray(observed, dtype=bool)
    group = np.clip(np.searchsorted(_EDGES, chance, side="right") - 1, 0, len(_EDGES) - 2)
    rates = []
    for index in range(len(_EDGES) - 1):
        mine = group == index
        if sets := int(mine.sum()):
            none_chosen = int(none[mine].sum())
            low, high = wilson_interval(none_chosen, sets, level)
            mean = math.fsum(chance[mine].tolist()) / sets
            rates.append(
                NoneRate(_EDGES[index], _EDGES[index + 1], sets, mean, none_chosen / sets, (float(low), float(high)))
            )
    return tuple(rates)


def _sigmoid(utilities: FloatArray) -> FloatArray:
    small = np.exp(-np.abs(utilities))
    return np.where(utilities >= 0, 1.0, small) / (1 + small)


def _incidence(offered: npt.ArrayLike, items: int) -> BoolArray:
    """Return (S, n) whether each item is in each set, whose items must be known and distinct."""
    sets = np.asarray(offered, dtype=np.int64)
    if sets.size == 0:
        return np.zeros((len(sets), items), dtype=bool)
    if sets.ndim != 2 or sets.min() < NONE or sets.max() >= items:
        raise InputError(
            f"sets of {items} items are not rows of indices from 0 to {items - 1}",
            where="offered",
            fix="pass (S, K) indices, -1 where a set is smaller",
        )
    # -1 is counted in the last column, which is dropped.
    counts = np.zeros((len(sets), items + 1), dtype=np.int64)
    np.add.at(counts, (np.arange(len(sets))[:, None], sets), 1)
    if (counts[:, :-1] > 1).any():
        row = int(np.argwhere(counts[:, :-1] > 1)[0, 0])
        raise InputError(
            f"duplicate item in set {row}: {sets[row].tolist()}", where="offered", fix="offer each item once"
        )
    return counts[:, :-1] > 0


@dataclass(frozen=True, eq=False)
class _Choices:
    """Validated choices: items offered, item picked, weight, and whether none was picked."""

    shown: BoolArray  # (S, n)
    picked: IntArray  # (S,)
    weight: FloatArray  # (S,)
    anchor: FloatArray  # (S,) 1 if "none" could be chosen, else 0
    careless: tuple[float, float] = (0.0, 0.0)

    def check(self) -> None:
        rows, items = np.arange(len(self.shown)), self.shown.shape[1]
        known = (self.picked >= NONE) & (self.picked < items)
        # "None" is the last column.
        extended = np.concatenate([self.shown, self.anchor[:, None] > 0], axis=1)
        possible = known & extended[rows, np.where(known, self.picked, NONE)]
        if not possible.all():
            row = int(np.argmin(possible))
            raise InputError(
                f"choice {row} is {self.picked[row]}, which was not offered",
                where="fit_plackett_luce",
                fix="pass the index of an item of its set, -1 for none",
            )
        if not np.isfinite(self.weight).all() or (self.weight < 0).any():
            raise InputError("weights are not numbers of 0 or more", where="fit_plackett_luce", fix="omit them")

    def probabilities(self, utilities: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Return (S, n) probabilities of a careful choice, (S,) that it was careful, and the log-likelihood."""
        # The largest exponent of each row is 0, so that none overflows.
        inside = np.where(self.shown, utilities, -np.inf)
        top = inside.max(axis=1, initial=-np.inf)
        top = np.where(self.anchor > 0, np.maximum(top, 0.0), top)
        powers = np.exp(inside - top[:, None])
        sums = powers.sum(axis=1) + self.anchor * np.exp(-np.maximum(top, 0.0))
        at_random, none = self.careless
        careful = np.append(utilities, 0.0)[self.picked] - top - np.log(sums) + math.log1p(-at_random - none)
        with np.errstate(divide="ignore"):
            chance = np.log(at_random / (self.shown.sum(axis=1) + self.anchor) + none * (self.picked == NONE))
        either = np.logaddexp(careful, chance)
        return powers / sums[:, None], np.exp(careful - either), float(self.weight @ either)

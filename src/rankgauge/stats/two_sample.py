"""Classifier two-sample test: can a classifier distinguish the points of two samples?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rankgauge.core.libraries import library
from rankgauge.errors import InputError
from rankgauge.stats.arrays import FloatArray, blocks, check_draws
from rankgauge.stats.intervals import wilson_interval

_FOLDS = 5
_NEIGHBORS = 10
_PENALTY = 1.0  # per point that the regression is fitted to
RARE = 1 / 3  # ratio of the shares of both samples from which on a region is rare in one
_ROWS = 1000  # in a block of similarities
_DIGITS = 10  # of rounded scores, so that equal points have equal scores with any BLAS


@dataclass(frozen=True, slots=True)
class AreaEstimate:
    """Area under the ROC curve with its interval.

    Attributes:
        value: Share of pairs of points, one from each sample, with the higher score for the point
            of the first sample; 0.5 if the classifier cannot distinguish the samples.
        low: Lower bound of the interval.
        high: Upper bound.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class TwoSampleTest:
    """Result of a classifier two-sample test by permutation of the labels.

    Attributes:
        p: P-value of the larger standardized area.
        areas: Area of each classifier, ``linear`` and ``neighbors``.
        z: Standardized area of each classifier.
        permutations: Number of random permutations.
        apart: Largest share of the first sample that a classifier finds where the other one is rare:
            above a score that at most a third of this share of the other sample has, with 95% confidence.
        center: (2,) means of the areas over the permutations and the observed labels.
        spread: (2,) standard deviations of the same areas.
        largest: (permutations,) larger standardized area of each permutation, sorted.
    """

    p: float
    areas: tuple[AreaEstimate, ...]
    z: tuple[float, ...]
    permutations: int
    apart: float
    center: FloatArray
    spread: FloatArray
    largest: FloatArray

    def p_values(self, areas: FloatArray) -> FloatArray:
        """Return the p-values of other labelings of the same points, from their areas (2, B)."""
        z = _standardized(areas, self.center, self.spread).max(axis=0)
        return permutation_p(z, self.largest)


_TIE = 1e-9


class LabelScores:
    """Scores of points by two classifiers, for any labels.

    ``linear`` is a ridge regression of the labels on standardized coordinates, fitted without the
    fold of the point (5 random folds). ``neighbors`` is the number of labeled points among the 10
    with the highest cosine. Folds, projections, and neighbors do not depend on the labels, so that
    hundreds of permutations are fast.

    Args:
        points: (n, d) coordinates, at least 10 points; constant columns are ignored.
        seed: Seed of the folds and of the order of equally near neighbors.

    Attributes:
        order: Random order of the points.
        folds: Positions in that order, for each fold.

    Raises:
        InputError: If there are too few points.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> labels = np.arange(60) < 20
        >>> points = rng.normal(size=(60, 3)) + labels[:, None]
        >>> test = LabelScores(points).test(labels, permutations=99)
        >>> test.p
        0.01
    """

    def __init__(self, points: npt.ArrayLike, seed: int = 0) -> None:
        coordinates = np.asarray(points, dtype=np.float64)
        check_draws(1, seed)
        if coordinates.ndim != 2 or len(coordinates) < 2 * _FOLDS:
            raise InputError(
                f"{len(coordinates)} points are too few",
                where="two_sample",
                fix=f"pass (n, d) coordinates of at least {2 * _FOLDS} points",
            )
        # In random order, since ties between neighbors are broken by the order of the points,
        # which must not depend on the labels.
        self.order = np.random.Generator(np.random.PCG64(seed)).permutation(len(coordinates))
        ordered = coordinates[self.order]
        self.folds = [np.arange(start, len(ordered), _FOLDS) for start in range(_FOLDS)]
        self._projections = list(_projections(ordered, self.folds))
        self._neighbors = nearest(ordered, _NEIGHBORS)
        # Linear scores are comparable only within folds, scores of neighbors among all points.
        self._groups = (self.folds, [np.arange(len(ordered))])

    def scores(self, ordered: npt.NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        """Return the scores of each classifier for (n,) or (n, B) labels, both in `order`."""
        labels = ordered.astype(np.float64)
        linear = np.empty_like(labels)
        for fold, (held_out, fitted, projection) in zip(self.folds, self._projections, strict=True):
            linear[fold] = held_out @ (projection @ labels[fitted])
        return np.round(linear, _DIGITS), labels[self._neighbors].sum(axis=1)

    def areas(self, labels: npt.NDArray[np.bool_]) -> FloatArray:
        """Return (2, B) areas under the curve for (n, B) labels; 0.5 without pairs to compare."""
        areas = np.empty((2, labels.shape[1]))
        ordered = labels[self.order]
        for start, count in blocks(labels.shape[1], 4 * len(labels)):
            block = ordered[:, start : start + count]
            for row, (scores, groups) in enumerate(zip(self.scores(block), self._groups, strict=True)):
                areas[row, start : start + count] = area_under_curve(scores, block, groups)
        return np.nan_to_num(areas, nan=0.5)

    def test(self, labels: npt.NDArray[np.bool_], permutations: int = 499, seed: int = 0) -> TwoSampleTest:
        """Test whether the labels are independent of the points.

        Null hypothesis: the labels are exchangeable. The areas of both classifiers are standardized
        by their mean and standard deviation over all permutations and the observed labels; p is
        (b + 1) / (permutations + 1), where b is the number of permutations in which the larger of
        the two standardized areas reaches the observed one (Lopez-Paz and Oquab 2017; Phipson and
        Smyth 2010). 95% intervals are normal, with the standard error of DeLong et al. (1988) for
        fixed scores, or that of the permutations, which includes the fit, if it is larger.

        Args:
            labels: (n,) True for one sample, False for the other.
            permutations: Number of permutations of the labels.
            seed: Seed of the permutations.

        Raises:
            InputError: If one sample is empty.
        """
        check_draws(permutations, seed)
        labels = np.asarray(labels, dtype=bool)
        if labels.shape != (len(self.order),) or labels.all() or not labels.any():
            raise InputError(
                f"labels have shape {labels.shape} and {int(labels.sum())} True values",
                where="two_sample",
                fix=f"pass {len(self.order)} labels, some True and some False",
            )
        rng = np.random.Generator(np.random.PCG64([seed, 1]))
        drawn = np.stack([labels, *(rng.permutation(labels) for _ in range(permutations))], axis=1)
        areas = self.areas(drawn)
        center, spread = areas.mean(axis=1), areas.std(axis=1)
        z = _standardized(areas, center, spread)
        largest = np.sort(z[:, 1:].max(axis=0))
        ordered = labels[self.order]
        scored = tuple(zip(self.scores(ordered), self._groups, spread, strict=True))
        estimates = tuple(_estimate(scores, ordered, groups, float(least)) for scores, groups, least in scored)
        return TwoSampleTest(
            float(permutation_p(z[:, 0].max(), largest)),
            estimates,
            tuple(z[:, 0].tolist()),
            permutations,
            max(_share_apart(scores, ordered, groups) for scores, groups, _ in scored),
            center,
            spread,
            largest,
        )

    def area_within(self, labels: npt.NDArray[np.bool_], groups: npt.NDArray[np.int64]) -> float:
        """Return the area of `linear` over pairs in the same fold and group; NaN without pairs."""
        ordered = groups[self.order]
        cells = [fold[ordered[fold] == group] for fold in self.folds for group in np.unique(ordered)]
        column = labels[self.order][:, None]
        return float(area_under_curve(self.scores(column)[0], column, cells)[0])


def area_under_curve(
    scores: FloatArray, labels: npt.NDArray[np.bool_], groups: list[npt.NDArray[np.int64]] | None = None
) -> FloatArray:
    """Return the areas under the ROC curve over the pairs within groups.

    The area is the share of pairs, one point of each label, in which the labeled point has the
    higher score; equal scores count one half.

    Args:
        scores: (n, B) scores of n points under B labelings.
        labels: (n, B) whether each point is labeled.
        groups: Positions of the points of each group; by default, all points are one group.

    Returns:
        (B,) areas; NaN where no group has both labels.

    Example:
        >>> labels = np.array([[True], [False], [False]])
        >>> float(area_under_curve(np.array([[2.0], [2.0], [1.0]]), labels)[0])
        0.75
    """
    won, pairs = np.zeros(scores.shape[1]), np.zeros(scores.shape[1])
    for group in [np.arange(len(scores))] if groups is None else groups:
        some = labels[group]
        ones = some.sum(axis=0)
        won += (middle_ranks(scores[group]) * some).sum(axis=0) - ones * (ones + 1) / 2
        pairs += ones * (len(group) - ones)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(pairs > 0, won / np.maximum(pairs, 1), np.nan))


def permutation_p(values: npt.ArrayLike, drawn: FloatArray) -> FloatArray:
    """Return the p-values of statistics from the sorted statistics of random permutations.

    Example:
        >>> float(permutation_p(3.0, np.array([1.0, 2.0, 3.0])))
        0.5
    """
    reached = len(drawn) - np.searchsorted(drawn, np.asarray(values) - _TIE, side="left")
    return np.asarray((reached + 1) / (len(drawn) + 1))


def middle_ranks(values: FloatArray) -> FloatArray:
    """Return the ranks from 1 in each column; equal values share the mean of their ranks.

    Example:
        >>> middle_ranks(np.array([[3.0], [1.0], [3.0]])).T.tolist()
        [[2.5, 1.0, 2.5]]
    """
    return np.asarray(library("scipy.stats", extra="production", of="a two-sample test").rankdata(values, axis=0))


def nearest(points: FloatArray, count: int) -> npt.NDArray[np.int64]:
    """Return (n, count) positions of the other points with the highest cosine, unordered."""
    rows = unit_rows(points)
    count = min(count, len(rows) - 1)
    neighbors = np.empty((len(rows), count), dtype=np.int64)
    for start in range(0, len(rows), _ROWS):
        near = np.round(rows[start : start + _ROWS] @ rows.T, _DIGITS)
        near[np.arange(len(near)), np.arange(start, start + len(near))] = -np.inf
        neighbors[start : start + _ROWS] = np.argpartition(-near, count - 1, axis=1)[:, :count]
    return neighbors


def unit_rows(points: FloatArray) -> FloatArray:
    """Return the rows scaled to length 1; rows of zeros are unchanged."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.where(lengths > 0, lengths, 1.0))


def _projections(
    points: FloatArray, folds: list[npt.NDArray[np.int64]]
) -> Iterator[tuple[FloatArray, npt.NDArray[np.int64], FloatArray]]:
    """Yield the points of each fold, the positions of the others, and (d, m) coefficients."""
    kept = points[:, points.std(axis=0) > _TIE * max(1.0, float(np.abs(points).max()))]
    scaled = (kept - kept.mean(axis=0)) / kept.std(axis=0)
    for fold in folds:
        fitted = np.setdiff1d(np.arange(len(scaled)), fold)
        center = scaled[fitted].mean(axis=0)
        others = scaled[fitted] - center
        gram = others.T @ others + _PENALTY * len(others) * np.eye(others.shape[1])
        yield scaled[fold] - center, fitted, np.linalg.solve(gram, others.T)


def _standardized(areas: FloatArray, center: FloatArray, spread: FloatArray) -> FloatArray:
    """Return (2, B) areas in standard deviations; 0 for a classifier with a constant area."""
    scale = np.where(spread > _TIE, spread, np.inf)
    return np.asarray((areas - center[:, None]) / scale[:, None])


def _share_apart(scores: FloatArray, labels: npt.NDArray[np.bool_], groups: list[npt.NDArray[np.int64]]) -> float:
    """Return the largest share of labeled points above a score that at most a third of that share of the others has.

    The lower bound of the first share is compared with the upper bound of the second one.
    """
    ranks = np.empty(len(scores))
    for group in groups:
        ranks[group] = middle_ranks(scores[group][:, None])[:, 0] / len(group)
    labeled = labels[np.argsort(-ranks, kind="stable")]
    least = wilson_interval(np.cumsum(labeled), labeled.sum())[0]
    most = wilson_interval(np.cumsum(~labeled), (~labeled).sum())[1]
    return float(least[most <= RARE * least].max(initial=0))


def _estimate(
    scores: FloatArray,
    labels: npt.NDArray[np.bool_],
    groups: list[npt.NDArray[np.int64]],
    least: float,
) -> AreaEstimate:
    """Return the area over pairs within groups, with a standard error of at least `least`."""
    pairs = variance = won = 0.0
    for group in groups:
        ours, theirs = scores[group][labels[group]], scores[group][~labels[group]]
        if not len(ours) or not len(theirs):
            continue
        # Ranks among all points minus ranks within the sample: the share of the others below.
        ranks = middle_ranks(np.concatenate([ours, theirs])[:, None])[:, 0]
        below = (ranks[: len(ours)] - middle_ranks(ours[:, None])[:, 0]) / len(theirs)
        above = 1 - (ranks[len(ours) :] - middle_ranks(theirs[:, None])[:, 0]) / len(ours)
        weight = len(ours) * len(theirs)
        pairs += weight
        won += weight * below.mean()
        variance += weight**2 * sum(part.var(ddof=1) / len(part) for part in (below, above) if len(part) > 1)
    if not pairs:
        return AreaEstimate(0.5, 0.0, 1.0)
    half = NormalDist().inv_cdf(0.975) * max(variance**0.5 / pairs, least)
    value = float(won / pairs)
    return AreaEstimate(value, max(0.0, value - half), min(1.0, value + half))

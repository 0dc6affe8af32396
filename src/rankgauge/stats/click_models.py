"""Models of clicks on ranked results, from counts of impressions and clicks.

The input has one row for each query-document pair and each rank at which it was shown: the code of
the pair, the rank, the number of impressions, and the number of clicked impressions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import IntArray
from rankgauge.core.libraries import library
from rankgauge.errors import InputError
from rankgauge.stats.arrays import LEVEL, BoolArray, FloatArray

_TINY = 1e-12
_NEAR = 1e-7
_MOST_STEPS = 100
_LARGEST_STEP = 2.0
_BISECTIONS = 60
_STRENGTHS = (1e-2, 1e4)  # search range for the strength of the prior


@dataclass(frozen=True, eq=False)
class ExpectedClicks:
    """Clicks over expected clicks of P query-document pairs.

    Attributes:
        ranks: (R,) ranks that occur, ascending.
        rates: (R,) clicks / impressions at each rank.
        shown: (P,) impressions.
        clicks: (P,) clicked impressions.
        expected: (P,) sum over the impressions of the rates of their ranks.
        ratio: (P,) (clicks + strength) / (expected + strength), shrunk toward 1.
        strength: Weight of the prior in expected clicks; higher if the pairs are more alike.
    """

    ranks: IntArray
    rates: FloatArray
    shown: FloatArray
    clicks: FloatArray
    expected: FloatArray
    ratio: FloatArray
    strength: float


def expected_clicks(
    pair: npt.ArrayLike, rank: npt.ArrayLike, shown: npt.ArrayLike, clicked: npt.ArrayLike
) -> ExpectedClicks:
    """Return clicks over expected clicks (COEC; Zhang and Jones 2007), shrunk toward 1.

    Expected clicks are those of an average document at the ranks at which this document was shown:
    the sum over its impressions of the click rate of their ranks. Clicks are modeled as a Poisson
    variable with mean ratio x expected, and the ratio as a gamma variable with mean 1, whose
    strength maximizes the likelihood of all pairs (empirical Bayes).

    The click rate of a rank includes the quality of the documents shown there: if the best
    documents are always first, their ratio is too low, by a factor of 2 and more in simulations
    (docs/explain/experiments.md), so ratios have no intervals. :func:`fit_position_model` separates
    rank and quality.

    Args:
        pair: (N,) codes from 0.
        rank: (N,) ranks from 1.
        shown: (N,) impressions of the pair at the rank, above 0.
        clicked: (N,) number of clicked impressions.

    Raises:
        InputError: If counts are impossible.
        MissingExtra: If SciPy is not installed.

    Example:
        >>> clicks = expected_clicks([0, 0, 1, 1], [1, 2, 1, 2], [100, 900, 100, 900],
        ...                         [30, 90, 10, 0])
        >>> clicks.rates.tolist(), clicks.expected.tolist(), clicks.ratio.round(2).tolist()
        ([0.2, 0.05], [65.0, 65.0], [1.83, 0.17])
    """
    special = library("scipy.special", extra="production", of="expected_clicks")
    pairs, place, n, c, ranks = _counts((pair, rank, shown, clicked))
    rates = np.bincount(place, c) / np.bincount(place, n)
    expected, clicks, total = (_sums(pairs, column) for column in (n * rates[place], c, n))
    strength = _strength(clicks, expected, special)
    return ExpectedClicks(ranks, rates, total, clicks, expected, (clicks + strength) / (expected + strength), strength)


def _strength(clicks: FloatArray, expected: FloatArray, special: Any) -> float:
    """Return the strength of the gamma prior that maximizes the likelihood of the clicks."""
    known = expected > 0
    (c, e), number = np.unique(np.stack([clicks[known], expected[known]]), axis=1, return_counts=True)

    def likelihood(log_strength: float) -> float:
        a = math.exp(log_strength)
        terms = special.gammaln(c + a) - special.gammaln(a) + a * math.log(a) - (c + a) * np.log(a + e)
        return float(terms @ number)

    # Golden-section search: the likelihood has one maximum in the logarithm of the strength.
    low, high = map(math.log, _STRENGTHS)
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(_BISECTIONS):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if likelihood(left) > likelihood(right):
            high = right
        else:
            low = left
    return math.exp((low + high) / 2)


@dataclass(frozen=True, eq=False)
class PositionModel:
    """Position-based click model of P query-document pairs at R ranks.

    A result is clicked if it is examined and attractive: P(click) = examination of its rank x
    attraction of the document for the query. Examination is 1 at the most examined rank, so
    attraction is the click rate at that rank.

    Attributes:
        ranks: (R,) ranks that occur, ascending.
        examination: (R,) examination of each rank; NaN where unknown.
        examination_low: (R,) lower bounds.
        examination_high: (R,) upper bounds.
        shown: (P,) impressions, at any rank.
        clicks: (P,) clicked impressions.
        examined: (P,) sum of examination over the impressions.
        attraction: (P,) attraction of each pair; NaN if it was shown only at ranks with unknown
            examination.
        low: (P,) lower bounds.
        high: (P,) upper bounds.
    """

    ranks: IntArray
    examination: FloatArray
    examination_low: FloatArray
    examination_high: FloatArray
    shown: FloatArray
    clicks: FloatArray
    examined: FloatArray
    attraction: FloatArray
    low: FloatArray
    high: FloatArray


def fit_position_model(
    pair: npt.ArrayLike, rank: npt.ArrayLike, shown: npt.ArrayLike, clicked: npt.ArrayLike
) -> PositionModel:
    """Fit a position-based click model (Richardson, Dominowska, and Ragno 2007).

    Given the number of clicks of a pair, their distribution over ranks is proportional to
    impressions x examination, whatever the attraction. Examination maximizes this multinomial
    likelihood, with standard errors that are valid for any variance (Poisson regression with fixed
    effects; Hausman, Hall, and Griliches 1984; Wooldridge 1999). The usual EM algorithm maximizes
    the likelihood over all attractions at once, which is biased if documents have few impressions:
    in a simulation with 21 impressions per document, the examination of rank 10 was 0.138 instead
    of 0.1 (docs/explain/experiments.md).

    Only documents with clicks that were shown at several ranks separate examination from
    attraction. Examination is unknown for ranks that are not connected with the others, in both
    directions, by chains of such documents, and for ranks without clicks. Attraction maximizes the
    likelihood given examination; its interval comes from the likelihood ratio, widened by the
    uncertainty of examination. It assumes that impressions are independent.

    Args:
        pair: (N,) codes from 0.
        rank: (N,) ranks from 1.
        shown: (N,) impressions of the pair at the rank, above 0.
        clicked: (N,) number of clicked impressions.

    Raises:
        InputError: If counts are impossible, or no clicked document was shown at several ranks.
        MissingExtra: If SciPy is not installed.

    Example:
        >>> model = fit_position_model([0, 0, 1, 1], [1, 2, 1, 2], [100, 100, 100, 100],
        ...                            [60, 30, 20, 10])
        >>> model.examination.round(3).tolist(), model.attraction.round(3).tolist()
        ([1.0, 0.5], [0.6, 0.2])
    """
    sparse = library("scipy.sparse", extra="production", of="fit_position_model")
    pairs, place, n, c, ranks = _counts((pair, rank, shown, clicked))
    rows = _Rows(pairs, place, n, c, int(pairs.max()) + 1, len(ranks))
    known = _connected(rows, sparse)
    if known.sum() < 2:
        raise InputError(
            "no document with a click was shown at several ranks: examination of ranks and "
            "attraction of documents cannot be separated",
            where="fit_position_model",
            fix="use clicks over expected clicks (--model coec), or swap results at random",
        )
    rows = rows.where(known[rows.place])
    examination = theta, covariance, free = _examination(rows.informative(), np.flatnonzero(known), sparse)
    alpha = _attraction(rows, theta)
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    low, high = _likelihood_bounds(rows, theta, alpha, z * z * _inflation(rows, alpha, examination))
    examined = rows.by_pair(rows.n * theta[rows.place])
    for column, value in ((alpha, np.nan), (low, 0.0), (high, 1.0)):
        column[examined <= 0] = value
    theta[~known] = np.nan
    factor = np.ones(len(ranks))
    factor[free] = np.exp(z * np.sqrt(np.diag(covariance)))
    return PositionModel(
        ranks,
        theta,
        theta / factor,
        theta * factor,
        _sums(pairs, n),
        _sums(pairs, c),
        examined,
        alpha,
        low,
        high,
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Counts at ranks whose examination can be estimated."""

    pair: IntArray
    place: IntArray
    n: FloatArray
    c: FloatArray
    pairs: int
    ranks: int

    def informative(self) -> _Rows:
        """Return the rows of pairs with clicks that were shown at several ranks."""
        clicks, places = self.by_pair(self.c), np.bincount(self.pair, minlength=self.pairs)
        rows = self.where(((clicks > 0) & (places > 1))[self.pair])
        codes = np.unique(rows.pair, return_inverse=True)[1]
        return replace(rows, pair=codes, pairs=int(codes.max()) + 1)

    def where(self, keep: BoolArray) -> _Rows:
        return replace(self, pair=self.pair[keep], place=self.place[keep], n=self.n[keep], c=self.c[keep])

    def by_pair(self, values: FloatArray) -> FloatArray:
        return _sums(self.pair, values, self.pairs)

    def by_rank(self, values: FloatArray) -> FloatArray:
        return _sums(self.place, values, self.ranks)


class _Examination(NamedTuple):
    """Examination with maximum 1, and the covariance of its logarithms relative to that rank."""

    theta: FloatArray
    covariance: FloatArray  # of the ranks `free`
    free: IntArray


def _examination(rows: _Rows, known: IntArray, sparse: Any) -> _Examination:
    """Estimate the logarithms of examination at the known ranks by Newton's method."""
    clicks = rows.by_pair(rows.c)
    log_theta = np.zeros(rows.ranks)
    for _ in range(_MOST_STEPS):
        weight = rows.n * np.exp(log_theta)[rows.place]
        # Expected share of the clicks of a pair at each rank.
        share = weight / rows.by_pair(weight)[rows.pair]
        rest = rows.c - clicks[rows.pair] * share
        q = sparse.csr_matrix((share, (rows.pair, rows.place)), (rows.pairs, rows.ranks))
        curve = np.diag(rows.by_rank(clicks[rows.pair] * share)) - (q.T @ sparse.diags(clicks) @ q).toarray()
        step = np.zeros(rows.ranks)
        free = known[1:]
        step[free] = np.linalg.solve(curve[np.ix_(free, free)], rows.by_rank(rest)[free])
        log_theta += np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        if np.abs(step).max() < _NEAR:
            break
    top = int(known[log_theta[known].argmax()])
    free = known[known != top]
    residuals = sparse.csr_matrix((rest, (rows.pair, rows.place)), (rows.pairs, rows.ranks))
    inverse = np.linalg.inv(curve[np.ix_(free, free)])
    meat = (residuals.T @ residuals).toarray()[np.ix_(free, free)]
    theta = np.zeros(rows.ranks)
    theta[known] = np.exp(log_theta[known] - log_theta[top])
    return _Examination(theta, inverse @ meat @ inverse, free)


def _connected(rows: _Rows, sparse: Any) -> BoolArray:
    """Return the ranks whose examination has a finite estimate.

    They are the group with the most impressions in which a chain of documents, each clicked at one
    rank and shown at the next, leads from each rank to each other, as in the Bradley-Terry model
    (Ford 1957).
    """
    codes = rows.ranks + np.unique(rows.pair, return_inverse=True)[1]
    clicked = rows.c > 0
    ends = np.concatenate([codes[clicked], rows.place])
    starts = np.concatenate([rows.place[clicked], codes])
    size = int(codes.max()) + 1
    graph = sparse.coo_matrix((np.ones(len(ends)), (starts, ends)), (size, size))
    parts = sparse.csgraph.connected_components(graph, directed=True, connection="strong")[1]
    parts = parts[: rows.ranks]
    # Single ranks, such as those without clicks, are excluded even if they are frequent.
    several = np.bincount(parts) > 1
    return np.asarray(parts == (np.bincount(parts, rows.by_rank(rows.n)) * several).argmax())


def _attraction(rows: _Rows, theta: FloatArray) -> FloatArray:
    """Return the maximum-likelihood attraction of each pair, given examination.

    Found by bisection: the slope, clicks / a - sum of missed theta / (1 - theta a), decreases in a.
    """
    t, missed = theta[rows.place], rows.n - rows.c
    clicks = rows.by_pair(rows.c)
    low, high = np.zeros(rows.pairs), np.ones(rows.pairs)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        rises = clicks > middle * rows.by_pair(missed * t / np.maximum(1 - t * middle[rows.pair], _TINY))
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return np.where(clicks > 0, high, 0.0)


def _inflation(rows: _Rows, alpha: FloatArray, examination: _Examination) -> FloatArray:
    """Return the factor by which estimating examination increases the variance of attraction."""
    sparse = library("scipy.sparse", extra="production", of="fit_position_model")
    exposure = rows.n * examination.theta[rows.place]
    examined = rows.by_pair(exposure)
    share = exposure / np.maximum(examined, _TINY)[rows.pair]
    q = sparse.csr_matrix((share, (rows.pair, rows.place)), (rows.pairs, rows.ranks))[:, examination.free]
    # Variance of log attraction: q covariance q' from examination, (1 - a) / (a examined) from
    # clicks.
    more = np.asarray(q.multiply(q @ examination.covariance).sum(axis=1)).ravel()
    return 1 + np.maximum(more, 0) * alpha * examined / np.maximum(1 - alpha, _TINY)


def _likelihood_bounds(
    rows: _Rows, theta: FloatArray, alpha: FloatArray, most: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the bounds at which twice the loss of log-likelihood is `most`, given examination."""
    t, missed = theta[rows.place], rows.n - rows.c
    clicks = rows.by_pair(rows.c)

    def log_likelihood(a: FloatArray) -> FloatArray:
        room = np.log(np.maximum(1 - t * a[rows.pair], _TINY))
        return np.where(clicks > 0, clicks * np.log(np.maximum(a, _TINY)), 0.0) + rows.by_pair(missed * room)

    least = log_likelihood(alpha) - most / 2
    bounds = []
    for end in (0.0, 1.0):
        inside, outside = alpha.copy(), np.full_like(alpha, end)
        open_end = log_likelihood(outside) >= least
        for _ in range(_BISECTIONS):
            middle = (inside + outside) / 2
            within = log_likelihood(middle) >= least
            inside = np.where(within, middle, inside)
            outside = np.where(within, outside, middle)
        bounds.append(np.where(open_end, end, inside))
    return bounds[0], bounds[1]


def _sums(codes: IntArray, values: FloatArray, size: int = 0) -> FloatArray:
    """Return the sum of the values of each code."""
    return np.bincount(codes, values, size).astype(np.float64)


def _counts(columns: Sequence[npt.ArrayLike]) -> tuple[IntArray, IntArray, FloatArray, FloatArray, IntArray]:
    """Return pair, index of the rank, impressions, and clicks of each row, and the ranks."""
    pairs, ranks = (np.asarray(column, dtype=np.int64) for column in columns[:2])
    n, c = (np.asarray(column, dtype=np.float64) for column in columns[2:])
    if not len({column.shape for column in (pairs, ranks, n, c)}) == 1 == n.ndim or not n.size:
        raise InputError(
            "columns do not match",
            where="counts",
            fix="pass a pair, a rank, impressions, and clicks for each row, at least one",
        )
    wrong = ~((c >= 0) & (c <= n) & (n > 0) & np.isfinite(n) & (pairs >= 0) & (ranks >= 1))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"{c[at]:g} clicks of {n[at]:g} impressions of pair {pairs[at]} at rank {ranks[at]} are not possible",
            where="counts",
            fix="pass clicks from 0 to impressions, pairs from 0, and ranks from 1",
        )
    places, place = np.unique(ranks, return_inverse=True)
    return pairs, place, n, c, places

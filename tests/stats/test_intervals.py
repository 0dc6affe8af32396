"""Weighted means: effective sample size, and intervals checked by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import brentq
from scipy.stats import beta, binom, norm, skew, t
from statsmodels.stats.proportion import proportion_confint

import rankgauge
from rankgauge.errors import InputError
from rankgauge.stats import effective_size, ratio_interval, t_interval, weighted_mean_interval, wilson_interval
from rankgauge.stats.intervals import mean_interval, mean_lower_bound, skewness, weighted_mean_cdf

pairs = st.lists(st.tuples(st.floats(-100, 100), st.floats(0.01, 1000)), min_size=2, max_size=20)


@given(pairs)
def test_the_error_is_that_of_means_that_leave_one_value_out(found):
    total = sum(w for _, w in found)
    mean = sum(w * v for v, w in found) / total
    spread = 0.0
    for place in range(len(found)):
        rest = found[:place] + found[place + 1 :]
        spread += (sum(w * v for v, w in rest) / sum(w for _, w in rest) - mean) ** 2
    error = math.sqrt(spread * (len(found) - 1) / len(found))
    size = total**2 / sum(w * w for _, w in found)
    values, weights = zip(*found, strict=True)
    made = weighted_mean_interval(values, weights)
    scipy = pytest.importorskip("scipy.stats")
    half = scipy.t.ppf(0.975, max(1, size - 1)) * error
    assert made.mean == pytest.approx(mean, abs=1e-9)
    assert made.high - made.mean == pytest.approx(half, rel=1e-6, abs=1e-6)
    assert effective_size(weights) == pytest.approx(size)
    assert 1 - 1e-9 <= effective_size(weights) <= len(found) + 1e-9


def test_equal_weights_give_the_interval_of_t():
    values = [0.2, 0.0, 0.4, 0.0, 0.1]
    plain, weighted = t_interval(values), weighted_mean_interval(values, [3] * 5)
    assert (weighted.low, weighted.high) == pytest.approx((plain.low, plain.high))
    assert effective_size([3] * 5) == pytest.approx(5)


def test_a_value_without_weight_counts_nothing():
    one = weighted_mean_interval([0.2, 0.5, 0.9], [1, 2, 0])
    assert one == weighted_mean_interval([0.2, 0.5], [1, 2])


@pytest.mark.parametrize("weights", [[0, 0], [1, -1], [math.nan, 1], [1, math.inf], [1]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(rankgauge.InputError):
        weighted_mean_interval([0.1, 0.2], weights)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("queries", "spread", "linked", "least"),
    [
        (15, 0.0, True, 0.93),
        (40, 0.0, True, 0.93),
        (15, 0.7, False, 0.925),
        (40, 0.7, False, 0.93),
        (150, 0.7, False, 0.93),
        (40, 1.2, False, 0.93),
        (30, 0.7, True, 0.90),
        (150, 0.7, True, 0.93),
    ],
)
def test_intervals_cover_as_documented(queries, spread, linked, least):
    """Values in 0..1, with or without dependence on their weights; 1,000 samples."""
    rng = np.random.default_rng(queries)
    covered, samples = 0, 1000
    everything = np.exp(spread * rng.standard_normal(200_000))
    chance = 1 / (1 + 0.5 * everything) if linked else np.full(len(everything), 0.6)
    values = rng.beta(6 * chance, 6 * (1 - chance))
    truth = float(np.sum(everything * values) / np.sum(everything))
    for _ in range(samples):
        rows = rng.integers(len(values), size=queries)
        found = weighted_mean_interval(values[rows], everything[rows])
        covered += found.low <= truth <= found.high
    assert least <= covered / samples <= 0.97


@pytest.mark.parametrize(("losses", "queries"), [(0, 25), (1, 25), (3, 50), (8, 60), (10, 200)])
def test_losses_of_one_size_have_the_bound_of_clopper_and_pearson(losses, queries):
    values = np.zeros(queries)
    values[:losses] = -1.0
    exact = -beta.ppf(0.95, losses + 1, queries - losses)
    found = mean_lower_bound(values, 0.95, lowest=-1.0)
    assert found == pytest.approx(exact, rel=0.01)
    for at in (-0.05, -0.1, -0.2):
        wanted = binom.cdf(losses, queries, -at)
        assert weighted_mean_cdf(np.append(values, -1.0), at) == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize(("queries", "error"), [(3, 0.02), (10, 0.005), (200, 0.003)])
def test_the_distribution_of_the_weighted_mean_is_that_of_draws(queries, error):
    rng = np.random.default_rng(queries)
    values = rng.normal(0, 0.1, queries)
    weights = rng.exponential(size=(100_000, queries))
    means = weights @ values / weights.sum(axis=1)
    for share in (0.01, 0.05, 0.3, 0.5, 0.9):
        at = float(np.quantile(means, share))
        assert weighted_mean_cdf(values, at) == pytest.approx(share, abs=error)


def test_the_bound_is_never_above_that_of_t_and_near_it_for_many_symmetric_differences():
    rng = np.random.default_rng(1)
    for queries in (5, 25, 400):
        values = rng.normal(0.01, 0.1, queries)
        by_t = t_interval(values, 0.9).low
        found = mean_lower_bound(values, 0.95, lowest=-1.0)
        assert found <= by_t
        assert queries < 400 or found == pytest.approx(by_t, abs=0.001)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_is_the_lower_bounds_of_both_signs(level):
    values = np.array([0.2, 0.0, 0.4, 0.0, 0.1, -0.1, 0.3, 0.2, 0.2, -0.1])
    low, high = mean_interval(values, level)
    assert low == mean_lower_bound(values, (1 + level) / 2)
    assert high == -mean_lower_bound(-values, (1 + level) / 2)
    assert low < values.mean() < high
    # Cubes of numbers this small underflow.
    for scale in (2.0**-400, 2.0**-900):
        assert np.divide(mean_interval(scale * values, level), scale) == pytest.approx((low, high))
    assert skewness(2.0**-900 * values) == pytest.approx(skewness(values))


def test_few_changed_values_need_a_lowest_one():
    values = [0.1, *[0.0] * 30]
    assert mean_lower_bound(values) == -math.inf
    assert mean_lower_bound(values, lowest=-1.0) == pytest.approx(-0.088, abs=0.002)
    # A loss that the measure cannot have is excluded.
    assert mean_lower_bound(values, lowest=-0.1) > -0.02


def test_without_spread_the_value_not_seen_is_all_there_is():
    assert mean_lower_bound([0.2, 0.2, 0.2], lowest=-1.0) == pytest.approx(0.2)
    assert mean_lower_bound(np.zeros(100), lowest=-1.0) == pytest.approx(-0.0292, rel=0.02)


def test_bad_input_is_refused():
    with pytest.raises(InputError):
        mean_lower_bound([0.1])
    with pytest.raises(InputError):
        mean_lower_bound([0.1, math.nan])
    with pytest.raises(InputError):
        mean_lower_bound([0.1, 0.2], level=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.2, 0.05])
@pytest.mark.parametrize("queries", [25, 100])
def test_the_bound_is_above_the_mean_in_at_most_5_percent(share, queries):
    # Lognormal losses in a share of the queries; the t bound fails in 10-20%.
    rng = np.random.default_rng([queries, int(100 * share)])
    pool = -np.clip(rng.lognormal(-3, 1, 20_000), 0, 1)
    above = changed = 0
    for _ in range(300):
        lost = rng.random(queries) < share
        values = np.where(lost, rng.choice(pool, queries), 0.0)
        changed += bool(lost.any())
        above += bool(lost.any()) and mean_lower_bound(values, lowest=-1.0) > share * pool.mean()
    assert above <= 0.05 * changed + 3 * math.sqrt(0.05 * 0.95 * changed)


def by_drawing(values, lowest, draws=200_000):
    """Return the bound from its definition: random weights, SciPy's skewness, and quantile of t."""
    values = np.asarray(values)
    count, mean = len(values), values.mean()
    if (values != 0).mean() < 1 / 3:
        unseen = lowest
    else:
        c = 0.5 + 20 / count * max(0.0, -float(skew(values)))
        unseen = max(lowest, mean - c * np.abs(values - mean).max())
    weights = np.random.default_rng(9).exponential(size=(draws, count + 1))
    drawn = weights @ np.append(values, unseen) / weights.sum(axis=1)
    by_t = mean - t.ppf(0.95, count - 1) * values.std(ddof=1) / math.sqrt(count)
    return min(by_t, np.quantile(drawn, 0.05)), by_t


@pytest.mark.parametrize("changed", [1, 9, 11, 30])
@pytest.mark.parametrize("shape", ["skewed", "symmetric"])
def test_the_bound_is_that_of_its_definition(changed, shape):
    rng = np.random.default_rng(changed)
    values = np.zeros(30)
    drawn = rng.normal(0, 0.1, changed) if shape == "symmetric" else -rng.exponential(0.1, changed)
    values[:changed] = drawn
    wanted, _ = by_drawing(values, -1.0)
    assert mean_lower_bound(values, lowest=-1.0) == pytest.approx(wanted, abs=0.001)


def test_the_bound_of_t_holds_where_it_is_the_lower_one():
    values = [0.2, 0.0, 0.4, 0.0, 0.1]
    wanted, by_t = by_drawing(values, -1.0)
    assert wanted == by_t
    assert mean_lower_bound(values, lowest=-1.0) == pytest.approx(by_t)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_the_interval_is_that_of_statsmodels(level):
    trials = np.array([1, 2, 7, 30, 1000])
    for successes in (np.zeros(5), trials // 2, trials):
        wanted = proportion_confint(successes, trials, alpha=1 - level, method="wilson")
        np.testing.assert_allclose(wilson_interval(successes, trials, level), wanted, atol=1e-12)


def test_its_bounds_are_the_proportions_that_a_score_test_just_rejects():
    hits, n = 3, 11
    z = norm.ppf(0.975)
    score = lambda p: (hits / n - p) ** 2 - z**2 * p * (1 - p) / n  # noqa: E731
    low, high = wilson_interval(hits, n)
    assert float(low) == pytest.approx(brentq(score, 1e-9, hits / n), abs=1e-9)
    assert float(high) == pytest.approx(brentq(score, hits / n, 1 - 1e-9), abs=1e-9)


def test_without_trials_everything_is_possible():
    low, high = wilson_interval([0, 0, 5], [0, 5, 5])
    assert (low[0], high[0]) == (0, 1)
    assert low[1] == 0
    assert high[2] == 1


def test_it_covers_about_as_often_as_it_says():
    """Averaged over proportions, which smooths the discreteness of counts."""
    n = 12
    low, high = wilson_interval(np.arange(n + 1), n)
    shares = np.linspace(0.02, 0.98, 400)
    inside = (low <= shares[:, None]) & (shares[:, None] <= high)
    coverage = (binom.pmf(np.arange(n + 1), n, shares[:, None]) * inside).sum(axis=1)
    assert 0.94 < coverage.mean() < 0.965


@pytest.mark.parametrize(("hits", "trials"), [(3, 2), (-1, 2), (1, np.nan), (np.inf, np.inf)])
def test_impossible_counts_are_refused(hits, trials):
    with pytest.raises(InputError, match=r"successes of .* trials are not possible"):
        wilson_interval(hits, trials)


def test_the_interval_of_a_ratio_is_that_of_fieller_for_symmetric_intervals():
    for value, half in ((0.1, 0.06), (-0.2, 0.05), (0.0, 0.1), (0.02, 0.1)):
        low, high = ratio_interval(value, value - half, value + half, (0.8, 0.7, 0.9))
        # Fieller: ratios r with (value - 0.8 r)^2 <= half^2 + (0.1 r)^2.
        for end in (low, high):
            assert (value - 0.8 * end) ** 2 == pytest.approx(half**2 + (0.1 * end) ** 2)
        assert low < value / 0.8 < high
    low, high = ratio_interval(0.1, 0.04, 0.2, (0.8, 0.7, 0.85))
    flipped = ratio_interval(-0.1, -0.2, -0.04, (0.8, 0.7, 0.85))
    assert flipped == pytest.approx((-high, -low))

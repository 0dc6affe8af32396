"""Confidence sequences, verified by numerical integration and by simulated experiments."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankgauge.errors import InputError
from rankgauge.stats import wilson_interval
from rankgauge.stats.clustered import ClusterSums, confidence_sequence, difference_variance, mixing_sd, variance_needed


def mixture_ratio(d, v, tau):
    """Return the likelihood ratio of d, integrated over true differences by the trapezoid rule."""
    true = np.linspace(-12 * tau, 12 * tau, 200_001)
    prior = np.exp(-(true**2) / (2 * tau**2)) / math.sqrt(2 * math.pi * tau**2)
    ratio = np.exp(((2 * d * true) - true**2) / (2 * v))
    heights = prior * ratio
    return float(((heights[1:] + heights[:-1]) / 2 * np.diff(true)).sum())


@pytest.mark.parametrize(("d", "v", "tau"), [(0.1, 0.002, 0.05), (-0.02, 0.0001, 0.03), (0, 1, 2)])
def test_p_is_one_over_the_integrated_likelihood_ratio(d, v, tau):
    found = confidence_sequence([d], [v], mixing=tau)
    assert found.p[0] == pytest.approx(min(1.0, 1 / mixture_ratio(d, v, tau)), rel=1e-6)


@pytest.mark.parametrize(("v", "tau"), [(0.002, 0.05), (0.0001, 0.03)])
def test_bounds_are_where_the_integrated_likelihood_ratio_is_one_over_alpha(v, tau):
    found = confidence_sequence([0.2], [v], mixing=tau)
    for bound in (found.low[0], found.high[0]):
        assert mixture_ratio(0.2 - bound, v, tau) == pytest.approx(20, rel=1e-6)


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(1e-6, 1)), min_size=1, max_size=20), st.floats(0.001, 1))
def test_p_is_below_alpha_exactly_if_some_interval_excludes_zero(looks, tau):
    d, v = zip(*looks, strict=True)
    found = confidence_sequence(d, v, mixing=tau)
    excluded = np.maximum.accumulate((found.low > 1e-9) | (found.high < -1e-9))
    assert (found.p[excluded] <= 0.05 + 1e-9).all()
    assert (found.p[~excluded] >= 0.05 - 1e-6).all()
    assert (np.diff(found.p) <= 0).all()


def test_a_look_without_a_variance_decides_nothing():
    found = confidence_sequence([0.9, 0.9], [math.nan, 0.001], mixing=0.1)
    assert found.p[0] == 1
    assert found.low[0] == -math.inf
    assert found.p[1] < 0.01


def test_the_mixing_sd_makes_the_interval_narrowest():
    def width(tau):
        return float(confidence_sequence([0.0], [0.01], mixing=tau).high[0])

    best = mixing_sd(0.01)
    assert all(width(best) < width(best * factor) for factor in (0.5, 0.9, 1.1, 2.0))


def test_the_variance_needed_finds_the_difference_four_times_of_five():
    v = variance_needed(0.05, mixing=0.04)
    draws = np.random.default_rng(3).normal(0.05, math.sqrt(v), 20_000)
    found = [confidence_sequence([d], [v], mixing=0.04).p[0] <= 0.05 for d in draws[:4000]]
    assert np.mean(found) == pytest.approx(0.8, abs=0.02)


def test_the_variance_is_the_sum_of_those_of_the_arms():
    rng = np.random.default_rng(1)
    x = rng.integers(1, 5, (2, 60))
    y = rng.binomial(x, 0.4)
    difference, variance = difference_variance(ClusterSums.of(y[0], x[0]), ClusterSums.of(y[1], x[1]))
    by_hand = 0.0
    for hits, items in zip(y, x, strict=True):
        rate = hits.sum() / items.sum()
        squares = [(h - rate * i) ** 2 for h, i in zip(hits, items, strict=True)]
        by_hand += sum(squares) / items.sum() ** 2 * 60 / 59
    assert variance == pytest.approx(by_hand)
    assert difference == pytest.approx(y[0].sum() / x[0].sum() - y[1].sum() / x[1].sum())


@pytest.mark.parametrize(("hits", "known"), [(0, False), (9, False), (10, True), (91, False)])
def test_few_hits_or_few_misses_say_nothing_on_the_variance(hits, known):
    few = ClusterSums.of([1] * hits + [0] * (100 - hits), [1] * 100)
    many = ClusterSums.of([1, 0] * 50, [1] * 100)
    assert math.isfinite(difference_variance(few, many)[1]) == known


def test_users_with_many_hits_do_not_count_as_many_users():
    balanced = ClusterSums.of([1, 0] * 50, [1] * 100)
    # 38 hits, 30 of them by one user, count as 38² / (30² + 8) = 1.6 users.
    busy = ClusterSums.of([30] + [1] * 8 + [0] * 60, [30] + [1] * 68)
    # 20 users with 9 hits and 1 miss each: 20² / 20 effective users for misses.
    content = ClusterSums.of([9] * 20, [10] * 20)
    sure = ClusterSums.of([9] * 19 + [8], [10] * 20)
    for one, other, known in ((busy, balanced, False), (balanced, busy, False), (sure, balanced, True)):
        assert math.isfinite(difference_variance(one, other)[1]) == known
    # Twenty equal users have no variance; that of the other arm remains.
    assert difference_variance(content, balanced)[1] == pytest.approx(0.25 / 99)


def test_the_sign_of_a_difference_does_not_change_what_it_needs():
    assert variance_needed(-0.05, mixing=0.04) == variance_needed(0.05, mixing=0.04)


def simulated_looks(rng, rate, share, users=800, days=50):
    """Yield looks at two equal arms, whose users differ and return on later days."""
    first = rng.integers(0, days, users)
    asked = rng.poisson(rng.gamma(1, 0.15, (users, 1)) * (np.arange(days) > first[:, None]))
    asked[np.arange(users), first] += 1 + rng.poisson(1, users)
    hits = rng.binomial(asked, rng.beta(4 * rate, 4 - 4 * rate, (users, 1)))
    arm = rng.random(users) < share
    y, x = hits.cumsum(1), asked.cumsum(1)
    for day in range(days):
        yield [ClusterSums.of(y[side, day], x[side, day]) for side in (arm, ~arm)]


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "share"), [(0.02, 0.5), (0.3, 0.1), (0.5, 0.5)])
def test_fifty_looks_at_equal_arms_err_in_five_percent_at_most(rate, share):
    rng, alarms, repeats = np.random.default_rng(11), 0, 200
    for _ in range(repeats):
        looks = [difference_variance(*each) for each in simulated_looks(rng, rate, share)]
        d, v = map(np.array, zip(*looks, strict=True))
        known = v[np.isfinite(v)]
        if len(known):
            tau = mixing_sd(known[0] / 5)
            alarms += confidence_sequence(d, v, mixing=tau).p[-1] <= 0.05
    assert wilson_interval(alarms, repeats)[0] <= 0.05
    assert alarms / repeats <= 0.07


@pytest.mark.parametrize(("arguments", "mixing"), [(([0.1], [0.0]), 1), (([0.1], [0.1, 0.2]), 1), (([0.1], [0.1]), 0)])
def test_looks_that_do_not_fit_are_refused(arguments, mixing):
    with pytest.raises(InputError):
        confidence_sequence(*arguments, mixing=mixing)

"""Weighted means: effective sample size, and intervals checked by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import rankgauge
from rankgauge.stats import effective_size, t_interval, weighted_mean_interval

pairs = st.lists(st.tuples(st.floats(-100, 100), st.floats(0.01, 1000)), min_size=2, max_size=20)


@settings(max_examples=100, deadline=None)
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
        (15, 0.0, True, 0.93), (40, 0.0, True, 0.93), (15, 0.7, False, 0.925),
        (40, 0.7, False, 0.93), (150, 0.7, False, 0.93), (40, 1.2, False, 0.93),
        (30, 0.7, True, 0.90), (150, 0.7, True, 0.93),
    ],
)  # fmt: skip
def test_intervals_cover_as_documented(queries, spread, linked, least):
    """Values in 0..1, with or without dependence on their weights; 4,000 samples."""
    rng = np.random.default_rng(queries)
    covered, samples = 0, 4000
    everything = np.exp(spread * rng.standard_normal(200_000))
    chance = 1 / (1 + 0.5 * everything) if linked else np.full(len(everything), 0.6)
    values = rng.beta(6 * chance, 6 * (1 - chance))
    truth = float(np.sum(everything * values) / np.sum(everything))
    for _ in range(samples):
        rows = rng.integers(len(values), size=queries)
        found = weighted_mean_interval(values[rows], everything[rows])
        covered += found.low <= truth <= found.high
    assert least <= covered / samples <= 0.97

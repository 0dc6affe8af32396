"""The Poisson bootstrap: weights, interval, and independence of order."""

import hashlib
import math
import random
from statistics import NormalDist

import numpy as np
import pytest

from rankgauge.errors import InputError
from rankgauge.stats import (
    bootstrap_interval,
    poisson_bootstrap_interval,
    student_t_quantile,
    t_interval,
    t_interval_from_moments,
    t_test,
    t_test_from_moments,
)
from rankgauge.stats.resampling import poisson_weights, query_keys

_WORD = 2**64


def slow_weight(query_id, seed, draw):
    """Return a weight from the definition, with Python's integers."""
    secret = seed.to_bytes(3 if seed > 255 else 1, "little")
    key = hashlib.blake2b(query_id.encode(), digest_size=8, key=secret).digest()
    mixed = (int.from_bytes(key, "little") + (draw // 4 + 1) * 0x9E3779B97F4A7C15) % _WORD
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % _WORD
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % _WORD
    mixed ^= mixed >> 31
    uniform = (mixed >> 16 * (draw % 4)) % 65536
    weight, below = 0, math.exp(-1)
    while uniform >= round(65536 * below):
        weight += 1
        below += math.exp(-1) / math.factorial(weight)
    return weight


@pytest.mark.parametrize("seed", [7, 70_000])
def test_weights_and_interval_are_those_of_a_slow_loop(seed):
    rng = random.Random(1)
    ids = [f"q{n}" for n in range(40)] + ["é"]
    moved = [rng.choice([0.0, 0.5, -0.25]) for _ in ids]
    weights = [[slow_weight(one, seed, draw) for one in ids] for draw in range(30)]
    keys = query_keys(map(str.encode, ids), seed)
    assert poisson_weights(keys, range(30)).tolist() == weights
    assert poisson_weights(keys, range(8, 14)).tolist() == weights[8:14]
    means = sorted(sum(w * d for w, d in zip(row, moved, strict=True)) / sum(row) for row in weights)
    found = poisson_bootstrap_interval(moved, ids, 0.9, draws=30, seed=seed)
    # Between the 2nd and 3rd of 30, and the 28th and 29th, by linear interpolation.
    low = means[1] + 0.45 * (means[2] - means[1])
    high = means[27] + 0.55 * (means[28] - means[27])
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12)


def test_weights_have_the_mean_and_variance_of_poisson_and_are_independent():
    keys = query_keys((b"%d" % n for n in range(20_000)), 3)
    weights = poisson_weights(keys, range(40)).astype(float)
    count = weights.size
    assert weights.mean() == pytest.approx(1, abs=4 / math.sqrt(count))
    assert weights.var() == pytest.approx(1, abs=4 * math.sqrt(3 / count))
    for k in range(6):
        share = math.exp(-1) / math.factorial(k)
        error = math.sqrt(share / count)
        assert np.mean(weights == k) == pytest.approx(share, abs=4 * error)
    # 780 pairs of draws, and neighboring queries.
    apart = np.corrcoef(weights) - np.eye(40)
    assert np.abs(apart).max() < 4.5 / math.sqrt(20_000)
    lag = np.corrcoef(weights[:, 1:].ravel(), weights[:, :-1].ravel())[0, 1]
    assert abs(lag) < 4 / math.sqrt(count)


def test_the_interval_is_near_that_of_the_bootstrap_and_mirrored_for_the_negatives():
    rng = np.random.default_rng(2)
    moved = rng.exponential(size=1500) - 0.9
    ids = [str(n) for n in range(1500)]
    found = poisson_bootstrap_interval(moved, ids, draws=4000)
    drawn, by_t = bootstrap_interval(moved), t_interval(moved)
    width = by_t.high - by_t.low
    for other in (drawn, by_t):
        assert abs(found.low - other.low) < 0.06 * width
        assert abs(found.high - other.high) < 0.06 * width
    order = rng.permutation(1500)
    shuffled = poisson_bootstrap_interval(moved[order], [ids[n] for n in order], draws=4000)
    assert shuffled == found
    mirrored = poisson_bootstrap_interval(-moved, ids, draws=4000)
    assert (mirrored.low, mirrored.high) == (-found.high, -found.low)


def test_equal_differences_have_no_width_and_ids_must_fit():
    found = poisson_bootstrap_interval([0.5, 0.5], ["a", "b"])
    assert (found.low, found.high) == (0.5, 0.5)
    with pytest.raises(InputError, match="2 differences and 1 query ids"):
        poisson_bootstrap_interval([0.5, 0.0], ["a"])
    with pytest.raises(InputError, match="3 query ids, of which 2 differ"):
        poisson_bootstrap_interval([0.5, 0.0, 0.1], ["a", "b", "a"])
    with pytest.raises(InputError, match="surrogate"):
        poisson_bootstrap_interval([0.5, 0.0], ["a", "\ud800"])


def test_ids_may_be_text_numbers_or_bytes_and_seeds_of_any_size():
    moved, ids = [0.5, 0.0, 0.25], range(3)
    by_text = poisson_bootstrap_interval(moved, map(str, ids))
    assert poisson_bootstrap_interval(moved, ids, seed=np.int64(0)) == by_text
    assert poisson_bootstrap_interval(moved, [b"0", b"1", b"2"]) == by_text
    large = [poisson_bootstrap_interval(moved, ids, seed=2**600 + n) for n in range(2)]
    assert large[0].mean == large[1].mean == 0.25


def test_an_interval_without_a_draw_that_has_a_query_is_undefined():
    seed = next(s for s in range(99) if not any(slow_weight(q, s, 0) for q in ("a", "b")))
    found = poisson_bootstrap_interval([0.5, 0.0], ["a", "b"], draws=1, seed=seed)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


@pytest.mark.parametrize("differences", [[0.2, 0.0, 0.4], [0.5, 0.5], [0.0, 0.0], [-1.0, 1.0]])
def test_moments_give_the_t_test_and_interval_of_the_values(differences):
    count = len(differences)
    mean = sum(differences) / count
    sd = math.sqrt(sum((d - mean) ** 2 for d in differences) / (count - 1))
    by_values, by_moments = t_test(differences), t_test_from_moments(mean, sd, count)
    assert by_moments.p == pytest.approx(by_values.p, rel=1e-9)
    both = t_interval(differences), t_interval_from_moments(mean, sd, count)
    assert both[0].low == pytest.approx(both[1].low, rel=1e-9)


def test_t_at_a_hundred_million_queries_is_normal():
    assert student_t_quantile(0.975, 10**8 - 1) == pytest.approx(NormalDist().inv_cdf(0.975))
    for z in (0.01, 1.0, 3.0, 6.0):
        found = t_test_from_moments(z / 10_000, 1.0, 10**8)
        assert found.p == pytest.approx(math.erfc(z / math.sqrt(2)), rel=1e-5)

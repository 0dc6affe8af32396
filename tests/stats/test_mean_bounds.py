"""Lower bounds of means: verified with Clopper and Pearson's, by drawing, and by coverage."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom, skew, t

from rankgauge.errors import InputError
from rankgauge.stats.mean_bounds import mean_lower_bound, weighted_mean_cdf
from rankgauge.stats.paired_tests import t_interval


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


def test_few_changed_values_need_a_lowest_one():
    values = [0.1, *[0.0] * 30]
    assert mean_lower_bound(values) == -math.inf
    assert mean_lower_bound(values, lowest=-1.0) == pytest.approx(-0.088, abs=0.002)
    # What the measure cannot lose, it will not.
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
    # Losses from a lognormal distribution, on a share of the queries; the t bound fails in 10-20%.
    rng = np.random.default_rng([queries, int(100 * share)])
    pool = -np.clip(rng.lognormal(-3, 1, 20_000), 0, 1)
    above = changed = 0
    for _ in range(1000):
        lost = rng.random(queries) < share
        values = np.where(lost, rng.choice(pool, queries), 0.0)
        changed += bool(lost.any())
        above += bool(lost.any()) and mean_lower_bound(values, lowest=-1.0) > share * pool.mean()
    assert above <= 0.05 * changed + 3 * math.sqrt(0.05 * 0.95 * changed)


def by_drawing(values, lowest, draws=200_000):
    """The bound from its definition: weights drawn, SciPy's skewness and quantile of t."""
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

"""Ratios over clusters, from definitions and by simulation."""

import math

import numpy as np
import pytest
from docs_scripts import docs_script
from scipy import optimize, stats as scipy_stats

from rankgauge.errors import InputError
from rankgauge.stats import ClusterSums, clustered_mean, clustered_proportion

# Hits and items of clusters: beta-binomial.
drawn = docs_script("online_metrics").drawn


def test_variance_is_that_of_the_residuals_of_clusters():
    rng = np.random.default_rng(3)
    hits, items = drawn(rng, clusters=30, rate=0.3, correlation=0.2, size=5)
    ratio = sum(hits) / sum(items)
    squares = sum((y - ratio * x) ** 2 for y, x in zip(hits, items, strict=True))
    sums = ClusterSums.of(hits, items)
    assert sums.variance == pytest.approx(30 / 29 * squares / sum(items) ** 2, rel=1e-12)


def test_variance_agrees_with_statsmodels_for_least_squares_on_clusters():
    api = pytest.importorskip("statsmodels.api")
    hits, items = drawn(np.random.default_rng(4), clusters=40, rate=0.4, correlation=0.3, size=4)
    values = np.concatenate([[1] * y + [0] * (x - y) for y, x in zip(hits, items, strict=True)])
    groups = np.repeat(np.arange(40), items)
    fit = api.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}
    )
    expected = fit.bse[0] ** 2 * 40 / 39
    assert ClusterSums.of(hits, items).variance == pytest.approx(expected, rel=1e-9)


def test_the_interval_is_wilson_s_with_the_t_quantile_and_effective_items():
    sums = ClusterSums.of([2, 0, 1, 3, 0, 2], [4, 1, 2, 3, 5, 3])
    found = clustered_proportion(sums)
    n, t = sums.x / sums.design_effect, scipy_stats.t.ppf(0.975, 5)

    def beyond(p):
        return abs(sums.ratio - p) - t * math.sqrt(p * (1 - p) / n)

    assert found.low == pytest.approx(optimize.brentq(beyond, 1e-9, sums.ratio), abs=1e-9)
    assert found.high == pytest.approx(optimize.brentq(beyond, sums.ratio, 1 - 1e-9), abs=1e-9)


@pytest.mark.parametrize(
    ("hits", "items"),
    [
        ([4, 0, 3, 0, 1, 0, 0, 2], [5, 4, 3, 6, 9, 1, 2, 2]),
        ([9, 8, 9, 6, 5, 9], [9, 9, 9, 9, 5, 9]),  # fewer misses than hits
        ([2, 2, 2, 2, 1, 2], [4, 4, 4, 4, 4, 4]),  # less spread than independent items
    ],
)
def test_the_design_effect_is_that_of_its_definition(hits, items):
    pairs = list(zip(hits, items, strict=True))
    ratio = sum(hits) / sum(items)
    squares = sum((y - ratio * x) ** 2 for y, x in pairs)
    variance = squares / sum(items) ** 2 * len(items) / (len(items) - 1)
    observed = max(1, variance / (ratio * (1 - ratio) / sum(items)))
    alike = sum(x**2 for x in items) / sum(items)
    misses = [x - y for y, x in pairs]
    weight = min(sum(each) ** 2 / sum(n**2 for n in each) for each in (hits, misses))
    wanted = (weight * observed + alike) / (weight + 1)
    assert ClusterSums.of(hits, items).design_effect == pytest.approx(wanted, rel=1e-12)


def test_users_with_one_item_each_count_as_independent_items():
    sums = ClusterSums.of([1] * 30 + [0] * 70, [1] * 100)
    assert sums.design_effect == pytest.approx(1, abs=0.02)


def test_without_a_hit_the_clusters_are_what_counts():
    few = clustered_proportion(ClusterSums.of([0] * 20, [100] * 20))
    t2 = scipy_stats.t.ppf(0.975, 19) ** 2
    assert few.value == few.low == 0
    assert few.high == pytest.approx(t2 / (20 + t2))
    all_hits = clustered_proportion(ClusterSums.of([100] * 20, [100] * 20))
    assert (all_hits.low, all_hits.high) == pytest.approx((1 - few.high, 1))


@pytest.mark.parametrize(
    ("y", "x", "reason"),
    [
        ([], [], "nothing to count"),
        ([0], [0], "nothing to count"),
        ([1], [2], "a single cluster: the spread is unknown"),
    ],
)
def test_a_single_cluster_has_no_interval(y, x, reason):
    for found in (f(ClusterSums.of(y, x)) for f in (clustered_proportion, clustered_mean)):
        assert found.reason == reason
        assert math.isnan(found.low)
        assert math.isnan(found.high)


def test_a_mean_without_spread_has_no_interval():
    found = clustered_mean(ClusterSums.of([0.1, 0.2, 0.3], [1, 2, 3]))
    assert found.value == pytest.approx(0.1)
    assert found.reason == "all values are equal"


@pytest.mark.parametrize("values", [[1, 4, 2, 2, 9], [100, 101, 100, 101, 101, 100]])
def test_the_interval_of_a_mean_of_one_item_each_is_student_s(values):
    found = clustered_mean(ClusterSums.of(values, [1] * len(values)), level=0.9)
    wanted = scipy_stats.t.interval(0.9, len(values) - 1, np.mean(values), scipy_stats.sem(values))
    assert (found.low, found.high) == pytest.approx(wanted)
    assert found.reason == ""


def test_a_mean_stays_within_its_bounds():
    sums = ClusterSums.of([1, 2, 9, 1], [1, 2, 2, 1])
    assert clustered_mean(sums).low < 1
    assert clustered_mean(sums, bounds=(1, math.inf)).low == 1
    assert clustered_mean(sums).high > 4.5
    assert clustered_mean(sums, bounds=(1, 4.5)).high == 4.5


@pytest.mark.parametrize(("y", "x"), [([1], [1, 2]), ([1], [-1]), ([1], [math.nan])])
def test_sums_that_do_not_fit_are_refused(y, x):
    with pytest.raises(InputError, match="do not match"):
        ClusterSums.of(y, x)


def test_more_hits_than_items_are_refused():
    with pytest.raises(InputError, match="3 hits of 2 items"):
        clustered_proportion(ClusterSums.of([1, 2], [1, 1]))


@pytest.mark.parametrize("correlation", [0, 0.3, 0.5])
@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_the_interval_covers_the_rate_at_its_level(rate, correlation):
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(400):
        draw = drawn(rng, clusters=200, rate=rate, correlation=correlation, size=4)
        found = clustered_proportion(ClusterSums.of(*draw))
        covered += found.low <= rate <= found.high
    assert 0.92 <= covered / 400 <= 0.99


def test_the_mean_s_interval_covers_at_its_level():
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(400):
        items = rng.geometric(0.25, 100)
        sums = rng.normal(2, 1, 100) * items + rng.normal(0, 1, 100) * np.sqrt(items)
        found = clustered_mean(ClusterSums.of(sums, items))
        covered += found.low <= 2 <= found.high
    assert 0.92 <= covered / 400 <= 0.98

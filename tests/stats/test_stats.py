"""Statistics compared with SciPy and statsmodels, by simulation, and their invariances."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import integrate as scipy_integrate, stats as scipy_stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from rankgauge import stats
from rankgauge.core import native
from rankgauge.errors import InputError, UnknownName
from rankgauge.stats import arrays

RNG_SEED = 20_260
SMALL = [0.2, 0.0, 0.4, 0.0, 0.1, -0.3, 0.25, 0.15]
COLUMNS = [
    stats.t_interval,
    stats.t_test,
    stats.wilcoxon,
    stats.bootstrap_interval,
    stats.randomization_test,
    stats.max_t,
    lambda given: stats.non_inferiority(given, 0.02),
]
TABLES = [stats.randomization_test, stats.max_t, stats.tukey_hsd]


def normal(*shape, seed=RNG_SEED, mean=0.0):
    return np.random.default_rng(seed).normal(mean, 1.0, size=shape)


def precision_like(queries, columns, seed=RNG_SEED):
    """Return differences of P@5: sums of fifths, each with its own rounding error."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 6, (queries, columns)) / 5 - rng.integers(0, 6, (queries, columns)) / 5


def band(rejected, experiments, rate=0.05):
    """Return whether a count of false positives is in its 99.9% binomial band."""
    low, high = scipy_stats.binom.interval(0.999, experiments, rate)
    return low <= rejected <= high


# ---- Student's t


@pytest.mark.parametrize("df", [1, 2, 3.5, 10, 99, 100, 101, 1_000, 1_000_000])
def test_the_t_distribution_is_scipys(df):
    for t in (0.0, 1e-6, 0.01, 0.7, 1.0, 2.0, 5.0, 40.0):
        expected = scipy_stats.t.cdf(-t, df)
        assert stats.student_t_cdf(-t, df) == pytest.approx(expected, rel=2e-9, abs=1e-300)
        assert stats.student_t_cdf(t, df) == pytest.approx(1 - expected, rel=1e-10)
    for share in (1e-9, 0.025, 0.4, 0.5, 0.6, 0.995):
        expected = scipy_stats.t.ppf(share, df)
        assert stats.student_t_quantile(share, df) == pytest.approx(expected, rel=1e-8, abs=1e-15)


def test_with_one_degree_of_freedom_it_is_cauchys():
    # SciPy is off by 1e-11 near 0 here.
    for t in (-1e6, -3.0, -1e-6, 0.0, 1e-6, 0.3, 20.0):
        expected = 0.5 + math.atan(t) / math.pi
        assert stats.student_t_cdf(t, 1) == pytest.approx(expected, rel=1e-13, abs=1e-15)


def test_the_t_distribution_has_its_ends():
    assert stats.student_t_cdf(math.inf, 3) == 1
    assert stats.student_t_cdf(-math.inf, 3) == 0
    for t, df in ((math.nan, 3), (1, 0), (1, math.inf)):
        with pytest.raises(InputError, match="df"):
            stats.student_t_cdf(t, df)


# ---- one column


@pytest.mark.parametrize("queries", [2, 5, 50, 1_000])
def test_the_t_test_and_its_interval_are_scipys(queries):
    differences = normal(queries, mean=0.1)
    expected = scipy_stats.ttest_rel(differences, np.zeros(queries))
    found = stats.t_test(differences)
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    low, high = expected.confidence_interval(0.9)
    interval = stats.t_interval(differences, 0.9)
    assert (interval.low, interval.high) == pytest.approx((low, high))


@pytest.mark.parametrize("differences", [normal(5), normal(50), normal(51), precision_like(40, 1)])
def test_wilcoxon_is_scipys(differences):
    differences = np.round(differences.ravel(), 12)
    tied = len(np.unique(np.abs(differences))) < len(differences)
    expected = scipy_stats.wilcoxon(differences, method="approx" if tied or len(differences) > 50 else "exact")
    found = stats.wilcoxon(differences)
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))


def test_wilcoxon_in_the_middle_of_the_distribution_has_p_1():
    # Of 16 sign patterns of the ranks 1 to 4, 9 have a sum of 5 or less.
    found = stats.wilcoxon([0.1, -0.2, -0.3, 0.4])
    assert (found.statistic, found.p, found.exact) == (5.0, 1.0, True)


def test_wilcoxon_treats_rounding_differences_as_ties():
    rounded = stats.wilcoxon([0.3, -0.3, 0.5, 0.7])
    assert stats.wilcoxon([0.1 + 0.2, -0.3, 0.5, 0.7]) == rounded
    assert not rounded.exact


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_the_bootstrap_is_scipys_within_monte_carlo_error(method):
    differences = np.random.default_rng(1).exponential(size=60) - 0.5
    expected = scipy_stats.bootstrap(
        (differences,), np.mean, n_resamples=20_000, method=method, random_state=1
    ).confidence_interval
    found = stats.bootstrap_interval(differences, draws=20_000, method=method)
    error = 0.04 * (expected.high - expected.low)
    assert found.low == pytest.approx(expected.low, abs=error)
    assert found.high == pytest.approx(expected.high, abs=error)
    assert found == stats.bootstrap_interval(differences, draws=20_000, method=method)


def test_bounds_are_at_least_those_of_a_one_sided_t_test():
    differences = normal(30, mean=-0.1) / 10
    found = stats.non_inferiority(differences, 0.2, 0.9, lowest=-1.0, highest=1.0)
    below = scipy_stats.ttest_1samp(differences, 0, alternative="less")
    assert found.p_worse > below.pvalue
    assert found.upper > below.confidence_interval(0.99).high
    assert found.lower < found.lower_unless_rare == stats.mean_lower_bound(differences, 0.9, -1.0)
    assert found.not_inferior == (found.lower > -0.2)
    unbounded = stats.non_inferiority(differences, 0.2)
    assert (unbounded.lower, unbounded.upper, unbounded.p_worse) == (-math.inf, math.inf, 1.0)


@pytest.mark.parametrize("queries", [2, 7, 300])
def test_identical_systems_have_p_1_and_no_width(queries):
    same = np.zeros(queries)
    assert stats.t_test(same).p == stats.wilcoxon(same).p == 1
    assert stats.t_test(same).statistic == 0
    for interval in (stats.t_interval(same), stats.bootstrap_interval(same, method="bca")):
        assert (interval.mean, interval.low, interval.high) == (0, 0, 0)
    bounds = stats.non_inferiority(same, 0.02, lowest=-1.0, highest=1.0)
    mirrored = stats.non_inferiority(same, 0.02, 0.99, lowest=-1.0)
    assert (bounds.upper, bounds.not_inferior) == (-mirrored.lower, queries > 150)
    assert bounds.p_worse >= 0.5
    for test in TABLES:
        assert (test(np.zeros((queries, 3)), draws=50).p == 1).all()


def test_equal_differences_have_no_spread_even_after_rounding():
    for column in ([0.2, 0.2, 0.2], [0.2, 0.3 - 0.1, 0.6 - 0.4]):
        assert stats.t_interval(column).high - stats.t_interval(column).low == 0
        assert (stats.t_test(column).statistic, stats.t_test(column).p) == (math.inf, 0)
        assert stats.randomization_test(column).p.tolist() == [0.25]


# ---- draws, one by one


@pytest.fixture(params=[True, False], ids=["core", "plain"])
def _core(request, monkeypatch):
    """Let the compiled core draw, or NumPy."""
    if not request.param:
        monkeypatch.setattr(native, "core", None)
    elif native.core is None:
        pytest.skip("the compiled core was not built")


def sign(seed, query, draw):
    """Return a bit of SplitMix64 (Steele, Lea, and Flood 2014), whose state is a keyed hash of the query."""
    key = hashlib.blake2b(b"%d" % query, key=bytes([seed]), digest_size=8).digest()
    word = int.from_bytes(key, "little") + (draw // 64 + 1) * 0x9E3779B97F4A7C15 & 2**64 - 1
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
    word = (word ^ word >> 27) * 0x94D049BB133111EB & 2**64 - 1
    return 1 - 2 * ((word ^ word >> 31) >> draw % 64 & 1)


@pytest.mark.usefixtures("_core")
@pytest.mark.parametrize(("queries", "columns", "draws"), [(17, 1, 63), (32, 2, 64), (41, 9, 65), (70, 17, 130)])
def test_signs_are_those_of_a_loop(queries, columns, draws):
    rng = np.random.default_rng(RNG_SEED)
    table = (rng.integers(1, 60, (queries, columns)) * rng.choice([-1, 1], (queries, columns))).tolist()
    reached = [1] * columns
    for draw in range(draws):
        signs = [sign(7, query, draw) for query in range(queries)]
        for column in range(columns):
            flipped = sum(row[column] * flip for row, flip in zip(table, signs, strict=True))
            reached[column] += abs(flipped) >= abs(sum(row[column] for row in table))
    found = stats.randomization_test(table, draws=draws, seed=7)
    assert found.p.tolist() == [count / (draws + 1) for count in reached]


@pytest.mark.parametrize("systems", [2, 3, 4, 5, 8, 9, 17])
def test_permutations_are_those_of_a_loop(systems):
    values, draws = np.random.default_rng(systems).integers(0, 50, (13, systems)), 150
    rng = np.random.Generator(np.random.PCG64(11))
    ranges = []
    for _ in range(draws):
        sums = sum(rng.permuted(row) for row in values)
        ranges.append(max(sums) - min(sums))
    means = values.sum(axis=0).tolist()
    found = stats.tukey_hsd(values, draws=draws, seed=11)
    assert found.p.tolist() == [
        [(sum(width >= abs(a - b) for width in ranges) + 1) / (draws + 1) for b in means] for a in means
    ]


@pytest.mark.parametrize("queries", [2, 3, 40, 700])
def test_resamples_are_those_of_a_loop(queries):
    values, draws, level = np.random.default_rng(queries).exponential(size=queries) - 0.7, 120, 0.9
    rng, normal_cdf = np.random.Generator(np.random.PCG64(5)), scipy_stats.norm
    means = sorted(math.fsum(values[n] for n in rng.integers(queries, size=queries)) / queries for _ in range(draws))

    def quantile(share):
        place = share * (draws - 1)
        below = means[math.floor(place)]
        return below + (place - math.floor(place)) * (means[math.ceil(place)] - below)

    found = stats.bootstrap_interval(values, level, draws, seed=5)
    assert (found.low, found.high) == pytest.approx((quantile(0.05), quantile(0.95)), rel=1e-9)
    # Efron (1987), with the jackknife.
    mean = math.fsum(values) / queries
    left_out = [mean - (math.fsum(values) - value) / (queries - 1) for value in values]
    skew = math.fsum(x**3 for x in left_out) / (6 * math.fsum(x**2 for x in left_out) ** 1.5)
    below = sum((m < mean - 1e-12) + (m <= mean + 1e-12) for m in means) / 2 / draws
    bias = normal_cdf.ppf(below)
    shares = [bias + normal_cdf.ppf(share) for share in (0.05, 0.95)]
    ends = [quantile(normal_cdf.cdf(bias + z / (1 - skew * z))) for z in shares]
    found = stats.bootstrap_interval(values, level, draws, seed=5, method="bca")
    assert (found.low, found.high) == pytest.approx(tuple(ends), rel=1e-9)


# ---- randomization tests


@pytest.mark.parametrize("differences", [normal(11, mean=0.4), precision_like(12, 1)[:, 0]])
def test_few_differences_go_through_all_patterns_as_scipy_does(differences):
    expected = scipy_stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=np.inf)
    found = stats.randomization_test(differences)
    assert found.exact.all()
    assert found.p[0] == pytest.approx(expected.pvalue, abs=1e-12)


@pytest.mark.parametrize("discrete", [True, False])
def test_drawn_patterns_come_near_the_t_test_and_all_patterns(discrete):
    table = precision_like(18, 30) if discrete else normal(18, 30)
    table[table == 0] = 0.2
    found = stats.randomization_test(table, draws=20_000)
    assert not found.exact.any()
    signs = 1 - 2 * ((np.arange(1 << 18)[:, None] >> np.arange(18)) & 1)
    sums = np.abs(signs @ table)
    expected = (sums >= np.abs(table.sum(axis=0)) - 1e-9).mean(axis=0)
    assert np.abs(found.p - expected).max() < 4.5 * math.sqrt(0.25 / 20_000)


@pytest.mark.parametrize("queries", [6, 30])
def test_max_t_is_the_largest_t_of_the_same_patterns(queries):
    table = precision_like(queries, 4) + 0.2
    found = stats.max_t(table, draws=4_000)
    observed = np.abs(scipy_stats.ttest_1samp(table, 0).statistic)
    if queries == 6:
        signs = np.array(list(itertools.product([1, -1], repeat=6)))
    else:
        signs = np.random.default_rng(8).choice([1, -1], (4_000, queries))
    flipped = signs[:, :, None] * table
    spread = flipped.std(axis=1, ddof=1) / math.sqrt(queries)
    with np.errstate(divide="ignore"):
        largest = np.abs(flipped.mean(axis=1) / spread).max(axis=1)
    expected = (largest[:, None] >= observed - 1e-9).mean(axis=0)
    assert found.exact.all() == (queries == 6)
    assert found.p == pytest.approx(expected, abs=1e-12 if queries == 6 else 0.04)
    alone = stats.randomization_test(table, draws=4_000).p
    assert (found.p >= alone - 0.02).all()


def test_tukey_hsd_is_near_all_permutations():
    values = np.array([[0.9, 0.4, 0.2], [0.6, 0.6, 0.1], [0.8, 0.3, 0.4], [0.5, 0.5, 0.5]])
    orders = [list(order) for order in itertools.permutations(range(3))]
    ranges = []
    for chosen in itertools.product(orders, repeat=3):
        sums = sum(row[order] for row, order in zip(values[:3], chosen, strict=True))
        ranges.append(sums.max() - sums.min())
    sums = values.sum(axis=0)
    apart = np.abs(sums[:, None] - sums)
    expected = (np.array(ranges) >= apart[:, :, None] - 1e-9).mean(axis=2)
    found = stats.tukey_hsd(values, draws=20_000)
    assert found.p == pytest.approx(expected, abs=0.015)
    assert (found.p == found.p.T).all()


@pytest.mark.parametrize("test", TABLES)
def test_p_is_never_0_and_a_seed_repeats_it(test):
    values = normal(40, 3) + np.array([0, 5, 50])
    first, again = (test(values, draws=200, seed=1) for _ in range(2))
    assert first.p.tolist() == again.p.tolist()
    assert (first.p >= 1 / 201).all()
    assert (first.p <= 1).all()
    assert first.p.min() == 1 / 201
    noise = normal(40, 3)
    assert test(noise, draws=200, seed=1).p.tolist() != test(noise, draws=200, seed=2).p.tolist()


@pytest.mark.parametrize("test", TABLES)
@pytest.mark.parametrize("table", [normal(30, 4), precision_like(30, 4), precision_like(9, 4)])
def test_scale_sign_blocks_and_tied_queries_do_not_matter(test, table, monkeypatch):
    expected = test(table, draws=300, seed=5).p.tolist()
    for factor in (2.0**-40, 8.0, -1.0):
        assert test(table * factor, draws=300, seed=5).p.tolist() == expected
    tied = np.insert(table, [0, 3, 3, 9], 0.0, axis=0)
    assert test(tied, draws=300, seed=5).p.tolist() == expected
    monkeypatch.setattr(arrays, "_CELLS", 1_000)
    assert test(table, draws=300, seed=5).p.tolist() == expected


@pytest.mark.parametrize("test", [stats.randomization_test, stats.max_t])
def test_the_order_of_columns_does_not_matter(test):
    table, order = precision_like(40, 5), [3, 1, 4, 0, 2]
    p, turned = test(table, draws=300).p, test(table[:, order], draws=300).p
    assert turned.tolist() == p[order].tolist()


def test_the_bootstrap_does_not_depend_on_blocks(monkeypatch):
    expected = stats.bootstrap_interval(SMALL, draws=500, method="bca")
    monkeypatch.setattr(arrays, "_CELLS", 100)
    assert stats.bootstrap_interval(SMALL, draws=500, method="bca") == expected


@given(st.lists(st.sampled_from([-0.6, -0.2, 0.1 + 0.2, 0.2, 0.0]), min_size=2, max_size=24))
def test_discrete_differences_tie_as_their_whole_numbers_do(column):
    whole = np.round(np.multiply(column, 10))
    for test in (stats.randomization_test, stats.max_t):
        assert test(column, draws=200).p.tolist() == test(whole, draws=200).p.tolist()


THREADS = """
import numpy as np
from rankgauge import stats
rng = np.random.default_rng(7)
table = (rng.integers(0, 6, (700, 60)) - rng.integers(0, 6, (700, 60))) / 5
print(stats.randomization_test(table, draws=2000).p.tolist())
print(stats.max_t(table, draws=2000).p.tolist())
print(stats.tukey_hsd(table[:, :4], draws=100).p.tolist())
print(stats.bootstrap_interval(table[:, 0], draws=1000, method="bca"))
"""


def test_the_number_of_threads_does_not_matter():
    said = set()
    for threads in ("1", "2"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = os.environ | dict.fromkeys(names, threads)
        ran = subprocess.run(
            [sys.executable, "-c", THREADS], env=environment, check=True, capture_output=True, text=True
        )
        said.add(ran.stdout)
    assert len(said) == 1


MEMORY = r"""
import re
import numpy as np
from rankgauge import stats
stats.randomization_test(np.random.default_rng(0).normal(size=(1000, 500)))
print(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_bounded_by_blocks():
    # Not ru_maxrss, which a child process inherits from its parent.
    ran = subprocess.run([sys.executable, "-c", MEMORY], check=True, capture_output=True, text=True)
    assert int(ran.stdout) < 300_000


# ---- by simulation: no difference, level .05


@pytest.mark.slow
@pytest.mark.parametrize("queries", [20, 50])
@pytest.mark.parametrize("discrete", [True, False])
def test_t_and_randomization_reject_the_true_null_as_often_as_they_say(queries, discrete):
    table = precision_like(queries, 2_000) if discrete else normal(queries, 2_000)
    by_t = sum(stats.t_test(column).p <= 0.05 for column in table.T)
    assert band(by_t, 2_000)
    by_flips = int((stats.randomization_test(table, draws=1_999).p <= 0.05).sum())
    assert band(by_flips, 2_000)
    assert abs(by_t - by_flips) <= 40


@pytest.mark.slow
def test_max_t_and_tukey_hsd_keep_the_error_of_the_family():
    rng = np.random.default_rng(RNG_SEED)
    max_t = hsd = uncorrected = 0
    one, other = np.triu_indices(4, 1)
    for seed in range(700):
        values = rng.normal(size=(20, 1)) + rng.normal(size=(20, 4))
        differences = values[:, 1:] - values[:, :1]
        max_t += stats.max_t(differences, draws=399, seed=seed).p.min() <= 0.05
        hsd += stats.tukey_hsd(values, draws=399, seed=seed).p.min() <= 0.05
        pairs = values[:, one] - values[:, other]
        uncorrected += stats.randomization_test(pairs, draws=399, seed=seed).p.min() <= 0.05
    assert band(max_t, 700)
    assert band(hsd, 700)
    assert uncorrected > 2 * hsd


@pytest.mark.slow
@pytest.mark.parametrize("queries", [20, 50])
@pytest.mark.parametrize("discrete", [True, False])
def test_the_t_interval_covers_as_often_as_it_says(queries, discrete):
    table = precision_like(queries, 2_000) if discrete else normal(queries, 2_000)
    intervals = [stats.t_interval(column) for column in table.T]
    assert 0.93 <= sum(found.low <= 0 <= found.high for found in intervals) / 2_000 <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_the_bootstrap_covers_a_little_too_little_at_50_queries(method):
    intervals = [
        stats.bootstrap_interval(column, draws=599, seed=seed, method=method)
        for seed, column in enumerate(normal(50, 2_000).T)
    ]
    assert 0.92 <= sum(found.low <= 0 <= found.high for found in intervals) / 2_000 <= 0.96


# ---- corrections


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_corrections_are_those_of_statsmodels(given_p):
    for correct, name in ((stats.holm, "holm"), (stats.bonferroni, "bonferroni"), (stats.benjamini_hochberg, "fdr_bh")):
        assert correct(given_p) == pytest.approx(multipletests(given_p, method=name)[1], abs=1e-12)


# ---- power


# Not for 1,000 queries with 0.3 or more, where statsmodels returns NaN.
@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize(
    ("queries", "difference"), [*itertools.product([3, 5, 20, 50], [0.0, 0.05, 0.3, -1.0]), (1_000, 0.0), (1_000, 0.05)]
)
def test_power_is_that_of_statsmodels(queries, difference, alpha):
    expected = TTestPower().power(difference, queries, alpha)
    ours = stats.power(1.0, queries, difference, alpha)
    if expected > 0.999:
        # Near 1, the noncentral t of older scipy returns exactly 1; there the integral below
        # decides.
        assert ours > 0.999
    else:
        assert ours == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("queries", "difference"), [(3, 0.3), (5, 1.0), (20, 1.0), (50, -1.0), (1_000, 0.05)])
def test_power_is_the_integral_over_the_standard_deviations_that_may_be_seen(queries, difference):
    df, shift = queries - 1, difference * math.sqrt(queries)
    critical = scipy_stats.t.ppf(0.995, df)

    def beyond(share: float) -> float:
        edge = critical * math.sqrt(scipy_stats.chi2.ppf(share, df) / df)
        return scipy_stats.norm.sf(edge - shift) + scipy_stats.norm.cdf(-edge - shift)

    expected, _ = scipy_integrate.quad(beyond, 0, 1, epsabs=1e-10, limit=500)
    assert stats.power(1.0, queries, difference, 0.01) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("effect", [0.05, 0.3, 1.0])
def test_sizes_are_those_of_statsmodels(effect):
    fractional = TTestPower().solve_power(effect, alpha=0.05, power=0.8)
    assert stats.queries_needed(0.1, 0.1 * effect) == math.ceil(fractional)
    queries = stats.queries_needed(0.1, -0.1 * effect)
    assert stats.power(0.1, queries, 0.1 * effect) >= 0.8
    assert stats.power(0.1, queries - 1, 0.1 * effect) < 0.8


@pytest.mark.parametrize("queries", [2, 5, 50, 1_000])
def test_the_detectable_difference_has_its_power(queries):
    found = stats.detectable_difference(0.1, queries)
    noncentral, df = found / 0.1 * math.sqrt(queries), queries - 1
    critical = scipy_stats.t.ppf(0.975, df)
    assert scipy_stats.nct.sf(critical, df, noncentral) == pytest.approx(0.8, abs=1e-6)


def test_the_planning_sd_is_that_of_a_chi_square_variance():
    # Given s² ~ v chi²(df) / df, the mean of v is s² df / (df - 2), with df = 2 (n - 1) / (k - 1).
    df = 2 * 24 / (6 - 1)
    expected, _ = scipy_integrate.quad(lambda x: df / x * scipy_stats.chi2.pdf(x, df), 0, math.inf)
    assert stats.planning_sd(0.1, 25) == pytest.approx(0.1 * math.sqrt(expected))
    assert [stats.planning_sd(0.1, n) for n in (2, 6)] == [math.inf, math.inf]
    assert stats.planning_sd(0.0, 2) == 0
    assert stats.planning_sd(0.1, 10**6) == pytest.approx(0.1, rel=1e-5)


@pytest.mark.parametrize("changed", [0.02, 0.2, 0.7])
def test_few_queries_that_differ_become_more_for_a_larger_difference(changed):
    found = stats.detectable_difference(0.1, 50, changed=changed)
    assert stats.power(0.1, 50, found, changed=changed) == pytest.approx(0.8, abs=1e-6)
    share = min(1.0, math.hypot(changed, found * math.sqrt(changed) / 0.1))
    sd = 0.1 * math.sqrt(share / changed)
    assert found == pytest.approx(stats.detectable_difference(sd, 50))


def test_without_spread_any_difference_is_seen():
    assert stats.power(0.0, 5, 0.1) == 1
    assert stats.power(0.0, 5, 0.0) == 0
    assert stats.detectable_difference(0.0, 5) == 0
    assert stats.queries_needed(0.0, 0.1) == 2


# ---- seeds


def test_a_seed_comes_from_numbers_and_shape():
    assert stats.seed_of([1, 2]) == stats.seed_of(np.array([1.0, 2.0])) < 2**32
    assert stats.seed_of([1, 2]) == stats.seed_of(np.array([[1, 0], [2, 0]])[:, 0])
    assert stats.seed_of([1, 2]) != stats.seed_of([[1, 2]])
    assert stats.seed_of([1, 2]) != stats.seed_of([1], [2])


# ---- invalid input


@pytest.mark.parametrize("function", COLUMNS)
@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([0.1, math.nan, 0.2], "nan at index 1"),
        ([0.1, math.inf], "inf at index 1"),
        ([0.1, -1e200], "index 1"),
        ([], "no (differences|values)"),
        ([0.1], "one query"),
        (["a", "b"], "not numbers"),
        ([[0.1], [0.2, 0.3]], "not numbers"),
        ([[[0.1]], [[0.2]]], "3 dimensions"),
    ],
)
def test_bad_differences_are_refused_with_position_and_fix(function, column, message):
    with pytest.raises(InputError, match=message) as caught:
        function(column)
    assert caught.value.where
    assert caught.value.fix


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.t_interval(SMALL, 1.0), "level=1.0"),
        (lambda: stats.t_interval(SMALL, math.nan), "level=nan"),
        (lambda: stats.t_test([SMALL, SMALL]), "2 dimensions"),
        (lambda: stats.bootstrap_interval(SMALL, 95), "level=95"),
        (lambda: stats.bootstrap_interval(SMALL, draws=-7), "draws=-7"),
        (lambda: stats.non_inferiority(SMALL, -0.1), "margin=-0.1"),
        (lambda: stats.non_inferiority(SMALL, 0.1, level=0), "level=0"),
        (lambda: stats.randomization_test(SMALL, draws=0), "draws=0"),
        (lambda: stats.randomization_test(SMALL, draws=1.5), "draws=1.5"),
        (lambda: stats.randomization_test(SMALL, seed=-1), "seed=-1"),
        (lambda: stats.max_t(SMALL, draws=True), "draws=True"),
        (lambda: stats.tukey_hsd(SMALL), "one system"),
        (lambda: stats.tukey_hsd([[1, 2], [1, 3]], draws=-1), "draws=-1"),
        (lambda: stats.holm([]), "no p-values"),
        (lambda: stats.bonferroni([1.1]), "from 0 to 1"),
        (lambda: stats.benjamini_hochberg([0.1, math.nan]), "nan at index 1"),
        (lambda: stats.power(-1, 5, 0.1), "sd=-1"),
        (lambda: stats.power(1, 1, 0.1), "queries=1"),
        (lambda: stats.power(1, 5, math.nan), "difference=nan"),
        (lambda: stats.power(1, 5, 0.1, alpha=5), "alpha=5"),
        (lambda: stats.power(1, math.nan, 0.1), "queries=nan"),
        (lambda: stats.queries_needed(1, 0.0), "difference=0.0"),
        (lambda: stats.queries_needed(1, 1e-9), "more than"),
        (lambda: stats.queries_needed(1, 0.1, power=0.01), "not above alpha"),
        (lambda: stats.detectable_difference(1, 5, power=1), "power=1"),
        (lambda: stats.student_t_quantile(0, 5), "probability=0"),
    ],
)
def test_bad_settings_are_refused_with_a_fix(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert caught.value.where
    assert caught.value.fix


def test_an_unknown_method_is_refused():
    with pytest.raises(UnknownName, match="percentile, bca"):
        stats.bootstrap_interval(SMALL, method="magic")

"""Agreement: published examples, slow loops from the definitions, statsmodels, simulation."""

import itertools
import math

import numpy as np
import pytest
from statsmodels.stats.inter_rater import aggregate_raters, cohens_kappa, fleiss_kappa

from rankgauge.errors import InputError, UnknownName
from rankgauge.stats import cohen_kappa, krippendorff_alpha, percent_agreement, units_needed

NAN = math.nan
# Krippendorff (2011), "Computing Krippendorff's alpha-reliability", section C: observers in rows.
PAPER = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T
BINARY = [[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]
LETTERS = ["aabbdcccedda", "babbbcccedddd"[:12]]


def slow_alpha(table, metric):
    """Return alpha from the coincidence matrix and the difference functions of the paper."""
    units = [[x for x in row if not math.isnan(x)] for row in table]
    units = [unit for unit in units if len(unit) > 1]
    values = sorted({x for unit in units for x in unit})
    together = dict.fromkeys(itertools.product(values, repeat=2), 0.0)
    for unit in units:
        for a, b in itertools.permutations(range(len(unit)), 2):
            together[unit[a], unit[b]] += 1 / (len(unit) - 1)
    of = {v: sum(together[v, w] for w in values) for v in values}
    n = sum(of.values())

    def difference(c, k):
        if metric == "nominal":
            return float(c != k)
        if metric == "interval":
            return (c - k) ** 2
        low, high = sorted((c, k))
        return (sum(of[g] for g in values if low <= g <= high) - (of[c] + of[k]) / 2) ** 2

    observed = sum(together[c, k] * difference(c, k) for c, k in together)
    expected = sum(of[c] * of[k] * difference(c, k) for c, k in together) / (n - 1)
    return 1 - observed / expected


def ratings(seed, units=30, raters=4, values=4, missing=0.3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, values, (units, 1))
    table = np.where(rng.random((units, raters)) < 0.5, truth, rng.integers(0, values, (units, 1)))
    table = np.where(rng.random(table.shape) < 0.2, rng.integers(0, values, table.shape), table)
    return np.where(rng.random(table.shape) < missing, NAN, table.astype(float))


@pytest.mark.parametrize(("metric", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_worked_example_is_that_of_the_paper(metric, printed):
    found = krippendorff_alpha(PAPER, metric)
    assert round(found.value, 3) == printed
    assert (found.units, found.ratings) == (11, 40)
    assert found.low < found.value <= found.high


def test_alpha_of_two_observers_is_that_of_the_paper():
    assert krippendorff_alpha(np.transpose(BINARY)).value == pytest.approx(0.095, abs=5e-4)
    codes = [[ord(letter) for letter in line] for line in LETTERS]
    assert krippendorff_alpha(np.transpose(codes)).value == pytest.approx(0.692, abs=5e-4)


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
def test_alpha_is_that_of_the_coincidence_matrix(metric):
    for seed in range(20):
        table = ratings(seed, units=5 + seed, raters=2 + seed % 4) ** (1 + seed % 2)
        wanted = slow_alpha(table.tolist(), metric)
        assert krippendorff_alpha(table, metric, draws=0).value == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
def test_the_bootstrap_draws_whole_units(metric):
    """The same resamples, each passed to the slow loop."""
    table = ratings(3, units=12, missing=0.1)
    found = krippendorff_alpha(table, metric, draws=200, seed=5)
    drawn = np.random.default_rng(5).multinomial(12, np.full(12, 1 / 12), size=200)
    slow = [slow_alpha(np.repeat(table, counts, axis=0).tolist(), metric) for counts in drawn]
    assert [found.low, found.high] == pytest.approx(np.quantile(slow, [0.025, 0.975]))


def test_interval_alpha_keeps_its_digits_far_from_zero():
    table = ratings(1)
    near = krippendorff_alpha(table, "interval", draws=0).value
    assert krippendorff_alpha(table + 1e7, "interval", draws=0).value == pytest.approx(near)


@pytest.mark.parametrize(("weights", "theirs"), [("none", None), ("linear", "linear"), ("quadratic", "quadratic")])
def test_kappa_is_that_of_statsmodels(weights, theirs):
    for seed in range(10):
        pairs = ratings(seed, raters=2, missing=0)
        table = np.zeros((4, 4))
        for a, b in pairs.astype(int):
            table[a, b] += 1
        wanted = cohens_kappa(table, wt=theirs, return_results=False)
        assert cohen_kappa(*pairs.T, weights, draws=0).value == pytest.approx(wanted)


def test_kappa_leaves_out_what_one_rater_did_not_rate():
    found = cohen_kappa([0, 1, 1, 2, NAN, 0], [0, 1, 2, 2, 1, NAN])
    assert found.value == cohen_kappa([0, 1, 1, 2], [0, 1, 2, 2]).value
    assert (found.units, found.ratings) == (4, 8)


def test_weighted_kappa_takes_the_distance_of_grades_that_nobody_used():
    """Grades 0, 1, 3: the distance between 1 and 3 is 2, although no 2 was given."""
    first, second = [0, 1, 3, 3, 0], [0, 3, 3, 1, 1]
    apart = sum(abs(a - b) for a, b in zip(first, second, strict=True)) / 5
    chance = sum(abs(a - b) for a in first for b in second) / 25
    assert cohen_kappa(first, second, "linear", draws=0).value == pytest.approx(1 - apart / chance)


def test_percent_agreement_is_the_observed_agreement_of_fleiss():
    """Fleiss' kappa = (P - Pe) / (1 - Pe), solved for P."""
    table = ratings(2, missing=0)
    counts, _ = aggregate_raters(table.astype(int))
    chance = ((counts.sum(axis=0) / counts.sum()) ** 2).sum()
    wanted = fleiss_kappa(counts) * (1 - chance) + chance
    assert percent_agreement(table, draws=0).value == pytest.approx(wanted)


def test_undefined_values_say_why():
    equal = krippendorff_alpha([[1, 1], [1, 1]])
    assert not equal.defined
    assert equal.reason == "all ratings are equal, so expected agreement is also perfect"
    assert percent_agreement([[1, 1], [1, 1]]).value == 1
    assert not cohen_kappa([1, 1], [1, 1]).defined
    for alone in (
        krippendorff_alpha([[1, NAN], [NAN, 2]]),
        cohen_kappa([1, NAN], [NAN, 1]),
        krippendorff_alpha(np.empty((0, 2))),
    ):
        assert alone.reason == "no unit has two ratings"
        assert not alone.defined
    single = krippendorff_alpha([[1, 2]])
    assert single.defined
    assert single.reason == "one unit: no interval"


def test_an_interval_is_withheld_where_many_resamples_are_undefined():
    rare = [[1, 1]] * 9 + [[1, 2]]
    found = krippendorff_alpha(rare)
    assert found.defined
    assert math.isnan(found.low)
    assert "of 1000 resamples" in found.reason


def test_equal_seeds_give_equal_intervals():
    table = ratings(7)
    assert krippendorff_alpha(table, seed=1) == krippendorff_alpha(table, seed=1)
    assert krippendorff_alpha(table, seed=1) != krippendorff_alpha(table, seed=2)


def test_the_order_of_raters_does_not_matter():
    table = ratings(8)
    assert krippendorff_alpha(table[:, ::-1]) == krippendorff_alpha(table)


@pytest.mark.slow
def test_raters_who_guess_have_an_alpha_of_0():
    rng = np.random.default_rng(9)
    for none in (0.1, 0.5, 0.85):
        values = [
            krippendorff_alpha(
                np.where(rng.random((150, 3)) < none, -1, rng.integers(0, 3, (150, 3))).astype(float), draws=0
            ).value
            for _ in range(200)
        ]
        assert abs(np.mean(values)) < 0.01


@pytest.mark.parametrize("bad", [[1, 2], [["a", "b"]], [[1, 2], [3]], [[math.inf, 1]]])
def test_an_invalid_table_of_ratings_is_refused(bad):
    with pytest.raises(InputError, match=r"not a table of numbers|infinite"):
        krippendorff_alpha(bad)


def test_bad_settings_are_refused():
    with pytest.raises(UnknownName, match="metric='ratio'"):
        krippendorff_alpha(PAPER, "ratio")
    with pytest.raises(UnknownName, match="weights='cubic'"):
        cohen_kappa([1, 2], [1, 2], "cubic")
    with pytest.raises(InputError, match="must be two rows of numbers"):
        cohen_kappa([1, 2], [1])
    with pytest.raises(InputError, match="draws=-1"):
        krippendorff_alpha(PAPER, draws=-1)


@pytest.mark.parametrize(("alpha", "none"), [(0.5, 0.4), (0.2, 0.8), (0.0, 0.25)])
def test_with_the_units_needed_intervals_have_the_width_asked_for(alpha, none):
    """The spread of alpha over simulated studies of this size."""
    shares = np.array([none, *[(1 - none) / 3] * 3])
    units = units_needed(0.1, shares, alpha)
    rng = np.random.default_rng(7)
    first, second = (rng.choice(4, (1000, units), p=shares) for _ in range(2))
    pairs = np.stack([first, np.where(rng.random(first.shape) < alpha, first, second)], axis=2)
    found = [krippendorff_alpha(study.astype(float), draws=0).value for study in pairs]
    assert 1.96 * np.std(found) == pytest.approx(0.1, rel=0.06)
    assert np.mean(found) == pytest.approx(alpha, abs=0.01)


def test_impossible_targets_of_agreement_are_refused():
    with pytest.raises(InputError, match="half_width=0"):
        units_needed(0, [0.5, 0.5])
    for shares, alpha in (([1.0], 0.5), ([0.5, 0.5], 1.0), ([-1.0, 2.0], 0.5)):
        with pytest.raises(InputError, match="is not valid"):
            units_needed(0.1, shares, alpha)

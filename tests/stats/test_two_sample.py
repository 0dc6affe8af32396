"""The classifier two-sample test: verified with slow loops, scikit-learn, and by simulation."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from rankgauge.errors import InputError
from rankgauge.stats.two_sample import LabelScores, area_under_curve, middle_ranks, nearest


def sample(seed=0, n=60, ours=20, shift=0.0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) < ours
    return rng.normal(size=(n, 4)) * [3, 1, 1, 0.5] + shift * labels[:, None], labels


def slow_area(scores, labels, groups):
    """Return the share of correctly ordered pairs within groups, pair by pair."""
    won = pairs = 0.0
    for group in groups:
        for one in group:
            for other in group:
                if labels[one] and not labels[other]:
                    pairs += 1
                    won += (scores[one] > scores[other]) + 0.5 * (scores[one] == scores[other])
    return won / pairs


def test_the_area_is_that_of_a_loop_over_all_pairs_and_of_scikit_learn():
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 6, (40, 3)).astype(float)
    labels = rng.random((40, 3)) < 0.3
    groups = [np.arange(0, 25), np.arange(25, 40)]
    found = area_under_curve(scores, labels, groups)
    for column in range(3):
        wanted = slow_area(scores[:, column], labels[:, column], groups)
        assert found[column] == pytest.approx(wanted, abs=1e-12)
        whole = roc_auc_score(labels[:, column], scores[:, column])
        assert area_under_curve(scores, labels)[column] == pytest.approx(whole, abs=1e-12)


def test_an_area_without_pairs_is_undefined():
    assert np.isnan(area_under_curve(np.ones((3, 1)), np.ones((3, 1), dtype=bool))[0])


@pytest.mark.parametrize(("distinct", "low", "high"), [(0, 0, 0), (50, 0.1, 0.25), (100, 0.35, 0.5), (200, 0.9, 1)])
def test_the_share_apart_is_the_part_of_the_first_sample_where_the_other_one_is_rare(distinct, low, high):
    rng = np.random.default_rng(5)
    points = rng.normal(size=(700, 3))
    points[:distinct, 0] += 6
    assert low <= LabelScores(points).test(np.arange(700) < 200, 19).apart <= high


def test_a_third_that_only_the_other_sample_has_is_not_apart():
    points = np.random.default_rng(6).normal(size=(900, 3))
    points[700:, 0] += 6
    test = LabelScores(points).test(np.arange(900) < 300, 99)
    assert (test.p, test.apart) == (0.01, 0)


def test_equal_values_share_the_mean_of_their_ranks():
    ranks = middle_ranks(np.array([[2.0, 1.0], [2.0, 3.0], [1.0, 2.0], [2.0, 0.0]]))
    assert ranks.T.tolist() == [[3, 3, 1, 3], [2, 4, 3, 1]]


def test_linear_scores_are_those_of_ridge_regression_fitted_without_the_fold():
    points, labels = sample(shift=0.7)
    scores = LabelScores(points, seed=3)
    scaled = (points - points.mean(axis=0)) / points.std(axis=0)
    ordered, y = scaled[scores.order], labels[scores.order].astype(float)
    wanted = np.empty(len(y))
    for fold in scores.folds:
        others = np.setdiff1d(np.arange(len(y)), fold)
        model = Ridge(alpha=len(others)).fit(ordered[others], y[others])
        wanted[fold] = model.predict(ordered[fold]) - y[others].mean()
    found = scores.scores(labels[scores.order])[0]
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    slow = slow_area(np.round(wanted, 10), y > 0, scores.folds)
    assert scores.test(labels, 19).areas[0].value == pytest.approx(slow, abs=1e-12)


def test_neighbor_scores_count_labels_of_the_ten_nearest_by_brute_force():
    points, labels = sample(5)
    scores = LabelScores(points, seed=5)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    found = np.empty(len(points))
    found[scores.order] = scores.scores(labels[scores.order])[1]
    for row in range(len(points)):
        near = sorted(
            (other for other in range(len(points)) if other != row),
            key=lambda other, row=row: -float(unit[row] @ unit[other]),
        )
        assert found[row] == labels[near[:10]].sum()
    assert nearest(points, 3).shape == (60, 3)


def test_a_point_is_not_its_own_neighbor_beyond_the_first_block_of_rows():
    points = np.random.default_rng(6).normal(size=(1100, 5))
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    found = nearest(points, 4)
    for row in (0, 500, 999, 1000, 1050, 1099):
        near = np.argsort(-(unit @ unit[row]))
        assert near[0] == row
        assert sorted(found[row]) == sorted(near[1:5])


def slow_test(scores, labels, permutations, seed):
    """Return areas, standardized values, and the p-value, by looping over permutations."""
    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    drawn = [labels, *(rng.permutation(labels) for _ in range(permutations))]
    areas = np.array([[scores.areas(each[:, None])[row, 0] for each in drawn] for row in (0, 1)])
    spread = areas.std(axis=1, keepdims=True)
    z = (areas - areas.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, np.inf)
    largest = z.max(axis=0)
    return areas, z, (largest >= largest[0] - 1e-9).sum() / (permutations + 1)


@pytest.mark.parametrize("few", [False, True])
def test_the_p_value_and_its_standardization_include_the_observed_labels(few):
    points, labels = sample(1, n=12, ours=4) if few else sample(7, shift=0.5)
    if few:  # with two distinct points, permutations reach the same area
        points = np.sign(points[:, :1]) * [1, 1] + [3, 0]
    scores = LabelScores(points, 0)
    test = scores.test(labels, permutations=39, seed=2)
    areas, z, p = slow_test(scores, labels, 39, 2)
    assert test.p == pytest.approx(p)
    assert test.z == pytest.approx(z[:, 0].tolist())
    assert test.p_values(areas[:, :1]) == pytest.approx([test.p])


def test_the_interval_has_the_larger_standard_error_of_delong_and_the_permutations():
    points, labels = sample(9, n=80, ours=30, shift=0.5)
    scores = LabelScores(points, 1)
    ours = labels[scores.order]
    share = scores.scores(ours)[1]
    below = [np.mean([(one > other) + 0.5 * (one == other) for other in share[~ours]]) for one in share[ours]]
    above = [np.mean([(one > other) + 0.5 * (one == other) for one in share[ours]]) for other in share[~ours]]
    test = scores.test(labels, 19)
    error = np.sqrt(np.var(below, ddof=1) / 30 + np.var(above, ddof=1) / 50)
    half = 1.959964 * max(error, test.spread[1])
    area = test.areas[1]
    assert area.value == pytest.approx(np.mean(below))
    assert (area.low, area.high) == pytest.approx((area.value - half, area.value + half), abs=1e-6)


def delong(scores, labels, groups):
    """Return the variance of the area within groups (DeLong et al. 1988), pair by pair."""
    pairs = variance = 0.0
    for group in groups:
        ours = [scores[n] for n in group if labels[n]]
        theirs = [scores[n] for n in group if not labels[n]]
        wins = np.array([[(a > b) + 0.5 * (a == b) for b in theirs] for a in ours])
        parts = wins.mean(axis=1), wins.mean(axis=0)
        pairs += wins.size
        variance += wins.size**2 * sum(np.var(part, ddof=1) / len(part) for part in parts)
    return variance / pairs**2


def test_intervals_are_those_of_delong_where_permutations_vary_less():
    points, labels = sample(9, n=80, ours=30, shift=0.2)
    scores = LabelScores(points, 1)
    # For one permutation and the observed labels, areas may be nearly equal by chance.
    tests = [scores.test(labels, 1, seed) for seed in range(20)]
    for row, group in enumerate((scores.folds, [np.arange(80)])):
        test = min(tests, key=lambda each, row=row: each.spread[row])
        of = scores.scores(labels[scores.order])[row]
        error = np.sqrt(delong(of, labels[scores.order], group))
        assert error > test.spread[row]
        area, half = test.areas[row], 1.959964 * error
        assert (area.low, area.high) == pytest.approx((max(0, area.value - half), min(1, area.value + half)), rel=1e-5)


def test_permutations_without_a_pair_in_a_fold_have_an_area_of_one_half():
    """Folds of 10 points have 2 of one sample; a permutation may put both into the same fold."""
    labels = np.arange(10) < 2
    points = np.random.default_rng(0).normal(size=(10, 2)) + 9 * labels[:, None]
    scores = LabelScores(points)
    same = np.zeros(10, dtype=bool)
    same[scores.order[scores.folds[0]]] = True
    assert scores.areas(same[:, None])[0, 0] == 0.5
    test = scores.test(labels, permutations=199)
    assert np.isfinite([*test.z, *test.center, *test.spread]).all()
    assert test.p == pytest.approx(slow_test(scores, labels, 199, 0)[2])


def test_the_classifier_with_the_larger_standardized_area_decides():
    tests, labels = [], np.arange(60) < 20
    for seed in range(6):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(60, 4)) + 0.3 * labels[:, None]
        tests.append(LabelScores(points, seed).test(labels, 39))
    # The larger area is not always the more extreme one.
    assert any(np.argmax(test.z) != np.argmax([a.value for a in test.areas]) for test in tests)


def test_the_same_seed_gives_the_same_test():
    points, labels = sample(11)
    first, second = (LabelScores(points, 4).test(labels, 99, 4) for _ in range(2))
    assert (first.p, first.areas, first.z) == (second.p, second.areas, second.z)


@pytest.mark.parametrize("ours", [6, 54])
def test_false_alarms_are_rare_with_unequal_sizes_and_equal_points(ours):
    p = []
    for seed in range(120):
        rng = np.random.default_rng([13, seed])
        points = rng.normal(size=(60, 3))
        points[20:] = points[rng.integers(0, 20, 40)]  # many are equal
        labels = rng.permutation(60) < ours
        p.append(LabelScores(points, seed).test(labels, 39, seed).p)
    assert np.mean(np.array(p) <= 0.05) <= 0.12  # 0.05 plus 3.5 standard errors


def test_points_that_are_all_equal_show_no_difference():
    test = LabelScores(np.ones((30, 2))).test(np.arange(30) < 10, 19)
    assert test.p > 0.05
    assert test.areas[0].value == 0.5


def test_samples_without_a_common_point_are_found_whatever_the_sizes():
    for ours in (5, 50, 95):
        labels = np.arange(100) < ours
        points = np.random.default_rng(1).normal(size=(100, 2)) + 9 * labels[:, None] * [1, -1]
        assert LabelScores(points).test(labels, 99).p == 0.01


def test_a_difference_within_groups_is_distinguished_from_one_between_them():
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 2, 400)
    points = rng.normal(size=(400, 2)) + 6 * groups[:, None] * [1, 0]
    between = rng.random(400) < np.where(groups, 0.9, 0.1)
    scores = LabelScores(points)
    assert scores.test(between, 19).areas[0].value > 0.8
    assert scores.area_within(between, groups) == pytest.approx(0.5, abs=0.08)
    # Only points of the same fold have scores from the same fit.
    cells = [[n for n in fold if groups[scores.order[n]] == name] for fold in scores.folds for name in (0, 1)]
    slow = slow_area(scores.scores(between[scores.order])[0], between[scores.order], cells)
    assert scores.area_within(between, groups) == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("labels", [np.ones(30, bool), np.zeros(30, bool), np.ones(29, bool)])
def test_labels_of_one_sample_are_refused(labels):
    with pytest.raises(InputError, match="some True and some False"):
        LabelScores(np.eye(30)).test(labels)


def test_few_points_are_refused():
    with pytest.raises(InputError, match="9 points are too few"):
        LabelScores(np.eye(9))

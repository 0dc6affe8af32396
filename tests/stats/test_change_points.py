"""Changes of a rate over days, compared with slow loops and simulations."""

import math
from itertools import pairwise

import numpy as np
import pytest

from rankgauge.errors import InputError
from rankgauge.stats import DailySums, different_week, find_change_points, first_change, linear_trend, student_t_cdf


def largest_split(y, x):
    """Return the split with the largest shift, from its definition."""
    ratio, whole = sum(y) / sum(x), sum(x)
    shifts = {}
    for k in range(3, len(y) - 2):
        size, left = sum(x[:k]), sum(a - ratio * b for a, b in zip(y[:k], x[:k], strict=True))
        shifts[k] = abs(left) / math.sqrt(size * (whole - size))
    return max(shifts, key=shifts.get)


def self_normalized(left, x):
    """Return the largest squared shift divided by the fluctuation on both sides, by loops."""
    count, shifts = len(left), []
    for k in range(3, count - 2):
        inside = 0.0
        for part, size in ((left[:k], x[:k]), (left[k:][::-1], x[k:][::-1])):
            total, under = sum(part), sum(size)
            for t in range(1, len(part) + 1):
                inside += (sum(part[:t]) - sum(size[:t]) / under * total) ** 2
        shifts.append(sum(left[:k]) ** 2 / inside)
    return max(shifts)


def users(rates, *, count=80, often=1, seed=0):
    """Return sums by user and day with these rates."""
    x = np.full((count, len(rates)), often)
    return DailySums.of(np.random.default_rng(seed).binomial(x, rates), x)


def test_without_users_the_p_value_is_that_of_correlated_noise():
    rng = np.random.default_rng(8)
    x = rng.integers(10, 60, 70).astype(float)
    y = rng.binomial(x.astype(int), [0.2] * 40 + [0.27] * 30)
    ratio = y.sum() / x.sum()
    observed = self_normalized((y - ratio * x).tolist(), x.tolist())
    reached = 0
    for _ in range(400):
        noise = [rng.standard_normal()]
        for _ in range(69):
            noise.append(0.85 * noise[-1] + math.sqrt(1 - 0.85**2) * rng.standard_normal())
        noise = np.array(noise) * np.sqrt(x)
        reached += self_normalized((noise - noise.sum() / x.sum() * x).tolist(), x.tolist()) >= observed
    assert 0.01 < reached / 400 < 0.5
    assert first_change(DailySums.of(y, x)) == pytest.approx(reached / 400, abs=0.06)


def test_with_users_the_p_value_is_also_that_of_random_signs():
    """A few users cause the change, so the signs of users explain it more often than correlated days."""
    rng = np.random.default_rng(3)
    y, x = np.zeros((9, 20)), np.ones((9, 20))
    y[:4, 9:] = 1
    sums = DailySums.of(y, x)
    left = sums.residuals
    draws = []
    for signs in [np.ones(9), *rng.choice([-1, 1], (3000, 9))]:
        moved = signs[:, None] * left
        shifts = []
        for k in range(3, 18):
            part = abs(moved[:, :k].sum() - k / 20 * moved.sum()) / math.sqrt(k / 20 * (1 - k / 20))
            shifts.append(part)
        draws.append(max(shifts))
    p = np.mean(np.array(draws[1:]) >= draws[0] * (1 - 1e-9))
    assert 0.05 < p < 0.3
    assert first_change(sums) == pytest.approx(p, abs=0.03)
    assert first_change(DailySums.of(np.repeat(y, 30, axis=0), np.repeat(x, 30, axis=0))) < 0.01


def test_a_change_is_where_the_statistic_is_largest():
    sums = users([0.15] * 11 + [0.4] * 9)
    (found,) = find_change_points(sums)
    y, x = sums.y.sum(axis=0).tolist(), sums.size.tolist()
    assert found.index == largest_split(y, x) == 11
    assert found.before == pytest.approx(sum(y[:11]) / sum(x[:11]))
    assert found.after == pytest.approx(sum(y[11:]) / sum(x[11:]))


def test_a_later_change_has_its_own_place():
    sums = users([0.1] * 20 + [0.45] * 20 + [0.9] * 20, often=5)
    found = find_change_points(sums)
    assert [change.index for change in found] == [20, 40]
    for change, (start, end) in zip(found, pairwise([0, 20, 40]), strict=True):
        assert change.before == pytest.approx(sums.y[:, start:end].sum() / sums.x[:, start:end].sum())


def test_days_without_a_denominator_are_left_out_but_keep_their_distance():
    x = [[1] * 10 + [0, 0] + [1] * 10] * 60
    y = [[(user + day) % 10 < (1 if day < 12 else 5) for day in range(22)] for user in range(60)]
    y = np.array(y) * np.array(x)
    sums = DailySums.of(y, x)
    assert sums.days.tolist() == [*range(10), *range(12, 22)]
    assert [change.index for change in find_change_points(sums)] == [10]


@pytest.mark.parametrize(
    ("sums", "why"),
    [
        (users([0.2] * 7), "fewer than 8 days"),
        (DailySums.of([9] * 63, [20] * 63), "fewer than 10 weeks, and users are unknown"),
        (DailySums.of([[9] * 63], [[20] * 63]), "fewer than 10 weeks, and users are unknown"),
    ],
)
def test_too_few_days_or_unknown_users_withhold_the_test(sums, why):
    assert why in sums.withheld
    assert math.isnan(first_change(sums))
    assert find_change_points(sums) == ()
    assert linear_trend(sums) is None
    assert different_week(sums) is None


def test_equal_rates_have_no_change():
    for sums in (DailySums.of(np.full((9, 40), 0.3), np.full((9, 40), 3)), DailySums.of([0] * 80, [3] * 80)):
        assert first_change(sums) == 1
        assert linear_trend(sums).change == 0


@pytest.mark.parametrize(("users", "high"), [(3, 1), (60, 0.1), (600, 0.01)])
def test_equal_rates_exclude_only_changes_that_users_would_show(users, high):
    trend = linear_trend(DailySums.of(np.zeros((users, 60)), np.ones((users, 60))), bounds=(0, 1))
    assert (trend.change, trend.p) == (0, 1)
    assert (-trend.low, trend.high) == pytest.approx((high, high), rel=0.01)


def test_the_line_is_that_of_weighted_least_squares():
    api = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(9)
    x = rng.integers(1, 9, (30, 12))
    y, days = rng.binomial(x, 0.3), np.arange(12) * 7
    sizes = x.sum(axis=0)
    fit = api.WLS(y.sum(axis=0) / sizes, api.add_constant(days), weights=sizes).fit()
    found = linear_trend(DailySums.of(y, x, days))
    assert found.change == pytest.approx(fit.params[1] * 77)
    assert found.low < found.change < found.high


def test_a_line_of_few_users_is_as_uncertain_as_they_are():
    y, x = np.zeros((40, 20)), np.ones((40, 20))
    y[:3] = np.linspace(0, 1, 20)
    few = linear_trend(DailySums.of(y, x))
    assert few.low < 0 < few.high
    assert few.p > 0.05
    many = linear_trend(DailySums.of(np.tile(y, (20, 1)), np.tile(x, (20, 1))))
    assert 0 < many.low < many.change == pytest.approx(few.change)
    assert many.p < 0.01


def test_the_change_of_a_rate_is_at_most_one():
    sums = DailySums.of([[0, 0, 0, 0, 1, 1, 1, 1]] * 9, [[1] * 8] * 9)
    assert (linear_trend(sums, bounds=(0, 1)).change, linear_trend(sums, bounds=(0, 1)).high) == (1, 1)
    assert linear_trend(sums).change > 1


def test_a_week_is_compared_with_the_spread_of_the_others():
    sums = users([0.15] * 21 + [0.2] * 7 + [0.15] * 28, count=60, seed=4)
    y, x = sums.y.sum(axis=0).reshape(8, 7).sum(axis=1), sums.size.reshape(8, 7).sum(axis=1)
    p = []
    for week in range(8):
        others = [n for n in range(8) if n != week]
        rate = sum(y[others]) / sum(x[others])
        spread = math.sqrt(sum((y[n] - rate * x[n]) ** 2 / x[n] for n in others) / 6)
        t = (y[week] - rate * x[week]) / math.sqrt(x[week] * (1 + x[week] / sum(x[others]))) / spread
        p.append(min(1, 16 * student_t_cdf(-abs(t), 6)))
    found = different_week(sums)
    assert found.p >= min(p)
    assert (found.week, found.weeks) == (3, 8)
    assert found.sums.ratio == pytest.approx(y[3] / x[3])
    assert found.others == pytest.approx((sum(y) - y[3]) / (sum(x) - x[3]))


def test_a_week_that_one_user_causes_does_not_differ():
    y, x = np.zeros((60, 56)), np.ones((60, 56))
    y[:, ::9] = 1
    y[0, 28:35], x[0, 28:35] = 40, 40
    assert different_week(DailySums.of(y, x)).p > 0.3
    y[:40, 28:35], x[:40, 28:35] = 1, 1
    assert different_week(DailySums.of(y, x)).p < 0.01


def test_weeks_begin_at_multiples_of_seven():
    rates = [0.1] * 30 + [0.6] * 7 + [0.1] * 20
    sums = users(rates)
    shifted = DailySums.of(sums.y, sums.x, np.arange(57) + 5)
    found = different_week(shifted)
    assert (found.week, found.weeks) == (5, 9)
    assert found.sums.x == 7 * 80
    assert different_week(DailySums.of(sums.y[:, :28], sums.x[:, :28])) is None


@pytest.mark.parametrize(("y", "x"), [([1], [1, 2]), ([1], [-1]), ([[[1]]], [[[1]]])])
def test_days_that_do_not_fit_are_refused(y, x):
    with pytest.raises(InputError, match="do not match"):
        DailySums.of(y, x)


def without_change(rng, kind, days):
    """Return sums by user and day of questions without a change."""
    start = rng.integers(-9, days, 150)[:, None]
    stays = (np.arange(days) >= start) & (np.arange(days) < start + 10)
    own = rng.normal(-2, 1.2, (150, 1)) if kind == "returning users" else np.full((150, 1), -2.0)
    x = np.concatenate([rng.poisson(stays * 4.0), rng.multinomial(20 * days, np.full(days, 1 / days), 1)])
    shared = [rng.standard_normal()]
    for _ in range(days - 1):
        shared.append(0.6 * shared[-1] + 0.8 * rng.standard_normal())
    spread = 0.0 if kind == "returning users" else 0.4
    logits = np.append(own, [[-2]], axis=0) + spread * np.array(shared)
    return rng.binomial(x, 1 / (1 + np.exp(-logits))), x


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["returning users", "days correlated by 0.6"])
@pytest.mark.parametrize(("known", "days"), [(True, 28), (True, 56), (False, 84)])
def test_false_changes_are_as_rare_as_published(kind, known, days):
    rng, alarms = np.random.default_rng([len(kind), days]), np.zeros(3)
    for _ in range(150):
        y, x = without_change(rng, kind, days)
        sums = DailySums.of(y, x) if known else DailySums.of(y.sum(axis=0), x.sum(axis=0))
        week = different_week(sums, draws=199)
        p = [first_change(sums, draws=199), week.p if week else 1.0, linear_trend(sums, draws=199).p]
        alarms += np.array(p) <= 0.05
    assert (alarms / 150 <= 0.115).all(), alarms  # .08 plus two standard errors


@pytest.mark.slow
def test_planted_changes_are_found_as_often_as_published():
    rng, shifts, weeks = np.random.default_rng(5), 0, 0
    for _ in range(60):
        x = rng.poisson(100 / 7 / 80, (80, 182))
        y = rng.binomial(x, np.where(np.arange(182) < 91, 0.065, 0.13))
        shifts += first_change(DailySums.of(y.sum(axis=0), x.sum(axis=0)), draws=199) <= 0.05
        x = rng.poisson(200 / 7 / 80, (80, 56))
        inside = np.arange(56) // 7 == rng.integers(8)
        week = different_week(DailySums.of(rng.binomial(x, np.where(inside, 0.255, 0.065)), x), draws=199)
        weeks += week.p <= 0.025 and week.week == inside.argmax() // 7
    assert shifts >= 48
    assert weeks >= 48

"""Changes of a rate over time, compared with slow loops and simulations."""

import itertools
import math
import random

import numpy as np
import pytest

from rankgauge.errors import InputError
from rankgauge.stats import find_change_points, first_change, linear_trend


def largest(y, x):
    """Return the largest shift, from its definition."""
    ratio, whole = sum(y) / sum(x), sum(x)
    left = [a - ratio * b for a, b in zip(y, x, strict=True)]
    found = []
    for k in range(3, len(y) - 2):
        size = sum(x[:k])
        gap = sum(left[:k]) - sum(left) * size / whole
        found.append((abs(gap) / math.sqrt(size * (whole - size) / whole), k))
    return max(found)


def p_value(y, x, draws, seed):
    """Return the share of shuffled periods whose largest shift reaches the observed one."""
    rng = random.Random(seed)
    ratio = sum(y) / sum(x)
    scaled = [(a - ratio * b) / math.sqrt(b) for a, b in zip(y, x, strict=True)]
    reached = 0
    for _ in range(draws):
        rng.shuffle(scaled)
        drawn = [ratio * b + z * math.sqrt(b) for z, b in zip(scaled, x, strict=True)]
        # Resampled periods have another ratio, which the statistic removes.
        left = [a - ratio * b for a, b in zip(drawn, x, strict=True)]
        whole = sum(x)
        gaps = [
            abs(sum(left[:k]) - sum(left) * sum(x[:k]) / whole) / math.sqrt(sum(x[:k]) * (whole - sum(x[:k])) / whole)
            for k in range(3, len(x) - 2)
        ]
        reached += max(gaps) >= largest(y, x)[0] - 1e-9
    return (1 + reached) / (1 + draws)


def test_the_p_value_is_that_of_a_slow_permutation():
    rng = np.random.default_rng(8)
    x = rng.integers(10, 60, 14)
    y = rng.binomial(x, [0.2] * 9 + [0.32] * 5)
    slow = p_value(y.tolist(), x.tolist(), 800, seed=1)
    assert first_change(y, x, draws=4000) == pytest.approx(slow, abs=0.04)


def exact_p_value(y, x):
    """Return the share of all orders of eight periods that reach the observed shift."""
    ratio, whole = sum(y) / sum(x), sum(x)
    sizes = [math.sqrt(b) for b in x]
    scaled = [(a - ratio * b) / size for a, b, size in zip(y, x, sizes, strict=True)]
    under = list(itertools.accumulate(x))
    splits = [(k, under[k - 1] / whole) for k in (3, 4, 5)]
    spread = [math.sqrt(share * (1 - share) * whole) for _, share in splits]

    def statistic(order):
        left = [z * size for z, size in zip(order, sizes, strict=True)]
        sums = list(itertools.accumulate(left))
        return max(abs(sums[k - 1] - share * sums[-1]) / wide for (k, share), wide in zip(splits, spread, strict=True))

    observed = statistic(scaled)
    reached = [statistic(order) >= observed - 1e-9 for order in itertools.permutations(scaled)]
    return sum(reached) / len(reached)


@pytest.mark.parametrize(
    ("y", "x"),
    [
        ([9, 4, 70, 3, 8, 60, 5, 20], [30, 30, 300, 12, 20, 200, 10, 60]),
        ([30, 2, 25, 3, 12, 1, 9, 1], [200, 9, 150, 8, 40, 3, 30, 2]),
    ],
)
def test_the_p_value_is_that_of_all_orders_of_periods_of_unequal_size(y, x):
    wanted = exact_p_value(y, x)
    error = math.sqrt(wanted * (1 - wanted) / 20_000)
    assert first_change(y, x, draws=20_000) == pytest.approx(wanted, abs=4 * error)


def test_eight_periods_are_enough_and_equal_statistics_count_as_reached():
    """Of 70 ways to place four lower and four higher periods, 2 have this shift."""
    y, x = [1, 1, 1, 1, 9, 9, 9, 9], [17] * 8
    error = math.sqrt(1 / 35 * 34 / 35 / 20_000)
    assert first_change(y, x, draws=20_000) == pytest.approx(1 / 35, abs=4 * error)
    assert [change.index for change in find_change_points(y, x)] == [4]


def test_the_observed_order_counts_as_one_of_the_permutations():
    y, x = [1, 2] * 6 + [19, 18] * 6, [20] * 24
    assert first_change(y, x, draws=99) == 0.01
    assert [change.index for change in find_change_points(y, x, draws=99, alpha=0.01)] == [12]


def test_no_split_leaves_fewer_than_three_periods():
    y, x = [5] * 10 + [60, 60], [100] * 12
    assert largest(y, x)[1] == 9
    assert [change.index for change in find_change_points(y, x, alpha=0.99)] == [9]


def test_a_later_change_has_its_own_place_and_rates_weight_periods_by_size():
    x = [100, 300, 50, 100, 200, 100, 80, 120, 90, 110] * 3
    rates = [0.1, 0.12] * 5 + [0.6, 0.62] * 5 + [0.72, 0.74] * 5
    y = [round(rate * size) for rate, size in zip(rates, x, strict=True)]
    found = find_change_points(y, x)
    assert [change.index for change in found] == [10, 20]
    for change, start, end in zip(found, (0, 10), (20, 30), strict=True):
        assert change.before == pytest.approx(sum(y[start : start + 10]) / 1250)
        assert change.after == pytest.approx(sum(y[end - 10 : end]) / 1250)


def test_a_change_is_where_the_statistic_is_largest():
    x = [40] * 20
    y = [6, 5, 7, 6, 6, 5, 7, 6, 6, 7, 5, 14, 15, 13, 14, 16, 13, 14, 15, 14]
    (found,) = find_change_points(y, x)
    assert found.index == largest(y, x)[1] == 11
    assert found.before == pytest.approx(sum(y[:11]) / 440)
    assert found.after == pytest.approx(sum(y[11:]) / 360)


def test_two_changes_are_found():
    x = [50] * 30
    y = [5, 6, 4, 5, 6] * 2 + [15, 16, 14, 15, 15] * 2 + [5, 4, 6, 5, 5] * 2
    assert [change.index for change in find_change_points(y, x)] == [10, 20]


def test_periods_without_a_denominator_are_left_out():
    x = [40] * 10 + [0, 0] + [40] * 10
    y = [6, 5, 7, 6, 6, 5, 7, 6, 6, 7, 0, 0, 14, 15, 13, 14, 16, 13, 14, 15, 14, 14]
    assert [change.index for change in find_change_points(y, x)] == [12]


def test_few_periods_have_no_change():
    assert find_change_points([1, 9] * 3, [10] * 6) == ()
    assert math.isnan(first_change([1] * 7, [10] * 7))
    assert first_change([0] * 9, [10] * 9) == 1


def test_the_line_is_that_of_weighted_least_squares():
    api = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(9)
    x, time = rng.integers(5, 80, 12), np.arange(12.0) * 7
    y = rng.binomial(x, 0.3)
    fit = api.WLS(y / x, api.add_constant(time), weights=x).fit()
    found = linear_trend(y, x, time)
    assert found.slope == pytest.approx(fit.params[1])
    assert found.p == pytest.approx(fit.pvalues[1])
    assert (found.low / 77, found.high / 77) == pytest.approx(tuple(fit.conf_int()[1]))


def test_periods_without_a_denominator_keep_their_time_on_the_line():
    y = [1, 0, 2, 3, 3, 6, 5, 7, 9, 0, 8]
    x = [10, 0, 10, 10, 10, 10, 10, 10, 10, 0, 10]
    times = [0, 2, 3, 4, 5, 6, 7, 8, 10]
    slope = np.polyfit(times, [y[time] / 10 for time in times], 1)[0]
    found = linear_trend(y, x)
    assert found.slope == pytest.approx(slope)
    assert found.change == pytest.approx(slope * 10)


def test_seven_periods_have_no_line():
    assert linear_trend([1, 2, 1, 2, 3, 3, 4], [5] * 7) is None
    assert linear_trend([1, 2, 1, 2, 3, 3, 4, 0], [5] * 7 + [0]) is None


def test_the_change_of_a_rate_is_at_most_one():
    rising = linear_trend([0, 0, 0, 0, 1, 1, 1, 1], [1] * 8, bounds=(0, 1))
    free = linear_trend([0, 0, 0, 0, 1, 1, 1, 1], [1] * 8)
    assert (rising.change, rising.high) == (1, 1)
    assert free.change > 1
    assert rising.low == free.low
    falling = linear_trend([1, 1, 1, 1, 0, 0, 0, 0], [1] * 8, bounds=(0, 1))
    assert (falling.change, falling.low, falling.high) == (-1, -1, free.low * -1)


@pytest.mark.parametrize(("y", "x"), [([1], [1, 2]), ([1], [-1])])
def test_periods_that_do_not_fit_are_refused(y, x):
    for function in (find_change_points, linear_trend):
        with pytest.raises(InputError, match="do not match"):
            function(y, x)


@pytest.mark.parametrize("spread", [0, 30])
def test_false_alarms_are_as_rare_as_promised(spread):
    rng = np.random.default_rng(10)
    alarms = 0
    for _ in range(400):
        rates = rng.beta(0.2 * spread, 0.8 * spread, 28) if spread else np.full(28, 0.2)
        x = rng.poisson(60, 28)
        alarms += first_change(rng.binomial(x, rates), x, draws=199) <= 0.05
    assert alarms / 400 <= 0.075  # .05 plus two standard errors

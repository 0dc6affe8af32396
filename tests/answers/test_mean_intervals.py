"""Intervals of means of bounded measures: compared with Clopper-Pearson, and by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from rankgauge import Evaluation
from rankgauge.answers.evaluation import mean_intervals


def interval(values):
    """Return the interval of a measure with these values."""
    queries = [f"q{number}" for number in range(len(values))]
    found = mean_intervals(Evaluation.from_values("a", queries, {"Abstention": list(values)}))
    return found["Abstention"]


@pytest.mark.parametrize(("hits", "count"), [(1, 20), (3, 20), (19, 20), (5, 100), (98, 100)])
def test_bounds_of_few_zeros_or_ones_are_those_of_clopper_and_pearson(hits, count):
    low, high = interval([1.0] * hits + [0.0] * (count - hits))
    exact = stats.binomtest(hits, count).proportion_ci(0.95, "exact")
    if hits < count / 3:
        assert high == pytest.approx(exact.high, abs=1e-3)
    else:
        assert low == pytest.approx(exact.low, abs=1e-3)
    # The other side is the t bound, limited to the range of the measure.
    assert 0.0 <= low < hits / count < high <= 1.0


@pytest.mark.parametrize("values", [[1.0], [0.5, 0.5], [1.0] * 20])
def test_without_spread_there_is_no_interval(values):
    assert all(map(math.isnan, interval(values)))


@pytest.mark.slow
@pytest.mark.parametrize("count", [20, 50])
@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (lambda rng, n: (rng.random(n) < 0.2).astype(float), 0.2),
        (lambda rng, n: (rng.random(n) < 0.9).astype(float), 0.9),
        (lambda rng, n: rng.beta(0.5, 0.5, n), 0.5),
        (lambda rng, n: rng.beta(0.3, 3, n), 0.3 / 3.3),
    ],
    ids=["20%", "90%", "both ends", "skewed"],
)
def test_the_interval_covers_the_true_mean(draw, mean, count):
    rng = np.random.default_rng(7)
    found = [interval(draw(rng, count)) for _ in range(250)]
    shown = [(low, high) for low, high in found if not math.isnan(low)]
    assert len(shown) > 187
    assert sum(low <= mean <= high for low, high in shown) / len(shown) >= 0.93

"""Intervals of proportions: verified with statsmodels, and by solving the score test."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm
from statsmodels.stats.proportion import proportion_confint

from rankgauge.errors import InputError
from rankgauge.stats import wilson_interval


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_the_interval_is_that_of_statsmodels(level):
    trials = np.array([1, 2, 7, 30, 1000])
    for successes in (np.zeros(5), trials // 2, trials):
        wanted = proportion_confint(successes, trials, alpha=1 - level, method="wilson")
        np.testing.assert_allclose(wilson_interval(successes, trials, level), wanted, atol=1e-12)


def test_its_bounds_are_the_proportions_that_a_score_test_just_rejects():
    hits, n = 3, 11
    z = norm.ppf(0.975)
    score = lambda p: (hits / n - p) ** 2 - z**2 * p * (1 - p) / n  # noqa: E731
    low, high = wilson_interval(hits, n)
    assert float(low) == pytest.approx(brentq(score, 1e-9, hits / n), abs=1e-9)
    assert float(high) == pytest.approx(brentq(score, hits / n, 1 - 1e-9), abs=1e-9)


def test_without_trials_everything_is_possible():
    low, high = wilson_interval([0, 0, 5], [0, 5, 5])
    assert (low[0], high[0]) == (0, 1)
    assert low[1] == 0
    assert high[2] == 1


def test_it_covers_about_as_often_as_it_says():
    """Averaged over proportions, where the discreteness of counts evens out."""
    n = 12
    low, high = wilson_interval(np.arange(n + 1), n)
    shares = np.linspace(0.02, 0.98, 400)
    inside = (low <= shares[:, None]) & (shares[:, None] <= high)
    coverage = (binom.pmf(np.arange(n + 1), n, shares[:, None]) * inside).sum(axis=1)
    assert 0.94 < coverage.mean() < 0.965


@pytest.mark.parametrize(("hits", "trials"), [(3, 2), (-1, 2), (1, np.nan), (np.inf, np.inf)])
def test_impossible_counts_are_refused(hits, trials):
    with pytest.raises(InputError, match=r"successes of .* trials are not possible"):
        wilson_interval(hits, trials)

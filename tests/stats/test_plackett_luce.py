"""Plackett-Luce: verified with a generic optimizer, by enumeration, and by simulation."""

import math

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from rankgauge.errors import InputError
from rankgauge.stats import choice_homogeneity, fit_plackett_luce, none_rates, ranking_stages
from rankgauge.stats.plackett_luce import NONE

SETS = [[0, 1, 2], [1, 2, 3], [0, 3, NONE], [2, 3, NONE], [4, NONE, NONE], [0, 1, 4]]
PICKS = [0, NONE, 3, 2, NONE, 1]


def log_posterior(u, sets, picks, *, none=True, sd=3.0, weights=None):
    """Return the log posterior by loops, from the definition."""
    found = -sum(x * x for x in u) / (2 * sd**2)
    for i, (members, pick) in enumerate(zip(sets, picks, strict=True)):
        terms = [math.exp(u[m]) for m in members if m != NONE] + ([1.0] if none else [])
        of_pick = 1.0 if pick == NONE else math.exp(u[pick])
        found += (weights[i] if weights else 1.0) * math.log(of_pick / sum(terms))
    return found


def draw(u, sets, rng):
    """Return one choice from each set, with the probabilities of the model."""
    picks = []
    for members in sets:
        powers = np.append(np.exp(u[members]), 1.0)
        at = rng.choice(len(powers), p=powers / powers.sum())
        picks.append(members[at] if at < len(members) else NONE)
    return picks


@pytest.mark.parametrize("sd", [1.0, 3.0, 10.0])
def test_the_mode_is_that_of_a_generic_optimizer(sd):
    fit = fit_plackett_luce(5, SETS, PICKS, prior_sd=sd)
    found = minimize(
        lambda u: -log_posterior(u, SETS, PICKS, sd=sd), np.zeros(5), method="BFGS", options={"gtol": 1e-9}
    )
    np.testing.assert_allclose(fit.utilities, found.x, atol=1e-5)


def test_the_covariance_is_the_inverse_of_the_numeric_curvature():
    fit = fit_plackett_luce(5, SETS, PICKS)

    def slope(u):
        return approx_fprime(u, lambda v: -log_posterior(v, SETS, PICKS), 1e-5)

    curvature = approx_fprime(fit.utilities, slope, 1e-4)
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(curvature), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(("at_random", "none"), [(0.2, 0.0), (0.0, 0.1), (0.1, 0.05)])
def test_careless_choices_are_a_share_that_does_not_depend_on_the_utilities(at_random, none):
    sets, picks = SETS * 3, PICKS * 2 + [1, 2, 0, NONE, 4, 4]

    def log_posterior_careless(u):
        found = -sum(x * x for x in u) / 18
        for members, pick in zip(sets, picks, strict=True):
            powers = {m: math.exp(u[m]) for m in members if m != NONE} | {NONE: 1.0}
            careful = powers[pick] / sum(powers.values())
            found += math.log((1 - at_random - none) * careful + at_random / len(powers) + none * (pick == NONE))
        return found

    fit = fit_plackett_luce(5, sets, picks, careless=(at_random, none))
    found = minimize(lambda u: -log_posterior_careless(u), np.zeros(5), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(fit.utilities, found.x, atol=1e-4)

    def slope(u):
        return approx_fprime(u, lambda v: -log_posterior_careless(v), 1e-5)

    curvature = approx_fprime(fit.utilities, slope, 1e-4)
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(curvature), rtol=1e-2, atol=1e-2)


def test_two_groups_of_judges_are_told_from_one_that_is_unsure():
    """Half of the answers choose item 0: always the same two judges, or all of them alike."""
    sets = [[0, 1], [0, 2]] * 16
    picks = [0, 0, NONE, NONE] * 8
    judges = {"groups": ["a", "b", "c", "d"] * 8, "alike": [name for name in "abcd" for _ in range(8)]}
    fit = fit_plackett_luce(3, sets, picks)
    assert choice_homogeneity(fit, sets, picks, judges["groups"])[0] < 0.01
    assert choice_homogeneity(fit, sets, picks, judges["alike"])[0] == 1
    once = choice_homogeneity(fit, sets[:4], picks[:4], judges["groups"][:4])
    assert np.isnan(once).all()


def test_judges_who_agree_against_the_fit_are_not_a_split():
    """All of them differ from the model in the same way: that is a fault of the model."""
    sets = [[0]] * 40
    fit = fit_plackett_luce(1, sets, [0, NONE] * 20)
    assert choice_homogeneity(fit, sets, [0] * 40, list("abcd") * 10)[0] > 0.5


def test_weights_and_choices_without_none_are_those_of_the_likelihood():
    weights = [0.5, 2.0, 1.0, 0.0, 1.0]
    sets, picks = [[0, 1], [0, 1], [1, 2], [1, 2], [0, 2]], [0, 1, 1, 2, 0]
    fit = fit_plackett_luce(3, sets, picks, weights=weights, none_offered=False)
    found = minimize(
        lambda u: -log_posterior(u, sets, picks, none=False, weights=weights),
        np.zeros(3),
        method="BFGS",
        options={"gtol": 1e-9},
    )
    np.testing.assert_allclose(fit.utilities, found.x, atol=1e-5)


def test_items_never_shown_keep_the_prior():
    fit = fit_plackett_luce(2, [[0]], [0])
    assert fit.utilities[1] == 0
    assert fit.standard_errors[1] == pytest.approx(3.0)
    assert fit.relevance[1] == 0.5
    nothing = fit_plackett_luce(3, np.empty((0, 0)), [])
    assert nothing.relevance.tolist() == [0.5] * 3


def test_a_ranking_is_a_sequence_of_choices_from_what_is_left():
    assert ranking_stages([4, 7, 9], [7]) == ([[4, 7, 9]], [7])
    assert ranking_stages([4, 7, 9], [NONE]) == ([[4, 7, 9]], [NONE])
    assert ranking_stages([4, 7, 9], [7, 9, 4]) == ([[4, 7, 9], [4, 9, NONE], [4, NONE, NONE]], [7, 9, 4])
    assert ranking_stages([4, 7, 9], [7, NONE]) == ([[4, 7, 9], [4, 9, NONE]], [7, NONE])


def test_stopping_early_says_nothing_of_the_order_of_the_others():
    """The likelihood of the partial ranking is the sum over its completions."""
    u, others = np.array([0.4, -1.0, 1.3]), [[1], [2], [NONE]]

    def chance(ranking):
        sets, picks = ranking_stages([0, 1, 2], ranking)
        return math.exp(log_posterior(u, sets, picks, sd=1e9))

    assert sum(chance([0, *rest]) for rest in others) == pytest.approx(chance([0]))
    assert sum(chance([i]) for i in (0, 1, 2, NONE)) == pytest.approx(1)


def test_the_order_of_judgments_and_of_items_does_not_matter():
    fit = fit_plackett_luce(5, SETS, PICKS)
    back = fit_plackett_luce(5, [row[::-1] for row in SETS[::-1]], PICKS[::-1])
    np.testing.assert_allclose(back.utilities, fit.utilities, atol=1e-9)
    names = np.array([3, 1, 4, 0, 2, NONE])
    other = fit_plackett_luce(5, names[np.array(SETS)], names[PICKS])
    np.testing.assert_allclose(other.utilities[names[:5]], fit.utilities, atol=1e-9)


def test_extreme_data_stay_finite():
    fit = fit_plackett_luce(3, [[0, 1, 2]] * 100_000, [0] * 100_000, prior_sd=1000.0)
    assert np.isfinite(fit.utilities).all()
    assert fit.relevance[0] > 0.9999
    low, high = fit.relevance_interval()
    assert np.all((low <= fit.relevance) & (fit.relevance <= high))


def test_probabilities_of_none_and_of_relevance_are_those_of_the_formulas():
    fit = fit_plackett_luce(5, SETS, PICKS)
    powers = np.exp(fit.utilities)
    wanted = [1 / (1 + powers[0] + powers[2]), 1 / (1 + powers[3])]
    np.testing.assert_allclose(fit.none_probability([[0, 2], [3, NONE]]), wanted)
    drawn = np.random.default_rng(0).normal(fit.utilities, fit.standard_errors, (200_000, 5))
    above = (1 / (1 + np.exp(-drawn)) > 0.5).mean(axis=0)
    np.testing.assert_allclose(fit.probability_above(), above, atol=0.005)
    low, high = fit.relevance_interval(0.9)
    quantiles = np.quantile(1 / (1 + np.exp(-drawn)), [0.05, 0.95], axis=0)
    np.testing.assert_allclose([low, high], quantiles, atol=0.01)


def test_the_information_of_a_set_is_the_loss_of_log_volume():
    """From whole matrices: the Fisher information of one more choice, outcome by outcome."""
    fit = fit_plackett_luce(5, SETS, PICKS)
    sets = [[0, 1, 2], [1, 3, 4], [4, 2, 0]]
    found = fit.information(sets)
    for members, value in zip(sets, found, strict=True):
        terms = {m: math.exp(fit.utilities[m]) for m in members} | {NONE: 1.0}
        fisher = np.zeros((5, 5))
        for outcome, power in terms.items():
            score = np.zeros(5)
            for m in members:
                score[m] = (m == outcome) - terms[m] / sum(terms.values())
            fisher += power / sum(terms.values()) * np.outer(score, score)
        after = np.linalg.inv(np.linalg.inv(fit.covariance) + fisher)
        volume = math.log(np.linalg.det(fit.covariance) / np.linalg.det(after))
        assert value == pytest.approx(volume, rel=1e-9)


def test_rates_of_none_are_counted_by_the_prediction():
    rates = none_rates([0.05, 0.1, 0.5, 1.0, 0.2], [False, True, True, True, False])
    assert [(r.low, r.sets, r.observed) for r in rates] == [(0.0, 2, 0.5), (0.2, 1, 0.0), (0.4, 1, 1.0), (0.8, 1, 1.0)]
    assert rates[0].predicted == pytest.approx(0.075)
    far = none_rates([0.5] * 100, [True] * 90 + [False] * 10)[0]
    assert not far.consistent
    assert none_rates([0.5] * 100, [True] * 52 + [False] * 48)[0].consistent


def test_intervals_of_relevance_cover_as_often_as_they_say():
    rng = np.random.default_rng(4)
    covered = []
    for _ in range(150):
        u = np.concatenate([rng.normal(3, 0.5, 2), rng.normal(0.7, 0.5, 2), rng.normal(-3, 0.5, 4)])
        sets = [rng.choice(8, 3, replace=False) for _ in range(24)]
        fit = fit_plackett_luce(8, sets, draw(u, sets, rng))
        low, high = fit.relevance_interval()
        truth = 1 / (1 + np.exp(-u))
        covered.append((low <= truth) & (truth <= high))
    assert 0.93 <= np.mean(covered) <= 0.98


@pytest.mark.parametrize(
    ("sets", "picks", "said"),
    [
        ([[0, 5]], [0], r"indices from 0 to 2"),
        ([[0, 0]], [0], r"duplicate item in set 0: \[0, 0\]"),
        ([[0, 1]], [2], r"choice 0 is 2, which was not offered"),
        ([[0, 1]], [7], r"choice 0 is 7"),
    ],
)
def test_bad_choices_are_refused(sets, picks, said):
    with pytest.raises(InputError, match=said):
        fit_plackett_luce(3, sets, picks)


def test_none_is_refused_where_it_was_not_offered():
    with pytest.raises(InputError, match="choice 0 is -1"):
        fit_plackett_luce(3, [[0, 1]], [NONE], none_offered=False)


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="prior_sd=0"):
        fit_plackett_luce(3, SETS[:0], [], prior_sd=0)
    with pytest.raises(InputError, match="weights"):
        fit_plackett_luce(3, [[0, 1]], [0], weights=-1.0)
    with pytest.raises(InputError, match="differ in size"):
        fit_plackett_luce(3, [[0, 1]], [0]).information([[0, NONE]])
    with pytest.raises(InputError, match="not shown or placed before"):
        ranking_stages([0, 1], [0, 0])
    with pytest.raises(InputError, match="continues after none"):
        ranking_stages([0, 1], [NONE, 0])


def test_expected_choices_shrink_the_covariance_by_what_they_tell():
    fit = fit_plackett_luce(5, SETS, PICKS)
    after = fit.expecting([[0, 1, 2], [3]])
    first = float(fit.information([[0, 1, 2]])[0])
    second = float(fit.expecting([[0, 1, 2]]).information([[3]])[0])
    loss = np.linalg.slogdet(fit.covariance)[1] - np.linalg.slogdet(after.covariance)[1]
    assert loss == pytest.approx(first + second)
    assert (after.utilities == fit.utilities).all()
    assert fit.expecting([]) is fit

"""Click models: simulated parameters, slow implementations, and faults of other tools."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankgauge.errors import InputError
from rankgauge.stats import expected_clicks, fit_position_model

pytest.importorskip("scipy")


def table(impressions):
    """Return rows of pair, rank, impressions, and clicks from one row per impression."""
    counts = {}
    for pair, rank, clicked in impressions:
        shown, clicks = counts.get((pair, rank), (0, 0))
        counts[pair, rank] = (shown + 1, clicks + clicked)
    keys = sorted(counts)
    return (
        [pair for pair, _ in keys],
        [rank for _, rank in keys],
        [counts[key][0] for key in keys],
        [counts[key][1] for key in keys],
    )


impressions = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.booleans()), min_size=1, max_size=60)


@given(impressions)
def test_expected_clicks_sum_the_click_rate_of_each_impression(given_impressions):
    rows = table(given_impressions)
    found = expected_clicks(*rows)
    for pair in set(rows[0]):
        expected = 0.0
        for other, rank, _ in given_impressions:
            if other == pair:
                same = [clicked for _, at, clicked in given_impressions if at == rank]
                expected += sum(same) / len(same)
        assert found.expected[pair] == pytest.approx(expected)
    assert math.isclose(found.expected.sum(), found.clicks.sum(), abs_tol=1e-9)
    assert np.isfinite(found.ratio).all()


def test_the_strength_is_that_of_a_grid():
    from scipy import stats as scipy_stats

    rng = np.random.default_rng(4)
    pair, rank = np.repeat(np.arange(80), 3), np.tile([1, 2, 3], 80)
    shown = rng.integers(1, 60, 240)
    quality = np.repeat(rng.gamma(2, 0.5, 80), 3)
    clicked = rng.binomial(shown, np.minimum(1, quality * 0.3 / rank))
    found = expected_clicks(pair, rank, shown, clicked)
    grid = np.geomspace(0.2, 20, 400)
    likelihood = [scipy_stats.nbinom.logpmf(found.clicks, a, a / (a + found.expected)).sum() for a in grid]
    assert found.strength == pytest.approx(grid[int(np.argmax(likelihood))], rel=0.02)
    posterior = scipy_stats.gamma(found.clicks + found.strength, scale=1 / (found.expected + found.strength))
    assert found.ratio == pytest.approx(posterior.mean())


def test_pairs_with_equal_counts_all_count_for_the_strength():
    from scipy import stats as scipy_stats

    clicked = [0] * 40 + [1] * 30 + [2] * 12 + [3] * 6 + [5] * 4 + [8] * 2
    pairs = len(clicked)
    found = expected_clicks(range(pairs), [1] * pairs, [20] * pairs, clicked)
    mean, grid = sum(clicked) / pairs, np.geomspace(0.2, 20, 400)
    likelihood = [scipy_stats.nbinom.logpmf(clicked, a, a / (a + mean)).sum() for a in grid]
    assert found.strength == pytest.approx(grid[int(np.argmax(likelihood))], rel=0.02)


def test_a_document_is_measured_by_the_ranks_it_was_shown_at_not_by_its_best():
    """Once at rank 1 and 999 times at rank 10: OpenSearch expects 1,000 clicks of rank 1."""
    found = expected_clicks([0, 0, 1, 2], [1, 10, 1, 10], [1, 999, 999, 1], [1, 99, 500, 0])
    ctr_1, ctr_10 = 501 / 1000, 99 / 1000
    assert found.expected[0] == pytest.approx(ctr_1 + 999 * ctr_10)
    assert found.ratio[0] == pytest.approx(1, abs=0.02)


def test_ranks_without_clicks_divide_by_nothing():
    found = expected_clicks([0, 1], [1, 2], [10, 10], [0, 0])
    assert found.expected.tolist() == [0, 0]
    assert found.ratio.tolist() == [1, 1]


def simulated(rng, *, pairs=200, ranks=8, shown=40_000, attraction=None):
    """Simulate clicks of a position-based model whose documents move between ranks."""
    theta = np.arange(1, ranks + 1) ** -0.7
    alpha = rng.beta(1, 3, pairs) if attraction is None else attraction
    pair, rank = rng.integers(0, pairs, shown), rng.integers(0, ranks, shown)
    clicked = rng.random(shown) < theta[rank] * alpha[pair]
    keys, place = np.unique(pair * ranks + rank, return_inverse=True)
    rows = keys // ranks, keys % ranks + 1, np.bincount(place), np.bincount(place, clicked)
    return theta, alpha, rows


def slow_em(pair, rank, shown, clicked, iterations=3000):
    """Run the EM algorithm of the position-based model, row by row."""
    rows = list(zip(pair.tolist(), rank.tolist(), shown.tolist(), clicked.tolist(), strict=True))
    theta, alpha = dict.fromkeys(rank.tolist(), 0.5), dict.fromkeys(pair.tolist(), 0.5)
    for _ in range(iterations):
        t_sum, a_sum = dict.fromkeys(theta, (0.0, 0.0)), dict.fromkeys(alpha, (0.0, 0.0))
        for p, r, n, c in rows:
            t, a = theta[r], alpha[p]
            examined = c + (n - c) * t * (1 - a) / (1 - t * a)
            attracted = c + (n - c) * a * (1 - t) / (1 - t * a)
            t_sum[r] = t_sum[r][0] + examined, t_sum[r][1] + n
            a_sum[p] = a_sum[p][0] + attracted, a_sum[p][1] + n
        theta = {r: x / n for r, (x, n) in t_sum.items()}
        alpha = {p: x / n for p, (x, n) in a_sum.items()}
    top = max(theta.values())
    return [theta[r] / top for r in sorted(theta)], [alpha[p] * top for p in sorted(alpha)]


@pytest.mark.slow
def test_with_many_impressions_the_fit_is_that_of_the_em_algorithm():
    _, _, rows = simulated(np.random.default_rng(2), pairs=6, ranks=4, shown=200_000)
    found = fit_position_model(*rows)
    theta, alpha = slow_em(*rows)
    assert found.examination == pytest.approx(theta, rel=0.01)
    assert found.attraction == pytest.approx(alpha, rel=0.02)


def test_examination_maximizes_the_likelihood_of_the_shares_of_clicks():
    from scipy import optimize

    _, _, (pair, rank, shown, clicked) = simulated(np.random.default_rng(3), pairs=30, ranks=4, shown=3000)

    def loss(logs):
        theta = np.exp(np.concatenate([[0.0], logs]))
        total = 0.0
        for each in set(pair.tolist()):
            own = pair == each
            weight = shown[own] * theta[rank[own] - 1]
            total -= float(clicked[own] @ np.log(weight / weight.sum()))
        return total

    best = np.exp(np.concatenate([[0.0], optimize.minimize(loss, np.zeros(3), tol=1e-10).x]))
    assert fit_position_model(pair, rank, shown, clicked).examination == pytest.approx(best / best.max(), rel=1e-4)


def test_examination_and_its_errors_are_those_of_poisson_regression_by_documents():
    """Dummy variables for documents, and errors robust within documents (Wooldridge 1999)."""
    api = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(5)
    pair, rank = np.repeat(np.arange(40), 3), np.tile([1, 2, 3], 40)
    shown = rng.integers(50, 300, 120)
    # Rank 2 is examined most, and attraction also varies between ranks of a document.
    chance = np.array([0.15, 0.3, 0.1])[rank - 1] * rng.uniform(0.3, 2, 120)
    clicked = rng.binomial(shown, np.minimum(chance, 1))
    found = fit_position_model(pair, rank, shown, clicked)
    dummies = np.column_stack([pair[:, None] == np.arange(40), rank[:, None] == np.array([1, 3])]).astype(float)
    fit = api.GLM(clicked, dummies, family=api.families.Poisson(), exposure=shown).fit(
        tol=1e-12, cov_type="cluster", cov_kwds={"groups": pair, "use_correction": False}
    )
    assert found.examination[[0, 2]] == pytest.approx(np.exp(fit.params[40:]))
    factor = np.exp(1.959964 * fit.bse[40:])
    assert found.examination_low[[0, 2]] == pytest.approx(found.examination[[0, 2]] / factor)
    assert found.examination_high[[0, 2]] == pytest.approx(found.examination[[0, 2]] * factor)
    assert found.examination[1] == found.examination_low[1] == found.examination_high[1] == 1


def test_bounds_of_attraction_are_where_the_likelihood_falls_by_its_inflated_quantile():
    pair, rank = np.repeat(np.arange(8), 2), np.tile([1, 2], 8)
    shown = np.array([40, 10, 25, 30, 8, 60, 90, 90, 50, 5, 12, 12, 30, 70, 20, 20])
    clicked = np.array([12, 1, 9, 4, 3, 9, 30, 22, 20, 1, 1, 1, 2, 5, 9, 6])
    found = fit_position_model(pair, rank, shown, clicked)
    t = found.examination[1]
    error = math.log(found.examination_high[1] / t) / 1.959964
    for each in range(8):
        (n1, n2), (c1, c2) = shown[2 * each : 2 * each + 2], clicked[2 * each : 2 * each + 2]
        a, examined = found.attraction[each], n1 + n2 * t

        def likelihood(a, n1=n1, n2=n2, c1=c1, c2=c2):
            return (c1 + c2) * math.log(a) + (n1 - c1) * math.log(1 - a) + (n2 - c2) * math.log(1 - t * a)

        # Variance of log a: (1 - a) / (a examined) from clicks, (share of rank 2 * error)² more.
        more = (n2 * t / examined * error) ** 2 * a * examined / (1 - a)
        for bound in (found.low[each], found.high[each]):
            loss = 2 * (likelihood(a) - likelihood(bound))
            assert loss == pytest.approx(1.959964**2 * (1 + more), rel=1e-5)


def test_intervals_cover_simulated_parameters():
    rng, inside, theta_inside = np.random.default_rng(1), [], []
    for _ in range(40):
        theta, alpha, rows = simulated(rng)
        found = fit_position_model(*rows)
        inside.append(((found.low <= alpha) & (alpha <= found.high)).mean())
        covered = (found.examination_low <= theta) & (theta <= found.examination_high)
        theta_inside.append(covered[1:].mean())
    assert 0.93 <= np.mean(inside) <= 0.975
    assert 0.9 <= np.mean(theta_inside) <= 0.99


def test_few_impressions_of_each_document_do_not_bias_examination():
    """The EM algorithm overestimates low ranks: it has a parameter for every few impressions."""
    rng = np.random.default_rng(7)
    theta, _, rows = simulated(rng, pairs=30_000, ranks=6, shown=400_000)
    found = fit_position_model(*rows)
    assert found.examination == pytest.approx(theta, rel=0.04)


def test_ranks_that_no_clicked_document_connects_are_unknown():
    pair = [0, 0, 1, 1, 2, 3, 3]
    rank = [1, 2, 1, 2, 3, 2, 4]
    shown, clicked = [100] * 7, [50, 25, 20, 10, 30, 9, 0]
    found = fit_position_model(pair, rank, shown, clicked)
    assert found.examination[:2].tolist() == pytest.approx([1, 0.5])
    assert np.isnan(found.examination[2:]).all()
    assert found.attraction[:2].tolist() == pytest.approx([0.5, 0.2])
    assert math.isnan(found.attraction[2])
    assert (found.low[2], found.high[2]) == (0, 1)


def test_of_several_groups_of_ranks_that_with_the_most_impressions_is_known():
    pair, rank = [0, 0, 0, 1, 1], [1, 2, 3, 4, 5]
    found = fit_position_model(pair, rank, [10, 10, 10, 400, 400], [5, 4, 3, 100, 50])
    assert np.isnan(found.examination).tolist() == [True] * 3 + [False] * 2
    assert found.examination[3:].tolist() == pytest.approx([1, 0.5])


def test_a_rank_without_a_click_hides_no_other_however_often_it_is_shown():
    found = fit_position_model([0, 0, 1, 2], [1, 2, 9, 7], [100, 100, 9000, 9000], [60, 30, 0, 9])
    assert found.ranks.tolist() == [1, 2, 7, 9]
    assert found.examination[:2].tolist() == pytest.approx([1, 0.5])
    assert np.isnan(found.examination[2:]).all()


def test_documents_that_never_move_are_refused():
    with pytest.raises(InputError, match="several ranks"):
        fit_position_model([0, 1], [1, 2], [10, 10], [5, 2])
    with pytest.raises(InputError, match="several ranks"):
        fit_position_model([0, 0], [1, 2], [10, 10], [0, 0])


@given(impressions)
def test_any_counts_give_bounded_attractions_or_an_error(given_impressions):
    try:
        found = fit_position_model(*table(given_impressions))
    except InputError:
        return
    known = ~np.isnan(found.attraction)
    assert ((found.attraction[known] >= 0) & (found.attraction[known] <= 1)).all()
    assert (found.low[known] <= found.attraction[known] + 1e-9).all()
    assert (found.attraction[known] <= found.high[known] + 1e-9).all()


@pytest.mark.parametrize("function", [expected_clicks, fit_position_model])
@pytest.mark.parametrize("rows", [([], [], [], []), ([0], [1], [2], [3]), ([0], [0], [2], [1]), ([0], [1], [0], [0])])
def test_counts_that_are_not_possible_are_refused(function, rows):
    with pytest.raises(InputError):
        function(*rows)

"""Corrected rates: loops from the papers, statsmodels, and judges with known error rates."""

import gzip
import json
import math
import random

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import spearmanr
from statsmodels.stats.proportion import proportion_confint

from rankgauge.errors import InputError
from rankgauge.stats import (
    clustered_difference,
    clustered_rate,
    cohen_kappa,
    judge_errors,
    krippendorff_alpha,
    naive_rate,
    prediction_powered_mean,
    prediction_powered_values,
    rogan_gladen,
)

NAN = math.nan
Z = 1.959963984540054


def simulated(rng, truth, sens, spec, items, labels, *, apart=False):
    """Return labels of a judge and of people (NaN from `labels` on), and weights of the items."""
    count = items + labels if apart else items
    human = (rng.random(count) < truth).astype(float)
    judge = np.where(human == 1, rng.random(count) < sens, rng.random(count) >= spec).astype(float)
    human[labels:] = NAN
    weights = np.ones(count)
    weights[:labels] = 0 if apart else 1
    return judge, human, weights


def paper_interval(judged, judge, human):
    """Return the adjusted interval of Lee et al. (arXiv 2511.21140), from counts."""
    n, p = len(judged), sum(judged) / len(judged)
    right = {0: 0, 1: 0}
    of = {0: 0, 1: 0}
    for said, true in zip(judge, human, strict=True):
        of[int(true)] += 1
        right[int(true)] += said == true
    p = (n * p + Z**2 / 2) / (n + Z**2)
    n += Z**2
    q = {label: (right[label] + 1) / (of[label] + 2) for label in of}
    m = {label: of[label] + 2 for label in of}
    gain = q[0] + q[1] - 1
    theta = (p + q[0] - 1) / gain
    parts = {label: q[label] * (1 - q[label]) / m[label] for label in of}
    shift = 2 * Z**2 * (-(1 - theta) * parts[0] + theta * parts[1])
    variance = p * (1 - p) / n + (1 - theta) ** 2 * parts[0] + theta**2 * parts[1]
    half = Z * math.sqrt(variance) / gain
    return theta + shift - half, theta + shift + half


def test_rogan_gladen_is_the_formula_of_the_paper():
    rng = np.random.default_rng(3)
    for seed in range(20):
        judge, human, weights = simulated(rng, 0.6, 0.95, 0.9, 300, 150, apart=True)
        found = rogan_gladen(judge, human, weights=weights)
        said, true = judge[:150], human[:150]
        sens = sum(said[true == 1]) / sum(true == 1)
        spec = sum(1 - said[true == 0]) / sum(true == 0)
        rate = judge[150:].mean()
        assert found.value == pytest.approx((rate + spec - 1) / (sens + spec - 1)), seed
        low, high = paper_interval(judge[150:], said, true)
        # The part of the labels has the quantile of 99%.
        assert low - 0.05 < found.low < low + 0.01
        assert high - 0.01 < found.high < high + 0.05


def test_the_interval_has_the_rates_that_a_scan_does_not_reject():
    """Fieller's method by definition: each rate is tested with variances summed in loops."""
    rng = np.random.default_rng(5)
    judge, human, weights = simulated(rng, 0.5, 0.95, 0.9, 240, 120)
    clusters = np.repeat(np.arange(80), 3)
    found = rogan_gladen(judge, human, clusters, weights)
    labels = {1: [], 0: []}
    for said, true in zip(judge, human, strict=True):
        if not math.isnan(true):
            labels[int(true)].append(said)
    q = {label: (sum(given) + 1) / (len(given) + 2) for label, given in labels.items()}
    mean = sum(judge) / len(judge)

    def variance(parts):
        sums = {}
        for cluster, part in parts:
            sums[cluster] = sums.get(cluster, 0) + part
        return sum(v * v for v in sums.values()) * len(sums) / (len(sums) - 1)

    own = variance((c, (said - mean) / 240) for c, said in zip(clusters, judge, strict=True))

    def rejected(rate):
        factors = {1: rate, 0: 1 - rate}
        of_labels = [
            (cluster, factors[true] * (said - q[true]) / (len(labels[true]) + 2))
            for said, true, cluster in zip(judge, human, clusters.tolist(), strict=True)
            if true in factors
        ]
        added = [
            ((label, more), factors[label] * (more - q[label]) / (len(labels[label]) + 2))
            for label in (1, 0)
            for more in (0, 1)
        ]
        # 40 clusters have labels; 2.5758 and 1.9600 are normal quantiles of 99% and 95%.
        of_errors = variance([*of_labels, *added]) * (2.5758293 / 1.9599640) ** 2
        gap = mean - q[0] - rate * (q[1] - q[0])
        return abs(gap) > 2.0226909 * math.sqrt(own + of_errors)

    inside = [rate / 1000 for rate in range(1001) if not rejected(rate / 1000)]
    assert found.low == pytest.approx(inside[0], abs=0.0011)
    assert found.high == pytest.approx(inside[-1], abs=0.0011)


def test_errors_of_graded_values_are_a_line_by_least_squares():
    rng = np.random.default_rng(2)
    human = rng.random(400)
    judge = np.clip(0.1 + 0.7 * human + rng.normal(0, 0.1, 400), 0, 1)
    clusters = np.repeat(np.arange(100), 4)
    found = judge_errors(judge, human, clusters)
    x, y = np.append(human, [1, 1, 0, 0]), np.append(judge, [1, 0, 1, 0])
    of = np.append(clusters, 100 + np.arange(4))
    fitted = sm.OLS(y, sm.add_constant(x)).fit()
    robust = fitted.get_robustcov_results("cluster", groups=of, df_correction=False, use_correction=False)
    assert found.smoothed == pytest.approx(fitted.params)
    covariance = robust.cov_params() * 104 / 103
    expected = (covariance[0, 0], covariance[0, 1], covariance[1, 1])
    assert found.covariance == pytest.approx(expected)
    assert found.slope == pytest.approx(np.polyfit(human, judge, 1)[0])
    assert found.gain.low < 0.7 < found.gain.high


def test_errors_of_labels_are_those_of_counting():
    judge, human = [1, 1, 1, 0, 1, 0, 0, 0, 1], [1, 1, 1, 1, 0, 0, 0, 0, NAN]
    found = judge_errors(judge, human)
    assert (found.intercept, found.slope, found.count) == (0.25, 0.5, 8)
    assert found.smoothed == pytest.approx((2 / 6, 4 / 6 - 2 / 6))
    variance = 4 / 6 * 2 / 6 / 6
    assert found.covariance == pytest.approx([each * 12 / 11 for each in (variance, -variance, 2 * variance)])
    assert "same value" in judge_errors([0.2, 0.4], [0.5, 0.5]).reason


def test_a_judge_that_guesses_is_not_corrected():
    judge, human = [1, 0] * 50 + [1] * 100, [1, 1, 0, 0] * 25 + [NAN] * 100
    found = rogan_gladen(judge, human)
    assert math.isnan(found.value)
    assert "is 0.00 [" in found.reason
    assert judge_errors(judge, human).slope == 0
    assert "positive" in rogan_gladen([1, 0], [0, 0]).reason
    assert "negative" in rogan_gladen([1, 0], [1, NAN]).reason


def test_prediction_powered_inference_is_that_of_the_paper():
    """Angelopoulos et al. (2023): mean on the rest plus mean error on the sample."""
    rng = random.Random(1)
    judge = [rng.random() for _ in range(3000)]
    human = [min(1, max(0, j + rng.gauss(-0.1, 0.1))) for j in judge[:1000]] + [NAN] * 2000
    found = prediction_powered_mean(judge, human, power=1.0)
    errors = [h - j for h, j in zip(human[:1000], judge, strict=False)]
    rest = judge[1000:]
    value = sum(rest) / 2000 + sum(errors) / 1000

    def variance(some):
        mean = sum(some) / len(some)
        return sum((x - mean) ** 2 for x in some) / len(some)

    spread = math.sqrt(variance(rest) / 2000 + variance(errors) / 1000)
    assert found.value == pytest.approx(value)
    assert found.high - found.low == pytest.approx(2 * Z * spread, rel=0.02)
    # The weight with the smallest variance is at least as good as 1, and labels alone are worse.
    best = prediction_powered_mean(judge, human)
    people = prediction_powered_mean(judge, human, power=0.0)
    assert best.width <= found.width * 1.001 < people.width
    assert people.value == pytest.approx(sum(human[:1000]) / 1000)


def test_values_of_prediction_powered_inference_have_its_mean_and_spread():
    rng = np.random.default_rng(8)
    human = rng.random(600)
    judge = np.clip(0.2 + 0.6 * human + rng.normal(0, 0.2, 600), 0, 1)
    human[rng.permutation(600)[:400]] = NAN
    found = prediction_powered_values(judge, human)
    assert len(found) == 600
    mean = prediction_powered_mean(judge, human)
    assert found.mean() == pytest.approx(mean.value, abs=0.002)
    half = Z * found.std(ddof=1) / math.sqrt(600)
    assert half == pytest.approx((mean.high - mean.low) / 2, rel=0.05)
    clusters = np.repeat(np.arange(150), 4)
    grouped = prediction_powered_values(judge, human, clusters)
    assert len(grouped) == 150
    assert grouped.mean() == pytest.approx(found.mean())
    sums = [sum(found[n : n + 4]) / 4 for n in range(0, 600, 4)]
    assert grouped.tolist() == pytest.approx(sums)
    with pytest.raises(InputError, match="1 labels"):
        prediction_powered_values([1, 0], [1, NAN])


def test_the_spread_over_clusters_is_that_of_statsmodels():
    rng = np.random.default_rng(2)
    clusters = rng.integers(0, 30, 200)
    values = (rng.random(200) < 0.2 + 0.6 * (clusters % 2)).astype(float)
    found = naive_rate(values, clusters)
    fit = sm.OLS(values, np.ones(200)).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    assert (found.high - found.low) / 2 / Z == pytest.approx(fit.bse[0])
    group = rng.random(200) < 0.5
    found = clustered_difference(values, group, clusters)
    design = np.stack([np.ones(200), group], axis=1)
    fit = sm.OLS(values, design).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    assert found.value == pytest.approx(fit.params[1])
    assert found.high - found.low == pytest.approx(2 * 2.045 * fit.bse[1], rel=0.05)


def test_a_rate_has_wilsons_interval_of_the_effective_number():
    hits = [1] * 17 + [0] * 3
    found = clustered_rate(hits)
    assert (found.low, found.high) == pytest.approx(proportion_confint(17, 20, method="wilson"))
    # Four copies of an item have the information of one.
    copies = clustered_rate(np.repeat(hits, 4), np.repeat(np.arange(20), 4))
    assert copies.width == pytest.approx(found.width, rel=0.05)
    assert clustered_rate(np.repeat(hits, 4)).width < 0.6 * found.width
    assert clustered_rate([]).reason == "no label"


@pytest.mark.parametrize("statistic", [krippendorff_alpha, cohen_kappa])
def test_agreement_draws_whole_clusters(statistic):
    rng = np.random.default_rng(4)
    first = rng.integers(0, 2, 40)
    second = np.where(rng.random(40) < 0.8, first, 1 - first)

    def given(one, other):
        return (one, other) if statistic is cohen_kappa else (np.stack([one, other], axis=1),)

    alone = statistic(*given(first, second), seed=1)
    each = statistic(*given(first, second), clusters=np.arange(40), seed=1)
    assert each == alone
    four = np.repeat(first, 4), np.repeat(second, 4)
    copies = statistic(*given(*four), clusters=np.repeat(np.arange(40), 4), seed=1)
    assert copies.high - copies.low == pytest.approx(alone.high - alone.low, rel=0.03)
    assert "one cluster" in statistic(*given(*four), clusters=np.zeros(160)).reason
    with pytest.raises(InputError, match="3 clusters for 160"):
        statistic(*given(*four), clusters=[1, 2, 3])


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (rogan_gladen, ([1, 2], [1, 0])),
        (rogan_gladen, ([1, 0], [1, 0.5])),
        (rogan_gladen, ([1, 0], [1])),
        (rogan_gladen, ([1, 0], [1, 0], None, [0, 0])),
        (rogan_gladen, ([1, 0], [1, 0], [0])),
        (prediction_powered_mean, (["a"], [1])),
        (clustered_difference, ([3], [True])),
        (naive_rate, ([NAN],)),
    ],
)
def test_an_invalid_label_is_refused(function, given):
    with pytest.raises(InputError):
        function(*given)


JUDGES = [(0.7, 0.95, 0.6), (0.415, 0.94, 0.18), (0.7, 0.9, 0.9), (0.9, 0.95, 0.9)]


def coverage(draws, truth, sens, spec, *, alike=1):
    """Return how often each interval contains the truth; labels are equal within clusters."""
    rng = np.random.default_rng(11)
    hits = dict.fromkeys(("naive", "ppi", "rg", "apart"), 0)
    shown = dict.fromkeys(hits, 0)
    for _ in range(draws):
        sides = [simulated(rng, truth, sens, spec, 200, 100, apart=apart) for apart in (0, 1)]
        (judge, human, weights), (judge2, human2, weights2) = (
            [np.repeat(part, alike) for part in side] for side in sides
        )
        clusters = np.repeat(np.arange(len(judge) // alike), alike)
        clusters2 = np.repeat(np.arange(len(judge2) // alike), alike)
        found = {
            "naive": naive_rate(judge, clusters),
            "ppi": prediction_powered_mean(judge, human, clusters),
            "rg": rogan_gladen(judge, human, clusters, weights),
            "apart": rogan_gladen(judge2, human2, clusters2, weights2),
        }
        for name, each in found.items():
            shown[name] += not math.isnan(each.value)
            hits[name] += each.low <= truth <= each.high
    return {name: hits[name] / max(1, shown[name]) for name in hits}, shown


def test_values_by_labels_allow_for_two_fitted_parameters():
    """A judge that always says the same has a weight of 0, so that only the labels count."""
    human = np.array([0, 1, 1, 0, 1] + [NAN] * 5)
    found = prediction_powered_values(np.ones(10), human)
    assert found[5:] == pytest.approx([0.6] * 5)
    # Five labels for ten items, and three degrees of freedom instead of five.
    assert found[:5] == pytest.approx(0.6 + (human[:5] - 0.6) * 2 * math.sqrt(5 / 3))


@pytest.mark.slow
@pytest.mark.parametrize(("truth", "sens", "spec"), JUDGES)
def test_corrected_intervals_cover_and_naive_ones_do_not(truth, sens, spec):
    found, shown = coverage(750, truth, sens, spec)
    assert 0.93 <= found["ppi"] <= 0.975
    if sens + spec > 1.75:
        assert shown["apart"] >= 300
        assert found["rg"] >= 0.93
        assert 0.93 <= found["apart"] <= 0.995
    else:
        assert shown["apart"] < 75
    assert found["naive"] < 0.85
    if spec < 0.7:
        assert found["naive"] < 0.25


@pytest.mark.slow
def test_intervals_cover_where_items_of_a_question_are_alike():
    found, _ = coverage(1000, 0.7, 0.95, 0.9, alike=3)
    assert 0.93 <= found["ppi"] <= 0.98
    assert 0.93 <= found["apart"] <= 0.99


@pytest.mark.parametrize(
    ("rating", "printed"),
    [("faithfulness", 0.470), ("completeness", 0.264), ("appropriateness", 0.064), ("naturalness", 0.318)],
)
def test_the_raters_of_mtrag_agree_as_is_known(data_folder, rating, printed):
    with gzip.open(data_folder / "rag" / "mtrag" / "answers.jsonl.gz", "rt") as stream:
        rows = [json.loads(line) for line in stream]
    raters = sorted({name for row in rows for name in row["human"][rating]})
    table = [[row["human"][rating].get(name, NAN) for name in raters] for row in rows]
    turns = [f"{row['conversation_id']}-{row['turn']}" for row in rows]
    found = krippendorff_alpha(table, "ordinal", clusters=turns, draws=200)
    assert found.value == pytest.approx(printed, abs=0.0006)
    assert found.low < found.value < found.high
    if rating == "faithfulness":
        # The automatic scores, with the mean of the raters.
        means = [np.mean(list(row["human"][rating].values())) for row in rows]
        for name, known in (("rl_f", 0.582), ("bert_k_precision", 0.584), ("llm_judge", 0.326)):
            scores = [row["scores"][name] for row in rows]
            assert spearmanr(scores, means).statistic == pytest.approx(known, abs=0.0006)

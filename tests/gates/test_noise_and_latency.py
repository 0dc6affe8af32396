"""Repeated runs of one system, and latencies of two systems, in a gate."""

import math

import numpy as np
import pytest
from gating import LATENCY, OLD, QRELS, RUNS, jittered
from scipy import stats as scipy_stats

from rankgauge import Baseline, InputError, evaluate, gate


def test_the_band_of_the_noise_is_that_of_a_slow_loop():
    runs = jittered(range(6))
    noise = Baseline.from_run(QRELS, RUNS["s1"], noise=runs).noise
    values = [evaluate(QRELS, run, "nDCG@10").per_query[:, 0].tolist() for run in runs]
    variances = []
    for query in zip(*values, strict=True):
        middle = sum(query) / 6
        variances.append(sum((x - middle) ** 2 for x in query) / 5)
    independent = 1.959963984540054 * math.sqrt(2 * sum(variances)) / 60
    means = [sum(row) / 60 for row in values]
    seen = sorted(abs(a - b) for n, a in enumerate(means) for b in means[n + 1 :])
    place = 0.95 * (len(seen) - 1)
    quantile = seen[int(place)] + (place % 1) * (seen[int(place) + 1] - seen[int(place)])
    assert noise.bands["nDCG@10"] == pytest.approx(max(independent, quantile), rel=1e-12)
    assert noise.jitter["q00"]["nDCG@10"] == pytest.approx(
        max(row[0] for row in values) - min(row[0] for row in values), rel=1e-12
    )


def test_a_margin_within_the_noise_is_refused():
    runs = jittered(range(4))
    rules = {"measures": {"nDCG@10": {"margin": 0.001}}}
    with pytest.raises(InputError, match="4 runs of the same system differ by about"):
        gate(QRELS, RUNS["s2"], rules, baseline=OLD, noise=runs)
    stored = Baseline.from_run(QRELS, RUNS["s1"], rules, noise=runs)
    with pytest.raises(InputError, match="4 runs of the same system differ by about"):
        gate(QRELS, RUNS["s2"], rules, baseline=stored)


def test_differences_within_the_jitter_count_as_ties():
    found = gate(QRELS, RUNS["s2"], baseline=OLD, noise=jittered(range(4))).checks[0].numbers
    plain = gate(QRELS, RUNS["s2"], baseline=OLD).checks[0].numbers
    assert found.ties > plain.ties
    assert found.wins + found.ties + found.losses == 60
    assert (found.lower, found.gain) == (plain.lower, plain.gain)


def test_the_margin_is_compared_with_the_whole_band():
    runs = jittered(range(4))
    band = Baseline.from_run(QRELS, RUNS["s1"], noise=runs).noise.bands["nDCG@10"]
    for share, refused in ((0.99, True), (1.01, False)):
        rules = {"measures": {"nDCG@10": {"margin": share * band}}}
        if refused:
            with pytest.raises(InputError, match="by chance alone"):
                gate(QRELS, RUNS["s2"], rules, baseline=OLD, noise=runs)
        else:
            assert gate(QRELS, RUNS["s2"], rules, baseline=OLD, noise=runs).checks


def test_undefined_values_are_not_noise():
    qrels = {f"q{n}": {"d"} for n in range(10)}
    rules = {"measures": {"FirstRel": {"margin": 2.0}, "RR": {}}}
    far = [f"x{n}" for n in range(30)]
    runs = [{q: ["d"] for q in qrels}, {q: ["x", "d"] if q == "q1" else ["d"] for q in qrels}]
    # A document at rank 31, or not retrieved, has a value in one run only.
    runs[0]["q0"], runs[1]["q0"] = [*far, "d"], far
    noise = Baseline.from_run(qrels, runs[0], rules, noise=runs).noise
    assert noise.jitter["q0"] == {"FirstRel": 0.0, "RR": 1 / 31}
    assert noise.jitter["q1"] == {"FirstRel": 1.0, "RR": 0.5}
    # One of nine queries has the values 1 and 2, so a variance of 1/2.
    band = scipy_stats.norm.ppf(0.975) * math.sqrt(2 * 0.5) / 9
    assert noise.bands["FirstRel"] == pytest.approx(band, rel=1e-9)


def test_a_deterministic_system_has_no_noise():
    made = Baseline.from_run(QRELS, RUNS["s1"], noise=[RUNS["s1"]] * 3)
    assert made.noise.bands == {"nDCG@10": 0.0}
    assert gate(QRELS, RUNS["s1"], baseline=made).verdict == "IDENTICAL"


def test_one_repeated_run_is_too_few():
    with pytest.raises(InputError, match="expected two or more"):
        gate(QRELS, RUNS["s1"], baseline=OLD, noise=[RUNS["s1"]])


def test_evaluations_of_repeated_runs_are_read_by_measure_and_query():
    rankings = [{query: [*["x"] * rank, "d"] for query in "abc"} for rank in (0, 1)]
    qrels = {query: {"d"} for query in "abc"}
    first = evaluate(qrels, rankings[0], ["P@1", "RR"])
    second = evaluate(qrels, rankings[1], ["RR", "P@1"])
    noise = Baseline.from_evaluation(first, noise=[first, second]).noise
    assert noise.jitter["a"] == {"P@1": 1.0, "RR": 0.5}
    fewer = evaluate({"a": {"d"}}, rankings[0], ["P@1", "RR"])
    with pytest.raises(InputError, match="evaluated on other queries"):
        Baseline.from_evaluation(first, noise=[fewer, fewer])
    with pytest.raises(InputError, match="P@1 was not evaluated"):
        Baseline.from_evaluation(first, noise=[first, evaluate(qrels, rankings[0], "RR")])


def _times(factor: float, seed: int = 3, queries: int = 400) -> tuple[dict, dict]:
    rng = np.random.default_rng(seed)
    base = rng.lognormal(-4, 0.5, queries)
    noisy = rng.lognormal(0, 0.05, (2, queries))
    names = [f"q{n}" for n in range(queries)]
    times = (base * noisy[0], base * noisy[1] * factor)
    return tuple(dict(zip(names, column, strict=True)) for column in times)


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "PASS"), (1.05, "PASS"), (1.3, "FAIL")])
def test_latency_is_a_gate_of_its_own(factor, verdict):
    found = gate(QRELS, RUNS["s1"], LATENCY, baseline=OLD, latency=_times(factor))
    assert [c.verdict for c in found.checks if c.kind == "latency"] == [verdict] * 2
    again = gate(QRELS, RUNS["s1"], LATENCY, baseline=OLD, latency=_times(factor))
    assert [c.sentence for c in again.checks] == [c.sentence for c in found.checks]


def test_a_limited_latency_that_was_not_measured_is_never_a_pass():
    assert gate(QRELS, RUNS["s1"], LATENCY, baseline=OLD).verdict == "INCONCLUSIVE"


def test_a_quantile_of_few_queries_has_no_bound():
    found = gate(QRELS, RUNS["s1"], LATENCY, baseline=OLD, latency=_times(1, queries=58))
    assert [c.verdict for c in found.checks if c.kind == "latency"] == ["PASS", "INCONCLUSIVE"]


@pytest.mark.slow
def test_latency_bounds_cover_the_true_ratio():
    """Of 60 pairs with a true ratio of 1.1, about 5% pass the limit 1.1."""
    passed = 0
    for seed in range(60):
        times = _times(1.1, seed, 60)
        rules = {"latency": {"p50": 1.1}}
        found = gate({"q": {"d"}}, {"q": ["d"]}, rules, baseline=None, latency=times)
        passed += found.verdict == "PASS"
    assert passed <= 3 + 3 * math.sqrt(60 * 0.05 * 0.95)

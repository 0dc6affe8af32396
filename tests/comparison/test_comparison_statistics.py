"""Tests, intervals, corrections, and power of compare()."""

import math
from dataclasses import replace

import numpy as np
import pytest
from comparing import FOUND, QRELS, RUNS, values_of
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests

from rankgauge import Evaluation, InputError, UnknownName, compare, evaluate, stats
from rankgauge.comparison.conclusions import difference_sentence
from rankgauge.comparison.differences import select
from rankgauge.measures.measure import parse


def test_intervals_and_t_p_values_are_those_of_scipy():
    found = compare(QRELS, RUNS, "nDCG@10", test="t", interval="t")
    for run in ("s1", "s2"):
        theirs = scipy_stats.ttest_rel(values_of(run, "nDCG@10"), values_of("s0", "nDCG@10"))
        low, high = theirs.confidence_interval(0.95)
        ours = found.difference(run)
        assert ours.p == pytest.approx(theirs.pvalue, rel=1e-8)
        assert (ours.low, ours.high) == pytest.approx((low, high), rel=1e-9)


def test_p_values_are_corrected_over_all_runs_and_tested_measures():
    found = compare(QRELS, RUNS, ["nDCG@10", "AP", "P@5"], tested=["nDCG@10", "AP"])
    tested = [d for d in found.differences if d.p is not None]
    assert {str(d.measure) for d in tested} == {"nDCG@10", "AP"}
    theirs = multipletests([d.p for d in tested], method="holm")[1]
    assert [d.corrected for d in tested] == pytest.approx(list(theirs), rel=1e-12)


def test_an_unknown_test_is_refused_also_where_none_is_needed():
    with pytest.raises(UnknownName, match="test='sign' is not valid"):
        compare(QRELS, {"a": RUNS["s0"], "b": RUNS["s0"]}, "RR", test="sign")


@pytest.mark.parametrize("test", ["randomization", "t", "wilcoxon", "tukey-hsd"])
def test_with_five_differing_queries_no_test_is_significant(test):
    """Five wins of thirty: the exact p is 2 / 2^5 = .0625, but the t interval would exclude 0."""
    qrels = {f"q{n}": {"d": 1} for n in range(30)}
    old = {f"q{n}": ["x", "d"] for n in range(30)}
    new = {f"q{n}": ["d", "x"] if n < 5 else ["x", "d"] for n in range(30)}
    compared = compare(qrels, {"old": old, "new": new}, "RR", test=test)
    found = compared.difference("new")
    assert test != "randomization" or found.p == 0.0625
    assert found.verdict == "cannot tell"
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert "no interval: only 5 queries differ" in compared.sentences[1]
    assert compared.to_dict()["differences"][0]["low"] is None


def test_all_pairs_are_compared_on_request_in_both_directions():
    found = compare(QRELS, RUNS, "nDCG@10", pairs="all")
    pairs = [(d.run, d.baseline) for d in found.differences]
    assert pairs == [("s1", "s0"), ("s2", "s0"), ("s2", "s1")]
    apart = values_of("s2", "nDCG@10") - values_of("s1", "nDCG@10")
    one = found.difference("s2", baseline="s1")
    assert one.difference == pytest.approx(apart.mean(), abs=1e-12)
    other = found.difference("s1", baseline="s2")
    assert (other.difference, other.low, other.high) == (-one.difference, -one.high, -one.low)
    assert (other.wins, other.losses, other.mean) == (one.losses, one.wins, one.baseline_mean)
    assert {one.verdict, other.verdict} in ({"better", "worse"}, {"cannot tell"})
    assert repr(other.mirrored()) == repr(one)  # NaN in both


def test_all_pairs_have_the_p_values_of_each_pair_by_itself():
    """The draws differ; the difference is within the error of 10,000 draws."""
    found = compare(QRELS, RUNS, "nDCG@10", pairs="all")
    theirs = scipy_stats.permutation_test(
        (values_of("s2", "nDCG@10"), values_of("s1", "nDCG@10")),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        random_state=1,
    )
    assert found.difference("s2", baseline="s1").p == pytest.approx(theirs.pvalue, abs=0.01)


def test_tukey_hsd_is_that_of_the_statistics_and_corrects_for_each_measure():
    names = ["nDCG@10", "AP"]
    found = compare(QRELS, RUNS, names, tested=names, test="tukey-hsd", draws=2_000)
    order = np.argsort(found.evaluations[0].query_ids)
    for name in names:
        values = np.stack([values_of(run, name)[order] for run in RUNS], axis=1)
        theirs = stats.tukey_hsd(values, 2_000, found.design.seed).p
        for place, run in enumerate(RUNS):
            if run != "s0":
                ours = found.difference(run, name)
                assert ours.p == theirs[0, place]
                assert ours.corrected == min(1.0, 2 * ours.p)
    assert "randomized Tukey HSD over all runs, 2,000 draws" in found.design.describe()
    assert "Bonferroni over 2 measures" in found.design.describe()


def test_max_t_corrects_over_runs_and_measures_at_once():
    names = ["nDCG@10", "AP"]
    found = compare(QRELS, RUNS, names, tested=names, correction="max-t", draws=2_000)
    columns = [values_of(r, n) - values_of("s0", n) for r in ("s1", "s2") for n in names]
    theirs = stats.max_t(np.stack(columns, axis=1), 2_000, found.design.seed).p
    assert [d.corrected for d in found.differences] == theirs.tolist()
    assert all(d.corrected >= d.p - 0.02 for d in found.differences)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_intervals_by_bootstrap_are_those_of_scipy(method):
    found = compare(QRELS, RUNS, "nDCG@10", interval=method).difference("s2")
    apart = values_of("s2", "nDCG@10") - values_of("s0", "nDCG@10")
    theirs = scipy_stats.bootstrap(
        (apart,), np.mean, method=method, n_resamples=20_000, random_state=1
    ).confidence_interval
    width = theirs.high - theirs.low
    assert found.low == pytest.approx(theirs.low, abs=0.05 * width)
    assert found.high == pytest.approx(theirs.high, abs=0.05 * width)


def test_detectable_differences_follow_the_power_of_the_t_test():
    found = FOUND.difference("s1")
    assert found.power(found.detectable) == pytest.approx(0.8, abs=1e-6)
    measure = parse("DCG@10")  # without a largest value, failing queries are not considered
    found = replace(found, measure=measure)
    assert found.power(found.detectable) == pytest.approx(0.8, abs=1e-6)
    needed = found.queries_needed
    assert found.alpha == 0.025  # two runs are tested
    sd = stats.planning_sd(found.sd, found.queries)
    assert sd > found.sd
    # The interval of N queries is as much wider than by t as that of 20, times 20 / N.
    wider = max(found.difference - found.low, found.high - found.difference)
    t = scipy_stats.t.ppf(1 - found.alpha / 2, found.queries - 1)
    added = max(0, wider - t * found.sd / math.sqrt(found.queries)) * found.queries / needed
    size = abs(found.difference)
    assert stats.power(sd, needed + 1, size - added, found.alpha) >= 0.795
    assert stats.power(sd, needed - 5, size - added, found.alpha) < 0.8


def test_the_queries_needed_allow_for_an_interval_wider_than_by_t():
    moved = np.append(np.full(20, 0.05) + np.arange(20) / 1000, -0.9)
    found = replace(_differing(moved).difference("new"), measure=parse("DCG@10"))
    wider = max(found.difference - found.low, found.high - found.difference)
    by_t = scipy_stats.t.ppf(0.975, 20) * found.sd / math.sqrt(21)
    sd, size, needed = stats.planning_sd(found.sd, 21), abs(found.difference), found.queries_needed
    assert needed > stats.queries_needed(sd, size) + 5
    # The part that is wider than by t decreases from 21 to N queries as 21 / N.
    left = size - (wider - by_t) * 21 / needed
    assert stats.power(sd, needed, left) == pytest.approx(0.8, abs=0.02)


def test_detectable_differences_are_not_reversed_by_two_failing_queries():
    moved = np.random.default_rng(0).normal(0, 0.05, 30)
    found = _differing(moved).difference("new")
    sd = stats.planning_sd(found.sd, 30)
    kept = scipy_stats.norm.cdf((found.detectable - 2 / 30) * math.sqrt(30) / sd)
    assert kept == pytest.approx(0.8)
    assert found.power(found.detectable) == pytest.approx(0.8)
    size, needed = abs(found.difference), found.queries_needed
    kept = [scipy_stats.norm.cdf((size - 2 / n) * math.sqrt(n) / sd) for n in (needed - 1, needed)]
    assert kept[0] < 0.8 <= kept[1] + 1e-9


def test_a_tiny_difference_does_not_ask_for_millions_of_queries():
    qrels = {f"q{n}": {"d": 1} for n in range(20_000)}
    old = {f"q{n}": ["d", "x"] if n % 2 else ["x", "d"] for n in range(20_000)}
    new = {f"q{n}": ["x", "d"] if n % 2 and n > 1 else ["d", "x"] for n in range(20_000)}
    found = compare(qrels, {"old": old, "new": new}, "RR").difference("new")
    assert 0 < found.difference < 1e-4
    assert found.queries_needed is None
    assert found.verdict == "cannot tell"


def test_the_best_of_several_runs_is_compared_with_all_others():
    """s1 nearly equals s2; the comparison with s0 alone does not cover this pair."""
    near = {q: dict(docs) for q, docs in RUNS["s2"].items()}
    near["q0"] = dict(reversed(list(near["q1"].items())))
    found = compare(QRELS, {"s0": RUNS["s0"], "s1": near, "s2": RUNS["s2"]}, "nDCG@10")
    assert "; not distinguishable from " in found.sentences[0]
    assert "other pairs: max-T over all pairs of runs" in found.sentences[0]


def _near() -> dict:
    """Return runs that hardly differ, so that no p-value is at an end of its range."""
    rng = np.random.default_rng(11)
    return {
        f"n{s}": {q: {d: x + rng.normal(0, 0.7) for d, x in docs.items()} for q, docs in RUNS["s1"].items()}
        for s in range(3)
    }


NEAR = _near()


@pytest.mark.parametrize(
    "kind",
    [{}, {"pairs": "all", "interval": "percentile"}, {"test": "tukey-hsd", "interval": "bca"}, {"correction": "max-t"}],
)
def test_nothing_but_the_tested_values_of_queries_decides_a_p_value(kind):
    """Neither the order of queries nor other measures matter."""
    turned = dict(reversed(QRELS.items()))
    turned_runs = {n: dict(reversed(run.items())) for n, run in NEAR.items()}
    tested = ["nDCG@10", "AP"]
    one, more, other = (
        compare(qrels, runs, shown, tested=tested, draws=500, **kind)
        for qrels, runs, shown in (
            (QRELS, NEAR, tested),
            (QRELS, NEAR, [*tested, "P@5", "RR"]),
            (turned, turned_runs, tested),
        )
    )
    assert all(0.02 < d.p < 0.98 for d in one.differences)
    assert repr(one.differences) == repr(other.differences)
    assert repr(list(one.differences)) == repr([d for d in more.differences if d.verdict])


def test_the_order_of_two_runs_decides_no_p_value():
    one = compare(QRELS, {n: NEAR[n] for n in ("n0", "n1")}, "nDCG@10", draws=500)
    other = compare(QRELS, {n: NEAR[n] for n in ("n1", "n0")}, "nDCG@10", draws=500, baseline="n0")
    assert repr(one.difference("n1")) == repr(other.difference("n1"))


def test_max_t_keeps_the_queries_of_its_columns_together():
    names = ["nDCG@10", "AP"]
    found = compare(QRELS, NEAR, names, tested=names, correction="max-t", draws=20_000)
    values = {(run, name): evaluate(QRELS, NEAR[run], name).per_query[:, 0] for run in NEAR for name in names}
    table = np.stack([values[r, name] - values["n0", name] for r in ("n1", "n2") for name in names], axis=1)
    # From the paper: the largest |t| over all columns under each pattern of signs.
    signs = np.random.default_rng(3).choice([-1.0, 1.0], (20_000, len(table)))
    norm = np.sqrt((table**2).sum(axis=0))
    largest = (abs(signs @ table) / norm).max(axis=1)
    theirs = [(largest >= t - 1e-12).mean() for t in abs(table.sum(axis=0)) / norm]
    assert [d.corrected for d in found.differences] == pytest.approx(theirs, abs=0.015)


def test_a_geometric_mean_is_compared_by_logarithms():
    names = ["GMAP", "AP"]
    found = compare(QRELS, RUNS, names, test="t")
    for run in ("s1", "s2"):
        floor = [np.maximum(values_of(name, "AP"), 1e-5) for name in (run, "s0")]
        theirs = scipy_stats.ttest_rel(np.log(floor[0]), np.log(floor[1]))
        ours = found.difference(run)
        assert ours.p == pytest.approx(theirs.pvalue, rel=1e-8)
        assert math.exp(ours.difference) == pytest.approx(ours.mean / ours.baseline_mean, rel=1e-9)
    notes = found.differences_table().notes
    assert "GMAP: differences are natural logarithms of ratios" in notes
    assert not any("logarithm" in note for note in FOUND.differences_table().notes)


def test_a_geometric_mean_can_change_in_the_other_direction_than_the_plain_one():
    """One large loss outweighs a large gain in the geometric mean."""
    qrels = {f"q{n}": {"d": 1} for n in range(6)}
    old = {q: [*(f"x{n}" for n in range(9)), "d"] for q in qrels}
    new = old | {"q0": ["d"], "q1": [*(f"x{n}" for n in range(999)), "d"]}
    found = compare(qrels, {"old": old, "new": new}, ["GMAP", "AP"])
    assert found.difference("new", "AP").difference > 0 > found.difference("new").difference


def test_max_t_refuses_columns_of_different_queries_even_if_they_are_as_many():
    qrels = {f"q{n}": {"d": 1} for n in range(6)}
    runs = {
        "a": {q: ["d"] for q in qrels},
        "b": {q: ["x", "d"] for q in ("q0", "q1", "q2")},
        "c": {q: ["x", "d"] for q in ("q3", "q4", "q5")},
    }
    with pytest.raises(InputError, match="max-t needs the same queries"):
        compare(qrels, runs, "FirstRel", correction="max-t")


def _differing(moved):
    """Return a comparison of two evaluations with these differences in RR."""
    qrels = {f"q{n}": {"d": 1} for n in range(len(moved))}
    run = {q: ["x", "d"] for q in qrels}
    made = replace(evaluate(qrels, run, "RR"), run_name="old")
    return compare([made, replace(made, run_name="new", per_query=made.per_query + np.c_[moved])])


def test_intervals_are_the_wider_one_of_t_and_of_weighted_means():
    moved = 100 * np.random.default_rng(2).normal(0.02, 0.1, 40) ** 3
    found = _differing(moved).difference("new")
    assert (found.low, found.high) == pytest.approx(stats.mean_interval(moved))
    by_t = scipy_stats.ttest_1samp(moved, 0).confidence_interval(0.95)
    assert found.low <= by_t.low
    assert found.high >= by_t.high


@pytest.mark.parametrize(
    ("moved", "why"),
    [
        ([0.25] * 20, "no spread"),
        ([0.25] * 7 + [0.0] * 50, "only 7 queries differ"),
        ([0.25] * 8 + [0.0] * 50, ""),
        ([0.01, 0.02] * 20, "too narrow for 40 queries"),
    ],
)
@pytest.mark.parametrize("interval", ["conservative", "t", "percentile", "bca"])
def test_there_is_no_interval_of_few_differences_or_of_equal_ones(moved, why, interval):
    evaluations = _differing(moved).evaluations
    found = compare(evaluations, interval=interval).difference("new")
    assert found.no_interval == why
    assert math.isnan(found.low) == math.isnan(found.high) == bool(why)
    assert why.replace(" queries", "") in found.interval_text()


@pytest.mark.parametrize("interval", ["conservative", "percentile", "bca"])
@pytest.mark.parametrize("correction", ["holm", "max-t"])
@pytest.mark.parametrize("pairs", ["baseline", "all"])
def test_another_baseline_mirrors_every_number(interval, correction, pairs):
    for names in (("s0", "s1"), ("s1", "s2")):
        runs = {name: RUNS[name] for name in names}
        one, other = (
            compare(
                QRELS,
                runs,
                ["nDCG@10", "AP", "RR"],
                tested=["nDCG@10", "RR"],
                baseline=baseline,
                interval=interval,
                correction=correction,
                pairs=pairs,
                draws=500,
            )
            for baseline in names
        )
        for measure in ("nDCG@10", "RR", "AP"):
            found = one.difference(names[1], measure)
            assert repr(found.mirrored()) == repr(other.difference(names[0], measure))


@pytest.mark.parametrize("test", ["randomization", "tukey-hsd"])
def test_the_order_of_runs_changes_no_p_value_of_all_pairs(test):
    found = [
        compare(QRELS, {n: RUNS[n] for n in names}, "RR", pairs="all", test=test, draws=500)
        for names in (("s0", "s1", "s2"), ("s2", "s0", "s1"))
    ]
    for run, baseline in (("s0", "s1"), ("s1", "s2"), ("s0", "s2")):
        one, other = (c.difference(run, baseline=baseline) for c in found)
        assert (one.p, one.corrected, one.verdict) == (other.p, other.corrected, other.verdict)


def test_a_difference_significant_only_before_correction_is_reported_as_such():
    runs = {f"s{n}": RUNS["s0"] for n in range(12)} | {"new": RUNS["s2"]}
    one = FOUND.evaluations[0]
    moved = np.random.default_rng(1).normal(0.03, 0.1, one.per_query.shape)
    others = [replace(one, run_name=name) for name in runs]
    others[-1] = replace(others[-1], per_query=one.per_query + moved)
    found = compare(others)
    new = found.difference("new")
    assert new.p < 0.05 < new.corrected
    assert new.verdict == "cannot tell"
    message = f"not significant after correction (p = {new.corrected:.4f})"
    assert any(message in sentence for sentence in found.sentences)


@pytest.mark.parametrize("tests", [1, 5])
def test_detectable_differences_are_detected_at_the_corrected_level(tests):
    rng = np.random.default_rng(tests)
    first = FOUND.evaluations[0]
    moved = rng.normal(0, 0.1, (50, 1))
    base = select(first, first.measures[:1], range(50))
    runs = [base, *(replace(base, run_name=f"r{n}") for n in range(tests))]
    runs[1] = replace(runs[1], per_query=base.per_query + moved)
    found = compare(runs).difference("r0")
    assert found.alpha == 0.05 / tests
    found = replace(found, measure=parse("DCG@10"))  # without a largest value
    sd = stats.planning_sd(found.sd, found.queries)
    draws = rng.normal(found.detectable, sd, (4000, 50))
    p = scipy_stats.ttest_1samp(draws, 0, axis=1).pvalue
    # The interval is stricter than this test.
    assert 0.77 <= (p < 0.05 / tests).mean() <= 0.88


@pytest.mark.parametrize(
    ("measure", "scale", "limited"),
    [("nDCG@10", 1, True), ("nDCG@10", 100, False), ("GMAP", 1, False), ("DCG@10", 1, False)],
)
def test_differences_beyond_the_range_of_the_measure_are_not_detectable(measure, scale, limited):
    columns = {"old": (1, 0.1, 1, 0.1, 1, 0.1, 1), "new": (0.1, 1, 0.1, 1, 0.5, 0.5, 0.1)}
    found = compare(
        [
            Evaluation.from_values(name, "abcdefg", {measure: [scale * value for value in column]})
            for name, column in columns.items()
        ]
    ).differences[0]
    needed = stats.detectable_difference(stats.planning_sd(found.sd, 7), 7)
    assert needed > scale
    assert (found.detectable is None) == limited
    assert ("detectable" in difference_sentence(found)) != limited


@pytest.mark.parametrize(("queries", "changed"), [(50, 10), (100, 20), (200, 12)])
def test_detectable_differences_of_success_change_more_queries(queries, changed):
    moved = np.zeros(queries)
    moved[:changed] = [(-1.0) ** n for n in range(changed)]
    found = _differing(moved).difference("new")
    share = math.hypot(changed / queries, found.detectable)
    rng = np.random.default_rng(queries)
    differing = rng.binomial(queries, share, 20_000)
    won = rng.binomial(differing, (1 + found.detectable / share) / 2)
    least = np.minimum(won, differing - won)
    p = np.minimum(1.0, 2 * scipy_stats.binom.cdf(least, differing, 0.5))
    assert 0.79 <= (p < 0.05).mean() <= 0.96


def test_six_queries_do_not_show_which_differences_are_detectable():
    moved = np.array([0.1, -0.2, 0.3, 0.1, 0.2, -0.1, 0.2])
    found = _differing(moved[:6]).difference("new")
    assert (found.detectable, found.queries_needed) == (None, None)
    with pytest.raises(InputError, match="sd=inf"):
        found.power(0.1)
    more = _differing(moved).difference("new")
    assert more.queries_needed > 30


@pytest.mark.parametrize(("rare", "warned"), [(0.9, True), (0.11, False)])
def test_a_small_p_value_of_skewed_differences_is_a_warning(rare, warned):
    moved = np.r_[np.linspace(0.05, 0.15, 30), rare]
    codes = [found.code for found in _differing(moved).findings]
    assert ("C111" in codes) == warned


@pytest.mark.parametrize(("gain", "indistinct"), [(0.01, True), (0.1, False)])
def test_a_run_is_distinguished_from_the_best_by_the_rules_of_all_verdicts(gain, indistinct):
    """Of 40 gains of 0.01, one more failing query would be the reverse; of 0.1, not even two."""
    noise = np.random.default_rng(0).normal(0, 0.001, (3, 40))
    values = {"a": 0.5 + noise[0], "b": 0.5 + noise[1], "c": 0.5 + gain + noise[2]}
    names = [f"q{n}" for n in range(40)]
    found = compare([Evaluation.from_values(n, names, {"nDCG@10": v.tolist()}) for n, v in values.items()])
    assert found.sentences[0].startswith("c has the highest nDCG@10")
    assert ("not distinguishable from a and b" in found.sentences[0]) is indistinct
    assert ("not distinguishable" in found.sentences[0]) is indistinct

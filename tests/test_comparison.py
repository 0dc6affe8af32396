"""compare() and Comparison: which run is better, by how much, and how sure that is."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests

from rankgauge import InputError, Run, UnknownName, compare, evaluate, report_comparison


def _made(queries: int = 60, systems: int = 3, seed: int = 1) -> tuple[dict, dict]:
    """Runs over one set of judgments; system s is better the higher s is."""
    rng = np.random.default_rng(seed)
    qrels, runs = {}, {f"s{s}": {} for s in range(systems)}
    for q in range(queries):
        grades = rng.integers(0, 3, 30)
        qrels[f"q{q}"] = {f"d{d}": int(grade) for d, grade in enumerate(grades)}
        hard = rng.normal(0, 1.5, 30)
        for s in range(systems):
            scores = grades * (0.4 + 0.25 * s) + hard + rng.normal(0, 0.6, 30)
            runs[f"s{s}"][f"q{q}"] = {f"d{d}": float(x) for d, x in enumerate(scores)}
    return qrels, runs


QRELS, RUNS = _made()
FOUND = compare(QRELS, RUNS, ["nDCG@10", "AP"])


def _values(name: str, measure: str) -> np.ndarray:
    return evaluate(QRELS, RUNS[name], measure).per_query[:, 0]


def test_differences_are_those_of_the_evaluations():
    for run in ("s1", "s2"):
        apart = _values(run, "nDCG@10") - _values("s0", "nDCG@10")
        found = FOUND.difference(run)
        assert found.difference == pytest.approx(apart.mean(), abs=1e-12)
        assert (found.wins, found.ties, found.losses) == (
            (apart > 1e-12).sum(), (abs(apart) <= 1e-12).sum(), (apart < -1e-12).sum(),
        )  # fmt: skip
        assert found.effect == pytest.approx(apart.mean() / apart.std(ddof=1), rel=1e-9)


def test_intervals_and_t_p_values_are_those_of_scipy():
    found = compare(QRELS, RUNS, "nDCG@10", test="t")
    for run in ("s1", "s2"):
        theirs = scipy_stats.ttest_rel(_values(run, "nDCG@10"), _values("s0", "nDCG@10"))
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


def test_only_the_primary_measure_is_tested_unless_others_are_declared():
    assert FOUND.primary == FOUND.tested[0]
    assert [str(d.measure) for d in FOUND.differences if d.p is not None] == ["nDCG@10"] * 2
    assert FOUND.difference("s1", "AP").verdict is None


def test_identical_runs_are_identical_and_never_nan():
    found = compare(QRELS, {"a": RUNS["s0"], "b": RUNS["s0"]}, "nDCG@10").difference("b")
    assert (found.difference, found.p, found.corrected, found.verdict) == (
        0.0,
        1.0,
        1.0,
        "identical",
    )
    assert (found.low, found.high, found.effect) == (0.0, 0.0, 0.0)
    assert found.ties == 60


def test_two_calls_say_the_same_to_the_last_bit():
    assert compare(QRELS, RUNS, ["nDCG@10", "AP"]) == FOUND
    assert pickle.loads(pickle.dumps(FOUND)) == FOUND


def test_the_order_of_queries_changes_nothing_but_the_seed():
    other = {name: dict(reversed(run.items())) for name, run in RUNS.items()}
    assert compare(QRELS, other, ["nDCG@10", "AP"]).differences == FOUND.differences


def test_the_best_run_is_named_with_its_measure():
    assert FOUND.sentences[0].startswith("s2 has the highest nDCG@10 (0.")
    lower = compare(QRELS, RUNS, "FirstRel")
    assert (
        "has the lowest FirstRel" in lower.sentences[0] or "have the lowest" in lower.sentences[0]
    )


def test_what_cannot_be_told_says_how_many_queries_would():
    qrels, runs = _made(queries=30, systems=1, seed=5)
    rng = np.random.default_rng(0)
    near = {
        q: {d: s + rng.normal(0, 0.3) for d, s in docs.items()} for q, docs in runs["s0"].items()
    }
    found = compare(qrels, {"old": runs["s0"], "new": near}, "nDCG@10")
    assert found.difference("new").verdict == "cannot tell"
    assert "cannot tell; 30 queries show a difference of" in found.sentences[1]
    assert "queries" in found.sentences[1].rpartition("needs about")[2]


def test_a_lower_value_can_be_the_better_one():
    qrels = {f"q{n}": {"d": 1} for n in range(10)}
    early = {f"q{n}": ["d", "x", "y"] for n in range(10)}
    late = {f"q{n}": ["x", "y", "d"] for n in range(10)}
    found = compare(qrels, {"late": late, "early": early}, "FirstRel").difference("early")
    assert (found.difference, found.wins, found.verdict) == (-2.0, 10, "better")


def test_a_baseline_can_be_any_run():
    found = compare(QRELS, RUNS, "nDCG@10", baseline="s2")
    assert found.difference("s0").difference == -FOUND.difference("s2").difference
    assert found.difference("s0").verdict == "worse"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: {q: dict(list(d.items())[:4]) for q, d in r.items()}, "different depths"),
        (
            lambda r: {q: {f"{k}x": v for k, v in d.items()} for q, d in r.items()},
            "Judged@10 differs",
        ),
        (lambda r: r | {"q0": dict(reversed(list(r["q1"].items())))}, "look at them one by one"),
    ],
)
def test_what_speaks_against_the_numbers_is_said(change, said):
    found = compare(QRELS, {"a": RUNS["s0"], "b": change(RUNS["s0"])}, "nDCG@10")
    assert any(said in warning for warning in found.warnings)


def test_few_queries_are_a_warning():
    qrels, runs = _made(queries=8)
    assert compare(qrels, runs, "nDCG@10").warnings[0].startswith("8 queries are few")


@pytest.mark.parametrize(
    ("act", "error", "said"),
    [
        (lambda: compare(QRELS, {"a": RUNS["s0"]}, "RR"), InputError, "got 1 run, wanted two"),
        (lambda: compare(QRELS, [Run.of(RUNS["s0"]), Run.of(RUNS["s1"])], "RR"), InputError,
         "two runs are called 'run'"),
        (lambda: compare(QRELS, RUNS, "RR", baseline="no"), UnknownName, "no run is called 'no'"),
        (lambda: compare(QRELS, RUNS, "RR", test="sign"), UnknownName, "test='sign'"),
        (lambda: compare(QRELS, RUNS, "RR", correction="none"), UnknownName, "correction='none'"),
        (lambda: compare({"q": {"d"}}, {"a": {"q": ["d"]}, "b": {"q": ["x"]}}, "RR"), InputError,
         "one query is no ground"),
        (lambda: compare(QRELS, 7, "RR"), InputError, "got int where runs"),
        (lambda: compare(QRELS, RUNS, []), InputError, "no measure was asked for"),
        (lambda: FOUND.difference("s9"), InputError, "was not compared"),
    ],
)  # fmt: skip
def test_bad_input_is_told(act, error, said):
    with pytest.raises(error) as caught:
        act()
    assert said in str(caught.value)


def test_values_that_rounding_sets_apart_are_the_same():
    qrels = {f"q{n}": {f"d{m}": 1 for m in range(3)} for n in range(20)}
    one = {f"q{n}": ["d0", "x", "d1", "y", "d2"] for n in range(20)}
    found = compare(qrels, {"a": one, "b": dict(one)}, "P@5").difference("b")
    assert found.verdict == "identical"


def test_tables_name_every_run_and_measure():
    text = report_comparison(FOUND)
    assert text.splitlines()[0].split() == ["measure", "s0", "s1", "s2"]
    assert "against s0" in text
    assert "corrected by holm" in text
    assert "<table" in FOUND._repr_html_()
    assert len(report_comparison(FOUND, "csv", described=False).splitlines()) == 3
    assert not any(math.isnan(d.difference) for d in FOUND.differences)


def test_an_unknown_test_is_refused_also_where_none_is_needed():
    with pytest.raises(UnknownName, match="test='sign' is not possible"):
        compare(QRELS, {"a": RUNS["s0"], "b": RUNS["s0"]}, "RR", test="sign")


def test_interval_and_p_value_that_disagree_are_borderline():
    """Five wins of thirty: the exact p is 2 / 2^5 = .0625, the t interval lies above zero."""
    qrels = {f"q{n}": {"d": 1} for n in range(30)}
    old = {f"q{n}": ["x", "d"] for n in range(30)}
    new = {f"q{n}": ["d", "x"] if n < 5 else ["x", "d"] for n in range(30)}
    found = compare(qrels, {"old": old, "new": new}, "RR").difference("new")
    assert found.p == 0.0625
    assert found.low > 0
    assert found.verdict == "borderline"


def test_both_means_stand_beside_the_difference():
    for d in FOUND.differences:
        assert d.mean == evaluate(QRELS, RUNS[d.run], d.measure).mean()[str(d.measure)]
        assert d.baseline_mean == evaluate(QRELS, RUNS["s0"], d.measure).mean()[str(d.measure)]

"""compare() and Comparison: which run is better, by how much, and how sure that is."""

import csv
import io
import json
import math
import pickle
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests

from rankgauge import (
    Evaluation,
    InputError,
    Run,
    UnknownName,
    compare,
    evaluate,
    plot,
    stats,
    write_run,
)
from rankgauge.comparison import Design, conclusions
from rankgauge.comparison.differences import select
from rankgauge.core.findings import COMPARISON_KINDS
from rankgauge.reports import Options, render


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
    found = compare(QRELS, RUNS, "nDCG@10", test="t", interval="t")
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


def test_identical_runs_are_identical_and_have_no_interval():
    found = compare(QRELS, {"a": RUNS["s0"], "b": RUNS["s0"]}, "nDCG@10").difference("b")
    assert (found.difference, found.p, found.corrected, found.verdict) == (
        0.0,
        1.0,
        1.0,
        "identical",
    )
    assert (found.no_interval, found.effect) == ("no query differs", 0.0)
    assert found.ties == 60


def test_two_calls_say_the_same_to_the_last_bit():
    assert compare(QRELS, RUNS, ["nDCG@10", "AP"]) == FOUND
    assert pickle.loads(pickle.dumps(FOUND)) == FOUND


@pytest.mark.parametrize(
    "how",
    [
        {}, {"pairs": "all", "interval": "bca"}, {"correction": "max-t"}, {"test": "tukey-hsd"},
        {"queries": "intersection"},
    ],
)  # fmt: skip
def test_the_number_of_jobs_changes_nothing(tmp_path, how):
    paths = {}
    for name, run in RUNS.items():
        paths[name] = tmp_path / f"{name}.run"
        write_run(Run.of(run, name=name), paths[name])
    alone = compare(QRELS, paths, ["nDCG@10", "AP"], **how)
    for runs in (paths, RUNS):
        found = compare(QRELS, runs, ["nDCG@10", "AP"], **how, jobs=3)
        assert found.to_dict() == alone.to_dict()
    assert found.differences == alone.differences


def test_an_error_in_a_thread_is_the_error_of_the_first_run_that_has_one(tmp_path):
    paths = {name: tmp_path / f"{name}.run" for name in ("good", "bad", "worse")}
    paths["good"].write_text("q0 Q0 d1 1 2.0 x\n", encoding="utf-8")
    paths["bad"].write_text("q0 Q0 d1 1 2.0 x\nq0 Q0 d2 2 high x\n", encoding="utf-8")
    paths["worse"].write_text("q0 Q0 d1\n", encoding="utf-8")
    said = []
    for jobs in (1, 3):
        with pytest.raises(InputError, match=r"bad\.run.*line 2") as caught:
            compare(QRELS, paths, "AP", jobs=jobs)
        said.append(str(caught.value))
    assert said[0] == said[1]


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
    assert "with 30 queries, differences of " in found.sentences[1]
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
    assert compare(qrels, runs, "nDCG@10").warnings[0].startswith("only 8 queries")


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
    one = FOUND.evaluations[0]
    nearly = replace(one, run_name="nearly", per_query=one.per_query * (1 + 4e-16))
    assert not np.array_equal(one.per_query, nearly.per_query)
    found = compare([one, nearly]).difference("nearly")
    assert (found.verdict, found.ties, found.p) == ("identical", 60, 1.0)


def test_tables_name_every_run_and_measure():
    text = render(FOUND)
    assert text.splitlines()[0].split() == ["measure", "s0", "s1", "s2"]
    assert "compared with s0" in text
    assert "corrected by holm" in " ".join(render(FOUND, "table", Options(full=True)).split())
    assert "<table" in FOUND._repr_html_()
    assert "AP" not in render(FOUND).partition("compared with s0")[2].partition("•")[0]
    assert not any(math.isnan(d.difference) for d in FOUND.differences)


def test_an_unknown_test_is_refused_also_where_none_is_needed():
    with pytest.raises(UnknownName, match="test='sign' is not possible"):
        compare(QRELS, {"a": RUNS["s0"], "b": RUNS["s0"]}, "RR", test="sign")


@pytest.mark.parametrize("test", ["randomization", "t", "wilcoxon", "tukey-hsd"])
def test_with_five_queries_that_differ_no_test_is_sure(test):
    """Five wins of thirty: the exact p is 2 / 2^5 = .0625, the t interval would be above 0."""
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


def test_both_means_stand_beside_the_difference():
    for d in FOUND.differences:
        assert d.mean == evaluate(QRELS, RUNS[d.run], d.measure).mean()[str(d.measure)]
        assert d.baseline_mean == evaluate(QRELS, RUNS["s0"], d.measure).mean()[str(d.measure)]


def test_all_pairs_are_compared_where_asked_and_seen_from_either_side():
    found = compare(QRELS, RUNS, "nDCG@10", pairs="all")
    pairs = [(d.run, d.baseline) for d in found.differences]
    assert pairs == [("s1", "s0"), ("s2", "s0"), ("s2", "s1")]
    apart = _values("s2", "nDCG@10") - _values("s1", "nDCG@10")
    one = found.difference("s2", baseline="s1")
    assert one.difference == pytest.approx(apart.mean(), abs=1e-12)
    other = found.difference("s1", baseline="s2")
    assert (other.difference, other.low, other.high) == (-one.difference, -one.high, -one.low)
    assert (other.wins, other.losses, other.mean) == (one.losses, one.wins, one.baseline_mean)
    assert {one.verdict, other.verdict} in ({"better", "worse"}, {"cannot tell"})
    assert other.mirrored() == one


def test_all_pairs_have_the_p_values_of_each_pair_by_itself():
    """The draws differ; what is left is the error of 10,000 of them."""
    found = compare(QRELS, RUNS, "nDCG@10", pairs="all")
    theirs = scipy_stats.permutation_test(
        (_values("s2", "nDCG@10"), _values("s1", "nDCG@10")),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        random_state=1,
    )
    assert found.difference("s2", baseline="s1").p == pytest.approx(theirs.pvalue, abs=0.01)


def test_tukey_hsd_is_that_of_the_statistics_and_pays_for_each_measure():
    names = ["nDCG@10", "AP"]
    found = compare(QRELS, RUNS, names, tested=names, test="tukey-hsd", draws=2_000)
    for name in names:
        values = np.stack([_values(run, name) for run in RUNS], axis=1)
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
    columns = [_values(r, n) - _values("s0", n) for r in ("s1", "s2") for n in names]
    theirs = stats.max_t(np.stack(columns, axis=1), 2_000, found.design.seed).p
    assert [d.corrected for d in found.differences] == theirs.tolist()
    assert all(d.corrected >= d.p - 0.02 for d in found.differences)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_intervals_by_bootstrap_are_those_of_scipy(method):
    found = compare(QRELS, RUNS, "nDCG@10", interval=method).difference("s2")
    apart = _values("s2", "nDCG@10") - _values("s0", "nDCG@10")
    theirs = scipy_stats.bootstrap(
        (apart,), np.mean, method=method, n_resamples=20_000, random_state=1
    ).confidence_interval
    width = theirs.high - theirs.low
    assert found.low == pytest.approx(theirs.low, abs=0.05 * width)
    assert found.high == pytest.approx(theirs.high, abs=0.05 * width)


def test_what_is_detectable_is_by_the_power_of_the_t_test():
    found = FOUND.difference("s1")
    assert found.power(found.detectable) == pytest.approx(0.8, abs=1e-6)
    needed = found.queries_needed
    assert found.alpha == 0.025  # two runs are tested
    assert stats.power(found.sd, needed, found.difference, found.alpha) >= 0.8
    assert stats.power(found.sd, needed - 1, found.difference, found.alpha) < 0.8


def test_a_tiny_difference_does_not_ask_for_millions_of_queries():
    qrels = {f"q{n}": {"d": 1} for n in range(20_000)}
    old = {f"q{n}": ["d", "x"] if n % 2 else ["x", "d"] for n in range(20_000)}
    new = {f"q{n}": ["x", "d"] if n % 2 and n > 1 else ["d", "x"] for n in range(20_000)}
    found = compare(qrels, {"old": old, "new": new}, "RR").difference("new")
    assert 0 < found.difference < 1e-4
    assert found.queries_needed is None
    assert found.verdict == "cannot tell"


def test_the_best_of_several_runs_is_held_against_all_of_them():
    """s1 is nearly s2: nothing was said of the two by the comparison with s0 alone."""
    near = {q: dict(docs) for q, docs in RUNS["s2"].items()}
    near["q0"] = dict(reversed(list(near["q1"].items())))
    found = compare(QRELS, {"s0": RUNS["s0"], "s1": near, "s2": RUNS["s2"]}, "nDCG@10")
    assert "; not distinguishable from " in found.sentences[0]
    assert "Tukey HSD" in found.sentences[0]


def test_many_runs_are_told_in_a_few_sentences():
    runs = {f"r{n}": RUNS["s2" if n < 7 else "s0"] for n in range(12)}
    found = compare(QRELS, runs, "nDCG@10", pairs="all", draws=200)
    assert len(found.sentences) == 22
    assert found.sentences[-1].startswith("46 more comparisons were tested: ")
    assert "r0, r1, r2, r3, r4 and 2 more have the highest" in found.sentences[0]


def test_the_table_can_be_transposed():
    table, turned = FOUND.table(), FOUND.table(transposed=True)
    assert turned.columns == ("run", "nDCG@10", "AP")
    assert [row[0] for row in turned.rows] == ["s0", "s1", "s2"]
    for row, column in table.best:
        assert (column - 1, row + 1) in turned.best
        assert table.rows[row][column] == turned.rows[column - 1][row + 1]
    assert len(table.best) == len(turned.best) == 2


def test_the_json_is_by_its_schema():
    schema = json.loads(
        resources.files("rankgauge.schemas").joinpath("comparison-1.json").read_text()
    )
    equal = {q: ["d", "x"] for q in ("q1", "q2")}, {q: ["x", "d"] for q in ("q1", "q2")}
    judged = {"q1": {"d"}, "q2": {"d"}}
    for found in (
        FOUND,
        compare(QRELS, RUNS, ["RR", "AP"], pairs="all", test="t", interval="bca", draws=500),
        compare(judged, {"a": equal[0], "b": equal[1]}, ["RR", "FirstRel", "NumRel"]),
        compare(judged, {"a": equal[0], "b": {"q1": []}}, "nDCG@10"),
    ):
        data = json.loads(found.to_json())
        jsonschema.validate(data, schema)
        assert data["differences"][0]["difference"] == found.differences[0].difference
        assert data["design"]["seed"] == found.design.seed


def test_evaluations_are_compared_as_their_runs_are():
    evaluations = [
        evaluate(QRELS, Run.of(run, name=n), ["nDCG@10", "AP"]) for n, run in RUNS.items()
    ]
    found = compare(evaluations)
    assert found.differences == FOUND.differences
    assert found.sentences == FOUND.sentences
    again = compare(evaluations, tested="AP", baseline="s1", pairs="all", test="t")
    assert [str(m) for m in again.tested] == ["AP"]
    assert again.baseline == "s1"


def test_queries_that_are_in_every_run_can_be_compared_alone():
    short = {q: docs for q, docs in RUNS["s1"].items() if int(q[1:]) < 40}
    shorter = {q: docs for q, docs in RUNS["s2"].items() if int(q[1:]) >= 10}
    runs = {"a": RUNS["s0"], "b": short, "c": shorter}
    found = compare(QRELS, runs, "RR", queries="intersection")
    assert [e.query_ids for e in found.evaluations] == [tuple(f"q{n}" for n in range(10, 40))] * 3
    every = compare(QRELS, runs, "RR")
    assert any("count as empty rankings (b 20, c 10)" in text for text in every.warnings)


def test_ties_that_could_change_the_numbers_are_a_warning():
    flat = {q: dict.fromkeys(docs, 1.0) for q, docs in RUNS["s0"].items()}
    found = compare(QRELS, {"a": RUNS["s0"], "flat": flat}, "nDCG@10")
    assert any("of 60 queries (flat 60)" in text for text in found.warnings)


def test_one_query_that_carries_the_difference_is_named():
    qrels = {f"q{n}": {"d": 1} for n in range(30)}
    old = {q: ["d", "x"] for q in qrels}
    some = old | {f"q{n}": ["x", "d"] for n in range(7)}
    deep = some | {"q9": [*(f"y{m}" for m in range(100)), "d"]}
    found = compare(qrels, {"old": old, "new": deep}, "FirstRel")
    assert (
        "new against old: query 'q9' alone accounts for most of the difference (C106)"
        in found.warnings
    )
    even = compare(qrels, {"old": old, "new": some}, "FirstRel")
    assert not any("alone carries" in text for text in even.warnings)


def test_a_measure_undefined_for_most_queries_is_compared_where_it_is_defined():
    qrels = {f"q{n}": {"d": 1} for n in range(12)}
    one = {q: ["d"] for q in list(qrels)[:3]}
    two = {q: ["x", "d"] for q in list(qrels)[1:4]}
    found = compare(qrels, {"a": one, "b": two}, "FirstRel", queries="all").difference("b")
    assert found.queries == 2
    assert (found.difference, found.wins, found.losses) == (1.0, 0, 2)
    nothing = compare(qrels, {"a": one, "b": {"q11": ["d"], "q0": ["x"]}}, "FirstRel").difference(
        "b"
    )
    assert (nothing.queries, nothing.p, nothing.verdict) == (0, 1.0, "withheld")


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda: compare(QRELS, RUNS, "RR", test="t", correction="max-t"), "max-t corrects the"),
        (lambda: compare(QRELS, RUNS, "RR", interval="normal"), "interval='normal'"),
        (lambda: compare(QRELS, RUNS, "RR", pairs="some"), "pairs='some'"),
        (lambda: Design((), "a"), "no measure is tested"),
        (lambda: compare(FOUND.evaluations[:1]), "got 1 run"),
        (lambda: compare(FOUND.evaluations, tested="RR"),
         "RR was not evaluated"),
        (lambda: compare(FOUND.evaluations, tested="AP", baseline="x"), "no run is called"),
        (lambda: compare([FOUND.evaluations[0], evaluate(QRELS, RUNS["s1"], "AP")]),
         "differ in their measures"),
        (lambda: compare({"q1": {"d"}, "q2": {"d"}},
                         {"a": {"q1": ["d"]}, "b": {"q2": ["d"]}, "c": {"q1": ["d"], "q2": ["d"]}},
                         "RR", queries="intersection"), "no judged query is in every run"),
    ],
)  # fmt: skip
def test_designs_that_cannot_be_are_refused(act, said):
    with pytest.raises((InputError, UnknownName)) as caught:
        act()
    assert said in str(caught.value)
    assert caught.value.fix


def _near() -> dict:
    """Runs that are hardly apart: no p-value is at an end of its range."""
    rng = np.random.default_rng(11)
    return {
        f"n{s}": {
            q: {d: x + rng.normal(0, 0.7) for d, x in docs.items()}
            for q, docs in RUNS["s1"].items()
        }
        for s in range(3)
    }


NEAR = _near()


@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"pairs": "all", "interval": "percentile"},
        {"test": "tukey-hsd", "interval": "bca"},
        {"correction": "max-t"},
    ],
)
def test_nothing_but_the_tested_values_decides_a_p_value(kind):
    """Neither the order of queries, their names, nor what else is shown."""
    names = {q: f"z{n * 7 % 60}" for n, q in enumerate(reversed(QRELS))}
    renamed = {names[q]: QRELS[q] for q in names}
    renamed_runs = {n: {names[q]: d for q, d in run.items()} for n, run in NEAR.items()}
    tested = ["nDCG@10", "AP"]
    one, more, other = (
        compare(qrels, runs, shown, tested=tested, draws=500, **kind)
        for qrels, runs, shown in (
            (QRELS, NEAR, tested),
            (QRELS, NEAR, [*tested, "P@5", "RR"]),
            (renamed, renamed_runs, tested),
        )
    )
    assert all(0.02 < d.p < 0.98 for d in one.differences)
    assert one.differences == other.differences
    assert list(one.differences) == [d for d in more.differences if d.verdict]


def test_the_order_of_two_runs_decides_no_p_value():
    one = compare(QRELS, {n: NEAR[n] for n in ("n0", "n1")}, "nDCG@10", draws=500)
    other = compare(QRELS, {n: NEAR[n] for n in ("n1", "n0")}, "nDCG@10", draws=500, baseline="n0")
    assert one.difference("n1") == other.difference("n1")


def test_max_t_keeps_the_queries_of_its_columns_together():
    names = ["nDCG@10", "AP"]
    found = compare(QRELS, NEAR, names, tested=names, correction="max-t", draws=20_000)
    values = {
        (run, name): evaluate(QRELS, NEAR[run], name).per_query[:, 0]
        for run in NEAR
        for name in names
    }
    table = np.stack(
        [values[r, name] - values["n0", name] for r in ("n1", "n2") for name in names], axis=1
    )
    # From the paper: the largest |t| of all columns under each pattern of signs.
    signs = np.random.default_rng(3).choice([-1.0, 1.0], (20_000, len(table)))
    norm = np.sqrt((table**2).sum(axis=0))
    largest = (abs(signs @ table) / norm).max(axis=1)
    theirs = [(largest >= t - 1e-12).mean() for t in abs(table.sum(axis=0)) / norm]
    assert [d.corrected for d in found.differences] == pytest.approx(theirs, abs=0.015)


def test_a_geometric_mean_is_compared_by_logarithms():
    names = ["GMAP", "AP"]
    found = compare(QRELS, RUNS, names, test="t")
    for run in ("s1", "s2"):
        floor = [np.maximum(_values(name, "AP"), 1e-5) for name in (run, "s0")]
        theirs = scipy_stats.ttest_rel(np.log(floor[0]), np.log(floor[1]))
        ours = found.difference(run)
        assert ours.p == pytest.approx(theirs.pvalue, rel=1e-8)
        assert math.exp(ours.difference) == pytest.approx(ours.mean / ours.baseline_mean, rel=1e-9)
    notes = found.differences_table().notes
    assert "GMAP: differences are of natural logarithms: of the ratio of the means" in notes
    assert not any("logarithm" in note for note in FOUND.differences_table().notes)


def test_a_geometric_mean_may_go_the_other_way_than_the_plain_one():
    """One bad failure weighs more in it than a good gain."""
    qrels = {f"q{n}": {"d": 1} for n in range(6)}
    old = {q: [*(f"x{n}" for n in range(9)), "d"] for q in qrels}
    new = old | {"q0": ["d"], "q1": [*(f"x{n}" for n in range(999)), "d"]}
    found = compare(qrels, {"old": old, "new": new}, ["GMAP", "AP"])
    assert found.difference("new", "AP").difference > 0 > found.difference("new").difference


def test_a_measure_without_a_better_side_is_higher_or_lower():
    queries = [f"q{n}" for n in range(10)]
    qrels = {q: {"d": 1} for q in queries}
    short, long = {q: ["d"] for q in queries}, {q: ["d", "x", "y"] for q in queries}
    found = compare(qrels, {"short": short, "long": long}, ["NumRet", "RR"])
    one = found.difference("long")
    assert (one.verdict, one.mirrored().verdict) == ("higher", "lower")
    assert found.sentences[1].startswith("long is higher than short by NumRet")
    assert not found.table().marks
    assert found.table().rows[0] == ("NumRet", 10, 30)
    assert "NumRet: means are sums, differences are per query" in found.differences_table().notes


def test_weights_that_the_differences_do_not_have_are_a_warning():
    share = {q: float(n + 1) for n, q in enumerate(QRELS)}
    found = compare(
        [evaluate(QRELS, Run.of(RUNS[n], name=n), "RR", weights=share) for n in ("s0", "s1")]
    )
    assert any("means are weighted, differences are not" in text for text in found.warnings)


def test_max_t_refuses_columns_of_different_queries_even_if_they_are_as_many():
    qrels = {f"q{n}": {"d": 1} for n in range(6)}
    runs = {
        "a": {q: ["d"] for q in qrels},
        "b": {q: ["x", "d"] for q in ("q0", "q1", "q2")},
        "c": {q: ["x", "d"] for q in ("q3", "q4", "q5")},
    }
    with pytest.raises(InputError, match="max-t needs one set of queries"):
        compare(qrels, runs, "FirstRel", correction="max-t")


def test_sure_differences_are_marked_in_the_table_of_means():
    found = compare(QRELS, RUNS, ["nDCG@10", "AP"], baseline="s1")
    verdicts = [found.difference(run).verdict for run in ("s0", "s2")]
    assert verdicts == ["worse", "better"]
    for turned in (False, True):
        table = found.table(transposed=turned)
        at = {(1, 1): "‡", (3, 1): "†"} if turned else {(0, 1): "‡", (0, 3): "†"}
        assert {(r + turned, c): m for (r, c), m in table.marks.items()} == at
        assert table.notes == ("† better, ‡ worse than s1: interval and corrected p agree",)
    # s1 is better than s0, and worse than what it is compared with.
    every = compare(QRELS, RUNS, "nDCG@10", baseline="s2", pairs="all").table()
    assert every.marks == {(0, 1): "‡", (0, 2): "‡"}
    unsure = compare(QRELS, {"a": RUNS["s0"], "b": RUNS["s0"]}, "nDCG@10").table()
    assert (unsure.marks, unsure.notes) == ({}, ())


def test_a_star_shows_the_best_on_a_plain_terminal():
    lines = render(FOUND).splitlines()
    assert lines[2].split()[3].startswith(f"{FOUND.evaluations[2].mean()['nDCG@10']:.4f}*")
    assert "• * best run" in lines
    decimals = {line.rindex(".") for line in lines[2:4]}
    assert len(decimals) == 1
    assert "best run" not in render(FOUND, "markdown")


def test_csv_is_plain_numbers_to_the_last_digit():
    rows = list(csv.DictReader(io.StringIO(render(FOUND, "csv"))))
    for row, d in zip(rows, FOUND.differences, strict=True):
        assert (row["run"], row["baseline"], row["measure"]) == (d.run, d.baseline, str(d.measure))
        for name in ("mean", "baseline_mean", "difference", "low", "high", "sd", "effect"):
            assert float(row[name]) == getattr(d, name)
        for name in ("queries", "wins", "ties", "losses"):
            assert int(row[name]) == getattr(d, name)
        assert row["p"] == ("" if d.p is None else repr(d.p))
        assert row["verdict"] == (d.verdict or "")


def test_a_comparison_plots_itself():
    assert FOUND.plot("per-query", measure="AP").title.startswith("Difference in AP by query")
    assert FOUND.plot() == plot(FOUND)
    with pytest.raises(InputError, match="RR was not evaluated"):
        FOUND.plot("heat-map", measure="RR")


def test_rankings_that_end_above_the_cut_off_are_named():
    short = {q: dict(list(docs.items())[:4]) for q, docs in RUNS["s1"].items()}
    found = compare(QRELS, {"whole": RUNS["s0"], "short": short}, "nDCG@10")
    assert "short: no ranking reaches rank 10, where nDCG@10 is cut (C110)" in found.warnings
    assert not any("no ranking reaches" in text for text in FOUND.warnings)


def test_rankings_of_many_lengths_are_not_called_cut():
    cut, few = (
        {q: dict(list(docs.items())[: 4 - n % lengths]) for n, (q, docs) in enumerate(run.items())}
        for run, lengths in ((RUNS["s1"], 1), (RUNS["s1"], 3))
    )
    for run, warned in ((cut, True), (few, False)):
        found = compare(QRELS, {"whole": RUNS["s0"], "short": run}, "nDCG@10")
        assert any("(C109)" in text for text in found.warnings) == warned


def test_every_finding_of_a_comparison_has_a_kind():
    source = Path(conclusions.__file__).read_text(encoding="utf-8")
    assert sorted(set(re.findall('_finding\\("(C\\d+)"', source))) == [
        code
        for code in COMPARISON_KINDS
        if code != "C112"  # of settings, which a gate finds, too
    ]


def test_what_is_only_shown_does_not_change_what_is_tested():
    qrels, runs = _made()
    one = compare(qrels, runs, "nDCG@10")
    more = compare(qrels, runs, ["RR", "nDCG@10", "AP"], tested="nDCG@10")
    assert more.design.seed == one.design.seed
    assert [d for d in more.differences if d.verdict is not None] == list(one.differences)


def test_a_run_on_other_queries_than_the_rest_is_refused():
    half = {q: docs for n, (q, docs) in enumerate(RUNS["s0"].items()) if n % 2}
    rest = {q: docs for n, (q, docs) in enumerate(RUNS["s1"].items()) if not n % 2}
    with pytest.raises(InputError, match="'a' has no judged query in common"):
        compare(QRELS, {"a": half, "b": rest}, "RR")
    found = compare(QRELS, {"a": half, "b": rest, "c": RUNS["s2"]}, "RR")
    assert any("count as empty rankings (a 30, b 30)" in text for text in found.warnings)


def test_judgments_of_relevant_documents_only_say_nothing_of_holes():
    only = {q: {d: g for d, g in docs.items() if g > 0} for q, docs in QRELS.items()}
    holes = {q: {f"{k}x": v for k, v in d.items()} for q, d in RUNS["s1"].items()}
    runs = {"a": RUNS["s0"], "b": holes | {"q0": RUNS["s1"]["q0"]}}
    blind, seeing = (compare(qrels, runs, "nDCG@10").warnings for qrels in (only, QRELS))
    assert any("name relevant documents only" in text for text in blind)
    assert not any("Judged@10 differs" in text for text in blind)
    assert any("Judged@10 differs" in text for text in seeing)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (lambda: evaluate(QRELS, RUNS["s1"], ["nDCG@10", "AP"], ties="input"), "policies"),
        (
            lambda: evaluate(dict(list(QRELS.items())[1:]), RUNS["s1"], ["nDCG@10", "AP"]),
            "query ids",
        ),
    ],
)
def test_evaluations_of_other_queries_or_policies_are_not_compared(other, said):
    with pytest.raises(InputError, match=f"differ in their {said}"):
        compare([FOUND.evaluations[0], other()])


def test_values_made_elsewhere_are_compared_and_nothing_is_said_of_judgments():
    ids = [f"q{n}" for n in range(30)]
    one = Evaluation.from_values("one", ids, {"RR": [0.5] * 30})
    other = Evaluation.from_values("other", ids, {"RR": [0.5 + n % 3 / 10 for n in range(30)]})
    found = compare([one, other])
    assert found.difference("other").difference == pytest.approx(0.1)
    assert found.difference("other").verdict == "better"
    assert found.warnings == ()


def test_policies_of_evaluations_cannot_be_chosen_again():
    with pytest.raises(InputError, match="policies are those of the evaluations"):
        compare(FOUND.evaluations, ties="input")
    with pytest.raises(InputError, match="judgments without runs"):
        compare(QRELS)


# ---- intervals, power and the choice of the baseline


def _differing(moved):
    """A comparison of two evaluations whose values by RR differ by these numbers."""
    qrels = {f"q{n}": {"d": 1} for n in range(len(moved))}
    run = {q: ["x", "d"] for q in qrels}
    made = replace(evaluate(qrels, run, "RR"), run_name="old")
    return compare([
        made, replace(made, run_name="new", per_query=made.per_query + np.c_[moved])
    ])  # fmt: skip


def test_intervals_are_the_wider_one_of_t_and_of_weighted_means():
    moved = np.random.default_rng(2).normal(0.02, 0.1, 40) ** 3
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
                QRELS, runs, ["nDCG@10", "AP", "RR"], tested=["nDCG@10", "RR"], baseline=baseline,
                interval=interval, correction=correction, pairs=pairs, draws=500,
            )
            for baseline in names
        )  # fmt: skip
        for measure in ("nDCG@10", "RR", "AP"):
            found = one.difference(names[1], measure)
            assert found.mirrored() == other.difference(names[0], measure)


@pytest.mark.parametrize("test", ["randomization", "tukey-hsd"])
def test_the_order_of_runs_changes_no_p_value_of_all_pairs(test):
    found = [
        compare(QRELS, {n: RUNS[n] for n in names}, "RR", pairs="all", test=test, draws=500)
        for names in (("s0", "s1", "s2"), ("s2", "s0", "s1"))
    ]
    for run, baseline in (("s0", "s1"), ("s1", "s2"), ("s0", "s2")):
        one, other = (c.difference(run, baseline=baseline) for c in found)
        assert (one.p, one.corrected, one.verdict) == (other.p, other.corrected, other.verdict)


def test_a_difference_that_only_the_correction_hides_is_said_to_be_that():
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
def test_what_is_said_to_be_detectable_is_detected_at_the_corrected_level(tests):
    rng = np.random.default_rng(tests)
    first = FOUND.evaluations[0]
    moved = rng.normal(0, 0.1, (50, 1))
    base = select(first, first.measures[:1], range(50))
    runs = [base, *(replace(base, run_name=f"r{n}") for n in range(tests))]
    runs[1] = replace(runs[1], per_query=base.per_query + moved)
    found = compare(runs).difference("r0")
    assert found.alpha == 0.05 / tests
    draws = rng.normal(found.detectable, found.sd, (4000, 50))
    p = scipy_stats.ttest_1samp(draws, 0, axis=1).pvalue
    assert (p < 0.05 / tests).mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(("queries", "changed"), [(50, 10), (100, 20), (200, 12)])
def test_what_is_detectable_by_success_accounts_for_its_steps(queries, changed):
    moved = np.zeros(queries)
    moved[:changed] = [(-1.0) ** n for n in range(changed)]
    found = _differing(moved).difference("new")
    assert found.unit == 1.0
    share = max(changed / queries, found.detectable)
    rng = np.random.default_rng(queries)
    wins = (1 + found.detectable / share) / 2
    differing = rng.binomial(queries, share, 20_000)
    won = rng.binomial(differing, wins)
    least = np.minimum(won, differing - won)
    p = np.minimum(1.0, 2 * scipy_stats.binom.cdf(least, differing, 0.5))
    assert (p < 0.05).mean() == pytest.approx(0.8, abs=0.05)
    assert (p < 0.05).mean() >= 0.79


@pytest.mark.parametrize(("rare", "warned"), [(0.9, True), (0.11, False)])
def test_a_small_p_value_of_skewed_differences_is_warned_of(rare, warned):
    moved = np.r_[np.linspace(0.05, 0.15, 30), rare]
    codes = [found.code for found in _differing(moved).findings]
    assert ("C111" in codes) == warned

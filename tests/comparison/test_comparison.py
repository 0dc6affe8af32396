"""compare() and Comparison: differences between runs and their uncertainty."""

import csv
import html
import io
import json
import math
import pickle
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from comparing import FOUND, QRELS, RUNS, values_of
from schemas import strict
from strategies import graded_runs

from rankgauge import Evaluation, InputError, Run, UnknownName, compare, evaluate, parse, plot, write_run
from rankgauge.comparison import Design, conclusions
from rankgauge.comparison.differences import DifferenceSample, make_difference
from rankgauge.core.findings import COMPARISON_KINDS
from rankgauge.reports import Options, html_report, render


def test_differences_are_those_of_the_evaluations():
    for run in ("s1", "s2"):
        apart = values_of(run, "nDCG@10") - values_of("s0", "nDCG@10")
        found = FOUND.difference(run)
        assert found.difference == pytest.approx(apart.mean(), abs=1e-12)
        assert (found.wins, found.ties, found.losses) == (
            (apart > 1e-12).sum(),
            (abs(apart) <= 1e-12).sum(),
            (apart < -1e-12).sum(),
        )
        assert found.effect == pytest.approx(apart.mean() / apart.std(ddof=1), rel=1e-9)


def test_only_the_primary_measure_is_tested_unless_others_are_declared():
    assert FOUND.primary == FOUND.tested[0]
    assert [str(d.measure) for d in FOUND.differences if d.p is not None] == ["nDCG@10"] * 2
    assert FOUND.difference("s1", "AP").verdict is None


def test_identical_runs_are_identical_and_have_no_interval():
    found = compare(QRELS, {"a": RUNS["s0"], "b": RUNS["s0"]}, "nDCG@10").difference("b")
    assert (found.difference, found.p, found.corrected, found.verdict) == (0.0, 1.0, 1.0, "identical")
    assert (found.no_interval, found.effect) == ("no query differs", 0.0)
    assert found.ties == 60


@pytest.mark.parametrize("value", [math.nan, 1.0])
def test_runs_without_a_query_that_both_have_are_not_identical(value):
    def undefined(name, values):
        made = Evaluation.from_values(name, ["q1", "q2"], {"nDCG@10": values})
        return replace(made, policies=replace(made.policies, undefined="skip"))

    runs = [undefined("a", [math.nan] * 2), undefined("b", [value, math.nan])]
    found = compare(runs)
    difference = found.difference("b")
    assert (difference.queries, difference.verdict) == (0, "cannot tell")
    assert difference.no_interval == "no query has both values"
    assert ("undefined for every run" in found.sentences[0]) == math.isnan(value)


def test_two_calls_say_the_same_to_the_last_bit():
    again = compare(QRELS, RUNS, ["nDCG@10", "AP"])
    assert repr(again.differences) == repr(FOUND.differences)  # NaN in both
    assert again.to_dict() == FOUND.to_dict()
    assert pickle.loads(pickle.dumps(FOUND)).to_dict() == FOUND.to_dict()


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"pairs": "all", "interval": "bca"},
        {"correction": "max-t"},
        {"test": "tukey-hsd"},
        {"queries": "intersection"},
    ],
)
def test_the_number_of_jobs_changes_nothing(tmp_path, how):
    paths = {}
    for name, run in RUNS.items():
        paths[name] = tmp_path / f"{name}.run"
        write_run(Run.of(run, name=name), paths[name])
    alone = compare(QRELS, paths, ["nDCG@10", "AP"], **how)
    for runs in (paths, RUNS):
        found = compare(QRELS, runs, ["nDCG@10", "AP"], **how, jobs=3)
        assert found.to_dict() == alone.to_dict()
    assert repr(found.differences) == repr(alone.differences)


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
    assert repr(compare(QRELS, other, ["nDCG@10", "AP"]).differences) == repr(FOUND.differences)


def test_the_best_run_is_named_with_its_measure():
    assert FOUND.sentences[0].startswith("s2 has the highest nDCG@10 (0.")
    lower = compare(QRELS, RUNS, "FirstRel")
    assert "has the lowest FirstRel" in lower.sentences[0] or "have the lowest" in lower.sentences[0]


def test_an_inconclusive_comparison_gives_the_number_of_queries_needed():
    qrels, runs = graded_runs(queries=30, systems=1, seed=5)
    rng = np.random.default_rng(0)
    near = {q: {d: s + rng.normal(0, 0.3) for d, s in docs.items()} for q, docs in runs["s0"].items()}
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
        (lambda r: {q: {f"{k}x": v for k, v in d.items()} for q, d in r.items()}, "Judged@10 differs"),
        (lambda r: r | {"q0": dict(reversed(list(r["q1"].items())))}, "inspect these queries: rankgauge diff"),
    ],
)
def test_caveats_of_the_numbers_are_reported(change, said):
    found = compare(QRELS, {"a": RUNS["s0"], "b": change(RUNS["s0"])}, "nDCG@10")
    assert any(said in warning for warning in found.warnings)


def test_few_queries_are_a_warning():
    qrels, runs = graded_runs(queries=8)
    assert compare(qrels, runs, "nDCG@10").warnings[0].startswith("only 8 queries")


@pytest.mark.parametrize(
    ("act", "error", "said"),
    [
        (lambda: compare(QRELS, {"a": RUNS["s0"]}, "RR"), InputError, "got 1 run, expected two"),
        (
            lambda: compare(QRELS, [Run.of(RUNS["s0"]), Run.of(RUNS["s1"])], "RR"),
            InputError,
            "duplicate run name 'run'",
        ),
        (lambda: compare(QRELS, RUNS, "RR", baseline="no"), UnknownName, "unknown run 'no'"),
        (lambda: compare(QRELS, RUNS, "RR", test="sign"), UnknownName, "test='sign'"),
        (lambda: compare(QRELS, RUNS, "RR", correction="none"), UnknownName, "correction='none'"),
        (
            lambda: compare({"q": {"d"}}, {"a": {"q": ["d"]}, "b": {"q": ["x"]}}, "RR"),
            InputError,
            "one query is too few",
        ),
        (lambda: compare(QRELS, 7, "RR"), InputError, "got int, expected runs"),
        (lambda: compare(QRELS, RUNS, []), InputError, "no measure was given"),
        (lambda: FOUND.difference("s9"), InputError, "no difference between 's9'"),
    ],
)
def test_bad_input_is_refused(act, error, said):
    with pytest.raises(error) as caught:
        act()
    assert said in str(caught.value)


def test_values_that_differ_by_rounding_are_equal():
    one = FOUND.evaluations[0]
    nearly = replace(one, run_name="nearly", per_query=one.per_query * (1 + 4e-16))
    assert not np.array_equal(one.per_query, nearly.per_query)
    found = compare([one, nearly]).difference("nearly")
    assert (found.verdict, found.ties, found.p) == ("identical", 60, 1.0)


def test_tables_name_every_run_and_measure():
    text = render(FOUND)
    assert text.splitlines()[0].split() == ["measure", "s0", "s1", "s2"]
    assert "compared with s0" in text
    assert "Holm-corrected" in " ".join(render(FOUND, "table", Options(full=True)).split())
    shown = FOUND._repr_html_()
    assert shown.startswith(f"{FOUND.to_html()}<details>")
    # Its report is a complete page in a frame, which no text can leave.
    assert html.unescape(shown.partition('srcdoc="')[2].partition('"')[0]) == html_report(FOUND, plots=False)
    assert "AP" not in render(FOUND).partition("compared with s0")[2].partition("•")[0]
    assert not any(math.isnan(d.difference) for d in FOUND.differences)


def test_both_means_are_shown_with_the_difference():
    for d in FOUND.differences:
        assert d.mean == evaluate(QRELS, RUNS[d.run], d.measure).mean()[str(d.measure)]
        assert d.baseline_mean == evaluate(QRELS, RUNS["s0"], d.measure).mean()[str(d.measure)]


def test_many_runs_are_described_in_a_few_sentences():
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
    equal = {q: ["d", "x"] for q in ("q1", "q2")}, {q: ["x", "d"] for q in ("q1", "q2")}
    judged = {"q1": {"d"}, "q2": {"d"}}
    for found in (
        FOUND,
        compare(QRELS, RUNS, ["RR", "AP"], pairs="all", test="t", interval="bca", draws=500),
        compare(judged, {"a": equal[0], "b": equal[1]}, ["RR", "FirstRel", "NumRel"]),
        compare(judged, {"a": equal[0], "b": {"q1": []}}, "nDCG@10"),
    ):
        data = json.loads(found.to_json())
        jsonschema.validate(data, strict("comparison-1"))
        assert data["differences"][0]["difference"] == found.differences[0].difference
        assert data["design"]["seed"] == found.design.seed


def test_evaluations_are_compared_as_their_runs_are():
    evaluations = [evaluate(QRELS, Run.of(run, name=n), ["nDCG@10", "AP"]) for n, run in RUNS.items()]
    found = compare(evaluations)
    assert repr(found.differences) == repr(FOUND.differences)
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
    assert any("(flat: 60 of 60)" in text for text in found.warnings)


def test_one_query_that_carries_the_difference_is_named():
    qrels = {f"q{n}": {"d": 1} for n in range(30)}
    old = {q: ["d", "x"] for q in qrels}
    some = old | {f"q{n}": ["x", "d"] for n in range(7)}
    deep = some | {"q9": [*(f"y{m}" for m in range(100)), "d"]}
    found = compare(qrels, {"old": old, "new": deep}, "FirstRel")
    assert "new against old: query 'q9' alone accounts for most of the difference (C106)" in found.warnings
    even = compare(qrels, {"old": old, "new": some}, "FirstRel")
    assert not any("accounts for" in text for text in even.warnings)


def test_a_measure_undefined_for_most_queries_is_compared_where_it_is_defined():
    qrels = {f"q{n}": {"d": 1} for n in range(12)}
    one = {q: ["d"] for q in list(qrels)[:3]}
    two = {q: ["x", "d"] for q in list(qrels)[1:4]}
    found = compare(qrels, {"a": one, "b": two}, "FirstRel", queries="all").difference("b")
    assert found.queries == 2
    assert (found.difference, found.wins, found.losses) == (1.0, 0, 2)
    nothing = compare(qrels, {"a": one, "b": {"q11": ["d"], "q0": ["x"]}}, "FirstRel").difference("b")
    assert (nothing.queries, nothing.p, nothing.verdict) == (0, 1.0, "withheld")


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda: compare(QRELS, RUNS, "RR", test="t", correction="max-t"), "max-t corrects the"),
        (lambda: compare(QRELS, RUNS, "RR", interval="normal"), "interval='normal'"),
        (lambda: compare(QRELS, RUNS, "RR", pairs="some"), "pairs='some'"),
        (lambda: Design((), "a"), "no measure was given to test"),
        (lambda: compare(FOUND.evaluations[:1]), "got 1 run"),
        (lambda: compare(FOUND.evaluations, tested="RR"), "RR was not evaluated"),
        (lambda: compare(FOUND.evaluations, tested="AP", baseline="x"), "unknown run"),
        (lambda: compare([FOUND.evaluations[0], evaluate(QRELS, RUNS["s1"], "RR")]), "no measure in common"),
        (
            lambda: compare(
                {"q1": {"d"}, "q2": {"d"}},
                {"a": {"q1": ["d"]}, "b": {"q2": ["d"]}, "c": {"q1": ["d"], "q2": ["d"]}},
                "RR",
                queries="intersection",
            ),
            "no judged query is in all runs",
        ),
    ],
)
def test_impossible_designs_are_refused(act, said):
    with pytest.raises((InputError, UnknownName)) as caught:
        act()
    assert said in str(caught.value)
    assert caught.value.fix


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
    found = compare([evaluate(QRELS, Run.of(RUNS[n], name=n), "RR", weights=share) for n in ("s0", "s1")])
    assert any("means are weighted, differences are not" in text for text in found.warnings)


def test_significant_differences_are_marked_in_the_table_of_means():
    found = compare(QRELS, RUNS, ["nDCG@10", "AP"], baseline="s1")
    verdicts = [found.difference(run).verdict for run in ("s0", "s2")]
    assert verdicts == ["worse", "better"]
    for turned in (False, True):
        table = found.table(transposed=turned)
        at = {(1, 1): "‡", (3, 1): "†"} if turned else {(0, 1): "‡", (0, 3): "†"}
        assert {(r + turned, c): m for (r, c), m in table.marks.items()} == at
        assert table.notes == ("† better, ‡ worse than s1: interval and corrected p agree",)
    # s1 is better than s0, and worse than the run it is compared with.
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
            assert float(row[name] or "nan") == pytest.approx(getattr(d, name), rel=0, abs=0, nan_ok=True)
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
    assert "short: no ranking reaches rank 10, the cut-off of nDCG@10 (C110)" in found.warnings
    assert not any("no ranking reaches" in text for text in FOUND.warnings)


def test_rankings_of_many_lengths_are_not_called_cut():
    cut, few = (
        {q: dict(list(docs.items())[: 4 - n % lengths]) for n, (q, docs) in enumerate(run.items())}
        for run, lengths in ((RUNS["s1"], 1), (RUNS["s1"], 3))
    )
    for run, warned in ((cut, True), (few, False)):
        found = compare(QRELS, {"whole": RUNS["s0"], "short": run}, "nDCG@10")
        assert any("(C109)" in text for text in found.warnings) == warned


@pytest.mark.parametrize("form", ["dicts", "tables", "files"])
def test_depths_and_queries_are_those_of_the_rankings(form, tmp_path):
    def given(runs):
        found = runs if form == "dicts" else {name: Run.of(run) for name, run in runs.items()}
        if form == "files":
            found = {
                name: write_run(run, tmp_path / f"{name}.run") or tmp_path / f"{name}.run"
                for name, run in found.items()
            }
        return found

    qrels = {"q1": {"a": 1}, "q2": {"a": 1, "b": 0}, "q3": {"b": 1}}
    # Most documents are not judged.
    ten = {"a": 1.0, **{f"x{place}": 1 / (place + 2) for place in range(9)}}
    nine = dict(list(ten.items())[:9])
    runs = given(
        {"ten": dict.fromkeys(("q3", "new", "q1", "q2"), ten), "nine": dict.fromkeys(("q2", "q1", "q3"), nine)}
    )
    warnings = compare(qrels, runs, "nDCG@10").warnings
    assert any(text.startswith("different depths (ten 10 and nine 9):") for text in warnings)
    assert [text for text in warnings if "(C110)" in text] == [
        "nine: no ranking reaches rank 10, the cut-off of nDCG@10 (C110)"
    ]
    assert not any("(C110)" in text for text in compare(qrels, runs, "nDCG@9").warnings)
    with pytest.raises(
        InputError, match="'one' has no judged query in common with another run: it has 'q1', others have 'q2', 'q3'"
    ):
        compare(qrels, given({"one": {"new": ten, "q1": ten}, "two": {"q3": ten, "q2": nine}}), "RR")


def test_every_finding_of_a_comparison_has_a_kind():
    source = Path(conclusions.__file__).read_text(encoding="utf-8")
    assert sorted(set(re.findall('_finding\\("(C\\d+)"', source))) == [
        code
        for code in COMPARISON_KINDS
        if code != "C112"  # from the settings, as in a gate
    ]


def test_untested_measures_do_not_change_the_tests():
    qrels, runs = graded_runs()
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


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-0.0000382, 0.000932, "+0.00045 (95% CI -0.00004 to +0.00093)"),
        (0.0001, 0.0018, "+0.0009 (95% CI +0.0001 to +0.0018)"),
        (-0.001, 0.002, "+0.001 (95% CI -0.001 to +0.002)"),
    ],
)
def test_narrow_intervals_are_shown_with_more_decimals(low, high, text):
    sample = DifferenceSample((low + high) / 2, low, high, 0.2, 1_000_000, 10, 9, None)
    found = make_difference(("b", "a", parse("RR")), (0.5, 0.4), sample, 0.03, 0.03, 0.05)
    assert found.difference_text() == text


def test_judgments_of_relevant_documents_only_give_no_note_on_unjudged_ones():
    only = {q: {d: g for d, g in docs.items() if g > 0} for q, docs in QRELS.items()}
    holes = {q: {f"{k}x": v for k, v in d.items()} for q, d in RUNS["s1"].items()}
    runs = {"a": RUNS["s0"], "b": holes | {"q0": RUNS["s1"]["q0"]}}
    blind, seeing = (compare(qrels, runs, "nDCG@10").warnings for qrels in (only, QRELS))
    assert any("list only relevant documents" in text for text in blind)
    assert not any("Judged@10 differs" in text for text in blind)
    assert any("Judged@10 differs" in text for text in seeing)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (lambda: evaluate(QRELS, RUNS["s1"], ["nDCG@10", "AP"], ties="input"), "policies"),
        (lambda: evaluate(dict(list(QRELS.items())[1:]), RUNS["s1"], ["nDCG@10", "AP"]), "query ids"),
    ],
)
def test_evaluations_of_other_queries_or_policies_are_not_compared(other, said):
    with pytest.raises(InputError, match=f"differ in their {said}"):
        compare([FOUND.evaluations[0], other()])


def test_external_values_are_compared_without_notes_on_judgments():
    ids = [f"q{n}" for n in range(30)]
    one = Evaluation.from_values("one", ids, {"RR": [0.5] * 30})
    other = Evaluation.from_values("other", ids, {"RR": [0.5 + n % 3 / 10 for n in range(30)]})
    found = compare([one, other])
    assert found.difference("other").difference == pytest.approx(0.1)
    assert found.difference("other").verdict == "better"
    assert found.warnings == ()


def test_policies_of_evaluations_cannot_be_chosen_again():
    with pytest.raises(InputError, match="policies come from the evaluations"):
        compare(FOUND.evaluations, ties="input")
    with pytest.raises(InputError, match="judgments without runs"):
        compare(QRELS)


def test_a_verdict_needs_an_interval_without_0():
    """The t test alone finds a difference where most queries lose a little, and few gain much."""
    moved = np.clip(np.random.default_rng(0).lognormal(-1.8, 1.1, 30), 0, 1) - 0.31
    ids = [f"q{n}" for n in range(30)]
    columns = {"old": np.maximum(-moved, 0), "new": np.maximum(moved, 0)}
    both = [Evaluation.from_values(name, ids, {"RR": column.tolist()}) for name, column in columns.items()]
    result = compare(both, test="t")
    found = result.difference("new")
    assert found.corrected < 0.01
    assert found.low < 0 < found.high
    assert found.reversed_by > 2
    assert found.verdict == "cannot tell"
    assert "but the interval includes 0" in result.sentences[-1]


@pytest.mark.parametrize(
    ("queries", "verdict"), [(50, "cannot tell"), (100, "cannot tell"), (150, "better"), (200, "better")]
)
def test_a_verdict_that_two_failing_queries_would_reverse_is_withheld(queries, verdict):
    ids = [f"q{n}" for n in range(queries)]
    old = Evaluation.from_values("old", ids, {"RR": [0.5] * queries})
    values = [0.517 + 0.001 * (-1) ** n for n in range(queries)]
    new = Evaluation.from_values("new", ids, {"RR": values})
    found = compare([old, new]).difference("new")
    assert found.verdict == verdict
    # As many more queries in which the run loses 1 cancel its gain, one less does not.
    gained = sum(values) - 0.5 * queries
    assert gained - found.reversed_by <= 0 < gained - found.reversed_by + 1
    text = " ".join(compare([old, new]).sentences)
    few = f"the better run would lose its lead by failing completely for {found.reversed_by} more"
    assert (f"cannot tell: {few}" in text) == (verdict == "cannot tell")
    # 1.7% fail: a sample of 150 contains none of them with a probability of 0.983^150.
    condition = ", unless the better run fails completely for 1.7% of all queries or more: up to 8% of samples"
    assert (condition in text) == (found.reversed_by == 3) == (queries == 150)
    mirrored = compare([new, old]).difference("old")
    assert mirrored.verdict == {"better": "worse"}.get(verdict, verdict)

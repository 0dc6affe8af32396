import random

import pytest
from checked import good
from hypothesis import given, strategies as st

import rankgauge
from rankgauge import InputError, UnknownName, check, evaluate, sample_path
from rankgauge.checks import FINDING_KINDS


def test_codes_are_stable_and_in_order():
    assert list(FINDING_KINDS) == sorted(FINDING_KINDS, key=lambda code: ("FJRPMT".index(code[0]), code))
    assert all(code == kind.code for code, kind in FINDING_KINDS.items())
    assert len({kind.name for kind in FINDING_KINDS.values()}) == len(FINDING_KINDS)


@pytest.mark.parametrize("kind", FINDING_KINDS.values(), ids=list(FINDING_KINDS))
def test_every_kind_has_a_meaning_an_effect_and_a_fix(kind):
    for said in (kind.description, kind.effect, kind.fix):
        assert said
        assert not said.endswith(".")


def test_errors_precede_warnings_and_hints():
    qrels, run = good()
    run = {query: {d: 100 - s for d, s in docs.items()} for query, docs in run.items()}
    del run["q3"]
    run["new"] = {"d1": 1.0}
    levels = [problem.severity for problem in check(qrels, run, "nDCG@10").findings]
    assert levels == sorted(levels, key=("error", "warning", "info").index)
    assert set(levels) == {"error", "warning", "info"}


def test_codes_that_are_ignored_are_left_out_and_others_refused():
    qrels, run = good()
    del run["q3"]
    assert check(qrels, run).codes == ("P104",)
    assert check(qrels, run, ignore=["P104"]).codes == ()
    assert check(qrels, run, ignore="P104").codes == ()
    with pytest.raises(UnknownName, match="P999"):
        check(qrels, run, ignore=["P999"])


def test_a_single_measure_is_reported_on_request():
    qrels, run = good()
    assert check(qrels, run, "nDCG@10").codes == ("M101",)
    assert check(qrels, run, ["nDCG@10", "R@5"]).codes == ()
    assert check(qrels, run).codes == ()


def test_current_means_are_those_of_an_evaluation():
    qrels, run = good()
    del run["q1"]
    names = ["nDCG@10", "AP", "P@5", "Bpref", "RR", "ERR@10", "Judged@10"]
    (problem,) = check(qrels, run, names).of("P104")
    now = {effect.measure: effect.before for effect in problem.evidence.effects}
    then = {effect.measure: effect.after for effect in problem.evidence.effects}
    assert now == evaluate(qrels, run, names).mean()
    assert then == evaluate(qrels, run, names, queries="intersection").mean()


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        pytest.param({"q1": ["d1", "d2"]}, ["run"], id="a mapping of lists"),
        pytest.param({"q1": {"d1": 1.0}}, ["run"], id="a mapping of mappings"),
        pytest.param([("q1", "d1", 1.0)], ["run"], id="rows"),
        pytest.param([{"qid": "q1", "docno": "d1", "score": 1.0}], ["run"], id="rows by name"),
        pytest.param({"qid": ["q1"], "docno": ["d1"], "score": [1.0]}, ["run"], id="columns"),
        pytest.param({"a": {"q1": {"d1": 1.0}}}, ["a"], id="named"),
        pytest.param({"a": {"q1": ["d1"]}, "b": {"q1": ["d1"]}}, ["a", "b"], id="two named"),
        pytest.param([{"q1": ["d1"]}, {"q1": ["d2"]}], ["run", "run 2"], id="two in a list"),
        pytest.param(iter([("q1", "d1", 1.0)]), ["run"], id="an iterator of rows"),
        pytest.param(iter([{"q1": ["d1"]}] * 2), ["run", "run 2"], id="an iterator of runs"),
        pytest.param([], [], id="none"),
    ],
)
def test_runs_can_be_single_listed_or_named(runs, names):
    found = check({"q1": {"d1": 1, "d2": 0}}, runs)
    assert list(found.inputs[1:]) == names


def test_files_with_the_same_name_are_distinguished_by_folder(tmp_path):
    paths = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "a.run"
        path.write_text("q1 Q0 d1 1 1.0 t\n")
        paths.append(str(path))
    found = check({"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 1}}, paths)
    assert [problem.evidence.effects[0].run for problem in found.of("P104")] == paths


def test_judgments_passed_as_a_run_are_refused():
    qrels, run = good()
    with pytest.raises(InputError, match="judgments"):
        check(rankgauge.Run.of(run), run)
    with pytest.raises(InputError, match="judgments"):
        check(qrels, rankgauge.Qrels.of(qrels))
    with pytest.raises(InputError, match="no queries"):
        check({}, run)


def test_the_clean_sample_has_no_error():
    runs = [sample_path("runs/bm25.run"), sample_path("runs/keyword.run")]
    found = check(sample_path("qrels.txt"), runs)
    assert [(p.code, p.evidence.source.rsplit("/", 1)[-1]) for p in found.findings] == [
        ("P106", "bm25.run"),
        ("P106", "keyword.run"),
        ("R109", "bm25.run"),
        ("R109", "keyword.run"),
    ]


def kinds(found):
    return sorted(
        (p.code, p.evidence.count, p.evidence.of, round(e.after, 9), e.condition)
        for p in found.findings
        for e in (p.evidence.effects or ())
    )


FAULTS = st.sets(st.sampled_from(["missing", "twice", "zero", "ties", "holes", "self"]))


def broken(faults):
    qrels, run = good(queries=6)
    if "missing" in faults:
        del run["q1"]
    if "zero" in faults:
        qrels["q2"] = dict.fromkeys(qrels["q2"], 0)
    if "holes" in faults:
        qrels = {q: dict(list(docs.items())[:4]) for q, docs in qrels.items()}
    if "ties" in faults:
        run["q3"] = {d: float(int(s) // 4) for d, s in run["q3"].items()}
    if "self" in faults:
        run["q4"] = {"q4": 50.0, **run["q4"]}
    rows = [(q, d, s) for q, docs in run.items() for d, s in docs.items()]
    if "twice" in faults:
        rows.append(rows[-1])
    return [(q, d, g) for q, docs in qrels.items() for d, g in docs.items()], rows


@given(FAULTS, st.integers(0, 9))
def test_the_order_of_lines_changes_no_problem(faults, seed):
    qrels, run = broken(faults)
    # Which of two equal lines comes first does not matter; means are summed in another order.
    wanted = kinds(check(qrels, run))
    random.Random(seed).shuffle(qrels)
    random.Random(seed + 1).shuffle(run)
    assert kinds(check(qrels, run)) == wanted


@given(FAULTS)
def test_other_names_in_the_same_order_change_no_problem(faults):
    qrels, run = broken(faults)
    wanted = kinds(check(qrels, run))

    def renamed(rows):
        return [(f"topic {q}", f"topic {d}", value) for q, d, value in rows]

    assert kinds(check(renamed(qrels), renamed(run))) == wanted


@given(
    st.dictionaries(
        st.sampled_from(["a", "A", " a", "1", "01", "1.0", "b"]),
        st.dictionaries(
            st.sampled_from(["x", "X", "x#1", "7", "007", "6", "a"]),
            st.floats(allow_nan=False, allow_infinity=False, width=32),
            min_size=1,
        ),
        min_size=1,
    ),
    st.dictionaries(
        st.sampled_from(["a", "A", "1", "2"]),
        st.dictionaries(st.sampled_from(["x", "7", "6", "8"]), st.integers(-3, 6), min_size=1),
        min_size=1,
    ),
)
def test_any_input_gives_a_report_with_codes(run, qrels):
    found = check(qrels, run, ["nDCG@10", "AP", "ERR@10", "R@2", "Bpref"])
    assert set(found.codes) <= FINDING_KINDS.keys()


def test_runs_of_one_name_are_numbered():
    qrels, run = good()
    del run["q1"]
    same = [rankgauge.Run.of(run, name="a"), rankgauge.Run.of(run, name="a")]
    found = check(qrels, same)
    assert [problem.evidence.effects[0].run for problem in found.of("P104")] == ["a 1", "a 2"]


def test_ids_that_are_not_text_are_counted_once_each(tmp_path):
    path = tmp_path / "a.run"
    path.write_bytes(b"q1 Q0 d\xff1 1 2.0 t\nq1 Q0 d1 2 1.0 t\nq2 Q0 d\xff1 1 1.0 t\n")
    (problem,) = check({"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 1}}, path).of("F102")
    assert problem.evidence.count == 1


def test_a_measure_that_refuses_the_judgments_reports_no_further_problem():
    qrels = {"q1": {"d1": 9, "d2": 0}}
    run = {"q1": {f"d{n}": float(n) for n in range(300)}}
    run["q1"] |= {"d1": 1e9, "d2": 1e9 - 1, "d300": 5.0}
    found = check(qrels, run, ["ERR@10", "P@2"])
    assert set(found.codes) == {"J106", "P106"}

"""evaluate() and Evaluation."""

import copy
import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import numpy as np
import pytest
from schemas import strict

import rankgauge
from rankgauge import Evaluation, InputError, MismatchError, Qrels, Run, UnknownName, evaluate

QRELS = {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}, "q3": {"d": 0}}
RUN = {"q1": ["b", "a"], "q2": ["x", "y", "c"]}


def test_values_are_in_the_order_of_the_judgments():
    ev = evaluate(QRELS, RUN, ["RR", "P@1"])
    assert ev.query_ids == ("q1", "q2", "q3")
    assert [str(m) for m in ev.measures] == ["RR", "P@1"]
    assert ev.per_query.dtype == np.float64
    assert ev.per_query[:2].tolist() == [[0.5, 0.0], [1 / 3, 0.0]]


def test_an_undefined_value_is_nan_and_counts_zero_with_a_note():
    ev = evaluate(QRELS, RUN, ["RR", "P@1"])
    assert ev.undefined.tolist() == [[False, False], [False, False], [True, False]]
    assert math.isnan(ev.value("q3", "RR"))
    assert ev.mean()["RR"] == math.fsum([0.5, 1 / 3, 0.0]) / 3
    assert any(note.startswith("RR: undefined for 1 query, counted 0") for note in ev.notes)


def test_undefined_values_can_be_left_out():
    ev = evaluate(QRELS, RUN, ["RR"], undefined="skip")
    assert ev.mean()["RR"] == math.fsum([0.5, 1 / 3]) / 2


def test_a_query_missing_from_the_run_counts_as_an_empty_ranking():
    ev = evaluate({"q1": {"a"}, "q2": {"b"}}, {"q1": ["a"]}, ["RR", "P@1", "NumRet"])
    assert ev.mean() == {"RR": 0.5, "P@1": 0.5, "NumRet": 1.0}
    assert ev.counts["missing_from_run"] == 1
    assert "1 of them not in the run" in ev.notes[0]


def test_intersection_averages_what_is_in_both():
    ev = evaluate({"q1": {"a"}, "q2": {"b"}}, {"q1": ["a"], "q9": ["z"]}, "RR", queries="intersection")
    assert ev.query_ids == ("q1",)
    assert ev.mean() == {"RR": 1.0}
    assert ev.counts["without_judgments"] == 1


@pytest.mark.parametrize("queries", [["q2"], np.array(["q2"]), (query for query in ["q2"])])
def test_a_given_list_of_queries_is_averaged(queries):
    ev = evaluate(QRELS, RUN, "RR", queries=queries)
    assert ev.query_ids == ("q2",)
    assert ev.policies.queries == "given"


@pytest.mark.parametrize("queries", ["given", "q1", "some"])
def test_an_unknown_choice_of_queries_is_refused(queries):
    with pytest.raises(UnknownName, match="choose all, intersection, or a list"):
        evaluate(QRELS, RUN, "RR", queries=queries)


def test_a_listed_query_that_is_not_judged_is_refused():
    with pytest.raises(MismatchError, match="query 'q8' is not judged"):
        evaluate(QRELS, RUN, "RR", queries=["q8"])


def test_no_query_in_common_is_an_error_that_shows_both_sides():
    with pytest.raises(MismatchError) as caught:
        evaluate({"1": {"a"}}, {"001": ["a"]}, "RR")
    assert "'001'" in str(caught.value)
    assert "'1'" in str(caught.value)


def test_no_document_in_common_is_a_warning():
    ev = evaluate({"q": {"a"}}, {"q": ["x"]}, "RR")
    assert ev.mean() == {"RR": 0.0}
    assert any(note.startswith("WARNING: no retrieved document") for note in ev.notes)


def test_weights_are_traffic():
    qrels = {"q1": {"a"}, "q2": {"b"}}
    run = {"q1": ["a"], "q2": ["x", "b"]}
    ev = evaluate(qrels, run, "RR", weights={"q1": 3, "q2": 1})
    assert ev.mean()["RR"] == math.fsum([3 * 1.0, 1 * 0.5]) / 4
    assert "means are weighted by query" in ev.notes
    # One query has one of one document judged, the other one of two.
    assert ev.coverage[10] == 0.75
    assert set(evaluate(qrels, run, "RR").notes) < set(ev.notes)


def test_a_sum_has_no_weights():
    ev = evaluate({"q1": {"a"}}, {"q1": ["a", "b"]}, "NumRet", weights={"q1": 7})
    assert ev.mean() == {"NumRet": 2.0}


def test_groups_have_a_value_each():
    qrels = {"q1": {"a"}, "q2": {"b"}, "q3": {"c"}}
    run = {"q1": ["a"], "q2": ["x", "b"], "q3": ["c"]}
    ev = evaluate(qrels, run, "RR", groups={"q1": "en", "q2": "de", "q3": "en"})
    assert ev.by_group() == {"en": {"RR": 1.0}, "de": {"RR": 0.5}}


def test_without_groups_there_are_no_group_means():
    with pytest.raises(InputError, match="has no groups"):
        evaluate(QRELS, RUN, "RR").by_group()


def test_the_geometric_mean_has_a_floor():
    qrels = {"q1": {"a"}, "q2": {"b"}}
    ev = evaluate(qrels, {"q1": ["a"], "q2": ["x"]}, "GMAP")
    assert ev.mean()["GMAP"] == pytest.approx(math.sqrt(1e-5), rel=1e-12)


def test_blocks_of_queries_give_the_same_as_all_at_once():
    rng = np.random.default_rng(7)
    qrels = {f"q{q}": {f"d{d}": int(rng.integers(-1, 4)) for d in range(8)} for q in range(40)}
    run = {f"q{q}": {f"d{d}": float(rng.integers(0, 5)) for d in rng.permutation(20)[: q % 13]} for q in range(45)}
    whole = evaluate(qrels, run)
    items = list(run.items())
    for size in (1, 7, 50):
        blocks = (dict(items[at : at + size]) for at in range(0, len(items), size))
        assert evaluate(qrels, blocks) == whole


def test_a_query_in_two_blocks_is_an_error():
    with pytest.raises(InputError, match="'q1' occurs in two blocks"):
        evaluate(QRELS, iter([{"q1": ["a"]}, {"q1": ["b"]}]), "RR")


def test_an_iterator_of_rows_is_a_run():
    rows = iter([("q1", "a", 1.0), ("q1", "b", 2.0)])
    assert evaluate({"q1": {"a"}}, rows, "RR").mean() == {"RR": 0.5}


def test_judgments_are_prepared_once_and_used_for_many_runs():
    qrels = Qrels.of(QRELS)
    ideal = qrels.ideal
    evaluate(qrels, RUN, "RR")
    assert qrels.ideal is ideal


def test_repeated_names_give_one_column():
    assert [str(m) for m in evaluate(QRELS, RUN, ["MRR", "RR", "recip_rank"]).measures] == ["RR"]


def test_a_curve_gives_its_points():
    names = list(evaluate(QRELS, RUN, "IPrec").mean())
    assert names == [f"IPrec@{level / 10}" for level in range(11)]


def test_the_order_of_queries_and_documents_changes_nothing():
    scored = {"q1": {"a": 1.0, "b": 1.0, "x": 1.0}, "q2": {"c": 0.5, "y": 0.5}}
    other = {q: dict(reversed(docs.items())) for q, docs in reversed(scored.items())}
    assert evaluate(QRELS, scored).mean() == evaluate(QRELS, other).mean()


def test_ties_that_could_matter_are_counted():
    tied = {"q1": {"a": 1.0, "b": 1.0}, "q2": {"c": 1.0, "x": 0.5}}
    ev = evaluate(QRELS, tied, "RR")
    assert ev.counts["tied"] == 1
    assert "could change 1 query" in ev.notes[1]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_an_evaluation_pickles_and_compares(copied):
    ev = evaluate(QRELS, RUN)
    assert copied(ev) == ev
    assert ev != evaluate(QRELS, RUN, "RR")


def test_an_evaluation_cannot_be_changed():
    ev = evaluate(QRELS, RUN)
    with pytest.raises(ValueError, match="read-only"):
        ev.per_query[0, 0] = 1


def test_json_is_by_its_published_schema_and_comes_back_the_same():
    ev = evaluate(
        QRELS,
        Run.of(RUN, name="mine", settings={"k1": 0.9}),
        weights={"q1": 1, "q2": 2, "q3": 0.5},
        groups={"q1": "x", "q2": "y", "q3": "x"},
    )
    text = ev.to_json()
    jsonschema.validate(json.loads(text, parse_constant=pytest.fail), strict("evaluation-1"))
    assert Evaluation.from_json(text) == ev
    data = json.loads(text)
    findings = [{**each, "new": 1} for each in data["findings"]]
    assert findings
    # Later versions may add keys.
    assert Evaluation.from_json(json.dumps({**data, "findings": findings, "new": 1})) == ev


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "rankgauge/evaluation/9"}', '{"schema": "x"', "null"])
def test_an_invalid_result_file_is_refused(text):
    with pytest.raises(InputError):
        Evaluation.from_json(text)


def test_columns_and_frame_hold_the_values():
    pd = pytest.importorskip("pandas")
    ev = evaluate(QRELS, RUN, ["RR"], groups={"q1": "x", "q2": "y", "q3": "x"})
    assert list(ev.to_columns()) == ["query_id", "group", "RR"]
    frame = ev.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["RR"].isna().tolist() == [False, False, True]


def test_a_notebook_shows_a_table_with_everything_escaped():
    ev = evaluate(QRELS, Run.of(RUN, name="<script>alert(1)</script>"), ["RR"])
    page = ev._repr_html_()
    assert "<table" in page
    assert "<script>" not in page


def test_an_unknown_measure_or_query_has_no_value():
    ev = evaluate(QRELS, RUN, ["RR"])
    with pytest.raises(InputError, match="P@1 was not evaluated"):
        ev.value("q1", "P@1")
    with pytest.raises(InputError, match="query 'q7' was not evaluated"):
        ev.value("q7", "RR")
    with pytest.raises(InputError, match="name a query and a measure"):
        ev.value("q1")
    assert evaluate({"RR": {"a"}}, {"RR": ["b", "a"]}, ["RR"])["RR"] == 0.5  # a query may have the name of a measure


def test_the_first_ranks_are_shown_with_a_mean_of_rr():
    ev = evaluate({"q1": {"a"}, "q2": {"a"}}, {"q1": ["a"], "q2": ["x", "a"]}, "RR")
    note = next(note for note in ev.notes if note.startswith("first hit"))
    assert note == ("first hit: rank 1 in 1 query, 2-3 in 1, 4-10 in 0, after 10 in 0, not retrieved in 0")


def test_a_grade_above_the_top_of_err_is_an_error():
    with pytest.raises(InputError, match="grade 5 is above the top grade 4"):
        evaluate({"q": {"a": 5}}, {"q": ["a"]}, "ERR")


def test_threads_share_judgments_and_get_the_same_values():
    rng = np.random.default_rng(3)
    qrels = Qrels.of({f"q{q}": {f"d{d}": d % 3 for d in range(30)} for q in range(50)})
    runs = [
        Run.of({f"q{q}": {f"d{d}": float(s) for d, s in enumerate(rng.random(40))} for q in range(50)})
        for _ in range(8)
    ]
    alone = [evaluate(qrels, run) for run in runs]
    fresh = Qrels.of({q: dict(qrels[q]) for q in qrels})
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda run: evaluate(fresh, run), runs))
    assert together == alone


def test_measures_are_written_as_in_ir_measures():
    from rankgauge import RR, nDCG

    assert str(RR(rel=30) @ 1) == "RR(rel=30)@1"
    assert rankgauge.parse("nDCG@5") == nDCG @ 5


# ---- edge cases


def test_ties_are_counted_for_separate_grades_too():
    records = [{"retrieved": ["x", "y"], "relevant": ["c"], "relevance_scores": {"x": 3, "y": 1}, "scores": [1, 1]}]
    assert evaluate(records, None, "nDCG@1").counts["tied"] == 1


@pytest.mark.parametrize("name", ["Judged@1", "nDCG(gain={0:1,1:3})@1"])
def test_ties_count_where_it_matters_that_a_document_was_judged(name):
    qrels = {"q": {"a": 0}}
    tied = {"q": {"a": 1.0, "b": 1.0}}
    assert evaluate(qrels, tied, name).counts["tied"] == 1
    assert evaluate(qrels, tied, "P@1").counts["tied"] == 0


def test_large_numbers_are_refused_before_sums_overflow():
    with pytest.raises(InputError, match="beyond 1e\\+100"):
        evaluate({"q": {"d": 1.7e308}}, {"q": ["d"]}, "DCG")
    with pytest.raises(InputError, match="weight 1e\\+308"):
        evaluate(QRELS, RUN, "RR", weights={"q1": 1e308, "q2": 1, "q3": 1})


def test_a_tiny_grade_has_its_gain():
    ev = evaluate({"q": {"d": 1e-17}}, {"q": ["d"]}, "nDCG(gain=exp)")
    assert ev.mean() == {"nDCG(gain=exp)": 1.0}


def test_ids_that_differ_only_in_leading_zeros_are_an_error():
    with pytest.raises(MismatchError, match="differ only in leading zeros") as caught:
        evaluate({"q1": {1: 1}}, {"q1": ["001"]}, "RR")
    assert "the run has '001', the judgments have '1'" in str(caught.value)


def test_queries_can_be_a_file(tmp_path):
    listed = tmp_path / "ids.txt"
    listed.write_bytes(b"\xef\xbb\xbfq 1\r\n\r\nq2\n")
    ev = evaluate({"q 1": {"a"}, "q2": {"b"}, "q3": {"c"}}, {"q 1": ["a"]}, "RR", queries=listed)
    assert ev.query_ids == ("q 1", "q2")


def test_an_unjudged_query_in_two_blocks_counts_once():
    blocks = iter([{"q1": ["a"], "x": ["a"]}, {"x": ["b"]}])
    assert evaluate({"q1": {"a"}}, blocks, "RR").counts["without_judgments"] == 1


def test_weights_come_as_a_series_too_and_every_query_needs_a_group():
    pd = pytest.importorskip("pandas")
    ev = evaluate(QRELS, RUN, "P@1", weights=pd.Series({"q1": 1.0, "q2": 2.0, "q3": 3.0}))
    assert ev.weights == (1.0, 2.0, 3.0)
    with pytest.raises(InputError, match="query 'q3' has no group"):
        evaluate(QRELS, RUN, "P@1", groups={"q1": "a", "q2": "a", "q3": None})


def test_each_level_of_relevance_has_its_first_ranks():
    ev = evaluate(QRELS, RUN, ["RR", "RR(rel=2)", "RR@1"])
    notes = [note for note in ev.notes if note.startswith("first hit")]
    assert [note.partition(":")[0] for note in notes] == ["first hit", "first hit (rel=2)"]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"schema": 3}'])
def test_a_malformed_result_file_is_an_error_like_any_other(text):
    with pytest.raises(InputError):
        Evaluation.from_json(text)


def test_a_name_that_no_file_can_hold_is_escaped():
    ev = evaluate({"q": {"d"}}, Run.of({"q": ["d"]}, name="a\udc80"), "RR")
    ev.to_json().encode("utf-8")
    assert Evaluation.from_json(ev.to_json()) == ev


def test_counts_and_settings_cannot_be_changed():
    ev = evaluate(QRELS, RUN, "RR")
    with pytest.raises(TypeError):
        ev.counts["queries"] = 7


def test_huge_gains_round_trip_through_their_name():
    measure = rankgauge.parse("nDCG(gain={0:1e99,1:2e60})@5")
    assert rankgauge.parse(str(measure)) == measure
    assert len(str(measure)) < 60


def test_a_recall_point_that_trec_eval_lacks_has_no_equivalent():
    assert rankgauge.parse("IPrec@0.12").trec_name() == "iprec_at_recall_0.12"
    assert rankgauge.parse("IPrec@0.123").trec_name() == ""

"""Evaluations with the profiles of other tools: results, notes, and errors."""

import json

import jsonschema
import numpy as np
import pytest
from schemas import strict

import rankgauge
from rankgauge import Evaluation, History, InputError, MismatchError, UnknownName, compare, evaluate
from rankgauge.evaluation import PROFILES

QRELS = {"q1": {"a": 1, "b": 2}, "q2": {"a": 1, "q2": 3}, "q3": {"a": 1}, "q4": {"x": 0}}
RUN = {"q1": {"a": 1.0, "x": 1.0, "b": 0.5}, "q2": {"q2": 3.0, "a": 2.0}, "q4": {"x": 1.0}, "not judged": {"a": 1.0}}


def test_every_measure_is_averaged_over_the_queries_that_the_tool_averages():
    ev = evaluate(QRELS, RUN, ["RR@10", "nDCG@10"], profile="beir")
    assert ev.query_ids == ("q1", "q2", "q3", "q4")
    rr, ndcg = ev.per_query.T
    assert ev.left_out.tolist() == [[False, False]] * 2 + [[False, True], [False, False]]
    assert rr[0] == 1.0  # "a" comes first in the input
    assert ev.mean()["RR@10"] == (1.0 + 1.0) / 4
    assert ev.mean()["nDCG@10"] == pytest.approx((ndcg[0] + ndcg[1]) / 3)
    assert np.isnan(ndcg[2])


def test_means_of_groups_leave_out_what_the_tool_leaves_out():
    groups = {"q1": "one", "q2": "two", "q3": "two", "q4": "two"}
    ev = evaluate(QRELS, RUN, ["RR@10", "nDCG@10"], profile="beir", groups=groups)
    found = ev.by_group()
    assert found["two"]["RR@10"] == pytest.approx(1 / 3)
    assert found["two"]["nDCG@10"] == pytest.approx(ev.value("q2", "nDCG@10") / 2)


def test_weights_are_those_of_the_queries_that_count():
    weights = {"q1": 3, "q2": 1, "q3": 100, "q4": 0}
    ev = evaluate(QRELS, RUN, ["RR@10", "nDCG@10"], profile="beir", weights=weights)
    values = [ev.value(query, "nDCG@10") for query in ("q1", "q2")]
    assert ev.mean()["nDCG@10"] == pytest.approx((3 * values[0] + values[1]) / 4)


def test_if_all_measures_average_the_same_queries_no_cell_is_left_out():
    ev = evaluate(QRELS, RUN, ["nDCG@10", "AP@10"], profile="beir")
    assert ev.left_out is None
    assert ev.query_ids == ("q1", "q2", "q4")
    assert ev.policies.queries == "intersection"


def test_a_column_is_named_as_what_it_is_and_a_note_says_what_was_asked():
    ev = evaluate(QRELS, RUN, ["AP@5", "R@5"], profile="sentence-transformers")
    assert list(ev.mean()) == ["AP(norm=min(k,R))@5", "R@5"]
    assert ev.profile.asked == ("AP@5", "R@5")
    assert "AP@5 of sentence-transformers is AP(norm=min(k,R))@5 here" in ev.notes


def test_measures_that_mean_the_same_there_have_one_column():
    ev = evaluate(QRELS, RUN, ["ERR(top=3)@5", "ERR(top=5)@5"], profile="ir_measures")
    assert list(ev.mean()) == ["ERR(top=4)@5"]
    assert len(ev.profile.asked) == 1


def test_the_profile_is_noted_below_the_table():
    ev = evaluate(QRELS, RUN, ["RR@10", "nDCG@10"], profile="beir")
    told = [note for note in ev.notes if note.startswith(("as ", "in addition"))]
    assert told == [
        "as beir 2.2 (profile beir), all measures: no self-retrieval",
        "in addition: RR@10: ties as given",
        "in addition: nDCG@10: 32-bit scores; only queries of the run",
    ]
    assert any("5 decimals" in note for note in ev.notes)
    assert "as beir 2.2" in rankgauge.reports.render([ev], "markdown")


def test_deviations_shared_by_measures_are_noted_once():
    ev = evaluate(QRELS, RUN, ["RR@10", "nDCG@10", "AP@10"], profile="beir")
    undefined = [note for note in ev.notes if "undefined for" in note]
    assert undefined == ["RR@10, nDCG@10, AP@10: undefined for 1 query, counted 0 in the mean (J103)"]
    assert sum("(P106)" in note for note in ev.notes) == 1


@pytest.mark.parametrize("given", [{"ties": "input"}, {"queries": "intersection"}, {"undefined": "skip"}], ids=str)
def test_a_policy_that_contradicts_the_profile_is_refused(given):
    with pytest.raises(InputError, match="contradicts the profile trec_eval-10") as caught:
        evaluate(QRELS, RUN, "RR", profile="trec_eval-10", **given)
    assert next(iter(given)) in caught.value.fix


def test_a_policy_that_the_profile_has_too_may_be_given():
    asked = {"queries": "intersection"}
    assert evaluate(QRELS, RUN, "RR", profile="trec_eval-9", **asked).policies.queries == ("intersection")
    assert evaluate(QRELS, RUN, "RR", profile="ranx", ties="input").mean() == {"RR": 0.5}


def test_given_queries_are_those_that_count_at_most():
    ev = evaluate(QRELS, RUN, ["RR@10", "nDCG@10"], profile="beir", queries=["q2", "q3"])
    assert ev.query_ids == ("q2", "q3")
    # A query that the tool drops can be requested, since it was judged.
    left = evaluate(QRELS, RUN, "RR@10", profile="sentence-transformers", queries=["q1", "q4"])
    assert left.query_ids == ("q1",)
    with pytest.raises(MismatchError, match="'q9' is not judged"):
        evaluate(QRELS, RUN, "RR@10", profile="beir", queries=["q9"])


def test_duplicates_are_removed_before_the_tool_sees_the_run():
    run = {"q1": [("x", 1.0), ("a", 0.5), ("x", 0.25)]}
    with pytest.raises(InputError, match="occurs twice"):
        evaluate(QRELS, run, "RR", profile="ranx")
    ev = evaluate(QRELS, run, "RR", profile="ranx", duplicates="first")
    assert ev.counts["duplicates_removed"] == 1


@pytest.mark.parametrize("name", PROFILES)
def test_the_usual_measures_are_those_that_the_tool_has(name):
    ev = evaluate(QRELS, RUN, profile=name)
    assert len(ev.measures) > 1
    assert ev.profile.name == name


@pytest.mark.parametrize("name", ["beir", "sentence-transformers", "ranx"])
def test_an_evaluation_keeps_its_profile_in_json(name):
    ev = evaluate(QRELS, RUN, ["RR@10", "nDCG@10"], profile=name)
    text = ev.to_json()
    assert Evaluation.from_json(text) == ev
    jsonschema.validate(json.loads(text), strict("evaluation-1"))


def test_an_evaluation_without_a_profile_is_written_as_it_was():
    assert "profile" not in json.loads(evaluate(QRELS, RUN, "RR").to_json())


def test_other_profiles_are_not_compared():
    one, other = (
        evaluate(QRELS, rankgauge.Run.of(RUN, name=name), "nDCG@10", profile=name) for name in ("pytrec_eval", "mteb")
    )
    with pytest.raises(InputError, match="differ in their profile"):
        compare([one, other])


def test_measures_over_different_queries_are_not_compared():
    pair = [
        evaluate(QRELS, rankgauge.Run.of(RUN, name=name), ["RR@10", "nDCG@10"], profile="beir")
        for name in ("one", "other")
    ]
    with pytest.raises(InputError, match="different queries"):
        compare(pair)
    with pytest.raises(InputError, match="different queries"):
        pair[0].plot()


def test_the_history_stores_a_profile_and_compares_equal_profiles(tmp_path):
    store = History(str(tmp_path / "h.db"))
    ours = evaluate(QRELS, RUN, ["RR@10", "nDCG@10"])
    theirs = evaluate(QRELS, RUN, ["RR@10", "nDCG@10"], profile="beir")
    first, second, third = (store.add(ev, QRELS) for ev in (ours, theirs, theirs))
    assert store.load(second.id) == theirs
    assert store.load(first.id) == ours
    with pytest.raises(MismatchError, match=r"different profiles \(ours in run#1, beir in run#2\)"):
        store.comparable([first, second])
    assert len(store.comparable([second, third])) == 2


def test_records_are_measured_as_other_tools_do_it():
    records = [{"id": "q1", "retrieved": ["x", "a"], "relevant": ["a"]}]
    assert evaluate(records, None, ["RR", "nDCG"], profile="pytrec_eval").mean()["RR"] == 0.5


def test_blocks_of_a_run_are_refused():
    with pytest.raises(InputError, match="whole run"):
        evaluate(QRELS, iter([RUN]), "RR", profile="ranx")


def test_a_measure_that_the_tool_lacks_is_refused():
    with pytest.raises(UnknownName, match=r"BEIR has no Rprec"):
        evaluate(QRELS, RUN, ["nDCG@10", "Rprec"], profile="beir")

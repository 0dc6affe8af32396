"""Findings in texts, each effect compared with pytrec_eval on manually changed data."""

import pytest
import pytrec_eval

from rankgauge import Collection, Qrels, Run, check, describe_collection
from rankgauge.checks.text_checks import check_texts

DOCUMENTS = {
    "d1": "How do I renew a library card that has run out? Ask at the desk.",
    "d2": "  ",
    "d3": "Late books cost ten cents a day",
    "d4": "Late  books cost TEN cents a day",
    "d5": "We open at nine",
    "d6": "late books cost ten cents a day",
}
QUERIES = {"q1": "how do I renew a library card", "q2": "what do late returns cost", "q3": "hours"}
JUDGED = {
    "q1": {"d1": 2, "d5": 0},
    "q2": {"d3": 2, "d5": 0, "d2": 1, "d6": 0},
    "q3": {"d5": 1, "gone": 1},
    "q9": {"d5": 1},
}
RUN = {
    "q1": {"d1": 3.0, "d5": 2.0},
    "q2": {"d4": 3.0, "d3": 2.0, "d6": 1.0},
    "q3": {"strange": 2.0, "d5": 1.0},
    "q9": {"d5": 1.0},
}
MEASURE = "nDCG@10"


def found(documents=DOCUMENTS, queries=QUERIES, judged=JUDGED, run=RUN):
    collection = Collection.of(documents, queries, name="texts")
    runs = {"mine": Run.of(run, name="mine")} if run else {}
    problems = check_texts(collection, Qrels.of(judged), runs, [MEASURE])
    return {(problem.code, problem.evidence.source): problem for problem in problems}


def ndcg(judged, run, queries=None):
    """Return the mean by another tool over all judged queries."""
    values = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut_10"}).evaluate(run)
    chosen = queries or judged
    return sum(values.get(q, {"ndcg_cut_10": 0.0})["ndcg_cut_10"] for q in chosen) / len(chosen)


def without(grades, *documents):
    return {
        query: {doc: grade for doc, grade in docs.items() if doc not in documents} for query, docs in grades.items()
    }


def effect(problem):
    (one,) = problem.evidence.effects
    assert (one.run, one.measure) == ("mine", MEASURE)
    assert one.before == pytest.approx(ndcg(JUDGED, RUN))
    return one.after


def test_every_kind_is_found_once_for_the_input_that_has_it():
    assert [*found()] == [
        ("T101", "texts"),
        ("T102", "texts"),
        ("T103", "texts"),
        ("T104", "texts"),
        ("T104", "mine"),
        ("T105", "texts"),
    ]


def test_the_effect_of_documents_without_text_is_measured():
    problem = found()["T101", "texts"]
    assert (problem.evidence.count, problem.evidence.of, problem.evidence.unit) == (1, 6, "document")
    assert [location.document for location in problem.evidence.locations] == ["d2"]
    assert "1 of them judged relevant" in problem.message
    assert effect(problem) == pytest.approx(ndcg(without(JUDGED, "d2"), RUN))


def test_unjudged_duplicates_of_a_relevant_document_get_its_grade():
    problem = found()["T102", "texts"]
    assert (problem.evidence.count, problem.evidence.of) == (2, 6)
    assert [location.document for location in problem.evidence.locations] == ["d3", "d4", "d6"]
    # d6 was judged nonrelevant, and stays so.
    judged = {**JUDGED, "q2": {**JUDGED["q2"], "d4": 2}}
    assert effect(problem) == pytest.approx(ndcg(judged, RUN))


def test_duplicates_with_equal_grades_change_nothing():
    judged = {**JUDGED, "q2": {"d3": 2, "d4": 2, "d6": 2}}
    assert found(judged=judged)["T102", "texts"].evidence.effects == ()


def test_repeated_texts_without_a_judgment_have_no_effect():
    texts = {"a": "one two", "b": "one  two", "c": "three"}
    problem = found(texts, {"q1": "x"}, {"q1": {"c": 1}}, {"q1": {"c": 1.0}})["T102", "texts"]
    assert (problem.evidence.count, problem.evidence.effects) == (1, ())
    assert [location.document for location in problem.evidence.locations] == ["b"]


def test_questions_inside_documents_are_left_out_of_the_mean():
    problem = found()["T103", "texts"]
    assert (problem.evidence.count, problem.evidence.of) == (1, 4)
    assert [(location.query, location.document) for location in problem.evidence.locations] == [("q1", "d1")]
    assert effect(problem) == pytest.approx(ndcg(JUDGED, RUN, ["q2", "q3", "q9"]))


def test_questions_that_are_not_judged_leak_nothing():
    queries = {**QUERIES, "q7": "late books cost ten cents a day"}
    problem = found(queries=queries)["T103", "texts"]
    assert (problem.evidence.count, [location.query for location in problem.evidence.locations]) == (1, ["q1"])


def test_missing_documents_are_named_for_judgments_and_run():
    judged, retrieved = found()["T104", "texts"], found()["T104", "mine"]
    assert [location.document for location in judged.evidence.locations] == ["gone"]
    assert effect(judged) == pytest.approx(ndcg(without(JUDGED, "gone"), RUN))
    assert [location.document for location in retrieved.evidence.locations] == ["strange"]
    assert effect(retrieved) == pytest.approx(ndcg(JUDGED, without(RUN, "strange")))


def test_missing_queries_are_excluded_from_the_mean():
    problem = found()["T105", "texts"]
    assert [location.query for location in problem.evidence.locations] == ["q9"]
    assert effect(problem) == pytest.approx(ndcg(JUDGED, RUN, ["q1", "q2", "q3"]))


def test_missing_parts_of_a_collection_are_not_reported():
    assert not found({}, {})
    assert {code for code, _ in found({}, QUERIES)} == {"T105"}
    assert {code for code, _ in found(DOCUMENTS, {})} == {"T101", "T102", "T104"}


def test_judgments_alone_are_checked_without_effects():
    assert all(problem.evidence.effects == () for problem in found(run={}).values())
    assert len(found(run={})) == 5


def test_a_run_of_other_queries_has_no_effects():
    problems = found(run={"other": {"d1": 1.0}})
    assert all(problem.evidence.effects == () for problem in problems.values())


def test_a_check_counts_what_the_description_of_the_collection_counts():
    info = describe_collection(Collection.of(DOCUMENTS, QUERIES, name="texts"), JUDGED)
    remarks = {found.message: found.evidence.count for found in info.findings}
    problems = found()
    assert remarks["documents without any text"] == problems["T101", "texts"].evidence.count
    assert remarks["documents with the same text as another"] == problems["T102", "texts"].evidence.count
    assert remarks["queries whose text occurs in a document"] == problems["T103", "texts"].evidence.count
    assert remarks["judged documents not in the collection"] == problems["T104", "texts"].evidence.count
    assert remarks["judged queries not in the collection"] == problems["T105", "texts"].evidence.count


def test_a_query_without_any_judgment_stays_in_the_mean():
    judged = {**JUDGED, "q4": {}}
    problem = found(queries={**QUERIES, "q4": "x"}, judged=judged)["T102", "texts"]
    (one,) = problem.evidence.effects
    assert one.before == pytest.approx(ndcg(JUDGED, RUN) * 4 / 5)


def test_a_query_id_that_is_not_utf8_gets_the_grade_of_the_same_text(tmp_path):
    (tmp_path / "qrels.txt").write_bytes(b"q\xe9 0 d1 2\nq2 0 d3 1\n")
    (tmp_path / "a.run").write_bytes(b"q\xe9 Q0 d2 1 2 t\nq\xe9 Q0 d1 2 1 t\nq2 Q0 d3 1 1 t\n")
    text = "the same text of a document in several words"
    collection = Collection.of({"d1": text, "d2": text, "d3": "another text"}, {"q2": "another"})
    result = check(tmp_path / "qrels.txt", [tmp_path / "a.run"], ["P@2"], collection=collection)
    (repeated,) = (finding for finding in result.findings if finding.code == "T102")
    (effect,) = repeated.evidence.effects
    assert (effect.before, effect.after) == (0.5, 0.75)

"""Both stages of the diagnosis, retrieval first, compared with step-by-step calculations."""

import math

import pytest

from rankgauge.answers import (
    AnswerRecord,
    AnswerSet,
    Context,
    Verdict,
    diagnose_answers,
    evaluate_answers,
    items_of,
    sentence_claims,
)
from rankgauge.answers.diagnosis import JUDGE_NOTE
from rankgauge.reports import render


def record(name, gold, contexts, *, answer="It is so."):
    passages = tuple(Context(each, f"Text of {each}.") for each in contexts)
    return AnswerRecord(name, "Is it?", answer, passages, "It is so.", gold=tuple(gold), answerable=True)


def verdicts(answers, label="supported"):
    """Everything is supported and relevant, and no answer abstains."""
    words = {"answer-question": "relevant", "context-question": "relevant", "abstention": "answers"}
    return {
        item.key: words.get(item.relation, label) for each in answers for item in items_of(each, sentence_claims(each))
    }


def diagnosed(*records, **options):
    answers = AnswerSet("a", records)
    return diagnose_answers(evaluate_answers(answers, verdicts(answers)), **options)


def test_five_of_five_attainable_is_no_reason():
    found = diagnosed(record("q1", "abcde", "abcde"))
    assert found.retrieval.mean()["P@5"] == 1.0
    assert found.retrieval_first == ()
    assert found.summary() == "No fault was found in 1 answer (judge not calibrated)"


def test_one_relevant_document_found_first_is_all_that_is_attainable():
    found = diagnosed(record("q1", "a", "axyzw"))
    row = next(each for each in found.qualities if each.measure.name == "P")
    assert (row.mean, row.attainable) == (0.2, 0.2)
    assert found.retrieval_first == ()


def test_below_half_of_the_attainable_precision_retrieval_comes_first():
    found = diagnosed(record("q1", "abcde", "abvwx"))
    assert "P@5 is 0.40 of 1.00 attainable" in found.retrieval_first[0]
    assert found.summary().startswith("Fix retrieval before the prompt or the model")
    # R@5 is .40, which is no longer Poor.
    assert len(found.retrieval_first) == 1
    assert diagnosed(record("q1", "abcde", "abvwx"), attainable=0.4).retrieval_first == ()


def test_poor_recall_and_success_are_reasons_of_their_own():
    found = diagnosed(record("q1", "a", "vwxyz"), attainable=0.0)
    assert found.retrieval_first == ("R@5 is 0.00: Poor", "Success@5 is 0.00: Poor")


def test_bands_can_be_chosen():
    one = record("q1", "abcde", "abcvw")
    assert diagnosed(one).retrieval_first == ()
    found = diagnosed(one, bands={"R@5": (0.7, 0.8, 0.9)})
    assert found.retrieval_first == ("R@5 is 0.60: Poor",)


def test_without_known_documents_the_claims_of_references_decide():
    one = record("q1", "", "ab")
    answers = AnswerSet("a", (one,))
    unjudged = diagnose_answers(evaluate_answers(answers, verdicts(answers, "not stated")))
    assert unjudged.retrieval_first == ()
    assert "(judge not calibrated)" in unjudged.summary()
    ann = {"name": "ann", "person": True}
    found = diagnose_answers(evaluate_answers(answers, verdicts(answers, "not stated"), judge=ann))
    assert found.retrieval is None
    assert found.retrieval_first == ("the contexts support 0% of the claims of the references: Poor",)
    assert diagnosed(one).retrieval_first == ()


def test_both_stages_are_in_one_table_retrieval_first():
    found = diagnosed(record("q1", "a", "ab"), record("q2", "b", "xy"))
    rows = found.table().rows
    assert [row[0] for row in rows] == ["retrieval"] * 5 + ["generation"] * (len(rows) - 5)
    assert {row[1]: row[2] for row in rows}["Success@5"] == 0.5
    assert "not calibrated" in str(found)
    # The contexts x and y support the whole reference, although b is the known document.
    assert found.to_dict()["blame"]["totals"] == {"no fault": 2}


def test_missing_verdicts_are_reported_with_bounds():
    one = record("q1", "a", "a", answer="It is so. It is not.")
    answers = AnswerSet("a", (one,))
    labels = verdicts(answers)
    second = [i.key for i in items_of(one, sentence_claims(one)) if i.subject == "It is not."]
    found = diagnose_answers(evaluate_answers(answers, {k: v for k, v in labels.items() if k not in second}))
    assert found.answers.bounds()["Faithfulness"] == (0.5, 1.0)
    assert math.isnan(found.answers.mean()["Faithfulness"])
    assert found.answers.missing()["Faithfulness"] == 1
    assert "missing" in str(found)


def test_an_interval_without_spread_is_not_printed():
    rows = diagnosed(record("q1", "a", "a"), record("q2", "a", "a")).table().rows
    assert {row[3] for row in rows} == {None}


@pytest.mark.parametrize("answer", ["", None])
def test_a_record_without_answer_has_the_remaining_measures(answer):
    found = diagnosed(record("q1", "a", "a", answer=answer))
    assert found.answers.mean()["Completeness"] == 0.0
    assert math.isnan(found.answers.mean()["Faithfulness"])


def test_the_claims_of_references_decide_by_their_corrected_share():
    answers = AnswerSet("a", tuple(record(f"q{n}", "", "ab", answer=f"It is {n}.") for n in range(60)))
    labels = verdicts(answers, "not stated")
    people = [Verdict(key, label, "ann") for key, label in labels.items()]
    judge = [Verdict(key, label, "m") for key, label in verdicts(answers).items()]
    found = diagnose_answers(evaluate_answers(answers, judge, "ContextRecall", human=people))
    assert found.answers.mean()["ContextRecall"] == 1.0
    assert found.retrieval_first == ("the contexts support 0% of the claims of the references: Poor",)


@pytest.mark.parametrize(("judge", "note"), [({"name": "m"}, JUDGE_NOTE), ({"name": "ann", "person": True}, None)])
def test_causes_by_a_judge_have_a_note_on_their_errors(judge, note):
    answers = AnswerSet("a", (record("q1", "", "ab"), record("q2", "", "xy")))
    found = diagnose_answers(evaluate_answers(answers, verdicts(answers, "not stated"), judge=judge))
    assert found.blame.stages()
    shown = " ".join(render(found, "table").split())
    assert (JUDGE_NOTE in shown) is (note is not None)

"""Reports on answers: tied stages and causes, intervals, and missing verdicts in every format."""

import json

from rankgauge.answers import (
    AnswerRecord,
    AnswerSet,
    Context,
    diagnose_answers,
    items_of,
    sentence_claims,
)
from rankgauge.reports import html_report, render

TEXT = "The tower is 5 m high."


def labels_of(answers, **changed):
    """Return labels without a fault; `changed` has labels by relation and question."""
    good = {"answer-question": "relevant", "context-question": "relevant", "abstention": "answers"}
    return {
        item.key: changed.get(item.relation.replace("-", "_"), {}).get(
            each.id, good.get(item.relation, "supported")
        )
        for each in answers
        for item in items_of(each, sentence_claims(each))
    }


def tied():
    """Return a diagnosis of two answers: one without a context, one that is incomplete."""
    answers = AnswerSet("a", tuple(
        AnswerRecord(name, f"How high is {name}?", f"{name}: {TEXT}",
                     (Context("1", f"{name}: {TEXT}"),), f"Reference {name}: {TEXT}",
                     answerable=True)
        for name in ("q1", "q2")
    ))  # fmt: skip
    none = {"q1": "not stated"}
    labels = labels_of(
        answers, reference_context=none, reference_answer={"q2": "not stated"},
        answer_reference={"q2": "not stated"},
    )  # fmt: skip
    return diagnose_answers(answers, labels, ["AnswerCorrectness", "Faithfulness"])


def test_every_format_names_tied_stages_and_the_next_step_of_each():
    found = tied()
    sentence = "Retrieval and generation limit 1 of 2 answers each"
    steps = ("Improve retrieval: rankgauge diagnose (not retrieved: 1 answer); pass fewer "
             "contexts, or the best first (in the context but not used: 1 answer)")  # fmt: skip
    shown = " ".join(render(found, "table").split())
    assert sentence in shown
    assert f"Next step: i{steps[1:]}" in shown
    page = html_report(found)
    assert sentence in page
    assert steps in page
    assert json.loads(render(found, "json"))["blame"]["limiting"] == ["retrieval", "generation"]

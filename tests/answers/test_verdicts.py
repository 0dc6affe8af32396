"""Items of records, their keys, and the choice among several verdicts."""

import hashlib

import pytest

from rankgauge.answers import AnswerRecord, Context, Item, Verdict, counted_labels, items_of, sentence_claims

TOWER = (("user", "Tell me about the Eiffel Tower."), ("assistant", "It is in Paris."))
EVEREST = (("user", "Tell me about Mount Everest."), ("assistant", "It is in Nepal."))
# These depend on the question; whether a text supports a claim does not.
OF_QUESTIONS = {"answer-question", "context-question", "abstention", "answerability", "criterion"}


def keys(history=()):
    record = AnswerRecord(
        "q", "How high is it?", "It is 330 m high.", (Context("c", "It is 330 m high."),), "330 m.", history=history
    )
    found = items_of(record, sentence_claims(record), {"polite": "Is polite."})
    return {item.relation: item.key for item in found}


def test_questions_after_different_conversations_are_different_items():
    tower, everest = keys(TOWER), keys(EVEREST)
    assert {relation for relation in tower if tower[relation] != everest[relation]} == OF_QUESTIONS
    roles = (("assistant", TOWER[0][1]), TOWER[1])
    assert {each for each in tower if tower[each] != keys(roles)[each]} == OF_QUESTIONS


def test_keys_without_a_conversation_are_those_of_stored_verdicts():
    parts = ("abstention", "", "It is 330 m high.", "How high is it?")
    stored = hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()
    assert keys()["abstention"] == stored
    assert stored != keys(TOWER)["abstention"]


def test_passages_do_not_change_the_key_of_a_question():
    with_passages = Item("answerability", "q", "Who?", "", passages=(Context("c", "text"),))
    assert with_passages.key == Item("answerability", "q", "Who?", "").key


@pytest.mark.parametrize("order", [1, -1])
def test_people_decide_whether_the_collection_can_answer(order):
    given = [Verdict("k", "answerable", "small", "answerability-1"), Verdict("k", "not answerable", "ann")][::order]
    assert counted_labels(given) == {"k": "not answerable"}
    # For other relations, and among human verdicts, the last one counts.
    given = [Verdict("k", "supported", "ann"), Verdict("k", "not stated", "small", "support-1")]
    assert counted_labels(given) == {"k": "not stated"}
    given = [Verdict("k", "answerable", "ann"), Verdict("k", "not answerable", "bob")]
    assert counted_labels(given) == {"k": "not answerable"}

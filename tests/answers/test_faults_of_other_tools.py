"""Silently wrong scores of other tools, one test each: none occurs here.

Other such faults are tested elsewhere: a verdict of another model from the cache
(tests/llm/test_cache.py), contexts that contain instructions (test_model_judge.py), and measures of
verdicts (test_scores.py, section "faults of other tools").
"""

import math

import pytest

import rankgauge
from rankgauge.answers import (
    OVERLAP_MEASURES,
    AnswerRecord,
    AnswerSet,
    Citation,
    Context,
    Item,
    RuleJudge,
    diagnose_answers,
    evaluate_answers,
    items_of,
    sentence_claims,
)

JUNK = ("The bakery sells bread.", "Owls hunt at night.", "Trains leave hourly.")


def run(documents):
    return {"q": {document: -float(rank) for rank, document in enumerate(documents)}}


def values(relevant, retrieved, **options):
    """Return P, R, AP, nDCG, and RR at 5 of one query."""
    names = ["P@5", "R@5", "AP@5", "nDCG@5", "RR@5"]
    given = {"q": dict.fromkeys(relevant, 1)}
    return rankgauge.evaluate(given, retrieved, names, **options).mean()


def record(answer="It is 5 m high.", contexts=("The tower is 5 m high.",), **more):
    passages = tuple(Context(f"c{n}", text) for n, text in enumerate(contexts))
    return AnswerRecord("q", "How high is the tower?", answer, passages, **more)


def mean(name, *records):
    answers = AnswerSet("a", records)
    items = [item for each in records for item in items_of(each, sentence_claims(each))]
    verdicts = list(RuleJudge().judge(items))
    verdicts = [each for each in verdicts if hasattr(each, "label")]
    return evaluate_answers(answers, verdicts, name).mean()[name]


# ---- the same ranking has one value


def test_one_of_five_relevant_at_rank_one_and_junk_below():
    found = values("abcde", run(["a", "v", "w", "x", "y"]))
    # 1.0 elsewhere: the sum of precisions is divided by the number found, not by that of relevant.
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, 6))
    assert found == pytest.approx({"P@5": 0.2, "R@5": 0.2, "AP@5": 0.2, "nDCG@5": 1 / ideal, "RR@5": 1.0})


def test_precision_is_divided_by_k_where_fewer_documents_are_returned():
    found = values("abcde", run(["a"]))
    assert (found["P@5"], found["AP@5"]) == (0.2, 0.2)
    assert found["nDCG@5"] == pytest.approx(0.3392, abs=1e-4)


def test_a_document_returned_three_times_is_no_gain():
    rows = [("q", "a", 3.0), ("q", "a", 2.0), ("q", "a", 1.0)]
    with pytest.raises(rankgauge.InputError, match="document 'a'"):
        values("ab", rankgauge.Run.of(rows))
    first = values("ab", rankgauge.Run.of(rows), duplicates="first")
    assert first == values("ab", run(["a"]))
    assert max(first.values()) <= 1.0


def test_two_of_two_relevant_at_ranks_one_and_three():
    found = values("ab", run(["a", "x", "b", "y", "z"]))
    dcg = 1 + 1 / math.log2(4)
    assert found == pytest.approx(
        {"P@5": 0.4, "R@5": 1.0, "AP@5": 5 / 6, "RR@5": 1.0, "nDCG@5": dcg / (1 + 1 / math.log2(3))}
    )


def test_a_query_without_results_is_zero_and_no_error():
    assert values("ab", {"q": {}}) == dict.fromkeys(["P@5", "R@5", "AP@5", "nDCG@5", "RR@5"], 0.0)


# ---- scores that are silently wrong


def test_ninety_percent_junk_is_no_perfect_score():
    """Errors are not excluded from the mean: missing verdicts are reported as bounds."""
    records = [
        AnswerRecord(str(n), "How high?", "It is 5 m high.", (Context("c", "It is 5 m high."),)) for n in range(10)
    ]
    (item,) = (each for each in items_of(records[0], sentence_claims(records[0])) if each.relation == "answer-context")
    others = [AnswerRecord(each.id, each.question, f"Junk {each.id}.", each.contexts) for each in records[1:]]
    ev = evaluate_answers(AnswerSet("a", (records[0], *others)), {item.key: "supported"}, "Faithfulness")
    assert ev.bounds()["Faithfulness"] == (0.1, 1.0)
    assert ev.missing() == {"Faithfulness": 9}
    assert "9" in str(ev)


def test_a_gold_sentence_in_a_longer_context_is_recalled():
    """Normalized Levenshtein similarity gives 0, since the context is longer."""
    long = " ".join([*JUNK * 30, "The tower is 5 m high.", *JUNK * 30])
    assert mean("ContextRecall", record(contexts=(long,), reference="The tower is 5 m high.")) == 1


def test_the_order_and_length_of_contexts_do_not_change_what_is_supported():
    texts = ("The tower is 5 m high.", *JUNK)
    for given in (texts, texts[::-1], (" ".join(texts),), (*texts, *texts)):
        assert mean("Faithfulness", record("The tower is 5 m high.", given)) == 1.0


def test_useless_contexts_lower_context_precision():
    known = {"reference": "The tower is 5 m high."}
    contexts = ("The tower is 5 m high.", *JUNK[:2])
    assert mean("ContextPrecision", record(contexts=contexts, **known)) == pytest.approx(1 / 3)
    assert mean("ContextPrecision", record(contexts=JUNK, **known)) == 0.0


def test_a_phantom_citation_counts_against_the_answer():
    citations = (Citation("c0", "The tower is 5 m high."), Citation("[7]", "It opened in 1990."))
    assert mean("CitationPrecision", record(citations=citations)) == 0.5


def test_nuggets_come_from_the_reference_not_from_the_retrieved_contexts():
    """Evidence that was not retrieved lowers recall."""
    known = {"reference": "The tower is 5 m high. The bridge opened in 1990."}
    answer = "The tower is 5 m high."
    for contexts in (("The tower is 5 m high.",), ()):
        assert mean("Nuggets", record(answer, contexts, **known)) == 0.5


def test_an_answer_from_empty_contexts_is_not_faithful():
    for contexts in ((), ("",), ("  ", "\n")):
        assert mean("Faithfulness", record("The tower is 5 m high.", contexts)) == 0.0


def test_a_refusal_makes_measures_of_claims_undefined_with_a_reason():
    """0, 1, or NaN in other tools, so refusals cannot be compared across tools."""
    ev = evaluate_answers(AnswerSet("a", (record("I don't know."),)), {}, "Faithfulness")
    assert math.isnan(ev.mean()["Faithfulness"])
    assert ev.scores[0][0].reason == "the answer makes no claim"


def test_causes_name_their_evidence_and_no_invented_confidence():
    given = AnswerSet("a", (record("The tower is 7 m high.", reference="The tower is 5 m high."),))
    items = [item for each in given for item in items_of(each, sentence_claims(each))]
    verdicts = [each for each in RuleJudge().judge(items) if hasattr(each, "label")]
    (blamed,) = diagnose_answers(evaluate_answers(given, verdicts)).blame.answers
    assert blamed.cause == "used but contradicted"
    assert "contradict" in blamed.evidence


@pytest.mark.parametrize("name", OVERLAP_MEASURES)
def test_overlap_with_nothing_is_undefined_and_not_one(name):
    ev = evaluate_answers(AnswerSet("a", (AnswerRecord("q", "Why?", ""),)), {}, name)
    assert math.isnan(ev.mean()[name]) or ev.mean()[name] == 0.0


def test_not_is_not_a_detail():
    """Embeddings give .815 for this pair; only words and negations decide support."""
    item = Item("answer-context", "q", "Paris is not the capital.", "Paris is the capital.")
    assert next(RuleJudge().judge([item])).label == "contradicted"

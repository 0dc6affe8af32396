"""Measures of answers compared with manual matrices, RAGChecker, slow loops, and completions."""

import itertools
import json
import math
import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from rankgauge import parse
from rankgauge.answers import AnswerRecord, Citation, Claim, ClaimSet, Context, JudgedAnswer, score
from rankgauge.answers.scores import RELATIONS

S, C, N = "supported", "contradicted", "not stated"
DATA = os.environ.get("RANKGAUGE_TEST_DATA")


def judged(
    answer_context=(),
    answer_reference=(),
    reference_context=(),
    reference_answer=(),
    answer_question=(),
    context_question=(),
    contexts=None,
    citations=(),
    abstention=(),
    *,
    answerable=True,
    nuggets=None,
    nugget_answer=(),
    answer="Yes.",
    reference="It is.",
):
    """Return a record with as many claims and contexts as the matrices have rows and columns."""
    rows, targets = list(answer_context), list(reference_context)
    if contexts is None:
        contexts = len((rows or targets or [context_question])[0])
    made = tuple(Claim(f"answer claim {n}") for n in range(len(rows or answer_reference)))
    known = tuple(Claim(f"reference claim {n}") for n in range(len(targets or reference_answer)))
    record = AnswerRecord(
        "q",
        "Why?",
        answer,
        tuple(Context(f"c{n}", f"text {n}") for n in range(contexts)),
        reference,
        tuple(citations),
        answerable=answerable,
    )
    labels = {
        "answer-context": [label for row in rows for label in row],
        "answer-reference": list(answer_reference),
        "reference-context": [label for row in targets for label in row],
        "reference-answer": list(reference_answer),
        "answer-question": list(answer_question),
        "context-question": list(context_question),
        "abstention": list(abstention),
        "nugget-answer": list(nugget_answer),
        "citation-context": [each.text for each in citations if each.context.startswith("c")],
        "answerability": [],
    }
    return JudgedAnswer(record, ClaimSet(made, known, nuggets), labels)


def value(name, each):
    return score(parse(name), each).value


# ---- manual calculations


def test_three_claims_and_two_contexts():
    each = judged(
        answer_context=[[S, N], [C, N], [N, N]],
        answer_reference=[S, N, C],
        reference_context=[[S, N], [N, N]],
        reference_answer=[S, N],
        answer_question=["relevant", "relevant", "not relevant"],
        context_question=["relevant", "not relevant"],
    )
    assert {
        name: value(name, each)
        for name in (
            "Faithfulness",
            "Contradicted",
            "NotStated",
            "ContextRecall",
            "ContextPrecision",
            "ContextRelevance",
            "AnswerRelevance",
            "Completeness",
            "AnswerPrecision",
            "SelfKnowledge",
            "ContextUtilization",
            "Hallucination",
            "NoiseFromUseful",
            "NoiseFromOthers",
        )
    } == pytest.approx(
        {
            "Faithfulness": 1 / 3,
            "Contradicted": 1 / 3,
            "NotStated": 1 / 3,
            "ContextRecall": 1 / 2,
            "ContextPrecision": 1 / 2,
            "ContextRelevance": 1 / 2,
            "AnswerRelevance": 2 / 3,
            "Completeness": 1 / 2,
            "AnswerPrecision": 1 / 3,
            "SelfKnowledge": 0.0,
            "ContextUtilization": 1.0,
            "Hallucination": 2 / 3,
            "NoiseFromUseful": 0.0,
            "NoiseFromOthers": 0.0,
        }
    )
    # F1 of 1/2 and 1/3.
    assert value("AnswerCorrectness", each) == pytest.approx(0.4)


def test_a_wrong_claim_from_a_useful_context_and_one_from_another():
    each = judged(answer_context=[[S, N], [N, S], [S, S]], answer_reference=[N, N, S], reference_context=[[S, N]])
    assert value("NoiseFromUseful", each) == pytest.approx(1 / 3)
    assert value("NoiseFromOthers", each) == pytest.approx(1 / 3)


def test_a_context_that_supports_and_one_that_contradicts_make_a_supported_claim():
    each = judged(answer_context=[[S, C]])
    assert value("Faithfulness", each) == 1.0
    assert value("Contradicted", each) == 0.0


@pytest.mark.parametrize(
    ("useful", "expected"),
    [
        ([1, 0, 0], 1.0),
        ([0, 0, 1], 1 / 3),
        ([1, 0, 1], (1 + 2 / 3) / 2),
        ([0, 0, 0], 0.0),
        ([0, 1, 1], (1 / 2 + 2 / 3) / 2),
    ],
)
def test_context_ap_is_rank_aware(useful, expected):
    each = judged(reference_context=[[S if one else N for one in useful]])
    assert value("ContextAP", each) == pytest.approx(expected)


def test_a_citation_to_nothing_counts_against():
    citations = [Citation("c0", S), Citation("c1", N), Citation("[9]", "")]
    each = judged(answer_context=[[S, N], [N, S]], citations=citations)
    assert value("CitationPrecision", each) == pytest.approx(1 / 3)
    assert value("CitationRecall", each) == 1.0


def test_a_claim_whose_support_is_not_cited_lowers_citation_recall():
    each = judged(answer_context=[[S, N], [N, S]], citations=[Citation("c0", S)])
    assert value("CitationRecall", each) == 0.5
    assert value("CitationRecall", judged(answer_context=[[S]], citations=[])) == 0.0


def test_nuggets_strict_and_lenient_vital_and_all():
    nuggets = (Claim("a"), Claim("b"), Claim("c", vital=False))
    each = judged(nuggets=nuggets, nugget_answer=[S, "partly supported", S], contexts=0)
    assert value("Nuggets", each) == pytest.approx(2.5 / 3)
    assert value("StrictNuggets", each) == pytest.approx(2 / 3)
    assert value("VitalNuggets", each) == pytest.approx(1.5 / 2)
    assert value("StrictVitalNuggets", each) == pytest.approx(1 / 2)


@pytest.mark.parametrize(
    ("answerable", "label", "expected"),
    [
        (True, "answers", (0.0, 0.0, None)),
        (True, "abstains", (1.0, 1.0, None)),
        (False, "answers", (0.0, None, 0.0)),
        (False, "abstains", (1.0, None, 1.0)),
    ],
)
def test_the_two_by_two_of_answerable_and_answered(answerable, label, expected):
    each = judged(abstention=[label], answerable=answerable, contexts=0)
    found = [value(name, each) for name in ("Abstention", "WrongAbstention", "RightAbstention")]
    assert [None if math.isnan(one) else one for one in found] == list(expected)


# ---- RAGChecker's own records


@pytest.mark.skipif(DATA is None, reason="RANKGAUGE_TEST_DATA is not set")
def test_the_values_of_ragchecker_are_reproduced():
    names = {
        "precision": "AnswerPrecision",
        "recall": "Completeness",
        "f1": "AnswerCorrectness",
        "claim_recall": "ContextRecall",
        "context_precision": "ContextPrecision",
        "faithfulness": "Faithfulness",
        "hallucination": "Hallucination",
        "noise_sensitivity_in_relevant": "NoiseFromUseful",
        "self_knowledge": "SelfKnowledge",
        "noise_sensitivity_in_irrelevant": "NoiseFromOthers",
        "context_utilization": "ContextUtilization",
    }
    words = {"Entailment": S, "Contradiction": C, "Neutral": N}
    results = json.loads(Path(DATA, "rag", "ragchecker_checking_outputs.json").read_text())["results"]
    assert len(results) == 2
    for result in results:
        each = judged(
            [[words[one] for one in row] for row in result["retrieved2response"]],
            [words[one] for one in result["answer2response"]],
            [[words[one] for one in row] for row in result["retrieved2answer"]],
            [words[one] for one in result["response2answer"]],
        )
        assert set(result["metrics"]) == set(names)
        for theirs, expected in result["metrics"].items():
            assert value(names[theirs], each) == pytest.approx(expected, abs=1e-12)


# ---- faults of other tools


def test_five_unsupported_claims_are_not_faithful():
    each = judged(answer_context=[[N]] * 5)
    assert value("Faithfulness", each) == 0.0
    assert value("Faithfulness(like=deepeval)", each) == 1.0
    assert value("Faithfulness(like=ragas)", each) == 0.0


@pytest.mark.parametrize(
    ("reference_answer", "low", "high"),
    # The first claim is in the contexts; the second one may be.
    [
        ([N, N], 0, 0),
        ([S, N], 1 / 2, 1),
        ([N, S], 0, 1 / 2),
        ([S, None], 1 / 2, 1),
        ([None, None], 0, 1),
        ([S, S], 1, 1),
    ],
)
def test_bounds_of_utilization_are_values_of_completions(reference_answer, low, high):
    each = judged(reference_context=[[S], [None]], reference_answer=reference_answer)
    found = score(parse("ContextUtilization"), each)
    assert (found.low, found.high) == (low, high)


def test_one_verdict_for_five_claims_gives_bounds_and_no_value():
    found = score(parse("Faithfulness"), judged(answer_context=[[S], [None], [None], [None], [None]]))
    assert math.isnan(found.value)
    assert found[1:] == (0.2, 1.0, 4, "")
    each = judged(answer_context=[[S], [None], [None], [None], [None]])
    assert value("Faithfulness(like=ragas)", each) == 1.0
    assert value("Faithfulness(like=deepeval)", each) == 1.0


def test_without_verdicts_there_is_no_value():
    found = score(parse("Faithfulness"), judged(answer_context=[[None], [None]]))
    assert math.isnan(found.value)
    assert found[1:] == (0.0, 1.0, 2, "")


def test_a_missing_verdict_that_cannot_change_the_value_does_not_exclude_it():
    each = judged(answer_context=[[S, None], [N, N]])
    assert score(parse("Faithfulness"), each) == (0.5, 0.5, 0.5, 1, "")


def test_an_answer_without_claims_is_undefined_and_not_perfect():
    each = judged(answer_context=(), contexts=1)
    found = score(parse("Faithfulness"), each)
    assert math.isnan(found.value)
    assert found.reason == "the answer makes no claim"
    assert value("Faithfulness(like=deepeval)", each) == 1.0
    assert value("Faithfulness(like=ragchecker)", each) == 0.0
    assert math.isnan(value("Faithfulness(like=ragas)", each))


def test_an_answer_from_no_contexts_is_not_faithful():
    assert value("Faithfulness", judged(answer_context=[[], []], contexts=0)) == 0.0


def test_a_perfect_order_of_contexts_is_exactly_one():
    each = judged(reference_context=[[S, S]])
    assert value("ContextAP", each) == 1.0
    assert value("ContextAP(like=ragas)", each) == pytest.approx(1.0, abs=1e-9)
    assert value("ContextAP(like=ragas)", each) < 1.0


def test_an_abstention_is_not_correct_where_there_is_something_to_say():
    each = judged(reference_answer=[N, N], answer="I don't know.", contexts=1)
    assert value("AnswerCorrectness", each) == 0.0
    assert value("Completeness", each) == 0.0


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("Faithfulness", {"answer": ""}, "there is no answer"),
        ("Faithfulness", {"answer": None}, "there is no answer"),
        ("ContextRecall", {"reference": None}, "there is no reference answer"),
        ("ContextRelevance", {"contexts": 0}, "there are no contexts"),
        ("CitationPrecision", {}, "the answer cites nothing"),
        ("AnswerPrecision", {"reference": " ", "answer_context": [[S]]}, "there is no reference answer"),
    ],
)
def test_an_unjudgeable_value_is_undefined_with_its_reason(name, kind, reason):
    found = score(parse(name), judged(**{"contexts": 1, **kind}))
    assert math.isnan(found.value)
    assert found.reason == reason


def test_without_an_answer_nothing_of_the_reference_is_covered():
    each = judged(reference_answer=[N, N], answer="", contexts=1)
    assert value("Completeness", each) == 0.0
    assert value("AnswerCorrectness", each) == 0.0


# ---- bounds hold for all missing verdicts

LABEL = st.sampled_from([S, C, N])
MAYBE = st.one_of(LABEL, st.none())


@st.composite
def some_judged(draw):
    claims, known, contexts = (draw(st.integers(1, 2)) for _ in range(3))

    def matrix(rows, columns):
        return [[draw(MAYBE) for _ in range(columns)] for _ in range(rows)]

    return {
        "answer_context": matrix(claims, contexts),
        "answer_reference": matrix(1, claims)[0],
        "reference_context": matrix(known, contexts),
        "reference_answer": matrix(1, known)[0],
    }


def completions(kind):
    flat = [
        (name, row, column)
        for name, rows in kind.items()
        for row, cells in enumerate(rows)
        for column, cell in enumerate(cells if isinstance(cells, list) else [cells])
        if cell is None
    ]
    for labels in itertools.product([S, C, N], repeat=min(len(flat), 5)):
        filled = {name: [list(row) if isinstance(row, list) else row for row in rows] for name, rows in kind.items()}
        # If more than five are missing, they all get the same label, to limit the combinations.
        for number, (name, row, column) in enumerate(flat):
            label = labels[number] if number < len(labels) else labels[-1]
            if isinstance(filled[name][row], list):
                filled[name][row][column] = label
            else:
                filled[name][row] = label
        yield filled


@pytest.mark.slow
@given(
    some_judged(),
    st.sampled_from(
        [
            "Faithfulness",
            "Contradicted",
            "NotStated",
            "ContextRecall",
            "ContextPrecision",
            "ContextAP",
            "Completeness",
            "AnswerPrecision",
            "AnswerCorrectness",
            "NoiseFromUseful",
            "NoiseFromOthers",
            "ContextUtilization",
            "SelfKnowledge",
            "Hallucination",
        ]
    ),
)
def test_bounds_contain_every_completed_value(kind, name):
    found = score(parse(name), judged(**kind))
    assert found.reason or found.value == found.low == found.high or math.isnan(found.value)
    for filled in completions(kind):
        complete = score(parse(name), judged(**filled))
        if complete.reason:
            continue
        assert math.isnan(found.value) or complete.value == pytest.approx(found.value)
        assert not found.reason
        assert found.low - 1e-12 <= complete.value <= found.high + 1e-12


@given(st.lists(st.lists(LABEL, min_size=3, max_size=3), min_size=1, max_size=5))
def test_faithfulness_and_its_two_complements_are_a_slow_loop_and_add_up_to_one(matrix):
    each = judged(answer_context=matrix)
    supported = contradicted = 0
    for row in matrix:
        if S in row:
            supported += 1
        elif C in row:
            contradicted += 1
    assert value("Faithfulness", each) == supported / len(matrix)
    assert value("Contradicted", each) == contradicted / len(matrix)
    total = sum(value(name, each) for name in ("Faithfulness", "Contradicted", "NotStated"))
    assert total == pytest.approx(1.0)
    assert value("Faithfulness", judged(answer_context=matrix[::-1])) == value("Faithfulness", each)


def test_every_declared_measure_has_a_function():
    from rankgauge import list_measures

    assert {measure.name for measure in list_measures("verdicts")} == {*RELATIONS, "Criterion"}

"""Attribution: each seeded cause is found, and gains equal those of a loop."""

import json
import math

import pytest

from rankgauge import InputError
from rankgauge.answers import AnswerRecord, Blame, BlamedAnswer, Claim, ClaimSet, Context, JudgedAnswer
from rankgauge.answers.diagnosis import CAUSES, blame

S, C, N = "supported", "contradicted", "not stated"


def answered(name="q", *, record=None, **labels):
    """Return an answer with two claims and two contexts, correct except for the given record."""
    given = {
        "answer": "One. Two.",
        "reference": "One. Two.",
        "answerable": True,
        "contexts": (Context("a", "One."), Context("b", "Two.")),
        **(record or {}),
    }
    found = {
        "answer-context": [S, N, N, S],
        "answer-reference": [S, S],
        "reference-answer": [S, S],
        "reference-context": [S, N, N, S],
        "answer-question": ["relevant", "relevant"],
        "abstention": ["answers"],
        **{key.replace("_", "-"): value for key, value in labels.items()},
    }
    claims = (Claim("One."), Claim("Two."))
    return JudgedAnswer(AnswerRecord(name, "What?", **given), ClaimSet(claims, claims), found)


SEEDED = {
    "no fault": answered(),
    "not in the collection": answered(record={"answerable": False}, abstention=["abstains"]),
    "answered though unanswerable": answered(record={"answerable": False}),
    "not retrieved": answered(reference_context=[N, N, N, N]),
    "retrieved but cut": answered(
        record={"gold": ("z",), "ranking": ("a", "b", "x", "z")}, reference_context=[S, N, N, N]
    ),
    "abstained though answerable": answered(abstention=["abstains"]),
    "used but contradicted": answered(answer_context=[S, N, N, C]),
    "does not address the question": answered(answer_question=["not relevant", "not relevant"]),
    "in the context but not used": answered(reference_answer=[N, N], answer_reference=[N, N]),
    "partly used": answered(reference_answer=[S, N]),
    "unsupported claims": answered(answer_context=[S, N, N, N]),
}


@pytest.mark.parametrize("cause", SEEDED)
def test_the_seeded_cause_is_found(cause):
    found = blame([SEEDED[cause]]).answers[0]
    assert found.cause == cause
    assert found.stage == (CAUSES[cause][0] if cause in CAUSES else "")


def test_every_cause_has_a_seeded_fault():
    assert set(SEEDED) == {*CAUSES, "no fault"}


def test_known_documents_decide_unless_the_verdicts_are_certain():
    lost = {"gold": ("z",), "ranking": ("a", "b")}
    for some, cause in (
        ([S, N, N, N], "not retrieved"),
        ([S, N, N, None], "not retrieved"),
        ([S, N, N, S], "no fault"),
    ):
        assert blame([answered(record=lost, reference_context=some)]).answers[0].cause == cause
    for some, cause in (([N, N, N, N], "retrieved but cut"), ([N, N, N, None], "not judged")):
        there = answered(record={"gold": ("a",)}, reference_context=some)
        assert blame([there]).answers[0].cause == cause


@pytest.mark.parametrize(
    ("record", "cause"),
    [
        ({}, "not retrieved"),
        ({"gold": ("a",)}, "retrieved but cut"),
        ({"gold": ("a", "z"), "ranking": ("a", "b", "z")}, "retrieved but cut"),
        ({"gold": ("a", "z"), "ranking": ("a", "b")}, "not retrieved"),
    ],
)
def test_an_answer_with_all_that_the_contexts_have_is_limited_by_retrieval(record, cause):
    half = {"reference_context": [S, N, N, N], "reference_answer": [S, N]}
    found = blame([answered(record=record, **half)]).answers[0]
    assert (found.cause, found.stage) == (cause, "retrieval")
    assert found.evidence == "it has all claims of the contexts, 50% of the reference claims"
    less = answered(record=record, reference_context=[S, N, N, S], reference_answer=[S, N])
    assert blame([less]).answers[0].cause == "partly used"


def test_abstaining_from_an_unanswerable_question_is_not_a_fault():
    each = answered(record={"answerable": False, "reference": None}, abstention=["abstains"])
    assert blame([each]).answers[0].cause == "no fault"


def test_missing_verdicts_are_no_fault_and_no_praise():
    of_pairs = dict.fromkeys(("answer_context", "reference_context"), [None] * 4)
    of_claims = ("answer_reference", "reference_answer", "answer_question")
    each = answered(**of_pairs, **dict.fromkeys(of_claims, [None] * 2))
    assert blame([each]).answers[0].cause == "not judged"


@pytest.mark.parametrize(
    "changed", [{"answer_reference": [N, N]}, {"answer_reference": [N, N], "reference_answer": [S, None]}]
)
def test_no_fault_never_accompanies_a_correctness_of_zero(changed):
    found = blame([answered(**changed)]).answers[0]
    assert (found.cause, found.correctness) == ("in the context but not used", 0.0)


def test_an_answer_is_without_fault_only_if_every_verdict_that_matters_exists():
    for changed in (
        {"answer_context": [S, N, N, None]},
        {"reference_answer": [S, None]},
        {"answer_question": [None, None]},
    ):
        assert blame([answered(**changed)]).answers[0].cause == "not judged"
    assert blame([answered(answer_context=[S, None, N, S])]).answers[0].cause == "no fault"


def test_totals_and_gains_are_those_of_a_loop():
    some = [SEEDED["partly used"], SEEDED["no fault"], SEEDED["in the context but not used"]]
    found = blame(some, "a")
    assert found.totals() == {"in the context but not used": 1, "partly used": 1, "no fault": 1}
    # F1 of recall 1/2 and precision 1 is 2/3.
    assert found.gain("partly used") == pytest.approx((1 - 2 / 3) / 3)
    assert found.gain("in the context but not used") == pytest.approx(1 / 3)
    assert found.gain("not retrieved") == 0.0
    assert found.worst("partly used")[0].correctness == pytest.approx(2 / 3)
    assert sum(found.totals().values()) == len(some)
    assert found.stages() == {"generation": 2}


def test_tied_stages_are_named_as_tied():
    lost, partly = SEEDED["not retrieved"], SEEDED["partly used"]
    tied = blame([lost, partly, SEEDED["unsupported claims"], lost, SEEDED["no fault"]])
    assert tied.limiting() == ("retrieval", "generation")
    assert tied.summary() == "retrieval is at fault in 2 of 5 answers, generation in 2"
    assert json.loads(tied.to_json())["limiting"] == ["retrieval", "generation"]
    more = blame([partly, lost, lost])
    assert more.summary() == "retrieval is at fault in 2 of 3 answers, generation in 1"
    three = blame([lost, partly, SEEDED["not in the collection"]])
    assert three.summary().startswith("retrieval is at fault in 1 of 3 answers, generation in 1, collection in 1")
    assert blame([SEEDED["no fault"]]).limiting() == ()


def test_answers_without_verdicts_are_not_counted_as_faultless():
    unknown = Blame((BlamedAnswer("q1", "", "not judged", "", math.nan), BlamedAnswer("q2", "", "no fault", "", 1.0)))
    assert unknown.summary() == "no fault was found in 2 answers, of which 1 cannot be judged"


def test_without_a_reference_no_gain_is_invented():
    each = answered(record={"reference": None}, answer_context=[S, N, N, C])
    assert math.isnan(blame([each]).gain("used but contradicted"))
    both = blame([each, SEEDED["partly used"]])
    assert math.isnan(both.gain("used but contradicted"))
    assert both.gain("partly used") == pytest.approx(1 / 3)
    assert both.gain("not retrieved") == 0


def test_no_answers_are_refused():
    with pytest.raises(InputError, match="there are no answers"):
        blame([])

"""The stamp of a judge: its content, saving, and use in gates."""

import pytest

from rankgauge import Baseline, Evaluation, InputError, evaluate, gate
from rankgauge.answers import (
    AnswerRecord,
    AnswerSet,
    Context,
    Verdict,
    calibrate,
    diagnose_answers,
    evaluate_answers,
    items_of,
    sentence_claims,
)

S, N = "supported", "not stated"
RULES = {"measures": {"Faithfulness": {"margin": 0.1}}}
ANSWERS = AnswerSet("a", tuple(
    AnswerRecord(f"q{n}", "What?", f"It is {n}. It has {n}.", (Context("d", f"Text {n}."),))
    for n in range(60)
), {"prompt": "p1"})  # fmt: skip


def verdicts(wrong, judge="m", prompt="v1"):
    """Every third claim is not stated; some verdicts of each ten are wrong."""
    some = [
        item for record in ANSWERS for item in items_of(record, sentence_claims(record))
        if item.relation == "answer-context"
    ]  # fmt: skip
    return [
        Verdict(item.key, S if (n % 3 == 0) == (n % 10 < wrong) else N, judge, prompt)
        for n, item in enumerate(some)
    ]


PEOPLE, JUDGE = verdicts(0, "ann", ""), verdicts(2)
CALIBRATION = calibrate(ANSWERS, JUDGE, PEOPLE, draws=50)


def evaluated(given=JUDGE, measures="Faithfulness", **options):
    return evaluate_answers(ANSWERS, given, measures, **options)


def test_without_a_calibration_the_judge_is_uncalibrated():
    found = evaluated()
    assert found.stamp == "m, uncalibrated"
    assert "WARNING: judge: m, uncalibrated" in str(found)
    unknown = evaluated({each.key: each.label for each in JUDGE})
    assert unknown.stamp == "unknown judge, uncalibrated"
    assert "uncalibrated" in str(diagnose_answers(ANSWERS, JUDGE))


def test_the_stamp_gives_the_number_of_calibration_labels(tmp_path):
    CALIBRATION.write(tmp_path / "c.json")
    for calibration in (CALIBRATION, tmp_path / "c.json"):
        found = evaluated(calibration=calibration)
        assert found.stamp.startswith("m, calibrated on 120 labels (kappa 0.5")
        assert found.judge["calibrated"] == ["Faithfulness"]
        assert "WARNING" not in str(found)
    named = evaluated(
        {each.key: each.label for each in JUDGE}, judge={"name": "m", "prompt": "v1"},
        calibration=CALIBRATION,
    )  # fmt: skip
    assert named.stamp == found.stamp
    shown = diagnose_answers(ANSWERS, JUDGE, "Faithfulness", calibration=CALIBRATION)
    assert "calibrated on 120 labels" in str(shown)


@pytest.mark.parametrize(("judge", "prompt"), [("m", "v2"), ("n", "v1")])
def test_another_judge_or_prompt_is_uncalibrated(judge, prompt):
    found = evaluated(verdicts(2, judge, prompt), calibration=CALIBRATION)
    assert "uncalibrated: the calibration is for m (v1)" in found.stamp
    assert not found.judge["calibrated"]


def test_another_relation_is_uncalibrated():
    found = evaluated(measures=["Faithfulness", "Abstention"], calibration=CALIBRATION)
    assert found.judge["calibrated"] == ["Faithfulness"]
    assert "uncalibrated for Abstention: no labels of people on abstention" in found.stamp


def test_people_need_no_calibration():
    found = evaluated(PEOPLE, judge={"name": "ann", "person": True})
    assert found.stamp == "ann, a person"
    assert found.judge["calibrated"] == ["Faithfulness"]


def test_measures_without_a_judge_have_no_stamp():
    assert "judge" not in str(evaluated([], measures="TokenF1"))


def gated(evaluation, **options):
    baseline = Baseline.from_evaluation(evaluated())
    return gate(evaluation, rules=RULES, baseline=baseline, **options).verdict


def test_a_gate_refuses_an_uncalibrated_judge_by_default():
    with pytest.raises(InputError, match=r"Faithfulness is not calibrated: m\n"):
        gated(evaluated())
    assert gated(evaluated(), allow_uncalibrated=True) == "PASS"
    assert gated(evaluated(calibration=CALIBRATION)) == "PASS"


def test_the_stamp_is_saved_with_the_values(tmp_path):
    pytest.importorskip("sqlalchemy", reason="the history needs SQLAlchemy")
    from rankgauge import History

    for options, passes in (({"calibration": CALIBRATION}, True), ({}, False)):
        history = History(tmp_path / f"{passes}.db")
        history.add(evaluated(**options))
        read = Evaluation.from_json(evaluated(**options).to_json())
        for saved in (read, history.load(1)):
            assert saved.settings["prompt"] == "p1"
            if passes:
                assert gated(saved) == "PASS"
            else:
                with pytest.raises(InputError, match="not calibrated"):
                    gated(saved)


def test_values_of_an_unknown_judge_are_refused():
    values = Evaluation.from_values("x", ["q1", "q2"], {"Faithfulness": [1.0, 0.5]})
    with pytest.raises(InputError, match="not known who judged"):
        gate(values, rules=RULES, baseline=Baseline.from_evaluation(values))


def test_a_run_has_no_judge_and_is_gated_as_before():
    queries = [f"q{n}" for n in range(100)]
    found = evaluate({q: {"d"} for q in queries}, {q: ["d"] for q in queries}, "RR")
    rules = {"measures": {"RR": {"margin": 0.1}}}
    assert gate(found, rules=rules, baseline=Baseline.from_evaluation(found)).verdict == "PASS"

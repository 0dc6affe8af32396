"""The stamp of a judge: its content, saving, and use in gates."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest

from rankgauge import Baseline, Evaluation, History, InputError, compare, evaluate, gate
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
from rankgauge.comparison import trend_of
from rankgauge.comparison.conclusions import difference_sentence
from rankgauge.comparison.differences import select
from rankgauge.evaluation import group_means
from rankgauge.evaluation.answer_judge import correct_differences
from rankgauge.gates import update_baseline
from rankgauge.measures.measure import parse

S, N = "supported", "not stated"
RULES = {"measures": {"Faithfulness": {"margin": 0.1}}}
ANSWERS = AnswerSet(
    "a",
    tuple(AnswerRecord(f"q{n}", "What?", f"It is {n}. It has {n}.", (Context("d", f"Text {n}."),)) for n in range(60)),
    {"prompt": "p1"},
)


def verdicts(wrong, judge="m", prompt="v1", answers=ANSWERS):
    """Every third claim is not stated; some verdicts of each ten are wrong."""
    some = [
        item
        for record in answers
        for item in items_of(record, sentence_claims(record))
        if item.relation == "answer-context"
    ]
    return [
        Verdict(item.key, S if (n % 3 == 0) == (n % 10 < wrong) else N, judge, prompt) for n, item in enumerate(some)
    ]


PEOPLE, JUDGE = verdicts(0, "ann", ""), verdicts(1)
CALIBRATION = calibrate(ANSWERS, JUDGE, PEOPLE, draws=50)


def evaluated(given=JUDGE, measures="Faithfulness", **options):
    return evaluate_answers(ANSWERS, given, measures, **options)


def states(found):
    return {name: each["state"] for name, each in found.judge["measures"].items()}


def test_without_a_calibration_the_judge_is_not_calibrated():
    found = evaluated()
    assert found.stamp == "m, not calibrated"
    assert "WARNING: judge: m, not calibrated" in str(found)
    unknown = evaluated({each.key: each.label for each in JUDGE})
    assert unknown.stamp == "unknown judge, not calibrated"
    assert "not calibrated" in str(diagnose_answers(evaluate_answers(ANSWERS, JUDGE)))


def test_the_stamp_gives_the_number_of_calibration_labels(tmp_path):
    CALIBRATION.write(tmp_path / "c.json")
    for calibration in (CALIBRATION, tmp_path / "c.json"):
        found = evaluated(calibration=calibration)
        assert found.stamp.startswith("m, calibrated on 120 labels (kappa 0.7")
        assert states(found) == {"Faithfulness": "usable"}
        assert "WARNING" not in str(found)
    named = evaluated(
        {each.key: each.label for each in JUDGE}, judge={"name": "m", "prompt": "v1"}, calibration=CALIBRATION
    )
    assert named.stamp == found.stamp
    shown = diagnose_answers(evaluate_answers(ANSWERS, JUDGE, "Faithfulness", calibration=CALIBRATION))
    assert "calibrated on 120 labels" in str(shown)


@pytest.mark.parametrize(("judge", "prompt"), [("m", "v2"), ("n", "v1")])
def test_another_judge_or_prompt_is_not_calibrated(judge, prompt):
    found = evaluated(verdicts(1, judge, prompt), calibration=CALIBRATION)
    assert "not calibrated: the calibration is for m (v1)" in found.stamp
    assert states(found) == {"Faithfulness": "not calibrated"}


def test_another_relation_is_not_calibrated():
    found = evaluated(measures=["Faithfulness", "Abstention"], calibration=CALIBRATION)
    assert states(found) == {"Faithfulness": "usable", "Abstention": "not calibrated"}
    assert "not calibrated for Abstention: no labels of people on abstention" in found.stamp


def test_a_judge_that_agrees_less_than_a_constant_answer_is_not_usable():
    """Sensitivity 0.94 and specificity 0.18, where people support 41.5% of the claims."""
    rng = random.Random(1)
    labels = [S if rng.random() < 0.415 else N for _ in PEOPLE]
    people = [replace(each, label=label) for each, label in zip(PEOPLE, labels, strict=True)]
    judge = [
        replace(each, label=S if rng.random() < (0.94 if label == S else 0.82) else N)
        for each, label in zip(JUDGE, labels, strict=True)
    ]
    found = evaluated(judge, calibration=calibrate(ANSWERS, judge, people, draws=50))
    assert states(found) == {"Faithfulness": "not usable"}
    assert "m, not usable: calibrated on 120 labels, it agrees with people less often (0." in (found.stamp)
    assert "than the constant answer 'not stated' (0." in found.stamp
    for part in ("sensitivity 0.9", "specificity 0.", "kappa 0."):
        assert part in found.stamp
    assert "WARNING: judge: m, not usable" in str(found)
    with pytest.raises(InputError, match=r"is not usable: calibrated on 120 labels, it agrees"):
        gated(found)
    baseline = Baseline.from_evaluation(evaluated())
    accepted = gate(found, rules=RULES, baseline=baseline, allow_uncalibrated=True)
    assert "the labels of the judge are taken as true: the judge of Faithfulness is not usable" in (
        accepted.explanation()
    )
    (difference,) = compare([replace(found, run_name="b"), found]).differences
    assert difference.verdict == "withheld"


def test_a_usable_judge_that_agrees_less_than_a_constant_answer_has_a_warning():
    labels = [N if n % 20 == 0 else S for n in range(len(PEOPLE))]
    people = [replace(each, label=label) for each, label in zip(PEOPLE, labels, strict=True)]
    judge = [
        replace(each, label=N if n % 10 == 5 else label)
        for n, (each, label) in enumerate(zip(JUDGE, labels, strict=True))
    ]
    found = evaluated(judge, calibration=calibrate(ANSWERS, judge, people, draws=50))
    assert states(found) == {"Faithfulness": "usable"}
    agrees = "it agrees with people less often (0.90) than the constant answer"
    assert f"but {agrees}" in found.stamp
    assert "WARNING" in str(found)
    # It is beside every number, also of comparisons and gates.
    assert any(agrees in str(each) for each in compare([replace(found, run_name="b"), found]).warnings)
    result = gate(found, rules=RULES, baseline=Baseline.from_evaluation(found))
    assert result.warnings == (f"the judge of Faithfulness: {agrees} 'supported' (0.95)",)


def test_people_need_no_calibration():
    found = evaluated(PEOPLE, judge={"name": "ann", "person": True})
    assert found.stamp == "ann, a person"
    assert gated(replace(found, settings=found.settings | {"judge": found.judge | {"name": "m"}}))


def test_measures_without_a_judge_have_no_stamp():
    assert "judge" not in str(evaluated([], measures="TokenF1"))


def gated(evaluation, **options):
    baseline = Baseline.from_evaluation(evaluation)
    return gate(evaluation, rules=RULES, baseline=baseline, **options).verdict


def test_a_gate_refuses_a_judge_without_calibration_by_default():
    with pytest.raises(InputError, match=r"Faithfulness is not calibrated: judged by m\n"):
        gated(evaluated())
    assert gated(evaluated(), allow_uncalibrated=True) == "PASS"
    assert gated(evaluated(calibration=CALIBRATION)) == "PASS"
    # The judge of the baseline counts, too.
    old = Baseline.from_evaluation(replace(evaluated(), run_name="old"))
    with pytest.raises(InputError, match=r"run 'old': the judge of Faithfulness is not calibrated"):
        gate(evaluated(calibration=CALIBRATION), rules=RULES, baseline=old)


def test_the_stamp_is_saved_with_the_values(tmp_path):
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


IDS = [f"q{n}" for n in range(100)]


def judged(name, values, people=(), **about):
    """Return an evaluation by a judge, unusable by default, with labels of people."""
    found = {"state": "not usable", "reason": "kappa 0.11", "people": dict(people)} | about
    return Evaluation.from_values(
        name, IDS, {"Faithfulness": values}, settings={"judge": {"name": "m", "measures": {"Faithfulness": found}}}
    )


@pytest.mark.parametrize("known", ["calibrated", {"Faithfulness": "calibrated"}])
def test_an_unreadable_state_of_a_judge_is_refused(known):
    values = judged("x", [0.5] * 100)
    values = replace(values, settings={"judge": {"name": "m", "measures": known}})
    with pytest.raises(InputError, match="not calibrated"):
        gated(values)


@pytest.mark.parametrize("abstains", [0, 1])
def test_labels_count_only_on_questions_with_a_value_in_both(abstains):
    generator = random.Random(1)
    old, new = (
        judged(name, [float(generator.random() < p) for _ in IDS], dict.fromkeys(IDS[:20], label))
        for name, p, label in (("old", 0.9, 0.5), ("new", 0.5, 0.9))
    )
    values = new.per_query.copy()
    values[:abstains] = np.nan
    new = replace(new, per_query=values)
    found = compare([old, new])
    baseline = Baseline.from_evaluation(old)
    if not abstains:
        assert "by labels of people on 20 questions" in found.difference("new").condition
        assert gate(new, rules=RULES | {"max_failed": 0.1}, baseline=baseline).checks
        return
    assert found.difference("new").verdict == "withheld"
    with pytest.raises(InputError, match="people labeled only 19 questions with a value in both"):
        gate(new, rules=RULES, baseline=baseline)


def test_a_pair_with_labels_on_different_questions_is_withheld_with_the_reason():
    labels = {query: n % 2 for n, query in enumerate(IDS)}
    old = judged("old", [0.5] * 100, list(labels.items())[:40])
    new = judged("new", [1.0] * 100, list(labels.items())[50:90])
    found = compare([old, new])
    assert found.sentences == found.withheld_sentences
    assert "old and new cannot be compared: the judge of Faithfulness is not usable" in str(found)
    assert "people labeled only 0 questions with a value in both" in found.sentences[0]
    assert not found.table().best


USABLE = {"state": "usable", "gain": [0.75, 0.65, 0.85]}


def test_a_verdict_uses_the_corrected_difference():
    generator = np.random.default_rng(0)
    moved = np.where(np.arange(100) < 40, generator.normal(0.048, 0.01, 100), 0.0)
    old, new = judged("old", [0.5] * 100, **USABLE), judged("new", 0.5 + moved, **USABLE)
    d = compare([old, new]).difference("new")
    # One question more, completely wrong, shows as 1 / 0.75.
    assert d.reversed_by == int(np.ceil(moved.sum() / 0.75 / (1 / 0.75)))
    assert d.verdict == "cannot tell"
    assert "the interval includes 0" not in difference_sentence(d)


def test_a_further_question_with_labels_weighs_as_much_as_those_before():
    labels = {query: n % 2 for n, query in enumerate(IDS[:20])}
    generator = np.random.default_rng(0)
    values = generator.choice([0.0, 1.0], 100, p=[0.3, 0.7])
    old = judged("old", values, labels)
    new = judged("new", values, {query: 0.8 * label for query, label in labels.items()})
    d = compare([old, new]).difference("new")
    assert d.difference == pytest.approx(-0.1)
    # One labeled question counts for five: two more could cancel 100 * 0.1.
    assert (d.scale, d.reversed_by, d.verdict) == (5, 2, "cannot tell")


@pytest.mark.parametrize(("shift", "place"), [(-0.06, 2), (0.06, 1)])
def test_both_bounds_of_a_gate_allow_for_the_error_of_the_gain(shift, place):
    gain = [0.75, 0.55, 0.95]
    moved = np.random.default_rng(0).normal(shift, 0.02, 100)
    old, new = (judged(name, 0.8 + more, state="usable", gain=gain) for name, more in (("a", 0 * moved), ("b", moved)))
    by_people = [replace(each, settings={"judge": {"name": "m", "person": True}}) for each in (old, new)]
    upper, true = (
        gate(later, rules=RULES, baseline=Baseline.from_evaluation(first)).checks[0].numbers.upper
        for first, later in ((old, new), by_people)
    )
    assert upper == pytest.approx(true / gain[place])


def test_a_floor_uses_the_mean_corrected_for_the_errors_of_the_judge():
    rules = {"measures": {"Faithfulness": {"margin": 0.1, "floor": 0.8}}}
    labels = dict.fromkeys(IDS[:60], 0.27)
    low = judged("x", [0.88] * 100, labels, corrected=[0.27, 0.2, 0.34])
    (check,) = gate(low, rules=rules, baseline=None).checks
    assert (check.verdict, check.value) == ("FAIL", 0.27)
    assert "(0.8800 by the judge)" in check.sentence
    raw = judged("x", [0.88] * 100, **USABLE)
    with pytest.raises(InputError, match="no mean corrected for the errors of the judge"):
        gate(raw, rules=rules, baseline=None)
    found = gate(raw, rules=rules, baseline=None, allow_uncalibrated=True)
    assert found.verdict == "PASS"
    assert "no mean corrected" in found.warnings[0]


def test_a_comparison_shows_corrected_means_or_names_the_judge():
    true = {"old": [0.7, 0.6, 0.8], "new": [0.3, 0.2, 0.4]}
    values = {"old": [0.8, 0.7] * 50, "new": [0.9, 0.85] * 50}
    found = compare([judged(name, values[name], **USABLE, corrected=true[name]) for name in true])
    assert found.means() == {"old": {"Faithfulness": 0.7}, "new": {"Faithfulness": 0.3}}
    assert found.sentences[0].startswith("old has the highest Faithfulness (0.7000)")
    assert (found.differences[0].mean, found.differences[0].baseline_mean) == (0.3, 0.7)
    # Without a corrected mean of each run, none is called best.
    found = compare(
        [judged("old", values["old"], **USABLE, corrected=true["old"]), judged("new", values["new"], **USABLE)]
    )
    assert not [text for text in found.sentences if "highest" in text]
    assert found.table().rows[0][0] == "Faithfulness (by judge)"
    assert not found.table().best
    assert found.means()["old"]["Faithfulness"] == pytest.approx(0.75)


def test_a_usable_judge_without_a_corrected_mean_has_a_note_with_the_reason():
    answers = AnswerSet(
        "a",
        tuple(
            replace(record, id=f"{record.id}-{n}", answer=f"It is {record.id}. It has {n} now.")
            for record in ANSWERS
            for n in range(4)
        ),
    )
    judge, people = verdicts(0, answers=answers), verdicts(0, "ann", "", answers)
    calibration = calibrate(answers, judge, people, draws=50)
    measures = ["Faithfulness", "NotStated"]
    found = evaluate_answers(answers, judge, measures, calibration=calibration)
    assert states(found) == dict.fromkeys(measures, "usable")
    assert found.estimates()["NotStated"][0] is None
    note = "no mean corrected for the errors of the judge (not a share of units of one kind)"
    assert any(text.startswith(f"{note}: NotStated;") for text in found.notes)
    labeled = evaluate_answers(answers, judge, measures, calibration=calibration, human=people)
    assert "no mean corrected" not in str(labeled)


def test_a_file_without_states_of_the_judge_is_refused():
    data = json.loads(evaluated(calibration=CALIBRATION).to_json())
    del data["judge"]["measures"]
    with pytest.raises(InputError, match="the judge has no state for each measure"):
        Evaluation.from_json(json.dumps(data))
    by_people = evaluated(PEOPLE, judge={"person": True})
    assert Evaluation.from_json(by_people.to_json()).stamp == by_people.stamp


def test_a_run_has_no_judge_and_is_gated_as_before():
    queries = [f"q{n}" for n in range(100)]
    found = evaluate({q: {"d"} for q in queries}, {q: ["d"] for q in queries}, "RR")
    rules = {"measures": {"RR": {"margin": 0.1}}}
    assert gate(found, rules=rules, baseline=Baseline.from_evaluation(found)).verdict == "PASS"


def lowered(evaluation, loss, name="b"):
    """Return an evaluation whose values are lower in every third question."""
    values = evaluation.per_query - loss * (np.arange(60) % 3 == 0)[:, None]
    return replace(evaluation, run_name=name, per_query=values)


def test_a_difference_is_divided_by_the_share_of_it_that_the_judge_shows():
    found = evaluated(calibration=CALIBRATION)
    share, low, high = found.judge["measures"]["Faithfulness"]["gain"]
    people = {"name": "m", "person": True}
    raw = compare(
        [replace(each, settings=each.settings | {"judge": people}) for each in (found, lowered(found, 0.3))]
    ).difference("b")
    d = compare([found, lowered(found, 0.3)]).difference("b")
    assert (raw.verdict, d.verdict, raw.condition) == ("worse", "worse", "")
    assert d.difference == pytest.approx(raw.difference / share)
    assert (d.p, d.effect) == (raw.p, pytest.approx(raw.effect))
    # At least as wide as with a known share, and no wider than with both ends of each interval.
    assert raw.low / low <= d.low < raw.low / share
    assert raw.high / share < d.high <= raw.high / high
    condition = f"assuming that the judge errs as often on both systems (sensitivity + specificity - 1: {share:.2f} ["
    assert condition in difference_sentence(d)
    assert condition in compare([found, lowered(found, 0.3)]).sentences[1]
    read = Evaluation.from_json(found.to_json())
    assert compare([read, lowered(read, 0.3)]).difference("b").difference == d.difference


def test_the_margin_of_a_gate_shrinks_as_differences_of_the_judge_do():
    found = evaluated(calibration=CALIBRATION)
    share, low, _ = found.judge["measures"]["Faithfulness"]["gain"]
    new = lowered(found, 0.15)
    by_people = found.settings | {"judge": {"name": "m", "person": True}}

    def checked(evaluation, margin):
        rules = {"measures": {"Faithfulness": {"margin": margin}}}
        baseline = Baseline.from_evaluation(replace(found, settings=evaluation.settings))
        return gate(evaluation, rules=rules, baseline=baseline).checks[0]

    raw = checked(replace(new, settings=by_people), 0.2)
    limit = -raw.numbers.lower
    for margin, passes in ((1.01 * limit, True), (0.99 * limit, False)):
        by_person = checked(replace(new, settings=by_people), margin)
        assert (by_person.verdict == "PASS") == passes
        assert checked(new, margin).verdict != "PASS"
        assert checked(new, margin / low).verdict == by_person.verdict
    check = checked(new, 0.2)
    assert check.numbers.gain == pytest.approx(raw.numbers.gain / share)
    assert check.numbers.lower == pytest.approx(raw.numbers.lower / low)
    assert check.numbers.margin == 0.2
    assert "assuming that the judge errs as often on both systems" in check.sentence


def test_labels_of_people_on_both_systems_give_a_verdict_whatever_the_judge_errs():
    poor = verdicts(6)  # wrong on six of ten claims
    new = evaluated(poor, human=PEOPLE)
    ids = [record.id for record in ANSWERS]
    people = new.judge["measures"]["Faithfulness"]["people"]
    assert sorted(people) == sorted(ids)
    truth = np.array([people[query] for query in ids])
    mean, (low, high), by_judge = new.estimates()["Faithfulness"]
    assert mean == pytest.approx(truth.mean())
    assert low < mean < high
    assert by_judge != pytest.approx(mean)
    # People find 0.4 less in every second question; the judge sees nothing.
    told = {query: value - 0.4 * (n % 2) for n, (query, value) in enumerate(people.items())}
    about = new.judge["measures"] | {"Faithfulness": new.judge["measures"]["Faithfulness"] | {"people": told}}
    judge = new.judge | {"measures": about}
    worse = replace(new, run_name="b", settings=new.settings | {"judge": judge}, judge=judge)
    d = compare([new, worse]).difference("b")
    assert d.difference == pytest.approx(-0.2)
    assert d.verdict == "worse"
    assert "by labels of people on 60 questions (prediction-powered)" in difference_sentence(d)
    check = gate(worse, rules=RULES, baseline=Baseline.from_evaluation(new)).checks[0]
    assert (check.verdict, check.numbers.gain) == ("FAIL", pytest.approx(-0.2))
    assert "valid for any errors of the judge" in check.sentence
    # Labels of one system only, or of few questions, are not enough.
    unlabeled = evaluated(poor)
    assert compare([new, replace(unlabeled, run_name="b")]).difference("b").verdict == "withheld"
    with pytest.raises(InputError, match="not calibrated"):
        gate(new, rules=RULES, baseline=Baseline.from_evaluation(unlabeled))
    # Nor are labels on different questions of the two.
    half = dict(list(people.items())[:30])
    about = {"Faithfulness": new.judge["measures"]["Faithfulness"]}
    first, second = (
        replace(
            new,
            run_name=name,
            settings={"judge": {"name": "m", "measures": {"Faithfulness": about["Faithfulness"] | {"people": labels}}}},
        )
        for name, labels in (("a", half), ("b", {q: v for q, v in people.items() if q not in half}))
    )
    assert compare([first, second]).difference("b").verdict == "withheld"
    with pytest.raises(InputError, match="not calibrated"):
        gate(second, rules=RULES, baseline=Baseline.from_evaluation(first))
    few = {item.key for record in ANSWERS.records[:19] for item in items_of(record, sentence_claims(record))}
    some = evaluated(poor, human=[each for each in PEOPLE if each.key in few])
    assert some.estimates()["Faithfulness"][0] is None
    with pytest.raises(InputError, match="not calibrated"):
        gate(some, rules=RULES, baseline=Baseline.from_evaluation(some))


def test_a_usable_judge_has_its_corrected_mean_first():
    found = evaluated(calibration=CALIBRATION)
    (mean, (low, high), by_judge) = found.estimates()["Faithfulness"]
    truth = sum(each.label == S for each in PEOPLE) / len(PEOPLE)
    assert by_judge == found.mean()["Faithfulness"]
    assert abs(mean - truth) < abs(by_judge - truth)
    assert low < truth < high
    assert found.table().columns == ("measure", "mean", "95% CI", "by judge", "questions")
    assert found.table().rows[0][1] == mean
    alone = evaluated().table().rows[0]
    assert (alone[1], alone[2], alone[3]) == (None, None, by_judge)
    by_people = evaluated(PEOPLE, judge={"person": True}).table()
    assert by_people.columns == ("measure", "mean", "95% CI", "questions")


def gated_checks(new, old, rules=RULES):
    return gate(new, rules=rules, baseline=Baseline.from_evaluation(old)).checks


def test_a_gate_shows_corrected_means_or_names_the_judge():
    moved = np.random.default_rng(0).normal(-0.06, 0.02, 100)
    true = {"old": [0.7, 0.6, 0.8], "new": [0.62, 0.5, 0.7]}
    old, new = judged("old", [0.8] * 100, **USABLE), judged("new", 0.8 + moved, **USABLE)
    (check,) = gated_checks(new, old)
    assert check.numbers.by_judge
    assert "(by judge)" in str(gate(new, rules=RULES, baseline=Baseline.from_evaluation(old)).table())
    both = [judged(e.run_name, e.per_query[:, 0], **USABLE, corrected=true[e.run_name]) for e in (old, new)]
    (check,) = gated_checks(both[1], both[0])
    assert (check.numbers.baseline_mean, check.numbers.mean, check.numbers.by_judge) == (0.7, 0.62, False)
    # A mean that is corrected over all questions is not that of some of them.
    fewer = select(both[1], both[1].measures, range(90))
    (check,) = gated_checks(fewer, both[0], RULES | {"queries": "intersection"})
    assert check.numbers.by_judge
    assert check.numbers.baseline_mean == pytest.approx(0.8)


def test_a_margin_is_compared_with_the_corrected_mean_of_the_baseline():
    rules = {"measures": {"Faithfulness": {"margin": 0.3}}}
    values = np.random.default_rng(0).choice([0.4, 0.45], 100)
    old, new = (judged(name, values, **USABLE, corrected=[0.2, 0.1, 0.3]) for name in ("old", "new"))
    with pytest.raises(InputError, match=r"every run passes: the mean of the baseline is 0\.2"):
        gated_checks(new, old, rules)


def test_an_update_of_a_baseline_uses_corrected_means_and_no_unusable_judge(tmp_path):
    file = tmp_path / "base.json"
    means = {"old": 0.5, "new": 0.55}

    def updated(**about):
        parts = {n: judged(n, [0.9] * 100, **about, corrected=[m, 0.4, 0.6]) for n, m in means.items()}
        file.unlink(missing_ok=True)
        update_baseline(Baseline.from_evaluation(parts["old"]), file, RULES)
        return update_baseline(Baseline.from_evaluation(parts["new"]), file, RULES)

    assert "Faithfulness 0.5000 → 0.5500" in updated(**USABLE)
    assert updated().startswith("no verdict (the judge of Faithfulness is not usable")
    floor = {"measures": {"Faithfulness": {"margin": 0.1, "floor": 0.8}}}
    raw = [judged(name, [0.9] * 100, **USABLE) for name in means]
    file.unlink()
    update_baseline(Baseline.from_evaluation(raw[0]), file, floor)
    text = update_baseline(Baseline.from_evaluation(raw[1]), file, floor)
    assert text.startswith("no verdict (Faithfulness has no mean corrected for the errors of the judge for its floor")
    assert "Faithfulness (by judge) 0.9000 → 0.9000" in text


def test_questions_count_as_different_if_their_values_differ():
    """Values that carry the correction by labels differ for all questions."""
    ids = [f"q{n}" for n in range(100)]
    before = np.random.default_rng(0).choice([0.0, 1.0], 100)
    after = before.copy()
    after[50:54] = 1 - after[50:54]
    labels = dict.fromkeys(ids[:40], 0.5)
    old = judged("old", before, labels)
    new = judged("new", after, labels | {"q0": 1.0})
    found = compare([old, new])
    d = found.difference("new")
    assert (d.wins + d.losses, d.ties, d.queries) == (5, 95, 100)
    assert d.no_interval == "only 5 queries differ"
    assert d.verdict == "cannot tell"
    (check,) = gated_checks(new, old)
    n = check.numbers
    assert (n.wins, n.ties, n.losses) == (d.wins, d.ties, d.losses)
    assert n.wins == 1 + int((after > before).sum())
    # A conversation counts once.
    talks = {query: f"talk {n // 2}" for n, query in enumerate(ids)}
    both = [replace(e, settings={"judge": e.settings["judge"] | {"conversations": talks}}) for e in (old, new)]
    d = compare(both).difference("new")
    assert d.wins + d.ties + d.losses == d.queries == 50
    assert d.wins + d.losses <= 3
    (check,) = gated_checks(both[1], both[0])
    assert check.numbers.wins + check.numbers.ties + check.numbers.losses == 50


@pytest.mark.parametrize("gain", [[1.0, 1.0, 1.0], [0.85, 0.8, 0.9]], ids=["without correction", "corrected"])
def test_questions_of_a_conversation_have_no_more_weight_than_one(gain):
    """Three equal turns are no more evidence than the first."""
    rng = np.random.default_rng(1)
    values = [rng.random(33), None]
    values[1] = np.clip(values[0] - 0.1 + rng.normal(0, 0.2, 33), 0, 1)
    judge = {"name": "m", "measures": {"Faithfulness": {"state": "usable", "gain": gain, "people": {}}}}

    def pair(turns, judge):
        return [
            Evaluation.from_values(
                name,
                IDS[: 33 * turns],
                {"Faithfulness": np.repeat(column, turns).tolist()},
                settings={"judge": judge},
            )
            for name, column in zip(("old", "new"), values, strict=True)
        ]

    later = {query: IDS[n // 3 * 3] for n, query in enumerate(IDS[:99]) if n % 3}
    first, repeated = pair(1, judge), pair(3, judge | {"conversations": later})
    alone, talks = (compare(both, test="t").difference("new") for both in (first, repeated))
    for name in ("difference", "low", "high", "p", "queries", "wins", "losses", "verdict", "reversed_by"):
        assert getattr(talks, name) == pytest.approx(getattr(alone, name)), name
    (check,), (of_talks,) = (gated_checks(*both[::-1]) for both in (first, repeated))
    for name in ("lower", "upper", "gain", "p_worse", "queries", "losses"):
        assert getattr(of_talks.numbers, name) == pytest.approx(getattr(check.numbers, name)), name
    assert of_talks.verdict == check.verdict


def test_of_two_calibrations_the_worse_one_corrects_a_difference():
    settings = [
        {"judge": {"name": "m", "measures": {"Faithfulness": {"state": "usable", "gain": gain}}}}
        for gain in ([0.9, 0.85, 0.95], [0.7, 0.6, 0.8])
    ]
    for run, baseline in (settings, settings[::-1]):
        found = correct_differences(parse("Faithfulness"), np.array([0.1]), ["q0"], run=run, baseline=baseline)
        assert found.gain == (0.7, 0.6, 0.8)


def test_a_long_conversation_may_lose_more_than_a_question():
    """The values have the mean of the questions; a question without a value is left out."""
    moved = np.array([0.1, 0.2, 0.3, np.nan, np.nan])
    talks = {"judge": {"conversations": {"q1": "q0", "q2": "q0", "q4": "q3"}}}
    found = correct_differences(parse("Faithfulness"), moved, IDS[:5], run=talks, baseline={})
    assert found.values[0] == pytest.approx(0.2)
    assert np.isnan(found.values[1])
    moved[3] = -0.6
    found = correct_differences(parse("Faithfulness"), moved, IDS[:5], run={}, baseline=talks)
    assert found.values == pytest.approx([0.3, -0.3])  # the mean is 0, that of the four questions
    assert found.unseen == pytest.approx(1.5)


def test_a_difference_by_a_judge_is_named_as_such_in_all_results(tmp_path):
    """An untested measure has no verdict to withhold."""
    people = {"state": "usable", "gain": [1.0, 1.0, 1.0], "corrected": [0.5, 0.4, 0.6], "people": {}}
    generator = np.random.default_rng(0)

    def evaluation(name):
        about = {"Faithfulness": people, "Completeness": {"state": "not usable", "reason": "kappa 0.11", "people": {}}}
        values = {measure: generator.random(100).tolist() for measure in about}
        return Evaluation.from_values(name, IDS, values, settings={"judge": {"name": "m", "measures": about}})

    both = [evaluation("old"), evaluation("new")]
    found = compare(both)
    d = found.difference("new", "Completeness")
    assert d.by_judge
    assert not found.difference("new", "Faithfulness").by_judge
    assert "Completeness (by judge)" in str(found.differences_table())
    with History(tmp_path / "h.db") as history:
        ids = [history.add(each).id for each in both]
        saved = compare(history.comparable(ids), None, "Completeness")
        assert saved.differences[0].verdict == "withheld"
        assert "the judge of Completeness is not usable" in str(saved)
        trend = trend_of(history, "Completeness", run="new")
        assert "not corrected for its errors" in str(trend)
        assert np.isnan([point.low for point in trend.points]).all()
        corrected = trend_of(history, "Faithfulness", run="new")
        (point,) = corrected.points
        assert (point.mean, point.low, point.high) == (0.5, 0.4, 0.6)
        assert "Completeness (by judge)" in str(history.entry(ids[0]))


def test_a_plot_of_means_names_the_judge_and_has_no_interval_of_it():
    person = {"judge": {"name": "ann", "person": True}}
    by_model = judged("x", [0.8, 0.9] * 50, **USABLE)
    for one, tick, spread in (
        (by_model, "Faithfulness (by judge)", False),
        (replace(by_model, settings=person), "Faithfulness", True),
    ):
        (panel,) = one.plot().panels
        assert panel.ticks == (tick,)
        assert (panel.series[0].low[0] < panel.series[0].y[0]) is spread


def test_means_of_groups_name_the_judge_and_have_no_interval():
    values = np.random.default_rng(0).random(100).tolist()
    one = replace(judged("x", values, **USABLE), groups=("a", "b") * 50)
    found = group_means(one)
    assert "Faithfulness (by judge)" in str(found)
    assert all(each.by_judge and np.isnan(each.low) for each in found.means)
    by_person = group_means(replace(one, settings={"judge": {"name": "ann", "person": True}}))
    assert "by judge" not in str(by_person)
    assert not any(np.isnan(each.low) for each in by_person.means)

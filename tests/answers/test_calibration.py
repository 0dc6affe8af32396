"""Calibration: manual counts, simulated biases, stale calibrations, and corrected means."""

import json
import math
import random
from dataclasses import replace

import jsonschema
import pytest
from schemas import strict

from rankgauge.answers import (
    AnswerRecord,
    AnswerSet,
    Calibration,
    Claim,
    ClaimSet,
    Context,
    Verdict,
    calibrate,
    correct_means,
    evaluate_answers,
    items_of,
    position_swap,
)
from rankgauge.errors import InputError
from rankgauge.stats import clustered_rate, prediction_powered_mean

S, C, N = "supported", "contradicted", "not stated"
RELATION = "answer-context"


def claims_of(record):
    """Return three claims per answer; every second one is long."""
    return ClaimSet(
        tuple(Claim(f"{part} {'and so on ' * (n % 2)}") for n, part in enumerate(record.answer.split(". ")))
    )


def answered(questions=60, system="a", contexts=1):
    return AnswerSet(
        system,
        tuple(
            AnswerRecord(
                f"q{n}",
                "What?",
                ". ".join(f"{system} {n} {part}" for part in "xyz"),
                tuple(Context(f"d{c}", f"Text {n} {c}{'.' * (n % 4)}") for c in range(contexts)),
            )
            for n in range(questions)
        ),
        claims=claims_of,
    )


def items(*sets):
    return [
        item
        for one in sets
        for record in one
        for item in items_of(record, claims_of(record))
        if item.relation == RELATION
    ]


def verdicts(some, label, judge="m", prompt="v1", replicate=0):
    """Return a verdict on each item: a label, or a function of item and number."""
    return [
        Verdict(item.key, label(item, n) if callable(label) else label, judge, prompt, replicate=replicate)
        for n, item in enumerate(some)
    ]


def judged(sens=0.9, spec=0.8, *, questions=60, seed=1, truth=0.6):
    """Return answers with human labels, and labels of a judge with these error rates."""
    rng = random.Random(seed)
    answers = answered(questions)
    some = items(answers)
    human = verdicts(some, lambda *_: S if rng.random() < truth else N, "ann", "")
    true = {each.key: each.label for each in human}

    def label(item, _):
        if true[item.key] == S:
            return S if rng.random() < sens else N
        return N if rng.random() < spec else S

    return answers, verdicts(some, label), human


def test_rates_and_base_rate_are_those_of_counting():
    answers, judge, human = judged()
    (found,) = calibrate(answers, judge, human, draws=200).relations
    pairs = [(one.label, other.label) for one, other in zip(judge, human, strict=True)]
    positive = [one for one, other in pairs if other == S]
    negative = [one for one, other in pairs if other != S]
    assert (found.relation, found.judge, found.prompt) == (RELATION, "m", "v1")
    assert (found.labels, found.questions, found.unjudged) == (180, 60, 0)
    assert found.sensitivity.value == pytest.approx(positive.count(S) / len(positive))
    assert found.specificity.value == pytest.approx(negative.count(N) / len(negative))
    assert found.sensitivity.low < found.sensitivity.value < found.sensitivity.high
    assert found.agreement.value == pytest.approx(sum(a == b for a, b in pairs) / 180)
    assert found.base_rate == max(len(positive), len(negative)) / 180
    assert found.confusion[S] == {S: positive.count(S), C: 0, N: positive.count(N)}
    assert found.confusion[N][S] == negative.count(S)
    assert not found.flips.defined
    assert not found.people.defined
    gain = found.sensitivity.value + found.specificity.value - 1
    assert found.gain.value == pytest.approx(gain)
    assert found.state == "not usable"
    assert "shrinks differences" not in found.reason
    assert f"sensitivity + specificity - 1 is {gain:.3f} [0.4" in found.reason


def test_a_judge_may_be_usable_for_items_but_not_for_claims_with_many_contexts():
    """With five contexts, a specificity of 0.9 is 0.9^5 = 0.59 for a claim that none supports."""
    answers = answered(100, contexts=5)
    some = items(answers)
    rng = random.Random(4)
    human = verdicts(some, lambda item, _: S if item.column == 0 and item.row else N, "ann")
    wrong = {each.key: N if each.label == S else S for each in human}
    true = {each.key: each.label for each in human}

    def label(item, _):
        right = rng.random() < (0.95 if true[item.key] == S else 0.9)
        return true[item.key] if right else wrong[item.key]

    judge = verdicts(some, label)
    found = calibrate(answers, judge, human, draws=50)
    assert found.relations[0].state == "usable"
    errors = {each.measure: each.errors for each in found.measures}["Faithfulness"]
    assert errors.count == 300
    assert 1 - errors.intercept == pytest.approx(0.59, abs=0.1)
    stated = evaluate_answers(answers, judge, "Faithfulness", calibration=found).judge["measures"]["Faithfulness"]
    assert stated["state"] == "not usable"
    assert "by 300 labels for Faithfulness, the judge shrinks differences to 0." in (stated["reason"])


def test_the_majority_of_people_counts_and_items_without_one_are_left_out():
    answers = answered(20)
    some = items(answers)
    people = [
        *verdicts(some, S, "ann"),
        *verdicts(some, lambda _, n: S if n % 2 else N, "bob"),
        *verdicts(some[:20], N, "cem"),
    ]
    judge = verdicts(some, S)
    (found,) = calibrate(answers, judge, people, draws=50).relations
    # Items 0 to 19: even ones have N twice, odd ones S twice; later even ones are tied.
    assert found.labels == 20 + 20
    assert found.confusion[N][S] == 10
    assert found.people.defined
    assert found.reason  # the judge always gives the same label


def test_replicates_flip_and_their_majority_counts():
    answers = answered(20)
    some = items(answers)
    human = verdicts(some, lambda _, n: S if n % 3 else N, "ann")
    judge = [
        verdict
        for replicate in range(3)
        for verdict in verdicts(
            some, lambda _, n, r=replicate: (S if n % 3 else N) if r or n % 2 else C, replicate=replicate
        )
    ]
    (found,) = calibrate(answers, judge, human, draws=50).relations
    assert found.agreement.value == 1
    # For every second item, one of three replicates differs: 2 of 3 pairs.
    assert found.flips.value == pytest.approx(1 / 3)


def lenient(condition, seed=3):
    """Return a judge that labels "not stated" as "supported" where a condition holds."""
    rng = random.Random(seed)

    def label(item, _):
        return S if condition(item) and rng.random() < 0.6 else N

    return label


@pytest.mark.parametrize(
    ("group", "condition"),
    [
        ("longer claims", lambda item: "so on" in item.subject),
        ("the first context", lambda item: item.column == 0),
        ("the last context", lambda item: item.column == 2),
        ("answers of b", lambda item: item.subject.startswith("b")),
    ],
)
def test_only_the_seeded_bias_is_found(group, condition):
    sets = answered(40, "a", 3), answered(40, "b", 3)
    some = items(*sets)
    human = verdicts(some, lambda _, n: S if n % 7 == 0 else N, "ann")
    (found,) = calibrate(sets, verdicts(some, lenient(condition)), human, draws=50).relations
    verdict = {bias.group: bias.verdict for bias in found.biases}
    assert verdict[group] == "more lenient"
    assert verdict["longer contexts"] == "cannot tell"
    assert {"longer claims", "the first context", "answers of a"} <= set(verdict)


def test_equal_verdicts_have_no_bias():
    sets = answered(40, "a", 3), answered(40, "b", 3)
    some = items(*sets)
    human = verdicts(some, lambda _, n: S if n % 7 == 0 else N, "ann")
    judge = verdicts(some, lambda _, n: S if n % 7 == 0 else N)
    same = calibrate(sets, judge, human, draws=50).relations[0]
    assert {bias.verdict for bias in same.biases} == {"cannot tell"}


def test_a_calibration_is_read_as_it_was_written(tmp_path):
    answers, judge, human = judged()
    made = calibrate(answers, judge, human, draws=50)
    made.write(tmp_path / "c.json")
    read = Calibration.read(tmp_path / "c.json")
    assert read.to_json() == made.to_json()
    assert str(read) == str(made)
    assert math.isnan(read.relations[0].flips.value)
    jsonschema.validate(made.to_dict(), strict("calibration-2"))
    # Later versions may add keys.
    data = json.loads(made.to_json())
    for each in data["relations"]:
        each["new"] = each["kappa"]["new"] = each["gain"]["new"] = 1
    assert Calibration.from_json(json.dumps({**data, "new": 1})).to_json() == made.to_json()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "x"}', '{"schema": null'])
def test_an_invalid_calibration_is_refused(tmp_path, text):
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"c\.json"):
        Calibration.read(path)


def test_a_calibration_is_bound_to_judge_prompt_and_relation():
    answers, judge, human = judged()
    made = calibrate(answers, judge, human, draws=50)
    assert not made.uncalibrated(RELATION, {("m", "v1")})
    assert "verdicts are by m (v2)" in made.uncalibrated(RELATION, {("m", "v2")})
    assert "verdicts are by n (v1)" in made.uncalibrated(RELATION, {("n", "v1"), ("m", "v1")})
    assert "no labels of people" in made.uncalibrated("abstention", {("m", "v1")})


def test_a_judge_that_may_guess_is_not_usable():
    answers, judge, human = judged(0.5, 0.5)
    (found,) = calibrate(answers, judge, human, draws=50).relations
    assert found.state == "not usable"
    assert "agrees with people less often (0.51) than the constant answer 'supported' (0.64)" in (found.reason)
    answers, judge, human = judged(questions=2)
    (found,) = calibrate(answers, judge, human, draws=50).relations
    assert found.reason


def test_several_judges_or_no_common_item_are_refused():
    answers, judge, human = judged()
    with pytest.raises(InputError, match="2 judges"):
        calibrate(answers, [*judge, *verdicts(items(answers), S, "other")], human)
    with pytest.raises(InputError, match="no item"):
        calibrate(answers, judge, [Verdict("nothing", S, "ann")])


def test_only_the_latest_prompt_counts():
    answers, judge, human = judged()
    old = verdicts(items(answers), N, prompt="v0")
    both = calibrate(answers, [*old, *judge], human, draws=50)
    alone = calibrate(answers, judge, human, draws=50)
    assert both.to_json() == alone.to_json()


def test_inconsistent_choices_are_ties():
    forward = {"ab": "first", "cd": "first", "ef": "tie", "gh": "second"}
    swapped = {"ab": "second", "cd": "first", "ef": "tie", "gh": "tie"}
    found = position_swap(forward, swapped)
    assert found.choices == {"ab": "first", "cd": "tie", "ef": "tie", "gh": "tie"}
    assert found.consistent.value == 0.5
    assert found.first.value == pytest.approx(3 / 5)
    for wrong in ({"ab": "first"}, dict.fromkeys(forward, "A")):
        with pytest.raises(InputError):
            position_swap(forward, wrong)
    with pytest.raises(InputError):
        position_swap({}, {})


def test_corrected_means_remove_the_error_of_the_judge():
    answers, judge, human = judged(0.98, 0.8, questions=200, truth=0.7)
    sample = {item.key for item in items(answers)[:240]}  # of 80 questions
    some = [each for each in human if each.key in sample]
    (found,) = correct_means(answers, judge, some, "Faithfulness").means
    truth = sum(each.label == S for each in human) / len(human)
    assert found.judged.low > truth  # the naive interval does not contain it
    assert found.method == "prediction-powered"
    assert found.best.low <= truth <= found.best.high
    assert found.rogan_gladen.low <= truth <= found.rogan_gladen.high
    assert found.best.width < found.people.width
    assert found.best.count == 80


def test_labels_on_other_answers_correct_by_rogan_and_gladen():
    old, judge, human = judged(0.98, 0.8, questions=150, truth=0.5, seed=5)
    new, more, hidden = judged(0.98, 0.8, questions=200, truth=0.5, seed=6)
    # Other texts, so that no labels are shared.
    renamed = tuple(AnswerRecord(r.id, r.question, r.answer.replace("a ", "n "), r.contexts) for r in new)
    new = replace(new, system="new", records=renamed)
    some = items(new)
    more = verdicts(some, lambda _, n: more[n].label)
    means = correct_means([old, new], [*judge, *more], human, "Faithfulness")
    found = means.means[1]
    truth = sum(each.label == S for each in hidden) / len(hidden)
    assert found.method == "Rogan-Gladen"
    assert "fewer than 2 questions" in found.prediction_powered.reason
    assert found.best.low <= truth <= found.best.high
    assert found.judged.low > truth
    assert "new Faithfulness" in means.summary()


def test_a_measure_of_several_relations_has_no_rogan_gladen():
    answers, judge, human = judged()
    means = correct_means(answers, judge, human, ["AnswerCorrectness"]).means
    assert "not a share" in means[0].rogan_gladen.reason
    assert not means[0].method


# ---- conversations


def in_conversations(answers, turns):
    """Return the same answers, each with the preceding questions of its conversation as history."""
    records = [replace(record, question=f"What about {record.id}?") for record in answers.records]
    found = []
    for number, record in enumerate(records):
        start = number - number % turns
        before = [("user", each.question) for each in records[start:number]]
        told = (("system", "Be kind."), *before) if before else ()
        found.append(replace(record, history=told))
    return replace(answers, records=tuple(found))


def test_questions_of_a_conversation_are_one_cluster():
    answers, judge, human = judged(questions=24)
    known = calibrate(answers, judge, human).relations[0]
    talks = in_conversations(answers, 3)
    found = calibrate(talks, judge, human).relations[0]
    assert (found.labels, found.questions) == (known.labels, known.questions) == (72, 24)
    label = {each.key: each.label for each in judge}
    rows = [
        (label[item.key] == S, int(item.record[1:]) // 3)
        for item, truth in zip(items(talks), human, strict=True)
        if truth.label == S
    ]
    assert found.sensitivity == clustered_rate(*zip(*rows, strict=True))
    means = correct_means(talks, judge, human, "Faithfulness")
    said, true = ([] for _ in range(2))
    for number in range(24):
        for verdicts_, values in ((judge, said), (human, true)):
            three = verdicts_[3 * number : 3 * number + 3]
            values.append(sum(each.label == S for each in three) / 3)
    clusters = [number // 3 for number in range(24)]
    assert means.means[0].prediction_powered == prediction_powered_mean(said, true, clusters)


@pytest.mark.slow
def test_intervals_cover_where_the_verdicts_of_a_conversation_depend_on_each_other():
    """The judge is right for all answers of 80% of conversations, and wrong for all others."""
    covered = {3: 0, 1: 0}
    for seed in range(100):
        rng = random.Random(seed)
        right = [rng.random() < 0.8 for _ in range(40)]
        answers = answered(120)
        some = items(answers)
        human = verdicts(some, S, "ann", "")
        judge = verdicts(some, lambda item, _, r=right: S if r[int(item.record[1:]) // 3] else N)
        for turns in covered:
            given = in_conversations(answers, turns)
            found = calibrate(given, judge, human, draws=1).relations[0]
            covered[turns] += found.sensitivity.low <= 0.8 <= found.sensitivity.high
    assert 0.9 <= covered[3] / 100 <= 0.99
    assert covered[1] / 100 < 0.85

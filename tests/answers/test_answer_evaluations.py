"""Evaluations of answers are compared, gated, saved, and reported like those of runs."""

import json
import math
import random
from dataclasses import replace

import jsonschema
import pytest
from hypothesis import given, strategies as st
from schemas import strict

import rankgauge
from rankgauge import Baseline, Evaluation, InputError, compare, gate, html_report
from rankgauge.answers import (
    AnswerEvaluation,
    AnswerRecord,
    AnswerSet,
    Citation,
    Context,
    Verdict,
    diagnose_answers,
    evaluate_answers,
    items_of,
    sentence_claims,
)
from rankgauge.answers.verdicts import LABELS
from rankgauge.comparison import trend_of
from rankgauge.core.text import lower_first
from rankgauge.reports import Options, render

RULES = {"measures": {"Faithfulness": {"margin": 0.02}}}
EVIL = '</script><script>alert("1")</script><img src=x onerror=alert(1)>\'&\u202e\x01'


def answers(system="a", count=30, *, text="It is {n} m high. It is old.", **versions):
    records = tuple(
        AnswerRecord(
            f"q{n}",
            f"How high is {n}?",
            text.format(n=n),
            (Context("d1", f"{n} m high"), Context("d2", "new")),
            f"{n} m high.",
            gold=("d1",),
            answerable=True,
            group="odd" if n % 2 else "even",
        )
        for n in range(count)
    )
    return AnswerSet(system, records, versions)


def verdicts(given, seed=0, *, missing=0.0):
    """Return random verdicts; some are missing."""
    draw = random.Random(seed)
    return [
        Verdict(item.key, draw.choice(LABELS[item.relation]), "ann", quote="5 m", reason="so")
        for item in given.items()
        if draw.random() >= missing
    ]


def evaluated(system="a", seed=0, *, judge="ann", missing=0.0, **versions):
    given = answers(system, **versions)
    return evaluate_answers(
        given, verdicts(given, seed, missing=missing), judge={"name": judge, "prompt": "1", "person": True}
    )


# ---- settings: what changed between two evaluations


def test_one_changed_setting_is_named_as_the_only_change():
    found = compare([evaluated("a", prompt="v1", model="m"), evaluated("b", 1, prompt="v2", model="m")])
    assert "from a to b, one setting changed: prompt (v1 → v2)" in found.sentences
    assert not any(finding.code == "C112" for finding in found.findings)


def test_two_changes_at_once_are_pointed_out_by_compare_gate_and_history(tmp_path):
    old = evaluated("a", prompt="v1", model="m1", retrieval="bm25")
    new = evaluated("b", 1, prompt="v2", model="m2", retrieval="bm25")
    message = "2 things changed: prompt (v1 → v2), model (m1 → m2): the difference cannot be attributed"
    assert any(message in text for text in compare([old, new]).warnings)
    path = tmp_path / "baseline.json"
    Baseline.from_evaluation(old).write(path)
    assert Baseline.read(path).settings["prompt"] == "v1"
    assert any(message in text for text in gate(new, rules=RULES, baseline=path).warnings)
    with rankgauge.History(tmp_path / "h.db") as history:
        history.add(old)
        history.add(new)
        assert any(message in text for text in compare(history.comparable([1, 2])).warnings)
        assert history.load(2).settings == new.settings
        assert trend_of(history, "Faithfulness").means[0] == old.mean()["Faithfulness"]


def test_another_judge_is_not_comparable_with_a_baseline_and_a_doubt_of_a_comparison():
    old, new = evaluated("a"), evaluated("b", 1, judge="model")
    result = gate(new, rules=RULES, baseline=Baseline.from_evaluation(old))
    assert result.verdict == "NOT COMPARABLE"
    assert "model 1 judged, but ann 1 judged the baseline" in str(result)
    assert any("the difference may come from it" in text for text in compare([old, new]).warnings)


def test_a_judge_that_is_not_calibrated_has_numbers_and_no_verdict():
    trusted = evaluated("a")
    given = answers("b")
    doubted = evaluate_answers(given, verdicts(given, 1), judge={"name": "rules", "prompt": "1"})
    found = compare([trusted, doubted], tested=["Faithfulness", "TokenF1"])
    each = found.difference("b")
    with_people = compare([trusted, evaluated("b", 1)]).difference("b", "Faithfulness")
    assert (each.difference, each.low) == (with_people.difference, with_people.low)
    assert (each.verdict, found.difference("b", "TokenF1").verdict) == ("withheld", "identical")
    assert found.sentences[0].startswith(
        "b cannot be compared: the judge of Faithfulness is not calibrated: judged by rules"
    )
    assert not any("highest" in text for text in found.sentences)
    assert "rankgauge answers calibrate" in render(found, "html")
    both = compare([doubted, replace(doubted, run_name="c")])
    assert both.sentences[0].startswith("b and c cannot be compared: the judge of")
    by_words = compare([trusted, doubted], tested="TokenF1")
    assert not by_words.withheld
    assert compare([trusted, evaluated("b", 1)]).difference("b").verdict != "withheld"


def test_equal_settings_and_settings_of_runs_are_not_mentioned():
    same = compare([evaluated("a", prompt="v1"), evaluated("b", 1, prompt="v1")])
    assert not any("changed" in text for text in (*same.sentences, *same.warnings))
    runs = [
        Evaluation.from_values(name, ["q1", "q2", "q3"], {"RR": [1, 0.5, n]}, settings={"k1": n})
        for n, name in enumerate("ab")
    ]
    assert not any("k1" in text for text in (*compare(runs).sentences, *compare(runs).warnings))


def test_the_baseline_of_a_run_has_no_settings():
    ev = Evaluation.from_values("a", ["q1", "q2"], {"RR": [1, 0.5]}, settings={"k1": 1})
    assert "settings" not in json.loads(Baseline.from_evaluation(ev).to_json())


# ---- gates


def test_a_gate_passes_the_same_answers_and_fails_worse_ones():
    given = answers()
    good = {
        item.key: "supported"
        for record in given
        for item in items_of(record, sentence_claims(record))
        if item.relation == "answer-context"
    }
    ann = {"name": "ann", "person": True}
    old = evaluate_answers(given, good, judge=ann)
    bad = evaluate_answers(given, dict.fromkeys(good, "not stated"), judge=ann)
    baseline = Baseline.from_evaluation(old)
    wide = {"measures": {"Faithfulness": {"margin": 0.1}}}
    assert gate(old, rules=wide, baseline=baseline).verdict == "PASS"
    assert gate(bad, rules=RULES, baseline=baseline).verdict == "FAIL"


def test_a_gate_refuses_an_evaluation_of_which_many_questions_are_not_judged():
    given = answers(text="It is {n} m high.")
    some = [v for record in list(given)[:20] for v in verdicts(AnswerSet("a", (record,)))]
    ev = evaluate_answers(given, some, judge={"name": "ann", "prompt": "1", "person": True})
    result = gate(ev, rules=RULES, baseline=Baseline.from_evaluation(evaluated("a")))
    assert result.verdict == "NOT COMPARABLE"
    assert "10 of 30 questions have no verdict for Faithfulness" in str(result)


# ---- files


def test_an_evaluation_of_answers_is_the_same_after_json():
    ev = evaluated(missing=0.2, prompt="v1")
    again = AnswerEvaluation.from_json(ev.to_json())
    assert again == ev
    assert again.bounds() == ev.bounds()
    assert again.stamp == "ann, a person"
    assert Evaluation.from_json(ev.to_json()) == ev


@pytest.mark.parametrize("name", ["evaluation-1", "answer-diagnosis-1", "baseline-2"])
def test_the_json_of_answers_is_valid_by_its_schema(name):
    given = answers(prompt="v1")
    found = diagnose_answers(evaluate_answers(given, verdicts(given, missing=0.2), judge={"name": "ann"}))
    text = {
        "evaluation-1": found.answers.to_json,
        "answer-diagnosis-1": found.to_json,
        "baseline-2": Baseline.from_evaluation(found.answers).to_json,
    }[name]()
    jsonschema.validate(json.loads(text), strict(name))


@pytest.mark.parametrize("gold", [("d1",), ()])
def test_a_diagnosis_of_answers_contains_valid_evaluations(gold):
    given = AnswerSet("a", tuple(replace(each, gold=gold) for each in answers(prompt="v1")))
    data = diagnose_answers(evaluate_answers(given, verdicts(given, missing=0.2), judge={"name": "ann"})).to_dict()
    jsonschema.validate(data, strict("answer-diagnosis-1"))
    assert bool(data["qualities"]) == bool(gold) == (data["retrieval"] is not None)
    for each in filter(None, (data["answers"], data["retrieval"])):
        jsonschema.validate(each, strict("evaluation-1"))


def test_json_of_answers_that_lacks_scores_is_refused():
    data = json.loads(evaluated().to_json())
    for broken in ({"scores": data["scores"][1:]}, {"scores": [[]]}, {"judge": 3}):
        with pytest.raises(InputError, match="not an evaluation in JSON"):
            AnswerEvaluation.from_json(json.dumps(data | broken))


# ---- reports


def test_the_report_of_a_diagnosis_has_the_stamp_the_stages_the_causes_and_the_worst_answers():
    given = answers()
    page = html_report(diagnose_answers(evaluate_answers(given, verdicts(given), judge={"name": "ann"})), plots=False)
    for part in (
        "judge: ann, not calibrated",
        "Measures of both stages",
        "AnswerCorrectness",
        "a: first failed step of 30 questions",
        "a: groups of questions",
        "Claims and verdicts",
        "How high is 1?",
        "5 m",
    ):
        assert part in page, part


def test_everything_in_the_report_of_answers_is_escaped():
    record = AnswerRecord(
        EVIL,
        f"Q {EVIL}?",
        f"A {EVIL}. And so it is.",
        (Context(EVIL, f"C {EVIL}"),),
        f"R {EVIL}.",
        (Citation(EVIL, EVIL),),
        (("user", EVIL),),
        gold=("x",),
        group=EVIL,
    )
    given = AnswerSet(EVIL, (record, answers(count=1).records[0]))
    found = [
        Verdict(item.key, "contradicted", EVIL, EVIL, EVIL, EVIL)
        for one in given
        for item in items_of(one, sentence_claims(one))
        if "contradicted" in LABELS[item.relation]
    ]
    made = diagnose_answers(evaluate_answers(given, found, judge={"name": EVIL}))
    page = html_report(made, plots=False)
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\x01" not in page
    for format in ("table", "markdown", "html"):
        assert "\x01" not in render(made, format, Options(full=True))


def test_a_report_shows_the_answers_of_several_systems_side_by_side():
    pair = [evaluated("one", prompt="v1"), evaluated("two", 1, prompt="v2")]
    page = html_report(pair, plots=False)
    assert "prompt (v1 → v2)" in page
    assert "judge: ann, a person" in page
    text = render(pair)
    assert "two and one by AnswerCorrectness" in text
    assert "Faithfulness" in text


def test_the_terminal_shows_one_screen_with_the_conclusion_first_and_the_next_step_last():
    given, ann = answers(), {"name": "ann", "person": True}
    found = diagnose_answers(evaluate_answers(given, verdicts(given, missing=0.1), judge=ann))
    lines = str(found).splitlines()
    assert len(lines) <= 31
    assert max(map(len, lines)) <= 80
    assert lines[0] == f"a: {lower_first(found.summary())}"
    assert any(line.startswith("a: next step: ") for line in lines[-5:])
    assert len(render(found, "table", Options(full=True)).splitlines()) > len(lines)


def test_html_report_refuses_what_is_neither_runs_nor_evaluations():
    with pytest.raises(InputError, match="evaluations"):
        html_report([evaluated()], measures="Faithfulness")
    with pytest.raises(InputError, match="without runs"):
        html_report(rankgauge.answers.diagnose_answers(rankgauge.answers.evaluate_answers(answers(), {})).blame)


# ---- criteria, conversation history, groups


def test_a_criterion_is_a_measure_with_bounds():
    given = replace(answers(count=4), criteria={"polite": "The answer is polite."})
    found = verdicts(given)
    keys = [item.key for item in given.items() if item.relation == "criterion"]
    labels = {v.key: v.label for v in found} | dict(zip(keys, ["met", "met", "not met"], strict=False))
    del labels[keys[3]]
    ev = evaluate_answers(given, labels, "Faithfulness")
    assert list(ev.mean()) == ["Faithfulness", "Criterion(name=polite)"]
    assert ev.mean()["Criterion(name=polite)"] == pytest.approx(2 / 3)
    assert ev.bounds()["Criterion(name=polite)"] == (0.5, 0.75)
    assert ev.missing()["Criterion(name=polite)"] == 1


def test_a_criterion_without_wording_and_one_with_a_strange_name_are_refused():
    with pytest.raises(InputError, match="has no wording"):
        evaluate_answers(answers(), {}, "Criterion(name=polite)")
    with pytest.raises(rankgauge.UnknownName):
        evaluate_answers(replace(answers(), criteria={"very polite!": "It is."}), {})


def test_means_of_groups_are_those_of_their_questions():
    given = answers(count=6)
    ev = evaluate_answers(given, verdicts(given), "Faithfulness")
    odd = [ev.value(f"q{n}", "Faithfulness") for n in (1, 3, 5)]
    assert ev.by_group()["odd"]["Faithfulness"] == pytest.approx(sum(odd) / 3)


# ---- no input ends with a traceback

TEXTS = st.none() | st.text(max_size=40)
RECORDS = st.builds(
    AnswerRecord,
    id=st.text(max_size=5),
    question=st.text(max_size=30),
    answer=TEXTS,
    contexts=st.lists(st.builds(Context, st.text(max_size=3), st.text(max_size=40)), max_size=3).map(tuple),
    reference=TEXTS,
    citations=st.lists(st.builds(Citation, st.text(max_size=3), st.text(max_size=9)), max_size=2).map(tuple),
    answerable=st.sampled_from([None, True, False]),
    gold=st.lists(st.text(min_size=1, max_size=3), max_size=2).map(tuple),
    ranking=st.lists(st.text(min_size=1, max_size=3), max_size=3).map(tuple),
)


@given(st.lists(RECORDS, max_size=3, unique_by=lambda one: one.id), st.integers(0, 99))
def test_an_empty_list_of_answers_is_no_traceback(records, seed):
    found = AnswerSet("s", tuple(records))
    try:
        ev = evaluate_answers(found, verdicts(found, seed, missing=0.3))
        made = diagnose_answers(evaluate_answers(found, verdicts(found, seed, missing=0.3)))
    except rankgauge.RankgaugeError:
        return
    assert str(made)
    assert AnswerEvaluation.from_json(ev.to_json()) == ev
    for row in ev.scores:
        for value, low, high, *_, reason in row:
            assert reason or low <= high
            assert reason or math.isnan(value) or low <= value <= high


def test_a_page_about_answers_counts_questions():
    page = html_report(evaluated())
    assert "30 questions</span><span>1 system" in page
    assert "over 30 questions" in page

"""Reports on answers: tied stages and causes, intervals, and missing verdicts in every format."""

import json
import math

import pytest
from scipy.stats import binomtest

from rankgauge import History, evaluate
from rankgauge.answers import (
    AnswerRecord,
    AnswerSet,
    Context,
    diagnose_answers,
    evaluate_answers,
    items_of,
    sentence_claims,
)
from rankgauge.answers.diagnosis import CAUSES
from rankgauge.answers.evaluation import mean_intervals
from rankgauge.comparison import trend_of
from rankgauge.evaluation.groups import group_means
from rankgauge.rendering.plots import plot
from rankgauge.reports import Options, html_report, render

TEXT = "The tower is 5 m high."


def labels_of(answers, **changed):
    """Return labels without a fault; `changed` has labels by relation and question."""
    good = {"answer-question": "relevant", "context-question": "relevant", "abstention": "answers"}
    return {
        item.key: changed.get(item.relation.replace("-", "_"), {}).get(each.id, good.get(item.relation, "supported"))
        for each in answers
        for item in items_of(each, sentence_claims(each))
    }


def tied():
    """Return a diagnosis of two answers: one without a context, one that is incomplete."""
    answers = AnswerSet(
        "a",
        tuple(
            AnswerRecord(
                name,
                f"How high is {name}?",
                f"{name}: {TEXT}",
                (Context("1", f"{name}: {TEXT}"),),
                f"Reference {name}: {TEXT}",
                answerable=True,
            )
            for name in ("q1", "q2")
        ),
    )
    none = {"q1": "not stated"}
    labels = labels_of(
        answers, reference_context=none, reference_answer={"q2": "not stated"}, answer_reference={"q2": "not stated"}
    )
    return diagnose_answers(evaluate_answers(answers, labels, ["AnswerCorrectness", "Faithfulness"]))


def test_every_format_names_tied_stages_and_the_next_step_of_each():
    found = tied()
    sentence = "etrieval is at fault in 1 of 2 answers, generation in 1"
    steps = "; ".join(
        f"{CAUSES[cause][1]} ({cause}: 1 answer)" for cause in ("not retrieved", "in the context but not used")
    )
    steps = steps[0].upper() + steps[1:]
    shown = " ".join(render(found, "table").split())
    assert sentence in shown
    assert f"a: next step: i{steps[1:]}" in shown
    page = html_report(found)
    assert sentence in page
    assert steps in page
    assert json.loads(render(found, "json"))["blame"]["limiting"] == ["retrieval", "generation"]


def test_the_mean_excludes_missing_verdicts_and_the_bounds_include_them():
    claims = {"q1": "ss", "q2": "sn", "q3": "s?", "q4": "??", "q5": "n?"}
    contexts = (Context("1", TEXT),)
    answers = AnswerSet(
        "a",
        tuple(
            AnswerRecord(name, "How high?", " ".join(f"{name} has {n}." for n in range(2)), contexts) for name in claims
        ),
    )
    words = {"s": "supported", "n": "not stated"}
    labels = {
        item.key: words[claims[each.id][item.row]]
        for each in answers
        for item in items_of(each, sentence_claims(each))
        if item.relation == "answer-context" and claims[each.id][item.row] in words
    }
    found = evaluate_answers(answers, labels, "Faithfulness")
    known = [given.count("s") / 2 for given in claims.values() if "?" not in given]
    lowest = [given.count("s") / 2 for given in claims.values()]
    highest = [(given.count("s") + given.count("?")) / 2 for given in claims.values()]
    mean, low, high = (sum(some) / len(some) for some in (known, lowest, highest))
    assert (mean, low, high) == (0.75, 0.4, 0.8)
    assert found.mean() == {"Faithfulness": mean}
    assert found.bounds() == {"Faithfulness": (low, high)}
    data = json.loads(found.to_json())
    assert data["bounds"] == {"Faithfulness": [low, high]}
    sentence = (
        "verdicts are missing: Faithfulness 4 (3 questions); means exclude these "
        "questions; bounds include them, with all missing verdicts negative and with all positive"
    )
    assert sentence in data["findings"][-1]["message"]
    shown = " ".join(render(found, "table", Options(full=True)).split())
    assert sentence in shown.replace("• ", "")
    assert "if all were judged questions" in shown
    assert "0.400 to 0.800 2" in shown


def test_one_mean_has_one_interval_over_the_questions_with_a_value(tmp_path):
    """Five answers of 30 make no claim; 2 of the other 25 are not faithful."""
    names = [f"q{number}" for number in range(30)]
    answers = AnswerSet(
        "a",
        tuple(
            AnswerRecord(
                name,
                "How high?",
                f"{name} is high." if place < 25 else "I don't know.",
                (Context("1", TEXT),),
                group="one",
            )
            for place, name in enumerate(names)
        ),
    )
    labels = labels_of(answers, answer_context=dict.fromkeys(names[:2], "not stated"))
    experts = {"name": "experts", "person": True}
    found = evaluate_answers(answers, labels, "Faithfulness", judge=experts)
    low, high = mean_intervals(found)["Faithfulness"]
    # Few zeros: the lower bound of Clopper and Pearson of 23 of 25.
    assert low == pytest.approx(binomtest(23, 25).proportion_ci(0.95, "exact").low, abs=1e-3)
    text = f"{low:.3f} to {high:.3f}"
    assert f"0.920 {text} 25" in " ".join(render(found, "table").split())
    assert json.loads(found.to_json())["intervals"] == {"Faithfulness": [low, high]}
    diagnosis = diagnose_answers(evaluate_answers(answers, labels, "Faithfulness", judge=experts))
    assert text in render(diagnosis, "table")
    page = html_report(found)
    assert f"Faithfulness is 0.9200 over 25 questions (95% CI {text})" in page
    (bars,) = plot(found, "means").panels[0].series
    assert (bars.low, bars.high) == ((low,), (high,))
    (group, *_) = group_means(found).means
    assert (group.queries, group.low, group.high) == (25, low, high)
    with History(tmp_path / "history.db") as history:
        history.add(found)
        (point,) = trend_of(history, "Faithfulness").points
    assert (point.low, point.high) == (low, high)


def test_rankings_have_one_interval_in_reports_and_diagnoses_of_answers():
    answers = AnswerSet(
        "a",
        tuple(
            AnswerRecord(
                f"q{n}", "How high?", "High.", (Context("a", TEXT), Context("b", TEXT)), gold=("ab"[n % 3 == 0],)
            )
            for n in range(9)
        ),
    )
    diagnosis = diagnose_answers(evaluate_answers(answers, {}))
    qrels = {each.id: dict.fromkeys(each.gold, 1) for each in answers}
    made = evaluate(qrels, {each.id: ["a", "b"] for each in answers}, "RR")
    (bars,) = plot(made, "means").panels[0].series
    rows = {row[1]: row for row in diagnosis.data_table().rows}
    assert rows["RR"][3:5] == (bars.low[0], bars.high[0])
    assert not math.isnan(bars.low[0])

"""Agreement of judges: compared judgments, guessing has agreement 0, and undefined values."""

import json
import math

import numpy as np
import pytest

from rankgauge.errors import InputError
from rankgauge.judging import Choice, GoldTask, Judge, Presentation, judgments_of, measure_agreement
from rankgauge.stats import cohen_kappa, krippendorff_alpha

JUDGES = {
    name: Judge(name, name.title(), kind="model" if name == "gpt" else "person") for name in ("ann", "bob", "cy", "gpt")
}


def judged(*rows):
    """Judgments from (judge, documents, a document, none, cannot tell or a grade, more fields)."""
    presentations, choices = [], []
    for number, (judge, documents, said, *more) in enumerate(rows, 1):
        given = {"question": "q", "mode": "graded" if isinstance(said, int) else "choice"}
        for each in more:
            given |= each
        reason = given.pop("reason", "")
        name = str(number)
        presentations.append(Presentation(name, documents=tuple(documents), judge=judge, sequence=number, **given))
        if isinstance(said, int):
            choice = Choice(name, name, judge, "graded", grades=(said,))
        elif len(said) > 1:
            choice = Choice(name, name, judge, said)
        else:
            choice = Choice(name, name, judge, "chosen", (said,), reason=reason)
        choices.append(choice)
    return judgments_of(presentations, choices, JUDGES)


def measured(*rows, **settings):
    return measure_agreement(judged(*rows), JUDGES, **settings)


def simulate(rng, tasks, none, right, *, judges=("ann", "bob", "cy")):
    """Judges who see the truth with this probability and otherwise guess."""
    rows = []
    for task in range(tasks):
        documents = [f"d{task}{letter}" for letter in "abc"]

        def guess(documents=documents):
            return "none" if rng.random() < none else documents[int(rng.integers(3))]

        truth = guess()
        rows += [
            (judge, rng.permutation(documents).tolist(), truth if rng.random() < right else guess()) for judge in judges
        ]
    return rows


def judged_long(rows):
    """Like `judged`, but with identifiers of several letters."""
    presentations, choices = [], []
    for number, (judge, shown, said) in enumerate(rows):
        name = str(number)
        presentations.append(Presentation(name, "q", tuple(shown), judge))
        chosen = () if said == "none" else (said,)
        choices.append(Choice(name, name, judge, "chosen" if chosen else "none", chosen))
    return judgments_of(presentations, choices, JUDGES)


def test_two_judges_agree_on_documents_and_not_on_positions():
    found = measured(
        ("ann", "abc", "a"),
        ("bob", "cba", "a"),
        ("ann", "de", "none"),
        ("bob", "ed", "none"),
        ("ann", "fg", "f"),
        ("bob", "gf", "g"),
    )
    assert found.estimate("percent agreement").value == pytest.approx(2 / 3)
    assert found.tasks == 3
    assert found.people == 2
    (one,) = found.disagreements
    assert one.documents == ("f", "g")
    assert [each.choice.documents for each in one.judgments] == [("f",), ("g",)]


def test_alpha_is_of_canonical_places():
    """Any code that names the documents of a task by place gives a similar table."""
    rows = [("a", "a"), ("b", "a"), ("none", "none"), ("none", "a"), ("b", "b"), ("a", "a")]
    named = [
        (judge, [f"{d}{n}" for d in "ab"], said if said == "none" else f"{said}{n}")
        for n, pair in enumerate(rows)
        for judge, said in zip(("ann", "bob"), pair, strict=True)
    ]
    found = measure_agreement(judged_long(named), JUDGES)
    alpha = found.estimate()
    assert (alpha.units, alpha.ratings) == (6, 12)
    none = [[int(said == "none") for said in pair] for pair in rows]
    wanted = krippendorff_alpha(none)
    assert repr(found.estimate("alpha, none or any")) == repr(wanted)  # NaN in both
    assert found.estimate("alpha, which document").units == 4


@pytest.mark.parametrize("none", [0.1, 0.5, 0.85])
def test_judges_who_guess_have_an_alpha_of_0(none):
    rng = np.random.default_rng(int(100 * none))
    found = measure_agreement(judged_long(simulate(rng, 1500, none, 0.0)), JUDGES)
    alpha = found.estimate()
    assert abs(alpha.value) < 0.04
    assert alpha.low < 0 < alpha.high
    assert found.estimate("percent agreement").value > 0.25


def test_each_judge_is_compared_with_the_others():
    rng = np.random.default_rng(1)
    rows = simulate(rng, 60, 0.3, 0.9, judges=("ann", "bob"))
    rows += [("cy", shown, shown[0]) for judge, shown, _ in rows if judge == "ann"]
    found = measure_agreement(judged_long(rows), JUDGES)
    ann, cy = (found.estimate("alpha", "judge", name) for name in ("Ann", "Cy"))
    assert ann.value > 0.3 > cy.high
    share = found.estimate("percent agreement", "judge", "Cy")
    same = [sum(said == mine[2] for _, _, said in rows[2 * n : 2 * n + 2]) / 2 for n, mine in enumerate(rows[120:])]
    assert share.value == pytest.approx(sum(same) / 60)


def test_of_two_judges_alpha_of_one_with_the_other_is_alpha():
    """Agreement of a model and one person: the same formula as Krippendorff's for two raters."""
    rng = np.random.default_rng(2)
    rows = simulate(rng, 80, 0.3, 0.7, judges=("ann", "bob"))
    people = measure_agreement(judged_long(rows), JUDGES)
    model = measure_agreement(
        judged_long([("gpt" if judge == "bob" else judge, *more) for judge, *more in rows]), JUDGES
    )
    found = model.estimate("alpha", "model", "Gpt")
    assert found.value == pytest.approx(people.estimate().value)
    assert found.low == pytest.approx(people.estimate().low, abs=0.05)
    # A model does not count as a person.
    assert (model.people, model.tasks, model.disagreements) == (1, 0, ())
    assert model.estimate().reason == "no unit has two ratings"


def test_repeats_are_compared_with_the_first_answer_of_the_same_judge():
    again = {"purpose": "repeat"}
    found = measured(
        ("ann", "ab", "a"),
        ("ann", "cd", "c"),
        ("bob", "cd", "c"),
        ("ann", "ba", "b", again),
        ("ann", "cd", "c", again),
        ("bob", "xy", "x", again),
    )
    same = found.estimate("percent agreement", "repeats")
    assert (same.value, same.units) == (0.5, 2)
    assert found.tasks == 1


def test_hidden_tests_count_the_answers_that_were_accepted():
    hidden = {"purpose": "gold"}
    gold = [GoldTask("q", ("a", "b"), ("a",)), GoldTask("q", ("c", "d"))]
    found = measured(
        ("ann", "ab", "a", hidden),
        ("ann", "dc", "d", hidden),
        ("bob", "cd", "none", hidden),
        ("bob", "ba", "none", hidden),
        ("bob", "xy", "x", hidden),
        ("cy", "ba", "a", hidden),
        gold=gold,
    )
    rows = [r for r in found.rows if r.measure == "accepted answers"]
    assert [(r.name, r.estimate.value, r.estimate.units) for r in rows] == [
        ("Ann", 0.5, 2),
        ("Bob", 0.5, 2),
        ("Cy", 1.0, 1),
    ]
    assert found.tasks == 0


def test_criteria_split_the_tasks_that_they_decided():
    correct, dense = {"reason": "correctness"}, {"reason": "information density"}
    found = measured(
        ("ann", "ab", "a", correct),
        ("bob", "ab", "a"),
        ("ann", "cd", "c", dense),
        ("bob", "cd", "d", dense),
        ("cy", "ef", "e", dense),
    )
    assert found.estimate("percent agreement", "criterion", "correctness").value == 1
    density = found.estimate("percent agreement", "criterion", "information density")
    assert (density.value, density.units) == (0, 1)
    assert [each.documents for each in found.disagreements] == [("c", "d")]


def test_answers_before_an_adjudication_count_and_the_verdict_does_not():
    final = {"purpose": "adjudication"}
    found = measured(
        ("ann", "ab", "a"), ("bob", "ab", "b"), ("cy", "ab", "b", final), ("ann", "cd", "c"), ("bob", "cd", "d")
    )
    assert found.estimate("percent agreement").value == 0
    assert [each.verdict is None for each in found.disagreements] == [True, False]


def test_judgments_without_a_decision_are_missing():
    found = measured(("ann", "ab", "cannot tell"), ("bob", "ab", "b"), ("ann", "cd", "later"))
    assert found.tasks == 0
    assert not found.estimate().defined
    assert "undefined: no unit has two ratings" in found.summary()


def test_grades_have_an_ordinal_alpha_and_a_kappa_of_each_pair():
    ann, bob = [0, 1, 3, 2, 0, 3], [0, 2, 3, 2, 1, 1]
    rows = [
        (judge, letter, grade)
        for judge, grades in (("ann", ann), ("bob", bob))
        for letter, grade in zip("abcdef", grades, strict=True)
    ]
    found = measured(*rows)
    pairs = np.array([ann, bob], dtype=float).T
    assert found.estimate(scale="grades") == krippendorff_alpha(pairs, "ordinal")
    kappa = found.estimate("kappa, quadratic", "pair", "Ann and Bob", "grades")
    assert kappa == cohen_kappa(ann, bob, "quadratic")
    assert {row.scale for row in found.rows} == {"grades"}
    assert found.disagreements[0].documents == ("b",)


def test_a_judge_without_a_record_has_the_identifier_as_name():
    found = measure_agreement(
        judgments_of(
            [Presentation("1", "q", ("a", "b"), "x"), Presentation("2", "q", ("a", "b"), "y")],
            [Choice("1", "1", "x", "chosen", ("a",)), Choice("2", "2", "y", "none")],
            {},
        ),
        {},
    )
    assert found.people == 2
    assert found.estimate("percent agreement").value == 0


def test_the_result_prints_and_is_json():
    found = measured(("ann", "ab", "a"), ("bob", "ab", "b"), ("ann", "cd", "c"), ("bob", "cd", "c"))
    assert "fewer than 100 tasks" in str(found)
    assert "1 disagreement without a final verdict" in str(found)
    data = json.loads(found.to_json())
    assert data["tasks"] == 2
    assert data["rows"][0]["measure"] == "alpha"
    assert data["disagreements"][0]["documents"] == ["a", "b"]
    assert not data["disagreements"][0]["settled"]
    assert found.to_csv().startswith("measure,group,name,scale,value,low,high")
    nothing = measure_agreement([], {})
    assert nothing.rows == ()
    assert math.isnan(measured(("ann", "ab", "a")).estimate().value)
    str(nothing)
    with pytest.raises(InputError, match="there is no 'kappa'"):
        found.estimate("kappa")

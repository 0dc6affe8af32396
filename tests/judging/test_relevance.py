"""Relevance: counted judgments, the users' share, and the fit."""

import json
import math

import pytest
from statsmodels.stats.proportion import proportion_confint

from rankgauge.errors import InputError
from rankgauge.judging import Choice, Judge, Presentation, judgments_of, measure_relevance
from rankgauge.judging.export import grades_of
from rankgauge.rendering.tables import short_tables
from rankgauge.stats import fit_plackett_luce

JUDGES = {"ann": Judge("ann", "Ann"), "bob": Judge("bob", "Bob"), "gpt": Judge("gpt", "gpt", kind="model")}


def judged(*rows):
    """Judgments from (documents, outcome or chosen documents, further fields)."""
    presentations, choices = [], []
    for number, (documents, said, more) in enumerate(rows, 1):
        given = {"question": "q", "judge": "ann", "mode": "choice"} | more
        name, judge = str(number), given["judge"]
        presentations.append(Presentation(name, documents=tuple(documents), sequence=number, **given))
        if isinstance(said, list):
            choices.append(Choice(name, name, judge, "graded", grades=tuple(said)))
        elif said in {"none", "cannot tell", "later", "undone", "both good"}:
            choices.append(Choice(name, name, judge, said))
        elif said:
            choices.append(Choice(name, name, judge, "chosen", tuple(said)))
    return judgments_of(presentations, choices, JUDGES)


def by_document(found):
    return {each.document: each for each in found.documents}


def test_shown_and_chosen_are_counted_over_finished_presentations_to_people():
    found = measure_relevance(judged(("abc", "a", {}), ("abd", "none", {}), ("ac", "c", {})))
    counts = {name: (each.chosen, each.shown) for name, each in by_document(found).items()}
    assert counts == {"a": (1, 3), "b": (0, 2), "c": (1, 2), "d": (0, 1)}
    low, high = proportion_confint(1, 3, method="wilson")
    a = by_document(found)["a"]
    assert (a.share, a.share_low, a.share_high) == pytest.approx((1 / 3, low, high))


def test_uncounted_judgments_are_listed():
    rows = [
        ("ab", "a", {}),
        ("ab", "cannot tell", {"judge": "bob"}),
        ("ab", "", {"expires": "2020-01-01T00:00:00+00:00"}),
        ("ab", "undone", {}),
        ("ac", "c", {"purpose": "repeat"}),
        ("ac", "c", {"purpose": "gold"}),
        ("ab", "b", {"judge": "gpt"}),
        ("xy", "both good", {"mode": "answers"}),
    ]
    found = measure_relevance(judged(*rows))
    alone = measure_relevance(judged(rows[0]))
    assert by_document(found)["a"].excluded == {
        "cannot tell": 1,
        "expired": 1,
        "open": 1,
        "repeat": 1,
        "gold": 1,
        "model": 1,
    }
    assert found.excluded == {**by_document(found)["a"].excluded, "vote": 1}
    assert found.counted == 1
    assert (by_document(found)["b"].chosen, by_document(found)["b"].shown) == (0, 1)
    assert by_document(found)["a"].fit == pytest.approx(by_document(alone)["a"].fit)
    # Shown only to a model and in a hidden test, so unjudged.
    assert not by_document(found)["c"].judged
    assert math.isnan(by_document(found)["c"].fit)
    assert "x" not in by_document(found)


def test_an_adjudication_replaces_the_judgments_of_its_set():
    final = ("ab", "b", {"purpose": "adjudication"})
    found = measure_relevance(judged(("ab", "a", {}), ("ba", "b", {"judge": "bob"}), final))
    assert (by_document(found)["b"].chosen, by_document(found)["b"].shown) == (1, 1)
    assert by_document(found)["a"].excluded == {"adjudicated": 2}


def test_documents_are_in_the_order_of_the_share_then_of_times_shown_then_of_the_identifier():
    found = measure_relevance(
        judged(("ab", "a", {}), ("ac", "c", {}), ("cb", "none", {}), ("zb", "none", {})), {"q": "yab"}
    )
    # a and c: 1 of 2; b: 0 of 3; z: 0 of 1; y was never shown.
    assert [each.document for each in found.documents] == ["a", "c", "b", "z", "y"]
    assert not found.documents[-1].judged


def test_the_fit_and_its_interval_are_of_each_question_alone():
    rows = [("ab", "a", {}), ("ab", "none", {}), ("ab", "b", {"question": "other"})]
    found = measure_relevance(judged(*rows))
    fit = fit_plackett_luce(2, [[0, 1], [0, 1]], [0, -1])
    bounds = [
        fit_plackett_luce(2, [[0, 1], [0, 1]], [0, -1], careless=careless).relevance_interval()
        for careless in ((0, 0), (0.2, 0), (0, 0.1))
    ]
    a = next(each for each in found.question("q") if each.document == "a")
    assert a.fit == pytest.approx(fit.relevance[0])
    assert a.fit_low == pytest.approx(min(low[0] for low, _ in bounds))
    assert a.fit_high == pytest.approx(max(high[0] for _, high in bounds))
    assert a.above == pytest.approx(fit.probability_above()[0])
    with pytest.raises(InputError, match="no question 'none'"):
        found.question("none")


def test_rankings_and_choices_join_one_fit():
    found = measure_relevance(judged(("abc", "ba", {"mode": "ranking"}), ("c", "none", {"mode": "yes-no"})))
    fit = fit_plackett_luce(3, [[0, 1, 2], [0, 2, -1], [2, -1, -1]], [1, 0, -1])
    assert {name: each.fit for name, each in by_document(found).items()} == pytest.approx(
        dict(zip("abc", fit.relevance, strict=True))
    )
    # Second place counts as placed; c was not placed, and therefore not chosen.
    assert [by_document(found)[name].chosen for name in "abc"] == [1, 1, 0]


def test_grades_are_no_choices():
    graded = {"mode": "graded"}
    rows = [("a", [3], graded), ("a", [2], graded), ("b", [0], graded)]
    found = measure_relevance(judged(*rows, ("c", "cannot tell", graded)))
    a, b, c = found.documents
    assert (a.grades, a.mean_grade, a.shown) == ((3, 2), 2.5, 0)
    assert math.isnan(a.fit)
    assert (b.grades, b.judged) == ((0,), True)
    assert not c.judged
    assert "mean grade" in found.table().columns
    assert "chosen/shown" not in found.table().columns


def test_the_result_shows_the_users_numbers_first_and_is_json():
    found = measure_relevance(judged(("abc", "a", {}), ("abd", "none", {})), {"q": "abcde"})
    assert found.table().columns[:5] == ("question", "document", "chosen/shown", "95% CI", "relevance (fit)")
    assert "1 document never shown: unjudged" in str(found)
    assert "2 judgments of 4 documents; 0 of 1 question resolved" in found.summary()
    data = json.loads(found.to_json())
    assert data["documents"][-1]["share"] is None
    assert data["excluded"] == {}
    assert found.to_csv().splitlines()[1].startswith("q,a,2,1,0.5,")


def test_the_short_table_has_judged_documents_only_and_fits_a_terminal():
    names = [f"{number}-a-document-with-a-long-identifier" for number in range(30)]
    rows = [(names[:3], tuple(names[:1]), {}), (names[3:5], "none", {})]
    found = measure_relevance(judged(*rows), {"q": names})
    (short,) = short_tables(found.tables())
    assert {row[1] for row in short.rows} == set(names[:5])
    assert max(map(len, str(found).splitlines())) <= 80
    assert "25 documents never shown" in str(found)
    assert len(found.table().rows) == 30


def test_a_poor_fit_is_reported():
    """The judge chooses none from every set of four, although each document alone is chosen."""
    sets = [("abcd", "none", {})] * 30
    single = [(name, name, {"mode": "yes-no"}) for name in "abcd"] * 10
    found = measure_relevance(judged(*sets, *single))
    assert "The fit may be biased" in str(found)


def test_nothing_judged_is_no_error():
    found = measure_relevance([], {"q": "ab", "empty": ""})
    assert [each.judged for each in found.documents] == [False, False]
    assert found.resolved == {"q": False, "empty": False}
    assert "0 judgments of 0 documents" in str(found)
    assert measure_relevance([]).documents == ()
    str(measure_relevance([]))


DIVIDED = [
    ((name, other), name if judge in "ab" else "none", {"judge": judge})
    for name in "x"
    for other in "yz"
    for judge in "abcd"
    for _ in range(4)
]


def test_a_document_that_divides_the_judges_is_split_and_has_no_interval():
    found = measure_relevance(judged(*DIVIDED))
    x = by_document(found)["x"]
    assert x.split
    assert math.isnan(x.fit_low)
    assert x.fit == pytest.approx(0.5, abs=0.1)
    assert not by_document(found)["y"].split
    assert found.resolved == {"q": False}
    row = next(row for row in found.table().rows if row[1] == "x")
    assert "split" in row
    assert "1 document split: chosen more often by some judges than by others" in " ".join(str(found).split())
    grades, _ = grades_of(found.documents, "fit")
    assert set(grades["q"]) == {"y", "z"}
    sighted = [("x", [1], {"mode": "graded", "purpose": "comparison"})]
    grades, _ = grades_of(measure_relevance(judged(*DIVIDED, *sighted)).documents, "fit")
    assert grades["q"]["x"] == 1


def test_judges_who_are_unsure_alike_are_not_split():
    rows = [
        (documents, said, more | {"judge": "abcd"[number // 2 % 4]})
        for number, (documents, said, more) in enumerate(DIVIDED)
    ]
    assert not any(each.split for each in measure_relevance(judged(*rows)).documents)

import math

import pytest
from checked import effect, good, only, opinion

from rankgauge import InputError, check

pytest.importorskip("pytrec_eval")


def test_good_judgments_and_a_good_run_have_no_problem():
    assert check(*good()).findings == ()


def test_a_pair_judged_twice_with_one_grade_is_counted_with_its_line(tmp_path):
    path = tmp_path / "a.qrels"
    path.write_text("q1 0 d1 1\nq1 0 d2 0\nq1 0 d1 1\nq1 0 d1 1\nq2 0 d1 0\nq2 0 d2 1\n")
    found = only(check(path, {"q1": ["d1"], "q2": ["d1", "d2"]}), "J101")
    assert (found.evidence.count, found.evidence.of, found.evidence.unit) == (1, 6, "judgment")
    assert [(location.line, location.query, location.document) for location in found.evidence.locations] == [
        (3, "q1", "d1")
    ]
    measured = effect(found, "once")
    assert math.isnan(measured.before)
    once = {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 0, "d2": 1}}
    assert measured.after == pytest.approx(opinion(once, {"q1": {"d1": 1.0}, "q2": {"d1": 2.0, "d2": 1.0}}))


def test_a_pair_judged_differently_shows_what_each_grade_would_give():
    rows = [("q1", "d1", 3), ("q1", "d2", 1), ("q1", "d3", 0), ("q1", "d2", 2)]
    run = {"q1": {"d2": 2.0, "d1": 1.0}}
    found = check(rows, run)
    assert found.codes[0] == "J102"
    problem = only(found, "J102")
    assert problem.evidence.count == 1
    for which, grade in (("lowest", 1), ("highest", 2)):
        wanted = opinion({"q1": {"d1": 3, "d2": grade, "d3": 0}}, run)
        assert effect(problem, which).after == pytest.approx(wanted)


def test_the_same_document_for_two_queries_is_judged_once_each():
    found = check([("q1", "d1", 1), ("q1", "d2", 0), ("q2", "d1", 1)])
    assert found.codes == ()


def test_queries_without_a_relevant_document_are_counted_and_left_out_to_measure():
    qrels, run = good()
    qrels["q3"] = dict.fromkeys(qrels["q3"], 0)
    qrels["q5"] = dict.fromkeys(qrels["q5"], -1)
    problem = only(check(qrels, run), "J103")
    assert problem.evidence.count == sum(max(docs.values()) < 1 for docs in qrels.values()) == 2
    assert [location.query for location in problem.evidence.locations] == ["q3", "q5"]
    rest = {query: docs for query, docs in qrels.items() if max(docs.values()) >= 1}
    assert effect(problem, "only queries").after == pytest.approx(opinion(rest, run))
    assert effect(problem, "only queries").before == pytest.approx(opinion(qrels, run))


def test_the_requested_level_decides_what_is_relevant():
    qrels = {"q1": {"d1": 1, "d2": 0}}
    assert "J103" in check(qrels, measures=["P(rel=2)@5", "RR(rel=2)"]).codes
    assert "J103" not in check(qrels, measures=["P@5", "RR(rel=2)"]).codes


def test_grades_below_the_level_are_measured_at_a_lower_one():
    qrels = {"q1": {"d1": 0.5, "d2": 1, "d3": 0}}
    run = {"q1": {"d3": 3.0, "d1": 2.0, "d2": 1.0}}
    problem = only(check(qrels, run, ["AP", "P@5"]), "J104")
    assert problem.evidence.count == 1
    now, then = {"q1": {"d2": 1, "d3": 0}}, {"q1": {"d1": 1, "d2": 1, "d3": 0}}
    assert effect(problem, "rel=0.5", "AP").before == pytest.approx(opinion(now, run, "map"))
    assert effect(problem, "rel=0.5", "AP").after == pytest.approx(opinion(then, run, "map"))
    assert effect(problem, "rel=0.5", "P@5").after == pytest.approx(opinion(then, run, "P_5"))
    assert "J104" not in check(qrels, run, ["AP(rel=0.5)", "nDCG"]).codes
    assert "J104" not in check({"q1": {"d1": 1.5, "d2": 0}}, run).codes


@pytest.mark.parametrize(
    ("grades", "scale", "count"),
    [
        pytest.param([0, 1, 2, 3, 4], "0..3", 1, id="above the scale"),
        pytest.param([0, 1, 2, 3, 2.5], "0..3", 1, id="a decimal on a whole scale"),
        pytest.param([0, 1, 2, 3, -1, -2], "0..3", 0, id="pooled but not judged"),
        pytest.param([0, 0.5, 0.25, 1], "0.0..1.5", 0, id="a scale of decimals"),
        pytest.param([0, 1, 2, 3] * 20 + [300], None, 1, id="far above"),
        pytest.param([0, 1, 2, 3] * 20 + [5], None, 0, id="a little above"),
        pytest.param([0, 1, 2, 3] * 20 + [-7], None, 1, id="far below"),
        pytest.param([0, 1, 2, 3] * 20 + [0.5], None, 1, id="one decimal"),
        pytest.param([0.1 * n for n in range(40)], None, 0, id="all decimals"),
        pytest.param([0, 1, 10, 100] * 20, None, 0, id="a wide scale"),
    ],
)
def test_grades_out_of_the_scale_are_counted(grades, scale, count):
    qrels = {"q1": {f"d{n}": grade for n, grade in enumerate(grades)}}
    found = check(qrels, scale=scale, ignore=["J103", "J104", "J107"])
    assert sum(problem.evidence.count for problem in found.of("J105")) == count


def test_a_grade_far_above_is_left_out_to_measure():
    qrels, run = good()
    qrels["q0"]["d0x0"] = 300
    problem = only(check(qrels, run), "J105")
    mended = {query: dict(docs) for query, docs in qrels.items()}
    del mended["q0"]["d0x0"]
    assert effect(problem, "without").after == pytest.approx(opinion(mended, run))


@pytest.mark.parametrize("text", ["3", "3..0", "a..b", "1..2..3", ""])
def test_an_invalid_scale_is_refused(text):
    with pytest.raises(InputError, match="scale"):
        check({"q1": {"d1": 1}}, scale=text)


def test_grades_above_the_top_of_err_are_measured_with_a_higher_one():
    qrels = {"q1": {"d1": 5, "d2": 0}}
    run = {"q1": {"d2": 2.0, "d1": 1.0}}
    problem = only(check(qrels, run, ["ERR@10", "P@5"]), "J106")
    assert problem.evidence.count == 1
    measured = effect(problem, "top=5", "ERR(top=4)@10")
    assert math.isnan(measured.before)
    assert measured.after == pytest.approx((2**5 - 1) / 2**5 / 2)
    assert "J106" not in check(qrels, run, ["ERR(top=5)@10", "P@5"]).codes
    assert "J106" not in check(qrels, run, ["nDCG@10", "P@5"]).codes


def test_unattainable_recall_is_reported_with_its_maximum():
    qrels = {"q1": {f"d{n}": 1 for n in range(4)}, "q2": {"d1": 1, "d9": 1, "d2": 0}}
    run = {"q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}, "q2": {"d1": 1.0}}
    problem = only(check(qrels, run, ["R@2", "R@10"]), "J107")
    assert (problem.evidence.count, problem.evidence.of) == (1, 2)
    reach = effect(problem, "maximum", "R@2")
    assert reach.before == pytest.approx(opinion(qrels, run, "recall_2"))
    assert reach.after == pytest.approx((2 / 4 + 1) / 2)
    assert "J107" not in check(qrels, run, ["R@4", "P@2"]).codes


def test_judgments_of_relevant_documents_only_are_reported():
    assert check({"q1": {"d1": 1, "d2": 2}}).codes == ("J108",)
    assert check({"q1": {"d1": 1, "d2": 0}}).codes == ()

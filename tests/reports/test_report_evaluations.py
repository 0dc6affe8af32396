"""Evaluations as tables and files."""

import csv
import io
import json

import pytest

from rankgauge import InputError, Run, UnknownName, evaluate
from rankgauge.reports import Options, render

QRELS = {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}}
ONE = evaluate(QRELS, Run.of({"q1": ["b", "a"], "q2": ["c"]}, name="one"), ["nDCG@5", "RR", "NumRet"])
TWO = evaluate(QRELS, Run.of({"q1": ["a"], "q2": ["x"]}, name="two"), ["nDCG@5", "RR", "NumRet"])


def test_runs_are_rows_with_the_policies_below():
    lines = render([ONE, TWO]).splitlines()
    assert lines[0].split() == ["run", "nDCG@5", "RR", "NumRet"]
    assert lines[2].split() == ["one", "0.8155*", "0.7500*", "3"]
    assert lines[3].split() == ["two", "0.5000", "0.5000", "2"]
    assert "• 2 queries: all judged queries" in lines


def test_cut_offs_are_rows_and_measures_are_columns():
    ev = evaluate(QRELS, {"q1": ["b", "a"], "q2": ["c"]})
    lines = render(ev).splitlines()
    assert lines[1].split() == ["k", "P", "R", "F1", "Success", "nDCG"]
    assert [line.split()[0] for line in lines[3:7]] == ["1", "3", "5", "10"]
    assert lines[8].split() == ["RR", "AP"]


def test_the_best_value_is_marked():
    assert "**0.8155**" in render([ONE, TWO], "markdown")
    assert "**3**" not in render([ONE, TWO], "markdown")


def test_per_query_shows_every_query_of_every_run():
    rows = list(csv.DictReader(io.StringIO(render([ONE, TWO], "csv", Options(per_query=True)))))
    assert [(row["run"], row["query"]) for row in rows] == [("one", "q1"), ("one", "q2"), ("two", "q1"), ("two", "q2")]
    assert float(rows[0]["nDCG@5"]) == ONE.value("q1", "nDCG@5")


def test_trec_form_is_that_of_trec_eval():
    ev = evaluate(QRELS, Run.of({"q1": ["b", "a"]}, name="tag"), ["map", "P_5", "num_ret", "ERR@3"])
    assert render(ev, "trec", Options(per_query=True)) == (
        "map                   \tq1\t0.5000\n"
        "P_5                   \tq1\t0.2000\n"
        "num_ret               \tq1\t2\n"
        "ERR(top=4)@3          \tq1\t0.0938\n"
        "map                   \tq2\t0.0000\n"
        "P_5                   \tq2\t0.0000\n"
        "num_ret               \tq2\t0\n"
        "ERR(top=4)@3          \tq2\t0.0000\n"
        "runid                 \tall\ttag\n"
        "num_q                 \tall\t2\n"
        "map                   \tall\t0.2500\n"
        "P_5                   \tall\t0.1000\n"
        "num_ret               \tall\t2\n"
        "ERR(top=4)@3          \tall\t0.0469\n"
    )


def test_json_is_one_document_a_line():
    documents = [json.loads(line) for line in render([ONE, TWO], "json").splitlines()]
    assert [document["run"] for document in documents] == ["one", "two"]


def test_notes_that_differ_name_their_run():
    both = [ONE, evaluate(QRELS, Run.of({"q1": ["a"]}, name="less"), ["nDCG@5", "RR", "NumRet"])]
    message = "• less: 2 queries: all judged queries; 1 of them not in the run"
    assert message in render(both, "table", Options(full=True))
    assert message not in render(both)
    assert "more notes hidden; show with --full" in render(both)


def test_an_unknown_form_and_no_evaluation_are_refused():
    with pytest.raises(UnknownName, match="unknown format 'marckdown'"):
        render(ONE, "marckdown")
    with pytest.raises(InputError, match="no result"):
        render([])


def test_runs_with_different_measures_have_all_columns_and_no_foreign_values():
    run = {"q1": ["b", "a"], "q2": ["c"]}
    one = evaluate(QRELS, Run.of(run, name="one"), ["P@1"])
    two = evaluate(QRELS, Run.of(run, name="two"), ["RR"])
    assert render([one, two]).splitlines()[2].split() == ["one", "0.5000", "–"]
    rows = list(csv.DictReader(io.StringIO(render([one, two], "csv", Options(per_query=True)))))
    assert rows[2] == {"run": "two", "query": "q1", "P@1": "", "RR": "0.5"}


def test_the_best_of_several_runs_has_a_star_on_a_terminal_and_a_line_says_so():
    """Elsewhere it is bold, and a single run has none."""
    names = ["P@1", "P@2", "R@1", "R@2", "RR"]
    one, two = (
        evaluate(QRELS, Run.of(run, name=name), names)
        for name, run in (("one", {"q1": ["a", "b"], "q2": ["x"]}), ("two", {"q1": ["x", "a"]}))
    )
    lines = render([one, two], "table", Options(full=True)).splitlines()
    assert [line.split() for line in lines[2:4]] == [
        ["one", "0.5000*", "0.2500*", "0.5000*", "0.5000*", "0.5000*"],
        ["two", "0.0000", "0.2500*", "0.0000", "0.5000*", "0.2500"],
    ]
    assert lines.count("• * best run") == 1
    head, _, *rows = [line.split() for line in render([one, two]).splitlines()]
    assert head == ["run", "P@2", "R@2", "RR"]
    assert rows[:2] == [["one", "0.2500*", "0.5000*", "0.5000*"], ["two", "0.2500*", "0.5000*", "0.2500"]]
    assert "• P@1, R@1, 4 more notes hidden; show with --full (full=True)" in render([one, two])
    assert "*" not in render(one)
    assert "best run" not in render([one, two], "latex")
    assert render([one, one]).count("0.5000*") == 4

"""The effect of ties as text."""

import json

import pytest

from rankgauge import InputError, UnknownName, tie_report
from rankgauge.reports import Options, render

QRELS = {"q1": {"a": 1}, "q2": {"a": 1}}
RUN = {"q1": dict.fromkeys("abc", 0.5), "q2": {"a": 1.0, "b": 0.5}}
FOUND = tie_report(QRELS, RUN, ["RR", "ERR@10"])


def test_a_table_has_the_interval_and_what_is_tied():
    text = render(FOUND)
    assert text.splitlines()[3].split() == ["RR", "0.6667", "0.6667", "0.8056", "1.0000", "1"]
    assert text.splitlines()[4].split()[3] == "–"
    assert "• 2 queries: 1 with equal scores" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("form", ["markdown", "latex", "html", "csv"])
def test_every_form_has_every_measure(form):
    text = render([FOUND, FOUND], form)
    assert text.count("0.6667" if form != "csv" else "0.6666666666666666") >= 2
    assert text.count("ERR(top=4)@10") >= 2


def test_json_has_a_line_for_each_run():
    lines = render([FOUND, FOUND], "json").splitlines()
    assert [json.loads(line)["measures"][0]["worst"] for line in lines] == [2 / 3, 2 / 3]


def test_queries_are_those_that_could_change():
    text = render(FOUND, "csv", Options(per_query=True))
    assert text.splitlines()[0] == "query,measure,as evaluated (trec),worst,mean,best"
    assert {line.split(",")[0] for line in text.splitlines()[1:]} == {"q1"}


def test_impossible_arguments_are_reported():
    with pytest.raises(UnknownName, match="unknown format 'trec'"):
        render(FOUND, "trec")
    with pytest.raises(InputError, match="there are no results"):
        render([])

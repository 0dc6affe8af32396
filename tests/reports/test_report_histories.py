"""The contents of a history as text."""

import csv
import io
import json
from datetime import UTC, datetime

import pytest

import rankgauge
from rankgauge import History, InputError, UnknownName, evaluate
from rankgauge.comparison import trend_of

QRELS = {"q1": {"d1": 1}, "q2": {"d1": 1}, "q3": {"d2": 0}}
RUN = {"q1": ["d1"], "q2": ["x", "d1"], "q3": ["d2"]}
FORMS = ("table", "markdown", "html", "csv", "json")


@pytest.fixture
def history(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # without a checkout, there is no commit
    with History(tmp_path / "history.db") as opened:
        for day, label in ((1, "<b>1.0</b>"), (2, "=1+1")):
            opened.add(
                evaluate(QRELS, RUN, ["RR", "AP"]),
                QRELS,
                run=RUN,
                label=label,
                settings={"latency_ms": 12},
                time=datetime(2026, 1, day, tzinfo=UTC),
            )
        yield opened


def texts(history, form):
    return [
        rankgauge.reports.render(history.entries(), form),
        rankgauge.reports.render(history.entry(1), form),
        rankgauge.reports.render(trend_of(history, "RR"), form),
    ]


@pytest.mark.parametrize("form", FORMS)
def test_every_report_has_every_form(form, history):
    for text in texts(history, form):
        assert text.strip()
        if form == "json":
            json.loads(text)
        if form == "csv":
            widths = {len(row) for row in csv.reader(io.StringIO(text))}
            assert len(widths) == 1


def test_an_unknown_form_is_reported(history):
    for act in (
        lambda: rankgauge.reports.render(history.entries(), "xml"),
        lambda: rankgauge.reports.render(history.entry(1), "xml"),
        lambda: rankgauge.reports.render(trend_of(history, "RR"), "xml"),
    ):
        with pytest.raises(UnknownName, match="unknown format 'xml'"):
            act()


def test_labels_are_escaped_in_html_and_defused_in_csv(history):
    assert not any("<b>" in text for text in texts(history, "html"))
    assert "'=1+1" in rankgauge.reports.render(history.entries(), "csv")


def test_the_list_shows_ndcg_at_10_or_the_first_measure_or_what_was_asked_for(history):
    entries = history.entries()
    assert rankgauge.reports.render(entries).splitlines()[0].split() == [
        "id",
        "date",
        "run",
        "label",
        "queries",
        "RR",
        "judgments",
    ]
    assert (
        "AP" in rankgauge.reports.render(entries, "table", rankgauge.reports.Options(measures=["map"])).splitlines()[0]
    )
    with pytest.raises(InputError, match=r"has P@1\nfix: saved measures: RR, AP"):
        rankgauge.reports.render(entries, "table", rankgauge.reports.Options(measures=["P@1"]))
    history.add(evaluate(QRELS, RUN, ["AP", "nDCG@10"]), QRELS)
    rows = json.loads(rankgauge.reports.render(history.entries(), "json"))["entries"]
    assert ["nDCG@10" not in row["means"] for row in rows] == [True, True, False]


def test_the_latest_are_shown_and_the_number_of_all(history):
    text = rankgauge.reports.render(history.entries(), "table", rankgauge.reports.Options(last=1))
    assert "the latest 1 of 2 evaluations" in text
    assert len([line for line in text.splitlines() if "2026-01" in line]) == 1


def test_different_judgments_are_noted_below_the_list(history):
    assert "different judgments" not in rankgauge.reports.render(history.entries())
    history.add(evaluate(QRELS, RUN, "RR"), {**QRELS, "q3": {"d2": 1}})
    assert "2 different judgments" in rankgauge.reports.render(history.entries())


def test_columns_that_say_nothing_are_left_out_for_people_and_kept_for_programs(history):
    for number in (1, 2):
        history.delete(number)
    history.add(evaluate(QRELS, RUN, "RR"), QRELS)
    assert "label" not in rankgauge.reports.render(history.entries())
    assert "label" in rankgauge.reports.render(history.entries(), "csv")
    assert "label" not in rankgauge.reports.render(trend_of(history, "RR"))


def test_an_empty_list_can_be_shown(history):
    for entry in history.entries():
        history.delete(entry)
    assert "no evaluation is saved" in rankgauge.reports.render(history.entries())
    assert json.loads(history.entries().to_json())["entries"] == []


def test_one_entry_shows_what_was_kept_with_it(history):
    assert history.entry(1).qrels not in rankgauge.reports.render(history.entry(1))
    text = rankgauge.reports.render(history.entry(1), "markdown")
    assert '{"latency\\_ms": 12}' in text
    assert history.entry(1).qrels in text
    assert "3 queries: all judged queries" in text
    assert json.loads(rankgauge.reports.render(history.entry(1), "json"))["means"] == {"RR": 0.5, "AP": 0.5}

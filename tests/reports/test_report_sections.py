"""Report sections from a diagnosis and a trend."""

import math
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest

import rankgauge
from rankgauge import History, Run, evaluate, html_report
from rankgauge.comparison import trend_of
from rankgauge.rendering.plot_drawing import Plot
from rankgauge.rendering.tables import Table
from rankgauge.reports import Details, diagnosis_section, trend_section

FOLDER = rankgauge.sample_path("qrels.txt").parent
QRELS = rankgauge.read_qrels(FOLDER / "qrels.txt")
RUNS = {name: rankgauge.read_run(FOLDER / "runs" / f"{name}.run") for name in ("bm25", "keyword")}


def _titles(parts):
    for part in parts:
        if isinstance(part, Details):
            yield from _titles(part.parts)
        elif isinstance(part, Table):
            yield part.title or part.columns[0]


@pytest.mark.parametrize("worst", [0, 1, 3])
def test_a_section_holds_all_tables_of_the_diagnosis(worst):
    found = rankgauge.diagnose(QRELS, RUNS["bm25"], worst=worst)
    section = diagnosis_section(found)
    assert section.title == "Diagnosis of bm25"
    text = rankgauge.reports.render(found, "table", rankgauge.reports.Options(full=True))
    titles = list(_titles(section.parts))
    shown = " ".join(text.split())
    assert all(title in shown for title in titles)
    assert sum(f"“{one.text}”" in t or t.startswith(one.query_id) for t in titles for one in found.worst) == worst
    open_tables = [part.title or part.columns[0] for part in section.parts if isinstance(part, Table)]
    assert open_tables[0] == "Diagnosis of bm25: quality"
    assert open_tables[1].startswith("likely causes")
    assert open_tables[2:] == ["potential gain", "suggested fixes"]
    assert len(titles) == 4 + worst + 3 + bool(found.sweep.thresholds)


def test_a_report_diagnoses_the_run_that_is_named_or_the_best():
    runs = dict(reversed(RUNS.items()))  # the best run is not the first
    page = {
        name: html_report(QRELS, runs, "nDCG@10", diagnosed=name, plots=False) for name in ("best", "bm25", "keyword")
    }
    assert page["best"] == page["bm25"]
    assert "Diagnosis of keyword" in page["keyword"]
    assert "potential gain" in page["keyword"]
    with pytest.raises(rankgauge.UnknownName, match="unknown run 'dense'"):
        html_report(QRELS, RUNS, "nDCG@10", diagnosed="dense", plots=False)
    called = {"best": RUNS["keyword"], "other": RUNS["bm25"]}
    assert "Diagnosis of best" in html_report(QRELS, called, "RR", diagnosed="best", plots=False)


def test_a_diagnosis_is_of_the_queries_of_the_result():
    some = list(QRELS.query_ids)[:12]
    result = rankgauge.compare(QRELS, RUNS, "nDCG@10", queries=some)
    page = html_report(QRELS, RUNS, result=result, diagnosed="bm25", plots=False)
    part = rankgauge.diagnose(rankgauge.keep_queries(QRELS, some), RUNS["bm25"])
    assert part.queries == 12
    assert part.failing
    assert part.conclusion in unescape(page)


def test_a_trend_has_its_plot_its_numbers_and_its_breaks(tmp_path):
    history = History(tmp_path / "history.db")
    start = datetime(2024, 1, 1, tzinfo=UTC)
    other = {query: {"nothing": 1} for query in QRELS.query_ids}
    steps = ((QRELS, "keyword"), (QRELS, "bm25"), (other, "bm25"))
    for day, (truth, name) in enumerate(steps):
        run = Run.of(RUNS[name], name="mine")
        made = evaluate(truth, run, "nDCG@10")
        history.add(made, truth, run=run, time=start + timedelta(days=day), label=f"v{day}")
    trend = trend_of(history, "nDCG@10")
    section = trend_section(trend)
    drawn, table = (next(p for p in section.parts if isinstance(p, kind)) for kind in (Plot, Table))
    # The line is broken where judgments changed.
    first, second, gap, third, *_ = drawn.panels[0].series[0].y
    assert ((first, second, third), math.isnan(gap)) == (trend.means, True)
    assert [row[3] for row in table.rows] == list(trend.means)
    assert [row[2] for row in table.rows] == ["v0", "v1", "v2"]
    step = trend.points[1].change
    assert [row[5] for row in table.rows[:2]] == ["", f"{step.difference:+.3f} ({step.low:+.3f} to {step.high:+.3f})"]
    assert table.rows[2][5].startswith("not comparable: ")
    assert not any(isinstance(part, Plot) for part in trend_section(trend, plots=False).parts)
    page = html_report(QRELS, RUNS, "nDCG@10", sections=[section], plots=False)
    assert page.count("<svg") == 1

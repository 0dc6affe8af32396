"""Pages of production: metrics over time, alerts, drift, and sampled questions."""

import html
import math
import os
import re
from dataclasses import replace

import pytest
from judging_pages import ORIGIN, fields_of, filled, sign_in
from production_logs import write_log
from starlette.testclient import TestClient

from rankgauge import Project
from rankgauge.judging import JudgingProject, Settings
from rankgauge.production import METRICS, EventLog, MetricChange, OnlineValue, online_metrics
from rankgauge.web import judging_app
from rankgauge.web.production import _chart


@pytest.fixture
def project(tmp_path):
    with filled(tmp_path / "judging.db", questions=12, settings=Settings(title="Library")) as made:
        yield made


@pytest.fixture
def log(tmp_path):
    return EventLog(write_log(tmp_path / "log.parquet"))


@pytest.fixture
def lead(project, log):
    with TestClient(judging_app(project, log=log), base_url=ORIGIN) as client:
        sign_in(client, project, "Lena", "lead")
        yield client


def waited(client, path):
    """Return a page with what it loads later, as the script does."""
    page = client.get(path).text
    (part,) = re.findall(r'class="later" data-part="([^"]+)"', page) or [None]
    return page if part is None else client.get(html.unescape(part)).text


def test_pages_answer_at_once_and_load_what_takes_long(lead, log):
    assert 'data-part="/production?by=week&amp;wait=1"' in lead.get("/production?by=week").text
    shown = {"/production?by=week": "<figure", "/production/drift": "Clusters", "/production/metrics/idk_rate": "<svg"}
    for path, text in shown.items():
        assert text in waited(lead, path)
        again = lead.get(path).text  # now without a wait
        assert (text in again, "data-part" in again) == (True, False)
    os.utime(log.path, (0, 0))
    assert "data-part" in lead.get("/production").text  # the log has changed


def test_metrics_are_those_of_the_log(lead, log):
    page = waited(lead, "/production?by=week")
    found = {each.metric.name: each for each in online_metrics(log, by="week").overall}
    defined = [name for name, each in found.items() if each.defined]
    assert re.findall(r'<figcaption><a href="/production/metrics/(\w+)\?by=week">', page) == defined
    for name in defined:
        assert found[name].basis() in page
    assert "not defined" in page


def test_a_metric_has_its_own_page_with_its_values_and_changes(lead, log):
    metrics = online_metrics(log, by="week")
    page = waited(lead, "/production/metrics/idk_rate")
    assert "<h1>idk_rate</h1>" in page
    assert page.count('class="point"') == 6
    for each in metrics.groups:
        assert (f"{each.basis()}</td>" in page) == (each.metric.name == "idk_rate") or each.metric.name != "idk_rate"
    (change,) = (change for change in metrics.changes if change.metric.name == "idk_rate")
    assert html.unescape(page).count(change.sentence.removeprefix("idk_rate")) == 1
    days = waited(lead, "/production/metrics/idk_rate?by=day")
    assert days.count('class="point"') == 41
    assert "No shift or week that differs was found" in waited(lead, "/production/metrics/thumbs_ratio")
    assert "no impressions were logged" in waited(lead, "/production/metrics/search_ctr")
    assert lead.get("/production/metrics/idk").status_code == 404


def test_charts_place_days_values_and_thresholds():
    metric, size = METRICS["idk_rate"], (300, 100)
    days = ("2026-05-04", "2026-05-11", "2026-05-25")
    points = [OnlineValue(metric, day, 0.1, 0.0, 0.3, 1, 10, 10) for day in days]
    points[1] = replace(points[1], low=math.nan, high=math.nan)
    chart = _chart(points, [0.4], MetricChange(metric, None, 0.01, (("2026-05-18", 0.1, 0.2),)), size)
    xs = [x for x, *_ in chart["points"]]
    assert xs[1] - xs[0] == pytest.approx((xs[2] - xs[0]) / 3, abs=0.1)  # a week has no questions
    assert chart["shifts"] == [pytest.approx(xs[0] + (xs[2] - xs[0]) * 2 / 3, abs=0.1)]
    assert [label for _, label in chart["ticks"]] == ["0", "0.2", "0.4"]
    assert chart["limits"] == [10.0]  # the top
    assert chart["band"].split()[1] == chart["line"].split()[1]  # no interval
    assert _chart(points[:1], [], None, size) == {}
    zero = [replace(point, value=0.0, high=0.0) for point in points]
    assert [label for _, label in _chart(zero, [], None, size)["ticks"]] == ["0", "0.5", "1"]
    slow = [replace(point, value=1050.0, high=math.inf) for point in points]
    assert [label for _, label in _chart(slow, [], None, size)["ticks"]] == ["0", "1,000", "2,000"]


def test_alerts_open_their_own_metric(evaluated, log):
    path = evaluated.file.path
    path.write_text(path.read_text() + "\n[alerts]\nidk_rate = { max = 0.2 }\nthumbs_ratio = { min = 0.8 }\n")
    project = Project(path)
    app = judging_app(evaluated.judging, log=log, evaluations=project)
    with project.evaluations, TestClient(app, base_url=ORIGIN) as client:
        sign_in(client, evaluated.judging, "Lena", "lead")
        assert 'data-part="/production/alerts"' in client.get("/").text
        for page in (client.get("/production/alerts").text, waited(client, "/production")):
            assert "2 alerts" in page
            assert '<a href="/production/metrics/idk_rate">idk_rate</a> is above 0.2: 0.3' in page
            assert "Inconclusive: thumbs_ratio may be below 0.8" in page
        assert "alerts</p>" not in waited(client, "/production/metrics/feedback_rate")
        assert 'class="limit"' in waited(client, "/production/metrics/idk_rate")
        assert "8 distinct" in waited(client, "/production/drift")  # evaluated queries
        path.write_text(path.read_text() + "idk = { max = 0.2 }\n")
        client.app.state.workbench.project = Project(path)
        answer = client.get("/production/alerts")
        assert (answer.status_code, "did you mean idk_rate" in answer.text) == (400, True)
        sign_in(client, evaluated.judging, "Rea", "reader")
        assert "/production" not in client.get("/").text


def test_a_change_of_the_log_is_shown(lead, log):
    before = waited(lead, "/production/metrics/idk_rate")
    write_log(log.path, weeks=3)
    after = waited(lead, "/production/metrics/idk_rate")
    assert before != after
    assert after.count('class="point"') == 3


def test_drift_of_the_questions_of_the_project_is_shown(lead):
    page = waited(lead, "/production/drift")
    assert re.search(r"Verdict: (separated|missing)", page)
    assert "Questions to add" in page
    picture = lead.get("/production/drift/picture")
    assert "sha256-" in picture.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in picture.headers["Content-Security-Policy"]
    assert picture.text.count('class="evaluation"') == 12


def test_without_questions_the_drift_page_leads_to_new_ones(tmp_path, log):
    project = JudgingProject.create(tmp_path / "empty.db")
    with project, TestClient(judging_app(project, log=log), base_url=ORIGIN) as client:
        sign_in(client, project, "Lena", "lead")
        page = client.get("/production/drift").text
        assert "This project has no questions yet" in page
        assert 'href="/production/sample"' in page


def test_ticked_questions_join_the_project_with_their_probability(lead, project):
    assert "data-part" in lead.get("/production/sample?n=10&by=frequency&seed=3").text
    page = lead.get("/production/sample?n=10&by=frequency&seed=3&wait=1")
    names = re.findall(r'name="(add-[^"]+)"', page.text)
    assert len(names) == 10
    answer = lead.post(
        "/production/questions", data=fields_of(page, "/production/questions") | dict.fromkeys(names[:4], "on")
    )
    assert answer.url.path == "/questions"
    added = [each for each in project.questions.values() if each.origin == "log"]
    assert {f"add-{each.id}" for each in added} == set(names[:4])
    assert all(0 < each.probability <= 1 for each in added)
    again = waited(lead, "/production/sample?n=10&by=frequency&seed=3")
    assert not set(names[:4]) & set(re.findall(r'name="(add-[^"]+)"', again))


@pytest.mark.parametrize("query", ["n=0", "n=101", "n=x", "n=5&by=luck", "n=5&seed=-1"])
def test_a_draw_that_is_not_possible_is_refused(lead, query):
    answer = lead.get(f"/production/sample?{query}")
    assert answer.status_code == 400
    assert "draw 1 to 100 questions" in answer.text


def test_selecting_no_question_is_reported(lead):
    page = lead.get("/production/sample?n=5&wait=1")
    answer = lead.post("/production/questions", data=fields_of(page, "/production/questions"))
    assert answer.status_code == 400
    assert "no question was selected" in answer.text


def test_judges_do_not_see_production(project, log):
    with TestClient(judging_app(project, log=log), base_url=ORIGIN) as client:
        sign_in(client, project, "Ann", "judge")
        assert "/production" not in client.get("/").text
        for path in ("/production", "/production/metrics/idk_rate", "/production/drift", "/production/sample"):
            assert client.get(path).status_code == 403


def test_without_a_log_there_are_no_pages(project):
    with TestClient(judging_app(project), base_url=ORIGIN) as client:
        sign_in(client, project, "Lena", "lead")
        assert client.get("/production").status_code == 404
        assert "/production" not in client.get("/").text

"""Pages of production: metrics over time, drift, and sampled questions."""

import re

import pytest
from judging_pages import ORIGIN, fields_of, filled, sign_in
from production_logs import write_log
from starlette.testclient import TestClient

from rankgauge.judging import Settings
from rankgauge.production import EventLog, online_metrics
from rankgauge.web import judging_app


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


def test_metrics_are_those_of_the_log(lead, log):
    page = lead.get("/production?by=week&metric=idk_rate").text
    found = {each.metric.name: each for each in online_metrics(log, by="week").overall}
    for name in ("idk_rate", "thumbs_ratio"):
        assert found[name].basis() in page
    assert page.count('class="point"') == 6
    assert "not defined" in page


def test_a_change_of_the_log_is_shown(lead, log):
    before = lead.get("/production").text
    write_log(log.path, weeks=3)
    after = lead.get("/production").text
    assert before != after
    assert after.count('class="point"') == 3


def test_drift_of_the_questions_of_the_project_is_shown(lead):
    page = lead.get("/production/drift").text
    assert re.search(r"<h1>Drift: (separated|missing)", page)
    assert "Questions to add" in page
    picture = lead.get("/production/drift/picture")
    assert "sha256-" in picture.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in picture.headers["Content-Security-Policy"]
    assert picture.text.count('class="evaluation"') == 12


def test_ticked_questions_join_the_project_with_their_probability(lead, project):
    page = lead.get("/production/sample?n=10&by=frequency&seed=3")
    names = re.findall(r'name="(add-[^"]+)"', page.text)
    assert len(names) == 10
    answer = lead.post(
        "/production/questions", data=fields_of(page, "/production/questions") | dict.fromkeys(names[:4], "on")
    )
    assert answer.url.path == "/questions"
    added = [each for each in project.questions.values() if each.origin == "log"]
    assert {f"add-{each.id}" for each in added} == set(names[:4])
    assert all(0 < each.probability <= 1 for each in added)
    again = lead.get("/production/sample?n=10&by=frequency&seed=3").text
    assert not set(names[:4]) & set(re.findall(r'name="(add-[^"]+)"', again))


@pytest.mark.parametrize("query", ["n=0", "n=101", "n=x", "n=5&by=luck", "n=5&seed=-1"])
def test_a_draw_that_is_not_possible_is_refused(lead, query):
    answer = lead.get(f"/production/sample?{query}")
    assert answer.status_code == 400
    assert "draw 1 to 100 questions" in answer.text


def test_selecting_no_question_is_reported(lead):
    page = lead.get("/production/sample?n=5")
    answer = lead.post("/production/questions", data=fields_of(page, "/production/questions"))
    assert answer.status_code == 400
    assert "no question was selected" in answer.text


def test_judges_do_not_see_production(project, log):
    with TestClient(judging_app(project, log=log), base_url=ORIGIN) as client:
        sign_in(client, project, "Ann", "judge")
        assert "/production" not in client.get("/").text
        for path in ("/production", "/production/drift", "/production/sample"):
            assert client.get(path).status_code == 403


def test_without_a_log_there_are_no_pages(project):
    with TestClient(judging_app(project), base_url=ORIGIN) as client:
        sign_in(client, project, "Lena", "lead")
        assert client.get("/production").status_code == 404
        assert "/production" not in client.get("/").text

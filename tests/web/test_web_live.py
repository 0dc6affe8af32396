"""Queries that a lead tries on a page: each retriever in a process of its own, which may hang, fail, or end."""

import re

import pytest
from evaluated_project import create_evaluated
from judging_pages import ORIGIN, sign_in, token_of
from starlette.testclient import TestClient

from rankgauge import InputError, Project
from rankgauge.benchmark import live
from rankgauge.web import judging_app
from rankgauge.web.jobs import Runner

RETRIEVER = """
import os, subprocess, time
def search(text, k=10):
    print("noise on standard output")
    if "hang" in text:
        time.sleep(60)
    if "fail" in text:
        raise ValueError("no such index")
    if "child" in text:
        subprocess.run(["echo", '[["d3"], [1.0], 0.0]'])
    if "end" in text:
        os.write(2, b"no \\xff memory\\n")
        os._exit(3)
    return ["d1", "d2"]
"""
EVIL = "<script>alert(1)</script> ties"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    project = create_evaluated(tmp_path_factory.mktemp("live") / "handbook")
    (project.file.folder / "own.py").write_text(RETRIEVER)
    text = project.file.path.read_text().partition("[retrievers.new]")[0]
    table = '[retrievers."-own/s"]\ntype = "python"\ncall = "own:search"\n'
    project.file.path.write_text(f"live_queries = 9\n{text}{table}")
    project = Project(project.file.path)
    with project.open_judging(), project.evaluations, Runner(project) as runner:
        client = TestClient(judging_app(project.judging, evaluations=project, runner=runner), base_url=ORIGIN)
        sign_in(client, project.judging, "Lea", "lead")
        client.headers["X-CSRF-Token"] = token_of(client)
        client.runner = runner
        yield client


def ask(client, text, name="-own"):
    """Ask a query with the form, and return the part of the page with the ranking of a retriever."""
    page = client.post("/try", data={"q": text})
    parts = [part.replace("&amp;", "&") for part in re.findall(r'data-part="(/try/[^"]+)"', page.text)]
    assert [part.partition("?")[0] for part in parts] == ["/try/old", "/try/-own%2Fs"]
    return client.get(next(part for part in parts if part.startswith(f"/try/{name}"))).text


@pytest.mark.slow
def test_each_retriever_answers_and_the_query_becomes_a_question_to_judge(pages):
    project = pages.runner.project
    own, bm25 = (ask(pages, EVIL, name) for name in ("-own", "old"))
    assert re.search(r"2 documents in [\d.e-]+ ms", own)
    assert "Rule d1" in own
    assert "Rule d" in bm25
    page = pages.post("/try/save", data={"q": EVIL})
    assert page.url.path.startswith("/judge/")
    assert "<script>alert" not in page.text + pages.get("/jobs").text
    (question,) = [question for question in project.judging.questions.values() if question.origin == "page"]
    assert (question.text, question.author) == (EVIL, "Lea")
    assert {"d1", "d2"} <= set(project.judging.pools[question.id])
    # It is a query of the next benchmark.
    assert Project(project.file.path).collection.queries[question.id].text == EVIL


@pytest.mark.slow
def test_a_retriever_that_fails_or_ends_is_named_and_asked_again(pages):
    assert "ValueError: no such index" in ask(pages, "fail")
    assert "the process ended with code 3: no \N{REPLACEMENT CHARACTER} memory" in ask(pages, "end")
    assert "2 documents" in ask(pages, "ties with a child")


def test_a_query_does_not_wait_for_ever_for_another_one(pages, monkeypatch):
    monkeypatch.setattr(live, "_BUSY", 0.1)
    retriever = pages.runner.live["-own/s"]
    with retriever._lock, pytest.raises(InputError, match="busy with another query"):  # noqa: SLF001
        retriever.search("ties", 3)


@pytest.mark.slow
def test_a_retriever_that_hangs_is_ended(pages):
    pages.runner.live["-own/s"].timeout = 1.0
    assert "no response in 1 s" in ask(pages, "hang")
    pages.runner.live["-own/s"].timeout = 60.0
    assert "Rule d1" in ask(pages, "ties after it")


def test_a_query_without_words_is_not_asked(pages):
    before = len(pages.runner.jobs.jobs())
    assert "is sent to the retrievers of this project" in pages.post("/try", data={"q": "  "}).text
    assert len(pages.runner.jobs.jobs()) == before


@pytest.mark.slow
def test_only_queries_that_were_asked_are_answered_and_only_so_many_a_day(pages):
    assert pages.get("/try/-own/s", params={"q": "never asked"}).status_code == 404
    assert pages.post("/try/save", data={"q": "never asked"}).status_code == 404
    assert pages.get("/try/nobody", params={"q": EVIL}).status_code == 404
    before = len(pages.runner.jobs.jobs())
    answers = [pages.post("/try", data={"q": f"query {number}"}) for number in range(10)]
    assert len(pages.runner.jobs.jobs()) == 9
    assert [answer.status_code for answer in answers] == [200] * (9 - before) + [429] * (before + 1)
    assert "live_queries in rankgauge.toml" in answers[-1].text

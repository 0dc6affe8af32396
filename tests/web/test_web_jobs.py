"""Jobs that a lead starts on a page, run by processes of a server."""

import json
import re
import sys
import threading
import time

import pytest
from answer_server import supporting
from evaluated_project import create_evaluated
from judging_pages import ORIGIN, sign_in, token_of
from loopback import serving
from starlette.testclient import TestClient

from rankgauge.store import Job
from rankgauge.web import jobs as module, judging_app
from rankgauge.web.jobs import Runner, title_of

SLOW = """
import pathlib, time
def search(text, k=10):
    with open("asked.txt", "a") as file:
        file.write(text + "\\n")
    number = len(pathlib.Path("asked.txt").read_text().splitlines())
    while not pathlib.Path(f"go-{number}").exists() and not pathlib.Path("go").exists():
        time.sleep(0.02)
    return [f"d{n}" for n in range(5)]
"""


@pytest.fixture
def slow(tmp_path, request, monkeypatch):
    """A project whose retriever waits for a file."""
    if getattr(request, "param", "") == "postgres":
        monkeypatch.setenv("RANKGAUGE_STORE", request.getfixturevalue("postgres"))
    elif getattr(request, "param", "") == "relative":
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("RANKGAUGE_STORE", "other.db")
    project = create_evaluated(tmp_path / "handbook")
    (project.file.folder / "slow.py").write_text(SLOW)
    file = project.file.path
    text = file.read_text().partition("[retrievers.new]")[0]
    file.write_text(f'timed = 0\n{text}[retrievers.slow]\ntype = "python"\ncall = "slow:search"\n')
    project = type(project)(file)
    with project.open_judging(), project.evaluations:
        yield project


@pytest.fixture
def lead(slow):
    """The pages of a lead, with a runner of jobs."""
    with Runner(slow) as runner:
        client = TestClient(judging_app(slow.judging, evaluations=slow, runner=runner), base_url=ORIGIN)
        sign_in(client, slow.judging, "Lea", "lead")
        client.headers["X-CSRF-Token"] = token_of(client)
        client.runner = runner
        yield client
        if runner.started is not None:
            runner.started[1].kill()
            runner.started[1].communicate()


def job_once(client, condition):
    """Return the latest job once a condition holds."""
    until = time.monotonic() + 60
    while not condition(client.runner.jobs.jobs()[0]):
        assert time.monotonic() < until, client.runner.jobs.jobs()[0]
        time.sleep(0.05)
    return client.runner.jobs.jobs()[0]


def asked(project):
    path = project.file.folder / "asked.txt"
    return path.read_text().splitlines() if path.exists() else []


def begin(client, project):
    """Start the benchmark on the page, and wait until it asks the retriever."""
    page = client.get("/jobs").text
    command = re.search(r'value="(\d)">\s*<button>Run the retrievers', page)[1]
    assert client.post("/jobs", data={"command": command, "only": "slow"}).status_code == 200
    job_once(client, lambda job: asked(project))


@pytest.mark.slow
def test_a_benchmark_is_run_and_its_evaluation_saved(lead, slow):
    begin(lead, slow)
    assert "1: Run the retrievers and evaluate them (slow)" in lead.get("/jobs").text
    assert "data-again" in lead.get("/jobs").text  # the page follows
    (slow.file.folder / "go").touch()
    assert job_once(lead, lambda job: not job.open).state == "done"
    assert [entry.run for entry in slow.evaluations.entries()] == ["old", "new", "slow"]
    assert "data-again" not in lead.get("/jobs").text


@pytest.mark.slow
def test_a_killedstarted_is_started_again_and_asks_nothing_twice(lead, slow):
    begin(lead, slow)
    for number in (1, 2, 3):
        (slow.file.folder / f"go-{number}").touch()
    job_once(lead, lambda job: len(asked(slow)) == 4)
    lead.runner.started[1].kill()
    (slow.file.folder / "go").touch()
    job = job_once(lead, lambda job: not job.open)
    assert (job.state, job.attempt) == ("done", 2)
    # Only the question without a stored answer is asked again.
    assert len(asked(slow)) == len({*asked(slow)}) + 1


NOISE = """
import subprocess
subprocess.Popen(["sleep", "30"])
subprocess.run("yes | head -c 200000 >&2", shell=True)
"""


@pytest.mark.slow
def test_a_retriever_that_floods_standard_error_and_leaves_a_process_stops_no_job(lead, slow):
    (slow.file.folder / "slow.py").write_text(NOISE + SLOW)
    (slow.file.folder / "go").touch()
    begin(lead, slow)
    assert job_once(lead, lambda job: not job.open).state == "done"
    lead.runner.add(("evaluate", "--again"), "Lea")
    assert job_once(lead, lambda job: not job.open).arguments[0] == "evaluate"


@pytest.mark.slow
def test_a_job_runs_in_the_store_of_its_server_though_the_project_file_now_names_another(lead, slow):
    slow.file.path.write_text('store = "other.db"\n' + slow.file.text)
    lead.runner.add(("evaluate", "--again"), "Lea")
    assert job_once(lead, lambda job: not job.open).state == "done"
    assert not (slow.file.folder / "other.db").exists()


@pytest.mark.slow
def test_a_job_that_its_process_does_not_begin_is_not_started_forever(lead, monkeypatch):
    monkeypatch.setattr(lead.runner, "_command", lambda *_: [sys.executable, "-c", ""])
    lead.runner.add(("bench",), "Lea")
    job = job_once(lead, lambda job: not job.open)
    assert (job.state, job.message) == ("failed", "its process ended before it began")


@pytest.mark.slow
def test_jobs_go_on_after_a_process_could_not_be_started(lead, monkeypatch):
    with monkeypatch.context() as missing:
        missing.setattr(sys, "executable", "/nowhere/python")
        lead.runner.add(("evaluate", "--again"), "Lea")
        time.sleep(1.5)
        assert job_once(lead, lambda job: True).state == "waiting"
    job = job_once(lead, lambda job: not job.open)
    assert job.attempt == 1


@pytest.mark.slow
@pytest.mark.parametrize("slow", ["sqlite", "postgres", "relative"], indirect=True)
def test_a_job_goes_on_while_its_server_ends_and_two_servers_run_it_once(lead, slow):
    begin(lead, slow)
    with Runner(slow) as other:
        time.sleep(1.5)  # it looks for jobs
        assert [job.state for job in other.jobs.jobs()] == ["running"]
    lead.runner.__exit__()
    (slow.file.folder / "go").touch()
    assert job_once(lead, lambda job: not job.open).state == "done"
    assert len(asked(slow)) == len({*asked(slow)})


@pytest.mark.slow
def test_a_job_is_run_again_only_if_its_process_shows_no_sign_of_life(lead, monkeypatch):
    monkeypatch.setattr(module, "_LIFELESS", 1.5)
    jobs = lead.runner.jobs
    other = jobs.add(("evaluate", "--again"), author="Lea", state="running")  # by a process of another server
    for beat in range(30):
        jobs.change(other.id, {}, beat=beat)
        time.sleep(0.1)
    assert (jobs.job(other.id).state, jobs.job(other.id).attempt) == ("running", 0)
    job = job_once(lead, lambda job: not job.open)
    assert (job.state, job.attempt) == ("done", 1)


@pytest.mark.slow
def test_a_cancelled_job_ends_although_its_retriever_hangs(lead, slow):
    begin(lead, slow)
    number = lead.runner.jobs.jobs()[0].id
    assert lead.post(f"/jobs/{number}/cancel").status_code == 200
    job = job_once(lead, lambda job: not job.open)
    assert (job.state, job.message) == ("cancelled", "cancelled by Lea")


@pytest.mark.slow
def test_a_job_that_cannot_begin_or_fails_says_why(lead, slow):
    lead.runner.add(("bench", "--only", "nobody"), "Lea")
    assert "nobody" in job_once(lead, lambda job: not job.open).message
    slow.file.path.write_text("collection = ")
    lead.runner.add(("bench",), "Lea")
    job = job_once(lead, lambda job: not job.open)
    assert job.state == "failed"
    assert "rankgauge.toml" in job.message


def test_an_unknown_command_or_retriever_is_not_started(lead):
    for form in ({"command": "9"}, {"command": "0", "only": "nobody"}, {"command": "x"}):
        assert lead.post("/jobs", data=form).status_code == 400, form
    assert lead.runner.jobs.jobs() == []


def test_answers_are_judged_by_a_model_only_within_a_budget(lead, slow):
    table = '[answers]\nfile = "answers.jsonl"\nmodel = "small"\n\n[models.small]\nurl = "http://x/v1"\nmodel = "m"\n'
    for limit, allowed in (("", False), ("max_cost = 1.0\n", True)):
        slow.file.path.write_text(f"{slow.file.text}\n{table}{limit}")
        page = lead.get("/jobs").text
        assert ("set max_cost" in page) is not allowed


def test_a_job_that_does_not_exist_is_not_cancelled(lead):
    assert lead.post(f"/jobs/{10**30}/cancel").status_code == 200


def test_an_invalid_retriever_does_not_stop_the_pages(slow):
    slow.file.path.write_text('collection = "."\nretrievers = { wrong = 3 }\n')
    assert [*Runner(type(slow)(slow.file.path)).live] == ["wrong"]


def test_a_title_says_what_a_job_does():
    job = Job(1, "", "Ann", ("bench", "--only", "bm25", "--trust"), "waiting", 0, 0, None, "", None)
    assert title_of(job) == "Run the retrievers and evaluate them (bm25)"


@pytest.fixture
def judged_by(lead, slow):
    """Return a function that makes a model at an address the judge of eight answers."""

    def name(url):
        rows = [
            {"id": f"q{n}", "question": f"Which river {n}?", "answer": f"River {n} is long.", "contexts": ["River."]}
            for n in range(8)
        ]
        (slow.file.folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        slow.file.path.write_text(
            f'{slow.file.text}\n[answers]\nfile = "answers.jsonl"\nmodel = "small"\n\n'
            f'[models.small]\nurl = "{url}"\nmodel = "m"\ninput_price = 1.0\noutput_price = 1.0\nmax_cost = 5.0\n'
        )

    return name


@pytest.mark.slow
def test_an_evaluation_of_answers_that_was_killed_pays_for_nothing_twice(lead, judged_by):
    go_on = threading.Event()

    def reply(body, before):
        if before >= 2:
            go_on.wait(60)
        return supporting(body, before)

    with serving(reply) as model:
        judged_by(model.url)
        lead.runner.add(("answers", "evaluate", "-m", "Faithfulness"), "Lea")
        job_once(lead, lambda job: len(model.bodies) >= 6)
        time.sleep(1)  # the first verdicts are stored
        lead.runner.started[1].kill()
        go_on.set()
        job = job_once(lead, lambda job: not job.open)
    assert (job.state, job.attempt, job.message) == ("done", 2, "")
    contents = [json.dumps(body["messages"]) for body in model.bodies]
    # Only what had no reply when it was killed is asked again: four questions are sent at once.
    assert (len({*contents}), len(contents)) == (8, 12)
    assert lead.runner.project.evaluations.entries()[-1].means["Faithfulness"] == 1.0


@pytest.mark.slow
def test_a_job_whose_model_hangs_is_cancelled(lead, judged_by):
    hanging = threading.Event()

    def reply(body, before):
        hanging.wait(60)
        return supporting(body, before)

    with serving(reply) as model:
        judged_by(model.url)
        number = lead.runner.add(("answers", "evaluate"), "Lea").id
        job_once(lead, lambda job: model.bodies)
        assert lead.post(f"/jobs/{number}/cancel").status_code == 200
        job = job_once(lead, lambda job: not job.open)
        hanging.set()
    assert (job.state, job.message) == ("cancelled", "cancelled by Lea")

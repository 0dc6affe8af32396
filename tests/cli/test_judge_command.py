"""``rankgauge judge``."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from command import run
from loopback import serving

import rankgauge
from rankgauge.judging import Choice, JudgingProject

SAMPLE = rankgauge.sample_path("qrels.txt").parent
BM25, KEYWORD = (str(SAMPLE / "runs" / name) for name in ("bm25.run", "keyword.run"))
QUERIES = str(SAMPLE / "queries.jsonl")


@pytest.fixture
def project(tmp_path):
    path = tmp_path / "judging.db"
    done = run("judge", "create", "--store", path, "--questions", QUERIES, "--title", "Help centre")
    assert done.returncode == 0, done.stderr
    assert "Help centre" in done.stdout
    return path


def test_a_created_project_has_its_questions_and_names_the_next_step(project):
    done = run("judge", "status", "--store", project, "--as", "json")
    told = json.loads(done.stdout)
    assert (told["questions"], told["pooled"], told["mode"]) == (30, 0, "choice")
    assert "rankgauge judge pool" in told["next_step"]


def test_creating_a_project_again_is_refused(project):
    done = run("judge", "create", "--store", project)
    assert done.returncode == 2
    assert "a judging project already exists" in done.stderr


def test_a_missing_project_is_an_error_with_its_fix(tmp_path):
    done = run("judge", "status", "--store", tmp_path / "nope.db")
    assert done.returncode == 2
    assert f"fix: create it: rankgauge judge create --questions FILE --store {tmp_path / 'nope.db'}" in done.stderr
    assert not (tmp_path / "nope.db").exists()


def test_a_store_of_evaluations_has_no_judging_project_until_it_is_created(tmp_path):
    store = ("--store", tmp_path / "store.db")
    assert run("evaluate", SAMPLE, BM25, "--save", *store).returncode == 0
    for words in (("status",), ("invite", "Ann"), ("questions", QUERIES), ("guideline",)):
        done = run("judge", *words, *store)
        assert done.returncode == 2
        assert "there is no judging project in this store yet" in done.stderr
        assert "rankgauge judge create --questions FILE --store" in done.stderr
    assert run("judge", "create", *store).returncode == 0
    assert run("judge", "status", *store).returncode == 0
    assert "bm25" in run("history", "list", *store).stdout


def test_settings_change_and_are_printed(project):
    done = run("judge", "settings", "--store", project, "--mode", "graded", "--field", "title")
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(None, 1) for line in done.stdout.splitlines() if " " in line)
    assert (lines["mode"], lines["shown"], lines["fields"]) == ("graded", "1", "title")


def test_an_impossible_setting_is_refused(project):
    done = run("judge", "settings", "--store", project, "--shown", "7")
    assert done.returncode == 2
    assert "shown=7 is not valid" in done.stderr


def test_a_guideline_from_a_file_is_the_next_version(project, tmp_path):
    file = tmp_path / "guideline.md"
    file.write_text("Pick the best.", encoding="utf-8")
    done = run("judge", "guideline", "--store", project, file)
    assert (done.stdout, done.stderr) == ("Pick the best.\n", "version 2\n")
    assert run("judge", "guideline", "--store", project).stderr == "version 2\n"
    item = f"1. **First**, {'relevant words ' * 9}end"
    file.write_text(f"{item}\n\n{'y' * 90}\n")
    run("judge", "guideline", "--store", project, file)
    printed = run("judge", "guideline", "--store", project).stdout
    first, second = printed.splitlines()[:2]
    assert len(first) <= 80
    assert second.startswith("   ")
    assert printed.split() == file.read_text().split()
    missing = run("judge", "guideline", "--store", project, tmp_path / "none.md")
    assert missing.returncode == 2
    assert "there is no such file" in missing.stderr


def test_an_invitation_prints_the_page_at_which_a_judge_signs_in(project):
    done = run("judge", "invite", "--store", project, "Ann", "--role", "lead")
    assert done.returncode == 0
    assert done.stdout.startswith("/join/")
    assert "Ann (lead)" in done.stderr
    assert '"name": "Ann"' in run("judge", "status", "--store", project, "--as", "json").stdout


def test_a_pool_of_runs_and_searches_is_reported_and_a_second_time_adds_nothing(project):
    words = ("judge", "pool", "--store", project, "--collection", SAMPLE, "--run", BM25, "--run", KEYWORD)
    done = run(*words, "-k", "5", "--bm25", "--dense", "--random", "2")
    assert done.returncode == 0, done.stderr
    assert "new documents to judge" in done.stdout
    again = json.loads(run(*words, "-k", "5", "--as", "json").stdout)
    assert again["new"] == 0
    assert {(each["name"], each["kind"]) for each in again["sources"]} == {
        ("bm25", "run"),
        ("keyword", "run"),
        ("bm25", "search"),
        ("hashing", "search"),
        ("random", "random"),
    }
    status = json.loads(run("judge", "status", "--store", project, "--as", "json").stdout)
    assert (status["pooled"], status["candidates"]) == (30, again["documents"])
    assert "rankgauge serve" in status["next_step"]


def test_an_unknown_encoder_is_refused(project):
    done = run("judge", "pool", "--store", project, "--collection", SAMPLE, "--dense", "magic")
    assert done.returncode == 2
    assert "choose hashing, use-multilingual" in done.stderr


def test_hidden_tests_are_added_from_a_file(project, tmp_path):
    run("judge", "pool", "--store", project, "--collection", SAMPLE, "--run", BM25)
    file = tmp_path / "gold.csv"
    missing = run("judge", "gold", "--store", project, file)
    assert "there is no such file" in missing.stderr
    with JudgingProject(project) as opened:
        documents = list(opened.pools["q05"][:2])
    row = f"q05,{';'.join(documents)},{documents[0]}"
    file.write_text(f"question,documents,accepted\n{row}\n", encoding="utf-8")
    done = run("judge", "gold", "--store", project, file)
    assert (done.returncode, done.stderr) == (0, "added 1 hidden test\n")


def chosen_first(body, _before):
    """Rank documents in their order, or choose the first."""
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    data = {"answer": "1", "reason": "other"} if "answer" in properties else {"ranking": []}
    message = {"role": "assistant", "content": json.dumps(data)}
    return 200, {}, {"choices": [{"message": message, "finish_reason": "stop"}]}


def test_a_model_ranks_candidates_and_answers_the_tasks_of_people(project):
    with serving(chosen_first) as server:
        model = ("--url", server.url, "--model", "small")
        done = run("judge", "pool", "--store", project, "--collection", SAMPLE, "--run", BM25, "-k", "4", *model)
        assert done.returncode == 0, done.stderr
        assert "a document that looks relevant need not be relevant or correct" in " ".join(done.stdout.split())
        with JudgingProject(project) as opened:
            ann = opened.add_judge("Ann")[0]
            task = opened.next_task(ann.id).presentation
            opened.record(Choice("c1", task.id, ann.id, "none"))
        done = run("judge", "ask-model", "--store", project, *model)
    assert done.returncode == 0, done.stderr
    assert "small: 1 judgment, 0 missing" in done.stdout
    status = json.loads(run("judge", "status", "--store", project, "--as", "json").stdout)
    assert status["statuses"] == {"counted": 1, "model": 1}
    assert "looks relevant" in status["warning"]
    assert "looks relevant" in run("judge", "relevance", "--store", project).stdout
    assert "looks relevant" in run("judge", "agreement", "--store", project).stderr


def test_a_model_needs_an_address_and_a_name(project):
    for words in (("--url", "http://localhost:1"), ("--model", "small"), ()):
        done = run("judge", "ask-model", "--store", project, *words)
        assert done.returncode == 2
        assert "--url URL" in done.stderr


@pytest.mark.slow
def test_serve_serves_the_page_of_its_link_until_interrupted(project, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "rankgauge", "serve", "--store", str(project), "--port", str(port)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path) as process:
        try:
            link = process.stdout.readline().strip()
            assert link.startswith(f"http://127.0.0.1:{port}/join/")
            page = fetched(link)
        finally:
            process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
    assert "works once. Press Ctrl-C to stop" in said
    assert "Links of earlier starts no longer work; each start prints a new one." in said
    assert "Sign in" in page


def fetched(link):
    """Return the page of a link as soon as it is served."""
    for _ in range(100):
        try:
            with urllib.request.urlopen(link) as page:
                return page.read().decode()
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"no page at {link}")


def test_questions_are_drawn_from_a_log_and_printed_as_queries(project, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("query,count\nlate fees,5\nwifi,2\nparking,1\n", encoding="utf-8")
    done = run("judge", "questions", "--store", project, log, "--sample", "2", "--seed", "3")
    assert done.returncode == 0, done.stderr
    printed = run("judge", "questions", "--store", project).stdout
    rows = [json.loads(line) for line in printed.splitlines()]
    assert len(rows) == 32
    assert {row["text"] for row in rows[30:]} <= {"late fees", "wifi", "parking"}
    file = tmp_path / "queries.jsonl"
    file.write_text(printed, encoding="utf-8")
    assert len(rankgauge.corpus.read_queries(file)) == 32

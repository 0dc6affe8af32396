"""``rankgauge logs sample``: from a log into a question set and a judging project."""

import json

import pytest
from command import run

import rankgauge
from rankgauge.judging import JudgingProject
from rankgauge.production import QuestionSet


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "log.csv"
    rows = [("fees", 39), ("hours", 9), ("cards", 5), ("wifi", 3), ("rooms", 2), ("print", 1)]
    file.write_text("query,count\n" + "".join(f"{text},{count}\n" for text, count in rows))
    return file


def test_a_log_becomes_a_set_a_refresh_and_questions_to_judge(tmp_path, log):
    path, project = tmp_path / "set.jsonl", tmp_path / "judging.db"
    assert run("judge", "create", "--store", project).returncode == 0
    done = run("logs", "sample", log, "-n", 2, "--into", path, "--part", "core")
    assert done.returncode == 0, done.stderr
    sentinels = tmp_path / "failures.csv"
    sentinels.write_text("id,question\ns1,login fails\n", encoding="utf-8")
    done = run(
        "logs",
        "sample",
        log,
        "-n",
        2,
        "--into",
        path,
        "--sentinels",
        sentinels,
        "--judge",
        "--store",
        project,
        "--seed",
        1,
    )
    assert done.returncode == 0, done.stderr
    assert "3 added, 2 kept, 0 retired" in done.stdout
    found = QuestionSet.read(path)
    assert [len(found.part(part)) for part in ("core", "sentinel", "rotating")] == [2, 1, 2]
    assert QuestionSet.read(tmp_path / "set.v1.jsonl").version == 1
    with JudgingProject(project) as opened:
        stored = opened.questions
        assert len(stored) == 3
        for each in found.part("rotating"):
            assert stored[each.id].origin == "log"
            assert stored[each.id].probability == each.probability
    pooled = run("judge", "pool", "--store", project, "--collection", _collection(tmp_path), "--bm25")
    assert pooled.returncode == 0, pooled.stderr


def test_a_sample_that_changes_nothing_makes_no_version(tmp_path, log):
    path = tmp_path / "set.jsonl"
    run("logs", "sample", log, "-n", 3, "--into", path)
    before = path.read_bytes()
    done = run("logs", "sample", log, "-n", 3, "--into", path)
    assert "nothing changed, still version 1: 3 questions" in done.stdout
    assert path.read_bytes() == before
    assert not (tmp_path / "set.v1.jsonl").exists()
    assert "nothing changed" not in run("logs", "sample", log, "-n", 3, "--into", path, "--seed", 1).stdout
    assert QuestionSet.read(path).version == 2


def test_without_a_project_no_set_is_written(tmp_path, log):
    path = tmp_path / "set.jsonl"
    done = run("logs", "sample", log, "-n", 2, "--into", path, "--judge", "--store", tmp_path / "none.db")
    assert done.returncode == 2
    assert "there is no store yet" in done.stderr
    assert not path.exists()


def _collection(folder):
    file = folder / "documents.jsonl"
    words = ("cards", "wifi", "rooms", "print", "hours", "fees", "login")
    file.write_text("".join(json.dumps({"_id": w, "text": f"about {w}"}) + "\n" for w in words))
    return file


def test_a_sample_alone_is_printed_with_its_probabilities(log):
    done = run("logs", "sample", log, "-n", 3, "--as", "csv")
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert "probability" in lines[0]
    assert "stratum" in run("logs", "sample", log, "-n", 3).stdout


def test_an_event_log_is_sampled_by_how_often_questions_were_asked(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    log = tmp_path / "log.parquet"
    duckdb.connect().execute(
        f"""COPY (SELECT 'e' || i AS event_id, 'question' AS kind,
        TIMESTAMPTZ '2026-05-01 12:00:00+02' AS time, 'q' || i AS question_id,
        CASE WHEN i < 6 THEN 'late fees' WHEN i < 9 THEN 'Late fees?' ELSE 'wifi ' || i END AS text
        FROM range(12) AS t(i)) TO '{log}'"""
    )
    drawn = rankgauge.production.sample_questions(rankgauge.production.EventLog(log), 2)
    assert {each.text: each.frequency for each in drawn.questions}["late fees"] == 9
    done = run("logs", "sample", log, "-n", 4, "--as", "csv")
    assert done.returncode == 0, done.stderr
    assert "late fees" in done.stdout


def test_options_of_a_set_need_one(log):
    done = run("logs", "sample", log, "--part", "core")
    assert done.returncode == 2
    assert "need a question set: --into SET" in done.stderr

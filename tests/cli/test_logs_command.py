"""``rankgauge logs``: production logs."""

import json

import pytest
from command import run

duckdb = pytest.importorskip("duckdb")


def test_show_counts_events_by_kind(tmp_path):
    log = tmp_path / "log.parquet"
    duckdb.connect().execute(
        f"""COPY (SELECT 'e' || i AS event_id, if(i = 0, 'question', 'click') AS kind,
        TIMESTAMPTZ '2026-05-01 12:00:00+02' AS time, 'q1' AS question_id FROM range(3) AS t(i))
        TO '{log}'"""
    )
    done = run("logs", "show", log, "--as", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["rows"] == [
        {"event": "question", "number": 1, "meaning": "a user asked a question"},
        {"event": "click", "number": 2, "meaning": "a result was opened"},
    ]
    shown = " ".join(run("logs", "show", log).stdout.split())
    assert "1 question, 3 events, 2026-05-01" in shown


def test_a_missing_log_is_refused(tmp_path):
    done = run("logs", "show", tmp_path / "log")
    assert done.returncode == 2
    assert "there is no such log" in done.stderr

"""A user who is removed from a log: no byte of theirs is left, and the events of others are unchanged."""

import json
import os

import pytest

from rankgauge.errors import InputError, StorageError
from rankgauge.production import EventLog, import_log

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")


def event(number, *, user=None, session="s0", question=None, text=""):
    kind = {"query_id": f"q{number if question is None else question}", "timestamp": f"2026-05-01T12:{number:02}:00Z"}
    who = {"session_id": session} | ({"client_id": user} if user else {})
    if question is not None:
        return kind | who | {"action_name": "click", "event_attributes": {"object": {"object_id": f"d{number}"}}}
    return kind | who | {"user_query": text or f"question {number}"}


EVENTS = [
    event(1, user="zoe", session="s1", text="secret of ann"),
    event(2, session="s1", question=1),  # a click without a user
    event(3, session="s1", text="anonymous in the session of ann"),
    event(4, user="zoey", session="s2", text="by another"),
    event(5, user="bob", session="s1", text="shares a session"),
    event(6, session="s1", question=5),
    event(7, session="s3", text="by nobody"),
]
LEFT = ["by another", "by nobody", "shares a session"]


def imported(folder, rows=EVENTS, **settings):
    for number, row in enumerate(rows):  # a file each
        source = folder.parent / f"{number}.jsonl"
        source.write_text(json.dumps(row) + "\n", encoding="utf-8")
        import_log(source, folder, **settings)
    return EventLog(folder)


def texts(log):
    with EventLog(log.path).connection() as connection:
        rows = connection.execute("SELECT text FROM events WHERE text IS NOT NULL ORDER BY text").fetchall()
    return [text for (text,) in rows]


def test_no_byte_of_a_user_is_left_and_others_are_unchanged(tmp_path):
    log = imported(tmp_path / "log")
    before = {path: path.read_bytes() for path in (tmp_path / "log").glob("*.parquet")}
    assert log.forget_user("zoe") == {"event": 3, "question": 2, "rewritten file": 3}
    assert texts(log) == LEFT
    everything = b"".join(path.read_bytes() for path in (tmp_path / "log").iterdir())
    for word in (b"secret of ann", b"anonymous in", b'"zoe"'):
        assert word not in everything
    same = [path for path, content in before.items() if path.read_bytes() == content]
    assert len(same) == 4
    segments = json.loads((tmp_path / "log" / "manifest.json").read_text())["segments"]
    assert [segment["events"] for segment in segments] == [0, 0, 0, 1, 1, 1, 1]
    assert all(oct(path.stat().st_mode & 0o777) == "0o600" for path in before)
    # The log can be imported into again.
    import_log(tmp_path / "3.jsonl", tmp_path / "log")
    assert texts(log) == LEFT
    with pytest.raises(InputError, match="the log has no user 'zoe'"):
        log.forget_user("zoe")


def test_a_hashed_user_is_found_with_the_key_only(tmp_path, monkeypatch):
    log = imported(tmp_path / "log", personal="hash")
    with monkeypatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
        with pytest.raises(InputError, match="run this on the machine that imported the log"):
            log.forget_user("zoe")
    assert log.forget_user("zoe")["event"] == 3
    assert texts(log) == LEFT


def test_refused_rows_of_a_user_are_removed(tmp_path):
    rows = [EVENTS[0], *({**EVENTS[3], "client_id": name, "timestamp": "never"} for name in ("zoe", "zoey"))]
    log = imported(tmp_path / "log", rows)
    refused = tmp_path / "log" / "refused.jsonl"
    assert refused.read_text().count("zoe") == 2
    assert log.forget_user("zoe")["refused row"] == 1
    assert "zoey" in refused.read_text()
    assert refused.read_text().count("zoe") == 1
    import_log(tmp_path / "2.jsonl", tmp_path / "log")  # its row is known
    assert refused.read_text().count("zoey") == 1


@pytest.mark.parametrize("pattern", ["a.parquet", "*.parquet"])
def test_files_without_a_folder_keep_their_columns_and_rows(pattern, tmp_path):
    target = tmp_path / "a.parquet"
    duckdb.execute(
        f"""COPY (SELECT i AS event_id, 'question' AS kind, TIMESTAMPTZ '2026-05-01 12:00:00+00' AS time,
        'q' || i AS question_id, 'u' || (i % 10) AS user_id, i * 2 AS own FROM range(10000) t(i))
        TO '{target}' (ROW_GROUP_SIZE 2048)"""
    )
    assert EventLog(tmp_path / pattern).forget_user("u3") == {"event": 1000, "question": 1000, "rewritten file": 1}
    rows = duckdb.execute(f"SELECT event_id, own FROM '{target}'").fetchall()
    assert rows == [(number, number * 2) for number in range(10000) if number % 10 != 3]
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.skipif(os.name == "nt", reason="limits of files are those of POSIX")
def test_a_full_disk_leaves_whole_files(tmp_path):
    import resource

    log = imported(tmp_path / "log")
    before = sorted(path.name for path in (tmp_path / "log").iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        with pytest.raises((StorageError, InputError), match="cannot be written"):
            log.forget_user("zoe")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(path.name for path in (tmp_path / "log").iterdir()) == before
    assert len(texts(log)) == 5
    assert log.forget_user("zoe")["event"] == 3
    assert texts(log) == LEFT


def test_an_import_at_the_same_time_is_reported(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    log = imported(tmp_path / "log")
    with (tmp_path / "log" / ".lock").open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another import into this log is running"):
            log.forget_user("zoe")
    assert len(texts(log)) == 5

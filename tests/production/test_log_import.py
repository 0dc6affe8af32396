"""Imported logs: every row is an event, a duplicate, or rejected and counted."""

import csv
import gzip
import io
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from rankgauge.errors import FormatError, InputError
from rankgauge.production import COLUMNS, EventLog, import_log, sources
from rankgauge.production.log import LogFolder

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

DATA = Path(os.environ.get("RANKGAUGE_TEST_DATA", "/nowhere")) / "clicks-ubi"
NOW = datetime(2026, 6, 1, tzinfo=UTC)
NOON = "2026-05-01T12:00:00Z"


ALL_BUT_SOURCE = ", ".join(name for name in COLUMNS if name != "source")


def rows_of(log, columns=ALL_BUT_SOURCE):
    with EventLog(log).connection() as connection:
        return connection.execute(f"SELECT {columns} FROM events ORDER BY event_id").fetchall()


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def question(number=1, **more):
    return {
        "query_id": f"q{number}",
        "user_query": f"question {number}",
        "client_id": "u1",
        "timestamp": f"2026-05-01T12:00:{number:02}Z",
    } | more


def event(action, number=1, document=None, ordinal=None, **more):
    attributes = {}
    if document is not None:
        attributes["object"] = {"object_id": document}
    if ordinal is not None:
        attributes["position"] = {"ordinal": ordinal}
    return {
        "action_name": action,
        "query_id": f"q{number}",
        "session_id": "s1",
        "timestamp": f"2026-05-01T12:00:{number:02}.500Z",
        "event_attributes": attributes | more.pop("attributes", {}),
    } | more


@pytest.mark.skipif(not DATA.exists(), reason="needs the test data")
def test_a_whole_log_of_ubi_agrees_with_counting_its_lines(tmp_path):
    queries, events = lines(DATA / "ubi_queries.jsonl.gz"), lines(DATA / "ubi_events.jsonl.gz")
    report = import_log([DATA / "ubi_queries.jsonl.gz", DATA / "ubi_events.jsonl.gz"], tmp_path / "log", now=NOW)
    assert report.rows == len(queries) + len(events) == 3921
    assert not report.refused
    actions = Counter(each["action_name"] for each in events)
    assert report.events["impression"] == actions["impression"]
    assert report.events["click"] == actions["click"]
    asked = {(q["query_id"], q["timestamp"], q["user_query"]) for q in queries}
    found = {
        (q["query_id"], q["timestamp"], tuple(q["query_response_hit_ids"]))
        for q in queries
        if q.get("query_response_hit_ids") is not None
    }
    assert report.events["question"] == len(asked)
    assert report.events["retrieval"] == len(found)
    everything = len(events) + len(queries) + sum(q.get("query_response_hit_ids") is not None for q in queries)
    assert sum(report.events.values()) + report.identical == everything
    assert report.duplicates == 0
    shown = {
        (e["query_id"], e["event_attributes"]["object"]["object_id"])
        for e in events
        if e["action_name"] == "impression"
    }
    clicks = [e for e in events if e["action_name"] == "click"]
    assert report.unseen_clicks == sum(
        (e["query_id"], e["event_attributes"]["object"]["object_id"]) not in shown for e in clicks
    )
    known = {q["query_id"] for q in queries} | {query for query, _ in shown}
    assert report.questions == len(known)
    assert report.orphan_clicks == sum(e["query_id"] not in known for e in clicks) == 0
    # One application counts ranks from 0, the other from 1.
    assert report.first_ranks == {"esci_ubi_sample": 0, "Chorus": 1}
    ranks = Counter(
        e["event_attributes"]["position"]["ordinal"] + (e["application"] == "esci_ubi_sample") for e in clicks
    )
    with EventLog(tmp_path / "log").connection() as connection:
        counted = connection.execute("SELECT ranks[1], count(*) FROM events WHERE kind = 'click' GROUP BY 1").fetchall()
    assert dict(counted) == ranks


@pytest.mark.skipif(not DATA.exists(), reason="needs the test data")
def test_split_and_joined_files_give_the_same_log(tmp_path):
    import_log([DATA / "ubi_queries.jsonl.gz", DATA / "ubi_events.jsonl.gz"], tmp_path / "split")
    joined = import_log(DATA / "ubi_queries_events.ndjson.gz", tmp_path / "joined")
    assert joined.rows == 3921
    assert rows_of(tmp_path / "split") == rows_of(tmp_path / "joined")
    again = import_log(DATA / "ubi_queries_events.ndjson.gz", tmp_path / "split")
    assert not again.events
    assert again.identical == sum(joined.events.values()) + joined.identical


def test_an_event_with_an_unknown_name_is_kept_as_other(tmp_path):
    source = write(tmp_path / "ubi.jsonl", [question(), event("scroll")])
    report = import_log(source, tmp_path / "log")
    assert report.events == {"question": 1, "other": 1}
    assert rows_of(tmp_path / "log", "kind, label")[-1] == ("other", "scroll") or ("other", "scroll") in rows_of(
        tmp_path / "log", "kind, label"
    )
    mapped = import_log(source, tmp_path / "mapped", mapping={"kinds": {"scroll": "impression"}})
    assert mapped.events == {"question": 1, "impression": 1}


def test_users_precede_clients_and_sessions_those_of_attributes_in_ubi(tmp_path):
    inner = {"attributes": {"session_id": "inner"}}
    rows = [
        event("click", 1, "d", user_id="user", client_id="client", **inner),
        event("click", 2, "d", client_id="client", session_id=None, **inner),
    ]
    import_log(write(tmp_path / "ubi.jsonl", rows), tmp_path / "log")
    found = rows_of(tmp_path / "log", "question_id, user_id, session_id")
    assert set(found) == {("q1", "user", "s1"), ("q2", "client", "inner")}


def test_answers_citations_and_feedback_of_ubi(tmp_path):
    made = [
        question(query_attributes={"arm": "B", "device": "phone"}, query_response_hit_ids=["a", "b"]),
        event("answer_shown", attributes={"text": "It is 5.", "latency_ms": 812.5}),
        event("citation_impression", document="a", ordinal=1),
        event("citation_click", document="a", ordinal=1),
        event("feedback", attributes={"value": "down"}, message="wrong"),
        event("preference", attributes={"value": "both bad"}),
        event("abstention"),
        event("handover"),
        event("answerable", attributes={"value": 1}),
    ]
    report = import_log(write(tmp_path / "ubi.jsonl", made), tmp_path / "log")
    assert not report.refused
    with EventLog(tmp_path / "log").connection() as connection:
        found = connection.execute("SELECT * FROM questions")
        names = [column[0] for column in found.description]
        (row,) = found.fetchall()
    told = dict(zip(names, row, strict=True))
    assert told["arm"] == "B"
    assert told["attributes"]["device"] == "phone"
    assert told["answer_text"] == "It is 5."
    assert told["latency_ms"] == 812.5
    assert (told["citations_shown"], told["citations_clicked"], told["thumbs_down"]) == (1, 1, 1)
    assert (told["preference"], told["preference_label"]) == (None, "both bad")
    assert told["answerable"]
    assert told["abstained"]
    assert told["handed_over"]
    assert told["retrieved"] == 2


def test_times_need_a_zone(tmp_path):
    times = {
        "2026-05-01T12:00:00Z": "12:00",
        "2026-05-01 14:00:00+02:00": "12:00",
        "2026-05-01T12:00Z": "12:00",
        "2026-05-01T14:00+02:00": "12:00",
        "2026-05-01 12:00:00,500 UTC": "12:00",
        "2026-05-01 12:00": None,
        "2026-05-01T12:00:00": None,
        "2026-05-01": None,
        "yesterday": None,
        "": None,
        1777636800000: "12:00",
        1777636800: "12:00",
        "1777636800000000000": "12:00",
        20260501: None,
        "20260501120000": None,
        -5: None,
        1e300: None,
        "nan": None,
        "9999-12-31T23:59:59Z": "23:59",
        "9999-12-31T23:59:59-01:00": None,
        "0001-01-01T00:00:00Z": "00:00",
        "0001-01-01T00:00:00+00:01": None,
        "2026-05-01T12:00:00+25:00": None,
        "2026-05-01T12:00:00+99": None,
        "2026-05-01T12:00:00+10:60": None,
        "2026-05-01 12:00:00 CET": None,
        "2026-05-01T12:00:00+02:00:00": None,
        "2026-05-01T12:00:00 Mars/Base": None,
        "26-05-01T12:00:00Z": None,
        "infinity": None,
        "2026-02-30T12:00:00Z": None,
        "2026-05-01 14:00:00 Europe/Berlin": "12:00",
    }
    source = write(
        tmp_path / "ubi.jsonl", [question(1, query_id=f"t{i}", timestamp=each) for i, each in enumerate(times)]
    )
    report = import_log(source, tmp_path / "log")
    found = dict(rows_of(tmp_path / "log", "question_id, strftime(time, '%H:%M')"))
    assert found == {f"t{i}": at for i, at in enumerate(times.values()) if at is not None}
    assert {each.reason: each.rows for each in report.refused} == {
        "a time that cannot be read": 15,
        "a time without a zone": 3,
        "no time": 1,
        "a time outside the years 1 to 9999 in UTC": 2,
    }
    assert report.refused[1].first.endswith("ubi.jsonl:6")
    assert "9999-12-31" in EventLog(tmp_path / "log").summary().summary()
    with_zone = import_log(source, tmp_path / "zone", timezone="Europe/Berlin")
    assert {each.reason: each.rows for each in with_zone.refused} == {
        "a time that cannot be read": 15,
        "no time": 1,
        "a time outside the years 1 to 9999 in UTC": 2,
    }
    assert ("t6", "10:00") in rows_of(tmp_path / "zone", "question_id, strftime(time, '%H:%M')")
    with pytest.raises(InputError, match="not a time zone"):
        import_log(source, tmp_path / "other", timezone="Mars/Base")


@pytest.mark.parametrize("time", ["to_timestamp(253433923200)", "'soon'"])
def test_a_parquet_file_with_times_that_cannot_be_read_is_no_log(tmp_path, time):
    path = tmp_path / "log.parquet"
    duckdb.execute(f"COPY (SELECT 'e' AS event_id, 'question' AS kind, 'q' AS question_id, {time} AS time) TO '{path}'")
    with pytest.raises(FormatError, match=r"this is not a log: (.|\n)*fix: import it"):
        EventLog(path).summary()


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_row_of_a_columnar_log_that_is_not_utf8_is_refused_alone(tmp_path, suffix):
    import pyarrow as pa
    from pyarrow import feather, parquet

    texts = pa.Array.from_buffers(
        pa.string(),
        2,
        [None, pa.py_buffer(bytes.fromhex("000000000400000008000000")), pa.py_buffer(b"wifi\xff\xff\xff\xff")],
    )
    columns = {"event_id": ["a", "b"], "kind": ["question"] * 2, "time": [NOON] * 2, "question_id": ["p", "q"]}
    table = pa.table({**columns, "text": texts})
    path = tmp_path / f"log.{suffix}"
    (parquet.write_table if suffix == "parquet" else feather.write_feather)(table, path)
    report = import_log(path, tmp_path / "log")
    assert [(each.reason, each.rows) for each in report.refused] == [("a value that cannot be read", 1)]
    assert rows_of(tmp_path / "log", "question_id, text") == [("p", "wifi")]


def test_faults_are_counted_and_written_down(tmp_path):
    source = tmp_path / "ubi.jsonl"
    good = json.dumps(question())
    source.write_bytes(
        b"\n".join(
            (
                b"\xef\xbb\xbf" + good.encode(),
                b"",
                b"{broken",
                b"[1, 2]",
                b'"text"',
                b"42",
                '{"query_id": "über"'.encode("latin-1"),
                b'{"a": 1}',
                json.dumps(event("feedback", attributes={"value": "maybe"})).encode(),
                json.dumps(event("click", document="a", ordinal=-3)).encode(),
                json.dumps(event("click", document="a", ordinal=1.5)).encode(),
                json.dumps(event("click", document="a", ordinal="x")).encode(),
                good.encode()[:30],
            )
        )
    )
    report = import_log(source, tmp_path / "log", format="ubi", first_rank=1)
    assert report.rows == 12
    assert report.events == {"question": 1}
    assert {each.reason: each.rows for each in report.refused} == {
        "not a JSON object": 5,
        "not UTF-8": 1,
        "neither a query nor an event of UBI": 1,
        "a value that cannot be read": 1,
        "an invalid rank": 3,
    }
    kept = [json.loads(line) for line in (tmp_path / "log" / "refused.jsonl").read_text().splitlines()]
    assert len(kept) == 11
    assert {"source": f"{source}:3", "reason": "not a JSON object", "row": "{broken"} in kept


def test_refused_rows_have_no_text_if_personal_data_is_not_kept(tmp_path):
    source = tmp_path / "ubi.jsonl"
    source.write_text(json.dumps(question()) + "\n{jo@example.org\n", encoding="utf-8")
    import_log(source, tmp_path / "log", personal="drop")
    assert "jo@example" not in (tmp_path / "log" / "refused.jsonl").read_text()


def test_a_truncated_gzip_gives_what_can_be_read(tmp_path):
    whole = tmp_path / "ubi.jsonl.gz"
    with gzip.open(whole, "wt") as stream:
        stream.writelines(json.dumps(question(i % 60, query_id=f"q{i}")) + "\n" for i in range(9999))
    content = whole.read_bytes()
    whole.write_bytes(content[: len(content) // 2])
    report = import_log(whole, tmp_path / "log")
    assert report.events["question"] > 4000
    reasons = {each.reason: each.rows for each in report.refused}
    assert reasons["the gzip data is corrupt or truncated here"] == 1
    assert sum(reasons.values()) <= 2  # plus the truncated line


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_log_that_can_only_be_read_once_is_refused(tmp_path, monkeypatch):
    row = json.dumps(question())
    pipe, end = os.pipe()
    with os.fdopen(pipe, "rb"), os.fdopen(end, "wb") as writer:
        writer.write(row.encode())
        writer.flush()
        os.mkfifo(tmp_path / "fifo")
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(row.encode())))
        for source in ("-", f"/dev/fd/{pipe}", tmp_path / "fifo"):
            with pytest.raises(InputError, match="write it to a file first"):
                import_log(source, tmp_path / "log")
    assert not (tmp_path / "log").exists()


def test_duplicates_disorder_future_and_orphans_are_counted(tmp_path):
    made = [
        question(5),
        question(4),
        question(4),
        question(6, timestamp="2030-01-01T00:00:00Z"),
        event("click", 59, document="a", ordinal=1),
        event("impression", 4, document="a", ordinal=1),
        event("click", 4, document="a", ordinal=1),
        event("click", 5, document="b", ordinal=1),
    ]
    report = import_log(write(tmp_path / "ubi.jsonl", made), tmp_path / "log", now=NOW)
    assert (report.duplicates, report.identical) == (0, 1)
    # 4 after 5; the first click after the future; the impression of 4 after the click of 59
    assert report.out_of_order == 3
    assert report.future == 1
    assert (report.orphans, report.orphan_clicks, report.unseen_clicks) == (1, 1, 2)
    assert report.joined == 6
    assert "clicks on results not shown" in str(report)


def test_events_without_identifier_are_equal_only_if_every_field_is(tmp_path):
    made = event("answer_shown", attributes={"text": "5", "latency_ms": 1})
    other = {
        "latency": {"event_attributes": {"text": "5", "latency_ms": 2}},
        "text": {"event_attributes": {"text": "6", "latency_ms": 1}},
        "user": {"user_id": "u2"},
        "session": {"session_id": "s2"},
        "question": {"query_id": "q2"},
        "time": {"timestamp": "2026-05-01T12:00:01.501Z"},
        "kind": {"action_name": "impression"},
        "arm": {"query_attributes": {"arm": "B"}},
        "attributes": {"application": "a"},
        "others": {"query_attributes": {"device": "phone"}},
        "empty": {"event_attributes": {"text": "", "latency_ms": 1}},
        "value": {"event_attributes": {"text": "5", "latency_ms": 1, "value": 2}},
        "one": {"event_attributes": {"text": "5", "latency_ms": 1, "documents": ["a, b"]}},
        "two": {"event_attributes": {"text": "5", "latency_ms": 1, "documents": ["a", "b"]}},
    }
    rows = [made, *(made | each for each in other.values())]
    again = made | {"session_id": None, "event_attributes": {"latency_ms": 1.0, "text": "5", "session_id": "s1"}}
    report = import_log(write(tmp_path / "ubi.jsonl", [*rows, made, again]), tmp_path / "log")
    assert (sum(report.events.values()), report.identical) == (len(rows), 2)
    named = [each | {"event_id": f"e{i}"} for i, each in enumerate([*rows, rows[0]])]
    report = import_log(write(tmp_path / "named.jsonl", [*named, named[0], made]), tmp_path / "log")
    assert sum(report.events.values()) == len(named)
    assert (report.duplicates, report.identical) == (1, 1)


def test_events_are_not_equal_if_they_differ_in_a_value_that_is_not_stored(tmp_path):
    made = {
        "event_id": None,
        "kind": "other",
        "time": NOON,
        "question_id": "q",
        "value": "x",
        "documents": ["a"],
        "ranks": ["1"],
        "scores": ["1"],
        "latency_ms": "slow",
    }
    changes = {"value": "y", "ranks": ["2"], "scores": ["2"], "latency_ms": "fast"}
    rows = [made, *(made | {key: value} for key, value in changes.items())]
    source = write(tmp_path / "events.jsonl", [*rows, made])
    report = import_log(source, tmp_path / "log", format="events")
    assert (report.events, report.identical) == ({"other": 5}, 1)


@pytest.mark.parametrize("options", [{"personal": "drop", "drop_text": True}, {"scrub": True}])
def test_events_are_not_equal_if_they_differ_only_in_personal_data_that_is_not_stored(tmp_path, options):
    made = {"kind": "comment", "time": NOON, "question_id": "q", "user_id": "u1", "text": "write to ann@example.com"}
    rows = [made, made | {"user_id": "u2"}, made | {"text": "write to bob@example.com"}]
    source = write(tmp_path / "events.jsonl", [*rows, made])
    report = import_log(source, tmp_path / "log", format="events", **options)
    assert (sum(report.events.values()), report.identical) == (3, 1)
    stored = str(rows_of(tmp_path / "log"))
    assert "example.com" not in stored
    again = import_log(source, tmp_path / "log", format="events", **options)
    assert (sum(again.events.values()), again.identical) == (0, 4)


def test_a_dry_run_reports_the_same_and_writes_nothing(tmp_path):
    source = write(tmp_path / "ubi.jsonl", [question(), event("click", document="a"), {"x": 1}])
    dry = import_log(source, tmp_path / "log", dry_run=True)
    assert not (tmp_path / "log").exists()
    real = import_log(source, tmp_path / "log")
    assert dry.to_dict() == real.to_dict() | {"dry_run": True}
    again = import_log(source, tmp_path / "log", dry_run=True)
    assert again.identical == 2
    assert (again.total, again.questions) == (2, 1)
    assert len(list((tmp_path / "log").glob("*.parquet"))) == 1


def test_users_are_hashed_or_dropped_and_texts_scrubbed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    asked = question(user_query="refund for jo@example.org", client_id="jo")
    source = write(tmp_path / "ubi.jsonl", [asked, question(2, client_id="jo"), question(3, client_id="al")])
    import_log(source, tmp_path / "hash", personal="hash", scrub=True)
    found = rows_of(tmp_path / "hash", "question_id, user_id, text")
    users = {question_id: user for question_id, user, _ in found}
    assert users["q1"] == users["q2"] != users["q3"]
    assert "jo" not in users.values()
    assert "refund for [email]" in {text for *_, text in found}
    import_log(source, tmp_path / "drop", personal="drop", drop_text=True)
    assert {row[1:] for row in rows_of(tmp_path / "drop", "question_id, user_id, text")} == {(None, None)}
    with pytest.raises(InputError, match="other settings for personal data"):
        import_log(source, tmp_path / "drop")


MAPPING = {
    "columns": {
        "event_id": "id",
        "kind": "type",
        "time": "ts",
        "question_id": "q",
        "user_id": "who",
        "documents": "docs",
        "ranks": "places",
        "value": "rating",
        "text": "words",
    },
    "kinds": {"ask": "question", "open": "click", "rate": "thumbs", "show": "impression"},
    "values": {"good": 1, "bad": -1},
    "attributes": ["device"],
    "separator": "|",
}
TABLE = [
    ("id", "type", "ts", "q", "who", "docs", "places", "rating", "words", "device"),
    ("1", "ask", "2026-05-01T12:00:00Z", "q1", "u1", "", "", "", 'late "fees", why\nnow', "phone"),
    ("2", "show", "2026-05-01T12:00:01Z", "q1", "u1", "a|b", "1|2", "", "", "phone"),
    ("3", "open", "2026-05-01T12:00:02Z", "q1", "u1", "b", "2", "", "", ""),
    ("4", "rate", "2026-05-01T12:00:03Z", "q1", "u1", "", "", "bad", "", ""),
    ("5", "dance", "2026-05-01T12:00:04Z", "q1", "u1", "", "", "", "", ""),
    ("6", "rate", "2026-05-01T12:00:05Z", "q1", "u1", "", "", "7", "", ""),
    ("7", "show", "2026-05-01T12:00:06Z", "q1", "u1", "a|b", "1", "", "", ""),
    ("8", "ask", "2026-05-01T12:00:07", "q1", "u1", "", "", "", "", ""),
]


def table(path):
    """Return the same rows as CSV, TSV, JSON lines, or Parquet."""
    import io

    header, *cells = TABLE
    records = [dict(zip(header, row, strict=True)) for row in cells]
    if path.suffix in {".csv", ".tsv"}:
        text = io.StringIO()
        csv.writer(text, delimiter="," if path.suffix == ".csv" else "\t").writerows(TABLE)
        path.write_text(text.getvalue(), encoding="utf-8")
    elif path.suffix == ".jsonl":
        write(path, records)
    else:
        import pyarrow as pa
        from pyarrow import parquet

        for each in records:
            each["docs"] = each["docs"].split("|") if each["docs"] else None
            each["places"] = [int(at) for at in each["places"].split("|")] if each["places"] else None
        parquet.write_table(pa.Table.from_pylist(records), path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_mapping_reads_any_table_alike(tmp_path, suffix):
    report = import_log(table(tmp_path / f"log{suffix}"), tmp_path / "log", mapping=MAPPING)
    assert report.rows == 8
    assert report.events == {"question": 1, "impression": 1, "click": 1, "thumbs": 1, "other": 1}
    assert {each.reason: each.rows for each in report.refused} == {
        "a value that cannot be read": 1,
        "the numbers of ranks and documents differ": 1,
        "a time without a zone": 1,
    }
    assert rows_of(tmp_path / "log", "event_id, text, documents, ranks, value, label, attributes") == [
        ("1", 'late "fees", why\nnow', None, None, None, None, {"device": "phone"}),
        ("2", None, ["a", "b"], [1, 2], None, None, {"device": "phone"}),
        ("3", None, ["b"], [2], None, None, None),
        ("4", None, None, None, -1.0, None, None),
        ("5", None, None, None, None, "dance", None),
    ]


def test_a_row_can_tell_of_several_events(tmp_path):
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(
        """
        [columns]
        time = "meta.ts"
        question_id = "id"
        [[events]]
        kind = "question"
        text = "question"
        [[events]]
        kind = "answer"
        text = "answer"
        [[events]]
        kind = "thumbs"
        value = "rating"
        """
    )
    asked = {"id": "q1", "meta": {"ts": "2026-05-01T12:00:00Z"}, "question": "why?", "answer": "so"}
    source = write(tmp_path / "chats.jsonl", [asked | {"rating": "up"}, asked | {"id": "q2"}])
    report = import_log(source, tmp_path / "log", mapping=mapping)
    assert report.events == {"question": 2, "answer": 2, "thumbs": 1}
    assert report.rows == 2


FLAGS = {
    "columns": {"time": "ts", "question_id": "id"},
    "events": [
        {"kind": "question", "text": "question"},
        {"kind": "answer", "text": "question"},
        {"kind": "abstention", "label": "abstained"},
        {"kind": "handover", "value": "handed_over"},
        {"kind": "thumbs", "value": "helpful"},
    ],
}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".json"])
def test_boolean_columns_say_whether_there_is_an_event(tmp_path, suffix):
    draw = random.Random(suffix)
    yes, no = {".parquet": ([True], [False, None]), ".jsonl": ([True, 1, "yes"], [False, 0, None, ""])}.get(
        suffix, (["true", "True", " yes", "YES", "1", "no source"], ["no", "FALSE", "0", "", " "])
    )
    chosen = [[draw.choice([*yes, *no]) for _ in range(3)] for _ in range(300)]

    def true(value):
        return any(value is each for each in yes)

    names = ("abstained", "handed_over", "helpful")
    rows = [
        {"id": f"q{i}", "ts": f"2026-05-01T12:00:{i % 60:02}Z", "question": "why"}
        | dict(zip(names, values, strict=True))
        for i, values in enumerate(chosen)
    ]
    path = tmp_path / f"log{suffix}"
    if suffix == ".csv":
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    elif suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text(json.dumps(rows) if suffix == ".json" else "\n".join(map(json.dumps, rows)))
    report = import_log(path, tmp_path / "log", mapping=FLAGS)
    rated = [value for *_, value in chosen if value is not None and str(value).strip()]
    wrong = [value for value in rated if value == "no source"]
    assert sum(each.rows for each in report.refused) == len(wrong)
    assert report.events["question"] == report.events["answer"] == 300
    assert report.events["abstention"] == sum(true(a) for a, _, _ in chosen)
    assert report.events["handover"] == sum(true(b) for _, b, _ in chosen)
    assert report.events["thumbs"] == len(rated) - len(wrong)
    with EventLog(tmp_path / "log").connection() as connection:
        [(rate, up)] = connection.execute("SELECT avg(abstained::INT), sum(thumbs_up) FROM questions").fetchall()
    assert rate == pytest.approx(sum(true(a) for a, _, _ in chosen) / 300)
    assert up == sum(true(c) for _, _, c in chosen if c != "no source")


def test_other_spellings_of_booleans_are_refused_with_the_mapping_to_write(tmp_path):
    rows = [
        {"id": f"q{i}", "ts": "2026-05-01T12:00:00Z", "question": "why", "abstained": word}
        for i, word in enumerate(["Y", "N", "nothing found", "n/a", "1.0", "Y"])
    ]
    source = write(tmp_path / "chats.jsonl", rows)
    mapping = {**FLAGS, "events": FLAGS["events"][:3]}
    report = import_log(source, tmp_path / "log", mapping=mapping)
    assert report.events == {"question": 6, "answer": 6, "abstention": 1}
    reasons = {each.reason: each.rows for each in report.refused}
    assert [*reasons.values()] == [2, 1, 1, 1]
    assert '"y" = 1 (an event) or = 0 (no event)' in next(iter(reasons))
    values = {"values": {"y": 1, "N": 0, "n/a": 0, "1.0": 1}}
    report = import_log(source, tmp_path / "mapped", mapping=mapping | values)
    assert not report.refused
    assert report.events == {"question": 6, "answer": 6, "abstention": 4}


@pytest.mark.parametrize(
    ("kind", "field", "suffix"),
    [
        ("abstention", "label", ".csv"),
        ("abstention", "value", ".jsonl"),
        ("handover", "label", ".jsonl"),
        ("handover", "value", ".csv"),
    ],
)
def test_a_boolean_in_a_shared_column_says_whether_there_is_an_event(tmp_path, suffix, field, kind):
    words = ["true", "yes", "no", "false", "0", "", "00", "Falsch", "[]", "{}"]
    path = tmp_path / f"log{suffix}"
    rows = [{"id": f"q{i}", "ts": NOON, "text": "why", "flag": w} for i, w in enumerate(words)]
    if suffix == ".csv":
        lines = [",".join(row.values()) for row in rows]
        path.write_text("\n".join(["id,ts,text,flag", *lines]))
    else:
        write(path, rows)
    mapping = {
        "columns": {"time": "ts", "question_id": "id", field: "flag"},
        "events": [{"kind": "question", "text": "text"}, {"kind": kind}],
    }
    report = import_log(path, tmp_path / "log", mapping=mapping)
    assert report.events == {"question": 10, kind: 2}
    assert sum(each.rows for each in report.refused) == 4


def test_a_row_with_none_of_its_events_is_refused(tmp_path):
    mapping = {
        "columns": {"time": "ts", "question_id": "id"},
        "events": [{"kind": "question", "text": "question"}, {"kind": "thumbs", "value": "rating"}],
    }
    asked = {"id": "q1", "ts": "2026-05-01T12:00:00Z", "question": "why?"}
    source = tmp_path / "chats.jsonl"
    source.write_text(f"{json.dumps(asked)}\n{json.dumps(asked | {'question': None})}\n{json.dumps(asked)[:40]}\n")
    report = import_log(source, tmp_path / "log", mapping=mapping)
    assert report.events == {"question": 1}
    assert {each.reason: each.rows for each in report.refused} == {"none of the events": 1, "not a JSON object": 1}


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"colums": {}}, "'colums' is not part of a mapping"),
        ({"columns": {"when": "ts"}}, "no event has a field 'when'"),
        ({"columns": {"time": "ts", "kind": 3}}, "is not a column"),
        ({"columns": {"time": "ts"}}, "there is no column for the kind"),
        ({"columns": {"kind": "t"}}, "there is no column for the time"),
        ({"columns": {"time": "t", "kind": "k"}, "kinds": {"x": "tap"}}, "'tap' is not a kind"),
        ({"columns": {"time": "t", "kind": "k"}, "first_rank": 2}, "neither 0 nor 1"),
        ({"columns": {"time": "nope", "kind": "type"}}, "there is no column 'nope'"),
        *(
            ({"columns": {"time": "t"}, "events": [{"kind": "click"}], "time_format": f"%H {part}"}, "is not valid")
            for part in ("%Q", "%s", "%", "%-Q", "%%%")
        ),
    ],
)
def test_a_wrong_mapping_is_refused(tmp_path, mapping, message):
    with pytest.raises(FormatError, match=message):
        import_log(table(tmp_path / "log.csv"), tmp_path / "log", mapping=mapping)


@pytest.mark.parametrize(
    ("form", "text", "when"),
    [
        ("%d.%m.%Y %H:%M", "02.05.2026 12:01", "2026-05-02 10:01:00"),
        ("%m/%d/%Y %I:%M:%S.%f %p", "05/02/2026 01:02:03.004005 PM", "2026-05-02 11:02:03.004005"),
        ("%d.%m.%y %-H o'clock '%%", "02.05.26 9 o'clock '%", "2026-05-02 07:00:00"),
        ("%d.%m.%Y %H:%M %z", "02.05.2026 12:01 -0330", "2026-05-02 15:31:00"),
        ("%d.%m.%Y %H:%M %Z", "02.05.2026 12:01 Asia/Tokyo", "2026-05-02 03:01:00"),
        ("%d.%m.%Y %H:%M", "2026-05-02T12:01:00Z", "2026-05-02 12:01:00"),
    ],
)
def test_times_of_a_given_format_and_rows_that_are_questions(tmp_path, form, text, when):
    source = tmp_path / "log.csv"
    rows = [(text, "fees?", "d1"), (text, "fees?", "d1"), (text, "fees?", "d2"), (text, "hours?", "d1")]
    source.write_text("".join(",".join(row) + "\n" for row in [("at", "asked", "opened"), *rows]), encoding="utf-8")
    mapping = {
        "columns": {"time": "at"},
        "events": [{"kind": "question", "text": "asked"}, {"kind": "click", "documents": "opened"}],
        "time_format": form,
    }
    for new in ({"question": 3, "click": 3}, {}):
        report = import_log(source, tmp_path / "log", mapping=mapping, timezone="Europe/Berlin")
        assert {kind: count for kind, count in report.events.items() if count} == new
    with EventLog(tmp_path / "log").connection() as connection:
        found = connection.execute("SELECT time::VARCHAR, question_id, kind FROM events").fetchall()
    assert {time for time, *_ in found} == {when}
    assert sorted(Counter(question for _, question, _ in found).values()) == [2, 2, 2]


def test_csv_rows_of_another_width_are_refused_with_their_line(tmp_path):
    source = tmp_path / "log.csv"
    source.write_bytes(
        b"kind,time,question_id\nquestion,2026-05-01T12:00:00Z,q1\nquestion,2026-05-01T12:00:00Z\n"
        b"\xff,2026-05-01T12:00:00Z,q3\nid,kind,time,question_id\nquestion,2026-05-01T12:00:09Z,q4\n"
    )
    mapping = {
        "columns": {"kind": "kind", "time": "time", "question_id": "question_id"},
        "kinds": {"question": "question"},
    }
    report = import_log(source, tmp_path / "log", mapping=mapping)
    assert report.rows == 5
    assert report.events == {"question": 2}
    kept = [json.loads(line) for line in (tmp_path / "log" / "refused.jsonl").read_text().splitlines()]
    assert {(each["source"].rpartition(":")[2], each["reason"]) for each in kept} == {
        ("3", "the number of columns differs from the header"),
        ("4", "not UTF-8"),
        ("5", "the number of columns differs from the header"),
    }
    assert dict(rows_of(tmp_path / "log", "question_id, source"))["q4"].endswith(":6")


SEARCHES = {
    "columns": {"time": "ts", "question_id": "id", "text": "text", "event_id": "id"},
    "events": [{"kind": "question"}],
}


def searches(path, rows, header="id,ts,text,device"):
    path.write_bytes("".join(f"{row}\n" for row in (header, *rows)).encode())
    return path


def search(number, text="disk", device="phone"):
    return f"q{number},2026-05-01T12:00:{number % 60:02}Z,{text},{device}"


def filled_lines(path):
    """Return the number of lines that are not blank, without the header."""
    return sum(not re.fullmatch(rb"[\s\0]*", line) for line in re.split(rb"\r\n|\n|\r", path.read_bytes())) - 1


def read_ids(path, log):
    report = import_log(path, log, mapping=SEARCHES)
    assert report.lines == filled_lines(path)
    assert report.rows == sum(report.events.values()) + report.duplicates + sum(each.rows for each in report.refused)
    return {each for (each,) in rows_of(log, "question_id")}, report


def test_quotes_in_csv_lose_no_row(tmp_path):
    rows = [search(i) for i in range(1100)]
    everything = {f"q{i}" for i in range(1100)}
    cases = {
        # Inside a cell, a quote is a character; at its start, it must be closed.
        "inches": ({50: search(50, '5" disk')}, set()),
        "unclosed": ({50: search(50, '"5 disk')}, {"q50"}),
        "twice": ({50: search(50, '"5 disk'), 950: search(950, '"7 disk')}, {"q50", "q950"}),
        # By the rules of CSV, these quotes enclose one cell of 901 lines.
        "enclosing": ({50: search(50, '"5 disk'), 950: search(950, 'disk"')}, {"q50"}),
        "last": ({1099: search(1099, '"5 disk')}, {"q1099"}),
        "after": ({7: search(7, '"5" disk')}, {"q7"}),
        "wide": ({7: search(7, "a,b"), 9: "q9,x"}, {"q7", "q9"}),
    }
    for name, (changed, lost) in cases.items():
        path = searches(tmp_path / f"{name}.csv", [changed.get(i, row) for i, row in enumerate(rows)])
        ids, report = read_ids(path, tmp_path / name)
        assert ids == everything - lost, name
        if lost:
            kept = (tmp_path / name / "refused.jsonl").read_text().splitlines()
            refused = {each["row"]: each["source"] for each in map(json.loads, kept)}
            assert refused == {changed[int(one[1:])]: f"{path}:{int(one[1:]) + 2}" for one in lost}
        assert report.lines == 1100
    assert ("q50", '5" disk') in rows_of(tmp_path / "inches", "question_id, text")


def test_cells_of_several_lines_are_one_row_and_their_lines_are_counted(tmp_path):
    texts = ["a\n\nb, c\r\nd", 'say "yes"\n', "2026-05-01T12\n1,2", "q9,now,x,y\nz"]
    path = tmp_path / "log.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(("id", "ts", "text", "device"))
        writer.writerows((f"q{i}", f"2026-05-01T12:00:0{i}Z", text, "") for i, text in enumerate(texts))
    _, report = read_ids(path, tmp_path / "log")
    assert not report.refused
    assert (report.rows, report.lines) == (4, 9)
    assert rows_of(tmp_path / "log", "text") == [(text,) for text in texts]
    assert "9 lines" in str(report)


@pytest.mark.parametrize(
    ("suffix", "end"),
    [*(("csv", end) for end in ("\n", "\r", "\r\n", "\n\n", "\r\r\n \n")), ("jsonl", "\r\n"), ("jsonl", "\r\r\n \n")],
)
def test_lines_may_have_any_end_and_blank_lines_between_them(tmp_path, monkeypatch, suffix, end):
    monkeypatch.setattr(sources, "BATCH_BYTES", 3000)
    monkeypatch.setattr(sources, "_PART", 512)
    rows = ["id,ts,text,device", *map(search, range(200))]
    if suffix == "jsonl":
        rows[:1] = [json.dumps(question(i % 60, query_id=f"q{i}")) for i in range(200)]
        rows = rows[:200]
    path = tmp_path / f"log.{suffix}"
    path.write_bytes(end.join(rows).encode())
    report = import_log(path, tmp_path / "log", mapping=SEARCHES if suffix == "csv" else None)
    assert report.events == {"question": 200}
    assert not report.refused
    assert report.lines == report.rows == 200


def test_a_header_that_is_not_clear_is_refused(tmp_path):
    for header, message in (
        ("id,ts,text,ts", "header names column 'ts' twice"),
        ('id,"ts,text', "quote that opens in this row is not closed"),
    ):
        with pytest.raises(FormatError, match=message):
            import_log(searches(tmp_path / "log.csv", [search(1)], header), tmp_path / "log", mapping=SEARCHES)
    # SQL ignores case, a log does not; nor are names of the reader special.
    path = searches(tmp_path / "log.csv", ["q1,2026-05-01T12:00:00Z,no,yes,5,6"], "id,ts,TEXT,text,line,raw")
    mapping = SEARCHES | {"attributes": ["line", "raw"]}
    import_log(path, tmp_path / "log", mapping=mapping)
    assert rows_of(tmp_path / "log", "text, attributes") == [("yes", {"line": "5", "raw": "6"})]


def test_events_of_our_own_schema_are_read_again(tmp_path):
    source = write(tmp_path / "ubi.jsonl", [question(), event("click", document="a", ordinal=1)])
    import_log(source, tmp_path / "log")
    (segment,) = (tmp_path / "log").glob("*.parquet")
    import_log(segment, tmp_path / "copy")
    assert rows_of(tmp_path / "copy") == rows_of(tmp_path / "log")


def test_attributes_of_our_own_events_in_json_are_kept(tmp_path):
    told = {"interleaving.teams": "AB-", "language": "de", "rank": 3}
    row = {
        "event_id": "e1",
        "kind": "impression",
        "time": "2026-05-01T12:00:00Z",
        "question_id": "q1",
        "documents": ["d1", "d2"],
        "attributes": told,
    }
    path = write(tmp_path / "events.jsonl", [row, row | {"event_id": "e2", "attributes": None}])
    import_log(path, tmp_path / "log")
    with EventLog(tmp_path / "log").connection() as connection:
        found = connection.execute("SELECT attributes FROM events ORDER BY event_id").fetchall()
    assert [each or {} for (each,) in found] == [told | {"rank": "3"}, {}]


def test_feedback_of_other_tools(tmp_path):
    mlflow = {
        "assessment_id": "m1",
        "assessment_name": "user_feedback",
        "trace_id": "q1",
        "source": {"source_type": "HUMAN", "source_id": "u1"},
        "create_time": "2026-05-01T12:00:00Z",
        "feedback": {"value": True},
    }
    langfuse = {
        "id": "l1",
        "traceId": "q1",
        "name": "user-feedback",
        "value": 0,
        "dataType": "BOOLEAN",
        "timestamp": "2026-05-01T12:00:09Z",
    }
    for name, row in (("mlflow.jsonl", mlflow), ("langfuse.jsonl", langfuse)):
        import_log(write(tmp_path / name, [row]), tmp_path / "log")
    assert rows_of(tmp_path / "log", "event_id, kind, question_id, value") == [
        ("l1", "thumbs", "q1", -1.0),
        ("m1", "thumbs", "q1", 1.0),
    ]


def test_a_log_of_unknown_format_is_refused(tmp_path):
    for name, text in (("a.jsonl", '{"a": 1}\n'), ("b.csv", "a,b\n1,2\n"), ("c.txt", "hello\n")):
        (tmp_path / name).write_text(text)
        with pytest.raises(FormatError, match="format of this log is not known"):
            import_log(tmp_path / name, tmp_path / "log")
    (tmp_path / "empty").write_text("")
    with pytest.raises(FormatError, match="empty"):
        import_log(tmp_path / "empty", tmp_path / "log")


@pytest.fixture(scope="module")
def log_of_two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    import_log(write(folder / "two.jsonl", [question(1), question(2)]), folder / "log")
    return folder / "log"


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("log[1]", "log1"),
        ("log*", "log-all"),
        ("[!a]", "b"),
        ("arm=B", "arm=A"),
        ('it\'s "one" 50% #1; é 日本', "x"),
        ("s3:", "x"),
    ],
)
def test_a_log_of_any_name_contains_only_its_own_events(tmp_path, monkeypatch, log_of_two, name, other):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(log_of_two, other)
    source = write(tmp_path / f"{name}.jsonl", [question(1)])
    for path in (name, tmp_path / name):
        report = import_log(source, path)
        assert (report.total, report.questions) == (1, 1)
        assert shlex.split(report.table().notes[-1].removeprefix("next step: "))[-1] == str(path)
        assert rows_of(path, "question_id, arm") == [("q1", None)]
        (segment,) = Path(name).glob("*.parquet")
        assert rows_of(segment, "question_id, arm") == [("q1", None)]
    # The second import found the event of the first.
    assert (sum(report.events.values()), report.identical) == (0, 1)
    assert len(rows_of(other)) == 2


def test_patterns_select_logs_and_their_folders_may_be_columns(tmp_path):
    for arm in "AB":
        folder = tmp_path / f"arm={arm}"
        folder.mkdir()
        (folder / "events.parquet").write_bytes(b"")
        duckdb.execute(
            "COPY (SELECT $arm AS event_id, 'question' AS kind, 'q' AS question_id, now() AS time)"
            f" TO '{folder / 'events.parquet'}' (FORMAT parquet)".replace("$arm", f"'{arm}'")
        )
    pattern = tmp_path / "arm=[AB]" / "*.parquet"
    assert rows_of(pattern, "event_id, arm") == [("A", "A"), ("B", "B")]


def test_the_name_of_an_existing_folder_is_no_pattern(tmp_path):
    for name in ("log[1]", "log1"):
        import_log(write(tmp_path / "ubi.jsonl", [question(text=name)]), tmp_path / name)
    names = EventLog(tmp_path / "log[1]" / "*.parquet").files
    assert {Path(each).parent.name for each in names} == {"log[1]"}


def test_a_folder_that_cannot_be_written_is_an_error_with_a_fix(tmp_path):
    (tmp_path / "file").write_text("")
    source = write(tmp_path / "ubi.jsonl", [question()])
    with pytest.raises(InputError, match=r"log cannot be written: Not a directory(.|\n)*fix: "):
        import_log(source, tmp_path / "file" / "log")


def test_a_failed_import_leaves_no_new_folder(tmp_path):
    source = write(tmp_path / "ubi.jsonl", [question()])
    (tmp_path / "broken.json").write_text('[{"action_name": "click"},')
    for folder in (tmp_path / "new" / "log", tmp_path / "kept"):
        if folder.name == "kept":
            folder.mkdir()
        with pytest.raises(InputError, match="not JSON"):
            import_log(tmp_path / "broken.json", folder)
        assert folder.exists() == (folder.name == "kept")
        assert not folder.exists() or not list(folder.iterdir())
        import_log(source, folder)
        # A log with events is kept.
        with pytest.raises(InputError, match="not JSON"):
            import_log(tmp_path / "broken.json", folder)
        assert EventLog(folder).summary().questions == 1


def test_a_folder_with_other_files_is_not_touched(tmp_path):
    source = write(tmp_path / "ubi.jsonl", [question()])
    with pytest.raises(InputError, match="has other files"):
        import_log(source, tmp_path)


def many_rows(path, count=400):
    """Write questions with impressions, clicks, duplicates, and invalid rows."""
    with path.open("w", encoding="utf-8") as stream:
        for i in range(count):
            stream.write(json.dumps(question(i % 60, query_id=f"q{i}")) + "\n")
            stream.write(json.dumps(event("impression", i % 60, f"d{i}", 0, query_id=f"q{i}")) + "\n")
            stream.write(json.dumps(event("click", i % 60, f"d{i}", 0, query_id=f"q{i // 2}")) + "\n")
            if i % 7 == 0:
                stream.write("nonsense\n" + json.dumps(question(i % 60, query_id=f"q{i}")) + "\n")
    return path


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """A source of many batches, the folder of its import, and the report."""
    folder = tmp_path_factory.mktemp("imported")
    source = many_rows(folder / "ubi.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "BATCH_BYTES", 20_000)
        patch.setattr(sources, "_PART", 512)
        return source, folder / "whole", import_log(source, folder / "whole", now=NOW)


@pytest.mark.parametrize("after", [0, 5])
def test_an_interrupted_import_goes_on_with_equal_results(tmp_path, monkeypatch, imported, after):
    """As if killed after any step: segments, rejected rows, and the manifest may be incomplete."""
    monkeypatch.setattr(sources, "BATCH_BYTES", 20_000)
    monkeypatch.setattr(sources, "_PART", 512)
    source, complete, whole = imported
    steps = iter(range(100))
    commit = LogFolder.commit

    def fail(store):
        if next(steps) >= after:
            raise KeyboardInterrupt
        commit(store)

    with monkeypatch.context() as patch:
        patch.setattr(LogFolder, "commit", fail)
        with pytest.raises(KeyboardInterrupt):
            import_log(source, tmp_path / "log", now=NOW)
    with (tmp_path / "log" / "refused.jsonl").open("ab") as stream:
        stream.write(b'{"source": "half')
    resumed = import_log(source, tmp_path / "log", now=NOW)
    assert resumed.to_dict() == whole.to_dict() | {"log": str(tmp_path / "log")}
    assert rows_of(tmp_path / "log", "*") == rows_of(complete, "*")
    assert [p.name for p in sorted((tmp_path / "log").iterdir())] == [p.name for p in sorted((complete).iterdir())]
    for name in ("refused.jsonl", "manifest.json"):
        assert (tmp_path / "log" / name).read_bytes() == (complete / name).read_bytes()


def test_a_file_of_several_batches_that_is_imported_again_adds_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BATCH_BYTES", 20_000)
    monkeypatch.setattr(sources, "_PART", 512)
    source = many_rows(tmp_path / "ubi.jsonl")
    first = import_log(source, tmp_path / "log", now=NOW)
    rows, kept = rows_of(tmp_path / "log", "*"), (tmp_path / "log" / "refused.jsonl").read_bytes()
    again = import_log(source, tmp_path / "log", now=NOW)
    assert first.refused
    assert again.refused == first.refused
    assert again.identical == sum(first.events.values()) + first.identical
    assert not again.events
    assert rows_of(tmp_path / "log", "*") == rows
    assert (tmp_path / "log" / "refused.jsonl").read_bytes() == kept


@pytest.mark.slow
def test_a_killed_process_leaves_a_log_that_can_be_resumed(tmp_path):
    source = many_rows(tmp_path / "ubi.jsonl", 4000)
    code = (
        "import sys; from rankgauge.production import import_log, sources;"
        "sources.BATCH_BYTES = 60_000; sources._PART = 512;"
        "import_log(sys.argv[1], sys.argv[2])"
    )
    expected = tmp_path / "whole"
    subprocess.run([sys.executable, "-c", code, str(source), str(expected)], check=True)
    target = tmp_path / "log"
    for wait in (0.7, 0.9, 1.2):
        process = subprocess.Popen([sys.executable, "-c", code, str(source), str(target)])
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run([sys.executable, "-c", code, str(source), str(target)], check=True)
    assert rows_of(target, "*") == rows_of(expected, "*")
    for name in ("refused.jsonl", "manifest.json"):
        assert (target / name).read_bytes() == (expected / name).read_bytes()


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "query_id",
                    "action_name",
                    "timestamp",
                    "event_attributes",
                    "position",
                    "ordinal",
                    "object",
                    "object_id",
                    "value",
                    "query_response_hit_ids",
                    "query_attributes",
                    "text",
                ]
            )
            | st.text(max_size=4),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        JSON.map(lambda row: json.dumps(row).encode())
        | st.binary(max_size=40).filter(lambda row: b"\n" not in row)
        | st.builds(
            lambda row: json.dumps(question() | row).encode(),
            st.dictionaries(st.sampled_from(["timestamp", "query_id", "action_name"]), JSON),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_no_row_is_lost_and_none_ends_in_a_traceback(tmp_path, junk):
    source = tmp_path / "junk.jsonl"
    source.write_bytes(json.dumps(question()).encode() + b"\n" + b"\n".join(junk))
    report = import_log(source, tmp_path / "log", format="ubi", dry_run=True, now=NOW)
    accepted = sum(report.events.values()) + report.identical
    retrievals = report.events.get("retrieval", 0)
    refused = sum(each.rows for each in report.refused)
    assert report.rows <= len(junk) + 1
    assert report.rows <= accepted + refused <= report.rows + retrievals + report.identical


@pytest.mark.parametrize("exists", [False, True])
def test_only_the_owner_can_read_the_texts_of_a_log(tmp_path, exists):
    source = write(tmp_path / "queries.jsonl", [question(), {"timestamp": "never"}])
    log = tmp_path / "log"
    if exists:
        log.mkdir(mode=0o755)
    import_log(source, log)
    assert (log / "refused.jsonl").exists()
    modes = {each.name: each.stat().st_mode & 0o077 for each in log.iterdir()}
    assert {name for name, mode in modes.items() if mode} <= {"log.json", ".lock", "manifest.json"}
    assert (log.stat().st_mode & 0o077 == 0) is not exists

"""Mutated logs: every line is read, a duplicate, or refused, and the log can be read afterwards."""

import csv
import json
import os
import random
import re

import pytest

from rankgauge.production import EventLog, import_log, online_metrics

pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")

TEXTS = [
    "",
    " ",
    "a",
    "\0",
    "x\0y",
    "é日本",
    "\u2028",
    "a\nb",
    "a\r",
    '"',
    '5" disk',
    "nan",
    "inf",
    "-1",
    "0",
    "1",
    "1e400",
    "1_000",
    "5f",
    "٣",
    "true",
    "no",
    "None",
    "2026-05-01T12:00:00Z",
    "9999-12-31T23:59:59-12:00",
    "10000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+01:00",
    "2026-05-01T12:00:00+25:00",
    "1777636800",
    "1777636800000",
    "infinity",
    "epoch",
    "2026-05-01 12:00:00 Europe/Berlin",
    "2026-05-01 12:00:00 A/B",
    "2026-05-01",
    "{",
    "[",
    "[1",
    "[]",
    "{}",
    '{"a":1,"a":2}',
    "{bad",
    "[bad]",
    '["a",null]',
    "[[1]]",
    "click",
    "thumbs",
    "label",
    "preference",
    "retrieval",
    "other",
    "x" * 5000,
    "a|b",
    "|",
    "\ufeff",
    "'; DROP TABLE known; --",
]
EVENT = {
    "event_id": "e",
    "kind": "click",
    "time": "2026-05-01T12:00:00Z",
    "question_id": "q",
    "session_id": "s",
    "user_id": "u",
    "arm": "A",
    "text": "t",
    "documents": ["d1"],
    "ranks": [1],
    "scores": [0.5],
    "value": 1,
    "label": "l",
    "latency_ms": 5,
    "attributes": {"a": "b"},
}
UBI = {
    "action_name": "click",
    "query_id": "q",
    "session_id": "s",
    "user_id": "u",
    "message": "m",
    "timestamp": "2026-05-01T12:00:00Z",
    "user_query": "why",
    "query_response_hit_ids": ["a"],
    "query_attributes": {"arm": "A", "x": "y"},
    "application": "app",
    "event_attributes": {
        "object": {"object_id": "d"},
        "position": {"ordinal": 1},
        "value": 1,
        "text": "t",
        "latency_ms": 3,
        "documents": ["a"],
    },
}
ASSESSMENT = {
    "assessment_id": "m",
    "assessment_name": "user_feedback",
    "trace_id": "q",
    "rationale": "r",
    "source": {"source_id": "u"},
    "create_time": "2026-05-01T12:00:00Z",
    "feedback": {"value": 1},
}
SPAN = {
    "trace_id": "t",
    "span_id": "s",
    "parent_id": None,
    "start_time": "2026-05-01T12:00:00Z",
    "end_time": "2026-05-01T12:00:01Z",
    "attributes": {
        "input.value": "q",
        "output.value": "a",
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents": [{"document.id": "d", "document.score": 1}],
        "metadata": "{}",
    },
}
BASES = {"events": EVENT, "ubi": UBI, "mlflow": ASSESSMENT, "spans": SPAN}
INSERTED = ['"', "\\", "\\ud800", "NaN", "1e999", "\r", "\0", "\x01", '{"a":', "[[", ",", "\n"]


def json_value(draw, depth=0):
    kind = draw.randrange(10)
    if kind == 0:
        return draw.choice([None, True, False])
    if kind == 1:
        return draw.choice([0, -1, 2**63, 10**30, 1777636800, 20260501, 0.5, -0.0, 1e308])
    if kind == 2 and depth < 3:
        return [json_value(draw, depth + 1) for _ in range(draw.randrange(4))]
    if kind == 3 and depth < 3:
        keys = draw.choices(["a", "name", "object_id", "ordinal", "", "."], k=draw.randrange(4))
        return {key: json_value(draw, depth + 1) for key in keys}
    return draw.choice(TEXTS)


def mutated(draw, base, value=json_value):
    """Return a row with one to three other or missing values, anywhere in it."""
    row = json.loads(json.dumps(base))
    for _ in range(draw.randrange(1, 4)):
        inner = row
        while isinstance(inner.get(key := draw.choice([*inner, "z"])), dict) and draw.random() < 0.7:
            inner = inner[key]
        if draw.random() < 0.1:
            inner.pop(key, None)
        else:
            inner[key] = value(draw)
    return row


def cut(draw, line):
    """Return a line, sometimes truncated, with other characters, or deeply nested."""
    chance = draw.random()
    at = draw.randrange(len(line))
    if chance < 0.03:
        return line[:at]
    if chance < 0.06:
        return line[:at] + draw.choice(INSERTED) + line[at:]
    if chance < 0.061:
        return '{"a":' * 3000 + "1" + "}" * 3000
    return line


def write_json(draw, path, base, count):
    """Write JSON lines, or one JSON document."""
    rows = [mutated(draw, base) for _ in range(count)]
    if path.suffix == ".json":
        path.write_text(json.dumps(rows), encoding="utf-8")
        return count
    lines = (cut(draw, json.dumps(row, ensure_ascii=draw.random() < 0.5)) for row in rows)
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    return filled(path.read_bytes())


def write_table(draw, path, base, count):
    """Write CSV or TSV."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        by = "\t" if path.suffix == ".tsv" else ","
        writer = csv.DictWriter(stream, base, delimiter=by, extrasaction="ignore")
        writer.writeheader()
        flat = {key: json.dumps(v) if isinstance(v, list | dict) else v for key, v in base.items()}
        for number in range(count):
            writer.writerow(mutated(draw, flat | {"event_id": f"e{number}"}, lambda d: d.choice(TEXTS)))
    header, _, rest = path.read_bytes().partition(b"\r\n")
    lines = rest.decode().split("\n")
    mixed = "\n".join(cut(draw, line) if line else line for line in lines).encode()
    mixed = mixed.replace(b"latency", b"\xff", 3)
    path.write_bytes(header + b"\r\n" + mixed)
    return filled(mixed)


def filled(text):
    return sum(not re.fullmatch(rb"[ \t\0]*", line) for line in re.split(rb"\r\n|\r|\n", text))


def column(draw, name, count):
    """Return an Arrow array of any type, or the usual values of a column."""
    moments = [0, 1777636800, -(2**62), 2**62, 2**63 - 1, 253402300800, -62135596801]
    kinds = {
        pa.string(): TEXTS,
        pa.int64(): [0, 1, -(2**63), 2**63 - 1],
        pa.bool_(): [True, False],
        pa.float64(): [0.5, float("nan"), float("inf"), 1e308],
        pa.binary(): [b"\xff", b"ok"],
        pa.list_(pa.string()): [[], ["a"], ["a", None]],
        pa.list_(pa.int64()): [[1, None], [2**40]],
        pa.list_(pa.list_(pa.int8())): [[[1]]],
        pa.date32(): [0, 2**31 - 1, -(2**31)],
        pa.map_(pa.string(), pa.string()): [[("a", "b"), ("c", "d")], []],
        pa.struct([("a", pa.string())]): [{"a": "b"}],
        pa.null(): [None],
        **{pa.timestamp(unit, zone): moments for unit in ("s", "us") for zone in (None, "UTC")},
    }
    if draw.random() < 0.5:
        usual = [f"e{i}" for i in range(count)] if name == "event_id" else [EVENT[name]] * count
        return pa.array([[*v.items()] for v in usual] if name == "attributes" else usual)
    kind = draw.choice([*kinds, "utf8"])
    if kind == "utf8":
        bad = pa.array([draw.choice([b"\xff", b"a\x80", b"ok"]) for _ in range(count)])
        return bad.view(pa.string())
    values = [draw.choice([*kinds[kind], None]) for _ in range(count)]
    storage = pa.int64() if pa.types.is_timestamp(kind) else kind
    return pa.array(values, storage).cast(kind, safe=False)


def write_columns(draw, path, base, count):
    """Write an Arrow file."""
    table = pa.table({name: column(draw, name, count) for name in base})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    return count


CASES = [
    *((write_json, name, suffix) for name in BASES for suffix in ("jsonl", "json")),
    (write_table, "events", "csv"),
    (write_table, "events", "tsv"),
    *[(write_columns, "events", "arrow")] * 6,
]


# "make fuzz" sets both.
SEED = int(os.environ.get("SEED", "0"))
ROWS = int(os.environ.get("RANKGAUGE_FUZZ", "5000")) // 5


def check(write, name, suffix, folder, number, count):
    draw = random.Random(f"{name} {suffix} {1000 * SEED + number}")
    path = folder / f"log.{suffix}"
    lines = write(draw, path, BASES[name], count)
    report = import_log(path, folder / "log", format=name)
    refused = sum(each.rows for each in report.refused)
    accepted = sum(report.events.values()) + report.duplicates + report.identical
    assert report.lines == lines
    if name in {"events", "mlflow"}:  # one event for each row
        assert accepted + refused == report.rows
    else:
        assert report.rows > 0
        assert refused <= report.rows
    log = EventLog(folder / "log")
    assert sum(log.summary().kinds.values()) == sum(report.events.values())
    with log.connection() as connection:
        for view in ("events", "questions"):
            connection.execute(f"SELECT * FROM {view}").fetchall()
    if report.questions:
        online_metrics(log, by="week").to_json()
    again = import_log(path, folder / "log", format=name)
    assert not again.events
    assert again.refused == report.refused


# Every format once, as lines or as an array in turn.
@pytest.mark.parametrize("number", [0, 3, 4, 7, 8, 9, 10])
def test_mutated_rows_are_accounted_for_and_never_damage_the_log(tmp_path, number):
    check(*CASES[number], tmp_path, number, 120)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CASES)))
def test_many_mutated_rows_are_accounted_for(tmp_path, number):
    check(*CASES[number], tmp_path, number + 100, ROWS)

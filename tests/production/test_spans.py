"""Spans of OpenInference and OpenTelemetry as events."""

import json

import pytest

from rankgauge.production import EventLog, import_log

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

START, END = 1777636800000000000, 1777636801500000000  # 2026-05-01 12:00:00, and 1.5 s later


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def value(given):
    """Return a value as OTLP encodes it."""
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(each) for each in given]}}
    if isinstance(given, int | float):
        return {"doubleValue": given}
    return {"stringValue": given}


def otlp(*spans):
    """Return an export of spans: trace, span, parent, attributes, and further parts."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": []},
                "scopeSpans": [
                    {
                        "scope": {"name": "s"},
                        "spans": [
                            {
                                "traceId": trace, "spanId": span, "parentSpanId": parent,
                                "startTimeUnixNano": str(START), "endTimeUnixNano": str(END),
                                "attributes": [
                                    {"key": key, "value": value(given)}
                                    for key, given in attributes.items()
                                ],
                            } | more
                            for trace, span, parent, attributes, more in spans
                        ],
                    }
                ],
            }
        ]
    }  # fmt: skip


CHAIN = {
    "openinference.span.kind": "CHAIN", "input.value": "late fees?", "output.value": "5 euros",
    "session.id": "s1", "user.id": "u1", "metadata": '{"language": "en", "nested": [1]}',
}  # fmt: skip
RETRIEVER = {
    "openinference.span.kind": "RETRIEVER", "input.value": "late fees?",
    "retrieval.documents.0.document.id": "b", "retrieval.documents.0.document.score": 0.9,
    "retrieval.documents.1.document.id": "a", "retrieval.documents.1.document.score": 0.5,
}  # fmt: skip


def events(log):
    with EventLog(log).connection() as connection:
        found = connection.execute("SELECT * FROM events ORDER BY kind, event_id")
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def check_chain(found):
    answer, question, retrieval = found
    assert [each["kind"] for each in found] == ["answer", "question", "retrieval"]
    assert {each["question_id"] for each in found} == {"t1"}
    assert (question["text"], answer["text"]) == ("late fees?", "5 euros")
    assert answer["latency_ms"] == 1500
    assert f"{question['time']:%Y-%m-%d %H:%M:%S}" == "2026-05-01 12:00:00"
    assert (question["session_id"], question["user_id"]) == ("s1", "u1")
    assert question["attributes"] == {"language": "en"}
    assert (retrieval["documents"], retrieval["ranks"]) == (["b", "a"], [1, 2])
    assert retrieval["scores"] == [0.9, 0.5]


def test_openinference_spans_of_a_collector(tmp_path):
    row = otlp(("t1", "a1", "", CHAIN, {}), ("t1", "a2", "a1", RETRIEVER, {}))
    report = import_log(write(tmp_path / "traces.jsonl", row), tmp_path / "log")
    assert report.rows == 1
    assert not report.refused
    check_chain(events(tmp_path / "log"))


def test_spans_of_an_exporter_with_nested_or_flat_names(tmp_path):
    def span(number, parent, attributes):
        return {
            "name": "x", "context": {"trace_id": "t1", "span_id": number}, "parent_id": parent,
            "start_time": "2026-05-01T12:00:00.000000Z", "end_time": "2026-05-01T12:00:01.500000Z",
            "attributes": attributes,
        }  # fmt: skip

    rows = [span("a1", None, CHAIN), span("a2", "a1", RETRIEVER)]
    import_log(write(tmp_path / "flat.jsonl", *rows), tmp_path / "flat")
    check_chain(events(tmp_path / "flat"))
    (tmp_path / "array.json").write_text(json.dumps(rows, indent=2))
    import_log(tmp_path / "array.json", tmp_path / "array")
    check_chain(events(tmp_path / "array"))


def test_one_export_over_many_lines(tmp_path):
    row = otlp(("t1", "a1", "", CHAIN, {}), ("t1", "a2", "a1", RETRIEVER, {}))
    (tmp_path / "traces.json").write_text(json.dumps(row, indent=2))
    import_log(tmp_path / "traces.json", tmp_path / "log")
    check_chain(events(tmp_path / "log"))


def test_a_reranker_gives_a_second_ranking(tmp_path):
    reranker = {
        "openinference.span.kind": "RERANKER",
        "reranker.output_documents.0.document.id": "a",
    }
    row = otlp(("t1", "a2", "a1", RETRIEVER, {}), ("t1", "a3", "a1", reranker, {}))
    import_log(write(tmp_path / "traces.jsonl", row), tmp_path / "log")
    assert {(each["label"], tuple(each["documents"])) for each in events(tmp_path / "log")} == {
        (None, ("b", "a")),
        ("reranked", ("a",)),
    }


def test_a_retriever_that_recorded_nothing_is_not_one_that_found_nothing(tmp_path):
    silent = {"openinference.span.kind": "RETRIEVER"}
    empty = silent | {"output.value": '{"documents": []}'}
    row = otlp(("t1", "a1", "", silent, {}), ("t2", "a2", "", empty, {}))
    import_log(write(tmp_path / "traces.jsonl", row), tmp_path / "log")
    assert {each["question_id"]: each["documents"] for each in events(tmp_path / "log")} == {
        "t1": None,
        "t2": [],
    }


def test_documents_without_identifiers_have_a_hash_of_their_text(tmp_path):
    named = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": "hi"}
    import_log(write(tmp_path / "t.jsonl", otlp(("t1", "a1", "", named, {}))), tmp_path / "log")
    (found,) = events(tmp_path / "log")
    assert found["documents"] == ["sha256:8f434346648f6b96"]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (
            {"gen_ai.input.messages": json.dumps(
                [{"role": "user", "parts": [{"type": "text", "content": "late fees?"}]}]
            )},
            {"gen_ai.output.messages": json.dumps(
                [{"role": "assistant", "parts": [{"type": "text", "content": "5 euros"}]}]
            )},
        ),
        (
            {"gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "be kind",
             "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": "late fees?"},
            {"gen_ai.completion.0.content": "5 euros"},
        ),
        ({"gen_ai.prompt": "late fees?"}, {"gen_ai.completion": "5 euros"}),
    ],
)  # fmt: skip
def test_generative_ai_spans_of_opentelemetry_old_and_new(tmp_path, asked, answered):
    chat = {
        "gen_ai.operation.name": "chat", "gen_ai.conversation.id": "s1", "user.id": "u1",
        "metadata": '{"language": "en"}',
    } | asked | answered  # fmt: skip
    search = {
        "gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "late fees?",
        "gen_ai.retrieval.documents": json.dumps(
            [{"id": "b", "score": 0.9}, {"id": "a", "score": 0.5}]
        ),
    }  # fmt: skip
    row = otlp(("t1", "a1", "", chat, {}), ("t1", "a2", "a1", search, {}))
    import_log(write(tmp_path / "traces.jsonl", row), tmp_path / "log")
    check_chain(events(tmp_path / "log"))


def test_feedback_by_a_linked_span_an_event_and_a_log_record(tmp_path):
    linked = {
        "annotations.0.annotation.name": "user_feedback",
        "annotations.0.annotation.label": "thumbs-down",
        "annotations.0.annotation.annotator_kind": "HUMAN",
        "annotations.1.annotation.name": "user_feedback",
        "annotations.1.annotation.score": 1,
        "annotations.1.annotation.annotator_kind": "LLM",
    }
    judged = {
        "name": "gen_ai.evaluation.result", "timeUnixNano": str(END),
        "attributes": [
            {"key": "gen_ai.evaluation.name", "value": value("user_feedback")},
            {"key": "gen_ai.evaluation.score.value", "value": value(1)},
        ],
    }  # fmt: skip
    record = {
        "resourceLogs": [{"scopeLogs": [{"logRecords": [
            {"traceId": "t3", "spanId": "l1", **judged}
        ]}]}]
    }  # fmt: skip
    row = otlp(
        ("t9", "f1", "", linked, {"links": [{"traceId": "t1", "spanId": "a1"}]}),
        ("t2", "a2", "", CHAIN, {"events": [judged]}),
    )
    import_log(write(tmp_path / "traces.jsonl", row, record), tmp_path / "log")
    found = events(tmp_path / "log")
    assert {(e["question_id"], e["kind"], e["value"]) for e in found if e["value"]} == {
        ("t1", "thumbs", -1),
        ("t1", "other", 1),  # by a model, not a user
        ("t2", "thumbs", 1),
        ("t3", "thumbs", 1),
    }
    assert not any(each["question_id"] == "t9" for each in found)


def test_spans_imported_again_are_duplicates_and_rows_that_are_none_refused(tmp_path):
    row = otlp(("t1", "a1", "", CHAIN, {}))
    source = write(tmp_path / "traces.jsonl", row, [1], {"a": 1})
    report = import_log(source, tmp_path / "log")
    assert {each.reason: each.rows for each in report.refused} == {
        "not a JSON object": 1,
        "no span": 1,
    }
    assert report.rows == 3
    again = import_log(source, tmp_path / "log")
    assert (again.duplicates, again.events) == (2, {})

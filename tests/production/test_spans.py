"""Spans of OpenInference and OpenTelemetry as events."""

import itertools
import json
import random

import pytest

from rankgauge.answers import AnswerSet
from rankgauge.errors import InputError
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
                                "traceId": trace,
                                "spanId": span,
                                "parentSpanId": parent,
                                "startTimeUnixNano": str(START),
                                "endTimeUnixNano": str(END),
                                "attributes": [
                                    {"key": key, "value": value(given)} for key, given in attributes.items()
                                ],
                            }
                            | more
                            for trace, span, parent, attributes, more in spans
                        ],
                    }
                ],
            }
        ]
    }


CHAIN = {
    "openinference.span.kind": "CHAIN",
    "input.value": "late fees?",
    "output.value": "5 euros",
    "session.id": "s1",
    "user.id": "u1",
    "metadata": '{"language": "en", "nested": [1]}',
}
RETRIEVER = {
    "openinference.span.kind": "RETRIEVER",
    "input.value": "late fees?",
    "retrieval.documents.0.document.id": "b",
    "retrieval.documents.0.document.score": 0.9,
    "retrieval.documents.1.document.id": "a",
    "retrieval.documents.1.document.score": 0.5,
}


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
            "name": "x",
            "context": {"trace_id": "t1", "span_id": number},
            "parent_id": parent,
            "start_time": "2026-05-01T12:00:00.000000Z",
            "end_time": "2026-05-01T12:00:01.500000Z",
            "attributes": attributes,
        }

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
    reranker = {"openinference.span.kind": "RERANKER", "reranker.output_documents.0.document.id": "a"}
    row = otlp(("t1", "a2", "a1", RETRIEVER, {}), ("t1", "a3", "a1", reranker, {}))
    import_log(write(tmp_path / "traces.jsonl", row), tmp_path / "log")
    found = [each for each in events(tmp_path / "log") if each["kind"] == "retrieval"]
    assert {(each["label"], tuple(each["documents"])) for each in found} == {(None, ("b", "a")), ("reranked", ("a",))}


def test_a_retriever_that_recorded_nothing_is_not_one_that_found_nothing(tmp_path):
    silent = {"openinference.span.kind": "RETRIEVER"}
    empty = silent | {"output.value": '{"documents": []}'}
    row = otlp(("t1", "a1", "", silent, {}), ("t2", "a2", "", empty, {}))
    import_log(write(tmp_path / "traces.jsonl", row), tmp_path / "log")
    assert {each["question_id"]: each["documents"] for each in events(tmp_path / "log")} == {"t1": None, "t2": []}
    report = import_log(tmp_path / "traces.jsonl", tmp_path / "other")
    assert report.unasked == 2
    assert "WARNING: 2 traces with an answer or documents, but without a question" in str(report)


def test_documents_without_identifiers_have_a_hash_of_their_text(tmp_path):
    named = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": "hi"}
    import_log(write(tmp_path / "t.jsonl", otlp(("t1", "a1", "", named, {}))), tmp_path / "log")
    (found,) = events(tmp_path / "log")
    assert found["documents"] == ["sha256:8f434346648f6b96"]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (
            {
                "gen_ai.input.messages": json.dumps(
                    [{"role": "user", "parts": [{"type": "text", "content": "late fees?"}]}]
                )
            },
            {
                "gen_ai.output.messages": json.dumps(
                    [{"role": "assistant", "parts": [{"type": "text", "content": "5 euros"}]}]
                )
            },
        ),
        (
            {
                "gen_ai.prompt.0.role": "system",
                "gen_ai.prompt.0.content": "be kind",
                "gen_ai.prompt.1.role": "user",
                "gen_ai.prompt.1.content": "late fees?",
            },
            {"gen_ai.completion.0.content": "5 euros"},
        ),
        ({"gen_ai.prompt": "late fees?"}, {"gen_ai.completion": "5 euros"}),
    ],
)
def test_generative_ai_spans_of_opentelemetry_old_and_new(tmp_path, asked, answered):
    chat = (
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": "s1",
            "user.id": "u1",
            "metadata": '{"language": "en"}',
        }
        | asked
        | answered
    )
    search = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.query.text": "late fees?",
        "gen_ai.retrieval.documents": json.dumps([{"id": "b", "score": 0.9}, {"id": "a", "score": 0.5}]),
    }
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
        "name": "gen_ai.evaluation.result",
        "timeUnixNano": str(END),
        "attributes": [
            {"key": "gen_ai.evaluation.name", "value": value("user_feedback")},
            {"key": "gen_ai.evaluation.score.value", "value": value(1)},
        ],
    }
    record = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"traceId": "t3", "spanId": "l1", **judged}]}]}]}
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
    assert {each.reason: each.rows for each in report.refused} == {"not a JSON object": 1, "no span": 1}
    assert report.rows == 3
    again = import_log(source, tmp_path / "log")
    assert (again.duplicates, again.events) == (2, {})


# ---- the spans with the question and the answer of a trace


def span(name, parent, kind, times, asked=None, answered=None, documents=()):
    """Return a span as (name, parent, attributes, start and end in milliseconds)."""
    attributes = {"openinference.span.kind": kind} if kind else {"http.route": "/ask"}
    attributes |= {"input.value": asked} if asked else {}
    attributes |= {"output.value": answered} if answered else {}
    where = "reranker.output_documents" if kind == "RERANKER" else "retrieval.documents"
    for place, each in enumerate(documents):
        attributes[f"{where}.{place}.document.id"] = each
        attributes[f"{where}.{place}.document.content"] = f"Text of {each}."
    return name, parent, attributes, times


# The steps of a RAG application, inside a chain or without one.
STEPS = (
    span("rewrite", "chain", "LLM", (10, 20), "Rewrite: late fees?", "REWRITTEN QUERY"),
    span("search", "chain", "RETRIEVER", (20, 30), "REWRITTEN QUERY", documents=("a", "b", "c")),
    span("rank-1", "chain", "RERANKER", (30, 40), "REWRITTEN QUERY", documents=("a", "c")),
    span("rank-2", "chain", "RERANKER", (40, 50), "REWRITTEN QUERY", documents=("c",)),
    span("tool", "chain", "TOOL", (50, 55), "{}", "tool output"),
    span("reply", "chain", "LLM", (55, 90), "Answer: late fees?", "5 euros"),
)
CHAIN_SPAN = span("chain", "server", "CHAIN", (5, 95), "late fees?", "5 euros")
SERVER = span("server", None, "", (0, 100))
HEALTH = span("health", None, "", (0, 1))
TRACES = {
    "a server span without input": ((SERVER, CHAIN_SPAN, *STEPS), "late fees?", 90),
    "a remote parent": ((CHAIN_SPAN, *STEPS), "late fees?", 90),
    "a missing server span below another": (
        (span("client", "gone", "", (0, 100)), CHAIN_SPAN, *STEPS),
        "late fees?",
        90,
    ),
    "a chain without output": ((span("chain", None, "CHAIN", (5, 95), "late fees?"), *STEPS), "late fees?", 85),
    "an agent in a chain without input": (
        (
            span("outer", None, "CHAIN", (0, 100)),
            span("chain", "outer", "AGENT", (5, 95), "late fees?", "5 euros"),
            *STEPS,
        ),
        "late fees?",
        90,
    ),
    "calls of models only": ((SERVER, *STEPS), "Rewrite: late fees?", 80),
}


def exported(*traces):
    """Return an export of traces, each a list of spans, in this order."""
    return otlp(
        *(
            (
                trace,
                f"{trace}-{name}",
                f"{trace}-{parent}" if parent else "",
                attributes,
                {"startTimeUnixNano": str(START + times[0] * 10**6), "endTimeUnixNano": str(START + times[1] * 10**6)},
            )
            for trace, spans in traces
            for name, parent, attributes, times in spans
        )
    )


@pytest.mark.parametrize("case", TRACES)
def test_question_answer_and_documents_do_not_depend_on_the_order_of_spans(case, tmp_path):
    spans, question, latency = TRACES[case]
    rows = [(f"t{n}", [one]) for n in range(3) for one in spans]
    rows.append(("t9", [HEALTH]))
    random.Random(1).shuffle(rows)
    # Half of the spans are in another file.
    lines = [exported(row) for row in rows]
    write(tmp_path / "one.jsonl", *lines[::2])
    write(tmp_path / "two.jsonl", *lines[1::2])
    report = import_log([tmp_path / "one.jsonl", tmp_path / "two.jsonl"], tmp_path / "log")
    assert (report.events["question"], report.events["answer"], report.unasked) == (3, 3, 0)
    found = {each["kind"]: each for each in events(tmp_path / "log")}
    assert (found["question"]["text"], found["answer"]["text"]) == (question, "5 euros")
    assert found["answer"]["latency_ms"] == latency

    answers = AnswerSet.of(write(tmp_path / "all.jsonl", *lines))
    assert {each.id for each in answers} == {"t0", "t1", "t2"}
    for each in answers:
        assert (each.question, each.answer) == (question, "5 euros")
        assert [context.id for context in each.contexts] == ["c"]
        assert each.ranking == ("a", "b", "c")
    (note,) = answers.notes
    assert "all.jsonl: 1 trace without question, answer, and documents ignored" in note
    # Calls of models without a chain can be steps or turns.
    assert ("3 traces with several questions" in note) == (case == "calls of models only")
    assert report.several == (3 if case == "calls of models only" else 0)


@pytest.mark.parametrize(
    ("spans", "question", "several"),
    [
        (
            (
                SERVER,
                span("one", "server", "CHAIN", (1, 5), "late fees?", "5 euros"),
                span("title", "server", "CHAIN", (6, 9), "make a title", "A CHAT TITLE"),
            ),
            "late fees?",
            1,
        ),
        (
            (
                span("one", None, "CHAIN", (1, 5), "late fees?", "5 euros"),
                span("two", None, "CHAIN", (6, 9), "who pays?", "You."),
            ),
            "late fees?",
            1,
        ),
        (
            (
                span("one", None, "CHAIN", (1, 5), "late fees?"),
                span("two", None, "CHAIN", (6, 9), "late fees?", "5 euros"),
            ),
            "late fees?",
            0,
        ),
        (
            (
                span("root", None, "CHAIN", (0, 9), None, "5 euros"),
                span("rewrite", "root", "CHAIN", (1, 2), "late fees?", "REWRITTEN"),
            ),
            "late fees?",
            0,
        ),
        (
            (
                span("one", None, "LLM", (1, 5), "late fees?", "Let me search."),
                span("two", None, "LLM", (6, 9), "late fees?", "5 euros"),
            ),
            "late fees?",
            0,
        ),
    ],
)
def test_the_answer_is_the_output_of_the_span_with_the_question(spans, question, several, tmp_path):
    source = write(tmp_path / "traces.jsonl", exported(("t1", spans)))
    answers = AnswerSet.of(source)
    assert [(each.question, each.answer) for each in answers] == [(question, "5 euros")]
    assert ("1 trace with several questions" in "".join(answers.notes)) == bool(several)
    report = import_log(source, tmp_path / "log")
    found = {each["kind"]: each["text"] for each in events(tmp_path / "log")}
    assert found == {"question": question, "answer": "5 euros"}
    assert report.several == several
    assert ("WARNING: 1 trace with several questions" in str(report)) == bool(several)


def test_equal_identifiers_of_spans_in_different_traces_are_different_spans(tmp_path):
    judged = {"annotations.0.annotation.name": "feedback", "annotations.0.annotation.score": 1}
    rows = [otlp((f"t{n}", "h", "", CHAIN | judged, {})) for n in range(3)]
    source = write(tmp_path / "traces.jsonl", *rows)
    report = import_log(source, tmp_path / "log")
    assert report.events == {"question": 3, "answer": 3, "thumbs": 3}
    assert (report.duplicates, import_log(source, tmp_path / "log").duplicates) == (0, 9)


def test_contexts_are_those_of_the_outermost_retrievers_in_order_of_time():
    inner = span("inner", "both", "RETRIEVER", (2, 4), "q", documents=("x", "b"))
    both = span("both", "chain", "RETRIEVER", (2, 5), "q", documents=("b",))
    second = span("second", "chain", "RETRIEVER", (6, 7), "q", documents=("a", "b"))
    chain = span("chain", None, "CHAIN", (0, 9), "late fees?", "5 euros")
    for order in itertools.permutations([inner, both, second, chain]):
        (record,) = AnswerSet.of([exported(("t1", order))])
        assert [context.id for context in record.contexts] == ["b", "a"]


def test_traces_without_a_question_are_refused_with_their_number():
    silent = (SERVER, span("reply", "server", "LLM", (1, 2), None, "5 euros"))
    rows = [exported((f"t{n}", silent if n % 3 else (CHAIN_SPAN, *STEPS))) for n in range(9)]
    with pytest.raises(InputError, match="6 of 9 traces have no question"):
        AnswerSet.of(rows)
    with pytest.raises(InputError, match="2 of 2 traces have no question"):
        AnswerSet.of([exported(("t1", [HEALTH])), exported(("t2", [SERVER]))])


def test_spans_with_iso_times_are_ordered_by_time():
    def at(name, kind, second, answered):
        return {
            "context": {"trace_id": "t1", "span_id": name},
            "parent_id": "gone",
            "start_time": f"2026-05-01T12:00:{second:02}+02:00",
            "end_time": f"2026-05-01T10:00:{second + 1:02}.5Z",
            "attributes": {
                "openinference.span.kind": kind,
                "input.value": f"asked by {name}",
                "output.value": answered,
            },
        }

    rows = [at("second", "LLM", 8, "5 euros"), at("first", "LLM", 1, "REWRITTEN QUERY")]
    for order in (rows, rows[::-1]):
        (record,) = AnswerSet.of(order)
        assert (record.question, record.answer) == ("asked by first", "5 euros")

"""Exports of Phoenix, Langfuse, and LangSmith: small files in the documented formats, written by hand."""

import csv
import json

import pandas as pd
import pytest

from rankgauge.answers import read_answers
from rankgauge.errors import FormatError
from rankgauge.production import EventLog, import_log

_WANTED = "kind, question_id, session_id, user_id, text, documents, value, latency_ms"


def _lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _events(log):
    with EventLog(log).connection() as connection:
        return connection.execute(f"SELECT {_WANTED} FROM events WHERE kind <> 'other' ORDER BY kind, text").fetchall()


# ---- Phoenix: Client().spans.get_spans_dataframe() and GET /v1/projects/{id}/spans


def _phoenix_spans():
    shared = {"context.trace_id": "t1", "status_code": "OK"}
    return [
        shared
        | {
            "name": "query",
            "span_kind": "CHAIN",
            "parent_id": None,
            "start_time": pd.Timestamp("2026-05-01T12:00:00Z"),
            "end_time": pd.Timestamp("2026-05-01T12:00:02Z"),
            "context.span_id": "s1",
            "attributes.openinference.span.kind": "CHAIN",
            "attributes.input.value": "late fees?",
            "attributes.output.value": "2 euros",
            "attributes.session.id": "c1",
            "attributes.user.id": "u1",
            "attributes.retrieval.documents": None,
        },
        shared
        | {
            "name": "retrieve",
            "span_kind": "RETRIEVER",
            "parent_id": "s1",
            "start_time": pd.Timestamp("2026-05-01T12:00:00.5Z"),
            "end_time": pd.Timestamp("2026-05-01T12:00:01Z"),
            "context.span_id": "s2",
            "attributes.openinference.span.kind": "RETRIEVER",
            "attributes.input.value": "late fees?",
            "attributes.output.value": None,
            "attributes.session.id": "c1",
            "attributes.user.id": "u1",
            "attributes.retrieval.documents": [
                {"document.id": "d1", "document.content": "Fees", "document.score": 0.9},
                {"document.id": "d2", "document.content": "Hours", "document.score": 0.8},
            ],
        },
    ]


_PHOENIX = [
    ("answer", "t1", "c1", "u1", "2 euros", None, None, 2000.0),
    ("question", "t1", "c1", "u1", "late fees?", None, None, None),
    ("retrieval", "t1", "c1", "u1", None, ["d1", "d2"], None, 500.0),
]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json"])
def test_a_data_frame_of_phoenix_is_read(suffix, tmp_path):
    frame, path = pd.DataFrame(_phoenix_spans()), tmp_path / f"spans.{suffix}"
    match suffix:
        case "parquet":
            frame.to_parquet(path)
        case "csv":
            frame.to_csv(path)
        case "json":
            frame.to_json(path, orient="records", date_format="iso")
    report = import_log(path, tmp_path / "log")
    assert report.refused == ()
    assert _events(tmp_path / "log") == _PHOENIX


def test_spans_and_annotations_of_the_api_of_phoenix_are_joined(tmp_path):
    spans = [
        {
            "id": row["context.span_id"],
            "name": row["name"],
            "context": {"trace_id": row["context.trace_id"], "span_id": row["context.span_id"]},
            "span_kind": row["span_kind"],
            "parent_id": row["parent_id"],
            "start_time": row["start_time"].isoformat(),
            "end_time": row["end_time"].isoformat(),
            "attributes": {
                name.removeprefix("attributes."): value for name, value in row.items() if name.startswith("attributes.")
            },
        }
        for row in _phoenix_spans()
    ]
    annotation = {
        "id": "U3BhbkFubm90YXRpb246MQ==",
        "name": "user_feedback",
        "annotator_kind": "HUMAN",
        "result": {"label": "thumbs-down", "score": 0, "explanation": "wrong fee"},
        "span_id": "s1",
        "created_at": "2026-05-01T12:01:00+00:00",
    }
    pages = {"spans.json": spans, "annotations.json": [annotation]}
    for name, page in pages.items():
        (tmp_path / name).write_text(json.dumps({"data": page, "next_cursor": None}), encoding="utf-8")
    import_log([tmp_path / name for name in pages], tmp_path / "log", format="phoenix")
    thumbs = ("thumbs", "t1", None, None, "wrong fee", None, -1.0, None)
    assert _events(tmp_path / "log") == [*_PHOENIX, thumbs]


# ---- Langfuse


def _langfuse_observations():
    """Rows of observations_v2/ in blob storage."""
    shared = {"trace_id": "t1", "project_id": "p", "user_id": "u1", "session_id": "c1", "metadata": {"locale": "de"}}
    return [
        shared
        | {
            "id": "o1",
            "type": "CHAIN",
            "parent_observation_id": "",
            "start_time": "2026-05-01 12:00:00.000000",
            "end_time": "2026-05-01 12:00:02.000000",
            "name": "answer",
            "input": '{"question": "late fees?"}',
            "output": "2 euros",
        },
        shared
        | {
            "id": "o2",
            "type": "RETRIEVER",
            "parent_observation_id": "o1",
            "start_time": "2026-05-01 12:00:00.500000",
            "end_time": "2026-05-01 12:00:01.000000",
            "name": "retrieve",
            "input": "late fees?",
            "output": json.dumps([{"page_content": "Fees", "metadata": {"source": "fees.md"}}]),
        },
        shared
        | {
            "id": "o3",
            "type": "GENERATION",
            "parent_observation_id": "o1",
            "start_time": "2026-05-01 12:00:01.000000",
            "end_time": "2026-05-01 12:00:02.000000",
            "name": "llm",
            "input": json.dumps([{"role": "user", "content": "Context: Fees. Question: late fees?"}]),
            "output": "2 euros",
        },
    ]


_SCORE = {
    "id": "s1",
    "timestamp": "2026-05-01 12:01:00.000000",
    "project_id": "p",
    "trace_id": "t1",
    "observation_id": None,
    "name": "user-feedback",
    "value": 1,
    "source": "API",
    "comment": "thanks",
    "data_type": "NUMERIC",
    "string_value": None,
}


def test_observations_and_scores_of_langfuse_are_joined(tmp_path):
    judge = _SCORE | {"id": "s2", "name": "feedback", "source": "EVAL", "value": 0}
    words = _SCORE | {"id": "s3", "data_type": "CATEGORICAL", "string_value": "negative", "comment": None}
    files = [
        _lines(tmp_path / "observations.jsonl", _langfuse_observations()),
        _lines(tmp_path / "scores.jsonl", [_SCORE, judge, words]),
    ]
    import_log(files, tmp_path / "log", format="langfuse")
    assert _events(tmp_path / "log") == [
        ("answer", "t1", "c1", "u1", "2 euros", None, None, 2000.0),
        ("question", "t1", "c1", "u1", "late fees?", None, None, None),
        ("retrieval", "t1", "c1", "u1", None, ["fees.md"], None, 500.0),
        ("thumbs", "t1", None, None, "thanks", None, 1.0, None),
        ("thumbs", "t1", None, None, None, None, -1.0, None),
    ]
    # The score of a model is no feedback of a user.
    with EventLog(tmp_path / "log").connection() as connection:
        assert connection.execute("SELECT label FROM events WHERE kind = 'other'").fetchall() == [("feedback",)]


_FEEDBACK = {"id": "f1", "run_id": "t1", "key": "user_score", "created_at": "2026-05-01T12:01:00"}


@pytest.mark.parametrize(
    ("row", "value"),
    [
        (_SCORE | {"data_type": "BOOLEAN", "value": 0, "string_value": "False"}, -1.0),
        (_SCORE | {"data_type": "BOOLEAN", "value": 1, "string_value": "True"}, 1.0),
        (_SCORE | {"data_type": "CATEGORICAL", "value": 0, "string_value": "positive"}, 1.0),
        (_FEEDBACK | {"score": 0, "value": 1}, -1.0),
        (_FEEDBACK | {"score": None, "value": 1}, 1.0),
    ],
)
def test_a_score_has_one_value(row, value, tmp_path):
    import_log(_lines(tmp_path / "scores.jsonl", [row]), tmp_path / "log", format="spans")
    assert [(kind, found) for kind, *_, found, _ in _events(tmp_path / "log")] == [("thumbs", value)]


def test_scores_of_retrieved_documents_are_kept(tmp_path):
    documents = [
        {"page_content": "Fees", "metadata": {"source": "fees.md"}, "score": 0.75},
        {"id": "d2", "score": 0.25},
    ]
    rows = _langfuse_observations()
    rows[1]["output"] = json.dumps(documents)
    import_log(_lines(tmp_path / "observations.jsonl", rows), tmp_path / "log")
    with EventLog(tmp_path / "log").connection() as connection:
        found = connection.execute("SELECT documents, scores FROM events WHERE kind = 'retrieval'").fetchall()
    assert found == [(["fees.md", "d2"], [0.75, 0.25])]


def _langfuse_trace():
    """A row of the table of traces, as the user interface exports it, with a column for each score."""
    return {
        "id": "t1",
        "timestamp": "2026-05-01T12:00:00.000Z",
        "name": "answer",
        "userId": "u1",
        "sessionId": "c1",
        "tags": ["web"],
        "bookmarked": False,
        "public": False,
        "input": "late fees?",
        "output": "2 euros",
        "metadata": {"locale": "de"},
        "comments": [],
        "user-feedback": [1],
    }


@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl"])
def test_traces_exported_by_the_interface_of_langfuse_are_read(suffix, tmp_path):
    rows, path = [_langfuse_trace(), _langfuse_trace() | {"id": "t2", "user-feedback": None}], tmp_path / f"t.{suffix}"
    match suffix:
        case "csv":
            with path.open("w", encoding="utf-8", newline="") as stream:
                writer = csv.DictWriter(stream, rows[0])
                writer.writeheader()
                writer.writerows(
                    {k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in row.items()} for row in rows
                )
        case "json":
            path.write_text(json.dumps(rows, indent=2), encoding="utf-8")
        case "jsonl":
            _lines(path, rows)
    assert import_log(path, tmp_path / "log").refused == ()
    assert [event[:2] for event in _events(tmp_path / "log")] == [
        ("answer", "t1"),
        ("answer", "t2"),
        ("question", "t1"),
        ("question", "t2"),
        ("thumbs", "t1"),
    ]


def test_a_trace_of_langfuse_downloaded_with_its_parts_is_one_question(tmp_path):
    camel = {
        "trace_id": "traceId",
        "start_time": "startTime",
        "end_time": "endTime",
        "parent_observation_id": "parentObservationId",
    }
    observations = [
        {camel.get(k, k): v or None for k, v in row.items() if k not in {"user_id", "session_id"}}
        for row in _langfuse_observations()
    ]
    score = {"id": "s1", "traceId": "t1", "name": "user-feedback", "value": 1, "timestamp": "2026-05-01T12:01:00.000Z"}
    trace = _langfuse_trace() | {"observations": observations, "scores": [score]}
    del trace["user-feedback"]
    (tmp_path / "trace-t1.json").write_text(json.dumps(trace, indent=2), encoding="utf-8")
    report = import_log(tmp_path / "trace-t1.json", tmp_path / "log")
    assert dict(report.events) == {"question": 1, "retrieval": 1, "answer": 1, "thumbs": 1}
    assert report.several == 0


# ---- LangSmith


def _langsmith_runs():
    """Runs as client.list_runs returns them; session_id is the project."""
    extra = {"metadata": {"session_id": "c1", "user_id": "u1"}}
    shared = {"trace_id": "r1", "session_id": "project", "extra": extra, "error": None, "tags": []}
    messages = [{"role": "system", "content": "Answer."}, {"role": "user", "content": "late fees?"}]
    return [
        shared
        | {
            "id": "r1",
            "name": "RunnableSequence",
            "run_type": "chain",
            "parent_run_id": None,
            "start_time": "2026-05-01T12:00:00.000000",
            "end_time": "2026-05-01T12:00:02.000000",
            "inputs": {"messages": messages},
            "outputs": {"messages": [*messages, {"type": "ai", "content": "2 euros"}]},
        },
        shared
        | {
            "id": "r2",
            "name": "VectorStoreRetriever",
            "run_type": "retriever",
            "parent_run_id": "r1",
            "start_time": "2026-05-01T12:00:00.500000",
            "end_time": "2026-05-01T12:00:01.000000",
            "inputs": {"query": "late fees?"},
            "outputs": {
                "documents": [
                    {"id": "d1", "page_content": "Fees", "type": "Document", "metadata": {"source": "fees.md"}},
                    {"id": None, "page_content": "Hours", "type": "Document", "metadata": {"source": "hours.md"}},
                ]
            },
        },
    ]


_LANGSMITH = [
    ("answer", "r1", "c1", "u1", "2 euros", None, None, 2000.0),
    ("question", "r1", "c1", "u1", "late fees?", None, None, None),
    ("retrieval", "r1", "c1", "u1", None, ["d1", "hours.md"], None, 500.0),
]


def test_runs_and_feedback_of_langsmith_are_joined(tmp_path):
    feedback = {
        "id": "f1",
        "created_at": "2026-05-01T12:01:00+00:00",
        "run_id": "r2",  # of a step: the question is its trace
        "key": "user_score",
        "score": 0,
        "value": None,
        "comment": "wrong",
        "feedback_source": {"type": "api"},
    }
    model = feedback | {"id": "f2", "feedback_source": {"type": "model"}}
    files = [
        _lines(tmp_path / "runs.jsonl", _langsmith_runs()),
        _lines(tmp_path / "feedback.jsonl", [feedback, model]),
    ]
    import_log(files, tmp_path / "log", format="langsmith")
    assert _events(tmp_path / "log") == [*_LANGSMITH, ("thumbs", "r1", None, None, "wrong", None, -1.0, None)]


def test_a_bulk_export_of_langsmith_is_read(tmp_path):
    frame = pd.DataFrame(
        [{k: json.dumps(v) if isinstance(v, dict) else v for k, v in row.items()} for row in _langsmith_runs()]
    )
    frame.to_parquet(tmp_path / "runs.parquet")
    assert import_log(tmp_path / "runs.parquet", tmp_path / "log").refused == ()
    assert _events(tmp_path / "log") == _LANGSMITH


def test_answers_are_read_from_the_same_exports(tmp_path):
    for rows in (_langsmith_runs(), _langfuse_observations()):
        [answer] = next(iter(read_answers(_lines(tmp_path / "answers.jsonl", rows)))).records
        assert (answer.question, answer.answer) == ("late fees?", "2 euros")
        assert answer.contexts[0].text == "Fees"


def test_rows_with_a_few_of_these_names_are_no_export(tmp_path):
    with pytest.raises(FormatError, match="format of this log is not known"):
        import_log(_lines(tmp_path / "a.jsonl", [{"id": "1", "timestamp": 1, "input": "a"}]), tmp_path / "log")


_ODD = [
    {"id": 1, "run_type": [], "start_time": {}, "inputs": [1], "outputs": {"documents": "d"}, "extra": [1]},
    {
        "id": "r",
        "run_type": "retriever",
        "start_time": "x",
        "inputs": "a",
        "outputs": {"documents": [{"metadata": "m"}, 1]},
    },
    {
        "id": "r",
        "run_type": "chain",
        "start_time": 5,
        "inputs": {"messages": [{"kwargs": "x", "role": []}]},
        "extra": "[1]",
    },
    {"trace_id": "t", "name": {}, "value": {}, "timestamp": [], "data_type": [], "string_value": "a"},
    {"annotator_kind": [], "result": "[1]", "span_id": {}},
    {"id": "t", "timestamp": 1, "input": None, "output": None, "public": True, "a": [[1]], "metadata": "[2]"},
    {"data": [{"data": [{"runs": [{}]}]}]},
]


@pytest.mark.parametrize("row", _ODD, ids=range(len(_ODD)))
def test_odd_values_are_refused_or_kept_and_end_no_import(row, tmp_path):
    report = import_log(_lines(tmp_path / "odd.jsonl", [*_langsmith_runs(), row]), tmp_path / "log")
    assert report.rows == 3
    assert report.questions >= 1

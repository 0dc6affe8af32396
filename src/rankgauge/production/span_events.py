"""Conversion of spans (OpenInference, and OpenTelemetry for generative AI) to events."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rankgauge.formats.spans import (
    END,
    RERANKED,
    SPAN,
    START,
    TRACE,
    SpanMark,
    TraceEnds,
    answer_of,
    documents_of,
    ends_of,
    first_of,
    json_value,
    kind_of,
    mark_of,
    parsed_cell,
    question_of,
    records_of_logs,
    retrieved_of,
    spans_of,
)
from rankgauge.production.events import DRAFT, FEEDBACK, LogMapping

_RECORDED = ("timeunixnano", "observedtimeunixnano", "timestamp", "time")
_SESSION = ("session.id", "gen_ai.conversation.id")
_USER = ("user.id", "enduser.id")
_ARM = ("arm", "experiment.arm", "experiment_arm")
_LINK = ("links.0.traceid", "links.0.context.trace_id", "links.0.trace_id")
_MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
# Annotations have one of three prefixes and an older name.
_ANNOTATION = re.compile(
    r"(?:(?:trace|session)\.)?(?:annotations|evaluations)\.(\d+)\.(?:annotation|evaluation)"
    r"\.(name|score|label|explanation|annotator_kind|identifier)"
)
_EVALUATION = re.compile(
    r"(?:events\.(\d+)\.(?:attributes\.)?)?gen_ai\.evaluation\.(name|score\.value|score\.label|explanation)"
)
_NOT_USERS = ("LLM", "CODE")


def trace_ends(batches: Iterable[Any]) -> tuple[dict[str, TraceEnds], dict[str, str]]:
    """Return for each trace the spans with its question and its answer, and the trace of each span.

    All rows are read before any is converted, since the spans of a trace can be in any order, in
    several batches, and in several files.

    Args:
        batches: Arrow tables with the rows of all files.
    """
    marks: dict[str, list[SpanMark]] = {}
    traces: dict[str, str] = {}
    for rows in batches:
        for _, row in _objects(rows):
            for span in spans_of(row or {}):
                trace = first_of(span, TRACE)
                # Feedback is a span that is linked to another trace.
                is_feedback = first_of(span, _LINK) is not None and any(
                    _ANNOTATION.fullmatch(key) or _EVALUATION.fullmatch(key) for key in span
                )
                if trace is not None and not is_feedback:
                    marks.setdefault(str(trace), []).append(mark_of(span))
                    traces[str(first_of(span, SPAN))] = str(trace)
    return {trace: ends_of(own_marks) for trace, own_marks in marks.items()}, traces


def _objects(rows: Any) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield the line and the object of each row that is not blank; None if it is not an object."""
    if "raw" not in rows.column_names:
        for cells in rows.to_pylist():
            # Lists and objects in cells are JSON or, in CSV files of pandas, Python; the values of spans are texts.
            parsed = {name: value if name.endswith(".value") else parsed_cell(value) for name, value in cells.items()}
            yield parsed.pop("line"), {name: value for name, value in parsed.items() if value not in (None, "")}
        return
    for line, raw in zip(rows["line"].to_pylist(), rows["raw"].to_pylist(), strict=True):
        if raw.strip(" \t\r\n"):
            row = json_value(raw)
            yield line, row if isinstance(row, dict) else None


def draft_of_spans(
    rows: Any, mapping: LogMapping | None, ends: Mapping[str, TraceEnds], traces: Mapping[str, str]
) -> Any:
    """Convert rows of spans to a draft of events, an Arrow table; `ends` and `traces` as from `trace_ends`."""
    import pyarrow as pa

    kinds = {**FEEDBACK, **(mapping.kinds if mapping else {})}
    names = tuple(mapping.attributes) if mapping else ()
    drafts: list[dict[str, Any]] = []
    for line, row in _objects(rows):
        if row is None:
            drafts.append({"line": line, "part": 0, "fault": "not a JSON object"})
            continue
        events = list(_events(row, kinds, names, ends))
        # An export or a span may have no events.
        is_export = not {"resourceSpans", "scopeSpans", "resourceLogs"}.isdisjoint(row)
        if not events and not is_export and not any(first_of(span, TRACE) for span in spans_of(row)):
            events = [{"fault": "no span"}]
        for event in events:
            # Feedback may name a span instead of its trace.
            event["question_id"] = traces.get(event.get("question_id", ""), event.get("question_id"))
        drafts += [{**event, "line": line, "part": part} for part, event in enumerate(events)]
    types = {
        "BIGINT": pa.int64(),
        "INTEGER": pa.int32(),
        "VARCHAR": pa.string(),
        "VARCHAR[]": pa.list_(pa.string()),
        "MAP(VARCHAR, VARCHAR)": pa.map_(pa.string(), pa.string()),
    }
    return pa.table(
        {name: pa.array([draft.get(name) for draft in drafts], types[kind]) for name, kind in DRAFT.items()}
    )


def _events(
    row: Mapping[str, Any], kinds: Mapping[str, str], names: tuple[str, ...], ends: Mapping[str, TraceEnds]
) -> Iterator[dict[str, Any]]:
    if "resourceLogs" in row:
        for record in records_of_logs(row):
            yield from _judged(record, kinds, names, first_of(record, _RECORDED))
        return
    for span in spans_of(row):
        trace = first_of(span, TRACE)
        if trace is not None:
            yield from _events_of(span, kinds, names, ends.get(str(trace), TraceEnds()))


def _events_of(
    span: Mapping[str, Any], kinds: Mapping[str, str], names: tuple[str, ...], ends: TraceEnds
) -> Iterator[dict[str, Any]]:
    """Yield the events of a span: question and answer of its trace, documents of a retriever."""
    start, end = first_of(span, START), first_of(span, END)
    shared = _shared(span, names) | {"time": _text(start)}
    key = _identity(span)
    kind, mark = kind_of(span), mark_of(span)

    def event(what: str, **parts: Any) -> dict[str, Any]:
        return shared | {"event_id": None if key is None else f"{key}:{what}", "kind": what} | parts

    if ends.question == mark:
        yield event("question", text=question_of(span))
    if ends.answer == mark:
        asked = mark if ends.question is None else ends.question
        latency = _milliseconds(asked.start, mark.end)
        yield event("answer", text=answer_of(span), time=_text(end or start), latency_ms=latency)
    latency = _milliseconds(mark.start, mark.end)
    if kind == "RETRIEVER":
        yield event("retrieval", latency_ms=latency, **_ranking(retrieved_of(span)))
    elif kind == "RERANKER":
        ranking = _ranking(documents_of(span, RERANKED) or None)
        yield event("retrieval", latency_ms=latency, label="reranked", **ranking)
    yield from _judged(span, kinds, names, end or start)


def _identity(span: Mapping[str, Any]) -> str | None:
    """Return the trace and identifier of a span; identifiers are only unique within a trace."""
    key = first_of(span, SPAN)
    return None if key is None else f"{first_of(span, TRACE)}:{key}"


def _milliseconds(start: int | None, end: int | None) -> str | None:
    return None if start is None or end is None else str((end - start) / 1e6)


def _shared(span: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields shared by all events of a span."""
    attributes = {name: str(span[name]) for name in names if span.get(name) is not None}
    model = first_of(span, _MODEL)
    if model is not None:
        attributes["model"] = str(model)
    metadata = json_value(span.get("metadata"))
    for name, value in metadata.items() if isinstance(metadata, dict) else ():
        if isinstance(value, str | int | float | bool):
            attributes[name] = str(value)
    return {
        "question_id": _text(first_of(span, TRACE)),
        "session_id": _text(first_of(span, _SESSION)),
        "user_id": _text(first_of(span, _USER)),
        "arm": _text(first_of(span, _ARM)),
        "attributes": list(attributes.items()),
    }


def _judged(
    span: Mapping[str, Any], kinds: Mapping[str, str], names: tuple[str, ...], time: Any
) -> Iterator[dict[str, Any]]:
    """Yield feedback on a trace or a linked trace: annotations and evaluation events."""
    judgments: dict[str, dict[str, Any]] = {}
    for key, value in span.items():
        if match := _ANNOTATION.fullmatch(key):
            judgments.setdefault(f"a{match[1]}", {})[match[2]] = value
        elif match := _EVALUATION.fullmatch(key):
            judgments.setdefault(f"e{match[1] or 0}", {})[match[2].removeprefix("score.")] = value
    for key, parts in judgments.items():
        name = _text(parts.get("name"))
        if name is None:
            continue
        by_user = str(parts.get("annotator_kind") or "").upper() not in _NOT_USERS
        kind = kinds.get(name, "other") if by_user else "other"
        number = parts.get("score", parts.get("value"))
        word = _text(parts.get("label"))
        own = _identity(span)
        identity = _text(parts.get("identifier")) or (None if own is None else f"{own}:{key}")
        moment = first_of(span, (f"events.{key[1:]}.timeunixnano", f"events.{key[1:]}.timestamp"))
        yield _shared(span, names) | {
            "event_id": identity,
            "kind": kind,
            "time": _text(moment if key[0] == "e" and moment is not None else time),
            "question_id": _text(first_of(span, _LINK) or first_of(span, TRACE)),
            "value": word if number is None else _text(number),
            "label": name if kind == "other" else word,
            "text": _text(parts.get("explanation")),
        }


def _ranking(documents: list[dict[str, str]] | None) -> dict[str, Any]:
    """Return identifiers and scores; documents without identifier get a hash of their text."""
    if documents is None:
        return {}
    names = [
        document.get("id") or f"sha256:{hashlib.sha256(document.get('text', '').encode()).hexdigest()[:16]}"
        for document in documents
    ]
    scores = [document.get("score") for document in documents]
    return {"documents": names, "scores": scores if scores and None not in scores else None}


def _text(value: Any) -> str | None:
    """Return a value as text; None if empty."""
    return None if value is None or value == "" else str(value)

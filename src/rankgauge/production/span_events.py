"""Conversion of spans (OpenInference, and OpenTelemetry for generative AI) to events."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rankgauge.formats.spans import (
    ANSWER,
    PARENT,
    QUESTION,
    RERANKED,
    RETRIEVED,
    SPAN,
    TRACE,
    documents_of,
    first_of,
    records_of_logs,
    spans_of,
    text_of,
)
from rankgauge.production.mappings import FEEDBACK, LogMapping
from rankgauge.production.translation import DRAFT

_START = ("starttimeunixnano", "start_time_unix_nano", "start_time", "starttime")
_END = ("endtimeunixnano", "end_time_unix_nano", "end_time", "endtime")
_RECORDED = ("timeunixnano", "observedtimeunixnano", "timestamp", "time")
_SESSION = ("session.id", "gen_ai.conversation.id")
_USER = ("user.id", "enduser.id")
_ARM = ("arm", "experiment.arm", "experiment_arm")
_LINK = ("links.0.traceid", "links.0.context.trace_id", "links.0.trace_id")
_QUERY = ("gen_ai.retrieval.query.text", "gen_ai.retrieval.query")
_MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_ASKED = ("gen_ai.input.messages", "gen_ai.prompt")
_ANSWERED = ("gen_ai.output.messages", "gen_ai.completion")
# Annotations have one of three prefixes and an older name.
_ANNOTATION = re.compile(
    r"(?:(?:trace|session)\.)?(?:annotations|evaluations)\.(\d+)\.(?:annotation|evaluation)"
    r"\.(name|score|label|explanation|annotator_kind|identifier)"
)
_EVALUATION = re.compile(
    r"(?:events\.(\d+)\.(?:attributes\.)?)?gen_ai\.evaluation\.(name|score\.value|score\.label|explanation)"
)
_NOT_USERS = ("LLM", "CODE")
_SEARCH = ("RETRIEVER", "RERANKER", "EMBEDDING", "TOOL")


def draft_of_spans(rows: Any, mapping: LogMapping | None) -> Any:
    """Convert rows of spans to a draft of events, an Arrow table."""
    import pyarrow as pa

    kinds = {**FEEDBACK, **(mapping.kinds if mapping else {})}
    names = tuple(mapping.attributes) if mapping else ()
    drafts: list[dict[str, Any]] = []
    lines, raws = rows["line"].to_pylist(), rows["raw"].to_pylist()
    for line, raw in zip(lines, raws, strict=True):
        if not raw.strip():
            continue
        try:
            row = json.loads(raw)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            drafts.append({"line": line, "part": 0, "fault": "not a JSON object"})
            continue
        made = list(_events(row, kinds, names))
        if not made and not _has_spans(row):
            made = [{"fault": "no span"}]
        drafts += [{**each, "line": line, "part": part} for part, each in enumerate(made)]
    types = {
        "BIGINT": pa.int64(),
        "INTEGER": pa.int32(),
        "VARCHAR": pa.string(),
        "VARCHAR[]": pa.list_(pa.string()),
        "MAP(VARCHAR, VARCHAR)": pa.map_(pa.string(), pa.string()),
    }
    return pa.table(
        {
            name: pa.array([each.get(name) for each in drafts], types[kind])
            for name, kind in DRAFT.items()
        }
    )


def _has_spans(row: Mapping[str, Any]) -> bool:
    """Return whether a row is an export or a span, possibly without events."""
    return bool(
        {"resourceSpans", "scopeSpans", "resourceLogs"} & set(row)
        or any(first_of(span, TRACE) for span in spans_of(row))
    )


def _events(
    row: Mapping[str, Any], kinds: Mapping[str, str], names: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    if "resourceLogs" in row:
        for record in records_of_logs(row):
            yield from _judged(record, kinds, names, first_of(record, _RECORDED))
        return
    for span in spans_of(row):
        if first_of(span, TRACE) is not None:
            yield from _events_of(span, kinds, names)


def _events_of(
    span: Mapping[str, Any], kinds: Mapping[str, str], names: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Yield the events of a span: question and answer of a root span, documents of a retriever."""
    start, end = first_of(span, _START), first_of(span, _END)
    shared = _shared(span, names) | {"time": _text(start)}
    key = first_of(span, SPAN)
    latency = _milliseconds(start, end)
    operation = str(span.get("gen_ai.operation.name") or "")
    kind = str(span.get("openinference.span.kind") or "").upper()
    if operation == "retrieval":
        kind = "RETRIEVER"
    judged = list(_judged(span, kinds, names, end or start))
    linked = first_of(span, _LINK) is not None and bool(judged)

    def event(what: str, **parts: Any) -> dict[str, Any]:
        identity = None if key is None else f"{key}:{what}"
        return shared | {"event_id": identity, "kind": what} | parts

    if not first_of(span, PARENT) and not linked:
        asked = text_of([span], "input.value", QUESTION) or first_of(span, _QUERY)
        asked = asked or _message(span, _ASKED, last="user")
        if asked is not None:
            yield event("question", text=str(asked))
        if kind not in _SEARCH:
            answer = text_of([span], "output.value", ANSWER) or _message(span, _ANSWERED)
            if answer is not None:
                time = _text(end or start)
                yield event("answer", text=answer, time=time, latency_ms=latency)
    if kind == "RETRIEVER":
        found = _retrieved(span)
        yield event("retrieval", latency_ms=latency, **_ranking(found))
    elif kind == "RERANKER":
        found = documents_of(span, RERANKED)
        yield event("retrieval", latency_ms=latency, label="reranked", **_ranking(found or None))
    yield from judged


def _shared(span: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields shared by all events of a span."""
    attributes = {name: str(span[name]) for name in names if span.get(name) is not None}
    model = first_of(span, _MODEL)
    if model is not None:
        attributes["model"] = str(model)
    for name, value in _json_object(span.get("metadata")).items():
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
    found: dict[str, dict[str, Any]] = {}
    for key, value in span.items():
        match = _ANNOTATION.fullmatch(key)
        if match:
            found.setdefault(f"a{match[1]}", {})[match[2]] = value
        elif match := _EVALUATION.fullmatch(key):
            found.setdefault(f"e{match[1] or 0}", {})[match[2].removeprefix("score.")] = value
    for key, parts in found.items():
        name = _text(parts.get("name"))
        if name is None:
            continue
        kind = kinds.get(name, "other")
        if str(parts.get("annotator_kind") or "").upper() in _NOT_USERS:
            kind = "other"
        number = parts.get("score", parts.get("value"))
        word = _text(parts.get("label"))
        own = first_of(span, SPAN)
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


def _retrieved(span: Mapping[str, Any]) -> list[dict[str, str]] | None:
    """Return the documents of a retriever span; None if they were not recorded."""
    found = documents_of(span, RETRIEVED)
    if found:
        return found
    given = span.get("gen_ai.retrieval.documents")
    listed = _json(given) if isinstance(given, str) else given
    if listed is None:
        flat: dict[int, dict[str, str]] = {}
        for key, value in span.items():
            match = re.fullmatch(r"gen_ai\.retrieval\.documents\.(\d+)\.(id|score|content)", key)
            if match and value is not None:
                flat.setdefault(int(match[1]), {})[match[2]] = str(value)
        if flat:
            return [flat[number] for number in sorted(flat)]
        # An empty list counts only if the output contains it explicitly.
        output = _json(span.get("output.value"))
        if isinstance(output, dict):
            output = output.get("documents")
        return [] if output == [] else None
    if not isinstance(listed, list):
        return None
    return [
        {key: str(each[key]) for key in ("id", "score", "content") if each.get(key) is not None}
        for each in listed
        if isinstance(each, Mapping)
    ]


def _ranking(found: list[dict[str, str]] | None) -> dict[str, Any]:
    """Return identifiers and scores; documents without identifier get a hash of their text."""
    if found is None:
        return {}
    documents = [
        each.get("id")
        or "sha256:"
        + hashlib.sha256((each.get("text") or each.get("content", "")).encode()).hexdigest()[:16]
        for each in found
    ]
    scores = [each.get("score") for each in found]
    known = bool(scores) and None not in scores
    return {"documents": documents, "scores": scores if known else None}


def _message(span: Mapping[str, Any], keys: tuple[str, ...], last: str = "") -> str | None:
    """Return the text of the last message (of a role), from old or new attributes."""
    for key in keys:
        content = span.get(key)
        messages = _json(content) if isinstance(content, str) else content
        if isinstance(messages, str):
            return messages
        if isinstance(messages, list):
            found = [
                _content(each)
                for each in messages
                if isinstance(each, Mapping) and last in {"", each.get("role")}
            ]
            if found and found[-1]:
                return found[-1]
        flat = {
            int(match[1]): str(span.get(f"{key}.{match[1]}.role") or "")
            for name in span
            if (match := re.fullmatch(re.escape(key) + r"\.(\d+)\.(?:content|parts.*)", name))
        }
        chosen = [number for number, role in flat.items() if last in {"", role}]
        if chosen:
            number = max(chosen)
            value = first_of(span, (f"{key}.{number}.content", f"{key}.{number}.parts.0.content"))
            if value is not None:
                return str(value)
        if isinstance(content, str) and content.strip() and messages is None:
            return content
    return None


def _content(message: Mapping[str, Any]) -> str:
    """Return the text of a message; newer conventions split it into parts."""
    if isinstance(message.get("content"), str):
        return str(message["content"])
    parts = message.get("parts")
    return "\n".join(
        str(part["content"])
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, Mapping) and isinstance(part.get("content"), str)
    )


def _milliseconds(start: Any, end: Any) -> str | None:
    """Return the milliseconds between two times of a span."""
    from datetime import datetime

    try:
        return str((int(end) - int(start)) / 1e6)
    except (TypeError, ValueError):
        pass
    try:
        took = datetime.fromisoformat(str(end)) - datetime.fromisoformat(str(start))
    except (TypeError, ValueError):
        return None
    return str(took.total_seconds() * 1000)


def _json(text: Any) -> Any:
    """Return the value of a JSON text; None if it is not valid JSON."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _json_object(text: Any) -> dict[str, Any]:
    found = _json(text)
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str | None:
    """Return a value as text; None if empty."""
    return None if value is None or value == "" else str(value)

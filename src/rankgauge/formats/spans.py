"""Read spans of OpenInference and OpenTelemetry as flat mappings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rankgauge.formats.frames import is_null, listed
from rankgauge.formats.mappings import is_list

# Location of a row and the row.
Row: TypeAlias = tuple[str, Mapping[str, Any]]
# Names of each attribute in exports.
TRACE = ("context.trace_id", "trace_id", "traceid")
SPAN = ("context.span_id", "span_id", "spanid")
PARENT = ("parent_id", "parent_span_id", "parentspanid")
QUESTION = ("question", "query", "input", "user_input")
ANSWER = ("answer", "response", "output", "result")
RETRIEVED, RERANKED = "retrieval.documents", "reranker.output_documents"
_STARTS = (
    "resourcespans", "scopespans", "attributes", "input.value", "output.value",
    "openinference.span.kind", "retrieval.documents",
)  # fmt: skip
_DOCUMENT = re.compile(
    r"(retrieval\.documents|reranker\.output_documents)\.(\d+)\.document\.(id|content|score)"
)
_PARTS = {"id": "id", "content": "text", "score": "score"}
_HEADS = (
    "traceId", "spanId", "parentSpanId", "name", "startTimeUnixNano", "endTimeUnixNano", "links",
    "events",
)  # fmt: skip


def is_span(row: Mapping[str, Any]) -> bool:
    """Return whether a row is a span or an OpenTelemetry export of spans."""
    return any(str(key).lower().startswith(_STARTS) for key in row)


def spans_of(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the spans of a row as flat mappings with lower-case keys."""
    if not any(name in row for name in ("resourceSpans", "scopeSpans")):
        yield {_plain(key): value for key, value in _flat(row)}
        return
    for resource in _inner(row, "resourceSpans") or [row]:
        for scope in _inner(resource, "scopeSpans"):
            for span in _inner(scope, "spans"):
                named = {key: span[key] for key in _HEADS if key in span}
                named["events"] = [_with_attributes(each) for each in _inner(span, "events")]
                yield {_plain(key): value for key, value in _flat(_with_attributes(span, named))}


def records_of_logs(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the log records of an OpenTelemetry export as flat mappings, like :func:`spans_of`."""
    for resource in _inner(row, "resourceLogs"):
        for scope in _inner(resource, "scopeLogs"):
            for record in _inner(scope, "logRecords"):
                named = {key: value for key, value in record.items() if key != "attributes"}
                yield {_plain(key): value for key, value in _flat(_with_attributes(record, named))}


def _with_attributes(
    of: Mapping[str, Any], named: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Merge an OTLP object with its attributes, which are a list of key-value pairs."""
    given = {key: value for key, value in of.items() if key != "attributes"}
    attributes = {
        str(each.get("key")): _value(each.get("value")) for each in _inner(of, "attributes")
    }
    return {**(given if named is None else named), **attributes}


def _inner(row: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the mappings in a list under this key; empty if there are none."""
    found = listed(row[key]) if is_list(row.get(key)) else ()
    return [each for each in found if isinstance(each, Mapping)]


def _plain(key: str) -> str:
    return key.lower().removeprefix("attributes.")


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Flatten nested mappings and lists of mappings into dotted names."""
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{name}.")
        elif isinstance(inner, Sequence) and inner and isinstance(inner[0], Mapping):
            for number, each in enumerate(inner):
                if isinstance(each, Mapping):
                    yield from _flat(each, f"{name}.{number}.")
        else:
            yield name, inner


def _value(value: Any) -> Any:
    """Unwrap an OTLP value such as ``{"stringValue": "a"}``."""
    if not isinstance(value, Mapping):
        return value
    if isinstance(value.get("arrayValue"), Mapping):
        return [_value(each) for each in _inner(value["arrayValue"], "values")]
    return next(iter(value.values()), None)


def first_of(span: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value of the first name that has one."""
    return next((span[name] for name in names if span.get(name)), None)


def documents_of(span: Mapping[str, Any], where: str) -> list[dict[str, str]]:
    """Return the documents of a retriever or reranker: ``text``, and ``id``, ``score`` if known."""
    found: dict[int, dict[str, str]] = {}
    for key, value in span.items():
        match = _DOCUMENT.fullmatch(key)
        if match and match[1] == where and value is not None:
            found.setdefault(int(match[2]), {})[_PARTS[match[3]]] = str(value)
    return [{"text": "", **found[number]} for number in sorted(found)]


def text_of(spans: Sequence[Mapping[str, Any]], key: str, names: Sequence[str]) -> str | None:
    """Return the first value of an attribute; for a JSON object, the value under a known key."""
    for span in spans:
        value = span.get(key)
        if is_null(value):
            continue
        text = str(value)
        if not text.lstrip().startswith("{"):
            return text
        try:
            held = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return next((str(held[name]) for name in names if held.get(name)), text)
    return None


def records_of_spans(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield a record for each trace: question, answer, contexts, and ranking.

    Question and answer come from the span without a parent. The contexts are the documents that the
    last reranker returned, or without one, the distinct documents of all retrievers.
    """
    traces: dict[str, list[dict[str, Any]]] = {}
    places: dict[str, str] = {}
    for place, row in rows:
        for span in spans_of(row):
            trace = str(first_of(span, TRACE) or place)
            traces.setdefault(trace, []).append(span)
            places.setdefault(trace, place)
    for trace, spans in traces.items():
        record = _trace(spans)
        if trace != places[trace]:
            record["id"] = trace
        yield places[trace], record


def _trace(spans: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    known = {first_of(span, SPAN) for span in spans} - {None}
    roots = [span for span in spans if first_of(span, PARENT) not in known]
    ordered = [*roots, *(span for span in spans if span not in roots)]
    retrieved = [document for span in spans for document in _documents(span, RETRIEVED)]
    reranked = [found for span in spans if (found := _documents(span, RERANKED))]
    record: dict[str, Any] = {
        "question": text_of(ordered, "input.value", QUESTION),
        "answer": text_of(ordered, "output.value", ANSWER),
        "contexts": _distinct(reranked[-1] if reranked else retrieved),
    }
    if reranked and all("id" in document for document in retrieved):
        record["ranking"] = list(dict.fromkeys(document["id"] for document in retrieved))
    return record


def _documents(span: Mapping[str, Any], where: str) -> list[dict[str, str]]:
    """Return the documents of a span without their scores."""
    return [
        {key: value for key, value in each.items() if key != "score"}
        for each in documents_of(span, where)
    ]


def _distinct(documents: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    return list({tuple(sorted(each.items())): each for each in documents}.values())

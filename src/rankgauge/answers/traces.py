"""Traces as records: spans of OpenInference and OpenTelemetry with retrieved documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rankgauge.formats.frames import listed
from rankgauge.formats.mappings import is_list

__all__ = ["is_span", "records_of_spans"]

_STARTS = (
    "resourcespans", "scopespans", "attributes", "input.value", "output.value",
    "openinference.span.kind", "retrieval.documents",
)  # fmt: skip
_DOCUMENT = re.compile(
    r"(retrieval\.documents|reranker\.output_documents)\.(\d+)\.document\.(id|content)"
)
_RETRIEVED, _RERANKED = "retrieval.documents", "reranker.output_documents"
_TRACE = ("context.trace_id", "trace_id", "traceid")
_SPAN = ("context.span_id", "span_id", "spanid")
_PARENT = ("parent_id", "parent_span_id", "parentspanid")
_QUESTION = ("question", "query", "input", "user_input")
_ANSWER = ("answer", "response", "output", "result")

_Row = tuple[str, Mapping[str, Any]]


def is_span(row: Mapping[str, Any]) -> bool:
    """Whether a row is a span, or an export of spans by OpenTelemetry."""
    return any(str(key).lower().startswith(_STARTS) for key in row)


def records_of_spans(rows: Iterable[_Row]) -> Iterator[_Row]:
    """Yield a record for each trace: question, answer, contexts, and ranking.

    Question and answer are those of the span without a parent. The contexts are the documents that
    a reranker returned last, or those of all retrievers, each once.
    """
    traces: dict[str, list[dict[str, Any]]] = {}
    places: dict[str, str] = {}
    for place, row in rows:
        for span in _spans(row):
            trace = str(_first(span, _TRACE) or place)
            traces.setdefault(trace, []).append(span)
            places.setdefault(trace, place)
    for trace, spans in traces.items():
        record = _record(spans)
        if trace != places[trace]:
            record["id"] = trace
        yield places[trace], record


def _spans(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The spans of a row, their attributes as one flat mapping."""
    if not any(name in row for name in ("resourceSpans", "scopeSpans")):
        yield {_plain(key): value for key, value in _flat(row)}
        return
    for resource in _inner(row, "resourceSpans") or [row]:
        for scope in _inner(resource, "scopeSpans"):
            for span in _inner(scope, "spans"):
                named = {key: span.get(key) for key in ("traceId", "spanId", "parentSpanId")}
                pairs = _inner(span, "attributes")
                named |= {str(each.get("key")): _value(each.get("value")) for each in pairs}
                yield {_plain(key): value for key, value in _flat(named)}


def _inner(row: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The mappings in a list of a mapping."""
    found = listed(row[key]) if is_list(row.get(key)) else ()
    return [each for each in found if isinstance(each, Mapping)]


def _plain(key: str) -> str:
    return key.lower().removeprefix("attributes.")


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested mappings, and lists of mappings, with dots between the names."""
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
    """A value of OTLP, such as ``{"stringValue": "a"}``."""
    if not isinstance(value, Mapping):
        return value
    if isinstance(value.get("arrayValue"), Mapping):
        return [_value(each) for each in _inner(value["arrayValue"], "values")]
    return next(iter(value.values()), None)


def _first(span: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((span[name] for name in names if span.get(name)), None)


def _record(spans: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    known = {_first(span, _SPAN) for span in spans} - {None}
    roots = [span for span in spans if _first(span, _PARENT) not in known]
    ordered = [*roots, *(span for span in spans if span not in roots)]
    retrieved = [document for span in spans for document in _documents(span, _RETRIEVED)]
    reranked = [found for span in spans if (found := _documents(span, _RERANKED))]
    record: dict[str, Any] = {
        "question": _said(ordered, "input.value", _QUESTION),
        "answer": _said(ordered, "output.value", _ANSWER),
        "contexts": _distinct(reranked[-1] if reranked else retrieved),
    }
    if reranked and all("id" in document for document in retrieved):
        record["ranking"] = list(dict.fromkeys(document["id"] for document in retrieved))
    return record


def _documents(span: Mapping[str, Any], where: str) -> list[dict[str, str]]:
    found: dict[int, dict[str, str]] = {}
    for key, value in span.items():
        match = _DOCUMENT.fullmatch(key)
        if match and match[1] == where and value is not None:
            part = "id" if match[3] == "id" else "text"
            found.setdefault(int(match[2]), {})[part] = str(value)
    return [{"text": "", **found[number]} for number in sorted(found)]


def _distinct(documents: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    return list({tuple(sorted(each.items())): each for each in documents}.values())


def _said(spans: Sequence[Mapping[str, Any]], key: str, names: Sequence[str]) -> str | None:
    """The first value of an attribute; of a JSON object the part that has a known name."""
    for span in spans:
        value = span.get(key)
        if value is None or value != value:  # noqa: PLR0124 - NaN in data frames
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

"""Traces as records: spans of OpenInference and OpenTelemetry with retrieved documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    is_span,
    spans_of,
    text_of,
)

__all__ = ["is_span", "records_of_spans"]

_Row = tuple[str, Mapping[str, Any]]


def records_of_spans(rows: Iterable[_Row]) -> Iterator[_Row]:
    """Yield a record for each trace: question, answer, contexts, and ranking.

    Question and answer are those of the span without a parent. The contexts are the documents that
    a reranker returned last, or those of all retrievers, each once.
    """
    traces: dict[str, list[dict[str, Any]]] = {}
    places: dict[str, str] = {}
    for place, row in rows:
        for span in spans_of(row):
            trace = str(first_of(span, TRACE) or place)
            traces.setdefault(trace, []).append(span)
            places.setdefault(trace, place)
    for trace, spans in traces.items():
        record = _record(spans)
        if trace != places[trace]:
            record["id"] = trace
        yield places[trace], record


def _record(spans: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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
    """The documents of a span without their scores."""
    return [
        {key: value for key, value in each.items() if key != "score"}
        for each in documents_of(span, where)
    ]


def _distinct(documents: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    return list({tuple(sorted(each.items())): each for each in documents}.values())

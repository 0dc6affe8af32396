"""Read spans of OpenInference and OpenTelemetry as flat mappings."""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from rankgauge.core.text import many
from rankgauge.errors import InputError
from rankgauge.formats.frames import is_null, listed
from rankgauge.formats.mappings import is_list

# Location of a row and the row.
Row: TypeAlias = tuple[str, Mapping[str, Any]]
# Names of each attribute in exports.
TRACE = ("context.trace_id", "trace_id", "traceid")
SPAN = ("context.span_id", "span_id", "spanid")
PARENT = ("parent_id", "parent_span_id", "parentspanid")
START = ("starttimeunixnano", "start_time_unix_nano", "start_time", "starttime")
END = ("endtimeunixnano", "end_time_unix_nano", "end_time", "endtime")
QUESTION = ("question", "query", "input", "user_input")
ANSWER = ("answer", "response", "output", "result")
RETRIEVED, RERANKED = "retrieval.documents", "reranker.output_documents"
_QUERY = ("gen_ai.retrieval.query.text", "gen_ai.retrieval.query")
_ASKED = ("gen_ai.input.messages", "gen_ai.prompt")
_ANSWERED = ("gen_ai.output.messages", "gen_ai.completion")
# OpenInference kinds by OpenTelemetry operation.
_OPERATIONS = {
    "retrieval": "RETRIEVER",
    "embeddings": "EMBEDDING",
    "execute_tool": "TOOL",
    "invoke_agent": "AGENT",
    "invoke_workflow": "CHAIN",
    "chat": "LLM",
    "text_completion": "LLM",
    "generate_content": "LLM",
}
# Kinds of steps whose input and output are not the question and the answer of a trace.
_STEPS = ("RETRIEVER", "RERANKER", "EMBEDDING", "TOOL", "GUARDRAIL", "EVALUATOR")
_STARTS = (
    "resourcespans",
    "scopespans",
    "attributes",
    "input.value",
    "output.value",
    "openinference.span.kind",
    "retrieval.documents",
)
# Where exports have several spans in one object: pages of an API, and a trace with its parts.
_CONTAINERS = ("data", "runs", "trace", "observations", "scores", "child_runs")
_SCORE = ("traceid", "name", "value", "timestamp")
_NAIVE = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PARTS = {"id": "id", "content": "text", "score": "score"}
_HEADS = ("traceId", "spanId", "parentSpanId", "name", "startTimeUnixNano", "endTimeUnixNano", "links", "events")


def is_span(row: Mapping[str, Any]) -> bool:
    """Return whether a row is a span or an export of spans: OpenTelemetry, Phoenix, Langfuse, or LangSmith."""
    return (
        any(str(key).lower().startswith(_STARTS) for key in row)
        or _as_span(row) is not row
        or any(is_span(inner) for key in _CONTAINERS for inner in _inner(row, key)[:1])
    )


def spans_of(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the spans of a row as flat mappings with lower-case keys."""
    if not any(name in row for name in ("resourceSpans", "scopeSpans")):
        parts = {key: inner for key in _CONTAINERS if (inner := _inner(row, key))}
        for part in itertools.chain.from_iterable(parts.values()):
            yield from spans_of(part)
        yield dict(_flat(_as_span({key: row[key] for key in row if key not in parts})))
        return
    for resource in _inner(row, "resourceSpans") or [row]:
        for scope in _inner(resource, "scopeSpans"):
            for span in _inner(scope, "spans"):
                named = {key: span[key] for key in _HEADS if key in span}
                named["events"] = [_with_attributes(event) for event in _inner(span, "events")]
                yield dict(_flat(_with_attributes(span, named)))


def _as_span(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row that Langfuse, LangSmith, or Phoenix exported as an OpenInference span; other rows as they are.

    * Langfuse: observations, traces, and scores, in snake case as in
      https://langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields, or in camel
      case as in exports of the UI, where a trace also has a list of values under the name of each
      score. Times are in UTC.
    * LangSmith: runs, https://docs.langchain.com/langsmith/run-data-format, where ``session_id`` is the project, and
      feedback, https://docs.langchain.com/langsmith/feedback-data-format. Times are in UTC.
    * Phoenix: annotations of traces and spans, with ``annotator_kind`` and ``result``.
    """
    at = {str(key).replace("_", "").lower(): value for key, value in row.items()}
    keys = {*at}
    is_run = {"runtype", "starttime", "inputs"} <= keys
    is_observation = {"traceid", "type", "starttime"} <= keys
    is_trace = {"id", "timestamp", "input", "output"} <= keys and not keys.isdisjoint({"bookmarked", "public"})
    is_score = "annotatorkind" in keys or any({*own} <= keys for own in (_SCORE, ("runid", "key", "score")))
    if not (is_run or is_observation or is_trace or is_score):
        return row
    of_run = object_of(at.get("metadata", object_of(at.get("extra")).get("metadata")))
    about = at.get("traceid") or at.get("runid") or at.get("spanid") or at.get("id")
    span = {
        "trace_id": about,
        "start_time": _in_utc(first_of(at, ("starttime", "timestamp", "createdat"))),
        "session.id": first_of(of_run, ("session_id", "thread_id")) if is_run else at.get("sessionid"),
        "user.id": first_of(at, ("userid", "authoruserid")) or of_run.get("user_id"),
    }
    if is_score:
        return span | {"links": [{"trace_id": about}], "annotations": [{"annotation": _score_of(at)}]}
    asked, answered = (
        text if isinstance(text, str | None) else json.dumps(text, default=str, skipkeys=True)
        for text in (at.get("inputs", at.get("input")), at.get("outputs", at.get("output")))
    )
    kind = {"GENERATION": "LLM", "SPAN": ""}.get(word := str(first_of(at, ("runtype", "type")) or "").upper(), word)
    found = json_value(answered) if kind == "RETRIEVER" else None
    return span | {
        "span_id": at.get("id"),
        # The input of a trace is also that of its outermost observation.
        "parent_id": first_of(at, ("parentrunid", "parentobservationid")) or (about if is_observation else None),
        "end_time": _in_utc(at.get("endtime")),
        "openinference.span.kind": kind,
        "input.value": asked,
        "output.value": answered,
        "metadata": json.dumps(of_run, default=str, skipkeys=True),
        "retrieval.documents": [
            {
                "document.id": first_of({**object_of(each.get("metadata")), **each}, ("id", "source")),
                "document.content": first_of(each, ("page_content", "pageContent", "content", "text")),
                "document.score": each.get("score"),
            }
            for each in (first_of(found, ("documents", "output")) if isinstance(found, Mapping) else found) or ()
            if isinstance(each, Mapping)
        ],
        "annotations": [
            {"annotation": {"name": name, "score": value[0]}}
            for name, value in row.items()
            if is_trace and name not in {"tags", "comments"} and isinstance(value, list) and value
        ],
    }


def _in_utc(time: Any) -> Any:
    """Return a time with the zone UTC if it has none."""
    return f"{time}Z" if isinstance(time, str) and _NAIVE.fullmatch(time) else time


def _score_of(at: Mapping[str, Any]) -> dict[str, Any]:
    """Return a score of Langfuse, feedback of LangSmith, or annotation of Phoenix as an annotation."""
    result, source = object_of(at.get("result")), object_of(at.get("feedbacksource"))
    word = first_of(at, ("stringvalue", "label")) or result.get("label")
    score = next(
        (held[name] for held in (at, result) for name in ("score", "value") if held.get(name) is not None), None
    )
    by_model = at.get("source") == "EVAL" or source.get("type") == "model"
    return {
        "name": first_of(at, ("key", "name")),
        "score": None if word and at.get("datatype") in ("CATEGORICAL", "TEXT") else score,
        "label": word,
        "explanation": at.get("comment") or result.get("explanation"),
        "annotator_kind": "LLM" if by_model else at.get("annotatorkind"),
        "identifier": at.get("id"),
    }


def records_of_logs(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the log records of an OpenTelemetry export as flat mappings, like :func:`spans_of`."""
    for resource in _inner(row, "resourceLogs"):
        for scope in _inner(resource, "scopeLogs"):
            for record in _inner(scope, "logRecords"):
                yield dict(_flat(_with_attributes(record)))


def _with_attributes(of: Mapping[str, Any], named: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Merge an OTLP object with its attributes, which are a list of key-value pairs."""
    own = {key: value for key, value in of.items() if key != "attributes"}
    attributes = {str(attribute.get("key")): _value(attribute.get("value")) for attribute in _inner(of, "attributes")}
    return {**(own if named is None else named), **attributes}


def _inner(row: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the mappings in a list under this key; empty if there are none."""
    items = listed(row[key]) if is_list(row.get(key)) else ()
    return [item for item in items if isinstance(item, Mapping)]


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Flatten nested mappings and lists of mappings into dotted names in lower case."""
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{name}.")
        elif isinstance(inner, Sequence) and inner and isinstance(inner[0], Mapping):
            for number, item in enumerate(inner):
                if isinstance(item, Mapping):
                    yield from _flat(item, f"{name}.{number}.")
        else:
            yield name.lower().removeprefix("attributes."), inner


def _value(value: Any) -> Any:
    """Unwrap an OTLP value such as ``{"stringValue": "a"}``."""
    if not isinstance(value, Mapping):
        return value
    if isinstance(value.get("arrayValue"), Mapping):
        return [_value(item) for item in _inner(value["arrayValue"], "values")]
    return next(iter(value.values()), None)


def first_of(span: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value of the first name that has one."""
    return next((span[name] for name in names if span.get(name)), None)


def documents_of(span: Mapping[str, Any], where: str) -> list[dict[str, str]]:
    """Return the documents of a retriever or reranker: ``text``, and ``id``, ``score`` if known."""
    return [{"text": "", **document} for document in _numbered(span, rf"{where}.(\d+).document.(id|content|score)")]


def _numbered(span: Mapping[str, Any], pattern: str) -> list[dict[str, str]]:
    """Return documents whose parts are attributes with these names, by number."""
    documents: dict[int, dict[str, str]] = {}
    for key, value in span.items():
        match = re.fullmatch(pattern.replace(".", r"\."), key)
        if match and value is not None:
            documents.setdefault(int(match[1]), {})[_PARTS[match[2]]] = str(value)
    return [documents[number] for number in sorted(documents)]


def text_of(span: Mapping[str, Any], key: str, names: Sequence[str]) -> str | None:
    """Return the value of an attribute; for a JSON object, the value under a known key, or the last message."""
    if is_null(span.get(key)):
        return None
    text = str(span[key])
    with suppress(ValueError, RecursionError):
        held = json.loads(text) if text.lstrip().startswith("{") else {}
        roles = {"user", "human"} if names == QUESTION else {"assistant", "ai"}
        messages = ({**message, **object_of(message.get("kwargs"))} for message in _inner(held, "messages"))
        said = [_content(each) for each in messages if roles & {str(each.get("role")), str(each.get("type"))}]
        return next((str(held[name]) for name in names if held.get(name)), said[-1] if said else text)
    return text


def object_of(value: Any) -> Mapping[str, Any]:
    """Return a mapping, or the object in a JSON text; empty for other values."""
    return held if isinstance(held := json_value(value), Mapping) else {}


def json_value(text: Any) -> Any:
    """Return the value of a JSON text; None if it is not valid JSON. Other values are returned as they are."""
    try:
        value = json.loads(text) if isinstance(text, str) else text
        if isinstance(text, str) and ("\\ud" in text or "\\uD" in text):
            json.dumps(value, ensure_ascii=False).encode()  # fails for a lone surrogate
    except (ValueError, RecursionError):
        return None
    return value


def parsed_cell(value: Any) -> Any:
    """Return the list or object in a CSV cell (JSON, or a Python literal)."""
    if not isinstance(value, str) or value[:1] + value[-1:] not in {"[]", "{}"}:
        return value
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return read(value)
    return value


def kind_of(span: Mapping[str, Any]) -> str:
    """Return the OpenInference kind of a span, such as ``CHAIN``; empty for other spans."""
    operation = _OPERATIONS.get(str(span.get("gen_ai.operation.name") or ""))
    return operation or str(span.get("openinference.span.kind") or "").upper()


def question_of(span: Mapping[str, Any]) -> str | None:
    """Return the input of a span: a question, or the last message of the user."""
    asked = text_of(span, "input.value", QUESTION) or first_of(span, _QUERY)
    asked = asked or _message(span, _ASKED, last="user")
    return None if asked is None else str(asked)


def answer_of(span: Mapping[str, Any]) -> str | None:
    """Return the output of a span."""
    return text_of(span, "output.value", ANSWER) or _message(span, _ANSWERED)


def retrieved_of(span: Mapping[str, Any]) -> list[dict[str, str]] | None:
    """Return the documents of a retriever span; None if they were not recorded."""
    documents = documents_of(span, RETRIEVED)
    if documents:
        return documents
    recorded = span.get("gen_ai.retrieval.documents")
    listed = json_value(recorded) if isinstance(recorded, str) else recorded
    if listed is None:
        flat = _numbered(span, r"gen_ai.retrieval.documents.(\d+).(id|score|content)")
        if flat:
            return flat
        # An empty list counts only if the output contains it explicitly.
        output = json_value(span.get("output.value"))
        if isinstance(output, dict):
            output = output.get("documents")
        return [] if output == [] else None
    if not isinstance(listed, list):
        return None
    return [
        {name: str(document[key]) for key, name in _PARTS.items() if document.get(key) is not None}
        for document in listed
        if isinstance(document, Mapping)
    ]


def _message(span: Mapping[str, Any], keys: tuple[str, ...], last: str = "") -> str | None:
    """Return the text of the last message (of a role), from old or new attributes."""
    for key in keys:
        content = span.get(key)
        messages = json_value(content) if isinstance(content, str) else content
        if isinstance(messages, str):
            return messages
        if isinstance(messages, list):
            contents = [
                _content(message)
                for message in messages
                if isinstance(message, Mapping) and last in {"", message.get("role")}
            ]
            if contents and contents[-1]:
                return contents[-1]
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


def _moment(value: Any) -> int | None:
    """Return a time in nanoseconds: from nanoseconds, or from an ISO time, by default in UTC."""
    with suppress(TypeError, ValueError, OverflowError):
        return int(value)
    with suppress(TypeError, ValueError, OverflowError):
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH
        return (since // timedelta(microseconds=1)) * 1000
    return None


# ---- the spans with the question and the answer of a trace

SEVERAL = (
    "with several questions, of which only the first counts: record the input of the outermost "
    "chain or agent, and give each turn a trace of its own"
)


class SpanMark(NamedTuple):
    """Position of a span in its trace, its input, and whether it has an output.

    Attributes:
        key: The identifier of the span.
        parent: The identifier of its parent, which may be in another service.
        start: Start in nanoseconds; None if unknown.
        end: End in nanoseconds; None if unknown.
        kind: Its kind, such as ``CHAIN``.
        asks: The hash of its input; None without an input.
        answers: Whether it has an output.
    """

    key: str | None
    parent: str | None
    start: int | None
    end: int | None
    kind: str
    asks: int | None
    answers: bool

    @property
    def is_step(self) -> bool:
        """Whether its input and output are not the question and the answer of the trace."""
        return self.kind in _STEPS


class TraceEnds(NamedTuple):
    """The spans with the question and with the answer of a trace.

    Attributes:
        question: The span with the question.
        answer: The span with the answer.
        searches: Whether the trace has documents.
        several: Whether outermost spans have different questions.
    """

    question: SpanMark | None = None
    answer: SpanMark | None = None
    searches: bool = False
    several: bool = False


def mark_of(span: Mapping[str, Any]) -> SpanMark:
    """Return the position of a span in its trace."""
    key, parent = first_of(span, SPAN), first_of(span, PARENT)
    question = question_of(span)
    return SpanMark(
        None if key is None else str(key),
        None if parent is None else str(parent),
        _moment(first_of(span, START)),
        _moment(first_of(span, END)),
        kind_of(span),
        None if question is None else hash(question),
        answer_of(span) is not None,
    )


def ends_of(marks: Sequence[SpanMark]) -> TraceEnds:
    """Return the spans with the question and the answer of a trace.

    The question is the input of the first of the outermost spans that have one. The answer is the
    output of the same span if it is outermost and not a call of a model, otherwise of the last of
    those with an output. Chains, agents, and spans without a kind precede calls of models. Steps
    such as retrievers have no answer; their inputs are questions only if no other span has one.
    Servers and clients without input, and parents in other services, have no effect.
    """
    parents = {mark.key: mark.parent for mark in marks}
    asking = [mark for mark in marks if mark.asks is not None]
    asking = _outermost([mark for mark in asking if not mark.is_step] or asking, parents)
    first = min(asking, key=lambda mark: mark.start or 0, default=None)
    answering = _outermost([m for m in marks if m.answers and not m.is_step], parents)
    # The first of several calls of a model may only rewrite the question.
    if first is not None and first.kind != "LLM" and first in answering:
        answering = [first]
    last = None
    for mark in answering:
        if last is None or (mark.end or 0) >= (last.end or 0):
            last = mark
    return TraceEnds(
        first,
        last,
        any(mark.kind in {"RETRIEVER", "RERANKER"} for mark in marks),
        len({mark.asks for mark in asking}) > 1,
    )


def _outermost(marks: Sequence[SpanMark], parents: Mapping[str | None, str | None]) -> list[SpanMark]:
    """Return the spans within none of the others; calls of models only if there is nothing else."""
    keys = {mark.key for mark in marks} - {None}

    def is_inside(mark: SpanMark) -> bool:
        above, seen = mark.parent, {mark.key}
        while above is not None and above not in seen and above not in keys:
            seen.add(above)
            above = parents.get(above)
        return above in keys and above not in seen

    outer = [mark for mark in marks if not is_inside(mark)] or list(marks)
    return [mark for mark in outer if mark.kind != "LLM"] or outer


def records_of_spans(rows: Iterable[Row]) -> tuple[list[Row], str]:
    """Return a record for each trace (question, answer, contexts, and ranking), and a note.

    Question and answer come from the spans of :func:`ends_of`. The contexts are the documents that
    the last reranker returned or, if there is none, the distinct documents of the outermost
    retrievers, in order of time. Traces without question, answer, and documents are ignored; the
    note has their number, and that of traces with several questions.

    Raises:
        InputError: If a trace with an answer or documents has no question.
    """
    traces: dict[str, list[dict[str, Any]]] = {}
    places: dict[str, str] = {}
    for place, row in rows:
        for span in spans_of(row):
            trace = str(first_of(span, TRACE) or place)
            traces.setdefault(trace, []).append(span)
            places.setdefault(trace, place)
    several, records = 0, {}
    for trace, spans in traces.items():
        marks = [mark_of(span) for span in spans]
        ends = ends_of(marks)
        several += ends.several
        records[trace] = _trace(spans, marks, ends)
    known = {trace: record for trace, record in records.items() if any(record.values())}
    lost = [trace for trace, record in known.items() if record["question"] is None]
    if lost or not known:
        lost = lost or list(records)
        raise InputError(
            f"{len(lost)} of {many(len(records), 'trace')} have no question: no span has an input",
            where=places[lost[0]],
            fix="record the input of the outermost chain or agent (input.value, or "
            "gen_ai.input.messages), or leave these traces out",
        )
    for trace, record in known.items():
        if trace != places[trace]:
            record["id"] = trace
    counts = ((len(records) - len(known), "without question, answer, and documents ignored"), (several, SEVERAL))
    note = "; ".join(f"{many(count, 'trace')} {what}" for count, what in counts if count)
    return [(places[trace], record) for trace, record in known.items()], note


def _trace(spans: Sequence[Mapping[str, Any]], marks: Sequence[SpanMark], ends: TraceEnds) -> dict[str, Any]:
    by_mark = dict(zip(map(id, marks), spans, strict=True))
    ordered = sorted(marks, key=lambda mark: mark.end or mark.start or 0)
    documents = {id(mark): _documents(retrieved_of(by_mark[id(mark)])) for mark in ordered}
    searches = _outermost([mark for mark in ordered if documents[id(mark)]], {mark.key: mark.parent for mark in marks})
    retrieved = [document for mark in searches for document in documents[id(mark)]]
    rerankings = [_documents(documents_of(by_mark[id(mark)], RERANKED)) for mark in ordered]
    contexts = next(filter(None, reversed(rerankings)), retrieved)
    record: dict[str, Any] = {
        "question": None if ends.question is None else question_of(by_mark[id(ends.question)]),
        "answer": None if ends.answer is None else answer_of(by_mark[id(ends.answer)]),
        "contexts": list({tuple(sorted(context.items())): context for context in contexts}.values()),
    }
    if any(rerankings) and all("id" in document for document in retrieved):
        record["ranking"] = list(dict.fromkeys(document["id"] for document in retrieved))
    return record


def _documents(documents: Iterable[dict[str, str]] | None) -> list[dict[str, str]]:
    """Return documents without their scores."""
    return [{key: value for key, value in document.items() if key != "score"} for document in documents or ()]

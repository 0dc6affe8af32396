"""Reading of answers from files, data frames, records, and traces."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from rankgauge.answers.verdicts import AnswerRecord, AnswerSet, Citation, Context, cited, quote_occurs
from rankgauge.core.grouping import group_values
from rankgauge.core.text import keep, many
from rankgauge.errors import InputError, MismatchError
from rankgauge.formats.experiments import is_example, records_of_example
from rankgauge.formats.frames import is_null, listed, short
from rankgauge.formats.lines import source_name
from rankgauge.formats.mappings import is_list
from rankgauge.formats.records import named_rows, parts_of
from rankgauge.formats.spans import is_span, parsed_cell, records_of_spans

__all__ = ["FIELDS", "read_answers"]

# Names of each field, the recommended name first. The first name found in a record is used.
FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "id": ("id", "question_id", "query_id", "qid", "topic_id", "narrative_id", "_id"),
        "question": ("question", "query", "user_input", "input", "topic", "narrative"),
        "contexts": (
            "contexts",
            "retrieved_contexts",
            "retrieval_context",
            "retrieved_context",
            "context",
            "passages",
            "documents",
            "docs",
        ),
        "context_ids": ("context_ids", "retrieved_context_ids"),
        "answer": ("answer", "response", "actual_output", "generated_answer", "output", "prediction"),
        "reference": (
            "reference",
            "ground_truth",
            "ground_truths",
            "gt_answer",
            "expected_output",
            "reference_answer",
            "expected_answer",
            "gold_answer",
            "references",
        ),
        "citations": ("citations",),
        "answerable": ("answerable", "is_answerable", "answerability", "is_impossible"),
        "gold": ("gold", "gold_ids", "reference_context_ids", "relevant_ids", "relevant"),
        "gold_texts": ("reference_contexts", "ground_truth_contexts"),
        "ranking": ("ranking", "retrieved", "retrieved_ids"),
        "history": ("history",),
        "group": ("group", "category", "domain"),
        "system": ("system", "run_id", "run_name", "model"),
    }
)
_PART_OF = {name: part for part, names in FIELDS.items() for name in names}
_CONTAINERS = (
    "results",
    "records",
    "data",
    "samples",
    "test_cases",
    "spans",
    "resourceSpans",
    "examples",
    "item_results",
)
_CONTEXT_IDS = ("id", "doc_id", "docid", "docno", "_id", "context_id", "passage_id", "chunk_id")
_TEXTS = ("text", "content", "page_content", "passage", "chunk", "contents", "body")
_ROLES = ("role", "type", "speaker")
_CITED = ("context", "id", "doc_id", "docid")
_YES = frozenset({"true", "yes", "1", "1.0", "answerable"})
_NO = frozenset({"false", "no", "0", "0.0", "unanswerable", "not answerable"})
_UNKNOWN = frozenset({"", "partial", "partially answerable", "conversational", "unknown"})
_SHOWN = 5
_EXAMPLE = '{"question": "...", "contexts": ["..."], "answer": "...", "reference": "..."}'


# The value of each field of a record, with the name that the field had.
_Parts: TypeAlias = Mapping[str, tuple[str, Any]]
_Turns: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Read:
    """Record with its location and system; the id is empty if the record has none."""

    place: str
    system: str
    record: AnswerRecord


def read_answers(
    source: Any, *, system: str | None = None, reference: Any = None, texts: Mapping[str, str] | None = None
) -> tuple[AnswerSet, ...]:
    """Read the answers of one or several systems.

    Field names of ragas, deepeval, RAGChecker, and TREC RAG also work (`FIELDS`); spans of
    OpenInference and OpenTelemetry become one record per trace. Records without an identifier are
    numbered, with the same number for the same question of all systems. Citations are identifiers
    of contexts, or their numbers from 1 (from 0 in TREC RAG); without a field of citations, marks
    such as ``[1]`` in the answer are used.

    Args:
        source: A path (JSON lines, JSON, CSV, TSV, Parquet, Arrow; ``-`` is standard input), a data
            frame, columns, records, or the objects of another tool.
        system: The system to read, or the name of the system if the records have none.
        reference: Questions with reference answers and further fields, as `source`, joined by
            identifier. Questions not answered by a system have an empty answer.
        texts: The text of each context identifier, for contexts given by identifier only.

    Raises:
        InputError: If a record cannot be read.
        MismatchError: If answers and reference have no question in common.

    Example:
        >>> rows = [{"user_input": "How high?", "response": "5 m [1].",
        ...          "retrieved_contexts": ["It is 5 m high."], "reference": "5 m"}]
        >>> read_answers(rows)[0].records[0].citations
        (Citation(context='1', text='5 m.'),)
    """
    notes: list[str] = []
    name = source_name(source, "answers")
    rows = _records(source, texts, notes)
    if not rows:
        raise InputError("there are no records", where=name, fix=f"pass at least one: {_EXAMPLE}")
    known = None if reference is None else _records(reference, texts, [], answers=False)
    if known == []:
        raise InputError(
            "there are no questions",
            where="reference",
            fix='pass at least one: {"question": "...", "reference": "..."}',
        )
    rows = _numbered(rows)
    sets = []
    for system_name, group in _by_system(rows, system, name).items():
        more = list(notes)
        if known is not None:
            group, joined = _joined(group, _numbered(known), name)  # noqa: PLW2901
            more += joined
        _check(group)
        sets.append(AnswerSet(system_name, tuple(row.record for row in group), notes=tuple(more)))
    return tuple(sets)


def _records(source: Any, texts: Mapping[str, str] | None, notes: list[str], *, answers: bool = True) -> list[_Read]:
    """Return the records of a source, and add notes on parts that were ignored."""
    if isinstance(source, AnswerSet):
        return [_Read(f"record {n}", source.system, record) for n, record in enumerate(source, 1)]
    name = source_name(source, "answers")
    rows: Iterable[Any] = iter(named_rows(source, name, _CONTAINERS))
    head = list(itertools.islice(rows, 1))
    rows = itertools.chain(head, rows)
    if head and is_example(head[0][1]):
        rows = ((place, record) for place, row in rows for record in records_of_example(row, answers=answers))
    elif head and is_span(head[0][1]):
        rows, note = records_of_spans(rows)
        notes += [f"{name}: {note}"] if note else []
    unread: dict[str, None] = {}
    records = [_record(row, place, texts, unread, answers=answers) for place, row in rows]
    if unread:
        some = ", ".join(map(repr, list(unread)[:_SHOWN])) + (", ..." if len(unread) > _SHOWN else "")
        notes.append(f"{name}: unknown fields ignored: {some}")
    return records


def _by_system(rows: Sequence[_Read], system: str | None, name: str) -> dict[str, list[_Read]]:
    by_system = group_values((row.system, row) for row in rows)
    if list(by_system) == [""]:
        stem = Path(name).name.partition(".")[0].strip("<>")
        return {system or stem or "answers": by_system[""]}
    if "" in by_system:
        raise InputError(
            "it has no system, but other records do",
            where=by_system[""][0].place,
            fix="give every record a system, or none",
        )
    if system is None:
        return by_system
    if system not in by_system and len(by_system) > 1:
        raise InputError(
            f"no record has the system {system!r}", where=name, fix=f"choose one of: {', '.join(by_system)}"
        )
    return {system: by_system.get(system) or next(iter(by_system.values()))}


def _numbered(rows: Sequence[_Read]) -> list[_Read]:
    """Return records with identifiers; those without one are numbered by question."""
    without = [row for row in rows if not row.record.id]
    if not without:
        return list(rows)
    if len(without) < len(rows):
        raise InputError(
            "it has no id, but other records do", where=without[0].place, fix="give every record an id, or none"
        )
    numbers: dict[object, str] = {}
    numbered = []
    for row in rows:
        number = numbers.setdefault((row.record.question, row.record.history), str(len(numbers) + 1))
        numbered.append(replace(row, record=replace(row.record, id=number)))
    return numbered


def _check(rows: Iterable[_Read]) -> None:
    """Reject duplicate questions, and questions without text."""
    first: dict[str, str] = {}
    for row in rows:
        key = row.record.id
        if key in first:
            raise InputError(
                f"duplicate question {key!r:.60} (also {first[key]})",
                where=row.place,
                fix="give each question a unique id, or each record a field 'system'",
            )
        first[key] = row.place
        if not row.record.question.strip():
            raise InputError(
                f"question {key!r:.60} has no text",
                where=row.place,
                fix="add 'question', or pass the questions as reference",
            )


def _joined(rows: Sequence[_Read], known: Sequence[_Read], name: str) -> tuple[list[_Read], tuple[str, ...]]:
    """Return the answers joined with the reference questions, and notes."""
    _check(known)
    by_id = {question.record.id: question for question in known}
    if not any(row.record.id in by_id for row in rows):
        ids = {question.record.question: question.record.id for question in known}
        if not any(row.record.question in ids for row in rows):
            raise MismatchError(
                f"no question of {name} is in the reference: ids such as {rows[0].record.id!r:.40} "
                f"and {known[0].record.id!r:.40}",
                where="reference",
                fix="use the same ids in both files",
            )
        named = [ids.get(row.record.question, row.record.id) for row in rows]
        rows = [replace(row, record=replace(row.record, id=name)) for row, name in zip(rows, named, strict=True)]
    joined = []
    for row in rows:
        other = by_id.pop(row.record.id, None)
        record = row.record
        if other is not None:
            words, known_words = (text.casefold().split() for text in (record.question, other.record.question))
            if words and words != known_words:
                raise MismatchError(
                    f"question {record.id!r:.40} is {record.question!r:.60} here and "
                    f"{other.record.question!r:.60} in the reference ({other.place})",
                    where=row.place,
                    fix="use the same ids in both files",
                )
            record = _merged(record, other.record)
        joined.append(replace(row, record=record))
    missing = sum(1 for row in joined if row.record.reference is None)
    notes = keep(
        missing and f"{name}: {many(missing, 'question')} without a reference answer",
        by_id and f"{name}: {many(len(by_id), 'question')} of the reference without an answer",
    )
    return [*joined, *by_id.values()], notes


def _merged(record: AnswerRecord, known: AnswerRecord) -> AnswerRecord:
    """Return the record with missing fields taken from the reference."""
    fields = ("question", "reference", "alternatives", "answerable", "gold", "group", "history")
    lacking = {name for name in fields if getattr(record, name) in {None, "", ()}}
    return replace(record, id=known.id, **{name: getattr(known, name) for name in lacking})


# ---- one record


@contextmanager
def _located(place: str) -> Iterator[None]:
    """Add a location to the errors of a block."""
    try:
        yield
    except InputError as error:
        where = f"{place}, {error.where}" if error.where else place
        raise type(error)(error.what, where=where, fix=error.fix) from None


def _record(row: Any, place: str, texts: Mapping[str, str] | None, unread: dict[str, None], *, answers: bool) -> _Read:
    if isinstance(row, AnswerRecord):
        return _Read(place, "", row)
    with _located(place):
        parts = _parts(parts_of(row, ""), unread, answers=answers)
        name = _text_of(parts, "id") or ""
        if "id" in parts and not name.strip():
            raise InputError("the id is empty", fix="give every record an id, or none")
        question, history, last = _question(parts)
        contexts = _contexts(parts, texts)
        answer, citations = _answer(parts, contexts)
        references = _references(parts)
        record = AnswerRecord(
            name,
            question,
            last if answer is None else answer,
            contexts,
            references[0] if references else None,
            citations,
            _history(*parts["history"]) if "history" in parts else history,
            _answerable(parts),
            (*_ids(parts, "gold"), *_gold_texts(parts, contexts)),
            _ids(parts, "ranking"),
            _text_of(parts, "group") or "",
            references[1:],
        )
        return _Read(place, _text_of(parts, "system") or "", record)


def _parts(row: Mapping[str, Any], unread: dict[str, None], *, answers: bool) -> _Parts:
    """Return the fields of a record with their original names, without missing values."""
    named = {_plain(key): value for key, value in row.items()}
    if isinstance(named.get("metadata"), Mapping):
        metadata = named.pop("metadata")
        named = {_plain(key): value for key, value in metadata.items()} | named
    named = {key: parsed_cell(value) for key, value in named.items() if not is_null(value)}
    if _is_segments(named.get("answer")) and is_list(named.get("references")):
        # TREC RAG: `references` are the passages, and citations are their numbers from 0.
        named["contexts"] = [{"id": reference} for reference in listed(named.pop("references"))]
    if "context" in named and "retrieval_context" in named:
        named["reference_contexts"] = named.pop("context")  # deepeval
    parts = {
        part: (key, named[key])
        for part, names in FIELDS.items()
        for key in itertools.islice((name for name in names if name in named), 1)
    }
    read = {key for key, _ in parts.values()}
    unread.update(dict.fromkeys(key for key in named if key not in read))
    if "question" not in parts and "id" not in parts:
        raise _without("question", named)
    # The answer field is missing, but messages may contain the answer.
    there = {_PART_OF.get(_plain(key)) for key in row} | parts.keys()
    messages = "question" in parts and is_list(parts["question"][1])
    if answers and not messages and not there & {"answer", "contexts", "context_ids"}:
        raise _without("answer", named)
    return parts


def _plain(key: Any) -> str:
    return str(key).strip().lower().replace("-", "_").replace(" ", "_")


def _without(wanted: str, named: Mapping[str, Any]) -> InputError:
    near = [key for key in named if key not in _PART_OF and difflib.get_close_matches(key, FIELDS[wanted])]
    got = ", ".join(map(repr, list(named)[: 2 * _SHOWN])) or "none"
    hint = f"rename {near[0]!r} to {wanted!r}" if near else f"add {wanted!r}"
    return InputError(f"there is no {wanted!r}; its fields are {got}", fix=f"{hint}, as in {_EXAMPLE}")


def _text(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"{key!r} is {short(value)}, expected text", fix=f'write "{key}": "..."')


def _text_of(parts: _Parts, part: str) -> str | None:
    return _text(*parts[part]) if part in parts else None


def _question(parts: _Parts) -> tuple[str, _Turns, str | None]:
    """Return the question, the turns before it, and the answer after it, from text or messages."""
    if "question" not in parts:
        return "", (), None
    key, value = parts["question"]
    if not is_list(value):
        return _text(key, value), (), None
    turns = _history(key, value)
    asked = [number for number, (role, _) in enumerate(turns) if role in {"user", "human"}]
    if not asked:
        raise InputError(f"{key!r} has no message with the role user", fix='write {"role": "user", "content": "..."}')
    last = asked[-1]
    behind = [text for role, text in turns[last + 1 :] if role not in {"system", "tool"}]
    return turns[last][1], turns[:last], behind[-1] if behind else None


def _history(key: str, value: Any) -> _Turns:
    turns = []
    for message in _list(key, value):
        if isinstance(message, list | tuple) and len(message) == len(("role", "text")):
            turns.append((_text(key, message[0]), _text(key, message[1])))
            continue
        named = parts_of(message, "")
        role = next((named[name] for name in _ROLES if named.get(name)), None)
        text = next((named[name] for name in _TEXTS if named.get(name) is not None), None)
        if role is None or text is None:
            raise InputError(
                f"{key!r} has a message {short(message)}, expected role and content",
                fix='write {"role": "user", "content": "..."}',
            )
        turns.append((_text(key, role).lower(), _text(key, text)))
    return tuple(turns)


def _list(key: str, value: Any) -> list[Any]:
    if isinstance(value, str) or not is_list(value):
        raise InputError(f"{key!r} is {short(value)}, expected a list", fix=f'write "{key}": [...]')
    return listed(value)


def _contexts(parts: _Parts, texts: Mapping[str, str] | None) -> tuple[Context, ...]:
    ids = _ids(parts, "context_ids")
    # Without texts, ids alone are no contexts.
    key, value = parts.get("contexts", ("", [] if texts is None else [{"id": name} for name in ids]))
    contexts = [value] if isinstance(value, str) else _list(key, value)
    if "contexts" in parts and ids and len(ids) != len(contexts):
        raise InputError(
            f"{parts['context_ids'][0]!r} has {many(len(ids), 'id')}, {key!r} has {many(len(contexts), 'context')}",
            fix="pass one id for each context",
        )
    if texts is not None and not ids and all(isinstance(context, str) for context in contexts):
        contexts = [{"id": context} for context in contexts]
    names = ids or [str(number) for number in range(1, len(contexts) + 1)]
    return tuple(
        Context(name, context) if isinstance(context, str) else _context(context, name, texts, number, own=not ids)
        for number, (name, context) in enumerate(zip(names, contexts, strict=True), 1)
    )


def _context(value: Any, name: str, texts: Mapping[str, str] | None, number: int, *, own: bool) -> Context:
    """Return a context, by default with the identifier `name`."""
    with _located(f"context {number}"):
        if is_null(value):
            raise InputError("it is null", fix="omit it, or pass its text")
        named = {_plain(key).removeprefix("document."): v for key, v in parts_of(value, "").items()}
        key = next((named[alias] for alias in _CONTEXT_IDS if not is_null(named.get(alias))), None)
        text = next((named[alias] for alias in _TEXTS if not is_null(named.get(alias))), None)
        if own and key is not None:
            name = _text("id", key)
        if text is None and key is not None and texts is not None:
            if name not in texts:
                raise MismatchError(
                    f"context {name!r:.60} is not in the collection", fix="pass the collection that was searched"
                )
            text = texts[name]
        if text is None:
            raise InputError(
                f"it has no text: its fields are {', '.join(map(repr, named))}",
                fix='write {"id": "...", "text": "..."}, or pass the texts (--collection)',
            )
        return Context(name, _text("text", text))


def _is_segments(value: Any) -> bool:
    return is_list(value) and all(isinstance(segment, Mapping) and "text" in segment for segment in listed(value))


def _answer(parts: _Parts, contexts: Sequence[Context]) -> tuple[str | None, tuple[Citation, ...]]:
    if "answer" not in parts:
        return None, ()
    key, value = parts["answer"]
    if _is_segments(value):
        segments = [(_text("text", segment["text"]), segment) for segment in listed(value)]
        citations = [
            Citation(_cited_context(number, contexts, start=0), text)
            for text, segment in segments
            for number in _list("citations", segment.get("citations") or [])
        ]
        return " ".join(text for text, _ in segments), tuple(citations)
    answer = _text(key, value)
    if "citations" not in parts:
        return answer, cited(answer, contexts)
    citations = []
    for citation in _list(*parts["citations"]):
        named = citation if isinstance(citation, Mapping) else {"context": citation}
        target = next((named[name] for name in _CITED if not is_null(named.get(name))), None)
        if target is None:
            raise InputError(
                f"a citation is {short(citation)}",
                fix='write ids of contexts, or {"context": "...", "text": "..."}',
            )
        text = named.get("text") or answer
        citations.append(Citation(_cited_context(target, contexts), _text("text", text)))
    return answer, tuple(citations)


def _cited_context(value: Any, contexts: Sequence[Context], *, start: int = 1) -> str:
    """Return the identifier of a context cited by identifier or number."""
    text = _text("citations", value)
    number = int(text) - start if text.isdecimal() else -1
    is_id = any(context.id == text for context in contexts)
    if is_id and not (start == 0 and isinstance(value, int)):
        return text
    return contexts[number].id if 0 <= number < len(contexts) else f"[{text}]"


def _references(parts: _Parts) -> tuple[str, ...]:
    """Return the reference answer, followed by alternative correct answers."""
    key, value = parts.get("reference", ("", []))
    references = listed(value) if is_list(value) else [value]
    return tuple(text for reference in references if (text := _text(key, reference)).strip())


def _answerable(parts: _Parts) -> bool | None:
    if "answerable" not in parts:
        return None
    key, value = parts["answerable"]
    answer = str(value[0] if is_list(value) and len(value) == 1 else value).strip().lower()
    if answer not in _YES | _NO | _UNKNOWN:
        raise InputError(
            f"{key!r} is {short(value)}, expected true or false",
            fix=f'write "{key}": true, or leave it out',
        )
    return None if answer in _UNKNOWN else (answer in _YES) != (key == "is_impossible")


def _ids(parts: _Parts, part: str) -> tuple[str, ...]:
    if part not in parts:
        return ()
    key, value = parts[part]
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Mapping):  # identifiers with grades or scores
        value = [name for name, number in value.items() if part != "gold" or number]
    return tuple(dict.fromkeys(_text(key, name) for name in _list(key, value)))


def _gold_texts(parts: _Parts, contexts: Sequence[Context]) -> Iterator[str]:
    """Yield the context that contains each reference context, or a new name if none does."""
    if "gold_texts" not in parts or "gold" in parts:
        return
    key, value = parts["gold_texts"]
    for number, passage in enumerate([value] if isinstance(value, str) else _list(key, value)):
        text = _text(key, passage)
        yield next((context.id for context in contexts if quote_occurs(text, context.text)), f"{key} {number + 1}")

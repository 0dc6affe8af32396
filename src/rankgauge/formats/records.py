"""Read rows of named values from any source, and records with a ranking and its judgments.

Rows come from files, data frames, columns, or objects. The fields of a record are found by name, in
any shape; :mod:`rankgauge.data.records` interprets them.
"""

from __future__ import annotations

import difflib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from rankgauge.errors import FormatError, InputError, UnknownName
from rankgauge.formats.annotations import annotation_rows
from rankgauge.formats.delimited import DELIMITERS, named_cells
from rankgauge.formats.frames import frame_columns, is_frame, is_null, listed, short
from rankgauge.formats.json_files import json_document, objects
from rankgauge.formats.lines import (
    UTF8_BOM,
    Source,
    is_columnar,
    is_content,
    numbered_lines,
    opened,
    opened_bytes,
    refuse,
    source_name,
    start_of,
)
from rankgauge.formats.mappings import is_list, labelled
from rankgauge.formats.registry import format_of

# Location of a row, for messages, and the row.
NamedRow: TypeAlias = tuple[str, Mapping[str, Any]]

# Names of each field; messages recommend the first.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "query_id", "qid", "question_id"),
    "retrieved": ("retrieved", "retrieved_ids", "retrieved_doc_ids", "retrieved_docs"),
    "relevant": ("relevant", "relevant_ids", "relevant_doc_ids", "relevant_docs"),
    "grades": ("relevance_scores", "relevance_grades"),
    "scores": ("retrieval_scores", "scores"),
}
# Other common keys of records, which are ignored.
_BESIDE = ("query", "query_text", "question", "question_text", "retriever")
_PART_OF = {name: part for part, names in FIELDS.items() for name in names}
_KNOWN = (*_PART_OF, *_BESIDE)
_SHOWN = 5
_EXAMPLE = '{"id": "q1", "retrieved": ["d2", "d1"], "relevant": ["d1"]}'
_ID = (str, bytes, int, np.integer)
Parts: TypeAlias = dict[str, tuple[str, Any]]


def named_rows(source: Any, name: str, containers: Sequence[str] = ()) -> Iterator[NamedRow]:
    """Yield the rows of a file, a data frame, columns, or an iterable of mappings or objects.

    Args:
        source: A path (JSON lines, JSON, CSV, TSV, Parquet, Arrow; compressed or not; ``-`` is
            standard input), a data frame, a mapping of columns, or an iterable of mappings or
            objects.
        name: The name of the source for messages.
        containers: Keys of a JSON object that may contain the list of rows.

    Raises:
        InputError: If there are no rows; the message gives the line or the row.
    """
    if isinstance(source, str | os.PathLike):
        with opened_bytes(source) as stream:
            yield from stream_rows(stream, source_name(source), containers)
    elif isinstance(source, Mapping):
        yield from _of_mapping(source, name, containers)
    elif is_frame(source):
        columns = frame_columns(source, name)
        yield from _of_columns({str(key): listed(c) for key, c in columns.items()}, name)
    elif isinstance(source, Iterable) and not isinstance(source, bytes | bytearray | AbstractSet):
        yield from _of_list(source)
    else:
        raise InputError(
            f"got {type(source).__name__}, expected records",
            where=name,
            fix="pass a path, a data frame, or a list of mappings",
        )


def row_cells(source: Source, *, key: Callable[[str], str] = str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and the cells by column of each row of CSV, TSV, JSON lines, or a JSON list.

    The format is detected from the first line; `key` converts column names of a table to keys. Rows
    of a list, such as an export of an annotation tool, have the line 0.
    """
    name = source_name(source)
    with opened(source) as stream:
        lines = numbered_lines(stream, name)
        first = next(((at, line) for at, line in lines if is_content(line)), (0, b""))
        everything = itertools.chain([first] if first[0] else [], lines)
        if first[1].lstrip().startswith(b"{"):
            yield from objects(everything, name)
            return
        if first[1].lstrip().startswith(b"["):
            items = json_document(everything, name, "a list of objects")
            if all(isinstance(item, dict) for item in items):
                yield from ((0, row) for row in annotation_rows(items, name))
            return
        by = "\t" if first[1].count(b"\t") > first[1].count(b",") else ","
        yield from named_cells(everything, name, by, key=key)


def parts_of(row: Any, place: str, properties: Iterable[str] = ()) -> Mapping[str, Any]:
    """Return the items of a mapping, or the attributes and some properties of an object, by name."""
    if isinstance(row, Mapping):
        return row
    names = [*getattr(row, "_fields", ()), *getattr(type(row), "__slots__", ()), *getattr(row, "__dict__", ())]
    names += [name for name in properties if hasattr(row, name)]
    parts = {name: getattr(row, name, None) for name in names if not name.startswith("_")}
    if not parts:
        raise InputError(
            f"got {short(row)}, expected a record", where=place, fix='write it as a mapping: {"question": ...}'
        )
    return parts


def stream_rows(stream: BinaryIO, name: str, containers: Sequence[str] = ()) -> Iterator[NamedRow]:
    """Yield the rows of a file as :func:`named_rows` does."""
    start = start_of(stream)
    form = format_of(name)
    if is_columnar(start, name):
        from rankgauge.formats.parquet import read_rows

        for number, record in enumerate(read_rows(stream, name), 1):
            yield f"{name}, record {number}", record
        return
    refuse(start, name)
    if form in DELIMITERS:
        for line, cells in named_cells(numbered_lines(stream, name), name, DELIMITERS[form]):
            # An empty cell counts as missing.
            yield f"{name}, line {line}", {key: cell or None for key, cell in cells.items()}
    elif form != "jsonl" and (form == "json" or start.removeprefix(UTF8_BOM).lstrip()[:1] == b"["):
        data = json_document(numbered_lines(stream, name), name, "a list of records")
        if isinstance(data, dict):
            for place, row in _of_mapping(data, name, containers):
                yield f"{name}, {place}", row
        elif isinstance(data, list):
            yield from _of_list(data, f"{name}, ")
        else:
            raise FormatError(f"got {short(data)}, expected a list of records", path=name, fix="write [{...}, ...]")
    else:
        for line, row in objects(numbered_lines(stream, name), name):
            yield f"{name}, line {line}", row


def _of_list(rows: Iterable[Any], prefix: str = "") -> Iterator[NamedRow]:
    for number, row in enumerate(rows, 1):
        place = f"{prefix}record {number}"
        yield place, _of_grades(row) or parts_of(row, place)


def _of_mapping(source: Mapping[Any, Any], name: str, containers: Sequence[str]) -> Iterator[NamedRow]:
    held = next((key for key in containers if isinstance(source.get(key), list)), None)
    if held is not None:
        yield from named_rows(source[held], name, containers)
    elif source and all(isinstance(value, Mapping) for value in source.values()):
        for key, value in source.items():
            yield f"record {key!r}", {"id": key, **value}
    else:
        yield from _of_columns(source, name)


def _of_columns(columns: Mapping[Any, Any], name: str) -> Iterator[NamedRow]:
    lists: dict[str, list[Any]] = {}
    for key, column in columns.items():
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Iterable):
            raise InputError(
                f"{key!r} is {short(column)}, expected a list with an entry for each record",
                where=name,
                fix="pass one record as a list of one: [record]",
            )
        lists[str(key)] = listed(column)
    lengths = {key: len(column) for key, column in lists.items()}
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"{key!r} has {length}" for key, length in lengths.items())
        raise InputError(
            f"the columns have different lengths: {text}", where=name, fix="give every column one entry for each record"
        )
    for number, row in enumerate(zip(*lists.values(), strict=True), 1):
        yield f"record {number}", dict(zip(lists, row, strict=True))


@dataclass(frozen=True, slots=True)
class Record:
    """A record with its fields as lists."""

    place: str  # location for messages: ``"record 3"`` or ``"path, line 3"``
    id: Any  # query id as given; None if missing
    docs: list[Any]  # retrieved documents in input order
    scores: list[Any] | None  # their scores, or None
    relevant: list[Any] | None  # relevant documents; None if only grades were given
    grades: list[tuple[Any, Any]] | None  # pairs of document and grade, or None


@dataclass(frozen=True)
class RecordRows:
    """All records of a source."""

    rows: tuple[Record, ...]  # at least one record
    source: str  # name of the source, for messages
    notes: tuple[str, ...] = ()  # notes of the reader


def read_records(source: Any) -> RecordRows:
    """Read the records of a file, of a list of mappings, tuples, or objects, or of columns."""
    name = source_name(source, "records")
    unread: dict[str, None] = {}
    parts = [(_parts(raw, place, unread), place) for place, raw in _raw(source, name)]
    rows = tuple(_record(named, place) for named, place in parts)
    if not rows:
        raise InputError("there are no records", where=name, fix=f"pass at least one: {_EXAMPLE}")
    notes: tuple[str, ...] = ()
    if any(isinstance(named["retrieved"][1], _Ranks) for named, _ in parts):
        lacking = "lists of grades lack relevant documents that were not retrieved"
        notes = (f"WARNING: {name}: {lacking}: recall, F1, AP, and nDCG can be too high; pass judgments and a run",)
    if unread:
        some = ", ".join(repr(key) for key in list(unread)[:_SHOWN])
        more = ", ..." if len(unread) > _SHOWN else ""
        notes += (f"{name}: unknown fields ignored: {some}{more}",)
    return RecordRows(rows, name, notes)


def _raw(source: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield each unparsed record with its location."""
    if isinstance(source, str | os.PathLike):
        with opened_bytes(source) as stream:
            begins = start_of(stream).removeprefix(UTF8_BOM).lstrip()
            if begins and not begins.startswith((b"{", b"[")) and format_of(name) != "json":
                # TREC, CSV, or another format without fields for both sides.
                raise FormatError(
                    "a single file must contain records in JSON lines",
                    path=name,
                    fix="to evaluate a run, pass the judgments and the run: evaluate QRELS RUN; "
                    f"to evaluate records, write lines such as {_EXAMPLE}",
                )
            yield from stream_rows(stream, name)
        return
    if isinstance(source, Iterable) and not (isinstance(source, bytes | Mapping | AbstractSet) or is_frame(source)):
        source = (_fields_of(row, f"record {number}") for number, row in enumerate(source, start=1))
    yield from named_rows(source, name)


class _Ranks(tuple[str, ...]):
    """Ids of documents of which only the grades are known: their ranks."""

    __slots__ = ()


def _of_grades(raw: Any) -> Mapping[str, Any] | None:
    """Return the fields of a list of the grades of a ranking, such as ``[0, 1, 2]``; None for anything else."""
    if not isinstance(raw, list | tuple | np.ndarray) or not all(
        isinstance(each, int | float | np.number) for each in raw
    ):
        return None
    ranks = _Ranks(map(str, range(1, len(raw) + 1)))
    return {"retrieved": ranks, "relevance_scores": dict(zip(ranks, map(float, raw), strict=True))}


def _fields_of(raw: Any, place: str) -> Mapping[str, Any]:
    """Return the fields of a record by name."""
    if (fields := _of_grades(raw)) is not None:
        return fields
    if isinstance(raw, (*_ID, float, AbstractSet)):
        raise InputError(f"got {raw!r:.60}, expected a record", where=place, fix=f"write {_EXAMPLE}")
    if not isinstance(raw, tuple | list) or hasattr(raw, "_fields"):
        return {name: value for name, value in parts_of(raw, place, _PART_OF).items() if not callable(value)}
    names = ["retrieved", "relevant", "relevance_scores"]
    if raw and isinstance(raw[0], _ID):
        names.insert(0, "id")
    if len(raw) - ("id" in names) not in {2, 3}:
        raise InputError(
            f"got {raw!r:.60}, expected a record",
            where=place,
            fix=f"write ([retrieved], [relevant]), (id, [retrieved], [relevant]), or {_EXAMPLE}",
        )
    return dict(zip(names, raw, strict=False))


def _parts(named: Mapping[Any, Any], place: str, unread: dict[str, None]) -> Parts:
    """Return the fields of a record with their names; None counts as missing.

    An unknown key is refused if it is a misspelling, and otherwise recorded for a note.
    """
    parts: Parts = {}
    for key, value in named.items():
        part = _PART_OF.get(key) if isinstance(key, str) else None
        if part is None and key not in _BESIDE and str(key) not in unread:
            # `retrieved_at` is less similar to `retrieved`, so it is not taken for a misspelling.
            near = difflib.get_close_matches(str(key).lower(), _KNOWN, n=1, cutoff=0.86)
            if near:
                raise UnknownName(
                    f"unknown field of a record: {str(key)!r:.60}", where=place, fix=f"did you mean {near[0]!r}?"
                )
            unread[str(key)] = None
        elif part is not None and not is_null(value):
            if part in parts:
                raise InputError(
                    f"{parts[part][0]!r} and {key!r} are two names for the same field",
                    where=place,
                    fix=f"keep one: {FIELDS[part][0]!r}",
                )
            parts[part] = (key, value)
    wanted = [] if "retrieved" in parts else [FIELDS["retrieved"][0]]
    if not parts.keys() & {"relevant", "grades"}:
        wanted.append(FIELDS["relevant"][0])
    if wanted:
        raise _without(wanted, named, place)
    return parts


def _without(wanted: list[str], named: Mapping[Any, Any], place: str) -> InputError:
    there = [str(key) for key, value in named.items() if not is_null(value)]
    empty = [key for key in named if key in _PART_OF and key not in there]
    hints = []
    for want in wanted:
        parts = {"relevant", "grades"} if want == "relevant" else {want}
        null = [key for key in empty if _PART_OF[key] in parts]
        near = difflib.get_close_matches(want, there, n=1, cutoff=0.5)
        if null:
            hints.append(f"write {null[0]!r}: [] instead of None if there are none")
        else:
            hints.append(f"rename {near[0]!r} to {want!r}" if near else f"add {want!r}")
    if not any(_PART_OF.get(key) in {"retrieved", "relevant"} for key in named):
        hints = ["if these are judgments, pass the run as well: evaluate(qrels, run); else pass a list of records"]
    got = ", ".join(repr(key) for key in there[: 2 * _SHOWN]) or "none"
    return InputError(
        f"there is no {' and no '.join(repr(want) for want in wanted)}; its fields are {got}",
        where=place,
        fix=", ".join(hints) + f", as in {_EXAMPLE}",
    )


def _record(parts: Parts, place: str) -> Record:
    docs, scores = _ranking(parts, place)
    relevant: list[Any] | None = None
    grades: list[tuple[Any, Any]] | None = None
    if "grades" in parts:
        grades = _graded(*parts["grades"], place)
    if "relevant" in parts:
        # Empty grades next to `relevant` mean that none were given.
        grades = grades or None
        key, value = parts["relevant"]
        if not isinstance(value, Mapping) and labelled(value, place) is None:
            relevant = _list(value, key, place, ids=True)
        elif grades:
            raise InputError(
                f"{key!r} and {parts['grades'][0]!r} both have grades",
                where=place,
                fix=f"pass {key!r} as a list of document ids",
            )
        else:
            # A mapping under this name contains grades.
            grades = _graded(key, value, place)
    query = parts["id"][1] if "id" in parts else None
    return Record(place, query, docs, scores, relevant, grades)


def _ranking(parts: Parts, place: str) -> tuple[list[Any], list[Any] | None]:
    """Return the retrieved documents, and their scores if any."""
    key, value = parts["retrieved"]
    pairs = labelled(value, place)
    pairs = (list(value), list(value.values())) if isinstance(value, Mapping) else pairs
    scores: list[Any] | None = None
    if pairs is not None:
        docs, scores = pairs
    elif isinstance(value, AbstractSet):
        raise InputError(
            f"{key!r} is a set, which has no order, so it is not a ranking",
            where=place,
            fix=f"pass {key!r} as a list, best first",
        )
    else:
        docs = _list(value, key, place, ids=True)
        if docs and all(isinstance(pair, tuple) and len(pair) == 2 for pair in docs):
            docs, scores = [doc for doc, _ in docs], [score for _, score in docs]
    if "scores" not in parts:
        return docs, scores
    name, raw_scores = parts["scores"]
    if isinstance(raw_scores, Mapping):
        raise InputError(
            f"{name!r} is a mapping, of either grades or scores",
            where=place,
            fix=f"name grades 'relevance_scores'; pass scores as a list, one for each of {key!r}",
        )
    if scores is not None:
        raise InputError(
            f"scores are in both {key!r} and {name!r}",
            where=place,
            fix=f"remove {name!r}, or pass {key!r} as a list of document ids",
        )
    scores = _list(raw_scores, name, place)
    if len(scores) != len(docs):
        raise InputError(
            f"{key!r} has {len(docs)} documents, {name!r} has {len(scores)} scores",
            where=place,
            fix="pass one score for each retrieved document",
        )
    return docs, scores


def _list(value: Any, key: str, place: str, *, ids: bool = False) -> list[Any]:
    """Return the entries of any container as a list."""
    if not is_list(value):
        raise InputError(
            f"{key!r} is {short(value)}, expected a list{' of document ids' * ids}",
            where=place,
            fix=f"write {key!r}: [" + '"d1", ' * ids + "...], and one record as a list of one: [record]",
        )
    return listed(value)


def _graded(key: str, value: Any, place: str) -> list[tuple[Any, Any]]:
    labels = labelled(value, place)
    if isinstance(value, Mapping):
        # Data frames fill missing cells with None.
        pairs: list[Any] = [(doc, grade) for doc, grade in value.items() if grade is not None]
    elif labels is not None:
        pairs = list(zip(*labels, strict=True))
    else:
        pairs = _list(value, key, place)
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise InputError(
            f"{key!r} is a list of {type(pairs[0]).__name__}, expected a grade by document id",
            where=place,
            fix=f'write {key!r}: {{"d1": 3, "d2": 1}}',
        )
    return pairs

"""Mapping files: the column of each field of an event."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankgauge.core.arguments import is_number
from rankgauge.core.files import read_text
from rankgauge.errors import FormatError
from rankgauge.production.events import COLUMNS, KINDS

# Fields of an event that can be mapped to a column.
FIELDS = tuple(name for name in COLUMNS if name not in {"source", "attributes"})
_KEYS: Mapping[str, Any] = {
    "columns": Mapping,
    "kinds": Mapping,
    "values": Mapping,
    "events": list,
    "attributes": list,
    "separator": str,
    "first_rank": int,
}
_EXAMPLES = {
    "columns": '[columns], then time = "ts"',
    "kinds": '[kinds], then read = "click"',
    "values": "[values], then good = 1",
    "events": '[[events]], then kind = "click"',
    "attributes": 'attributes = ["language"]',
    "separator": 'separator = ";"',
    "first_rank": "first_rank = 0 or 1",
}


@dataclass(frozen=True)
class LogMapping:
    """A mapping of log columns to fields of events.

    Attributes:
        columns: The column of each field of an event; in JSON, a dotted path.
        kinds: The kind of event for each value of the column ``kind``; other values become
            ``other``.
        values: The number for each value of the column ``value``, such as ``{"good": 1}``.
        events: For rows with several events, the kind and the columns of each event. A row has an
            event if at least one of its columns is not empty.
        attributes: The columns that become attributes.
        separator: The separator of documents, ranks, and scores in cells other than JSON lists.
        first_rank: The first rank, 0 or 1; if None, detected.
    """

    columns: Mapping[str, str]
    kinds: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    events: Sequence[Mapping[str, str]] = ()
    attributes: Sequence[str] = ()
    separator: str = ""
    first_rank: int | None = 1


def read_mapping(path: str | os.PathLike[str]) -> LogMapping:
    r"""Read a mapping from a TOML or JSON file.

    Raises:
        FormatError: If the file is neither TOML nor JSON, or has an unknown key.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "mapping.toml")
        >>> _ = path.write_text('[columns]\ntime = "ts"\nkind = "type"\n[kinds]\nread = "click"')
        >>> read_mapping(path).kinds
        {'read': 'click'}
    """
    name = os.fspath(path)
    text = read_text(path)
    try:
        content = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"neither TOML nor JSON: {error}", path=name, fix=f'in TOML, write {_EXAMPLES["columns"]} and kind = "type"'
        ) from None
    return as_mapping(content, name)


def as_mapping(content: Mapping[str, Any], name: str = "mapping") -> LogMapping:
    """Return a mapping with this content; raise an error if it is not valid."""
    wrong = next(_faults(content), None)
    if wrong is not None:
        raise FormatError(wrong[0], path=name, fix=wrong[1])
    return LogMapping(**({"columns": {}} | dict(content)))


def _faults(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the faults of a mapping, each with its fix."""
    for key, value in content.items():
        if key not in _KEYS:
            yield f"{key!r} is not part of a mapping", f"the parts are: {', '.join(_KEYS)}"
        elif not isinstance(value, _KEYS[key]):
            yield f"{key} = {value!r:.40} is not valid", f"write {_EXAMPLES[key]}"
    columns, events = content.get("columns", {}), content.get("events", [])
    if not all(isinstance(each, Mapping) for each in events):
        yield "events is a list of tables", "write [[events]]"
        return
    yield from _column_faults(columns, events)
    for kind in (*content.get("kinds", {}).values(), *(each.get("kind") for each in events)):
        if kind not in KINDS:
            yield f"{kind!r} is not a kind of event", f"the kinds are: {', '.join(KINDS)}"
    for word, number in content.get("values", {}).items():
        if not is_number(number):
            yield f"{word} = {number!r:.40} is not a number", "write a number"
    if content.get("first_rank", 1) not in {0, 1}:
        yield "first_rank is neither 0 nor 1", "write first_rank = 0 or 1"


def _column_faults(columns: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for key, column in (pair for table in (columns, *events) for pair in table.items()):
        if key not in FIELDS:
            yield f"no event has a field {key!r}", f"the fields are: {', '.join(FIELDS)}"
        elif not isinstance(column, str):
            yield f"{key} = {column!r:.40} is not a column", "name a column, in quotes"
    if not columns and not events:
        return
    if "time" not in columns and not all("time" in each for each in events or [{}]):
        yield "there is no column for the time", 'add time = "..." to [columns]'
    if "kind" not in columns and not events:
        yield "there is no column for the kind", 'add kind = "..." to [columns], or [[events]]'


# Events that already have the columns of this package.
OWN = LogMapping({name: name for name in FIELDS}, {kind: kind for kind in KINDS})
# Names of user feedback, with the corresponding kinds of events.
FEEDBACK = dict.fromkeys(
    ("user_feedback", "user-feedback", "user feedback", "feedback", "thumbs", "thumbs_up", "user_satisfaction"),
    "thumbs",
) | {"answerable": "label", "preference": "preference"}
# Feedback exported by other tools: the keys of a row, and the mapping.
VENDORS: Mapping[str, tuple[frozenset[str], LogMapping]] = {
    "mlflow": (
        frozenset({"assessment_name", "trace_id"}),
        LogMapping(
            {
                "event_id": "assessment_id",
                "kind": "assessment_name",
                "time": "create_time",
                "question_id": "trace_id",
                "user_id": "source.source_id",
                "value": "feedback.value",
                "text": "rationale",
                "label": "assessment_name",
            },
            FEEDBACK,
        ),
    ),
    "langfuse": (
        frozenset({"traceId", "name", "value", "timestamp"}),
        LogMapping(
            {
                "event_id": "id",
                "kind": "name",
                "time": "timestamp",
                "question_id": "traceId",
                "session_id": "sessionId",
                "user_id": "authorUserId",
                "value": "value",
                "text": "comment",
                "label": "name",
            },
            FEEDBACK,
        ),
    ),
}

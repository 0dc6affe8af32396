"""Events of a production log: their kinds and columns, and the SQL that converts rows of a source to them.

Each format is converted to a *draft*: the fields of an event as text, with the row number and the
reason if the row is not an event. ``sql/events.sql`` parses the times, numbers, and kinds of any
draft. Words of a mapping are parameters of the statements.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from rankgauge.core.arguments import is_number
from rankgauge.core.files import read_text
from rankgauge.errors import FormatError

# Kinds of events. An impression is never inferred from a click.
KINDS = {
    "question": "a user asked a question",
    "retrieval": "documents were retrieved, in this order",
    "impression": "results were shown, at these ranks",
    "click": "a result was opened",
    "answer": "a generated answer was shown",
    "citation": "a citation was shown with the answer",
    "citation click": "a citation was opened",
    "thumbs": "the user rated the answer: 1 up, -1 down",
    "preference": "of two, the user preferred the first (1), the second (-1), or neither (0)",
    "abstention": 'the application said "I don\'t know"',
    "handover": "the conversation was handed over to a person",
    "label": "a person said whether the question can be answered: 1 or 0",
    "other": "anything else, kept and counted",
}
# Names and DuckDB types of the columns of a log, in order.
COLUMNS = {
    "event_id": "VARCHAR",
    "kind": "VARCHAR",
    "time": "TIMESTAMPTZ",
    "question_id": "VARCHAR",
    "session_id": "VARCHAR",
    "user_id": "VARCHAR",
    "arm": "VARCHAR",
    "text": "VARCHAR",
    "documents": "VARCHAR[]",
    "ranks": "INTEGER[]",
    "scores": "DOUBLE[]",
    "value": "DOUBLE",
    "label": "VARCHAR",
    "latency_ms": "DOUBLE",
    "attributes": "MAP(VARCHAR, VARCHAR)",
    "source": "VARCHAR",
}


@cache
def statement(name: str) -> str:
    """Return the SQL in a file of this package."""
    return (resources.files("rankgauge.production") / "sql" / f"{name}.sql").read_text("utf-8")


class Parameters(dict[str, Any]):
    """Parameters of a statement."""

    def add(self, value: Any) -> str:
        """Return the SQL for a value."""
        name = f"p{len(self)}"
        self[name] = value
        return f"${name}"


# The times that Python and other tools can represent, in SQL.
TIMES = "TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999'"


_LISTS = ("documents", "ranks", "scores")
# Columns of a draft and their types: those of an event, as text.
DRAFT = {
    "line": "BIGINT",
    "part": "INTEGER",
    **{name: "VARCHAR[]" if name in _LISTS else "VARCHAR" for name in COLUMNS if name != "source"},
    "attributes": COLUMNS["attributes"],
    "rank_group": "VARCHAR",
    "fault": "VARCHAR",
    "lost": "VARCHAR",  # keyed hashes of the personal data that is not stored
}
# UBI actions. The standard only has the first two: UBI has no answers.
ACTIONS = {
    "impression": "impression",
    "click": "click",
    "answer_shown": "answer",
    "citation_impression": "citation",
    "citation_click": "citation click",
    "feedback": "thumbs",
    "preference": "preference",
    "abstention": "abstention",
    "handover": "handover",
    "answerable": "label",
}
# Labels that deny an event, and labels that may deny it.
_ABSENT = ("false", "0", "no")
_UNCLEAR = (
    "y",
    "n",
    "t",
    "f",
    "on",
    "off",
    "1.0",
    "0.0",
    "x",
    "-",
    "none",
    "null",
    "nan",
    "na",
    "n/a",
    "ja",
    "nein",
    "oui",
    "non",
    "si",
    "sí",
    "wahr",
    "falsch",
    "vrai",
    "faux",
    "00",
    "[]",
    "{}",
)
# Kinds of events that a label or value of all events of a row may state or deny.
_STATED = ("abstention", "handover")
# Kinds of events that have values or labels.
_VALUED = ("thumbs", "preference", "label", "other")


_UBI = (
    "action_name",
    "query_id",
    "session_id",
    "event_attributes.session_id",
    "user_id",
    "client_id",
    "timestamp",
    "user_query",
    "query_response_hit_ids",
    "query_attributes",
    "application",
    "event_attributes.object.object_id",
    "event_attributes.position.ordinal",
    "event_attributes.value",
    "event_attributes.text",
    "event_attributes.latency_ms",
    "event_attributes.documents",
    "message",
    "event_id",
    *(f"{where}_attributes.{name}" for where in ("query", "event") for name in ("arm", "experiment_arm", "variant")),
)


def create_draft(connection: Any) -> None:
    """Create an empty table ``draft``."""
    columns = ", ".join(f"{name} {kind}" for name, kind in DRAFT.items())
    connection.execute(f"CREATE OR REPLACE TEMP TABLE draft ({columns})")


def _parse_json(connection: Any, paths: list[str]) -> None:
    """Create the table ``parsed`` with the values at `paths` of the JSON objects of a batch."""
    import duckdb

    # DuckDB before 1.2 returns 'null' for null.
    null = "null" if duckdb.__version__.startswith("1.1.") else None
    connection.execute(statement("json_rows"), {"paths": paths, "null": null})


def draft_ubi(connection: Any, mapping: LogMapping | None) -> str:
    """Add the events of a batch of UBI events to the table ``draft``; return that of its rows."""
    extra = [*dict.fromkeys(mapping.attributes)] if mapping else []
    _parse_json(connection, [f"$.{path}" for path in (*_UBI, *extra)])
    fields = ", ".join(f'f[{number}] AS "{path}"' for number, path in enumerate(_UBI, 1))
    connection.execute(
        f"CREATE OR REPLACE TEMP VIEW fields AS SELECT line, f IS NULL AS invalid, {fields},"
        f" f[{len(_UBI) + 1}:] AS extra FROM parsed"
    )
    kinds = ACTIONS | dict(mapping.kinds if mapping else {})
    connection.execute(statement("ubi"), {"actions": [*kinds], "kinds": [*kinds.values()], "names": extra})
    return "parsed"


def draft_mapped(connection: Any, mapping: LogMapping, columns: Mapping[str, str] | None, where: str) -> str:
    """Add the events of a batch to the table ``draft`` by a mapping; return that of its rows.

    Args:
        connection: A DuckDB connection with the table ``batch``.
        mapping: The column of each field.
        columns: The SQL for the text of each column of the batch; None for JSON.
        where: The name of the source in error messages.
    """
    named = dict.fromkeys(
        column
        for table in (mapping.columns, *mapping.events)
        for key, column in table.items()
        if not (key == "kind" and table is not mapping.columns)
    )
    own_events = mapping.columns.get("kind") == "kind"  # events that already have the columns of this package
    named |= dict.fromkeys((*mapping.attributes, *(["attributes"] if own_events else ())))
    if columns is None:
        # A dotted name is either a key or a path.
        paths = [p for name in named for p in (f"$.{_quoted(name)}", f"$.{'.'.join(map(_quoted, name.split('.')))}")]
        at = {name: f"coalesce(f[{2 * i + 1}], f[{2 * i + 2}])" for i, name in enumerate(named)}
        _parse_json(connection, paths)
        source, valid = "parsed", "f IS NOT NULL"
    else:
        missing = [name for name in named if name not in columns]
        if missing and not (own_events and not {"event_id", "kind", "time"} & set(missing)):
            raise FormatError(
                f"there is no column {missing[0]!r}: the columns are {', '.join(columns)}",
                path=where,
                fix="name another column in the mapping",
            )
        at = {name: columns.get(name, "NULL::VARCHAR") for name in named}
        source, valid = "batch", "true"
    parameters = Parameters()
    drafts: list[str] = []
    presences: list[str] = []
    for part, event in enumerate(mapping.events or [{}]):
        own = _with_statement(event, mapping.columns)
        fields = {**mapping.columns, **own}
        cells = {key: at[column] for key, column in fields.items() if key not in own or key != "kind"}
        # Without another id, the events of a row belong to a question of its own.
        parts = ({"question_id": f"md5(json_array({', '.join(at.values())})::VARCHAR)"} if mapping.events else {}) | {
            key: f"items({cell}, {parameters.add(mapping.separator)})"
            if key in _LISTS
            else _in_format(cell, mapping.time_format)
            if key == "time" and mapping.time_format
            else f"known({cell})"
            for key, cell in cells.items()
        }
        if "kind" in own:
            parts["kind"] = parameters.add(own["kind"])
        else:
            words, kinds = parameters.add([*mapping.kinds]), parameters.add([*mapping.kinds.values()])
            parts["kind"] = f"kind_of({cells['kind']}, {words}, {kinds})"
            parts.setdefault("label", f"CASE {parts['kind']} WHEN 'other' THEN {cells['kind']} END")
        if "value" in parts and mapping.values:
            words = parameters.add([*mapping.values])
            numbers = parameters.add([repr(float(number)) for number in mapping.values.values()])
            parts["value"] = f"meaning({parts['value']}, {words}, {numbers}, {parts['value']})"
        if mapping.events and "event_id" in parts:
            parts["event_id"] += f" || ':' || {parts['kind']}"
        if mapping.attributes:
            names = [*dict.fromkeys(mapping.attributes)]
            values = ", ".join(f"known({at[name]})" for name in names)
            parts["attributes"] = f"attributes_of({parameters.add(names)}, [{values}])"
        else:
            parts["attributes"] = f"map_in({at.get('attributes', 'NULL::VARCHAR')})"
        signs = [
            _sign(at[own[key]], own["kind"], mapping.values, parameters)
            for key in ("label", "value")
            if key in own and own["kind"] not in _VALUED
        ]
        faults = "".join(fault for _, fault in signs)
        parts["fault"] = f"CASE WHEN NOT ({valid}) THEN 'not a JSON object'{faults} END"
        presences.append(" AND ".join((_presence(own, at), *(f"NOT {absent}" for absent, _ in signs))))
        columns_of = ", ".join(f"{sql} AS {key}" for key, sql in parts.items())
        drafts.append(
            f"SELECT line, {part} AS part, '' AS rank_group, {columns_of} FROM {source} WHERE {presences[-1]}"
        )
    # Rows without events are refused instead of lost.
    some = " OR ".join(f"({presence})" for presence in presences)
    drafts.append(
        f"SELECT line, 0 AS part, CASE WHEN {valid} THEN 'none of the events'"
        f" ELSE 'not a JSON object' END AS fault FROM {source} WHERE NOT coalesce({some}, false)"
    )
    connection.execute("INSERT INTO draft BY NAME " + " UNION ALL BY NAME ".join(drafts), parameters)
    return source


def _in_format(cell: str, form: str) -> str:
    """Return the SQL for a time in this format as ISO 8601; other texts stay as they are."""
    constant = form.replace("'", "''")  # no parameter: DuckDB 1.1 needs a constant
    zone = "Z" if "%z" in form.lower() else ""  # DuckDB converts a time with a zone to UTC
    return f"coalesce(strftime(try_strptime(known({cell}), '{constant}'), '%Y-%m-%d %H:%M:%S.%f{zone}'), known({cell}))"


def _with_statement(own: Mapping[str, str], shared: Mapping[str, str]) -> Mapping[str, str]:
    """Return the columns of an event, with the shared one that states it if it has none."""
    stating = next((key for key in ("label", "value") if key in shared), None)
    if stating is None or own.keys() != {"kind"} or own["kind"] not in _STATED:
        return own
    return {**own, stating: shared[stating]}


def _sign(cell: str, kind: str, values: Mapping[str, float], parameters: Parameters) -> tuple[str, str]:
    """Return the SQL condition that a cell denies an event, and the SQL case for unclear cells."""
    numbers = {word.lower(): number for word, number in values.items()}
    absent = {*_ABSENT, *(word for word, number in numbers.items() if number == 0)}
    word = f"coalesce(lower(trim({cell})), '')"
    fault = (
        f"{{}} is not a label of {kind} but may be a Boolean: in the mapping, write"
        ' [values], then "{}" = 1 (an event) or = 0 (no event)'
    )
    unclear = parameters.add([*({*_UNCLEAR} - {*numbers})])
    case = f"list_contains({unclear}::VARCHAR[], {word})"
    return (
        f"list_contains({parameters.add([*absent])}::VARCHAR[], {word})",
        f" WHEN {case} THEN replace({parameters.add(fault)}, '{{}}', {word})",
    )


def _presence(own: Mapping[str, str], at: Mapping[str, str]) -> str:
    """Return the SQL condition that a row has any of the columns of an event."""
    known = (f"known({at[column]}) IS NOT NULL" for key, column in own.items() if key != "kind")
    return f"({' OR '.join(known) or 'true'})"


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def stored() -> str:
    """Return the columns of an event as stored."""
    return ", ".join(
        f"{name} AT TIME ZONE 'UTC' AS {name}" if name == "time" else f"{name}::{kind} AS {name}"
        for name, kind in COLUMNS.items()
    )


# Fields of an event that can be mapped to a column.
FIELDS = tuple(name for name in COLUMNS if name not in {"source", "attributes"})
# Parts of a format of times that all versions of DuckDB read.
_SPECIFIERS = re.compile("%(-?[dHIjmMSy]|[aAbBcfpuUwWxXYzZ%])")
# The parts of a mapping: type and example.
_PARTS: Mapping[str, tuple[Any, str]] = {
    "columns": (Mapping, '[columns], then time = "ts"'),
    "kinds": (Mapping, '[kinds], then read = "click"'),
    "values": (Mapping, "[values], then good = 1"),
    "events": (list, '[[events]], then kind = "click"'),
    "attributes": (list, 'attributes = ["language"]'),
    "separator": (str, 'separator = ";"'),
    "time_format": (str, 'time_format = "%d.%m.%Y %H:%M"'),
    "first_rank": (int, "first_rank = 0 or 1"),
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
            event if at least one of its columns is not empty. Without a column for `question_id`,
            each row is a question of its own.
        attributes: The columns that become attributes.
        separator: The separator of documents, ranks, and scores in cells other than JSON lists.
        first_rank: The first rank, 0 or 1; if None, detected.
        time_format: The format of times that are not ISO 8601, such as ``%d.%m.%Y %H:%M``.
    """

    columns: Mapping[str, str]
    kinds: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    events: Sequence[Mapping[str, str]] = ()
    attributes: Sequence[str] = ()
    separator: str = ""
    first_rank: int | None = 1
    time_format: str = ""


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
            f"neither TOML nor JSON: {error}", path=name, fix=f'in TOML, write {_PARTS["columns"][1]} and kind = "type"'
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
        if key not in _PARTS:
            yield f"{key!r} is not part of a mapping", f"the parts are: {', '.join(_PARTS)}"
        elif not isinstance(value, _PARTS[key][0]) or (key == "time_format" and "%" in _SPECIFIERS.sub("", value)):
            yield f"{key} = {value!r:.40} is not valid", f"write {_PARTS[key][1]}"
    columns, events = content.get("columns", {}), content.get("events", [])
    if not all(isinstance(event, Mapping) for event in events):
        yield "events is a list of tables", "write [[events]]"
        return
    yield from _column_faults(columns, events)
    for kind in (*content.get("kinds", {}).values(), *(event.get("kind") for event in events)):
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
    if "time" not in columns and not all("time" in event for event in events or [{}]):
        yield "there is no column for the time", 'add time = "..." to [columns]'
    if "kind" not in columns and not events:
        yield "there is no column for the kind", 'add kind = "..." to [columns], or [[events]]'


# Events that already have the columns of this package.
OWN = LogMapping({name: name for name in FIELDS}, {kind: kind for kind in KINDS})
# Names of user feedback, with the corresponding kinds of events.
FEEDBACK = dict.fromkeys(
    (
        *("user_feedback", "user-feedback", "user feedback", "feedback", "thumbs", "thumbs_up", "user_satisfaction"),
        *("user_score", "user-score", "thumbs-up", "thumbs up"),
    ),
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
}

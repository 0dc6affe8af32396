"""SQL that converts rows of a source to events: one statement per format, and a common one.

Each format is converted to a *draft*: the fields of an event as text, with the row number and the
reason if the row is not an event. `events` parses the times, numbers, and kinds of any draft.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence

from rankgauge.errors import FormatError
from rankgauge.production.events import COLUMNS, TIMES
from rankgauge.production.mappings import LogMapping

# Columns of a draft and their types.
DRAFT = {
    "line": "BIGINT",
    "part": "INTEGER",
    "event_id": "VARCHAR",
    "kind": "VARCHAR",
    "time": "VARCHAR",
    "question_id": "VARCHAR",
    "session_id": "VARCHAR",
    "user_id": "VARCHAR",
    "arm": "VARCHAR",
    "text": "VARCHAR",
    "documents": "VARCHAR[]",
    "ranks": "VARCHAR[]",
    "scores": "VARCHAR[]",
    "value": "VARCHAR",
    "label": "VARCHAR",
    "latency_ms": "VARCHAR",
    "attributes": "MAP(VARCHAR, VARCHAR)",
    "rank_group": "VARCHAR",
    "fault": "VARCHAR",
}
_LISTS = ("documents", "ranks", "scores")
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
_ARMS = ("arm", "experiment_arm", "variant")
_UP = ("up", "thumbs_up", "thumbs-up", "thumbs up", "positive", "helpful", "like", "true", "yes")
_DOWN = ("down", "thumbs_down", "thumbs-down", "thumbs down", "negative", "not helpful",
         "unhelpful", "dislike", "false", "no")  # fmt: skip
_FIRST = ("a", "first", "left", "1")
_SECOND = ("b", "second", "right", "2")
_NEITHER = ("both bad", "both_bad", "neither", "none")
_ANSWERABLE = ("answerable", "true", "yes")
_NOT_ANSWERABLE = ("unanswerable", "not answerable", "false", "no")
# Labels that deny an event, and labels that may deny it.
_ABSENT = ("false", "0", "no")
_UNCLEAR = (
    "y", "n", "t", "f", "on", "off", "1.0", "0.0", "x", "-", "none", "null", "nan", "na", "n/a",
    "ja", "nein", "oui", "non", "si", "sí", "wahr", "falsch", "vrai", "faux", "00", "[]", "{}",
)  # fmt: skip
# Kinds of events that a label or value of all events of a row may state or deny.
_STATED = ("abstention", "handover")
# Kinds of events that have values or labels.
_VALUED = ("thumbs", "preference", "label", "other")


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _in(words: Iterable[str]) -> str:
    return "(" + ", ".join(map(literal, sorted(words))) + ")"


def _case(of: str, meanings: Mapping[str, str], other: str) -> str:
    """Return a CASE expression over texts; the results are SQL."""
    if not meanings:
        return other
    cases = " ".join(f"WHEN {literal(word)} THEN {meaning}" for word, meaning in meanings.items())
    return f"CASE {of} {cases} ELSE {other} END"


def _items(text: str, separator: str = "") -> str:
    """Return SQL for a list of texts from a JSON list, a separated text, or a single text."""
    several = f"string_split({text}, {literal(separator)})" if separator else f"[{text}]"
    return (
        f"CASE WHEN nullif(trim({text}), '') IS NULL THEN NULL"
        f" WHEN starts_with(ltrim({text}), '[') AND json_valid({text})"
        f" THEN from_json({text}, '[\"VARCHAR\"]') ELSE {several} END"
    )


def _known(text: str) -> str:
    """Return SQL for a text, or NULL if it is empty."""
    return f"nullif(trim({text}), '')"


def _kinds(word: str, kinds: Mapping[str, str]) -> str:
    return (
        f"CASE WHEN {_known(word)} IS NULL THEN NULL ELSE "
        + _case(word, {name: literal(kind) for name, kind in kinds.items()}, "'other'")
        + " END"
    )


def _draft(parts: Mapping[str, str], source: str, where: str) -> str:
    """Return the SELECT of a draft, with NULL for missing fields."""
    columns = ", ".join(
        f"{parts.get(name, 'NULL')}::{kind} AS {name}" for name, kind in DRAFT.items()
    )
    return f"SELECT {columns} FROM {source} WHERE {where}"


def _texts_at(row: str, paths: str) -> str:
    """Return SQL for JSON values at paths; DuckDB before 1.2 returns 'null' for null."""
    import duckdb

    found = f"json_extract_string({row}, {paths})"
    old = duckdb.__version__.startswith("1.1.")
    return f"[nullif(v, 'null') FOR v IN {found}]" if old else found


def _json_rows(paths: Sequence[str]) -> str:
    """Return SQL that parses the JSON objects of a batch, with the values at `paths` as ``f``."""
    wanted = "[" + ", ".join(literal(path) for path in paths) + "]"
    bulk = r"'\s*\{\s*\"(index|create|update)\"\s*:\s*\{[^{}]*\}\s*\}\s*'".replace('\\"', '"')
    return f"""
    WITH checked AS (
      SELECT line, raw, json_valid(raw) AND starts_with(ltrim(raw), '{{') AS valid
      FROM batch
      WHERE trim(raw, E' \\t\\r\\n') <> ''
        AND NOT (starts_with(ltrim(raw), '{{"index"') AND regexp_full_match(raw, {bulk}))
        AND NOT (starts_with(ltrim(raw), '{{"create"') AND regexp_full_match(raw, {bulk}))
    )
    SELECT line, CASE
      WHEN NOT valid THEN NULL
      WHEN starts_with(raw, '{{"_index"')
        THEN {_texts_at("coalesce(json_extract(raw, '$._source'), raw)", wanted)}
      ELSE {_texts_at("raw", wanted)}
    END AS f
    FROM checked
    """


_UBI = (
    "action_name", "query_id", "session_id", "event_attributes.session_id", "user_id", "client_id",
    "timestamp", "user_query", "query_response_hit_ids", "query_attributes", "application",
    "event_attributes.object.object_id", "event_attributes.position.ordinal",
    "event_attributes.value", "event_attributes.text", "event_attributes.latency_ms",
    "event_attributes.documents", "message", "event_id",
    *(f"{where}_attributes.{name}" for where in ("query", "event") for name in _ARMS),
)  # fmt: skip


def _pair(name: str, value: str) -> str:
    """Return SQL for a map with one attribute, or an empty map without a value."""
    return f"CASE WHEN {value} IS NULL THEN MAP {{}} ELSE MAP {{{literal(name)}: {value}}} END"


def ubi(mapping: LogMapping | None) -> list[str]:
    """Return the statements that create the table ``draft`` from a batch of UBI events."""
    at = {path: f"f[{number}]" for number, path in enumerate(_UBI, 1)}
    meant = ACTIONS | dict(mapping.kinds if mapping else {})
    extra = tuple(mapping.attributes) if mapping else ()
    paths = [f"$.{path}" for path in (*_UBI, *extra)]
    action = at["action_name"]
    kind = f"CASE WHEN {action} IS NULL THEN 'question' ELSE {_kinds(action, meant)} END"
    application = _known(at["application"])
    attributes = _pair("application", application)
    for number, name in enumerate(extra, len(_UBI) + 1):
        attributes = f"map_concat({attributes}, {_pair(name, f'f[{number}]')})"
    query_extra = at["query_attributes"]
    given = (
        f"CASE WHEN starts_with({query_extra}, '{{') THEN map_concat({attributes},"
        f" {_json_map(query_extra)}) ELSE {attributes} END"
    )
    hits, listed = at["query_response_hit_ids"], at["event_attributes.documents"]
    shown, place = at["event_attributes.object.object_id"], at["event_attributes.position.ordinal"]
    session, own_session = at["session_id"], at["event_attributes.session_id"]
    asked, text = at["user_query"], at["event_attributes.text"]
    shared = {
        "line": "line",
        "time": _known(at["timestamp"]),
        "question_id": _known(at["query_id"]),
        "session_id": f"coalesce({_known(session)}, {_known(own_session)})",
        "user_id": f"coalesce({_known(at['user_id'])}, {_known(at['client_id'])})",
        "arm": "coalesce(" + ", ".join(
            _known(at[f"{where}_attributes.{name}"])
            for where in ("query", "event") for name in _ARMS
        ) + ")",
    }  # fmt: skip
    first = shared | {
        "part": "0",
        "event_id": _known(at["event_id"]),
        "kind": kind,
        "text": f"CASE WHEN {action} IS NULL OR {action} = 'impression' THEN {_known(asked)}"
        f" WHEN {action} IN ('answer_shown', 'feedback', 'preference')"
        f" THEN coalesce({_known(text)}, {_known(at['message'])}) END",
        "documents": f"CASE WHEN {action} IS NULL THEN NULL WHEN {listed} IS NULL THEN"
        f" CASE WHEN {_known(shown)} IS NOT NULL THEN [{shown}] END ELSE {_items(listed)} END",
        "ranks": f"CASE WHEN {action} IS NOT NULL AND {place} IS NOT NULL AND {listed} IS NULL"
        f" AND {_known(shown)} IS NOT NULL THEN [{place}] END",
        "value": at["event_attributes.value"],
        "label": f"CASE WHEN ({kind}) IN ('other', 'preference') THEN"
        f" CASE WHEN ({kind}) = 'other' THEN {action} ELSE {at['event_attributes.value']} END END",
        "latency_ms": at["event_attributes.latency_ms"],
        "attributes": given,
        "rank_group": f"coalesce({application}, '')",
        "fault": f"CASE WHEN f IS NULL THEN 'not a JSON object' WHEN {action} IS NULL AND"
        f" ({at['query_id']} IS NULL OR coalesce({asked}, {hits}) IS NULL)"
        " THEN 'neither a query nor an event of UBI' END",
    }  # fmt: skip
    second = shared | {
        "part": "1",
        "kind": "'retrieval'",
        "documents": _items(hits),
    }
    return [
        f"CREATE OR REPLACE TEMP TABLE parsed AS {_json_rows(paths)}",
        f"CREATE OR REPLACE TEMP TABLE draft AS {_draft(first, 'parsed', 'true')} UNION ALL "
        + _draft(
            second, "parsed",
            f"{action} IS NULL AND {at['query_id']} IS NOT NULL"
            f" AND {hits} IS NOT NULL",
        ),
    ]  # fmt: skip


def mapped(mapping: LogMapping, columns: Mapping[str, str] | None, where: str) -> list[str]:
    """Return the statements that create the table ``draft`` with a mapping.

    Args:
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
    own_events = (
        mapping.columns.get("kind") == "kind"
    )  # events that already have the columns of this package
    named |= dict.fromkeys((*mapping.attributes, *(["attributes"] if own_events else ())))
    if columns is None:
        # A dotted name is either a key or a path.
        paths = [
            p
            for name in named
            for p in (f"$.{_quoted(name)}", f"$.{'.'.join(map(_quoted, name.split('.')))}")
        ]
        at = {name: f"coalesce(f[{2 * i + 1}], f[{2 * i + 2}])" for i, name in enumerate(named)}
        before = [f"CREATE OR REPLACE TEMP TABLE parsed AS {_json_rows(paths)}"]
        source, valid = "parsed", "f IS NOT NULL"
    else:
        missing = [name for name in named if name not in columns]
        if missing and not (own_events and not {"event_id", "kind", "time"} & set(missing)):
            raise FormatError(
                f"there is no column {missing[0]!r}: the columns are {', '.join(columns)}",
                path=where, fix="name another column in the mapping",
            )  # fmt: skip
        at = {name: columns.get(name, "NULL::VARCHAR") for name in named}
        before, source, valid = [], "batch", "true"
    drafts: list[str] = []
    presences: list[str] = []
    for part, given in enumerate(mapping.events or [{}]):
        own = _with_statement(given, mapping.columns)
        fields = {**mapping.columns, **own}
        kind = literal(own["kind"]) if "kind" in own else _kinds(at[fields["kind"]], mapping.kinds)
        parts = {"line": "line", "part": str(part), "kind": kind, "rank_group": "''"}
        for key, column in fields.items():
            if key == "kind":
                continue
            if key in _LISTS:
                parts[key] = _items(at[column], mapping.separator)
            else:
                parts[key] = _known(at[column])
        if "kind" in fields and "kind" not in own and "label" not in fields:
            parts["label"] = f"CASE WHEN ({kind}) = 'other' THEN {at[fields['kind']]} END"
        if "value" in fields and mapping.values:
            parts["value"] = _case(
                parts["value"],
                {word: literal(repr(float(number))) for word, number in mapping.values.items()},
                parts["value"],
            )
        if mapping.events and "event_id" in parts:
            parts["event_id"] = f"{parts['event_id']} || ':' || {kind}"
        parts["attributes"] = (
            functools.reduce(
                lambda attributes, pair: f"map_concat({attributes}, {pair})",
                (_pair(name, _known(at[name])) for name in mapping.attributes),
            )
            if mapping.attributes
            else _given_attributes(at.get("attributes", "NULL"))
        )
        signs = [
            _sign(at[own[key]], literal(own["kind"]), mapping.values)
            for key in ("label", "value")
            if key in own and own["kind"] not in _VALUED
        ]
        faults = "".join(fault for _, fault in signs)
        parts["fault"] = f"CASE WHEN NOT ({valid}) THEN 'not a JSON object'{faults} END"
        presences.append(
            " AND ".join((_presence(own, at), *(f"NOT {absent}" for absent, _ in signs)))
        )
        drafts.append(_draft(parts, source, presences[-1]))
    # Rows without events are refused instead of lost.
    reason = f"CASE WHEN {valid} THEN 'none of the events' ELSE 'not a JSON object' END"
    parts = {"line": "line", "part": "0", "fault": reason}
    some = " OR ".join(f"({each})" for each in presences)
    drafts.append(_draft(parts, source, f"NOT coalesce({some}, false)"))
    made = " UNION ALL ".join(drafts)
    return [*before, f"CREATE OR REPLACE TEMP TABLE draft AS {made}"]


def _with_statement(own: Mapping[str, str], shared: Mapping[str, str]) -> Mapping[str, str]:
    """Return the columns of an event, with the shared one that states it if it has none."""
    stating = next((key for key in ("label", "value") if key in shared), None)
    if stating is None or own.keys() != {"kind"} or own["kind"] not in _STATED:
        return own
    return {**own, stating: shared[stating]}


def _sign(cell: str, kind: str, values: Mapping[str, float]) -> tuple[str, str]:
    """Return the SQL condition that a cell denies an event, and the SQL case for unclear cells."""
    numbers = {word.lower(): number for word, number in values.items()}
    absent = {*_ABSENT, *(word for word, number in numbers.items() if number == 0)}
    word = f"coalesce(lower(trim({cell})), '')"
    fault = (
        f"'{{}} is not a label of ' || {kind} || ' but may be a Boolean: in the mapping, write"
        ' [values], then "{}" = 1 (an event) or = 0 (no event)\''
    )
    unclear = (
        f" WHEN {word} IN {_in({*_UNCLEAR} - {*numbers})} THEN replace({fault}, '{{}}', {word})"
    )
    return f"{word} IN {_in(absent)}", unclear


def _presence(own: Mapping[str, str], at: Mapping[str, str]) -> str:
    """Return the SQL condition that a row has any of the columns of an event."""
    known = (f"{_known(at[column])} IS NOT NULL" for key, column in own.items() if key != "kind")
    return f"({' OR '.join(known) or 'true'})"


def _given_attributes(text: str) -> str:
    """Return SQL for the attributes in a file of events: a JSON object."""
    return f"CASE WHEN starts_with({text}, '{{') THEN {_json_map(text)} ELSE MAP {{}} END"


def _json_map(text: str) -> str:
    return f"CASE WHEN json_valid({text}) THEN from_json({text}, '\"MAP(VARCHAR, VARCHAR)\"') END"


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


# Times without and with a zone. DuckDB ignores unknown zones, or raises an error even in TRY_CAST,
# and accepts offsets of days.
_NAIVE = r"'^\d{4}[-/]\d\d?[-/]\d\d?([T ]\d\d?:\d\d(:\d\d([.]\d+)?)?)?$'"
_ZONED = (
    r"'^\d{4}[-/].*:\d{2}([.]\d+)?\s*"
    r"(Z|z|UTC|GMT|[+-]([01]\d|2[0-3])(:?[0-5]\d)?|[A-Za-z]+/[A-Za-z_/]+)$'"
)
# ISO 8601 allows times without seconds or with a comma, which some versions of DuckDB reject.
_TIME = (
    r"regexp_replace(replace(time, ',', '.'),"
    r" '^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d)([^:\d].*)?$', '\1:00\2')"
)
_UPS, _DOWNS, _FIRSTS, _SECONDS, _BAD, _YES, _NO = (
    _in(words) for words in (_UP, _DOWN, _FIRST, _SECOND, _NEITHER, _ANSWERABLE, _NOT_ANSWERABLE)
)


def events(source: str, shifts: Mapping[str, int], timezone: str | None) -> str:
    """Return the SELECT of events from the table ``draft``, with their lines and faults.

    Args:
        source: The name of the file.
        shifts: The offset of the ranks of each group.
        timezone: The time zone of naive times; if None, they are refused.
    """
    local = "NULL" if timezone is None else f"(naive AT TIME ZONE {literal(timezone)})::TIMESTAMP"
    shift = _case("rank_group", {name: str(number) for name, number in shifts.items()}, "0")
    return f"""
    WITH numbers AS (
      SELECT * REPLACE (lower(trim(value)) AS value),
        {_TIME} AS time_text, TRY_CAST(time AS DOUBLE) AS epoch,
        regexp_extract(time_text, '[A-Za-z]+/[A-Za-z_/]+$') AS zone,
        TRY_CAST(value AS DOUBLE) AS number,
        TRY_CAST(ranks AS DOUBLE[]) AS rank_numbers, TRY_CAST(scores AS DOUBLE[]) AS score_numbers,
        TRY_CAST(latency_ms AS DOUBLE) AS latency,
        regexp_matches(time_text, {_ZONED}) AND (zone = '' OR zone IN (
          SELECT name FROM pg_timezone_names())) AS zoned,
        CASE WHEN regexp_matches(time_text, {_NAIVE}) THEN TRY_CAST(time_text AS TIMESTAMP) END
          AS naive
      FROM draft
    ), read AS (
      SELECT *, CASE
          -- Seconds, milliseconds, microseconds, or nanoseconds between 1990 and 2100.
          WHEN epoch IS NOT NULL THEN make_timestamp((CASE
            WHEN epoch BETWEEN 6.3e8 AND 4.1e9 THEN epoch * 1e6
            WHEN epoch BETWEEN 6.3e11 AND 4.1e12 THEN epoch * 1e3
            WHEN epoch BETWEEN 6.3e14 AND 4.1e15 THEN epoch
            WHEN epoch BETWEEN 6.3e17 AND 4.1e18 THEN epoch / 1e3 END)::BIGINT)
          WHEN zoned THEN TRY_CAST(time_text AS TIMESTAMPTZ)::TIMESTAMP
          ELSE {local} END AS moment,
        CASE kind
          WHEN 'thumbs' THEN CASE WHEN value IN {_UPS} OR number = 1 THEN 1
            WHEN value IN {_DOWNS} OR number IN (0, -1) THEN -1 END
          WHEN 'preference' THEN CASE WHEN number IN (-1, 0, 1) THEN number
            WHEN value IN {_FIRSTS} THEN 1 WHEN value IN {_SECONDS} THEN -1
            WHEN value IN ('tie', 'equal', 'both', 'same') THEN 0 END
          WHEN 'label' THEN CASE WHEN value IN {_YES} OR number = 1 THEN 1
            WHEN value IN {_NO} OR number = 0 THEN 0 END
          ELSE CASE WHEN isfinite(number) THEN number END END AS meant
      FROM numbers
    ), events_with_faults AS (
      SELECT *, CASE
          WHEN fault IS NOT NULL THEN fault
          WHEN time_text IS NULL THEN 'no time'
          WHEN moment IS NULL AND naive IS NOT NULL THEN 'a time without a zone'
          WHEN moment IS NULL THEN 'a time that cannot be read'
          WHEN moment NOT BETWEEN {TIMES} THEN 'a time outside the years 1 to 9999 in UTC'
          WHEN kind IS NULL THEN 'no kind'
          WHEN kind = 'other' THEN NULL
          WHEN kind IN ('thumbs', 'label') AND meant IS NULL THEN 'a value that cannot be read'
          WHEN kind = 'preference' AND meant IS NULL
            AND coalesce(value, lower(label), '') NOT IN {_BAD} THEN 'a value that cannot be read'
          WHEN ranks IS NOT NULL AND (list_count(rank_numbers) < len(ranks)
            OR len([r FOR r IN rank_numbers IF r <> floor(r) OR r + {shift} < 1 OR r > 2e9]) > 0)
            THEN 'an invalid rank'
          WHEN ranks IS NOT NULL AND len(ranks) <> coalesce(len(documents), 0)
            THEN 'the numbers of ranks and documents differ'
          WHEN scores IS NOT NULL AND (list_count(score_numbers) < len(scores)
            OR len([s FOR s IN score_numbers IF NOT isfinite(s)]) > 0
            OR len(scores) <> coalesce(len(documents), 0)) THEN 'scores that cannot be read'
          WHEN latency_ms IS NOT NULL AND (latency IS NULL OR NOT isfinite(latency) OR latency < 0)
            THEN 'a latency that cannot be read' END AS problem
      FROM read
    ), plain AS (
      SELECT line, part, problem, event_id, kind, moment AS time, question_id, session_id, user_id,
        arm, text, documents,
        CASE WHEN problem IS NOT NULL OR kind = 'other' THEN NULL
          WHEN ranks IS NOT NULL THEN [(r + {shift})::INTEGER FOR r IN rank_numbers]
          WHEN kind = 'retrieval' THEN range(1, len(documents) + 1)::INTEGER[] END AS ranks,
        CASE WHEN problem IS NULL AND kind <> 'other' THEN score_numbers END AS scores,
        meant AS value,
        coalesce(label, CASE WHEN kind = 'preference' AND value IN {_BAD} THEN 'both bad' END)
          AS label,
        CASE WHEN isfinite(latency) THEN latency END AS latency_ms,
        CASE WHEN cardinality(attributes) > 0 THEN attributes END AS attributes,
        -- What the columns above drop still distinguishes events.
        json_array(CASE WHEN meant IS NULL THEN value END,
          CASE WHEN isfinite(latency) IS NOT TRUE THEN latency_ms END,
          CASE WHEN kind = 'other' THEN ranks END, CASE WHEN kind = 'other' THEN scores END)
          AS dropped
      FROM events_with_faults
    )
    SELECT * EXCLUDE (dropped) REPLACE (coalesce(event_id, md5(json_array(kind, epoch_us(time),
        question_id, session_id, user_id, arm, text, documents, ranks, scores, value, label,
        latency_ms, list_sort(map_entries(attributes)), dropped)::VARCHAR)) AS event_id),
      event_id IS NOT NULL AS identified,
      {literal(source + ":")} || line AS source
    FROM plain
    ORDER BY line, part
    """


def stored() -> str:
    """Return the columns of an event as stored."""
    return ", ".join(
        f"{name} AT TIME ZONE 'UTC' AS {name}" if name == "time" else f"{name}::{kind} AS {name}"
        for name, kind in COLUMNS.items()
    )

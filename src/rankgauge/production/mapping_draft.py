"""`draft_mapping`: a draft mapping for a log whose columns are not known."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from functools import partial

from rankgauge.core.escaping import for_terminal
from rankgauge.core.text import keep
from rankgauge.errors import FormatError
from rankgauge.formats.spans import object_of
from rankgauge.production.sources import find_format

_quoted = partial(json.dumps, ensure_ascii=False)
# Times that are not ISO 8601 (D a day, M a month), and their formats; the first that fits all values is drafted.
_FORMATS = {
    date.replace("D", r"(0?[1-9]|[12]\d|3[01])").replace("M", r"(0?[1-9]|1[0-2])") + clock: f"{of_date} {of_clock}"
    for date, of_date in {r"M/D/\d{4}": "%m/%d/%Y", r"D/M/\d{4}": "%d/%m/%Y", r"D\.M\.\d{4}": "%d.%m.%Y"}.items()
    for clock, of_clock in {r" \d\d?:\d\d": "%H:%M", r" \d\d?:\d\d:\d\d": "%H:%M:%S"}.items()
}
_ZONED = r"\d{9,19}(\.\d+)?|\d{4}-\d\d-\d\d[T ].*(Z|UTC|GMT|[+-]\d\d(:?\d\d)?)"
_TIME = "|".join((_ZONED, r"\d{4}[-/]\d\d?[-/]\d\d?([T ].*)?", *_FORMATS))
# Words for thumbs up and down that the import does not know.
_WORDS = {"👍": 1, "👎": -1, "good": 1, "bad": -1, "liked": 1, "disliked": -1}
_THUMBS = (
    r"-?1(\.0)?|0(\.0)?|(thumbs?[_ -]?)?(up|down)|true|false|yes|no|like|dislike|positive|negative|(un|not )?helpful|"
    + "|".join(_WORDS)
)
# Names of kinds of events, in logs with one event in each row.
_KINDS = {
    **dict.fromkeys(("question", "query", "search", "ask", "asked"), "question"),
    **dict.fromkeys(("impression", "view", "shown", "show"), "impression"),
    **dict.fromkeys(("retrieval", "retrieve", "retrieved", "results"), "retrieval"),
    **dict.fromkeys(("click", "clicked", "open", "opened"), "click"),
    **dict.fromkeys(("answer", "response", "reply"), "answer"),
    **dict.fromkeys(("thumbs", "feedback", "rating", "vote"), "thumbs"),
}
_ANY = r"(?s).+"
# Names for which no guess is made: later times, opposites of thumbs, numbers of documents, and seconds.
_OTHER = re.compile(
    r"(?i)updat|modif|delet|expir|down|dislike|negat|unhelp|(^|[_ ])(not|num|n|end)[_ ]|"
    r"count$|(?<!m)sec(ond)?s?$|[_ ]s$"
)
# Kind of event (or empty: all), field, pattern of the name, pattern of all values, and their description.
_GUESSES = (
    ("", "time", r"time|date|(^|_)ts$|_at$|created|stamp|^t$|^when", _TIME, "times"),
    ("", "kind", r"^(event|action|type|kind)([._]?(type|name))?$", "|".join(_KINDS), "kinds of events"),
    ("", "session_id", r"session|conversation|thread|chat", _ANY, "texts"),
    ("", "user_id", r"user([._]?(id|name|key|e?mail))?$|customer|client|visitor|account|member", _ANY, "texts"),
    ("", "question_id", r"^id$|(query|question|request|trace|message|search)_?id|uuid", _ANY, "texts"),
    ("", "arm", r"^arm$|variant|experiment|bucket", _ANY, "texts"),
    ("abstention", "label", r"no_?answer|idk|abst(ain|ention)|fallback", _ANY, "labels; false, 0, no: no event"),
    ("thumbs", "value", r"thumb|rating|feedback|vote|like|helpful|satisf|reaction|score", _THUMBS, "thumbs, 0 as down"),
    ("answer", "latency_ms", r"latency|duration|elapsed|took|(^|_)ms$", r"[\d.]+", "numbers, read as milliseconds"),
    ("question", "text", r"question|query|prompt|search|utterance|input|^q$", _ANY, "texts"),
    ("answer", "text", r"answer|response|reply|completion|output", _ANY, "texts"),
    ("impression", "documents", r"impression|shown|displayed", _ANY, "texts"),
    ("click", "documents", r"click|opened|selected", _ANY, "texts"),
    ("retrieval", "documents", r"doc|result|hit|retriev|context|source|chunk", _ANY, "texts"),
)


def draft_mapping(path: str | os.PathLike[str]) -> str:
    r"""Return a draft mapping (TOML) for a log of unknown format, with reasons; empty if the format is known.

    Check it before you use it: each column is guessed from its name and its values in the first rows.

    Raises:
        FormatError: If the file is neither JSON nor a table.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "chat.csv")
        >>> _ = path.write_text("asked_at,question,rating\n1777636800,late fees,up\n", encoding="utf-8")
        >>> print(draft_mapping(path).splitlines()[8])
        value = "rating"  # the name contains "rating"; values are thumbs, 0 as down: up
    """
    with suppress(FormatError):
        find_format(os.fspath(path))
        return ""
    rows = next(find_format(os.fspath(path), mapped=True).batches()).rows.slice(0, 500).to_pylist()
    cells: dict[str, list[str]] = {}
    for row in rows:
        outer = [*object_of(row["raw"]).items()] if "raw" in row else [*row.items()][:-1]
        inner = [
            (f"{name}.{key}", cell) for name, held in outer if isinstance(held, dict) for key, cell in held.items()
        ]
        for column, cell in (*outer, *inner):
            if not isinstance(cell, dict):
                text = _quoted(cell) if isinstance(cell, list) else str("" if cell is None else cell).strip()
                cells.setdefault(column, []).extend([] if text in {"", "[]"} else [text])
    columns: dict[str, str] = {}
    lines: dict[str, list[str]] = {}
    for kind, field, names, values, described in _GUESSES:
        name, fits = re.compile(names, re.IGNORECASE), re.compile(values, re.IGNORECASE).fullmatch
        near = [
            column
            for column, texts in cells.items()
            if column not in columns and name.search(column) and not _OTHER.search(column)
            if texts and all(map(fits, texts))
        ]
        for column in near[:1]:
            columns[column] = field
            lines.setdefault(kind, []).append(
                f"{field} = {_quoted(column)}  # the name contains {_quoted((name.search(column) or column)[0])}; "
                f"values are {described}: {_shown(cells[column])}"
            )
    own = {field: [text for c in columns if columns[c] == field for text in cells[c]] for _, field, *_ in _GUESSES}
    if own["kind"]:  # one event in each row: its kind is in a column
        lines = {"": [*{line.partition(" ")[0]: line for part in lines.values() for line in part}.values()]}
    forms = [
        form for pattern, form in _FORMATS.items() if all(re.fullmatch(pattern, text) for text in own["time"] or "-")
    ]
    unused = [column for column in cells if column not in columns]
    return "\n".join(
        keep(
            f"# Draft mapping, from the first {len(rows)} rows. Check each line.",
            *(f"# not used: {column} ({_shown(cells[column])})" for column in unused),
            unused and f"# attributes = [{', '.join(map(_quoted, unused))}]  # remove the first # to import them",
            *(
                f'separator = "{sign}"  # between documents'
                for sign in [c for c in "|;," if any(c in text for text in own["documents"] if text[0] != "[")][:1]
            ),
            forms
            and f'time_format = "{forms[0]}"'
            + ("  # times also fit " if len(forms) > 1 else "")
            + ", ".join(forms[1:]),
            not all(re.fullmatch(_ZONED, text) for text in own["time"])
            and "# times have no zone: add --timezone ZONE, such as --timezone Europe/Berlin",
            "\n[columns]",
            *lines.pop("", []),
            not own["time"] and 'time = ""  # name the column with times: none was recognized',
            not own["question_id"]
            and f"# no column identifies a question: {'events are not joined' if own['kind'] else 'each row is one'}",
            *("\n".join(["\n[[events]]", f'kind = "{kind}"', *part]) for kind, part in lines.items()),
            own["kind"] and "\n[kinds]",
            *(f"{_quoted(word)} = {_quoted(_KINDS[word.lower()])}" for word in sorted({*own["kind"]})),
            any(word.lower() in _WORDS for word in own["value"]) and "\n[values]",
            *(
                f"{_quoted(word)} = {_WORDS[word.lower()]}"
                for word in sorted({*own["value"]})
                if word.lower() in _WORDS
            ),
            "\n",
        )
    ).replace("\x7f", "\\u007f")


def _shown(texts: list[str]) -> str:
    """Return up to three distinct values, shortened, on one line."""
    return ", ".join(for_terminal(" ".join(text.split())[:30]) for text in [*dict.fromkeys(texts)][:3])

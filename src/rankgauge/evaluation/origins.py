"""Origins of questions: generated questions are averaged with others only on request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from rankgauge.core.findings import Finding
from rankgauge.core.ids import id_bytes, show_id
from rankgauge.core.text import many
from rankgauge.errors import FormatError, InputError
from rankgauge.evaluation.result import Evaluation

_GENERATED = "generated"
#: Note on every number from generated questions.
STATEMENT = "users ask other questions: a high value here does not predict quality in production"
_REAL = "questions"

Fields: TypeAlias = Mapping[str, Mapping[str, Any]]


def question_fields(questions: Any) -> Fields:
    """Return the fields of questions by query id, with ids as text.

    Args:
        questions: A mapping; the path of a JSON lines, CSV, or TSV file with a column for the id;
            or None for no questions.

    Raises:
        FormatError: If a line cannot be read or has no id; the message names the first one.
        InputError: If `questions` is of another type or empty.
    """
    if questions is None:
        return {}
    if isinstance(questions, Mapping):
        return {show_id(id_bytes(query, "query id")): row for query, row in questions.items()}
    if not isinstance(questions, str | os.PathLike):
        raise InputError(
            f"got {type(questions).__name__} for the questions",
            where="questions",
            fix="pass {query id: {field: value}}, or the path of a file of questions",
        )
    from rankgauge.formats.questions import named_rows
    from rankgauge.formats.texts import IDS, TextSource

    source = TextSource.of(questions)
    found: dict[str, Mapping[str, Any]] = {}
    for line, row in named_rows(source, None):
        own = next((row[name] for name in IDS if row.get(name) not in {None, ""}), None)
        if not isinstance(own, str | int):
            raise FormatError(
                f"there is no column of question ids: the columns are {', '.join(row)}",
                path=source.name,
                line=line,
                fix=f"name its column {' or '.join(IDS[:2])}",
            )
        found[show_id(id_bytes(own, "query id"))] = row
    if not found:
        raise InputError(
            "there are no questions",
            where=source.name,
            fix='use JSON lines such as {"id": "q1", "text": "...", "origin": "log"}, or CSV',
        )
    return found


def field_of(fields: Fields, given: Any, what: str) -> Any:
    """Return the values of the named field of the questions; return a mapping unchanged."""
    if not isinstance(given, str):
        return given
    values = {query: row.get(given) for query, row in fields.items()}
    if all(value in {None, ""} for value in values.values()):
        names = sorted({name for row in fields.values() for name in row})
        raise InputError(
            f"no question has a field {given!r:.60} for its {what}",
            where="questions",
            fix=f"name one of: {', '.join(names)}" if names else "pass questions with fields",
        )
    return {query: None if value == "" else value for query, value in values.items()}


def split_origins(evaluation: Evaluation, questions: Any) -> dict[str, list[str]]:
    """Return the queries of an evaluation by origin: generated questions and all others.

    Args:
        evaluation: The evaluation.
        questions: As in :func:`evaluate`.

    Returns:
        The query ids by origin (``generated``, and the other origins joined); a single entry if
        all questions can be averaged together.

    Example:
        >>> from rankgauge import evaluate
        >>> made = evaluate({"q1": {"d1"}, "q2": {"d2"}}, {"q1": ["d1"], "q2": ["d2"]}, "RR")
        >>> split_origins(made, {"q1": {"origin": "log"}, "q2": {"origin": "generated"}})
        {'log': ['q1'], 'generated': ['q2']}
    """
    fields = question_fields(questions)
    origins = [_origin(fields, query) for query in evaluation.query_ids]
    others = dict.fromkeys(sorted({each for each in origins if each != _GENERATED and each}))
    name = ", ".join(others) or _REAL
    parts: dict[str, list[str]] = {}
    for query, origin in zip(evaluation.query_ids, origins, strict=True):
        parts.setdefault(_GENERATED if origin == _GENERATED else name, []).append(query)
    return parts


def add_origins(evaluation: Evaluation, fields: Fields, *, mix_origins: bool) -> Evaluation:
    """Return an evaluation that records whether its questions are generated.

    Raises:
        InputError: If only some questions are generated and `mix_origins` is not set.
    """
    number = len(split_origins(evaluation, fields).get(_GENERATED, ()))
    total = len(evaluation.query_ids)
    if not number:
        return evaluation
    if number < total and not mix_origins:
        raise InputError(
            f"{number} of {many(total, 'query')} are generated and {total - number} are not: "
            "a common mean would mislead, since generated questions differ from those of users",
            where="questions",
            fix=("evaluate each separately (queries=), or average both deliberately: mix_origins=True"),
        )
    share = f"all {total}" if number == total else f"{number} of {total}"
    found = Finding(
        "",
        "warning",
        f"{share} questions were generated by a model: {STATEMENT}",
        fix="judge questions that users asked: rankgauge logs sample",
    )
    # The description of the judgments may say the same.
    others = (each for each in evaluation.findings if STATEMENT not in each.message)
    return replace(evaluation, findings=(found, *others))


def _origin(fields: Fields, query: str) -> str:
    origin = str(fields.get(query, {}).get("origin") or "")
    return _GENERATED if origin.casefold().startswith(_GENERATED) else origin

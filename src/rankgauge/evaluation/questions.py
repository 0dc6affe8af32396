"""Fields of questions: weights, groups, and origins of the queries of an evaluation.

Generated questions are averaged with others only on request.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from rankgauge.core.arguments import to_float
from rankgauge.core.findings import Finding
from rankgauge.core.grouping import group_values
from rankgauge.core.ids import id_bytes, show_id
from rankgauge.core.text import many
from rankgauge.errors import FormatError, InputError
from rankgauge.evaluation import notes
from rankgauge.evaluation.result import Evaluation

# The largest weight; sums of weights up to here do not overflow.
_MOST_WEIGHT = 1e100
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
    fields: dict[str, Mapping[str, Any]] = {}
    for line, row in named_rows(source, None):
        own = next((row[name] for name in IDS if row.get(name) not in {None, ""}), None)
        if not isinstance(own, str | int):
            raise FormatError(
                f"there is no column of question ids: the columns are {', '.join(row)}",
                path=source.name,
                line=line,
                fix=f"name its column {' or '.join(IDS[:2])}",
            )
        fields[show_id(id_bytes(own, "query id"))] = row
    if not fields:
        raise InputError(
            "there are no questions",
            where=source.name,
            fix='use JSON lines such as {"id": "q1", "text": "...", "origin": "log"}, or CSV',
        )
    return fields


class QueryFields(NamedTuple):
    """Fields of the evaluated queries."""

    questions: Fields
    weights: Any  # mapping of query id to weight, or None
    groups: Any  # mapping of query id to group, or None

    @classmethod
    def of(cls, questions: Any, weights: Any, groups: Any) -> QueryFields:
        """Read the fields of questions, given these arguments of :func:`evaluate`."""
        fields = question_fields(questions)
        return cls(fields, _field_of(fields, weights, "weight"), _field_of(fields, groups, "group"))

    def add_to(self, evaluation: Evaluation, *, mix_origins: bool) -> Evaluation:
        """Return an evaluation with the weights and groups of its queries, and a note on origins.

        Raises:
            InputError: If only some questions are generated and `mix_origins` is not set.
        """
        query_ids, weights = evaluation.query_ids, None
        added: tuple[Finding, ...] = ()
        if self.weights is not None:
            from rankgauge.stats.intervals import effective_size

            weights = _weights(self.weights, query_ids)
            added = (
                notes.info("means are weighted by query"),
                notes.info(
                    f"effective sample size of the weights (Kish): {effective_size(weights):.1f} of "
                    f"{many(len(query_ids), 'query')}"
                ),
            )
        groups = None
        if self.groups is not None:
            # Lone surrogates are escaped, so that files can store them.
            labels = map(str, _per_query(self.groups, query_ids, "group"))
            groups = tuple(label.encode("utf-8", "backslashreplace").decode() for label in labels)
        own = evaluation.described_later(
            vars(evaluation) | {"weights": weights, "groups": groups},
            lambda: (dict(evaluation.coverage), evaluation.findings + added),
        )
        return _add_origins(own, self.questions, mix_origins=mix_origins) if self.questions else own


def _field_of(fields: Fields, field: Any, what: str) -> Any:
    """Return the values of the named field of the questions; return a mapping unchanged."""
    if not isinstance(field, str):
        return field
    values = {query: row.get(field) for query, row in fields.items()}
    if all(value in {None, ""} for value in values.values()):
        names = sorted({name for row in fields.values() for name in row})
        raise InputError(
            f"no question has a field {field!r:.60} for its {what}",
            where="questions",
            fix=f"name one of: {', '.join(names)}" if names else "pass questions with fields",
        )
    return {query: None if value == "" else value for query, value in values.items()}


def _per_query(by_query: Any, query_ids: Sequence[str], what: str) -> list[Any]:
    """Return the values of a mapping in the order of the evaluated queries."""
    # A pandas series also has items.
    if not hasattr(by_query, "items"):
        raise InputError(
            f"got {type(by_query).__name__} for the {what}s, expected a mapping",
            where=f"{what}s",
            fix=f"pass {what}s as {{query id: {what}}}",
        )
    try:
        known = {show_id(id_bytes(query, "query id")): value for query, value in by_query.items()}
    except InputError as error:
        raise InputError(error.what, where=f"{what}s", fix=error.fix) from None
    values = [known.get(query) for query in query_ids]
    for query, value in zip(query_ids, values, strict=True):
        if value is None or value != value:  # noqa: PLR0124 - only NaN differs from itself
            raise InputError(
                f"query {query!r} has no {what}",
                where=f"{what}s",
                fix=f"pass one for every evaluated query ({len(query_ids)} of them)",
            )
    return values


def _weights(by_query: Any, query_ids: Sequence[str]) -> tuple[float, ...]:
    """Return the weight of each query."""
    weights = []
    for query, weight in zip(query_ids, _per_query(by_query, query_ids, "weight"), strict=True):
        number = to_float(weight)
        if not 0 <= number <= _MOST_WEIGHT:
            raise InputError(
                f"weight {weight!r} of query {query!r} is not valid",
                where="weights",
                fix=f"a weight is a number from 0 to {_MOST_WEIGHT:g}",
            )
        weights.append(number)
    if not any(weights):
        raise InputError("all weights are 0", where="weights", fix="give one query a weight above 0")
    return tuple(weights)


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
        >>> evaluation = evaluate({"q1": {"d1"}, "q2": {"d2"}}, {"q1": ["d1"], "q2": ["d2"]}, "RR")
        >>> split_origins(evaluation, {"q1": {"origin": "log"}, "q2": {"origin": "generated"}})
        {'log': ['q1'], 'generated': ['q2']}
    """
    fields = question_fields(questions)
    origins = [origin_of(fields.get(query, {})) for query in evaluation.query_ids]
    name = ", ".join(sorted({*origins} - {_GENERATED, ""})) or _REAL
    return group_values(
        (_GENERATED if origin == _GENERATED else name, query)
        for query, origin in zip(evaluation.query_ids, origins, strict=True)
    )


def _add_origins(evaluation: Evaluation, fields: Fields, *, mix_origins: bool) -> Evaluation:
    """Return an evaluation that records whether its questions are generated."""
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
    warning = Finding(
        "",
        "warning",
        f"{share} questions were generated by a model: {STATEMENT}",
        fix="judge questions that users asked: rankgauge logs sample",
    )
    # The description of the judgments may say the same.
    others = (finding for finding in evaluation.findings if STATEMENT not in finding.message)
    return replace(evaluation, findings=(warning, *others))


def origin_of(question: Mapping[str, Any]) -> str:
    """Return the origin of a question from its fields; empty if unknown."""
    origin = str(question.get("origin") or "")
    return _GENERATED if origin.casefold().startswith(_GENERATED) else origin

"""`read_verdicts()`: verdicts of people or of another judge from files and data frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rankgauge.answers.calibration import items_by_key
from rankgauge.answers.claims import sentence_claims
from rankgauge.answers.records import AnswerRecord, AnswerSet
from rankgauge.answers.verdicts import LABELS, ClaimSet, Item, Verdict, items_of
from rankgauge.errors import InputError
from rankgauge.formats.frames import short
from rankgauge.formats.lines import source_name
from rankgauge.formats.named_rows import named_rows

__all__ = ["read_verdicts"]

_UNKNOWN = "unknown"
_Place = tuple[str, str, str, int, int, str]


def read_verdicts(
    source: Any,
    answers: AnswerSet | Iterable[AnswerSet] = (),
    *,
    claims: Callable[[AnswerRecord], ClaimSet] = sentence_claims,
    criteria: Mapping[str, str] | None = None,
) -> list[Verdict]:
    """Read verdicts, such as labels that people gave to items of answers.

    A row has the ``label``, who gave it (``judge``), and either the ``key`` of the item, or where
    it is: ``record`` (the id of the question), ``relation``, and as in `Item` ``row``, ``column``
    and ``name``, 0 and empty if left out; with several systems ``system``, too. Other parts of a
    `Verdict` are read if they are there.

    Args:
        source: A path (JSON lines, JSON, CSV, TSV, Parquet, Arrow), a data frame, or mappings.
        answers: The answers that the verdicts are on; needed for rows without ``key``.
        claims: Function that returns the claims of a record.
        criteria: Criteria of the user, each a name and its wording.

    Raises:
        InputError: If a row has no such item, or no label of its relation; with its line.

    Example:
        >>> answers = AnswerSet.of([AnswerRecord("q1", "How high?", "I don't know.")])
        >>> row = {"record": "q1", "relation": "abstention", "label": "abstains", "judge": "ann"}
        >>> [verdict.label for verdict in read_verdicts([row], answers)]
        ['abstains']
    """
    sets = (answers,) if isinstance(answers, AnswerSet) else tuple(answers)
    relations = {
        key: each.item.relation for key, each in items_by_key(sets, claims, criteria).items()
    }
    places = _places(sets, claims, criteria or {})
    name = source_name(source) if isinstance(source, str | os.PathLike) else "labels"
    found = []
    for place, row in named_rows(source, name, ("labels", "verdicts")):
        key = _text(row, "key") or _key(row, place, sets, places)
        label = _text(row, "label")
        known = LABELS.get(relations.get(key, ""), ())
        some = known or tuple(dict.fromkeys(one for each in LABELS.values() for one in each))
        if label not in some:
            raise InputError(
                f"got the label {short(row.get('label'))}", where=place,
                fix=f"choose one of: {', '.join(some)}",
            )  # fmt: skip
        prompt, quote, reason, time = (
            _text(row, part) for part in ("prompt", "quote", "reason", "time")
        )
        found.append(
            Verdict(
                key, label, _text(row, "judge") or _UNKNOWN, prompt, quote, reason,
                replicate=_number(row, "replicate", place), time=time,
            )
        )  # fmt: skip
    if not found:
        raise InputError("there are no labels", where=name, fix="give at least one")
    return found


def _places(
    sets: Iterable[AnswerSet],
    claims: Callable[[AnswerRecord], ClaimSet],
    criteria: Mapping[str, str],
) -> dict[_Place, Item]:
    return {
        (each.system, item.record, item.relation, item.row, item.column, item.name): item
        for each in sets
        for record in each
        for item in items_of(record, claims(record), criteria)
    }


def _key(
    row: Mapping[str, Any], place: str, sets: tuple[AnswerSet, ...], places: Mapping[_Place, Item]
) -> str:
    """The key of the item that a row names by its place."""
    record, relation, system = (_text(row, part) for part in ("record", "relation", "system"))
    at, column = (_number(row, part, place) for part in ("row", "column"))
    keys = {
        found.key
        for each in sets
        if system in {"", each.system}
        if (found := places.get((each.system, record, relation, at, column, _text(row, "name"))))
    }
    if len(keys) != 1:
        what = "several systems have an item" if keys else "there is no item"
        raise InputError(
            f"{what} {relation or '(no relation)'} of {short(record)}, row {at}, column {column}",
            where=place,
            fix="name the system"
            if keys
            else "give the key of an item of these answers, or record, relation, row and column",
        )
    return keys.pop()


def _number(row: Mapping[str, Any], part: str, place: str) -> int:
    text = _text(row, part) or "0"
    try:
        return int(text.removesuffix(".0"))
    except ValueError:
        raise InputError(
            f"{part} is {short(text)}, expected a whole number",
            where=place,
            fix="give an index from 0",
        ) from None


def _text(row: Mapping[str, Any], part: str) -> str:
    value = row.get(part)
    return "" if value is None or value != value else str(value)  # noqa: PLR0124 - NaN of a frame

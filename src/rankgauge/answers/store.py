"""Storage of verdicts in a database, and reading from files."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from rankgauge.answers.verdicts import LABELS, AnswerSet, Claim, Verdict, counted_labels
from rankgauge.errors import InputError
from rankgauge.formats.frames import short
from rankgauge.formats.lines import source_name
from rankgauge.formats.records import named_rows
from rankgauge.store.database import NothingStored, Store
from rankgauge.store.schema import SCHEMA

if TYPE_CHECKING:
    from sqlalchemy import Row, Select


def read_verdicts(source: Any, answers: AnswerSet | Iterable[AnswerSet] = ()) -> list[Verdict]:
    """Read verdicts, such as the labels of people.

    A row has the ``label``, the ``judge``, and either the ``key`` of the item or its position:
    ``record`` (the id of the question), ``relation``, and, as in `Item`, ``row``, ``column``
    (default 0), and ``name``; with several systems also ``system``. Other fields of a `Verdict` are
    optional.

    Args:
        source: A path (JSON lines, JSON, CSV, TSV, Parquet, Arrow), a data frame, or mappings.
        answers: The judged answers; required for rows without ``key``.

    Raises:
        InputError: If the item or label of a row is unknown.

    Example:
        >>> from rankgauge.answers import AnswerRecord
        >>> answers = AnswerSet.of([AnswerRecord("q1", "How high?", "I don't know.")])
        >>> row = {"record": "q1", "relation": "abstention", "label": "abstains", "judge": "ann"}
        >>> [verdict.label for verdict in read_verdicts([row], answers)]
        ['abstains']
    """
    sets = (answers,) if isinstance(answers, AnswerSet) else tuple(answers)
    items = [(answer_set.system, item) for answer_set in sets for item in answer_set.items()]
    relations = {item.key: item.relation for _, item in items}
    places = {(system, i.record, i.relation, i.row, i.column, i.name): i.key for system, i in items}
    name = source_name(source, "labels")
    verdicts = []
    for place, row in named_rows(source, name, ("labels", "verdicts")):
        key = _text(row, "key") or _key(row, place, sets, places)
        label = _text(row, "label")
        known = LABELS.get(relations.get(key, ""), ())
        allowed = known or tuple(dict.fromkeys(choice for choices in LABELS.values() for choice in choices))
        if label not in allowed:
            raise InputError(
                f"got the label {short(row.get('label'))}", where=place, fix=f"pass one of: {', '.join(allowed)}"
            )
        prompt, quote, reason, time = (_text(row, part) for part in ("prompt", "quote", "reason", "time"))
        verdicts.append(
            Verdict(
                key,
                label,
                _text(row, "judge") or "unknown",
                prompt,
                quote,
                reason,
                replicate=_number(row, "replicate", place),
                time=time,
            )
        )
    if not verdicts:
        raise InputError("there is no label", where=name, fix="pass at least one")
    return verdicts


def _key(
    row: Mapping[str, Any],
    place: str,
    sets: tuple[AnswerSet, ...],
    places: Mapping[tuple[str, str, str, int, int, str], str],
) -> str:
    """Return the key of the item at the position given in a row."""
    record, relation, system = (_text(row, part) for part in ("record", "relation", "system"))
    at, column = (_number(row, part, place) for part in ("row", "column"))
    keys = {
        key
        for answer_set in sets
        if system in {"", answer_set.system}
        if (key := places.get((answer_set.system, record, relation, at, column, _text(row, "name"))))
    }
    if len(keys) != 1:
        what = "several systems have an item" if keys else "there is no item"
        raise InputError(
            f"{what} {relation or '(no relation)'} of {short(record)}, row {at}, column {column}",
            where=place,
            fix="name the system"
            if keys
            else "pass the key of an item of these answers, or record, relation, row, and column",
        )
    return keys.pop()


def _number(row: Mapping[str, Any], part: str, place: str) -> int:
    text = _text(row, part) or "0"
    try:
        return int(text.removesuffix(".0"))
    except ValueError:
        raise InputError(f"{part} is {short(text)}, expected a whole number", where=place, fix="count from 0") from None


def _text(row: Mapping[str, Any], part: str) -> str:
    value = row.get(part)
    return "" if value is None or value != value else str(value)  # noqa: PLR0124 - NaN of a frame


_Result = TypeVar("_Result")
_IDLE = 0.25  # seconds without a result; those of one call arrive together


class VerdictStore(Store):
    """Append-only store of claims and verdicts: an SQLite file or a PostgreSQL database.

    Verdicts are stored by a hash of the judged texts, so that equal items of several systems or
    versions are judged once. If a judge has several verdicts on an item, the latest counts.

    Args:
        where: A path, or ``postgresql://user:password@host/database``.
        wait: Seconds to wait for a lock of another program.

    Raises:
        MissingExtra: If the PostgreSQL driver is not installed.
        InputError: If the URL is invalid.

    Example:
        >>> import tempfile
        >>> store = VerdictStore(tempfile.mkdtemp() + "/verdicts.db")
        >>> store.add([Verdict("k1", "supported", "ann"), Verdict("k2", "not stated", "ann")])
        >>> store.labels()
        {'k1': 'supported', 'k2': 'not stated'}
    """

    _first = "judge some answers first: rankgauge answers evaluate FILE --url URL --model NAME"

    def create(self) -> None:
        """Create the store if it does not exist, so that write errors occur early."""
        with self._database.writing():
            pass

    def add(self, verdicts: Iterable[Verdict]) -> None:
        """Store all verdicts; on an error, store none.

        If exactly these were the last to be stored, they are not stored again: a write that Ctrl-C
        interrupts is repeated, but may have been complete.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        rows = [
            {
                "key": verdict.key,
                "judge": verdict.judge,
                "prompt": verdict.prompt,
                "label": verdict.label,
                "replicate": verdict.replicate,
                "body": json.dumps(
                    {
                        "quote": verdict.quote,
                        "reason": verdict.reason,
                        "quoted": verdict.quoted,
                        "time": verdict.time or now,
                    }
                ),
            }
            for verdict in verdicts
        ]
        if rows:
            table = SCHEMA.table("answers_verdicts")
            latest = (
                table.select()
                .with_only_columns(*(table.c[name] for name in rows[0]))
                .order_by(table.c.sequence.desc())
                .limit(len(rows))
            )
            with self._database.writing() as connection:
                stored = [_untimed({**row}) for row in connection.execute(latest).mappings()]
                if stored[::-1] != list(map(_untimed, rows)):
                    connection.execute(table.insert(), rows)

    def verdicts(self, judge: str | None = None) -> list[Verdict]:
        """Return the verdicts of one judge or all judges, in stored order."""
        table = SCHEMA.table("answers_verdicts")
        query = table.select().order_by(table.c.sequence)
        if judge is not None:
            query = query.where(table.c.judge == judge)
        return [
            Verdict(row.key, row.label, row.judge, row.prompt, replicate=row.replicate, **json.loads(row.body))
            for row in self._rows(query)
        ]

    def labels(self, judge: str | None = None) -> dict[str, str]:
        """Return the counted label by key, of one judge or all judges; see `counted_labels`.

        Args:
            judge: The name of a judge.
        """
        return counted_labels(self.verdicts(judge))

    def add_claims(self, claims: Mapping[str, Iterable[Claim]], extractor: str) -> None:
        """Store the claims of texts; claims already stored for an extractor are kept."""
        known = self.claims(claims, extractor)
        rows = [
            {
                "text": _hash(text),
                "extractor": extractor,
                "body": json.dumps([[claim.text, claim.vital] for claim in some]),
            }
            for text, some in claims.items()
            if text not in known
        ]
        if rows:
            with self._database.writing() as connection:
                connection.execute(SCHEMA.table("answers_claims").insert(), rows)

    def claims(self, texts: Iterable[str], extractor: str) -> dict[str, tuple[Claim, ...]]:
        """Return the claims stored for an extractor, by text."""
        table = SCHEMA.table("answers_claims")
        query = table.select().with_only_columns(table.c.text, table.c.body).where(table.c.extractor == extractor)
        bodies = {row.text: row.body for row in self._rows(query)}
        stored = {text: bodies[_hash(text)] for text in texts if _hash(text) in bodies}
        return {text: tuple(Claim(*claim) for claim in json.loads(body)) for text, body in stored.items()}

    def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        """Return the rows of a query; none if the store does not exist yet."""
        try:
            with self._database.reading() as connection:
                return connection.execute(query).all()
        except NothingStored:
            return ()


def store_in_batches(
    results: Generator[_Result, None, None],
    keep: Callable[[list[_Result]], object],
    together: Callable[[_Result], object] = id,
    *,
    every: float = 0.25,
) -> None:
    """Store results in batches, every few seconds and when no result arrives, because each write waits for the disk.

    Results that arrived before an error or Ctrl-C are stored. Successive results with equal
    `together` are stored in one write: they may be from the same call, and a resumed run repeats a
    call unchanged only if all or none of its items have a verdict.
    """
    some: list[_Result] = []
    kept = came = time.monotonic()
    lock, ended = threading.Lock(), threading.Event()

    def store() -> None:
        nonlocal kept
        if some:
            keep(some[:])
            some.clear()
        kept = time.monotonic()

    def store_when_idle() -> None:
        while not ended.wait(_IDLE):
            with lock, suppress(InputError):  # the next write raises it, too
                if time.monotonic() - came >= _IDLE:
                    store()

    thread = threading.Thread(target=store_when_idle, daemon=True)
    thread.start()
    try:
        with closing(results):
            for result in results:
                with lock:
                    came = time.monotonic()
                    if some and came - kept >= every and together(some[-1]) != together(result):
                        store()
                    some.append(result)
    finally:
        ended.set()
        thread.join()
        store()


def _untimed(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"body": json.loads(row["body"]) | {"time": ""}}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

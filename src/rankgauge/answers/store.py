"""`VerdictStore`: an append-only store of claims and verdicts."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rankgauge.answers.verdicts import Claim, Verdict, label_votes
from rankgauge.core.database import NothingStored, Schema, Store

if TYPE_CHECKING:
    from sqlalchemy import Connection, MetaData

_Result = TypeVar("_Result")

_FIRST = "judge some answers first: rankgauge answers evaluate FILE --verdicts STORE"


def define_tables(tables: MetaData) -> MetaData:
    """Add the tables of the latest revision to a `MetaData`, and return it."""
    from sqlalchemy import Column, Integer, String, Table, Text

    Table(
        "rankgauge_answers_claims",
        tables,
        Column("text", String(64), primary_key=True),  # the hash of the text they come from
        Column("extractor", String(200), primary_key=True),
        Column("body", Text, nullable=False),
    )
    Table(
        "rankgauge_answers_verdicts",
        tables,
        Column("sequence", Integer, primary_key=True, autoincrement=True),
        Column("key", String(64), nullable=False),
        Column("judge", String(200), nullable=False),
        Column("prompt", String(100), nullable=False),
        Column("replicate", Integer, nullable=False),
        Column("label", String(20), nullable=False),
        Column("body", Text, nullable=False),
        sqlite_autoincrement=True,
    )
    return tables


_SCHEMA = Schema(
    "store of verdicts", define_tables, Path(__file__).parent / "migrations", "0001", "answers"
)


class VerdictStore(Store):
    """An append-only store of claims and verdicts: a file of SQLite, or PostgreSQL by URL.

    Verdicts are found by the hash of what was judged, so that equal items of several systems, and
    of later versions of a system, are judged once. Of several verdicts of one judge on one item the
    latest counts. Needs the extra ``answers`` (SQLAlchemy and Alembic).

    Args:
        where: The path of a file, or ``postgresql://user:password@host/database``.
        wait: Seconds to wait while another program writes.

    Raises:
        MissingExtra: If SQLAlchemy, or the driver of PostgreSQL, is not installed.
        InputError: If the URL cannot be understood.

    Example:
        >>> import tempfile
        >>> store = VerdictStore(tempfile.mkdtemp() + "/verdicts.db")
        >>> store.add([Verdict("k1", "supported", "ann"), Verdict("k2", "not stated", "ann")])
        >>> store.labels()
        {'k1': 'supported', 'k2': 'not stated'}
    """

    def __init__(self, where: str | os.PathLike[str], *, wait: float = 30.0) -> None:
        super().__init__(where, _SCHEMA, wait=wait, missing=_FIRST)

    def create(self) -> None:
        """Create the store if missing, so that errors of writing occur early."""
        with self._database.writing():
            pass

    def add(self, verdicts: Iterable[Verdict]) -> None:
        """Store verdicts: all of them or, if anything fails, none."""
        rows = []
        for each in verdicts:
            body = {"quote": each.quote, "reason": each.reason, "quoted": each.quoted}
            time = each.time or datetime.now(UTC).isoformat(timespec="milliseconds")
            rows.append({
                "key": each.key, "judge": each.judge, "prompt": each.prompt, "label": each.label,
                "replicate": each.replicate, "body": json.dumps(body | {"time": time}),
            })  # fmt: skip
        if rows:
            with self._database.writing() as connection:
                connection.execute(self._table("verdicts").insert(), rows)

    def verdicts(self, judge: str | None = None) -> list[Verdict]:
        """Return the verdicts in the order in which they were stored, of one judge or of all."""
        from sqlalchemy import select

        table = self._table("verdicts")
        query = select(table).order_by(table.c.sequence)
        if judge is not None:
            query = query.where(table.c.judge == judge)
        with self._reading() as connection:
            if connection is None:
                return []
            return [
                Verdict(
                    row.key, row.label, row.judge, row.prompt, replicate=row.replicate,
                    **json.loads(row.body),
                )
                for row in connection.execute(query)
            ]  # fmt: skip

    def labels(self, judge: str | None = None) -> dict[str, str]:
        """Return the label that counts for each key, of one judge or of all; see `counted_labels`.

        Args:
            judge: The name of a judge.
        """
        from sqlalchemy import select

        table = self._table("verdicts")
        columns = (table.c.key, table.c.label, table.c.judge, table.c.prompt, table.c.replicate)
        query = select(*columns).order_by(table.c.sequence)
        if judge is not None:
            query = query.where(table.c.judge == judge)
        with self._reading() as connection:
            if connection is None:
                return {}
            return label_votes(map(tuple, connection.execute(query)))

    def add_claims(self, claims: Mapping[str, Iterable[Claim]], extractor: str) -> None:
        """Store the claims of texts; claims that an extractor made before stay as they are."""
        known = self.claims(claims, extractor)
        rows = [
            {
                "text": _hash(text), "extractor": extractor,
                "body": json.dumps([[claim.text, claim.vital] for claim in some]),
            }
            for text, some in claims.items()
            if text not in known
        ]  # fmt: skip
        if rows:
            with self._database.writing() as connection:
                connection.execute(self._table("claims").insert(), rows)

    def claims(self, texts: Iterable[str], extractor: str) -> dict[str, tuple[Claim, ...]]:
        """Return the claims that an extractor made of texts, by text."""
        from sqlalchemy import select

        table = self._table("claims")
        query = select(table.c.text, table.c.body).where(table.c.extractor == extractor)
        with self._reading() as connection:
            rows: Iterable[Any] = () if connection is None else connection.execute(query)
            bodies = {row.text: row.body for row in rows}
        found = {text: bodies[_hash(text)] for text in texts if _hash(text) in bodies}
        return {
            text: tuple(Claim(*claim) for claim in json.loads(body)) for text, body in found.items()
        }

    @contextmanager
    def _reading(self) -> Iterator[Connection | None]:
        """A connection; None of a store that does not exist yet."""
        with ExitStack() as stack:
            connection = None
            with suppress(NothingStored):
                connection = stack.enter_context(self._database.reading())
            yield connection

    def _table(self, name: str) -> Any:
        return _SCHEMA.tables.tables[f"rankgauge_answers_{name}"]


def store_in_batches(
    results: Generator[_Result, None, None],
    keep: Callable[[list[_Result]], object],
    together: Callable[[_Result], object] = id,
    *,
    every: float = 0.25,
) -> None:
    """Store results in batches, of this many seconds each, since storing one waits for the disk.

    Results before an error or Ctrl-C are stored. Successive results for which `together` is equal
    are kept at once: they may come from one call, and a run that goes on repeats calls as they were
    only if all or none of their items have a verdict.
    """
    some: list[_Result] = []
    kept = time.monotonic()
    try:
        with closing(results):
            for result in results:
                late = time.monotonic() - kept >= every
                if some and late and together(some[-1]) != together(result):
                    keep(some)
                    some = []
                    kept = time.monotonic()
                some.append(result)
    finally:
        if some:
            keep(some)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

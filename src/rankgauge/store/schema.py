"""Tables of the store.

A change of the tables needs a migration: a store of an earlier revision is migrated by Alembic, a
new one gets these tables at once. Events (presentations, choices, verdicts) are rows that are added
but never changed. Fields without a column are in `body`, a JSON object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Column, MetaData, Table

PREFIX = "rankgauge_"


@dataclass(frozen=True)
class Schema:
    """Tables, and the migrations that lead to them."""

    define: Callable[[MetaData], object]  # adds the tables
    migrations: Path  # folder of the migrations
    revision: str  # latest revision; revisions are numbered ``0001``, ``0002``, ...

    @cached_property
    def tables(self) -> MetaData:
        """The tables of the latest revision."""
        from sqlalchemy import MetaData

        tables = MetaData()
        self.define(tables)
        return tables

    def table(self, name: str) -> Table:
        """Return a table by its name without ``rankgauge_``."""
        return self.tables.tables[f"{PREFIX}{name}"]


def _define(tables: MetaData) -> None:
    from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, LargeBinary, String, Table, Text

    def add(name: str, *columns: Column[Any]) -> Table:
        numbered = any(column.name in {"id", "sequence"} and column.autoincrement is True for column in columns)
        # Numbers of deleted rows are not reused.
        return Table(f"{PREFIX}{name}", tables, *columns, sqlite_autoincrement=numbered)

    def sequence() -> Column[int]:
        return Column("sequence", Integer, primary_key=True, autoincrement=True)

    def body() -> Column[str]:
        return Column("body", Text, nullable=False)

    def time() -> Column[str]:
        return Column("time", String(32), nullable=False)

    def text(name: str, kind: Any = Text) -> Column[str]:
        return Column(name, kind, nullable=False)

    def event() -> Column[str]:
        return Column("id", String(36), nullable=False, unique=True)

    def key(name: str, kind: Any = Text, *more: Any) -> Column[Any]:
        return Column(name, kind, *more, primary_key=True, autoincrement=False)

    add("version", text("version_num", String(32)))  # as Alembic names it
    # Evaluations and the artifacts that they were computed from.
    add("queries", key("hash", String(64)), Column("ids", LargeBinary, nullable=False))
    add(
        "evaluations",
        Column("id", Integer, primary_key=True, autoincrement=True),
        time(),
        text("run"),
        Column("queries", String(64), ForeignKey("rankgauge_queries.hash"), nullable=False),
        text("head"),
        text("seal", String(64)),
    )
    add(
        "values",
        key("evaluation", Integer, ForeignKey("rankgauge_evaluations.id")),
        key("kind", String(12)),
        key("name", String(500)),
        Column("body", LargeBinary, nullable=False),
    )
    add(
        "artifacts",
        sequence(),
        Column("name", String(64), nullable=False, unique=True),
        text("kind", String(12)),
        Column("size", BigInteger, nullable=False),
    )
    add(
        "uses",
        key("evaluation", Integer, ForeignKey("rankgauge_evaluations.id")),
        key("number", Integer),
        Column("artifact", String(64), ForeignKey("rankgauge_artifacts.name"), nullable=False),
    )
    # Blocks of artifacts in PostgreSQL, which are written before the artifact is named.
    add(
        "blocks",
        key("artifact", String(64)),
        key("number", Integer),
        Column("time", BigInteger, nullable=False),  # seconds since 1970
        Column("body", LargeBinary, nullable=False),
    )
    # Judging: settings, guidelines, questions, pools, judges, and their events.
    add("judging_versions", key("kind", String(12)), key("number", Integer), time(), text("author"), body())
    add("judging_questions", sequence(), text("id"), time(), body())  # a changed question is a new row
    for name in ("documents", "answers"):
        add(f"judging_{name}", key("id"), body())
    add(
        "judging_candidates",
        *map(key, ("question", "document", "source")),
        key("kind", String(12)),
        Column("rank", Integer),
        *(Column(name, Float) for name in ("score", "probability")),
        time(),
    )
    add("judging_gold", sequence(), text("question"), body())
    add(
        "judging_judges",
        key("id"),
        Column("secret", Text, unique=True),  # a hash
        Column("revoked", String(32)),
        time(),
        body(),
    )
    add(
        "judging_sessions",
        key("token", String(64)),  # a hash
        Column("judge", Text, ForeignKey("rankgauge_judging_judges.id"), nullable=False),
        text("expires", String(32)),
    )
    shown = add("judging_presentations", sequence(), event(), text("question"), text("judge"), time(), body())
    chosen = add(
        "judging_choices",
        sequence(),
        event(),
        Column("presentation", String(36), ForeignKey("rankgauge_judging_presentations.id"), nullable=False),
        text("judge"),
        text("outcome", String(16)),
        time(),
        body(),
    )
    for table, name in ((shown, "question"), (shown, "judge"), (chosen, "presentation")):
        Index(f"{table.name}_{name}", table.c[name])
    # Claims of texts (by their hash), and verdicts on answers.
    add("answers_claims", key("text", String(64)), key("extractor", String(200)), body())
    add(
        "answers_verdicts",
        sequence(),
        text("key", String(64)),
        text("judge", String(200)),
        text("prompt", String(100)),
        Column("replicate", Integer, nullable=False),
        text("label", String(20)),
        body(),
    )
    # Jobs that pages start; their state changes. `beat` counts the heartbeats of the process that runs one.
    add(
        "jobs",
        Column("id", Integer, primary_key=True, autoincrement=True),
        time(),
        text("author"),
        text("arguments"),
        text("state", String(12)),
        Column("attempt", Integer, nullable=False),
        Column("beat", Integer, nullable=False),
        Column("share", Float),
        text("message"),
        Column("ended", String(32)),
    )
    # Results of gates, in this project or imported from CI.
    add("gates", sequence(), time(), text("author"), text("verdict", String(32)), body())


SCHEMA = Schema(_define, Path(__file__).parent / "migrations", "0002")

"""Tables of a judging project.

Presentations and choices are events: rows are added but never changed. Fields without a column
are in `body`, a JSON object.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rankgauge.core.database import Schema

if TYPE_CHECKING:
    from sqlalchemy import MetaData


def define_tables(tables: MetaData) -> MetaData:
    """Add the tables of the latest revision to `tables` and return it."""
    from sqlalchemy import Column, Float, ForeignKey, Index, Integer, String, Table, Text

    def sequence() -> Column[int]:
        return Column("sequence", Integer, primary_key=True, autoincrement=True)

    def body() -> Column[str]:
        return Column("body", Text, nullable=False)

    def time() -> Column[str]:
        return Column("time", String(32), nullable=False)

    Table(
        "rankgauge_judging_versions",  # versions of the settings and of the guideline
        tables,
        Column("kind", String(12), primary_key=True),
        Column("number", Integer, primary_key=True, autoincrement=False),
        time(),
        Column("author", Text, nullable=False),
        body(),
    )
    Table(
        "rankgauge_judging_questions",  # a changed question is a new row
        tables,
        sequence(),
        Column("id", Text, nullable=False),
        time(),
        body(),
        sqlite_autoincrement=True,
    )
    for name in ("documents", "answers"):
        Table(f"rankgauge_judging_{name}", tables, Column("id", Text, primary_key=True), body())
    Table(
        "rankgauge_judging_candidates",
        tables,
        Column("question", Text, primary_key=True),
        Column("document", Text, primary_key=True),
        Column("source", Text, primary_key=True),
        Column("kind", String(12), primary_key=True),
        Column("rank", Integer),
        Column("score", Float),
        Column("probability", Float),
        time(),
    )
    Table(
        "rankgauge_judging_gold",
        tables,
        sequence(),
        Column("question", Text, nullable=False),
        body(),
        sqlite_autoincrement=True,
    )
    Table(
        "rankgauge_judging_judges",
        tables,
        Column("id", Text, primary_key=True),
        Column("secret", Text, unique=True),  # a hash
        Column("revoked", String(32)),
        time(),
        body(),
    )
    Table(
        "rankgauge_judging_sessions",
        tables,
        Column("token", String(64), primary_key=True),  # a hash
        Column("judge", Text, ForeignKey("rankgauge_judging_judges.id"), nullable=False),
        Column("expires", String(32), nullable=False),
    )
    presentations = Table(
        "rankgauge_judging_presentations",
        tables,
        sequence(),
        Column("id", String(36), nullable=False, unique=True),
        Column("question", Text, nullable=False),
        Column("judge", Text, nullable=False),
        time(),
        body(),
        sqlite_autoincrement=True,
    )
    choices = Table(
        "rankgauge_judging_choices",
        tables,
        sequence(),
        Column("id", String(36), nullable=False, unique=True),
        Column("presentation", String(36), ForeignKey("rankgauge_judging_presentations.id"), nullable=False),
        Column("judge", Text, nullable=False),
        Column("outcome", String(16), nullable=False),
        time(),
        body(),
        sqlite_autoincrement=True,
    )
    Index("rankgauge_judging_presentations_question", presentations.c.question)
    Index("rankgauge_judging_presentations_judge", presentations.c.judge)
    Index("rankgauge_judging_choices_presentation", choices.c.presentation)
    return tables


SCHEMA = Schema(
    "judging project",
    define_tables,
    Path(__file__).parent / "migrations",
    "0001",
    "create it: rankgauge judge create PROJECT --questions FILE",
    "judging",
)

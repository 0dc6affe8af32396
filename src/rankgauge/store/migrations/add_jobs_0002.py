"""Add the tables of jobs and of results of gates."""

from alembic import op
from sqlalchemy import Column, Float, Integer, String, Text

revision, down_revision = "0002", "0001"


def upgrade() -> None:
    """Create the tables as they are in this revision."""
    op.create_table(
        "rankgauge_jobs",
        Column("id", Integer, primary_key=True, autoincrement=True),
        Column("time", String(32), nullable=False),
        Column("author", Text, nullable=False),
        Column("arguments", Text, nullable=False),
        Column("state", String(12), nullable=False),
        Column("attempt", Integer, nullable=False),
        Column("beat", Integer, nullable=False),
        Column("share", Float),
        Column("message", Text, nullable=False),
        Column("ended", String(32)),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "rankgauge_gates",
        Column("sequence", Integer, primary_key=True, autoincrement=True),
        Column("time", String(32), nullable=False),
        Column("author", Text, nullable=False),
        Column("verdict", String(32), nullable=False),
        Column("body", Text, nullable=False),
        sqlite_autoincrement=True,
    )

"""Create the tables of evaluations, queries, and values."""

from alembic import op
from sqlalchemy import Column, ForeignKey, Integer, LargeBinary, String, Text

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "rankgauge_queries", Column("hash", String(64), primary_key=True), Column("ids", LargeBinary, nullable=False)
    )
    op.create_table(
        "rankgauge_evaluations",
        Column("id", Integer, primary_key=True, autoincrement=True),
        Column("time", String(32), nullable=False),
        Column("run", Text, nullable=False),
        Column("queries", String(64), ForeignKey("rankgauge_queries.hash"), nullable=False),
        Column("head", Text, nullable=False),
        Column("seal", String(64), nullable=False),
        sqlite_autoincrement=True,  # numbers of deleted evaluations are not reused
    )
    op.create_table(
        "rankgauge_values",
        Column("evaluation", Integer, ForeignKey("rankgauge_evaluations.id"), primary_key=True, autoincrement=False),
        Column("kind", String(12), primary_key=True),
        Column("name", String(500), primary_key=True),
        Column("body", LargeBinary, nullable=False),
    )

"""Create the tables of claims and verdicts."""

from alembic import op
from sqlalchemy import Column, Integer, String, Text

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "rankgauge_answers_claims",
        Column("text", String(64), primary_key=True),
        Column("extractor", String(200), primary_key=True),
        Column("body", Text, nullable=False),
    )
    op.create_table(
        "rankgauge_answers_verdicts",
        Column("sequence", Integer, primary_key=True, autoincrement=True),
        Column("key", String(64), nullable=False),
        Column("judge", String(200), nullable=False),
        Column("prompt", String(100), nullable=False),
        Column("replicate", Integer, nullable=False),
        Column("label", String(20), nullable=False),
        Column("body", Text, nullable=False),
        sqlite_autoincrement=True,
    )

"""Create the tables of a judging project."""

from alembic import op
from sqlalchemy import Column, Float, ForeignKey, Integer, String, Text

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "rankgauge_judging_versions",
        Column("kind", String(12), primary_key=True),
        Column("number", Integer, primary_key=True, autoincrement=False),
        Column("time", String(32), nullable=False),
        Column("author", Text, nullable=False),
        Column("body", Text, nullable=False),
    )
    op.create_table(
        "rankgauge_judging_questions",
        Column("sequence", Integer, primary_key=True, autoincrement=True),
        Column("id", Text, nullable=False),
        Column("time", String(32), nullable=False),
        Column("body", Text, nullable=False),
        sqlite_autoincrement=True,
    )
    for name in ("documents", "answers"):
        op.create_table(
            f"rankgauge_judging_{name}", Column("id", Text, primary_key=True), Column("body", Text, nullable=False)
        )
    op.create_table(
        "rankgauge_judging_candidates",
        Column("question", Text, primary_key=True),
        Column("document", Text, primary_key=True),
        Column("source", Text, primary_key=True),
        Column("kind", String(12), primary_key=True),
        Column("rank", Integer),
        Column("score", Float),
        Column("probability", Float),
        Column("time", String(32), nullable=False),
    )
    op.create_table(
        "rankgauge_judging_gold",
        Column("sequence", Integer, primary_key=True, autoincrement=True),
        Column("question", Text, nullable=False),
        Column("body", Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "rankgauge_judging_judges",
        Column("id", Text, primary_key=True),
        Column("secret", Text, unique=True),
        Column("revoked", String(32)),
        Column("time", String(32), nullable=False),
        Column("body", Text, nullable=False),
    )
    op.create_table(
        "rankgauge_judging_sessions",
        Column("token", String(64), primary_key=True),
        Column("judge", Text, ForeignKey("rankgauge_judging_judges.id"), nullable=False),
        Column("expires", String(32), nullable=False),
    )
    op.create_table(
        "rankgauge_judging_presentations",
        Column("sequence", Integer, primary_key=True, autoincrement=True),
        Column("id", String(36), nullable=False, unique=True),
        Column("question", Text, nullable=False),
        Column("judge", Text, nullable=False),
        Column("time", String(32), nullable=False),
        Column("body", Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "rankgauge_judging_choices",
        Column("sequence", Integer, primary_key=True, autoincrement=True),
        Column("id", String(36), nullable=False, unique=True),
        Column("presentation", String(36), ForeignKey("rankgauge_judging_presentations.id"), nullable=False),
        Column("judge", Text, nullable=False),
        Column("outcome", String(16), nullable=False),
        Column("time", String(32), nullable=False),
        Column("body", Text, nullable=False),
        sqlite_autoincrement=True,
    )
    for table, column in (("presentations", "question"), ("presentations", "judge"), ("choices", "presentation")):
        name = f"rankgauge_judging_{table}"
        op.create_index(f"{name}_{column}", name, [column])

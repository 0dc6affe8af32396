"""Create the tables of claims and verdicts."""

from alembic import op
from sqlalchemy import MetaData

from rankgauge.answers.store import define_tables

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    define_tables(MetaData()).create_all(op.get_bind())

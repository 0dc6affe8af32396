"""Create the tables of a judging project."""

from alembic import op
from sqlalchemy import MetaData

from rankgauge.judging.tables import define_tables

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    define_tables(MetaData()).create_all(op.get_bind())

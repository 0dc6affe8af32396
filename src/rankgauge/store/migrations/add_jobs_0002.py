"""Add the tables of jobs and of results of gates."""

from alembic import op

from rankgauge.store.schema import SCHEMA

revision, down_revision = "0002", "0001"


def upgrade() -> None:
    """Create the tables."""
    SCHEMA.tables.create_all(op.get_bind(), [SCHEMA.table("jobs"), SCHEMA.table("gates")])

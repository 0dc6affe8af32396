"""Migrations of the tables of a history, applied by Alembic in the order of their revisions."""

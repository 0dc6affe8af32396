"""Migrations of the tables of verdicts, applied by Alembic in order of revision."""

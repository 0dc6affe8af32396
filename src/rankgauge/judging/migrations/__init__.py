"""Migrations of the tables of a judging project, applied by Alembic in order of revision."""

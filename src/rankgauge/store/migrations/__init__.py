"""Migrations of the tables of the store, applied by Alembic in the order of their revisions."""

"""Database migrations of a verdict store, applied by Alembic in order of revision."""

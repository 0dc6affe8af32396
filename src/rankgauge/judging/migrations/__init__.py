"""Database migrations of a judging project, applied by Alembic in order of revision."""

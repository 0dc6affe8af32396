"""Begin the chain of migrations: a new store has the tables of `rankgauge.store.schema`."""

revision = "0001"
down_revision = None

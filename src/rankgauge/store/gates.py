"""Results of gates, of a project and of its CI."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from rankgauge.store.database import Store
from rankgauge.store.history import utc
from rankgauge.store.schema import SCHEMA


@dataclass(frozen=True)
class StoredGate:
    """A stored result of a gate.

    Attributes:
        sequence: The number of the result.
        time: When the gate ran, or when its result was stored (UTC, ISO 8601).
        author: The source: empty for this project, ``imported``, or an application of the project.
        verdict: The verdict.
        body: The result as JSON.
    """

    sequence: int
    time: str
    author: str
    verdict: str
    body: str


class Gates(Store):
    """The results of gates in a store, each stored once.

    Example:
        >>> import tempfile
        >>> gates = Gates(tempfile.mkdtemp() + "/store.db")
        >>> gates.add('{"verdict": "PASS"}'), gates.add('{"verdict":"PASS"}'), gates.count()
        (True, False, 1)
    """

    def add(self, result: str, *, author: str = "") -> bool:
        """Store a valid result (`GateResult.to_json`); return False if it is already stored."""
        data = json.loads(result)
        now = datetime.now(UTC)
        row = {
            "time": min(utc(data.get("time")), now).isoformat(timespec="seconds"),
            "author": author,
            "verdict": data["verdict"],
            "body": json.dumps(data, sort_keys=True),
        }
        table = SCHEMA.table("gates")
        equal = table.select().where(table.c.verdict == row["verdict"], table.c.body == row["body"])
        with self._database.writing() as connection:
            if connection.execute(equal).first() is not None:
                return False
            connection.execute(table.insert().values(row))
        return True

    def count(self) -> int:
        """Return the number of results."""
        from sqlalchemy import func, select

        with self._database.reading() as connection:
            return connection.scalar(select(func.count()).select_from(SCHEMA.table("gates"))) or 0

    def results(self, most: int = 100, skip: int = 0) -> list[StoredGate]:
        """Return results, the latest first."""
        table = SCHEMA.table("gates")
        latest = table.select().order_by(table.c.time.desc(), table.c.sequence.desc()).limit(most).offset(skip)
        with self._database.reading() as connection:
            return [StoredGate(**row) for row in connection.execute(latest).mappings()]

    def result(self, number: int) -> StoredGate | None:
        """Return a result by its number, or None if there is none."""
        table = SCHEMA.table("gates")
        with self._database.reading() as connection:
            row = connection.execute(table.select().where(table.c.sequence == number)).mappings().first()
        return None if row is None else StoredGate(**row)

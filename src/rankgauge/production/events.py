"""Events of a production log: questions, results, answers, and user actions."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

# Kinds of events. An impression is never inferred from a click.
KINDS = {
    "question": "a user asked a question",
    "retrieval": "documents were retrieved, in this order",
    "impression": "results were shown, at these ranks",
    "click": "a result was opened",
    "answer": "a generated answer was shown",
    "citation": "a citation was shown with the answer",
    "citation click": "a citation was opened",
    "thumbs": "the user rated the answer: 1 up, -1 down",
    "preference": "of two, the user preferred the first (1), the second (-1), or neither (0)",
    "abstention": 'the application said "I don\'t know"',
    "handover": "the conversation was handed over to a person",
    "label": "a person said whether the question can be answered: 1 or 0",
    "other": "anything else, kept and counted",
}
# Names and DuckDB types of the columns of a log, in order.
COLUMNS = {
    "event_id": "VARCHAR",
    "kind": "VARCHAR",
    "time": "TIMESTAMPTZ",
    "question_id": "VARCHAR",
    "session_id": "VARCHAR",
    "user_id": "VARCHAR",
    "arm": "VARCHAR",
    "text": "VARCHAR",
    "documents": "VARCHAR[]",
    "ranks": "INTEGER[]",
    "scores": "DOUBLE[]",
    "value": "DOUBLE",
    "label": "VARCHAR",
    "latency_ms": "DOUBLE",
    "attributes": "MAP(VARCHAR, VARCHAR)",
    "source": "VARCHAR",
}


@cache
def statement(name: str) -> str:
    """Return the SQL in a file of this package."""
    return (resources.files("rankgauge.production") / "sql" / f"{name}.sql").read_text("utf-8")


class Parameters(dict[str, Any]):
    """Parameters of a statement."""

    def add(self, value: Any) -> str:
        """Return the SQL for a value."""
        name = f"p{len(self)}"
        self[name] = value
        return f"${name}"


# The times that Python and other tools can represent, in SQL.
TIMES = "TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999'"

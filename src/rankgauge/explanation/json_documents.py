"""Workings as plain values, and documents of JSON by published schemas."""

from __future__ import annotations

import json
import math
from importlib.metadata import version
from typing import Any

from rankgauge.core.escaping import for_json
from rankgauge.explanation.working import Term, Worked, Working

__all__ = ["null", "working_data", "written"]


def working_data(working: Working) -> dict[str, Any]:
    """What a value is made of, as JSON has it."""
    return {
        "columns": list(working.columns),
        "rows": [_row(row) for row in working.rows],
        "ideal": [
            {
                "rank": row.rank,
                "document": row.document,
                "grade": row.grade,
                "terms": [_term(term) for term in row.terms],
            }
            for row in working.ideal
        ],
        "steps": list(working.steps),
    }


def _row(row: Worked) -> dict[str, Any]:
    return {
        "rank": row.listed.rank,
        "document": row.listed.document,
        "score": row.listed.score,
        "grade": row.listed.grade,
        "tie": [row.listed.first, row.listed.last],
        "counts": row.counts,
        "terms": [_term(term) for term in row.terms],
    }


def _term(term: Term) -> Term:
    return None if isinstance(term, float) and math.isnan(term) else term


def null(value: float) -> float | None:
    """None for what is undefined: JSON has no NaN."""
    return None if math.isnan(value) else value


def written(schema: str, data: dict[str, Any]) -> str:
    """A document by a schema."""
    whole = {"schema": schema, "rankgauge": version("rankgauge"), **data}
    return for_json(json.dumps(whole, ensure_ascii=False, allow_nan=False))

"""Workings as plain values."""

from __future__ import annotations

from typing import Any

from rankgauge.explanation.working import Worked, Working

__all__ = ["working_data"]


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
                "terms": list(row.terms),
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
        "terms": list(row.terms),
    }

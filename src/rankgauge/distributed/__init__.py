"""Evaluation on Spark, and by SQL in databases and warehouses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.distributed.comparison import DistributedComparison as DistributedComparison
    from rankgauge.distributed.sql import (
        DIALECTS as DIALECTS,
        sql_checks as sql_checks,
        sql_query as sql_query,
    )

__all__, __getattr__, __dir__ = lazy_names(
    __name__, {"comparison": "DistributedComparison", "sql": "DIALECTS sql_checks sql_query"}
)

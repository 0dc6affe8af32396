"""Evaluation on Spark, and by SQL in databases and warehouses."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.distributed.comparison import DistributedComparison as DistributedComparison
    from rankgauge.distributed.sql import DIALECTS as DIALECTS, sql_checks as sql_checks, sql_query as sql_query

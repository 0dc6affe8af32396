"""Evaluation where the data already is: on Spark, and by SQL in warehouses."""

from rankgauge.distributed.sql import DIALECTS, sql_checks, sql_query

__all__ = ["DIALECTS", "sql_checks", "sql_query"]

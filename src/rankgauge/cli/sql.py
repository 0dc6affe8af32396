"""``rankgauge sql``: print SQL that computes measures."""

from __future__ import annotations

from typing import Annotated

import click

from rankgauge.cli.parameters import argument, command, option
from rankgauge.distributed import DIALECTS, sql_checks, sql_query


@command()
def sql(
    *,
    measures: tuple[str, ...] = argument("[MEASURE]..."),
    dialect: Annotated[str, click.Choice(DIALECTS)] = option("The database that will run the query.", default="duckdb"),
    run: str = option("The table of the run.", "TABLE", default="run"),
    qrels: str = option("The table of the judgments.", "TABLE", default="qrels"),
    columns: dict[str, str] = option(
        "The name of a column if it is not query_id, doc_id, score, or grade: grade=relevance.", "--column COLUMN=NAME"
    ),
    per_query: bool = option("Return a row for each query instead of the means."),
    checks: bool = option("Instead, print a query that counts duplicates and missing values in the tables."),
) -> None:
    """Print a SQL query that computes measures in the database of a run and its judgments.

    All judged queries count; ties are broken by document id, descending; unjudged documents are
    not relevant. The values agree with those of rankgauge evaluate except in the last digits. The
    query does not detect duplicates or missing values: first run the query printed by --checks.

    \b
    Examples:
      rankgauge sql nDCG@10 --dialect bigquery --run logs.run --qrels logs.qrels
      rankgauge sql --checks --dialect bigquery --run logs.run --qrels logs.qrels
      rankgauge sql AP --column grade=relevance --per-query
    """
    if bool(measures) == checks:
        raise click.UsageError("pass measures, as in rankgauge sql nDCG@10 RR@10, or --checks alone")
    if checks:
        text = sql_checks(dialect=dialect, run=run, qrels=qrels, columns=columns)
    else:
        text = sql_query(measures, dialect=dialect, run=run, qrels=qrels, columns=columns, per_query=per_query)
    click.echo(f"{text};")

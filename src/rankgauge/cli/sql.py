"""``rankgauge sql``: print SQL that computes measures."""

from __future__ import annotations

import click

from rankgauge.distributed import DIALECTS, sql_checks, sql_query


@click.command(short_help="Print SQL that computes measures in a warehouse.")
@click.argument("measures", metavar="MEASURE...", nargs=-1)
@click.option(
    "--dialect", type=click.Choice(DIALECTS), default="duckdb", show_default=True,
    help="The database that will run the query.",
)  # fmt: skip
@click.option(
    "--run", default="run", show_default=True, metavar="TABLE", help="The table of the run."
)
@click.option(
    "--qrels",
    default="qrels",
    show_default=True,
    metavar="TABLE",
    help="The table of the judgments.",
)
@click.option(
    "--column", "columns", multiple=True, metavar="COLUMN=NAME",
    help="The name of a column if it is not query_id, doc_id, score, or grade: grade=relevance.",
)  # fmt: skip
@click.option("--per-query", is_flag=True, help="Return a row for each query instead of the means.")
@click.option(
    "--checks", is_flag=True,
    help="Instead, print a query that counts duplicates and missing values in the tables.",
)  # fmt: skip
def sql(
    measures: tuple[str, ...],
    dialect: str,
    run: str,
    qrels: str,
    columns: tuple[str, ...],
    per_query: bool,
    checks: bool,
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
        raise click.UsageError(
            "pass measures, as in rankgauge sql nDCG@10 RR@10, or --checks alone"
        )
    wrong = [each for each in columns if "=" not in each]
    if wrong:
        raise click.UsageError(f"--column {wrong[0]}: write it as grade=relevance")
    names = dict(each.split("=", 1) for each in columns)
    if checks:
        text = sql_checks(dialect=dialect, run=run, qrels=qrels, columns=names)
    else:
        text = sql_query(
            measures, dialect=dialect, run=run, qrels=qrels, columns=names, per_query=per_query
        )
    click.echo(f"{text};")

"""``rankgauge spark`` and ``sql``: evaluate runs where the data is."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.evaluate import measures_of
from rankgauge.cli.options import named_runs
from rankgauge.cli.output import Output, print_message
from rankgauge.cli.parameters import argument, command, declare, option
from rankgauge.distributed import DIALECTS, sql_checks, sql_query

# With fewer rows, one machine finishes before a Spark session starts.
_SMALL = 10_000_000


@command()
def spark(
    *,
    qrels: str,
    runs: tuple[str, ...] = argument("RUN..."),
    measures: tuple[str, ...] = options.measures(
        "A measure or a use case, as in rankgauge evaluate; repeat for more.  [default: as there]"
    ),
    out: Output,
    policies: options.Policies = declare(
        queries=option(
            "The queries to average: all judged queries, or those that are also in the run.",
            default="all",
            type=click.Choice(["all", "intersection"]),
        )
    ),
    master: str = option(
        "The master, such as yarn, spark://host:7077, or sc://host for Spark Connect.", "URL", default="local[*]"
    ),
    values: str | None = option("Write the values for each query to a new folder, as Parquet.", "FOLDER"),
) -> None:
    """Evaluate each RUN against the judgments QRELS on Spark, and print the means.

    Both are files on any storage that Spark reads, Parquet unless the name ends with .csv, .tsv,
    .json, .jsonl, .txt, .run, .qrels, or .trec.

    \b
    Examples:
      rankgauge spark s3://logs/qrels s3://logs/run --master yarn
      rankgauge spark qrels.parquet bm25.parquet dense.parquet -m nDCG@10 --values values
    """
    from rankgauge.distributed import spark as engine

    wanted = measures_of(measures)
    how = policies.keywords("ties", "queries", "duplicates", "unjudged")
    paths = {name: str(path) for name, path in named_runs(runs).items()}
    with engine.open_session(master) as session:
        truth = engine.read_files(session, qrels, "qrels")
        every = engine.read_runs(session, paths)
        evaluated = engine.evaluate(every, truth, wanted, runs=paths, **how)
        if values is not None:
            _write(evaluated, values)
            evaluated = session.read.parquet(engine.literal_path(values))
        means = engine.summarize(evaluated, undefined=policies.undefined)
        names = tuple(evaluated.columns[2:])
        rows, judged = every.count(), truth.count()
        for run in paths:
            if not any(means.get(run, {}).values()):
                engine.check_queries(every.where(every.run == run), truth)
    few = ("rankgauge evaluate is faster below about 10 million rows",) if rows < _SMALL else ()
    notes = (f"{rows:,} rows of runs and {judged:,} judgments", *few)
    cells = tuple((run, *(means[run][name] if run in means else None for name in names)) for run in paths)
    out.print_table(rankgauge.rendering.Table(("run", *names), cells, notes=notes))
    if out.is_data and not out.quiet:
        for note in notes:
            print_message(note)


def _write(values: Any, folder: str) -> None:
    """Write values; after a failed job, remove the empty folder."""
    local = Path(folder.removeprefix("file://"))
    existed = local.exists()
    try:
        values.write.parquet(folder)
    except BaseException:
        # Object stores have no empty folders.
        if not existed:
            with suppress(OSError):
                local.rmdir()
        raise


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

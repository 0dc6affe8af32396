"""``rankgauge logs``: production logs."""

from __future__ import annotations

from typing import Annotated, Literal

import click

from rankgauge.cli.logs_experiments import experiment, interleaving, judgments
from rankgauge.cli.logs_metrics import health, metrics
from rankgauge.cli.logs_questions import drift, sample
from rankgauge.cli.output import Output, working
from rankgauge.cli.parameters import Group, argument, option


@click.group(cls=Group, short_help="Import production logs and compute metrics.")
def logs() -> None:
    """Monitor quality in production with a log of questions, results, answers, and clicks.

    LOG is a folder written by `logs import`, a Parquet file, or a pattern such as 'log/*.parquet'.

    \b
    Examples:
      rankgauge logs import ubi_queries.jsonl.gz ubi_events.jsonl.gz log
      rankgauge logs show log
      rankgauge logs metrics log --by week
      rankgauge logs drift queries.jsonl log -o drift.html
    """


@logs.command("import", short_help="Import events from files into a log.")
def import_(
    *,
    sources: tuple[str, ...] = argument("SOURCE..."),
    log: str,
    log_format: str | None = option(
        "ubi, spans, mlflow, langfuse, or events.  [default: recognized by the first rows]", "--format NAME"
    ),
    mapping: str | None = option("TOML or JSON: the column of each field of an event.", "FILE"),
    users: Literal["keep", "hash", "drop"] = option(
        "Keep user identifiers, hash them with a key of this machine, or drop them.", default="keep"
    ),
    scrub: bool = option("Mask addresses, long numbers, and secrets in texts. Names of people are not masked."),
    drop_text: bool = option("Do not store the texts of questions and answers."),
    timezone: str | None = option(
        "The time zone of times without one, such as Europe/Berlin; without this option, rows "
        "with such times are refused.",
        "ZONE",
    ),
    first_rank: Annotated[int, click.IntRange(0, 1)] | None = option(
        "Whether ranks in SOURCE start at 0 or 1.  [default: detected]"
    ),
    dry_run: bool = option("Print the report and write nothing."),
    out: Output,
) -> None:
    """Import the events in SOURCE into the folder LOG.

    SOURCE is a UBI log, OpenInference or OpenTelemetry spans, MLflow or Langfuse feedback, or, with
    --mapping, any CSV, JSON lines, or Parquet file. Importing a file again adds only new events; an
    interrupted import resumes. Rows that are not events are counted and written to
    LOG/refused.jsonl.

    \b
    Examples:
      rankgauge logs import --dry-run ubi_queries.jsonl.gz ubi_events.jsonl.gz log
      rankgauge logs import traces.jsonl log --users hash --scrub
      rankgauge logs import --mapping mapping.toml searches.csv log
    """
    from rankgauge.production import import_log

    with working("importing"):
        report = import_log(
            sources,
            log,
            format=log_format,
            mapping=mapping,
            personal=users,
            scrub=scrub,
            drop_text=drop_text,
            timezone=timezone,
            first_rank=first_rank,
            dry_run=dry_run,
        )
    out.print(report)


@logs.command(short_help="Count the events of a log.")
def show(*, log: str, out: Output) -> None:
    """Count the events in LOG by kind.

    \b
    Examples:
      rankgauge logs show log
      rankgauge logs show 'events/*.parquet' --as json
    """
    from rankgauge.production import EventLog

    with working("reading the log"):
        summary = EventLog(log).summary()
    out.print(summary)


for _command in (metrics, health, drift, sample, experiment, interleaving, judgments):
    logs.add_command(_command)

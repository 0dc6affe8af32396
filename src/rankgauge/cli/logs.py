"""``rankgauge logs``: production logs."""

from __future__ import annotations

import click

from rankgauge.cli import options
from rankgauge.cli.logs_experiments import experiment, interleaving, judgments
from rankgauge.cli.logs_metrics import health, metrics
from rankgauge.cli.logs_questions import drift, sample
from rankgauge.cli.output import print_result, working


@click.group(cls=options.OrderedGroup, short_help="Import production logs and compute metrics.")
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
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@options.log
@click.option(
    "--format", "log_format", metavar="NAME",
    help="ubi, spans, mlflow, langfuse, or events.  [default: recognized by the first rows]",
)  # fmt: skip
@click.option(
    "--mapping", metavar="FILE", help="TOML or JSON: the column of each field of an event."
)
@click.option(
    "--users", type=click.Choice(["keep", "hash", "drop"]), default="keep", show_default=True,
    help="Keep user identifiers, hash them with a key of this machine, or drop them.",
)  # fmt: skip
@click.option(
    "--scrub", is_flag=True,
    help="Mask addresses, long numbers, and secrets in texts. Names of people are not masked.",
)  # fmt: skip
@click.option("--drop-text", is_flag=True, help="Do not store the texts of questions and answers.")
@click.option(
    "--timezone", metavar="ZONE",
    help="The time zone of times without one, such as Europe/Berlin; without this option, rows "
    "with such times are refused.",
)  # fmt: skip
@click.option(
    "--first-rank", type=click.IntRange(0, 1),
    help="Whether ranks in SOURCE start at 0 or 1.  [default: detected]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the report and write nothing.")
@options.output_format()
def import_(
    sources: tuple[str, ...],
    log: str,
    log_format: str | None,
    mapping: str | None,
    users: str,
    scrub: bool,
    drop_text: bool,
    timezone: str | None,
    first_rank: int | None,
    dry_run: bool,
    format: str,
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
    print_result(report, format)


@logs.command(short_help="Count the events of a log.")
@options.log
@options.output_format()
def show(log: str, format: str) -> None:
    """Count the events in LOG by kind.

    \b
    Examples:
      rankgauge logs show log
      rankgauge logs show 'events/*.parquet' --as json
    """
    from rankgauge.production import EventLog

    with working("reading the log"):
        summary = EventLog(log).summary()
    print_result(summary, format)


for _command in (metrics, health, drift, sample, experiment, interleaving, judgments):
    logs.add_command(_command)

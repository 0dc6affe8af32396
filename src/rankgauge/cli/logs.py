"""``rankgauge logs``: logs of production."""

from __future__ import annotations

import click

from rankgauge.cli import options
from rankgauge.cli.logs_drift import drift
from rankgauge.cli.logs_experiments import interleaving, judgments
from rankgauge.cli.logs_health import health
from rankgauge.cli.logs_metrics import metrics
from rankgauge.cli.logs_sample import sample
from rankgauge.cli.output import print_result
from rankgauge.cli.progress import working

log_argument = click.argument("log", metavar="LOG")


class _Ordered(click.Group):
    """A group that lists commands in the order in which they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)


@click.group(cls=_Ordered, short_help="Import logs of production and measure them.")
def logs() -> None:
    """Follow the quality in production by the log of questions, results, answers and clicks.

    LOG is a folder, which `logs import` makes, a Parquet file, or a pattern: 'log/*.parquet'.

    \b
    Examples:
      rankgauge logs show log
      rankgauge logs metrics log --by week
      rankgauge logs drift queries.jsonl log -o drift.html
    """  # noqa: D301 - click reads the \b


@logs.command(short_help="Count the events of a log.")
@log_argument
@options.output_format()
def show(log: str, format: str) -> None:
    """Count the events of LOG by kind.

    \b
    Examples:
      rankgauge logs show log
      rankgauge logs show 'events/*.parquet' --as json
    """  # noqa: D301 - click reads the \b
    from rankgauge.production import EventLog

    with working("reading the log"):
        summary = EventLog(log).summary()
    print_result(summary, format)


logs.add_command(metrics)
logs.add_command(health)
logs.add_command(drift)
logs.add_command(sample)
logs.add_command(interleaving)
logs.add_command(judgments)

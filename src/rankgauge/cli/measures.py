"""``rankgauge measures``."""

from __future__ import annotations

import sys

import click

import rankgauge
from rankgauge.cli.output import say

__all__ = ["measures"]


@click.command(short_help="List the measures, or explain one.")
@click.argument("name", required=False)
@click.option(
    "--as", "form", type=click.Choice(["table", "markdown", "csv", "json"]), default="table",
    show_default=True, help="How to print the list.",
)  # fmt: skip
def measures(name: str | None, form: str) -> None:
    """List all measures, or explain the one called NAME.

    \b
    Examples:
      rankgauge measures
      rankgauge measures nDCG
      rankgauge measures ndcg_cut_10
    """  # noqa: D301 - click reads the \b
    if name is None:
        color = form == "table" and sys.stdout.isatty()
        say(rankgauge.reports.report_measures(form, color=color), color=color)
    else:
        say(rankgauge.reports.describe(name))

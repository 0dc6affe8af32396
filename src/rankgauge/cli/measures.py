"""``rankgauge measures``: list and explain measures."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import print_table, print_text


@click.command(short_help="List the measures, or explain one.")
@click.argument("name", required=False)
@options.output_format()
@options.full("Show details, sources, and names in other tools.")
def measures(name: str | None, format: str, full: bool) -> None:
    """List all measures, or explain the measure NAME.

    \b
    Examples:
      rankgauge measures
      rankgauge measures nDCG
      rankgauge measures ndcg_cut_10
    """
    if name is None:
        whole = full or format != "table"
        print_table(rankgauge.reports.measures_table(full=whole), format)
    else:
        print_text(rankgauge.reports.describe(name, full=full))

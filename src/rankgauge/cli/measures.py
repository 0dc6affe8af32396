"""``rankgauge measures``: list and explain measures."""

from __future__ import annotations

import rankgauge
from rankgauge.cli.output import Output, output_format, print_text
from rankgauge.cli.parameters import argument, command


@command()
def measures(
    *,
    name: str | None = argument("[NAME]"),
    out: Output = output_format("Show details, sources, and names in other tools."),
) -> None:
    """List all measures, or explain the measure NAME.

    \b
    Examples:
      rankgauge measures
      rankgauge measures nDCG
      rankgauge measures ndcg_cut_10
    """
    if name is None:
        whole = out.full or out.format != "table"
        out.print_table(rankgauge.reports.measures_table(full=whole))
    else:
        print_text(rankgauge.reports.describe(name, full=out.full))

"""``rankgauge explore``."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import print_result


@click.command(short_help="Search configurations of a retriever for the best.")
@click.argument("path", metavar="PLAN")
@click.option(
    "--store",
    metavar="FOLDER",
    help="The folder in which responses are stored.  [default: as in the plan]",
)
@click.option(
    "--timed", type=click.IntRange(0), default=50, show_default=True, metavar="N",
    help="Time N queries, one at a time, with each configuration; 0 for none.",
)  # fmt: skip
@click.option(
    "-k", type=click.IntRange(1), default=5, show_default=True,
    help="The cut-off of the failure patterns before and after.",
)  # fmt: skip
@options.output_format()
@options.full("Show all configurations, failure patterns before and after, and single settings.")
def explore(path: str, store: str | None, timed: int, k: int, format: str, full: bool) -> None:
    """Try the configurations that the table [explore] of PLAN names, and choose the best.

    The best is chosen on one part of the queries and compared with the current configuration on
    the other, so that it is not merely the luckiest. Interrupted, or when its time is over, it
    tells what it has; responses are kept, and the same command goes on from there.

    \b
    In a plan:
      [explore]
      retriever = "bm25"
      method = "grid"
      [explore.space]
      k1 = [0.6, 0.9, 1.2]
      b = [0.4, 0.75]

    \b
    Examples:
      rankgauge explore plan.toml
      rankgauge explore plan.toml --as markdown
    """
    plan = rankgauge.BenchmarkPlan.read(path)
    found, bench = rankgauge.benchmark.explore_plan(plan, store=store, timed=timed)
    print_result(
        found, format, rankgauge.reports.Options(full=full, collection=bench.collection, k=k)
    )

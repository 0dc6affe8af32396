"""``rankgauge explore``: search for the best configuration."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import print_result


@click.command(short_help="Find the best configuration of a retriever.")
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
    help="The cut-off for failure patterns of the current and the best configuration.",
)  # fmt: skip
@options.output_format()
@options.full(
    "Show all configurations, failure patterns of the current and the best one, and single "
    "settings."
)
def explore(path: str, store: str | None, timed: int, k: int, format: str, full: bool) -> None:
    """Try the configurations in the table [explore] of PLAN, and choose the best.

    The best configuration is chosen on one part of the queries and compared with the current
    configuration on the other part, because the best of many is partly luck. After an interruption
    or at the time limit, the results so far are printed; to continue, repeat the command.

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

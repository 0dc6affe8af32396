"""``rankgauge explore``: search for the best configuration."""

from __future__ import annotations

import rankgauge
from rankgauge.cli.output import Output, output_format
from rankgauge.cli.parameters import Count, Positive, argument, command, option


@command()
def explore(
    *,
    path: str = argument("PLAN"),
    store: str | None = option("The folder in which responses are stored.  [default: as in the plan]", "FOLDER"),
    timed: Count = option("Time N queries, one at a time, with each configuration; 0 for none.", "N", default=50),
    k: Positive = option("The cut-off for failure patterns of the current and the best configuration.", default=5),
    out: Output = output_format(
        "Show all configurations, failure patterns of the current and the best one, and single settings."
    ),
) -> None:
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
    out.print(found, rankgauge.reports.Options(collection=bench.collection, k=k))

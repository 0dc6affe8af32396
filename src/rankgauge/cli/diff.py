"""``rankgauge diff``: show changes between two runs."""

from __future__ import annotations

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import Output, output_format, working
from rankgauge.cli.parameters import Count, Positive, command, option


@command()
def diff(
    *,
    qrels: str,
    run_a: str,
    run_b: str,
    measure: str = options.measure("The measure by which queries gain and lose."),
    collection: str | None = option(
        "The texts, to show queries and titles: a source as for rankgauge collection.", "FOLDER"
    ),
    queries: tuple[str, ...] = option(
        "A query to show, changed or not; repeat for more.  [default: those that changed most]", "--query ID"
    ),
    n: Count = option("The number of losses to show, and of gains, largest first.", default=5),
    k: Positive = option("The number of ranks to show.", default=10),
    formats: options.Formats,
    out: Output = output_format("Show both rankings of every query listed."),
) -> None:
    """Show the changes from RUN_A to RUN_B: which queries lost and gained, and why.

    Prints the queries that changed most. For one or two queries, or with --full, it also prints
    both rankings side by side, with the grade of each document and its rank in the other run.

    \b
    Examples:
      rankgauge diff qrels.txt old.run new.run
      rankgauge diff qrels.txt old.run new.run -m RR --collection corpus/ -n 3 -k 5
      rankgauge diff qrels.txt old.run new.run --query q17 --as html
    """
    with working("reading 2 runs"):
        first, second = formats.run(run_a), formats.run(run_b)
        truth = formats.read_qrels(qrels)
        found = rankgauge.diff(truth, first, second, measure, collection=collection, queries=queries or None, n=n, k=k)
    out.print(found)
    out.print_notes(found.notes)

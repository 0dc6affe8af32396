"""``rankgauge diff``: show changes between two runs."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import located
from rankgauge.cli.output import print_message, print_result, working


@click.command(short_help="Show the queries that changed between two runs.")
@click.argument("qrels", metavar="QRELS")
@click.argument("run_a", metavar="RUN_A")
@click.argument("run_b", metavar="RUN_B")
@options.measure("The measure by which queries gain and lose.")
@options.collection("The texts, to show queries and titles: a source as for rankgauge collection.")
@click.option(
    "--query", "queries", multiple=True, metavar="ID",
    help="A query to show, changed or not; repeat for more.  [default: those that changed most]",
)  # fmt: skip
@click.option(
    "-n", "n", type=click.IntRange(0), default=5, show_default=True,
    help="The number of losses to show, and of gains, largest first.",
)  # fmt: skip
@click.option(
    "-k", type=click.IntRange(1), default=10, show_default=True,
    help="The number of ranks to show.",
)  # fmt: skip
@options.run_format
@options.qrels_format
@options.output_format()
@options.full("Show both rankings of every query listed.")
def diff(
    qrels: str,
    run_a: str,
    run_b: str,
    measure: str,
    collection: str | None,
    queries: tuple[str, ...],
    n: int,
    k: int,
    run_format: str | None,
    qrels_format: str | None,
    format: str,
    full: bool,
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
        first, second = located(run_a, run_format), located(run_b, run_format)
        truth = rankgauge.read_qrels(qrels, format=qrels_format)
        found = rankgauge.diff(
            truth, first, second, measure, collection=collection,
            queries=queries or None, n=n, k=k,
        )  # fmt: skip
    print_result(found, format, rankgauge.reports.Options(full=full))
    # JSON contains the notes; warnings are also printed.
    for note in found.notes:
        if format == "csv" or (format == "json" and note.startswith("WARNING")):
            print_message(note)

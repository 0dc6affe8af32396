"""``rankgauge diagnose``: find likely causes of errors."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import drift_finding, located, read_drift
from rankgauge.cli.output import print_result, working


@click.command(short_help="Find likely causes of the errors of a run, and fixes.")
@click.argument("qrels", metavar="QRELS")
@click.argument("run", metavar="RUN")
@options.collection(
    "The texts: a source as for rankgauge collection. Without it, only ranks and judgments are "
    "used."
)
@options.measure("The measure that ranks the queries.")
@click.option(
    "-k", type=click.IntRange(min=1), default=5, show_default=True,
    help="The cut-off: a relevant document below it is missed.",
)  # fmt: skip
@click.option(
    "-n", "--worst", type=click.IntRange(min=0), default=5, show_default=True,
    help="The number of worst queries to show.",
)  # fmt: skip
@click.option(
    "--rel", type=click.FloatRange(min=0, min_open=True), default=1, show_default=True,
    help="The grade from which a document counts as relevant.",
)  # fmt: skip
@click.option(
    "--rerank-depth", "depth", type=click.IntRange(min=1), default=100, show_default=True,
    help="The number of documents that a reranker would receive.",
)  # fmt: skip
@click.option(
    "--group-by",
    metavar="FIELD",
    help="A field of the queries: show a mean for each of its values.",
)
@click.option(
    "--bands", metavar="FILE",
    help="A TOML file with [bands], or pyproject.toml with [tool.rankgauge.bands]: "
    '"P@5" = [0.3, 0.5, 0.7].',
)  # fmt: skip
@click.option(
    "--also",
    metavar="RUN",
    help="Another run, to measure the potential of both together. If it is not deeper than RUN, "
    "it rules out depth as a cause.",
)
@click.option(
    "--drift", metavar="FILE",
    help="The result of rankgauge logs drift ... -o drift.json.",
)  # fmt: skip
@options.run_format
@options.qrels_format
@click.option(
    "--full", is_flag=True,
    help="Show potential gains, the worst queries, other cut-offs, thresholds, and means by group.",
)  # fmt: skip
@options.output_format()
def diagnose(
    qrels: str,
    run: str,
    collection: str | None,
    measure: str,
    k: int,
    worst: int,
    rel: float,
    depth: int,
    group_by: str | None,
    bands: str | None,
    also: str | None,
    drift: str | None,
    run_format: str | None,
    qrels_format: str | None,
    full: bool,
    format: str,
) -> None:
    """Diagnose RUN on the judgments QRELS: likely causes of its errors, and suggested fixes.

    Prints quality in bands and the likely causes. --full adds the worst queries, the potential gain
    of each fix if it retrieved the missed documents at the top, other cut-offs, thresholds, and the
    distribution over queries.

    \b
    Examples:
      rankgauge diagnose qrels.txt bm25.run
      rankgauge diagnose qrels.txt bm25.run --collection data --group-by type
      rankgauge diagnose qrels.txt dense.run --collection data --also bm25.run -n 10
      rankgauge diagnose qrels.txt bm25.run --drift drift.json
    """
    with working(f"diagnosing {run}"):
        diagnosis = rankgauge.diagnose(
            rankgauge.read_qrels(qrels, format=qrels_format),
            located(run, run_format),
            None if collection is None else rankgauge.Collection.read(collection),
            measure=measure,
            k=k,
            rel=rel,
            worst=worst,
            depth=depth,
            bands=bands,
            group_by=group_by,
            also=None if also is None else located(also, run_format),
            drift=None if drift is None else drift_finding(read_drift(drift)),
        )
    print_result(diagnosis, format, rankgauge.reports.Options(full=full))

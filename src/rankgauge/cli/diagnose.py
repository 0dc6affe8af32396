"""``rankgauge diagnose``: find likely causes of errors."""

from __future__ import annotations

from typing import Annotated

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import drift_finding, read_drift
from rankgauge.cli.output import Output, output_format, working
from rankgauge.cli.parameters import Count, Positive, command, option


@command()
def diagnose(
    *,
    qrels: str,
    run: str,
    collection: str | None = option(
        "The texts: a source as for rankgauge collection. Without it, only ranks and judgments are used.", "FOLDER"
    ),
    measure: str = options.measure("The measure that ranks the queries."),
    k: Positive = option("The cut-off: a relevant document below it is missed.", default=5),
    worst: Count = option("The number of worst queries to show.", "-n, --worst", default=5),
    rel: Annotated[float, click.FloatRange(min=0, min_open=True)] = option(
        "The grade from which a document counts as relevant.", default=1
    ),
    depth: Positive = option("The number of documents that a reranker would receive.", "--rerank-depth", default=100),
    group_by: str | None = option("A field of the queries: show a mean for each of its values.", "FIELD"),
    bands: str | None = option(
        'A TOML file with [bands], or pyproject.toml with [tool.rankgauge.bands]: "P@5" = [0.3, 0.5, 0.7].', "FILE"
    ),
    also: str | None = option(
        "Another run, to measure the potential of both together. If it is not deeper than "
        "RUN, it rules out depth as a cause.",
        "RUN",
    ),
    drift: str | None = option("The result of rankgauge logs drift ... -o drift.json.", "FILE"),
    formats: options.Formats,
    out: Output = output_format(
        "Show potential gains, the worst queries, other cut-offs, thresholds, and means by group."
    ),
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
            formats.read_qrels(qrels),
            formats.run(run),
            None if collection is None else rankgauge.Collection.read(collection),
            measure=measure,
            k=k,
            rel=rel,
            worst=worst,
            depth=depth,
            bands=bands,
            group_by=group_by,
            also=None if also is None else formats.run(also),
            drift=None if drift is None else drift_finding(read_drift(drift)),
        )
    out.print(diagnosis)

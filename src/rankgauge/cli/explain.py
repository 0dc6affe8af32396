"""``rankgauge explain``: explain values and differences between tools."""

from __future__ import annotations

import re
from typing import Any

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import located
from rankgauge.cli.output import print_result, working

_NUMBER = re.compile(r"[0-9]*\.?[0-9]+")


@click.command(short_help="Explain a value step by step.")
@click.argument("qrels", metavar="QRELS")
@click.argument("run", metavar="RUN")
@click.argument("measure", metavar="MEASURE")
@click.option(
    "--query", metavar="ID",
    help="The query to explain.  [default: one that shows how the measure works]",
)  # fmt: skip
@click.option(
    "--against", metavar="PROFILE",
    help="Explain why the value of another tool differs, by its profile, such as pytrec_eval: "
    "the effect of each deviation, and one query computed both ways.",
)  # fmt: skip
@click.option(
    "--against-values", "values", metavar="FILE",
    help="Find how the values in this file were computed, and why ours differ: output of "
    "trec_eval -q or ir_measures, CSV, TSV, JSON (pytrec_eval or rankgauge), or JSON lines.",
)  # fmt: skip
@click.option(
    "--against-mean", "mean", metavar="NUMBER",
    help="Find how this mean was computed; pass all known digits, such as 0.4123.",
)  # fmt: skip
@options.policies
@options.run_format
@options.qrels_format
@options.output_format()
@options.full("Show all ranks, the ideal ranking, scores, and all queries that differ.")
def explain(
    qrels: str,
    run: str,
    measure: str,
    query: str | None,
    against: str | None,
    values: str | None,
    mean: str | None,
    policies: dict[str, Any],
    run_format: str | None,
    qrels_format: str | None,
    format: str,
    full: bool,
) -> None:
    """Explain the value of MEASURE for one query of RUN, step by step.

    Prints the ranking with the contribution of each document, the ideal ranking if the measure uses
    one, and the formula with its numbers. They are computed by separate code and verified against
    rankgauge evaluate. --against, --against-values, and --against-mean explain why two means
    differ.

    \b
    Examples:
      rankgauge explain qrels.txt bm25.run nDCG@10
      rankgauge explain qrels.txt bm25.run AP --query q17
      rankgauge explain qrels.txt bm25.run 'RBP(p=0.8)@10' --as markdown
      rankgauge explain qrels.txt bm25.run nDCG@10 --against pytrec_eval
      rankgauge explain qrels.txt bm25.run nDCG@10 --against-values theirs.csv
      rankgauge explain qrels.txt bm25.run nDCG@10 --against-mean 0.4123
    """
    if sum(given is not None for given in (against, values, mean)) > 1:
        raise click.UsageError("pass one of --against, --against-values, and --against-mean")
    if mean is not None and not _NUMBER.fullmatch(mean):
        raise click.BadParameter(
            f"got {mean!r}, expected a number such as 0.4123", param_hint="--against-mean"
        )
    with working(f"explaining {measure}"):
        truth = rankgauge.read_qrels(qrels, format=qrels_format)
        found = located(run, run_format)
        result: rankgauge.rendering.Result
        if against is not None:
            result = rankgauge.reconcile(truth, found, measure, against, query=query, **policies)
        elif values is not None or mean is not None:
            given = rankgauge.explanation.GivenValues.of(
                mean if values is None else values, measure
            )
            result = rankgauge.reproduce(truth, found, measure, given, query=query, **policies)
        else:
            result = rankgauge.explain(truth, found, measure, query, **policies)
    print_result(result, format, rankgauge.reports.Options(full=full))

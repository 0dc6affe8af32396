"""``rankgauge explain``: explain values and differences between tools."""

from __future__ import annotations

import re

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import Output, output_format, working
from rankgauge.cli.parameters import command, option

_NUMBER = re.compile(r"[0-9]*\.?[0-9]+")


@command()
def explain(
    *,
    qrels: str,
    run: str,
    measure: str,
    query: str | None = option("The query to explain.  [default: one that shows how the measure works]", "ID"),
    against: str | None = option(
        "Explain why the value of another tool differs, by its profile, such as pytrec_eval: "
        "the effect of each deviation, and one query computed both ways.",
        "PROFILE",
    ),
    values: str | None = option(
        "Find how the values in this file were computed, and why ours differ: output of "
        "trec_eval -q or ir_measures, CSV, TSV, JSON (pytrec_eval or rankgauge), or JSON "
        "lines.",
        "--against-values FILE",
    ),
    mean: str | None = option(
        "Find how this mean was computed; pass all known digits, such as 0.4123.", "--against-mean NUMBER"
    ),
    policies: options.Policies,
    formats: options.Formats,
    out: Output = output_format("Show all ranks, the ideal ranking, scores, and all queries that differ."),
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
        raise click.BadParameter(f"got {mean!r}, expected a number such as 0.4123", param_hint="--against-mean")
    with working(f"explaining {measure}"):
        truth = formats.read_qrels(qrels)
        found = formats.run(run)
        result: rankgauge.rendering.Result
        if against is not None:
            result = rankgauge.reconcile(truth, found, measure, against, query=query, **policies.keywords())
        elif values is not None or mean is not None:
            given = rankgauge.explanation.GivenValues.of(mean if values is None else values, measure)
            result = rankgauge.reproduce(truth, found, measure, given, query=query, **policies.keywords())
        else:
            result = rankgauge.explain(truth, found, measure, query, **policies.keywords())
    out.print(result)

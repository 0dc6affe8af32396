"""``rankgauge compare``: compare runs with a baseline."""

from __future__ import annotations

from typing import Any, Literal

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import named_paths, read_evaluations
from rankgauge.cli.output import print_message, print_result, working


@click.command(short_help="Compare runs with a baseline, query by query.")
@click.argument("qrels", metavar="QRELS")
@click.argument("runs", metavar="RUN RUN [RUN]...", nargs=-1, required=True)
@options.measures(
    "A measure; repeat for more. The first is the primary measure, whose differences are tested.  "
    "[default: nDCG@10 tested; P, R, Success, and nDCG at 1, 3, 5, and 10, and RR described]"
)
@click.option(
    "--tested", multiple=True, metavar="NAME",
    help="A measure whose differences are tested, chosen before seeing results; repeat for more.",
)  # fmt: skip
@options.baseline()
@click.option("--all-pairs", is_flag=True, help="Also compare every run with every other run.")
@click.option(
    "--test", type=click.Choice(["randomization", "t", "wilcoxon", "tukey-hsd"]),
    default="randomization", show_default=True,
    help="The test; wilcoxon does not test the mean, tukey-hsd compares all runs at once.",
)  # fmt: skip
@click.option(
    "--correction", type=click.Choice(["holm", "bonferroni", "benjamini-hochberg", "max-t"]),
    default="holm", show_default=True, help="The correction over all pairs and tested measures.",
)  # fmt: skip
@click.option(
    "--interval", type=click.Choice(["conservative", "t", "percentile", "bca"]),
    default="conservative", show_default=True,
    help="The interval of the difference. conservative: the wider of paired t and a Bayesian "
    "bootstrap; t: paired t; percentile, bca: a bootstrap (too narrow below 100 queries).",
)  # fmt: skip
@click.option(
    "--draws", type=click.IntRange(1), default=10_000, show_default=True,
    help="The number of random draws of tests and bootstraps.",
)  # fmt: skip
@click.option(
    "--queries", type=click.Choice(["all", "intersection"]), default="all", show_default=True,
    help="The queries to compare: all judged queries, or those that are also in every run.",
)  # fmt: skip
@options.run_format
@options.qrels_format
@options.output_format()
@options.jobs
@click.option("--transpose", is_flag=True, help="Print runs as rows and measures as columns.")
@options.full("Show all measures, and differences that are not tested.")
def compare(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    tested: tuple[str, ...],
    baseline: str | None,
    all_pairs: bool,
    test: Literal["randomization", "t", "wilcoxon", "tukey-hsd"],
    correction: Literal["holm", "bonferroni", "benjamini-hochberg", "max-t"],
    interval: Literal["conservative", "t", "percentile", "bca"],
    draws: int,
    queries: Literal["all", "intersection"],
    run_format: str | None,
    qrels_format: str | None,
    format: str,
    jobs: int,
    transpose: bool,
    full: bool,
) -> None:
    """Compare each RUN with the first (or with --baseline) on the judgments QRELS.

    Prints means side by side; differences with their 95% interval, p-value, effect size, and
    wins/ties/losses; and conclusions with their limitations. Evaluations in JSON, such as those of
    answers, are compared without judgments: rankgauge compare old.json new.json.

    \b
    Examples:
      rankgauge compare qrels.txt bm25.run dense.run
      rankgauge compare qrels.txt bm25.run dense.run hybrid.run -m nDCG@10 -m AP --full
      rankgauge compare qrels.txt *.run --all-pairs --test tukey-hsd
    """
    alone = read_evaluations([qrels, *runs])
    with working(f"comparing {len(alone) or len(runs)} runs"):
        judgments: Any = alone
        if not alone and (measures or tested):
            judgments = rankgauge.evaluation.read_judgments(
                qrels, (*measures, *tested), format=qrels_format
            )
        elif not alone:
            judgments = rankgauge.read_qrels(qrels, format=qrels_format)
        comparison = rankgauge.compare(
            judgments,
            None if alone else named_paths(runs, run_format),
            measures or None,
            tested=tested or None,
            baseline=baseline,
            pairs="all" if all_pairs else "baseline",
            test=test,
            correction=correction,
            interval=interval,
            draws=draws,
            queries=queries,
            jobs=jobs,
        )
    report_options = rankgauge.reports.Options(full=full, transposed=transpose)
    print_result(comparison, format, report_options)
    if format == "csv":
        for line in (*comparison.sentences, *comparison.warnings):
            print_message(line)

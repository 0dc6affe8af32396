"""``rankgauge compare``: compare runs with a baseline."""

from __future__ import annotations

from typing import Any, Literal

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import named_paths, read_evaluations
from rankgauge.cli.output import Output, output_format, working
from rankgauge.cli.parameters import Positive, argument, command, option


@command()
def compare(
    *,
    qrels: str,
    runs: tuple[str, ...] = argument("RUN RUN [RUN]..."),
    measures: tuple[str, ...] = options.measures(
        "A measure; repeat for more. The first is the primary measure, whose differences are "
        "tested.  [default: nDCG@10 tested; P, R, Success, and nDCG at 1, 3, 5, and 10, and "
        "RR described]"
    ),
    tested: tuple[str, ...] = option(
        "A measure whose differences are tested, chosen before seeing results; repeat for more.", "NAME"
    ),
    baseline: str | None = options.baseline,
    all_pairs: bool = option("Also compare every run with every other run."),
    test: Literal["randomization", "t", "wilcoxon", "tukey-hsd"] = option(
        "The test; wilcoxon does not test the mean, tukey-hsd compares all runs at once.", default="randomization"
    ),
    correction: Literal["holm", "bonferroni", "benjamini-hochberg", "max-t"] = option(
        "The correction over all pairs and tested measures.", default="holm"
    ),
    interval: Literal["conservative", "t", "percentile", "bca"] = option(
        "The interval of the difference. conservative: the wider of paired t and a Bayesian "
        "bootstrap; t: paired t; percentile, bca: a bootstrap (too narrow below 100 queries).",
        default="conservative",
    ),
    draws: Positive = option("The number of random draws of tests and bootstraps.", default=10000),
    queries: Literal["all", "intersection"] = option(
        "The queries to compare: all judged queries, or those that are also in every run.", default="all"
    ),
    formats: options.Formats,
    out: Output = output_format("Show all measures, and differences that are not tested."),
    jobs: options.Jobs = options.jobs,
    transpose: bool = option("Print runs as rows and measures as columns."),
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
            judgments = rankgauge.evaluation.read_judgments(qrels, (*measures, *tested), format=formats.qrels_format)
        elif not alone:
            judgments = formats.read_qrels(qrels)
        comparison = rankgauge.compare(
            judgments,
            None if alone else named_paths(runs, formats.run_format),
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
    out.print(comparison, rankgauge.reports.Options(transposed=transpose))
    if out.format == "csv":
        out.print_notes((*comparison.sentences, *comparison.warnings))

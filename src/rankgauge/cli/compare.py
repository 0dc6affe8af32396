"""``rankgauge compare``, ``diff``, and ``report``: show how runs differ."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.options import latest_runs, read_evaluations, read_inputs
from rankgauge.cli.output import Output, check_writable, output_format, print_message, working, write_report
from rankgauge.cli.parameters import Count, Positive, argument, command, option

_NOT_COMPARABLE = 4


@command()
def compare(
    *,
    paths: tuple[str, ...] = argument("[QRELS] [RUN]..."),
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
        "The queries to compare: all judged queries, or those that are also in every run (or evaluation).",
        default="all",
    ),
    out: Output = output_format("Show all measures, and differences that are not tested."),
    jobs: options.Jobs | None = options.jobs,
    transpose: bool = option("Print runs as rows and measures as columns."),
) -> None:
    """Compare each RUN with the first (or with --baseline) on the judgments QRELS.

    Prints means side by side; differences with their 95% interval, p-value, effect size, and
    wins/ties/losses; and conclusions with their limitations. Evaluations in JSON, such as those of
    answers, and saved ones (rankgauge history list; in a project, by default the latest of each run)
    are compared without judgments. Saved evaluations with different judgments or policies are
    rejected with exit code 4.

    \b
    Examples:
      rankgauge compare qrels.txt bm25.run dense.run
      rankgauge compare qrels.txt bm25.run dense.run hybrid.run -m nDCG@10 -m AP --full
      rankgauge compare qrels.txt *.run --all-pairs --test tukey-hsd
      rankgauge compare bm25#3 bm25#7
    """
    names = paths or (latest_runs() if rankgauge.core.find_project_file() else ())
    try:
        alone = read_evaluations(names)
    except rankgauge.MismatchError as error:
        click.echo(f"error: {error}", err=True)
        click.get_current_context().exit(_NOT_COMPARABLE)
    with working(f"comparing {len(alone) or 'the'} runs"):
        inputs = None if alone else read_inputs(names).with_judgments((*measures, *tested) or None)
        comparison = rankgauge.compare(
            alone if inputs is None else inputs.qrels,
            None if inputs is None else inputs.runs,
            measures or None,
            tested=tested or None,
            baseline=baseline,
            pairs="all" if all_pairs else "baseline",
            test=test,
            correction=correction,
            interval=interval,
            draws=draws,
            queries=queries,
            jobs=jobs or rankgauge.core.default_jobs(() if inputs is None else inputs.runs.values()),
        )
    out.print(comparison, rankgauge.reports.Options(transposed=transpose))
    if out.format == "csv":
        out.print_notes((*comparison.sentences, *comparison.warnings))


@command()
def diff(
    *,
    paths: tuple[str, ...] = argument("[QRELS] [RUN_A RUN_B]"),
    measure: str = options.measure("The measure by which queries gain and lose."),
    collection: str | None = option(
        "The texts, to show queries and titles: a source as for rankgauge collection.", "FOLDER"
    ),
    queries: tuple[str, ...] = option(
        "A query to show, changed or not; repeat for more.  [default: those that changed most]", "--query ID"
    ),
    n: Count = option("The number of losses to show, and of gains, largest first.", default=5),
    k: Positive = option("The number of ranks to show.", default=10),
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
      rankgauge diff @baseline @latest
    """
    with working("reading 2 runs"):
        inputs = read_inputs(paths, 2)
        before, after = inputs.runs.values()
        texts = inputs.texts if collection is None else collection
        difference = rankgauge.diff(
            inputs.qrels, before, after, measure, collection=texts, queries=queries or None, n=n, k=k
        )
    out.print(difference)
    out.print_notes(difference.notes)


@command()
def report(
    *,
    paths: tuple[str, ...] = argument("[QRELS] [RUN]..."),
    measures: tuple[str, ...] = options.measures(
        "A measure; repeat for more. The first is the primary measure.  [default: nDCG@10, "
        "and P, R, Success, and nDCG at 1, 3, 5, and 10, and RR]"
    ),
    baseline: str | None = options.baseline,
    collection: str | None = option(
        "The texts of documents and queries: a source as for rankgauge collection.", "FOLDER"
    ),
    diagnosed: str | None = option(
        "Include a diagnosis of this run; without a name, of the one with the lowest mean.",
        "--diagnose [NAME]",
        is_flag=False,
        flag_value="worst",
    ),
    title: str = option("The heading.  [default: the names of the runs]", default=""),
    date: str = option("A date to print.  [default: none]", default=""),
    plots: bool | None = option(
        "Include plots, which need rankgauge[plots].  [default: if it is installed]", "--plots/--no-plots"
    ),
    output: str = option('The output file; "-" is standard output.', "-o, --output FILE", default="report.html"),
) -> None:
    """Write an HTML report on each RUN, evaluated with the judgments QRELS.

    The file is self-contained: sortable tables, plots, the worst queries with their rankings, and
    the provenance of every number. Evaluations in JSON, such as those of answers, need no
    judgments: rankgauge report answers.json.

    \b
    Examples:
      rankgauge report qrels.txt bm25.run dense.run
      rankgauge report qrels.txt bm25.run dense.run --collection data -o report.html
      rankgauge report qrels.txt bm25.run dense.run --collection data --diagnose dense
      rankgauge report @baseline @latest
    """
    alone = [] if not paths or rankgauge.core.is_short_name(paths[0]) else read_evaluations(paths)
    check_writable(output)
    with working(f"writing a report on {paths[-1] if paths else 'a run'}"):
        inputs = None if alone else read_inputs(paths)
        texts = inputs.texts if inputs is not None and collection is None else collection
        page = rankgauge.html_report(
            (alone if len(alone) > 1 else alone[0]) if inputs is None else inputs.qrels,
            None if inputs is None else list(inputs.runs.values()),
            measures or None,
            baseline=baseline,
            collection=texts,
            diagnosed=diagnosed,
            title=title,
            date=date,
            plots=plots,
        )
    write_report(output, page)
    if output != "-":
        print_message(f"wrote {output}")
    if plots is None and find_spec("matplotlib") is None:
        print_message("without plots: matplotlib is not installed (pip install 'rankgauge[plots]')")

"""``rankgauge report``: write an HTML report."""

from __future__ import annotations

from importlib.util import find_spec

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import located, read_evaluations
from rankgauge.cli.output import check_writable, print_message, working, write_report
from rankgauge.cli.parameters import argument, command, option


@command()
def report(
    *,
    qrels: str,
    runs: tuple[str, ...] = argument("[RUN]..."),
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
    formats: options.Formats,
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
    """
    alone = read_evaluations([qrels, *runs])
    if not runs and not alone:
        raise click.UsageError("name a run: rankgauge report QRELS RUN")
    check_writable(output)
    with working(f"writing a report on {len(runs)} run{'s' if len(runs) > 1 else ''}"):
        page = rankgauge.html_report(
            (alone if len(alone) > 1 else alone[0]) if alone else located(qrels, formats.qrels_format),
            None if alone else [formats.run(run) for run in runs],
            measures or None,
            baseline=baseline,
            collection=collection,
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

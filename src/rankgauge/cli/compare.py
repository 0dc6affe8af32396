"""``rankgauge compare``."""

from __future__ import annotations

import sys
from typing import Literal

import click

import rankgauge
from rankgauge.cli.inputs import read_runs
from rankgauge.cli.output import say
from rankgauge.cli.progress import working

__all__ = ["compare"]


@click.command(short_help="Compare runs with a baseline, query by query.")
@click.argument("qrels", metavar="QRELS")
@click.argument("runs", metavar="RUN RUN [RUN]...", nargs=-1, required=True)
@click.option(
    "-m", "--measure", "names", multiple=True, metavar="NAME",
    help="A measure; again for more. The first is the primary one, whose differences are tested. "
    "Without: nDCG@10 tested, P, R, Success and nDCG at 1, 3, 5, 10 and RR described.",
)  # fmt: skip
@click.option(
    "--tested", multiple=True, metavar="NAME",
    help="A measure whose differences are tested, declared before looking; again for more.",
)  # fmt: skip
@click.option("--baseline", metavar="NAME", help="The run the others are held against: the first.")
@click.option(
    "--test", type=click.Choice(["randomisation", "t", "wilcoxon"]), default="randomisation",
    show_default=True, help="The test; wilcoxon does not test the mean.",
)  # fmt: skip
@click.option(
    "--correction", type=click.Choice(["holm", "bonferroni", "benjamini-hochberg"]),
    default="holm", show_default=True, help="Over all runs and tested measures.",
)  # fmt: skip
@click.option(
    "--as", "form", type=click.Choice(["table", "markdown", "html", "csv", "json"]),
    default="table", show_default=True, help="How to print.",
)  # fmt: skip
@click.option("--short", is_flag=True, help="Leave out differences that are described only.")
def compare(  # noqa: PLR0917 - one parameter an option
    qrels: str,
    runs: tuple[str, ...],
    names: tuple[str, ...],
    tested: tuple[str, ...],
    baseline: str | None,
    test: Literal["randomisation", "t", "wilcoxon"],
    correction: Literal["holm", "bonferroni", "benjamini-hochberg"],
    form: str,
    short: bool,  # noqa: FBT001 - click passes by name
) -> None:
    """Compare each RUN with the first one (or with --baseline) on the judgments QRELS.

    Prints means side by side, differences with their 95 % interval, p-value, effect size and
    win/tie/loss, and in words what can be said and what cannot.

    \b
    Examples:
      rankgauge compare qrels.txt bm25.run dense.run
      rankgauge compare qrels.txt bm25.run dense.run hybrid.run -m nDCG@10 -m AP --short
    """  # noqa: D301 - click reads the \b
    with working(f"comparing {len(runs)} runs"):
        comparison = rankgauge.compare(
            rankgauge.read_qrels(qrels),
            read_runs(runs),
            names or None,
            tested=tested or None,
            baseline=baseline,
            test=test,
            correction=correction,
        )
    color = form == "table" and sys.stdout.isatty()
    text = rankgauge.report_comparison(comparison, form, described=not short, color=color)
    say(text, color=color)
    if form in {"csv", "json"}:
        for line in (*comparison.sentences, *comparison.warnings):
            click.echo(line, err=True)

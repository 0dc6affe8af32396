"""``rankgauge logs experiment``, ``interleaving``, and ``judgments``."""

from __future__ import annotations

from typing import Literal

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import print_message, print_result, save_plot, working


@click.command(short_help="Compare two arms of an A/B test, at any time.")
@options.log
@click.option(
    "--primary", metavar="NAME", required=True,
    help="The metric that decides, such as thumbs_ratio; choose it before the experiment.",
)  # fmt: skip
@click.option(
    "-m",
    "--metric",
    "names",
    multiple=True,
    metavar="NAME",
    help="Another metric; repeat for more.",
)
@click.option(
    "--arms", nargs=2, metavar="BASELINE NEW", help="The arms, if the log has more than two."
)
@click.option(
    "--ratio", nargs=2, type=click.FloatRange(0, min_open=True), default=(1, 1), show_default=True,
    metavar="N N", help="The intended ratio of users in the baseline and in the new arm.",
)  # fmt: skip
@click.option(
    "--planned",
    type=click.IntRange(1),
    default=5000,
    show_default=True,
    help="The denominator of the primary metric at which its interval is narrowest.",
)
@options.plot("Plot the primary difference by day (.svg or .png; needs rankgauge[plots]).")
@options.full("Also show the primary difference by day and definitions of the metrics.")
@options.output_format()
def experiment(
    log: str,
    primary: str,
    names: tuple[str, ...],
    arms: tuple[str, str] | None,
    ratio: tuple[float, float],
    planned: int,
    drawn: str | None,
    full: bool,
    format: str,
) -> None:
    """Compare two arms of an experiment in LOG by online metrics.

    There is no verdict if the numbers of users contradict the intended ratio. The interval and
    p-value of the primary metric are valid however often you look; those of other metrics (Holm)
    are valid for one look, at a size fixed in advance.

    \b
    Examples:
      rankgauge logs experiment log --primary thumbs_ratio
      rankgauge logs experiment log --primary search_ctr -m idk_rate --arms bm25 hybrid
    """
    from rankgauge.production import compare_arms

    with working("comparing the arms"):
        found = compare_arms(log, names, primary=primary, arms=arms, ratio=ratio, planned=planned)
    print_result(found, format, rankgauge.reports.Options(full=full))
    if drawn:
        save_plot(found.plot(), drawn)


@click.command(short_help="Test which of two interleaved retrievers users prefer.")
@options.log
@click.option("--a", metavar="NAME", help="Retriever A, if the log has several pairs.")
@click.option("--b", metavar="NAME", help="Retriever B.")
@options.seed("The seed of the bootstrap over users.")
@options.output_format()
def interleaving(log: str, a: str | None, b: str | None, seed: int, format: str) -> None:
    """Test which of two interleaved retrievers the users of LOG prefer, by their clicks.

    The application calls rankgauge.production.interleave() and logs its attributes with the
    impression. Clicks on results and on citations count. The test is valid for one look, at a size
    fixed in advance.

    \b
    Examples:
      rankgauge logs interleaving log
    """
    from rankgauge.production import analyze_interleaving

    with working("counting clicks"):
        found = analyze_interleaving(log, a=a, b=b, seed=seed)
    print_result(found, format)


@click.command(short_help="Estimate judgments from clicks, corrected for rank.")
@options.log
@click.option("-o", "--output", "target", metavar="FILE", help="Write the judgments to this file.")
@click.option(
    "--model", type=click.Choice(["coec", "position"]), default="coec", show_default=True,
    help="coec: clicks over expected clicks; position: a position-based model, for logs in which "
    "documents were shown at several ranks.",
)  # fmt: skip
@click.option(
    "--queries", metavar="FILE",
    help="Judge only these queries, with their identifiers: a file with id and text.",
)  # fmt: skip
@click.option(
    "--min-shown", type=click.IntRange(1), default=10, show_default=True,
    help="Leave a document unjudged if it was shown fewer times.",
)  # fmt: skip
@click.option(
    "--drop-unsure", is_flag=True, help="Leave a document unjudged if its interval contains 0.5."
)
@click.option(
    "--format", "form", metavar="FORMAT",
    help="The format of FILE, if its name does not show it: "
    f"{', '.join(rankgauge.formats.TARGET_FORMATS)}.",
)  # fmt: skip
@options.full("Also show the click rate and the examination of each rank.")
@options.output_format()
def judgments(
    log: str,
    target: str | None,
    model: Literal["coec", "position"],
    queries: str | None,
    min_shown: int,
    drop_unsure: bool,
    form: str | None,
    full: bool,
    format: str,
) -> None:
    """Estimate judgments from the impressions and clicks in LOG.

    A document gets a grade from 0 to 3 by the ratio of its clicks to those of the average document
    at the same ranks. Documents that were never or rarely shown remain unjudged. FILE.about.json
    records the method, and FILE.queries.jsonl the questions.

    \b
    Examples:
      rankgauge logs judgments log -o clicks.qrels
      rankgauge logs judgments log --model position --queries queries.tsv -o clicks.csv
    """
    from rankgauge.corpus import read_queries
    from rankgauge.production import implicit_judgments

    wanted = None
    if queries is not None:
        wanted = {name: each.text for name, each in read_queries(queries).items()}
    with working("counting clicks"):
        found = implicit_judgments(
            log, model=model, queries=wanted, min_shown=min_shown, drop_unsure=drop_unsure
        )
    print_result(found, format, rankgauge.reports.Options(full=full))
    if target is not None:
        for note in found.write(target, form):
            print_message(note)

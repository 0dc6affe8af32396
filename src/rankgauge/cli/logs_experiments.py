"""``rankgauge logs experiment``, ``interleaving``, and ``judgments``."""

from __future__ import annotations

from typing import Annotated, Literal

import click

import rankgauge
from rankgauge.cli.output import Output, output_format, print_message, save_plot, working
from rankgauge.cli.parameters import Count, Positive, command, option


@command(short_help="Compare two arms of an A/B test, at any time.")
def experiment(
    *,
    log: str,
    primary: str = option("The metric that decides, such as thumbs_ratio; choose it before the experiment.", "NAME"),
    names: tuple[str, ...] = option("Another metric; repeat for more.", "-m, --metric NAME"),
    arms: tuple[str, str] | None = option("The arms, if the log has more than two.", "BASELINE NEW"),
    ratio: tuple[
        Annotated[float, click.FloatRange(0, min_open=True)], Annotated[float, click.FloatRange(0, min_open=True)]
    ] = option("The intended ratio of users in the baseline and in the new arm.", "N N", default=(1, 1)),
    planned: Positive = option(
        "The denominator of the primary metric at which its interval is narrowest.", default=5000
    ),
    drawn: str | None = option(
        "Plot the primary difference by day (.svg or .png; needs rankgauge[plots]).", "--plot FILE"
    ),
    out: Output = output_format("Also show the primary difference by day and definitions of the metrics."),
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
    out.print(found)
    if drawn:
        save_plot(found.plot(), drawn)


@command(short_help="Test which of two interleaved retrievers users prefer.")
def interleaving(
    *,
    log: str,
    a: str | None = option("Retriever A, if the log has several pairs.", "--a NAME"),
    b: str | None = option("Retriever B.", "--b NAME"),
    seed: Count = option("The seed of the bootstrap over users.", default=0),
    out: Output,
) -> None:
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
    out.print(found)


@command(short_help="Estimate judgments from clicks, corrected for rank.")
def judgments(
    *,
    log: str,
    target: str | None = option("Write the judgments to this file.", "-o, --output FILE"),
    model: Literal["coec", "position"] = option(
        "coec: clicks over expected clicks; position: a position-based model, for logs in "
        "which documents were shown at several ranks.",
        default="coec",
    ),
    queries: str | None = option("Judge only these queries, with their identifiers: a file with id and text.", "FILE"),
    min_shown: Positive = option("Leave a document unjudged if it was shown fewer times.", default=10),
    drop_unsure: bool = option("Leave a document unjudged if its interval contains 0.5."),
    form: str | None = option(
        f"The format of FILE, if its name does not show it: {', '.join(rankgauge.formats.TARGET_FORMATS)}.",
        "--format FORMAT",
    ),
    out: Output = output_format("Also show the click rate and the examination of each rank."),
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
        found = implicit_judgments(log, model=model, queries=wanted, min_shown=min_shown, drop_unsure=drop_unsure)
    out.print(found)
    if target is not None:
        for note in found.write(target, form):
            print_message(note)

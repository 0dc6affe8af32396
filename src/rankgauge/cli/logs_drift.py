"""``rankgauge logs drift``."""

from __future__ import annotations

from pathlib import Path

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import check_writable, print_message, print_result, working, write_report

_ENDINGS = (".html", ".json", ".png", ".svg")


@click.command(short_help="Test whether evaluation questions resemble user questions.")
@click.argument("evaluation", metavar="EVAL")
@click.argument("log", metavar="LOG")
@click.option(
    "--encoder", default="tfidf", show_default=True, metavar="NAME",
    help="How questions become vectors: tfidf, hashing, model2vec:NAME or "
    "sentence-transformers:NAME.",
)  # fmt: skip
@click.option(
    "--clusters", type=click.IntRange(min=2), metavar="N",
    help="The number of clusters.  [default: 2 to 20, by the number of questions]",
)  # fmt: skip
@click.option(
    "--permutations", type=click.IntRange(min=19), default=499, show_default=True, metavar="N",
    help="The number of permutations of the test.",
)  # fmt: skip
@click.option(
    "--add", "additions", type=click.IntRange(min=0), default=20, show_default=True, metavar="N",
    help="The number of proposed questions to list.",
)  # fmt: skip
@options.seed("The random seed.")
@click.option(
    "-o", "--output", metavar="FILE",
    help="Also write a report (.html), a plot (.png, .svg), or all numbers (.json).",
)  # fmt: skip
@options.full("Also show all clusters, proposed questions, outliers, and the power of the test.")
@options.output_format()
def drift(  # noqa: PLR0913, PLR0917 - one parameter an option
    evaluation: str,
    log: str,
    encoder: str,
    clusters: int | None,
    permutations: int,
    additions: int,
    seed: int,
    output: str | None,
    full: bool,  # noqa: FBT001 - click passes by name
    format: str,
) -> None:
    """Test whether the questions of EVAL resemble those that users ask in LOG.

    EVAL and LOG are files of questions (CSV, TSV, JSON lines, topics, or text with one question per
    line) or collections; LOG may also be a log written by `logs import`. A column `count` has the
    number of times that a question was asked.

    \b
    Examples:
      rankgauge logs drift queries.jsonl log
      rankgauge logs drift queries.jsonl searches.csv -o drift.html
      rankgauge logs drift queries.jsonl log -o drift.json
      rankgauge diagnose qrels.txt bm25.run --drift drift.json
    """  # noqa: D301 - click reads the \b
    from rankgauge.production import measure_drift

    if output is not None:
        if Path(output).suffix.lower() not in _ENDINGS:
            raise click.BadParameter(
                f"{output!r} ends in none of {', '.join(_ENDINGS)}", param_hint="--output"
            )
        check_writable(output)
    with working("comparing questions"):
        found = measure_drift(
            evaluation, log, encoder=encoder, permutations=permutations, seed=seed,
            clusters=clusters, additions=additions,
        )  # fmt: skip
    if output is not None:
        match Path(output).suffix.lower():
            case ".html":
                write_report(output, rankgauge.reports.drift_page(found))
            case ".json":
                write_report(output, found.to_json() + "\n")
            case _:
                found.plot().save(output)
        print_message(f"written: {output}")
    print_result(found, format, rankgauge.reports.Options(full=full))

"""``rankgauge collection``: describe a collection."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import print_result, working


@click.group(short_help="Describe a collection and its quality problems.")
def collection() -> None:
    """Describe a collection of documents, queries, and judgments.

    Sources are folders, archives, files, ir_datasets, Hugging Face, and MTEB.

    \b
    Examples:
      rankgauge collection info data/fiqa
      rankgauge collection info docs --queries questions.csv
    """


@collection.command(short_help="Show counts, lengths, overlaps, duplicates, and leaks.")
@click.argument("source", metavar="COLLECTION")
@click.option(
    "--queries", metavar="FILE",
    help=(
        "The queries, or questions with their relevant documents, in place of those of "
        "COLLECTION."
    ),
)  # fmt: skip
@click.option("--qrels", metavar="FILE", help="The judgments, in place of those of COLLECTION.")
@click.option(
    "--split", metavar="NAME",
    help="The split of the judgments: a file in qrels/.  [default: test, or the only one]",
)  # fmt: skip
@click.option(
    "--run", "runs", multiple=True, metavar="FILE",
    help=(
        "A run, to check whether the documents it retrieved are in the collection; repeat for "
        "more."
    ),
)  # fmt: skip
@options.run_format
@options.qrels_format
@options.output_format()
@options.full("Show judgments by grade, all lengths, and effects of all problems.")
def info(
    source: str,
    queries: str | None,
    qrels: str | None,
    split: str | None,
    runs: tuple[str, ...],
    run_format: str | None,
    qrels_format: str | None,
    format: str,
    full: bool,
) -> None:
    """Describe COLLECTION, and report problems that distort evaluation.

    COLLECTION is a folder in the layout of BEIR or TREC, a .zip of such a folder, a folder of
    Markdown or text files, a file of documents, or ir_datasets:NAME, hf:NAME, or mteb:NAME. Invalid
    records are counted and skipped.

    \b
    Examples:
      rankgauge collection info data/fiqa
      rankgauge collection info docs --queries questions.csv --as markdown
      rankgauge collection info data/fiqa --split dev --run bm25.run
    """
    with working(f"reading {source}"):
        found = rankgauge.describe_collection(
            source,
            None if qrels is None else rankgauge.read_qrels(qrels, format=qrels_format),
            queries=queries,
            runs=[rankgauge.read_run(run, format=run_format) for run in runs],
            split=split,
        )
    print_result(found, format, rankgauge.reports.Options(full=full))

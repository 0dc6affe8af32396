"""``rankgauge collection``: describe a collection."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import Output, output_format, working
from rankgauge.cli.parameters import Group, argument, option


@click.group(cls=Group, short_help="Describe a collection and its quality problems.")
def collection() -> None:
    """Describe a collection of documents, queries, and judgments.

    Sources are folders, archives, files, ir_datasets, Hugging Face, and MTEB.

    \b
    Examples:
      rankgauge collection info data/fiqa
      rankgauge collection info docs --queries questions.csv
    """


@collection.command(short_help="Show counts, lengths, overlaps, duplicates, and leaks.")
def info(
    *,
    source: str = argument("COLLECTION"),
    queries: str | None = option(
        "The queries, or questions with their relevant documents, in place of those of COLLECTION.", "FILE"
    ),
    qrels: str | None = option("The judgments, in place of those of COLLECTION.", "FILE"),
    split: str | None = option(
        "The split of the judgments: a file in qrels/.  [default: test, or the only one]", "NAME"
    ),
    runs: tuple[str, ...] = option(
        "A run, to check whether the documents it retrieved are in the collection; repeat for more.", "--run FILE"
    ),
    formats: options.Formats,
    out: Output = output_format("Show judgments by grade, all lengths, and effects of all problems."),
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
            None if qrels is None else formats.read_qrels(qrels),
            queries=queries,
            runs=[rankgauge.read_run(run, format=formats.run_format) for run in runs],
            split=split,
        )
    out.print(found)

"""``rankgauge convert``: write files in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import click

import rankgauge
from rankgauge.cli.output import check_writable, working
from rankgauge.cli.parameters import argument, command, option


@command()
def convert(
    *,
    source: str = argument("IN"),
    target: str = argument("OUT"),
    source_format: str | None = option(
        "The format of IN, if it is not recognized by name and first line.", "--from, --format FORMAT"
    ),
    target_format: Annotated[str, click.Choice(rankgauge.formats.TARGET_FORMATS)] | None = option(
        f"The format of OUT, if its name does not show it: {', '.join(rankgauge.formats.TARGET_FORMATS)}.",
        "--to FORMAT",
    ),
    kind: Literal["qrels", "run", "queries", "documents"] | None = option(
        "The content of IN, if it is ambiguous; for a collection, the part to write."
    ),
    name: str | None = option("The tag of a run in TREC format.  [default: that of IN]", "TAG"),
    lossy: bool = option(
        "Write OUT even if parts of IN are lost (queries without judgments; titles, fields, "
        "line breaks of texts), and count them."
    ),
) -> None:
    """Write judgments, a run, queries, or documents in another format.

    The name of OUT determines the format (.csv .tsv .json .jsonl .parquet .arrow, else TREC) and
    the compression (.gz .xz .bz2 .zst .lz4). "-" is standard input or output. Numbers are exact.
    Content that OUT cannot hold is an error, or is reported on standard error. A collection (a
    folder or .zip) becomes a new folder or .zip in BEIR format; with --kind, one part is written.

    \b
    Examples:
      rankgauge convert bm25.run bm25.parquet
      rankgauge convert qrels.tsv qrels.json
      rankgauge convert run.json run.txt --kind run --name bm25
      rankgauge convert corpus.jsonl corpus.tsv --lossy
      rankgauge convert scifact.zip scifact
    """
    if not Path(target).is_dir():
        check_writable(target)
    with working(f"converting {source}"):
        done = rankgauge.convert(
            source, target, kind=kind, source_format=source_format, target_format=target_format, name=name, lossy=lossy
        )
    click.echo(str(done), err=True)

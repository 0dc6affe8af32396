"""``rankgauge evaluate``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import click

import rankgauge
from rankgauge.cli.inputs import told_apart
from rankgauge.cli.output import say
from rankgauge.cli.progress import working

__all__ = ["evaluate"]


@click.command(short_help="Evaluate runs against judgments.")
@click.argument("qrels", metavar="QRELS")
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option(
    "-m", "--measure", "names", multiple=True, metavar="NAME",
    help="A measure, such as nDCG@10, AP or 'P(rel=2)@5'; again for more. Without: P, R, F1, "
    "Success and nDCG at 1, 3, 5, 10, RR and AP. See: rankgauge measures.",
)  # fmt: skip
@click.option(
    "--for", "use", type=click.Choice(list(rankgauge.USE_CASES)),
    help="The measures for a use, and why these.",
)  # fmt: skip
@click.option("--per-query", is_flag=True, help="Show the values of every query.")
@click.option(
    "--as", "form", type=click.Choice(rankgauge.FORMS), default="table", show_default=True,
    help="How to print.",
)  # fmt: skip
@click.option(
    "--ties", type=click.Choice(["trec", "input"]), default="trec", show_default=True,
    help="Order of documents with equal scores: document id descending, or as in the file.",
)  # fmt: skip
@click.option(
    "--queries", default="all", show_default=True, metavar="all|intersection|FILE",
    help="Which queries count: all that are judged, those that are also in the run, or those in "
    "a file, one id a line.",
)  # fmt: skip
@click.option(
    "--duplicates", type=click.Choice(["error", "first", "best"]), default="error",
    show_default=True, help="A document that stands twice in a ranking.",
)  # fmt: skip
@click.option(
    "--undefined", type=click.Choice(["zero", "skip"]), default="zero", show_default=True,
    help="What an undefined value does in the mean.",
)  # fmt: skip
def evaluate(  # noqa: PLR0913, PLR0917 - one parameter an option
    qrels: str,
    runs: tuple[str, ...],
    names: tuple[str, ...],
    use: str | None,
    per_query: bool,  # noqa: FBT001 - click passes by name
    form: str,
    ties: Literal["trec", "input"],
    queries: str,
    duplicates: Literal["error", "first", "best"],
    undefined: Literal["zero", "skip"],
) -> None:
    """Evaluate each RUN against the judgments QRELS.

    Both are files: TREC, CSV, TSV, JSON lines or JSON, also gzipped; "-" is standard input. With
    QRELS alone it is a file of records that hold both (id, retrieved, relevant).

    \b
    Examples:
      rankgauge evaluate qrels.txt bm25.run
      rankgauge evaluate qrels.txt bm25.run dense.run -m nDCG@10 -m AP
      rankgauge evaluate qrels.txt bm25.run --for rag
      rankgauge evaluate qrels.txt bm25.run -m nDCG@10 --per-query --as csv
      rankgauge evaluate records.jsonl
    """  # noqa: D301 - click reads the \b
    chosen = names
    if use is not None:
        case = rankgauge.use_case(use)
        chosen = (*case.measures, *names)
        click.echo(f"{case.title}: {', '.join(case.measures)} ({case.why})", err=True)
    measures = chosen or None
    evaluations = []
    with working(f"reading {qrels}"):
        truth = rankgauge.read_qrels(qrels) if runs else rankgauge.Records.of(qrels)
    for place, path in enumerate(runs or (None,), start=1):
        with working(f"evaluating {path or qrels} ({place} of {len(runs) or 1})"):
            evaluations.append(
                rankgauge.evaluate(
                    truth,
                    None if path is None else rankgauge.read_run(path),
                    measures,
                    ties=ties,
                    queries=_queries(queries),
                    duplicates=duplicates,
                    undefined=undefined,
                )
            )
    if runs:
        own = told_apart([evaluation.run_name for evaluation in evaluations], runs)
        evaluations = [replace(one, run_name=n) for one, n in zip(evaluations, own, strict=True)]
    color = form == "table" and sys.stdout.isatty()
    say(rankgauge.report(evaluations, form, per_query=per_query, color=color), color=color)
    for note in rankgauge.report_notes(evaluations):
        # What is read by a program carries no notes; a warning must be seen all the same.
        if form in {"trec", "csv"} or (form == "json" and "WARNING" in note):
            click.echo(note, err=True)


def _queries(text: str) -> Literal["all", "intersection"] | Path:
    if text == "all":
        return "all"
    return "intersection" if text == "intersection" else Path(text)

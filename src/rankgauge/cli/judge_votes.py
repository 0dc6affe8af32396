"""``rankgauge judge answers`` and ``votes``: A/B votes on answers of systems."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import print_message, print_result

_project = click.argument("project", metavar="PROJECT")


@click.command(short_help="Add answers of systems for people to compare.")
@_project
@click.argument("file", metavar="FILE")
def answers(project: str, file: str) -> None:
    """Add the answers of FILE (CSV, TSV, or JSON lines) to PROJECT.

    Columns: id, question (its identifier), text, retrieval, prompt, model, and sources (identifiers
    of the documents that the answer was made from; in CSV separated by ;). On the page Answers,
    people compare answers of two systems to one question; they see neither systems nor sources.
    """
    from rankgauge.judging import JudgingProject, read_answers

    found = read_answers(file)
    with JudgingProject(project) as opened:
        opened.add_answers(found)
        asked = len({each.question for each in found} & set(opened.questions))
    print_message(f"{len(found):,} answers to {asked:,} questions of the project")


@click.command(short_help="Compute win rates of systems from votes on their answers.")
@_project
@click.option(
    "--import", "file", metavar="FILE",
    help="First import votes: CSV, TSV, or JSON lines with question, left, right (identifiers of "
    "the answers as displayed), winner (left, right, both good, both bad, tie, cannot tell), and "
    "optionally judge, comment, time.",
)  # fmt: skip
@click.option(
    "--kind", type=click.Choice(["person", "application", "model"]), default="person",
    show_default=True, help="Who made the imported votes.",
)  # fmt: skip
@options.full("Also show votes without a preference, and all pairs of systems.")
@options.output_format()
def votes(  # noqa: PLR0917 - one parameter an option
    project: str,
    file: str | None,
    kind: str,
    full: bool,  # noqa: FBT001 - click passes by name
    format: str,
) -> None:
    """Print the win rate of each pair of systems of PROJECT, with its Wilson interval.

    Votes of people, applications, and models are counted separately, and never as judgments of
    experts. --as json also lists the credit of source documents.
    """
    from rankgauge.judging import JudgingProject, import_votes, vote_report

    with JudgingProject(project) as opened:
        if file is not None:
            print_message(f"{import_votes(opened, file, kind=kind):,} new votes")
        found = vote_report(opened)
    if format == "table" and not found.sides and not found.pairs:
        print_message(f"There are no votes yet. Next: rankgauge judge answers {project} FILE")
        return
    print_result(found, format, rankgauge.reports.Options(full=full))

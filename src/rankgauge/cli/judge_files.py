"""``rankgauge judge export``, ``import``, ``backup`` and ``restore``."""

from __future__ import annotations

from typing import Literal

import click

import rankgauge
from rankgauge.cli.output import print_result, tell
from rankgauge.cli.progress import working

_project = click.argument("project", metavar="PROJECT")


@click.command(short_help="Write the judgments as qrels, preferences or all events.")
@_project
@click.argument("file", metavar="FILE")
@click.option(
    "--to", type=click.Choice(["qrels", "preferences", "sampled", "events"]), default="qrels",
    show_default=True,
    help="qrels: a grade for each document; preferences: a group for each choice; sampled: the "
    "pool and the random documents from outside it as strata; events: all that the project holds.",
)  # fmt: skip
@click.option(
    "--relevance", type=click.Choice(["share", "fit", "grade"]),
    help="How documents get grades. share: never chosen 0, others 1, 2, ... by ascending "
    "chosen/shown; fit: by the probability of being preferred to none; grade: the median of "
    "grades.  [default: share, or grade in a project with grades]",
)  # fmt: skip
@click.option(
    "--drop-unsure",
    is_flag=True,
    help="With fit: leave documents unjudged whose interval contains 0.5.",
)
@click.option(
    "--collection", metavar="FOLDER", help="With sampled: the collection that was searched."
)
@click.option(
    "--format", "form", metavar="FORMAT",
    help="The format, where the name of FILE does not say it: "
    f"{', '.join(rankgauge.formats.TARGET_FORMATS)}.",
)  # fmt: skip
def export(  # noqa: PLR0917 - one parameter an option
    project: str,
    file: str,
    to: Literal["qrels", "preferences", "sampled", "events"],
    relevance: Literal["share", "fit", "grade"] | None,
    drop_unsure: bool,  # noqa: FBT001 - click passes by name
    collection: str | None,
    form: str | None,
) -> None:
    """Write the judgments of PROJECT into FILE.

    Documents that nobody was shown stay unjudged. Beside FILE a file FILE.about.json says by which
    guideline, criteria and rule it was made.

    \b
    Examples:
      rankgauge judge export judging.db qrels.txt
      rankgauge judge export judging.db qrels.csv --relevance fit --drop-unsure
      rankgauge judge export judging.db book.csv --format quepid
      rankgauge judge export judging.db prefs.txt --to preferences
      rankgauge judge export judging.db all.jsonl.gz --to events
    """  # noqa: D301 - click reads the \b
    from rankgauge.judging import JudgingProject, export_judgments, write_events

    with JudgingProject(project) as opened, working("exporting"):
        if to == "events":
            tell(write_events(opened, file).summary())
            return
        documents = None if collection is None else rankgauge.Collection.read(collection).documents
        made = export_judgments(
            opened, to, relevance=relevance, drop_unsure=drop_unsure, documents=documents
        )
        notes = made.write(file, form)
    if file == "-":
        tell(made.summary())
    else:
        print_result(made, "table")
    for note in notes:
        tell(f"lost: {note}")


@click.command("import", short_help="Add judgments that were made elsewhere.")
@_project
@click.argument("file", metavar="FILE")
@click.option(
    "--judge", "name", default="imported", show_default=True, metavar="NAME",
    help="Who judged, where FILE has no column of judges.",
)  # fmt: skip
@click.option(
    "--kind", type=click.Choice(["person", "model", "application"]), default="person",
    show_default=True, help="Only judgments of people count.",
)  # fmt: skip
@click.option("--preferences", is_flag=True, help="FILE holds preferences, not grades.")
@click.option(
    "--columns", metavar="NAMES",
    help="The columns of a table: query=NAME,document=NAME,grade=NAME or "
    "query=NAME,left=NAME,right=NAME,winner=NAME; and judge=NAME, comment=NAME.",
)  # fmt: skip
@click.option(
    "--several",
    is_flag=True,
    help="A pair that occurs several times was judged by different people.",
)
@click.option("--add-questions", is_flag=True, help="Add questions that PROJECT does not have.")
@click.option(
    "--skip-bad", is_flag=True, help="Leave out rows that cannot be imported, and say so."
)
@click.option(
    "--format", "form", metavar="FORMAT", help="The format of FILE, where its name misleads."
)
def import_(  # noqa: PLR0913, PLR0917 - one parameter an option
    project: str,
    file: str,
    name: str,
    kind: str,
    preferences: bool,  # noqa: FBT001 - click passes by name
    columns: str | None,
    several: bool,  # noqa: FBT001
    add_questions: bool,  # noqa: FBT001
    skip_bad: bool,  # noqa: FBT001
    form: str | None,
) -> None:
    """Add the judgments of FILE to PROJECT: all of them or, on an error, none.

    Reads every format of judgments that `rankgauge evaluate` reads. Importing a file again adds
    what is new and corrects what has changed.

    \b
    Examples:
      rankgauge judge import judging.db qrels.txt --judge "Judge 1"
      rankgauge judge import judging.db book.csv --judge "Quepid, spring"
      rankgauge judge import judging.db ratings.csv --columns query=q,document=url,grade=stars
      rankgauge judge import judging.db prefs.txt --preferences
    """  # noqa: D301 - click reads the \b
    from rankgauge.judging import JudgingProject, import_judgments

    with JudgingProject(project) as opened, working(f"importing {file}"):
        done = import_judgments(
            opened, file if form is None else rankgauge.formats.InFormat(file, form), name,
            kind=kind, preferences=preferences, columns=_columns(columns), several=several,
            add_questions=add_questions, skip_bad=skip_bad,
        )  # fmt: skip
    print_result(done, "table")


@click.command(short_help="Back up a project while judges keep working.")
@_project
@click.argument("file", metavar="FILE")
def backup(project: str, file: str) -> None:
    """Copy PROJECT into the new FILE; judges may keep working.

    The copy of an SQLite project is a project. For PostgreSQL, or if the name ends in .jsonl or
    .jsonl.gz, FILE holds all events as JSON lines, without the invitations of judges.

    \b
    Examples:
      rankgauge judge backup judging.db judging-2026-11-22.db
      rankgauge judge backup postgresql://me@host/judging judging.jsonl.gz
    """  # noqa: D301 - click reads the \b
    from rankgauge.judging import JudgingProject, backup as copy

    with JudgingProject(project) as opened, working("copying"):
        done = copy(opened, file)
    tell(done.summary())


@click.command(short_help="Restore a project from a backup.")
@click.argument("file", metavar="FILE")
@_project
def restore(file: str, project: str) -> None:
    """Create the new PROJECT from FILE, which `judge backup` wrote.

    \b
    Examples:
      rankgauge judge restore judging-2026-11-22.db judging.db
      rankgauge judge restore judging.jsonl.gz postgresql://me@host/judging
    """  # noqa: D301 - click reads the \b
    from rankgauge.judging import restore as make

    with working("restoring"):
        done = make(file, project)
    tell(done.summary())


def _columns(given: str | None) -> dict[str, str] | None:
    if given is None:
        return None
    pairs = [part.partition("=") for part in given.split(",")]
    return {key.strip(): name.strip() for key, _, name in pairs}

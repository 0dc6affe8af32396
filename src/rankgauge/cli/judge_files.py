"""``rankgauge judge export``, ``import``, ``backup``, and ``restore``."""

from __future__ import annotations

from typing import Literal

import rankgauge
from rankgauge.cli.output import print_message, print_result, working
from rankgauge.cli.parameters import command, option


@command(short_help="Write judgments as qrels or preferences, or all events.")
def export(
    *,
    project: str,
    file: str,
    to: Literal["qrels", "preferences", "sampled", "events"] = option(
        "qrels: a grade for each document; preferences: a group for each choice; sampled: the "
        "pool and the random documents from outside it as strata; events: everything in the "
        "project.",
        default="qrels",
    ),
    relevance: Literal["share", "fit", "grade"] | None = option(
        "The source of grades. share: 0 if never chosen, else 1, 2, ... by ascending "
        "chosen/shown; fit: the probability of being preferred to none; grade: the median "
        "grade or, of rankings, place (the first is highest).  [default: share, or grade in a "
        "project of grades or rankings]"
    ),
    drop_unsure: bool = option("With fit: leave a document unjudged if its interval contains 0.5."),
    collection: str | None = option("With sampled: the collection that was searched.", "FOLDER"),
    form: str | None = option(
        f"The format, if the name of FILE does not show it: {', '.join(rankgauge.formats.TARGET_FORMATS)}.",
        "--format FORMAT",
    ),
) -> None:
    """Write the judgments of PROJECT to FILE.

    Documents that were never shown (in rankings: never ranked) remain unjudged. FILE.about.json
    records guideline, criteria, rule, and origin of the questions; evaluations print them.

    \b
    Examples:
      rankgauge judge export judging.db qrels.txt
      rankgauge judge export judging.db qrels.csv --relevance fit --drop-unsure
      rankgauge judge export judging.db book.csv --format quepid
      rankgauge judge export judging.db prefs.txt --to preferences
      rankgauge judge export judging.db all.jsonl.gz --to events
    """
    from rankgauge.judging import JudgingProject, export_judgments, write_events

    with JudgingProject(project) as opened, working("exporting"):
        if to == "events":
            print_message(write_events(opened, file).summary())
            return
        documents = None if collection is None else rankgauge.Collection.read(collection).documents
        made = export_judgments(opened, to, relevance=relevance, drop_unsure=drop_unsure, documents=documents)
        notes = made.write(file, form)
    if file == "-":
        print_message(made.summary())
        for text in made.about["warnings"]:
            print_message(f"WARNING: {text}")
    else:
        print_result(made)
    for note in notes:
        print_message(f"lost: {note}")


@command(name="import", short_help="Import judgments from other tools.")
def import_(
    *,
    project: str,
    file: str,
    name: str = option("The judge, if FILE has no column of judges.", "--judge NAME", default="imported"),
    kind: Literal["person", "model", "application"] = option(
        "The kind of judge; only judgments of people count.", default="person"
    ),
    preferences: bool = option("FILE contains preferences, not grades."),
    columns: str | None = option(
        "The columns of the table: query=NAME,document=NAME,grade=NAME or "
        "query=NAME,left=NAME,right=NAME,winner=NAME; optionally judge=NAME, comment=NAME.",
        "NAMES",
    ),
    several: bool = option("Repeated pairs are judgments of different people."),
    add_questions: bool = option("Add questions that PROJECT does not have."),
    skip_bad: bool = option("Skip rows that cannot be imported, and report them."),
    form: str | None = option("The format of FILE, if its name does not show it.", "--format FORMAT"),
) -> None:
    """Add the judgments in FILE to PROJECT; on an error, add none of them.

    Supports the judgment formats of `rankgauge evaluate`. Importing a file again adds new judgments
    and updates changed ones.

    \b
    Examples:
      rankgauge judge import judging.db qrels.txt --judge "Judge 1"
      rankgauge judge import judging.db book.csv --judge "Quepid, spring"
      rankgauge judge import judging.db ratings.csv --columns query=q,document=url,grade=stars
      rankgauge judge import judging.db prefs.txt --preferences
    """
    from rankgauge.judging import JudgingProject, import_judgments

    with JudgingProject(project) as opened, working(f"importing {file}"):
        done = import_judgments(
            opened,
            file if form is None else rankgauge.formats.InFormat(file, form),
            name,
            kind=kind,
            preferences=preferences,
            columns=_columns(columns),
            several=several,
            add_questions=add_questions,
            skip_bad=skip_bad,
        )
    print_result(done)


@command(short_help="Back up a project while judges keep working.")
def backup(*, project: str, file: str) -> None:
    """Copy PROJECT to the new FILE while judges keep working.

    The copy of an SQLite project is itself a project. For PostgreSQL, or if the name ends in .jsonl
    or .jsonl.gz, FILE has all events as JSON lines, without the invitations of judges.

    \b
    Examples:
      rankgauge judge backup judging.db judging-2026-11-22.db
      rankgauge judge backup postgresql://me@host/judging judging.jsonl.gz
    """
    from rankgauge.judging import JudgingProject, backup as copy

    with JudgingProject(project) as opened, working("copying"):
        done = copy(opened, file)
    print_message(done.summary())


@command(short_help="Restore a project from a backup.")
def restore(*, file: str, project: str) -> None:
    """Create the new PROJECT from FILE, written by `judge backup`.

    \b
    Examples:
      rankgauge judge restore judging-2026-11-22.db judging.db
      rankgauge judge restore judging.jsonl.gz postgresql://me@host/judging
    """
    from rankgauge.judging import restore as make

    with working("restoring"):
        done = make(file, project)
    print_message(done.summary())


def _columns(given: str | None) -> dict[str, str] | None:
    if given is None:
        return None
    pairs = [part.partition("=") for part in given.split(",")]
    return {key.strip(): name.strip() for key, _, name in pairs}

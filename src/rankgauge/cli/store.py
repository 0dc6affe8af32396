"""``rankgauge store``: back up, restore, export, and clean the store as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import Output, print_message, working
from rankgauge.cli.parameters import Group, option
from rankgauge.core.escaping import for_terminal
from rankgauge.core.text import many


@click.group(cls=Group, short_help="Back up, restore, export, and clean the store.")
def store() -> None:
    """Back up, restore, export, and clean the store: evaluations, judging, and verdicts.

    \b
    Examples:
      rankgauge store backup backup.zip
      rankgauge store restore backup.zip --store postgresql://user@host/database
    """


@store.command(short_help="Write a backup while others use the store.")
def backup(*, file: str, store: str | None = options.store) -> None:
    """Write a backup of the whole store to the new FILE while others use it.

    Any kind of database can restore it. It contains the names of judges: keep it private.
    """
    with working("copying"), rankgauge.store.WholeStore(store) as whole:
        _print(f"wrote {file}", whole.backup(file))


@store.command(short_help="Restore a backup into a new store.")
def restore(*, file: str, store: str | None = options.store) -> None:
    """Restore FILE, written by `store backup`, into a new store or an empty database."""
    with working("restoring"), rankgauge.store.WholeStore(store) as whole:
        _print(f"restored {whole.where}", whole.restore(file))


@store.command(short_help="Write the contents in open formats.")
def export(*, folder: str, store: str | None = options.store) -> None:
    """Write the contents to the new FOLDER in open formats, without secrets.

    Evaluations, texts, and events are JSON lines; runs and judgments are in TREC format.
    """
    with working("exporting"), rankgauge.store.WholeStore(store) as whole:
        _print(f"wrote {folder}", whole.export(folder))


@store.command(short_help="Show the bytes of each kind of content.")
def size(*, store: str | None = options.store, out: Output) -> None:
    """Show the bytes of each kind of content, after compression."""
    with rankgauge.store.WholeStore(store) as whole:
        sizes, title = whole.sizes(), whole.where
    out.print_table(rankgauge.rendering.Table(("content", "bytes"), tuple(sizes.items()), title=title))


@store.command(short_help="Remove a person or a text permanently.")
def forget(
    *,
    judge: str | None = option("Remove the name, the comments, and the access of this judge.", "ID|NAME"),
    document: str | None = option("Remove the text of this document.", "ID"),
    question: str | None = option("Remove the text of this question, such as one that a user asked.", "ID"),
    user: str | None = option("Remove the events of this user from the files of the production log.", "ID"),
    log: str | None = option("With --user: the log.  [default: that of the project]", "LOG"),
    yes: bool = option("Do not ask for confirmation."),
    store: str | None = options.store,
) -> None:
    """Remove a person or a text from the store, or a user from the log.

    Earlier backups and exports are not changed. Numbers stay: values, rankings, judgments, and
    choices. Choices of a removed judge count under a random id. Evaluations with a removed text say
    that they cannot be recomputed from it. Importing a log again brings its users back.
    """
    kinds: dict[Literal["judge", "document", "question", "user"], str | None] = {
        "judge": judge,
        "document": document,
        "question": question,
        "user": user,
    }
    named = [(kind, name) for kind, name in kinds.items() if name is not None]
    if len(named) != 1:
        raise click.UsageError("name one of --judge, --document, --question, and --user")
    [(kind, name)] = named
    whole = rankgauge.store.WholeStore(store)
    where = whole.where if kind != "user" else log or options.project_log()
    text = for_terminal(f"{kind} {name} from {where}")
    if yes or click.confirm(f"remove {text} permanently?", err=True):
        counts = whole.forget(kind, name) if kind != "user" else rankgauge.production.EventLog(where).forget_user(name)
        changes = [many(number, noun) for noun, number in counts.items()]
        print_message(f"removed {text}: {', '.join(changes)}")


_NOUNS = {"evaluations": "evaluation", "events": "event", "judging_choices": "choice", "answers_verdicts": "verdict"}


def _print(done: str, counts: Mapping[str, int]) -> None:
    listed = [many(counts[name], noun) for name, noun in _NOUNS.items() if name in counts]
    print_message(f"{done}: {', '.join(listed) or 'no evaluations, choices, or verdicts'}")

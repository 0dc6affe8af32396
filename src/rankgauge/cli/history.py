"""``rankgauge history``: evaluations saved with ``rankgauge evaluate --save``."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import print_message, print_result, print_text, save_plot, working
from rankgauge.core.escaping import for_terminal

_NOT_COMPARABLE = 4
_run_option = click.option("--run", metavar="NAME", help="Use only evaluations of this run.")


@click.group(short_help="List, compare, and track saved evaluations.")
def history() -> None:
    """List and compare evaluations saved with: rankgauge evaluate QRELS RUN --save.

    \b
    Examples:
      rankgauge history list
      rankgauge history compare 3 7 -m nDCG@10
      rankgauge history trend -m nDCG@10 --run bm25
    """


@history.command("list", short_help="List saved evaluations.")
@options.measures(
    "A measure whose mean is shown; repeat for more.  [default: nDCG@10, or the first]"
)
@_run_option
@click.option(
    "--last",
    type=click.IntRange(min=1),
    metavar="N",
    help="Show only the latest N.  [default: all]",
)
@options.store
@options.output_format()
def list_(
    measures: tuple[str, ...], run: str | None, last: int | None, store: str | None, format: str
) -> None:
    """List the saved evaluations, in the order of saving.

    \b
    Examples:
      rankgauge history list
      rankgauge history list -m nDCG@10 -m RR --run bm25 --last 20
    """
    with working("reading the history"), rankgauge.History.open(store) as kept:
        entries = kept.entries(run=run)
    print_result(entries, format, rankgauge.reports.Options(measures=measures, last=last))


@history.command(short_help="Show one evaluation in full.")
@click.argument("number", metavar="ID", type=int)
@options.store
@options.output_format()
@options.full("Show fingerprints, versions, and all notes.")
def show(number: int, store: str | None, format: str, full: bool) -> None:
    """Show one evaluation: settings, fingerprints, commit, means, and notes."""
    with rankgauge.History.open(store) as kept:
        entry = kept.entry(number)
    print_result(entry, format, rankgauge.reports.Options(full=full))


@history.command(short_help="Compare two evaluations, query by query.")
@click.argument("before", metavar="ID", type=int)
@click.argument("after", metavar="ID", type=int)
@options.measures(
    "A measure; repeat for more. The first is tested, the others are described.  [default: all "
    "that both have, nDCG@10 first]"
)
@click.option(
    "--force", is_flag=True,
    help="Compare even if judgments, policies, or definitions of a measure differ.",
)  # fmt: skip
@options.store
@options.output_format()
@options.full("Show all measures, the test, and its seed.")
def compare(
    before: int,
    after: int,
    measures: tuple[str, ...],
    force: bool,
    store: str | None,
    format: str,
    full: bool,
) -> None:
    """Compare the second evaluation with the first, on the queries that both have.

    Evaluations with different judgments are rejected with exit code 4. With --force, they are
    compared anyway, with a note on how they differ.

    \b
    Examples:
      rankgauge history compare 3 7
      rankgauge history compare 3 7 -m nDCG@10 -m RR
    """
    try:
        with working("comparing"), rankgauge.History.open(store) as kept:
            change = kept.compare(before, after, measures or None, force=force)
    except rankgauge.MismatchError as error:
        click.echo(f"error: {error}", err=True)
        click.get_current_context().exit(_NOT_COMPARABLE)
    print_result(change, format, rankgauge.reports.Options(full=full))
    if format in {"csv", "json"}:
        for note in change.table().notes:
            print_message(note)


@history.command(short_help="Show a measure over time.")
@options.measure("The measure.")
@_run_option
@click.option(
    "--last", type=click.IntRange(min=1), metavar="N",
    help="Show only the latest N; warnings consider all.",
)  # fmt: skip
@options.plot("Also draw a plot to this .svg or .png file (needs rankgauge[plots]).")
@options.store
@options.output_format()
def trend(
    measure: str,
    run: str | None,
    last: int | None,
    drawn: str | None,
    store: str | None,
    format: str,
) -> None:
    """Show a measure over time, with its interval, and warn if it declines.

    A line marks a change of judgments, policies, or queries; evaluations before and after it are
    not compared. The latest evaluation is compared, query by query, with the first and the best
    after the last line.

    \b
    Examples:
      rankgauge history trend
      rankgauge history trend -m RR --run bm25 --last 20
      rankgauge history trend -m nDCG@10 --plot trend.svg
    """
    with working("reading the history"), rankgauge.History.open(store) as kept:
        found = kept.trend(measure, run=run)
    print_result(found, format, rankgauge.reports.Options(last=last))
    if format in {"csv", "json"}:
        for warning in found.warnings:
            print_message(f"WARNING: {warning}")
    if drawn:
        save_plot(found.plot(last), drawn)


@history.command(short_help="Delete evaluations permanently.")
@click.argument("numbers", metavar="ID [ID]...", nargs=-1, type=int, required=True)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@options.store
def delete(numbers: tuple[int, ...], yes: bool, store: str | None) -> None:
    """Delete evaluations permanently; their numbers are not reused."""
    with rankgauge.History.open(store) as kept:
        entries = [kept.entry(number) for number in dict.fromkeys(numbers)]
        for entry in entries:
            text = for_terminal(f"{entry.name}, {entry.time:%Y-%m-%d %H:%M}")
            if yes or click.confirm(f"delete evaluation {text}?", err=True):
                kept.delete(entry)
                print_message(f"deleted evaluation {text}")


@history.command(short_help="Print an evaluation as JSON.")
@click.argument("number", metavar="ID", type=int)
@options.store
def export(number: int, store: str | None) -> None:
    """Print one evaluation in the format of rankgauge evaluate --as json, with values per query."""
    with rankgauge.History.open(store) as kept:
        print_text(kept.load(number).to_json() + "\n")

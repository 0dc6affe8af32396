"""``rankgauge history``: evaluations saved with ``rankgauge evaluate --save``."""

from __future__ import annotations

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.output import (
    Output,
    output_format,
    print_message,
    print_text,
    save_plot,
    working,
)
from rankgauge.cli.parameters import Group, Positive, argument, option
from rankgauge.core.escaping import for_terminal

_NOT_COMPARABLE = 4
_run = option("Use only evaluations of this run.", "NAME")


@click.group(cls=Group, short_help="List, compare, and track saved evaluations.")
def history() -> None:
    """List and compare evaluations saved with: rankgauge evaluate QRELS RUN --save.

    \b
    Examples:
      rankgauge history list
      rankgauge history compare 3 7 -m nDCG@10
      rankgauge history trend -m nDCG@10 --run bm25
    """


@history.command("list", short_help="List saved evaluations.")
def list_(
    *,
    measures: tuple[str, ...] = options.measures(
        "A measure whose mean is shown; repeat for more.  [default: nDCG@10, or the first]"
    ),
    run: str | None = _run,
    last: Positive | None = option("Show only the latest N.  [default: all]", "N"),
    store: str | None = options.store,
    out: Output,
) -> None:
    """List the saved evaluations, in the order of saving.

    \b
    Examples:
      rankgauge history list
      rankgauge history list -m nDCG@10 -m RR --run bm25 --last 20
    """
    with working("reading the history"), rankgauge.History(store) as kept:
        entries = kept.entries(run=run)
    out.print(entries, rankgauge.reports.Options(measures=measures, last=last))


@history.command(short_help="Show one evaluation in full.")
def show(
    *,
    number: int = argument("ID"),
    store: str | None = options.store,
    out: Output = output_format("Show fingerprints, versions, and all notes."),
) -> None:
    """Show one evaluation: settings, fingerprints, commit, means, and notes."""
    with rankgauge.History(store) as kept:
        entry = kept.entry(number)
    out.print(entry)


@history.command(short_help="Compare two evaluations, query by query.")
def compare(
    *,
    before: int = argument("ID"),
    after: int = argument("ID"),
    measures: tuple[str, ...] = options.measures(
        "A measure; repeat for more. The first is tested, the others are described.  "
        "[default: all that both have, nDCG@10 first]"
    ),
    force: bool = option("Compare even if judgments, policies, or definitions of a measure differ."),
    store: str | None = options.store,
    out: Output = output_format("Show all measures, the test, and its seed."),
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
        with working("comparing"), rankgauge.History(store) as kept:
            change = rankgauge.comparison.compare_saved(kept, before, after, measures or None, force=force)
    except rankgauge.MismatchError as error:
        click.echo(f"error: {error}", err=True)
        click.get_current_context().exit(_NOT_COMPARABLE)
    out.print(change)
    if out.is_data:
        for note in change.table().notes:
            print_message(note)


@history.command(short_help="Show a measure over time.")
def trend(
    *,
    measure: str = options.measure("The measure."),
    run: str | None = _run,
    last: Positive | None = option("Show only the latest N; warnings consider all.", "N"),
    drawn: str | None = option("Also draw a plot to this .svg or .png file (needs rankgauge[plots]).", "--plot FILE"),
    store: str | None = options.store,
    out: Output,
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
    with working("reading the history"), rankgauge.History(store) as kept:
        result = rankgauge.comparison.trend_of(kept, measure, run=run)
    out.print(result, rankgauge.reports.Options(last=last))
    if out.is_data:
        for warning in result.warnings:
            print_message(f"WARNING: {warning}")
    if drawn:
        save_plot(result.plot(last), drawn)


@history.command(short_help="Delete evaluations permanently.")
def delete(
    *,
    numbers: tuple[int, ...] = argument("ID [ID]..."),
    yes: bool = option("Do not ask for confirmation."),
    store: str | None = options.store,
) -> None:
    """Delete evaluations permanently; their numbers are not reused."""
    with rankgauge.History(store) as kept:
        entries = [kept.entry(number) for number in dict.fromkeys(numbers)]
        for entry in entries:
            text = for_terminal(f"{entry.name}, {entry.time:%Y-%m-%d %H:%M}")
            if yes or click.confirm(f"delete evaluation {text}?", err=True):
                kept.delete(entry)
                print_message(f"deleted evaluation {text}")


@history.command(short_help="Print an evaluation as JSON.")
def export(*, number: int = argument("ID"), store: str | None = options.store) -> None:
    """Print one evaluation in the format of rankgauge evaluate --as json, with values per query."""
    with rankgauge.History(store) as kept:
        print_text(kept.load(number).to_json() + "\n")

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

_run = option("Use only evaluations of this run.", "NAME")


@click.group(cls=Group, short_help="List and track saved evaluations.")
def history() -> None:
    """List and track evaluations saved with: rankgauge evaluate QRELS RUN --save.

    An evaluation has a number and a short name, such as bm25#3; bm25@latest is the latest of a run,
    @latest the latest of all. Other commands accept these names in place of a run.

    \b
    Examples:
      rankgauge history list
      rankgauge compare bm25#3 bm25#7 -m nDCG@10
      rankgauge history trend -m nDCG@10 --run bm25
    """


@history.command("list", short_help="List saved evaluations.")
def list_(
    *,
    measures: tuple[str, ...] = options.measures(
        "A measure whose mean is shown; repeat for more.  [default: nDCG@10, or the first]"
    ),
    run: str | None = _run,
    last: Positive | None = option("Show only the latest N.  [default: 20, in CSV and JSON all]", "N"),
    store: str | None = options.store,
    out: Output = output_format("Show all evaluations."),
) -> None:
    """List the latest saved evaluations, in the order of saving.

    \b
    Examples:
      rankgauge history list
      rankgauge history list -m nDCG@10 -m RR --run bm25 --last 20
    """
    with working("reading the history"), rankgauge.History(store) as kept:
        entries = kept.entries(run=run)
    shown = last or (None if out.full or out.is_data else 20)
    out.print(entries, rankgauge.reports.Options(measures=measures, last=shown))


@history.command(short_help="Show one evaluation in full.")
def show(
    *,
    name: str = argument("NAME"),
    store: str | None = options.store,
    out: Output = output_format("Show fingerprints, versions, and all notes."),
) -> None:
    """Show one evaluation: settings, fingerprints, commit, means, and notes."""
    with rankgauge.History(store) as kept:
        entry = kept.entry(name)
    out.print(entry)


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
    names: tuple[str, ...] = argument("NAME [NAME]..."),
    yes: bool = option("Do not ask for confirmation."),
    store: str | None = options.store,
) -> None:
    """Delete evaluations permanently; their numbers are not reused."""
    with rankgauge.History(store) as kept:
        entries = [kept.entry(name) for name in dict.fromkeys(names)]
        for entry in entries:
            text = for_terminal(f"{entry.name}, {entry.time:%Y-%m-%d %H:%M}")
            if yes or click.confirm(f"delete evaluation {text}?", err=True):
                kept.delete(entry)
                print_message(f"deleted evaluation {text}")


@history.command(short_help="Print an evaluation as JSON.")
def export(*, name: str = argument("NAME"), store: str | None = options.store) -> None:
    """Print one evaluation in the format of rankgauge evaluate --as json, with values per query."""
    with rankgauge.History(store) as kept:
        print_text(kept.load(name).to_json() + "\n")

"""``rankgauge check``: find errors in judgments and runs."""

from __future__ import annotations

from typing import Literal

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import located
from rankgauge.cli.output import print_message, print_result, print_table, print_text, working


def _known_codes(
    _context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the codes in upper case; reject unknown codes before any file is read."""
    known = rankgauge.checks.FINDING_KINDS
    for code in given:
        if code.upper() not in known:
            raise click.BadParameter(f"unknown finding code {code!r}; see: rankgauge check --list")
    return tuple(code.upper() for code in given)


def _fixable(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    codes = _known_codes(context, option, given)
    kinds = rankgauge.checks.FINDING_KINDS
    for code in codes:
        if not kinds[code].automatic:
            fixable = ", ".join(code for code, kind in kinds.items() if kind.automatic)
            raise click.BadParameter(
                f"{code} cannot be fixed automatically; these codes can: {fixable}"
            )
    return codes


@click.command(short_help="Check judgments, runs, and texts for errors.")
@click.argument("qrels", metavar="[QRELS]", required=False)
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@options.measures(
    "A measure to check against the data, and in which to show effects; repeat for "
    "more.  [default: nDCG@10]"
)
@options.collection(
    "Documents and queries, to check their texts as well: a source as for rankgauge collection."
)
@click.option(
    "--scale",
    metavar="LOW..HIGH",
    help="The scale of the grades, such as 0..3; grades outside are reported.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="CODE",
    callback=_known_codes,
    help="Skip this code; repeat for more.",
)
@click.option(
    "--select",
    multiple=True,
    metavar="CODE",
    callback=_known_codes,
    help="Check only this code; repeat for more.",
)
@options.output_format("github")
@options.full("Show all effects, and the fixes of warnings.")
@click.option(
    "--fix", "folder", metavar="FOLDER",
    help="Write a copy of each file to this folder, with each fault fixed that has one safe fix.",
)  # fmt: skip
@click.option(
    "--fix-also", "also", multiple=True, metavar="CODE", callback=_fixable,
    help="Also fix this code, whose fix may be wrong for your data; repeat for more.",
)  # fmt: skip
@click.option(
    "--fail-on", type=click.Choice(["error", "warning", "info", "never"]), default="error",
    show_default=True, help="The lowest severity at which the exit code is 1.",
)  # fmt: skip
@options.run_format
@options.qrels_format
@click.option("--explain", metavar="CODE", help="Explain one code, and exit.")
@click.option("--list", "listed", is_flag=True, help="List all codes, and exit.")
def check(
    qrels: str | None,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    collection: str | None,
    scale: str | None,
    ignore: tuple[str, ...],
    select: tuple[str, ...],
    format: str,
    folder: str | None,
    also: tuple[str, ...],
    fail_on: Literal["error", "warning", "info", "never"],
    run_format: str | None,
    qrels_format: str | None,
    explain: str | None,
    listed: bool,
    full: bool,
) -> None:
    """Check the judgments QRELS and each RUN for errors that distort the results.

    Each finding has a stable code, the problem and its location, its measured effect on the
    results, and a fix. RUN may be omitted.

    Exit codes: 0 no finding with the severity of --fail-on or higher, 1 such a finding, 2 an error.

    \b
    Examples:
      rankgauge check qrels.txt bm25.run dense.run
      rankgauge check qrels.txt bm25.run -m nDCG@10 -m R@100 --collection data/fiqa
      rankgauge check qrels.txt bm25.run --fix fixed --fix-also R101
      rankgauge check qrels.txt bm25.run --as github --fail-on warning
      rankgauge check --explain P103
    """
    if listed:
        print_table(rankgauge.reports.finding_kinds_table(), format)
        return
    if explain is not None:
        print_text(rankgauge.reports.explain_problem(explain))
        return
    if qrels is None:
        raise click.UsageError("name the judgments: rankgauge check QRELS RUN...")
    if also and folder is None:
        raise click.UsageError("--fix-also needs --fix FOLDER, a folder for the copies")
    if folder is not None and "-" in (qrels, *runs):
        raise click.UsageError("--fix reads files twice, and standard input can be read only once")
    judged = located(qrels, qrels_format)
    given = [located(run, run_format) for run in runs]
    with working(f"checking {', '.join(runs) or qrels}"):
        found = rankgauge.check(
            judged,
            given,
            measures or None,
            collection=collection,
            ignore=(*ignore, *_unselected(select)),
            scale=scale,
        )
    print_result(found, format, rankgauge.reports.Options(full=full))
    if folder is not None:
        fixed = rankgauge.checks.fix_inputs(found, judged, given, also=also)
        for line in fixed.write(folder):
            print_message(line)
    failed = fail_on != "never" and found.at_least(fail_on)
    click.get_current_context().exit(1 if failed else 0)


def _unselected(select: tuple[str, ...]) -> tuple[str, ...]:
    """Return the codes to ignore if only some are selected."""
    if not select:
        return ()
    return tuple(code for code in rankgauge.checks.FINDING_KINDS if code not in select)

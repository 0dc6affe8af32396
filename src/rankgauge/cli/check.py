"""``rankgauge check``: find errors in judgments and runs."""

from __future__ import annotations

from typing import Literal

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import located
from rankgauge.cli.output import Output, output_format, print_message, print_text, working
from rankgauge.cli.parameters import argument, command, option


@command()
def check(
    *,
    qrels: str | None = argument("[QRELS]"),
    runs: tuple[str, ...] = argument("[RUN]..."),
    measures: tuple[str, ...] = options.measures(
        "A measure to check against the data, and in which to show effects; repeat for more.  [default: nDCG@10]"
    ),
    collection: str | None = option(
        "Documents and queries, to check their texts as well: a source as for rankgauge collection.", "FOLDER"
    ),
    scale: str | None = option("The scale of the grades, such as 0..3; grades outside are reported.", "LOW..HIGH"),
    ignore: tuple[str, ...] = option("Skip this code; repeat for more.", "CODE"),
    select: tuple[str, ...] = option("Check only this code; repeat for more.", "CODE"),
    out: Output = output_format("Show all effects, and the fixes of warnings.", "github"),
    folder: str | None = option(
        "Write a copy of each file to this folder, with each fault fixed that has one safe fix.", "--fix FOLDER"
    ),
    also: tuple[str, ...] = option(
        "Also fix this code, whose fix may be wrong for your data; repeat for more.", "--fix-also CODE"
    ),
    fail_on: Literal["error", "warning", "info", "never"] = option(
        "The lowest severity at which the exit code is 1.", default="error"
    ),
    formats: options.Formats,
    explain: str | None = option("Explain one code, and exit.", "CODE"),
    listed: bool = option("List all codes, and exit.", "--list"),
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
        out.print_table(rankgauge.reports.finding_kinds_table())
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
    fixes = rankgauge.checks.fixable_codes(code.upper() for code in also)
    judged = located(qrels, formats.qrels_format)
    given = [formats.run(run) for run in runs]
    kinds = rankgauge.checks.FINDING_KINDS
    # The symmetric difference has unknown codes, too, which are rejected.
    skipped = {*ignore, *(kinds.keys() ^ {code.upper() for code in select} if select else ())}
    with working(f"checking {', '.join(runs) or qrels}"):
        found = rankgauge.check(
            judged,
            given,
            measures or None,
            collection=collection,
            ignore=[code.upper() for code in skipped],
            scale=scale,
        )
    out.print(found)
    if folder is not None:
        for line in rankgauge.checks.fix_inputs(found, judged, given, also=fixes).write(folder):
            print_message(line)
    failed = fail_on != "never" and found.at_least(fail_on)
    click.get_current_context().exit(1 if failed else 0)

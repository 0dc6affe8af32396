"""``rankgauge evaluate --tie-report``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

import click

import rankgauge
from rankgauge.cli.inputs import read_runs
from rankgauge.cli.output import say, tell
from rankgauge.cli.progress import working

__all__ = ["say_ties"]


def say_ties(
    sources: tuple[str, Sequence[str], str | None, str | None],
    report: Callable[..., rankgauge.sensitivity.TieReport],
    form: str,
    *,
    per_query: bool,
    beside: Mapping[str, object],
) -> None:
    """Print what ties touch in each run.

    Args:
        sources: The path of the judgments or of records, those of the runs (none for records), and
            the formats of both.
        report: Makes the report of judgments, or records, and a run.
        form: How to print.
        per_query: Whether to show each query that ties could change.
        beside: Options that are for an evaluation, and whether they were given.
    """
    for option, given in beside.items():
        if given:
            raise click.UsageError(f"{option} is not for --tie-report: leave one of them out")
    qrels, paths, qrels_format, run_format = sources
    truth: rankgauge.Qrels | rankgauge.Records
    with working(f"reading {qrels}"):
        if paths:
            truth = rankgauge.read_qrels(qrels, format=qrels_format)
        else:
            truth = rankgauge.Records.of(qrels)
        runs: Sequence[rankgauge.Run | None] = read_runs(paths, run_format) if paths else [None]
    found = []
    for place, run in enumerate(runs, start=1):
        with working(f"evaluating {qrels if run is None else run.name} ({place} of {len(runs)})"):
            found.append(report(truth, run))
    color = form == "table" and sys.stdout.isatty()
    say(rankgauge.reports.report_ties(found, form, per_query=per_query, color=color), color=color)
    for note in (note for one in found for note in one.notes):
        # What is read by a program carries no notes, and a warning must be seen all the same.
        if form == "csv" or (form == "json" and "WARNING" in note):
            tell(note)

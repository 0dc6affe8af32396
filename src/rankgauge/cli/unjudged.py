"""``rankgauge evaluate --unjudged-report``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

import click

import rankgauge
from rankgauge.cli.inputs import read_runs
from rankgauge.cli.output import say
from rankgauge.cli.progress import working

__all__ = ["say_unjudged"]


def say_unjudged(
    sources: tuple[str, Sequence[str], str | None, str | None],
    report: Callable[..., rankgauge.sensitivity.UnjudgedReport],
    form: str,
    *,
    beside: Mapping[str, object],
) -> None:
    """Print what the unjudged documents of each run leave open.

    Args:
        sources: The paths of the judgments and of the runs, and the formats of both.
        report: Makes the report of judgments and a run.
        form: How to print.
        beside: Options that are for an evaluation, and whether they were given.
    """
    qrels, paths, qrels_format, run_format = sources
    for option, given in {**beside, "a file of records": not paths}.items():
        if given:
            raise click.UsageError(f"--unjudged-report is for QRELS and RUN, without {option}")
    with working(f"reading {qrels}"):
        truth = rankgauge.read_qrels(qrels, format=qrels_format)
        runs = read_runs(paths, run_format)
    color = form == "table" and sys.stdout.isatty()
    for place, run in enumerate(runs):
        with working(f"evaluating {run.name} ({place + 1} of {len(runs)})"):
            found = report(truth, run)
        if place:
            click.echo()
        say(rankgauge.reports.report_unjudged(found, form, color=color), color=color)

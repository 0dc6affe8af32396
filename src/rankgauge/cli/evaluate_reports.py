"""``rankgauge evaluate --tie-report`` and ``--unjudged-report``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

import rankgauge
from rankgauge.cli.inputs import read_runs
from rankgauge.cli.output import print_message, print_result
from rankgauge.cli.progress import working

__all__ = ["Sources", "print_reports"]


# The function of each option and the policies that it accepts.
_REPORTS = {
    "--tie-report": ("tie_report", ("ties", "queries", "duplicates", "undefined")),
    "--unjudged-report": ("unjudged_report", ("ties", "queries", "duplicates")),
}


class Sources(NamedTuple):
    """The paths of judgments (or of records, without runs) and of runs, and their formats."""

    qrels: str
    runs: Sequence[str]
    qrels_format: str | None
    run_format: str | None

    def read(
        self,
    ) -> tuple[rankgauge.Qrels | rankgauge.Records, Sequence[rankgauge.Run | None]]:
        """Return the judgments and the runs; for records, which have both, the records and None."""
        if not self.runs:
            return rankgauge.Records.of(self.qrels), [None]
        truth = rankgauge.read_qrels(self.qrels, format=self.qrels_format)
        return truth, read_runs(self.runs, self.run_format)


def print_reports(
    options: Sequence[str],
    sources: Sources,
    measures: Sequence[str] | None,
    policies: Mapping[str, Any],
    *,
    format: str,
    per_query: bool,
    excluded: Mapping[str, object],
) -> None:
    """Print reports of each run instead of its evaluation.

    Args:
        options: The options that ask for them: ``--tie-report``, ``--unjudged-report``.
        sources: What they are made of.
        measures: The measures.
        policies: All policies; each report uses its own.
        format: The output format.
        per_query: Whether to show each query.
        excluded: Options that are for an evaluation, and whether they were given.
    """
    for option in options:
        others = dict(excluded)
        if option == "--unjudged-report":
            others["--unjudged removed"] = policies["unjudged"] == "removed"
            others["a file of records"] = not sources.runs
        for other, given in others.items():
            if given:
                raise click.UsageError(f"{other} is not for {option}: omit one of them")
    with working(f"reading {sources.qrels}"):
        truth, runs = sources.read()
    for option in options:
        name, own = _REPORTS[option]
        chosen = {word: policies[word] for word in own}
        found = []
        for place, run in enumerate(runs, start=1):
            shown = sources.qrels if run is None else run.name
            with working(f"evaluating {shown} ({place} of {len(runs)})"):
                found.append(getattr(rankgauge, name)(truth, run, measures, **chosen))
        print_result(found, format, rankgauge.reports.Options(per_query=per_query))
        for note in (note for one in found for note in one.table().notes):
            # CSV has no notes, but warnings must always be visible.
            if format == "csv" or (format == "json" and "WARNING" in note):
                print_message(note)

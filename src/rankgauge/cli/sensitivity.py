"""``rankgauge sensitivity``: the effect of ties and of unjudged documents on an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

import rankgauge
from rankgauge.cli import options
from rankgauge.cli.inputs import read_runs
from rankgauge.cli.output import Output, working
from rankgauge.cli.parameters import Group, argument, declare, option


@dataclass(frozen=True, kw_only=True)
class _Runs:
    """Runs, and how to report on each of them."""

    qrels: str
    runs: tuple[str, ...] = argument("[RUN]...")
    measures: tuple[str, ...] = options.measures(
        "A measure; for more, repeat it or use commas.  [default: those of rankgauge evaluate]"
    )
    formats: options.Formats
    out: Output

    def print(
        self, report: Callable[..., Any], how: dict[str, Any], shown: rankgauge.reports.Options | None = None
    ) -> None:
        """Print the report of each run."""
        with working(f"reading {self.qrels}"):
            # Records contain both judgments and a ranking.
            truth: Any = self.formats.read_qrels(self.qrels) if self.runs else rankgauge.Records.of(self.qrels)
            runs = read_runs(self.runs, self.formats.run_format) if self.runs else [None]
        found = []
        for place, run in enumerate(runs, start=1):
            name = self.qrels if run is None else run.name
            with working(f"evaluating {name} ({place} of {len(runs)})"):
                found.append(report(truth, run, self.measures or None, **how))
        self.out.print(found, shown)
        self.out.print_notes(note for one in found for note in one.table().notes)


@click.group(cls=Group, short_help="Show the effect of ties and of unjudged documents.")
def sensitivity() -> None:
    """Show how much the values of runs depend on ties or on unjudged documents.

    \b
    Examples:
      rankgauge sensitivity ties qrels.txt bm25.run
      rankgauge sensitivity unjudged qrels.txt bm25.run -m nDCG@10
    """


@sensitivity.command(short_help="Show the range of each measure over orders of tied documents.")
def ties(
    *,
    runs: _Runs,
    per_query: bool = option("Show the values for each query."),
    policies: options.Policies = declare(unjudged=""),
) -> None:
    """Show the range of each measure over all orders of tied documents.

    QRELS and RUN are those of rankgauge evaluate; without RUN, QRELS is a file of records.

    \b
    Examples:
      rankgauge sensitivity ties qrels.txt bm25.run
      rankgauge sensitivity ties qrels.txt bm25.run -m nDCG@10 --per-query --as csv
    """
    how = policies.keywords("ties", "queries", "duplicates", "undefined")
    runs.print(rankgauge.tie_report, how, rankgauge.reports.Options(per_query=per_query))


@sensitivity.command(short_help="Show the range of each measure over unjudged documents.")
def unjudged(
    *, runs: _Runs = declare(runs=argument("RUN...")), policies: options.Policies = declare(undefined="", unjudged="")
) -> None:
    """Show each measure with none or all of the unjudged documents relevant, and without them.

    nDCG is also estimated with random grades.

    \b
    Examples:
      rankgauge sensitivity unjudged qrels.txt bm25.run -m nDCG@10
    """
    runs.print(rankgauge.unjudged_report, policies.keywords("ties", "queries", "duplicates"))

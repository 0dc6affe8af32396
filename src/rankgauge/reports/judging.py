"""Results of a judging project as text: short, or everything."""

from __future__ import annotations

from collections.abc import Iterator

from rankgauge.judging import JudgingAgreement, ProjectStatus, Relevance, VoteReport
from rankgauge.rendering.tables import Table
from rankgauge.reports.registry import Options, Report


def _blocks(
    found: JudgingAgreement | ProjectStatus | Relevance | VoteReport, _: str, options: Options
) -> Iterator[Table]:
    yield found.table(full=options.full)


REPORTS = dict.fromkeys((JudgingAgreement, ProjectStatus, Relevance, VoteReport), Report(_blocks))

"""Results of logs, as text."""

from __future__ import annotations

from rankgauge.production import ImplicitJudgments, OnlineMetrics
from rankgauge.rendering.tables import Table
from rankgauge.reports.registry import Options, Report


def _online(found: OnlineMetrics, _format: str, options: Options) -> list[Table]:
    return [found.table(full=options.full)]


def _judgments(found: ImplicitJudgments, _format: str, options: Options) -> list[Table]:
    return [found.table(), *([found.rank_table()] if options.full else [])]


REPORTS = {ImplicitJudgments: Report(_judgments), OnlineMetrics: Report(_online)}

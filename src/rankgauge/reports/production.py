"""Results of logs as text: short, or with everything."""

from __future__ import annotations

from rankgauge.production import ImplicitJudgments, OnlineMetrics, ProductionHealth
from rankgauge.rendering.tables import Table
from rankgauge.reports.registry import Options, Report


def _blocks(found: OnlineMetrics | ProductionHealth, _format: str, options: Options) -> list[Table]:
    return [found.table(full=options.full)]


def _judgments(found: ImplicitJudgments, _format: str, options: Options) -> list[Table]:
    return [found.table(), *([found.rank_table()] if options.full else [])]


REPORTS = {
    ImplicitJudgments: Report(_judgments),
    OnlineMetrics: Report(_blocks),
    ProductionHealth: Report(_blocks),
}

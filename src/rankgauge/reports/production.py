"""Results of logs as text: short, or with everything."""

from __future__ import annotations

from rankgauge.production import (
    ExperimentResult,
    ImplicitJudgments,
    OnlineMetrics,
    ProductionHealth,
)
from rankgauge.rendering.tables import Table
from rankgauge.reports.registry import Options, Report


def _blocks(found: OnlineMetrics | ProductionHealth, _format: str, options: Options) -> list[Table]:
    return [found.table(full=options.full)]


def _judgments(found: ImplicitJudgments, _format: str, options: Options) -> list[Table]:
    return [found.table(), *([found.rank_table()] if options.full else [])]


def _experiment(found: ExperimentResult, _format: str, options: Options) -> list[Table]:
    return [found.table(full=options.full), *([found.day_table()] if options.full else [])]


REPORTS = {
    ExperimentResult: Report(_experiment),
    ImplicitJudgments: Report(_judgments),
    OnlineMetrics: Report(_blocks),
    ProductionHealth: Report(_blocks),
}

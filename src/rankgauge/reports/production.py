"""Metrics of a log, and evaluations beside them, as text: short, or with everything."""

from __future__ import annotations

from rankgauge.production import OnlineMetrics, ProductionHealth
from rankgauge.rendering.tables import Table
from rankgauge.reports.registry import Options, Report


def _blocks(found: OnlineMetrics | ProductionHealth, _format: str, options: Options) -> list[Table]:
    return [found.table(full=options.full)]


REPORTS = {OnlineMetrics: Report(_blocks), ProductionHealth: Report(_blocks)}

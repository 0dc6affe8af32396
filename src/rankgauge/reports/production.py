"""Metrics of a log, as text: short, or with all definitions."""

from __future__ import annotations

from rankgauge.production import OnlineMetrics
from rankgauge.rendering.tables import Table
from rankgauge.reports.registry import Options, Report


def _online(found: OnlineMetrics, _format: str, options: Options) -> list[Table]:
    return [found.table(full=options.full)]


REPORTS = {OnlineMetrics: Report(_online)}

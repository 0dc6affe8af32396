"""Evaluations over time: a store that saves, compares, and tracks them."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.history.comparison import HistoryComparison as HistoryComparison
    from rankgauge.history.entries import HistoryEntries as HistoryEntries, HistoryEntry as HistoryEntry
    from rankgauge.history.history import History as History
    from rankgauge.history.trend import Trend as Trend, TrendPoint as TrendPoint

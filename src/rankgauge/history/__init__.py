"""Evaluations over time: a store that saves, compares, and tracks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.history.comparison import (
        HistoryComparison as HistoryComparison,
    )
    from rankgauge.history.entries import (
        HistoryEntries as HistoryEntries,
        HistoryEntry as HistoryEntry,
    )
    from rankgauge.history.history import (
        History as History,
    )
    from rankgauge.history.trend import (
        Trend as Trend,
        TrendPoint as TrendPoint,
    )

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "comparison": "HistoryComparison",
        "entries": "HistoryEntries HistoryEntry",
        "history": "History",
        "trend": "Trend TrendPoint",
    },
)

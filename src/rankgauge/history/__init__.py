"""Evaluations over time: a store that saves, compares, and tracks them."""

from rankgauge.history.comparison import HistoryComparison
from rankgauge.history.entries import HistoryEntries, HistoryEntry
from rankgauge.history.history import History
from rankgauge.history.trend import Trend, TrendPoint

__all__ = ["History", "HistoryComparison", "HistoryEntries", "HistoryEntry", "Trend", "TrendPoint"]

"""``compare()`` and ``diff()``: significance of differences between runs, and changed queries."""

from rankgauge.comparison.comparison import Comparison, compare
from rankgauge.comparison.differences import Design, Difference
from rankgauge.comparison.overlap import Overlap, rbo
from rankgauge.comparison.run_diff import DocumentDiff, QueryDiff, RunDiff, diff

__all__ = [
    "Comparison",
    "Design",
    "Difference",
    "DocumentDiff",
    "Overlap",
    "QueryDiff",
    "RunDiff",
    "compare",
    "diff",
    "rbo",
]

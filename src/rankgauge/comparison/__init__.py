"""``compare()`` and ``diff()``: significance of differences between runs, and changed queries."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.comparison.comparison import Comparison as Comparison, compare as compare
    from rankgauge.comparison.deciding import (
        DecidingDocument as DecidingDocument,
        DecidingDocuments as DecidingDocuments,
        deciding_documents as deciding_documents,
    )
    from rankgauge.comparison.differences import Design as Design, Difference as Difference
    from rankgauge.comparison.overlap import Overlap as Overlap, rbo as rbo
    from rankgauge.comparison.run_diff import (
        DocumentDiff as DocumentDiff,
        QueryDiff as QueryDiff,
        RunDiff as RunDiff,
        diff as diff,
    )
    from rankgauge.comparison.trend import Trend as Trend, TrendPoint as TrendPoint, trend_of as trend_of

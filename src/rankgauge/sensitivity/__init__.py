"""Sensitivity of results to ties, unjudged documents, and the pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.sensitivity.pool_reliability import (
        LeftOut as LeftOut,
        Reliability as Reliability,
        reliability as reliability,
    )
    from rankgauge.sensitivity.tie_sensitivity import (
        TieReport as TieReport,
        TieSpan as TieSpan,
        tie_report as tie_report,
    )
    from rankgauge.sensitivity.unjudged import (
        Bootstrapped as Bootstrapped,
        Drawing as Drawing,
        UnjudgedReport as UnjudgedReport,
        unjudged_report as unjudged_report,
    )

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "pool_reliability": "LeftOut Reliability reliability",
        "tie_sensitivity": "TieReport TieSpan tie_report",
        "unjudged": "Bootstrapped Drawing UnjudgedReport unjudged_report",
    },
)

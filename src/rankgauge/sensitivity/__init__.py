"""Sensitivity of results to ties, unjudged documents, and the pool."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
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

"""Sensitivity of results to ties, unjudged documents, and the pool."""

from rankgauge.sensitivity.pool_reliability import LeftOut, Reliability, reliability
from rankgauge.sensitivity.tie_sensitivity import TieReport, TieSpan, tie_report
from rankgauge.sensitivity.unjudged import Bootstrapped, Drawing, UnjudgedReport, unjudged_report

__all__ = [
    "Bootstrapped", "Drawing", "LeftOut", "Reliability", "TieReport", "TieSpan", "UnjudgedReport",
    "reliability", "tie_report", "unjudged_report",
]  # fmt: skip

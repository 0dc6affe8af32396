"""Where a number comes from, worked out by hand; and why two numbers differ."""

from rankgauge.explanation.explanation import Explanation, Other, explain
from rankgauge.explanation.given_values import GivenValues
from rankgauge.explanation.listing import Listed, Listing
from rankgauge.explanation.reconciliation import (
    Contribution,
    Moved,
    Reconciliation,
    Target,
    reconcile,
)
from rankgauge.explanation.reproduction import Fit, Reproduction, reproduce
from rankgauge.explanation.working import IdealRow, Worked, Working

__all__ = [
    "Contribution",
    "Explanation",
    "Fit",
    "GivenValues",
    "IdealRow",
    "Listed",
    "Listing",
    "Moved",
    "Other",
    "Reconciliation",
    "Reproduction",
    "Target",
    "Worked",
    "Working",
    "explain",
    "reconcile",
    "reproduce",
]

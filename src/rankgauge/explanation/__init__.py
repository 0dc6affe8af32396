"""Step-by-step explanations of a value and of the difference between two values."""

from rankgauge.explanation.calculation import Calculation, IdealDocument, RankedDocument, RankedQuery, Step
from rankgauge.explanation.explanation import Explanation, RelatedQuery, explain
from rankgauge.explanation.given_values import GivenValues
from rankgauge.explanation.reconciliation import Contribution, QueryChange, Reconciliation, Target, reconcile
from rankgauge.explanation.reproduction import Fit, Reproduction, reproduce

__all__ = [
    "Calculation",
    "Contribution",
    "Explanation",
    "Fit",
    "GivenValues",
    "IdealDocument",
    "QueryChange",
    "RankedDocument",
    "RankedQuery",
    "Reconciliation",
    "RelatedQuery",
    "Reproduction",
    "Step",
    "Target",
    "explain",
    "reconcile",
    "reproduce",
]

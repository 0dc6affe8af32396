"""Release gates: whether a run may replace the previous one, by rules set in advance."""

from rankgauge.gates.baseline import Baseline, BaselineQuery, Noise
from rankgauge.gates.non_inferiority import untestable_margins
from rankgauge.gates.release_gate import gate
from rankgauge.gates.result import GateCheck, GateNumbers, GateResult, QueryLoss
from rankgauge.gates.rules import Contract, GatedMeasure, GateRules

__all__ = [
    "Baseline",
    "BaselineQuery",
    "Contract",
    "GateCheck",
    "GateNumbers",
    "GateResult",
    "GateRules",
    "GatedMeasure",
    "Noise",
    "QueryLoss",
    "gate",
    "untestable_margins",
]

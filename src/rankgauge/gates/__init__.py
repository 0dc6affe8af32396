"""Release gates: whether a run may replace the previous one, by rules set in advance."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.gates.baseline import Baseline as Baseline, BaselineQuery as BaselineQuery, Noise as Noise
    from rankgauge.gates.non_inferiority import untestable_margins as untestable_margins
    from rankgauge.gates.release_gate import gate as gate, update_baseline as update_baseline
    from rankgauge.gates.result import (
        GateCheck as GateCheck,
        GateNumbers as GateNumbers,
        GateResult as GateResult,
        QueryLoss as QueryLoss,
        values_fingerprint as values_fingerprint,
    )
    from rankgauge.gates.rules import Contract as Contract, GatedMeasure as GatedMeasure, GateRules as GateRules

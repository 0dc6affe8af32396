"""Diagnosis of a run: quality bands, likely causes, suggested fixes, and their potential gains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.diagnosis.causes import (
        CAUSES as CAUSES,
        Cause as Cause,
        CauseTotal as CauseTotal,
        Missed as Missed,
        QueryDiagnosis as QueryDiagnosis,
    )
    from rankgauge.diagnosis.diagnosis import (
        Diagnosis as Diagnosis,
        diagnose as diagnose,
    )
    from rankgauge.diagnosis.fixes import (
        PrecisionRecall as PrecisionRecall,
        SuggestedFix as SuggestedFix,
    )
    from rankgauge.diagnosis.gains import (
        CutOff as CutOff,
        PotentialGain as PotentialGain,
        Sweep as Sweep,
        Threshold as Threshold,
    )
    from rankgauge.diagnosis.quality import (
        Band as Band,
        Bands as Bands,
        Quality as Quality,
    )
    from rankgauge.diagnosis.slices import (
        Difficulty as Difficulty,
        Slice as Slice,
    )

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "causes": "CAUSES Cause CauseTotal Missed QueryDiagnosis",
        "diagnosis": "Diagnosis diagnose",
        "fixes": "PrecisionRecall SuggestedFix",
        "gains": "CutOff PotentialGain Sweep Threshold",
        "quality": "Band Bands Quality",
        "slices": "Difficulty Slice",
    },
)

"""Diagnosis of a run: quality bands, likely causes, suggested fixes, and their potential gains."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.diagnosis.causes import (
        CAUSES as CAUSES,
        Cause as Cause,
        CauseTotal as CauseTotal,
        Gain as Gain,
        Missed as Missed,
        QueryDiagnosis as QueryDiagnosis,
    )
    from rankgauge.diagnosis.diagnosis import Diagnosis as Diagnosis, diagnose as diagnose
    from rankgauge.diagnosis.fixes import PrecisionRecall as PrecisionRecall, SuggestedFix as SuggestedFix
    from rankgauge.diagnosis.gains import (
        CutOff as CutOff,
        PotentialGain as PotentialGain,
        Sweep as Sweep,
        Threshold as Threshold,
    )
    from rankgauge.diagnosis.quality import (
        Band as Band,
        Bands as Bands,
        Difficulty as Difficulty,
        Quality as Quality,
        Slice as Slice,
    )

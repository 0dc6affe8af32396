"""Diagnosis of a run: quality bands, likely causes, suggested fixes, and their potential gains."""

from rankgauge.diagnosis.causes import CAUSES, Cause, CauseTotal, Missed, QueryDiagnosis
from rankgauge.diagnosis.diagnosis import Diagnosis, diagnose
from rankgauge.diagnosis.fixes import PrecisionRecall, SuggestedFix
from rankgauge.diagnosis.gains import CutOff, PotentialGain, Sweep, Threshold
from rankgauge.diagnosis.quality import Band, Bands, Quality
from rankgauge.diagnosis.slices import Difficulty, Slice

__all__ = [
    "CAUSES",
    "Band",
    "Bands",
    "Cause",
    "CauseTotal",
    "CutOff",
    "Diagnosis",
    "Difficulty",
    "Missed",
    "PotentialGain",
    "PrecisionRecall",
    "Quality",
    "QueryDiagnosis",
    "Slice",
    "SuggestedFix",
    "Sweep",
    "Threshold",
    "diagnose",
]

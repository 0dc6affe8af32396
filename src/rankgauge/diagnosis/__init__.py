"""Why a run is as it is: bands, causes with their evidence, and what cures could gain."""

from rankgauge.diagnosis.bands import Band, Bands
from rankgauge.diagnosis.causes import CAUSES, Cause, CauseTotal, Missed, QueryDiagnosis
from rankgauge.diagnosis.cures import Cure, Quality, Reading
from rankgauge.diagnosis.diagnosis import Diagnosis, diagnose
from rankgauge.diagnosis.potential import CutOff, Potential, Sweep, Threshold
from rankgauge.diagnosis.slices import Difficulty, Slice

__all__ = [
    "CAUSES",
    "Band",
    "Bands",
    "Cause",
    "CauseTotal",
    "Cure",
    "CutOff",
    "Diagnosis",
    "Difficulty",
    "Missed",
    "Potential",
    "Quality",
    "QueryDiagnosis",
    "Reading",
    "Slice",
    "Sweep",
    "Threshold",
    "diagnose",
]

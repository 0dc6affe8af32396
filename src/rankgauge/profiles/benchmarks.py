"""BEIR and MTEB: pytrec_eval for most, and loops of their own for the rest."""

from __future__ import annotations

from rankgauge.kernels.measure import Measure
from rankgauge.profiles.deviations import Deviation, Profile
from rankgauge.profiles.offered import Offer
from rankgauge.profiles.steps import INPUT_TIES, NO_SELF, RUN_QUERIES_ONLY, SINGLE_PRECISION

__all__ = ["BEIR", "MTEB"]

_CUT = {**dict.fromkeys(("nDCG", "AP", "R", "P", "RR", "Success"), "k!")}
_NEAR = {"Judged": "its Hole@k counts a document as judged if it is for any query"}
_BEIR = Offer("BEIR", {**_CUT, "RelP": "k!"}, _NEAR)
_MTEB = Offer("MTEB", _CUT, _NEAR)
_OWN_LOOPS = {"RR", "RelP", "Success"}


def _beir(measure: Measure) -> tuple[Deviation, ...]:
    _BEIR.check(measure)
    if measure.name in _OWN_LOOPS:
        return NO_SELF, INPUT_TIES
    return NO_SELF, SINGLE_PRECISION, RUN_QUERIES_ONLY


def _mteb(measure: Measure) -> tuple[Deviation, ...]:
    _MTEB.check(measure)
    if measure.name == "RR":
        return (RUN_QUERIES_ONLY,)
    return SINGLE_PRECISION, RUN_QUERIES_ONLY


BEIR = Profile(
    "beir",
    "beir 2.2",
    _beir,
    digits=5,
    beware="MRR and Accuracy are computed after evaluate(), which removes self-retrieval from the "
    "results it is given",
)
MTEB = Profile(
    "mteb",
    "mteb 2",
    _mteb,
    digits=5,
    unrounded=("RR",),
    beware="for tasks that ignore identical ids, remove them first; MRR is not rounded",
)

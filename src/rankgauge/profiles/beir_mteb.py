"""BEIR and MTEB: pytrec_eval for most, and loops of their own for the rest."""

from __future__ import annotations

from rankgauge.measures.measure import Measure
from rankgauge.profiles.deviations import Deviation, Offer, Profile
from rankgauge.profiles.steps import (
    INPUT_TIES,
    NO_FIRST,
    NO_SELF,
    RUN_QUERIES_ONLY,
    SINGLE_PRECISION,
    UNDEFINED_LEFT_OUT,
)

__all__ = ["BEIR", "MTEB", "MTEB_IGNORE_IDENTICAL_IDS", "MTEB_SKIP_FIRST_RESULT"]

_CUT = {**dict.fromkeys(("nDCG", "AP", "R", "P", "RR", "Success"), "k!")}
_ANY_QUERY = "its Hole@k takes a document for judged if it was judged for any query at all"
_NEAR = {"Judged": _ANY_QUERY}
_BEYOND = {"Unjudged": _ANY_QUERY}
_WORDS = {**_CUT, "RelP": "k!"}
_BEIR = Offer("BEIR", _WORDS, _NEAR, _BEYOND)
_MTEB = Offer("MTEB", _WORDS, _NEAR, _BEYOND)
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
    if measure.name == "RelP":
        return RUN_QUERIES_ONLY, UNDEFINED_LEFT_OUT
    return SINGLE_PRECISION, RUN_QUERIES_ONLY


def _mteb_ignoring_identical_ids(measure: Measure) -> tuple[Deviation, ...]:
    return NO_SELF, *_mteb(measure)


def _mteb_skipping_the_first(measure: Measure) -> tuple[Deviation, ...]:
    # R_cap is computed by tasks, of the results as they were.
    return _mteb(measure) if measure.name == "RelP" else (NO_FIRST, *_mteb(measure))


BEIR = Profile(
    "beir",
    "beir 2.2",
    _beir,
    digits=5,
    beware="MRR and Accuracy are computed after evaluate(), which removes self-retrieval from the "
    "results it is given",
)
_BEWARE = "MRR and R_cap are not rounded, and R_cap is computed by the tasks of LMEB only"
_VARIANTS = (
    "some tasks ignore identical ids or skip the first result: see the profiles of these names"
)
MTEB, MTEB_IGNORE_IDENTICAL_IDS, MTEB_SKIP_FIRST_RESULT = (
    Profile(name, "mteb 2", deviations, digits=5, unrounded=("RR", "RelP"), beware=beware)
    for name, deviations, beware in (
        ("mteb", _mteb, f"{_BEWARE}; {_VARIANTS}"),
        ("mteb-ignore-identical-ids", _mteb_ignoring_identical_ids, _BEWARE),
        ("mteb-skip-first-result", _mteb_skipping_the_first, _BEWARE),
    )
)

"""BEIR and MTEB: pytrec_eval for most measures, custom loops for the others."""

from __future__ import annotations

from rankgauge.measures.measure import Measure
from rankgauge.profiles.deviations import Deviation, Offer, Profile
from rankgauge.profiles.shared_deviations import (
    INPUT_TIES,
    NO_FIRST,
    NO_SELF,
    RUN_QUERIES_ONLY,
    SINGLE_PRECISION,
    UNDEFINED_LEFT_OUT,
)

_WORDS = dict.fromkeys(("nDCG", "AP", "R", "P", "RR", "Success", "RelP"), "k!")
_ANY_QUERY = "its Hole@k counts a document as judged if it was judged for any query"


def _offer(tool: str) -> Offer:
    return Offer(tool, _WORDS, {"Judged": _ANY_QUERY}, {"Unjudged": _ANY_QUERY})


def _beir(measure: Measure) -> tuple[Deviation, ...]:
    if measure.name in {"RR", "RelP", "Success"}:  # computed by custom loops
        return NO_SELF, INPUT_TIES
    return NO_SELF, SINGLE_PRECISION, RUN_QUERIES_ONLY


def _mteb(measure: Measure) -> tuple[Deviation, ...]:
    if measure.name == "RR":
        return (RUN_QUERIES_ONLY,)
    if measure.name == "RelP":
        return RUN_QUERIES_ONLY, UNDEFINED_LEFT_OUT
    return SINGLE_PRECISION, RUN_QUERIES_ONLY


def _mteb_skipping_the_first(measure: Measure) -> tuple[Deviation, ...]:
    # R_cap is computed by tasks from the original results.
    return _mteb(measure) if measure.name == "RelP" else (NO_FIRST, *_mteb(measure))


BEIR = Profile(
    "beir",
    "beir 2.2",
    _beir,
    _offer("BEIR"),
    digits=5,
    beware="MRR and Accuracy are computed after evaluate(), which removes self-retrieval from the results it is given",
)
_BEWARE = "MRR and R_cap are not rounded, and R_cap is computed by the tasks of LMEB only"
_VARIANTS = "some tasks ignore identical ids or skip the first result: see the profiles of these names"
MTEB, MTEB_IGNORE_IDENTICAL_IDS, MTEB_SKIP_FIRST_RESULT = (
    Profile(name, "mteb 2", steps, _offer("MTEB"), 5, ("RR", "RelP"), beware)
    for name, steps, beware in (
        ("mteb", _mteb, f"{_BEWARE}; {_VARIANTS}"),
        ("mteb-ignore-identical-ids", lambda measure: (NO_SELF, *_mteb(measure)), _BEWARE),
        ("mteb-skip-first-result", _mteb_skipping_the_first, _BEWARE),
    )
)

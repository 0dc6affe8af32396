"""ir_measures: the first provider that supports a measure computes it; tie policies differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rankgauge.errors import UnknownName
from rankgauge.measures.measure import Measure
from rankgauge.profiles.deviations import Deviation, Offer, Profile
from rankgauge.profiles.shared_deviations import (
    ASCENDING_IDS,
    INPUT_TIES,
    RANKED_QUERIES_JUDGED,
    RUN_QUERIES_ONLY,
    SINGLE_PRECISION,
    UNDEFINED_LEFT_OUT,
    clipped,
    rewritten,
)
from rankgauge.profiles.trec import of_trec_eval

_DEPTH = 1000
# From this persistence on, documents below rank 1000 affect the value noticeably.
_MOST_PATIENT = 0.97
_ALL = "rel judged_only"
_WITH_TOP = {
    **{name: f"{name}(top=3)@10" for name in ("SDCG", "BPM", "NERR8", "NERR9")},
    **{name: f"{name}(top=3)" for name in ("INST", "INSQ", "NERR10", "NERR11")},
}
_OF_SUBTOPICS = ("alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall")
_OFFER = Offer(
    "ir_measures",
    {
        **dict.fromkeys(("P", "R", "Success"), f"k! {_ALL}"),
        **dict.fromkeys(("Rprec", "SetP", "SetAP"), _ALL),
        "RR": f"k {_ALL}",
        "AP": f"k {_ALL}",
        "nDCG": "k gain judged_only",
        "SetR": "rel",
        "SetRelP": _ALL,
        "SetF": f"beta {_ALL}",
        "IPrec": f"recall! {_ALL}",
        "Bpref": "rel",
        "infAP": "rel",
        "NumRet": "",
        "NumRel": "",
        "NumRelRet": "rel",
        "RBP": "p rel",
        "ERR": "k! top",
        "Judged": "k",
        "PairAcc": "k rel among",
        **dict.fromkeys(("SDCG", "NERR8", "NERR9"), "k! top!"),
        "BPM": "k! goal top!",
        "NERR10": "p top!",
        **dict.fromkeys(("INST", "INSQ", "NERR11"), "goal top!"),
    },
    {
        "F": "it has SetF, and P@k and R@k side by side",
        "DCG": "it has nDCG and nDCG@k",
        "GMAP": "it has AP; geometric means are in the profile trec_eval-9",
        "RBP": "use RBP(p=0.8), without a cut-off",
        **{name: f"set the top of the scale, as in {said}" for name, said in _WITH_TOP.items()},
    },
    {
        **dict.fromkeys(_OF_SUBTOPICS, "profiles read judgments without subtopics"),
        "Compat": "it evaluates to the depth of the longer list of each query, with score 0 for "
        "documents not "
        "retrieved",
    },
)


def _deviations(measure: Measure) -> tuple[Deviation, ...]:
    bound = dict(measure.params)
    if measure.name in _OF_THEIR_OWN:
        return _OF_THEIR_OWN[measure.name](measure)
    if measure.name == "Judged" or (measure.name == "RR" and "k" in bound):
        if bound.get("judged_only"):
            raise UnknownName(f"ir_measures has no {measure}", fix="use it without a cut-off, or without judged_only")
        return (ASCENDING_IDS,)
    if measure.name == "ERR" or bound.get("gain") == "exp":
        return _of_gdeval(measure)
    if measure.name == "NumRel":
        return (RANKED_QUERIES_JUDGED,)
    if measure.name == "IPrec":
        return SINGLE_PRECISION, *_two_decimals(measure)
    return SINGLE_PRECISION, *of_trec_eval(measure)


def _of_cwl(measure: Measure) -> tuple[Deviation, ...]:
    if measure.p > _MOST_PATIENT:  # type: ignore[operator] # p is a number
        raise UnknownName(
            f"{measure} cannot be reproduced: cwl_eval scales it as if there were no ranks below {_DEPTH}",
            fix=f"use p up to {_MOST_PATIENT}",
        )
    return (INPUT_TIES, rewritten(f"the first {_DEPTH}", f"cwl_eval evaluates only the first {_DEPTH} ranks", k=_DEPTH))


def _of_a_reader(measure: Measure) -> tuple[Deviation, ...]:
    """Return the deviations of cwl_eval for user models based on grades with a stated maximum."""
    if measure.k is not None and measure.k > _DEPTH:  # type: ignore[operator] # k is a number
        raise UnknownName(
            f"{measure} cannot be reproduced: cwl_eval evaluates only the first {_DEPTH} ranks",
            fix=f"use k up to {_DEPTH}",
        )
    return clipped(float(measure.top)), INPUT_TIES  # type: ignore[arg-type] # a number


def _accuracy(measure: Measure) -> tuple[Deviation, ...]:
    known = (RUN_QUERIES_ONLY, UNDEFINED_LEFT_OUT)
    if measure.among == "retrieved":
        return INPUT_TIES, *known
    why = "pairs have only retrieved documents; unjudged documents are not relevant"
    return INPUT_TIES, rewritten("pairs of the retrieved", why, among="retrieved"), *known


def _of_gdeval(measure: Measure) -> tuple[Deviation, ...]:
    """Return the deviations of gdeval, which has 64-bit scores and our order of ties."""
    if "k" not in dict(measure.params) or dict(measure.params).get("judged_only"):
        raise UnknownName(
            f"ir_measures has no {measure}", fix=f"use {measure.name} with a cut-off, among all judged documents"
        )
    if measure.name == "ERR" and measure.top != 4:
        return (rewritten("top grade 4", "gdeval assumes a maximum grade of 4", top=4),)
    return ()


_OF_THEIR_OWN: Mapping[str, Callable[[Measure], tuple[Deviation, ...]]] = {
    "RBP": _of_cwl,
    "PairAcc": _accuracy,
    **dict.fromkeys(_WITH_TOP, _of_a_reader),
}


def _two_decimals(measure: Measure) -> tuple[Deviation, ...]:
    rounded = float(f"{measure.recall:.2f}")
    if rounded == measure.recall:
        return ()
    why = "recall levels are passed with two decimals"
    return (rewritten("two decimals", why, recall=rounded),)


IR_MEASURES = Profile(
    "ir_measures",
    "ir_measures 0.4",
    _deviations,
    _OFFER,
    beware="with pytrec_eval, cwl_eval, and Perl installed, and integer grades; values of ERR and "
    "of nDCG "
    "with exponential gain have five decimals there",
)

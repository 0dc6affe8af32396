"""trec_eval and its Python bindings."""

from __future__ import annotations

import math

from rankgauge.measures.measure import Measure
from rankgauge.profiles.deviations import Deviation, Offer, Profile
from rankgauge.profiles.shared_deviations import RUN_QUERIES_ONLY, SINGLE_PRECISION, WHOLE_GRADES, rewritten

_WORDS = {
    **dict.fromkeys(("P", "R", "RelP", "Success"), "k! rel judged_only"),
    **dict.fromkeys(("RR", "Rprec", "SetP", "SetR", "SetAP", "SetRelP", "GMAP", "IPrecAvg", "binG"), "rel judged_only"),
    "AP": "k rel judged_only",
    "nDCG": "k judged_only",
    "SetF": "beta rel judged_only",
    "IPrec": "recall! rel judged_only",
    "RprecMult": "mult! rel judged_only",
    **dict.fromkeys(("G", "RnDCG", "nDCGrel"), "judged_only"),
    **dict.fromkeys(("Bpref", "GMBpref", "infAP", "NumNonrelRet"), "rel"),
    **dict.fromkeys(("NumRet", "NumRel"), ""),
    "NumRelRet": "rel",
    "Utility": "hit noise miss rel judged_only",
}
_NEAR = {
    "RR": "it has RR without a cut-off, and P@k",
    "F": "it has SetF, and P@k and R@k side by side",
    "DCG": "it has nDCG and nDCG@k",
    "FirstRel": "it has RR, which is 1 divided by that rank",
    "Judged": "version 10 has unj_k, the unjudged; the profile ir_measures has Judged@k",
}
_PYTREC_EVAL = Offer(
    "pytrec_eval",
    # Parameters other than the defaults are ignored, and the value is then 0.
    {**_WORDS, "Utility": "rel judged_only"},
    {**_NEAR, "Utility": "other values than the defaults are not supported there: use Utility"},
)
_TREC_EVAL_10 = Offer(
    "trec_eval 10",
    {**_WORDS, "Unjudged": "k!", "YAAP": "rel judged_only"},
    _NEAR,
    {"RBP": "it reads uninitialized memory"},
)


def of_trec_eval(measure: Measure) -> tuple[Deviation, ...]:
    """Return how measures of trec_eval up to version 9 differ from ours with the same name."""
    if measure.name == "SetF" and measure.beta != 1:
        why = "set_F weights recall by beta instead of its square"
        root = math.sqrt(measure.beta)  # type: ignore[arg-type] # beta is a number
        return (rewritten("beta is not squared", why, beta=root),)
    return ()


def _pytrec_eval(measure: Measure) -> tuple[Deviation, ...]:
    return SINGLE_PRECISION, *of_trec_eval(measure), RUN_QUERIES_ONLY


def _trec_eval_10(measure: Measure) -> tuple[Deviation, ...]:
    if measure.name not in {"IPrec", "IPrecAvg"}:
        return WHOLE_GRADES, *of_trec_eval(measure)
    why = (
        "the number of relevant documents at a recall level is rounded to the nearest integer, "
        "not up: precision may be taken at a lower recall"
    )
    return WHOLE_GRADES, rewritten("recall points rounded", why, points="nearest")


PYTREC_EVAL = Profile(
    "pytrec_eval", "pytrec_eval-terrier 0.5", _pytrec_eval, _PYTREC_EVAL, beware="it accepts only integer grades"
)
TREC_EVAL_9 = Profile(
    "trec_eval-9",
    "trec_eval 9.0",
    lambda measure: (WHOLE_GRADES, *_pytrec_eval(measure)),
    Offer("trec_eval 9", _WORDS, _NEAR),
    beware="without its option -c",
)
TREC_EVAL_10 = Profile(
    "trec_eval-10",
    "trec_eval 10.0",
    _trec_eval_10,
    _TREC_EVAL_10,
    beware="with its option -c: without it, version 10 stops if a judged query is not in the run",
)

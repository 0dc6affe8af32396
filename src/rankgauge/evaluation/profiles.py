"""Profiles of other tools: how each of them deviates from our computation, and its measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation.profile_deviations import (
    AS_GIVEN,
    ASCENDING_IDS,
    BINARY_GRADES,
    EXPECTED_TIES,
    INPUT_TIES,
    NEGATIVES_JUDGED,
    NO_FIRST,
    NO_SELF,
    POSITIVE_SCORES,
    POSITIVE_SCORES_COUNT,
    RANKED_QUERIES_JUDGED,
    RELEVANT_QUERIES,
    RETRIEVED_ONLY,
    RUN_QUERIES_ONLY,
    SINGLE_PRECISION,
    UNDEFINED_LEFT_OUT,
    WHOLE_GRADES,
    Case,
    Deviation,
    Offer,
    Profile,
    clipped,
    rewritten,
)
from rankgauge.measures.measure import Measure

# ---- trec_eval and its Python bindings

_TREC_EVAL = {
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
_NEAR_TREC_EVAL = {
    "RR": "it has RR without a cut-off, and P@k",
    "F": "it has SetF, and P@k and R@k side by side",
    "DCG": "it has nDCG and nDCG@k",
    "FirstRel": "it has RR, which is 1 divided by that rank",
    "Judged": "version 10 has unj_k, the unjudged; the profile ir_measures has Judged@k",
}
_PYTREC_EVAL = Offer(
    "pytrec_eval",
    # Parameters other than the defaults are ignored, and the value is then 0.
    {**_TREC_EVAL, "Utility": "rel judged_only"},
    {**_NEAR_TREC_EVAL, "Utility": "other values than the defaults are not supported there: use Utility"},
)
_TREC_EVAL_10 = Offer(
    "trec_eval 10",
    {**_TREC_EVAL, "Unjudged": "k!", "YAAP": "rel judged_only"},
    _NEAR_TREC_EVAL,
    {"RBP": "it reads uninitialized memory"},
)


def _trec_eval_9(measure: Measure) -> tuple[Deviation, ...]:
    """Return how measures of trec_eval up to version 9 differ from ours with the same name."""
    if measure.name == "SetF" and measure.beta != 1:
        why = "set_F weights recall by beta instead of its square"
        root = math.sqrt(measure.beta)  # type: ignore[arg-type] # beta is a number
        return (rewritten("beta is not squared", why, beta=root),)
    return ()


def _pytrec_eval(measure: Measure) -> tuple[Deviation, ...]:
    return SINGLE_PRECISION, *_trec_eval_9(measure), RUN_QUERIES_ONLY


def _trec_eval_10(measure: Measure) -> tuple[Deviation, ...]:
    if measure.name not in {"IPrec", "IPrecAvg"}:
        return WHOLE_GRADES, *_trec_eval_9(measure)
    why = (
        "the number of relevant documents at a recall level is rounded to the nearest integer, "
        "not up: precision may be taken at a lower recall"
    )
    return WHOLE_GRADES, rewritten("recall points rounded", why, points="nearest")


# ---- ir_measures: the first provider that supports a measure computes it; tie policies differ

_DEPTH = 1000
# From this persistence on, documents below rank 1000 affect the value noticeably.
_MOST_PATIENT = 0.97
_ALL = "rel judged_only"
_WITH_TOP = {
    **{name: f"{name}(top=3)@10" for name in ("SDCG", "BPM", "NERR8", "NERR9")},
    **{name: f"{name}(top=3)" for name in ("INST", "INSQ", "NERR10", "NERR11")},
}
_OF_SUBTOPICS = ("alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall")
_IR_MEASURES = Offer(
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
        "documents not retrieved",
    },
)


def _ir_measures(measure: Measure) -> tuple[Deviation, ...]:
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
    return SINGLE_PRECISION, *_trec_eval_9(measure)


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
    return (rewritten("two decimals", "recall levels are passed with two decimals", recall=rounded),)


# ---- ranx

_RANX = Offer(
    "ranx",
    {
        **dict.fromkeys(("P", "R", "Success"), "k! rel"),
        **dict.fromkeys(("SetP", "SetR", "Rprec", "Bpref"), "rel"),
        **dict.fromkeys(("RR", "AP"), "k rel"),
        **dict.fromkeys(("DCG", "nDCG"), "k gain rel"),
        "F": "k! rel beta",
        "SetF": "rel beta",
    },
    {
        "NumRelRet": "its hits@k is a mean over queries, NumRelRet@k is a sum: use R@k",
        "RBP": "its rbp multiplies by grades, and can exceed 1",
    },
)


@lru_cache(maxsize=64)
def _both(level: float) -> Deviation:
    """Refuse judgments for which bpref of ranx is NaN; cached, so that deviations compare equal."""

    def change(case: Case) -> Case:
        table = case.qrels.table
        numbers = table.query_numbers()
        for relevant in (True, False):
            rows = (table.values >= level) == relevant
            lacking = np.flatnonzero(np.bincount(numbers[rows], minlength=len(table.queries)) == 0)
            if len(lacking):
                query = case.qrels.query_ids[int(lacking[0])]
                raise InputError(
                    f"bpref of ranx is NaN for query {query!r}, and so is its mean: no document "
                    f"is judged {'' if relevant else 'not '}relevant",
                    fix="judge one, or omit Bpref",
                )
        return case

    return Deviation(
        "NaN without both",
        "bpref is NaN for a query without a relevant, or without a judged non-relevant document",
        "judgments",
        change,
    )


def _ranx(measure: Measure) -> tuple[Deviation, ...]:
    shared = (WHOLE_GRADES, INPUT_TIES)
    if measure.name == "Bpref":
        return *shared, NEGATIVES_JUDGED, _both(float(measure.rel))  # type: ignore[arg-type] # a number
    return shared


# ---- BEIR and MTEB: pytrec_eval for most measures, custom loops for the others

_BEIR = dict.fromkeys(("nDCG", "AP", "R", "P", "RR", "Success", "RelP"), "k!")
_ANY_QUERY = "its Hole@k counts a document as judged if it was judged for any query"


def _beir_offer(tool: str) -> Offer:
    return Offer(tool, _BEIR, {"Judged": _ANY_QUERY}, {"Unjudged": _ANY_QUERY})


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


_BEWARE_MTEB = "MRR and R_cap are not rounded, and R_cap is computed by the tasks of LMEB only"
_VARIANTS = "some tasks ignore identical ids or skip the first result: see the profiles of these names"


# ---- machine learning tools, which take parallel scores and targets

_CUT = dict.fromkeys(("P", "R", "Success", "RR", "nDCG"), "k!")
_ST = Offer("sentence-transformers", {**_CUT, "AP": "k! norm"})


def _sentence_transformers(measure: Measure) -> tuple[Deviation, ...]:
    shared = (RELEVANT_QUERIES, ASCENDING_IDS)
    if measure.name == "nDCG":
        return BINARY_GRADES, *shared
    if measure.name == "AP" and measure.norm == "R":
        why = "AP@k is divided by k if there are more than k relevant documents"
        return *shared, rewritten("divided by min(k, R)", why, norm="min(k,R)")
    _only(_ST, measure, "norm", "min(k,R)")
    return shared


def _only(offer: Offer, measure: Measure, word: str, value: str) -> None:
    """Check that a parameter is omitted or has the only value that the tool supports."""
    if dict(measure.params).get(word, value) != value:
        raise UnknownName(f"{offer.tool} has no {measure}", fix=f"{word} is always {value} there: omit it")


_TM = Offer(
    "torchmetrics",
    {
        **dict.fromkeys(("P", "R", "Success"), "k!"),
        "RR": "k",
        "AP": "k norm",
        "nDCG": "k ideal",
        **dict.fromkeys(("SetP", "Rprec"), ""),
    },
    {"SetR": "only retrieved documents are known there, so it would always be 1: use R@k"},
)


def _torchmetrics(measure: Measure) -> tuple[Deviation, ...]:
    known = (RUN_QUERIES_ONLY, RETRIEVED_ONLY, SINGLE_PRECISION)
    if measure.name == "nDCG":
        return *known, EXPECTED_TIES, *_judged_ideal(_TM, measure)
    if measure.name in {"Success", "Rprec"}:
        return *known, INPUT_TIES
    if measure.name == "R":
        return *known, INPUT_TIES, POSITIVE_SCORES
    if measure.name == "SetP":
        return *known, POSITIVE_SCORES_COUNT
    if measure.name == "AP":
        _only(_TM, measure, "norm", "retrieved")
        why = "AP is divided by the number of relevant documents found, so misses cost nothing"
        by_found = rewritten("divided by those found", why, norm="retrieved")
        return *known, POSITIVE_SCORES, by_found
    return *known, POSITIVE_SCORES


def _judged_ideal(offer: Offer, measure: Measure) -> tuple[Deviation, ...]:
    """Return the deviation for `ideal`; both choices agree if only retrieved documents count."""
    if "ideal" not in dict(measure.params):
        return ()
    _only(offer, measure, "ideal", "retrieved")
    why = "the ideal ranking has only the retrieved documents"
    return (rewritten("the ideal of retrieved documents", why, ideal="judged"),)


_SK = Offer(
    "scikit-learn",
    {"DCG": "k", "nDCG": "k ideal"},
    {
        "AP": "average_precision_score is another measure, a step function over thresholds",
        "RR": "label_ranking_average_precision_score averages over all relevant documents",
    },
)


# ---- RAG frameworks: lists without scores


_UNCUT = "its ideal ranking has no cut-off: cut the run to k and use nDCG"
_LISTS = {
    **dict.fromkeys(("R", "Success"), "k!"),
    **dict.fromkeys(("RR", "AP"), "k"),
    **dict.fromkeys(("SetR", "nDCG"), ""),
}
_LLAMA_INDEX = Offer(
    "llama-index",
    {**_LISTS, "SetP": ""},
    {"P": "it divides by what was retrieved: cut the run to k and use SetP", "nDCG": _UNCUT},
)
_HAYSTACK = Offer("Haystack", _LISTS, {"nDCG": _UNCUT, "P": "it has R@k, SetR, RR, AP, and nDCG"})


def _llama_index(measure: Measure) -> tuple[Deviation, ...]:
    shared = (RELEVANT_QUERIES, AS_GIVEN, RUN_QUERIES_ONLY)
    return (BINARY_GRADES, *shared) if measure.name == "nDCG" else shared


PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            Profile(
                "trec_eval-9",
                "trec_eval 9.0",
                lambda measure: (WHOLE_GRADES, *_pytrec_eval(measure)),
                Offer("trec_eval 9", _TREC_EVAL, _NEAR_TREC_EVAL),
                beware="without its option -c",
            ),
            Profile(
                "trec_eval-10",
                "trec_eval 10.0",
                _trec_eval_10,
                _TREC_EVAL_10,
                beware="with its option -c: without it, version 10 stops if a judged query is not in the run",
            ),
            Profile(
                "pytrec_eval",
                "pytrec_eval-terrier 0.5",
                _pytrec_eval,
                _PYTREC_EVAL,
                beware="it accepts only integer grades",
            ),
            Profile(
                "ir_measures",
                "ir_measures 0.4",
                _ir_measures,
                _IR_MEASURES,
                beware="with pytrec_eval, cwl_eval, and Perl installed, and integer grades; values of ERR and "
                "of nDCG with exponential gain have five decimals there",
            ),
            Profile(
                "ranx",
                "ranx 0.3",
                _ranx,
                _RANX,
                beware="as Qrels and Run objects with make_comparable=True; its sort is stable up to 15 "
                "documents only, so ties in longer rankings may be in another order",
            ),
            Profile(
                "beir",
                "beir 2.2",
                _beir,
                _beir_offer("BEIR"),
                digits=5,
                beware="MRR and Accuracy are computed after evaluate(), which removes self-retrieval from the results "
                "it is given",
            ),
            *(
                Profile(name, "mteb 2", steps, _beir_offer("MTEB"), 5, ("RR", "RelP"), beware)
                for name, steps, beware in (
                    ("mteb", _mteb, f"{_BEWARE_MTEB}; {_VARIANTS}"),
                    ("mteb-ignore-identical-ids", lambda measure: (NO_SELF, *_mteb(measure)), _BEWARE_MTEB),
                    ("mteb-skip-first-result", _mteb_skipping_the_first, _BEWARE_MTEB),
                )
            ),
            Profile(
                "sentence-transformers",
                "sentence-transformers 6.2",
                _sentence_transformers,
                _ST,
                beware="values of its InformationRetrievalEvaluator for the same scores; before version 6, "
                "ties are in the order of its heap, which cannot be reproduced",
            ),
            Profile(
                "torchmetrics",
                "torchmetrics 1.9",
                _torchmetrics,
                _TM,
                beware="values are 32-bit floats there; with equal scores, P, AP, and RR depend on torch.topk, "
                "whose order is undefined, and R, Success, and Rprec depend on a sort that is stable up to 16 "
                "documents",
            ),
            Profile(
                "sklearn",
                "scikit-learn 1.9",
                lambda measure: (RUN_QUERIES_ONLY, RETRIEVED_ONLY, EXPECTED_TIES, *_judged_ideal(_SK, measure)),
                _SK,
                beware="ndcg_score and dcg_score of the retrieved documents; a single document and negative "
                "grades are rejected there",
            ),
            Profile(
                "llama-index",
                "llama-index-core 0.14",
                _llama_index,
                _LLAMA_INDEX,
                beware="it has no cut-offs (k is the retriever's top_k) and rejects a query without relevant "
                "or without retrieved documents; hit_rate is Success, or R with use_granular_hit_rate",
            ),
            Profile(
                "haystack",
                "haystack-ai 3.4",
                lambda _: (AS_GIVEN,),
                _HAYSTACK,
                beware="with document_comparison_field='id' (by default, documents with equal content are "
                "merged); its recall is Success with mode single_hit, SetR with multi_hit",
            ),
        )
    }
)
"""Profiles of other tools by name."""


def profile_of(name: str | Profile) -> Profile:
    """Return the profile with this name, or a given profile itself.

    Raises:
        UnknownName: If the name is unknown; the message lists the most similar names.

    Example:
        >>> profile_of("pytrec_eval").tool
        'pytrec_eval-terrier 0.5'
    """
    if isinstance(name, Profile):
        return name
    profile = PROFILES.get(name)
    if profile is None:
        raise UnknownName.of("profile", str(name), PROFILES)
    return profile

"""Machine learning tools that take parallel scores and targets, and retrieval frameworks."""

from __future__ import annotations

from rankgauge.errors import UnknownName
from rankgauge.measures.measure import Measure
from rankgauge.profiles.deviations import Deviation, Offer, Profile
from rankgauge.profiles.shared_deviations import (
    AS_GIVEN,
    ASCENDING_IDS,
    BINARY_GRADES,
    EXPECTED_TIES,
    INPUT_TIES,
    POSITIVE_SCORES,
    POSITIVE_SCORES_COUNT,
    RELEVANT_QUERIES,
    RETRIEVED_ONLY,
    RUN_QUERIES_ONLY,
    SINGLE_PRECISION,
    rewritten,
)

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
    found = dict(measure.params).get(word, value)
    if found != value:
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


def _sklearn(measure: Measure) -> tuple[Deviation, ...]:
    return (RUN_QUERIES_ONLY, RETRIEVED_ONLY, EXPECTED_TIES, *_judged_ideal(_SK, measure))


SENTENCE_TRANSFORMERS = Profile(
    "sentence-transformers",
    "sentence-transformers 6.2",
    _sentence_transformers,
    _ST,
    beware="values of its InformationRetrievalEvaluator for the same scores; before version 6, "
    "ties "
    "are in the order of its heap, which cannot be reproduced",
)
TORCHMETRICS = Profile(
    "torchmetrics",
    "torchmetrics 1.9",
    _torchmetrics,
    _TM,
    beware="values are 32-bit floats there; with equal scores, P, AP, and RR depend on torch.topk, "
    "whose order is undefined, and R, Success, and Rprec depend on a sort that is stable up to 16 "
    "documents",
)
SKLEARN = Profile(
    "sklearn",
    "scikit-learn 1.9",
    _sklearn,
    _SK,
    beware="ndcg_score and dcg_score of the retrieved documents; a single document and negative "
    "grades "
    "are rejected there",
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


LLAMA_INDEX = Profile(
    "llama-index",
    "llama-index-core 0.14",
    _llama_index,
    _LLAMA_INDEX,
    beware="it has no cut-offs (k is the retriever's top_k) and rejects a query without relevant "
    "or "
    "without retrieved documents; hit_rate is Success, or R with use_granular_hit_rate",
)
HAYSTACK = Profile(
    "haystack",
    "haystack-ai 3.4",
    lambda _: (AS_GIVEN,),
    _HAYSTACK,
    beware="with document_comparison_field='id' (by default, documents with equal content are "
    "merged); "
    "its recall is Success with mode single_hit, SetR with multi_hit",
)

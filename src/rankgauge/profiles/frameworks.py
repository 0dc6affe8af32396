"""The evaluators of frameworks that retrieve for language models: lists, and no scores."""

from __future__ import annotations

from rankgauge.measures.measure import Measure
from rankgauge.profiles.deviations import Deviation, Profile
from rankgauge.profiles.steps import AS_GIVEN, BINARY_GRADES, RELEVANT_QUERIES, RUN_QUERIES_ONLY
from rankgauge.profiles.supported import Offer

__all__ = ["HAYSTACK", "LLAMA_INDEX"]

_UNCUT = "its ideal ranking has no cut-off: cut the run to k and ask for nDCG"
_WORDS = {
    **dict.fromkeys(("R", "Success"), "k!"),
    **dict.fromkeys(("RR", "AP"), "k"),
    **dict.fromkeys(("SetR", "nDCG"), ""),
}
_LLAMA_INDEX = Offer(
    "llama-index",
    {**_WORDS, "SetP": ""},
    {"P": "it divides by what was retrieved: cut the run to k and ask for SetP", "nDCG": _UNCUT},
)
_HAYSTACK = Offer("Haystack", _WORDS, {"nDCG": _UNCUT, "P": "it has R@k, SetR, RR, AP and nDCG"})


def _llama_index(measure: Measure) -> tuple[Deviation, ...]:
    _LLAMA_INDEX.check(measure)
    shared = (RELEVANT_QUERIES, AS_GIVEN, RUN_QUERIES_ONLY)
    return (BINARY_GRADES, *shared) if measure.name == "nDCG" else shared


def _haystack(measure: Measure) -> tuple[Deviation, ...]:
    _HAYSTACK.check(measure)
    return (AS_GIVEN,)


LLAMA_INDEX = Profile(
    "llama-index",
    "llama-index-core 0.14",
    _llama_index,
    beware="it has no cut-offs (k is the retriever's top_k) and refuses a query for which nothing "
    "is expected or nothing was retrieved; hit_rate is Success, or R with use_granular_hit_rate",
)
HAYSTACK = Profile(
    "haystack",
    "haystack-ai 3.4",
    _haystack,
    beware="with document_comparison_field='id' (by default documents of equal content are one); "
    "its recall is Success with mode single_hit, SetR with multi_hit",
)

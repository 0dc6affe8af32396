"""ranx."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rankgauge.errors import InputError
from rankgauge.measures.measure import Measure
from rankgauge.profiles.deviations import Case, Deviation, Offer, Profile
from rankgauge.profiles.shared_deviations import INPUT_TIES, NEGATIVES_JUDGED, WHOLE_GRADES

_OFFER = Offer(
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


def _deviations(measure: Measure) -> tuple[Deviation, ...]:
    shared = (WHOLE_GRADES, INPUT_TIES)
    if measure.name == "Bpref":
        return *shared, NEGATIVES_JUDGED, _both(float(measure.rel))  # type: ignore[arg-type] # a number
    return shared


RANX = Profile(
    "ranx",
    "ranx 0.3",
    _deviations,
    _OFFER,
    beware="as Qrels and Run objects with make_comparable=True; its sort is stable up to 15 "
    "documents "
    "only, so ties in longer rankings may be in another order",
)

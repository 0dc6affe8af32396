"""trec_eval and what calls it."""

from __future__ import annotations

from rankgauge.errors import UnknownName
from rankgauge.kernels.measure import Measure
from rankgauge.profiles.deviations import Deviation, Profile
from rankgauge.profiles.scores import RUN_QUERIES_ONLY, SINGLE_PRECISION

__all__ = ["PYTREC_EVAL"]


def _pytrec_eval(measure: Measure) -> tuple[Deviation, ...]:
    if not measure.trec_name():
        raise UnknownName(
            f"pytrec_eval has no {measure}", fix="ask for a measure that has a twin in trec_eval"
        )
    return SINGLE_PRECISION, RUN_QUERIES_ONLY


PYTREC_EVAL = Profile("pytrec_eval", "pytrec_eval-terrier 0.5", _pytrec_eval)

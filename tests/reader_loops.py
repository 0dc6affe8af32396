"""Independent reader models (C/W/L): all probabilities, rank by rank.

Moffat, Bailey, Scholer, and Thomas (2017), Incorporating user expectations and behavior into the
measurement of search effectiveness, TOIS 35: C is the probability of continuing from each rank to
the next; W is proportional to the probability of reaching a rank; the value is the sum of W times
gain. Ranks end at k. The residual is the value with 1 for all unknown gains minus that with 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from seeing import Seen, Value

# From ranks 1, 2 ... k and their gains to the continuation probabilities.
_Chances: TypeAlias = Callable[[Any, Any], Any]


def _gains(seen: Seen, k: int, rel: float | None, top: float | None, unknown: float) -> Any:
    gains = np.full(k, float(unknown))
    for place, doc in enumerate(seen.ranking[:k]):
        grade = seen.grades.get(doc, -1)
        if grade < 0:
            continue
        if top is None:
            gains[place] = grade >= (1 if rel is None else rel)
        else:
            gains[place] = grade / top if rel is None or grade >= rel else 0
    return gains


def _rate(chances: _Chances, gains: Any) -> float:
    going_on = chances(np.arange(1, len(gains) + 1), gains)
    reached = np.concatenate([[1.0], np.cumprod(going_on[:-1])])
    return float((reached / reached.sum() * gains).sum())


def _value(seen: Seen, k: int, chances: _Chances, rel: float | None, top: float | None) -> float:
    return _rate(chances, _gains(seen, k, rel, top, 0))


def _residual(seen: Seen, k: int, chances: _Chances, rel: float | None, top: float | None) -> float:
    low, high = (_rate(chances, _gains(seen, k, rel, top, unknown)) for unknown in (0, 1))
    return high - low


def _inst(goal: float) -> _Chances:
    def chances(rank: Any, gains: Any) -> Any:
        missing = goal - np.cumsum(gains)
        return ((rank + goal + missing - 1) / (rank + goal + missing)) ** 2

    return chances


def _insq(goal: float) -> _Chances:
    return lambda rank, gains: ((rank + 2 * goal - 1) / (rank + 2 * goal)) ** 2


def _bpm(goal: float) -> _Chances:
    # Sums of shares of a grade are inexact, so values within rounding of the goal reach it.
    return lambda rank, gains: (np.cumsum(gains) < goal - 1e-9) * 1.0


def _sdcg(rank: Any, gains: Any) -> Any:
    return np.log(rank + 1) / np.log(rank + 2)


def INST(
    seen: Seen,
    *,
    goal: float = 1,
    k: int = 1000,
    rel: float | None = None,
    top: float | None = None,
    residual: bool = False,
) -> Value:
    return (_residual if residual else _value)(seen, k, _inst(goal), rel, top)


def INSQ(
    seen: Seen,
    *,
    goal: float = 1,
    k: int = 1000,
    rel: float | None = None,
    top: float | None = None,
    residual: bool = False,
) -> Value:
    return (_residual if residual else _value)(seen, k, _insq(goal), rel, top)


def BPM(
    seen: Seen, *, k: int, goal: float = 1, rel: float | None = None, top: float | None = None, residual: bool = False
) -> Value:
    return (_residual if residual else _value)(seen, k, _bpm(goal), rel, top)


def SDCG(seen: Seen, *, k: int, rel: float | None = None, top: float | None = None, residual: bool = False) -> Value:
    return (_residual if residual else _value)(seen, k, _sdcg, rel, top)


def NERR8(seen: Seen, *, k: int, rel: float | None = None, top: float | None = None) -> Value:
    return _value(seen, k, lambda rank, gains: 1 - gains, rel, top)


def NERR9(seen: Seen, *, k: int, rel: float | None = None, top: float | None = None) -> Value:
    return _value(seen, k, lambda rank, gains: rank / (rank + 1) * (1 - gains), rel, top)


def NERR10(seen: Seen, *, p: float = 0.9, k: int = 1000, rel: float | None = None, top: float | None = None) -> Value:
    return _value(seen, k, lambda rank, gains: p * (1 - gains), rel, top)


def NERR11(seen: Seen, *, goal: float = 1, k: int = 1000, rel: float | None = None, top: float | None = None) -> Value:
    goes_on = _insq(goal)
    return _value(seen, k, lambda rank, gains: goes_on(rank, gains) * (1 - gains), rel, top)


LOOPS: tuple[Callable[..., Value], ...] = (BPM, INSQ, INST, NERR10, NERR11, NERR8, NERR9, SDCG)

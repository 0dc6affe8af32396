"""Step-by-step calculations of user models, down to the last rank that may be read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from rankgauge.explanation.calculation import Calculation, RankedDocument, RankedQuery, Step, calculates, number, summed

MOST_RANKS = 10**6
"""Number of ranks that are calculated one by one; deeper calculations would be unreadable."""


class _Rank(NamedTuple):
    """A rank with the gain of its document and the total gain down to this rank."""

    rank: int
    gain: float
    gained: float


# The probability of continuing to the next rank.
_Chance: TypeAlias = Callable[[_Rank], float]


def _inst(words: Any) -> tuple[_Chance, str]:
    goal, wanted = words["goal"], number(words["goal"])

    def chance(at: _Rank) -> float:
        above = max(at.rank + 2 * goal - at.gained - 1, 0.0)
        return float((above / (above + 1)) ** 2)

    return chance, f"((i + {wanted} + T - 1) / (i + {wanted} + T))^2, T = {wanted} - gained so far"


def _insq(words: Any) -> tuple[_Chance, str]:
    twice = 2 * words["goal"]
    text = f"((i + {number(twice)} - 1) / (i + {number(twice)}))^2"
    return lambda at: ((at.rank + twice - 1) / (at.rank + twice)) ** 2, text


def _bpm(words: Any) -> tuple[_Chance, str]:
    goal = words["goal"]
    # Sums of fractional gains are inexact: a sum equal up to rounding reaches the goal.
    return lambda at: float(at.gained < goal - 1e-9), f"1 until {number(goal)} is gained, then 0"


def _sdcg(_: Any) -> tuple[_Chance, str]:
    return lambda at: math.log(at.rank + 1) / math.log(at.rank + 2), "log(i + 1) / log(i + 2)"


def _nerr8(_: Any) -> tuple[_Chance, str]:
    return lambda at: 1 - at.gain, "1 - gain"


def _nerr9(_: Any) -> tuple[_Chance, str]:
    return lambda at: at.rank / (at.rank + 1) * (1 - at.gain), "i / (i + 1) · (1 - gain)"


def _nerr10(words: Any) -> tuple[_Chance, str]:
    p = words["p"]
    return lambda at: p * (1 - at.gain), f"{number(p)} · (1 - gain)"


def _nerr11(words: Any) -> tuple[_Chance, str]:
    onwards, text = _insq(words)
    return lambda at: onwards(at) * (1 - at.gain), f"{text} · (1 - gain)"


MODELS = {
    "INST": _inst,
    "INSQ": _insq,
    "BPM": _bpm,
    "SDCG": _sdcg,
    "NERR8": _nerr8,
    "NERR9": _nerr9,
    "NERR10": _nerr10,
    "NERR11": _nerr11,
}


def _gain(one: RankedDocument, words: Any) -> float:
    """Return 1 for a relevant document, or its grade as a fraction of the top grade."""
    rel, top = words["rel"], words["top"]
    if one.grade is None or one.grade < 0:
        return 0.0
    if top is None:
        return float(one.grade >= (1 if rel is None else rel))
    return one.grade / top if rel is None or one.grade >= rel else 0.0


def _describe_gain(words: Any) -> str:
    rel, top = words["rel"], words["top"]
    if top is None:
        return f"gain of a document: 1 from grade {number(1 if rel is None else rel)}"
    low = "" if rel is None else f", from grade {number(rel)} on"
    return f"gain of a document: its grade / {number(top)}{low}"


@calculates(*MODELS)
def _read(name: str, query: RankedQuery, words: Any) -> Calculation:
    k, documents = words["k"], query.within(words["k"])
    chance, text = MODELS[name.partition("@")[0].partition("(")[0]](words)
    gains, chances, reached = [], [], [1.0]
    gained = 0.0
    for rank in range(1, k + 1):
        gain = _gain(documents[rank - 1], words) if rank <= len(documents) else 0.0
        gained += gain
        gains.append(gain)
        chances.append(chance(_Rank(rank, gain, gained)) if rank < k else 0.0)
        reached.append(reached[-1] * chances[-1])
    # Expected number of ranks viewed.
    looks = math.fsum(reached[:k])
    total, rows, terms = 0.0, [], []
    for one, gain, on, come in zip(documents, gains, chances, reached, strict=False):
        weight, counts = come / looks, gain > 0
        added = weight * gain if counts else None
        total += weight * gain
        rows.append(Step(one, (gain if counts else None, on, weight, added, total), counts))
        terms += [f"{number(weight)}·{number(gain)}"] if counts else []
    steps = [
        _describe_gain(words),
        f"continues: the probability of viewing rank i + 1 as well: {text}",
        "weight: the expected share of views of a rank",
    ]
    if len(documents) < k:
        below = math.fsum(reached[len(documents) : k]) / looks
        ranks = f"the ranks {len(documents) + 1} to {k} are empty and have weight"
        if len(documents) + 1 == k:
            ranks = f"rank {k} is empty and has weight"
        steps.append(f"below the ranking: {ranks} {number(below)} of it")
    steps.append(f"{name} = {summed(terms)} = {number(total)}" if terms else f"{name} = 0")
    heads = ("gain", "continues", "weight", "contribution", "sum")
    return Calculation(heads, tuple(rows), tuple(steps), total)

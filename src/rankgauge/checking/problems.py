"""The nouns of a check: kinds of problems with their codes, and problems with place and effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

__all__ = ["KINDS", "Effect", "Level", "Problem", "ProblemKind", "Spot"]

Level: TypeAlias = Literal["error", "warning", "hint"]


@dataclass(frozen=True)
class ProblemKind:
    """One kind of problem; its code never changes its meaning.

    Attributes:
        code: A letter for what is looked at (J judgments, R runs, P the pair of them, M measures,
            T texts, F files) and three digits.
        name: A few words with hyphens, such as ``rank-contradicts-score``.
        level: ``error``: the numbers are wrong; ``warning``: they may mislead; ``hint``: to know.
        what: What it is.
        effect: What it does to the numbers.
        mend: What mends it.
        fix: ``safe``: a mended copy loses nothing and can mean nothing else; ``asked``: only where
            its code is named; empty: a person has to decide.
    """

    code: str
    name: str
    level: Level
    what: str
    effect: str
    mend: str
    fix: Literal["safe", "asked", ""] = ""


@dataclass(frozen=True)
class Spot:
    """Where a problem shows: what is known of source, line, query and document.

    Attributes:
        source: The path, or what the input is called.
        line: The 1-based line, 0 where there are none.
        query: The query id, empty where none is to blame.
        document: The document id, empty where none is to blame.
    """

    source: str
    line: int = 0
    query: str = ""
    document: str = ""


@dataclass(frozen=True)
class Effect:
    """What a problem does to a number, measured: the mean as it is, and as it would be.

    Attributes:
        run: The run.
        measure: The name of the measure.
        now: Its mean with the problem.
        then: Its mean as `by` says.
        by: What was done for `then`, such as ``"ids without leading zeros"``.
    """

    run: str
    measure: str
    now: float
    then: float
    by: str


@dataclass(frozen=True)
class Problem:
    """A problem that was found.

    Attributes:
        kind: Its kind.
        source: The input that has it: a path, or what it is called.
        what: What was found, with numbers.
        count: How often it was seen.
        of: Out of how many (of `unit`), 0 where that means nothing.
        unit: What is counted: ``query``, ``document``, ``judgment``, ``line``.
        spots: The first places.
        effects: What it does to the numbers, measured; empty where nothing could be.
        mend: The edit or command that mends it here.
    """

    kind: ProblemKind
    source: str
    what: str
    count: int
    of: int = 0
    unit: str = ""
    spots: tuple[Spot, ...] = ()
    effects: tuple[Effect, ...] = ()
    mend: str = ""


KINDS: Mapping[str, ProblemKind] = MappingProxyType({})

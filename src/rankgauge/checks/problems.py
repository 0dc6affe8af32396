"""The nouns of a check: problems with place and effect."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rankgauge.core.findings import ProblemKind

__all__ = ["Effect", "Problem", "Spot"]


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

    Where one number cannot be known (the order of equal scores, what was not judged), two effects
    give the least and the most it can be.

    Attributes:
        run: The run.
        measure: The name of the measure.
        now: Its mean with the problem; NaN where an evaluation refuses the input.
        then: Its mean as `by` says.
        by: What was done for `then`, such as ``"ids without leading zeros"``.
    """

    run: str
    measure: str
    now: float
    then: float
    by: str

    def shown(self) -> str:
        """The change for people; a value that is none is a dash.

        Example:
            >>> Effect("bm25", "nDCG@10", 0.0, 0.352, "ids without leading zeros").shown()
            'nDCG@10 0.0000 → 0.3520 (ids without leading zeros)'
        """
        return f"{self.change()} ({self.by})"

    def change(self) -> str:
        """The same without what was done for it."""
        return f"{self.measure} {_shown(self.now)} → {_shown(self.then)}"

    def changes(self) -> bool:
        """Whether what is shown changes."""
        return _shown(self.now) != _shown(self.then)


def _shown(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4f}"


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

"""A problem that a check found."""

from __future__ import annotations

from dataclasses import dataclass

from rankgauge.core.findings import Effect, FindingKind, Location

__all__ = ["Problem"]


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
        locations: The first places.
        effects: What it does to the numbers, measured; empty where nothing could be.
        mend: The edit or command that mends it here.
    """

    kind: FindingKind
    source: str
    what: str
    count: int
    of: int = 0
    unit: str = ""
    locations: tuple[Location, ...] = ()
    effects: tuple[Effect, ...] = ()
    mend: str = ""

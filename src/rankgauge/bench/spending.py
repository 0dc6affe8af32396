"""What asking takes: time, and what a retriever uses up, such as tokens."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rankgauge.bench.journal import Journal

__all__ = ["Spending"]

_NOTED_EVERY = 1.0  # seconds


class Spending:
    """Notes in a journal what asking has taken, so that a process that is killed loses little."""

    def __init__(self, retriever: Any, journal: Journal) -> None:
        """Begin.

        Args:
            retriever: Asked for what it has used up so far, if it says.
            journal: Where that is noted, on top of what is there.
        """
        self._retriever = retriever
        self._journal = journal
        self._begun = self._noted = time.monotonic()
        self._before = _usage(retriever)
        self._earlier = dict(journal.head)
        self._asked = 0

    def step(self) -> None:
        """One more query has its answer."""
        self._asked += 1
        if time.monotonic() - self._noted > _NOTED_EVERY:
            self.note()

    def note(self) -> None:
        """Write it down, together with how many answers it was for."""
        self._noted = time.monotonic()
        earlier = self._earlier.get("usage", {})
        self._journal.note(
            seconds=self._earlier.get("seconds", 0.0) + self._noted - self._begun,
            usage={
                unit: earlier.get(unit, 0) + amount - self._before.get(unit, 0)
                for unit, amount in _usage(self._retriever).items()
            },
            asked=self._earlier.get("asked", 0) + self._asked,
        )


def _usage(retriever: Any) -> Mapping[str, float]:
    """What a retriever has used up so far, if it says."""
    said = getattr(retriever, "usage", None)
    found = said() if callable(said) else {}
    return dict(found) if isinstance(found, Mapping) else {}

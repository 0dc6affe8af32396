"""What asking takes: time, and what a retriever uses up, such as tokens."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from rankgauge.benchmark.journal import Journal
from rankgauge.errors import InputError
from rankgauge.retrievers.protocol import describe_error

__all__ = ["Spending"]

_NOTED_EVERY = 1.0  # seconds


class Spending:
    """Notes in a journal what asking has taken, so that a process that is killed loses little.

    Attributes:
        failure: Why it is not known what was used up; empty if it is, or nothing is said of it.
    """

    def __init__(self, retriever: Any, journal: Journal) -> None:
        """Begin.

        Args:
            retriever: Asked for what it has used up so far, if it says.
            journal: Where that is noted, on top of what is there.
        """
        self._retriever = retriever
        self._journal = journal
        self._begun = self._noted = time.monotonic()
        self._earlier = dict(journal.head)
        self._asked = 0
        self.failure = ""
        self._before = self._used()

    def step(self) -> None:
        """One more query has its answer."""
        self._asked += 1
        if time.monotonic() - self._noted > _NOTED_EVERY:
            self.note()

    def note(self) -> None:
        """Write it down, together with how many answers it was for."""
        self._noted = time.monotonic()
        earlier = self._earlier.get("usage", {})
        used = self._used()
        facts: dict[str, Any] = {
            "seconds": self._earlier.get("seconds", 0.0) + self._noted - self._begun
        }
        if not self.failure:
            facts["usage"] = {
                unit: earlier.get(unit, 0) + amount - self._before.get(unit, 0)
                for unit, amount in used.items()
            }
            facts["asked"] = self._earlier.get("asked", 0) + self._asked
        self._journal.note(**facts)

    def _used(self) -> Mapping[str, float]:
        """What the retriever has used up so far, if it says."""
        try:
            said = getattr(self._retriever, "usage", None)
            return _amounts(said()) if callable(said) else {}
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the code of the retriever may do anything
            self.failure = f"usage() failed: {describe_error(error)}"
            return {}


def _amounts(said: Any) -> dict[str, float]:
    """Names of units with numbers; nothing if that is no mapping.

    Raises:
        InputError: For an amount that is no number.
    """
    found = dict(said) if isinstance(said, Mapping) else {}
    for unit, amount in found.items():
        number = isinstance(amount, int | float) and not isinstance(amount, bool)
        if type(unit) is not str or not number or not math.isfinite(amount):
            raise InputError(f"got {amount!r:.40} for {unit!r:.40}, wanted a number")
    return found

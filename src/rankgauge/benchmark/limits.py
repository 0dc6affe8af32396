"""How a retriever may be called: concurrency, rate, time limit, retries, batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rankgauge.core.arguments import integer, is_number, number
from rankgauge.retrievers.event_loop import abandon_blocked_loop

_LONGEST_WAIT = 120.0
_POLL = 0.1  # seconds: on Windows a longer wait does not hear the keyboard


@dataclass(frozen=True)
class Limits:
    """How a retriever is called. Immutable.

    Attributes:
        concurrency: How many calls may be under way at once.
        rate: At most so many calls begin in a second; None for no limit.
        timeout: Seconds a call may take; None for no limit. A synchronous callable that does not
            return is left behind in its thread and counted: a thread cannot be killed. So is
            an event loop that an async callable blocks.
        index_timeout: Seconds ``index`` may take; None for no limit. With one it runs in a thread,
            which is left behind if it takes longer, and the retriever is not asked.
        retries: How often a failed call is repeated. Not repeated: a call that returned something
            that is not a ranking, an error with ``retryable = False``, and faults of the program
            (TypeError, KeyError, ZeroDivisionError and the like).
        backoff: Seconds before the first retry, doubled for each further one (at most two
            minutes); an error with ``retry_after`` decides itself.
        batch: Queries in one call of ``search`` (32 if left out; 1 with a timeout), or of a
            callable that takes a list of texts and returns a list of rankings.
        stop_after: After this many failures in a row the rest is not asked; None to go on always.

    Raises:
        InputError: For a number that is not possible.

    Example:
        >>> Limits(concurrency=8, timeout=2.5).retries
        2
    """

    concurrency: int = 1
    rate: float | None = None
    timeout: float | None = None
    index_timeout: float | None = None
    retries: int = 2
    backoff: float = 0.5
    batch: int | None = None
    stop_after: int | None = 20

    def __post_init__(self) -> None:
        integer("concurrency", self.concurrency)
        integer("retries", self.retries, least=0)
        number("backoff", self.backoff)
        for name in ("batch", "stop_after"):
            if getattr(self, name) is not None:
                integer(name, getattr(self, name))
        for name in ("rate", "timeout", "index_timeout"):
            if getattr(self, name) is not None:
                number(name, getattr(self, name), above=True)

    def wait(self, attempts: int, error: BaseException | None) -> float:
        """Seconds to wait before the next attempt, after this many."""
        delay = getattr(error, "retry_after", None)
        if is_number(delay) and delay is not None and delay >= 0:
            return min(float(delay), _LONGEST_WAIT)
        return float(min(self.backoff * 2.0 ** (attempts - 1), _LONGEST_WAIT))

    def record(self) -> Mapping[str, Any]:
        """The limits that are set, as plain values."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class TimeLimit(Exception):  # noqa: N818 - an outcome, and no fault of ours
    """A call took longer than it may."""


def call_within(seconds: float | None, call: Callable[[], object]) -> None:
    """Make a call in a thread, abandoned with TimeLimit if it takes longer."""
    if seconds is None:
        call()
        return
    failed: list[BaseException] = []
    over = threading.Event()

    def work() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - it is raised below, in the other thread
            failed.append(error)
        finally:
            over.set()

    end = time.monotonic() + seconds
    threading.Thread(target=work, daemon=True).start()
    while not over.wait(max(0.0, min(_POLL, end - time.monotonic()))):
        if time.monotonic() >= end:
            abandon_blocked_loop()
            raise TimeLimit
    if failed:
        raise failed[0]

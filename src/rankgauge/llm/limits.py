"""Limits of calls: requests and tokens per minute, cost, and failures."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from rankgauge.core.http_client import RETRYABLE
from rankgauge.core.text import inflect
from rankgauge.errors import RankgaugeError
from rankgauge.llm.replies import ModelError, Usage

_MINUTE = 60.0
_POLL = 0.1  # seconds: on Windows, a longer wait ignores Ctrl-C
# Statuses with which the server rejects every request.
_HOPELESS = frozenset({401, 402, 404})
_STOP_AFTER = 10


@dataclass(slots=True)
class Sent:
    """Request with its time and its tokens, estimated at first and then reported."""

    at: float
    tokens: int


class Pace:
    """Limits of requests and tokens in any 60 seconds; None for no limit."""

    def __init__(self, requests: int | None, tokens: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._requests, self._tokens, self._clock = requests, tokens, clock
        self._sent: deque[Sent] = deque()
        self._not_before = -_MINUTE
        self._lock = threading.Lock()

    def enter(self, tokens: int, wait: Callable[[float], None]) -> Sent:
        """Wait until a request of this many tokens may be sent."""
        while True:
            with self._lock:
                now = self._clock()
                moment = self._earliest(tokens, now)
                if moment <= now:
                    sent = Sent(now, tokens)
                    if self._requests or self._tokens:
                        self._sent.append(sent)
                    return sent
            wait(moment - now)

    def pause(self, seconds: float) -> None:
        """Pause requests for the number of seconds requested by the server."""
        with self._lock:
            self._not_before = max(self._not_before, self._clock() + seconds)

    def _earliest(self, tokens: int, now: float) -> float:
        """Return the earliest time at which the limits allow the request."""
        while self._sent and self._sent[0].at + _MINUTE <= now:
            self._sent.popleft()
        moment = self._not_before
        count, total = len(self._sent), sum(sent.tokens for sent in self._sent)
        for sent in self._sent:
            fits = self._requests is None or count < self._requests
            # A request above the limit is sent when the window is empty.
            if fits and (self._tokens is None or total + tokens <= self._tokens):
                break
            moment = max(moment, sent.at + _MINUTE)
            count, total = count - 1, total - sent.tokens
        return moment


class Meter:
    """Usage so far, which is checked against the budget before each call."""

    def __init__(self, prices: tuple[float, float] | None, max_cost: float | None) -> None:
        self._prices, self._max_cost = prices, max_cost
        self._used = self.priced(Usage())
        self._reserved: list[float] = []
        self._changed = threading.Condition()

    def usage(self) -> Usage:
        """Return the usage so far."""
        with self._changed:
            return self._used

    def priced(self, usage: Usage) -> Usage:
        """Return the usage with its cost, which is independent of the order of calls."""
        if self._prices is None:
            return replace(usage, cost=None)
        per_input, per_output = self._prices
        cost = (usage.input_tokens * per_input + usage.output_tokens * per_output) / 1e6
        return replace(usage, cost=cost)

    def add(self, usage: Usage) -> None:
        """Add to the usage."""
        with self._changed:
            self._used = self.priced(self._used + usage)

    @contextmanager
    def reserving(self, expected: Callable[[], Usage]) -> Iterator[Usage]:
        """Reserve the expected cost of a call, waiting for pending calls if necessary.

        Until there is a response, calls are made one at a time, because the estimate is uncertain.

        Args:
            expected: Function that returns the expected usage, which is yielded.

        Raises:
            ModelError: If the call could exceed the budget.
        """
        with self._changed:
            while True:
                estimate = expected()
                cost, spent = self.priced(estimate).cost or 0.0, self._used.cost or 0.0
                if self._max_cost is None:
                    break
                total = math.fsum([spent, cost, *self._reserved])
                if total <= self._max_cost and (self._used.calls or not self._reserved):
                    break
                if not self._reserved:
                    calls = f"{self._used.calls:,} {inflect(self._used.calls, 'call', 'calls')}"
                    raise ModelError(
                        f"{spent:.4f} of max_cost={self._max_cost:g} is spent in {calls}, and the next one "
                        f"may cost {cost:.4f}: it was not sent",
                        code="budget",
                        where="max_cost",
                        fix="raise max_cost, or lower max_tokens; with a cache, no reply is paid for twice",
                    )
                self._changed.wait(_POLL)
            self._reserved.append(cost)
        try:
            yield estimate
        finally:
            with self._changed:
                self._reserved.remove(cost)
                self._changed.notify_all()


class Stop:
    """Flag that stops further requests."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._reason: RankgaugeError | None = None
        self._failures = 0

    def now(self, reason: RankgaugeError | None = None) -> None:
        """Stop sending requests."""
        with self._lock:
            self._reason = self._reason or reason
        self._event.set()

    def observe(self, error: ModelError | None) -> None:
        """Stop if the next request would fail as well."""
        status = 0 if error is None else error.status or 0
        # Other statuses from 400 to 499 may be specific to the request (too long, filtered).
        about_request = 400 <= status < 500 and status not in RETRYABLE
        fails = error is not None and error.code in {"server", "protocol"} and not about_request
        with self._lock:
            self._failures = self._failures + 1 if fails else 0
            many = self._failures >= _STOP_AFTER
        if error and (many or error.code == "budget" or status in _HOPELESS):
            self.now(error)

    def wait(self, seconds: float) -> None:
        """Wait, unless requests are stopped.

        Raises:
            ModelError: If requests are stopped.
        """
        if self._event.wait(seconds):
            reason = self._reason
            raise ModelError(
                f"not sent: {reason.what if reason else 'interrupted'}",
                code="budget" if isinstance(reason, ModelError) and reason.code == "budget" else "skipped",
                where=reason.where if reason else "",
                fix=reason.fix if reason else "",
            )

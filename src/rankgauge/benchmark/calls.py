"""Calls of a retriever for all queries: sequential, or concurrent in threads.

For an async retriever, each thread waits for results from one shared event loop. The failure of a
query is recorded as its response; no error of a retriever ends the run, unless it ends the process.
"""

from __future__ import annotations

import contextlib
import heapq
import inspect
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from rankgauge.benchmark.journal import Response, query_key
from rankgauge.core.arguments import integer, is_number, number
from rankgauge.corpus.collection import Query
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.retrievers.base import batches
from rankgauge.retrievers.hits import Hits, hits_of, listed_hits
from rankgauge.retrievers.protocol import (
    abandon_blocked_loop,
    aligned,
    attempt,
    awaited,
    describe_error,
    has_index,
    responses_of,
)

_LONGEST_WAIT = 120.0
_POLL = 0.1  # seconds: on Windows, a longer wait ignores Ctrl-C


@dataclass(frozen=True)
class Limits:
    """Immutable limits of the calls of a retriever.

    Attributes:
        concurrency: Maximum number of concurrent calls.
        rate: Maximum number of calls per second; None for no limit.
        timeout: Maximum seconds per call; None for no limit. A thread cannot be killed: a
            synchronous call that exceeds the limit is counted as failed and continues in its
            abandoned thread, and an event loop that an async callable blocks is abandoned, too.
        index_timeout: Maximum seconds of ``index``; None for no limit. With a limit, indexing runs
            in a thread; if it takes longer, the thread is abandoned and the retriever skipped.
        retries: Number of retries of a failed call. Invalid rankings, errors with
            ``retryable = False``, and programming errors (TypeError, KeyError, ZeroDivisionError,
            ...) are not retried.
        backoff: Seconds before the first retry, doubled for each further retry (at most two
            minutes); the ``retry_after`` of an error takes precedence.
        batch: Queries per call of ``search`` (default 32; 1 with a timeout); or of a callable,
            which then takes a list of texts and returns a list of rankings.
        stop_after: Number of consecutive failures after which the run ends; None for no limit.

    Raises:
        InputError: If a number is invalid.

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
        """Return the seconds to wait before the next attempt, after ``attempts`` attempts."""
        delay = getattr(error, "retry_after", None)
        if is_number(delay) and delay is not None and delay >= 0:
            return min(float(delay), _LONGEST_WAIT)
        return float(min(self.backoff * 2.0 ** (attempts - 1), _LONGEST_WAIT))

    def to_dict(self) -> Mapping[str, Any]:
        """Return the limits that are set, as plain values."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class TimeLimit(Exception):  # noqa: N818 - an outcome, not an error
    """A call exceeded its time limit."""


def call_within(seconds: float | None, call: Callable[[], object]) -> None:
    """Make a call in a thread; raise TimeLimit and abandon the thread if it takes longer."""
    if seconds is None:
        call()
        return
    failed: list[BaseException] = []
    over = threading.Event()

    def work() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised below, in the calling thread
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


_BATCH = 32
_QUEUED_AHEAD = 8
# Programming errors, which a retry would repeat.
_PROGRAMMING_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    NotImplementedError,
    SyntaxError,
    TypeError,
)

Queries = Sequence[Query]
Record = Callable[[Response], None]
Ask = Callable[[Queries, int], Any]


class _TooManyFailures(Exception):  # noqa: N818 - an outcome, not an error
    """Too many consecutive failures: the remaining queries are not sent."""


@dataclass(slots=True)
class _Task:
    """Queries for one call."""

    queries: Queries
    attempts: int = 0


class _InvalidResponse(NamedTuple):
    """A response that is not a ranking: the message and the kind of failure."""

    said: str
    kind: str


# The result of a call: an outcome per query, or a single failure if it is not a list of rankings.
_Outcomes = Sequence[Hits | _InvalidResponse] | _InvalidResponse


def _convert(convert: Callable[[], Any]) -> Any:
    """Return the converted response of a retriever; any error in reading it is a failure."""
    value, error = attempt(convert)
    if isinstance(error, InputError):
        return _InvalidResponse(f"{error.what}; fix: {error.fix}" if error.fix else error.what, "response")
    return value if error is None else _InvalidResponse(describe_error(error), "error")


def _outcomes(response: Any, wanted: int, k: int) -> _Outcomes:
    """Convert the result of a call to hits; rankings that cannot be read are failures."""
    rankings = _convert(lambda: [aligned(response, wanted)[place] for place in range(wanted)])
    if isinstance(rankings, _InvalidResponse):
        return rankings
    return [
        ranking if isinstance(ranking, _InvalidResponse) else _convert(partial(hits_of, ranking, k))
        for ranking in rankings
    ]


class _Result(NamedTuple):
    """Outcomes of a call, or its exception, and the seconds it took."""

    outcomes: _Outcomes | None
    error: BaseException | None
    seconds: float


@dataclass
class _Calls:
    """Sequential calls in this thread, and the recording of their results."""

    search: Ask
    k: int
    limits: Limits
    record: Record
    failures: int = 0
    next_start: float = 0.0

    def run(self, tasks: Iterator[_Task]) -> None:
        """Make all calls."""
        waiting: list[_Task] = []
        while (task := waiting.pop(0) if waiting else next(tasks, None)) is not None:
            if pause := self.pause():
                time.sleep(pause)
            task.attempts += 1
            result = self._timed_call(task)
            # Everything else that a retriever raises is recorded, even if it is not an Exception,
            # such as SystemExit, a panic in a Rust library, or a cancellation.
            if isinstance(result.error, KeyboardInterrupt):
                raise result.error
            again = self.finish(task, result)
            time.sleep(max((wait for wait, _ in again), default=0.0))
            waiting[:0] = [task for _, task in again]

    def _timed_call(self, task: _Task, cancelled: Callable[[], bool] | None = None) -> _Result:
        """Make a call in this thread; awaitables are cancelled once ``cancelled`` returns True."""
        start = time.perf_counter()
        try:
            response = self.search(task.queries, self.k)
            if inspect.isawaitable(response):
                response = awaited(response, cancelled)
            if type(response) is list:
                # Lazy rankings are read here, so that reading them is timed.
                response = [
                    _convert(partial(listed_hits, ranking, self.k)) if isinstance(ranking, Iterator) else ranking
                    for ranking in response
                ]
            seconds = time.perf_counter() - start
            return _Result(_outcomes(response, len(task.queries), self.k), None, seconds)
        except BaseException as error:  # noqa: BLE001 - recorded; an interrupt is raised by the caller
            return _Result(None, error, time.perf_counter() - start)

    def pause(self) -> float:
        """Return the seconds until the next call may start, and count the call as started then."""
        if self.limits.rate is None:
            return 0.0
        now = time.monotonic()
        start = max(now, self.next_start)
        self.next_start = start + 1.0 / self.limits.rate
        return start - now

    def finish(self, task: _Task, result: _Result) -> list[tuple[float, _Task]]:
        """Record a finished call; return the calls that replace it, with the seconds until each."""
        outcomes, error, seconds = result
        if error is not None:
            wait = self._retry_wait(task, error)
            if wait is not None:
                return [(wait, task)]
            outcomes = _InvalidResponse(describe_error(error), "error")
            if isinstance(error, InputError):
                outcomes = _InvalidResponse(f"{describe_error(error)}; fix: {error.fix}", "response")
            if isinstance(error, TimeLimit):
                outcomes = _InvalidResponse(f"no response within {self.limits.timeout:g} s", "timeout")
        if isinstance(outcomes, _InvalidResponse):
            if len(task.queries) > 1:
                # A single query may be the cause: send each separately.
                return [(0.0, _Task([query])) for query in task.queries]
            outcomes = [outcomes]
        share = seconds / len(task.queries)
        for query, outcome in zip(task.queries, outcomes or (), strict=True):
            if not isinstance(outcome, _InvalidResponse):
                self.failures = 0
                self.record(Response(query.id, query_key(query), outcome, "", "", share, task.attempts))
                continue
            self.record(Response(query.id, query_key(query), None, *outcome, share, task.attempts))
            self.failures += 1
            if self.limits.stop_after is not None and self.failures >= self.limits.stop_after:
                raise _TooManyFailures
        return []

    def _retry_wait(self, task: _Task, error: BaseException) -> float | None:
        if task.attempts > self.limits.retries or isinstance(error, _PROGRAMMING_ERRORS):
            return None
        try:
            # Our errors say whether they are retryable; other errors are assumed to be.
            if not getattr(error, "retryable", not isinstance(error, RankgaugeError)):
                return None
            return self.limits.wait(task.attempts, error)
        except Exception:  # noqa: BLE001 - properties of a retriever's error may raise anything
            return None


# ---- concurrent calls in threads, each with a time limit


@dataclass(slots=True)
class _Call:
    """A pending, running, or abandoned call."""

    task: _Task
    started: float | None = None
    returned: bool = False
    abandoned: bool = False


@dataclass
class _ThreadedCalls(_Calls):
    """Worker threads that make the calls; a worker that exceeds the time limit is replaced.

    The main thread records responses and checks time limits, so that only one thread writes the
    journal, and Ctrl-C has an immediate effect. The queue of the workers contains a few calls in
    advance: waiting for the main thread after each call would take longer than a quick call.
    """

    def __post_init__(self) -> None:
        self._todo: SimpleQueue[_Call | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[_Call, _Result]] = SimpleQueue()
        self._pending: dict[int, _Call] = {}
        self._retries: list[tuple[float, int, _Task]] = []
        self._number = itertools.count()
        self._workers = 0
        # Guards the decision whether a call returned or was abandoned.
        self._lock = threading.Lock()
        # With a rate limit, a call starts when it is queued.
        self._capacity = self.limits.concurrency + (_QUEUED_AHEAD if self.limits.rate is None else 0)

    def run(self, tasks: Iterator[_Task]) -> None:
        """Make all calls."""
        try:
            while True:
                while len(self._pending) < self._capacity:
                    due = self._retries and self._retries[0][0] <= time.monotonic()
                    task = heapq.heappop(self._retries)[2] if due else next(tasks, None)
                    if task is None:
                        break
                    self._submit(task)
                if self._pending:
                    self._wait_for_call()
                elif self._retries:
                    time.sleep(max(0.0, self._retries[0][0] - time.monotonic()))
                else:
                    return
        finally:
            self._end_workers()

    def _submit(self, task: _Task) -> None:
        end = time.monotonic() + self.pause()
        while (left := end - time.monotonic()) > 0:
            # Record responses that arrive in the meantime, which a kill would lose.
            if self._pending:
                self._wait_for_call(left)
            else:
                time.sleep(left)
        if self._workers < min(self.limits.concurrency, len(self._pending) + 1):
            threading.Thread(target=self._work, daemon=True).start()
            self._workers += 1
        task.attempts += 1
        call = _Call(task)
        self._pending[id(call)] = call
        self._todo.put(call)

    def _wait_for_call(self, most: float | None = None) -> None:
        """Wait at most ``most`` seconds until a call returns or times out."""
        timeout, now = self.limits.timeout, time.monotonic()
        ends = [] if most is None else [now + most]
        # A retry that is due waits for a free slot or for the rate limit.
        if most is None and self._retries and len(self._pending) < self._capacity:
            ends.append(self._retries[0][0])
        if timeout is not None:
            starts = (now if call.started is None else call.started for call in self._pending.values())
            ends += [start + timeout for start in starts]
        try:
            call, result = self._done.get(timeout=max(0.0, min(ends) - now) if ends else None)
        except Empty:
            self._abandon_late_calls()
            return
        if call.abandoned:
            return  # its thread has ended and was already replaced
        del self._pending[id(call)]
        self._schedule_again(call.task, result)

    def _schedule_again(self, task: _Task, result: _Result) -> None:
        for wait, again in self.finish(task, result):
            heapq.heappush(self._retries, (time.monotonic() + wait, next(self._number), again))

    def _abandon_late_calls(self) -> None:
        timeout = self.limits.timeout
        if timeout is None:
            return
        now = time.monotonic()
        left = []
        for key, call in list(self._pending.items()):
            if call.started is not None and call.started + timeout <= now:
                with self._lock:
                    call.abandoned = not call.returned
                if call.returned:
                    continue
                del self._pending[key]
                self._workers -= 1
                left.append(call)
        if left:
            # A coroutine may be blocking the event loop that all calls share.
            abandon_blocked_loop()
        for call in left:
            if self._workers < len(self._pending):
                threading.Thread(target=self._work, daemon=True).start()
                self._workers += 1
            self._schedule_again(call.task, _Result(None, TimeLimit(), timeout))

    def _end_workers(self) -> None:
        """Keep the workers from starting further calls, and end idle workers."""
        for call in self._pending.values():
            call.abandoned = True
        with contextlib.suppress(Empty):
            while True:
                self._todo.get_nowait()
        for _ in range(self._workers):
            self._todo.put(None)

    def _work(self) -> None:
        while (call := self._todo.get()) is not None:
            call.started = time.monotonic()
            result = self._timed_call(call.task, lambda: call.abandoned)
            with self._lock:
                call.returned = True
            self._done.put((call, result))
            if call.abandoned:
                return


def send_queries(retriever: Any, queries: Iterable[Query], k: int, *, limits: Limits, record: Record) -> bool:
    """Send every query to a retriever; return False after ``stop_after`` consecutive failures."""
    search = responses_of(retriever, batched=limits.batch is not None)
    together = has_index(retriever) and limits.timeout is None
    size = limits.batch or (_BATCH if together else 1)
    tasks = (_Task(batch) for batch in batches(queries, size))
    calls = _Calls if limits.concurrency == 1 and limits.timeout is None else _ThreadedCalls
    try:
        calls(search, k, limits, record).run(tasks)
    except _TooManyFailures:
        return False
    return True

"""Asking a retriever every query: in order, or side by side in threads.

A thread waits for what an async retriever does in the event loop that all of them share.
Failures of a query are recorded as its response; nothing that a retriever does ends the
run, short of ending the process.
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
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from rankgauge.benchmark.journal import Response, query_key
from rankgauge.core.arguments import integer, is_number, number
from rankgauge.corpus.collection import Query
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.retrievers.base import batches
from rankgauge.retrievers.event_loop import abandon_blocked_loop, awaited
from rankgauge.retrievers.hits import Hits, hits_of, listed_hits
from rankgauge.retrievers.protocol import aligned, describe_error, has_index, responses_of

_LONGEST_WAIT = 120.0
_POLL = 0.1  # seconds: on Windows a longer wait does not hear the keyboard


@dataclass(frozen=True)
class Limits:
    """Limits of the calls of a retriever. Immutable.

    Attributes:
        concurrency: Maximum number of concurrent calls.
        rate: Maximum number of calls per second; None for no limit.
        timeout: Maximum seconds per call; None for no limit. A synchronous callable that does not
            return is abandoned in its thread and counted, because a thread cannot be killed; so is
            an event loop that an async callable blocks.
        index_timeout: Maximum seconds of ``index``; None for no limit. With a limit, it runs in a
            thread, which is abandoned if it takes longer, and the retriever is skipped.
        retries: Number of retries of a failed call. Not retried: invalid rankings, errors with
            ``retryable = False``, and programming errors (TypeError, KeyError, ZeroDivisionError,
            ...).
        backoff: Seconds before the first retry, doubled for each further one (at most two minutes);
            ``retry_after`` of an error takes precedence.
        batch: Queries per call of ``search`` (default 32; 1 with a timeout), or of a callable that
            takes a list of texts and returns a list of rankings.
        stop_after: Number of consecutive failures after which the run ends; None for no limit.

    Raises:
        InputError: For an invalid number.

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


_BATCH = 32
_AHEAD = 8
# Faults of the program that another attempt meets again.
_FAULTS = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError,
    NotImplementedError, SyntaxError, TypeError,
)  # fmt: skip

# Anything else that a retriever raises is recorded: also what is no Exception, such as
# SystemExit, the panic of a library written in Rust, or a cancellation of its own.
_INTERRUPTS = (KeyboardInterrupt,)

Queries = Sequence[Query]
Record = Callable[[Response], None]
Ask = Callable[[Queries, int], Any]


class _Enough(Exception):  # noqa: N818 - an outcome, and no fault of ours
    """Too many failures in a row: the remaining queries are not asked."""


@dataclass(slots=True)
class _Task:
    """Queries for one call."""

    queries: Queries
    attempts: int = 0


class _Unusable(NamedTuple):
    """A response that is not a ranking: the reason and the kind of failure."""

    said: str
    kind: str


# The result of a call: one per query, or none if it is not a list of rankings.
_Outcomes = Sequence[Hits | _Unusable] | _Unusable


def _outcomes(found: Any, wanted: int, k: int) -> _Outcomes:
    """What a call returned as hits; what cannot be read is a failure of its query."""
    try:
        listed = aligned(found, wanted)
        rankings = [listed[place] for place in range(wanted)]
    except _INTERRUPTS:
        raise
    except BaseException as error:  # noqa: BLE001 - what it returned is an object of its own making
        return _unusable(error)
    return [_outcome(ranking, k) for ranking in rankings]


def _outcome(ranking: Any, k: int) -> Hits | _Unusable:
    if isinstance(ranking, _Unusable):
        return ranking
    try:
        return hits_of(ranking, k)
    except _INTERRUPTS:
        raise
    except BaseException as error:  # noqa: BLE001 - a ranking may be an iterator that fails
        return _unusable(error)


def _unusable(error: BaseException) -> _Unusable:
    if isinstance(error, InputError):
        return _Unusable(f"{error.what}; fix: {error.fix}" if error.fix else error.what, "response")
    return _Unusable(describe_error(error), "error")


def _read_out(ranking: Any, k: int) -> Any:
    """A ranking, read if it is made only while it is read."""
    if not isinstance(ranking, Iterator):
        return ranking
    try:
        return listed_hits(ranking, k)
    except _INTERRUPTS:
        raise
    except BaseException as error:  # noqa: BLE001 - it may fail as any code may
        return _unusable(error)


class _Result(NamedTuple):
    """Outcome of a call: the value or exception, and the seconds it took."""

    found: _Outcomes | None
    error: BaseException | None
    seconds: float


def _called(
    search: Ask, task: _Task, k: int, given_up: Callable[[], bool] | None = None
) -> _Result:
    """Make a call in this thread; what it awaits is cancelled once it is given up."""
    start = time.perf_counter()
    try:
        found = search(task.queries, k)
        if inspect.isawaitable(found):
            found = awaited(found, given_up)
        if type(found) is list:
            found = [_read_out(one, k) for one in found]
        seconds = time.perf_counter() - start
        return _Result(_outcomes(found, len(task.queries), k), None, seconds)
    except BaseException as error:  # noqa: BLE001 - recorded; an interrupt is raised by the caller
        return _Result(None, error, time.perf_counter() - start)


@dataclass(slots=True)
class _Recorder:
    """What every way of asking shares: k, limits, and where responses go."""

    k: int
    limits: Limits
    record: Record
    failures: int = 0
    next_start: float = 0.0

    def pause(self) -> float:
        """Seconds until the next call may begin, which is then taken as begun."""
        if self.limits.rate is None:
            return 0.0
        now = time.monotonic()
        start = max(now, self.next_start)
        self.next_start = start + 1.0 / self.limits.rate
        return start - now

    def finish(self, task: _Task, result: _Result) -> tuple[float | None, list[_Task]]:
        """Record the end of a call; return seconds until it is repeated, and calls in its place."""
        found, error, seconds = result
        if error is not None:
            wait = self._retry_wait(task, error)
            return wait, [] if wait is not None else self._give_up(task, error, seconds)
        if isinstance(found, _Unusable):
            return None, self._failed(task, *found, seconds)
        share = seconds / len(task.queries)
        for query, one in zip(task.queries, found or (), strict=True):
            if isinstance(one, _Unusable):
                self._record_failure(query, *one, share, task.attempts)
                continue
            self.failures = 0
            self.record(Response(query.id, query_key(query), one, "", "", share, task.attempts))
        return None, []

    def _retry_wait(self, task: _Task, error: BaseException) -> float | None:
        if task.attempts > self.limits.retries or isinstance(error, _FAULTS):
            return None
        try:
            # An error of ours says if it may pass; others are given the benefit of the doubt.
            if not getattr(error, "retryable", not isinstance(error, RankgaugeError)):
                return None
            return self.limits.wait(task.attempts, error)
        except Exception:  # noqa: BLE001 - the error is of a retriever: its properties may raise
            return None

    def _give_up(self, task: _Task, error: BaseException, seconds: float) -> list[_Task]:
        if isinstance(error, TimeLimit):
            late = f"no response within {self.limits.timeout:g} s"
            return self._failed(task, late, "timeout", seconds)
        return self._failed(task, describe_error(error), "error", seconds)

    def _failed(self, task: _Task, why: str, kind: str, seconds: float) -> list[_Task]:
        if len(task.queries) > 1:
            # One of them may be to blame: each by itself.
            return [_Task([query]) for query in task.queries]
        self._record_failure(task.queries[0], why, kind, seconds, task.attempts)
        return []

    def _record_failure(  # noqa: PLR0917 - the parts of a response
        self, query: Query, why: str, kind: str, seconds: float, attempts: int
    ) -> None:
        self.record(Response(query.id, query_key(query), None, why, kind, seconds, attempts))
        self.failures += 1
        if self.limits.stop_after is not None and self.failures >= self.limits.stop_after:
            raise _Enough


def ask(
    retriever: Any, queries: Iterable[Query], k: int, *, limits: Limits, record: Record
) -> bool:
    """Ask a retriever every query; False after `limits.stop_after` failures in a row."""
    search = responses_of(retriever, batched=limits.batch is not None)
    together = has_index(retriever) and limits.timeout is None
    size = limits.batch or (_BATCH if together else 1)
    tasks = (_Task(some) for some in batches(queries, size))
    recorder = _Recorder(k, limits, record)
    try:
        if limits.concurrency == 1 and limits.timeout is None:
            _in_order(search, tasks, recorder)
        else:
            _Threads(search, recorder).run(tasks)
    except _Enough:
        return False
    return True


# ---- in order, in this thread


def _in_order(search: Ask, tasks: Iterator[_Task], recorder: _Recorder) -> None:
    waiting: list[_Task] = []
    while (task := waiting.pop(0) if waiting else next(tasks, None)) is not None:
        if pause := recorder.pause():
            time.sleep(pause)
        task.attempts += 1
        result = _called(search, task, recorder.k)
        if isinstance(result.error, _INTERRUPTS):
            raise result.error
        wait, instead = recorder.finish(task, result)
        waiting += instead
        if wait is not None:
            time.sleep(wait)
            waiting.insert(0, task)


# ---- side by side in threads, each call with a time limit


@dataclass(slots=True)
class _Call:
    """A call that a thread will make, is making, or was abandoned with."""

    task: _Task
    started: float | None = None
    back: bool = False
    abandoned: bool = False


class _Threads:
    """Workers that make the calls; one that does not come back in time is replaced.

    Responses are recorded and time limits kept by the thread that runs it all, so that a journal is
    written by one thread only, and an interrupt from the keyboard is met at once. Workers find a
    few calls ahead in their queue: to wait for this thread after each would cost more than a quick
    call.
    """

    def __init__(self, search: Ask, recorder: _Recorder) -> None:
        self._search = search
        self._recorder = recorder
        self._todo: SimpleQueue[_Call | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[_Call, _Result]] = SimpleQueue()
        self._out: dict[int, _Call] = {}
        self._later: list[tuple[float, int, _Task]] = []
        self._again: list[_Task] = []
        self._number = itertools.count()
        self._workers = 0
        # Whether a call returned or was abandoned is decided once.
        self._lock = threading.Lock()
        limits = recorder.limits
        # With a rate to keep, a call begins when it is handed out.
        self._most = limits.concurrency + (_AHEAD if limits.rate is None else 0)

    def run(self, tasks: Iterator[_Task]) -> None:
        """Make all the calls."""
        try:
            while True:
                while len(self._out) < self._most:
                    task = self._next(tasks)
                    if task is None:
                        break
                    self._hand_out(task)
                if self._out:
                    self._settle_one()
                elif self._later:
                    time.sleep(max(0.0, self._later[0][0] - time.monotonic()))
                else:
                    return
        finally:
            self._end_workers()

    def _next(self, tasks: Iterator[_Task]) -> _Task | None:
        if self._later and self._later[0][0] <= time.monotonic():
            return heapq.heappop(self._later)[2]
        return self._again.pop(0) if self._again else next(tasks, None)

    def _hand_out(self, task: _Task) -> None:
        if pause := self._recorder.pause():
            self._wait(pause)
        if self._workers < min(self._recorder.limits.concurrency, len(self._out) + 1):
            threading.Thread(target=self._work, daemon=True).start()
            self._workers += 1
        task.attempts += 1
        call = _Call(task)
        self._out[id(call)] = call
        self._todo.put(call)

    def _wait(self, pause: float) -> None:
        """Wait, and record responses that arrive meanwhile: a kill would lose them."""
        end = time.monotonic() + pause
        while (left := end - time.monotonic()) > 0:
            if self._out:
                self._settle_one(left)
            else:
                time.sleep(left)

    def _settle_one(self, most: float | None = None) -> None:
        """Wait until a call returns or times out, at most `most` seconds."""
        # A retry that is due has to wait for a place among the calls that are out, or for the rate.
        patience = self._patience(retries=most is None and len(self._out) < self._most)
        if most is not None:
            patience = most if patience is None else min(most, patience)
        try:
            call, result = self._done.get(timeout=patience)
        except Empty:
            self._leave_behind()
            return
        if call.abandoned:
            return  # its thread returned after all, and ended: another has its place
        del self._out[id(call)]
        self._finish(call.task, result)

    def _finish(self, task: _Task, result: _Result) -> None:
        wait, instead = self._recorder.finish(task, result)
        self._again += instead
        if wait is not None:
            heapq.heappush(self._later, (time.monotonic() + wait, next(self._number), task))

    def _patience(self, *, retries: bool) -> float | None:
        """Seconds until the first call runs out of time, or one is to be tried again."""
        timeout = self._recorder.limits.timeout
        moments = [self._later[0][0]] if self._later and retries else []
        if timeout is not None:
            now = time.monotonic()
            moments += [
                (now if call.started is None else call.started) + timeout
                for call in self._out.values()
            ]
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def _leave_behind(self) -> None:
        timeout = self._recorder.limits.timeout
        if timeout is None:
            return
        now = time.monotonic()
        left = []
        for key, call in list(self._out.items()):
            if call.started is not None and call.started + timeout <= now:
                with self._lock:
                    call.abandoned = not call.back
                if call.back:
                    continue
                del self._out[key]
                self._workers -= 1
                left.append(call)
        if left:
            # A coroutine may block the event loop for the others.
            abandon_blocked_loop()
        for call in left:
            if self._workers < len(self._out):
                threading.Thread(target=self._work, daemon=True).start()
                self._workers += 1
            self._finish(call.task, _Result(None, TimeLimit(), timeout))

    def _end_workers(self) -> None:
        """Stop threads from starting another call, and end waiting ones."""
        for call in self._out.values():
            call.abandoned = True
        with contextlib.suppress(Empty):
            while True:
                self._todo.get_nowait()
        for _ in range(self._workers):
            self._todo.put(None)

    def _work(self) -> None:
        while (call := self._todo.get()) is not None:
            call.started = time.monotonic()
            result = _called(self._search, call.task, self._recorder.k, lambda: call.abandoned)
            with self._lock:
                call.back = True
            self._done.put((call, result))
            if call.abandoned:
                return

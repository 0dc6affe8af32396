"""Asking a retriever every query: in order, side by side in threads, or side by side in a loop.

Whatever goes wrong with a query is its answer; nothing that a retriever does ends the run, short of
ending the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import inspect
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from rankgauge.bench.journal import Answer, query_key
from rankgauge.bench.limits import Limits
from rankgauge.collection import Query
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.redaction import redact
from rankgauge.retriever import aligned, answers_of, awaited, has_index, hits_of, is_async

__all__ = ["ask"]

_BATCH = 32
_AHEAD = 8
# Faults of the program that another attempt meets again.
_FAULTS = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError,
    NotImplementedError, SyntaxError, TypeError,
)  # fmt: skip

# What ends the run itself. Anything else a retriever raises is its answer: also what is no
# Exception, such as the panic of a library written in Rust, or a cancellation of its own.
_INTERRUPTS = (KeyboardInterrupt, GeneratorExit)

Queries = Sequence[Query]
Record = Callable[[Answer], None]
Ask = Callable[[Queries, int], Any]


class _Timeout(Exception):  # noqa: N818 - an outcome, raised and caught in this module
    """A call took longer than it may."""


class _Enough(Exception):  # noqa: N818 - the same
    """So many failures in a row that the rest is not asked."""


@dataclass(slots=True)
class _Task:
    """Queries for one call."""

    queries: Queries
    attempts: int = 0


@dataclass(slots=True)
class _Desk:
    """What every way of asking shares: k, limits, where answers go."""

    k: int
    limits: Limits
    record: Record
    failures: int = 0
    begun: float = field(default_factory=time.monotonic)
    next_start: float = 0.0

    def pause(self) -> float:
        """Seconds until the next call may begin, which is then taken as begun."""
        if self.limits.rate is None:
            return 0.0
        now = time.monotonic()
        start = max(now, self.next_start)
        self.next_start = start + 1.0 / self.limits.rate
        return start - now

    def settle(self, task: _Task, found: Any, seconds: float) -> list[_Task]:
        """Record what a call returned; what is to be asked again, query by query."""
        try:
            rankings = aligned(found, len(task.queries))
        except InputError as error:
            return self._failed(task, _mended(error), "answer", seconds)
        share = seconds / len(task.queries)
        for query, ranking in zip(task.queries, rankings, strict=True):
            try:
                hits = hits_of(ranking, self.k)
            except InputError as error:
                self._say(query, _mended(error), "answer", share, task.attempts)
                continue
            except Exception as error:  # noqa: BLE001 - a ranking may be an iterator that fails
                self._say(query, _said(error), "error", share, task.attempts)
                continue
            self.failures = 0
            self.record(Answer(query.id, query_key(query), hits, "", "", share, task.attempts))
        return []

    def again(self, task: _Task, error: BaseException) -> float | None:
        """Seconds to wait before the call is made again; None if it is not."""
        if task.attempts > self.limits.retries or isinstance(error, _FAULTS):
            return None
        # An error of ours says it if it may pass; others are given the benefit of the doubt.
        if not getattr(error, "retryable", not isinstance(error, RankgaugeError)):
            return None
        return self.limits.wait(task.attempts, error)

    def give_up(self, task: _Task, error: BaseException, seconds: float) -> list[_Task]:
        """Record that a call failed for good; what is to be asked again, query by query."""
        if isinstance(error, _Timeout):
            return self._failed(task, f"no answer within {self.limits.timeout:g} s", "timeout",
                                seconds)  # fmt: skip
        return self._failed(task, _said(error), "error", seconds)

    def _failed(self, task: _Task, said: str, kind: str, seconds: float) -> list[_Task]:
        if len(task.queries) > 1:
            # One of them may be to blame: each by itself.
            return [_Task([query]) for query in task.queries]
        self._say(task.queries[0], said, kind, seconds, task.attempts)
        return []

    def _say(self, query: Query, said: str, kind: str, seconds: float, attempts: int) -> None:  # noqa: PLR0917 - the parts of an answer
        self.record(Answer(query.id, query_key(query), None, said, kind, seconds, attempts))
        self.failures += 1
        if self.limits.stop_after is not None and self.failures >= self.limits.stop_after:
            raise _Enough


def _mended(error: InputError) -> str:
    """What is wrong with an answer and what mends it: asked again, it would be the same."""
    return f"{error.what}; fix: {error.fix}" if error.fix else error.what


def _said(error: BaseException) -> str:
    # Before a line is cut off: with it goes what tells where a secret ends.
    first = redact(str(error)).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def ask(
    retriever: Any, queries: Iterable[Query], k: int, *, limits: Limits, record: Record
) -> bool:
    """Ask a retriever every query and record each answer as it comes.

    Args:
        retriever: A retriever, or a callable; see :class:`rankgauge.Retriever`.
        queries: What is asked; read as it is needed.
        k: How many documents are wanted.
        limits: How it may be driven.
        record: Called with each answer, always from one and the same thread.

    Returns:
        Whether all were asked; False after `limits.stop_after` failures in a row.

    Raises:
        InputError: If `retriever` is none.
    """
    search = answers_of(retriever, batched=limits.batch is not None)
    together = has_index(retriever) and limits.timeout is None
    size = limits.batch or (_BATCH if together else 1)
    tasks = (_Task(list(some)) for some in _batches(queries, size))
    desk = _Desk(k, limits, record)
    try:
        if is_async(retriever):
            awaited(_side_by_side(search, tasks, desk))
        elif limits.concurrency == 1 and limits.timeout is None:
            _in_order(search, tasks, desk)
        else:
            _Threads(search, desk).run(tasks)
    except _Enough:
        return False
    return True


def _batches(queries: Iterable[Query], size: int) -> Iterator[tuple[Query, ...]]:
    rest = iter(queries)
    while some := tuple(itertools.islice(rest, size)):
        yield some


# ---- in order, in this thread


def _in_order(search: Ask, tasks: Iterator[_Task], desk: _Desk) -> None:
    waiting: list[_Task] = []
    while (task := waiting.pop(0) if waiting else next(tasks, None)) is not None:
        while True:
            if pause := desk.pause():
                time.sleep(pause)
            task.attempts += 1
            start = time.perf_counter()
            try:
                found = search(task.queries, desk.k)
                if inspect.isawaitable(found):
                    found = awaited(found)
            except _INTERRUPTS:
                raise
            except BaseException as error:  # noqa: BLE001 - it is recorded
                seconds = time.perf_counter() - start
                wait = desk.again(task, error)
                if wait is None:
                    waiting.extend(desk.give_up(task, error, seconds))
                    break
                time.sleep(wait)
            else:
                waiting.extend(desk.settle(task, found, time.perf_counter() - start))
                break


# ---- side by side in threads, each call with a time limit


@dataclass(slots=True)
class _Call:
    """A call that a thread is to make, makes, or was left behind with."""

    task: _Task
    started: float | None = None
    back: bool = False
    abandoned: bool = False


class _Threads:
    """Workers that make the calls; one that does not come back in time is replaced.

    Answers are recorded and time limits kept by the thread that runs it all, so that a journal is
    written by one thread only, and an interrupt from the keyboard is met at once. Workers find a
    few calls ahead in their queue: to wait for this thread after each would cost more than a quick
    call.
    """

    def __init__(self, search: Ask, desk: _Desk) -> None:
        self._search = search
        self._desk = desk
        self._todo: SimpleQueue[_Call | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[_Call, Any, BaseException | None, float]] = SimpleQueue()
        self._out: dict[int, _Call] = {}
        self._later: list[tuple[float, int, _Task]] = []
        self._again: list[_Task] = []
        self._number = itertools.count()
        self._workers = 0
        # Whether a call came back or was left behind: one of the two, said once.
        self._fate = threading.Lock()
        limits = desk.limits
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
            self._send_home()

    def _next(self, tasks: Iterator[_Task]) -> _Task | None:
        if self._later and self._later[0][0] <= time.monotonic():
            return heapq.heappop(self._later)[2]
        return self._again.pop(0) if self._again else next(tasks, None)

    def _hand_out(self, task: _Task) -> None:
        if pause := self._desk.pause():
            self._wait(pause)
        if self._workers < min(self._desk.limits.concurrency, len(self._out) + 1):
            threading.Thread(target=self._work, daemon=True).start()
            self._workers += 1
        task.attempts += 1
        call = _Call(task)
        self._out[id(call)] = call
        self._todo.put(call)

    def _wait(self, pause: float) -> None:
        """Let the time go by, and record what comes back meanwhile: a kill would lose it."""
        end = time.monotonic() + pause
        while (left := end - time.monotonic()) > 0:
            if self._out:
                self._settle_one(left)
            else:
                time.sleep(left)

    def _settle_one(self, most: float | None = None) -> None:
        """Wait for one call to come back or to run out of time; `most` seconds at most."""
        # A retry that is due has to wait for a place among the calls that are out, or for the rate.
        patience = self._patience(retries=most is None and len(self._out) < self._most)
        if most is not None:
            patience = most if patience is None else min(most, patience)
        try:
            call, found, error, seconds = self._done.get(timeout=patience)
        except Empty:
            self._leave_behind()
            return
        if call.abandoned:
            return  # its thread came back after all, and ended: another has its place
        del self._out[id(call)]
        if error is None:
            self._again += self._desk.settle(call.task, found, seconds)
        else:
            self._failed(call.task, error, seconds)

    def _patience(self, *, retries: bool) -> float | None:
        """Seconds until the first call runs out of time, or one is to be tried again."""
        timeout = self._desk.limits.timeout
        moments = [self._later[0][0]] if self._later and retries else []
        if timeout is not None:
            now = time.monotonic()
            moments += [
                (now if call.started is None else call.started) + timeout
                for call in self._out.values()
            ]
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def _leave_behind(self) -> None:
        timeout = self._desk.limits.timeout
        if timeout is None:
            return
        now = time.monotonic()
        for key, call in list(self._out.items()):
            if call.started is not None and call.started + timeout <= now:
                with self._fate:
                    call.abandoned = not call.back
                if call.back:
                    continue
                del self._out[key]
                self._workers -= 1
                if self._workers < len(self._out):
                    threading.Thread(target=self._work, daemon=True).start()
                    self._workers += 1
                self._failed(call.task, _Timeout(), timeout)

    def _failed(self, task: _Task, error: BaseException, seconds: float) -> None:
        wait = self._desk.again(task, error)
        if wait is None:
            self._again += self._desk.give_up(task, error, seconds)
        else:
            heapq.heappush(self._later, (time.monotonic() + wait, next(self._number), task))

    def _send_home(self) -> None:
        """Let no thread begin another call, and end those that wait."""
        with contextlib.suppress(Empty):
            while True:
                self._todo.get_nowait()
        for _ in range(self._workers):
            self._todo.put(None)

    def _work(self) -> None:
        while (call := self._todo.get()) is not None:
            found, failed = None, None
            call.started = time.monotonic()
            start = time.perf_counter()
            try:
                found = self._search(call.task.queries, self._desk.k)
                if inspect.isawaitable(found):
                    found = awaited(found)
            except BaseException as error:  # noqa: BLE001 - recorded; a thread has no one above it
                failed = error
            seconds = time.perf_counter() - start
            with self._fate:
                call.back = True
            self._done.put((call, found, failed, seconds))
            if call.abandoned:
                return


# ---- side by side in a loop


async def _side_by_side(search: Ask, tasks: Iterator[_Task], desk: _Desk) -> None:
    again: list[_Task] = []

    async def work() -> None:
        # Whoever leaves something to be asked again looks here once more before it goes home.
        while (task := again.pop(0) if again else next(tasks, None)) is not None:
            again.extend(await _one(search, task, desk))

    workers = [asyncio.ensure_future(work()) for _ in range(desk.limits.concurrency)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _one(search: Ask, task: _Task, desk: _Desk) -> list[_Task]:
    while True:
        if pause := desk.pause():
            await asyncio.sleep(pause)
        task.attempts += 1
        start = time.perf_counter()
        try:
            if desk.limits.timeout is None:
                found = await search(task.queries, desk.k)
            else:
                found = await _limited(search, task, desk)
        except _INTERRUPTS:
            raise
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and _ours():
                raise
            seconds = time.perf_counter() - start
            wait = desk.again(task, error)
            if wait is None:
                return desk.give_up(task, error, seconds)
            await asyncio.sleep(wait)
        else:
            return desk.settle(task, found, time.perf_counter() - start)


def _ours() -> bool:
    """Whether it was we who cancelled the worker, and not the retriever its own work."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def _limited(search: Ask, task: _Task, desk: _Desk) -> Any:
    limit = asyncio.timeout(desk.limits.timeout)
    try:
        async with limit:
            return await search(task.queries, desk.k)
    except TimeoutError:
        if limit.expired():
            raise _Timeout from None
        raise

"""Asking a retriever every query: in order, side by side in threads, or side by side in a loop.

Whatever goes wrong with a query is recorded as its response; nothing that a retriever does ends the
run, short of ending the process.
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
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeAlias

from rankgauge.benchmark.journal import Response, query_key
from rankgauge.benchmark.limits import Limits, TimeLimit
from rankgauge.corpus.collection import Query
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.retrievers.base import batches
from rankgauge.retrievers.event_loop import LoopBlocked, abandon_blocked_loop, awaited
from rankgauge.retrievers.hits import Hits, hits_of, listed_hits
from rankgauge.retrievers.protocol import aligned, describe_error, has_index, is_async, responses_of

_BATCH = 32
_AHEAD = 8
_GRACE = 0.5  # seconds in which a call that was cancelled has to end
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
    """So many failures in a row that the rest is not asked."""


@dataclass(slots=True)
class _Task:
    """Queries for one call."""

    queries: Queries
    attempts: int = 0


class _Unusable(NamedTuple):
    """What a retriever returned that is no ranking: why, and what kind of failure that is."""

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


def _read_out(found: Any, k: int) -> Any:
    """What was found, with rankings that are made only while they are read."""
    if type(found) is list and any(isinstance(one, Iterator) for one in found):
        return [_read(one, k) if isinstance(one, Iterator) else one for one in found]
    return found


def _read(ranking: Iterator[Any], k: int) -> Any:
    try:
        return listed_hits(ranking, k)
    except _INTERRUPTS:
        raise
    except BaseException as error:  # noqa: BLE001 - it may fail as any code may
        return _failing(error)


def _failing(error: BaseException) -> Iterator[Any]:
    raise error
    yield


class _Result(NamedTuple):
    """The end of a call: what it returned or raised, and the seconds it took."""

    found: _Outcomes | None
    error: BaseException | None
    seconds: float


def _called(search: Ask, task: _Task, k: int) -> _Result:
    """Make a call in this thread."""
    start = time.perf_counter()
    try:
        found = search(task.queries, k)
        if inspect.isawaitable(found):
            found = awaited(found)
        found = _read_out(found, k)
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
        if is_async(retriever):
            _Loops(search, recorder, tasks).run()
        elif limits.concurrency == 1 and limits.timeout is None:
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
    """A call that a thread is to make, makes, or was left behind with."""

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
        # Whether a call returned or was left behind is decided once.
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
            # What it awaits may hold up the loop in which others would wait, too.
            abandon_blocked_loop()
        for call in left:
            if self._workers < len(self._out):
                threading.Thread(target=self._work, daemon=True).start()
                self._workers += 1
            self._finish(call.task, _Result(None, TimeLimit(), timeout))

    def _end_workers(self) -> None:
        """Let no thread begin another call, and end those that wait."""
        with contextlib.suppress(Empty):
            while True:
                self._todo.get_nowait()
        for _ in range(self._workers):
            self._todo.put(None)

    def _work(self) -> None:
        while (call := self._todo.get()) is not None:
            call.started = time.monotonic()
            result = _called(self._search, call.task, self._recorder.k)
            with self._lock:
                call.back = True
            self._done.put((call, result))
            if call.abandoned:
                return


# ---- side by side in a loop

_Made: TypeAlias = asyncio.Task[_Result]


@dataclass(slots=True, eq=False)
class _Awaited:
    """A call in a loop, and when the loop must have come back to it."""

    task: _Task
    due: float | None = None
    made: _Made | None = None


class _Loops:
    """Calls awaited side by side in a loop; one that holds up the loop is left behind with it.

    The other calls that were under way in that loop are made again in the next.
    """

    def __init__(self, search: Ask, recorder: _Recorder, tasks: Iterator[_Task]) -> None:
        self._search, self._recorder, self._tasks = search, recorder, tasks
        self._again: list[_Task] = []

    def run(self) -> None:
        """Make all the calls."""
        abandon_blocked_loop()  # something that was left behind in it may hold it up
        while True:
            session = _LoopCalls(self._search, self._recorder, self._tasks, self._again)
            try:
                awaited(session.run(), session.blocked)
            except LoopBlocked:
                self._blame(session)
            except asyncio.CancelledError as error:
                # The retriever cancelled all tasks of the loop, and with them the session.
                for call in session.out:
                    self._failed(call, error, 0.0)
            else:
                return

    def _blame(self, session: _LoopCalls) -> None:
        """Give up the call that holds up a loop, and have the others of that loop made again."""
        now = time.monotonic()
        running = asyncio.current_task(session.loop)
        late = [call for call in session.out if call.due is not None and call.due < now]
        # What the retriever itself has started there is of nobody knows which call.
        guilty = [call for call in late if call.made is running] or late
        for call in session.out:
            if call not in guilty:
                call.task.attempts -= 1
                self._again.append(call.task)
        for call in guilty:
            self._failed(call, TimeLimit(), self._recorder.limits.timeout or 0.0)

    def _failed(self, call: _Awaited, error: BaseException, seconds: float) -> None:
        wait, instead = self._recorder.finish(call.task, _Result(None, error, seconds))
        self._again += instead
        if wait is not None:
            time.sleep(wait)
            self._again.append(call.task)


class _LoopCalls:
    """The calls that are made in one loop.

    Attributes:
        loop: The loop, once it is there.
        out: The calls that were begun and not recorded.
    """

    def __init__(
        self, search: Ask, recorder: _Recorder, tasks: Iterator[_Task], again: list[_Task]
    ) -> None:
        self._search, self._recorder, self._tasks = search, recorder, tasks
        self._again = again
        self.loop: asyncio.AbstractEventLoop
        self.out: list[_Awaited] = []
        # Whether the session ended, or its loop was left behind: from then on nothing of it counts.
        self._left = False
        self._lock = threading.Lock()

    def blocked(self) -> bool:
        """Whether a call is so late that the loop cannot have come back to it."""
        if self._recorder.limits.timeout is None:
            return False
        limit = time.monotonic() - _GRACE
        with self._lock:
            self._left = any(call.due is not None and call.due < limit for call in self.out)
        return self._left

    async def run(self) -> None:
        self.loop = asyncio.get_running_loop()
        workers = [
            asyncio.ensure_future(self._work()) for _ in range(self._recorder.limits.concurrency)
        ]
        try:
            await asyncio.gather(*workers)
        finally:
            with self._lock:
                self._left = True
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers, timeout=2 * _GRACE)

    async def _work(self) -> None:
        # A worker that leaves something to be asked again looks here once more before it ends.
        while (call := self._next()) is not None:
            again = await self._one(call)
            with self._lock:
                if not self._left:
                    self._again.extend(again)

    def _next(self) -> _Awaited | None:
        with self._lock:
            if self._left:
                return None
            task = self._again.pop(0) if self._again else next(self._tasks, None)
            if task is None:
                return None
            call = _Awaited(task)
            self.out.append(call)
            return call

    async def _one(self, call: _Awaited) -> list[_Task]:
        """Make a call until it succeeds or is given up; return what to ask instead."""
        task = call.task
        while True:
            if pause := self._recorder.pause():
                await asyncio.sleep(pause)
            task.attempts += 1
            start = time.perf_counter()
            made = await self._ended(call)
            try:
                if made is None:
                    raise TimeLimit  # noqa: TRY301 - an end like those that the call raises
                result = made.result()
            except _INTERRUPTS:
                raise
            except BaseException as error:  # noqa: BLE001 - it is recorded
                result = _Result(None, error, time.perf_counter() - start)
            with self._lock:
                if self._left:
                    return []
                wait, instead = self._recorder.finish(task, result)
                if wait is None:
                    self.out.remove(call)
                    return instead
            await asyncio.sleep(wait)

    async def _call(self, task: _Task) -> _Result:
        start, k = time.perf_counter(), self._recorder.k
        found = _read_out(await self._search(task.queries, k), k)
        seconds = time.perf_counter() - start
        return _Result(_outcomes(found, len(task.queries), k), None, seconds)

    async def _ended(self, call: _Awaited) -> _Made | None:
        """Wait for the end of a call; None if it took too long, and was left behind if need be.

        The call is a task of its own: a retriever that cancels its task does not cancel the worker.
        """
        most = self._recorder.limits.timeout
        made = call.made = asyncio.ensure_future(self._call(call.task))
        made.add_done_callback(lambda done: done.cancelled() or done.exception())
        if most is not None:
            call.due = time.monotonic() + most
        try:
            await asyncio.wait({made}, timeout=most)
            return made if made.done() else None
        finally:
            if not made.done():
                made.cancel()
                call.due = time.monotonic() + _GRACE
                await asyncio.wait({made}, timeout=_GRACE)
            call.due = None

"""The retriever protocol, and indexing and searching with any retriever.

A retriever is an object with two methods (:class:`Retriever`), or any callable from the text of a
query to documents.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import inspect
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from rankgauge.core.redaction import redact
from rankgauge.core.text import many
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.retrievers.hits import Hits, adapter_hint, hits_of, shown

# Search methods of other libraries that take a text.
_METHODS = ("invoke", "retrieve", "get_relevant_documents", "similarity_search", "query", "run")


@runtime_checkable
class Retriever(Protocol):
    """Protocol of a retriever, which indexes documents and searches them.

    Optional attributes: ``settings`` (a mapping of plain values that identifies the retriever:
    equal settings and documents give equal rankings; without it, results are not reused), ``size``
    (bytes of the index), ``usage()`` (the usage so far, such as ``{"tokens": 812}``), and
    ``close()``. ``search`` may be a coroutine function.

    Example:
        >>> class Longest:
        ...     def index(self, documents):
        ...         self.ids = [d.id for d in sorted(documents, key=lambda d: -len(d.text))]
        ...
        ...     def search(self, queries, k):
        ...         return [self.ids[:k] for _ in queries]
        >>> isinstance(Longest(), Retriever)
        True
    """

    def index(self, documents: Iterable[Document], /) -> object:
        """Index the documents, which can be iterated more than once."""

    def search(self, queries: Sequence[Query], k: int, /) -> Any:
        """Return one ranking per query, in order, of at most `k` documents, best first."""


def has_index(retriever: Any) -> bool:
    """Return whether the retriever has ``index`` and ``search``; other retrievers are callables."""
    return isinstance(retriever, Retriever)


def attempt(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Return the result of code of a retriever, or the error that it raised.

    The error may not be an Exception: SystemExit, a panic in a Rust library, or a cancellation.

    Example:
        >>> attempt(lambda: [].pop())
        (None, IndexError('pop from empty list'))
    """
    try:
        return call(), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - it may raise anything
        return None, error


def settings_of(retriever: Any) -> Mapping[str, Any] | None:
    """Return the settings of a retriever; None if it has none."""
    settings, error = attempt(lambda: getattr(retriever, "settings", None))
    if isinstance(error, RankgaugeError):
        raise error
    if error is not None:
        raise InputError(
            f"reading its settings failed: {describe_error(error)}",
            where=f"{type(retriever).__name__}.settings",
            fix="let settings return a mapping of plain values, or None",
        ) from error
    return settings if isinstance(settings, Mapping) else None


def describe_error(error: BaseException) -> str:
    """Return the kind of an error and the first line of its message, without secrets.

    Example:
        >>> describe_error(ValueError("no such index"))
        'ValueError: no such index'
    """
    kind = type(error).__name__
    text, failure = attempt(lambda: str(error))
    if failure is not None:
        return f"{kind} (its message cannot be shown: __str__ raised)"
    # Redact before cutting off lines, which may contain the end of a secret.
    first = redact(text).strip().partition("\n")[0]
    return f"{kind}: {first}" if first else kind


@dataclass(slots=True)
class _IndexRecord:
    """The last indexing of a retriever: its documents, those of its parts, and the time.

    ``saved`` is the part of ``seconds`` that was saved because parts were already indexed.
    """

    documents: Callable[[], Any] = lambda: None
    parts: list[tuple[Callable[[], Any], Callable[[], Any]]] = field(default_factory=list)
    seconds: float = 0.0
    saved: float = 0.0


# The last indexing of each retriever, so that a part of several retrievers is indexed once.
_LAST: weakref.WeakKeyDictionary[Any, _IndexRecord] = weakref.WeakKeyDictionary()
# The indexing in progress in each thread; the ids of retrievers being indexed in any thread.
_OPEN = threading.local()
_INDEXING: set[int] = set()


def holds(retriever: Any, documents: Any) -> bool | None:
    """Return whether a retriever and its parts still hold the index of these documents.

    A part may since have been indexed with other documents, such as chunks, by another retriever.
    None if unknown: nothing was indexed, or the retriever cannot be referenced weakly. Documents
    are compared by identity.
    """
    try:
        record = _LAST.get(retriever)
    except TypeError:  # no weak reference, or no hash
        return None
    if record is None:
        return None
    return record.documents() is documents and all(holds(part(), inner()) is not False for part, inner in record.parts)


def indexing_seconds(retriever: Any) -> float | None:
    """Return the seconds of the last indexing, including reused parts; None if unknown."""
    try:
        record = _LAST.get(retriever)
    except TypeError:
        return None
    return None if record is None else record.seconds


def index_documents(retriever: Any, documents: Iterable[Document]) -> None:
    """Index the documents, if the retriever has an index.

    Nothing is done if the same object was indexed last.
    """
    if not has_index(retriever):
        return
    if id(retriever) in _INDEXING:
        raise InputError(
            "it is still indexing documents, in a call that exceeded its time limit",
            where=f"{type(retriever).__name__}.index",
            fix="raise the limit: index_timeout",
        )
    enclosing: _IndexRecord | None = getattr(_OPEN, "record", None)
    outer = enclosing or _IndexRecord()
    with contextlib.suppress(TypeError):
        outer.parts.append((weakref.ref(retriever), weakref.ref(documents)))
    if holds(retriever, documents):
        outer.saved += indexing_seconds(retriever) or 0.0
        return
    with contextlib.suppress(TypeError):
        _LAST.pop(retriever, None)  # if indexing fails, it has no valid index
    _OPEN.record = record = _IndexRecord()
    _INDEXING.add(id(retriever))
    began = time.perf_counter()
    try:
        done = retriever.index(tuple(documents) if type(documents) is list else documents)
        if inspect.isawaitable(done):
            awaited(done)
    finally:
        _INDEXING.discard(id(retriever))
        _OPEN.record = enclosing
    record.seconds = time.perf_counter() - began + record.saved
    outer.saved += record.saved
    lost = next((part() for part, inner in record.parts if holds(part(), inner()) is False), None)
    if lost is not None:
        raise InputError(
            f"one {type(lost).__name__} was indexed with two collections, such as documents and "
            "chunks, and keeps only the last",
            where=f"{type(retriever).__name__}.index",
            fix=f"create a separate {type(lost).__name__} for each",
        )
    with contextlib.suppress(TypeError):
        record.documents = weakref.ref(documents)
        _LAST[retriever] = record


def search(retriever: Any, queries: Sequence[Query], k: int) -> list[Hits]:
    """Search with any retriever, sync or async, from synchronous code."""
    return [hits_of(ranking, k) for ranking in raw_rankings(responses_of(retriever), queries, k)]


def raw_rankings(responses: Callable[[Sequence[Query], int], Any], queries: Sequence[Query], k: int) -> Sequence[Any]:
    """Return one ranking per query as a retriever returns them; `responses` are those of :func:`responses_of`."""
    rankings = responses(queries, k)
    if inspect.isawaitable(rankings):
        rankings = awaited(rankings)
    return aligned(rankings, len(queries))


def aligned(rankings: Any, wanted: int) -> Sequence[Any]:
    """Return the rankings of a batch after checking that there is one per query."""
    if getattr(rankings, "ndim", 0) > 1:  # an array of ids with a row per query
        rankings = list(rankings)
    listed = isinstance(rankings, Sequence) and not isinstance(rankings, str)
    if listed and len(rankings) == wanted:
        return rankings
    got = many(len(rankings), "ranking") if listed else shown(rankings)
    raise InputError(
        f"the retriever returned {got} for {many(wanted, 'query')}",
        fix="return a list with one ranking for each query, in their order",
    )


def responses_of(retriever: Any, *, batched: bool = False) -> Callable[[Sequence[Query], int], Any]:
    """Return a function of queries and k that calls the retriever and returns its result.

    The result has one ranking per query; it is awaitable if the retriever is async.
    """
    if isinstance(retriever, type):
        raise InputError(
            f"got the class {retriever.__name__}, expected a retriever",
            fix=f"create an object: {retriever.__name__}(...)",
        )
    if has_index(retriever):
        # A tuple: the retriever could modify a list that the caller and other retrievers share.
        return lambda queries, k: retriever.search(tuple(queries), k)
    if not callable(retriever):
        raise InputError(
            f"got {shown(retriever)}, expected a retriever", fix=adapter_hint(retriever) or _retriever_fix(retriever)
        )
    ask: Callable[[Any, int], Any] = (
        (lambda text, k: retriever(text, k=k)) if takes_k(retriever) else (lambda text, _: retriever(text))
    )
    if batched:
        return lambda queries, k: ask([query.text for query in queries], k)
    method = getattr(retriever, "__call__", None)  # noqa: B004 - inspected, not called
    if inspect.iscoroutinefunction(retriever) or inspect.iscoroutinefunction(method):

        async def one_by_one(queries: Sequence[Query], k: int) -> list[Any]:
            return [await ask(query.text, k) for query in queries]

        return one_by_one

    def all_of_them(queries: Sequence[Query], k: int) -> Any:
        responses = [ask(query.text, k) for query in queries]
        # A function that is not a coroutine function may still return awaitables.
        return _all(responses) if responses and inspect.isawaitable(responses[0]) else responses

    return all_of_them


async def _all(responses: Iterable[Awaitable[Any]]) -> list[Any]:
    return [await response for response in responses]


def takes_k(retriever: Any) -> bool:
    """Return whether a retriever accepts the number of documents to return."""
    return has_index(retriever) or has_parameter(retriever, "k")


def has_parameter(call: Any, name: str) -> bool:
    """Return whether a callable has a parameter of this name."""
    try:
        return name in inspect.signature(call).parameters
    except (TypeError, ValueError):  # some callables written in C have no signature
        return False


def _retriever_fix(value: Any) -> str:
    """Return the fix for an object that is not a retriever."""
    if callable(getattr(value, "search", None)):
        return "add a method index(documents) to it, which may do nothing"
    method = next((name for name in _METHODS if callable(getattr(value, name, None))), "")
    such = f", such as its method {method}" if method else ""
    return f"pass a function of a query's text{such}, or an object with index() and search()"


_WAIT = 0.1
_GRACE = 0.5  # seconds for a loop to respond, or for a task to end after cancellation


class _Loop:
    """An event loop in a separate thread, shared by the whole process.

    Async clients (httpx, aiohttp, most database clients) keep connections that are bound to the
    loop that created them: in another loop they fail with "Event loop is closed".
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="rankgauge-loop", daemon=True)
        self.thread.start()
        atexit.register(self.end)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        ended = False
        while not ended:
            # A task of a retriever may raise SystemExit, which would end the loop for all
            # retrievers.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()
                ended = True

    def end(self) -> None:
        """Stop the loop, and wait briefly for its thread."""
        if self.thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self.thread.join(1.0)
        if not self._loop.is_running():
            self._loop.close()

    def result(self, response: Awaitable[Any], cancelled: Callable[[], bool] | None) -> Any:
        """Return the result; on Ctrl-C, cancel the task and wait for it."""
        over = threading.Event()
        tasks: list[asyncio.Task[Any]] = []

        def begin() -> None:
            # A coroutine must be the task itself, so that cancellation before its start closes it.
            work = response if asyncio.iscoroutine(response) else _await(response)
            tasks.append(self._loop.create_task(work))
            tasks[0].add_done_callback(lambda _: over.set())

        def cancel() -> None:
            if tasks:
                tasks[0].cancel()

        self._loop.call_soon_threadsafe(begin)
        try:
            # Short waits: on Windows, a long wait is not interrupted by Ctrl-C.
            while not over.wait(_WAIT):
                if cancelled is not None and cancelled():
                    self._loop.call_soon_threadsafe(cancel)
                    raise asyncio.CancelledError
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(cancel)
            if not over.wait(4 * _GRACE):
                _abandon(self)
            raise
        return tasks[0].result()

    def responds(self) -> bool:
        """Return whether the loop runs a callback within the time limit."""
        pong = threading.Event()
        self._loop.call_soon_threadsafe(pong.set)
        return pong.wait(_GRACE)


_loop: _Loop | None = None
_making = threading.Lock()


def awaited(response: Awaitable[Any], cancelled: Callable[[], bool] | None = None) -> Any:
    """Return the result of an awaitable from synchronous code, even if an event loop is running.

    The awaitable is cancelled once ``cancelled``, which is polled, returns True.
    """
    global _loop  # noqa: PLW0603 - one loop per process
    with _making:
        if _loop is None or not _loop.thread.is_alive():  # a forked process has no loop thread
            _loop = _Loop()
        loop = _loop
    if threading.current_thread() is not loop.thread:
        return loop.result(response, cancelled)
    # Synchronous code called from the loop itself: waiting for the same loop would never end.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _await(response)).result()


def abandon_blocked_loop() -> None:
    """Abandon the event loop if it is blocked; the next call creates another."""
    loop = _loop
    if loop is not None and loop.thread.is_alive() and not loop.responds():
        _abandon(loop)


def _abandon(loop: _Loop) -> None:
    global _loop  # noqa: PLW0603 - as above
    with _making:
        if _loop is loop:
            _loop = None
    # It continues once it is no longer blocked, but the process does not wait for it at exit.
    atexit.unregister(loop.end)


async def _await(response: Awaitable[Any]) -> Any:
    return await response

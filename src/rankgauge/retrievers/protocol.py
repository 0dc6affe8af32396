"""What a retriever is, and its answers as hits: whatever shape they come in.

A retriever is an object with two methods (:class:`Retriever`), or any callable from the text of a
query to documents. This module is the one place that knows the shapes in which documents come back.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import inspect
import itertools
import math
import threading
import time
import weakref
from collections.abc import (
    Awaitable,
    Callable,
    ItemsView,
    Iterable,
    KeysView,
    Mapping,
    Sequence,
    Set as AbstractSet,
)
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from rankgauge.core.ids import id_bytes, id_text
from rankgauge.core.redaction import redact
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.formats.columns import RUN
from rankgauge.formats.numbers import lost_number

__all__ = [
    "Hits",
    "LoopBlocked",
    "Retriever",
    "abandon_blocked_loop",
    "aligned",
    "awaited",
    "describe_error",
    "has_index",
    "hits_of",
    "holds",
    "index_documents",
    "indexing_seconds",
    "is_async",
    "listed_hits",
    "responses_of",
    "rows_of_hits",
    "search",
    "settings_of",
]  # fmt: skip

_IDS = ("id", "_id", "doc_id", "docno", "document_id", "docid")
_SCORES = ("score", "similarity", "relevance_score")
_SHAPES = (
    "give document ids, pairs (id, score), a mapping of id to score, or documents with an id, best "
    "first"
)
_WAIT = 0.1
_GRACE = 0.5  # seconds in which a loop, or what was cancelled in it, has to answer
_MOST_HITS = 1_000_000
_TELLING = 3  # two scores may rise by chance
# What the method of a retriever that takes a text is called elsewhere.
_METHODS = ("invoke", "retrieve", "get_relevant_documents", "similarity_search", "query", "run")
# Objects of frameworks that carry no id where we would look for one.
_WRAPPERS = {
    "haystack": "Haystack",
    "langchain": "LangChain",
    "langchain_core": "LangChain",
    "llama_index": "LlamaIndex",
    "pyterrier": "PyTerrier",
}


@runtime_checkable
class Retriever(Protocol):
    """Anything that can index documents and search them.

    It may have more: ``settings`` (a mapping of plain values that tells it from others: with equal
    settings and documents it gives equal rankings; without, its results are not reused), ``size``
    (bytes of its index), ``usage()`` (what it has used up so far, such as ``{"tokens": 812}``) and
    ``close()``. ``search`` may be a coroutine.

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
        """Take in the documents; they can be iterated more than once."""
        ...

    def search(self, queries: Sequence[Query], k: int, /) -> Any:
        """At most `k` documents for each query, in the order of the queries, each best first."""
        ...


@dataclass(slots=True)
class Hits:
    """What was retrieved for one query, best first, each document once.

    Attributes:
        ids: Document ids.
        scores: Their scores, higher is better; where none were given ``len(ids), ..., 2, 1``.
        scored: Whether scores were given.
        repeated: Further hits on a document that stood before; they were left out.
        beyond: Hits below `k`; they were left out.
        ascending: Whether the scores rose from hit to hit as they came: distances, most likely.
    """

    ids: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    scored: bool = False
    repeated: int = 0
    beyond: int = 0
    ascending: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    def pairs(self) -> list[tuple[str, float]]:
        """Pairs of id and score, best first."""
        return list(zip(self.ids, self.scores, strict=True))


def hits_of(found: Any, k: int) -> Hits:
    """The hits in what a retriever returned for one query.

    Args:
        found: An iterable of document ids, of pairs ``(id, score)``, or of documents (objects or
            mappings with an id, perhaps with a score; or pairs of document and score), best first;
            or a mapping of id to score.
        k: How many to keep.

    Raises:
        InputError: If it is none of these, if only some have a score, or if a score is not a finite
            number.

    Example:
        >>> hits = hits_of(["d2", "d1", "d2"], 10)
        >>> hits.pairs(), hits.scored, hits.repeated
        ([('d2', 2.0), ('d1', 1.0)], False, 1)
        >>> hits_of({"d1": 0.25, "d2": 0.5}, 1).pairs()
        [('d2', 0.5)]
    """
    ids, scores = rows_of_hits(found, k)
    ascending = False
    if scores and any(late > early for early, late in itertools.pairwise(scores)):
        ascending = len(scores) >= _TELLING and all(
            late > early for early, late in itertools.pairwise(scores)
        )
        # The ranking is what the scores say, as it is for a run in a file.
        order = sorted(range(len(ids)), key=lambda place: -scores[place])
        ids, scores = [ids[place] for place in order], [scores[place] for place in order]
    repeated = 0
    if len(set(ids)) < len(ids):
        first: dict[str, int] = {}
        for place, name in enumerate(ids):
            first.setdefault(name, place)
        repeated = len(ids) - len(first)
        ids = list(first)
        scores = [scores[place] for place in first.values()] if scores else scores
    beyond = max(len(ids) - k, 0)
    if beyond:
        ids, scores = ids[:k], scores[:k]
    if scores:
        return Hits(ids, scores, True, repeated, beyond, ascending)  # noqa: FBT003 - in their order
    return Hits(ids, [float(n) for n in range(len(ids), 0, -1)], False, repeated, beyond)  # noqa: FBT003


def rows_of_hits(found: Any, k: int = 0) -> tuple[list[str], list[float]]:
    """Ids and scores as they came, repeats and all; no scores at all where none were given.

    Args:
        found: What a retriever returned for one query. An iterator is read to its end, unless that
            does not come.
        k: How many hits were asked for.

    Raises:
        InputError: If it is no ranking.
    """
    if type(found) is list and all(type(one) is str and one for one in found):
        _check_ids(found)
        return found.copy(), []
    if type(found) is list and (pairs := _plain_pairs(found)) is not None:
        return pairs
    if isinstance(found, Mapping) and "ids" not in found:
        return _scored(listed_hits(found.items(), k))
    if fix := _unordered(found):
        raise InputError(f"the retriever returned {_shown(found)}, which is no ranking", fix=fix)
    if found is None or isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise InputError(
            f"the retriever returned {_shown(found)} for a query, wanted a ranking",
            fix=_wrapped(found) or f"return an empty list for nothing found; {_SHAPES}",
        )
    return _scored(listed_hits(found, k))


def listed_hits(found: Iterable[Any], k: int) -> list[Any]:
    """What was found as a list.

    Raises:
        InputError: If it is an iterator that does not end.
    """
    if type(found) in {list, tuple}:
        return list(found)
    most = _MOST_HITS + 2 * k
    rows = list(itertools.islice(found, most + 1))
    if len(rows) > most:
        raise InputError(
            f"the retriever returned more than {most:,} hits for one query and did not stop",
            fix="return at most k documents, best first",
        )
    return rows


def _unordered(found: Any) -> str:
    """What to write for what looks like a ranking and is none; empty if it may be one."""
    if isinstance(found, AbstractSet) and not isinstance(found, KeysView | ItemsView):
        return "return a list, best first: a set has no order"
    if hasattr(found, "columns"):
        return 'return its rows: list(zip(frame["docno"], frame["score"]))'
    if isinstance(found, tuple) and len(found) == 2 and _columns(*found):
        return "return pairs: list(zip(ids, scores))"
    return ""


def _columns(ids: Any, scores: Any) -> bool:
    """Whether it is a column of ids and one of scores, and not two hits."""
    listed = isinstance(ids, list) and isinstance(scores, list)
    if listed:
        whole = not any(isinstance(one, float) for one in ids)
        return whole and bool(scores) and all(isinstance(one, int | float) for one in scores)
    return bool(getattr(ids, "ndim", 0) == getattr(scores, "ndim", 0) == 1)


def _plain_pairs(rows: list[Any]) -> tuple[list[str], list[float]] | None:
    """Pairs of text and float, which most retrievers return, taken without a look at each."""
    if not all(type(row) is tuple and len(row) == 2 for row in rows):
        return None
    ids, scores = [row[0] for row in rows], [row[1] for row in rows]
    plain = {*map(type, ids)} <= {str} and {*map(type, scores)} <= {float}
    if not plain or "" in ids or not all(map(math.isfinite, scores)):
        return None
    _check_ids(ids)
    return ids, scores


def _scored(rows: list[Any]) -> tuple[list[str], list[float]]:
    ids: list[str] = []
    scores: list[float] = []
    for row in rows:
        name, score = _hit(row)
        ids.append(name)
        if score is not None:
            scores.append(score)
    if scores and len(scores) < len(ids):
        raise InputError(
            f"{len(scores)} of {len(ids)} hits have a score", fix="give every hit a score, or none"
        )
    return ids, scores


def _hit(row: Any) -> tuple[str, float | None]:
    """The id and the score (if it has one) of one hit."""
    if isinstance(row, tuple | list) and len(row) == 2:
        return _id(row[0]), _score(row[1])
    score: Any = None
    if not isinstance(row, str | int | bytes):
        score = next((value for key in _SCORES if (value := _part(row, key)) is not None), None)
    return _id(row), None if score is None else _score(score)


def _id(value: Any) -> str:
    if type(value) is str and value:
        _check_ids((value,))
        return value
    if not isinstance(value, str | bytes | int) and not hasattr(value, "dtype"):
        inner = next((found for key in _IDS if (found := _part(value, key)) is not None), None)
        if inner is None:
            raise InputError(
                f"a hit is {_shown(value)}, which has no id", fix=_wrapped(value) or _SHAPES
            )
        value = inner
    raw = id_bytes(value, "document id")
    if not raw:
        raise InputError("the id of a hit is empty", fix=_SHAPES)
    if b"\0" in raw:
        id_text(raw, "document id")
    return raw.decode("utf-8", "backslashreplace")


def _part(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)


def _check_ids(ids: Iterable[str]) -> None:
    text = "".join(ids)
    try:
        text.encode()
        sound = "\0" not in text
    except UnicodeEncodeError:
        sound = False
    if not sound:
        for name in ids:
            id_text(name, "document id")


def _score(value: Any) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score) or isinstance(value, str | bytes | bool):
        raise InputError(
            f"the score of a hit is {_shown(value)}, wanted a finite number",
            fix="leave out what has no score, or return ids alone, best first",
        )
    lost = lost_number(value, RUN)
    if lost is not None:
        raise InputError(lost[0], fix=lost[1])
    return score


def _shown(value: Any) -> str:
    said = " ".join(redact(repr(value)).split())
    return f"{said:.60} ({type(value).__name__})"


def _wrapped(value: Any) -> str:
    """What to write for an object of a framework we know, or of a class made from one of its."""
    modules = (one.__module__.partition(".")[0] for one in type(value).__mro__)
    wrapper = next((_WRAPPERS[module] for module in modules if module in _WRAPPERS), "")
    return f"wrap the retriever: rankgauge.retrievers.{wrapper}(...)" if wrapper else ""


def _made_of(value: Any) -> str:
    """What makes a retriever of an object that is nearly one."""
    if callable(getattr(value, "search", None)):
        return "add a method index(documents) to it, which may do nothing"
    method = next((name for name in _METHODS if callable(getattr(value, name, None))), "")
    such = f", such as its method {method}" if method else ""
    return f"give a function of a query's text{such}, or an object with index() and search()"


# ---- retrievers of any kind, asked alike


def has_index(retriever: Any) -> bool:
    """Whether it is an object with the two methods; a mere callable is asked with texts."""
    return isinstance(retriever, Retriever)


def is_async(retriever: Any) -> bool:
    """Whether its answers have to be awaited."""
    call = retriever.search if has_index(retriever) else retriever
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
        getattr(call, "__call__", None)  # noqa: B004 - the method itself is looked at, not called
    )


def settings_of(retriever: Any) -> Mapping[str, Any] | None:
    """Its settings; None if it declares none.

    Raises:
        InputError: If they cannot be read.
    """
    try:
        found = getattr(retriever, "settings", None)
    except (RankgaugeError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise InputError(
            f"reading its settings failed: {describe_error(error)}",
            where=f"{type(retriever).__name__}.settings",
            fix="let settings return a mapping of plain values, or None",
        ) from error
    return found if isinstance(found, Mapping) else None


def describe_error(error: BaseException) -> str:
    """The kind of an error and the first line of its message, without secrets.

    Example:
        >>> describe_error(ValueError("no such index"))
        'ValueError: no such index'
    """
    kind = type(error).__name__
    try:
        # Before a line is cut off: with it goes what tells where a secret ends.
        first = redact(str(error)).strip().partition("\n")[0]
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the error is of a retriever: its __str__ may do anything
        return f"{kind} (its message cannot be shown: __str__ raised)"
    return f"{kind}: {first}" if first else kind


@dataclass(slots=True)
class _Taken:
    """What a retriever took in last, what its parts took in for it, and how long that took.

    Of these seconds some were spared: parts had taken in theirs before.
    """

    documents: Callable[[], Any] = lambda: None
    parts: list[tuple[Callable[[], Any], Callable[[], Any]]] = field(default_factory=list)
    seconds: float = 0.0
    spared: float = 0.0


# What each retriever took in last, so that one that is part of several is indexed once.
_LAST: weakref.WeakKeyDictionary[Any, _Taken] = weakref.WeakKeyDictionary()
# What is being indexed in each thread, and the ids of what is in any.
_OPEN = threading.local()
_INDEXING: set[int] = set()


def holds(retriever: Any, documents: Any) -> bool | None:
    """Whether these very documents are what it took in last, and its parts still hold theirs.

    A part that another retriever has given other documents since, such as chunks, would be asked
    about those. None if nobody knows: it was never given any here, or cannot be remembered.
    """
    try:
        taken = _LAST.get(retriever)
    except TypeError:  # it cannot be held weakly, or has no hash
        return None
    if taken is None:
        return None
    return taken.documents() is documents and all(
        holds(part(), inner()) is not False for part, inner in taken.parts
    )


def indexing_seconds(retriever: Any) -> float | None:
    """How long the last indexing took, with parts that had done theirs before; None if unknown."""
    try:
        taken = _LAST.get(retriever)
    except TypeError:
        return None
    return None if taken is None else taken.seconds


def index_documents(retriever: Any, documents: Iterable[Document]) -> None:
    """Have it take in the documents, if it is one that does.

    The very same object of documents that it took in last is not taken in again.

    Raises:
        InputError: If two parts of it want one retriever to hold different documents, or it is
            taking in others at this moment.
    """
    if not has_index(retriever):
        return
    if id(retriever) in _INDEXING:
        raise InputError(
            "it is still taking in documents, in a call that was left behind at its time limit",
            where=f"{type(retriever).__name__}.index", fix="give it more time: index_timeout",
        )  # fmt: skip
    above: _Taken | None = getattr(_OPEN, "taken", None)
    if above is not None:
        with contextlib.suppress(TypeError):
            above.parts.append((weakref.ref(retriever), weakref.ref(documents)))
    if holds(retriever, documents):
        if above is not None:
            above.spared += indexing_seconds(retriever) or 0.0
        return
    with contextlib.suppress(TypeError):
        _LAST.pop(retriever, None)  # should it fail halfway, it holds neither
    _OPEN.taken = taken = _Taken()
    _INDEXING.add(id(retriever))
    began = time.perf_counter()
    try:
        done = retriever.index(tuple(documents) if type(documents) is list else documents)
        if inspect.isawaitable(done):
            awaited(done)
    finally:
        _INDEXING.discard(id(retriever))
        _OPEN.taken = above
    taken.seconds = time.perf_counter() - began + taken.spared
    if above is not None:
        above.spared += taken.spared
    lost = next((part() for part, inner in taken.parts if holds(part(), inner()) is False), None)
    if lost is not None:
        raise InputError(
            f"one {type(lost).__name__} was given two collections, such as documents and chunks, "
            "and holds the last only", where=f"{type(retriever).__name__}.index",
            fix=f"make a {type(lost).__name__} of its own for each",
        )  # fmt: skip
    with contextlib.suppress(TypeError):
        taken.documents = weakref.ref(documents)
        _LAST[retriever] = taken


def search(retriever: Any, queries: Sequence[Query], k: int) -> list[Hits]:
    """Ask any retriever, sync or async, from synchronous code: for those made of others.

    Raises:
        InputError: If it returns what is no ranking, or not one for each query.
    """
    found = responses_of(retriever)(queries, k)
    if inspect.isawaitable(found):
        found = awaited(found)
    return [hits_of(one, k) for one in aligned(found, len(queries))]


def aligned(found: Any, wanted: int) -> Sequence[Any]:
    """The rankings of a batch, one for each query.

    Raises:
        InputError: If there are more or fewer.
    """
    if getattr(found, "ndim", 0) > 1:  # ids as an array, a row for each query
        found = list(found)
    listed = isinstance(found, Sequence) and not isinstance(found, str)
    if listed and len(found) == wanted:
        return found
    got = f"{len(found)} rankings" if listed else _shown(found)
    raise InputError(
        f"the retriever returned {got} for {wanted} {'query' if wanted == 1 else 'queries'}",
        fix="return a list with one ranking for each query, in their order",
    )


def responses_of(retriever: Any, *, batched: bool = False) -> Callable[[Sequence[Query], int], Any]:
    """A function of queries and k that asks the retriever and returns what it returned.

    What it returns holds one ranking for each query; it is awaitable where the retriever is async.

    Args:
        retriever: An object with ``index`` and ``search``, or a callable of a text (and of `k`, if
            it has a parameter of that name).
        batched: The callable takes a list of texts and returns a list of rankings.

    Raises:
        InputError: If it is neither, or a class of such objects.
    """
    if isinstance(retriever, type):
        raise InputError(
            f"got the class {retriever.__name__} for a retriever",
            fix=f"make an object of it: {retriever.__name__}(...)",
        )
    if has_index(retriever):
        # What it is given is its own: a list would be that of the caller, and of other retrievers.
        return lambda queries, k: retriever.search(tuple(queries), k)
    if not callable(retriever):
        raise InputError(
            f"got {_shown(retriever)} for a retriever",
            fix=_wrapped(retriever) or _made_of(retriever),
        )
    ask = _with_k(retriever)
    if batched:
        return lambda queries, k: ask([query.text for query in queries], k)
    if is_async(retriever):

        async def one_by_one(queries: Sequence[Query], k: int) -> list[Any]:
            return [await ask(query.text, k) for query in queries]

        return one_by_one

    def all_of_them(queries: Sequence[Query], k: int) -> Any:
        found = [ask(query.text, k) for query in queries]
        # A function that is not declared async may return what has to be awaited all the same.
        return _all(found) if found and inspect.isawaitable(found[0]) else found

    return all_of_them


async def _all(found: Iterable[Awaitable[Any]]) -> list[Any]:
    return [await one for one in found]


def _with_k(call: Callable[..., Any]) -> Callable[[Any, int], Any]:
    try:
        takes_k = "k" in inspect.signature(call).parameters
    except (TypeError, ValueError):  # some that are written in C do not say
        takes_k = False
    return (lambda text, k: call(text, k=k)) if takes_k else (lambda text, _: call(text))


class _Loop:
    """An event loop in a thread of its own, the same one for as long as the process lives.

    Clients for async work (httpx, aiohttp, those of most databases) keep connections that belong to
    the loop they were made in: in a second loop they fail with "Event loop is closed".
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
            # A task of the retriever's own may raise SystemExit, which would end the loop for all.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()
                ended = True

    def end(self) -> None:
        """Stop the loop, and wait for its thread a little."""
        if self.thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self.thread.join(1.0)
        if not self._loop.is_running():
            self._loop.close()

    def result(self, found: Awaitable[Any], blocked: Callable[[], bool] | None = None) -> Any:
        """What comes of it; interrupted from the keyboard, it is cancelled and waited for.

        Raises:
            LoopBlocked: If `blocked` says that something in the loop holds it up.
        """
        over = threading.Event()
        tasks: list[asyncio.Task[Any]] = []

        def begin() -> None:
            tasks.append(self._loop.create_task(_one(found)))
            tasks[0].add_done_callback(lambda _: over.set())

        def cancel() -> None:
            if tasks:
                tasks[0].cancel()

        self._loop.call_soon_threadsafe(begin)
        try:
            # In short waits: on Windows a long one does not hear the keyboard.
            while not over.wait(_WAIT):
                if blocked is not None and blocked():
                    raise LoopBlocked
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(cancel)
            if not over.wait(4 * _GRACE):
                _abandon(self)
            raise
        return tasks[0].result()

    def answers(self) -> bool:
        """Whether it gets round to a call within a moment."""
        pong = threading.Event()
        self._loop.call_soon_threadsafe(pong.set)
        return pong.wait(_GRACE)


class LoopBlocked(Exception):  # noqa: N818 - an outcome, raised here and caught where calls are made
    """Something in the event loop does not let go of it."""


_loop: _Loop | None = None
_making = threading.Lock()


def awaited(found: Awaitable[Any], blocked: Callable[[], bool] | None = None) -> Any:
    """The result of an awaitable, from code that is not async; also where a loop is running.

    Args:
        found: What is awaited, in a loop of ours.
        blocked: Asked again and again meanwhile; where it returns True the loop is left behind.

    Raises:
        LoopBlocked: If the loop was left behind.
    """
    global _loop  # noqa: PLW0603 - one for the process is the point
    with _making:
        if _loop is None or not _loop.thread.is_alive():  # a fork has no thread of its own
            _loop = _Loop()
        loop = _loop
    if threading.current_thread() is not loop.thread:
        try:
            return loop.result(found, blocked)
        except LoopBlocked:
            _abandon(loop)
            raise
    # Code that is not async, called by code that is: to wait for our own loop would last for ever.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _one(found)).result()


def abandon_blocked_loop() -> None:
    """Leave the event loop behind if something in it holds it up: the next call gets another."""
    loop = _loop
    if loop is not None and loop.thread.is_alive() and not loop.answers():
        _abandon(loop)


def _abandon(loop: _Loop) -> None:
    global _loop  # noqa: PLW0603 - as above
    with _making:
        if _loop is loop:
            _loop = None
    # It goes on once nothing holds it up any more, but nobody waits for that at the end.
    atexit.unregister(loop.end)


async def _one(found: Awaitable[Any]) -> Any:
    return await found

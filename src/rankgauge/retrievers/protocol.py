"""What a retriever is, and how any of them is indexed and asked.

A retriever is an object with two methods (:class:`Retriever`), or any callable from the text of a
query to documents.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from rankgauge.core.redaction import redact
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.retrievers.event_loop import awaited
from rankgauge.retrievers.hits import Hits, adapter_hint, hits_of, shown

# What the method of a retriever that takes a text is called elsewhere.
_METHODS = ("invoke", "retrieve", "get_relevant_documents", "similarity_search", "query", "run")


@runtime_checkable
class Retriever(Protocol):
    """Protocol of a retriever, which indexes documents and searches them.

    Optional are ``settings`` (a mapping of plain values that identifies it: equal settings and
    documents give equal rankings; without it, results are not reused), ``size`` (bytes of its
    index), ``usage()`` (its usage so far, such as ``{"tokens": 812}``), and ``close()``. ``search``
    may be a coroutine.

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

    def search(self, queries: Sequence[Query], k: int, /) -> Any:
        """At most `k` documents for each query, in the order of the queries, each best first."""


def has_index(retriever: Any) -> bool:
    """Return whether it is an object with the two methods; a mere callable is asked with texts."""
    return isinstance(retriever, Retriever)


def is_async(retriever: Any) -> bool:
    """Return whether its responses have to be awaited."""
    call = retriever.search if has_index(retriever) else retriever
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
        getattr(call, "__call__", None)  # noqa: B004 - the method itself is looked at, not called
    )


def settings_of(retriever: Any) -> Mapping[str, Any] | None:
    """Its settings; None if it declares none."""
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
    """Return the kind of an error and the first line of its message, without secrets.

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
    about those. None if unknown: none was given, or it cannot be remembered.
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
    """Seconds of the last indexing, including parts that were indexed before; None if unknown."""
    try:
        taken = _LAST.get(retriever)
    except TypeError:
        return None
    return None if taken is None else taken.seconds


def index_documents(retriever: Any, documents: Iterable[Document]) -> None:
    """Have it take in the documents, if it is one that does.

    The very same object of documents that it took in last is not taken in again.
    """
    if not has_index(retriever):
        return
    if id(retriever) in _INDEXING:
        raise InputError(
            "it is still indexing documents, in a call that exceeded its time limit",
            where=f"{type(retriever).__name__}.index", fix="raise the limit: index_timeout",
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
            f"one {type(lost).__name__} was given two collections, such as documents and "
            "chunks, and keeps only the last", where=f"{type(retriever).__name__}.index",
            fix=f"create a separate {type(lost).__name__} for each",
        )  # fmt: skip
    with contextlib.suppress(TypeError):
        taken.documents = weakref.ref(documents)
        _LAST[retriever] = taken


def search(retriever: Any, queries: Sequence[Query], k: int) -> list[Hits]:
    """Query any retriever, sync or async, from synchronous code: for composite retrievers."""
    found = responses_of(retriever)(queries, k)
    if inspect.isawaitable(found):
        found = awaited(found)
    return [hits_of(one, k) for one in aligned(found, len(queries))]


def aligned(found: Any, wanted: int) -> Sequence[Any]:
    """Return the rankings of a batch, one for each query."""
    if getattr(found, "ndim", 0) > 1:  # ids as an array, a row for each query
        found = list(found)
    listed = isinstance(found, Sequence) and not isinstance(found, str)
    if listed and len(found) == wanted:
        return found
    got = f"{len(found)} rankings" if listed else shown(found)
    raise InputError(
        f"the retriever returned {got} for {wanted} {'query' if wanted == 1 else 'queries'}",
        fix="return a list with one ranking for each query, in their order",
    )


def responses_of(retriever: Any, *, batched: bool = False) -> Callable[[Sequence[Query], int], Any]:
    """Return a function of queries and k that asks the retriever and returns what it returned.

    What it returns holds one ranking for each query; it is awaitable where the retriever is async.
    """
    if isinstance(retriever, type):
        raise InputError(
            f"got the class {retriever.__name__} for a retriever",
            fix=f"create an object: {retriever.__name__}(...)",
        )
    if has_index(retriever):
        # What it is given is its own: a list would be that of the caller, and of other retrievers.
        return lambda queries, k: retriever.search(tuple(queries), k)
    if not callable(retriever):
        raise InputError(
            f"got {shown(retriever)} for a retriever",
            fix=adapter_hint(retriever) or _made_of(retriever),
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


def takes_k(retriever: Any) -> bool:
    """Return whether a retriever takes the number of documents to return."""
    if has_index(retriever):
        return True
    try:
        return "k" in inspect.signature(retriever).parameters
    except (TypeError, ValueError):  # some that are written in C do not say
        return False


def _with_k(call: Callable[..., Any]) -> Callable[[Any, int], Any]:
    return (lambda text, k: call(text, k=k)) if takes_k(call) else (lambda text, _: call(text))


def _made_of(value: Any) -> str:
    """What makes a retriever of an object that is nearly one."""
    if callable(getattr(value, "search", None)):
        return "add a method index(documents) to it, which may do nothing"
    method = next((name for name in _METHODS if callable(getattr(value, name, None))), "")
    such = f", such as its method {method}" if method else ""
    return f"give a function of a query's text{such}, or an object with index() and search()"

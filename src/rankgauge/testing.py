"""Checks that a retriever fulfills the contract, and whether the compiled core is in use."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankgauge.core import native
from rankgauge.core.arguments import integer, is_number
from rankgauge.core.text import inflect
from rankgauge.corpus.collection import Collection, Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers.hits import Hits, hits_of, listed_hits, rows_of_hits
from rankgauge.retrievers.protocol import describe_error, has_index, index_documents, raw_rankings, responses_of
from rankgauge.sample import sample_path

__all__ = ["RetrieverCheck", "check_retriever", "has_compiled_core"]

_ALONE = 5
# Tolerance for floating-point products when a query is in a different batch.
_CLOSE = 1e-4
_SECRET = re.compile(r"(?i)(api_?key|token|secret|password|passwd|authorization|credential)s?$")
_ODD_QUERIES = {
    "empty": "",
    "blank": " \t\n",
    "stop words only": "the of and a",
    "unknown words": "qzxvw wvxzq",
    "punctuation": "?!… --- .,;:",
    "query syntax": '"open AND (NOT [title:* OR ~2^3 }] \\ /re',
    "other letters": "Straße naïve 図書館 библиотека مكتبة 📚",
    "control characters": "opening\u0000hours\u200b",
    "long": "how long can I keep a book " * 400,
}
_ODD_DOCUMENTS = (
    Document("odd empty"),
    Document("odd-title-only", title="Opening hours"),
    Document("odd/letters é 図", text="Straße naïve 図書館 библиотека مكتبة 📚"),
    Document("odd'twin\"1", text="Opening hours of the library, Monday to Friday."),
    Document("odd-twin-2", text="Opening hours of the library, Monday to Friday."),
    Document("odd-long", text="opening hours of all branches " * 3000),
    Document("odd-fields", text="A page.", fields={"id": 7, "text": None, "tags": ["a", {"b": 1}]}),
)


@dataclass(frozen=True, slots=True)
class RetrieverCheck:
    """A requirement of the contract and its result.

    Attributes:
        name: The requirement.
        passed: Whether it is fulfilled; False if it does not apply, because violations raise an
            error.
        remark: Reason why it does not apply, or another remark.
    """

    name: str
    passed: bool = True
    remark: str = ""


def has_compiled_core() -> bool:
    """Return whether the compiled core is used; without it, NumPy computes all measures.

    Values are bitwise equal. The core is missing if there was no C compiler when rankgauge was
    installed; ``RANKGAUGE_NATIVE=0`` in the environment disables it.

    Example:
        >>> has_compiled_core() in {True, False}
        True
    """
    return native.core is not None


def check_retriever(
    retriever: Any, documents: Any = None, queries: Any = None, *, k: int = 10, indexing: bool = True
) -> tuple[RetrieverCheck, ...]:
    """Check a retriever against the contract of :class:`rankgauge.Retriever`.

    The retriever indexes test documents, which replaces its index, and is queried many times.
    Requirements that do not apply, such as indexing for a callable, are reported as not passed with
    the reason. Quality is not checked; use `evaluate`.

    Args:
        retriever: An object with ``index`` and ``search``, or a callable that takes query text.
        documents: Documents, or anything that :meth:`Collection.of` accepts; default: the sample
            collection.
        queries: Queries, likewise.
        k: Number of documents to request.
        indexing: Whether ``index()`` builds the index. If it is built elsewhere (False), ids are
            compared with `documents`, if given.

    Returns:
        The checks, in order.

    Raises:
        InputError: At the first violation, with a fix.

    Example:
        >>> def longest(text, k):
        ...     return ["d2", "d1"][:k]
        >>> checks = check_retriever(longest, {"d1": "One.", "d2": "Two, longer."}, {"q": "one"})
        >>> checks[0]
        RetrieverCheck(name='each query gets one ranking', passed=True, remark='')
        >>> [check.remark for check in checks if not check.passed][0]
        'it returns no scores: ranks are used'
    """
    asked = _CheckedRetriever(retriever, integer("k", k))
    indexes = has_index(retriever) and indexing
    corpus = _read_items(
        sample_path("corpus.jsonl") if documents is None else documents,
        "documents",
        Document,
        lambda source: Collection.of(documents=source).documents,
    )
    known = frozenset(document.id for document in corpus)
    if indexes or documents is not None:
        asked.known = known
    wanted = _read_items(
        sample_path("queries.jsonl") if queries is None else queries,
        "queries",
        Query,
        lambda source: Collection.of(queries=source).queries,
    )
    checks: list[RetrieverCheck] = []
    if has_index(retriever):
        asked.index(corpus)
        checks.append(RetrieverCheck("index() accepts an iterable of documents"))
    checks += _rankings(asked, wanted, indexes=indexes)
    checks += _depths(asked, wanted, len(known))
    checks += _repetition(asked, wanted)
    checks += _odd_queries(asked)
    if indexes:
        checks += _indexing(asked, corpus, wanted)
    else:
        why = "its index is created elsewhere" if has_index(retriever) else "a callable has no index()"
        checks += [RetrieverCheck(name, passed=False, remark=why) for name in _OF_INDEXING]
    checks += [_settings(retriever), *_extras(retriever)]
    return tuple(checks)


# ---- inputs


class _Iterable(Iterable[Document]):
    """Documents that support iteration only, any number of times."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents)


def _read_items(source: Any, what: str, kind: type, read: Callable[[Any], Mapping[str, Any]]) -> list[Any]:
    """Return a list of documents or queries, reading them with `read` if necessary."""
    if isinstance(source, Iterable) and not isinstance(source, Mapping | str):
        source = list(source)
    ready = isinstance(source, list) and all(isinstance(item, kind) for item in source)
    items = source if ready else list(read(source).values())
    if not items:
        raise InputError(f"there are no {what} for the check", where=what, fix="pass at least one")
    return items


# ---- queries


class _CheckedRetriever:
    """A retriever with a contract check of every response.

    Attributes:
        known: Ids it may return; None if unknown.
    """

    def __init__(self, retriever: Any, k: int) -> None:
        self.retriever = retriever
        self.k = k
        self.known: frozenset[str] | None = None
        self._responses = responses_of(retriever)

    def index(self, documents: Sequence[Document], what: str = "the documents") -> None:
        _checked(
            lambda: index_documents(self.retriever, _Iterable(documents)),
            f"index() of {what}",
            "accept any iterable of documents; titles and texts may be empty",
        )

    def __call__(self, queries: Sequence[Query], *, k: int | None = None, what: str = "the queries") -> list[Hits]:
        k = self.k if k is None else k
        rankings = _checked(
            lambda: raw_rankings(self._responses, queries, k),
            f"search() of {what} with k={k}",
            "return a ranking, empty if nothing is found",
        )
        return [self._hits(ranking, query, k) for ranking, query in zip(rankings, queries, strict=True)]

    def _hits(self, ranking: Any, query: Query, k: int) -> Hits:
        """Return the hits of a query; refuse violations that hits_of() would fix silently."""
        where = f"query {query.id!r}"
        fix = "return a valid ranking, empty if nothing is found"
        if isinstance(ranking, Iterator):
            rows = ranking
            ranking = _checked(lambda: listed_hits(rows, k), where, fix)
        ids, scores = _checked(lambda: rows_of_hits(ranking, k), where, fix)
        if len(ids) > k:
            raise InputError(f"{len(ids)} hits for k={k}", where=where, fix="return no more than k documents")
        if len(set(ids)) < len(ids):
            twice = next(name for name in ids if ids.count(name) > 1)
            raise InputError(
                f"document {twice!r} was returned twice", where=where, fix="return each document once, at its best rank"
            )
        stray = next((name for name in ids if self.known and name not in self.known), None)
        if stray is not None:
            raise InputError(
                f"document {stray!r} was returned, but is not in the index",
                where=where,
                fix="return the ids of the indexed documents, and discard earlier indexes",
            )
        if not isinstance(ranking, Mapping) and scores != sorted(scores, reverse=True):
            raise InputError(
                f"scores are not in descending order: {', '.join(f'{score:g}' for score in scores[:5])}",
                where=where,
                fix="return the best document first with the highest score; negate distances",
            )
        return hits_of(ranking, k)


def _checked(call: Callable[[], Any], what: str, fix: str) -> Any:
    """Convert any exception to an InputError that names the operation."""
    try:
        return call()
    except InputError as error:
        raise InputError(error.what, where=error.where or what, fix=error.fix or fix) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise InputError(f"it raised {describe_error(error)}", where=what, fix=fix) from error


# ---- checks


def _rankings(asked: _CheckedRetriever, queries: Sequence[Query], *, indexes: bool) -> list[RetrieverCheck]:
    answers = asked(queries)
    answered = sum(map(bool, answers))
    if not answered and indexes:
        raise InputError(
            f"nothing was found for any of {len(queries)} queries",
            where="search()",
            fix="check that index() keeps the documents, and use queries that match some of them",
        )
    nothing = "" if answered else "nothing was found for any query"
    unscored = any(hits and not hits.scored for hits in answers)
    ids = "document ids are known"
    return [
        RetrieverCheck("each query gets one ranking", remark=nothing),
        RetrieverCheck(ids) if asked.known else RetrieverCheck(ids, passed=False, remark="its documents are unknown"),
        RetrieverCheck("each document occurs once in a ranking"),
        RetrieverCheck(
            "scores are finite and in descending order",
            passed=not unscored,
            remark="it returns no scores: ranks are used" if unscored else "",
        ),
        RetrieverCheck("no more than k documents"),
    ]


def _depths(asked: _CheckedRetriever, queries: Sequence[Query], count: int) -> list[RetrieverCheck]:
    deep = asked(queries)
    first = asked(queries, k=1)
    others = sum(top.ids != ranking.ids[:1] for top, ranking in zip(first, deep, strict=True))
    have = inflect(others, "has", "have")
    remark = f"{others} of {len(queries)} queries {have} a different first document" if others else ""
    asked(queries[:_ALONE], k=count + 7)
    return [
        RetrieverCheck("k=1 returns at most one document", remark=remark),
        RetrieverCheck("k larger than the collection"),
    ]


def _repetition(asked: _CheckedRetriever, queries: Sequence[Query]) -> list[RetrieverCheck]:
    before = asked(queries)
    for query, first, second in zip(queries, before, asked(queries), strict=True):
        if first.ids != second.ids:
            raise InputError(
                f"for the same query it returns {_shown(first)}, then {_shown(second)}",
                where=f"query {query.id!r}",
                fix="break ties by a rule, such as document id, and seed random numbers",
            )
    backwards = asked(queries[::-1], what="the queries in another order")[::-1]
    some = queries[:_ALONE]
    alone = [asked([query], what="one query alone")[0] for query in some]
    twins = asked([query for query in some for _ in (0, 1)], what="each query twice")[1::2]
    swapped = 0
    for place, query in enumerate(queries):
        for others in (backwards, alone, twins):
            if place < len(others):
                swapped += _swapped(query, before[place], others[place])
    remark = "documents with almost equal scores change ranks" if swapped else ""
    return [
        RetrieverCheck("the same query gives the same ranking"),
        RetrieverCheck("the order and grouping of queries do not change rankings", remark=remark),
    ]


def _swapped(query: Query, first: Hits, other: Hits) -> bool:
    """Return whether only documents with almost equal scores changed ranks; else raise an error."""
    if first.ids == other.ids:
        return False
    scores = dict(other.pairs())
    same = len(first) == len(other) and first.scored and other.scored
    for place, (name, score) in enumerate(first.pairs() if same else []):
        if name != other.ids[place]:
            near = (other.scores[place], scores.get(name, score))
            same &= all(math.isclose(score, n, rel_tol=_CLOSE, abs_tol=_CLOSE) for n in near)
    if not same:
        raise InputError(
            f"with all queries it returns {_shown(first)}, with a part or another order of them {_shown(other)}",
            where=f"query {query.id!r}",
            fix="return rankings in the order of the queries, each independent of the others",
        )
    return True


def _shown(hits: Hits) -> str:
    return f"[{', '.join(hits.ids[:4])}{', ...' if len(hits) > 4 else ''}]"


def _odd_queries(asked: _CheckedRetriever) -> list[RetrieverCheck]:
    for name, text in _ODD_QUERIES.items():
        asked([Query(f"odd: {name}", text)], what=f"an odd query ({name})")
    odd = [Query(f"odd: {name}", text) for name, text in _ODD_QUERIES.items()]
    asked(odd, what="odd queries")
    return [RetrieverCheck(f"unusual queries raise no error: {', '.join(_ODD_QUERIES)}")]


_OF_INDEXING = (
    "an empty collection returns empty rankings",
    "unusual documents raise no error: empty, title only, other alphabets, duplicates, long",
    "indexing again replaces the index",
)


def _indexing(
    asked: _CheckedRetriever, documents: Sequence[Document], queries: Sequence[Query]
) -> list[RetrieverCheck]:
    """Index no documents, odd documents, half of the documents, and all of them again."""
    before = asked(queries)
    known = asked.known
    asked.index([], "an empty collection")
    for query, hits in zip(queries, asked(queries, what="an empty collection"), strict=True):
        if hits:
            raise InputError(
                f"{_shown(hits)} was returned from an empty collection",
                where=f"query {query.id!r}",
                fix="let index() replace the earlier index",
            )
    asked.known = frozenset(document.id for document in _ODD_DOCUMENTS)
    asked.index(_ODD_DOCUMENTS, "odd documents")
    asked([*queries[:_ALONE], Query("odd", "opening hours")], what="odd documents")
    half = documents[::2]
    asked.known = frozenset(document.id for document in half)
    asked.index(half, "every second document")
    asked(queries, what="every second document")
    asked.known = known
    asked.index(documents, "the documents again")
    for query, earlier, later in zip(queries, before, asked(queries), strict=True):
        if earlier.ids != later.ids:
            raise InputError(
                f"indexed again, it returns {_shown(later)}, before {_shown(earlier)}",
                where=f"query {query.id!r}",
                fix="let index() discard everything that was indexed before",
            )
    return [RetrieverCheck(name) for name in _OF_INDEXING]


def _settings(retriever: Any) -> RetrieverCheck:
    name = "settings are plain, without secrets"
    settings = _checked(lambda: getattr(retriever, "settings", None), "settings", "return a mapping, or None")
    if settings is None:
        return RetrieverCheck(name, passed=False, remark="without settings, results of finished runs are not reused")
    if not isinstance(settings, Mapping):
        raise InputError(
            f"got {type(settings).__name__}, expected a mapping",
            where="settings",
            fix='make settings a property: {"type": "mine", ...}',
        )
    try:
        plain = json.loads(json.dumps(dict(settings), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"they cannot be written as JSON: {error}",
            where="settings",
            fix="use text, numbers, lists, and mappings, such as the name of a model",
        ) from error
    if plain != _listed(settings):
        raise InputError("they change when written and read as JSON", where="settings", fix="use text for all keys")
    secret = next(_secrets(plain), None)
    if secret is not None:
        raise InputError(
            f"{secret!r} looks like a secret",
            where="settings",
            fix="settings are printed and stored: omit it, or name the environment variable that has it (key_env)",
        )
    if getattr(retriever, "settings", None) != settings:
        raise InputError(
            "they change between two reads",
            where="settings",
            fix="omit settings that do not affect rankings, such as times and addresses",
        )
    return RetrieverCheck(name)


def _listed(value: Any) -> Any:
    """Convert tuples to lists, as JSON does."""
    if isinstance(value, Mapping):
        return {key: _listed(inner) for key, inner in value.items()}
    return [_listed(inner) for inner in value] if isinstance(value, list | tuple) else value


def _secrets(settings: Any) -> Iterator[str]:
    """Yield keys whose names look like secrets and whose values are text."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            if _SECRET.search(str(key)) and isinstance(value, str) and value not in {"", "..."}:
                yield str(key)
            yield from _secrets(value)
    elif isinstance(settings, list):
        for value in settings:
            yield from _secrets(value)


def _extras(retriever: Any) -> Iterator[RetrieverCheck]:
    """Check the optional attributes `size` and `usage`."""
    size = getattr(retriever, "size", None)
    if size is not None:
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise InputError(
                f"got {size!r:.60}, expected a number of bytes",
                where="size",
                fix="make size a property that returns an int, or None if unknown",
            )
        yield RetrieverCheck("size is a number of bytes")
    usage = getattr(retriever, "usage", None)
    if usage is not None:
        fix = "return a mapping of numbers, empty if there are none"
        used = _checked(usage, "usage()", fix) if callable(usage) else usage
        if not isinstance(used, Mapping) or not all(map(is_number, used.values())):
            raise InputError(
                f"got {used!r:.60}, expected a mapping of numbers",
                where="usage()",
                fix='let usage() return the totals so far: {"calls": 3, "tokens": 812}',
            )
        yield RetrieverCheck("usage() is a mapping of numbers")

"""Search engines over HTTP, described by a request template and paths in the response."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from rankgauge.core.arguments import choice, is_number
from rankgauge.core.http_client import MAX_BYTES, Endpoint
from rankgauge.core.redaction import SECRET_NAME, Secrets, looks_secret, redact
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers.hits import relative_id

_PLACEHOLDER = re.compile(r"\{(query|k|id)\}")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_PATH = re.compile(r"(?:[^.\[\]]+|\[\d+\])(?:\.[^.\[\]]+|\[\d+\])*")
_ORDERS = ("descending", "ascending")
# Values that settings show: short numbers, and text under names that hold no secrets.
_NUMBER = re.compile(r"-?\d{1,5}(\.\d{1,6})?")
_PLAIN_NAMES = frozenset(
    {
        "_source",
        "analyzer",
        "api-version",
        "collection",
        "deftype",
        "df",
        "field",
        "fields",
        "fl",
        "format",
        "fuzziness",
        "index",
        "lang",
        "language",
        "limit",
        "locale",
        "minimum_should_match",
        "mm",
        "model",
        "operator",
        "order",
        "pf",
        "qf",
        "select",
        "similarity",
        "size",
        "sort",
        "top_k",
        "type",
        "version",
        "wt",
    }
)
_PLAIN_WORD = re.compile(r"[A-Z]?[a-z]{0,15}[.,:;?!]?")


class HTTPRetriever:
    """Any search engine with a JSON API over HTTP and an existing index.

    The request is a template: ``{query}`` is replaced by the query text, ``{k}`` by the number of
    documents, and ``{id}`` by the query id. A value that is exactly ``"{k}"`` becomes a number. A
    path names a field of a response: ``result.hits[0].name``; an empty path is the whole response.
    Ties keep the order of the server.

    Args:
        url: The search URL; parameters after ``?`` may contain placeholders.
        method: ``POST`` or ``GET``.
        body: The JSON body, with placeholders in values at any depth. Without a body (and without
            placeholders elsewhere) POST sends ``{"query": "{query}", "k": "{k}"}``.
        params: URL parameters, with placeholders.
        headers: Headers of every request.
        key_env: The environment variable with the key; see :class:`Endpoint`.
        key_header: The header that carries the key.
        hits: The path of the list of hits in a response.
        id: The path of the document id in a hit.
        base: The folder or URL that ids are relative to, as for :class:`DocumentAdapter`.
        score: The path of the score in a hit; None to use the order of the hits.
        score_order: ``"descending"`` if higher is better; ``"ascending"`` for distances, which are
            negated.
        timeout: Maximum seconds per response.
        max_bytes: Maximum bytes per response, decompressed; default: 64 MiB.
        version: The version of the server, such as the date of its index; without it, results are
            not reused.

    Raises:
        InputError: If a path or a template is invalid.
        MissingExtra: If httpx is not installed.

    Example:
        >>> engine = HTTPRetriever(
        ...     "http://localhost:8000/search?q={query}&n={k}",
        ...     method="GET", hits="result.hits", id="doc.id", score=None,
        ... )
    """

    def __init__(  # noqa: PLR0913 - a plan names each option
        self,
        url: str,
        *,
        method: str = "POST",
        body: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        key_env: str | None = None,
        key_header: str = "Authorization",
        hits: str = "hits",
        id: str = "id",  # noqa: A002 - the field in a hit
        base: str | None = None,
        score: str | None = "score",
        score_order: str = "descending",
        timeout: float = 60.0,
        max_bytes: int = MAX_BYTES,
        version: str | None = None,
    ) -> None:
        self._method = choice("method", method, ("POST", "GET"))
        url, query = _split_query(url)
        self._params: dict[str, str | list[str]] = {**query, **_texts(params)}
        self._body = body
        if body is None and self._method == "POST" and not _placeholders(self._params):
            self._body = {"query": "{query}", "k": "{k}"}
        if self._body is not None and self._method == "GET":
            raise InputError("GET sends no body", where="http", fix='use method="POST" or params')
        if not _placeholders([self._params, self._body]) & {"query", "id"}:
            raise InputError(
                "the request does not contain the query",
                where="http",
                fix='add {query}: body={"q": "{query}", "size": "{k}"}',
            )
        self._hits, self._id = steps(hits, "hits"), steps(id, "id")
        self._base = base
        self._score = steps(score, "score") if score else None
        self._sign = 1.0 if choice("score_order", score_order, _ORDERS) == "descending" else -1.0
        self._endpoint = Endpoint(
            url, headers=headers, key_env=key_env, key_header=key_header, timeout=timeout, max_bytes=max_bytes
        )
        sent = {"body": self._body, "params": self._params}
        shown = masked(sent, self._endpoint.secrets)
        self.settings: Mapping[str, Any] | None = None
        if version is not None:
            hidden = {name: value for name, value in sent.items() if value != shown[name]}
            self.settings = {
                "type": "http",
                "headers": [],
                **self._endpoint.settings(**hidden),
                "method": self._method,
                **shown,
                "hits": hits,
                "id": id,
                **({} if base is None else {"base": base}),
                "score": score,
                "score_order": score_order,
                "version": version,
            }

    def index(self, documents: Iterable[Document]) -> None:
        """Do nothing: the existing index is searched."""

    def search(self, queries: Sequence[Query], k: int) -> list[Any]:
        """Return one ranking per query; each query is a request.

        Raises:
            EndpointError: If a response is missing or invalid.
            InputError: If a path does not exist, an id or a score is invalid, or scores get better
                from first to last.
        """
        return [self._ranking(query, k) for query in queries]

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _ranking(self, query: Query, k: int) -> list[Any]:
        values: dict[str, Any] = {"query": query.text, "k": k, "id": query.id}
        sent = None if self._body is None else json.dumps(filled(self._body, values)).encode()
        answer = self._endpoint.ask(self._method, "", sent, params=filled(self._params, values))
        hits = follow(answer, self._hits, "hits")
        if hits is None:  # some servers return null for an empty list
            return []
        if not isinstance(hits, list):
            raise InputError(
                f"hits is the path of {type(hits).__name__}{_keys(hits)}, expected a list",
                where="http",
                fix="write the path of the list of hits",
            )
        ids = [relative_id(_document(follow(hit, self._id, "id")), self._base) for hit in hits]
        if self._score is None:
            return list(dict.fromkeys(ids))[:k]
        scores = [self._sign * _number(follow(hit, self._score, "score")) for hit in hits]
        if len(scores) > 1 and scores[0] < scores[-1] and scores == sorted(scores):
            raise InputError(
                "scores get better from first to last",
                where="http",
                fix=f'write score_order="{_ORDERS[self._sign > 0]}", or score=None to use the order of the hits',
            )
        best: dict[str, float] = {}
        for score, name in sorted(zip(scores, ids, strict=True), key=lambda row: -row[0]):
            best.setdefault(name, score)
        return list(itertools.islice(best.items(), k))


# ---- templates


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Fill the placeholders of a template; a value that is only a placeholder keeps its type.

    Example:
        >>> filled({"q": "{query}", "top": ["{k}"], "note": "{k} of all"}, {"query": "a", "k": 3})
        {'q': 'a', 'top': [3], 'note': '3 of all'}
    """
    if isinstance(template, Mapping):
        return {name: filled(value, values) for name, value in template.items()}
    if isinstance(template, list | tuple):
        return [filled(value, values) for value in template]
    if not isinstance(template, str):
        return template
    alone = _PLACEHOLDER.fullmatch(template)
    if alone:
        return values[alone[1]]
    # In one pass: a query may contain text that looks like a placeholder.
    return _PLACEHOLDER.sub(lambda place: str(values[place[1]]), template)


def _placeholders(template: Any) -> set[str]:
    if isinstance(template, Mapping):
        return _placeholders(list(template.values()))
    if isinstance(template, list | tuple):
        return {name for value in template for name in _placeholders(value)}
    return set(_PLACEHOLDER.findall(template)) if isinstance(template, str) else set()


def _split_query(url: Any) -> tuple[Any, dict[str, str | list[str]]]:
    """Return a URL without its query, and the query parameters; repeated ones become lists."""
    if not isinstance(url, str):
        return url, {}
    parts = urlsplit(url)
    if _placeholders(parts.path) or _placeholders(parts.netloc):
        raise InputError("the path of the URL contains a placeholder", where="http", fix="put it into params or body")
    query = {
        name: values if len(values) > 1 else values[0]
        for name, values in parse_qs(parts.query, keep_blank_values=True).items()
    }
    return urlunsplit(parts._replace(query="")), query


def _texts(params: Any) -> dict[str, str]:
    if params is None:
        return {}
    if not isinstance(params, Mapping):
        raise InputError(
            f"got {type(params).__name__} for params", where="http", fix='pass a mapping: {"q": "{query}"}'
        )
    odd = next((n for n, v in params.items() if not isinstance(v, str | int | float)), None)
    if odd is not None:
        raise InputError(
            f"got {type(params[odd]).__name__} for params[{odd!r}]",
            where="http",
            fix='pass text or a number: {"q": "{query}"}',
        )
    return {str(name): str(value).lower() if isinstance(value, bool) else str(value) for name, value in params.items()}


def masked(template: Any, secrets: Secrets, name: str = "") -> Any:
    """Return a template for settings, with ``...`` for text that may be secret.

    Placeholders, short numbers, and text under names such as ``fields`` are shown. Other text is
    added to `secrets`, which are redacted in messages; plain words such as "published" only if
    their name suggests a secret.

    Example:
        >>> sent = {"q": "{query}", "size": 5, "lang": "en", "code": "abc", "auth": {"pin": 1}}
        >>> masked(sent, Secrets())
        {'q': '{query}', 'size': 5, 'lang': 'en', 'code': '...', 'auth': {'pin': '...'}}
    """
    if isinstance(template, Mapping):
        # The name of a secret applies to everything in it.
        secret = SECRET_NAME.search(name)
        return {str(key): masked(value, secrets, name if secret else str(key)) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [masked(value, secrets, name) for value in template]
    if _is_plain(template, name):
        return template
    text = str(template)
    plain = not SECRET_NAME.search(name) and all(map(_PLAIN_WORD.fullmatch, text.split()))
    if not plain and not _placeholders(template):
        secrets.add(text, name)
    return "..."


def _is_plain(value: Any, name: str) -> bool:
    """Return whether a value can be shown."""
    text = str(value)
    if _PLACEHOLDER.fullmatch(text):
        return True
    if SECRET_NAME.search(name):
        return False
    if value is None or isinstance(value, bool) or _NUMBER.fullmatch(text):
        return True
    return (name.lower() in _PLAIN_NAMES or bool(_placeholders(value))) and not looks_secret(text)


# ---- paths


def steps(path: Any, name: str) -> tuple[str | int, ...]:
    """Return the steps of a path; an empty path has none.

    Example:
        >>> steps("result.hits[0].id", "hits")
        ('result', 'hits', 0, 'id')
    """
    if not isinstance(path, str) or (path and not _PATH.fullmatch(path)):
        raise InputError(
            f"{name}={path!r:.60} is not a path",
            where="http",
            fix="write names separated by dots, with [0] for list indices: result.hits[0].id",
        )
    return tuple(int(at) if at else word for word, at in _STEP.findall(path))


def follow(answer: Any, path: Sequence[str | int], name: str) -> Any:
    """Return the value at the end of a path."""
    for place, step in enumerate(path):
        known = isinstance(answer, Mapping) and step in answer
        if isinstance(step, int):
            known = isinstance(answer, list) and step < len(answer)
        if not known:
            walked = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
            root = "the response" if name == "hits" else "the hit"
            parent = repr(path[place - 1]) if place else root
            raise InputError(
                f"{name}={walked.lstrip('.')!r} does not exist: there is no {step!r} in {parent}, "
                f"which is {type(answer).__name__}{_keys(answer)}",
                where="http",
                fix=f"write the path of {name} in a response",
            )
        answer = answer[step]
    return answer


def _keys(value: Any) -> str:
    if isinstance(value, Mapping):
        return f" with {', '.join(map(str, itertools.islice(value, 12))) or 'no keys'}"
    return f" of {len(value)}" if isinstance(value, list) else f" {redact(repr(value)):.60}"


def _document(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value):
        raise InputError(
            f"the id of a hit is {type(value).__name__}{_keys(value)}",
            where="http",
            fix="write the path of the document id in a hit",
        )
    return str(value)


def _number(value: Any) -> float:
    if not is_number(value):
        raise InputError(
            f"the score of a hit is {type(value).__name__}{_keys(value)}, expected a number",
            where="http",
            fix="write the path of the score in a hit, or score=None",
        )
    return float(value)

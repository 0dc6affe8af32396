"""Elasticsearch and OpenSearch, through their REST API."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from rankgauge.core.arguments import choice, is_number
from rankgauge.core.http_client import MAX_BYTES, Endpoint, EndpointError, call_with_retries
from rankgauge.core.redaction import redact
from rankgauge.core.text import inflect, many
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers.base import batches, field_names, indexed
from rankgauge.retrievers.http import filled, masked

_LINES = "application/x-ndjson"
_NAME = re.compile(r"[a-z0-9][a-z0-9_.+-]{0,254}")
_BATCH_BYTES = 4_000_000
_BATCH_QUERIES = 50
_SHOWN = 3
# One shard: term statistics, and so scores, are those of the whole collection.
_CREATED: Mapping[str, Any] = {
    "settings": {"index": {"number_of_shards": 1, "number_of_replicas": 0}},
    "mappings": {
        "dynamic": False,
        "properties": {"id": {"type": "keyword"}, "title": {"type": "text"}, "text": {"type": "text"}},
    },
}


class Elasticsearch:
    """A new or existing Elasticsearch index.

    Documents become ``{"id": ..., "title": ..., "text": ...}`` in an index with one shard, scored
    by the server's default BM25 unless `definition` sets another similarity. An existing index that
    this object did not create is never changed without ``replace=True``. Ties are broken by
    document id, ascending; with your own `body` or index, by the server.

    Args:
        url: The server URL, such as ``http://localhost:9200``.
        index: The name of the index.
        fields: The fields of a ``multi_match`` search; ``"title^2"`` sets a weight.
        body: A custom search body with the placeholders ``"{query}"``, ``"{k}"``, and ``"{id}"`` in
            its values, such as ``{"query": {"match": {"text": "{query}"}}}``. ``size`` is added.
        create: Whether to create the index from the documents; False to search an existing one.
        replace: Whether an existing index may be deleted.
        definition: Additional settings of the index, such as analyzers:
            ``{"settings": {...}, "mappings": {...}}``.
        key_env: The environment variable with the key: an API key, or ``user:password`` if
            `key_scheme` is ``"Basic"``.
        key_scheme: ``"ApiKey"`` (default), ``"Basic"``, or ``"Bearer"``.
        timeout: Maximum seconds per response.
        max_bytes: Maximum bytes per response, decompressed; default: 64 MiB.
        version: The version of an existing index; without it, results are not reused.

    Attributes:
        size: Bytes of the index on the server after indexing; None if not reported.

    Raises:
        InputError: If the index name is invalid, or options are incompatible.
        MissingExtra: If httpx is not installed.

    Source:
        REST API of Elasticsearch 8 and OpenSearch 2: ``_bulk``, ``_msearch``, ``_refresh``.

    Example:
        >>> fields = ["title^2", "text"]
        >>> engine = Elasticsearch("http://localhost:9200", "help-pages", fields=fields)
        >>> engine.settings["fields"]
        ['title^2', 'text']
    """

    _type: ClassVar[str] = "elasticsearch"
    _scheme: ClassVar[str] = "ApiKey"

    def __init__(  # noqa: PLR0913 - a plan names each
        self,
        url: str,
        index: str,
        *,
        fields: Sequence[str] = ("title", "text"),
        body: Mapping[str, Any] | None = None,
        create: bool = True,
        replace: bool = False,
        definition: Mapping[str, Any] | None = None,
        key_env: str | None = None,
        key_scheme: str | None = None,
        timeout: float = 60.0,
        max_bytes: int = MAX_BYTES,
        version: str | None = None,
    ) -> None:
        scheme = choice("key_scheme", key_scheme or self._scheme, ("ApiKey", "Basic", "Bearer"))
        _check(index, body)
        if not create and (replace or definition):
            raise InputError("replace and definition require create=True", where=self._type, fix="omit create=False")
        self._index = index
        self._fields = list(field_names(fields or ()) or ())
        self._body = body
        self._create = create
        self._replace = replace
        self._definition = _merged(_CREATED, definition or {})
        self._count: int | None = None
        self.size: int | None = None
        self._endpoint = Endpoint(url, key_env=key_env, key_scheme=scheme, timeout=timeout, max_bytes=max_bytes)
        shown = masked(body, self._endpoint.secrets)
        self.settings: Mapping[str, Any] | None = None
        if create or version is not None:
            described: dict[str, Any] = {"fields": self._fields} if body is None else {"body": shown}
            described |= {"definition": self._definition} if create else {"index": index}
            described |= {} if version is None else {"version": version}
            hidden = {} if shown == body else {"body": body}
            self.settings = {"type": self._type, **self._endpoint.settings(**hidden), **described}

    def close(self) -> None:
        """Close the connections; the index is kept."""
        self._endpoint.close()

    # ---- documents

    def index(self, documents: Iterable[Document]) -> None:
        """Create the index from the documents; do nothing if ``create=False``.

        Raises:
            InputError: If the index exists and may not be replaced.
            EndpointError: If the server rejects documents; the message names the first.
        """
        if not self._create:
            return
        try:
            self._ask("GET")
        except EndpointError as error:
            if error.status != 404:
                raise
        else:
            if self._count is None and not self._replace:
                raise InputError(
                    f"index {self._index!r} already exists",
                    where=self._endpoint.shown,
                    fix="choose another name, create=False to search it, or replace=True to delete it",
                )
            self._ask("DELETE")
        self._ask("PUT", content=_json(self._definition))
        # From here on the index belongs to this object, even if later steps fail.
        self._count = 0
        for batch in _batches(documents):
            self._send(batch)
            self._count += len(batch)
        self._ask("POST", "_refresh")
        self.size = self._index_bytes()

    def _ask(self, method: str, path: str = "", content: bytes | None = None) -> Any:
        return call_with_retries(lambda: self._endpoint.ask(method, f"{self._index}/{path}".rstrip("/"), content))

    def _send(self, batch: Mapping[str, bytes]) -> None:
        """Send a batch; documents rejected by a busy server are sent again."""
        waiting = dict(batch)

        def send() -> None:
            answer = self._endpoint.ask("POST", f"{self._index}/_bulk", b"".join(waiting.values()), kind=_LINES)
            rows = list(_faults(answer, list(waiting)))
            refused = [(n, fault) for n, fault in rows if fault and fault.get("status") != 429]
            if refused:
                name, fault = refused[0]
                raise EndpointError(
                    f"{len(refused)} of {many(len(rows), 'document')} "
                    f"{inflect(len(refused), 'was', 'were')} rejected, first {name!r}: "
                    f"{self._endpoint.quoted(_reason(fault))}",
                    where=f"{self._endpoint.shown}/{self._index}/_bulk",
                    fix="see the server's message",
                    status=fault.get("status"),
                )
            for name in (n for n, fault in rows if fault is None):
                del waiting[name]
            if waiting:
                raise EndpointError(
                    f"the server was too busy for {many(len(waiting), 'document')}",
                    where=f"{self._endpoint.shown}/{self._index}/_bulk",
                    status=429,
                    fix="wait, and index again",
                    retryable=True,
                )

        call_with_retries(send)

    def _index_bytes(self) -> int | None:
        try:
            stats = self._endpoint.ask("GET", f"{self._index}/_stats/store")
        except EndpointError:  # serverless projects do not report it
            return None
        for key in ("_all", "primaries", "store", "size_in_bytes"):
            stats = stats.get(key) if isinstance(stats, Mapping) else None
        return stats if isinstance(stats, int) else None

    # ---- queries

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        """Return one ranking per query; queries are sent in batches.

        Raises:
            InputError: If the index was not created.
            EndpointError: If the server fails on a query, or searches only part of the index.
        """
        if self._create:
            indexed(self, self._count)
        size = k if self._count is None else max(1, min(k, self._count))
        results: list[list[tuple[str, float]]] = []
        for some in batches(queries, _BATCH_QUERIES):
            lines = b"".join(b"{}\n" + _json(self._search_body(query, size)) for query in some)
            answer = self._endpoint.ask("POST", f"{self._index}/_msearch", lines, kind=_LINES)
            answers = answer.get("responses") if isinstance(answer, Mapping) else None
            if not isinstance(answers, list) or len(answers) != len(some):
                got = len(answers) if isinstance(answers, list) else 0
                raise self._invalid_response(f"{many(got, 'response')} for {many(len(some), 'query')}")
            results += [self._hits(*row, k) for row in zip(some, answers, strict=True)]
        return results

    def _search_body(self, query: Query, size: int) -> dict[str, Any]:
        if self._body is not None:
            values = {"query": query.text, "k": size, "id": query.id}
            return {"size": size, "_source": False, **filled(self._body, values)}
        match = {"query": query.text, "fields": self._fields}
        body: dict[str, Any] = {"size": size, "_source": False, "query": {"multi_match": match}}
        if self._create:
            body |= {"sort": [{"_score": "desc"}, {"id": "asc"}], "track_scores": True}
        return body

    def _hits(self, query: Query, answer: Any, k: int) -> list[tuple[str, float]]:
        fault = answer.get("error") if isinstance(answer, Mapping) else None
        if fault:
            status = answer.get("status")
            raise EndpointError(
                f"the server failed on query {query.id!r}: {self._endpoint.quoted(_reason(answer))}",
                where=self._where(),
                fix="see the server's message",
                status=status,
                retryable=status in (429, 500, 503),
            )
        try:
            if answer.get("timed_out") or answer.get("_shards", {}).get("failed"):
                raise EndpointError(
                    f"only part of the index was searched for query {query.id!r}",
                    where=self._where(),
                    fix="check that all shards are available",
                    retryable=True,
                )
            rows = [(hit["_id"], hit["_score"]) for hit in answer["hits"]["hits"]]
        except (AttributeError, KeyError, TypeError):
            raise self._invalid_response(self._endpoint.quoted(repr(answer))) from None
        if any(score is None for _, score in rows):
            raise InputError(
                f"hits of query {query.id!r} have no score",
                where=self._type,
                fix='add "track_scores": true to the body, which sorts by another field',
            )
        if not all(isinstance(name, str) and name and is_number(score) for name, score in rows):
            raise self._invalid_response("a hit whose _id is not text or whose _score is not a number")
        return [(name, float(score)) for name, score in rows][:k]

    def _where(self) -> str:
        return f"{self._endpoint.shown}/{self._index}/_msearch"

    def _invalid_response(self, got: str) -> EndpointError:
        return EndpointError(
            f"not a response of {self._type}: {got}",
            where=self._where(),
            fix="check the URL: another service may answer there",
        )


class OpenSearch(Elasticsearch):
    """A new or existing OpenSearch index.

    Arguments are those of :class:`Elasticsearch`, but the default `key_scheme` is ``"Basic"``:
    `key_env` names a variable with ``user:password``.

    Example:
        >>> OpenSearch("http://localhost:9200", "help-pages").settings["type"]
        'opensearch'
    """

    _type = "opensearch"
    _scheme = "Basic"


def _check(index: Any, body: Any) -> None:
    # A name with an asterisk or a comma would match several indexes, and deletion would affect all.
    if not isinstance(index, str) or not _NAME.fullmatch(index):
        raise InputError(
            f"{index!r:.60} is not a valid index name",
            where="index",
            fix="use lower-case letters, digits, -, and _, and begin with a letter or a digit",
        )
    if body is not None:
        text = json.dumps(body) if isinstance(body, Mapping) else ""
        if "{query}" not in text and "{id}" not in text:
            raise InputError(
                "the body does not contain the query",
                where="body",
                fix='add "{query}": {"query": {"match": {"text": "{query}"}}}',
            )


def _merged(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(ours)
    for name, value in theirs.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _merged(merged[name], value) if both else value
    return merged


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _batches(documents: Iterable[Document]) -> Iterator[dict[str, bytes]]:
    """Yield batches of a few megabytes: document id to the two lines of its bulk request."""
    batch: dict[str, bytes] = {}
    size = 0
    for document in documents:
        lines = _json({"index": {"_id": document.id}}) + _json(
            {"id": document.id, "title": document.title, "text": document.text}
        )
        if batch and size + len(lines) > _BATCH_BYTES:
            yield batch
            batch, size = {}, 0
        batch[document.id] = lines
        size += len(lines)
    if batch:
        yield batch


def _faults(answer: Any, names: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """Yield the name of each document with its error, or None."""
    items = answer.get("items") if isinstance(answer, Mapping) else None
    if not isinstance(items, list) or len(items) != len(names):
        got = many(len(items) if isinstance(items, list) else 0, "item")
        raise EndpointError(
            f"the server returned {got} for {many(len(names), 'document')}",
            where="_bulk",
            fix="check the URL: another service may answer there",
        )
    for name, item in zip(names, items, strict=True):
        done = next(iter(item.values()), None) if isinstance(item, Mapping) else None
        if not isinstance(done, Mapping):
            raise EndpointError(f"an item is {redact(repr(item)):.60}", where="_bulk", fix="check the URL")
        yield name, done if done.get("error") else None


def _reason(answer: Mapping[str, Any]) -> str:
    """Return the error message of the server with its first causes."""
    fault = answer.get("error")
    if not isinstance(fault, Mapping):
        return str(fault)
    more = fault.get("root_cause")
    causes = [fault, *(more if isinstance(more, list) else ())]
    reasons = dict.fromkeys(
        f"{cause.get('type')}: {cause.get('reason')}"
        for cause in itertools.islice(causes, _SHOWN)
        if isinstance(cause, Mapping)
    )
    return "; ".join(reasons)

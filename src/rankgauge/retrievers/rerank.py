"""Reranking of the top documents of a retriever, and rerankers: models that score pairs of query and text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol, runtime_checkable

from rankgauge.core.arguments import integer, is_number
from rankgauge.core.http_client import MAX_BYTES, Endpoint
from rankgauge.core.libraries import library, loading, versions
from rankgauge.core.text import many
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError
from rankgauge.llm.endpoints import ModelEndpoint
from rankgauge.llm.replies import is_count
from rankgauge.retrievers.base import (
    CallableDelegate,
    CompositeRetriever,
    document_texts,
    field_names,
    indexed,
)
from rankgauge.retrievers.encoders import tokenizer_digest, weights_digest
from rankgauge.retrievers.hits import Hits
from rankgauge.retrievers.protocol import index_documents, search

_COUNTS = {"total_tokens": "tokens", "input_tokens": "tokens", "search_units": "search_units"}


@dataclass(eq=False, repr=False)
class Rerank(CompositeRetriever):
    """The top documents of a retriever, reordered by a reranker.

    Documents without a score from the reranker, or below `depth`, follow in their original order,
    with artificial scores. Ties keep the original order. The texts of all documents are kept in
    memory.

    Args:
        retriever: A retriever of any kind.
        reranker: A reranker, or a callable ``(query, texts) -> scores``, higher is better.
        depth: The number of documents to rerank.
        fields: The fields that the reranker reads; default: title and text.

    Raises:
        InputError: If `reranker` is not a reranker, or `depth` is invalid.

    Example:
        >>> def brief(query, texts):
        ...     return [-len(text) for text in texts]
        >>> shortest = Rerank(lambda text: ["d1", "d2"], brief)
        >>> shortest.index([Document("d1", text="opening hours"), Document("d2", text="hours")])
        >>> shortest.search([Query("q1", "hours")], 10)
        [[('d2', -5.0), ('d1', -13.0)]]
    """

    TYPE = "rerank"
    PARTS = ("retriever", "reranker")

    retriever: Any
    reranker: Any
    _: KW_ONLY
    depth: int = 50
    fields: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.reranker, Reranker):
            if not callable(self.reranker):
                raise InputError(
                    f"got {type(self.reranker).__name__}, expected a reranker",
                    where="reranker",
                    fix="pass a function of a query and a list of texts, or an object with rerank()",
                )
            self.reranker = _Called(self.reranker)
        self.depth = integer("depth", self.depth)
        names = field_names(self.fields)
        self.fields = None if names is None else list(names)
        self._texts: dict[str, str] | None = None

    @property
    def size(self) -> int:
        """Bytes of the texts and of the indexes that report their size."""
        texts = sum(len(text.encode("utf-8", "replace")) for text in (self._texts or {}).values())
        return texts + (super().size or 0)

    def index(self, documents: Iterable[Document]) -> None:
        """Index the documents, and store their texts."""
        index_documents(self.retriever, documents)
        self._texts = dict(document_texts(documents, self.fields))

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        """Return at most `k` documents for each query, best first.

        Raises:
            InputError: Before indexing, or if the reranker does not return a finite number or None
                for each text.
        """
        texts = indexed(self, self._texts)
        responses = search(self.retriever, queries, max(self.depth, k))
        return [self._reranked(query.text, hits, texts)[:k] for query, hits in zip(queries, responses, strict=True)]

    def _reranked(self, query: str, hits: Hits, texts: dict[str, str]) -> list[tuple[str, float]]:
        top = [name for name in hits.ids[: self.depth] if name in texts]
        scores = self._scores(query, [texts[name] for name in top]) if top else []
        scored = [(name, score) for name, score in zip(top, scores, strict=True) if score is not None]
        ranking = sorted(scored, key=lambda hit: -hit[1])
        floor = ranking[-1][1] if ranking else 0.0
        # A step large enough to change a number of this size.
        step = max(1.0, 2 * math.ulp(floor))
        ranked = {name for name, _ in ranking}
        rest = [name for name in hits.ids if name not in ranked]
        return ranking + [(name, floor - step * n) for n, name in enumerate(rest, 1)]

    def _scores(self, query: str, texts: list[str]) -> list[float | None]:
        result = self.reranker.rerank(query, texts)
        try:
            scores = [None if score is None else float(score) for score in result]
        except (TypeError, ValueError):
            scores = []
        if len(scores) != len(texts) or not all(s is None or math.isfinite(s) for s in scores):
            raise InputError(
                f"the reranker returned {result!r:.80} for {many(len(texts), 'text')}",
                where="reranker",
                fix="return a finite number for each text, or None for no score",
            )
        return scores


@runtime_checkable
class Reranker(Protocol):
    """Protocol of a reranker, which scores texts for a query.

    Optional attributes: ``settings``, ``usage()``, and ``close()``, as for retrievers.
    """

    def rerank(self, query: str, texts: Sequence[str], /) -> Sequence[float | None]:
        """Return a score for each text, higher is better; None for texts without a score."""


class _Called(CallableDelegate):
    """A function of a query and texts as a reranker."""

    def rerank(self, query: str, texts: Sequence[str]) -> Any:
        return self._call(query, list(texts))


class CrossEncoderReranker:
    """A sentence-transformers cross-encoder.

    Args:
        model: The name of a model, the path of a folder, or a loaded model.
        batch: Pairs per batch.
        device: ``cpu``, ``cuda``, ...; default: chosen by the library.

    Raises:
        MissingExtra: If sentence-transformers is not installed.
        InputError: If the model cannot be loaded.
    """

    def __init__(self, model: Any, *, batch: int = 32, device: str | None = None) -> None:
        self._batch = integer("batch", batch)
        if isinstance(model, str):
            loaded = library("sentence_transformers", extra="sentence-transformers", of="this reranker")
            with loading(model, "cross-encoder"):
                self._model = loaded.CrossEncoder(model, device=device)
        else:
            self._model = model
        self.settings: Mapping[str, Any] = {
            "type": "cross-encoder",
            "model": model if isinstance(model, str) else type(model).__name__,
            "weights": weights_digest(self._model.model),
            "tokenizer": tokenizer_digest(getattr(self._model, "tokenizer", None)),
            "activation": _activation(self._model),
            "max_length": getattr(self._model, "max_length", None),
            "versions": versions("sentence-transformers", "torch"),
        }

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text."""
        if not texts:
            return []
        scores = self._model.predict([(query, text) for text in texts], batch_size=self._batch, show_progress_bar=False)
        if getattr(scores, "ndim", 1) != 1:
            raise InputError(
                f"the cross-encoder returned {scores.shape[1]} numbers for each pair, expected one",
                where="reranker",
                fix="use a model with one label, trained for ranking",
            )
        return [float(score) for score in scores]


def _activation(model: Any) -> str | None:
    """Return the activation function of a cross-encoder, under its current or former name."""
    names = ("activation_fn", "default_activation_function")
    activation = next((value for name in names if (value := getattr(model, name, None)) is not None), None)
    # The name of a function or the class of a layer: a repr might contain a memory address.
    return None if activation is None else getattr(activation, "__qualname__", type(activation).__qualname__)


class RerankEndpoint(ModelEndpoint):
    """A reranker at ``POST {url}/rerank``, as offered by Cohere, Jina, Voyage, vLLM, and others.

    Arguments are described by ``ModelEndpoint``.
    """

    _path = "rerank"
    _expected = "results with index and relevance_score"

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key_env: str | None = None,
        key_header: str = "Authorization",
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        endpoint = Endpoint(
            url, headers=headers, key_env=key_env, key_header=key_header, timeout=timeout, max_bytes=max_bytes
        )
        super().__init__(endpoint, ["tokens", "search_units"])
        self._model = model
        self.settings: Mapping[str, Any] = {"type": "rerank-endpoint", **endpoint.settings(), "model": model}

    def rerank(self, query: str, texts: Sequence[str]) -> list[float | None]:
        """Return a score for each text that the server scored.

        Raises:
            EndpointError: If the server does not respond, or the response is not a list of scores
                of these texts.
        """
        if not texts:
            return []
        content = self._endpoint.post(self._path, {"model": self._model, "query": query, "documents": list(texts)})
        scores = self._scores(content, len(texts))
        self._count(len(texts), _billed(content))
        return scores

    def _scores(self, content: Any, count: int) -> list[float | None]:
        rows = content
        if isinstance(content, Mapping):
            rows = next((content[word] for word in ("results", "data") if word in content), None)
        if not isinstance(rows, list):
            raise self._invalid_response(f"{self._endpoint.quoted(content)}, which has no list of results")
        scores: list[float | None] = [None] * count
        for row in rows:
            held = row if isinstance(row, Mapping) else {}
            place = held.get("index")
            if not isinstance(place, int) or isinstance(place, bool) or not 0 <= place < count:
                shown = place if isinstance(place, int) and not isinstance(place, bool) else None
                raise self._invalid_response(f"the index {shown} for {many(count, 'text')}")
            score = held.get("relevance_score", held.get("score"))
            if not is_number(score):
                raise self._invalid_response("a result whose relevance_score is not a finite number")
            if scores[place] is not None:
                raise self._invalid_response(f"the index {place} twice")
            scores[place] = float(score)
        if not rows:
            raise self._invalid_response(f"no scores for {many(count, 'text')}")
        return scores


def _billed(content: Any) -> dict[str, float]:
    """Return the tokens and search units that the server reports."""
    if not isinstance(content, Mapping):
        return {}
    meta = content.get("meta")
    meta = meta if isinstance(meta, Mapping) else {}
    amounts: dict[str, float] = {}
    for part in (content.get("usage"), meta.get("billed_units"), meta.get("tokens")):
        for theirs, ours in _COUNTS.items():
            amount = part.get(theirs) if isinstance(part, Mapping) else None
            if is_count(amount) and ours not in amounts:
                amounts[ours] = float(amount)
    return amounts

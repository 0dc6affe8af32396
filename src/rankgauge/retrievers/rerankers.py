"""Rerankers: models that score pairs of query and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from rankgauge.core.arguments import integer, is_number
from rankgauge.core.http_client import MAX_BYTES, Endpoint
from rankgauge.core.libraries import library, loading, versions
from rankgauge.core.text import many
from rankgauge.errors import InputError
from rankgauge.llm.endpoints import ModelEndpoint
from rankgauge.llm.replies import is_count
from rankgauge.retrievers.base import CallableDelegate
from rankgauge.retrievers.encoders import tokenizer_digest, weights_digest

_COUNTS = {"total_tokens": "tokens", "input_tokens": "tokens", "search_units": "search_units"}


@runtime_checkable
class Reranker(Protocol):
    """Protocol of a reranker, which scores texts for a query.

    Optional attributes: ``settings``, ``usage()``, and ``close()``, as for retrievers.
    """

    def rerank(self, query: str, texts: Sequence[str], /) -> Sequence[float | None]:
        """Return a score for each text, higher is better; None for texts without a score."""


def reranker_of(given: Any) -> Reranker:
    """Return a reranker unchanged; wrap a callable ``(query, texts) -> scores``."""
    if isinstance(given, Reranker):
        return given
    if callable(given):
        return _Called(given)
    raise InputError(
        f"got {type(given).__name__}, expected a reranker",
        where="reranker",
        fix="pass a function of a query and a list of texts, or an object with rerank()",
    )


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
        pairs = [(query, text) for text in texts]
        scores = self._model.predict(pairs, batch_size=self._batch, show_progress_bar=False)
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
    found = next((one for name in names if (one := getattr(model, name, None)) is not None), None)
    # The name of a function or the class of a layer: a repr might contain a memory address.
    return None if found is None else getattr(found, "__qualname__", type(found).__qualname__)


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
        body = {"model": self._model, "query": query, "documents": list(texts)}
        content = self._endpoint.post(self._path, body)
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
    found: dict[str, float] = {}
    for part in (content.get("usage"), meta.get("billed_units"), meta.get("tokens")):
        for theirs, ours in _COUNTS.items():
            amount = part.get(theirs) if isinstance(part, Mapping) else None
            if is_count(amount) and ours not in found:
                found[ours] = float(amount)
    return found

"""Models that score a query and a text together."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from rankgauge.core.http_client import MAX_BYTES, Endpoint, EndpointError
from rankgauge.core.libraries import library, loading, versions
from rankgauge.errors import InputError
from rankgauge.retrievers.encoders import tokenizer_digest, weights_digest
from rankgauge.retrievers.options import whole

__all__ = ["CrossEncoderReranker", "RerankEndpoint", "Reranker", "reranker_of"]


@runtime_checkable
class Reranker(Protocol):
    """Anything that scores texts for a query.

    It may have more: ``settings``, ``usage()`` and ``close()``, as retrievers have.
    """

    def rerank(self, query: str, texts: Sequence[str], /) -> Sequence[float | None]:
        """A score for each text, higher is better; None where there is none."""
        ...


def reranker_of(given: Any) -> Reranker:
    """A reranker, or a callable ``(query, texts) -> scores``, as a reranker.

    Raises:
        InputError: If it is neither.
    """
    if isinstance(given, Reranker):
        return given
    if callable(given):
        return _Called(given)
    raise InputError(
        f"got {type(given).__name__} for a reranker", where="reranker",
        fix="give a function of a query and a list of texts, or an object with rerank()",
    )  # fmt: skip


class _Called:
    """A callable, with what it declares."""

    def __init__(self, call: Callable[[str, list[str]], Any]) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._call, name)

    def rerank(self, query: str, texts: Sequence[str]) -> Any:
        return self._call(query, list(texts))


class CrossEncoderReranker:
    """A cross-encoder of sentence-transformers.

    Args:
        model: The name of a model, the path of a folder, or a model that is loaded.
        batch: How many pairs are scored at once.
        device: Where: ``cpu``, ``cuda``, ...; if left out, the library chooses.

    Raises:
        MissingExtra: If sentence-transformers is not installed.
        InputError: If the model cannot be loaded.
    """

    def __init__(self, model: Any, *, batch: int = 32, device: str | None = None) -> None:
        self._batch = whole("batch", batch)
        if isinstance(model, str):
            loaded = library(
                "sentence_transformers", extra="sentence-transformers", of="this reranker"
            )
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
        """A score for each text."""
        if not texts:
            return []
        pairs = [(query, text) for text in texts]
        scores = self._model.predict(pairs, batch_size=self._batch, show_progress_bar=False)
        if getattr(scores, "ndim", 1) != 1:
            raise InputError(
                f"the cross-encoder gives {scores.shape[1]} numbers for each pair, wanted one",
                where="reranker", fix="use a model with one label, made for ranking",
            )  # fmt: skip
        return [float(score) for score in scores]


def _activation(model: Any) -> str | None:
    """What makes scores of the numbers of a cross-encoder, by either name that it has had."""
    names = ("activation_fn", "default_activation_function")
    found = next((one for name in names if (one := getattr(model, name, None)) is not None), None)
    # A function by its name, a layer of PyTorch by its class: no address in memory.
    return None if found is None else getattr(found, "__qualname__", type(found).__qualname__)


class RerankEndpoint:
    """A reranker behind ``POST {url}/rerank``, as Cohere, Jina, Voyage, vLLM and others offer it.

    Args:
        url: What stands before ``/rerank``: ``http://localhost:8000/v1``.
        model: The name of the model.
        key_env: The environment variable that holds the key.
        key_header: The header it is sent in.
        headers: Sent with every request.
        timeout: Seconds that an answer may take in all.
        max_bytes: How many bytes an answer may have, decompressed; 64 MiB if left out.

    Raises:
        MissingExtra: If httpx is not installed.
        InputError: If the variable is not set.
    """

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
        self._endpoint = Endpoint(
            url,
            headers=headers,
            key_env=key_env,
            key_header=key_header,
            timeout=timeout,
            max_bytes=max_bytes,
        )
        self._model = model
        self._used = {"calls": 0.0, "texts": 0.0, "tokens": 0.0, "search_units": 0.0}
        self._lock = threading.Lock()
        self.settings: Mapping[str, Any] = {
            "type": "rerank-endpoint",
            **self._endpoint.settings(),
            "model": model,
        }

    def rerank(self, query: str, texts: Sequence[str]) -> list[float | None]:
        """A score for each text that the server scored.

        Raises:
            EndpointError: If the server does not answer, or not with scores of these texts.
        """
        if not texts:
            return []
        body = {"model": self._model, "query": query, "documents": list(texts)}
        answer = self._endpoint.post("rerank", body)
        scores = self._scores(answer, len(texts))
        with self._lock:
            self._used["calls"] += 1
            self._used["texts"] += len(texts)
            for word, amount in _used(answer).items():
                self._used[word] += amount
        return scores

    def usage(self) -> dict[str, float]:
        """Answered calls, texts that were sent, and what the server counts."""
        with self._lock:
            return dict(self._used)

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _scores(self, answer: Any, count: int) -> list[float | None]:
        rows = answer
        if isinstance(answer, Mapping):
            rows = next((answer[word] for word in ("results", "data") if word in answer), None)
        if not isinstance(rows, list):
            raise self._refused(f"{self._endpoint.quoted(answer)}, which holds no list of results")
        scores: list[float | None] = [None] * count
        for row in rows:
            place, score = _row(row)
            if place is None or not 0 <= place < count:
                raise self._refused(f"the index {place} for {count} texts")
            if score is None:
                raise self._refused("a result whose relevance_score is no finite number")
            if scores[place] is not None:
                raise self._refused(f"the index {place} twice")
            scores[place] = score
        return scores

    def _refused(self, got: str) -> EndpointError:
        return EndpointError(
            f"the server returned {got}", where=f"POST {self._endpoint.shown} /rerank",
            fix="look at the URL and the model: it wants results with index and relevance_score",
        )  # fmt: skip


def _row(row: Any) -> tuple[int | None, float | None]:
    if not isinstance(row, Mapping):
        return None, None
    place = row.get("index")
    score = next((row[word] for word in ("relevance_score", "score") if word in row), None)
    good = isinstance(place, int) and not isinstance(place, bool)
    number = isinstance(score, int | float) and not isinstance(score, bool)
    return (
        place if good else None,
        float(score) if number and score is not None and math.isfinite(score) else None,
    )


def _used(answer: Any) -> dict[str, float]:
    """Tokens and search units, wherever the server tells them."""
    if not isinstance(answer, Mapping):
        return {}
    meta = answer.get("meta")
    places = [answer.get("usage")]
    places += [meta.get("billed_units"), meta.get("tokens")] if isinstance(meta, Mapping) else []
    found: dict[str, float] = {}
    names = {"total_tokens": "tokens", "input_tokens": "tokens", "search_units": "search_units"}
    for place in places:
        for theirs, ours in names.items():
            amount = place.get(theirs) if isinstance(place, Mapping) else None
            if isinstance(amount, int | float) and ours not in found:
                found[ours] = float(amount)
    return found

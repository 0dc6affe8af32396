"""Models at an HTTP endpoint, and OpenAI-compatible embeddings."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rankgauge.core.arguments import integer, is_number
from rankgauge.core.http_client import MAX_BYTES, Endpoint, EndpointError, call_with_retries
from rankgauge.core.text import many
from rankgauge.llm.cache import ReplyCache, cache_key
from rankgauge.llm.replies import is_count

_ATTEMPTS = 5  # if the server is busy
_MOST = 1e38  # within the range of 32-bit floats


class ModelEndpoint:
    """Model at a path of a server, with its usage.

    Args:
        url: The base URL, without ``/embeddings`` or ``/rerank``: ``http://localhost:8000/v1``.
        model: The name of the model.
        key_env: The environment variable with the key.
        key_header: The header that carries the key.
        headers: Headers of every request.
        timeout: Maximum seconds per response.
        max_bytes: Maximum bytes of a decompressed response; default: 64 MiB.

    Raises:
        MissingExtra: If httpx is not installed.
        InputError: If the environment variable is not set, or a number is invalid.
    """

    # The path after the URL, and the expected response.
    _path: str
    _expected: str

    def __init__(self, endpoint: Endpoint, units: Sequence[str]) -> None:
        self._endpoint = endpoint
        self._used = dict.fromkeys(("calls", "texts", *units), 0.0)
        self._lock = threading.Lock()

    def usage(self) -> dict[str, float]:
        """Return the numbers of answered calls and texts, and counts such as tokens."""
        with self._lock:
            return dict(self._used)

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _count(self, texts: int, amounts: Mapping[str, float]) -> None:
        with self._lock:
            self._used["calls"] += 1
            self._used["texts"] += texts
            for unit, amount in amounts.items():
                self._used[unit] += amount

    def _invalid_response(self, got: str) -> EndpointError:
        return EndpointError(
            f"the server returned {got}",
            where=f"POST {self._endpoint.shown} /{self._path}",
            fix=f"check the URL and the model: it needs {self._expected}",
        )


class EmbeddingEndpoint(ModelEndpoint):
    """Embedding model at ``POST {url}/embeddings``, as offered by OpenAI, vLLM, Ollama, and TEI.

    Requests with documents or several queries are retried if the server is busy. A single query is
    sent once, because benchmarks time and repeat calls. Blank texts, which many servers reject, are
    not sent and have zero vectors.

    Arguments for server, model, and key are described by ``ModelEndpoint``.

    Args:
        dimensions: The length of the vectors, for models with variable length.
        query_prompt: The prefix of each query.
        document_prompt: The prefix of each document.
        batch: The number of texts per request.
        cache: A file that stores vectors, created if missing; it can be shared with a
            ``ChatModel``. Keys contain endpoint, model, dimensions, and text.
    """

    _path = "embeddings"
    _expected = "OpenAI's embeddings API"

    def __init__(  # noqa: PLR0913 - each is a separate option
        self,
        url: str,
        model: str,
        *,
        key_env: str | None = None,
        key_header: str = "Authorization",
        headers: Mapping[str, str] | None = None,
        dimensions: int | None = None,
        query_prompt: str = "",
        document_prompt: str = "",
        batch: int = 64,
        timeout: float = 60.0,
        max_bytes: int = MAX_BYTES,
        cache: str | Path | None = None,
    ) -> None:
        endpoint = Endpoint(
            url, headers=headers, key_env=key_env, key_header=key_header, timeout=timeout, max_bytes=max_bytes
        )
        super().__init__(endpoint, ["tokens"])
        self._model = model
        self._dimensions = None if dimensions is None else integer("dimensions", dimensions)
        self._query_prompt, self._document_prompt = query_prompt, document_prompt
        self._batch = integer("batch", batch)
        self._width = self._dimensions
        self._cache = None if cache is None else ReplyCache(Path(cache))
        self.settings: Mapping[str, Any] = {
            "type": "openai-embeddings",
            **endpoint.settings(),
            "model": model,
            "dimensions": self._dimensions,
            "query_prompt": query_prompt,
            "document_prompt": document_prompt,
        }
        parts = ("type", "url", "headers", "key_env", "hidden", "model", "dimensions")
        self._identity = {name: self.settings.get(name) for name in parts}

    def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one row per text, retrying with increasing waits if the server is busy.

        Raises:
            EndpointError: If there is no response, or the vector of a text is missing or invalid.
        """
        return self._rows(texts, self._document_prompt, attempts=_ATTEMPTS)

    def encode_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one row per text; a single query is not retried.

        Raises:
            EndpointError: If there is no response, or the vector of a text is missing or invalid.
        """
        return self._rows(texts, self._query_prompt, attempts=_ATTEMPTS if len(texts) > 1 else 1)

    def _rows(self, texts: Sequence[str], prompt: str, *, attempts: int) -> npt.NDArray[np.float32]:
        filled = [n for n, text in enumerate(texts) if text.strip()]
        if not filled and texts and self._width is None:
            self._vectors(["."], attempts)
        vectors: list[Any] = []
        for start in range(0, len(filled), self._batch):
            vectors += self._vectors([prompt + texts[n] for n in filled[start : start + self._batch]], attempts)
        rows = np.zeros((len(texts), self._width or 0), dtype=np.float32)
        if filled:
            rows[filled] = vectors
        return rows

    def _vectors(self, texts: list[str], attempts: int) -> list[Any]:
        """Return the vector of each text from the cache or the server."""
        if self._cache is None:
            return self._check_lengths(self._request(texts, attempts))
        cache = self._cache
        keys = [cache_key(self._identity | {"text": text}) for text in texts]
        text_of = dict(zip(keys, texts, strict=True))

        def request(some: list[str]) -> dict[str, Any]:
            vectors = self._request([text_of[key] for key in some], attempts)
            vector_of = dict(zip(some, self._check_lengths(vectors), strict=True))
            cache.put(vector_of)
            return vector_of

        vector_of = cache.obtain(text_of, cache.find, request)
        return self._check_lengths([vector_of[key] for key in keys])

    def _check_lengths(self, vectors: list[Any]) -> list[Any]:
        """Return the vectors if all have the same length."""
        with self._lock:
            self._width = self._width or len(vectors[0])
        wrong = next((v for v in vectors if len(v) != self._width), None)
        if wrong is not None:
            raise self._invalid_response(f"a vector of {many(len(wrong), 'number')}, expected {self._width}")
        return vectors

    def _request(self, texts: list[str], attempts: int) -> list[Any]:
        body: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        content = call_with_retries(lambda: self._endpoint.post(self._path, body), attempts=attempts)
        vectors = self._in_order(content, len(texts))
        used = content.get("usage")
        words = ("total_tokens", "prompt_tokens") if isinstance(used, Mapping) else ()
        tokens = next((float(used[word]) for word in words if is_count(used.get(word))), 0.0)
        self._count(len(texts), {"tokens": tokens})
        return vectors

    def _in_order(self, content: Any, count: int) -> list[list[float]]:
        """Return the vectors in the order of the texts, which the server may change."""
        rows = content.get("data") if isinstance(content, Mapping) else None
        if not isinstance(rows, list):
            raise self._invalid_response(f"{self._endpoint.quoted(content)}, which has no list 'data'")
        if len(rows) != count:
            raise self._invalid_response(f"{many(len(rows), 'vector')} for {many(count, 'text')}")
        placed: dict[int, list[float]] = {}
        for place, row in enumerate(rows):
            vector = row.get("embedding") if isinstance(row, Mapping) else None
            numbers = vector if isinstance(vector, list) else []
            if not numbers or not all(is_number(value) and -_MOST < value < _MOST for value in numbers):
                raise self._invalid_response("an embedding that is not a list of finite numbers")
            index = row.get("index", place)
            placed[index if type(index) is int else -1] = numbers
        if set(placed) != set(range(count)):
            raise self._invalid_response(f"vectors that are not numbered from 0 to {count - 1}")
        return [placed[place] for place in range(count)]

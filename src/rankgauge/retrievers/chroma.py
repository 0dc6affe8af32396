"""Chroma, in a folder or on a server."""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import Any
from urllib.parse import urlsplit

from rankgauge.core.libraries import library
from rankgauge.retrievers.vector_store import Existing, Row, Vectors, VectorStore, id_in

_SPACES = {"cosine": "cosine", "dot": "ip", "l2": "l2"}


@dataclass(eq=False, repr=False, kw_only=True)
class Chroma(VectorStore):
    """Vectors in Chroma, with approximate search in a graph (HNSW).

    The graph is built at random: after the same documents are indexed again, rankings may differ
    slightly, and a few documents may be unreachable for any `k`.

    Chroma's telemetry is switched off, and its own embedding functions are never used. Ties:
    document id ascending.

    Arguments common to all vector stores are described by ``VectorStore``.

    Args:
        location: The path of a folder, or the URL of a server; None for a folder that is removed by
            ``close()``.
        id_field: The metadata field of the document id; None for Chroma's own id.
        ef_search: The number of candidates in a search of the graph; Chroma's default is 100.
        ef_construction: The number of candidates while the graph is built; Chroma's default is 100.
        max_neighbors: Edges per node; Chroma's default is 16.
        key_env: The environment variable with the server token.

    Raises:
        MissingExtra: If chromadb is not installed.
    """

    TYPE = "chroma"
    LIBRARIES = ("chromadb",)

    location: InitVar[str | None] = None
    id_field: str | None = None
    ef_search: int | None = None
    ef_construction: int | None = None
    max_neighbors: int | None = None
    key_env: InitVar[str | None] = None

    def __post_init__(self, location: str | None, key_env: str | None) -> None:
        super().__post_init__()
        self._chroma = library("chromadb", extra="chroma", of="Chroma")
        names = ("ef_search", "ef_construction", "max_neighbors")
        graph = {name: getattr(self, name) for name in names}
        self._graph = {name: value for name, value in graph.items() if value is not None}
        self._handle: Any = None
        if location is not None and "://" in location:
            key = self._record_server(location, key_env)
            with self._redacting_errors():
                self._client = self._connected(location, key)
        else:
            # Never in memory: all in-memory clients share their collections.
            self._client = self._chroma.PersistentClient(
                self._record_folder(location),
                settings=self._chroma.Settings(anonymized_telemetry=False),
            )

    def _connected(self, url: str, token: str | None) -> Any:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        return self._chroma.HttpClient(
            host=parts.hostname or "localhost",
            port=parts.port or (443 if secure else 8000),
            ssl=secure,
            headers={"Authorization": f"Bearer {token}"} if token else None,
            settings=self._chroma.Settings(anonymized_telemetry=False),
        )

    def _close(self) -> None:
        self._handle = None
        self._client.close()

    def _options(self) -> dict[str, Any]:
        return dict(self._graph)

    def _describe(self) -> Existing | None:
        try:
            self._handle = self._client.get_collection(self.collection, embedding_function=None)
        except self._chroma.errors.NotFoundError:
            return None
        names = {theirs: ours for ours, theirs in _SPACES.items()}
        space = (self._handle.configuration_json.get("hnsw") or {}).get("space")
        sample = self._handle.get(limit=1, include=["embeddings"])["embeddings"]
        return Existing(names.get(str(space)), len(sample[0]) if len(sample) else None)

    def _create(self, dimensions: int) -> None:  # noqa: ARG002 - Chroma infers it
        self._handle = self._client.create_collection(
            self.collection,
            embedding_function=None,
            configuration={"hnsw": {"space": _SPACES[self.similarity], **self._graph}},
        )

    def _drop(self) -> None:
        self._client.delete_collection(self.collection)

    def _add(self, ids: list[str], vectors: Vectors, values: list[Any]) -> None:
        held = [self._metadata(*pair) for pair in zip(ids, values, strict=True)]
        self._handle.add(ids=ids, embeddings=vectors, metadatas=held)

    def _metadata(self, name: str, value: Any) -> dict[str, Any] | None:
        held = {} if self.id_field is None else {self.id_field: name}
        if value is not None:
            held[self.filter_field or ""] = value
        return held or None  # Chroma rejects an empty mapping

    def _nearest(self, vectors: Vectors, limit: int, value: Any) -> list[list[Row]]:
        found = self._handle.query(
            query_embeddings=vectors,
            n_results=limit,
            where=None if value is None else {self.filter_field: value},
            include=["distances", "metadatas"],
        )
        field = self.id_field
        columns = zip(found["ids"], found["metadatas"], found["distances"], strict=True)
        return [
            [
                (name if field is None else id_in(held, field, "chroma"), self._score(distance))
                for name, held, distance in zip(*column, strict=True)
            ]
            for column in columns
        ]

"""Qdrant, in memory, in a folder, or on a server."""

from __future__ import annotations

import uuid
from dataclasses import InitVar, dataclass
from typing import Any

from rankgauge.core.libraries import library
from rankgauge.errors import InputError
from rankgauge.retrievers.vector_store import Existing, Row, Vectors, VectorStore, id_in

_DISTANCES = {"cosine": "Cosine", "dot": "Dot", "l2": "Euclid"}
# Point ids must be numbers or UUIDs: UUIDs are derived from document ids.
_OURS = uuid.UUID("5d9b2a6e-0c1f-5c7e-9d0a-7a3b1f0e4c55")


@dataclass(eq=False, repr=False, kw_only=True)
class Qdrant(VectorStore):
    """Vectors in Qdrant.

    Search is exact in memory and in a folder; a server searches a graph (HNSW) in large
    collections, unless `exact` is set. Ties: document id ascending; the store decides which of
    several documents tied at rank k are returned.

    Arguments common to all vector stores are described by ``VectorStore``.

    Args:
        location: ``":memory:"``, the path of a folder, or the URL of a server.
        id_field: The payload field of the document id; None for the point id.
        vector_field: The name of the vector, if an existing collection has named vectors.
        exact: Whether to use exact search on a server.
        key_env: The environment variable with the API key.

    Raises:
        MissingExtra: If qdrant-client is not installed.
    """

    TYPE = "qdrant"
    LIBRARIES = ("qdrant-client",)

    location: InitVar[str] = ":memory:"
    vector_field: str | None = None
    exact: bool = False
    key_env: InitVar[str | None] = None

    def __post_init__(self, location: str, key_env: str | None) -> None:
        super().__post_init__()
        if not self.id_field and not self.existing:
            raise InputError(
                "a new collection needs a payload field for document ids", where="qdrant",
                fix='omit id_field, or name the field: id_field="id"',
            )  # fmt: skip
        self._qdrant = library("qdrant_client", extra="qdrant", of="Qdrant")
        if location == ":memory:":
            self._client = self._qdrant.QdrantClient(location=location)
        elif "://" in location:
            key = self._record_server(location, key_env)
            # The compatibility check runs in a separate thread, which only issues warnings.
            self._client = self._qdrant.QdrantClient(
                url=location, api_key=key, check_compatibility=False
            )
        else:
            self._client = self._qdrant.QdrantClient(path=self._record_folder(location))

    def _close(self) -> None:
        self._client.close()

    def _options(self) -> dict[str, Any]:
        return {"exact": self.exact}

    def _describe(self) -> Existing | None:
        if not self._client.collection_exists(self.collection):
            return None
        params = self._client.get_collection(self.collection).config.params.vectors
        if isinstance(params, dict):
            params = params.get(self.vector_field)
        if params is None:
            if not self.existing:
                return Existing(None, None)
            raise InputError(
                f"collection {self.collection!r} has no vector {self.vector_field!r}",
                where="qdrant", fix='name the vector to search: vector_field="..."',
            )  # fmt: skip
        names = {theirs: ours for ours, theirs in _DISTANCES.items()}
        distance = params.distance.value
        return Existing(names.get(distance, distance), params.size)

    def _create(self, dimensions: int) -> None:
        models = self._qdrant.models
        params = models.VectorParams(
            size=dimensions, distance=models.Distance(_DISTANCES[self.similarity])
        )
        self._client.create_collection(
            self.collection,
            vectors_config={self.vector_field: params} if self.vector_field else params,
        )

    def _drop(self) -> None:
        self._client.delete_collection(self.collection)

    def _add(self, ids: list[str], vectors: Vectors, values: list[Any]) -> None:
        points = []
        for name, vector, value in zip(ids, vectors.tolist(), values, strict=True):
            payload = {self.id_field: name}
            if value is not None:
                payload[self.filter_field] = value
            points.append(
                self._qdrant.models.PointStruct(
                    id=str(uuid.uuid5(_OURS, name)),
                    vector={self.vector_field: vector} if self.vector_field else vector,
                    payload=payload,
                )
            )
        self._client.upsert(self.collection, points, wait=True)

    def _nearest(self, vectors: Vectors, limit: int, value: Any) -> list[list[Row]]:
        models = self._qdrant.models
        condition = None
        if value is not None:
            match = models.MatchValue(value=value)
            condition = models.Filter(
                must=[models.FieldCondition(key=self.filter_field, match=match)]
            )
        found = self._client.query_batch_points(
            self.collection,
            [
                models.QueryRequest(
                    query=vector,
                    using=self.vector_field,
                    filter=condition,
                    params=models.SearchParams(exact=True) if self.exact else None,
                    limit=limit,
                    with_payload=[self.id_field] if self.id_field else False,
                )
                for vector in vectors.tolist()
            ],
        )
        sign = -1.0 if self.similarity == "l2" else 1.0
        field = self.id_field
        return [
            [
                (str(p.id) if field is None else id_in(p.payload, field, "qdrant"), sign * p.score)
                for p in one.points
            ]
            for one in found
        ]

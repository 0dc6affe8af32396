"""Milvus, in a Milvus Lite file or on a server."""

from __future__ import annotations

import json
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Any

from rankgauge.core.arguments import choice
from rankgauge.core.libraries import library, versions
from rankgauge.errors import InputError
from rankgauge.retrievers.vector_store import Existing, Row, Vectors, VectorStore, id_in

_METRICS = {"cosine": "COSINE", "dot": "IP", "l2": "L2"}
_INDEXES = {"flat": "FLAT", "hnsw": "HNSW", "auto": "AUTOINDEX"}
# The maximum number of hits that Milvus returns.
_MOST = 16_384
_LONGEST_ID = 65_535


@dataclass(eq=False, repr=False, kw_only=True)
class Milvus(VectorStore):
    """Vectors in Milvus.

    Ties: document id ascending; the store decides which of several documents tied at rank k are
    returned. Arguments common to all vector stores are described by ``VectorStore``.

    Args:
        location: The path of a Milvus Lite file (ending with ``.db``), or the URL of a server; None
            for a file that is removed by ``close()``.
        collection: The name of the collection: letters, digits, and underscores.
        index_type: The index: ``"flat"`` (exact), ``"hnsw"`` (a graph), or ``"auto"`` (chosen by
            Milvus).
        id_field: The field of document ids.
        vector_field: The field of vectors.
        key_env: The environment variable with the server token.

    Raises:
        MissingExtra: If pymilvus, or Milvus Lite for a file, is not installed.
    """

    TYPE = "milvus"
    LIBRARIES = ("pymilvus",)

    location: InitVar[str | None] = None
    index_type: str = "flat"
    vector_field: str = "vector"
    key_env: InitVar[str | None] = None

    def __post_init__(self, location: str | None, key_env: str | None) -> None:
        super().__post_init__()
        self._milvus = library("pymilvus", extra="milvus", of="Milvus")
        self.index_type = choice("index type", self.index_type, _INDEXES)
        self._count = 0
        self._engine: dict[str, Any] = {}
        if location is not None and "://" in location:
            token = self._record_server(location, key_env) or ""
            with self._redacting_errors():
                self._client = self._milvus.MilvusClient(location, token=token)
        else:
            library("milvus_lite", extra="milvus", of="Milvus in a file")
            self._engine = {"engine": versions("milvus-lite")}
            named = self._record_folder(location)
            file = named if location is not None else str(Path(named, "rankgauge.db"))
            self._folder = Path(file)
            self._client = self._milvus.MilvusClient(file)

    def _close(self) -> None:
        self._client.close()

    def _options(self) -> dict[str, Any]:
        return {"index_type": self.index_type, **self._engine}

    def _describe(self) -> Existing | None:
        if not self._client.has_collection(self.collection):
            return None
        fields = self._client.describe_collection(self.collection)["fields"]
        field = next((one for one in fields if one["name"] == self.vector_field), None)
        if field is None:
            if not self.existing:
                return Existing(None, None)
            names = ", ".join(one["name"] for one in fields)
            raise InputError(
                f"collection {self.collection!r} has no field {self.vector_field!r}; it has "
                f"{names}",
                where="milvus", fix="name the field of vectors: vector_field=...",
            )  # fmt: skip
        index = self._client.describe_index(self.collection, self.vector_field) or {}
        metrics = {theirs: ours for ours, theirs in _METRICS.items()}
        metric = index.get("metric_type")
        self._client.load_collection(self.collection)
        return Existing(metrics.get(str(metric)), field["params"].get("dim"))

    def _create(self, dimensions: int) -> None:
        kind = self._milvus.DataType
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=True)
        schema.add_field("number", kind.INT64, is_primary=True)
        schema.add_field(self.id_field, kind.VARCHAR, max_length=_LONGEST_ID)
        schema.add_field(self.vector_field, kind.FLOAT_VECTOR, dim=dimensions)
        index = self._client.prepare_index_params()
        graph = {"M": 16, "efConstruction": 200} if self.index_type == "hnsw" else {}
        index.add_index(
            self.vector_field,
            index_type=_INDEXES[self.index_type],
            metric_type=_METRICS[self.similarity],
            params=graph,
        )
        self._client.create_collection(self.collection, schema=schema, index_params=index)
        self._count = 0

    def _drop(self) -> None:
        self._client.drop_collection(self.collection)

    def _add(self, ids: list[str], vectors: Vectors, values: list[Any]) -> None:
        rows = []
        for name, vector, value in zip(ids, vectors.tolist(), values, strict=True):
            row = {"number": self._count, self.id_field: name, self.vector_field: vector}
            if value is not None:
                row[self.filter_field or ""] = value
            rows.append(row)
            self._count += 1
        self._client.insert(self.collection, rows)

    def _nearest(self, vectors: Vectors, limit: int, value: Any) -> list[list[Row]]:
        condition = ""
        if value is not None:
            condition = f"{self.filter_field} == {json.dumps(value, ensure_ascii=False)}"
        found = self._client.search(
            self.collection,
            data=vectors.tolist(),
            anns_field=self.vector_field,
            limit=min(limit, _MOST),
            filter=condition,
            output_fields=[self.id_field],
            consistency_level="Strong",  # includes the latest inserts
        )
        return [
            [
                (id_in(hit["entity"], self.id_field or "", "milvus"), self._score(hit["distance"]))
                for hit in hits
            ]
            for hits in found
        ]

    def _score(self, distance: float) -> float:
        # Milvus's "distance" is a similarity, except for L2, where it is the squared distance.
        return super()._score(distance) if self.similarity == "l2" else distance

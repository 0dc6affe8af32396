"""LanceDB tables in a folder."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Any

from rankgauge.core.libraries import library
from rankgauge.errors import InputError
from rankgauge.retrievers.vector_store import (
    Existing,
    Row,
    Vectors,
    VectorStore,
    folder_size,
    text_of,
)


@dataclass(eq=False, repr=False, kw_only=True)
class LanceDB(VectorStore):
    """Vectors in LanceDB; search is exact without an index.

    If an existing table has an index, the index is searched. Ties: document id ascending; the store
    decides which of several documents tied at rank k are returned.

    Arguments common to all vector stores are described by ``VectorStore``.

    Args:
        location: The path of a folder; None for a temporary folder.
        id_field: The column of document ids.
        filter_field: Search only documents whose column of this name equals the same field of the
            query, as text; queries without the field search all.
        vector_field: The column of vectors.

    Raises:
        MissingExtra: If lancedb is not installed.
    """

    TYPE = "lancedb"
    LIBRARIES = ("lancedb",)

    location: InitVar[str | None] = None
    vector_field: str = "vector"

    def __post_init__(self, location: str | None) -> None:
        super().__post_init__()
        lancedb = library("lancedb", extra="lancedb", of="LanceDB")
        self._arrow = library("pyarrow", extra="lancedb", of="LanceDB")
        if location is not None and "://" in location:
            raise InputError(
                f"got {location!r:.60}, expected the path of a folder", where="lancedb",
                fix="search a remote table with your own function",
            )  # fmt: skip
        self._database = lancedb.connect(self._record_folder(location))
        self._table: Any = None

    @property
    def size(self) -> int | None:
        """Bytes of the table on disk."""
        folder = self._folder or Path()
        return folder_size(folder / f"{self.collection}.lance")

    def _close(self) -> None:
        self._table = None

    def _describe(self) -> Existing | None:
        try:
            self._table = self._database.open_table(self.collection)
        except ValueError as error:
            if "not found" not in str(error).lower():
                raise
            return None
        schema = self._table.schema
        wanted = [self.id_field, self.vector_field]
        wanted += [self.filter_field] if self.filter_field else []
        missing = [name for name in wanted if name not in schema.names]
        if missing and self.existing:
            raise InputError(
                f"table {self.collection!r} has no column {missing[0]!r}; it has "
                f"{', '.join(schema.names)}",
                where="lancedb", fix="name the columns: id_field=..., vector_field=...",
            )  # fmt: skip
        if missing:
            return Existing(None, None)
        kind = schema.field(self.vector_field).type
        if self.existing and not self._arrow.types.is_fixed_size_list(kind):
            raise InputError(
                f"column {self.vector_field!r} of table {self.collection!r} is {kind}, expected "
                "lists of fixed length",
                where="lancedb", fix="name the column of vectors: vector_field=...",
            )  # fmt: skip
        return Existing(None, getattr(kind, "list_size", None))

    def _create(self, dimensions: int) -> None:
        arrow = self._arrow
        columns = [
            (self.id_field, arrow.string()),
            (self.vector_field, arrow.list_(arrow.float32(), dimensions)),
        ]
        if self.filter_field:
            columns.append((self.filter_field, arrow.string()))
        self._table = self._database.create_table(self.collection, schema=arrow.schema(columns))

    def _drop(self) -> None:
        self._database.drop_table(self.collection)

    def _add(self, ids: list[str], vectors: Vectors, values: list[Any]) -> None:
        arrow = self._arrow
        columns = {
            self.id_field: ids,
            self.vector_field: arrow.FixedSizeListArray.from_arrays(
                arrow.array(vectors.ravel()), vectors.shape[1]
            ),
        }
        if self.filter_field:
            columns[self.filter_field] = [text_of(value) for value in values]
        self._table.add(arrow.table(columns, schema=self._table.schema))

    def _nearest(self, vectors: Vectors, limit: int, value: Any) -> list[list[Row]]:
        return [self._one(vector, limit, value) for vector in vectors]

    def _one(self, vector: Any, limit: int, value: Any) -> list[Row]:
        asked = self._table.search(
            vector, vector_column_name=self.vector_field, query_type="vector"
        )
        asked = asked.distance_type(self.similarity).select([self.id_field, "_distance"])
        if value is not None:
            literal = str(text_of(value)).replace("'", "''")
            column = f"`{self.filter_field}`"
            asked = asked.where(f"CAST({column} AS string) = '{literal}'", prefilter=True)
        found = asked.limit(limit).to_arrow()
        ids = found.column(self.id_field).to_pylist()
        distances = found.column("_distance").to_pylist()
        return [
            (str(name), self._score(distance))
            for name, distance in zip(ids, distances, strict=True)
            # The cosine of a zero vector in an existing table is undefined.
            if not math.isnan(distance)
        ]

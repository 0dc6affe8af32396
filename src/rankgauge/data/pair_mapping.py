"""Base of judgments and runs: columns of (query, document) pairs with numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from rankgauge.core.ids import Id, id_bytes
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import InputError
from rankgauge.formats import frames, mappings, readers
from rankgauge.formats.columns import Layout
from rankgauge.formats.rows import OnError, finite


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(Mapping[str, Mapping[str, float]]):
    """Mapping of query id to document id to number, stored in columns."""

    table: PairTable

    @cached_property
    def query_index(self) -> dict[bytes, int]:
        """Number of each query by id."""
        return {query: number for number, query in enumerate(self.table.queries.tolist())}

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """Query ids as text, in order of first appearance."""
        return tuple(self.table.queries.shown())

    def number_of(self, query: bytes) -> int | None:
        """Return the number of a query, or None."""
        return self.query_index.get(query)

    def __len__(self) -> int:
        return len(self.table.queries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.query_ids)

    def __getitem__(self, query: Id) -> Mapping[str, float]:
        number = self._number(query)
        if number is None:
            raise KeyError(query)
        rows = np.arange(self.table.offsets[number], self.table.offsets[number + 1])
        docs = self.table.docs.take(rows).shown()
        return dict(zip(docs, self.table.values[rows].tolist(), strict=True))

    def __contains__(self, query: object) -> bool:
        return self._number(query) is not None

    def _number(self, query: object) -> int | None:
        try:
            number = self.query_index.get(id_bytes(query))
        except InputError:
            return None
        # Ids that are displayed escaped can also be looked up by that text.
        return self._rows_by_query.get(query) if number is None else number

    @cached_property
    def _rows_by_query(self) -> dict[object, int]:
        return {query: number for number, query in enumerate(self.query_ids)}

    def __getstate__(self) -> dict[str, Any]:
        # Cached values can be recomputed and are not pickled.
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _rows(self) -> dict[bytes, list[tuple[bytes, float]]]:
        docs, values = self.table.docs.tolist(), self.table.values.tolist()
        ends = self.table.offsets.tolist()
        return {
            query: list(zip(docs[ends[q] : ends[q + 1]], values[ends[q] : ends[q + 1]], strict=True))
            for q, query in enumerate(self.table.queries.tolist())
        }


def table_of_input(source: Any, layout: Layout, *, ranks: bool = False, on_error: OnError | None = None) -> PairTable:
    """Convert any supported source to rows, including duplicate pairs."""
    if isinstance(source, PairTable):
        return finite(source, layout, on_error)
    if isinstance(source, str | os.PathLike):
        return readers.read_table(source, layout, ranks=ranks, on_error=on_error)
    if isinstance(source, np.ndarray) and source.dtype.names:
        source = {name: source[name] for name in source.dtype.names}
    if isinstance(source, Mapping):
        return mappings.from_mapping(source, layout, on_error=on_error)
    if frames.is_frame(source):
        return frames.from_frame(source, layout, on_error=on_error)
    if isinstance(source, Iterable) and not isinstance(source, bytes):
        return mappings.from_rows(source, layout)
    raise InputError(
        f"got {type(source).__name__}, expected {layout.words}",
        where=layout.name,
        fix=f"pass a mapping {layout.mapping}, a data frame, a path, or rows",
    )

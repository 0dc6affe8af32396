"""Dense retrieval: documents by the similarity of their vectors with that of the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rankgauge.core.arguments import choice, integer
from rankgauge.core.libraries import library, versions
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers.base import (
    CompositeRetriever,
    batches,
    declared,
    document_texts,
    field_names,
    not_indexed,
    top_rows,
)
from rankgauge.retrievers.encoders import encoder_of

_SIMILARITIES = ("cosine", "dot")
_SEARCHES = ("exact", "usearch")
# Products of two of them, added up, are still 32-bit numbers.
_MOST = 1e15
# Scores in memory at a time in the exact search.
_CELLS = 1 << 24
_HALF_ULP = 2.0**-24
_DEPTH = 10

_Vectors = npt.NDArray[np.float32]


class Dense(CompositeRetriever):
    """Documents by the similarity of their vectors with the vector of the query.

    ``search="exact"`` compares the query with all documents. Scores are products of the 32-bit
    vectors in 64 bits, added up in a fixed order, so a ranking does not depend on the batch of
    queries. (The vectors of a neural model may differ in the last digits from batch to batch.)
    ``search="usearch"`` searches a graph (HNSW, Malkov and Yashunin 2018), finds most of the
    nearest documents, and scores them in the same way; `recall` estimates their share. Equal scores
    keep the order of the collection.

    Args:
        encoder: An encoder, or a callable from a list of texts to vectors.
        similarity: ``cosine``, or ``dot`` for the inner product. A vector of zeros has cosine 0
            with all.
        search: ``exact`` or ``usearch``.
        fields: The fields to encode; default: title and text.
        batch: Documents per call of the encoder.
        connectivity: Neighbors of each document in the graph.
        expansion_add: Candidates considered when a document is added.
        expansion_search: Candidates considered in a search, at least `k`.
        recall_sample: Documents, evenly spaced, whose neighbors are used to estimate the recall of
            the graph; 0 for none.

    Raises:
        MissingExtra: If usearch is wanted and not installed.
        UnknownName: For an unknown similarity or search.
        InputError: For what is no encoder, or a number that is not possible.

    Example:
        >>> from rankgauge.retrievers import HashingEncoder
        >>> dense = Dense(HashingEncoder())
        >>> dense.index([Document("d1", text="late fees"), Document("d2", text="opening hours")])
        >>> [doc for doc, score in dense.search([Query("q1", "fee")], 1)[0]]
        ['d1']
    """

    def __init__(
        self,
        encoder: Any,
        *,
        similarity: str = "cosine",
        search: str = "exact",
        fields: Sequence[str] | None = None,
        batch: int = 256,
        connectivity: int = 16,
        expansion_add: int = 128,
        expansion_search: int = 64,
        recall_sample: int = 100,
    ) -> None:
        self._encoder: Any = encoder_of(encoder)
        self._similarity = choice("similarity", similarity, _SIMILARITIES)
        self._search = choice("search", search, _SEARCHES)
        self._fields = field_names(fields)
        self._batch = integer("batch", batch)
        self._graph_options = {
            "connectivity": integer("connectivity", connectivity, least=2),
            "expansion_add": integer("expansion_add", expansion_add),
            "expansion_search": integer("expansion_search", expansion_search),
        }
        self._sample = integer("recall_sample", recall_sample, least=0)
        if self._search == "usearch":
            self._library = library("usearch.index", extra="ann", of="approximate search")
        self._ids: list[str] | None = None
        self._vectors: _Vectors = np.zeros((0, 0), dtype=np.float32)
        self._graph: Any = None
        self._longest = 0.0
        self._recall: float | None = None

    @property
    def settings(self) -> Mapping[str, Any] | None:
        """What decides about rankings; None if the encoder has no settings."""
        parts = declared(self._encoder)
        if parts is None:
            return None
        approximate = self._search == "usearch"
        return {
            "type": "dense",
            "encoder": parts[0],
            "similarity": self._similarity,
            "search": self._search,
            **(self._graph_options if approximate else {}),
            "fields": None if self._fields is None else list(self._fields),
            **({"versions": versions("usearch")} if approximate else {}),
        }

    @property
    def members(self) -> tuple[Any, ...]:
        """The encoder."""
        return (self._encoder,)

    @property
    def size(self) -> int:
        """Bytes of the vectors, and of the graph."""
        graph = 0 if self._graph is None else int(self._graph.memory_usage)
        return self._vectors.nbytes + graph

    @property
    def recall(self) -> float | None:
        """The share of the true 10 nearest neighbors that the search finds.

        Measured by :meth:`index` with a sample of the documents in the place of queries, each
        without itself; 1 for exact search, None where nothing was measured. :meth:`recall_for`
        tells it for queries.
        """
        return 1.0 if self._search == "exact" else self._recall

    def index(self, documents: Iterable[Document]) -> None:
        """Encode the documents; an earlier index is replaced.

        Raises:
            InputError: If the encoder returns anything but a row of finite numbers for each text.
        """
        ids: list[str] = []
        parts: list[_Vectors] = []
        for chunk in batches(document_texts(documents, self._fields), self._batch):
            names = [name for name, _ in chunk]
            encoded = self._encoder.encode_documents([text for _, text in chunk])
            parts.append(self._checked(encoded, names, "document", parts[0] if parts else None))
            ids += names
        vectors = np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)
        self._vectors, self._ids = vectors, ids
        self._longest = max((float(_lengths(part).max()) for part in parts), default=0.0)
        self._graph = self._recall = None
        if self._search == "usearch" and ids:
            self._graph = self._linked(vectors)
            self._recall = self._neighbours_found(vectors)

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        """At most `k` documents for each query, the most similar first.

        Raises:
            InputError: Before there is an index, or if the encoder does not return a row of finite
                numbers for each query.
        """
        if self._ids is None:
            raise not_indexed(self)
        ids = self._ids
        if not ids or not queries:
            return [[] for _ in queries]
        found = self._found(self._queries(queries), k, exact=self._search == "exact")
        return [
            [(ids[n], score) for n, score in zip(rows.tolist(), scores.tolist(), strict=True)]
            for rows, scores in found
        ]

    def recall_for(self, queries: Sequence[Query], k: int = _DEPTH) -> float:
        """Return the share of the `k` documents of exact search that the search finds, on average.

        Raises:
            InputError: Before there is an index, or without queries.
        """
        if self._ids is None:
            raise not_indexed(self)
        if not queries or not self._ids:
            raise InputError(
                f"recall of {len(queries)} queries among {len(self._ids)} documents",
                where="recall", fix="give at least one query and one document",
            )  # fmt: skip
        vectors = self._queries(queries)
        true = self._found(vectors, k, exact=True)
        found = self._found(vectors, k, exact=self._search == "exact")
        return _overlap([rows for rows, _ in true], [rows for rows, _ in found])

    # ---- vectors

    def _queries(self, queries: Sequence[Query]) -> _Vectors:
        encoded = self._encoder.encode_queries([query.text for query in queries])
        return self._checked(encoded, [query.id for query in queries], "query", self._vectors)

    def _checked(
        self, encoded: Any, names: list[str], what: str, like: _Vectors | None
    ) -> _Vectors:
        """What an encoder returned, as rows that can be multiplied."""
        try:
            rows = np.asarray(encoded, dtype=np.float64)
        except (TypeError, ValueError):
            rows = np.zeros(0)
        own = rows.shape[1] if rows.ndim == 2 else 0
        wanted = len(names), own if like is None else like.shape[1]
        if rows.shape != wanted or not own:
            got = rows.shape if rows.ndim and rows.size else type(encoded).__name__
            width = f"one of {wanted[1]} numbers" if like is not None else "one"
            raise InputError(
                f"the encoder returned {got} for {len(names)} texts", where="encoder",
                fix=f"return a row for each text, each {width}",
            )  # fmt: skip
        bad = np.flatnonzero(~(np.abs(rows) <= _MOST).all(axis=1))
        if len(bad):
            raise InputError(
                f"the vector of a {what} has NaN, or a number beyond {_MOST:g}",
                where=f"{what} {names[int(bad[0])]!r}", fix="check the encoder for this text",
            )  # fmt: skip
        if self._similarity == "cosine":
            lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
            rows = rows / np.where(lengths > 0, lengths, 1.0)[:, None]
        return rows.astype(np.float32)

    # ---- search

    def _found(
        self, queries: _Vectors, k: int, *, exact: bool
    ) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
        """Rows of documents and their scores, best first, for each query."""
        if exact or self._graph is None:
            candidates = self._near(queries, k)
        else:
            candidates = self._linked_to(queries, k)
        found = []
        for query, rows in zip(queries, candidates, strict=True):
            scores = _products(self._vectors[rows], query)
            order = top_rows(scores, k)
            found.append((rows[order], scores[order]))
        return found

    def _near(self, queries: _Vectors, k: int) -> list[npt.NDArray[np.int64]]:
        """All documents that may be among the `k` best, ascending.

        Products of matrices are fast and differ in the last digits with the shape of the matrix.
        So they only choose, with room for all that rounding can do: d products of 32 bits, added
        up in any order, are off by less than 1.1 (d + 2) half units of the lengths multiplied.
        """
        count, width = self._vectors.shape
        step = max(1, _CELLS // count)
        chosen: list[npt.NDArray[np.int64]] = []
        for start in range(0, len(queries), step):
            some = queries[start : start + step]
            # Overflow is not possible, and underflow is in the room that is left.
            for scores, length in zip(some @ self._vectors.T, _lengths(some), strict=True):
                if k >= count:
                    chosen.append(np.arange(count))
                    continue
                lowest = float(np.partition(scores, count - k)[count - k])
                room = 2.2 * (width + 2) * _HALF_ULP * float(length) * self._longest + 1e-37
                # In the type of the scores, rounded down: the comparison is made in it.
                bound = np.nextafter(np.float32(lowest - room), np.float32(-np.inf))
                chosen.append(np.flatnonzero(scores >= bound))
        return chosen

    def _linked(self, vectors: _Vectors) -> Any:
        graph = self._library.Index(
            ndim=vectors.shape[1], metric="ip", dtype="f32", **self._graph_options
        )
        # One thread: the graph depends on the order in which documents come in.
        graph.add(np.arange(len(vectors)), vectors, threads=1)
        return graph

    def _linked_to(self, queries: _Vectors, k: int) -> list[npt.NDArray[np.int64]]:
        count = min(k, len(self._vectors))
        # One by one: alone or among others, a query takes the same way.
        found = [self._graph.search(query, count, threads=1).keys for query in queries]
        return [np.sort(np.asarray(keys).astype(np.int64)) for keys in found]

    def _neighbours_found(self, vectors: _Vectors) -> float | None:
        count = min(self._sample, len(vectors))
        if not count or len(vectors) < 2:
            return None
        sample = np.unique(np.linspace(0, len(vectors) - 1, count).astype(np.int64))
        true = self._found(vectors[sample], _DEPTH + 1, exact=True)
        found = self._found(vectors[sample], _DEPTH + 1, exact=False)
        return _overlap(
            [rows[rows != own][:_DEPTH] for own, (rows, _) in zip(sample, true, strict=True)],
            [rows[rows != own][:_DEPTH] for own, (rows, _) in zip(sample, found, strict=True)],
        )


def _lengths(vectors: _Vectors) -> npt.NDArray[np.float64]:
    return np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))


def _products(vectors: _Vectors, query: _Vectors) -> npt.NDArray[np.float64]:
    """Inner products in 64 bits, row by row: independent of the other rows."""
    sums: npt.NDArray[np.float64] = (vectors * query.astype(np.float64)).sum(axis=1)
    return sums


def _overlap(true: list[npt.NDArray[np.int64]], found: list[npt.NDArray[np.int64]]) -> float:
    shares = [
        len(np.intersect1d(one, other)) / len(one) for one, other in zip(true, found, strict=True)
    ]
    return float(np.mean(shares))

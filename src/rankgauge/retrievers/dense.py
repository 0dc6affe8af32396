"""Dense retrieval: documents ranked by the similarity of their vectors to the query vector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rankgauge.core.arguments import choice, integer
from rankgauge.core.libraries import library, versions
from rankgauge.core.text import many
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers.base import (
    CompositeRetriever,
    batches,
    document_texts,
    field_names,
    indexed,
    part_settings,
    top_rows,
)
from rankgauge.retrievers.encoders import encoder_of

# Sums of products of two such numbers still fit in 32-bit floats.
_MOST = 1e15
# Maximum number of scores in memory at a time in exact search.
_CELLS = 1 << 24
_HALF_ULP = 2.0**-24
_DEPTH = 10

_Vectors = npt.NDArray[np.float32]


class Dense(CompositeRetriever):
    """Documents ranked by the similarity of their vectors to the query vector.

    ``search="exact"`` compares the query with all documents. Scores are inner products of the
    32-bit vectors, computed in 64 bits and summed in a fixed order, so a ranking does not depend on
    the batch of queries. (The vectors of a neural model may differ in the last digits between
    batches.) ``search="usearch"`` searches a graph (HNSW, Malkov and Yashunin 2018), which finds
    most of the nearest documents, and scores them in the same way; `recall` estimates the share
    found. Ties keep the order of the collection.

    Args:
        encoder: An encoder, or a callable from a list of texts to vectors.
        similarity: ``cosine``, or ``dot`` for the inner product. The cosine of a zero vector is 0.
        search: ``exact`` or ``usearch``.
        fields: The fields to encode; default: title and text.
        batch: Documents per call to the encoder.
        connectivity: Neighbors of each document in the graph.
        expansion_add: Candidates considered when a document is added.
        expansion_search: Candidates considered in a search, at least `k`.
        recall_sample: The number of evenly spaced documents used to estimate the recall of the
            graph; 0 to skip the estimate.

    Raises:
        MissingExtra: If ``search="usearch"`` and usearch is not installed.
        UnknownName: For an unknown similarity or search.
        InputError: If `encoder` is not an encoder, or a number is invalid.

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
        self._similarity = choice("similarity", similarity, ("cosine", "dot"))
        self._search = choice("search", search, ("exact", "usearch"))
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
        """Settings that determine the rankings; None if the encoder has no settings."""
        parts = part_settings(self._encoder)
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
        """Bytes of the vectors and the graph."""
        return self._vectors.nbytes + (0 if self._graph is None else int(self._graph.memory_usage))

    @property
    def recall(self) -> float | None:
        """Share of the true 10 nearest neighbors that the search finds.

        :meth:`index` estimates it with a sample of the documents as queries, excluding each
        document from its own neighbors. It is 1 for exact search and None if not estimated.
        :meth:`recall_for` measures it for queries.
        """
        return 1.0 if self._search == "exact" else self._recall

    def index(self, documents: Iterable[Document]) -> None:
        """Encode the documents; an earlier index is replaced.

        Raises:
            InputError: If the encoder does not return a row of finite numbers for each text.
        """
        ids: list[str] = []
        parts: list[_Vectors] = []
        for chunk in batches(document_texts(documents, self._fields), self._batch):
            names = [name for name, _ in chunk]
            encoded = self._encoder.encode_documents([text for _, text in chunk])
            parts.append(self._to_matrix(encoded, names, "document", parts[0] if parts else None))
            ids += names
        vectors = np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)
        self._vectors, self._ids = vectors, ids
        self._longest = max((float(_lengths(part).max()) for part in parts), default=0.0)
        self._graph = self._recall = None
        if self._search == "usearch" and ids:
            graph = self._library.Index(ndim=vectors.shape[1], metric="ip", dtype="f32", **self._graph_options)
            # One thread: the graph depends on the order in which documents are added.
            graph.add(np.arange(len(vectors)), vectors, threads=1)
            self._graph = graph
            self._recall = self._estimate_recall(vectors)

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        """Return at most `k` documents for each query, the most similar first.

        Raises:
            InputError: Before indexing, or if the encoder does not return a row of finite numbers
                for each query.
        """
        ids = indexed(self, self._ids)
        if not ids or not queries:
            return [[] for _ in queries]
        nearest = self._nearest(self._queries(queries), k, exact=self._search == "exact")
        return [
            [(ids[n], score) for n, score in zip(rows.tolist(), scores.tolist(), strict=True)]
            for rows, scores in nearest
        ]

    def recall_for(self, queries: Sequence[Query], k: int = _DEPTH) -> float:
        """Return the mean share of the top `k` documents of exact search that the search finds.

        Raises:
            InputError: Before indexing, or without queries or documents.
        """
        ids = indexed(self, self._ids)
        if not queries or not ids:
            raise InputError(
                f"got {many(len(queries), 'query')} and {many(len(ids), 'document')}",
                where="recall",
                fix="pass at least one query and one document",
            )
        vectors = self._queries(queries)
        true = self._nearest(vectors, k, exact=True)
        retrieved = self._nearest(vectors, k, exact=self._search == "exact")
        return _overlap([rows for rows, _ in true], [rows for rows, _ in retrieved])

    # ---- vectors

    def _queries(self, queries: Sequence[Query]) -> _Vectors:
        encoded = self._encoder.encode_queries([query.text for query in queries])
        return self._to_matrix(encoded, [query.id for query in queries], "query", self._vectors)

    def _to_matrix(self, encoded: Any, names: list[str], what: str, like: _Vectors | None) -> _Vectors:
        """Return the output of an encoder as a matrix, normalized for cosine similarity."""
        try:
            rows = np.asarray(encoded, dtype=np.float64)
        except (TypeError, ValueError):
            rows = np.zeros(0)
        width = rows.shape[1] if rows.ndim == 2 else 0
        expected = len(names), width if like is None else like.shape[1]
        if rows.shape != expected or not width:
            got = rows.shape if rows.ndim and rows.size else type(encoded).__name__
            count = "" if like is None else f"{expected[1]} "
            raise InputError(
                f"the encoder returned {got} for {many(len(names), 'text')}",
                where="encoder",
                fix=f"return a row of {count}numbers for each text",
            )
        bad = np.flatnonzero(~(np.abs(rows) <= _MOST).all(axis=1))
        if len(bad):
            raise InputError(
                f"the vector of a {what} contains NaN or a number beyond {_MOST:g}",
                where=f"{what} {names[int(bad[0])]!r}",
                fix="check the encoder for this text",
            )
        if self._similarity == "cosine":
            lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
            rows = rows / np.where(lengths > 0, lengths, 1.0)[:, None]
        return rows.astype(np.float32)

    # ---- search

    def _nearest(
        self, queries: _Vectors, k: int, *, exact: bool
    ) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
        """Return rows of documents and their scores, best first, for each query."""
        if exact or self._graph is None:
            candidates = self._exact_candidates(queries, k)
        else:
            # One query at a time, so that results do not depend on the batch.
            nearest = [self._graph.search(query, min(k, len(self._vectors)), threads=1).keys for query in queries]
            candidates = [np.sort(np.asarray(keys).astype(np.int64)) for keys in nearest]
        rankings = []
        for query, rows in zip(queries, candidates, strict=True):
            # Inner products in 64 bits, each row independent of the others.
            scores: npt.NDArray[np.float64] = (self._vectors[rows] * query.astype(np.float64)).sum(axis=1)
            order = top_rows(scores, k)
            rankings.append((rows[order], scores[order]))
        return rankings

    def _exact_candidates(self, queries: _Vectors, k: int) -> list[npt.NDArray[np.int64]]:
        """Return the rows of all documents that may be among the top `k`, ascending.

        Matrix products are fast, but their last digits depend on the shape of the matrix, so they
        only select candidates, with a margin for rounding: the sum of d 32-bit products in any
        order is off by less than 1.1 (d + 2) 2^-24 times the product of the two vector lengths.
        """
        count, width = self._vectors.shape
        step = max(1, _CELLS // count)
        chosen: list[npt.NDArray[np.int64]] = []
        for start in range(0, len(queries), step):
            some = queries[start : start + step]
            # Overflow is impossible, and the margin covers underflow.
            for scores, length in zip(some @ self._vectors.T, _lengths(some), strict=True):
                if k >= count:
                    chosen.append(np.arange(count))
                    continue
                lowest = float(np.partition(scores, count - k)[count - k])
                room = 2.2 * (width + 2) * _HALF_ULP * float(length) * self._longest + 1e-37
                # Rounded down in the type of the scores, in which they are compared.
                bound = np.nextafter(np.float32(lowest - room), np.float32(-np.inf))
                chosen.append(np.flatnonzero(scores >= bound))
        return chosen

    def _estimate_recall(self, vectors: _Vectors) -> float | None:
        count = min(self._sample, len(vectors))
        if not count or len(vectors) < 2:
            return None
        sample = np.unique(np.linspace(0, len(vectors) - 1, count).astype(np.int64))
        true = self._nearest(vectors[sample], _DEPTH + 1, exact=True)
        retrieved = self._nearest(vectors[sample], _DEPTH + 1, exact=False)
        return _overlap(
            [rows[rows != own][:_DEPTH] for own, (rows, _) in zip(sample, true, strict=True)],
            [rows[rows != own][:_DEPTH] for own, (rows, _) in zip(sample, retrieved, strict=True)],
        )


def _lengths(vectors: _Vectors) -> npt.NDArray[np.float64]:
    return np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))


def _overlap(true: list[npt.NDArray[np.int64]], retrieved: list[npt.NDArray[np.int64]]) -> float:
    shares = [
        len(np.intersect1d(nearest, other)) / len(nearest) for nearest, other in zip(true, retrieved, strict=True)
    ]
    return float(np.mean(shares))

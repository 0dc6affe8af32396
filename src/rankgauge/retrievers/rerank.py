"""Reranking of the top documents of a retriever."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from rankgauge.core.arguments import integer
from rankgauge.core.text import many
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers.base import CompositeRetriever, document_texts, field_names, not_indexed
from rankgauge.retrievers.hits import Hits
from rankgauge.retrievers.protocol import index_documents, search
from rankgauge.retrievers.rerankers import reranker_of


@dataclass(eq=False, repr=False)
class Rerank(CompositeRetriever):
    """The top documents of a retriever, reordered by a reranker.

    Documents without a score from the reranker, or below `depth`, follow in their original order,
    with artificial scores. Ties keep the original order. The texts of all documents are kept in
    memory.

    Args:
        retriever: A retriever of any kind.
        reranker: A reranker, or a callable ``(query, texts) -> scores``, higher is better.
        depth: The number of documents to rerank.
        fields: The fields that the reranker reads; default: title and text.

    Raises:
        InputError: If `reranker` is not a reranker, or `depth` is invalid.

    Example:
        >>> def brief(query, texts):
        ...     return [-len(text) for text in texts]
        >>> shortest = Rerank(lambda text: ["d1", "d2"], brief)
        >>> shortest.index([Document("d1", text="opening hours"), Document("d2", text="hours")])
        >>> shortest.search([Query("q1", "hours")], 10)
        [[('d2', -5.0), ('d1', -13.0)]]
    """

    TYPE = "rerank"
    PARTS = ("retriever", "reranker")

    retriever: Any
    reranker: Any
    _: KW_ONLY
    depth: int = 50
    fields: Sequence[str] | None = None

    def __post_init__(self) -> None:
        self.reranker = reranker_of(self.reranker)
        self.depth = integer("depth", self.depth)
        names = field_names(self.fields)
        self.fields = None if names is None else list(names)
        self._texts: dict[str, str] | None = None

    @property
    def size(self) -> int:
        """Bytes of the texts and of the indexes that report their size."""
        texts = sum(len(text.encode("utf-8", "replace")) for text in (self._texts or {}).values())
        return texts + (super().size or 0)

    def index(self, documents: Iterable[Document]) -> None:
        """Index the documents, and store their texts."""
        index_documents(self.retriever, documents)
        self._texts = dict(document_texts(documents, self.fields))

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        """Return at most `k` documents for each query, best first.

        Raises:
            InputError: Before indexing, or if the reranker does not return a finite number or None
                for each text.
        """
        if self._texts is None:
            raise not_indexed(self)
        found = search(self.retriever, queries, max(self.depth, k))
        return [self._reranked(query.text, hits, self._texts)[:k] for query, hits in zip(queries, found, strict=True)]

    def _reranked(self, query: str, hits: Hits, texts: dict[str, str]) -> list[tuple[str, float]]:
        top = [name for name in hits.ids[: self.depth] if name in texts]
        scores = self._scores(query, [texts[name] for name in top]) if top else []
        scored = [(n, s) for n, s in zip(top, scores, strict=True) if s is not None]
        ranking = sorted(scored, key=lambda hit: -hit[1])
        floor = ranking[-1][1] if ranking else 0.0
        # A step large enough to change a number of this size.
        step = max(1.0, 2 * math.ulp(floor))
        ranked = {name for name, _ in ranking}
        rest = [name for name in hits.ids if name not in ranked]
        return ranking + [(name, floor - step * n) for n, name in enumerate(rest, 1)]

    def _scores(self, query: str, texts: list[str]) -> list[float | None]:
        given = self.reranker.rerank(query, texts)
        try:
            scores = [None if score is None else float(score) for score in given]
        except (TypeError, ValueError):
            scores = []
        if len(scores) != len(texts) or not all(s is None or math.isfinite(s) for s in scores):
            raise InputError(
                f"the reranker returned {given!r:.80} for {many(len(texts), 'text')}",
                where="reranker",
                fix="return a finite number for each text, or None for no score",
            )
        return scores

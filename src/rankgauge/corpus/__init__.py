"""Collections of documents and queries: loading, chunking, spans, and description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.corpus.chunking import (
        Chunk as Chunk,
        Chunker as Chunker,
        chunk_documents as chunk_documents,
    )
    from rankgauge.corpus.collection import (
        Collection as Collection,
        Document as Document,
        Query as Query,
        read_documents as read_documents,
        read_queries as read_queries,
    )
    from rankgauge.corpus.description import (
        CollectionInfo as CollectionInfo,
        Spread as Spread,
        describe_collection as describe_collection,
    )
    from rankgauge.corpus.spans import (
        QuerySpans as QuerySpans,
        Span as Span,
        SpanScores as SpanScores,
        read_spans as read_spans,
        span_scores as span_scores,
    )

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "chunking": "Chunk Chunker chunk_documents",
        "collection": "Collection Document Query read_documents read_queries",
        "description": "CollectionInfo Spread describe_collection",
        "spans": "QuerySpans Span SpanScores read_spans span_scores",
    },
)

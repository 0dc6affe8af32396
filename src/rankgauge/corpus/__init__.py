"""Collections of documents and queries: loading, chunking, spans, description, and conversion."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.corpus.chunking import Chunk as Chunk, Chunker as Chunker, chunk_documents as chunk_documents
    from rankgauge.corpus.collection import (
        Collection as Collection,
        Document as Document,
        Query as Query,
        read_documents as read_documents,
        read_queries as read_queries,
    )
    from rankgauge.corpus.conversion import Conversion as Conversion, convert as convert
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

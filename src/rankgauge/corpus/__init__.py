"""Collections of documents and queries: loading, chunking, spans, and description."""

from rankgauge.corpus.chunking import Chunk, Chunker, chunk_documents
from rankgauge.corpus.collection import Collection, Document, Query, read_documents, read_queries
from rankgauge.corpus.description import CollectionInfo, Spread, describe_collection
from rankgauge.corpus.spans import QuerySpans, Span, SpanScores, read_spans, span_scores

__all__ = [
    "Chunk",
    "Chunker",
    "Collection",
    "CollectionInfo",
    "Document",
    "Query",
    "QuerySpans",
    "Span",
    "SpanScores",
    "Spread",
    "chunk_documents",
    "describe_collection",
    "read_documents",
    "read_queries",
    "read_spans",
    "span_scores",
]

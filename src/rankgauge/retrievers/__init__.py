"""Retrievers to measure others against, and adapters of those you have.

Each stands in a file of its own and needs the library of one extra at most, loaded when the
retriever is made. All have the two methods of :class:`rankgauge.Retriever`, and ``settings`` that
tell them apart.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankgauge.core.http_client import Endpoint as Endpoint
    from rankgauge.core.http_client import EndpointError as EndpointError
    from rankgauge.retrievers.baselines import Oracle as Oracle
    from rankgauge.retrievers.baselines import Random as Random
    from rankgauge.retrievers.bm25 import BM25 as BM25
    from rankgauge.retrievers.chroma import Chroma as Chroma
    from rankgauge.retrievers.chunked import Chunked as Chunked
    from rankgauge.retrievers.chunked import FixedChunker as FixedChunker
    from rankgauge.retrievers.chunked import RecursiveChunker as RecursiveChunker
    from rankgauge.retrievers.chunked import SentenceChunker as SentenceChunker
    from rankgauge.retrievers.chunked import TokenChunker as TokenChunker
    from rankgauge.retrievers.dense import Dense as Dense
    from rankgauge.retrievers.elasticsearch import Elasticsearch as Elasticsearch
    from rankgauge.retrievers.elasticsearch import OpenSearch as OpenSearch
    from rankgauge.retrievers.encoders import Encoder as Encoder
    from rankgauge.retrievers.encoders import HashingEncoder as HashingEncoder
    from rankgauge.retrievers.encoders import Model2VecEncoder as Model2VecEncoder
    from rankgauge.retrievers.encoders import (
        SentenceTransformersEncoder as SentenceTransformersEncoder,
    )
    from rankgauge.retrievers.endpoints import EmbeddingEndpoint as EmbeddingEndpoint
    from rankgauge.retrievers.endpoints import RerankEndpoint as RerankEndpoint
    from rankgauge.retrievers.filtered import Filtered as Filtered
    from rankgauge.retrievers.haystack import Haystack as Haystack
    from rankgauge.retrievers.http import HTTPRetriever as HTTPRetriever
    from rankgauge.retrievers.hybrid import Hybrid as Hybrid
    from rankgauge.retrievers.lancedb import LanceDB as LanceDB
    from rankgauge.retrievers.langchain import LangChain as LangChain
    from rankgauge.retrievers.llama_index import LlamaIndex as LlamaIndex
    from rankgauge.retrievers.milvus import Milvus as Milvus
    from rankgauge.retrievers.pgvector import PGVector as PGVector
    from rankgauge.retrievers.pyterrier import PyTerrier as PyTerrier
    from rankgauge.retrievers.qdrant import Qdrant as Qdrant
    from rankgauge.retrievers.rerank import Rerank as Rerank
    from rankgauge.retrievers.rerankers import CrossEncoderReranker as CrossEncoderReranker
    from rankgauge.retrievers.saved_run import SavedRun as SavedRun
    from rankgauge.retrievers.tantivy import Tantivy as Tantivy

_HOMES: dict[str, tuple[str, ...]] = {
    "bm25": ("BM25",),
    "baselines": ("Oracle", "Random"),
    "chroma": ("Chroma",),
    "chunked": ("Chunked", "FixedChunker", "RecursiveChunker", "SentenceChunker", "TokenChunker"),
    "dense": ("Dense",),
    "elasticsearch": ("Elasticsearch", "OpenSearch"),
    "endpoints": ("EmbeddingEndpoint", "RerankEndpoint"),
    "encoders": ("Encoder", "HashingEncoder", "Model2VecEncoder", "SentenceTransformersEncoder"),
    "filtered": ("Filtered",),
    "haystack": ("Haystack",),
    "http": ("HTTPRetriever",),
    "hybrid": ("Hybrid",),
    "lancedb": ("LanceDB",),
    "langchain": ("LangChain",),
    "llama_index": ("LlamaIndex",),
    "milvus": ("Milvus",),
    "pgvector": ("PGVector",),
    "pyterrier": ("PyTerrier",),
    "qdrant": ("Qdrant",),
    "rerank": ("Rerank",),
    "rerankers": ("CrossEncoderReranker",),
    "saved_run": ("SavedRun",),
    "tantivy": ("Tantivy",),
}  # fmt: skip
# What plans and settings call them; a type's options are the parameters of its class.
TYPES: dict[str, str] = {
    "bm25": "BM25",
    "chroma": "Chroma",
    "chunked": "Chunked",
    "cross-encoder": "CrossEncoderReranker",
    "dense": "Dense",
    "elasticsearch": "Elasticsearch",
    "filtered": "Filtered",
    "fixed": "FixedChunker",
    "hashing": "HashingEncoder",
    "haystack": "Haystack",
    "http": "HTTPRetriever",
    "hybrid": "Hybrid",
    "lancedb": "LanceDB",
    "langchain": "LangChain",
    "llama-index": "LlamaIndex",
    "milvus": "Milvus",
    "model2vec": "Model2VecEncoder",
    "openai-embeddings": "EmbeddingEndpoint",
    "opensearch": "OpenSearch",
    "oracle": "Oracle",
    "pgvector": "PGVector",
    "pyterrier": "PyTerrier",
    "qdrant": "Qdrant",
    "random": "Random",
    "recursive": "RecursiveChunker",
    "rerank": "Rerank",
    "rerank-endpoint": "RerankEndpoint",
    "saved-run": "SavedRun",
    "sentence": "SentenceChunker",
    "sentence-transformers": "SentenceTransformersEncoder",
    "tantivy": "Tantivy",
    "token": "TokenChunker",
}
_HOME_OF = {
    name: f"rankgauge.retrievers.{home}" for home, names in _HOMES.items() for name in names
}
_HOME_OF |= dict.fromkeys(("Endpoint", "EndpointError"), "rankgauge.core.http_client")

__all__ = ["TYPES", *_HOME_OF]  # noqa: PLE0604 - all are text


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rankgauge.retrievers' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

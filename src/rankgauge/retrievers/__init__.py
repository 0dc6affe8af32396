"""Baseline retrievers, adapters for existing ones, and fusion of their runs.

Each retriever needs the library of at most one extra, which is imported when the retriever is
created. All implement :class:`rankgauge.Retriever` and have ``settings`` that identify them.
"""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

# Names used in plans and settings; the options of a type are the parameters of its class.
TYPES: dict[str, str] = {
    "bm25": "BM25",
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
    "langchain": "LangChain",
    "llama-index": "LlamaIndex",
    "model2vec": "Model2VecEncoder",
    "openai-embeddings": "EmbeddingEndpoint",
    "opensearch": "OpenSearch",
    "oracle": "Oracle",
    "pyterrier": "PyTerrier",
    "random": "Random",
    "recursive": "RecursiveChunker",
    "rerank": "Rerank",
    "rerank-endpoint": "RerankEndpoint",
    "saved-run": "SavedRun",
    "sentence": "SentenceChunker",
    "sentence-transformers": "SentenceTransformersEncoder",
    "tantivy": "Tantivy",
    "token": "TokenChunker",
    "use-multilingual": "UniversalSentenceEncoder",
}
__all__ = ["TYPES"]

with lazy_imports(globals()):
    from rankgauge.core.http_client import Endpoint as Endpoint, EndpointError as EndpointError
    from rankgauge.corpus.chunking import (
        FixedChunker as FixedChunker,
        RecursiveChunker as RecursiveChunker,
        SentenceChunker as SentenceChunker,
        TokenChunker as TokenChunker,
    )
    from rankgauge.llm.endpoints import EmbeddingEndpoint as EmbeddingEndpoint
    from rankgauge.retrievers.baselines import Oracle as Oracle, Random as Random, SavedRun as SavedRun
    from rankgauge.retrievers.bm25 import BM25 as BM25
    from rankgauge.retrievers.composite import Chunked as Chunked, Filtered as Filtered, Hybrid as Hybrid
    from rankgauge.retrievers.dense import Dense as Dense
    from rankgauge.retrievers.elasticsearch import Elasticsearch as Elasticsearch, OpenSearch as OpenSearch
    from rankgauge.retrievers.encoders import (
        Encoder as Encoder,
        HashingEncoder as HashingEncoder,
        Model2VecEncoder as Model2VecEncoder,
        SentenceTransformersEncoder as SentenceTransformersEncoder,
        UniversalSentenceEncoder as UniversalSentenceEncoder,
        named_encoder as named_encoder,
    )
    from rankgauge.retrievers.frameworks import (
        DocumentAdapter as DocumentAdapter,
        Haystack as Haystack,
        LangChain as LangChain,
        LlamaIndex as LlamaIndex,
        PyTerrier as PyTerrier,
    )
    from rankgauge.retrievers.fusion import (
        FUSION_METHODS as FUSION_METHODS,
        FUSION_NORMS as FUSION_NORMS,
        Fusion as Fusion,
        fuse as fuse,
        fuse_files as fuse_files,
    )
    from rankgauge.retrievers.fusion_tuning import (
        Fold as Fold,
        TunedFusion as TunedFusion,
        tune_fusion as tune_fusion,
        weight_grid as weight_grid,
    )
    from rankgauge.retrievers.hits import Hits as Hits, hits_of as hits_of
    from rankgauge.retrievers.http import HTTPRetriever as HTTPRetriever
    from rankgauge.retrievers.protocol import Retriever as Retriever
    from rankgauge.retrievers.rerank import (
        CrossEncoderReranker as CrossEncoderReranker,
        Rerank as Rerank,
        RerankEndpoint as RerankEndpoint,
    )
    from rankgauge.retrievers.tantivy import Tantivy as Tantivy

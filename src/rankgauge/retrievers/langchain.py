"""LangChain retrievers and vector stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rankgauge.core.arguments import choice
from rankgauge.core.libraries import library
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers.base import batches, not_indexed
from rankgauge.retrievers.frameworks import FrameworkRetriever, document_id, ranking_of

_BATCH = 256
_SCORES = ("similarity", "distance")


class LangChain(FrameworkRetriever):
    """A LangChain retriever, vector store, or chain as a retriever.

    A retriever is invoked with the text of each query and returns documents, best first. If it has
    a parameter for the number of documents (``search_kwargs["k"]``, by default 4, or ``k``), the
    parameter is set to `k`. A vector store is searched with ``similarity_search``. Ties keep the
    order of the framework. Empty queries have no results and are not sent.

    Args:
        retriever: An object with ``invoke``, or a ``VectorStore``.
        id_key: The metadata field of the document id. Default: the id of the document, else the
            first of the metadata fields ``id``, ``doc_id``, ``_id``, ``docno``, ``document_id``,
            ``docid``.
        score: The kind of scores: ``"similarity"`` (higher is better) or ``"distance"`` (negated).
            A vector store is then searched with ``similarity_search_with_score``, whose scores
            depend on the store. By default, scores are not read.
        score_key: The metadata field of the score, such as ``relevance_score``.
        depth: The number of hits to request, if more than `k`: if hits are chunks with the id of
            their document, `k` chunks may belong to fewer than `k` documents.
        indexing: Whether to add the documents to the vector store, after removing those added
            before; by default, the store is used unchanged.
        settings: Settings that identify this retriever, such as the name of its model; without
            them, results are not reused.

    Raises:
        InputError: If the object can be neither invoked nor searched, or options are incompatible.
        MissingExtra: If `indexing` is set and langchain-core is not installed.

    Example:
        >>> from types import SimpleNamespace as Object
        >>> found = Object(id=None, metadata={"source": "d7"}, page_content="We open at nine.")
        >>> retriever = LangChain(Object(invoke=lambda text: [found]), id_key="source")
        >>> retriever.search([Query("q1", "opening hours")], 10)
        [['d7']]
    """

    TYPE = "langchain"
    LIBRARY = "langchain-core"
    METHODS = ("invoke", "similarity_search")
    WANTED = "a retriever, a vector store, or a chain that returns documents"

    def __init__(
        self,
        retriever: Any,
        *,
        id_key: str | None = None,
        score: str | None = None,
        score_key: str | None = None,
        depth: int | None = None,
        indexing: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._searched = hasattr(retriever, "similarity_search")
        if score is not None:
            score = choice("kind of score", score, _SCORES)
        if score and not score_key and not self._searched:
            raise InputError(
                "retrievers return no scores",
                where="LangChain",
                fix="pass the vector store itself, or score_key for a score in metadata",
            )
        self._id_key = id_key
        self._score_key = score_key
        self._score = score or ("similarity" if score_key else None)
        options = {"id_key": id_key, "score": self._score, "score_key": score_key, "indexing": indexing}
        super().__init__(retriever, settings=settings, options=options, depth=depth)
        self._store = self._store_of(retriever) if indexing else None
        self._indexed: list[str] | None = None
        if self._store is not None:
            loaded = library("langchain_core.documents", extra="langchain", of="indexing")
            self._page = loaded.Document

    @staticmethod
    def _store_of(retriever: Any) -> Any:
        store = getattr(retriever, "vectorstore", retriever)
        if not hasattr(store, "add_documents") or not hasattr(store, "delete"):
            raise InputError(
                f"{type(retriever).__name__} has no vector store to add documents to",
                where="LangChain",
                fix="omit indexing, and add the documents yourself",
            )
        return store

    def index(self, documents: Iterable[Document]) -> None:
        """Add the documents to the vector store if `indexing` is set."""
        if self._store is None:
            return
        for earlier in batches(self._indexed or (), _BATCH):
            self._store.delete(ids=earlier)
        self._indexed = []
        for batch in batches(documents, _BATCH):
            pages = [
                self._page(
                    id=document.id,
                    page_content=document.full_text,
                    metadata={self._id_key or "doc_id": document.id, "title": document.title},
                )
                for document in batch
            ]
            self._store.add_documents(pages, ids=[document.id for document in batch])
            self._indexed += [document.id for document in batch]

    def search(self, queries: Sequence[Query], k: int) -> list[Any]:
        """Return one ranking per query.

        Raises:
            InputError: If a document has no id, or if scores get better from first to last.
        """
        if self._store is not None and self._indexed is None:
            raise not_indexed(self)
        return super().search(queries, k)

    def _with_depth(self, depth: int) -> Any:
        """Return a copy of the retriever that returns ``depth`` hits, if it has such an option."""
        source = self._source
        fields = {} if self._searched else getattr(type(source), "model_fields", {})
        if "search_kwargs" in fields:
            kept = {**source.search_kwargs, "k": depth}
            return source.model_copy(update={"search_kwargs": kept})
        return source.model_copy(update={"k": depth}) if "k" in fields else source

    def _ranking(self, asked: Any, text: str, depth: int, k: int) -> list[Any]:
        if not self._searched:
            rows = [(found, None) for found in asked.invoke(text)]
        elif self._score and not self._score_key:
            rows = asked.similarity_search_with_score(text, k=depth)
        else:
            rows = [(found, None) for found in asked.similarity_search(text, k=depth)]
        scored = [
            (
                document_id(found.id, found.metadata, self._id_key, adapter="LangChain"),
                self._better(score, found.metadata),
            )
            for found, score in rows
        ]
        if self._score and len(scored) > 1:
            first, last = scored[0][1], scored[-1][1]
            if first is not None and last is not None and first < last:
                other = _SCORES[self._score == _SCORES[0]]
                raise InputError(
                    f"scores get better from first to last, interpreted as {self._score}",
                    where="LangChain",
                    fix=f'set score="{other}"',
                )
        return ranking_of(scored, depth)[:k]

    def _better(self, score: Any, data: Mapping[str, Any]) -> float | None:
        """Return the score, higher is better."""
        if self._score_key is not None:
            score = data.get(self._score_key)
        if score is None:
            return None
        return -float(score) if self._score == "distance" else float(score)

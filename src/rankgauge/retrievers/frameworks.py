"""Adapters of LangChain, LlamaIndex, Haystack, and PyTerrier: settings, depth, and ids and scores of results."""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from importlib import metadata
from typing import Any, ClassVar

from rankgauge.core.arguments import choice, integer, of_kind
from rankgauge.core.libraries import library
from rankgauge.core.text import many
from rankgauge.corpus.collection import Document, Query
from rankgauge.data.id_spelling import id_change
from rankgauge.errors import InputError
from rankgauge.retrievers.base import batches, indexed
from rankgauge.retrievers.hits import relative_id
from rankgauge.retrievers.protocol import has_parameter

_IDS = ("id", "doc_id", "_id", "docno", "document_id", "docid")
_BATCH = 256
_SCORES = ("similarity", "distance")
# Number of hits whose metadata is kept for advice on ids.
_KEPT = 500


@dataclass(eq=False, repr=False, kw_only=True)
class FrameworkRetriever:
    """Base of adapters for framework objects, whose indexes are used unchanged.

    Empty queries have no results and are not passed on. Framework objects do not report their
    configuration, so settings are those passed by the caller, if any.

    Args:
        settings: Settings that identify this retriever; without them, results are not reused.
    """

    TYPE: ClassVar[str]
    LIBRARY: ClassVar[str]
    # Methods of which the object must have at least one, and a description of suitable objects.
    METHODS: ClassVar[tuple[str, ...]]
    WANTED: ClassVar[str]

    settings: Mapping[str, Any] | None = None

    def _set_up(self, source: Any, options: Mapping[str, Any]) -> None:
        """Store the framework object, and complete the settings with the options."""
        name = type(self).__name__
        if not any(hasattr(source, method) for method in self.METHODS):
            raise InputError(
                f"got {type(source).__name__}, which has no {self.METHODS[0]}()", where=name, fix=f"pass {self.WANTED}"
            )
        self._source = source
        if self.settings is None:
            return
        fix = 'pass settings that identify it: settings={"model": "..."}'
        of_kind("the settings", self.settings, Mapping, fix, where=name)
        try:
            version = metadata.version(self.LIBRARY)
        except metadata.PackageNotFoundError:
            version = "unknown"
        parameters = {key: value for key, value in options.items() if value is not None}
        self.settings = {"type": self.TYPE, **parameters, **self.settings, "versions": {self.LIBRARY: version}}

    @property
    def members(self) -> Sequence[Any]:
        """The object of the framework."""
        return (self._source,)

    def index(self, documents: Iterable[Document]) -> None:
        """Do nothing: the existing index is used."""


@dataclass(eq=False, repr=False, kw_only=True)
class DocumentAdapter(FrameworkRetriever):
    """Base of adapters whose results are documents with metadata.

    Args:
        id_key: The metadata field of the document id. Default: the id of the document (in
            LlamaIndex, that of the source document of the node), else the first of the metadata
            fields ``id``, ``doc_id``, ``_id``, ``docno``, ``document_id``, ``docid``.
        base: The folder or URL that ids are relative to: with ``base="/home/me/handbook"``,
            ``/home/me/handbook/loans/renewing.md`` becomes ``loans/renewing.md``.
        id: A function that takes a result of the framework and returns the document id, instead
            of `id_key`; only in Python. As functions cannot be compared, results are not reused.
        depth: The number of results to request, if more than `k`: if they are chunks with the id
            of their document, `k` chunks may belong to fewer than `k` documents.
    """

    # The id and the metadata of a result of the framework, in Python.
    ITEM: ClassVar[str] = "doc.id"
    METADATA: ClassVar[str] = "doc.metadata"

    id_key: str | None = None
    base: str | os.PathLike[str] | None = None
    id: Callable[[Any], Any] | None = None
    depth: int | None = None

    def _set_up(self, source: Any, options: Mapping[str, Any]) -> None:
        self._depth = 0 if self.depth is None else integer("depth", self.depth)
        # Metadata of the first results, for advice if their ids are not those of the collection.
        self.metadata: list[Mapping[str, Any]] = []
        base = self.base and str(self.base)
        super()._set_up(source, {**options, "id_key": self.id_key, "base": base, "depth": self.depth})
        self.settings = None if self.id else self.settings

    def search(self, queries: Sequence[Query], k: int) -> list[Any]:
        """Return one ranking per query."""
        depth = max(k, self._depth)
        return [ranking_of(self._rows(query.text, depth), k) if query.text.strip() else [] for query in queries]

    def _rows(self, text: str, depth: int) -> Iterable[tuple[str, float | None]]:
        """Return the id and the score of each hit, best first; `depth` hits if the object has such an option."""
        raise NotImplementedError

    def id_advice(self, ids: Collection[str], known: Collection[str]) -> str:
        """Return the options with which most retrieved documents are in a collection.

        Args:
            ids: The ids that were returned.
            known: The ids of the collection.
        """
        # Without `id`, the retrieved ids are those of `id_key`.
        found: dict[str | None, list[str]] = {} if self.id else {self.id_key: [*ids]}
        for name in dict.fromkeys(name for data in self.metadata for name in data):
            found.setdefault(name, [str(data[name]) for data in self.metadata if _is_id(data.get(name))])
        most = 0
        best = f"(..., id_key=...): fields of its metadata are {', '.join(filter(None, found)) or 'unknown'}"
        for key, values in found.items():
            # With `base`, paths of Windows are written with slashes.
            paths = [value.replace("\\", "/") if value[1:3] == ":\\" else value for value in values]
            arguments, matched = id_change(paths, known, f'{self.METADATA}["{key}"]' if key else self.ITEM)
            if matched > most:
                named = "" if "id=" in arguments or not key else f'id_key="{key}"'
                option = ", ".join(filter(None, [named, arguments]))
                most = matched
                best = (
                    f"(..., {option}) would match {matched} of {many(len({*values}), 'document')}" if option else best
                )
        return type(self).__name__ + best

    def _document_id(self, item: Any, own: Any, data: Mapping[str, Any]) -> str:
        """Return the id of a result: by the function `id`, by `id_key`, its own, or by a common key."""
        if len(self.metadata) < _KEPT:
            self.metadata.append(data)
        value = self.id(item) if self.id else data.get(self.id_key) if self.id_key else own
        if not (value or self.id or self.id_key):
            value = next((data[key] for key in _IDS if _is_id(data.get(key))), None)
        if not _is_id(value):
            keys, adapter = ", ".join(map(str, data)) or "none", type(self).__name__
            likely = next((key for key, text in data.items() if text and isinstance(text, str)), "...")
            raise InputError(
                f"a document has no {self.id_key or 'id'}; keys of its metadata: {keys}",
                where=adapter,
                fix=f"name the key of the document id: {adapter}(..., id_key={likely!r})",
            )
        return relative_id(str(value), self.base)


def ranking_of(rows: Iterable[tuple[str, float | None]], k: int) -> list[tuple[str, float]] | list[str]:
    """Return the first `k` documents of rows of id and score in their order, without duplicates.

    Frameworks may reorder hits (for diversity, or in a later step) without updating their scores:
    if the scores do not descend, the order is used and the scores are dropped.
    """
    ids: dict[str, float | None] = {}
    for name, score in rows:
        ids.setdefault(name, score)
    first = list(itertools.islice(ids.items(), k))
    scored = [(name, float(score)) for name, score in first if score is not None]
    if len(scored) < len(first) or any(b > a for (_, a), (_, b) in itertools.pairwise(scored)):
        return [name for name, _ in first]
    return scored


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


@dataclass(eq=False, repr=False)
class LangChain(DocumentAdapter):
    """A LangChain retriever, vector store, or chain as a retriever.

    A retriever is invoked with the text of each query and returns documents, best first. If it has
    a parameter for the number of documents (``search_kwargs["k"]``, by default 4, or ``k``), the
    parameter is set to `k`. A vector store is searched with ``similarity_search``. Ties keep the
    order of the framework. Empty queries have no results and are not sent.

    Args:
        retriever: An object with ``invoke``, or a ``VectorStore``.
        score: The kind of scores: ``"similarity"`` (higher is better) or ``"distance"`` (negated).
            A vector store is then searched with ``similarity_search_with_score``, whose scores
            depend on the store. By default, scores are not read.
        score_key: The metadata field of the score, such as ``relevance_score``.
        indexing: Whether to add the documents to the vector store, after removing those added
            before; by default, the store is used unchanged.
        id_key, base, id, depth, settings: As for :class:`DocumentAdapter`.

    Raises:
        InputError: If the object can be neither invoked nor searched, or options are incompatible.
        MissingExtra: If `indexing` is set and langchain-core is not installed.

    Example:
        >>> from types import SimpleNamespace as Object
        >>> found = Object(id=None, metadata={"source": "/home/me/handbook/hours.md"})
        >>> retriever = LangChain(Object(invoke=lambda text: [found]), id_key="source", base="/home/me/handbook")
        >>> retriever.search([Query("q1", "opening hours")], 10)
        [['hours.md']]
    """

    TYPE = "langchain"
    LIBRARY = "langchain-core"
    METHODS = ("invoke", "similarity_search")
    WANTED = "a retriever, a vector store, or a chain that returns documents"

    retriever: Any
    _: KW_ONLY
    score: str | None = None
    score_key: str | None = None
    indexing: bool = False

    def __post_init__(self) -> None:
        retriever = self.retriever
        self._searched = hasattr(retriever, "similarity_search")
        if self.score is not None:
            choice("kind of score", self.score, _SCORES)
        if self.score and not self.score_key and not self._searched:
            raise InputError(
                "retrievers return no scores",
                where="LangChain",
                fix="pass the vector store itself, or score_key for a score in metadata",
            )
        self._score = self.score or ("similarity" if self.score_key else None)
        options = {"score": self._score, "score_key": self.score_key, "indexing": self.indexing}
        self._set_up(retriever, options)
        self._store = getattr(retriever, "vectorstore", retriever) if self.indexing else None
        self._indexed: list[str] | None = None
        if self._store is not None:
            if not hasattr(self._store, "add_documents") or not hasattr(self._store, "delete"):
                raise InputError(
                    f"{type(retriever).__name__} has no vector store to add documents to",
                    where="LangChain",
                    fix="omit indexing, and add the documents yourself",
                )
            self._page = library("langchain_core.documents", extra="langchain", of="indexing").Document

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
                    metadata={self.id_key or "doc_id": document.id, "title": document.title},
                )
                for document in batch
            ]
            self._store.add_documents(pages, ids=[document.id for document in batch])
            self._indexed += [document.id for document in batch]

    def _rows(self, text: str, depth: int) -> Iterable[tuple[str, float | None]]:
        source = self._source
        if self._store is not None:
            indexed(self, self._indexed)
        if not self._searched:
            # Copy the retriever rather than change the caller's object.
            fields = getattr(type(source), "model_fields", {})
            if "search_kwargs" in fields:
                source = source.model_copy(update={"search_kwargs": {**source.search_kwargs, "k": depth}})
            elif "k" in fields:
                source = source.model_copy(update={"k": depth})
            pages = [(page, None) for page in source.invoke(text)]
        elif self._score and not self.score_key:
            pages = source.similarity_search_with_score(text, k=depth)
        else:
            pages = [(page, None) for page in source.similarity_search(text, k=depth)]
        sign = -1 if self._score == "distance" else 1
        scored = [(page, page.metadata.get(self.score_key) if self.score_key else score) for page, score in pages]
        rows = [
            (self._document_id(page, page.id, page.metadata), None if score is None else sign * float(score))
            for page, score in scored
        ]
        if self._score and len(rows) > 1:
            first, last = rows[0][1], rows[-1][1]
            if first is not None and last is not None and first < last:
                raise InputError(
                    f"scores get better from first to last, interpreted as {self._score}",
                    where="LangChain",
                    fix=f'set score="{_SCORES[self._score == _SCORES[0]]}"',
                )
        return rows


@dataclass(eq=False, repr=False)
class LlamaIndex(DocumentAdapter):
    """A LlamaIndex retriever.

    It returns nodes, which are documents or chunks; a document occurs once, at the rank of its best
    node. The index is not changed. If the retriever has a ``similarity_top_k`` (by default 2), this
    option is set to `k`. Ties keep the order of the framework. Empty queries have no results and
    are not sent.

    Args:
        retriever: An object with ``retrieve``, such as ``index.as_retriever()``.
        ids: The unit to rank: ``"document"``, or ``"node"`` for nodes with their own ids.
        id_key, base, id, depth, settings: As for :class:`DocumentAdapter`.

    Raises:
        InputError: If the object has no ``retrieve``, or options are incompatible.

    Example:
        >>> from types import SimpleNamespace as Object
        >>> from rankgauge import Query
        >>> node = Object(ref_doc_id="d7", node_id="d7-part-1", metadata={})
        >>> retriever = LlamaIndex(Object(retrieve=lambda text: [Object(node=node, score=0.5)]))
        >>> retriever.search([Query("q1", "opening hours")], 10)
        [[('d7', 0.5)]]
    """

    TYPE = "llama-index"
    LIBRARY = "llama-index-core"
    METHODS = ("retrieve",)
    WANTED = "a retriever: index.as_retriever()"

    ITEM = "doc.ref_doc_id"

    retriever: Any
    _: KW_ONLY
    ids: str = "document"

    def __post_init__(self) -> None:
        choice("kind of ids", self.ids, ("document", "node"))
        if self.ids == "node" and (self.id_key or self.id or self.base) is not None:
            raise InputError(
                "id_key, id, and base are for documents, but nodes are requested",
                where="LlamaIndex",
                fix='omit them, or ids="node"',
            )
        self._set_up(self.retriever, {"ids": self.ids})

    def _rows(self, text: str, depth: int) -> Iterable[tuple[str, float | None]]:
        retriever = self._source
        if hasattr(retriever, "similarity_top_k") and retriever.similarity_top_k != depth:
            # Copy the retriever rather than change the caller's object.
            retriever = copy.copy(retriever)
            retriever.similarity_top_k = depth
        hits = [(hit.node, hit.score) for hit in retriever.retrieve(text)]
        if self.ids == "node":
            return [(str(node.node_id), score) for node, score in hits]
        return [
            (self._document_id(node, getattr(node, "ref_doc_id", None) or node.node_id, node.metadata), score)
            for node, score in hits
        ]


@dataclass(eq=False, repr=False)
class Haystack(DocumentAdapter):
    """A Haystack pipeline or component as a retriever.

    The document store is not changed. The order of the documents is the ranking; their scores are
    kept if they descend. Ties keep the order of the framework. Empty queries have no results and
    are not sent, because many components fail on them.

    Args:
        pipeline: A ``Pipeline``, or a component with ``run(query=...)`` such as
            ``InMemoryBM25Retriever``.
        input: The input for the query text: ``"component.input"``, or a list of several, as for a
            hybrid pipeline. For a component, the name of its input.
        output: The output that contains the documents: ``"component.documents"``. For a component,
            the name of its output.
        top_k: The input for `k`, such as ``"retriever.top_k"``, or a list of several. Default for a
            component: its input ``top_k``, if present. Without such an input, the default number of
            documents is retrieved and truncated to `k`.
        id_key, base, id, depth, settings: As for :class:`DocumentAdapter`.

    Raises:
        InputError: If the object has no ``run``, or a path is invalid.

    Example:
        >>> from rankgauge import Query
        >>> class Retriever:
        ...     def run(self, query, top_k=10):
        ...         return {"documents": [Found()][:top_k]}
        >>> class Found:
        ...     id, meta, score = "d7", {}, 0.5
        >>> Haystack(Retriever()).search([Query("q1", "opening hours")], 10)
        [[('d7', 0.5)]]
    """

    TYPE = "haystack"
    LIBRARY = "haystack-ai"
    METHODS = ("run",)
    WANTED = "a pipeline, or a component such as InMemoryBM25Retriever"

    METADATA = "doc.meta"

    pipeline: Any
    _: KW_ONLY
    input: str | Sequence[str] | None = None
    output: str | None = None
    top_k: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        pipeline, top_k = self.pipeline, self.top_k
        # Only a pipeline has named components.
        self._many = hasattr(pipeline, "add_component")
        if not self._many and top_k is None and has_parameter(getattr(pipeline, "run", None), "top_k"):
            top_k = "top_k"
        self._inputs = self._paths("input", self.input or ("retriever.query" if self._many else "query"))
        self._top_k = self._paths("top_k", top_k or ())
        (self._output,) = self._paths("output", self.output or ("retriever.documents" if self._many else "documents"))
        options = {
            "input": [".".join(path) for path in self._inputs],
            "output": ".".join(self._output),
            "top_k": [".".join(path) for path in self._top_k],
        }
        self._set_up(pipeline, options)

    def _paths(self, name: str, names: str | Sequence[str]) -> list[tuple[str, ...]]:
        paths = [tuple(path.split(".")) for path in ([names] if isinstance(names, str) else names)]
        parts = 2 if self._many else 1
        wrong = next((path for path in paths if len(path) != parts or not all(path)), None)
        if wrong is not None:
            last = wrong[-1] or {"input": "query", "output": "documents"}.get(name, name)
            example = f"retriever.{last}" if self._many else last
            raise InputError(
                f"{name}={'.'.join(wrong)!r} is not the name of "
                f"{'an input or output of a component' if self._many else 'an input or output'}",
                where="Haystack",
                fix=f'write {name}="{example}"',
            )
        return paths

    def _rows(self, text: str, depth: int) -> Iterable[tuple[str, float | None]]:
        values = [*((path, text) for path in self._inputs), *((path, depth) for path in self._top_k)]
        if self._many:
            data: dict[str, dict[str, Any]] = {}
            for (component, name), value in values:
                data.setdefault(component, {})[name] = value
            # Outputs that feed another component are omitted unless requested.
            result = self._source.run(data, include_outputs_from={self._output[0]})
        else:
            result = self._source.run(**{name: value for (name,), value in values})
        for name in self._output:
            if not isinstance(result, Mapping) or name not in result:
                there = ", ".join(result) if isinstance(result, Mapping) else type(result).__name__
                raise InputError(
                    f"there is no output {'.'.join(self._output)!r}; found: {there or 'nothing'}",
                    where="Haystack",
                    fix='write output="component.documents"',
                )
            result = result[name]
        return [(self._document_id(hit, hit.id, hit.meta), hit.score) for hit in result]


@dataclass(eq=False, repr=False)
class PyTerrier(FrameworkRetriever):
    """A PyTerrier transformer or pipeline as a retriever.

    It receives a batch of queries as a data frame of ``qid`` and ``query``, and returns a frame of
    ``qid``, ``docno``, and ``score``. The existing index is used. Ties are broken by the column
    ``rank`` if present, else by the order of the rows. The transformer returns its configured
    number of documents (usually 1000), truncated to `k`.

    Query texts are passed unchanged. In Terrier's query language, quotes, brackets, ``+``, ``-``,
    ``^``, and ``:`` have a meaning, and many ordinary texts are invalid; put
    ``pt.rewrite.tokenise()`` in front of its retrievers. Empty queries have no results and are not
    passed on.

    Args:
        transformer: An object with ``transform``, such as ``pt.terrier.Retriever(index)`` or a
            pipeline.
        settings: Settings that identify this retriever; without them, results are not reused.

    Raises:
        InputError: If the object has no ``transform``.
        MissingExtra: If pandas is not installed.

    Example:
        >>> class Longest:
        ...     def transform(self, queries):
        ...         return queries.assign(docno="d7", score=0.5)
        >>> PyTerrier(Longest()).search([Query("q1", "opening hours")], 10)
        [[('d7', 0.5)]]
    """

    TYPE = "pyterrier"
    LIBRARY = "python-terrier"
    METHODS = ("transform",)
    WANTED = "a transformer, such as pt.terrier.Retriever(index)"

    transformer: Any

    def __post_init__(self) -> None:
        self._set_up(self.transformer, {})
        self._frame = library("pandas", extra="pyterrier", of="PyTerrier").DataFrame

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        """Return one ranking per query.

        Raises:
            InputError: If the result lacks a column, or contains an unknown query.
        """
        # Numbers as ids: a query may occur twice, and its id may be any text.
        numbers = [str(number) for number, query in enumerate(queries) if query.text.strip()]
        if not numbers:
            return [[] for _ in queries]
        texts = [queries[int(number)].text for number in numbers]
        frame = self._source.transform(self._frame({"qid": numbers, "query": texts}))
        columns = list(getattr(frame, "columns", ()))
        if not len(frame):
            return [[] for _ in queries]
        missing = {"qid", "docno", "score"} - set(columns)
        if missing:
            raise InputError(
                f"the transformer returned no {', '.join(sorted(missing))}; columns: "
                f"{', '.join(map(str, columns)) or 'none'}",
                where="PyTerrier",
                fix="pass a transformer that retrieves documents for queries",
            )
        places = frame["rank"].tolist() if "rank" in columns else range(len(frame))
        rows: dict[str, list[tuple[float, float, str]]] = {number: [] for number in numbers}
        scored = zip(frame["qid"].tolist(), frame["docno"].tolist(), frame["score"].tolist(), places, strict=True)
        for number, name, score, place in scored:
            if str(number) not in rows:
                raise InputError(
                    f"the transformer returned an unknown query: qid {number!r}",
                    where="PyTerrier",
                    fix="keep the qid of each query",
                )
            rows[str(number)].append((-float(score), place, str(name)))
        return [_best_places(rows.get(str(number), []), k) for number in range(len(queries))]


def _best_places(rows: list[tuple[float, float, str]], k: int) -> list[tuple[str, float]]:
    scores: dict[str, float] = {}
    for worse, _, name in sorted(rows):
        scores.setdefault(name, -worse)
    return list(scores.items())[:k]

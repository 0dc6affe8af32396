"""Retrievers composed of others: search through chunks, a filter, and fusion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from rankgauge.core.arguments import integer, known_name, of_kind
from rankgauge.corpus.chunking import FIRST, Chunker, chunk_documents
from rankgauge.corpus.collection import Document, Query
from rankgauge.corpus.spans import Span
from rankgauge.data.alignment import align
from rankgauge.data.join import ranked
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.retrievers.base import CompositeRetriever, Ranking, indexed, part_settings
from rankgauge.retrievers.fusion import Fusion, fuse_aligned, rank_runs
from rankgauge.retrievers.hits import Hits
from rankgauge.retrievers.protocol import has_index, index_documents, search

_STEP = 4
# The number of documents behind a callable is unknown.
_ANY = 1_000_000
RollUp: TypeAlias = Literal["max", "first", "sum"]
ROLL_UPS: Mapping[str, str] = MappingProxyType(
    {
        "max": "the score of its best chunk (MaxP)",
        "first": "the score of its first chunk (FirstP)",
        "sum": "the sum of its chunks that were retrieved (SumP)",
    }
)


@dataclass(eq=False, repr=False)
class Chunked(CompositeRetriever):
    """A retriever over chunks that returns documents.

    The documents are split into chunks, the retriever indexes the chunks, and the chunk scores are
    aggregated. The score of a document is that of its best chunk (``max``), that of its first chunk
    (``first``; documents whose first chunk is not retrieved are dropped), or the sum over its
    retrieved chunks (``sum``, which depends on `depth`). Ties keep the order of the best chunks.

    Args:
        retriever: Any retriever; it indexes the chunks as documents (see
            :func:`~rankgauge.corpus.chunking.chunk_documents`).
        chunker: The chunker that splits the texts.
        roll_up: ``max``, ``first``, or ``sum``.
        depth: The initial number of chunks to request per requested document; more are requested if
            they belong to too few documents.
        titles: Whether each chunk includes the title of its document.

    Raises:
        UnknownName: For an unknown roll-up.
        InputError: If `depth` is not a positive integer; in a search with ``sum``, if the retriever
            returns no scores or only negative scores.

    Source:
        Z. Dai and J. Callan: Deeper Text Understanding for IR with Contextual Neural Language
        Modeling. SIGIR 2019 (MaxP, FirstP, SumP).

    Example:
        >>> from rankgauge.retrievers import FixedChunker
        >>> def shortest(text, k):
        ...     return [("d1#0002", 0.5), ("d2#0001", 0.4), ("d1#0001", 0.3)][:k]
        >>> retriever = Chunked(shortest, FixedChunker(10), roll_up="sum")
        >>> retriever.index([Document("d1", text="Open at nine."), Document("d2", text="Closed.")])
        >>> retriever.search([Query("q1", "hours")], 10)
        [[('d1', 0.8), ('d2', 0.4)]]
    """

    TYPE = "chunked"
    PARTS = ("retriever", "chunker")

    retriever: Any
    chunker: Chunker
    _: KW_ONLY
    roll_up: RollUp = "max"
    depth: int = 5
    titles: bool = True

    def __post_init__(self) -> None:
        known_name("roll-up", self.roll_up, ROLL_UPS)
        self.depth = integer("depth", self.depth)
        self._chunks: _ChunkPositions | None = None

    @property
    def members(self) -> tuple[Any, ...]:
        """The retriever over chunks."""
        return (self.retriever,)

    def index(self, documents: Iterable[Document]) -> None:
        """Split the documents and index the chunks."""
        self._chunks = None
        places = _ChunkPositions(chunk_documents(documents, self.chunker, titles=self.titles))
        if has_index(self.retriever):
            index_documents(self.retriever, places)
        if not places.complete:
            # A callable, or a retriever that indexed these chunks before: record their positions.
            for _ in places:
                pass
        self._chunks = places

    def search(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        """Return at most k documents for each query, best first."""
        places = indexed(self, self._chunks)
        return _search_deeper(
            self.retriever,
            queries,
            k,
            depth=self.depth,
            most=len(places.positions),
            select=lambda _, hits: _aggregate(hits, places, self.roll_up),
        )

    def spans(self, queries: Sequence[Query], k: int) -> list[list[Span]]:
        """Return the spans of the first k chunks of each query (see `span_scores`)."""
        places = indexed(self, self._chunks)
        return [[Span(*places.of(name)) for name in hits.ids] for hits in search(self.retriever, queries, k)]


@dataclass(eq=False)
class _ChunkPositions:
    """Iterable of chunks that records the document, start, and end of each chunk id."""

    chunks: Iterable[Document]
    positions: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    complete: bool = False

    def __iter__(self) -> Iterator[Document]:
        for chunk in self.chunks:
            at = chunk.fields
            self.positions[chunk.id] = (at["document"], at["start"], at["end"])
            yield chunk
        self.complete = True

    def of(self, name: str) -> tuple[str, int, int]:
        if name not in self.positions:
            raise InputError(
                f"the retriever returned {name!r:.60}, which is not an indexed chunk",
                where="Chunked",
                fix="return the ids of the chunks, such as 'd1#0001'",
            )
        return self.positions[name]


def _aggregate(hits: Hits, places: _ChunkPositions, roll_up: RollUp) -> Ranking:
    if roll_up == "sum" and len(hits) and (not hits.scored or hits.scores[0] < 0):
        raise InputError(
            f"the retriever returns {'negative scores only' if hits.scored else 'no scores'}: "
            "their sum would depend on the number of chunks of a document",
            where="roll_up='sum'",
            fix="choose roll_up='max'",
        )
    scores: dict[str, float] = {}
    for name, score in hits.pairs():
        document = places.of(name)[0]
        if roll_up == "sum":
            scores[document] = scores.get(document, 0.0) + score
        elif roll_up == "max" or name.endswith(FIRST):
            scores.setdefault(document, score)
    # Sorting is stable: ties keep the order of the best chunks.
    return sorted(scores.items(), key=lambda row: -row[1])


@dataclass(eq=False, repr=False)
class Filtered(CompositeRetriever):
    """A metadata filter over the hits of another retriever (a post-filter).

    A document passes if its field equals the value, or is a list that contains the value. The value
    is `value`, the same for all queries, or the field `query_field` of each query; if the value is
    a list, any of its items may match. Queries without that field are not filtered. If too few
    documents pass, more are requested until the retriever has no more.

    Args:
        retriever: Any retriever.
        field: The field of the documents; ``id`` and ``title`` are fields, too.
        query_field: The field of the queries.
        value: The value, or a list of values.
        depth: The initial number of hits to request per requested document.

    Raises:
        InputError: If neither or both of `query_field` and `value` are given.

    Example:
        >>> def newest(text, k):
        ...     return ["d2", "d1", "d3"][:k]
        >>> german = Filtered(newest, field="language", value="de")
        >>> german.index([Document(f"d{n}", fields={"language": "de"}) for n in (1, 3)])
        >>> german.search([Query("q1", "hours")], 1)
        [[('d1', 2.0)]]
    """

    TYPE = "filtered"
    PARTS = ("retriever",)

    retriever: Any
    _: KW_ONLY
    field: str
    query_field: str | None = None
    value: Any = None
    depth: int = 3

    def __post_init__(self) -> None:
        if (self.query_field is None) == (self.value is None):
            raise InputError(
                f"got {'neither' if self.value is None else 'both'} of query_field and value",
                where="Filtered",
                fix="pass a value for all queries, or the query field that contains it",
            )
        of_kind("field", self.field or None, str, "pass the name of a field")
        if self.query_field is not None:
            of_kind("query_field", self.query_field or None, str, "pass the name of a field")
        self.depth = integer("depth", self.depth)
        self._values: dict[str, Any] | None = None
        self._most = 0

    def index(self, documents: Iterable[Document]) -> None:
        """Index the documents, and store the field of each.

        Raises:
            InputError: If no document has the field, or no document has the value.
        """
        self._values = None
        index_documents(self.retriever, documents)
        fields = {
            document.id: getattr(document, self.field)
            if self.field in {"id", "title"}
            else document.fields.get(self.field)
            for document in documents
        }
        values = {name: value for name, value in fields.items() if value is not None}
        if fields and not values:
            raise InputError(
                f"no document has a field {self.field!r}", where="Filtered", fix="name a field of the documents"
            )
        # A value that no document has may be a number where documents have text.
        if values and self.query_field is None and not any(_matches(value, self.value) for value in values.values()):
            first = _several(next(iter(values.values())))
            raise InputError(
                f"no document has {self.value!r:.60} in {self.field!r}",
                where="Filtered",
                fix=f"use an existing value, such as {next(iter(first), None)!r:.60}",
            )
        self._values = values
        self._most = len(fields) if has_index(self.retriever) else _ANY

    def search(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        """Return at most k documents that pass for each query, in the order of the retriever."""
        indexed(self, self._values)
        return _search_deeper(self.retriever, queries, k, depth=self.depth, most=self._most, select=self._passing)

    def _passing(self, query: Query, hits: Hits) -> Ranking:
        wanted = self.value if self.query_field is None else query.fields.get(self.query_field)
        if wanted is None:
            return hits.pairs()
        values = self._values or {}
        return [row for row in hits.pairs() if row[0] in values and _matches(values[row[0]], wanted)]


def _matches(value: Any, wanted: Any) -> bool:
    """Return whether a value, or an item of a list of values, is wanted."""
    return any(item in _several(wanted) for item in _several(value))


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)


class Hybrid(CompositeRetriever):
    """Fusion of the rankings of several retrievers; see :func:`rankgauge.fuse` for the methods.

    Input ranks are those of the retrievers, even among ties. Ties of fused scores are broken by
    document id, descending.

    Args:
        of: A list of at least two retrievers of any kind.
        method: The fusion method.
        norm: The score normalization, for methods that use scores.
        weights: One weight per retriever, in the same order.
        k: The rank constant of ``rrf``.
        phi: The persistence of ``rbc``.
        depth: The number of documents of each ranking to fuse; at least `k` of the search.

    Raises:
        UnknownName: For an unknown method or norm.
        InputError: With fewer than two retrievers, or for a parameter that the method does not use.

    Example:
        >>> hybrid = Hybrid([lambda text: ["d1", "d2", "d3"], lambda text: ["d3", "d2"]], k=1)
        >>> [(doc, round(s, 4)) for doc, s in hybrid.search([Query("q1", "late fees")], 2)[0]]
        [('d3', 0.75), ('d2', 0.6667)]
    """

    def __init__(
        self,
        of: Any,
        *,
        method: str = "rrf",
        norm: str | None = None,
        weights: Sequence[float] | None = None,
        k: float | None = None,
        phi: float | None = None,
        depth: int = 100,
    ) -> None:
        if isinstance(of, str) or not isinstance(of, Sequence) or len(of) < 2:
            raise InputError(
                f"got {of!r:.60}, expected two retrievers or more",
                where="hybrid",
                fix="pass them in a list: Hybrid([BM25(), Dense(encoder)])",
            )
        self._of = list(of)
        self._names = [str(number) for number in range(len(self._of))]
        self._how = Fusion.of(method, self._names, {"norm": norm, "weights": weights, "k": k, "phi": phi})
        self._depth = integer("depth", depth)

    @property
    def settings(self) -> Mapping[str, Any] | None:
        """Settings that determine the rankings; None if a retriever has no settings."""
        parts = part_settings(*self._of)
        if parts is None:
            return None
        return {"type": "hybrid", "of": parts, **self._how.settings(), "depth": self._depth}

    @property
    def members(self) -> tuple[Any, ...]:
        """The retrievers whose rankings are fused."""
        return tuple(self._of)

    def index(self, documents: Iterable[Document]) -> None:
        """Index the documents with each retriever."""
        for retriever in self._of:
            index_documents(retriever, documents)

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        """Return at most `k` documents for each query, ranked by fused score."""
        depth = max(self._depth, k)
        # Queries are identified by position: two may have the same id.
        places = [str(number) for number in range(len(queries))]
        runs = []
        for name, retriever in zip(self._names, self._of, strict=True):
            rankings = [hits.pairs() for hits in search(retriever, queries, depth)]
            filled = {place: pairs for place, pairs in zip(places, rankings, strict=True) if pairs}
            runs.append(Run.of(filled, name=name))
        result = ranked(Run(fuse_aligned(align(rank_runs(runs, "input")), self._how)))
        return [list(result[p].items())[:k] if p in result else [] for p in places]


def _search_deeper(
    retriever: Any, queries: Sequence[Query], k: int, *, depth: int, most: int, select: Callable[[Query, Hits], Ranking]
) -> list[Ranking]:
    """Return the top k of each query after its hits are filtered or aggregated by ``select``.

    The search starts with ``k * depth`` hits and requests four times as many until k results remain
    or the retriever has no more.
    """
    rankings: list[Ranking] = [[] for _ in queries]
    pending = list(range(len(queries))) if most else []
    limit = min(k * depth, most)
    while pending:
        responses = search(retriever, [queries[n] for n in pending], limit)
        incomplete = []
        for n, hits in zip(pending, responses, strict=True):
            rankings[n] = select(queries[n], hits)[:k]
            exhausted = len(hits) + hits.repeated < limit or limit >= most
            if len(rankings[n]) < k and not exhausted:
                incomplete.append(n)
        pending, limit = incomplete, min(limit * _STEP, most)
    return rankings

"""Document retrieval through chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from rankgauge.core.arguments import integer
from rankgauge.corpus.chunking import FIRST, Chunker, chunk_documents
from rankgauge.corpus.collection import Document, Query
from rankgauge.corpus.spans import Span
from rankgauge.errors import InputError, UnknownName
from rankgauge.retrievers.base import CompositeRetriever, Ranking, not_indexed, search_deeper
from rankgauge.retrievers.hits import Hits
from rankgauge.retrievers.protocol import has_index, index_documents, search

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
        if self.roll_up not in ROLL_UPS:
            raise UnknownName.of("roll-up", str(self.roll_up), get_args(RollUp))
        self.depth = integer("depth", self.depth)
        self._chunks: _ChunkPositions | None = None

    @property
    def members(self) -> tuple[Any, ...]:
        """The retriever over chunks."""
        return (self.retriever,)

    def index(self, documents: Iterable[Document]) -> None:
        """Split the documents and index the chunks."""
        self._chunks = None
        chunks = chunk_documents(documents, self.chunker, titles=self.titles)
        places = _ChunkPositions(chunks)
        if has_index(self.retriever):
            index_documents(self.retriever, places)
        if not places.complete:
            # A callable, or a retriever that indexed these chunks before: record their positions.
            for _ in places:
                pass
        self._chunks = places

    def search(self, queries: Sequence[Query], k: int) -> list[Ranking]:
        """Return at most k documents for each query, best first."""
        places = self._indexed()
        return search_deeper(
            self.retriever,
            queries,
            k,
            depth=self.depth,
            most=len(places.found),
            select=lambda _, hits: _aggregate(hits, places, self.roll_up),
        )

    def spans(self, queries: Sequence[Query], k: int) -> list[list[Span]]:
        """Return the spans of the first k chunks of each query (see `span_scores`)."""
        places = self._indexed()
        responses = search(self.retriever, queries, k)
        return [[Span(*places.of(name)) for name in hits.ids] for hits in responses]

    def _indexed(self) -> _ChunkPositions:
        if self._chunks is None:
            raise not_indexed(self)
        return self._chunks


class _ChunkPositions:
    """Iterable of chunks that records the document, start, and end of each chunk id."""

    def __init__(self, chunks: Iterable[Document]) -> None:
        self._source = chunks
        self.found: dict[str, tuple[str, int, int]] = {}
        self.complete = False

    def __iter__(self) -> Iterator[Document]:
        for chunk in self._source:
            at = chunk.fields
            self.found[chunk.id] = (at["document"], at["start"], at["end"])
            yield chunk
        self.complete = True

    def of(self, name: str) -> tuple[str, int, int]:
        if name not in self.found:
            raise InputError(
                f"the retriever returned {name!r:.60}, which is not an indexed chunk",
                where="Chunked",
                fix="return the ids of the chunks, such as 'd1#0001'",
            )
        return self.found[name]


def _aggregate(hits: Hits, places: _ChunkPositions, roll_up: RollUp) -> Ranking:
    if roll_up == "sum":
        _check_summable(hits)
    scores: dict[str, float] = {}
    for name, score in hits.pairs():
        document = places.of(name)[0]
        if roll_up == "sum":
            scores[document] = scores.get(document, 0.0) + score
        elif roll_up == "max" or name.endswith(FIRST):
            scores.setdefault(document, score)
    # Sorting is stable: ties keep the order of the best chunks.
    return sorted(scores.items(), key=lambda row: -row[1])


def _check_summable(hits: Hits) -> None:
    if len(hits) and (not hits.scored or hits.scores[0] < 0):
        text = "negative scores only" if hits.scored else "no scores"
        raise InputError(
            f"the retriever returns {text}: their sum would depend on the number of chunks of a document",
            where="roll_up='sum'",
            fix="choose roll_up='max'",
        )

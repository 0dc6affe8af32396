"""Fusion of the rankings of several retrievers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rankgauge.core.arguments import integer
from rankgauge.corpus.collection import Document, Query
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.fusion.alignment import align
from rankgauge.fusion.fusion import Fusion, fuse_aligned, rank_runs
from rankgauge.retrievers.base import CompositeRetriever, part_settings
from rankgauge.retrievers.protocol import index_documents, search


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
        given = {"norm": norm, "weights": weights, "k": k, "phi": phi}
        self._how = Fusion.of(method, self._names, given)
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
        for one in self._of:
            index_documents(one, documents)

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        """Return at most `k` documents for each query, ranked by fused score."""
        depth = max(self._depth, k)
        # Queries are identified by position: two may have the same id.
        places = [str(number) for number in range(len(queries))]
        runs = []
        for name, one in zip(self._names, self._of, strict=True):
            rankings = [hits.pairs() for hits in search(one, queries, depth)]
            filled = {p: pairs for p, pairs in zip(places, rankings, strict=True) if pairs}
            runs.append(Run.of(filled, name=name))
        named = rank_runs(runs, "input")
        result = fuse_aligned(align(named), self._how, name="hybrid", runs=self._names)
        return [list(result[p].items())[:k] if p in result else [] for p in places]

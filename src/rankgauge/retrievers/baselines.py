"""Lower and upper baselines: a random ranking and the ideal ranking; results of saved runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rankgauge.core.arguments import choice, integer, number
from rankgauge.corpus.collection import Document, Query
from rankgauge.data.join import ranked
from rankgauge.data.qrels import Qrels, fingerprint
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.retrievers.base import document_texts, indexed, top_rows


class Random:
    """A random ranking of all documents: a minimal baseline.

    The ranking of a query depends only on the seed, the query id, and the set of document ids.

    Args:
        seed: The random seed.

    Raises:
        InputError: If the seed is not a non-negative integer.

    Example:
        >>> chance = Random(seed=1)
        >>> chance.index([Document("d1"), Document("d2"), Document("d3")])
        >>> len(chance.search([Query("q1")], 2)[0])
        2
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = integer("seed", seed, least=0)
        self._ids: list[str] | None = None
        self.settings: Mapping[str, Any] = {"type": "random", "seed": self._seed}

    def index(self, documents: Iterable[Document]) -> None:
        """Store the document ids."""
        self._ids = sorted(name for name, _ in document_texts(documents))

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        """Return `k` documents for each query, with scores between 0 and 1.

        Raises:
            InputError: Before indexing.
        """
        ids = indexed(self, self._ids)
        rankings = []
        for query in queries:
            named = f"{self._seed}/{query.id}".encode("utf-8", "backslashreplace")
            start = int.from_bytes(hashlib.blake2b(named, digest_size=16).digest(), "little")
            # Raw bits are the same in every version of NumPy; permutations may not be.
            raw = np.random.PCG64(start).random_raw(len(ids))
            scores = (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
            rankings.append([(ids[n], float(scores[n])) for n in top_rows(scores, k).tolist()])
        return rankings


class Oracle:
    """The best ranking that the judgments allow: an upper bound for retrievers.

    It contains the relevant documents of the collection, ordered by grade, then by id. Scores are
    n, ..., 2, 1.

    Args:
        qrels: Judgments, in any form accepted by :meth:`rankgauge.Qrels.of`.
        rel: The lowest grade that is relevant.
        fill: Whether to append the other documents: judged ones by grade, then unjudged ones in
            the order of the collection.

    Raises:
        InputError: If `qrels` cannot be read as judgments.

    Example:
        >>> oracle = Oracle({"q1": {"d1": 1, "d2": 2, "d3": 0}})
        >>> oracle.index([Document("d1"), Document("d2"), Document("d3")])
        >>> oracle.search([Query("q1")], 10)
        [[('d2', 2.0), ('d1', 1.0)]]
    """

    def __init__(self, qrels: Any, *, rel: float = 1.0, fill: bool = False) -> None:
        self._qrels = Qrels.of(qrels)
        self._rel = number("rel", rel, low=-1e100, high=1e100)
        self._fill = bool(fill)
        self._ids: dict[str, None] | None = None
        self.settings: Mapping[str, Any] = {
            "type": "oracle",
            "qrels": fingerprint(self._qrels),
            "rel": self._rel,
            "fill": self._fill,
        }

    def index(self, documents: Iterable[Document]) -> None:
        """Store the document ids; judged documents outside the collection are not retrieved."""
        self._ids = dict.fromkeys(name for name, _ in document_texts(documents))

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        """Return at most `k` documents for each query, the most relevant first.

        Raises:
            InputError: Before indexing.
        """
        ids = indexed(self, self._ids)
        return [self._ranking(query.id, k, ids) for query in queries]

    def _ranking(self, query: str, k: int, ids: dict[str, None]) -> list[tuple[str, float]]:
        grades = self._qrels.get(query, {})
        judged = sorted((d for d in grades if d in ids), key=lambda d: (-grades[d], d))
        chosen = [d for d in judged if grades[d] >= self._rel]
        if self._fill and len(chosen) < k:
            chosen = [*judged, *(d for d in ids if d not in grades)]
        chosen = chosen[:k]
        return [(d, float(len(chosen) - place)) for place, d in enumerate(chosen)]


class SavedRun:
    """Results from a saved run, looked up by query id; documents and texts are not used.

    Documents are ranked by score; ties are broken by id, descending, as in trec_eval.

    Args:
        run: The path of a run file, or anything else accepted by :meth:`rankgauge.Run.of`.
        missing: The result for queries missing from the run: ``error``, or an ``empty`` ranking.

    Raises:
        InputError: If `run` cannot be read as a run, or a ranking contains a document twice.

    Example:
        >>> saved = SavedRun({"q1": {"d1": 0.5, "d2": 0.75}})
        >>> saved.search([Query("q1", "late fees")], 1)
        [[('d2', 0.75)]]
    """

    def __init__(self, run: Any, *, missing: str = "error") -> None:
        self._missing = choice("way to treat missing queries", missing, ("error", "empty"))
        self._run = ranked(Run.of(run))
        self.settings: Mapping[str, Any] = {
            "type": "saved-run",
            "run": fingerprint(self._run),
            "missing": self._missing,
        }

    def index(self, documents: Iterable[Document]) -> None:
        """Do nothing: the run already contains the rankings."""

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        """Return the first `k` documents of the run for each query.

        Raises:
            InputError: For a query that is not in the run, unless `missing` is ``"empty"``.
        """
        return [self._ranking(query.id, k) for query in queries]

    def _ranking(self, query: str, k: int) -> list[tuple[str, float]]:
        if query in self._run:
            return list(self._run[query].items())[:k]
        if self._missing == "empty":
            return []
        raise InputError(
            f"the run {self._run.name!r} has no query {query!r}",
            where="saved run",
            fix='pass the run of these queries, or missing="empty" if they have no results',
        )

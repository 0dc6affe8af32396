"""A run that was saved, as a retriever: for systems that answer elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rankgauge.core.arguments import choice
from rankgauge.corpus.collection import Document, Query
from rankgauge.data.fingerprints import fingerprint
from rankgauge.data.ranking import ranked
from rankgauge.data.run import Run
from rankgauge.errors import InputError


class SavedRun:
    """Results from a saved run, by query id, without documents and texts.

    Documents are ranked by score; equal ones by id descending, as trec_eval does.

    Args:
        run: The path of a run file, or whatever :meth:`rankgauge.Run.of` takes.
        missing: The result for queries missing from the run: ``error``, or an ``empty`` ranking.

    Raises:
        InputError: If this is no run, or a document occurs twice in a ranking.

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
        """Nothing: the run is there already."""

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        """At most `k` documents for each query, as the run has them.

        Raises:
            InputError: For a query that the run does not have, unless they are ``empty``.
        """
        return [self._ranking(query.id, k) for query in queries]

    def _ranking(self, query: str, k: int) -> list[tuple[str, float]]:
        if query in self._run:
            return list(self._run[query].items())[:k]
        if self._missing == "empty":
            return []
        raise InputError(
            f"the run {self._run.name!r} has no query {query!r}", where="saved run",
            fix='give the run of these queries, or missing="empty" if they have no results',
        )  # fmt: skip

"""A small retriever: documents ranked by the number of words they share with the query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rankgauge.corpus.collection import Document, Query


class Overlapping:
    """Score: words of the query that are in the document; ties in the order of the documents."""

    def __init__(self) -> None:
        self.words: dict[str, list[str]] = {}
        self.settings = {"type": "overlapping"}
        self.asked: list[int] = []
        self.closed = False

    def index(self, documents: Iterable[Document]) -> None:
        self.words = {document.id: document.full_text.lower().split() for document in documents}

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        self.asked.append(k)
        return [self._one(query.text.lower().split(), k) for query in queries]

    def _one(self, wanted: list[str], k: int) -> list[tuple[str, float]]:
        scores = {name: float(sum(words.count(word) for word in set(wanted))) for name, words in self.words.items()}
        found = [row for row in scores.items() if row[1]]
        return sorted(found, key=lambda row: -row[1])[:k]

    def close(self) -> None:
        self.closed = True

    def usage(self) -> dict[str, int]:
        return {"calls": len(self.asked)}

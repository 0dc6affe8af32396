"""The texts of a collection as terms: shared terms, lengths, and near-duplicates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Literal

import numpy as np

from rankgauge.core.terms import STOP, shared, terms_of, words
from rankgauge.corpus.collection import Collection

_SHINGLE = 5
_DUPLICATE = 0.9
# Tukey's fences on the logarithm of the length, and their largest distance from the median.
_FENCE = 1.5
_FACTOR = 2.0
_FARTHEST = 5.0


class Texts:
    """The texts of a collection, with words and terms computed on demand.

    Args:
        collection: Documents and queries; either may be missing.
    """

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.words = cache(self._words)
        self.frequencies = cache(lambda doc: Counter(t for w in self.words(doc) for t in terms_of((w,))))
        self.terms = cache(lambda doc: frozenset(self.frequencies(doc)))
        self.query_terms = cache(lambda query: terms_of(self.query_words(query)))
        # The terms of a query that match a term of the document.
        self.shared = cache(lambda query, doc: shared(self.query_terms(query), self.terms(doc)))
        self._shingles = cache(self._shingles_of)

    def _words(self, doc: str) -> tuple[str, ...]:
        """Return the words of title and text; empty for an unknown document."""
        document = self.collection.documents.get(doc)
        return () if document is None else words(document.full_text)

    def _shingles_of(self, doc: str) -> frozenset[tuple[str, ...]]:
        """Return the five-word shingles of a document; fewer words form a single one."""
        tokens = self.words(doc)
        size = min(_SHINGLE, len(tokens))
        places = range(len(tokens) - size + 1) if size else ()
        return frozenset(tokens[place : place + size] for place in places)

    def knows(self, doc: str) -> bool:
        """Return whether the collection contains the document."""
        return doc in self.collection.documents

    def length(self, doc: str) -> int:
        """Return the number of characters of title and text; 0 for an unknown document."""
        document = self.collection.documents.get(doc)
        return 0 if document is None else len(document.full_text.strip())

    def query_words(self, query: str) -> tuple[str, ...]:
        """Return the distinct words of a query without function words."""
        record = self.collection.queries.get(query)
        every = () if record is None else words(record.text)
        return tuple(dict.fromkeys(word for word in every if word not in STOP))

    def similarity(self, doc: str, other: str) -> float:
        """Return the Jaccard similarity of the five-word shingles of two texts, from 0 to 1.

        Shorter texts have similarity 1 if they are equal. Texts without words have similarity 0,
        and so do texts whose similarity must be far below 0.9.

        Source: Broder (1997), On the resemblance and containment of documents.
        """
        left, right = self._shingles(doc), self._shingles(other)
        # The similarity is at most the ratio of the sizes, which rules out most pairs.
        if min(len(left), len(right)) < _DUPLICATE * max(len(left), len(right), 1):
            return 0.0
        return len(left & right) / len(left | right)

    def near_duplicates(self, docs: Iterable[str]) -> list[tuple[str, str, float]]:
        """Return near-duplicates with the earlier document and the similarity (>= .9)."""
        duplicates: list[tuple[str, str, float]] = []
        kept: list[str] = []
        for doc in filter(self.words, docs):
            pairs = ((first, self.similarity(doc, first)) for first in kept)
            alike = next((pair for pair in pairs if pair[1] >= _DUPLICATE), None)
            if alike is None:
                kept.append(doc)
            else:
                duplicates.append((doc, *alike))
        return duplicates

    @cached_property
    def quartiles(self) -> tuple[float, float, float]:
        """Quartiles of the lengths of all documents with text."""
        lengths = [length for length in map(self.length, self.collection.documents) if length]
        if not lengths:
            return 0.0, 0.0, 0.0
        low, median, high = np.quantile(np.array(sorted(lengths)), [0.25, 0.5, 0.75]).tolist()
        return low, median, high

    @cached_property
    def fences(self) -> tuple[float, float]:
        """Lengths below which a text is very short, and above which it is very long.

        Tukey's fences on the logarithm of the length: the quartiles, extended by 1.5 times the
        interquartile range, and at least by a factor of two. In addition, a length above five times
        the median is very long, and below a fifth of it very short, even if more than a quarter of
        the texts are, so that the quartile is one of them.
        """
        low, median, high = self.quartiles
        if not low:
            return 0.0, float("inf")
        stretch = max((high / low) ** _FENCE, _FACTOR)
        return max(low / stretch, median / _FARTHEST), min(high * stretch, median * _FARTHEST)

    def size(self, doc: str) -> Literal["short", "usual", "long"]:
        """Return whether a text is very short or very long for the collection."""
        length, (shortest, longest) = self.length(doc), self.fences
        if length < shortest:
            return "short"
        return "long" if length > longest else "usual"

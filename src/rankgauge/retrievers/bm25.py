"""BM25, the lexical baseline, computed by bm25s."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rankgauge.core.arguments import choice, number
from rankgauge.core.libraries import library, versions
from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers.base import document_texts, field_names, indexed, top_rows

_METHODS = ("lucene", "robertson", "atire", "bm25l", "bm25+")
_SHIFTED = ("bm25l", "bm25+")
_WORDS = r"(?u)\b\w\w+\b"


class BM25:
    """BM25: documents scored by the words they share with the query.

    The score of a document d of length l is the sum over the words of the query of

        idf(w) * tf / (k1 * (1 - b + b * l / mean l) + tf)

    for Lucene's variant (``method="lucene"``), with idf(w) = ln(1 + (N - n + 0.5) / (n + 0.5)) for
    a word that occurs in n of N documents; the other variants differ in the two factors (Kamphuis
    et al. 2020). Words are the matches of `words` in the lowercase text, without stop words,
    reduced to their stems. Documents with a score of 0 are not retrieved. Ties keep the order of
    the collection.

    Args:
        k1: The term-frequency saturation: higher values give more weight to repeated words.
        b: The strength of length normalization, from 0 to 1.
        method: ``lucene``, ``robertson``, ``atire``, ``bm25l``, or ``bm25+``.
        delta: The bonus of ``bm25l`` and ``bm25+`` for occurrences in long documents.
        stemmer: The language of PyStemmer's stemmer; None for no stemming.
        stop_words: The language of the bm25s stop-word list (``english``, ``german``, ...), or a
            list of words; None for none.
        words: The regular expression that matches a word.
        fields: The fields to search; default: title and text.

    Raises:
        MissingExtra: If bm25s or PyStemmer is not installed.
        UnknownName: For an unknown method or language.
        InputError: For an invalid number.

    Example:
        >>> bm25 = BM25()
        >>> bm25.index([Document("d1", text="late fees"), Document("d2", text="opening hours")])
        >>> [(doc, round(score, 2)) for doc, score in bm25.search([Query("q1", "fee")], 10)[0]]
        [('d1', 0.36)]
    """

    def __init__(
        self,
        *,
        k1: float = 0.9,
        b: float = 0.4,
        method: str = "lucene",
        delta: float = 0.5,
        stemmer: str | None = "english",
        stop_words: str | Sequence[str] | None = "english",
        words: str = _WORDS,
        fields: Sequence[str] | None = None,
    ) -> None:
        self._library = library("bm25s", extra="bm25", of="BM25")
        self._k1 = number("k1", k1)
        self._b = number("b", b, high=1.0)
        self._method = choice("method of BM25", method, _METHODS)
        self._delta = number("delta", delta)
        self._stop_words = _stop_words(stop_words)
        self._stemmer = None if stemmer is None else _stemmer(stemmer)
        self._words = _pattern(words)
        self._fields = field_names(fields)
        # The cache of a stemmer is not thread-safe.
        self._lock = threading.Lock()
        self._ids: list[str] | None = None
        self._vocabulary: dict[str, int] = {}
        self._model: Any = None
        self.settings: Mapping[str, Any] = {
            "type": "bm25",
            "k1": self._k1,
            "b": self._b,
            "method": self._method,
            **({"delta": self._delta} if self._method in _SHIFTED else {}),
            "stemmer": stemmer,
            "stop_words": stop_words if isinstance(stop_words, str) else sorted(self._stop_words),
            "words": words,
            "fields": None if self._fields is None else list(self._fields),
            "versions": versions("bm25s", *(["PyStemmer"] if stemmer is not None else [])),
        }

    def index(self, documents: Iterable[Document]) -> None:
        """Index the words of the documents; an earlier index is replaced.

        Raises:
            InputError: If an item is not a document, or a field occurs in no document.
        """
        ids: list[str] = []
        vocabulary: dict[str, int] = {}
        tokens: list[list[int]] = []
        for name, text in document_texts(documents, self._fields):
            ids.append(name)
            tokens.append([vocabulary.setdefault(word, len(vocabulary)) for word in self._words_of(text)])
        model = None
        if vocabulary:  # bm25s cannot compute the mean length if there are no words
            model = self._library.BM25(k1=self._k1, b=self._b, delta=self._delta, method=self._method, backend="numpy")
            model.index((tokens, vocabulary), create_empty_token=False, show_progress=False)
        self._ids, self._vocabulary, self._model = ids, vocabulary, model

    def search(self, queries: Sequence[Query], k: int) -> list[list[tuple[str, float]]]:
        """Return at most `k` documents with scores above 0 for each query, best first.

        Raises:
            InputError: Before indexing.
        """
        ids = indexed(self, self._ids)
        return [self._ranking(query.text, k, ids) for query in queries]

    @property
    def size(self) -> int:
        """Bytes of the index, which contains a score for each pair of word and document."""
        if self._model is None:
            return 0
        return sum(self._model.scores[part].nbytes for part in ("data", "indices", "indptr"))

    def _ranking(self, text: str, k: int, ids: list[str]) -> list[tuple[str, float]]:
        known = [self._vocabulary[word] for word in self._words_of(text) if word in self._vocabulary]
        if not known or self._model is None:
            return []
        scores = self._model.get_scores_from_ids(known)
        # In bm25s, bm25l and bm25+ give scores above 0 to documents that match no word.
        ends, rows = self._model.scores["indptr"], self._model.scores["indices"]
        shared = np.unique(np.concatenate([rows[ends[w] : ends[w + 1]] for w in set(known)]))
        shared = shared[scores[shared] > 0]
        return [(ids[n], float(scores[n])) for n in shared[top_rows(scores[shared], k)].tolist()]

    def _words_of(self, text: str) -> list[str]:
        words = [w for w in self._words.findall(text.lower()) if w not in self._stop_words]
        if self._stemmer is None:
            return words
        with self._lock:
            return self._stemmer.stemWords(words)


def _stemmer(language: Any) -> Any:
    stemmers = library("Stemmer", extra="bm25", of="a stemmer")
    return stemmers.Stemmer(choice("stemmer of PyStemmer", language, stemmers.algorithms()))


def _stop_words(words: Any) -> frozenset[str]:
    if words is None:
        return frozenset()
    if isinstance(words, str):
        lists = library("bm25s.stopwords", extra="bm25", of="BM25")
        start = "STOPWORDS_"
        known = {name.removeprefix(start).lower(): name for name in dir(lists) if name.startswith(start)}
        known["english"] = known.pop("en", "STOPWORDS_EN")
        return frozenset(getattr(lists, known[choice("list of stop words", words, known)]))
    if not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
        raise InputError(
            f"got {words!r:.60} for the stop words",
            where="stop_words",
            fix='name a language, or pass words: ["the", "of"]',
        )
    return frozenset(word.lower() for word in words)


def _pattern(words: Any) -> re.Pattern[str]:
    try:
        pattern = re.compile(words)
    except (re.error, TypeError) as error:
        raise InputError(
            f"words={words!r:.60} is not a regular expression: {error}",
            where="words",
            fix="omit it, or write a pattern such as \\w+",
        ) from None
    if pattern.groups > 1 or pattern.match(""):
        raise InputError(
            f"words={words!r:.60} does not match one word",
            where="words",
            fix="match at least one letter, with no more than one group",
        )
    return pattern

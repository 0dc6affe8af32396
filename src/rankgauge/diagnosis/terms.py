"""Terms of texts: terms shared by a query and a document, text lengths, and near-duplicates.

The method is the same for all languages: apply compatibility decomposition, remove accents, fold
case, and split at characters that are neither letters nor digits; text in scripts without spaces
becomes character bigrams. English words are stemmed by Snowball if PyStemmer is installed (the
extra ``bm25``); otherwise the endings -s, -ing, and -ed are removed. English function words are not
terms. Two terms match if they are equal, or if one is a prefix of the other and has at least five
letters (renew, renewal). This errs on the side of matching, so that a reported vocabulary gap is
real.
"""

from __future__ import annotations

import importlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, cached_property, lru_cache
from typing import Literal

import numpy as np

from rankgauge.corpus.collection import Collection

# Thai to Lao, Burmese, Khmer, kana, Han: scripts without spaces between words.
_DENSE = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"(?P<dense>[{_DENSE}]+)|[^\W_{_DENSE}]+")
_ASCII_WORD = re.compile(r"[^\W_]+")
_FUNCTION_WORDS = """
    a about above after again all also am an and any are aren as at be because been before being
    below between both but by can cannot could couldn d did didn do does doesn doing don down during
    each else ever few for from further get give given had hadn has hasn have haven having he her
    here hers him his how however i if in into is isn it its itself just ll m many may me might more
    most much must my need no nor not now of off on once one only or other ought our ours out over
    own per please re s same shall she should shouldn so some such t tell than that the their theirs
    them then there these they this those through to too under until up upon us ve very was wasn we
    were weren what when where whether which while who whom whose why will with within without won
    would wouldn you your yours
"""
_STOP = frozenset(_FUNCTION_WORDS.split())
_VOWEL = re.compile("[aeiouy]")
PREFIX = 5  # least length of a common prefix
_SHINGLE = 5
_DUPLICATE = 0.9
# Tukey's fences on the logarithm of the length, and their largest distance from the median.
_FENCE = 1.5
_FACTOR = 2.0
_FARTHEST = 5.0


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text, in order, with folded case and without accents.

    Example:
        >>> words("The café's 2 DVDs")
        ('the', 'cafe', 's', '2', 'dvds')
    """
    if text.isascii():
        return tuple(_ASCII_WORD.findall(text.casefold()))
    parts = unicodedata.normalize("NFKD", text)
    text = "".join(char for char in parts if unicodedata.category(char)[0] != "M")
    tokens: list[str] = []
    for match in _WORD.finditer(text.casefold()):
        word, dense = match[0], match["dense"]
        if dense and len(word) > 1:
            tokens += [word[place : place + 2] for place in range(len(word) - 1)]
        else:
            tokens.append(word)
    return tuple(tokens)


def terms(text: str) -> frozenset[str]:
    """Return the terms of a text: its stems, without function words.

    Example:
        >>> sorted(terms("How do I renew the libraries' DVDs?"))
        ['dvd', 'librari', 'renew']
    """
    return _terms(words(text), _stemmer())


def plain_terms(text: str) -> frozenset[str]:
    """Return the terms of a text, independent of whether PyStemmer is installed.

    Example:
        >>> sorted(plain_terms("How do I renew the libraries' DVDs?"))
        ['dvd', 'librari', 'renew']
    """
    return _terms(words(text), _plain_stem)


def _terms(tokens: Iterable[str], stem: Callable[[str], str]) -> frozenset[str]:
    return frozenset(stem(word) if word.isascii() and word.isalpha() else word for word in set(tokens) - _STOP)


@cache
def _stemmer() -> Callable[[str], str]:
    try:
        snowball = importlib.import_module("Stemmer").Stemmer("english").stemWord
    except ImportError:
        return _plain_stem

    def stem(word: str) -> str:
        # Snowball keeps the s after letters without a vowel (DVDs).
        plural = len(word) > 3 and word.endswith("s") and not _VOWEL.search(word)
        return word[:-1] if plural else str(snowball(word))

    return stem


@lru_cache(maxsize=2**16)
def _plain_stem(word: str) -> str:
    if len(word) < 4:
        return word
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith(("ss", "us")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        # Do not stem speed or need.
        if stem != word and len(stem) >= 3 and not stem.endswith("e") and _VOWEL.search(stem):
            word = stem
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    if len(word) > 3 and word.endswith("e"):
        word = word[:-1]
    return word[:-1] + "i" if len(word) > 3 and word.endswith("y") else word


def shared(asked: frozenset[str], document_terms: frozenset[str]) -> frozenset[str]:
    """Return the terms of `asked` that match a term of a document, exactly or by a common prefix.

    Example:
        >>> sorted(shared(terms("taxi fares"), terms("Taxis and trams")))
        ['taxi']
    """
    same = asked & document_terms
    rest = {term for term in asked - same if len(term) >= PREFIX and term.isalpha()}
    if not rest:
        return same
    long = [term for term in document_terms if len(term) >= PREFIX and term.isalpha()]
    near = {term for term in rest if any(o.startswith(term) or term.startswith(o) for o in long)}
    return same | near


class Texts:
    """The texts of a collection, with words and terms computed on demand.

    Args:
        collection: Documents and queries; either may be missing.
    """

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.words = cache(self._words)
        self.frequencies = cache(lambda doc: Counter(t for w in self.words(doc) for t in _terms((w,), _stemmer())))
        self.terms = cache(lambda doc: frozenset(self.frequencies(doc)))
        self.query_terms = cache(lambda query: _terms(self.query_words(query), _stemmer()))
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
        return tuple(dict.fromkeys(word for word in every if word not in _STOP))

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

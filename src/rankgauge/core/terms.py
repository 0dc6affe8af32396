"""Words and terms of texts, and the terms that two texts share.

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
from collections.abc import Callable, Iterable
from functools import cache, lru_cache

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
STOP = frozenset(_FUNCTION_WORDS.split())
_VOWEL = re.compile("[aeiouy]")
PREFIX = 5  # least length of a common prefix


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
    return terms_of(words(text))


def plain_terms(text: str) -> frozenset[str]:
    """Return the terms of a text, independent of whether PyStemmer is installed.

    Example:
        >>> sorted(plain_terms("How do I renew the libraries' DVDs?"))
        ['dvd', 'librari', 'renew']
    """
    return _stemmed(words(text), _plain_stem)


def terms_of(tokens: Iterable[str]) -> frozenset[str]:
    """Return the terms of words."""
    return _stemmed(tokens, _stemmer())


def _stemmed(tokens: Iterable[str], stem: Callable[[str], str]) -> frozenset[str]:
    return frozenset(stem(word) if word.isascii() and word.isalpha() else word for word in set(tokens) - STOP)


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

"""Single pass over the documents of a collection: lengths, repeats, and embedded queries."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import IntArray
from rankgauge.corpus.collection import Collection, Document
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run

_EXAMPLES = 3
# Shorter queries occur in documents by chance.
_LEAST_WORDS = 4


_WORD = re.compile(r"[^\W_]+")


@dataclass
class Scan:
    """Results of a pass over the documents."""

    characters: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    words: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    empty: list[str] = field(default_factory=list)
    # Pairs of a document and the first with the same text; groups of documents with the same text
    # as a relevant document.
    repeats: int = 0
    first_repeats: list[tuple[str, str]] = field(default_factory=list)
    twins: list[tuple[str, ...]] = field(default_factory=list)
    # Query id to the first document that contains its words.
    leaks: dict[str, str] = field(default_factory=dict)
    same_ids: list[str] = field(default_factory=list)
    # Number of judged documents, and those that are not in the collection.
    judged: int = 0
    absent: list[str] = field(default_factory=list)
    relevant_empty: list[str] = field(default_factory=list)
    missing: list[list[str]] = field(default_factory=list)


def folded(text: str) -> str:
    """Return a text in lower case with single blanks between words."""
    return " ".join(text.casefold().split())


def plain_words(text: str) -> str:
    """Return the words of a text in lower case, separated by single blanks."""
    return " ".join(_WORD.findall(text.casefold()))


class _Leaks:
    """Queries to find in documents, indexed by their longest words."""

    def __init__(self, collection: Collection) -> None:
        self._by_word: dict[str, list[tuple[str, str, frozenset[str]]]] = {}
        self.found: dict[str, str] = {}
        for query in collection.queries.values():
            text = plain_words(query.text)
            words = text.split()
            if len(words) >= _LEAST_WORDS:
                anchor = max(words, key=len)
                row = query.id, f" {text} ", frozenset(words)
                self._by_word.setdefault(anchor, []).append(row)

    def search(self, document: Document) -> None:
        """Record the queries whose text occurs in a document in sequence."""
        if not self._by_word:
            return
        here = plain_words(document.full_text)
        words = set(here.split())
        for word in words & self._by_word.keys():
            for query, text, parts in self._by_word[word]:
                if query not in self.found and parts <= words and text in f" {here} ":
                    self.found[query] = document.id


def scan(collection: Collection, judged: Qrels | None, runs: Sequence[Run]) -> Scan:
    """Scan the documents once, and again for the ids of repeated documents if there are any."""
    found = Scan()
    relevant: set[str] = set()
    wanted = [dict.fromkeys(run.table.docs.shown()) for run in runs]
    if judged is not None:
        ids, values = judged.table.docs.shown(), judged.table.values.tolist()
        relevant = {key for key, grade in zip(ids, values, strict=True) if grade >= 1}
        wanted.append(dict.fromkeys(ids))
        found.judged = len(wanted[-1])
    leaks = _Leaks(collection)
    characters, words, hashes = array("q"), array("q"), array("Q")
    places: list[int] = []
    for document in collection.documents.values():
        key = document.id
        text = folded(document.full_text)
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
        count = text.count(" ") + 1 if text else 0
        characters.append(len(document.full_text))
        words.append(count)
        # Empty texts are not duplicates: each has a unique number.
        number = int.from_bytes(digest.digest(), "little") if count else len(hashes)
        hashes.append(number)
        if not count:
            found.empty.append(key)
            if key in relevant:
                found.relevant_empty.append(key)
        if count and key in relevant:
            places.append(len(hashes) - 1)
        if key in collection.queries:
            found.same_ids.append(key)
        for missing in wanted:
            missing.pop(key, None)
        leaks.search(document)
    found.characters, found.words = np.array(characters), np.array(words)
    found.missing = [list(rest) for rest in wanted]
    found.absent = [] if judged is None else found.missing.pop()
    found.leaks = leaks.found
    _repeats(found, collection, np.frombuffer(hashes, dtype=np.uint64), places)
    return found


def _repeats(found: Scan, collection: Collection, hashes: npt.NDArray[np.uint64], relevant: Sequence[int]) -> None:
    """Record the first repeated documents, and all that repeat a relevant document."""
    if len(hashes) < 2:
        return
    _, first, numbers = np.unique(hashes, return_index=True, return_inverse=True)
    original = first[numbers]
    later = np.flatnonzero(original != np.arange(len(hashes)))
    found.repeats = len(later)
    if not len(later):
        return
    pairs = [(int(place), int(original[place])) for place in later[:_EXAMPLES]]
    groups: dict[int, list[int]] = {}
    for place in later[np.isin(original[later], original[list(relevant)])].tolist():
        groups.setdefault(int(original[place]), [int(original[place])]).append(place)
    places = {place for pair in pairs for place in pair}.union(*groups.values())
    names: dict[int, str] = {}
    for place, key in enumerate(collection.documents):
        if place in places:
            names[place] = key
        if len(names) == len(places):
            break
    found.first_repeats = [(names[place], names[one]) for place, one in pairs]
    found.twins = [tuple(names[place] for place in group) for group in groups.values()]

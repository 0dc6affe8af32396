"""A run of plain dicts joined with judgments as it is, without a table of it.

What measures read of a run are the ranks of its judged documents. A dict finds these documents by
itself, and their ranks are counted in the sorted scores; ids are compared only inside groups of
equal scores that hold a judged document. Everything that a table of the run would refuse is still
looked for, a whole query at a time: where something is unusual in any way, this module declines,
and the table is made, which finds it and says what it is.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from rankgauge.ids import Ids, IntArray, show_id
from rankgauge.join import Joined
from rankgauge.judged import BoolArray
from rankgauge.model import Qrels, Ties
from rankgauge.table import offsets_of

__all__ = ["Mapped", "mapped"]

# Of these it is known what a look at their keys and values does.
_DICTS = {dict, defaultdict, OrderedDict}
_NUMBERS = (float, int, np.floating, np.integer)
# Up to here a whole number is the same as a float.
_EXACT = 2.0**53
# Queries that are joined at a time: bounds what is kept of them in Python's objects.
_BLOCK = 2048
# So many ids are searched for in a text before it is quicker to look at the type of each.
_FEW = 8


@dataclass(frozen=True, eq=False)
class Mapped:
    """A run of dicts and its join.

    Attributes:
        joined: The ranks of its judged documents.
        queries: Its queries.
        rankings: The documents of each.
    """

    joined: Joined
    queries: Sequence[str]
    rankings: Sequence[Mapping[str, float]]

    def documents(self) -> int:
        """How many rows it has."""
        return sum(map(len, self.rankings))

    def unknown(self) -> Iterator[bytes]:
        """The queries without judgments."""
        return (self.queries[place].encode() for place in self.joined.unknown_queries.tolist())

    def first(self, number: int) -> list[str]:
        """Its first queries, as they are shown."""
        return [show_id(query.encode()) for query in self.queries[:number]]

    def sample(self, number: int) -> Ids:
        """Its first documents."""
        return Ids.of(list(islice(chain.from_iterable(self.rankings), number)))


def mapped(qrels: Qrels, run: Any, *, ties: Ties) -> Mapped | None:
    """Join a run of dicts; None if it is not as simple as that.

    Args:
        qrels: The judgments.
        run: Query id to document id to score.
        ties: ``trec`` or ``input``.
    """
    if type(run) not in _DICTS or not set(map(type, run.values())) <= _DICTS:
        return None
    queries, rankings = list(run), list(run.values())
    if set(map(type, queries)) != {str} or not _are_ids("\n".join(queries)):
        return None
    known, documents = qrels.texts
    numbers = [known.get(query, -1) for query in queries]
    blocks = []
    for start in range(0, len(queries), _BLOCK):
        block = _Block(ties)
        part = slice(start, start + _BLOCK)
        for ranking, number in zip(rankings[part], numbers[part], strict=True):
            try:
                simple = block.add(ranking, documents[number] if number >= 0 else ())
            except (TypeError, ValueError, ArithmeticError, RuntimeError):
                # A key that is no text, or scores that cannot be added or compared.
                return None
            if not simple:
                return None
        blocks.append(block.ranks())
    return Mapped(_joined(qrels, np.array(numbers), rankings, blocks), queries, rankings)


class _Block:
    """The ranks of judged documents, gathered from a few queries."""

    def __init__(self, ties: Ties) -> None:
        self._ties = ties
        # For each judgment its document's score, for each score that is there how many are lower,
        # and how many are not higher.
        self._scores: list[float | None] = []
        self._lower: list[int] = []
        self._upto: list[int] = []
        # For each query how many are there, and how many documents were retrieved.
        self._found: list[int] = []
        self._sizes: list[int] = []
        # How far below the first of its group of equal scores one stands.
        self._moved: dict[int, int] = {}

    def add(self, ranking: Mapping[str, float], judged: Sequence[str]) -> bool:
        """Take one more query; False where something about it is not simple."""
        if not ranking:
            self._scores += [None] * len(judged)
            return True
        text = "\n".join(ranking)
        if not _are_ids(text):
            return False
        ordered = _ascending(ranking)
        if ordered is None:
            plain = _of_floats(ranking)
            if plain is None:
                return False
            ranking, ordered = plain, sorted(plain.values())
        scores = [*map(ranking.get, judged)]
        found = [score for score in scores if score is not None]
        if len(found) < len(judged) and not _all_seen(ranking, text, judged, scores):
            return False
        lower = [bisect_left(ordered, score) for score in found]
        upto = [bisect_right(ordered, score) for score in found]
        if sum(upto) - sum(lower) > len(found):
            docs = [doc for doc, score in zip(judged, scores, strict=True) if score is not None]
            self._break_ties(ranking, docs, lower, upto)
        self._scores += scores
        self._lower += lower
        self._upto += upto
        self._found.append(len(found))
        self._sizes.append(len(ordered))
        return True

    def _break_ties(
        self, ranking: Mapping[str, float], docs: list[str], lower: list[int], upto: list[int]
    ) -> None:
        """Find the place of each of these documents in its group of equal scores."""
        tied = [doc for doc, a, b in zip(docs, lower, upto, strict=True) if b - a > 1]
        groups: dict[float, list[str]] = {ranking[doc]: [] for doc in tied}
        for doc, score in ranking.items():
            if score in groups:
                groups[score].append(doc)
        if self._ties == "trec":
            for group in groups.values():
                # Text stands in the order of its characters, which is that of their bytes.
                group.sort(reverse=True)
        places = {doc: place for group in groups.values() for place, doc in enumerate(group)}
        start = len(self._lower)
        self._moved.update((start + n, places[doc]) for n, doc in enumerate(docs) if doc in places)

    def ranks(self) -> _Ranks:
        """All of them."""
        lower, upto = np.array(self._lower, np.int64), np.array(self._upto, np.int64)
        sizes = np.repeat(np.array(self._sizes, np.int64), self._found)
        first = sizes - upto + 1
        rank = first.copy()
        rank[list(self._moved)] += np.fromiter(self._moved.values(), np.int64, len(self._moved))
        retrieved = np.array([score is not None for score in self._scores], dtype=bool)
        return _Ranks(retrieved, rank, first, sizes - lower)


class _Ranks(NamedTuple):
    """Ranks of judged documents, query by query.

    Attributes:
        retrieved: For each judgment whether its document was retrieved.
        rank: The rank of each that was.
        first: The first rank of its group of equal scores.
        last: The last one.
    """

    retrieved: BoolArray
    rank: IntArray
    first: IntArray
    last: IntArray


def _are_ids(text: str) -> bool:
    """Whether ids, joined by line feeds, are sound: none empty, no NUL, no lone surrogate."""
    if "\0" in text or "\n\n" in f"\n{text}\n":
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ascending(ranking: Mapping[str, float]) -> list[float] | None:
    """Its scores, sorted; None where they are not surely comparable as floats are.

    A sum tells at once whether all are finite. It is a float if all scores are, or whole numbers
    beside floats, which compare like floats where they are not too large.
    """
    scores = [*ranking.values()]
    whole = sum(scores)
    if type(whole) is not float or not math.isfinite(whole):
        return None
    # Most rankings have the best first: turned round they are nearly sorted.
    scores.reverse()
    scores.sort()
    lowest, highest = scores[0], scores[-1]
    if not type(lowest) is float is type(highest):
        return None
    small = lowest > -_EXACT and highest < _EXACT
    return scores if small or set(map(type, scores)) == {float} else None


def _of_floats(ranking: Mapping[str, float]) -> dict[str, float] | None:
    """The ranking with floats for its numbers; None if some are of another kind, or not finite."""
    if not all(issubclass(kind, _NUMBERS) for kind in set(map(type, ranking.values()))):
        return None
    with np.errstate(over="ignore"):  # too large is infinite
        scores = np.fromiter(ranking.values(), np.float64, len(ranking))
    return dict(zip(ranking, scores.tolist(), strict=True)) if np.isfinite(scores).all() else None


def _all_seen(
    ranking: Mapping[str, float], text: str, judged: Sequence[str], scores: Sequence[float | None]
) -> bool:
    """Whether a judged document that was not found is surely not there.

    A class of text may have a hash of its own (an enumeration has), and a dict does not find its
    members by their text. If there is one, its text is in that of the ranking.
    """
    missing = [doc for doc, score in zip(judged, scores, strict=True) if score is None]
    if len(missing) < _FEW and not any(map(text.__contains__, missing)):
        return True
    return set(map(type, ranking)) == {str}


def _joined(
    qrels: Qrels, of_run: IntArray, rankings: Iterable[Mapping[str, float]], blocks: list[_Ranks]
) -> Joined:
    """The ranks of all queries, in the order of the judgments."""
    retrieved, rank, first, last = map(np.concatenate, zip(*blocks, strict=True))
    judged = of_run[of_run >= 0]
    starts, sizes = qrels.table.offsets[judged], np.diff(qrels.table.offsets)[judged]
    number = np.repeat(judged, sizes)[retrieved]
    ends = np.cumsum(sizes)
    rows = (np.repeat(starts - (ends - sizes), sizes) + np.arange(len(retrieved)))[retrieved]
    by_number = np.argsort(of_run, kind="stable")[len(of_run) - len(judged) :]
    numbers = of_run[by_number]
    order = np.lexsort((rank, number))
    counts = np.bincount(np.searchsorted(numbers, number), minlength=len(numbers))
    return Joined(
        qrels=qrels,
        numbers=numbers,
        offsets=offsets_of(counts),
        rank=rank[order],
        tie_first=first[order],
        tie_last=last[order],
        grade=qrels.table.values[rows[order]],
        retrieved=np.array([len(ranking) for ranking in rankings], dtype=np.int64)[by_number],
        unknown_queries=np.flatnonzero(of_run < 0),
    )

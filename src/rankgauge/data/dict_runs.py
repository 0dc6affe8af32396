"""Join a run of plain dicts with judgments directly, without building a table of the run.

Measures read only the ranks of judged documents. The dicts look these documents up, and their ranks
are counted in the sorted scores; ids are compared only within groups of equal scores that contain a
judged document. Everything that a table of the run would refuse is still checked, a whole query at
a time: if anything is unusual, this module declines, and the table is built, which reports the
fault.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from rankgauge.core import native
from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import ranges_of
from rankgauge.core.policies import BY_GRADE, Ties
from rankgauge.data.join import Joined
from rankgauge.data.judged_run import BoolArray
from rankgauge.data.qrels import Qrels
from rankgauge.formats.columns import RUN, columns_of
from rankgauge.formats.numbers import is_lost

# Types whose iteration has no side effects.
_DICTS = {dict, defaultdict, OrderedDict}
# Not their subclasses, which may define __float__.
_NUMBERS = {float, int, bool}
# Integers of smaller magnitude are exact as floats.
_EXACT = 2.0**53
# With more groups of equal scores, one pass over the ranking is faster than one per group.
_FEW_GROUPS = 16
# Queries joined at a time, to bound the memory of their Python objects.
_BLOCK = 2048
# From tables of 2**15 slots on, size says nothing about key types; each key is checked.
_SIZED = 15
# Shorter rankings may rise by chance.
_LEAST = 3


@dataclass(frozen=True, eq=False)
class JoinedDicts:
    """A run of dicts and its join."""

    joined: Joined  # ranks of the judged documents
    queries: Sequence[str]  # queries of the run
    rankings: Sequence[Mapping[str, float]]  # ranking of each query

    def documents(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self.rankings))

    def spread(self) -> tuple[int, int]:
        """Return two flags, 0 or 1: whether a ranking has two documents, and two scores."""
        longer = 0
        for ranking in self.rankings:
            if len(ranking) > 1:
                # Usually decided by the first pair.
                if any(score != other for score, other in pairwise(ranking.values())):
                    return 1, 1
                longer = 1
        return longer, 0

    def rising(self) -> tuple[int, int]:
        """Count rankings with rising and with different scores, like `PairTable.rising`."""
        rising = varied = 0
        for ranking in self.rankings:
            if len(ranking) < _LEAST:
                continue
            scores = iter(ranking.values())
            # Usually decided by the first pair.
            if next(scores) > next(scores) or any(
                score > other for score, other in pairwise(ranking.values())
            ):
                varied += 1
            elif any(score != other for score, other in pairwise(ranking.values())):
                rising, varied = rising + 1, varied + 1
        return rising, varied

    def unknown(self) -> list[bytes]:
        """Return the queries without judgments."""
        return [self.queries[place].encode() for place in self.joined.unknown_queries.tolist()]

    def first_documents(self, queries: int, documents: int) -> dict[int, Sequence[str | bytes]]:
        """Return the first documents of the first judged queries, by query number."""
        places = zip(
            self.joined.numbers.tolist(), self.joined.in_run[:queries].tolist(), strict=False
        )
        return {number: [*islice(self.rankings[place], documents)] for number, place in places}


def scored(run: Any) -> Any:
    """Convert a run of plain lists to dicts, giving the first documents the highest scores.

    Any other run is returned unchanged, as is one in which a list contains a duplicate.
    """
    if type(run) is not dict or set(map(type, run.values())) != {list}:
        return run
    if columns_of(run, RUN) is not None:
        return run
    longest = max(map(len, run.values()))
    scores = [*map(float, range(longest, 0, -1))]
    found = {}
    for query, docs in run.items():
        try:
            ranking = dict(zip(docs, islice(scores, longest - len(docs), None), strict=True))
        except TypeError:
            # A document that is a list or otherwise unhashable.
            return run
        if len(ranking) < len(docs):
            return run
        found[query] = ranking
    return found


def join_dicts(qrels: Qrels, run: Any, *, ties: Ties) -> JoinedDicts | None:
    """Join a run of dicts, or return None if it needs the general join."""
    if type(run) not in _DICTS or not set(map(type, run.values())) <= _DICTS:
        return None
    queries, rankings = list(run), list(run.values())
    if set(map(type, queries)) != {str} or not are_ids("\n".join(queries), run):
        return None
    known, documents = qrels.texts
    numbers = [known.get(query, -1) for query in queries]
    pools = [documents[number] if number >= 0 else () for number in numbers]
    blocks = []
    for start in range(0, len(queries), _BLOCK):
        part = slice(start, start + _BLOCK)
        try:
            # Adding NumPy numbers may emit warnings; such sums are only a preliminary check here.
            with np.errstate(all="ignore"):
                ranks = _ranks_of(rankings[part], pools[part], ties)
        except (TypeError, ValueError, ArithmeticError, RuntimeError):
            # A key that is not text, or scores that cannot be added or compared.
            return None
        if ranks is None:
            return None
        blocks.append(ranks)
    retrieved, *found = (
        map(np.concatenate, zip(*blocks, strict=True)) if len(blocks) > 1 else blocks[0]
    )
    of_run = np.array(numbers)
    judged = of_run[of_run >= 0]
    starts = qrels.table.offsets[judged]
    rows = ranges_of(starts, qrels.table.offsets[judged + 1] - starts)[retrieved]
    sizes = np.array([len(ranking) for ranking in rankings], dtype=np.int64)
    joined = Joined.of_entries(qrels, of_run, rows, found, retrieved=sizes, ties=ties)
    return JoinedDicts(joined, queries, rankings)


class _Ranks(NamedTuple):
    """Ranks of judged documents, query by query."""

    retrieved: BoolArray
    rank: IntArray
    first: IntArray
    last: IntArray


def _ranks_of(
    rankings: list[Mapping[str, float]], pools: list[tuple[str, ...]], ties: Ties
) -> _Ranks | None:
    """Return the ranks of judged documents, using the compiled core if possible."""
    if native.core is not None:
        found = native.core.join_dicts(rankings, pools, ties == "trec")
        if found is not None:
            ranks = np.frombuffer(found[1], np.int64).reshape(-1, 3).T
            return _Ranks(np.frombuffer(found[0], bool), *ranks)
    return _ranks(rankings, pools, ties)


def _ranks(
    rankings: Sequence[Mapping[str, float]], pools: Sequence[tuple[str, ...]], ties: Ties
) -> _Ranks | None:
    """Return the ranks of judged documents; None if a ranking is unusual."""
    # Score of each judged document or None; for retrieved ones, the number of lower scores.
    scores: list[float | None] = []
    lower: list[int] = []
    # Per query: number of judged documents retrieved, and number of documents retrieved.
    found: list[int] = []
    sizes: list[int] = []
    tied: dict[int, tuple[int, int]] = {}
    for ranking, pool in zip(rankings, pools, strict=True):
        if not ranking:
            scores += [None] * len(pool)
            continue
        ids = "\n".join(ranking)
        if not (_all_plain(ranking) and are_ids(ids, ranking)):
            return None
        ordered = _ascending(ranking)
        if ordered is None:
            plain = _of_floats(ranking)
            if plain is None:
                return None
            ranking, ordered = plain, sorted(plain.values())  # noqa: PLW2901 - the same ranking
        of_pool = [*map(ranking.get, pool)]
        known = [score for score in of_pool if score is not None]
        below = [bisect_left(ordered, score) for score in known]
        ordered.append(math.inf)
        equal = {score for a, score in zip(below, known, strict=True) if ordered[a + 1] == score}
        if equal:
            above = _above(ranking, equal, ties) if ties not in BY_GRADE else defaultdict(int)
            docs = [doc for doc, score in zip(pool, of_pool, strict=True) if score is not None]
            for entry, (doc, score) in enumerate(zip(docs, known, strict=True), len(lower)):
                if score in equal:
                    upto = bisect_right(ordered, score, 0, len(ranking))
                    tied[entry] = (len(ranking) - upto + 1, above[doc])
        scores += of_pool
        lower += below
        found.append(len(known))
        sizes.append(len(ranking))
    last = np.repeat(np.array(sizes, np.int64), found) - np.array(lower, np.int64)
    first, rank = last.copy(), last.copy()
    if tied:
        entries = list(tied)
        first[entries], above_them = np.array(list(tied.values())).T
        rank[entries] = first[entries] + above_them
    retrieved = np.array([score is not None for score in scores], dtype=bool)
    return _Ranks(retrieved, rank, first, last)


def _above(ranking: Mapping[str, float], equal: set[float], ties: Ties) -> dict[str, int]:
    """Return, for each document with one of these scores, how many with its score rank above it."""
    above: dict[str, int] = {}
    for group in _groups(ranking, equal):
        if ties == "trec":
            # Strings sort by code point, which is the order of their UTF-8 bytes.
            group.sort(reverse=True)
        above.update(zip(group, range(len(group)), strict=True))
    return above


def _groups(ranking: Mapping[str, float], equal: set[float]) -> Iterator[list[str]]:
    """Yield the documents with each of these scores, in input order."""
    if len(equal) > _FEW_GROUPS:
        groups: dict[float, list[str]] = {score: [] for score in equal}
        for doc, score in ranking.items():
            if score in groups:
                groups[score].append(doc)
        yield from groups.values()
        return
    docs = list(ranking)
    scores = np.fromiter(ranking.values(), np.float64, len(docs))
    for score in equal:
        yield [docs[row] for row in np.flatnonzero(scores == score).tolist()]


def are_ids(text: str, ids: Container[str]) -> bool:
    """Return whether these ids, joined into `text`, are valid: not empty, no NUL, no surrogate."""
    if "" in ids or "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ascending(ranking: Mapping[str, float]) -> list[float] | None:
    """Return the sorted scores; None if they may not compare like floats.

    Their sum shows whether all are finite. It is a float if all scores are floats, or integers
    mixed with floats, which compare like floats if they are not too large.
    """
    scores = [*ranking.values()]
    whole = sum(scores)
    if type(whole) is not float or not math.isfinite(whole):
        return None
    # Most rankings are best first: reversed, they are nearly sorted.
    scores.reverse()
    scores.sort()
    lowest, highest = scores[0], scores[-1]
    if not type(lowest) is float is type(highest):
        return None
    small = lowest > -_EXACT and highest < _EXACT
    return scores if set(map(type, scores)) <= ({float, int} if small else {float}) else None


def _of_floats(ranking: Mapping[str, float]) -> dict[str, float] | None:
    """Convert scores to floats; return None if some are of another type or not finite."""
    kinds = set(map(type, ranking.values())) - _NUMBERS
    if not all(issubclass(kind, np.floating | np.integer) for kind in kinds):
        return None
    with np.errstate(over="ignore"):  # overflow gives infinity
        scores = np.fromiter(ranking.values(), np.float64, len(ranking))
    if not np.isfinite(scores).all():
        return None
    found = dict(zip(ranking, scores.tolist(), strict=True))
    if np.abs(scores).max() >= _EXACT and any(map(is_lost, ranking.values(), found.values())):
        return None
    return found


def _all_plain(ranking: Mapping[str, float]) -> bool:
    """Return whether all keys are plain strings, not of a subclass.

    A subclass may define its own hash, so that lookup by plain text would fail.
    """
    return sys.getsizeof(ranking) in _plain_sizes() or set(map(type, ranking)) == {str}


@cache
def _plain_sizes() -> frozenset[int]:
    """Return the known dict sizes that imply that all keys are plain strings.

    CPython does not store hashes for such keys, so the size of a dict can reveal its key types. On
    other Pythons the sizes are equal, and the result is empty.
    """
    plain, others = set[int](), set[int]()
    for power in range(3, _SIZED):
        # Tables are filled to at most two thirds.
        keys = [str(number) for number in range((1 << power) * 2 // 3)]
        plain.add(sys.getsizeof(dict.fromkeys(keys)))
        others.add(sys.getsizeof(dict.fromkeys([_Text(""), *keys[1:]])))
    return frozenset(plain - others)


class _Text(str):
    """An arbitrary subclass of str."""

    __slots__ = ()

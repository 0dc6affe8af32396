"""Join a run of plain dicts with judgments directly, without building a table of the run.

Measures read only the ranks of judged documents. The dicts look these documents up, and their ranks
are counted in the sorted scores; ids are compared only within groups of equal scores that contain a
judged document. Everything that a table of the run would refuse is still checked, a whole query at
a time: if anything is unusual, this module declines, and the table is built, which reports the
fault.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from rankgauge.core import native
from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import ranges_of
from rankgauge.core.policies import Ties
from rankgauge.data.join import Joined
from rankgauge.data.judged_run import BoolArray
from rankgauge.data.qrels import Qrels
from rankgauge.formats.columns import RUN, columns_of

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
    """Return the ranks of judged documents; None if a ranking is unusual, or without the core."""
    found = None
    if native.core is not None:
        found = native.core.join_dicts(rankings, pools, ties == "trec")
    if found is None:
        return None
    ranks = np.frombuffer(found[1], np.int64).reshape(-1, 3).T
    return _Ranks(np.frombuffer(found[0], bool), *ranks)


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

"""Blocks of a run joined with judgments, with summaries for the checks of the input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import PairTable, offsets_of, ranges_of
from rankgauge.core.policies import Duplicates, Ties
from rankgauge.data.join import Joined, join
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run

# Integer values; float64 if they exceed 32 bits.
Ends: TypeAlias = npt.NDArray[np.float64 | np.int32]
# Sizes of the sample of ids: rankings, documents per ranking, and queries without judgments.
RANKINGS, DOCUMENTS, UNKNOWN = 50, 20, 5_000
_INT_32 = 2.0**31


class InputCounts(NamedTuple):
    """Counts that add up over blocks.

    Attributes:
        documents: Documents in the rankings.
        rising: Rankings whose scores increase in input order.
        varied: Rankings whose scores are not all equal.
        longer: Above 0 if a ranking has two or more documents.
        uneven: Above 0 if the scores of such a ranking are not all equal.
        removed: Repeated documents that were removed.
        unknown: Queries without judgments; a query in two blocks counts twice.
        unpaired: Above 0 if a ranking is not a list of pairs.
    """

    documents: int
    rising: int
    varied: int
    longer: int
    uneven: int
    removed: int = 0
    unknown: int = 0
    unpaired: int = 1


class InputSummary(NamedTuple):
    """Statistics of a run that the checks of the input read."""

    numbers: IntArray  # (n,) numbers of the judged queries in the run, ascending, evaluated or not
    # (n, 8) per query: retrieved documents; judged ones among them; number of relevant documents
    # and the sum of their ranks; the same two for documents judged not relevant; the rank of the
    # first relevant document from the top and from the end, 0 without one.
    ends: Ends
    tally: InputCounts
    unknown: tuple[bytes, ...]  # the first queries without judgments, ascending
    # Query number to the first documents of the ranking in input order, for the first `numbers`.
    rankings: Mapping[int, Sequence[str | bytes]]
    source: str = ""  # path of the run; empty if unknown
    notes: Mapping[str, int] = {}  # notes of the reader of the run, with their positions

    @property
    def without_judgments(self) -> int:
        """Number of queries without judgments."""
        few = self.tally.unknown <= UNKNOWN
        return len(self.unknown) if few else self.tally.unknown


class JoinedBlock(NamedTuple):
    """A block of a run, joined with judgments."""

    joined: Joined  # the ranks of its judged documents
    summary: InputSummary  # statistics for the checks of the input

    @classmethod
    def of(  # noqa: PLR0917 - the columns of a summary
        cls,
        joined: Joined,
        tally: InputCounts,
        unknown: Sequence[bytes],
        rankings: Mapping[int, Sequence[str | bytes]],
        source: str,
        notes: Iterable[str],
    ) -> JoinedBlock:
        """Summarize a block, given its queries without judgments and its first documents."""
        tally = tally._replace(unknown=len(unknown))
        places = {note: place for place, note in enumerate(notes)}
        first = first_ids(unknown)
        return cls(joined, InputSummary(joined.numbers, _ends(joined), tally, first, rankings, source, places))


def join_block(qrels: Qrels, run: Run, *, ties: Ties, duplicates: Duplicates) -> JoinedBlock:
    """Join a block of whole queries with judgments."""
    table = run.without_repeats(duplicates)
    joined = join(qrels, run, ties=ties, table=table)
    (rising, varied, *_), (*_, longer, uneven) = run.table.orders(), table.orders()
    tally = InputCounts(
        len(table),
        rising,
        varied,
        longer,
        uneven,
        removed=len(run.table) - len(table),
        unpaired=int(not run.table.paired),
    )
    unknown = run.table.queries.take(joined.unknown_queries).tolist()
    first = _first_documents(table, joined)
    return JoinedBlock.of(joined, tally, unknown, first, run.table.source, run.table.notes)


def first_ids(ids: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return the first of these queries, sorted, as in `InputSummary.unknown`."""
    different = set(ids)
    few = len(different) <= UNKNOWN
    return tuple(sorted(different) if few else nsmallest(UNKNOWN, different))


def merge_summaries(parts: list[InputSummary]) -> InputSummary:
    """Merge the summaries of blocks, in any order; `parts` is emptied to free memory."""
    numbers = np.concatenate([part.numbers for part in parts])
    order = np.argsort(numbers, kind="stable")
    rankings = sorted(item for part in parts for item in part.rankings.items())
    notes: dict[str, int] = {}
    for note, place in (item for part in parts for item in part.notes.items()):
        notes[note] = min(place, notes.get(note, place))
    tally = InputCounts(*map(sum, zip(*(part.tally for part in parts), strict=True)))
    unknown = first_ids(query for part in parts for query in part.unknown)
    source = min(filter(None, (part.source for part in parts)), default="")
    ends = [part.ends for part in parts]
    parts.clear()
    return InputSummary(numbers[order], _taken(ends, order), tally, unknown, dict(rankings[:RANKINGS]), source, notes)


def _taken(parts: list[Ends], order: IntArray) -> Ends:
    """Return the rows of all parts in this order; `parts` is emptied to free memory."""
    whole: Ends = np.concatenate(parts)
    parts.clear()
    return whole[order]


def _ends(joined: Joined) -> Ends:
    """Return the positions of judged documents in the rankings: `InputSummary.ends`."""
    starts, stops = joined.offsets[:-1], joined.offsets[1:]
    relevant, other = joined.grade > 0, joined.grade == 0
    sums = np.zeros((4, len(joined.grade) + 1))
    sums[0, 1:], sums[2, 1:] = relevant, other
    np.multiply(sums[::2, 1:], joined.rank, out=sums[1::2, 1:])
    np.cumsum(sums, axis=1, out=sums)
    before = sums[:, starts]
    ends = np.zeros((len(starts), 8))
    ends[:, 0], ends[:, 1] = joined.retrieved, stops - starts
    ends[:, 2:6] = (sums[:, stops] - before).T
    found = np.flatnonzero(ends[:, 2])
    if len(found):
        rows, first = np.flatnonzero(relevant), before[0, found].astype(np.int64)
        # Ranks as if the lowest score were the best; ties keep their order.
        last = np.repeat(joined.retrieved[found], ends[found, 2].astype(np.int64)) + 1
        end = last - joined.tie_last[rows] + joined.rank[rows] - joined.tie_first[rows]
        ends[found, 6], ends[found, 7] = joined.rank[rows[first]], np.minimum.reduceat(end, first)
    # Saves half the memory; the integers are unchanged.
    return ends.astype(np.int32) if ends.max(initial=0) < _INT_32 else ends


def _first_documents(table: PairTable, joined: Joined) -> dict[int, Sequence[str | bytes]]:
    """Return the first documents of the first judged queries, in input order."""
    queries = joined.in_run[:RANKINGS]
    starts, sizes = table.offsets[queries], np.minimum(np.diff(table.offsets)[queries], DOCUMENTS)
    docs = table.docs.take(ranges_of(starts, sizes)).tolist()
    parts = pairwise(offsets_of(sizes).tolist())
    return {number: docs[a:b] for number, (a, b) in zip(joined.numbers.tolist(), parts, strict=False)}

"""Runs from any source, joined with judgments block by block.

`map_joined` is the only place that chooses how a source is read and joined. The compiled core
reads and joins plain dicts, and most files, in one pass, one ranking at a time: the lines of a
query, its rows of a columnar file, or a dict. It declines unusual sources, which are then read into
a table and joined by `join`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from heapq import nsmallest
from itertools import chain, count, islice, pairwise, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from rankgauge.core import native
from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import FloatArray, PairTable, distinct, offsets_of, ranges_of
from rankgauge.core.policies import Policies
from rankgauge.core.threads import check_stopped, map_in_threads
from rankgauge.data.join import Joined, join
from rankgauge.data.judged_run import discount_table
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run, joined_run, run_name
from rankgauge.errors import InputError
from rankgauge.formats.columns import RUN, columns_of
from rankgauge.formats.fast_trec import LinesPiece
from rankgauge.formats.frames import is_frame
from rankgauge.formats.pieces import PairFile, adjacent

if TYPE_CHECKING:
    # Only needed for judgments that do not fit in memory.
    from rankgauge.data.storage import StoredQrels

_T = TypeVar("_T")
# Integer values; float64 if they exceed 32 bits.
Ends: TypeAlias = npt.NDArray[np.float64 | np.int32]
# Sizes of the sample of ids: rankings, documents per ranking, and queries without judgments.
RANKINGS, DOCUMENTS, UNKNOWN = 50, 20, 5_000
# Number of rankings plus judged documents that are measured together, to limit memory.
_AT_ONCE = 1 << 17


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

    def renumbered(self, numbers: IntArray) -> InputSummary:
        """Return the summary with `numbers[n]` in place of the query number n."""
        rankings = {int(numbers[number]): docs for number, docs in self.rankings.items()}
        return self._replace(numbers=numbers[self.numbers], rankings=rankings)


class Judgments(NamedTuple):
    """Judgments and policies for the join with a run."""

    qrels: Qrels
    graded: Qrels  # judgments with grades; mostly the same object
    policies: Policies
    # Instructions for the compiled core (see `measures.compiled`); None if it cannot apply them.
    program: FloatArray | None = None
    unjudged: int = 0  # see `Joined.tied`
    # Judgments on disk; `qrels` then has only the data for notes and checks.
    stored: StoredQrels | None = None

    def part(self, numbers: IntArray) -> Judgments:
        """Return those of the queries with these numbers (ascending), read from disk."""
        assert self.stored is not None  # noqa: S101 - only called for these
        part = self.stored.part(numbers)
        return self._replace(qrels=part, graded=part, stored=None)


class JoinedBlock(NamedTuple):
    """A block of a run, joined with judgments."""

    summary: InputSummary
    joined: Callable[[], Joined]  # returns the ranks of its judged documents
    graded: Joined | None = None  # those by `Judgments.graded`, if that is another object
    name: str = Run.name  # name of the run
    settings: Mapping[str, Any] = {}  # settings of the retriever
    # (M, n) results of the instructions, if the compiled core carried them out, and the number of
    # queries that a different order of ties could change
    cells: FloatArray | None = None
    tied: int = 0
    declined: int = 0  # number of values in `cells` that NumPy must compute
    # With judgments on disk, the number of each query of the part that was read.
    numbers: IntArray | None = None
    unknown: Sequence[bytes] = ()  # queries without judgments, if it is a block of a file


def map_joined(
    source: Any,
    judgments: Judgments,
    function: Callable[[JoinedBlock], _T],
    *,
    memory: int | None = None,
    jobs: int = 1,
) -> list[_T]:
    """Join a run from any source, call `function` with each block, and return the results.

    `memory` limits the memory of a file, in bytes; `jobs` threads read a large file.
    """
    fused = judgments.stored is None and judgments.graded is judgments.qrels

    def join_any(block: Any) -> _T:
        joined = join_dicts(block, judgments) if fused else None
        return function(joined or join_block(block, judgments))

    if not isinstance(source, str | os.PathLike):
        blocks = _blocks_of(source) if isinstance(source, Iterator) else [source]
        return [join_any(block) for block in blocks]
    file, results = PairFile(source, RUN, memory), None
    if fused and file.again:
        # The other reader reports an error with its line number.
        with suppress(InputError):
            results = join_parts(file, judgments, function, jobs) or join_file(file, judgments, function)
    return results or map_file(file, join_any)


def map_blocks(source: Any, function: Callable[[Run], _T], name: str | None = None) -> list[_T]:
    """Call `function` with each block of a run, and return the results.

    A block contains whole queries and is valid only during the call. A file that cannot be read in
    blocks, and any other source that :meth:`Run.of` accepts, is passed as one block. If the
    function rejects a block, it is called again with the whole run, so that messages contain line
    numbers.
    """
    if not isinstance(source, str | os.PathLike):
        return [function(Run.of(source, name=name))]
    return map_file(PairFile(source, RUN), function, name)


def map_file(file: PairFile, function: Callable[[Run], _T], name: str | None = None) -> list[_T]:
    """Call `function` with each block of a run file as :func:`map_blocks` does.

    With a memory limit, no file is read whole: if the rows of a query are not adjacent, they are
    first partitioned into buckets on disk.
    """
    called = run_name(file.source) if name is None else name
    if file.memory is None:
        with suppress(InputError):
            return [function(Run(table, name=called)) for table in file.blocks()]
        return [function(Run.of(file.source, name=name))]
    from rankgauge.data.storage import use_whole_queries

    return use_whole_queries(file, lambda parts: [function(Run(part.table, name=called)) for part in parts])


def read_part(source: Any, part: Callable[[Run], Run]) -> Run:
    """Apply `part` to a run; for a file, block by block, so that only the result is kept."""
    if not isinstance(source, str | os.PathLike):
        return part(Run.of(source))

    def kept(block: Run) -> Run:
        some = part(block)
        return replace(some, table=some.table.compact())

    return joined_run(map_blocks(source, kept))


def join_block(block: Any, judgments: Judgments) -> JoinedBlock:
    """Join a block of whole queries: a run, or anything that :meth:`Run.of` accepts."""
    run, numbers = Run.of(block), None
    once = run.without_repeats(judgments.policies.duplicates)
    if judgments.stored is not None:
        places = judgments.stored.numbers_of(run.table.queries)
        numbers = np.sort(places[places >= 0])
        judgments = judgments.part(numbers)
    qrels, graded, policies = judgments[:3]
    joined, table = join(qrels, once, ties=policies.ties), once.table
    by_grade = None if graded is qrels else join(graded, once, ties=policies.ties)
    (rising, varied, *_), (*_, longer, uneven) = run.table.orders(), table.orders()
    removed, unpaired = len(run.table) - len(table), int(not run.table.paired)
    tally = InputCounts(len(table), rising, varied, longer, uneven, removed, unpaired=unpaired)
    unknown = run.table.queries.take(joined.unknown_queries).tolist()
    summary = _summary(joined, tally, unknown, _first_documents(table, joined))._replace(
        source=run.table.source, notes=dict(zip(run.table.notes, count()))
    )
    return JoinedBlock(summary, lambda: joined, by_grade, run.name, run.settings, numbers=numbers)


def _blocks_of(run: Iterator[Any]) -> Iterator[Any]:
    """Yield the blocks of an iterator of blocks; yield an iterator of rows whole."""
    first = next(run, None)
    if first is None:
        raise InputError("the iterator is empty", where="run", fix="yield at least one block of queries")
    if not _is_block(first):
        yield chain([first], run)
        return
    yield first
    yield from run


def _is_block(item: Any) -> bool:
    """Return whether an item of an iterator is a block of queries, not a row of a run."""
    if isinstance(item, Run):
        return True
    if isinstance(item, Mapping):
        if all(isinstance(ranking, Mapping) for ranking in item.values()):
            return True  # no need to read all names as those of columns
        columns = columns_of(item, RUN)
        return columns is None or not isinstance(item[columns.query], str | int | bytes)
    return is_frame(item)


# Orders of equal scores in the compiled core; others keep the input order.
_ORDERS = {"trec": 1, "best": 2, "worst": 3, "mean": 4}


def join_dicts(run: Any, judgments: Judgments) -> JoinedBlock | None:
    """Join and measure a run of dicts or lists in the compiled core; None if it declines the run."""
    qrels, ties = judgments.qrels, judgments.policies.ties
    if native.core is None or type(run) is not dict:
        return None
    kinds = {*map(type, run.values())}
    if kinds == {list}:
        run = _scored(run)
    elif not kinds <= {dict}:
        return None
    steps = np.zeros((0, 5)) if judgments.program is None else judgments.program
    deepest = max(0, qrels.largest_pool, *map(len, run.values()))
    columns = (qrels.table.values, qrels.table.offsets, *qrels.ideal, discount_table(deepest))
    texts, how = (qrels.query_names, qrels.table.docs.texts), (_ORDERS.get(ties, 0), judgments.unjudged)
    measured = native.core.measure_dicts(run, *texts, columns, steps, (RANKINGS, DOCUMENTS), *how)
    if measured is None:
        return None
    numbered, cells, ends, (*counts, tied, declined), names, rankings, rows, ranks = measured
    numbers, positions = np.frombuffer(numbered, np.int64), np.frombuffer(ends).reshape(-1, 8)
    tally, unknown = InputCounts(*counts), [query.encode() for query in names]

    def joined() -> Joined:
        return _of_entries(qrels, ties, (numbers, positions[:, 0].astype(np.int64), rows, ranks))

    if judgments.program is None:
        block = joined()
        return JoinedBlock(_summary(block, tally, unknown, rankings), lambda: block)
    summary = InputSummary(numbers, positions, tally, first_ids(unknown) if unknown else (), rankings)
    values = np.frombuffer(cells).reshape(len(steps), len(numbers))
    return JoinedBlock(summary, joined, cells=values, tied=tied, declined=declined)


def _scored(run: dict[Any, list[Any]]) -> dict[Any, Any]:
    """Convert a run of lists to dicts, giving the first documents the highest scores.

    A run in which a list contains a duplicate, or that is a table of columns, is returned unchanged.
    """
    if columns_of(run, RUN) is not None:
        return run
    longest = max(map(len, run.values()))
    scores = [*map(float, range(longest, 0, -1))]
    rankings = {}
    for query, docs in run.items():
        try:
            ranking = dict(zip(docs, islice(scores, longest - len(docs), None), strict=True))
        except TypeError:
            # A document that is a list or otherwise unhashable.
            return run
        if len(ranking) < len(docs):
            return run
        rankings[query] = ranking
    return rankings


def join_parts(
    file: PairFile, judgments: Judgments, function: Callable[[JoinedBlock], _T], jobs: int
) -> list[_T] | None:
    """Join each part of a large file in a thread; None if a part is declined or two contain the same query."""
    parts, queries = file.parts(jobs), [np.zeros(0, np.int64)]

    def noted(block: JoinedBlock) -> _T:
        # Different ids with equal hashes only cost time: the file is then read by one thread.
        queries.extend([block.summary.numbers, np.fromiter(map(hash, block.unknown), np.int64, len(block.unknown))])
        return function(block)

    joined = map_in_threads(lambda part: join_file(file, judgments, noted, part), parts, max(1, len(parts)))
    # If a part is declined, the other threads end.
    results = [*takewhile(lambda found: found is not None, joined)]
    seen = np.concatenate(queries)
    declined = len(results) < len(parts) or len(distinct(seen)) < len(seen)
    return None if declined else [result for found in results for result in found or ()]


def join_file(
    file: PairFile,
    judgments: Judgments,
    function: Callable[[JoinedBlock], _T],
    part: tuple[int, int] | None = None,
) -> list[_T] | None:
    """Join a file, or a part of it, in blocks in the compiled core; return None if it declines the file."""
    core, qrels, ties = native.core, judgments.qrels, judgments.policies.ties
    # There are no judgments for the core if too many ids have one hash.
    if core is None or qrels.judged is None:
        return None
    names, results = qrels.table.queries.columns(), list[_T]()
    run, by_line = core.lines_run(*names, RANKINGS, DOCUMENTS), False

    def add_part(notes: Iterable[str]) -> None:
        """Add the result of the part that the compiled core holds in `run`, and clear it there."""
        of_run, retrieved, rows, ranks, tally, unknown, heads = core.joined_lines(run)
        entries = np.frombuffer(of_run, np.int64), np.frombuffer(retrieved, np.int64), rows, ranks
        joined = _of_entries(qrels, ties, entries)
        rankings = {number: heads[number].split(b"\0")[:-1] for number in sorted(heads)}
        summary = _summary(joined, InputCounts(*tally), unknown, rankings)
        summary = summary._replace(source=file.name, notes=dict(zip(notes, count())))
        results.append(function(JoinedBlock(summary, lambda: joined, name=run_name(file.source), unknown=unknown)))

    def read(lines: LinesPiece, notes: tuple[str, ...]) -> int | None:
        nonlocal by_line
        by_line = True
        taken = core.join_lines(run, qrels.judged, *lines, ties == "trec")
        if taken is None:
            return None
        end, held = taken
        if lines.last or held > _AT_ONCE:
            add_part(notes)
        return end

    complete = file.pass_lines(read, part)
    # Without a memory limit, tables of lines that are declined would be declined, too.
    if complete or part is not None or (by_line and file.memory is None):
        return results if complete else None
    results.clear()
    run, notes = core.lines_run(*names, RANKINGS, DOCUMENTS), dict[str, None]()
    for table in adjacent(file.pieces()):
        check_stopped()
        pairs = table.queries.columns(), table.docs.columns(), np.ascontiguousarray(table.values), table.offsets
        held = core.join_table(run, qrels.judged, *pairs, ties == "trec")
        if held is None or file.needs_whole:
            return None
        notes.update(dict.fromkeys(table.notes))
        if held > _AT_ONCE:
            add_part(notes)
    add_part(notes)
    return results


def _of_entries(qrels: Qrels, ties: str, entries: tuple[IntArray, IntArray, bytearray, bytearray]) -> Joined:
    """Join the entries of the compiled core."""
    of_run, retrieved, rows, ranks = entries
    columns = [*np.frombuffer(ranks, np.int64).reshape(-1, 3).T]
    return Joined.of_entries(qrels, of_run, np.frombuffer(rows, np.int64), columns, retrieved=retrieved, ties=ties)


def _summary(
    joined: Joined, tally: InputCounts, unknown: Sequence[bytes], rankings: Mapping[int, Sequence[str | bytes]]
) -> InputSummary:
    """Summarize a block, given its queries without judgments and its first documents."""
    tally = tally._replace(unknown=len(unknown))
    return InputSummary(joined.numbers, _ends(joined), tally, first_ids(unknown), rankings)


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
    whole = np.concatenate(ends)
    ends.clear()
    return InputSummary(numbers[order], whole[order], tally, unknown, dict(rankings[:RANKINGS]), source, notes)


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
    hits = np.flatnonzero(ends[:, 2])
    if len(hits):
        rows, first = np.flatnonzero(relevant), before[0, hits].astype(np.int64)
        # Ranks as if the lowest score were the best; ties keep their order.
        last = np.repeat(joined.retrieved[hits], ends[hits, 2].astype(np.int64)) + 1
        end = last - joined.tie_last[rows] + joined.rank[rows] - joined.tie_first[rows]
        ends[hits, 6], ends[hits, 7] = joined.rank[rows[first]], np.minimum.reduceat(end, first)
    # Saves half the memory; the integers are unchanged.
    return ends.astype(np.int32) if ends.max(initial=0) < 2**31 else ends


def _first_documents(table: PairTable, joined: Joined) -> dict[int, Sequence[str | bytes]]:
    """Return the first documents of the first judged queries, in input order."""
    queries = joined.in_run[:RANKINGS]
    starts, sizes = table.offsets[queries], np.minimum(np.diff(table.offsets)[queries], DOCUMENTS)
    docs = table.docs.take(ranges_of(starts, sizes)).tolist()
    parts = pairwise(offsets_of(sizes).tolist())
    return {number: docs[a:b] for number, (a, b) in zip(joined.numbers.tolist(), parts, strict=False)}

"""Sources that the compiled core reads and joins in one pass, without a table of the run.

The core reads one ranking at a time: the lines of a query, its rows of a columnar file, or a dict.
It checks for duplicate documents, and ranks the judged documents. It declines unusual sources,
which are then read into a table, and joined by `join_block`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rankgauge.core import native
from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import FloatArray
from rankgauge.core.policies import Ties
from rankgauge.core.threads import check_stopped
from rankgauge.data.join import Joined
from rankgauge.data.judged_run import discount_table
from rankgauge.data.qrels import Qrels
from rankgauge.data.run_summary import DOCUMENTS, RANKINGS, InputCounts, JoinedBlock
from rankgauge.formats.columns import RUN, columns_of
from rankgauge.formats.fast_trec import LinesPiece
from rankgauge.formats.lines import Source, source_name
from rankgauge.formats.pieces import adjacent, read_lines, read_tables

_T = TypeVar("_T")
_NOTHING = np.zeros((0, 4))
# Number of rankings plus judged documents that are measured together, to limit memory.
_AT_ONCE = 1 << 17


class JoinedDicts(NamedTuple):
    """A run of plain dicts, joined with judgments, and measures that the compiled core computed."""

    qrels: Qrels
    ties: Ties
    numbers: IntArray  # (n,) numbers of its judged queries, ascending
    cells: FloatArray  # (M, n) values of the measures
    ends: FloatArray  # (n, 8) `InputSummary.ends`; not for ties that depend on grades
    tally: InputCounts
    tied: int  # queries that a different order of ties could change
    unknown: Sequence[bytes]  # queries without judgments
    rankings: Mapping[int, Sequence[str | bytes]]  # first documents by query number
    entries: tuple[bytearray, bytearray]  # rows of judgments, and ranks

    def joined(self) -> Joined:
        """Return the ranks of the judged documents."""
        rows, ranks = (np.frombuffer(column, np.int64) for column in self.entries)
        return Joined.of_entries(
            self.qrels,
            self.numbers,
            rows,
            [*ranks.reshape(-1, 3).T],
            retrieved=self.ends[:, 0].astype(np.int64),
            ties=self.ties,
        )

    def block(self) -> JoinedBlock:
        """Return the join and its summary, without the computed measures."""
        return JoinedBlock.of(self.joined(), self.tally, self.unknown, self.rankings, "", ())


def join_dicts(qrels: Qrels, run: Any, program: FloatArray | None, *, ties: Ties) -> JoinedDicts | None:
    """Join a run of dicts or lists, and measure it; return None if the core declines the run.

    `program` has the instructions for measures; see `measures.compiled`.
    """
    run = _scored(run)
    if native.core is None or type(run) is not dict or not all(type(ranking) is dict for ranking in run.values()):
        return None
    names, pools = qrels.texts
    steps = _NOTHING if program is None else program
    deepest = max(qrels.largest_pool, max(map(len, run.values()), default=0))
    columns = (qrels.table.values, qrels.table.offsets, *qrels.ideal, discount_table(deepest))
    found = native.core.measure_dicts(run, names, pools, columns, steps, (RANKINGS, DOCUMENTS), ties == "trec")
    if found is None:
        return None
    numbered, cells, ends, (*counts, tied), unknown, rankings, *entries = found
    numbers = np.frombuffer(numbered, np.int64)
    return JoinedDicts(
        qrels,
        ties,
        numbers,
        np.frombuffer(cells).reshape(len(steps), len(numbers)),
        np.frombuffer(ends).reshape(-1, 8),
        InputCounts(*counts)._replace(unknown=len(unknown)),
        tied,
        [query.encode() for query in unknown],
        rankings,
        (entries[0], entries[1]),
    )


def _scored(run: Any) -> Any:
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


def join_file(
    qrels: Qrels, path: Source, function: Callable[[JoinedBlock], _T], *, ties: Ties, memory: int | None = None
) -> list[_T] | None:
    """Call `function` with each part of a run file; return None if the core declines the file."""
    core = native.core
    if core is None or qrels.judged is None:
        return None

    made: list[_T] = []
    name, names = source_name(path), qrels.table.queries.columns()
    run = core.lines_run(*names, RANKINGS, DOCUMENTS)

    def read(lines: LinesPiece, notes: tuple[str, ...]) -> int | None:
        found = core.join_lines(run, qrels.judged, *lines, ties == "trec")
        if found is None:
            return None
        end, held = found
        if lines.last or held > _AT_ONCE:
            made.append(function(_joined(qrels, core.joined_lines(run), ties, (name, notes))))
        return end

    if read_lines(path, RUN, read):
        return made
    made, held, notes = [], 0, dict[str, None]()
    run = core.lines_run(*names, RANKINGS, DOCUMENTS)
    for table in adjacent((table, False) for table in read_tables(path, RUN, memory)):
        check_stopped()
        columns = table.queries.columns(), table.docs.columns()
        values = np.ascontiguousarray(table.values)
        found = core.join_table(run, qrels.judged, *columns, values, table.offsets, ties == "trec")
        if found is None:
            return None
        held = found
        notes.update(dict.fromkeys(table.notes))
        if held > _AT_ONCE:
            made.append(function(_joined(qrels, core.joined_lines(run), ties, (name, notes))))
            held = 0
    if held:
        made.append(function(_joined(qrels, core.joined_lines(run), ties, (name, notes))))
    return made or None


def _joined(qrels: Qrels, found: Any, ties: str, origin: tuple[str, Iterable[str]]) -> JoinedBlock:
    of_run, retrieved, rows, ranks, tally, unknown, heads = found
    joined = Joined.of_entries(
        qrels,
        np.frombuffer(of_run, np.int64),
        np.frombuffer(rows, np.int64),
        [*np.frombuffer(ranks, np.int64).reshape(-1, 3).T],
        retrieved=np.frombuffer(retrieved, np.int64),
        ties=ties,
    )
    firsts = {number: heads[number].split(b"\0")[:-1] for number in sorted(heads)}
    return JoinedBlock.of(joined, InputCounts(*tally), unknown, firsts, *origin)

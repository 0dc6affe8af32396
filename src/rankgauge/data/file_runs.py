"""A run in a file joined with judgments by the compiled core, without a table of the run.

The core reads the lines of a query, or its rows in a part of a table, checks that its documents
differ, and ranks the judged ones. It declines what is unusual in any way: then the file is read in
blocks, or whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rankgauge.core import native
from rankgauge.core.pair_table import PairTable
from rankgauge.core.threads import check_stopped
from rankgauge.data.join import Joined
from rankgauge.data.qrels import Qrels
from rankgauge.formats.columns import RUN
from rankgauge.formats.fast_trec import LinesPiece
from rankgauge.formats.lines import Source
from rankgauge.formats.pieces import adjacent, read_lines, read_tables

_T = TypeVar("_T")
# Rankings and judged documents that are measured at once: more would take more memory.
_AT_ONCE = 1 << 17


class JoinedLines(NamedTuple):
    """A part of a run in a file, and its join."""

    joined: Joined  # the ranks of its judged documents
    documents: int  # its rows
    rising: tuple[int, int]  # as `PairTable.rising`
    spread: tuple[int, int]  # as `JoinedDicts.spread`
    unknown: Sequence[bytes]  # queries without judgments
    first_documents: Mapping[int, Sequence[bytes]]  # of the first queries by number
    notes: tuple[str, ...]  # notes of the reader


def join_file(
    qrels: Qrels,
    path: Source,
    function: Callable[[JoinedLines], _T],
    *,
    ties: str,
    heads: tuple[int, int],
    memory: int | None = None,
) -> list[_T] | None:
    """Call a function with each part of a run in a file; None if the core declines it.

    `heads`: of how many queries of a part how many first documents are kept.
    """
    core = native.core
    if core is None or qrels.judged is None:
        return None

    def begun() -> Any:
        return core.lines_run(*qrels.table.queries.columns(), *heads)

    made: list[_T] = []
    run = begun()

    def read(lines: LinesPiece) -> int | None:
        found = core.join_lines(run, qrels.judged, *lines, ties == "trec")
        if found is None:
            return None
        end, held = found
        if lines.last or held > _AT_ONCE:
            made.append(function(_joined(qrels, core.joined_lines(run), ties)))
        return end

    if read_lines(path, RUN, read):
        return made
    parts = _of_tables(
        qrels, begun(), adjacent((table, False) for table in read_tables(path, RUN, memory)), ties
    )
    made = []
    for part in parts:
        if part is None:
            return None
        made.append(function(part))
    return made or None


def _of_tables(
    qrels: Qrels, run: Any, tables: Iterator[PairTable], ties: str
) -> Iterator[JoinedLines | None]:
    """The parts of a run in tables of whole queries; ends with None if the core declines one."""
    core = native.core
    assert core is not None  # noqa: S101 - `join_file` asked
    held, notes = 0, dict[str, None]()
    for table in tables:
        check_stopped()
        columns = table.queries.columns(), table.docs.columns()
        values = np.ascontiguousarray(table.values)
        found = core.join_table(run, qrels.judged, *columns, values, table.offsets, ties == "trec")
        if found is None:
            yield None
            return
        held = found
        notes.update(dict.fromkeys(table.notes))
        if held > _AT_ONCE:
            yield _joined(qrels, core.joined_lines(run), ties, tuple(notes))
            held = 0
    if held:
        yield _joined(qrels, core.joined_lines(run), ties, tuple(notes))


def _joined(qrels: Qrels, found: Any, ties: str, notes: tuple[str, ...] = ()) -> JoinedLines:
    of_run, retrieved, rows, ranks, tally, unknown, heads = found
    documents, rising, varied, longer, uneven = tally
    joined = Joined.of_entries(
        qrels,
        np.frombuffer(of_run, np.int64),
        np.frombuffer(rows, np.int64),
        [*np.frombuffer(ranks, np.int64).reshape(-1, 3).T],
        retrieved=np.frombuffer(retrieved, np.int64),
        ties=ties,
    )
    firsts = {number: heads[number].split(b"\0")[:-1] for number in sorted(heads)}
    return JoinedLines(
        joined, documents, (rising, varied), (longer, uneven), unknown, firsts, notes
    )

"""Join a run file with judgments in the compiled core, without building a table of the run.

The core reads the lines of one query at a time, or its rows of a columnar file, checks for
duplicate documents, and ranks the judged documents. It declines unusual files, which are then read
in blocks or as a whole.
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
# Number of rankings plus judged documents that are measured together, to limit memory.
_AT_ONCE = 1 << 17


class JoinedLines(NamedTuple):
    """Part of a run file, joined with judgments."""

    joined: Joined  # the ranks of its judged documents
    documents: int  # number of rows
    rising: tuple[int, int]  # as `PairTable.rising`
    spread: tuple[int, int]  # as `JoinedDicts.spread`
    unknown: Sequence[bytes]  # queries without judgments
    first_documents: Mapping[int, Sequence[bytes]]  # by query number
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
    """Call `function` with each part of a run file; return None if the core declines the file.

    `heads`: number of queries per part whose first documents are kept, and number of documents.
    """
    core = native.core
    if core is None or qrels.judged is None:
        return None

    def begun() -> Any:
        return core.lines_run(*qrels.table.queries.columns(), *heads)

    made: list[_T] = []
    run = begun()

    def read(lines: LinesPiece, notes: tuple[str, ...]) -> int | None:
        found = core.join_lines(run, qrels.judged, *lines, ties == "trec")
        if found is None:
            return None
        end, held = found
        if lines.last or held > _AT_ONCE:
            made.append(function(_joined(qrels, core.joined_lines(run), ties, notes)))
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
    """Join tables of whole queries; yield None at the end if the core declines one."""
    core = native.core
    assert core is not None  # noqa: S101 - checked by `join_file`
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

"""Join a TREC run file with judgments in the compiled core, without building a table of the run.

The core reads the lines of one query at a time, checks for duplicate documents, and ranks the
judged documents. It declines unusual files, which are then read in blocks or as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rankgauge.core import native
from rankgauge.data.join import Joined
from rankgauge.data.qrels import Qrels
from rankgauge.formats.columns import RUN
from rankgauge.formats.fast_trec import LinesPiece
from rankgauge.formats.lines import Source
from rankgauge.formats.pieces import read_lines

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


def join_file(
    qrels: Qrels,
    path: Source,
    function: Callable[[JoinedLines], _T],
    *,
    ties: str,
    heads: tuple[int, int],
) -> list[_T] | None:
    """Call `function` with each part of a run file; return None if the core declines the file.

    `heads`: number of queries per part whose first documents are kept, and number of documents.
    """
    core = native.core
    if core is None or qrels.judged is None:
        return None
    run = core.lines_run(list(qrels.query_index), *heads)
    made: list[_T] = []

    def read(lines: LinesPiece) -> int | None:
        found = core.join_lines(run, qrels.judged, *lines, ties == "trec")
        if found is None:
            return None
        end, held = found
        if lines.last or held > _AT_ONCE:
            made.append(function(_joined(qrels, core.joined_lines(run), ties)))
        return end

    return made if read_lines(path, RUN, read) else None


def _joined(qrels: Qrels, found: Any, ties: str) -> JoinedLines:
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
    firsts = {number: heads[number].split() for number in sorted(heads)}
    return JoinedLines(joined, documents, (rising, varied), (longer, uneven), unknown, firsts)

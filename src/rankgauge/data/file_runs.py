"""A run in a TREC file joined with judgments by the compiled core, without a table of the run.

The core reads the lines of a query, checks that its documents differ, and ranks the judged ones. It
declines what is unusual in any way: then the file is read in blocks, or whole.
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


def join_file(
    qrels: Qrels,
    path: Source,
    function: Callable[[JoinedLines], _T],
    *,
    ties: str,
    heads: tuple[int, int],
) -> list[_T] | None:
    """Call a function with each part of a run in a file; None if the core declines it.

    `heads`: of how many queries of a part how many first documents are kept.
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

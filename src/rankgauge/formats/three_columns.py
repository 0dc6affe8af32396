"""Runs of three columns: whether the third one is a rank, as MS MARCO has it, or a score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankgauge.core.ids import show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import FormatError

__all__ = ["THIRDS", "read_third"]

# The formats that say what it is, and how a note calls them.
THIRDS = {"msmarco": "query document rank", "trec3": "query document score"}


def read_third(table: PairTable, name: str, form: str | None) -> PairTable:
    """The run, its third column taken for what it is.

    Args:
        table: The run, the third column as its scores.
        name: The name of the file.
        form: One of `THIRDS`, where somebody has said it.

    Raises:
        FormatError: If nobody has said it, and the column does not count 1 to n in every query.
    """
    if form == "trec3":
        return table
    strange = _uncounted(table)
    if strange is None or form == "msmarco":
        said = f"{name}: the third column is read as a rank: the documents stand in that order"
        if form is None:
            said = (
                f"{name}: the third column counts 1 to n in every query, so it is read as a rank "
                "(--format trec3 reads it as a score)"
            )
        return replace(table, values=-table.values).said(said)
    count = int(table.offsets[strange + 1] - table.offsets[strange])
    ranks = f"1 to {count}" if count > 1 else "1"
    raise FormatError(
        "got 3 fields, and the third may be a rank or a score: for query "
        f"'{show_id(table.queries[strange])}' it does not count {ranks}",
        path=name,
        fix="say which: --format msmarco (query document rank) or --format trec3 (query document "
        "score); in Python, format='msmarco' or format='trec3'",
    )


def _uncounted(table: PairTable) -> int | None:
    """The first query whose numbers are not 1 to n, in any order."""
    counts = np.diff(table.offsets)
    most = np.repeat(counts, counts)
    values = table.values
    fits = (values >= 1) & (values <= most) & (values == np.floor(values))
    seen = np.zeros(len(values), dtype=bool)
    # Numbers that fit and all differ leave no place empty.
    places = np.repeat(table.offsets[:-1], counts)[fits] + values[fits].astype(np.int64) - 1
    seen[places] = True
    missed = np.flatnonzero(~seen)
    if not len(missed):
        return None
    return int(np.searchsorted(table.offsets, missed[0], side="right")) - 1

"""Tables without a fault: the content of fixed copies, and the data for measuring effects."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import PairTable


def without_repeats(
    table: PairTable, keep: Literal["first", "best", "lowest"] = "best", *, alike: bool = False
) -> PairTable:
    """Return the table with each document once per query."""
    kept = np.ones(len(table), dtype=bool)
    for group in table.repeats():
        values = table.values[group]
        if alike and (values != values[0]).any():
            continue
        kept[group] = False
        at = {"first": 0, "best": int(np.argmax(values)), "lowest": int(np.argmin(values))}
        kept[group[at[keep]]] = True
    return table if kept.all() else table.keep(np.flatnonzero(kept))


def own_rows(table: PairTable) -> IntArray:
    """Return the rows whose document has the id of the query."""
    numbers = table.query_numbers()
    rows = np.flatnonzero(table.docs.hashes() == table.queries.hashes()[numbers])
    return rows[table.docs.same(rows, table.queries, numbers[rows])]


def without_own(table: PairTable) -> PairTable:
    """Return the table without documents that have the id of the query."""
    rows = own_rows(table)
    return table.keep(np.delete(np.arange(len(table)), rows)) if len(rows) else table


def negated(table: PairTable) -> PairTable:
    """Return the table with the lowest scores best."""
    # Not -0.0, which is written otherwise than 0.
    return replace(table, values=0.0 - table.values)


def ranks_as_scores(table: PairTable) -> PairTable:
    """Return the table with scores that descend with the ranks: of n documents the first gets n."""
    if table.ranks is None:
        return table
    numbers = table.query_numbers()
    order = np.lexsort((np.arange(len(table)), table.ranks, numbers))
    values = np.empty(len(table))
    values[order] = np.diff(table.offsets)[numbers] + table.offsets[numbers] - np.arange(len(table))
    return replace(table, values=values)

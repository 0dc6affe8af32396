"""Problems of judgments: repeats, grades, queries with nothing to find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rankgauge.checking.problems import KINDS, Problem, Spot
from rankgauge.checking.reading import Given
from rankgauge.ids import IntArray, show_id
from rankgauge.kernels.measure import Measure
from rankgauge.notes import many
from rankgauge.table import PairTable

__all__ = ["judgment_problems", "spots_of"]

_SHOWN = 5


def judgment_problems(
    given: Given, measures: Sequence[Measure], scale: str | None
) -> Iterator[Problem]:
    """What is wrong with judgments by themselves."""
    del measures, scale
    table = given.table
    if table is None:
        return
    yield from _repeats(table, given.source)
    yield from _nothing_to_find(table, given.source)


def spots_of(table: PairTable, rows: Sequence[int] | IntArray, source: str) -> tuple[Spot, ...]:
    """The first of these rows, as places."""
    return tuple(
        Spot(
            source,
            0 if table.lines is None else int(table.lines[row]),
            show_id(table.queries[int(np.searchsorted(table.offsets, row, side="right")) - 1]),
            show_id(table.docs[int(row)]),
        )
        for row in list(rows[:_SHOWN])
    )


def _repeats(table: PairTable, source: str) -> Iterator[Problem]:
    alike: list[int] = []
    apart: list[int] = []
    for group in table.repeats():
        same = len(set(table.values[group].tolist())) == 1
        (alike if same else apart).append(group[1])
    for code, rows in (("J101", alike), ("J102", apart)):
        if rows:
            with_ = "the same grade" if code == "J101" else "different grades"
            yield Problem(
                KINDS[code], source,
                f"{many(len(rows), 'pair')} of query and document judged twice, with {with_}",
                len(rows), len(table), "judgment", spots_of(table, rows, source),
                mend=KINDS[code].mend,
            )  # fmt: skip


def _nothing_to_find(table: PairTable, source: str) -> Iterator[Problem]:
    relevant = np.concatenate([[0], np.cumsum(table.values >= 1)])
    counts = relevant[table.offsets[1:]] - relevant[table.offsets[:-1]]
    without = np.flatnonzero(counts == 0)
    if len(without):
        names = [show_id(table.queries[int(number)]) for number in without[:_SHOWN]]
        yield Problem(
            KINDS["J103"], source,
            f"{len(without)} of {many(len(counts), 'judged query')} have no relevant document",
            len(without), len(counts), "query",
            tuple(Spot(source, query=name) for name in names), mend=KINDS["J103"].mend,
        )  # fmt: skip

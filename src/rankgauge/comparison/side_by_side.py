"""Two rankings of one query beside each other: each document with its rank in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from rankgauge.core.escaping import visible
from rankgauge.core.ids import show_id
from rankgauge.core.policies import Order
from rankgauge.corpus.collection import Collection
from rankgauge.data.model import Qrels, Run
from rankgauge.data.ranking import ranked

__all__ = ["Place", "Sides", "one_line"]

Move: TypeAlias = Literal["same", "up", "down", "new", "gone"]


@dataclass(frozen=True)
class Place:
    """A document in one of two rankings, and where it stands in the other.

    Attributes:
        rank: Its rank in this ranking.
        document: Its id, as text.
        grade: Its grade; None without a judgment.
        other_rank: Its rank in the other ranking; None if it was not retrieved there.
        move: What became of it from A to B, in either ranking: ``same``, ``up``, ``down``, ``new``
            (only B retrieved it) or ``gone`` (only A did).
        text: Its title, or how its text begins, in one printable line; empty if not known.
    """

    rank: int
    document: str
    grade: float | None
    other_rank: int | None
    move: Move
    text: str = ""


@dataclass(frozen=True)
class Sides:
    """Some queries in two runs, and what is known of their documents.

    Attributes:
        qrels: The judgments.
        run_a: The first run, whole rankings in rank order.
        run_b: The second run, the same way.
        texts: The texts behind the ids.
    """

    qrels: Qrels
    run_a: Run
    run_b: Run
    texts: Collection

    @classmethod
    def of(
        cls, qrels: Qrels, runs: tuple[Run, Run], texts: Collection, *, rows: Sequence[int],
        ties: Order,
    ) -> Sides:  # fmt: skip
        """These queries (numbered as in the judgments) of two runs."""
        names = [qrels.table.queries[row] for row in rows]
        run_a, run_b = runs
        return cls(qrels, _only(run_a, names, ties), _only(run_b, names, ties), texts)

    def asked(self, query_id: str) -> str:
        """What a query asks, in one printable line; empty if not known."""
        known = self.texts.queries.get(query_id)
        return one_line(known.text) if known else ""

    def retrieved(self, row: int) -> tuple[int | None, int | None]:
        """How many documents each run has for a query; None if it does not have the query."""
        query = self.qrels.table.queries[row]
        a, b = _ranking(self.run_a, query), _ranking(self.run_b, query)
        return None if a is None else len(a), None if b is None else len(b)

    def rankings(self, row: int, depth: int) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
        """The first documents of both rankings of a query."""
        query = self.qrels.table.queries[row]
        a, b = _ranking(self.run_a, query) or {}, _ranking(self.run_b, query) or {}
        grades = _grades(self.qrels, row)
        return (
            tuple(self._place(doc, a, b, grades, of_b=False) for doc in list(a)[:depth]),
            tuple(self._place(doc, a, b, grades, of_b=True) for doc in list(b)[:depth]),
        )

    def _place(
        self,
        doc: bytes,
        a: Mapping[bytes, int],
        b: Mapping[bytes, int],
        grades: Mapping[bytes, float],
        *,
        of_b: bool,
    ) -> Place:
        name = show_id(doc)
        known = self.texts.documents.get(name)
        return Place(
            rank=b[doc] if of_b else a[doc],
            document=name,
            grade=grades.get(doc),
            other_rank=a.get(doc) if of_b else b.get(doc),
            move=_move(a.get(doc), b.get(doc)),
            text=one_line(known.snippet()) if known else "",
        )


def one_line(text: str) -> str:
    """A text in one line, with what is not printable written as an escape."""
    return visible(" ".join(text.split()))


def _move(old: int | None, new: int | None) -> Move:
    if old is None:
        return "new"
    if new is None:
        return "gone"
    if old == new:
        return "same"
    return "up" if new < old else "down"


def _only(run: Run, queries: Sequence[bytes], ties: Order) -> Run:
    """These queries of a run, their whole rankings in rank order."""
    table = run.table
    numbers = (run.query_index.get(query, -1) for query in queries)
    wanted = np.array(list(numbers), dtype=np.int64)
    kept = np.flatnonzero(np.isin(table.query_numbers(), wanted))
    return ranked(replace(run, table=table.keep(kept)), ties=ties)


def _ranking(run: Run, query: bytes) -> dict[bytes, int] | None:
    """Document to rank; None if the run does not have the query."""
    number = run.query_index.get(query)
    if number is None:
        return None
    rows = np.arange(run.table.offsets[number], run.table.offsets[number + 1])
    return {doc: rank for rank, doc in enumerate(run.table.docs.take(rows).tolist(), start=1)}


def _grades(qrels: Qrels, row: int) -> dict[bytes, float]:
    rows = np.arange(qrels.table.offsets[row], qrels.table.offsets[row + 1])
    docs = qrels.table.docs.take(rows).tolist()
    return dict(zip(docs, qrels.table.values[rows].tolist(), strict=True))

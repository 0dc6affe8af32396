"""Columns of (query, document, number) rows.

Every reader returns a :class:`PairTable`; judgments and runs wrap one. The rows of a query are
adjacent, ids are packed bytes, and numbers are 64-bit floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from rankgauge.core import native
from rankgauge.core.grouping import group_values
from rankgauge.core.ids import Frozen, IdRuns, Ids, IntArray, freeze, show_id, words_of
from rankgauge.errors import InputError

FloatArray: TypeAlias = npt.NDArray[np.float64]
_T = TypeVar("_T", bound=np.number[Any])

_MIX = np.uint64(0xC2B2AE3D27D4EB4F)
_WORD = 8  # bytes
_DEEP = 100  # documents per query from which sorting query by query pays


@dataclass(frozen=True, eq=False)
class PairTable(Frozen):
    """N rows of (query, document, value), grouped by query. Immutable.

    Tables are equal if their rows are equal, regardless of their sources.
    """

    queries: Ids  # Q distinct query ids, in order of first appearance
    offsets: IntArray  # (Q + 1,) query q has the rows ``offsets[q]:offsets[q + 1]``
    docs: Ids  # N document ids
    values: FloatArray  # (N,) float64: scores or grades
    unique: bool = False  # true if no pair can occur twice (the source is a mapping)
    source: str = ""  # source for messages: a path or ``"run"``
    lines: IntArray | None = None  # (N,) line numbers in the source, if it has lines
    notes: tuple[str, ...] = field(default=())  # notes of the reader
    # (N,) ranks, if requested; evaluations do not read them
    ranks: FloatArray | None = None
    # True if every ranking is a list of (document, number) pairs, best first.
    paired: bool = False
    adjacent: bool = True  # whether the rows of each query were adjacent in the source

    def __post_init__(self) -> None:
        freeze(self.offsets, self.values, self.lines, self.ranks)

    @classmethod
    def of_rows(
        cls,
        queries: Ids | IdRuns,
        docs: Ids,
        values: FloatArray,
        *,
        lines: IntArray | None = None,
        ranks: FloatArray | None = None,
    ) -> PairTable:
        """Group rows by query. Queries are in order of first appearance, rows in input order."""
        runs = queries.runs()
        numbers, names = runs.numbered()
        if len(names) == len(numbers):
            return cls(names, offsets_of(runs.counts), docs, values, lines=lines, ranks=ranks)
        if (runs.counts != 1).any():
            numbers = np.repeat(numbers, runs.counts)
        del runs, queries  # frees much memory for files in random order
        offsets, grouped = group_rows(numbers, len(names))
        # Hashing is fast while adjacent rows have adjacent bytes.
        docs = Ids(docs.data, grouped(docs.starts), grouped(docs.lengths), grouped(docs.hashes()))
        lines = None if lines is None else grouped(lines)
        ranks = None if ranks is None else grouped(ranks)
        adjacent = bool((numbers[1:] >= numbers[:-1]).all())
        return cls(names, offsets, docs, grouped(values), lines=lines, ranks=ranks, adjacent=adjacent)

    @classmethod
    def joined(cls, tables: Sequence[PairTable]) -> PairTable:
        """Concatenate tables with different queries; line numbers and ranks are dropped."""
        return replace(
            tables[0],
            queries=Ids.joined([table.queries for table in tables]),
            offsets=offsets_of(np.concatenate([np.diff(table.offsets) for table in tables])),
            docs=Ids.joined([table.docs for table in tables]),
            values=np.concatenate([table.values for table in tables]),
            unique=all(table.unique for table in tables),
            lines=None,
            ranks=None,
            notes=tuple(dict.fromkeys(note for table in tables for note in table.notes)),
        )

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairTable):
            return NotImplemented
        return (
            self.queries == other.queries
            and self.docs == other.docs
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.values, other.values)
        )

    __hash__ = None  # type: ignore[assignment] # holds arrays

    def with_notes(self, *notes: str, source: str = "") -> PairTable:
        """Return the table with more notes, and with the source if it had none."""
        return replace(self, notes=self.notes + notes, source=self.source or source)

    def query_numbers(self) -> IntArray:
        """Return the query number of each row (N,)."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.offsets))

    def orders(self) -> tuple[int, int, bool, bool]:
        """Return how the values of rankings follow each other in input order.

        Rankings with fewer than three rows are not counted, since their order may be chance; for
        lists of pairs, two rows suffice.

        Returns:
            The number of rankings whose values rise from row to row, the number of those with
            unequal values, whether any ranking has two rows, and whether any has unequal values.

        Example:
            >>> from rankgauge import Run
            >>> Run.of({"q1": [("d1", 0.1), ("d2", 0.9)], "q2": [("d1", 0.5)]}).table.orders()
            (1, 1, True, True)
        """
        sizes, values = np.diff(self.offsets), self.values
        steps = np.zeros((2, len(values) + 1), dtype=bool)
        np.greater(values[1:], values[:-1], out=steps[0, 1:-1])
        np.less(values[1:], values[:-1], out=steps[1, 1:-1])
        steps[:, self.offsets] = False
        up, down = np.logical_or.reduceat(steps, self.offsets[:-1], axis=1)
        uneven, long = up | down, sizes >= (2 if self.paired else 3)
        rising, varied = (int((long & kind).sum()) for kind in (up & ~down, uneven))
        return rising, varied, bool((sizes > 1).any()), bool(uneven.any())

    def keep(self, rows: IntArray) -> PairTable:
        """Return a table of these rows (ascending); queries remain even without rows."""
        return replace(
            self,
            offsets=np.searchsorted(rows, self.offsets),
            docs=self.docs.take(rows),
            values=self.values[rows],
            lines=None if self.lines is None else self.lines[rows],
            ranks=None if self.ranks is None else self.ranks[rows],
        )

    def compact(self) -> PairTable:
        """Return a copy whose buffers hold only its own ids."""
        return replace(
            self,
            queries=self.queries.compact(),
            docs=self.docs.compact(),
            offsets=self.offsets.copy(),
            values=self.values.copy(),
            ranks=None if self.ranks is None else self.ranks.copy(),
        )

    def repeats(self) -> list[list[int]]:
        """Return the rows of each pair that occurs more than once, in input order."""
        if self.unique or len(self) < 2:
            return []
        hashes, core = self.docs.hashes(), native.core
        if core is not None and core.all_differ(np.ascontiguousarray(hashes), self.offsets):
            return []
        keys = pair_keys(hashes, self.query_numbers())
        ordered = np.sort(keys)
        # Equal keys are only candidates: compare the ids.
        rows = np.flatnonzero(np.isin(keys, ordered[1:][ordered[1:] == ordered[:-1]]))
        numbers = np.searchsorted(self.offsets, rows, side="right").tolist()
        groups = group_values(zip(zip(numbers, self.docs.take(rows).tolist(), strict=True), rows.tolist(), strict=True))
        return [group for group in groups.values() if len(group) > 1]

    def best_first(self, *, by_id: bool) -> tuple[IntArray, IntArray]:
        """Return the rows in ranked order, and the starts of groups of equal values in it.

        The number of rows follows the last start. Equal values are ordered by document id,
        descending, or remain in input order.
        """
        order = self.ranked_rows(by_id=by_id)
        order = np.arange(len(self)) if order is None else order
        return order, np.flatnonzero(self._new_values(order))

    def ranked_rows(self, *, by_id: bool) -> IntArray | None:
        """Return the rows in ranked order as `best_first` does; None if they already are."""
        if native.core is not None:
            columns = *self.docs.columns(), np.ascontiguousarray(self.values), self.offsets
            rows = native.core.rank_rows(*columns, by_id)
            return None if rows is None else np.frombuffer(rows, np.int64)
        order, values = np.arange(len(self)), self.values
        rising = np.flatnonzero(values[1:] > values[:-1]) + 1
        queries = np.searchsorted(self.offsets, rising, side="right") - 1
        for query in distinct(queries[rising > self.offsets[queries]]).tolist():
            start, stop = self.offsets[query : query + 2].tolist()
            order[start:stop] = start + np.argsort(-values[start:stop], kind="stable")
        if by_id:
            new = self._new_values(order)
            tied = np.flatnonzero(~(new[:-1] & new[1:]))
            groups = np.cumsum(new[:-1], dtype=np.int64)[tied]
            order[tied] = order[tied][self.docs.descending(order[tied], groups)]
        return order

    def _new_values(self, order: IntArray) -> npt.NDArray[np.bool_]:
        """Return whether a group of equal values starts at each place of `order`; the last place is the end."""
        values = self.values[order]
        new = np.ones(len(order) + 1, dtype=bool)
        np.not_equal(values[1:], values[:-1], out=new[1:-1])
        new[self.offsets] = True
        return new

    def by_id(self) -> IntArray:
        """Return the rows of each query by document id, descending; those of a repeated document by value."""
        once = not self.repeats()
        if once and self.docs.longest <= _WORD and len(self) > _DEEP * len(self.queries):
            # Big-endian words have the order of the ids, and NumPy sorts numbers fast.
            keys = ~words_of(self.docs, 0).byteswap()
            order = np.empty(len(self), dtype=np.int64)
            for start, end in pairwise(self.offsets.tolist()):
                order[start:end] = np.argsort(keys[start:end]) + start
            return order
        if once:
            return replace(self, values=np.zeros(len(self))).best_first(by_id=True)[0]
        rows = np.argsort(self.values, kind="stable")
        return rows[self.docs.descending(rows, self.query_numbers()[rows])]

    def repeat_error(self, group: Sequence[int], *, fix: str) -> InputError:
        """Return the error for a repeated pair."""
        query = show_id(self.queries[int(self.query_numbers()[group[0]])])
        doc = show_id(self.docs[group[0]])
        many = "twice" if len(group) == 2 else f"{len(group)} times"
        where = self.source
        if self.lines is not None:
            where += ", lines " + " and ".join(str(int(self.lines[row])) for row in group[:2])
        return InputError(f"document '{doc}' occurs {many} for query '{query}'", where=where, fix=fix)


def pair_keys(hashes: npt.NDArray[np.uint64], query_numbers: IntArray) -> npt.NDArray[np.uint64]:
    """Return a 64-bit key for each (document hash, query number); equal pairs have equal keys."""
    mixed = (query_numbers.astype(np.uint64) + np.uint64(1)) * _MIX
    mixed ^= mixed >> np.uint64(29)
    mixed ^= hashes
    mixed *= _MIX
    mixed ^= mixed >> np.uint64(31)
    return mixed


def distinct(numbers: npt.NDArray[_T]) -> npt.NDArray[_T]:
    """Return the distinct numbers, ascending.

    Equals ``np.unique``, whose first call imports numpy.ma.
    """
    ordered = np.sort(numbers, axis=None)
    new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def offsets_of(counts: npt.ArrayLike) -> IntArray:
    """Return the start of each group, followed by the end of the last group."""
    sizes = np.asarray(counts, dtype=np.int64)
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def ranges_of(starts: IntArray, sizes: IntArray) -> IntArray:
    """Concatenate the ranges that begin at each start and have the given sizes."""
    offsets = offsets_of(sizes)
    return np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])


def group_rows(
    numbers: npt.NDArray[np.int32], groups: int
) -> tuple[IntArray, Callable[[npt.NDArray[_T]], npt.NDArray[_T]]]:
    """Group rows by number, keeping their order within each group.

    Returns:
        The offsets of the groups, and a function that moves the rows of a column (of 8 bytes each).
    """
    offsets, core = offsets_of(np.bincount(numbers, minlength=groups)), native.core
    if core is None:
        order = np.argsort(numbers, kind="stable")
        return offsets, lambda column: column[order]

    def grouped(column: npt.NDArray[_T]) -> npt.NDArray[_T]:
        into = np.empty_like(column)
        core.group(numbers, offsets[:-1].copy(), np.ascontiguousarray(column), into)
        return into

    return offsets, grouped


def heads_of(*columns: npt.NDArray[Any]) -> IntArray:
    """Return the rows that differ from the previous row in any column, and the first row."""
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(new)

"""Statistics of a run from a single pass, corrected tables, and the effects of faults on measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.checks.readers import CheckInput, read_into_memory
from rankgauge.core.findings import Effect, Location
from rankgauge.core.ids import IntArray, show_id
from rankgauge.core.pair_table import FloatArray, PairTable, pair_keys
from rankgauge.data.join import Joined, join, query_of, ranked
from rankgauge.data.judged_run import JudgedRun, Values
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.evaluation.unjudged import filled
from rankgauge.measures.measure import Measure


def without_repeats(
    table: PairTable, keep: Literal["first", "best", "lowest"] = "best", *, alike: bool = False
) -> PairTable:
    """Return the table with each document only once per query."""
    kept = np.ones(len(table), dtype=bool)
    for group in table.repeats():
        values = table.values[group]
        if alike and (values != values[0]).any():
            continue
        kept[group] = False
        at = {"first": 0, "best": int(np.argmax(values)), "lowest": int(np.argmin(values))}
        kept[group[at[keep]]] = True
    return table if kept.all() else table.keep(np.flatnonzero(kept))


def self_retrieved_rows(table: PairTable) -> IntArray:
    """Return the rows whose document id equals the query id."""
    numbers = table.query_numbers()
    rows = np.flatnonzero(table.docs.hashes() == table.queries.hashes()[numbers])
    return rows[table.docs.same(rows, table.queries, numbers[rows])]


def without_self_retrieved(table: PairTable) -> PairTable:
    """Return the table without documents whose id equals the query id."""
    rows = self_retrieved_rows(table)
    return table.keep(np.delete(np.arange(len(table)), rows)) if len(rows) else table


def negated(table: PairTable) -> PairTable:
    """Return the table with negated scores."""
    # Subtract from 0 instead of negating: -0.0 would be written differently.
    return replace(table, values=0.0 - table.values)


def ranks_as_scores(table: PairTable) -> PairTable:
    """Return the table with scores that descend with rank: n for the first of n documents."""
    if table.ranks is None:
        return table
    numbers = table.query_numbers()
    order = np.lexsort((np.arange(len(table)), table.ranks, numbers))
    values = np.empty(len(table))
    values[order] = np.diff(table.offsets)[numbers] + table.offsets[numbers] - np.arange(len(table))
    return replace(table, values=values)


_View: TypeAlias = Callable[[JudgedRun], JudgedRun]

_DEPTH = 10


def values_of(
    joined: Joined, measure: Measure, queries: IntArray | None = None, *, view: _View | None = None
) -> Values | None:
    """Return the values of a measure for these queries (default: all judged queries).

    None if the measure rejects the judgments. `view` transforms each judged run before it is
    measured.
    """
    wanted = np.arange(len(joined.qrels)) if queries is None else queries
    values = np.full(len(wanted), np.nan)
    for places, block in joined.blocks(wanted):
        try:
            values[places] = measure.values(block if view is None else view(block))
        except InputError:
            return None
    return values


def means(
    joined: Joined, measures: Iterable[Measure], queries: IntArray | None = None, *, view: _View | None = None
) -> list[float]:
    """Return the mean of each measure over these queries; NaN if it rejects the judgments."""
    columns = [(measure, values_of(joined, measure, queries, view=view)) for measure in measures]
    return [math.nan if values is None else measure.mean(values) for measure, values in columns]


def least_rel(measures: Iterable[Measure]) -> float:
    """Return the lowest grade that is relevant for one of the measures."""
    return min((m.level for m in measures if m.level is not None), default=1.0)


def cutoff_of(measures: Iterable[Measure]) -> int:
    """Return the largest cut-off of the measures; 10 if there is none."""
    return max((k for m in measures if isinstance(k := m.arguments.get("k"), int)), default=_DEPTH)


def reversed_rankings(joined: Joined) -> Joined:
    """Return the ranks for reversed rankings."""
    last = np.repeat(joined.retrieved, np.diff(joined.offsets)) + 1
    first = last - joined.tie_last
    ranks = (first + (joined.rank - joined.tie_first), first, last - joined.tie_first)
    return Joined.of_entries(joined.qrels, joined.numbers, joined.rows, ranks, retrieved=joined.retrieved, ties="trec")


def best_rankings(joined: Joined, depth: int) -> Joined:
    """Return the ideal rankings of the same queries, cut at this depth."""
    table = joined.qrels.table
    rows = np.flatnonzero(np.isin(table.query_numbers(), joined.numbers))
    return join(joined.qrels, ranked(Run(table.keep(rows)), ties="input", depth=depth), ties="trec")


def unjudged_as(k: int, grade: float) -> _View:
    """Return a view that gives this grade to every unjudged document in the first k ranks."""

    def view(block: JudgedRun) -> JudgedRun:
        depth = block.depth(k)
        return filled(block, depth, np.full((len(block), int(depth.max(initial=0))), float(grade)))

    return view


def relevant_counts(qrels: Qrels, rel: float) -> IntArray:
    """Return the number of relevant documents of each query."""
    table = qrels.table
    return np.bincount(table.query_numbers()[table.values >= rel], minlength=len(qrels))


SHOWN = 5
_TOP = 10
_SAMPLE = 20_000
_ODD = np.uint64(0x9E3779B97F4A7C15)

_Change: TypeAlias = Callable[[PairTable], PairTable]


@dataclass(slots=True)
class Occurrences:
    """Number of occurrences of a fault, with the first locations."""

    count: int = 0
    locations: tuple[Location, ...] = ()

    def add(self, count: int, locations: tuple[Location, ...]) -> None:
        """Add occurrences."""
        self.count += count
        self.locations = (*self.locations, *locations)[:SHOWN]


@dataclass(eq=False)
class CheckedRun:
    """A run with its judgments, and statistics from one pass through the run."""

    check_input: CheckInput
    qrels: Qrels
    measures: tuple[Measure, ...]  # measures of the effects
    joined: Joined  # judged documents with ranks, without repeats
    in_32_bits: Joined  # the same, ranked by 32-bit scores
    now: list[float] = field(default_factory=list)  # means of the measures
    queries: list[bytes] = field(default_factory=list)  # query ids
    # Number of documents per query.
    sizes: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    unknown: list[bytes] = field(default_factory=list)  # query ids without judgments
    several: int = 0  # queries with two or more documents
    # Of these, queries whose scores are all equal.
    constant: Occurrences = field(default_factory=Occurrences)
    rising: int = 0  # queries whose scores ascend from line to line
    varied: int = 0  # queries with different scores
    ranked: int = 0  # queries with ranks and two or more documents
    # Queries whose ranks and scores give different orders.
    contradicted: Occurrences = field(default_factory=Occurrences)
    turned: int = 0  # queries whose ranks ascend with the scores
    lowest_rank: float = np.inf  # the lowest rank
    highest_rank: float = -np.inf  # the highest rank
    # Repeated documents within a ranking.
    repeated: Occurrences = field(default_factory=Occurrences)
    alike: bool = True  # whether all repeats have the same score
    # Documents whose score equals the next score only in 32 bits.
    collapsed: Occurrences = field(default_factory=Occurrences)
    # Documents that have the id of their query and are not judged relevant.
    own: Occurrences = field(default_factory=Occurrences)
    own_first: int = 0  # of these, documents with the best score
    not_text: set[bytes] = field(default_factory=set)  # ids that are not UTF-8
    # Queries paired with their first documents.
    sample: list[tuple[bytes, bytes]] = field(default_factory=list)
    # Query to a hash of its ranking; empty unless several runs are compared.
    digest: dict[bytes, int] = field(default_factory=dict)

    @classmethod
    def of(cls, check_input: CheckInput, qrels: Qrels, measures: tuple[Measure, ...], *, several: bool) -> CheckedRun:
        """Read a run once; `several` means that other runs may be identical to it."""
        nothing = Joined.empty(qrels)
        run = cls(check_input, qrels, measures, nothing, nothing)
        parts: list[tuple[Joined, Joined]] = []
        try:
            for table in check_input.blocks():
                parts.append(run._add(table))
                if several:
                    run.digest.update(_digests(table))
        except InputError:
            return cls.of(read_into_memory(check_input), qrels, measures, several=several)
        run.joined, run.in_32_bits = (_concatenated([part[at] for part in parts], qrels) for at in (0, 1))
        run.now = means(run.joined, measures)
        return run

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.check_input.name

    @property
    def source(self) -> str:
        """Path of the run, or its name."""
        return self.check_input.source

    @property
    def documents(self) -> int:
        """Number of documents."""
        return int(self.sizes.sum())

    def rejoined(self, change: _Change = without_repeats, *, qrels: Qrels | None = None, ties: str = "trec") -> Joined:
        """Return the judged documents with ranks, after applying a change to each table."""
        judged = self.qrels if qrels is None else qrels
        changed = (Run(change(table), name=self.name) for table in self.check_input.blocks())
        return _concatenated([join(judged, run, ties=ties) for run in changed], judged)

    def effects(
        self,
        then: Joined | Sequence[float],
        by: str,
        *,
        now: Joined | Sequence[float] | None = None,
        measures: Sequence[Measure] = (),
    ) -> tuple[Effect, ...]:
        """Return the effects on the means; each side is given as ranks or as means."""
        chosen = measures or self.measures
        if now is None:
            now = self.joined if measures else self.now
        before, after = (means(side, chosen) if isinstance(side, Joined) else side for side in (now, then))
        return tuple(
            Effect(self.name, str(measure), old, new, by)
            for measure, old, new in zip(chosen, before, after, strict=True)
        )

    def effects_if_read(self, by: str) -> tuple[Effect, ...]:
        """Return the effects of a fault that evaluations reject: from undefined to the means."""
        return self.effects(self.now, by, now=[math.nan] * len(self.measures))

    def _add(self, table: PairTable) -> tuple[Joined, Joined]:
        once = self._without_repeats(table)
        joined = in_32_bits = self._join(once)
        names = table.queries.tolist()
        self.queries += names
        self.unknown += [names[number] for number in joined.unknown_queries.tolist()]
        self.sizes = np.append(self.sizes, np.diff(table.offsets))
        for ids in (table.queries, table.docs):
            if len(ids) and ids.not_text():
                self.not_text.update(
                    value for value in ids.tolist() if value != value.decode("utf-8", "replace").encode()
                )
        with np.errstate(over="ignore"):
            narrow = once.values.astype(np.float32).astype(np.float64)
        if self._add_scores(once, narrow):
            in_32_bits = self._join(replace(once, values=narrow))
        self._add_ranks(once)
        self._add_own(table)
        numbers = table.query_numbers()
        place = np.arange(len(table)) - table.offsets[numbers]
        rows = np.flatnonzero(place < _TOP)[: _SAMPLE - len(self.sample)]
        self.sample += zip(table.queries.take(numbers[rows]).tolist(), table.docs.take(rows).tolist(), strict=True)
        return joined, in_32_bits

    def _join(self, table: PairTable) -> Joined:
        return join(self.qrels, Run(table, name=self.name), ties="trec")

    def _without_repeats(self, table: PairTable) -> PairTable:
        repeats = table.repeats()
        if not repeats:
            return table
        rows = [row for group in repeats for row in group[1:]]
        self.repeated.add(len(rows), locations_of(table, rows, self.source))
        self.alike &= all(len(set(table.values[group].tolist())) == 1 for group in repeats)
        return without_repeats(table)

    def _add_scores(self, table: PairTable, narrow: FloatArray) -> bool:
        """Count what the scores show; return whether some are equal in 32 bits only."""
        values, sizes, inside = table.values, np.diff(table.offsets), _inside(table)
        several = sizes > 1
        equal = _per_query((values[1:] == values[:-1]) & inside, table)
        constant = several & (equal == sizes - 1)
        self.several += int(several.sum())
        self.varied += int((several & ~constant).sum())
        numbers = np.flatnonzero(constant)
        firsts = locations_of(table, table.offsets[numbers[:SHOWN]], self.source)
        self.constant.add(len(numbers), tuple(replace(location, document="") for location in firsts))
        rising = _per_query((values[1:] > values[:-1]) & inside, table) > 0
        order = np.arange(len(table))
        if rising.any():
            falling = _per_query((values[1:] < values[:-1]) & inside, table) > 0
            self.rising += int((rising & ~falling).sum())
            order = table.best_first(by_id=False)[0]
            values = values[order]
        narrow = narrow[order]
        near = (narrow[1:] == narrow[:-1]) & (values[1:] != values[:-1]) & inside
        rows = order[np.flatnonzero(near) + 1]
        self.collapsed.add(len(rows), locations_of(table, rows, self.source))
        return len(rows) > 0

    def _add_ranks(self, table: PairTable) -> None:
        ranks, values, inside = table.ranks, table.values, _inside(table)
        if ranks is None or not len(ranks):
            return
        self.lowest_rank = min(self.lowest_rank, float(ranks.min()))
        self.highest_rank = max(self.highest_rank, float(ranks.max()))
        self.ranked += int((np.diff(table.offsets) > 1).sum())
        order = np.arange(len(table))
        if ((ranks[1:] <= ranks[:-1]) & inside).any():
            order = table.best_first(by_id=False)[0]
            order = order[replace(table, values=-ranks[order]).best_first(by_id=False)[0]]
            ranks, values = ranks[order], values[order]
        rising = (ranks[1:] > ranks[:-1]) & inside & (values[1:] > values[:-1])
        if not rising.any():
            return
        against = _per_query(rising, table) > 0
        falling = _per_query(inside & (values[1:] < values[:-1]), table) > 0
        self.turned += int((against & ~falling).sum())
        rows = np.flatnonzero(rising) + 1
        _, first = np.unique(query_of(table, rows), return_index=True)
        self.contradicted.add(int(against.sum()), locations_of(table, order[rows[first[:SHOWN]]], self.source))

    def _add_own(self, table: PairTable) -> None:
        rows = self_retrieved_rows(table)
        for row, number in zip(rows.tolist(), query_of(table, rows).tolist(), strict=True):
            name = table.queries[number]
            if name in self.qrels.query_index and self.qrels[name].get(show_id(name), 0) > 0:
                continue
            scores = table.values[table.offsets[number] : table.offsets[number + 1]]
            self.own.add(1, locations_of(table, [row], self.source))
            self.own_first += not (scores > table.values[row]).any()


def locations_of(table: PairTable, rows: Sequence[int] | IntArray, source: str) -> tuple[Location, ...]:
    """Return the locations of the first of these rows."""
    shown = np.asarray(rows[:SHOWN], dtype=np.int64)
    return tuple(
        Location(
            source,
            0 if table.lines is None else int(table.lines[row]),
            show_id(table.queries[number]),
            show_id(table.docs[row]),
        )
        for row, number in zip(shown.tolist(), query_of(table, shown).tolist(), strict=True)
    )


def _digests(table: PairTable) -> dict[bytes, int]:
    """Return a hash of each ranking that does not depend on the order of its rows."""
    keys = pair_keys(table.docs.hashes(), table.values.view(np.uint64).astype(np.int64)) * _ODD
    sums = np.zeros(len(keys) + 1, dtype=np.uint64)
    np.cumsum(keys, out=sums[1:])
    own = sums[table.offsets[1:]] - sums[table.offsets[:-1]]
    return dict(zip(table.queries.tolist(), own.tolist(), strict=True))


def _concatenated(parts: Sequence[Joined], qrels: Qrels) -> Joined:
    """Concatenate the blocks of a run."""
    if not parts:
        return Joined.empty(qrels)
    columns = zip(*((p.numbers, p.rows, p.rank, p.tie_first, p.tie_last, p.retrieved) for p in parts), strict=True)
    of_run, rows, *ranks, retrieved = map(np.concatenate, columns)
    return Joined.of_entries(qrels, of_run, rows, ranks, retrieved=retrieved, ties="trec")


def _per_query(flags: npt.NDArray[np.bool_], table: PairTable) -> IntArray:
    """Count the flagged rows of each query."""
    return np.bincount(query_of(table, np.flatnonzero(flags)), minlength=len(table.queries))


def _inside(table: PairTable) -> npt.NDArray[np.bool_]:
    """Return which rows are followed by a row of the same query."""
    inside = np.ones(max(len(table) - 1, 0), dtype=bool)
    cuts = table.offsets[1:-1]
    inside[cuts[(cuts > 0) & (cuts < len(table))] - 1] = False
    return inside

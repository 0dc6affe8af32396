"""One pass through a run: what there is to count, and its judged documents with their ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import filterfalse
from typing import Any

import numpy as np
import numpy.typing as npt

from rankgauge.checks.readers import Given
from rankgauge.core.findings import Location
from rankgauge.core.ids import IntArray, show_id
from rankgauge.core.pair_table import FloatArray, PairTable, offsets_of, pair_keys
from rankgauge.data.join import Joined, join
from rankgauge.data.model import Qrels, Run

__all__ = ["Seen", "Survey", "locations_of", "survey"]

SHOWN = 5
_TOP = 10
_SAMPLE = 20_000
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(slots=True)
class Seen:
    """How often something was seen, and the first places."""

    count: int = 0
    locations: tuple[Location, ...] = ()

    def add(self, count: int, locations: tuple[Location, ...]) -> None:
        """Once more, so often."""
        self.count += count
        self.locations = (*self.locations, *locations)[:SHOWN]


@dataclass(slots=True)
class Survey:
    """What one pass through a run has found; `documents` and `sizes` count what it holds.

    Attributes:
        given: The run.
        joined: Its judged documents, each once, with their ranks.
        queries: Its queries.
        sizes: How many documents each has.
        unknown: Its queries without judgments.
        several: How many queries have two or more documents.
        constant: Of these, those whose scores are all equal.
        rising: Those whose scores ascend from line to line.
        varied: Those whose scores differ.
        ranked: Whether there are ranks, and how many queries of two or more documents have some.
        contradicted: Queries whose ranks say another order than the scores.
        turned: Queries whose ranks ascend with the scores.
        lowest_rank: The lowest rank.
        highest_rank: The highest.
        repeated: Documents that stand in a ranking once more.
        alike: Whether each of these has the same score again.
        collapsed: Documents whose score is that of the next one in 32 bits only.
        narrow: The same as `joined` with scores in 32 bits, where that can change a value.
        selves: Documents that have the id of their query: (query, document, rank, relevant).
        strange: Ids that are not UTF-8.
        sample: Queries with the first documents of each.
        digest: Query to a number that another ranking has not.
    """

    given: Given
    joined: Joined
    queries: list[bytes] = field(default_factory=list)
    sizes: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    unknown: list[bytes] = field(default_factory=list)
    several: int = 0
    constant: Seen = field(default_factory=Seen)
    rising: int = 0
    varied: int = 0
    ranked: int = 0
    contradicted: Seen = field(default_factory=Seen)
    turned: int = 0
    lowest_rank: float = np.inf
    highest_rank: float = -np.inf
    repeated: Seen = field(default_factory=Seen)
    alike: bool = True
    collapsed: Seen = field(default_factory=Seen)
    narrow: Joined | None = None
    selves: Seen = field(default_factory=Seen)
    selves_first: int = 0
    strange: set[bytes] = field(default_factory=set)
    sample: list[tuple[bytes, bytes]] = field(default_factory=list)
    digest: dict[bytes, int] = field(default_factory=dict)

    @property
    def documents(self) -> int:
        """How many documents the run has."""
        return int(self.sizes.sum())

    @property
    def missing(self) -> IntArray:
        """The judged queries that the run does not have."""
        there = np.zeros(len(self.joined.qrels), dtype=bool)
        there[self.joined.numbers] = True
        return np.flatnonzero(~there)


def survey(given: Given, qrels: Qrels, *, several: bool) -> Survey:
    """Look at a run once.

    Args:
        given: The run.
        qrels: The judgments.
        several: Whether there are other runs that it may be the same as.
    """
    parts: list[Joined] = []
    found = Survey(given, Joined.empty(qrels))
    sizes: list[IntArray] = []
    narrow: list[Joined] = []
    for table in given.blocks():
        once = _each_once(table, found)
        run = Run(once, name=given.name)
        joined = join(qrels, run, ties="trec", table=once)
        parts.append(joined)
        names = table.queries.tolist()
        found.unknown += [names[number] for number in joined.unknown_queries.tolist()]
        found.queries += names
        sizes.append(np.diff(table.offsets))
        for ids in (table.queries, table.docs):
            if len(ids) and ids.not_text():
                found.strange.update(filterfalse(_is_text, ids.tolist()))
        narrow += _narrowed(once, _scores(once, found), joined)
        _ranks(once, found)
        _selves(table, qrels, found)
        _sample(table, found)
        if several:
            _digest(table, names, found)
    found.sizes = np.concatenate(sizes) if sizes else found.sizes
    found.joined = joined_whole(parts, qrels)
    if narrow:
        there = np.concatenate([part.numbers for part in narrow])
        rest = _chosen(found.joined, np.isin(found.joined.numbers, there, invert=True))
        found.narrow = joined_whole([rest, *narrow], qrels)
    return found


def _chosen(joined: Joined, kept: npt.NDArray[np.bool_]) -> Joined:
    """Only these of its queries."""
    sizes = np.diff(joined.offsets)
    rows = np.flatnonzero(np.repeat(kept, sizes))
    return replace(
        joined,
        numbers=joined.numbers[kept],
        offsets=offsets_of(sizes[kept]),
        rank=joined.rank[rows],
        tie_first=joined.tie_first[rows],
        tie_last=joined.tie_last[rows],
        grade=joined.grade[rows],
        retrieved=joined.retrieved[kept],
    )


def _narrowed(once: PairTable, near: IntArray, joined: Joined) -> list[Joined]:
    """The queries in which a judged document has such a neighbour, joined with 32-bit scores.

    Args:
        once: The documents, each once.
        near: The rows of the documents that 32 bits do not tell apart, and their queries.
        joined: The same queries as they are.
    """
    qrels = joined.qrels
    if not len(near):
        return []
    docs = np.unique(once.docs.take(near).hashes())
    known = qrels.table.docs.hashes()
    # Mostly none of them is judged for any query.
    if not np.isin(docs, known).any():
        return []
    of_run = np.searchsorted(once.offsets, near, side="right") - 1
    wanted = np.zeros(len(once.queries), dtype=bool)
    numbers = [qrels.query_index.get(name, -1) for name in once.queries.take(of_run).tolist()]
    keys = pair_keys(once.docs.take(near).hashes(), np.array(numbers, dtype=np.int64))
    wanted[of_run[np.isin(keys, qrels.index[0])]] = True
    if not wanted.any():
        return []
    rows = np.flatnonzero(np.repeat(wanted, np.diff(once.offsets)))
    part = in_32_bits(once.keep(rows))
    found = join(qrels, Run(part), ties="trec", table=part)
    kept = {qrels.query_index.get(once.queries[int(row)], -1) for row in np.flatnonzero(wanted)}
    return [_chosen(found, np.isin(found.numbers, list(kept)))]


def _is_text(value: bytes) -> bool:
    return value == value.decode("utf-8", "replace").encode()


def rejoined(given: Given, qrels: Qrels, change: Any = None, *, ties: str = "trec") -> Joined:
    """The judged documents of a run, with their ranks, after a change of each of its tables.

    Args:
        given: The run.
        qrels: The judgments.
        change: Makes another table of a table.
        ties: Order of equal scores.
    """
    parts = []
    for table in given.blocks():
        changed = table if change is None else change(table)
        parts.append(join(qrels, Run(changed, name=given.name), ties=ties, table=changed))
    return joined_whole(parts, qrels)


def each_once(table: PairTable, policy: Any = "best") -> PairTable:
    """The table with each document once in a ranking."""
    return Run(table).without_repeats(policy)


def joined_whole(parts: Sequence[Joined], qrels: Qrels) -> Joined:
    """Blocks of a run as one."""
    if not parts:
        return Joined.empty(qrels)
    if len(parts) == 1:
        return parts[0]
    numbers = np.concatenate([part.numbers for part in parts])
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    of_query = np.argsort(numbers, kind="stable")
    starts = offsets_of(sizes)[:-1]
    moved = sizes[of_query]
    rows = np.repeat(starts[of_query] - offsets_of(moved)[:-1], moved) + np.arange(sizes.sum())

    def column(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    return Joined(
        qrels=qrels,
        numbers=numbers[of_query],
        offsets=offsets_of(moved),
        rank=column("rank")[rows],
        tie_first=column("tie_first")[rows],
        tie_last=column("tie_last")[rows],
        grade=column("grade")[rows],
        retrieved=column("retrieved")[of_query],
        in_run=column("in_run")[of_query],
        unknown_queries=np.zeros(0, dtype=np.int64),
        rows=column("rows")[rows],
    )


def locations_of(
    table: PairTable, rows: Sequence[int] | IntArray, source: str
) -> tuple[Location, ...]:
    """The first of these rows, as places."""
    return tuple(
        Location(
            source,
            0 if table.lines is None else int(table.lines[row]),
            show_id(table.queries[int(np.searchsorted(table.offsets, row, side="right")) - 1]),
            show_id(table.docs[int(row)]),
        )
        for row in rows[:SHOWN]
    )


def query_locations(table: PairTable, numbers: IntArray, source: str) -> tuple[Location, ...]:
    """The first of these queries, as places."""
    return tuple(
        Location(
            source,
            0 if table.lines is None else int(table.lines[table.offsets[number]]),
            show_id(table.queries[int(number)]),
        )
        for number in numbers[:SHOWN].tolist()
    )


def _each_once(table: PairTable, found: Survey) -> PairTable:
    repeats = table.repeats()
    if not repeats:
        return table
    rows = [row for group in repeats for row in group[1:]]
    found.repeated.add(len(rows), locations_of(table, rows, found.given.source))
    found.alike &= all(len(set(table.values[group].tolist())) == 1 for group in repeats)
    return each_once(table)


def _per_query(flags: npt.NDArray[Any], offsets: IntArray) -> IntArray:
    """How many rows of each query have a flag."""
    # Mostly none has: then nothing is added up.
    if not flags.any():
        return np.zeros(len(offsets) - 1, dtype=np.int64)
    rows = np.flatnonzero(flags)
    numbers = np.searchsorted(offsets, rows, side="right") - 1
    return np.bincount(numbers, minlength=len(offsets) - 1)


def _scores(table: PairTable, found: Survey) -> IntArray:
    """Which queries have constant, rising or nearly equal scores; and the rows of the last."""
    values, offsets = table.values, table.offsets
    sizes = np.diff(offsets)
    inside = _inside(table)
    up = (values[1:] > values[:-1]) & inside
    rising = _per_query(up, offsets) > 0
    equal = (values[1:] == values[:-1]) & inside
    same = _per_query(equal, offsets)
    several = sizes > 1
    constant = several & (same == sizes - 1)
    found.several += int(several.sum())
    found.varied += int((several & ~constant).sum())
    numbers = np.flatnonzero(constant)
    found.constant.add(len(numbers), query_locations(table, numbers, found.given.source))
    if rising.any():
        down = _per_query((values[1:] < values[:-1]) & inside, offsets) > 0
        found.rising += int((rising & ~down).sum())
        order = _best_first(table)
        values = values[order]
    narrow = _narrow(values)
    near = (narrow[1:] == narrow[:-1]) & (values[1:] != values[:-1]) & inside
    rows = np.flatnonzero(near) + 1
    if not len(rows):
        return rows
    at = order[rows] if rising.any() else rows
    found.collapsed.add(len(rows), locations_of(table, at, found.given.source))
    return np.concatenate([at, order[rows - 1] if rising.any() else rows - 1])


def _best_first(table: PairTable) -> IntArray:
    """The rows of each query by score, the best first."""
    order = _in_places(table)
    if order is not None:
        values = table.values[order]
        if not ((values[1:] > values[:-1]) & _inside(table)).any():
            return order
    return np.lexsort((-table.values, table.query_numbers()))


def _in_places(table: PairTable) -> IntArray | None:
    """The rows of each query in the order of their ranks, where these are 1, 2, 3, ...

    None where they are not: then they have to be sorted, which takes longer.
    """
    if table.ranks is None:
        return None
    sizes = np.diff(table.offsets)
    fitting = (table.ranks >= 1) & (table.ranks <= np.repeat(sizes, sizes))
    if not fitting.all():
        return None
    places = np.repeat(table.offsets[:-1], sizes) + table.ranks.astype(np.int64) - 1
    order = np.full(len(places), -1, dtype=np.int64)
    order[places] = np.arange(len(places))
    # A rank that stands twice leaves the place of another empty; so does half a rank.
    return order if (order >= 0).all() else None


def _narrow(values: FloatArray) -> npt.NDArray[np.float32]:
    """The scores as 32-bit floats; what is too large is infinite."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _inside(table: PairTable) -> npt.NDArray[np.bool_]:
    """Which rows are followed by another of the same query."""
    inside = np.ones(max(len(table) - 1, 0), dtype=bool)
    cuts = table.offsets[1:-1]
    inside[cuts[(cuts > 0) & (cuts < len(table))] - 1] = False
    return inside


def _ranks(table: PairTable, found: Survey) -> None:
    """Which queries have ranks that contradict the scores, or ascend with them."""
    ranks, values, offsets = table.ranks, table.values, table.offsets
    if ranks is None or not len(ranks):
        return
    found.lowest_rank = min(found.lowest_rank, float(ranks.min()))
    found.highest_rank = max(found.highest_rank, float(ranks.max()))
    sizes = np.diff(offsets)
    found.ranked += int((sizes > 1).sum())
    inside = _inside(table)
    order = None
    if ((ranks[1:] <= ranks[:-1]) & inside).any():
        order = _in_places(table)
        if order is None:
            order = np.lexsort((-values, ranks, table.query_numbers()))
        ranks, values = ranks[order], values[order]
    later = (ranks[1:] > ranks[:-1]) & inside
    up = later & (values[1:] > values[:-1])
    if not up.any():
        return
    against = _per_query(up, offsets)
    down = _per_query(inside & (values[1:] < values[:-1]), offsets)
    turned = (against > 0) & (down == 0)
    found.turned += int(turned.sum())
    rows = np.flatnonzero(up) + 1
    _, first = np.unique(np.searchsorted(offsets, rows, side="right"), return_index=True)
    at = rows[first[:SHOWN]]
    shown = at if order is None else order[at]
    found.contradicted.add(int((against > 0).sum()), locations_of(table, shown, found.given.source))


def _selves(table: PairTable, qrels: Qrels, found: Survey) -> None:
    """Documents that have the id of their query, unless it is judged relevant."""
    sizes = np.diff(table.offsets)
    own = np.repeat(table.queries.hashes(), sizes)
    rows = np.flatnonzero(table.docs.hashes() == own)
    if not len(rows):
        return
    numbers = np.searchsorted(table.offsets, rows, side="right") - 1
    rows = rows[table.docs.same(rows, table.queries, numbers)]
    for row in rows.tolist():
        number = int(np.searchsorted(table.offsets, row, side="right")) - 1
        name = table.queries[number]
        if name in qrels.query_index and qrels[name].get(show_id(name), 0) > 0:
            continue
        span = slice(int(table.offsets[number]), int(table.offsets[number + 1]))
        first = int((table.values[span] > table.values[row]).sum()) == 0
        found.selves.add(1, locations_of(table, [row], found.given.source))
        found.selves_first += first


def _sample(table: PairTable, found: Survey) -> None:
    """The documents that stand first, as many as can be looked at one by one."""
    left = _SAMPLE - len(found.sample)
    if left <= 0:
        return
    starts = np.repeat(table.offsets[:-1], np.minimum(np.diff(table.offsets), _TOP))
    counts = np.minimum(np.diff(table.offsets), _TOP)
    rows = starts + np.arange(len(starts)) - np.repeat(offsets_of(counts)[:-1], counts)
    rows = rows[:left]
    numbers = np.searchsorted(table.offsets, rows, side="right") - 1
    queries = table.queries.take(numbers).tolist()
    found.sample += zip(queries, table.docs.take(rows).tolist(), strict=True)


def _digest(table: PairTable, names: list[bytes], found: Survey) -> None:
    """A number for each query that only the same documents with the same scores have."""
    scores = table.values.view(np.uint64).astype(np.int64)
    keys = pair_keys(table.docs.hashes(), scores) * _ODD
    sums = np.zeros(len(keys) + 1, dtype=np.uint64)
    np.cumsum(keys, out=sums[1:])
    own = sums[table.offsets[1:]] - sums[table.offsets[:-1]]
    found.digest.update(zip(names, own.tolist(), strict=True))


def without_rows(table: PairTable, rows: IntArray) -> PairTable:
    """The table without these rows."""
    kept = np.ones(len(table), dtype=bool)
    kept[rows] = False
    return table.keep(np.flatnonzero(kept))


def without_selves(table: PairTable) -> PairTable:
    """The table without documents that have the id of their query."""
    own = np.repeat(table.queries.hashes(), np.diff(table.offsets))
    rows = np.flatnonzero(table.docs.hashes() == own)
    numbers = np.searchsorted(table.offsets, rows, side="right") - 1
    return without_rows(table, rows[table.docs.same(rows, table.queries, numbers)])


def in_32_bits(table: PairTable) -> PairTable:
    """The table with the scores that 32-bit floats hold."""
    return replace(table, values=_narrow(table.values).astype(np.float64))


def by_rank(table: PairTable) -> PairTable:
    """The table with its ranks for scores; as it is where it has none."""
    return table if table.ranks is None else replace(table, values=-table.ranks)


def turned(table: PairTable) -> PairTable:
    """The table with the lowest scores best."""
    return replace(table, values=-table.values)

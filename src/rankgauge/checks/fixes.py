"""``mend()``: copies of judgments and runs without what a check found, if safe or asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rankgauge.checks.copies import copy_lines, copy_name
from rankgauge.checks.readers import Given, given_qrels, given_runs, read_whole
from rankgauge.checks.result import CheckResult
from rankgauge.core.findings import FINDING_KINDS
from rankgauge.core.ids import Ids, IntArray
from rankgauge.core.pair_table import PairTable
from rankgauge.core.text import many
from rankgauge.data.id_spelling import Spelling, Way, renamed, spelled, way_of
from rankgauge.data.model import Qrels, Run
from rankgauge.errors import InputError, UnknownName
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout

__all__ = ["Mended", "mend"]

_SAMPLE = 20_000
_UNREAD = ("F101", "R102")

# A table without the fault, and how many rows it had.
_Step: TypeAlias = Callable[[PairTable], tuple[PairTable, int]]


@dataclass(frozen=True, eq=False)
class _Copy:
    """An input and what became of it.

    Attributes:
        given: The input.
        layout: Judgments or run.
        before: Its rows, without those that no evaluation reads.
        after: The mended ones.
        done: Code to the number of rows that it was mended in.
        left: Codes of faults that no copy can carry and that were not asked for.
    """

    given: Given
    layout: Layout
    before: PairTable
    after: PairTable
    done: Mapping[str, int]
    left: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.done) and not self.left


@dataclass(frozen=True, eq=False, repr=False)
class Mended:
    """Judgments and runs as they were given, but for what was mended.

    Made by :func:`mend`.
    """

    _copies: tuple[_Copy, ...]

    @property
    def done(self) -> dict[str, dict[str, int]]:
        """Input to code to the number of rows that were mended."""
        return {copy.given.source: dict(copy.done) for copy in self._copies if copy.changed}

    def qrels(self) -> Qrels:
        """The judgments.

        Raises:
            InputError: If something else is still wrong with them.
        """
        return Qrels(self._copies[0].after)

    def runs(self) -> tuple[Run, ...]:
        """The runs, in the order given."""
        return tuple(Run(copy.after, name=copy.given.name) for copy in self._copies[1:])

    def write(self, folder: str | os.PathLike[str]) -> list[str]:
        """Write a copy of each input that was mended into a folder, which is made.

        A copy has the name of its file, and the lines of its file but for those that are left out
        or mended. Where the input has no lines, or another format, its rows are written anew, and
        that is said.

        Returns:
            What was written, a sentence a file.

        Raises:
            InputError: If a copy cannot be written, or would take the place of an input.
        """
        originals = [Path(copy.given.source) for copy in self._copies]
        paths: dict[int, Path] = {}
        taken: set[str] = set()
        for number, copy in enumerate(self._copies):
            if copy.changed:
                name = copy_name(copy.given.source, copy.layout)
                # Files of one name from several folders are told apart by their place.
                while name.casefold() in taken:
                    name = f"{number}-{name}"
                taken.add(name.casefold())
                paths[number] = Path(folder, name)
                # All are looked at before the first is written.
                _refuse_originals(paths[number], originals)
        said = [_told(copy, paths.get(number)) for number, copy in enumerate(self._copies)]
        return [sentence for sentence in said if sentence] or ["nothing to mend: no copy written"]


def _told(copy: _Copy, path: Path | None) -> str:
    """Write a copy, and what is said of it."""
    if copy.left:
        codes = " ".join(f"--fix-also {code}" for code in copy.left)
        return f"{copy.given.source}: not copied, it has lines that no copy can carry: {codes}"
    if path is None:
        return ""
    pair = (copy.before, copy.after)
    kept = copy_lines(copy.given.source, path, pair, copy.layout)
    counts = ", ".join(f"{code} {many(number, 'row')}" for code, number in copy.done.items())
    anew = not kept and Path(copy.given.source).is_file()
    return f"wrote {path}: {counts}" + ("; all rows are written anew" if anew else "")


def mend(found: CheckResult, qrels: Any, runs: Any = (), *, also: Iterable[str] = ()) -> Mended:
    """Mend what a check found, in copies.

    What is safe is mended wherever it was found; what could mean something else only where its
    code is named: lines that cannot be read are left out (F101), as are scores that are no numbers
    (R102) and documents with the id of their query (R108); of a document that stands twice its best
    place is kept (R101); ranks become scores (R103); scores are negated (R104). Nothing else
    changes: neither order nor any other row.

    Args:
        found: What :func:`check` found in these inputs.
        qrels: The judgments, as they were checked.
        runs: The runs, as they were checked.
        also: Codes to be mended although they are not safe.

    Raises:
        UnknownName: For a code that nobody knows, or that cannot be mended.
        InputError: If an input cannot be read at all.

    Example:
        >>> from rankgauge import check
        >>> rows = [("q1", "d1", 1), ("q1", "d2", 0), ("q1", "d1", 1)]
        >>> mended = mend(check(rows), rows)
        >>> mended.done, mended.qrels()["q1"]
        ({'judgments': {'J101': 1}}, {'d1': 1.0, 'd2': 0.0})
    """
    wanted = {code for code, kind in FINDING_KINDS.items() if kind.automatic == "safe"} | _codes(
        also
    )
    judged = given_qrels(qrels)
    inputs = [(judged, JUDGMENTS), *((run, RUN) for run in given_runs(runs))]
    known = _whole(judged)
    return Mended(tuple(_mended(found, pair, wanted, known) for pair in inputs))


def _codes(also: Iterable[str]) -> set[str]:
    codes = {also} if isinstance(also, str) else set(also)
    mendable = [code for code, kind in FINDING_KINDS.items() if kind.automatic]
    for code in sorted(codes):
        if code not in mendable:
            known = code in FINDING_KINDS
            raise UnknownName(
                f"{code} cannot be mended without a person" if known
                else f"no problem has the code {code!r}",
                where="also", fix=f"codes that can be: {', '.join(mendable)}",
            )  # fmt: skip
    return codes


def _mended(
    found: CheckResult, pair: tuple[Given, Layout], wanted: set[str], judged: PairTable
) -> _Copy:
    given, layout = pair
    counts = {
        problem.kind.code: problem.count
        for problem in found.problems
        if problem.source == given.source
    }
    before = _whole(given)
    table = before
    # What cannot be read was left out by the reader.
    done = {code: counts[code] for code in _UNREAD if code in counts and code in wanted}
    if "P103" in counts and layout is RUN:
        table, number = _as_judged(table, judged)
        done |= {"P103": number} if number else {}
    for code, step in _STEPS.items():
        if code in counts and (code in wanted or code in _SAFER):
            step = step if code in wanted else _SAFER[code]  # noqa: PLW2901 - the same code
            table, number = step(table)
            if number:
                done[code] = number
    left = tuple(code for code in _UNREAD if code in counts and code not in wanted)
    return _Copy(given, layout, before, table, done, left if done else ())


def _whole(given: Given) -> PairTable:
    """All rows that can be read, with their lines and ranks."""
    found = given if given.table is not None else read_whole(given)
    return found.whole


# ---- one step for each code


def _as_judged(table: PairTable, judged: PairTable) -> tuple[PairTable, int]:
    """A run with its ids written as in the judgments, where each can mean one only."""
    queries = _spelling(table.queries, judged.queries)
    docs = _spelling(table.docs, judged.docs)
    if queries is None and docs is None:
        return table, 0
    found = renamed(table, queries, docs)
    rows = np.arange(len(table))
    same = table.docs.same(rows, found.docs, rows)
    names = np.arange(len(table.queries))
    same &= table.queries.same(names, found.queries, names)[table.query_numbers()]
    return found, int(np.count_nonzero(~same))


def _spelling(ours: Ids, theirs: Ids) -> Spelling | None:
    """Which id means which; None where one could mean two.

    If the judgments have the shorter way to write ids, it is taken for all ids of the run, also for
    those that are not judged: one file is not to have two ways.
    """
    mine, known = set(ours.tolist()), set(theirs.tolist())
    # Some tell the way, as they did when the problem was found.
    ids = ours.compact() if len(ours) <= _SAMPLE else ours.take(_spread(len(ours)))
    way = way_of(set(ids.tolist()), known)
    found = None if way is None else spelled(way, [ours], known)
    if way is None or found is None or not found.one_to_one:
        return None
    if any(_turned(way, value) != meant for value, meant in found.names.items()):
        return found
    names = {}
    for value in mine:
        new = value if value in known else _turned(way, value)
        if new != value:
            names[value] = new
    # What is written anew may meet no other id.
    new_ids = set(names.values())
    apart = len(new_ids) == len(names)
    if apart and not any(value in new_ids for value in mine if value not in names):
        return replace(found, names=names)
    return found


def _spread(size: int) -> IntArray:
    """So many rows, from the first to the last."""
    return np.linspace(0, size - 1, _SAMPLE).astype(np.int64)


def _turned(way: Way, value: bytes) -> bytes:
    return way.turn(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _first_of_each(table: PairTable) -> tuple[PairTable, int]:
    """Of pairs that stand several times with one number, the first."""
    return _dropped(table, lambda group: group[0], alike=True)


def _best_of_each(table: PairTable) -> tuple[PairTable, int]:
    """Of pairs that stand several times, the one of the highest number."""
    return _dropped(table, lambda group: group[int(np.argmax(table.values[group]))], alike=False)


def _dropped(
    table: PairTable, kept: Callable[[Sequence[int]], int], *, alike: bool
) -> tuple[PairTable, int]:
    keep = np.ones(len(table), dtype=bool)
    for group in table.repeats():
        if not alike or len(set(table.values[group].tolist())) == 1:
            keep[group] = False
            keep[kept(group)] = True
    return table.keep(np.flatnonzero(keep)), int(np.count_nonzero(~keep))


def _others_than_the_query(table: PairTable) -> tuple[PairTable, int]:
    queries = table.queries.take(table.query_numbers())
    rows = np.arange(len(table))
    same = queries.same(rows, table.docs, rows)
    return table.keep(np.flatnonzero(~same)), int(np.count_nonzero(same))


def _negated(table: PairTable) -> tuple[PairTable, int]:
    # Not -0.0, which is written otherwise than 0.
    return replace(table, values=0.0 - table.values), len(table)


def _by_rank(table: PairTable) -> tuple[PairTable, int]:
    """Scores that descend with the ranks: of n documents the first gets n."""
    if table.ranks is None:
        return table, 0
    numbers = table.query_numbers()
    order = np.lexsort((np.arange(len(table)), table.ranks, numbers))
    places = np.arange(len(table)) - table.offsets[numbers]
    values = np.empty(len(table))
    values[order] = np.diff(table.offsets)[numbers] - places
    return replace(table, values=values), len(table)


_STEPS: dict[str, _Step] = {
    "R104": _negated,
    "R103": _by_rank,
    "J101": _first_of_each,
    "R101": _best_of_each,
    "R108": _others_than_the_query,
}
# What is safe of a step that is not: a document that stands twice with one score.
_SAFER: dict[str, _Step] = {"R101": _first_of_each}


def _refuse_originals(path: Path, originals: Sequence[Path]) -> None:
    """A copy takes the place of no input, be it that of another copy."""
    if path.exists() and any(one.exists() and path.samefile(one) for one in originals):
        raise InputError(
            "the copy would take the place of an input", where=os.fspath(path),
            fix="name another folder",
        )  # fmt: skip

"""``fix_inputs()``: copies of judgments and runs with findings of a check fixed.

Copies have the lines of their input, with some lines removed and some fields changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any, TypeAlias

import numpy as np

from rankgauge.checks.check_inputs import FINDING_KINDS, CheckResult
from rankgauge.checks.checked_run import negated, ranks_as_scores, without_repeats, without_self_retrieved
from rankgauge.checks.readers import CheckInput, open_qrels, open_runs, read_into_memory
from rankgauge.core.ids import Ids
from rankgauge.core.pair_table import PairTable
from rankgauge.core.text import many
from rankgauge.data.id_spelling import Spelling, Way, renamed, spelled, way_of
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError, UnknownName
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout, number_text, read_number
from rankgauge.formats.lines import numbered_lines, opened, start_of
from rankgauge.formats.readers import is_header
from rankgauge.formats.registry import format_of, target_format
from rankgauge.formats.trec import places_of
from rankgauge.formats.writers import write_tables, written

_SAMPLE = 20_000
# Findings whose rows the reader drops.
_UNREAD = ("F101", "R102")

_FIELD = re.compile(rb"\S+")
_BOM = b"\xef\xbb\xbf"
# Number of fields of a run without scores: query, document, rank.
_RANKED = 3
_Fields: TypeAlias = tuple[bytes, bytes, bytes | None]
# Rows converted to Python objects at a time, to limit memory.
_AT_ONCE = 1 << 16
_END: tuple[int, None] = (0, None)

_Fix: TypeAlias = Callable[[PairTable], PairTable]
# Applied in this order.
_FIXES: dict[str, _Fix] = {
    "R104": negated,
    "R103": ranks_as_scores,
    "J101": partial(without_repeats, keep="first", alike=True),
    "R101": without_repeats,
    "R108": without_self_retrieved,
}
# The safe part of an unsafe fix: repeated documents with the same score.
_SAFE: dict[str, _Fix] = {"R101": partial(without_repeats, keep="first", alike=True)}


@dataclass(frozen=True, eq=False)
class _Copy:
    """An input and its fixed version."""

    check_input: CheckInput
    layout: Layout
    before: PairTable
    after: PairTable
    fixed: Mapping[str, int]
    left: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.fixed) and not self.left

    @property
    def name(self) -> str:
        """Name of the file of the copy."""
        name = PurePath(self.check_input.source).name.removesuffix(".zip") or self.layout.name
        return name if PurePath(name).suffix else f"{name}.txt"

    def write(self, path: Path | None) -> str:
        """Write the copy and return a sentence about it; empty if nothing changed."""
        source = self.check_input.source
        if self.left:
            options = " ".join(f"--fix-also {code}" for code in self.left)
            return f"{source}: not copied: it has lines that cannot be kept in a copy: {options}"
        if path is None:
            return ""
        anew = not self._write_lines(path) and Path(source).is_file()
        counts = ", ".join(f"{code} {many(number, 'row')}" for code, number in self.fixed.items())
        return f"wrote {path}: {counts}" + ("; all rows were rewritten" if anew else "")

    def _write_lines(self, target: Path) -> bool:
        """Write the original lines with their changes if possible, otherwise all rows; return which."""
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"the folder cannot be created: {error.strerror or error}",
                where=os.fspath(target.parent),
                fix="name another folder",
            ) from None
        rows = self._edited_rows()
        ranked = rows is not None and self._counts_ranks()
        if rows is None or (ranked and len(self.before) != len(self.after)):
            # Ranks with gaps would be read as scores: write new ranks.
            write_tables([self.after], target, self.layout, PurePath(target).stem, form="msmarco" if ranked else None)
            return False
        with written(target) as stream:
            stream.writelines(self._edited_lines(rows))
        return True

    def _counts_ranks(self) -> bool:
        """Return whether the lines have ranks instead of scores and no header that says so."""
        before, source = self.before, self.check_input.source
        if self.layout is not RUN or before.lines is None or not len(before):
            return False
        row = int(np.argmin(before.lines))
        with opened(source) as stream:
            line = next(line for number, line in numbered_lines(stream, source) if number == before.lines[row])
        parts = line.split(b"\t") if line.count(b"\t") == _RANKED - 1 else line.split()
        return len(parts) == _RANKED and read_number(parts[-1]) != before.values[row]

    def _rows_span_lines(self) -> bool:
        """Return whether any row spans several lines: a quotation mark is open at the end of a line.

        A single quotation mark inside a cell also counts; then all rows are rewritten.
        """
        with opened(self.check_input.source) as stream:
            lines = (line for _, line in numbered_lines(stream, self.check_input.source))
            first = next((line for line in lines if line.strip()), b"")
            if not is_header(first, self.layout):
                return False
            return first.count(b'"') % 2 == 1 or any(line.count(b'"') % 2 for line in lines)

    def _edited_rows(self) -> Iterator[tuple[int, _Fields | None]] | None:
        """Return the line number of each row to keep and its new fields, None for an unchanged row.

        None if rows do not match lines, or if changed lines cannot be edited in place.
        """
        before, after, source = self.before, self.after, self.check_input.source
        if before.lines is None or after.lines is None or not Path(source).is_file():
            return None
        first, then = np.argsort(before.lines), np.argsort(after.lines)
        numbers = after.lines[then]
        ordered = before.lines[first]
        if (ordered[1:] == ordered[:-1]).any() or target_format(source) in {"parquet", "arrow"}:
            return None
        old = first[np.searchsorted(ordered, numbers)]
        queries = after.queries.take(after.query_numbers()[then])
        docs, values = after.docs.take(then), after.values[then]
        rows = np.arange(len(then))
        other_value = before.values[old] != values
        same = before.queries.take(before.query_numbers()[old]).same(rows, queries, rows)
        same &= before.docs.take(old).same(rows, docs, rows) & ~other_value
        # Fields are edited in place only in TREC format; other formats have quotes and escapes.
        if not same.all() and format_of(source) is not None:
            return None
        if self._rows_span_lines():
            return None

        def edited() -> Iterator[tuple[int, _Fields | None]]:
            for start in range(0, len(numbers), _AT_ONCE):
                part = slice(start, start + _AT_ONCE)
                columns = (
                    queries.take(part),
                    docs.take(part),
                    values[part],
                    other_value[part],
                    numbers[part],
                    same[part],
                )
                for query, doc, value, other, number, kept in zip(*(c.tolist() for c in columns), strict=True):
                    text = number_text(value, self.layout).encode() if other else None
                    yield number, None if kept else (query, doc, text)

        return edited()

    def _edited_lines(self, rows: Iterator[tuple[int, _Fields | None]]) -> Iterator[bytes]:
        """Yield the lines of the copy."""
        # After a header, and in JSON Lines, a line that begins with # is an ordinary row.
        remarks, begun = format_of(self.check_input.source) != "jsonl", False
        at, new = next(rows, _END)
        with opened(self.check_input.source) as stream:
            if start_of(stream).startswith(_BOM):
                yield _BOM
            for number, line in numbered_lines(stream, self.check_input.source):
                if number == at:
                    yield line if new is None else self._with_fields(line, new)
                    at, new = next(rows, _END)
                    begun = True
                elif not line.strip() or (remarks and line.lstrip().startswith(b"#")):
                    yield line
                elif not begun and is_header(line, self.layout):
                    yield line
                    remarks, begun = False, True

    def _with_fields(self, line: bytes, new: _Fields) -> bytes:
        """Replace the fields of a line, keeping the separators."""
        fields = list(_FIELD.finditer(line))
        places = places_of([field[0] for field in fields], self.layout) or (0, 0, 0)
        # From right to left, so that earlier positions stay valid.
        for at, text in sorted(zip(places, new, strict=True), key=lambda pair: -pair[0]):
            if text is not None:
                line = line[: fields[at].start()] + text + line[fields[at].end() :]
        return line


@dataclass(frozen=True, eq=False, repr=False)
class FixedInputs:
    """Judgments and runs with the findings of a check fixed.

    Returned by :func:`fix_inputs`.
    """

    _copies: tuple[_Copy, ...]

    @property
    def fixed(self) -> dict[str, dict[str, int]]:
        """Number of fixed rows by input and code."""
        return {copy.check_input.source: dict(copy.fixed) for copy in self._copies if copy.changed}

    def qrels(self) -> Qrels:
        """Return the fixed judgments.

        Raises:
            InputError: If the judgments have other faults.
        """
        return Qrels(self._copies[0].after)

    def runs(self) -> tuple[Run, ...]:
        """Return the fixed runs in the order given."""
        return tuple(Run(copy.after, name=copy.check_input.name) for copy in self._copies[1:])

    def write(self, folder: str | os.PathLike[str]) -> list[str]:
        """Write a copy of each fixed input into a folder, which is created if necessary.

        A copy has the name and the lines of its file, except for removed and changed lines. If the
        input has no lines, or another format, its rows are rewritten.

        Returns:
            One sentence for each file written.

        Raises:
            InputError: If a copy cannot be written, or would replace an input.
        """
        originals = [Path(copy.check_input.source) for copy in self._copies]
        paths: dict[int, Path] = {}
        for number, copy in enumerate(self._copies):
            if copy.changed:
                name = copy.name
                # Files with the same name from different folders are numbered.
                while name.casefold() in {path.name.casefold() for path in paths.values()}:
                    name = f"{number}-{name}"
                path = paths[number] = Path(folder, name)
                # Check all targets before writing the first.
                if path.exists() and any(o.exists() and path.samefile(o) for o in originals):
                    raise InputError(
                        "the copy would overwrite an input", where=os.fspath(path), fix="name another folder"
                    )
        sentences = [copy.write(paths.get(number)) for number, copy in enumerate(self._copies)]
        return list(filter(None, sentences)) or ["nothing to fix: no copy written"]


def fix_inputs(found: CheckResult, qrels: Any, runs: Any = (), *, also: Iterable[str] = ()) -> FixedInputs:
    """Fix the findings of a check in copies of the inputs.

    Safe fixes are always applied. Fixes that guess the intention are applied only if their code is
    named: dropping unreadable lines (F101), scores that are not numbers (R102), and documents with
    the id of their query (R108); keeping the best rank of a repeated document (R101); converting
    ranks to scores (R103); and negating scores (R104). The order and all other rows are unchanged.

    Args:
        found: Result of :func:`check` for these inputs.
        qrels: The checked judgments.
        runs: The checked runs.
        also: Codes of additional findings to fix.

    Raises:
        UnknownName: For an unknown code, or one that cannot be fixed.
        InputError: If an input cannot be read at all.

    Example:
        >>> from rankgauge import check
        >>> rows = [("q1", "d1", 1), ("q1", "d2", 0), ("q1", "d1", 1)]
        >>> result = fix_inputs(check(rows), rows)
        >>> result.fixed, result.qrels()["q1"]
        ({'judgments': {'J101': 1}}, {'d1': 1.0, 'd2': 0.0})
    """
    safe = {code for code, kind in FINDING_KINDS.items() if kind.automatic == "safe"}
    wanted = safe | fixable_codes(also)
    judged = open_qrels(qrels)
    inputs = [(judged, JUDGMENTS), *((run, RUN) for run in open_runs(runs))]
    known = _all_rows(judged)
    return FixedInputs(tuple(_fixed(found, pair, wanted, known) for pair in inputs))


def fixable_codes(also: Iterable[str]) -> set[str]:
    """Return codes of findings.

    Raises:
        UnknownName: If a code is unknown, or its finding cannot be fixed automatically.

    Example:
        >>> fixable_codes("R101")
        {'R101'}
    """
    codes = {also} if isinstance(also, str) else set(also)
    fixable = [code for code, kind in FINDING_KINDS.items() if kind.automatic]
    for code in sorted(codes.difference(fixable)):
        raise UnknownName(
            f"{code} cannot be fixed automatically" if code in FINDING_KINDS else f"unknown finding code {code!r}",
            where="also",
            fix=f"codes that can be fixed: {', '.join(fixable)}",
        )
    return codes


def _fixed(result: CheckResult, pair: tuple[CheckInput, Layout], wanted: set[str], judged: PairTable) -> _Copy:
    check_input, layout = pair
    counts = {
        finding.code: finding.evidence.count
        for finding in result.findings
        if finding.evidence.source == check_input.source
    }
    before = table = _all_rows(check_input)
    # The reader has already dropped unreadable rows.
    fixed = {code: counts[code] for code in _UNREAD if code in counts and code in wanted}
    if "P103" in counts and layout is RUN:
        table, number = _as_judged(table, judged)
        fixed |= {"P103": number} if number else {}
    for code, on_request in _FIXES.items():
        fix = on_request if code in wanted else _SAFE.get(code)
        if code in counts and fix is not None:
            after = fix(table)
            if after is not table:
                # Either rows were dropped, or all values changed.
                fixed[code] = len(table) - len(after) or len(table)
            table = after
    left = tuple(code for code in _UNREAD if code in counts and code not in wanted)
    return _Copy(check_input, layout, before, table, fixed, left if fixed else ())


def _all_rows(check_input: CheckInput) -> PairTable:
    """Return all readable rows with their lines and ranks."""
    return (check_input if check_input.table is not None else read_into_memory(check_input)).whole


def _as_judged(table: PairTable, judged: PairTable) -> tuple[PairTable, int]:
    """Return a run with ids spelled as in the judgments, where this is unambiguous."""
    queries = _spelling(table.queries, judged.queries)
    docs = _spelling(table.docs, judged.docs)
    if queries is None and docs is None:
        return table, 0
    respelled = renamed(table, queries, docs)
    rows = np.arange(len(table))
    same = table.docs.same(rows, respelled.docs, rows)
    names = np.arange(len(table.queries))
    same &= table.queries.same(names, respelled.queries, names)[table.query_numbers()]
    return respelled, int(np.count_nonzero(~same))


def _spelling(ours: Ids, theirs: Ids) -> Spelling | None:
    """Return the mapping from ids to their spelling in the judgments; None if ambiguous.

    If the judgments use the shorter spelling, it applies to all ids of the run, including unjudged
    ones: a file must not mix two conventions.
    """
    mine, known = set(ours.tolist()), set(theirs.tolist())
    # A sample shows the convention, as it did when the fault was found.
    spread = np.linspace(0, len(ours) - 1, _SAMPLE).astype(np.int64)
    sample = ours.compact() if len(ours) <= _SAMPLE else ours.take(spread)
    way = way_of(set(sample.tolist()), known)
    spelling = None if way is None else spelled(way, [ours], known)
    if way is None or spelling is None or not spelling.one_to_one:
        return None
    if any(_turned(way, value) != meant for value, meant in spelling.names.items()):
        return spelling
    names = {value: new for value in mine if value not in known and (new := _turned(way, value)) != value}
    # New ids must not equal existing ids.
    new_ids = set(names.values())
    unique = len(new_ids) == len(names) and new_ids.isdisjoint(mine - names.keys())
    return replace(spelling, names=names) if unique else spelling


def _turned(way: Way, value: bytes) -> bytes:
    return way.turn(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

"""Readers of judgments and runs for checks: repeatable, and tolerant of bad rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from rankgauge.core.findings import Location
from rankgauge.core.ids import Ids
from rankgauge.core.pair_table import PairTable
from rankgauge.data.qrels import Qrels, table_of_input
from rankgauge.data.run import Run, run_name
from rankgauge.errors import InputError
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout, columns_of
from rankgauge.formats.frames import frame_columns, is_frame, listed
from rankgauge.formats.pieces import PairFile
from rankgauge.formats.readers import read_table
from rankgauge.formats.registry import InFormat
from rankgauge.formats.rows import RowFault

_SHOWN = 5


@dataclass(slots=True)
class RefusedRows:
    """Dropped rows: their number and the first of them.

    Attributes:
        lines: Number of unreadable lines.
        first_lines: First of these lines.
        numbers: Number of rows whose score or grade is missing or not finite.
        first_numbers: First of these rows.
    """

    lines: int = 0
    first_lines: list[RowFault] = field(default_factory=list)
    numbers: int = 0
    first_numbers: list[RowFault] = field(default_factory=list)

    def add(self, fault: RowFault) -> None:
        """Add a row."""
        if fault.not_finite:
            self.numbers += 1
        else:
            self.lines += 1
        first = self.first_numbers if fault.not_finite else self.first_lines
        if len(first) < _SHOWN:
            first.append(fault)


def fault_locations(faults: Iterable[RowFault], source: str) -> tuple[Location, ...]:
    """Return the locations of dropped rows."""
    return tuple(Location(source, f.line, f.query, f.document) for f in faults)


@dataclass(frozen=True, eq=False)
class CheckInput:
    """An input that can be read repeatedly."""

    name: str
    source: str
    table: PairTable | None = None
    faults: RefusedRows | None = None
    form: str | None = None

    def blocks(self) -> Iterator[PairTable]:
        """Return blocks of whole queries; each is valid only until the next is requested."""
        if self.table is not None:
            return iter([self.table])
        return PairFile(self.file, RUN, ranks=True).blocks()

    @property
    def file(self) -> str | InFormat:
        """Path, with the format if one was specified."""
        return self.source if self.form is None else InFormat(self.source, self.form)

    @cached_property
    def whole(self) -> PairTable:
        """All rows in one table, which need not be in memory."""
        return read_table(self.file, RUN) if self.table is None else self.table


def open_qrels(source: Any) -> CheckInput:
    """Return judgments, including repeated pairs."""
    if isinstance(source, Qrels):
        return CheckInput("judgments", "judgments", source.table)
    if isinstance(source, Run):
        Qrels.of(source)  # which raises an error for it
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else "judgments"
    table, faults = _read(source, JUDGMENTS)
    return CheckInput(name, name, table, faults)


def open_runs(runs: Any) -> list[CheckInput]:
    """Return runs with unique names."""
    if isinstance(runs, Iterator):
        runs = list(runs)
    if _is_one(runs):
        named: list[tuple[str, Any]] = [("", runs)]
    elif isinstance(runs, Mapping):
        named = [(str(name), run) for name, run in runs.items()]
    else:
        named = [("", run) for run in runs]
    inputs = [_open_run(run, name, number) for number, (name, run) in enumerate(named)]
    names = [run.name for run in inputs]
    # Files with the same name are in different folders; other runs are numbered.
    sources = [run.source for run in inputs]
    distinct = [
        run.source if sources.count(run.source) == 1 else f"{run.name} {number}"
        for number, run in enumerate(inputs, start=1)
    ]
    return [
        run if names.count(run.name) == 1 else replace(run, name=name)
        for run, name in zip(inputs, distinct, strict=True)
    ]


def _is_one(runs: Any) -> bool:
    """Return whether the argument is one run rather than a container of runs."""
    if isinstance(runs, Mapping):
        return _is_one_mapping(runs)
    if isinstance(runs, str | os.PathLike | Run | np.ndarray) or is_frame(runs):
        return True
    first = runs[0] if isinstance(runs, Sequence) and runs else None
    if isinstance(first, Mapping):
        columns = columns_of(first, RUN)
        return columns is not None and isinstance(first[columns.query], str | int | bytes)
    # A row is short: query, document, score.
    return isinstance(first, tuple) and not isinstance(first[0], Run | Mapping)


def _is_one_mapping(runs: Mapping[Any, Any]) -> bool:
    """Return whether a mapping has queries or columns; otherwise it maps names to runs."""
    inner = next(iter(runs.values()), None)
    if columns_of(runs, RUN) is not None:
        return True
    if isinstance(inner, str | os.PathLike | Run) or is_frame(inner):
        return False
    if not isinstance(inner, Mapping):
        return True
    number = next(iter(inner.values()), 0.0)
    return isinstance(number, str) or not isinstance(number, Mapping | Sequence)


def _open_run(run: Any, name: str, number: int) -> CheckInput:
    if isinstance(run, str | os.PathLike):
        source = os.fspath(run)
        form = run.format if isinstance(run, InFormat) else None
        check_input = CheckInput(name or run_name(source), source, form=form)
        return read_into_memory(check_input) if source == "-" else check_input
    if isinstance(run, Run):
        name = name or run.name
        return CheckInput(name, name, run.table)
    if isinstance(run, Qrels):
        Run.of(run)  # which raises an error for it
    name = name or (f"run {number + 1}" if number else "run")
    table, faults = _read(run, RUN)
    return CheckInput(name, name, _with_ranks(table, run), faults)


def read_into_memory(check_input: CheckInput) -> CheckInput:
    """Return the run with its file read into memory."""
    table, faults = _read(check_input.file, RUN)
    return replace(check_input, table=table, faults=faults)


def _read(source: Any, layout: Layout) -> tuple[PairTable, RefusedRows | None]:
    """Return all readable rows, and the dropped ones."""
    try:
        return table_of_input(source, layout, ranks=True), None
    except InputError as error:
        # The traceback would keep all rows read so far in memory.
        refused = error.with_traceback(None)
    faults = RefusedRows()
    try:
        table = None if source == "-" else table_of_input(source, layout, ranks=True, on_error=faults.add)
    except InputError:
        table = None
    # If no row was dropped, the input as a whole is at fault.
    if table is None or not len(table) or not (faults.lines or faults.numbers):
        raise refused
    return table, faults


def _with_ranks(table: PairTable, source: Any) -> PairTable:
    """Return the table with the ranks that a mapping or data frame has next to the scores."""
    if not isinstance(source, Mapping | Sequence | np.ndarray) and is_frame(source):
        data = frame_columns(source, RUN.name)
    elif isinstance(source, Mapping) and columns_of(source, RUN) is not None:
        data = dict(source)
    else:
        return table
    columns = columns_of(data, RUN)
    rank = next((name for name in data if str(name).strip().lower() == "rank"), None)
    if rank is None or columns is None or columns.value == rank:
        return table
    try:
        ranks = np.array(listed(data[rank]), dtype=np.float64)
    except (TypeError, ValueError):
        return table
    if len(ranks) != len(table) or not np.isfinite(ranks).all():
        return table
    codes, _ = Ids.of(listed(data[columns.query]), "query id").unique()
    return replace(table, ranks=ranks[np.argsort(codes, kind="stable")])

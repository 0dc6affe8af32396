"""Judgments and runs as a check reads them: again, and past what an evaluation refuses."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgauge.errors import InputError
from rankgauge.formats import files, memory
from rankgauge.formats.layout import JUDGMENTS, RUN, columns_of
from rankgauge.model import Qrels, Run, table_of_input
from rankgauge.table import PairTable

__all__ = ["Given", "given_qrels", "given_runs"]


@dataclass(frozen=True, eq=False)
class Given:
    """An input that can be read again and again.

    Attributes:
        name: What it is called.
        source: The path, or its name where it has none.
        table: All of it, where it is in memory; else it is read in blocks of whole queries.
    """

    name: str
    source: str
    table: PairTable | None = None

    def blocks(self) -> Iterator[PairTable]:
        """Its rows, whole queries at a time. A block is good until the next is asked for."""
        if self.table is not None:
            yield self.table
            return
        for block in files.read_blocks(self.source, RUN):
            if block is None:
                raise InputError(
                    "the file changed while it was read", where=self.source, fix="check it again"
                )
            yield block


def given_qrels(source: Any) -> Given:
    """Judgments, with what stands there twice.

    Raises:
        InputError: If they cannot be read at all.
    """
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        return Given(name, name, files.read_table(source, JUDGMENTS))
    if isinstance(source, Qrels):
        return Given("judgments", "judgments", source.table)
    return Given("judgments", "judgments", table_of_input(source, JUDGMENTS))


def given_runs(runs: Any) -> list[Given]:
    """Runs, each with a name of its own.

    Args:
        runs: One run, several in a list, or a mapping of name to run.

    Raises:
        InputError: If one cannot be read at all.
    """
    if _is_one(runs):
        named: list[tuple[str, Any]] = [("", runs)]
    elif isinstance(runs, Mapping):
        named = [(str(name), run) for name, run in runs.items()]
    else:
        named = [("", run) for run in runs]
    found: list[Given] = []
    for name, run in named:
        found.append(_given_run(run, name, len(found)))
    return found


def _is_one(runs: Any) -> bool:
    """Whether it is one run; else it holds some."""
    if isinstance(runs, Mapping):
        return _is_mapped(runs)
    if isinstance(runs, str | os.PathLike | Run | np.ndarray) or memory.is_frame(runs):
        return True
    first = runs[0] if isinstance(runs, Sequence) and runs else None
    if isinstance(first, Mapping):
        return columns_of(first, RUN) is not None and not _is_mapped(first)
    # Rows are short: a query, a document, a score.
    return isinstance(first, tuple) and not isinstance(first[0], Run | Mapping)


def _is_mapped(runs: Mapping[Any, Any]) -> bool:
    """Whether a mapping is one of queries, or of columns; else it is one of names to runs."""
    inner = next(iter(runs.values()), None)
    if columns_of(runs, RUN) is not None:
        return True
    if isinstance(inner, str | os.PathLike | Run) or memory.is_frame(inner):
        return False
    if not isinstance(inner, Mapping):
        return True
    number = next(iter(inner.values()), 0.0)
    return isinstance(number, str) or not isinstance(number, Mapping | Sequence)


def _given_run(run: Any, name: str, number: int) -> Given:
    if isinstance(run, str | os.PathLike):
        source = os.fspath(run)
        return Given(name or source, source, files.read_table(run, RUN))
    made = Run.of(run)
    name = name or (made.name if isinstance(run, Run) else f"run {number + 1}" if number else "run")
    return Given(name, name, made.table)

"""Runs: the documents that a retriever returned for each query, with scores."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rankgauge.core.arguments import of_kind
from rankgauge.core.ids import Frozen
from rankgauge.core.pair_table import PairTable
from rankgauge.core.policies import Duplicates
from rankgauge.core.text import many
from rankgauge.data.qrels import Pairs, table_of_input
from rankgauge.errors import InputError
from rankgauge.formats import frames, readers
from rankgauge.formats.columns import RUN
from rankgauge.formats.lines import Source
from rankgauge.formats.registry import SUFFIXES, InFormat, unpacked
from rankgauge.formats.rows import PairInput


@dataclass(frozen=True, eq=False, repr=False)
class Run(Frozen, Pairs):
    """Documents with scores that a retriever returned, by query id; immutable.

    Documents are ranked when joined with judgments, using the tie policy. Create it with :meth:`of`
    or :meth:`from_columns`. It is a mapping: ``run["q1"]["d1"]`` is a score.

    Attributes:
        name: Name of the run in tables.
        settings: Settings that produced it; a mapping of text to plain values.

    Example:
        >>> run = Run.of({"q1": ["d2", "d1"]}, name="bm25")
        >>> run.name, list(run["q1"])
        ('bm25', ['d2', 'd1'])
    """

    name: str = "run"
    settings: Mapping[str, Any] = field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(self, table: Any, name: str = "run", settings: Mapping[str, Any] = ...) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.table, PairTable):
            name = None if self.name == "run" else self.name
            run = type(self).of(self.table, name=name, settings=self.settings or None)
            for part in fields(self):
                object.__setattr__(self, part.name, getattr(run, part.name))
        where = f"run {self.name!r}"
        of_kind("the settings", self.settings, Mapping, 'pass them as {"k1": 0.9}', where=where)
        # An immutable copy.
        settings = MappingProxyType(copy.deepcopy(dict(self.settings)))
        object.__setattr__(self, "settings", settings)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "settings": dict(self.settings)}

    @classmethod
    def of(cls, source: Any, *, name: str | None = None, settings: Mapping[str, Any] | None = None) -> Run:
        """Convert any supported source to a run.

        Args:
            source: A mapping of query id to ``{document id: score}``, to a list of document ids
                (best first), or to a list of pairs ``(document id, score)``; a data frame with
                columns ``query_id, doc_id, score``; a path (see :func:`read_run`); rows ``(query,
                document, score)``; or a run.
            name: Name in tables.
            settings: Settings that produced it.

        Raises:
            InputError: If the source is not supported, or a score is not a finite number.

        Example:
            >>> Run.of({"q1": {"d1": 0.5, "d2": 0.25}})["q1"]["d2"]
            0.25
        """
        if isinstance(source, Run):
            run = source
        elif isinstance(source, Pairs):
            raise InputError(
                "got judgments, expected a run", where=RUN.name, fix="pass the judgments first, then the run"
            )
        elif isinstance(source, str | os.PathLike):
            run = read_run(source)
        else:
            run = cls(table_of_input(source, RUN))
        if name is not None:
            run = replace(run, name=name)
        return run if settings is None else replace(run, settings=settings)

    @classmethod
    def from_columns(cls, query_ids: Any, doc_ids: Any, scores: Any, *, name: str = "run") -> Self:
        """Create a run from three columns of equal length (lists or NumPy arrays).

        Example:
            >>> Run.from_columns([1, 1], [7, 9], [0.5, 2.0])["1"]
            {'7': 0.5, '9': 2.0}
        """
        return cls(frames.from_columns(query_ids, doc_ids, scores, PairInput(RUN, RUN.name)), name=name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        same = self.name == other.name and dict(self.settings) == dict(other.settings)
        return same and self._rows() == other._rows()

    __hash__ = None  # type: ignore[assignment] # holds arrays

    def __repr__(self) -> str:
        return f"<Run {self.name!r}: {many(len(self), 'query')}, {many(len(self.table), 'document')}>"

    @cached_property
    def repeats(self) -> list[list[int]]:
        """Groups of rows of documents that occur more than once in a ranking."""
        return self.table.repeats()

    def without_repeats(self, policy: Duplicates) -> Run:
        """Return the run without duplicate documents, by this policy.

        Raises:
            InputError: If the policy is ``error`` and a ranking has a duplicate document.
        """
        if not self.repeats:
            return self
        if policy == "error":
            raise self.table.repeat_error(
                self.repeats[0],
                fix="remove it, or keep the highest score: evaluate and cut take duplicates='best' (--duplicates best)",
            )
        keep = np.ones(len(self.table), dtype=bool)
        for group in self.repeats:
            keep[group] = False
            scores = self.table.values[group]
            keep[group[0] if policy == "first" else group[int(np.argmax(scores))]] = True
        return replace(self, table=self.table.keep(np.flatnonzero(keep)))


def read_run(path: Source, *, format: str | None = None, name: str | None = None) -> Run:
    """Read a run from a file.

    Args:
        path: A file in TREC format (``query Q0 document rank score tag``), CSV, TSV, or JSON lines
            with a header or keys, a JSON mapping, Parquet, or Arrow; also compressed (gzip, bzip2,
            xz, zstd, lz4); ``-`` for standard input; a zip archive with one file, or
            ``archive.zip!member``.
        format: One of `RUN_FORMATS`, if name and first line are ambiguous: ``trec``, ``csv``,
            ``tsv``, ``json``, ``jsonl``, ``msmarco`` (query, document, rank), or ``trec3`` (query,
            document, score).
        name: Name of the run; default: the file name without extensions.

    Raises:
        FormatError: With path, line, and column, if a line is invalid.
        InputError: If the file does not exist.
        MissingExtra: If a required library is not installed.

    Example:
        >>> from rankgauge.sample import sample_path
        >>> read_run(sample_path("runs/bm25.run")).name
        'bm25'
    """
    return Run(readers.read_table(path, RUN, format), name=run_name(path) if name is None else name)


def joined_run(parts: Sequence[Run]) -> Run:
    """Join runs with different queries into one."""
    if len(parts) == 1:
        return parts[0]
    return replace(parts[0], table=PairTable.joined([part.table for part in parts]))


def readable_again(source: Any) -> Any:
    """Return the path of a file, which can be read repeatedly; otherwise the run."""
    path = source.path if isinstance(source, InFormat) else source
    if isinstance(path, str | os.PathLike) and os.path.isfile(path):  # noqa: PTH113 - may be "-"
        return source
    return Run.of(source)


def name_of(source: Any) -> str:
    """Return the name of a run or of a run file (see :func:`readable_again`)."""
    return source.name if isinstance(source, Run) else run_name(source)


def run_name(path: Source) -> str:
    """Return the name of a run: its file name without extensions."""
    path = path.path if isinstance(path, InFormat) else path
    # A path of a folder may end with a separator. Path does not support "-" and bytes.
    base = os.path.basename(os.path.normpath(os.fspath(path)))  # noqa: PTH119
    base = unpacked(base.rpartition(".zip!")[2])
    for ending in (".zip", ".run", ".txt", ".trec", *SUFFIXES):
        base = base.removesuffix(ending)
    return base if base not in {"", "-"} else "run"


def named_runs(runs: Any) -> list[Run]:
    """Return at least two runs, given as a mapping of name to run or as runs with names."""
    return [Run.of(run, name=name) for name, run in named_sources(runs)]


def named_sources(runs: Any) -> list[tuple[str, Any]]:
    """Return names and sources of at least two runs; the source of a run file is its path."""
    if isinstance(runs, Mapping):
        named = [(str(name), readable_again(run)) for name, run in runs.items()]
    elif isinstance(runs, Iterable) and not isinstance(runs, str | bytes | os.PathLike):
        sources = [readable_again(run) for run in runs]
        named = [(name_of(source), source) for source in sources]
    else:
        raise InputError(
            f"got {type(runs).__name__}, expected runs",
            where="runs",
            fix='pass them by name, {"bm25": run_a, "dense": run_b}, or in a list',
        )
    if len(named) < 2:
        raise InputError(
            f"got {many(len(named), 'run')}, expected two or more", where="runs", fix="pass at least one more"
        )
    return named


def write_run(run: Any, path: Source) -> None:
    r"""Write a run to a file atomically.

    Args:
        run: Anything that :meth:`Run.of` accepts; its name becomes the tag.
        path: As for :func:`write_qrels`.

    Raises:
        InputError: If the format cannot represent an id, or the file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> target = pathlib.Path(tempfile.mkdtemp()) / "a.run"
        >>> write_run(Run.of({"q1": ["d1"]}, name="mine"), target)
        >>> target.read_text()
        'q1 Q0 d1 1 1.0 mine\n'
    """
    from rankgauge.formats.writers import write_tables

    run = Run.of(run)
    write_tables([run.table], path, RUN, run.name)

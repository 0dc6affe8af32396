"""The nouns that come in: judgments, runs, and the policies that bind them."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Id, Ids, IntArray, freeze, id_bytes
from rankgauge.core.pair_table import FloatArray, PairTable, Sieve, offsets_of, pair_keys
from rankgauge.core.policies import Duplicates
from rankgauge.core.text import many
from rankgauge.errors import InputError
from rankgauge.formats import frames, mappings, readers
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout
from rankgauge.formats.lines import Source
from rankgauge.formats.registry import SUFFIXES, InFormat, unpacked
from rankgauge.formats.rows import OnError, finite

__all__ = [
    "Qrels",
    "Run",
    "read_qrels",
    "read_run",
    "write_qrels",
    "write_run",
]

# Far above any scale, and the sum of many is still a number.
_MOST = 1e100
_NO_TEXT = "\0"
_ENDINGS = (".zip", ".run", ".txt", ".trec", *SUFFIXES)


@dataclass(frozen=True, eq=False, repr=False)
class _Pairs(Mapping[str, Mapping[str, float]]):
    """Query id to document id to number, in columns."""

    table: PairTable

    @cached_property
    def query_index(self) -> dict[bytes, int]:
        """The number of each query."""
        return {query: number for number, query in enumerate(self.table.queries.tolist())}

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """The query ids as text, in order of first appearance."""
        return tuple(self.table.queries.shown())

    def __len__(self) -> int:
        return len(self.table.queries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.query_ids)

    def __getitem__(self, query: Id) -> Mapping[str, float]:
        number = self._number(query)
        if number is None:
            raise KeyError(query)
        rows = np.arange(self.table.offsets[number], self.table.offsets[number + 1])
        docs = self.table.docs.take(rows).shown()
        return dict(zip(docs, self.table.values[rows].tolist(), strict=True))

    def __contains__(self, query: object) -> bool:
        return self._number(query) is not None

    def _number(self, query: object) -> int | None:
        try:
            number = self.query_index.get(id_bytes(query))
        except InputError:
            return None
        # An id that is shown escaped is found by what is shown, too.
        return self._shown.get(query) if number is None else number

    @cached_property
    def _shown(self) -> dict[object, int]:
        return {query: number for number, query in enumerate(self.query_ids)}

    def __getstate__(self) -> dict[str, Any]:
        # What is cached can be made again; it need not travel.
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _rows(self) -> dict[bytes, list[tuple[bytes, float]]]:
        docs, values = self.table.docs.tolist(), self.table.values.tolist()
        ends = self.table.offsets.tolist()
        return {
            query: list(
                zip(docs[ends[q] : ends[q + 1]], values[ends[q] : ends[q + 1]], strict=True)
            )
            for q, query in enumerate(self.table.queries.tolist())
        }


@dataclass(frozen=True, eq=False, repr=False)
class Qrels(_Pairs):
    """Judgments: query id to document id to grade. Immutable; prepared once, used for many runs.

    Make it with :meth:`of` (mappings, data frames, files, rows), :meth:`from_columns` or
    :meth:`from_rankings`. It is a mapping: ``qrels["q1"]["d1"]`` is a grade.

    Grades are numbers. A document is relevant if its grade reaches the relevance level ``rel`` of
    the measure (1 by default); 0 is judged and not relevant; a negative grade means pooled but not
    judged.

    Example:
        >>> qrels = Qrels.of({"q1": {"d1": 3, "d2": 0}})
        >>> qrels["q1"]["d1"]
        3.0
    """

    def __post_init__(self) -> None:
        if not isinstance(self.table, PairTable):
            object.__setattr__(self, "table", type(self).of(self.table).table)
            return
        beyond = np.flatnonzero(np.abs(self.table.values) > _MOST)
        if len(beyond):
            grade = self.table.values[int(beyond[0])]
            raise InputError(
                f"grade {grade:g} is beyond {_MOST:g}, where sums are no numbers any more",
                where=self.table.source,
                fix="use a smaller scale",
            )
        repeats = self.table.repeats()
        if repeats:
            fix = "keep one judgment of each query and document"
            if self.table.lines is not None:
                fix += f", and of several judges one (fields are read as: {JUDGMENTS.fields})"
                from rankgauge.formats.extra_columns import subtopics_said

                fix += subtopics_said(self.table.source, self.table.lines[repeats[0]].tolist())
            raise self.table.repeat_error(repeats[0], fix=fix)

    @classmethod
    def of(cls, source: Any) -> Qrels:
        """Judgments from whatever holds them.

        Args:
            source: A mapping of query id to ``{document id: grade}``, to a set or list of relevant
                documents (grade 1); a data frame (pandas, polars, pyarrow, DuckDB) with columns
                ``query_id, doc_id, relevance``; a path (see :func:`read_qrels`); rows
                ``(query, document, grade)``; or judgments, which are returned as they are.

        Raises:
            InputError: If it is none of these, a grade is no finite number, a pair stands twice.

        Example:
            >>> Qrels.of({"q1": {"d3"}})["q1"]
            {'d3': 1.0}
        """
        if isinstance(source, Qrels):
            return source
        if isinstance(getattr(type(source), "reads", None), str):
            # Judgments that say more than a grade (`data.special_judgments`) hold ordinary ones.
            return cls.of(source.qrels)
        if isinstance(source, Run):
            raise InputError(
                f"got the run {source.name!r} where judgments were wanted",
                where=JUDGMENTS.name,
                fix="give the judgments first, then the run",
            )
        return cls(table_of_input(source, JUDGMENTS))

    @classmethod
    def from_columns(cls, query_ids: Any, doc_ids: Any, grades: Any) -> Qrels:
        """Judgments from three columns of equal length (lists or NumPy arrays).

        Example:
            >>> Qrels.from_columns(["q1", "q1"], ["d1", "d2"], [2, 0])["q1"]
            {'d1': 2.0, 'd2': 0.0}
        """
        return cls(frames.from_columns(query_ids, doc_ids, grades, JUDGMENTS))

    @classmethod
    def from_rankings(cls, rankings: Mapping[Any, Iterable[Any]]) -> Qrels:
        """Ordered ground truth, best document first: of n documents the first gets grade n.

        Example:
            >>> Qrels.from_rankings({"q1": ["d2", "d1"]})["q1"]
            {'d2': 2.0, 'd1': 1.0}
        """
        return cls(mappings.from_rankings(rankings))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Qrels):
            return NotImplemented
        mine, theirs = self._rows(), other._rows()
        return {q: dict(rows) for q, rows in mine.items()} == {
            q: dict(rows) for q, rows in theirs.items()
        }

    __hash__ = None  # type: ignore[assignment] # holds arrays

    def __repr__(self) -> str:
        return f"<Qrels: {len(self)} queries, {len(self.table)} judgments>"

    @cached_property
    def index(self) -> tuple[npt.NDArray[np.uint64], IntArray]:
        """Keys of all (query, document) pairs in ascending order, and their rows."""
        keys = pair_keys(self.table.docs.hashes(), self.table.query_numbers())
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        freeze(ordered, order)
        return ordered, order

    @cached_property
    def judged_docs(self) -> Sieve:
        """Lets the hash of a document pass if some query may have a judgment of it."""
        return Sieve(self.table.docs.hashes())

    @cached_property
    def judged_pairs(self) -> Sieve:
        """Lets the key of a pair pass if it may be judged."""
        return Sieve(self.index[0])

    @cached_property
    def texts(self) -> tuple[dict[str, int], list[tuple[str, ...]]]:
        """The number of each query by its text, and the documents of each query as text.

        An id that is no text in UTF-8 is a NUL here, which no text may be.
        """
        ends = self.table.offsets.tolist()
        docs = _decoded(self.table.docs)
        names = {name: number for number, name in enumerate(_decoded(self.table.queries))}
        names.pop(_NO_TEXT, None)
        return names, [tuple(docs[a:b]) for a, b in pairwise(ends)]

    @cached_property
    def low_grades(self) -> FloatArray:
        """The grades below 1 that are not 0: pooled only, or relevant to less than 1."""
        values = self.table.values
        low: FloatArray = values[values < 1]
        return low[low != 0] if len(low) else low

    @cached_property
    def ideal(self) -> tuple[FloatArray, IntArray]:
        """All grades >= 0, descending within each query, and the offsets of the queries."""
        rows = np.flatnonzero(self.table.values >= 0)
        numbers, grades = self.table.query_numbers()[rows], self.table.values[rows]
        grades = grades[np.lexsort((-grades, numbers))]
        offsets = offsets_of(np.bincount(numbers, minlength=len(self)))
        freeze(grades, offsets)
        return grades, offsets


@dataclass(frozen=True, eq=False, repr=False)
class Run(_Pairs):
    """What a retriever returned: query id to documents with scores. Immutable, as it came.

    Ranking happens when it meets judgments, by the tie policy. Make it with :meth:`of` or
    :meth:`from_columns`. It is a mapping: ``run["q1"]["d1"]`` is a score.

    Attributes:
        name: What the run is called in tables.
        settings: What made it, for the record; any mapping of text to plain values.

    Example:
        >>> run = Run.of({"q1": ["d2", "d1"]}, name="bm25")
        >>> run.name, list(run["q1"])
        ('bm25', ['d2', 'd1'])
    """

    name: str = "run"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.table, PairTable):
            name = None if self.name == "run" else self.name
            made = type(self).of(self.table, name=name, settings=self.settings or None)
            for part in fields(self):
                object.__setattr__(self, part.name, getattr(made, part.name))
        if not isinstance(self.settings, Mapping):
            raise InputError(
                f"got {self.settings!r:.60} for the settings of a run, wanted a mapping",
                where=f"run {self.name!r}",
                fix='give them as {"k1": 0.9}',
            )
        # A copy that cannot be changed.
        settings = MappingProxyType(copy.deepcopy(dict(self.settings)))
        object.__setattr__(self, "settings", settings)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "settings": dict(self.settings)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__post_init__()

    @classmethod
    def of(
        cls, source: Any, *, name: str | None = None, settings: Mapping[str, Any] | None = None
    ) -> Run:
        """A run from whatever holds it.

        Args:
            source: A mapping of query id to ``{document id: score}``, to a list of document ids,
                best first, or to a list of pairs ``(document id, score)``; a data frame with
                columns ``query_id, doc_id, score``; a path (see :func:`read_run`); rows ``(query,
                document, score)``; or a run.
            name: What it is called in tables.
            settings: What made it.

        Raises:
            InputError: If it is none of these, or a score is no finite number.

        Example:
            >>> Run.of({"q1": {"d1": 0.5, "d2": 0.25}})["q1"]["d2"]
            0.25
        """
        if isinstance(source, Qrels):
            raise InputError(
                "got judgments where a run was wanted",
                where=RUN.name,
                fix="give the judgments first, then the run",
            )
        if isinstance(source, Run):
            run = source
        elif isinstance(source, str | os.PathLike):
            run = read_run(source)
        else:
            run = cls(table_of_input(source, RUN))
        if name is not None:
            run = replace(run, name=name)
        return run if settings is None else replace(run, settings=settings)

    @classmethod
    def from_columns(cls, query_ids: Any, doc_ids: Any, scores: Any, *, name: str = "run") -> Self:
        """A run from three columns of equal length (lists or NumPy arrays).

        Example:
            >>> Run.from_columns([1, 1], [7, 9], [0.5, 2.0])["1"]
            {'7': 0.5, '9': 2.0}
        """
        return cls(frames.from_columns(query_ids, doc_ids, scores, RUN), name=name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        same = self.name == other.name and dict(self.settings) == dict(other.settings)
        return same and self._rows() == other._rows()

    __hash__ = None  # type: ignore[assignment] # holds arrays

    def __repr__(self) -> str:
        return f"<Run {self.name!r}: {len(self)} queries, {len(self.table)} documents>"

    @cached_property
    def repeats(self) -> list[list[int]]:
        """Rows of each document that stands more than once in its ranking."""
        return self.table.repeats()

    def without_repeats(self, policy: Duplicates) -> PairTable:
        """The table with each document once in a ranking.

        Raises:
            InputError: By the policy ``error``, if one stands more than once.
        """
        if not self.repeats:
            return self.table
        if policy == "error":
            raise self.table.repeat_error(
                self.repeats[0],
                fix="remove it, or keep one: evaluate and cut take duplicates='first' or 'best' "
                "(--duplicates first)",
            )
        keep = np.ones(len(self.table), dtype=bool)
        for group in self.repeats:
            keep[group] = False
            scores = self.table.values[group]
            keep[group[0] if policy == "first" else group[int(np.argmax(scores))]] = True
        return self.table.keep(np.flatnonzero(keep))


def _decoded(ids: Ids) -> list[str]:
    """Every id as text; `_NO_TEXT` where it is none."""
    values = ids.tolist()
    try:
        return [value.decode() for value in values]
    except UnicodeDecodeError:
        texts = (value.decode("utf-8", "replace") for value in values)
        return [
            text if text.encode() == value else _NO_TEXT
            for text, value in zip(texts, values, strict=True)
        ]


def table_of_input(
    source: Any, layout: Layout, *, ranks: bool = False, on_error: OnError | None = None
) -> PairTable:
    """The one coercion: the rows of whatever holds them, also where a pair occurs twice.

    Args:
        source: A table, a path, a mapping, a data frame, rows.
        layout: Judgments or run.
        ranks: Whether to read the ranks beside the scores in a file, too.
        on_error: Where given, gets the rows that do not fit, which are left out.

    Raises:
        InputError: If it cannot be read.
    """
    if isinstance(source, PairTable):
        return finite(source, layout, on_error)
    if isinstance(source, str | os.PathLike):
        return readers.read_table(source, layout, ranks=ranks, on_error=on_error)
    if isinstance(source, np.ndarray) and source.dtype.names:
        source = {name: source[name] for name in source.dtype.names}
    if isinstance(source, Mapping):
        return mappings.from_mapping(source, layout, on_error=on_error)
    if frames.is_frame(source):
        return frames.from_frame(source, layout, on_error=on_error)
    if isinstance(source, Iterable) and not isinstance(source, bytes):
        return mappings.from_rows(source, layout)
    raise InputError(
        f"got {type(source).__name__}, wanted {layout.words}",
        where=layout.name,
        fix=f"give a mapping {layout.mapping}, a data frame, a path or rows",
    )


def read_qrels(path: Source, *, format: str | None = None, split: str | None = None) -> Qrels:
    """Read judgments from a file, or out of what holds them.

    Args:
        path: A file in TREC format (``query iteration document grade``, or three columns), CSV, TSV
            or JSON lines with a header or keys, a JSON mapping, JSON of a search tool, Parquet or
            Arrow; packed (gzip, bzip2, xz, zstd, lz4) too; ``-`` for standard input. First bytes,
            name and first line decide which. Or a folder or a zip archive as BEIR lays it out, or
            with ``questions.csv``; that file alone (``question``, ``relevant``); a zip archive with
            one file, ``archive.zip!member``, ``ir_datasets:NAME`` or ``hf:NAME``.
        format: One of `QRELS_FORMATS`, where they do not: ``trec``, ``csv``, ``tsv``, ``json``,
            ``jsonl``, ``smart``, ``npl`` or ``letor``.
        split: Which judgments of a collection; ``test``, or the only ones, if left out.

    Raises:
        FormatError: With path, line and column, if a line does not fit.
        InputError: If there is no such file, or a pair is judged twice.
        MissingExtra: If it takes a library that is not installed.

    Example:
        >>> from rankgauge.sample import sample_path
        >>> read_qrels(sample_path("qrels.txt"))["q01"] != {}
        True
    """
    return Qrels(readers.read_table(path, JUDGMENTS, format, split=split))


def read_run(path: Source, *, format: str | None = None, name: str | None = None) -> Run:
    """Read a run from a file.

    Args:
        path: A file in TREC format (``query Q0 document rank score tag``), CSV, TSV or JSON lines
            with a header or keys, a JSON mapping, Parquet or Arrow; packed (gzip, bzip2, xz, zstd,
            lz4) too; ``-`` for standard input; a zip archive with one file, or
            ``archive.zip!member``.
        format: One of `RUN_FORMATS`, where name and first line do not say it: ``trec``, ``csv``,
            ``tsv``, ``json``, ``jsonl``, ``msmarco`` (query, document, rank) or ``trec3``
            (query, document, score).
        name: What the run is called; the name of the file, without its endings, if left out.

    Raises:
        FormatError: With path, line and column, if a line does not fit.
        InputError: If there is no such file.
        MissingExtra: If it takes a library that is not installed.

    Example:
        >>> from rankgauge.sample import sample_path
        >>> read_run(sample_path("runs/bm25.run")).name
        'bm25'
    """
    table = readers.read_table(path, RUN, format)
    return Run(table, name=run_name(path) if name is None else name)


def run_blocks(path: Source) -> Iterator[Run | None]:
    """Read a run in blocks of whole queries, so that not all of it is in mappings.

    None, and no more, where the file is not as simple as that: :func:`read_run` reads it then. A
    block is good until the next is asked for.
    """
    name = run_name(path)
    for table in readers.read_blocks(path, RUN):
        yield None if table is None else Run(table, name=name)


def run_name(path: Source) -> str:
    """What a run of this file is called: its name without endings."""
    path = path.path if isinstance(path, InFormat) else path
    base = os.path.basename(os.fspath(path))  # noqa: PTH119 - "-" and bytes are no Path
    base = unpacked(base.rpartition(".zip!")[2])
    for ending in _ENDINGS:
        base = base.removesuffix(ending)
    return base if base not in {"", "-"} else "run"


def named_runs(runs: Any) -> list[Run]:
    """Return two runs or more, given as a mapping of name to run or as runs with names.

    Raises:
        InputError: If they are fewer, or something else.
    """
    if isinstance(runs, Mapping):
        named = [Run.of(run, name=str(name)) for name, run in runs.items()]
    elif isinstance(runs, Iterable) and not isinstance(runs, str | bytes | os.PathLike):
        named = [Run.of(run) for run in runs]
    else:
        raise InputError(
            f"got {type(runs).__name__} where runs were wanted", where="runs",
            fix='give them by name, {"bm25": run_a, "dense": run_b}, or in a list',
        )  # fmt: skip
    if len(named) < 2:
        raise InputError(
            f"got {many(len(named), 'run')}, wanted two or more", where="runs", fix="give another"
        )
    return named


def write_qrels(qrels: Any, path: Source) -> None:
    r"""Write judgments: all of the file or, if it fails, nothing.

    Args:
        qrels: Anything that :meth:`Qrels.of` takes.
        path: ``.csv``, ``.tsv``, ``.json``, ``.jsonl``, ``.parquet`` or ``.arrow`` by name, else
            TREC format; ``.gz``, ``.xz``, ``.bz2``, ``.zst`` or ``.lz4`` behind it packs it; ``-``
            for standard output. :func:`convert` writes more.

    Raises:
        InputError: If an id cannot be carried by the format, or the file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> target = pathlib.Path(tempfile.mkdtemp()) / "qrels.txt"
        >>> write_qrels({"q1": {"d1": 2}}, target)
        >>> target.read_text()
        'q1 0 d1 2\n'
    """
    from rankgauge.formats.writers import write_table

    write_table(Qrels.of(qrels).table, path, JUDGMENTS)


def write_run(run: Any, path: Source) -> None:
    r"""Write a run: all of the file or, if it fails, nothing.

    Args:
        run: Anything that :meth:`Run.of` takes; its name becomes the tag.
        path: ``.csv``, ``.tsv``, ``.json``, ``.jsonl``, ``.parquet`` or ``.arrow`` by name, else
            TREC format; ``.gz``, ``.xz``, ``.bz2``, ``.zst`` or ``.lz4`` behind it packs it; ``-``
            for standard output. :func:`convert` writes more.

    Raises:
        InputError: If an id cannot be carried by the format, or the file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> target = pathlib.Path(tempfile.mkdtemp()) / "a.run"
        >>> write_run(Run.of({"q1": ["d1"]}, name="mine"), target)
        >>> target.read_text()
        'q1 Q0 d1 1 1.0 mine\n'
    """
    from rankgauge.formats.writers import write_table

    run = Run.of(run)
    write_table(run.table, path, RUN, run.name)

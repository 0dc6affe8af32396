"""Judgments: the grade of each judged (query, document) pair; the base of judgments and runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rankgauge.core import native
from rankgauge.core.ids import NO_TEXT, Id, Ids, IntArray, freeze, id_bytes, show_id
from rankgauge.core.pair_table import FloatArray, PairTable, distinct, offsets_of, ranges_of
from rankgauge.core.text import many, some
from rankgauge.errors import InputError, MismatchError
from rankgauge.formats import frames, mappings, readers
from rankgauge.formats.columns import JUDGMENTS, Layout
from rankgauge.formats.lines import Source
from rankgauge.formats.rows import OnError, PairInput, finite

# Far above any scale, yet sums of many remain finite.
_MOST = 1e100


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(Mapping[str, Mapping[str, float]]):
    """Mapping of query id to document id to number, stored in columns."""

    table: PairTable

    @cached_property
    def query_index(self) -> dict[bytes, int]:
        """Number of each query by id."""
        return {query: number for number, query in enumerate(self.table.queries.tolist())}

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """Query ids as text, in order of first appearance."""
        return tuple(self.table.queries.shown())

    def number_of(self, query: bytes) -> int | None:
        """Return the number of a query, or None."""
        return self.query_index.get(query)

    def __len__(self) -> int:
        return len(self.table.queries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.query_ids)

    def __getitem__(self, query: Id) -> Mapping[str, float]:
        number = self._number(query)
        if number is None:
            raise KeyError(query)
        rows = slice(*self.table.offsets[number : number + 2].tolist())
        docs = self.table.docs.take(rows).shown()
        return dict(zip(docs, self.table.values[rows].tolist(), strict=True))

    def __contains__(self, query: object) -> bool:
        return self._number(query) is not None

    def _number(self, query: object) -> int | None:
        try:
            number = self.query_index.get(id_bytes(query))
        except InputError:
            return None
        # Ids that are displayed escaped can also be looked up by that text.
        return self._rows_by_query.get(query) if number is None else number

    @cached_property
    def _rows_by_query(self) -> dict[object, int]:
        return {query: number for number, query in enumerate(self.query_ids)}

    def __getstate__(self) -> dict[str, Any]:
        # Cached values can be recomputed and are not pickled.
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def _rows(self) -> dict[bytes, list[tuple[bytes, float]]]:
        docs, values = self.table.docs.tolist(), self.table.values.tolist()
        ends = self.table.offsets.tolist()
        return {
            query: list(zip(docs[ends[q] : ends[q + 1]], values[ends[q] : ends[q + 1]], strict=True))
            for q, query in enumerate(self.table.queries.tolist())
        }


def table_of_input(source: Any, layout: Layout, *, ranks: bool = False, on_error: OnError | None = None) -> PairTable:
    """Convert any supported source to rows, including duplicate pairs."""
    origin = PairInput(layout, layout.name, on_error)
    if isinstance(source, PairTable):
        return finite(source, origin)
    if isinstance(source, str | os.PathLike):
        return readers.read_table(source, layout, ranks=ranks, on_error=on_error)
    if isinstance(source, np.ndarray) and source.dtype.names:
        source = {name: source[name] for name in source.dtype.names}
    if isinstance(source, Mapping):
        return mappings.from_mapping(source, origin)
    if frames.is_frame(source):
        return frames.from_frame(source, origin)
    if isinstance(source, Iterable) and not isinstance(source, bytes):
        return mappings.from_rows(source, layout)
    raise InputError(
        f"got {type(source).__name__}, expected {layout.words}",
        where=layout.name,
        fix=f"pass a mapping {layout.mapping}, a data frame, a path, or rows",
    )


@dataclass(frozen=True, eq=False, repr=False)
class Qrels(Pairs):
    """Judgments: query id to document id to grade. Immutable; prepared once for many runs.

    Create it with :meth:`of` (mappings, data frames, files, rows), :meth:`from_columns`, or
    :meth:`from_rankings`. It is a mapping: ``qrels["q1"]["d1"]`` is a grade.

    Grades are numbers. A document is relevant if its grade reaches the relevance level ``rel`` of
    the measure (1 by default); 0 means judged not relevant; a negative grade means pooled but not
    judged.

    Example:
        >>> qrels = Qrels.of({"q1": {"d1": 3, "d2": 0}})
        >>> qrels["q1"]["d1"]
        3.0
    """

    if TYPE_CHECKING:

        def __init__(self, table: Any) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.table, PairTable):
            object.__setattr__(self, "table", type(self).of(self.table).table)
            return
        beyond = np.flatnonzero(np.abs(self.table.values) > _MOST)
        if len(beyond):
            grade = self.table.values[int(beyond[0])]
            raise InputError(
                f"grade {grade:g} is beyond {_MOST:g}, where sums overflow",
                where=self.table.source,
                fix="use a smaller scale",
            )
        repeats = self.table.repeats()
        if repeats:
            fix = "keep one judgment per query and document"
            if self.table.lines is not None:
                fix += f", and those of one judge (fields are read as: {JUDGMENTS.fields})"
                from rankgauge.formats.extra_columns import subtopic_advice

                fix += subtopic_advice(self.table.source, self.table.lines[repeats[0]].tolist())
            raise self.table.repeat_error(repeats[0], fix=fix)

    @classmethod
    def of(cls, source: Any) -> Qrels:
        """Convert any supported source to judgments.

        Args:
            source: A mapping of query id to ``{document id: grade}``, or to a set or list of
                relevant documents (grade 1); a data frame (pandas, polars, pyarrow, DuckDB) with
                columns ``query_id, doc_id, relevance``; a path (see :func:`read_qrels`); rows
                ``(query, document, grade)``; or judgments, which are returned unchanged.

        Raises:
            InputError: If the source is not supported, a grade is not a finite number, or there is
                a duplicate pair.

        Example:
            >>> Qrels.of({"q1": {"d3"}})["q1"]
            {'d3': 1.0}
        """
        if isinstance(source, Qrels):
            return source
        if isinstance(getattr(type(source), "reads", None), str):
            # Special judgments (`data.special_qrels`) contain ordinary ones.
            return cls.of(source.qrels)
        if isinstance(source, Pairs):  # a run, whose class this module does not import
            raise InputError(
                f"got the run {vars(source)['name']!r}, expected judgments",
                where=JUDGMENTS.name,
                fix="pass the judgments first, then the run",
            )
        return cls(table_of_input(source, JUDGMENTS))

    @classmethod
    def from_columns(cls, query_ids: Any, doc_ids: Any, grades: Any) -> Qrels:
        """Create judgments from three columns of equal length (lists or NumPy arrays).

        Example:
            >>> Qrels.from_columns(["q1", "q1"], ["d1", "d2"], [2, 0])["q1"]
            {'d1': 2.0, 'd2': 0.0}
        """
        return cls(frames.from_columns(query_ids, doc_ids, grades, PairInput(JUDGMENTS, JUDGMENTS.name)))

    @classmethod
    def from_rankings(cls, rankings: Mapping[Any, Iterable[Any]]) -> Qrels:
        """Create judgments from rankings: the first of n documents gets grade n.

        Example:
            >>> Qrels.from_rankings({"q1": ["d2", "d1"]})["q1"]
            {'d2': 2.0, 'd1': 1.0}
        """
        return cls(mappings.from_rankings(rankings))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Qrels):
            return NotImplemented
        mine, theirs = self._rows(), other._rows()
        return {q: dict(rows) for q, rows in mine.items()} == {q: dict(rows) for q, rows in theirs.items()}

    __hash__ = None  # type: ignore[assignment] # holds arrays

    def __repr__(self) -> str:
        return f"<Qrels: {many(len(self), 'query')}, {many(len(self.table), 'judgment')}>"

    @cached_property
    def rows(self) -> dict[tuple[int, bytes], int]:
        """Row of each judgment by query number and document."""
        pairs = zip(self.table.query_numbers().tolist(), self.table.docs.tolist(), strict=True)
        return {pair: row for row, pair in enumerate(pairs)}

    @cached_property
    def judged(self) -> Any:
        """Judged documents of each query in the form of the compiled core; None without it, or if it declines them."""
        docs = self.table.docs
        if native.core is None:
            return None
        return native.core.judgments(*docs.columns(), docs.hashes(), self.table.offsets)

    @cached_property
    def _doc_hashes(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_], np.uint64]:
        """Hashes of the judged documents, ascending, then the largest number; for quick checks, the first bits.

        The first bits are an array with True for each number that they form, and the number of other bits.
        """
        hashes = np.append(distinct(self.table.docs.hashes()), np.uint64(2**64 - 1))
        bits = (16 * len(hashes)).bit_length()
        others = np.uint64(64 - bits)
        used = np.zeros(1 << bits, dtype=bool)
        used[hashes >> others] = True
        return hashes, used, others

    def likely_judged(self, docs: Ids) -> IntArray:
        """Return the rows of documents that may be judged for some query, ascending."""
        known, used, others = self._doc_hashes
        hashes = docs.hashes()
        # Few unjudged documents have the first bits of a judged one.
        rows = np.flatnonzero(used.take((hashes >> others).view(np.int64)))
        return rows[known[np.searchsorted(known, hashes[rows])] == hashes[rows]]

    @cached_property
    def query_names(self) -> dict[str, int]:
        """Number of each query by its text (see `Ids.texts`)."""
        names = {name: number for number, name in enumerate(self.table.queries.texts)}
        names.pop(NO_TEXT, None)
        return names

    @cached_property
    def low_grades(self) -> FloatArray:
        """Nonzero grades below 1: pooled only, or relevant to a degree below 1."""
        values = self.table.values
        low: FloatArray = values[values < 1]
        return low[low != 0] if len(low) else low

    @cached_property
    def judgments(self) -> int:
        """Number of judgments."""
        return len(self.table)

    @cached_property
    def highest(self) -> FloatArray:
        """(Q,) highest grade of each query; -inf without judgments."""
        offsets = self.table.offsets
        highest = np.full(len(self), -np.inf)
        filled = np.flatnonzero(np.diff(offsets))
        highest[filled] = np.maximum.reduceat(self.table.values, offsets[filled])
        return highest

    def lacking(self, level: float) -> npt.NDArray[np.bool_]:
        """Return which queries lack a grade of at least `level`, (Q,)."""
        return self.highest < level

    @cached_property
    def ideal(self) -> tuple[FloatArray, IntArray]:
        """All grades >= 0 in descending order within each query, and offsets by query."""
        rows = np.flatnonzero(self.table.values >= 0)
        numbers, grades = self.table.query_numbers()[rows], self.table.values[rows]
        # There are few distinct grades: sorting integers is faster.
        levels = distinct(grades)[::-1]
        first = numbers * len(levels)
        places = np.sort(first + np.searchsorted(-levels, -grades)) - first
        grades = levels[places]
        offsets = offsets_of(np.bincount(numbers, minlength=len(self)))
        freeze(grades, offsets)
        return grades, offsets

    @cached_property
    def largest_pool(self) -> int:
        """Largest number of documents judged for a query."""
        return int(np.diff(self.table.offsets).max(initial=0))


def read_qrels(path: Source, *, format: str | None = None, split: str | None = None) -> Qrels:
    """Read judgments from a file, folder, archive, or dataset.

    Args:
        path: A file in TREC format (``query iteration document grade``, or three columns), CSV,
            TSV, or JSON lines with a header or keys, a JSON mapping, JSON of a search tool,
            Parquet, or Arrow; also compressed (gzip, bzip2, xz, zstd, lz4); ``-`` for standard
            input. The format is detected from the first bytes, the name, and the first line. Also
            accepted: a folder or zip archive in BEIR layout or with ``questions.csv``; such a file
            alone (columns ``question`` and ``relevant``); a zip archive with one file,
            ``archive.zip!member``, ``ir_datasets:NAME``, or ``hf:NAME``.
        format: One of `QRELS_FORMATS`, if detection fails: ``trec``, ``csv``, ``tsv``, ``json``,
            ``jsonl``, ``smart``, ``npl``, or ``letor``.
        split: Split of the judgments of a collection; default: ``test``, or the only one.

    Raises:
        FormatError: With path, line, and column, if a line is invalid.
        InputError: If the file does not exist, or a pair is judged twice.
        MissingExtra: If a required library is not installed.

    Example:
        >>> from rankgauge.sample import sample_path
        >>> read_qrels(sample_path("qrels.txt"))["q01"] != {}
        True
    """
    return Qrels(readers.read_table(path, JUDGMENTS, format, split=split))


def write_qrels(qrels: Any, path: Source) -> None:
    r"""Write judgments to a file atomically.

    Args:
        qrels: Anything that :meth:`Qrels.of` accepts.
        path: A name that ends in ``.csv``, ``.tsv``, ``.json``, ``.jsonl``, ``.parquet``, or
            ``.arrow`` selects that format, any other TREC format; an additional ``.gz``, ``.xz``,
            ``.bz2``, ``.zst``, or ``.lz4`` compresses it; ``-`` is standard output.
            :func:`convert` supports more formats.

    Raises:
        InputError: If the format cannot represent an id, or the file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> target = pathlib.Path(tempfile.mkdtemp()) / "qrels.txt"
        >>> write_qrels({"q1": {"d1": 2}}, target)
        >>> target.read_text()
        'q1 0 d1 2\n'
    """
    from rankgauge.formats.writers import copy_description, write_tables

    table = Qrels.of(qrels).table
    write_tables([table], path, JUDGMENTS)
    copy_description(table.source, path)


def judged_number(qrels: Qrels, query: Any) -> int:
    """Return the number of a query among the judgments; ids as displayed (escaped) also match.

    Raises:
        MismatchError: If the query is not judged.
    """
    number = qrels._number(query)  # noqa: SLF001 - one module
    if number is None:
        raise MismatchError(
            f"query '{show_id(id_bytes(query, 'query id'))}' is not judged",
            where="queries",
            fix=f"judged queries include: {some(qrels.query_ids)}",
        )
    return number


def fingerprint(source: Any) -> str:
    """Return the SHA-256 of the content of judgments or a run, as 64 hexadecimal digits.

    It does not depend on the file format, on the order of queries or rows, or on the name and
    settings of a run. It changes with any id, grade, or score, and with a query that has no
    documents. Scores are the 64-bit floats that were read. The order of documents with equal scores
    does not matter.

    The hashed bytes are: a line that names the kind; the number of queries and of rows; for the
    queries in ascending order of their bytes the lengths, the numbers of rows, and the ids; then
    for the rows, sorted by query, descending document id, and score, the lengths, the ids, and the
    numbers. All are little-endian 64-bit integers and floats, and -0 becomes 0. For judgments with
    more than a grade, a row id is the document, a NUL, and its labels.

    Args:
        source: Judgments (`Qrels`, or special ones such as `SubtopicQrels`) or a run.

    Example:
        >>> one = Qrels.of({"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 2}})
        >>> other = Qrels.of([("q2", "d1", 2), ("q1", "d2", 0), ("q1", "d1", 1)])
        >>> fingerprint(one) == fingerprint(other) != fingerprint(Qrels.of({"q1": {"d1": 1}}))
        True
    """
    if hasattr(type(source), "reads"):
        return _digest(b"rankgauge judgments of %b 1\n" % source.reads.encode(), source.keyed)
    kind = b"rankgauge judgments 1\n" if isinstance(source, Qrels) else b"rankgauge run 1\n"
    return _digest(kind, source.table)


def _digest(kind: bytes, table: PairTable) -> str:
    import hashlib

    queries = table.queries.tolist()
    order = sorted(range(len(queries)), key=queries.__getitem__)
    counts = np.diff(table.offsets)[order]
    rows = table.by_id()[ranges_of(table.offsets[:-1][order], counts)]
    docs = table.docs.take(rows)
    digest = hashlib.sha256(kind)
    for numbers in ([len(queries), len(table)], [len(queries[number]) for number in order], counts):
        digest.update(np.asarray(numbers, dtype="<i8").tobytes())
    digest.update(b"".join(queries[number] for number in order))
    digest.update(docs.lengths.astype("<i8").tobytes())
    digest.update(docs.bytes().data)
    digest.update((table.values[rows] + 0.0).astype("<f8").tobytes())
    return digest.hexdigest()

"""Read files piece by piece: as tables of consecutive rows, or of complete queries.

A piece contains the rows of one part of a file, grouped by query; the rows of one query may be
spread over several pieces. :func:`whole_queries` joins adjacent ones.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import BinaryIO

import numpy as np

from rankgauge.core.ids import Ids
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import InputError
from rankgauge.formats import readers
from rankgauge.formats.columns import JUDGMENTS, Layout
from rankgauge.formats.fast_trec import LinesPiece, UnevenLinesError, pass_lines, quick_pieces
from rankgauge.formats.lines import (
    Source,
    archive_of,
    is_columnar,
    is_plain_file,
    is_zip,
    numbered_lines,
    opened,
    opened_bytes,
    report_read,
    source_name,
    start_of,
)
from rankgauge.formats.registry import format_named, load
from rankgauge.formats.rows import PairInput, Rows
from rankgauge.formats.trec import trec_pieces

# Bytes of text per piece; bytes counted for each row of a columnar file.
_LEAST, _MOST, _ROW = 1 << 20, 1 << 22, 32
# Share of available memory for the text of a piece; memory per row of a columnar file while it is
# read, evaluated, or written.
_SHARE, _COLUMNAR = 32, 2000
# Bytes of memory per byte of plain and of compressed text; share of memory to use.
_TEXT, _PACKED, _FITTING = 6, 30, 4
# Bytes of a piece per row that is read one by one, as Python objects.
_OBJECTS = 100


class NotInBlocksError(InputError):
    """A file must be read whole; users see the error of that reading, if any."""


class ScatteredQueriesError(Exception):
    """The rows of a query are not adjacent."""


class Pieces:
    """A file as an iterable of tables of consecutive rows.

    A table is valid only until the next one is yielded. Judgments and runs with three columns are
    complete only after :meth:`whole`.

    Args:
        source: The file; with its format if name and first line are ambiguous.
        layout: Whether it contains judgments or a run.
        limit: Memory limit in bytes.
    """

    def __init__(self, source: Source, layout: Layout, limit: int) -> None:
        self._source, self._form = readers.path_and_format(source, layout, None)
        self.name, self._limit = source_name(self._source), limit
        self._origin = PairInput(layout, self.name)
        self._parts = readers.parquet_parts(self._source)
        self._size = max(_LEAST, min(_MOST, limit // _SHARE))
        self._rows = max(1, min(self._size // _ROW, limit // _COLUMNAR))
        self._third: Callable[[PairTable], PairTable] | None = None

    @property
    def again(self) -> bool:
        """Whether the source can be read again: it is a file, not a pipe."""
        path = str(self.name).partition("!")[0]
        return bool(self._parts) or os.path.isfile(path) or str(path).startswith(readers.DATASETS)  # noqa: PTH113

    @property
    def needs_whole(self) -> bool:
        """Whether :meth:`whole` changes tables; known once the first was read."""
        return self._third is not None

    def whole(self, table: PairTable) -> PairTable:
        """Decide whether the third column of a table of whole queries is a rank or a score."""
        return table if self._third is None else self._third(table)

    def __iter__(self) -> Iterator[PairTable]:
        if self._parts:
            yield from self._of_parts()
            return
        if os.path.isdir(self._source) or str(self._source).startswith(readers.DATASETS):  # noqa: PTH112
            yield self._all_at_once("folders and datasets are")
            return
        # A pipe can be read only once.
        with opened_bytes(self._source) as stream:
            if not is_zip(start_of(stream)):
                yield from self._of_stream(stream)
                return
            archive = archive_of(stream, self._source)
            sole = archive.sole()
            if sole is None:
                yield self._all_at_once("archives of several files are")
                return
            with archive.opened(sole) as member:
                yield from self._of_stream(member)

    def _of_stream(self, stream: BinaryIO) -> Iterator[PairTable]:
        if not is_columnar(start_of(stream), self.name):
            yield from self._of_text(stream)
            return
        from rankgauge.formats.parquet import columnar_pieces

        yield from columnar_pieces(stream, self._origin, self._rows)

    def _of_parts(self) -> Iterator[PairTable]:
        """Yield tables from the files of a folder, one after the other."""
        from rankgauge.formats.parquet import columnar_pieces, no_rows

        empty = True
        for path in self._parts:
            with opened_bytes(path) as stream:
                for table in columnar_pieces(stream, self._origin._replace(name=path), self._rows, part=True):
                    # Notes on columns are taken from the first table.
                    notes, empty = table.notes if empty else (), False
                    yield replace(table, source=self.name, notes=notes)
        if empty:
            raise no_rows(self._origin)

    def _of_text(self, stream: BinaryIO) -> Iterator[PairTable]:
        text = readers.begin_text(stream, self._origin, self._form)
        rows = Rows(self._origin, most=max(1, self._size // _OBJECTS))
        pieces = "" if text.form in readers.FIELDS else format_named(text.form).pieces
        if text.form not in readers.FIELDS and (not pieces or text.asks):
            yield self._all_at_once(f"a file of the format {text.form} is")
            return
        if text.has_third_column:
            self._third = text.whole

        def read(lines: Iterable[tuple[int, bytes]], like: bytes = b"") -> Iterator[PairTable]:
            return load(pieces)(lines, rows) if pieces else trec_pieces(lines, rows, text.separator, like=like)

        if not self.again:
            yield from read(itertools.chain(text.head, text.lines))
            return
        quick, count = text.field_lines(), 0
        if quick is not None:
            with suppress(UnevenLinesError):
                for table, _ in quick_pieces(quick, self._origin, size=self._size):
                    count += len(table)
                    yield table
                return
        if count:
            rows.clear()  # the rest may have no rows
        # Read the file again: the lines before the first row, such as a header, and the other rows.
        first, like = (quick.number, quick.start) if quick is not None and count else (0, b"")
        with opened(self._source) as again:
            lines = numbered_lines(again, self.name)
            for table in read((line for line in lines if not first <= line[0] < first + count), like):
                report_read(again)
                yield table

    def _all_at_once(self, what: str) -> PairTable:
        """Read all rows into one table, for formats that cannot be read in pieces."""
        path = str(self.name).partition("!")[0]
        size = os.path.getsize(path) if os.path.isfile(path) else 0  # noqa: PTH113, PTH202
        if size > self._limit // _SHARE or not (self.again or os.path.isdir(path)):  # noqa: PTH112
            many = f"{size:,} bytes are too many for memory={self._limit:,}"
            raise InputError(
                f"{what} read whole, and {many if size else 'a pipe has no known size'}",
                where=self.name,
                fix="write it as Parquet, CSV, JSON lines, or TREC format (rankgauge convert), or "
                "evaluate it without a memory limit",
            )
        return readers.read_table(self._source, self._origin.layout, self._form)


def fits(source: Source, memory: int) -> bool:
    """Return whether reading a whole file takes only a fraction of `memory` bytes.

    Sources other than plain files, such as folders, are always read whole.
    """
    given = readers.path_and_format(source, JUDGMENTS, None)[0]
    parts = readers.parquet_parts(given)
    if parts:
        return sum(map(os.path.getsize, parts)) * _PACKED <= memory // _FITTING
    path = str(source_name(given)).partition("!")[0]
    if path == "<stdin>" or (os.path.exists(path) and not os.path.isdir(path)):  # noqa: PTH110, PTH112
        if not os.path.isfile(path):  # noqa: PTH113
            return False
        with opened_bytes(source) as stream:
            plain = is_plain_file(stream) and not is_columnar(start_of(stream), path)
        return os.path.getsize(path) * (_TEXT if plain else _PACKED) <= memory // _FITTING  # noqa: PTH202
    return True


def read_blocks(source: Source, layout: Layout, *, ranks: bool = False) -> Iterator[PairTable]:
    """Yield tables of whole queries, at least one, each valid only until the next one is yielded.

    Raises:
        NotInBlocksError: If `read_table` must read the file, or report its error with the line
            number; possibly after some tables.
    """
    table = None
    try:
        with _opened_text(source, layout, ranks=ranks) as text:
            lines = None if text is None else text.field_lines()
            if text is not None and lines is not None:
                parts = quick_pieces(lines, text.origin)
            else:
                tables = iter(()) if ranks else _columnar_tables(source, layout)
                parts = ((table, False) for table in tables)
            for table in whole_queries(parts):
                yield table if text is None else text.whole(table)
    except (ScatteredQueriesError, UnevenLinesError, InputError):
        table = None
    if table is None:
        raise NotInBlocksError(f"{source_name(source)} must be read whole")


def read_lines(source: Source, layout: Layout, read: Callable[[LinesPiece, tuple[str, ...]], int | None]) -> bool:
    """Pass the lines of a file and notes on it to `read` by `pass_lines`.

    Return False if the lines are neither in TREC format nor rows of plain cells.
    """
    with _opened_text(source, layout) as text:
        lines = None if text is None or text.has_third_column else text.field_lines()
        if text is None or lines is None:
            return False
        return pass_lines(lines, text.origin, lambda piece: read(piece, lines.notes))


@contextmanager
def _opened_text(source: Source, layout: Layout, *, ranks: bool = False) -> Iterator[readers.TextStart | None]:
    """Open a text file; yield None for any other source."""
    source, given = readers.path_and_format(source, layout, None)
    name = source_name(source)
    if source == "-" or not os.path.isfile(source):  # noqa: PTH113
        # A stream such as a pipe can be read only once.
        yield None
        return
    with opened_bytes(source) as stream:
        start = start_of(stream)
        text = not is_zip(start) and not is_columnar(start, name)
        yield readers.begin_text(stream, PairInput(layout, name, ranks=ranks), given) if text else None


def read_tables(source: Source, layout: Layout, memory: int | None) -> Iterator[PairTable]:
    """Read a file in tables of consecutive rows; without a limit only a large columnar one.

    Yield nothing if the meaning of the third column depends on whole queries, or if the file can
    be read only once.
    """
    if memory is None:
        yield from _columnar_tables(source, layout)
        return
    parts = Pieces(source, layout, memory)
    for table in parts if parts.again else ():
        if parts.needs_whole:
            return
        yield table


def _columnar_tables(source: Source, layout: Layout) -> Iterator[PairTable]:
    """Read a large columnar file in tables of consecutive rows; yield nothing for other files."""
    source, _ = readers.path_and_format(source, layout, None)
    name = source_name(source)
    if (
        source == "-"
        or not os.path.isfile(source)  # noqa: PTH113
        or os.path.getsize(source) <= _LEAST  # noqa: PTH202
        or importlib.util.find_spec("pyarrow") is None
    ):
        return
    with opened_bytes(source) as stream:
        if is_plain_file(stream) and is_columnar(start_of(stream), name):
            from rankgauge.formats.parquet import columnar_pieces

            yield from columnar_pieces(stream, PairInput(layout, name), _MOST // _ROW)


def whole_queries(pieces: Iterable[tuple[PairTable, bool]]) -> Iterator[PairTable]:
    """Yield tables in which adjacent rows of each query are together.

    Each piece comes with a flag that is true if it is certainly the last. A table is valid only
    until the next one is yielded.

    Raises:
        ScatteredQueriesError: If a query occurs again in a later piece.
    """
    seen = np.zeros(0, dtype=np.uint64)
    for table in adjacent(pieces):
        # Queries with equal hashes only cost time.
        hashes = np.sort(table.queries.hashes())
        places = np.searchsorted(seen, hashes)
        if len(seen) and (seen[np.minimum(places, len(seen) - 1)] == hashes).any():
            raise ScatteredQueriesError
        seen = np.insert(seen, places, hashes)
        yield table


def adjacent(pieces: Iterable[tuple[PairTable, bool]]) -> Iterator[PairTable]:
    """Like :func:`whole_queries`, but a query may occur again in a later table."""
    held: list[PairTable] = []  # rows of the last query, which may continue
    for piece, last in pieces:
        count = len(piece.queries)
        first = int(bool(held) and piece.queries[0] == held[0].queries[0])
        if first:
            held.append(_part(piece, 0, 1).compact())
        if first == count:
            continue
        if held:
            yield _one_query(held)
        if last and not first:
            yield piece
            return
        if count - first > 1 or last:
            yield _part(piece, first, count if last else count - 1)
        held = [] if last else [_part(piece, count - 1, count).compact()]
    if held:
        yield _one_query(held)


def _part(table: PairTable, start: int, stop: int) -> PairTable:
    """Return a range of queries of a table, sharing its memory."""
    first, last = int(table.offsets[start]), int(table.offsets[stop])
    rows = slice(first, last)
    return PairTable(
        table.queries.take(slice(start, stop)),
        table.offsets[start : stop + 1] - first,
        table.docs.take(rows),
        table.values[rows],
        table.unique,
        table.source,
        None if table.lines is None else table.lines[rows],
        table.notes,
        None if table.ranks is None else table.ranks[rows],
    )


def _one_query(parts: list[PairTable]) -> PairTable:
    """Join parts of one query into one table."""
    if len(parts) == 1:
        return parts[0]
    lines = [part.lines for part in parts if part.lines is not None]
    ranks = [part.ranks for part in parts if part.ranks is not None]
    return PairTable(
        parts[0].queries,
        np.array([0, sum(map(len, parts))]),
        Ids.joined([part.docs for part in parts]),
        np.concatenate([part.values for part in parts]),
        source=parts[0].source,
        lines=np.concatenate(lines) if len(lines) == len(parts) else None,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        ranks=np.concatenate(ranks) if len(ranks) == len(parts) else None,
    )

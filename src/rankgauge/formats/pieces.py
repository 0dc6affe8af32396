"""Read files piece by piece: as tables of consecutive rows, or of complete queries.

A piece contains the rows of one part of a file, grouped by query; the rows of one query may be
spread over several pieces. :func:`whole_queries` joins adjacent ones.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import BinaryIO

import numpy as np

from rankgauge.core.ids import Ids
from rankgauge.core.pair_table import PairTable
from rankgauge.core.threads import LARGE_FILE
from rankgauge.errors import InputError
from rankgauge.formats import readers
from rankgauge.formats.columns import Layout
from rankgauge.formats.fast_trec import FieldLines, LinesPiece, NotInBlocksError, pass_lines, query_bounds, quick_pieces
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


class PairFile:
    """A file of judgments or of a run, read piece by piece.

    Args:
        source: The file; with its format if name and first line are ambiguous.
        layout: Whether it contains judgments or a run.
        memory: Memory limit in bytes. Without one, only plain lines and large columnar files are
            read in pieces.
        ranks: Whether ranks next to scores are read; then only plain lines are read in pieces.

    Attributes:
        source: The file as given.
        name: Its name for messages.
        memory: The memory limit.
    """

    def __init__(self, source: Source, layout: Layout, memory: int | None = None, *, ranks: bool = False) -> None:
        self.source, self.memory = source, memory
        self._path, self._form = readers.path_and_format(source, layout, None)
        self.name = source_name(self._path)
        self._origin = PairInput(layout, self.name, ranks=ranks)
        # The file itself, or the archive that contains it.
        self._file = self.name.partition("!")[0]
        self._parts = readers.parquet_parts(self._path)
        size = _MOST if memory is None else max(_LEAST, min(_MOST, memory // _SHARE))
        self._size = size
        self._rows = size // _ROW if memory is None else max(1, min(size // _ROW, memory // _COLUMNAR))
        self._third: Callable[[PairTable], PairTable] | None = None

    @property
    def again(self) -> bool:
        """Whether the source can be read again: it is a file, not a pipe."""
        return bool(self._parts) or os.path.isfile(self._file) or self.name.startswith(readers.DATASETS)  # noqa: PTH113

    def fits(self, memory: int) -> bool:
        """Return whether reading the whole file takes only a fraction of `memory` bytes.

        Sources other than plain files, such as folders, are always read whole.
        """
        if self._parts:
            return sum(map(os.path.getsize, self._parts)) * _PACKED <= memory // _FITTING
        if self.name != "<stdin>" and (os.path.isdir(self._file) or not os.path.exists(self._file)):  # noqa: PTH110, PTH112
            return True
        if not os.path.isfile(self._file):  # noqa: PTH113
            return False
        with opened_bytes(self._path) as stream:
            plain = is_plain_file(stream) and not is_columnar(start_of(stream), self._file)
        return os.path.getsize(self._file) * (_TEXT if plain else _PACKED) <= memory // _FITTING  # noqa: PTH202

    @property
    def needs_whole(self) -> bool:
        """Whether :meth:`whole` changes tables; known once the first was read."""
        return self._third is not None

    def whole(self, table: PairTable) -> PairTable:
        """Decide whether the third column of a table of whole queries is a rank or a score."""
        return table if self._third is None else self._third(table)

    def parts(self, count: int) -> list[tuple[int, int]]:
        """Divide a large plain file into up to `count` parts for :meth:`pass_lines`; empty for any other file.

        The lines of a query are in one part if they are adjacent.
        """
        size = os.path.getsize(self._file) if os.path.isfile(self._file) else 0  # noqa: PTH113, PTH202
        if count > 1 and size >= LARGE_FILE and self.memory is None:
            with suppress(OSError), opened_bytes(self._path) as stream:
                lines = self._field_lines(stream) if is_plain_file(stream) else None
                if lines is not None:
                    return [*itertools.pairwise([*query_bounds(lines, stream, size, count), size])]
        return []

    def pass_lines(
        self, read: Callable[[LinesPiece, tuple[str, ...]], int | None], part: tuple[int, int] | None = None
    ) -> bool:
        """Pass the lines of a text, and notes on it, to `read` as :func:`fast_trec.pass_lines` does.

        Return False if the lines are neither in TREC format nor rows of plain cells.
        """
        if not os.path.isfile(self._file):  # noqa: PTH113
            return False
        with opened_bytes(self._path) as stream:
            lines = self._field_lines(stream)
            if lines is not None and part is not None:
                stream.seek(part[0])
                lines = lines._replace(start=b"", size=part[1] - part[0])
            return lines is not None and pass_lines(lines, lambda piece: read(piece, lines.notes))

    def _field_lines(self, stream: BinaryIO) -> FieldLines | None:
        start = start_of(stream)
        if is_zip(start) or is_columnar(start, self.name):
            return None
        text = readers.begin_text(stream, self._origin, self._form)
        return None if text.has_third_column else text.field_lines()

    def blocks(self) -> Iterator[PairTable]:
        """Yield tables of whole queries, at least one.

        Raises:
            NotInBlocksError: As for :meth:`pieces`, or if the rows of a query are not adjacent;
                possibly after some tables.
        """
        return map(self.whole, whole_queries(self.pieces()))

    def pieces(self) -> Iterator[tuple[PairTable, bool]]:
        """Yield tables of consecutive rows, each with whether it is certainly the last.

        A table is valid only until the next one is yielded. Judgments and runs with three columns
        are complete only after :meth:`whole`.

        Raises:
            NotInBlocksError: Without a memory limit, if the file must be read whole.
        """
        if self._parts:
            yield from self._of_parts()
        elif os.path.isdir(self._path) or self.name.startswith(readers.DATASETS):  # noqa: PTH112
            yield self._all_at_once("folders and datasets are"), True
        elif self.memory is None and not self.again:
            raise NotInBlocksError(self.name)  # a pipe can be read only once
        else:
            with opened_bytes(self._path) as stream:
                if not is_zip(start_of(stream)):
                    yield from self._of_stream(stream)
                    return
                archive = archive_of(stream, self._path)
                sole = archive.sole()
                if sole is None:
                    yield self._all_at_once("archives of several files are"), True
                    return
                with archive.opened(sole) as member:
                    yield from self._of_stream(member)

    def _of_stream(self, stream: BinaryIO) -> Iterator[tuple[PairTable, bool]]:
        if not is_columnar(start_of(stream), self.name):
            text = readers.begin_text(stream, self._origin, self._form)
            if text.has_third_column:
                self._third = text.whole
            quick = text.field_lines() if self.again else None
            if self.memory is not None:
                yield from self._of_text(text, quick)
            elif quick is None:
                raise NotInBlocksError(self.name)
            else:
                yield from quick_pieces(quick, self._origin)
            return
        large = is_plain_file(stream) and os.path.getsize(self._file) > _LEAST  # noqa: PTH202
        if self.memory is None and (self._origin.ranks or not large or importlib.util.find_spec("pyarrow") is None):
            raise NotInBlocksError(self.name)
        from rankgauge.formats.parquet import columnar_pieces

        yield from ((table, False) for table in columnar_pieces(stream, self._origin, self._rows))

    def _of_parts(self) -> Iterator[tuple[PairTable, bool]]:
        """Yield tables from the files of a folder, one after the other."""
        from rankgauge.formats.parquet import columnar_pieces, no_rows

        empty = True
        for path in self._parts:
            with opened_bytes(path) as stream:
                for table in columnar_pieces(stream, self._origin._replace(name=path), self._rows, part=True):
                    # Notes on columns are taken from the first table.
                    notes, empty = table.notes if empty else (), False
                    yield replace(table, source=self.name, notes=notes), False
        if empty:
            raise no_rows(self._origin)

    def _of_text(self, text: readers.TextStart, quick: FieldLines | None) -> Iterator[tuple[PairTable, bool]]:
        count = 0
        rows = Rows(self._origin, most=max(1, self._size // _OBJECTS))
        pieces = "" if text.form in readers.FIELDS else format_named(text.form).pieces
        if text.form not in readers.FIELDS and (not pieces or text.asks):
            yield self._all_at_once(f"a file of the format {text.form} is"), True
            return

        def read(lines: Iterable[tuple[int, bytes]], like: bytes = b"") -> Iterator[tuple[PairTable, bool]]:
            tables = load(pieces)(lines, rows) if pieces else trec_pieces(lines, rows, text.separator, like=like)
            return ((table, False) for table in tables)

        if not self.again:
            yield from read(itertools.chain(text.head, text.lines))
            return
        if quick is not None:
            with suppress(NotInBlocksError):
                for table, last in quick_pieces(quick, self._origin, size=self._size):
                    count += len(table)
                    yield table, last
                return
        if count:
            rows.clear()  # the rest may have no rows
        # Read the file again: the lines before the first row, such as a header, and the other rows.
        first, like = (quick.number, quick.start) if quick is not None and count else (0, b"")
        with opened(self._path) as again:
            lines = numbered_lines(again, self.name)
            for piece in read((line for line in lines if not first <= line[0] < first + count), like):
                report_read(again)
                yield piece

    def _all_at_once(self, what: str) -> PairTable:
        """Read all rows into one table, for formats that cannot be read in pieces."""
        if self.memory is None:
            raise NotInBlocksError(self.name)
        size = os.path.getsize(self._file) if os.path.isfile(self._file) else 0  # noqa: PTH113, PTH202
        if size > self.memory // _SHARE or not (self.again or os.path.isdir(self._file)):  # noqa: PTH112
            many = f"{size:,} bytes are too many for memory={self.memory:,}"
            raise InputError(
                f"{what} read whole, and {many if size else 'a pipe has no known size'}",
                where=self.name,
                fix="write it as Parquet, CSV, JSON lines, or TREC format (rankgauge convert), or "
                "evaluate it without a memory limit",
            )
        return readers.read_table(self._path, self._origin.layout, self._form)


def whole_queries(pieces: Iterable[tuple[PairTable, bool]]) -> Iterator[PairTable]:
    """Yield tables in which adjacent rows of each query are together.

    Each piece comes with a flag that is true if it is certainly the last. A table is valid only
    until the next one is yielded.

    Raises:
        NotInBlocksError: If a query occurs again in a later piece.
    """
    seen = np.zeros(0, dtype=np.uint64)
    for table in adjacent(pieces):
        # Queries with equal hashes only cost time.
        hashes = np.sort(table.queries.hashes())
        places = np.searchsorted(seen, hashes)
        if len(seen) and (seen[np.minimum(places, len(seen) - 1)] == hashes).any():
            raise NotInBlocksError("the rows of a query are not adjacent")
        seen = np.insert(seen, places, hashes)
        yield table


def adjacent(pieces: Iterable[tuple[PairTable, bool]]) -> Iterator[PairTable]:
    """Like :func:`whole_queries`, but a query may occur again in a later table if its rows are adjacent in each."""
    held: list[PairTable] = []  # rows of the last query, which may continue
    for piece, last in pieces:
        if not (piece.adjacent or last):
            raise NotInBlocksError("the rows of a query are not adjacent")
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

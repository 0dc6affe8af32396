"""Read texts (documents and queries) into memory, or on demand from their file.

Each text has an id, and may have a title and other fields. Large files stay on disk: each pass
reads them again, and single texts are located by an index of hashes.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import os
import threading
from array import array
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from rankgauge.core.ids import id_text
from rankgauge.core.text import many
from rankgauge.errors import FormatError, InputError, UnknownName
from rankgauge.formats import classic_formats, sgml
from rankgauge.formats.delimited import DELIMITERS, check_header, check_width, rows_of
from rankgauge.formats.json_files import objects
from rankgauge.formats.lines import (
    UTF8_BOM,
    Source,
    blank_runs,
    decoded,
    is_plain_file,
    line_parts,
    numbered_lines,
    opened,
    shorten,
    source_name,
    start_of,
)
from rankgauge.formats.registry import TEXT_FORMATS, format_of, packing_of

# Names of each part; messages recommend the first.
IDS = ("_id", "id", "doc_id", "docno", "docid", "query_id", "qid", "query-id", "corpus-id")
QUESTIONS = ("question", "query")
TEXTS = ("text", "contents", "body", "abstract", "query", "question")
TITLES = ("title", "heading")
_EXAMPLE = '{"_id": "d1", "title": "...", "text": "..."}'
# Modules for texts with markup: `pieces()` splits a file, `parts_of()` reads a piece.
_MARKED: Mapping[str, Any] = {"sgml": sgml, "smart": classic_formats}
# Sources with fewer bytes are kept in memory.
_SMALL = 32 << 20

_Lines: TypeAlias = Iterator[tuple[int, int, bytes]]


@dataclass(frozen=True, slots=True)
class TextRow:
    """A text."""

    id: str  # id as text
    title: str  # title; empty if there is none
    text: str  # text without the title
    fields: Mapping[str, Any]  # all other fields


@dataclass(slots=True)
class Faults:
    """Faults skipped while reading.

    Attributes:
        count: Number of invalid lines or files.
        first: Messages of the first few faults.
    """

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, error: FormatError) -> None:
        """Add a fault."""
        self.count += 1
        if len(self.first) < 5:
            self.first.append(f"{error.where}: {error.what}")


def located(error: InputError, name: str, number: int) -> FormatError:
    """Return the error with the file and the line, if it does not have them."""
    if isinstance(error, FormatError):
        return error
    return FormatError(error.what, path=name, line=number, fix=error.fix)


def add_fault(error: FormatError, faults: Faults | None) -> None:
    """Add an error to the faults, or raise it if `faults` is None."""
    if faults is None:
        raise error
    faults.add(error)


@dataclass(frozen=True)
class TextSource:
    """A source of texts, which can be opened repeatedly unless it is standard input."""

    name: str  # name for messages
    open: Callable[[], AbstractContextManager[BinaryIO]]  # opens the source
    size: int | None = None  # size in bytes as stored; None if unknown
    path: str = ""  # path of the file; empty for standard input

    @classmethod
    def of(cls, source: Source) -> TextSource:
        """Return the source for a file; ``-`` is standard input."""
        path = Path(source)
        if source == "-" or not path.is_file():
            return cls(source_name(source), partial(opened, source))
        name = os.fspath(source)
        return cls(source_name(source), partial(opened, source), path.stat().st_size, name)


@dataclass(frozen=True, slots=True)
class Placed:
    """A text with its line number and byte offset."""

    number: int
    offset: int
    row: TextRow


class TextReader:
    """Reader of the texts of one source: all in order, or the one at a given offset."""

    def __init__(self, source: TextSource, form: str | None = None) -> None:
        if form is not None and form not in TEXT_FORMATS:
            raise UnknownName(
                f"texts cannot be read from the format {form!r}",
                where=source.name,
                fix=f"choose one of: {', '.join(TEXT_FORMATS)}",
            )
        self._given = None if form is None else {"json": "jsonl", "trec": "sgml"}.get(form, form)
        self.source = source
        self.name, self.seekable = source.name, False
        # Compressed text has about a quarter of the size.
        self.size = source.size and source.size * (4 if packing_of(source.name) else 1)
        self._form = ""
        # Column names of a table with a header, or number of cells in a table without one. Passes
        # may overlap, because each finds the same values.
        self._columns: list[str] = []
        self._width = 0

    def rows(self, faults: Faults | None = None) -> Iterator[Placed]:
        """Yield every text, in order."""
        name = self.name
        with self.source.open() as stream:
            self.seekable = is_plain_file(stream) and bool(self.source.path)
            head = start_of(stream)
            start = len(UTF8_BOM) if is_plain_file(stream) and head.startswith(UTF8_BOM) else 0
            head = head.removeprefix(UTF8_BOM)
            marked = sgml.begins(head) if self._given is None else self._given == "sgml"
            lines = self._lines(stream, start, parts=marked)
            first = next((line for line in lines if line[-1].strip()), None)
            if first is None:
                return
            self._form = self._given or _form_of(name, first[-1])
            yield from self._parsed(itertools.chain([first], lines), faults, head=True)

    def at(self, offset: int) -> TextRow | None:
        """Return the text at this offset of an uncompressed file that was read before."""
        with self.source.open() as stream:
            stream.seek(offset)
            lines = self._lines(stream, offset, parts=self._form == "sgml")
            parsed = next(self._parsed(lines, None, head=False), None)
            return None if parsed is None else parsed.row

    def _lines(self, stream: BinaryIO, start: int, *, parts: bool) -> _Lines:
        """Yield each line with its number and offset; parts of long lines if `parts`."""
        # In CSV, blank lines may belong to a cell.
        read = line_parts(stream) if parts else blank_runs(stream, lambda: self._form in {"", "jsonl", "tsv"})
        for number, line in numbered_lines(read, self.name):
            yield number, start, line
            start += len(line)

    def stamp(self) -> object:
        """Return size and modification time of the file; None for standard input."""
        with suppress(OSError):
            status = os.stat(self.source.path)  # noqa: PTH116 - fails for the empty path of standard input
            return status.st_size, status.st_mtime_ns
        return None

    def _parsed(self, lines: _Lines, faults: Faults | None, *, head: bool) -> Iterator[Placed]:
        # Line number, offset, and content: a line, cells, or a marked-up text.
        pieces: Iterator[tuple[int, int, Any]] = (line for line in lines if line[-1].strip())
        if self._form in _MARKED:
            pieces = _MARKED[self._form].pieces(lines)
        elif self._form == "csv":
            pieces = (row for row in rows_of(lines, self.name, ",") if any(row[-1]))
        number = 0
        while True:
            columns = head
            try:
                number, offset, piece = next(pieces)
                head = False
                if columns and self._is_header(piece, number):
                    continue
                columns = False
                row = self._row(piece, number)
            except StopIteration:
                return
            except InputError as error:
                # After an error of the file itself, stop reading.
                add_fault(located(error, self.name, number), faults)
                if columns:
                    return  # without a header, no line can be read
                continue
            yield Placed(number, offset, row)

    def _row(self, piece: Any, number: int) -> TextRow:
        if self._form in _MARKED:
            key, title, text, fields = _MARKED[self._form].parts_of(piece, self.name, number)
            return TextRow(id_of(key), title, text, fields)
        if self._form in DELIMITERS:
            return self._of_cells(self._cells(piece, number), number)
        return next(row_of(row) for _, row in objects([(number, piece)], self.name))

    def _cells(self, piece: Any, number: int) -> list[str]:
        # In TSV, quotation marks are literal, and cells may have any length.
        if self._form == "tsv":
            return decoded(piece, self.name, number).rstrip("\r\n").split("\t")
        return list(piece)

    def _is_header(self, piece: Any, number: int) -> bool:
        """Return whether the first piece is a header, and store the column names."""
        if self._form not in DELIMITERS:
            return False
        columns = [cell.strip().lower() for cell in self._cells(piece, number)]
        known = any(cell in IDS for cell in columns) and any(cell in TEXTS for cell in columns)
        if known:
            check_header(columns, self.name, number)
            self._columns = columns
        else:
            self._width = len(columns)
        return known

    def _of_cells(self, cells: Sequence[str], number: int) -> TextRow:
        name = self.name
        by = DELIMITERS[self._form]
        if self._columns:
            check_width(cells, self._columns, name, (number, by))
            return row_of(dict(zip(self._columns, cells, strict=False)))
        width = len(cells)
        if width not in {2, 3} or width != (self._width or width):
            wanted = f", as the first line: {self._width}" if self._width in {2, 3} else ""
            raise FormatError(
                f"the line has {many(width, 'field')}, expected id and text, or id, title, and text{wanted}",
                path=name,
                line=number,
                text=shorten(by.join(cells).encode()),
                fix="put one separator between two fields"
                + (', and quotes around a text with a comma: "a, b"' if by == "," else "")
                + ", or write JSON lines",
            )
        return TextRow(id_of(cells[0].strip()), cells[1] if width == 3 else "", cells[-1], {})


class RowReader:
    """Reader of texts from a repeatable source of rows.

    Args:
        rows: Function that returns all rows.
        name: The name for messages.
        read: Function that converts a row to a text.
        row: Function that returns the row at a position, if fast.
        size: Approximate bytes of all texts; None if they fit into memory.
        stamp: Function whose result changes if the texts change.
    """

    def __init__(  # noqa: PLR0917 - the order of use
        self,
        rows: Callable[[], Iterable[Any]],
        name: str,
        read: Callable[[Any], TextRow],
        row: Callable[[int], Any] | None = None,
        size: int | None = None,
        stamp: Callable[[], object] | None = None,
    ) -> None:
        self.name, self.size, self.seekable = name, size, row is not None
        self._rows, self._read, self._row, self._stamp = rows, read, row, stamp

    def rows(self, faults: Faults | None = None) -> Iterator[Placed]:
        """Yield every text in order."""
        for place, row in enumerate(self._rows()):
            try:
                yield Placed(place + 1, place, self._read(row))
            except InputError as error:
                add_fault(located(error, self.name, place + 1), faults)

    def at(self, offset: int) -> TextRow | None:
        """Return the text at a position from 0; None without random access."""
        return None if self._row is None else self._read(self._row(offset))

    def stamp(self) -> object:
        """Return a value that changes if the texts change."""
        return self._stamp and self._stamp()


Reader: TypeAlias = TextReader | RowReader


def read_texts(source: Source | Reader, faults: Faults | None = None) -> Iterator[TextRow]:
    """Yield the texts of a file or a reader; a duplicate id is a fault."""
    reader = TextReader(TextSource.of(source)) if isinstance(source, str | os.PathLike) else source
    seen: dict[str, int] = {}
    for placed in reader.rows(faults):
        key = placed.row.id
        if key in seen:
            add_fault(_repeated(key, (seen[key], placed.number), reader.name), faults)
            continue
        seen[key] = placed.number
        yield placed.row
    if not seen and faults is None:
        raise _no_text(reader.name)


def _repeated(key: str, lines: tuple[int, int], name: str) -> FormatError:
    """Return the error for a duplicate id."""
    return FormatError(f"id {key!r} is also in line {lines[0]}", path=name, line=lines[1], fix="keep one text per id")


def _no_text(name: str) -> FormatError:
    """Return the error for an empty file."""
    return FormatError("there are no texts", path=name, fix=f"use lines of {_EXAMPLE}")


def row_of(row: Mapping[str, Any]) -> TextRow:
    """Build a text from an object with the usual keys."""
    key = next((key for key in IDS if key in row), None)
    body = next((key for key in TEXTS if key in row), None)
    if key is None or body is None:
        wanted, names = ("id", IDS) if key is None else ("text", TEXTS)
        raise InputError(
            f"there is no {wanted}: the keys are {', '.join(map(repr, row))}",
            fix=f"name it {names[0]!r}, as in {_EXAMPLE}",
        )
    title = next((key for key in TITLES if key in row), None)
    fields = {k: v for k, v in row.items() if k not in {key, body, title}}
    return TextRow(
        id=id_of(row[key]), title="" if title is None else _text(row[title]), text=_text(row[body]), fields=fields
    )


def _form_of(name: str, first: bytes) -> str:
    start = first.lstrip()[:1]
    if start == b"<" and sgml.begins(first):
        return "sgml"
    if classic_formats.begins_text(first):
        return "smart"
    form = format_of(name) or ("jsonl" if start == b"{" else "tsv")
    return "jsonl" if form == "json" else form


def id_of(value: Any, wanted: str = "an id", fix: str = "an id is text or a whole number") -> str:
    """Return an id as text."""
    if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
        raise InputError(f"got {value!r:.60}, expected {wanted}", fix=fix)
    return id_text(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"got {value!r:.60}, expected text", fix="use text in quotes")
    return value


class _Values(ValuesView[Any]):
    _mapping: StoredTexts

    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self._mapping.stream())


class _Items(ItemsView[str, Any]):
    _mapping: StoredTexts

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self._mapping.stream()


class HashIndex:
    """Index of positions by id, using 16 bytes per id regardless of its length.

    A 64-bit hash gives candidate positions; the caller compares the ids.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        hashes = np.frombuffer(array("Q", map(_hash, ids)), dtype=np.uint64)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def __len__(self) -> int:
        return len(self._order)

    def places(self, key: str) -> list[int]:
        """Return candidate positions of an id, from 0."""
        wanted = np.uint64(_hash(key))
        low = int(np.searchsorted(self._hashes, wanted, side="left"))
        high = int(np.searchsorted(self._hashes, wanted, side="right"))
        return [int(place) for place in self._order[low:high]]

    def suspects(self) -> frozenset[int]:
        """Return positions that share their hash with another one: duplicate ids or collisions."""
        equal = np.flatnonzero(self._hashes[1:] == self._hashes[:-1])
        return frozenset(self._order[np.union1d(equal, equal + 1)].tolist())


def _hash(key: str) -> int:
    raw = key.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")


def _same(row: TextRow) -> TextRow:
    return row


class StoredTexts(Mapping[str, Any]):
    """Texts that stay in their file, which is checked completely in one pass on creation.

    Iterations keep one text in memory at a time.

    Memory use is 24 bytes per text. In a plain file, a text is located by its offset. In a
    compressed file, it is located by reading on from the previously requested text, or from the
    beginning.
    """

    def __init__(self, reader: Reader, faults: Faults | None = None) -> None:
        self._reader, self._skips = reader, faults is not None
        self._make: Callable[[TextRow], Any] = _same
        self._stamp = reader.stamp()
        offsets, numbers = array("q"), array("q")

        def ids() -> Iterator[str]:
            for placed in self._reader.rows(faults):
                offsets.append(placed.offset)
                numbers.append(placed.number)
                yield placed.row.id

        self._index = HashIndex(ids())
        self._offsets = offsets if self._reader.seekable else array("q")
        self._dropped = self._repeats(numbers, faults)
        if not len(self._index) and faults is None:
            raise _no_text(reader.name)
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._cursor: Iterator[TextRow] = iter(())
        self._next = len(self._index)

    def _repeats(self, numbers: array[int], faults: Faults | None) -> frozenset[int]:
        """Return the positions of texts with duplicate ids, except for the first of each."""
        suspects = self._index.suspects()
        if not suspects:
            return frozenset()
        first: dict[str, int] = {}
        dropped = set()
        for place, row in enumerate(self._rows()):
            if place not in suspects:
                continue
            if row.id in first:
                lines = (numbers[first[row.id]], numbers[place])
                add_fault(_repeated(row.id, lines, self._reader.name), faults)
                dropped.add(place)
            first.setdefault(row.id, place)
        return frozenset(dropped)

    def _rows(self) -> Iterator[TextRow]:
        if self._reader.stamp() != self._stamp:
            raise InputError(
                "the file has changed since it was first read",
                where=self._reader.name,
                fix="load the collection again, and do not change its files meanwhile",
            )
        passed = Faults() if self._skips else None
        return (placed.row for placed in self._reader.rows(passed))

    def mapped(self, make: Callable[[TextRow], Any]) -> StoredTexts:
        """Return a mapping of the same ids to the results of a function."""
        texts = copy.copy(self)
        texts._make = make
        return texts

    def stream(self) -> Iterator[tuple[str, Any]]:
        """Yield every id with its text, in file order."""
        for place, row in enumerate(self._rows()):
            if place not in self._dropped:
                yield row.id, self._make(row)

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.stream())

    def values(self) -> ValuesView[Any]:
        """Return a view of the texts that loads one at a time."""
        return _Values(self)

    def items(self) -> ItemsView[str, Any]:
        """Return a view of ids and texts that loads one pair at a time."""
        return _Items(self)

    def __len__(self) -> int:
        return len(self._index) - len(self._dropped)

    def __getitem__(self, key: str) -> Any:
        if isinstance(key, str):
            for place in self._index.places(key):
                row = self._at(place)
                if row is not None and row.id == key:
                    return self._make(row)
        raise KeyError(key)

    def _at(self, place: int) -> TextRow | None:
        if self._offsets:
            return self._reader.at(self._offsets[place])
        with self._lock:
            if place < self._next:
                self._cursor, self._next = self._rows(), 0
            row = None
            while self._next <= place:
                row = next(self._cursor, None)
                self._next += 1
            return row

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in {"_lock", "_cursor", "_next"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()


def kept(reader: Reader, faults: Faults | None = None) -> Mapping[str, TextRow]:
    """Load texts into memory if they are small or can be read only once, else use their file."""
    if reader.size is None or reader.size <= _SMALL:
        return {row.id: row for row in read_texts(reader, faults)}
    return StoredTexts(reader, faults)

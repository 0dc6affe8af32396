"""Read and write CSV and TSV; unclosed quotes and rows of the wrong width are errors."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import IntArray
from rankgauge.core.pair_table import PairTable
from rankgauge.core.text import many
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.columns import (
    RUN,
    Columns,
    Layout,
    columns_of,
    is_missing,
    number_text,
    read_number,
    wrong_columns,
    wrong_number,
)
from rankgauge.formats.fast_trec import FieldLines, Shape
from rankgauge.formats.lines import decoded, report_read, shorten
from rankgauge.formats.registry import BrokenPackError
from rankgauge.formats.rows import Rows, by_query, number_or_nan, score_lines, text_pairs

DELIMITERS = {"csv": ",", "tsv": "\t"}
# Ids that a spreadsheet or data frame has rewritten as numbers.
_ROUNDED = re.compile(r"\d(\.\d+)?[eE]\+?\d+")
_DECIMAL = re.compile(r"\d+\.0+")
# Longest row of plain cells, and the most cells that the compiled core can tell apart.
_LONGEST, _WIDEST = 1 << 16, 64
_LINE, _POINT, _ZERO, _E, _LOWER = (*b"\n.0e", 32)


def _pieces(  # noqa: C901 - one kind of row after another
    lines: Iterable[tuple[int, bytes]], rows: Rows, usual: str
) -> Iterator[PairTable]:
    """Read a table with a header; yield a `PairTable` whenever the rows are full.

    The separator is the usual one, or detected from the header.
    """
    name = rows.name
    start = list(itertools.islice(lines, 1))
    first = "".join(decoded(line, name, number) for number, line in start)
    by = _delimiter(first, rows.layout, usual)
    cell_rows = _cells_of(itertools.chain(start, lines), rows, by)
    _, header = next(cell_rows, (0, None))
    if header is None:
        rows.table()  # raises the error
        return
    columns, (query, doc, value) = _header(header, rows)

    def table() -> PairTable:
        pairs = rows.table(columns, (query + 1, doc + 1, value + 1))
        if by != usual:
            pairs = pairs.with_notes(f"{name}: read with {by!r} between columns")
        return pairs.with_notes(*_spreadsheet_warnings(rows))

    rank = next((at for at, cell in enumerate(header) if cell.strip().lower() == "rank"), -1)
    ranks = rows.with_ranks and rank >= 0 and not columns.has_ranks
    # Lists of query-document pairs to be rated may contain unrated pairs.
    rated = header[value].strip().strip("'\"").lower() == "rating"
    unrated = 0
    for number, row in cell_rows:
        if rated and (len(row) == 1 or (len(row) == len(header) and not row[value].strip())):
            unrated += 1
            continue
        if len(row) != len(header) and not "".join(row).strip():
            continue
        try:
            check_width(row, header, name, (number, by))
            grade = read_number(row[value].encode())
        except FormatError as error:
            rows.report(error)
            continue
        except ValueError:
            what, fix = wrong_number(row[value], rows.layout)
            missing = is_missing(row[value])
            rows.refuse(number, what, fix, column=value + 1, ids=(row[query], row[doc]), not_finite=missing)
            continue
        rows.add(number, row[query], row[doc], grade)
        if ranks:
            rows.ranks.append(number_or_nan(row[rank]))
        if rows.full:
            yield table()
            rows.clear()
    if rows.ended:
        return
    last = table()
    if unrated:
        last = last.with_notes(f"{name}: {many(unrated, 'line')} without a rating: not judged")
    yield last


csv_pieces = partial(_pieces, usual=",")
tsv_pieces = partial(_pieces, usual="\t")


def plain_table(stream: BinaryIO, header: bytes, rows: Rows, form: str) -> FieldLines | None:
    """Return the rows after a header as lines of fields; None unless header and first row are plain."""
    usual = DELIMITERS[form]
    try:
        first = stream.readline(_LONGEST)
        # The usual reader checks the columns, and notes what is unusual about them.
        (table,) = _pieces(iter([(1, header), (2, first)]), rows, usual)
        names = header.decode().rstrip("\r\n")
        by = _delimiter(names, rows.layout, usual)
        cells = names.split(by)
        columns, places = _header(cells, rows)
    except (BrokenPackError, InputError, OSError, UnicodeDecodeError):
        return None
    if (
        columns.has_ranks
        or rows.ranks
        or '"' in names
        or "\0" in names
        or len(first) == _LONGEST
        or len(cells) > _WIDEST
        or any(note.startswith("WARNING") for note in table.notes)
    ):
        return None
    return PlainCells(stream, by, Shape(len(cells), *places)).lines(first, 2, table.notes)


class PlainCells:
    """A stream of rows of plain cells, converted to lines of fields that are separated by tabs.

    Such lines are read by :mod:`fast_trec`, with the same values as the csv module. A cell that is
    empty or quoted, or contains white space or other than ASCII characters, is not plain: reading
    fails, and the file must be read row by row.
    """

    def __init__(self, stream: Any, by: str, shape: Shape) -> None:
        self._stream, self._by, self._shape = stream, by.encode(), shape
        self._tabs = bytes.maketrans(self._by, b"\t")
        self._rounded = re.compile(rb"\d(\.\d+)?[eE]\+?\d+(?![^%b\r\n])" % re.escape(self._by))
        self._unusual = [sign for sign in (b'"', b" ", b"\t", b"\v", b"\f", b"\0") if sign != self._by]
        self._tail = b"\n"

    def lines(self, first: bytes, number: int, notes: tuple[str, ...] = ()) -> FieldLines | None:
        """Return the rows from this one on; None if it is not plain."""
        try:
            return FieldLines(cast("BinaryIO", self), self._converted(first), number, self._shape, notes, self._by)
        except OSError:
            return None

    def readinto(self, room: Any) -> int:
        """Read into a buffer and return the number of bytes, 0 at the end.

        Raises:
            OSError: If a cell is not plain; the quick reader then declines the text.
        """
        size: int = self._stream.readinto(room)
        report_read(self._stream)
        room[:size] = self._converted(bytes(room[:size]))
        return size

    def _converted(self, text: bytes) -> bytes:
        seen = self._tail + text
        data = np.frombuffer(seen, dtype=np.uint8)
        edge = (data == self._by[0]) | (data == _LINE)
        unusual = not text.isascii() or any(sign in seen for sign in self._unusual)
        # An empty cell or line.
        unusual |= bool((edge[1:] & edge[:-1]).any())
        # A cell too long for the csv module covers one of these parts.
        for at in range(0, len(edge) - _LONGEST + 1, _LONGEST):
            unusual |= not edge[at : at + _LONGEST].any()
        if b"\r" in seen:
            breaks = seen.count(b"\r") - seen.endswith(b"\r")
            unusual |= breaks != seen.count(b"\r\n") or self._by + b"\r" in seen
        if b"e" in seen or b"E" in seen:
            unusual |= self._has_rounded_id(seen, data, np.flatnonzero(edge))
        if unusual:
            raise OSError("a cell is not plain")
        self._tail = seen[max(seen.rfind(b"\n"), 0) :]
        if len(self._tail) > _LONGEST:
            raise OSError("a row is too long")
        return text.translate(self._tabs)

    def _has_rounded_id(self, seen: bytes, data: npt.NDArray[np.uint8], edges: IntArray) -> bool:
        """Return whether an id looks like a number rewritten by a spreadsheet."""
        shape = self._shape
        for column in (shape.query, shape.doc):
            # If a row has other than `width` cells, the text is declined anyway.
            cells = edges[column :: shape.width] + 1
            cells = cells[cells + 1 < len(data)]
            second = data[cells + 1]
            some = (data[cells] - _ZERO <= 9) & ((second | _LOWER == _E) | (second == _POINT))
            if any(self._rounded.match(seen, cell) for cell in cells[some].tolist()):
                return True
        return False


def _cells_of(lines: Iterable[tuple[int, bytes]], rows: Rows, by: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line number and the cells of each row; with `on_error`, one row per line."""
    if rows.on_error is None:
        yield from numbered_rows(lines, rows.name, by)
        return
    for line in lines:
        try:
            yield from numbered_rows([line], rows.name, by)
        except FormatError as error:
            rows.report(error)


def _delimiter(header: str, layout: Layout, usual: str) -> str:
    """Return the usual separator, or the one that splits the header into known columns."""
    for by in (usual, ",", ";", "|", "\t"):
        if columns_of(header.split(by), layout) is not None:
            return by
    return usual


def _header(header: list[str], rows: Rows) -> tuple[Columns, tuple[int, int, int]]:
    """Return the chosen columns and their indices."""
    columns = columns_of(header, rows.layout)
    if columns is None:
        what, fix = wrong_columns(header, rows.layout)
        names, mark, more = fix.partition("; ")
        raise FormatError(what, path=rows.name, line=1, fix=f"{names}, in the first line{mark}{more}")
    check_header(header, rows.name, read=columns.read)
    query, doc, value = map(header.index, columns.read)
    return columns, (query, doc, value)


def _spreadsheet_warnings(rows: Rows) -> Iterator[str]:
    for what, ids in (("query", rows.queries), ("document", rows.docs)):
        strange = next((key for key in ids if _ROUNDED.fullmatch(key)), None)
        if strange is None and all(map(_DECIMAL.fullmatch, ids)):
            strange = ids[0]
        if strange is not None:
            yield (
                f"WARNING: {rows.name}: {what} id {strange!r} looks like an id that a "
                "spreadsheet or data frame converted to a number: write ids as text"
            )


def _lines(
    tables: Iterable[PairTable], layout: Layout, _tag: str = "", *, by: str, header: tuple[str, str, str] | None = None
) -> Iterator[bytes | str]:
    """Write tables with a header, query by query."""
    parts: list[str] = []
    # The csv module quotes cells that contain a line-end character: this line end includes CR.
    sink = SimpleNamespace(write=lambda row: parts.append(row.removesuffix("\r\n") + "\n"))
    writer = csv.writer(sink, delimiter=by, lineterminator="\r\n")
    writer.writerow(header or layout.columns)
    yield parts.pop()
    for query, table, rows in by_query(tables):
        lines = None
        if layout is RUN:
            writer.writerow((query, ""))
            lines = score_lines(table, rows, (parts.pop()[:-1], by, "\n"))
        if lines is None:
            docs = text_pairs(table, rows)
            writer.writerows((query, doc, number_text(value, layout)) for doc, value in docs)
        yield lines or "".join(parts)
        parts.clear()


def csv_line(cells: Iterable[str], by: str = ",") -> str:
    """Format one row; a cell that contains the end of a line is quoted."""
    line = io.StringIO()
    csv.writer(line, delimiter=by, lineterminator="\r\n").writerow(cells)
    return line.getvalue().removesuffix("\r\n") + "\n"


csv_lines = partial(_lines, by=",")
tsv_lines = partial(_lines, by="\t")
beir_lines = partial(_lines, by="\t", header=("query-id", "corpus-id", "score"))
# Ratings as imported by Quepid and the OpenSearch workbench.
quepid_lines = partial(_lines, by=",", header=("query", "docid", "rating"))


def rows_of(lines: Iterable[tuple[int, int, bytes]], name: str, by: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the first line number, the offset, and the cells of each row."""
    first = begin = number = behind = 0

    def texts() -> Iterator[str]:
        nonlocal first, begin, number, behind
        for number, offset, line in lines:
            if not first:
                first, begin = number, offset
            behind = offset + len(line)
            yield decoded(line, name, number)

    try:
        for cells in csv.reader(texts(), delimiter=by, strict=True):
            yield first, begin, cells
            first = 0
    except csv.Error as error:
        raise quoting_error(error, name, first or number) from None


def numbered_rows(lines: Iterable[tuple[int, bytes]], name: str, by: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line number and the cells of each row."""
    placed = ((number, 0, line) for number, line in lines)
    return ((number, cells) for number, _, cells in rows_of(placed, name, by))


class RecoveredRow(NamedTuple):
    """A row with its lines and their numbers, or with an error instead of cells."""

    lines: list[tuple[int, bytes]]
    cells: list[str]
    fault: FormatError | None = None

    @property
    def text(self) -> bytes:
        """The text of all lines."""
        return b"".join(line for _, line in self.lines)


def recovered_rows(lines: Iterable[tuple[int, bytes]], name: str, by: str) -> Iterator[RecoveredRow]:
    """Yield the header, then rows with cells or an error; each nonblank line is in exactly one.

    If a row of several lines is not valid, its lines are read one by one. The same applies if a
    line after the first is itself a row as wide as the header: the quote is then probably closed in
    the wrong place.
    """
    lines, width = iter(lines), 0
    again: list[tuple[int, bytes]] = []
    while (row := _next_row(itertools.chain(again, lines), name, by)).lines:
        rows, again = [row], []
        if len(row.lines) > 1 and width and not _is_one_row(row, name, by, width):
            rows = [_next_row([line], name, by) for line in row.lines[:-1]]
            again = row.lines[-1:]  # it may begin a valid row of several lines
        for recovered in rows:
            if recovered.text.strip():
                width = width or len(recovered.cells)
                yield recovered


def _next_row(lines: Iterable[tuple[int, bytes]], name: str, by: str) -> RecoveredRow:
    taken: list[tuple[int, bytes]] = []

    def texts() -> Iterator[str]:
        for number, line in itertools.islice(lines, 10_000):  # a row has fewer lines
            taken.append((number, line))
            yield decoded(line, name, number).replace("\0", " ")

    try:
        return RecoveredRow(taken, next(csv.reader(texts(), delimiter=by, strict=True), []))
    except FormatError as error:
        return RecoveredRow(taken, [], error)
    except csv.Error as error:
        return RecoveredRow(taken, [], quoting_error(error, name, taken[0][0]))


def _is_one_row(row: RecoveredRow, name: str, by: str, width: int) -> bool:
    if len(row.cells) != width:
        return False
    later = (_next_row([line], name, by).cells for line in row.lines[1:])
    return not any(len(cells) >= width and not any(cells[width:]) for cells in later)


def named_cells(
    lines: Iterable[tuple[int, bytes]],
    name: str,
    by: str,
    *,
    key: Callable[[str], str] = str.strip,
    on_error: Callable[[FormatError], object] | None = None,
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the first line number of each row, and its cells by column key.

    Rows that are not as wide as the header are reported to `on_error` and skipped, if it is given.
    """
    rows = ((number, cells) for number, cells in numbered_rows(lines, name, by) if "".join(cells).strip())
    try:
        first, names = next(rows, (1, []))
        header = [key(cell) for cell in names]
        check_header(header, name, first)
        for number, cells in rows:
            try:
                check_width(cells, header, name, (number, by))
            except FormatError as error:
                if on_error is None:
                    raise
                on_error(error)
            else:
                yield number, dict(zip(header, cells, strict=False))
    except FormatError as error:
        # After an error of the file itself, stop reading.
        if on_error is None:
            raise
        on_error(error)


def quoting_error(error: csv.Error, name: str, number: int) -> FormatError:
    """Return the error for a row that cannot be split into cells."""
    what = f"the cells cannot be separated: {error}"
    fix = 'close the quote; inside quotes write a quote twice: "the ""best"" one"'
    if "unexpected end" in str(error):
        what = "a quote that opens in this row is not closed: its cell contains all lines below"
    elif "expected after" in str(error):
        what = "a cell of this row continues after its closing quote"
    elif "limit" in str(error):
        what = f"a cell of this row has more than {csv.field_size_limit()} characters"
        fix = "if a quote is not closed, close it; or write JSON lines, where a text may be longer"
    return FormatError(what, path=name, line=number, fix=fix)


def check_header(columns: Sequence[str], name: str, number: int = 1, *, read: Collection[str] | None = None) -> None:
    """Check that column names in the header are unique."""
    counts = Counter(columns)
    chosen = counts if read is None else read
    twice = next((cell for cell in chosen if cell and counts[cell] > 1), None)
    if twice is not None:
        raise FormatError(
            f"the header names column {twice!r} twice",
            path=name,
            line=number,
            fix="keep one of them, or rename the other",
        )


def check_width(cells: Sequence[str], columns: Sequence[str], name: str, place: tuple[int, str]) -> None:
    """Check that a row is as wide as the header; extra cells must be empty."""
    number, by = place
    width = len(columns)
    if len(cells) == width or (len(cells) > width and not any(map(str.strip, cells[width:]))):
        return
    if len(cells) < width:
        fix = "give every line as many cells as the header, including empty ones"
    elif by == "\t":
        fix = "replace tabs within a text by spaces, or write JSON lines"
    else:
        fix = f'put a text with {by!r} in quotes, directly after the separator: 1{by}"a{by} b"'
    raise FormatError(
        f"got {many(len(cells), 'column')}, expected {width} as in the header",
        path=name,
        line=number,
        text=shorten(by.join(cells).encode("utf-8", "replace")),
        fix=fix,
    )

"""Rows of CSV and TSV that lose no cell: quotes are closed, rows are as wide as the header."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from rankgauge.errors import FormatError
from rankgauge.formats.lines import shorten

__all__ = ["check_header", "check_width", "decoded_line", "quoting_error", "rows_of"]

_QUOTES = 'close the quote; inside quotes write a quote twice: "the ""best"" one"'


def rows_of(
    lines: Iterable[tuple[int, int, bytes]], name: str, by: str
) -> Iterator[tuple[int, int, list[str]]]:
    """Each row with a cell that is not empty: its first line, where it begins, and its cells.

    Args:
        lines: The number and the offset of each line, and it.
        name: The name of the file.
        by: What separates cells.

    Raises:
        FormatError: If a quote is not closed, or a line is not UTF-8.
    """
    first = begin = number = behind = 0

    def texts() -> Iterator[str]:
        nonlocal first, begin, number, behind
        for number, offset, line in lines:
            if not first:
                first, begin = number, offset
            behind = offset + len(line)
            yield decoded_line(line, name, number)

    try:
        for cells in csv.reader(texts(), delimiter=by, strict=True):
            if any(cells):
                yield first, begin, cells
            first = 0
    except csv.Error as error:
        raise quoting_error(error, name, first or number) from None


def decoded_line(line: bytes, name: str, number: int) -> str:
    """The text of a line.

    Raises:
        FormatError: If it is not UTF-8.
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"byte {error.start + 1} of the line is not UTF-8", path=name, line=number,
            text=shorten(line), fix="save the file as UTF-8",
        ) from None  # fmt: skip


def quoting_error(error: csv.Error, name: str, number: int) -> FormatError:
    """The error for a row whose cells cannot be separated.

    Args:
        error: What the reader of the standard library raised.
        name: The name of the file.
        number: The line where the row begins.
    """
    what, fix = f"the cells cannot be separated: {error}", _QUOTES
    if "unexpected end" in str(error):
        what = "a quote that opens in this row is not closed: all lines below are in its cell"
    elif "expected after" in str(error):
        what = "a cell of this row goes on behind its closing quote"
    elif "limit" in str(error):
        what = f"a cell of this row has more than {csv.field_size_limit()} characters"
        fix = "if a quote is not closed, close it; or write JSON lines, where a text may be longer"
    return FormatError(what, path=name, line=number, fix=fix)


def check_header(
    columns: Sequence[str], name: str, number: int = 1, *, read: Collection[str] | None = None
) -> None:
    """Check that the header names no column twice.

    Args:
        columns: The cells of the header; those without a name are no matter.
        name: The name of the file.
        number: The line of the header.
        read: Where given, the columns that are read; others may have one name.

    Raises:
        FormatError: With the first name that it has twice.
    """
    counts = Counter(columns)
    chosen = counts if read is None else read
    twice = next((cell for cell in chosen if cell and counts[cell] > 1), None)
    if twice is not None:
        raise FormatError(
            f"the header names column {twice!r} twice", path=name, line=number,
            fix="keep one of them, or rename the other",
        )  # fmt: skip


def check_width(
    cells: Sequence[str], columns: Sequence[str], name: str, place: tuple[int, str]
) -> None:
    """Check that a row has the cells of the header; more may follow if they are empty.

    Args:
        cells: The cells of the row.
        columns: The cells of the header.
        name: The name of the file.
        place: The line, and what separates cells.

    Raises:
        FormatError: If cells are missing, or would be dropped.
    """
    number, by = place
    width = len(columns)
    if len(cells) == width or (len(cells) > width and not any(map(str.strip, cells[width:]))):
        return
    if len(cells) < width:
        fix = "give every line as many cells as the header, empty ones too"
    elif by == "\t":
        fix = "write a blank for a tab inside a text, or write JSON lines"
    else:
        fix = f'put a text that holds {by!r} in quotes, right behind the separator: 1{by}"a{by} b"'
    raise FormatError(
        f"got {len(cells)} columns, wanted {width} as in the header", path=name, line=number,
        text=shorten(by.join(cells).encode("utf-8", "replace")), fix=fix,
    )  # fmt: skip

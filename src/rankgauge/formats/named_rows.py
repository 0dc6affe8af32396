"""Read rows of named values from any source: files, data frames, columns, objects."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from typing import Any, BinaryIO, TypeAlias

from rankgauge.errors import FormatError, InputError
from rankgauge.formats.delimited import DELIMITERS, check_header, check_width, named_cells, rows_of
from rankgauge.formats.frames import frame_columns, is_frame, listed, short
from rankgauge.formats.json_files import json_document, objects
from rankgauge.formats.lines import (
    Source,
    is_columnar,
    is_content,
    numbered_lines,
    opened,
    opened_bytes,
    refuse,
    source_name,
    start_of,
)
from rankgauge.formats.registry import format_of

# Location of a row, for messages, and the row.
NamedRow: TypeAlias = tuple[str, Mapping[str, Any]]

_BOM = b"\xef\xbb\xbf"


def named_rows(source: Any, name: str, containers: Sequence[str] = ()) -> Iterator[NamedRow]:
    """Yield the rows of a file, a data frame, columns, or an iterable of mappings or objects.

    Args:
        source: A path (JSON lines, JSON, CSV, TSV, Parquet, Arrow; compressed or not; ``-`` is
            standard input), a data frame, a mapping of columns, or an iterable of mappings or
            objects.
        name: The name of the source for messages.
        containers: Keys of a JSON object that may contain the list of rows.

    Raises:
        InputError: If there are no rows; the message gives the line or the row.
    """
    if isinstance(source, str | os.PathLike):
        with opened_bytes(source) as stream:
            yield from stream_rows(stream, source_name(source), containers)
    elif isinstance(source, Mapping):
        yield from _of_mapping(source, name, containers)
    elif is_frame(source):
        columns = frame_columns(source, name)
        yield from _of_columns({str(key): listed(c) for key, c in columns.items()}, name)
    elif isinstance(source, Iterable) and not isinstance(source, bytes | bytearray | AbstractSet):
        yield from _of_list(source)
    else:
        raise InputError(
            f"got {type(source).__name__}, expected records",
            where=name,
            fix="pass a path, a data frame, or a list of mappings",
        )


def row_cells(source: Source, *, key: Callable[[str], str] = str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and the cells by column of each row of CSV, TSV, or JSON lines.

    The format is detected from the first line; `key` converts column names of a table to keys.
    """
    name = source_name(source)
    with opened(source) as stream:
        lines = numbered_lines(stream, name)
        first = next(((at, line) for at, line in lines if is_content(line)), (0, b""))
        everything = itertools.chain([first] if first[0] else [], lines)
        if first[1].lstrip().startswith(b"{"):
            yield from objects(everything, name)
            return
        by = "\t" if first[1].count(b"\t") > first[1].count(b",") else ","
        yield from named_cells(everything, name, by, key=key)


def parts_of(row: Any, place: str) -> Mapping[str, Any]:
    """Return the items of a mapping, or the attributes of an object, by name."""
    if isinstance(row, Mapping):
        return row
    if hasattr(row, "_asdict"):
        return dict(row._asdict())
    names = [*getattr(type(row), "__slots__", ()), *getattr(row, "__dict__", ())]
    found = {each: getattr(row, each, None) for each in names if not each.startswith("_")}
    if not found:
        raise InputError(
            f"got {short(row)}, expected a record", where=place, fix='write it as a mapping: {"question": ...}'
        )
    return found


def stream_rows(stream: BinaryIO, name: str, containers: Sequence[str] = ()) -> Iterator[NamedRow]:
    """Yield the rows of a file as :func:`named_rows` does."""
    start = start_of(stream)
    form = format_of(name)
    if is_columnar(start, name):
        from rankgauge.formats.parquet import read_rows

        for number, found in enumerate(read_rows(stream, name), 1):
            yield f"{name}, record {number}", found
        return
    refuse(start, name)
    if form in DELIMITERS:
        yield from _of_cells(stream, name, DELIMITERS[form])
    elif form != "jsonl" and (form == "json" or start.removeprefix(_BOM).lstrip()[:1] == b"["):
        data = json_document(numbered_lines(stream, name), name, "a list of records")
        if isinstance(data, dict):
            for place, row in _of_mapping(data, name, containers):
                yield f"{name}, {place}", row
        elif isinstance(data, list):
            yield from _of_list(data, f"{name}, ")
        else:
            raise FormatError(f"got {short(data)}, expected a list of records", path=name, fix="write [{...}, ...]")
    else:
        for line, row in objects(numbered_lines(stream, name), name):
            yield f"{name}, line {line}", row


def _of_list(rows: Iterable[Any], prefix: str = "") -> Iterator[NamedRow]:
    for number, row in enumerate(rows, 1):
        place = f"{prefix}record {number}"
        yield place, parts_of(row, place)


def _of_cells(stream: BinaryIO, name: str, by: str) -> Iterator[NamedRow]:
    lines = ((number, 0, line) for number, line in numbered_lines(stream, name))
    rows = rows_of(lines, name, by)
    first, _, header = next(rows, (1, 0, []))
    columns = [cell.strip() for cell in header]
    check_header(columns, name, first)
    for number, _, cells in rows:
        check_width(cells, columns, name, (number, by))
        # An empty cell counts as missing.
        values = (cell or None for cell in cells)
        yield f"{name}, line {number}", dict(zip(columns, values, strict=False))


def _of_mapping(source: Mapping[Any, Any], name: str, containers: Sequence[str]) -> Iterator[NamedRow]:
    held = next((key for key in containers if isinstance(source.get(key), list)), None)
    if held is not None:
        yield from named_rows(source[held], name, containers)
    elif source and all(isinstance(value, Mapping) for value in source.values()):
        for key, value in source.items():
            yield f"record {key!r}", {"id": key, **value}
    else:
        yield from _of_columns(source, name)


def _of_columns(columns: Mapping[Any, Any], name: str) -> Iterator[NamedRow]:
    lists: dict[str, list[Any]] = {}
    for key, column in columns.items():
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Iterable):
            raise InputError(
                f"{key!r} is {short(column)}, expected a list with an entry for each record",
                where=name,
                fix="pass one record as a list of one: [record]",
            )
        lists[str(key)] = listed(column)
    lengths = {key: len(column) for key, column in lists.items()}
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"{key!r} has {length}" for key, length in lengths.items())
        raise InputError(
            f"the columns have different lengths: {text}", where=name, fix="give every column one entry for each record"
        )
    for number, row in enumerate(zip(*lists.values(), strict=True), 1):
        yield f"record {number}", dict(zip(lists, row, strict=True))

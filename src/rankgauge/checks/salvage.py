"""What an evaluation refuses, read all the same: lines that fit are kept, the others are faults."""

from __future__ import annotations

import csv
import itertools
import json
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from rankgauge.core.findings import Location
from rankgauge.core.ids import Ids, id_bytes, show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import FormatError, InputError
from rankgauge.formats import memory
from rankgauge.formats.columns import RUN, Layout, columns_of
from rankgauge.formats.lines import (
    Source,
    is_columnar,
    numbered_lines,
    opened,
    opened_bytes,
    shorten,
    source_name,
    start_of,
)
from rankgauge.formats.numbers import is_lost, lost_number, read_number
from rankgauge.formats.registry import InFormat, format_of
from rankgauge.formats.trec import is_line, places_of, rank_place

__all__ = ["Fault", "Faults", "names_ranks", "salvaged", "salvaged_rows"]

_SHOWN = 5
# So many lines say how wide the others are.
_LOOK = 1000
# Fields of a run whose third nobody knows: a rank, or a score.
_THREE = 3
_NAN = math.nan


@dataclass(frozen=True)
class Fault:
    """A line or an entry that was passed over.

    Attributes:
        line: Its number, 0 where there are none.
        what: What is wrong with it.
        query: Its query, as far as it is known.
        document: Its document.
    """

    line: int
    what: str
    query: str = ""
    document: str = ""


@dataclass(slots=True)
class Faults:
    """What was passed over.

    Attributes:
        lines: How many lines cannot be read.
        first_lines: The first of them.
        numbers: How many entries have a score or grade that is not finite.
        first_numbers: The first of them.
    """

    lines: int = 0
    first_lines: list[Fault] = field(default_factory=list)
    numbers: int = 0
    first_numbers: list[Fault] = field(default_factory=list)

    def line_locations(self, source: str) -> tuple[Location, ...]:
        """The first lines that cannot be read, as places."""
        return tuple(Location(source, f.line, f.query, f.document) for f in self.first_lines)

    def number_locations(self, source: str) -> tuple[Location, ...]:
        """The first numbers that are not finite, as places."""
        return tuple(Location(source, f.line, f.query, f.document) for f in self.first_numbers)

    def add_line(self, fault: Fault) -> None:
        """One more line that cannot be read."""
        self.lines += 1
        if len(self.first_lines) < _SHOWN:
            self.first_lines.append(fault)

    def add_number(self, fault: Fault) -> None:
        """One more number that is not finite."""
        self.numbers += 1
        if len(self.first_numbers) < _SHOWN:
            self.first_numbers.append(fault)


# A line taken apart: its number, query, document, number, and rank (NaN where there is none).
_Row: TypeAlias = tuple[int, bytes, bytes, float, float]


def salvaged(source: Source, layout: Layout) -> tuple[PairTable, Faults] | None:
    """The rows of a file that can be read, and what was passed over.

    None where it is no file of rows, or where none of them can be read.

    Raises:
        InputError: If the file itself cannot be read.
    """
    name = source_name(source)
    if source == "-":
        return None
    columns = _columnar(source, name, layout)
    if columns is not None:
        return _named(salvaged_rows(columns, layout), name)
    with opened(source) as stream:
        lines = numbered_lines(stream, name)
        head = _head(lines)
        form = source.format if isinstance(source, InFormat) else format_of(name)
        rows = _reader(head, form, layout)
        if rows is None:
            return None
        faults = Faults()
        if rows is _whole:
            return _document(b"".join(line for _, line in _all(head, lines, faults)), layout, name)
        return _table(rows(_all(head, lines, faults), faults), layout, name, faults)


def _columnar(source: Source, name: str, layout: Layout) -> Any:
    """The columns of a file of Parquet or Arrow that are read; None of another file."""
    with opened_bytes(source) as stream:
        if not is_columnar(start_of(stream), name):
            return None
        from rankgauge.formats.parquet import columnar_frame

        return columnar_frame(stream, name, layout)[0]


def names_ranks(source: Source) -> bool:
    """Whether a file of lines seems to have ranks beside its scores."""
    if source == "-":
        return False
    with opened(source) as stream:
        head = _head(numbered_lines(stream, source_name(source)))
    said = [line for _, line in head if line.strip() and not line.lstrip().startswith(b"#")]
    if not said:
        return False
    fields = said[0].split()
    return b"rank" in said[0].lower() or (
        is_line(fields, RUN) and rank_place(len(fields), RUN) >= 0
    )


def salvaged_rows(source: Any, layout: Layout) -> tuple[PairTable, Faults] | None:
    """The same of a mapping or a data frame in memory: entries whose number is finite.

    None where it is something else, or has nothing to pass over.
    """
    faults = Faults()
    name = layout.name
    if isinstance(source, Mapping) and columns_of(source, layout) is None:
        rows = _mapped(source, faults)
    elif isinstance(source, Mapping) or memory.is_frame(source):
        rows = _framed(source, layout, faults)
    else:
        return None
    try:
        found = _table(rows, layout, name, faults)
    except (TypeError, ValueError):
        return None  # ids or numbers that are none: what was wrong with the whole holds
    return found if found is not None and faults.numbers else None


def _head(lines: Iterator[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    return list(itertools.islice(lines, _LOOK))


def _all(
    head: list[tuple[int, bytes]], lines: Iterator[tuple[int, bytes]], faults: Faults
) -> Iterator[tuple[int, bytes]]:
    """All lines; where packed data ends early, that is the last fault."""
    yield from head
    try:
        yield from lines
    except FormatError as error:
        faults.add_line(Fault(error.line, error.what))


def _reader(
    head: list[tuple[int, bytes]], form: str | None, layout: Layout
) -> Callable[[Iterable[tuple[int, bytes]], Faults], Iterator[_Row]] | None:
    """What reads such lines; None where they are none that we know."""
    said = [line for _, line in head if line.strip() and not line.lstrip().startswith(b"#")]
    if not said:
        return None
    first = said[0].strip()
    if form == "json":
        return _whole
    if form == "jsonl" or (form is None and first.startswith(b"{")):
        return lambda lines, faults: _objects(lines, layout, faults)
    for separator in (b"\t", b","):
        cells = first.decode("utf-8", "replace").split(separator.decode())
        names = [cell.strip().strip('"') for cell in cells]
        if form in {None, "csv", "tsv"} and columns_of(names, layout) is not None:
            return lambda lines, faults: _cells(lines, separator.decode(), layout, faults)
    fitting = [parts for parts in map(bytes.split, said) if _fits(parts, layout)]
    if form in {None, "trec"} and fitting:
        width = Counter(map(len, fitting)).most_common(1)[0][0]
        sample = next(parts for parts in fitting if len(parts) == width)
        return lambda lines, faults: _fields(lines, sample, layout, faults)
    return None


def _fits(parts: list[bytes], layout: Layout) -> bool:
    """Whether a line of such fields says all of a row."""
    unknown = layout is RUN and len(parts) == _THREE
    return places_of(parts, layout) is not None and not unknown


def _whole(lines: Iterable[tuple[int, bytes]], faults: Faults) -> Iterator[_Row]:
    """Stands for a file that is read as one."""
    del lines, faults
    yield from ()


def _document(data: bytes, layout: Layout, name: str) -> tuple[PairTable, Faults] | None:
    """The rows of one JSON object, or of a list of one object a row."""
    try:
        held = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if isinstance(held, list) and held and all(isinstance(row, dict) for row in held):
        held = {key: [row.get(key) for row in held] for key in held[0]}
    return _named(salvaged_rows(held, layout), name)


def _named(found: tuple[PairTable, Faults] | None, name: str) -> tuple[PairTable, Faults] | None:
    return None if found is None else (replace(found[0], source=name), found[1])


def _fields(
    lines: Iterable[tuple[int, bytes]], sample: list[bytes], layout: Layout, faults: Faults
) -> Iterator[_Row]:
    """Lines of fields between blanks, as many as in the sample."""
    places = places_of(sample, layout)
    if places is None:
        return
    query, doc, value = places
    width = len(sample)
    rank = rank_place(width, layout)
    for number, line in lines:
        parts = line.split()
        if not parts or parts[0].startswith(b"#"):
            continue
        if len(parts) != width:
            got = "1 field" if len(parts) == 1 else f"{len(parts)} fields"
            faults.add_line(Fault(number, f"{got}, wanted {width}: {shorten(line)}"))
            continue
        try:
            found = read_number(parts[value])
        except ValueError:
            what, _ = lost_number(parts[value], layout) or (
                f"{layout.value} {shorten(parts[value])!r} is not a number", ""
            )  # fmt: skip
            faults.add_line(Fault(number, what, show_id(parts[query]), show_id(parts[doc])))
            continue
        yield number, parts[query], parts[doc], found, _rank(parts[rank]) if rank >= 0 else _NAN


def _rank(text: bytes) -> float:
    try:
        return read_number(text)
    except ValueError:
        return _NAN


def _cells(
    lines: Iterable[tuple[int, bytes]], separator: str, layout: Layout, faults: Faults
) -> Iterator[_Row]:
    """A table with a header, each line by itself."""
    header: list[str] = []
    for number, line in lines:
        if not line.strip():
            continue
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            faults.add_line(Fault(number, f"byte {error.start + 1} is not UTF-8: {shorten(line)}"))
            continue
        try:
            cells = next(csv.reader([text], delimiter=separator))
        except csv.Error as error:
            faults.add_line(Fault(number, f"the cells cannot be told apart: {error}"))
            continue
        if not header:
            header = [cell.strip() for cell in cells]
            continue
        if len(cells) != len(header):
            faults.add_line(Fault(number, f"{len(cells)} cells, wanted {len(header)}"))
            continue
        row = _row(dict(zip(header, cells, strict=True)), number, layout, faults)
        if row is not None:
            yield row


def _objects(lines: Iterable[tuple[int, bytes]], layout: Layout, faults: Faults) -> Iterator[_Row]:
    """JSON objects, one a line."""
    for number, line in lines:
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            faults.add_line(Fault(number, f"not valid JSON: {shorten(line)}"))
            continue
        if not isinstance(value, dict):
            faults.add_line(Fault(number, f"this is no object: {shorten(line)}"))
            continue
        row = _row(value, number, layout, faults)
        if row is not None:
            yield row


def _row(value: dict[str, Any], number: int, layout: Layout, faults: Faults) -> _Row | None:
    """One row by the names of its columns; None, and a fault, where it is none."""
    columns = columns_of(value, layout)
    if columns is None:
        faults.add_line(Fault(number, f"the columns are {', '.join(map(repr, value))}"))
        return None
    try:
        query, doc = id_bytes(value[columns.query], "query id"), id_bytes(value[columns.doc])
        score = _plain_number(value[columns.value])
    except InputError as error:
        faults.add_line(Fault(number, error.what))
        return None
    except (TypeError, ValueError):
        what, _ = lost_number(value[columns.value], layout) or (
            f"{layout.value} {value[columns.value]!r:.40} is not a number", ""
        )  # fmt: skip
        faults.add_line(Fault(number, what, show_id(query), show_id(doc)))
        return None
    rank = _NAN
    if columns.value.strip().lower() == "rank":
        score = -score
    elif layout is RUN and "rank" in value:
        try:
            rank = _plain_number(value["rank"])
        except (TypeError, ValueError):
            rank = _NAN
    return number, query, doc, score, rank


def _plain_number(value: Any) -> float:
    """A number as text or as it is; NaN where it is missing."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return _NAN
    if isinstance(value, str):
        return read_number(value.encode())
    if isinstance(value, bool | list | dict):
        raise TypeError(value)
    number = float(value)
    if is_lost(value, number):
        raise ValueError(value)
    return number


def _mapped(source: Mapping[Any, Any], faults: Faults) -> Iterator[_Row]:
    """Entries of a mapping of mappings; what is none ends the reading."""
    del faults
    for query, docs in source.items():
        if not isinstance(docs, Mapping):
            return
        key = id_bytes(query, "query id")
        for doc, value in docs.items():
            try:
                number = _plain_number(value)
            except (TypeError, ValueError):
                return
            yield 0, key, id_bytes(doc, "document id"), number, _NAN


def _framed(source: Any, layout: Layout, faults: Faults) -> Iterator[_Row]:
    """Rows of columns or of a data frame."""
    del faults
    data = source if isinstance(source, Mapping) else memory.frame_columns(source, layout.name)
    columns = columns_of(data, layout)
    if columns is None:
        return
    chosen = [memory.listed(data[name]) for name in columns.read]
    for query, doc, value in zip(*chosen, strict=False):
        number = _NAN if value is None or type(value).__name__ == "NAType" else float(value)
        yield 0, id_bytes(query, "query id"), id_bytes(doc, "document id"), number, _NAN


def _table(
    rows: Iterable[_Row], layout: Layout, name: str, faults: Faults
) -> tuple[PairTable, Faults] | None:
    """The rows whose number is finite; the others are faults. None without any."""
    queries: list[bytes] = []
    docs: list[bytes] = []
    # Each query is kept once.
    names: dict[bytes, bytes] = {}
    lines, values, ranks = array("q"), array("d"), array("d")
    for line, query, doc, value, rank in rows:
        if not math.isfinite(value):
            what = f"{layout.value} {value}"
            faults.add_number(Fault(line, what, show_id(query), show_id(doc)))
            continue
        if not query or not doc or b"\0" in query + doc:
            faults.add_line(Fault(line, "an id is empty, or holds a NUL byte"))
            continue
        queries.append(names.setdefault(query, query))
        docs.append(doc)
        lines.append(line)
        values.append(value)
        ranks.append(rank)
    if not queries:
        return None
    numbered, unranked = any(lines), any(map(math.isnan, ranks))
    table = PairTable.of_rows(
        Ids.of(queries, "query id"),
        Ids.of(docs, "document id"),
        np.array(values),
        lines=np.array(lines, dtype=np.int64) if numbered else None,
        ranks=None if unranked else np.array(ranks),
    )
    return table.said(source=name), faults

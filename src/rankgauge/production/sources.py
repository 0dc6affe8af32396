"""Readers of log files in batches of rows: JSON lines, CSV, and Parquet, optionally compressed."""

from __future__ import annotations

import io
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rankgauge.core.libraries import library
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.delimited import RecoveredRow, check_header, recovered_rows
from rankgauge.formats.lines import (
    is_columnar,
    is_plain_file,
    line_parts,
    numbered_lines,
    opened_bytes,
    read_bytes,
    refuse,
    source_name,
    start_of,
)
from rankgauge.formats.parquet import column_names, columnar_tables
from rankgauge.formats.registry import BrokenPackError
from rankgauge.formats.spans import is_span
from rankgauge.production.events import OWN, VENDORS, LogMapping
from rankgauge.production.log import Refused

pa, pc = (library(name, extra="production", of="a production log") for name in ("pyarrow", "pyarrow.compute"))

# Bytes of a batch of text, rows of a batch of columns, and the longest line.
BATCH_BYTES, BATCH_ROWS, LONGEST = 48 << 20, 200_000, 64 << 20
_PART = 1 << 16
# The years 1 to 9999, in seconds since 1970.
_FIRST, _END = -62_135_596_800, 253_402_300_800
_UNREADABLE = "a value that cannot be read"
_LOOK = 1 << 18
_BOM = b"\xef\xbb\xbf"
_BULK = ('{"index"', '{"create"', '{"update"')


@dataclass(frozen=True)
class LogFormat:
    """A format of logs.

    Attributes:
        recognizes: Whether a row, or its keys, indicate the format.
        mapping: The columns of the format; None if only JSON is translated.
    """

    recognizes: Callable[[Mapping[str, Any]], object]
    mapping: LogMapping | None = None


# Log formats, in the order in which they are recognized.
FORMATS: Mapping[str, LogFormat] = {
    "events": LogFormat(frozenset({"event_id", "kind", "time"}).issubset, OWN),
    "ubi": LogFormat({"action_name", "user_query", "query_response_hit_ids"}.intersection),
    **{name: LogFormat(keys.issubset, mapping) for name, (keys, mapping) in VENDORS.items()},
    "spans": LogFormat(lambda row: is_span(row) or "resourceLogs" in row),
    "mapped": LogFormat(lambda _: False, OWN),
}


@dataclass(frozen=True)
class Batch:
    """A batch of rows of a source.

    Attributes:
        rows: An Arrow table with ``raw`` (JSON objects) or the columns, and ``line`` at the end.
        refused: The rows that could not be parsed.
        breaks: The number of nonblank lines of rows after their first lines.
    """

    rows: Any
    refused: list[Refused] = field(default_factory=list)
    breaks: int = 0


@dataclass(frozen=True)
class Source:
    """A log file with its name, format, and layout."""

    path: str
    format: str
    columnar: bool
    delimiter: str = ""  # of CSV; empty for JSON
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that the format exists in this layout."""
        if self.is_table and FORMATS[self.format].mapping is None and self.format != "spans":
            raise FormatError(
                f"the format {self.format} is read from JSON only",
                path=self.name,
                fix="export JSON, or pass a mapping: --mapping FILE",
            )

    @property
    def name(self) -> str:
        """Name in messages."""
        return source_name(self.path)

    @property
    def is_table(self) -> bool:
        """Whether rows have columns; otherwise they are JSON objects."""
        return self.columnar or bool(self.delimiter)

    def batches(self) -> Iterator[Batch]:
        """Yield all rows in batches; batch boundaries depend only on the file."""
        with opened_bytes(self.path) as stream:
            if self.columnar:
                yield from _columnar(stream, self.name)
            elif self.delimiter:
                yield from _delimited(stream, self)
            else:
                start = start_of(stream).lstrip(_BOM).lstrip()
                first_line, line_break, _ = start.partition(b"\n")
                if start[:1] == b"[" or (line_break and not first_line.rstrip().endswith(b"}")):
                    yield from _json_document(stream, self.name)
                else:
                    yield from _json_lines(stream)


def find_format(path: str, *, format: str | None = None, mapped: bool = False) -> Source:
    """Detect the format of a log from its first rows; refuse a log that can only be read once."""
    where = Path(path)
    if path == "-" or (where.exists() and not (where.is_file() or where.is_dir())):
        raise InputError(
            "a log is read more than once, which is not possible with a pipe or standard input",
            where=source_name(path),
            fix="write it to a file first",
        )
    columns: tuple[str, ...] = ()
    delimiter = head = ""
    with opened_bytes(path) as stream:
        name, start = source_name(path), start_of(stream)
        columnar = is_columnar(start, name)
        if columnar:
            columns = column_names(stream, name)
            check_header(columns, name)
        else:
            refuse(start, name)
            start = _head(stream).removeprefix(_BOM)
            head = start.decode("utf-8", "replace").lstrip()
            if not head:
                raise FormatError("the log is empty", path=name, fix="name a file with rows")
    if not columnar and head[0] not in "{[":
        lines = [line for line in numbered_lines(io.BytesIO(start), name) if line[1].strip()]
        delimiter = max(",\t;", key=lines[0][1].decode("utf-8", "replace").count)
        header = next(recovered_rows(lines, name, delimiter))
        if header.fault is not None:
            raise header.fault
        columns = tuple(cell.strip() for cell in header.cells)
        check_header(columns, name, lines[0][0])
    rows = [dict.fromkeys(columns, "")] if columns else _objects(head)
    recognized = "mapped" if mapped else next((f for row in rows for f in FORMATS if FORMATS[f].recognizes(row)), None)
    form = format or recognized
    if form is None or (delimiter and len(columns) == 1 and not mapped):
        raise FormatError(
            "the format of this log is not known",
            path=name,
            fix="pass --mapping FILE, which maps its columns (rankgauge.production.draft_mapping drafts one), "
            "or --format: " + ", ".join(list(FORMATS)[:-1]),
        )
    return Source(path, form, columnar, delimiter, columns)


def _head(stream: BinaryIO) -> bytes:
    """Return the beginning of a text."""
    head = b""
    try:
        while len(head) < _LOOK and (part := stream.read(_PART)):
            head += part
    except (BrokenPackError, OSError):
        pass  # the error is reported when rows are read
    return head


def _objects(head: str) -> Iterator[dict[str, Any]]:
    """Yield the objects at the start of a file, or the single object of the file."""
    decoder = json.JSONDecoder()
    for line in itertools.islice(head.splitlines(), 200):
        text = line.strip().lstrip("[").rstrip(",")
        try:
            row, _ = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and not text.startswith(_BULK):
            inner = row.get("_source")
            yield inner if isinstance(inner, dict) else row
    # A multi-line document, or the beginning of one.
    try:
        row, _ = decoder.raw_decode(head[head.index("{") :])
        yield row
    except (ValueError, RecursionError):
        if '"resourceSpans"' in head:
            yield {"resourceSpans": []}
        # The first object of a long list within a document.
        with suppress(ValueError, RecursionError):
            yield decoder.raw_decode(head[head.index("{", head.index("[")) :])[0]


def _blocks(stream: BinaryIO) -> Iterator[tuple[bytes, str]]:
    """Yield blocks of complete lines, with the fault that ended the stream, if any."""
    rest: list[bytes] = []
    size, fault = 0, ""
    # Compressed data may be damaged anywhere, and small reads limit the loss.
    part_size = _PART * 16 if is_plain_file(stream) else io.DEFAULT_BUFFER_SIZE
    read = getattr(stream, "read1", stream.read)
    while not fault:
        try:
            part = read(part_size)
        except (BrokenPackError, OSError) as error:
            part, fault = b"", _damage(error)
        if not part:
            break
        rest.append(part)
        size += len(part)
        if size >= BATCH_BYTES and (b"\n" in part or b"\r" in part):
            text = b"".join(rest)
            # A line feed may follow a carriage return at the end.
            end = max(text.rfind(b"\n"), text.rfind(b"\r", 0, -1)) + 1
            if end:
                yield text[:end], ""
            rest, size = [text[end:]], len(text) - end
    yield b"".join(rest), fault


def _damage(error: BrokenPackError | OSError) -> str:
    if isinstance(error, BrokenPackError):
        return f"the {error.what} is corrupt or truncated here"
    return f"cannot be read further: {error.strerror or error}"


def _decoded(block: bytes, first: int) -> tuple[bytes, list[Refused]]:
    """Return a block with blank lines in place of those that are not UTF-8, which are refused."""
    block = block.replace(b"\x00", b" ") if b"\x00" in block else block
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        lines, refused = block.split(b"\n"), []
        for number, line in enumerate(lines):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                refused.append(Refused(first + number, "not UTF-8", line.decode("utf-8", "backslashreplace")))
                lines[number] = b""
        return b"\n".join(lines), refused
    return block, []


def _json_lines(stream: BinaryIO) -> Iterator[Batch]:

    first = 1
    for raw, fault in _blocks(stream):
        block = raw.removeprefix(_BOM) if first == 1 else raw
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in block else block
        block, refused = _decoded(block, first)
        if block and not block.endswith(b"\n"):
            block += b"\n"
        ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))
        starts = np.concatenate(([0], ends + 1)).astype(np.int32)
        texts = pa.Array.from_buffers(
            pa.string(), len(ends), [None, pa.py_buffer(starts.tobytes()), pa.py_buffer(block)]
        )
        lines = pa.array(np.arange(first, first + len(ends), dtype=np.int64))
        first += len(ends)
        if fault:
            refused.append(Refused(first, fault, ""))
        yield Batch(pa.table({"raw": texts, "line": lines}), refused)


def _json_document(stream: BinaryIO, name: str) -> Iterator[Batch]:
    """Read a file that is a single JSON document: an array of objects or one object."""
    try:
        document = json.loads(read_bytes(stream, name).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"this is not JSON: {error}", path=name, fix="write an object on each line") from None
    rows = document if isinstance(document, list) else [document]
    for start in range(0, max(len(rows), 1), BATCH_ROWS):
        texts = [json.dumps(row) for row in rows[start : start + BATCH_ROWS]]
        lines = pa.array(range(start + 1, start + 1 + len(texts)), pa.int64())
        yield Batch(pa.table({"raw": pa.array(texts, pa.string()), "line": lines}))


def _columnar(stream: BinaryIO, name: str) -> Iterator[Batch]:

    first = 1
    for table in columnar_tables(stream, name, BATCH_ROWS):
        lines = pa.array(range(first, first + len(table)), pa.int64())
        bad: set[int] = set()
        texts = [_texts(column, bad) for column in table.columns]
        good = pa.array([row not in bad for row in range(len(table))], pa.bool_())
        refused = [Refused(first + row, _UNREADABLE, "") for row in sorted(bad)]
        first += len(table)
        yield Batch(pa.table([*texts, lines], [*table.column_names, "line"]).filter(good), refused)


def _texts(column: Any, bad: set[int]) -> Any:
    """Return a column as text or lists of text; add the numbers of rows that cannot be read."""
    kind = column.type
    is_list = isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType)
    try:
        if pa.types.is_timestamp(kind):
            limits = pc.min_max(column.cast(pa.int64())).as_py().values()
            scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
            if not all(limit is None or _FIRST <= limit / scale < _END for limit in limits):
                raise pa.ArrowInvalid("a year of more than four digits")
            column = column.cast(pa.timestamp(kind.unit, kind.tz and "UTC"))
        texts = column.cast(pa.list_(pa.string()) if is_list else pa.string())
        texts.validate(full=True)
    except pa.ArrowException:
        cells = [_text(scalar) for scalar in column]
        bad.update(row for row, text in enumerate(cells) if text is _UNREADABLE)
        texts = pa.array(cells, pa.string())
    return texts


def _text(scalar: Any) -> str | None:
    """Return a value as text, nested values as JSON."""
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError):  # not UTF-8, or a date that Python cannot represent
        return _UNREADABLE
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list | dict):
        if hasattr(scalar.type, "key_type"):  # a map
            value = {str(key): item for key, item in value}
        return json.dumps(value, default=str)
    return str(value)


def _delimited(stream: BinaryIO, source: Source) -> Iterator[Batch]:
    damage: list[str] = []
    parts = numbered_lines(_until_damage(stream, damage), source.name)
    lines = (
        # The rest of a line that is too long is not kept: its row is refused.
        (number, b"".join(part for _, part in itertools.islice(same, LONGEST // _PART)))
        for number, same in itertools.groupby(parts, key=itemgetter(0))
    )
    rows: list[list[Any]] = []
    refused: list[Refused] = []
    last = size = breaks = 0
    for row in itertools.islice(recovered_rows(lines, source.name, source.delimiter), 1, None):
        first, last = row.lines[0][0], row.lines[-1][0]
        fault = _fault(row, len(source.columns))
        if fault:
            refused.append(Refused(first, fault, row.text.strip().decode("utf-8", "backslashreplace")))
        else:
            rows.append([*row.cells[: len(source.columns)], first])
        breaks += sum(not line.isspace() for _, line in row.lines[1:])
        size += len(row.text)
        if size >= BATCH_BYTES or len(rows) >= BATCH_ROWS:
            yield Batch(_table(rows, source.columns), refused, breaks)
            rows, refused, size, breaks = [], [], 0, 0
    refused += [Refused(last + 1, reason, "") for reason in damage]
    yield Batch(_table(rows, source.columns), refused, breaks)


def _fault(row: RecoveredRow, width: int) -> str:
    """Return why lines are not a row, without numbers, so that equal faults can be grouped."""
    if row.fault is not None:
        what = row.fault.what.partition(":")[0]
        return "not UTF-8" if what.endswith("not UTF-8") else what
    if len(row.cells) < width or any(row.cells[width:]):
        return "the number of columns differs from the header"
    return ""


def _table(rows: list[list[Any]], columns: Sequence[str]) -> Any:

    kinds = [*[pa.string()] * len(columns), pa.int64()]
    cells = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return pa.table(list(map(pa.array, cells, kinds)), [*columns, "line"])


def _until_damage(stream: BinaryIO, damage: list[str]) -> Iterator[bytes]:
    """Yield lines, long ones in parts; collect the error that ends the stream, if any."""
    try:
        yield from line_parts(stream)
    except (BrokenPackError, OSError) as error:
        damage.append(_damage(error))


def fingerprint(path: str) -> str:
    """Return an identifier of a file and its state, used to resume an interrupted import."""
    import hashlib

    with open(path, "rb") as stream:  # noqa: PTH123 - a path may be text
        start = stream.read(_LOOK)
        size = os.fstat(stream.fileno()).st_size
    return f"{size}-{hashlib.sha256(start).hexdigest()[:16]}"

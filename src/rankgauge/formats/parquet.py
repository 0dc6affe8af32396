"""Read and write three columns of Parquet and Arrow files."""

from __future__ import annotations

import io
import itertools
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from rankgauge.core.ids import Ids
from rankgauge.core.pair_table import PairTable
from rankgauge.core.progress import report
from rankgauge.errors import FormatError, InputError, MissingExtra
from rankgauge.formats.columns import Columns, Layout, columns_of, wrong_columns
from rankgauge.formats.compression import exploded, too_many
from rankgauge.formats.frames import from_columns, from_frame
from rankgauge.formats.lines import all_of, is_plain_file, start_of
from rankgauge.formats.rows import OnError, id_texts

# Rows that are converted at a time; also the row group size in Parquet.
_ROWS = 1 << 20

_PARQUET, _FILE = b"PAR1", b"ARROW1"
# Arrow: bytes before the stream in a file, two message types, header size of a flatbuffer vtable.
_AHEAD, _DICTIONARY, _BATCH, _FIELDS = 8, 2, 3, 4
# Minimum memory per row: two id offsets and a number.
_ROW = 40
# Files with fewer bytes per row repeat document ids, or claim rows that they do not have.
_SAID_AGAIN = 3
_PIECE = 1 << 14
_BUFFER = 1 << 20
_LOOK, _RARE = 1 << 12, 4
_PLAIN = (
    "string",
    "large_string",
    "string_view",
    "binary",
    "large_binary",
    "binary_view",
    "int",
    "uint",
    "float",
    "double",
    "halffloat",
    "decimal",
    "bool",
    "fixed_size_binary",
)
_NESTED = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view", "struct", "map")
_AGAIN = "write the file again with pandas or polars, one row per pair of query and document"
_FLAT = "write a row for each pair: in pandas df.explode(...), in SQL UNNEST(...)"
_CAST = "write ids as text or whole numbers, and grades and scores as numbers"
_SAID = 200

# Path of a file, or all of its bytes.
_Held: TypeAlias = str | io.BytesIO


def read_columnar(
    stream: BinaryIO, name: str, layout: Layout, on_error: OnError | None = None, *, part: bool = False
) -> PairTable:
    """Read a Parquet file, an Arrow file (Feather), or an Arrow stream."""
    held, size, start = _in_memory(stream, name)
    choice = _Choice(name, layout)
    try:
        import pyarrow  # noqa: ICN001, F401 - whether it is there
    except ImportError:
        frame = _by_polars(held, size, start, choice)
    else:
        frame = _by_pyarrow(held, size, start, choice)
    # Columns were chosen among all names, but only these were read.
    table = from_frame(frame, layout, name, columns=choice.columns, on_error=on_error)
    if not len(table) and not part:
        raise no_rows(name, layout)
    return table


def columnar_pieces(
    stream: BinaryIO, name: str, layout: Layout, rows: int, *, part: bool = False
) -> Iterator[PairTable]:
    """Yield tables of `rows` consecutive rows of a columnar file."""
    held, size, start = _in_memory(stream, name)
    choice = _Choice(name, layout)
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra(
            "reading a columnar file in pieces needs pyarrow, which is not installed",
            where=name,
            fix="pip install 'rankgauge[arrow]'",
        ) from None
    before = 0
    try:
        batches = (_parquet_batches if start.startswith(_PARQUET) else _ipc_batches)(held, (size, start), choice, rows)
        for batch in batches:
            assert choice.columns is not None  # noqa: S101 - set by the batch reader
            queries, docs, values = map(batch.column, choice.columns.read)
            # Declared lengths and indices may be wrong (for Parquet, pyarrow computes the lengths).
            # Text that is not UTF-8 is detected later.
            (queries if start.startswith(_PARQUET) else batch).validate(full=True)
            yield from_columns(queries, docs, values, layout, columns=choice.columns, source=name, before=before)
            before += batch.num_rows
    except InputError:
        raise
    except (pa.ArrowException, OSError, MemoryError, OverflowError, ValueError) as error:
        raise _broken(name, error) from None
    if not before and not part:
        raise no_rows(name, layout)


def no_rows(name: str, layout: Layout) -> FormatError:
    """Return the error for a file or folder without rows."""
    fix = f"use rows of {', '.join(layout.columns)}"
    return FormatError("there are no rows", path=name, fix=fix)


def _parquet_batches(held: _Held, told: tuple[int, bytes], choice: _Choice, rows: int) -> Iterator[Any]:
    from pyarrow import parquet

    # Without a buffer, the column of a whole row group is read at once, however large it is.
    with parquet.ParquetFile(held, buffer_size=_BUFFER) as file:
        schema, metadata = file.schema_arrow, file.metadata
        columns = choice.of(schema.names, [str(kind) for kind in schema.types])
        choice.small_enough(_ROW * metadata.num_rows, told[0])
        first = next(file.iter_batches(_LOOK, columns=[columns.query]), None)
        # Dictionary encoding pays off if each query has several rows.
        often = first is not None and _RARE * len(first.column(0).unique()) <= first.num_rows
    if isinstance(held, io.BytesIO):
        held.seek(0)
    with parquet.ParquetFile(
        held, metadata=metadata, read_dictionary=[columns.query] if often else [], pre_buffer=False, buffer_size=_BUFFER
    ) as file:
        before = 0
        for batch in file.iter_batches(rows, columns=list(columns.read), use_threads=False):
            before += batch.num_rows
            report(before, metadata.num_rows, "read")
            if batch.num_rows:
                yield batch


def _ipc_batches(held: _Held, told: tuple[int, bytes], choice: _Choice, rows: int) -> Iterator[Any]:
    import pyarrow as pa

    size, start = told
    made = pa.ipc.open_file if start.startswith(_FILE) else pa.ipc.open_stream
    for batch in _batches(held, size, choice, made):
        for first in range(0, batch.num_rows, rows):
            yield batch.slice(first, rows)


def read_rows(stream: BinaryIO, name: str) -> list[dict[str, Any]]:
    """Read all columns, including nested ones, as one mapping per row."""
    held, size, start = _in_memory(stream, name)
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra(
            "reading records from a columnar file needs pyarrow, which is not installed",
            where=name,
            fix="pip install 'rankgauge[arrow]'",
        ) from None
    try:
        if start.startswith(_PARQUET):
            with parquet.ParquetFile(held) as file:
                groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
                _check_size(sum(group.total_byte_size for group in groups), size, name)
                table = file.read()
        else:
            made = pa.ipc.open_file if start.startswith(_FILE) else pa.ipc.open_stream
            with _source(held) as file:
                file.seek(_AHEAD if start.startswith(_FILE) else 0)
                _check_size(_claimed(file), size, name)
            with _source(held) as file, made(file) as reader:
                table = reader.read_all()
        table.validate(full=True)
        rows: list[dict[str, Any]] = table.to_pylist()
    except (pa.ArrowException, OSError, MemoryError, OverflowError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise _broken(name, error) from None
    return rows


def _check_size(plain: int, size: int, name: str) -> None:
    """Refuse a file that declares far more bytes than it can contain."""
    if too_many(size, plain):
        raise exploded(name, (size, plain), "with pyarrow or polars", claimed=True)


def column_names(stream: BinaryIO, name: str) -> tuple[str, ...]:
    """Return the names of all columns of a columnar file."""
    held, _, start = _in_memory(stream, name)
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra(
            "detecting the contents of a columnar file needs pyarrow, which is not installed",
            where=name,
            fix="pip install 'rankgauge[arrow]'",
        ) from None
    try:
        if start.startswith(_PARQUET):
            with parquet.ParquetFile(held) as file:
                return tuple(file.schema_arrow.names)
        made = pa.ipc.open_file if start.startswith(_FILE) else pa.ipc.open_stream
        with _source(held) as file, made(file) as reader:
            return tuple(reader.schema.names)
    except (pa.ArrowException, OSError, MemoryError, OverflowError, ValueError) as error:
        raise _broken(name, error) from None


def _in_memory(stream: BinaryIO, name: str) -> tuple[_Held, int, bytes]:
    """Return the path of the file or its bytes, its size, and its first bytes."""
    path = getattr(stream, "name", None)
    if is_plain_file(stream) and isinstance(path, str | bytes):
        start = start_of(stream)[: len(_FILE)]
        if start and os.path.isfile(path):  # noqa: PTH113 - it may be bytes
            return os.fsdecode(path), os.path.getsize(path), start  # noqa: PTH202
    content = all_of(stream, name)
    if not content:
        fix = "write it again; perhaps writing was interrupted"
        raise FormatError("the file is empty (0 bytes)", path=name, fix=fix)
    return io.BytesIO(content), len(content), content[: len(_FILE)]


class _Choice:
    """Choice of the columns to read from a file."""

    def __init__(self, name: str, layout: Layout) -> None:
        self.name, self._layout = name, layout
        self.columns: Columns | None = None
        self.schema: Any = None  # Arrow schema, restricted to these columns

    def of(self, names: Sequence[str], kinds: Sequence[str]) -> Columns:
        """Choose the columns among these names and check their types."""
        columns = columns_of(names, self._layout)
        if columns is None:
            what, fix = wrong_columns(names, self._layout)
            raise FormatError(what, path=self.name, fix=fix)
        for column in columns.read:
            if names.count(column) > 1:
                raise FormatError(
                    f"two columns are named {column!r}", path=self.name, fix="give each column a unique name"
                )
            self._check_type(column, kinds[names.index(column)])
        self.columns = columns
        return columns

    def _check_type(self, column: str, kind: str) -> None:
        inner = kind.removeprefix("dictionary<values=")
        if inner.startswith(_PLAIN):
            return
        nested = inner.startswith(_NESTED)
        raise FormatError(
            f"column {column!r} has type {kind[:_SAID]}, expected one plain value in each row",
            path=self.name,
            fix=_FLAT if nested else _CAST,
        )

    def small_enough(self, plain: int, size: int) -> None:
        """Refuse a file whose contents would need far more memory than its size justifies."""
        _check_size(plain, size, self.name)


def _broken(name: str, error: BaseException) -> FormatError:
    """Return the error for a file that the library cannot read."""
    message = str(error).strip().partition("\n")[0][:_SAID] or type(error).__name__
    return FormatError(f"the file cannot be read: {message}", path=name, fix=_AGAIN)


def _source(held: _Held) -> Any:
    """Return a pyarrow source for Arrow data."""
    import pyarrow as pa

    return pa.OSFile(held) if isinstance(held, str) else pa.BufferReader(held.getbuffer())


def _by_pyarrow(held: _Held, size: int, start: bytes, choice: _Choice) -> Any:
    import pyarrow as pa

    try:
        if start.startswith(_PARQUET):
            table = _parquet(held, size, choice)
        else:
            made = pa.ipc.open_file if start.startswith(_FILE) else pa.ipc.open_stream
            table = _ipc(held, size, choice, made)
        # Each chunk has a fixed cost.
        small = _PIECE * table.column(0).num_chunks > table.num_rows
        return table.combine_chunks() if small else table
    except FormatError:
        raise
    except (pa.ArrowException, OSError, MemoryError, OverflowError, ValueError) as error:
        raise _broken(choice.name, error) from None


def _parquet(held: _Held, size: int, choice: _Choice) -> Any:
    from pyarrow import parquet

    with parquet.ParquetFile(held) as file:
        schema, footer = file.schema_arrow, file.metadata
        columns = choice.of(schema.names, [str(kind) for kind in schema.types])
        groups = map(footer.row_group, range(footer.num_row_groups))
        plain = sum(group.total_byte_size for group in groups)
        choice.small_enough(max(plain, _ROW * footer.num_rows), size)
        # In files this small, documents repeat, too. (Metadata of single columns is not read:
        # pyarrow would abort on a broken file.)
        short = list(columns[:2] if size < _SAID_AGAIN * footer.num_rows else columns[:1])
    if isinstance(held, io.BytesIO):
        held.seek(0)
    # With dictionary encoding, a repeated id is stored once.
    with parquet.ParquetFile(held, metadata=footer, read_dictionary=short) as file:
        table = file.read(columns=list(columns.read))
    # Text may not be UTF-8.
    table.validate(full=True)
    return table


def _claimed(source: Any) -> int:
    """Return the declared decompressed size of the columns of an Arrow stream.

    Each compressed buffer begins with its decompressed size in eight bytes. pyarrow allocates that
    much memory before checking that the data can fill it.
    """
    import pyarrow as pa

    total = 0
    try:
        for message in pa.ipc.MessageReader.open_stream(source):
            body = memoryview(message.body) if message.body is not None else memoryview(b"")
            for at in _packed_buffers(memoryview(message.metadata)):
                total += max(0, *struct.unpack_from("<q", body, at))
    except (pa.ArrowException, OSError, MemoryError, struct.error):
        pass  # the reader reports the error
    return total


def _packed_buffers(head: memoryview) -> list[int]:
    """Return the offsets of compressed buffers in a message head (flatbuffer, Message.fbs)."""

    def number(kind: str, at: int) -> int:
        if at < 0:
            raise struct.error("outside")
        return int(struct.unpack_from(kind, head, at)[0])

    def place(table: int, field: int) -> int:
        """Return the position of a field of a table; 0 if absent."""
        fields = table - number("<i", table)
        if _FIELDS + 2 * field >= number("<H", fields):
            return 0
        offset = number("<H", fields + _FIELDS + 2 * field)
        return table + offset if offset else 0

    def follow(at: int) -> int:
        return at + number("<I", at)

    message = follow(0)
    kind, batch = place(message, 1), place(message, 2)
    if not kind or not batch or number("<B", kind) not in {_DICTIONARY, _BATCH}:
        return []
    batch = follow(batch)
    if number("<B", kind) == _DICTIONARY:
        batch = follow(place(batch, 1))
    buffers, packing = place(batch, 2), place(batch, 3)
    if not buffers or not packing:
        return []
    first = follow(buffers)
    spans = struct.unpack_from(f"<{2 * number('<I', first)}q", head, first + 4)
    return [at for at, size in zip(spans[::2], spans[1::2], strict=True) if size > 0 and at >= 0]


def _ipc(held: _Held, size: int, choice: _Choice, made: Callable[..., Any]) -> Any:
    import pyarrow as pa

    batches = []
    for batch in _batches(held, size, choice, made):
        # Lengths and offsets are not yet validated: trusting them could crash.
        batch.validate(full=True)
        choice.small_enough(batch.nbytes, size)
        batches.append(batch)
    return pa.Table.from_batches(batches, schema=choice.schema if not batches else None)


def _batches(held: _Held, size: int, choice: _Choice, made: Callable[..., Any]) -> Iterator[Any]:
    """Yield the batches of an Arrow file or stream, restricted to the chosen columns."""
    import pyarrow as pa

    with _source(held) as file:
        if made is pa.ipc.open_file:
            file.seek(_AHEAD)  # a stream follows, then a footer
        choice.small_enough(_claimed(file), size)
    with _source(held) as file, made(file) as reader:
        schema = reader.schema
        names = schema.names
        columns = choice.of(names, [str(kind) for kind in schema.types])
    options = pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in columns.read])
    with _source(held) as file, made(file, options=options) as reader:
        taken = 0
        choice.schema = reader.schema
        count = getattr(reader, "num_record_batches", None)
        for batch in reader if count is None else map(reader.get_batch, range(count)):
            taken += batch.num_rows
            choice.small_enough(_ROW * taken, size)
            yield batch


def _by_polars(held: _Held, size: int, start: bytes, choice: _Choice) -> Any:
    try:
        import polars as pl
    except ImportError:
        raise MissingExtra(
            "reading a columnar file needs pyarrow or polars, and neither is installed",
            where=choice.name,
            fix="pip install 'rankgauge[arrow]'",
        ) from None
    read: Callable[..., Any] = pl.read_ipc_stream
    if start.startswith(_PARQUET):
        read = pl.read_parquet
    elif start.startswith(_FILE):
        read = pl.read_ipc
    again = (lambda: held) if isinstance(held, str) else (lambda: io.BytesIO(held.getvalue()))
    try:
        schema = read(again(), n_rows=0).schema
        columns = choice.of(list(schema), [_kind(kind) for kind in schema.values()])
        if start.startswith(_PARQUET):
            rows = pl.scan_parquet(again()).select(pl.len()).collect().item()
            choice.small_enough(_ROW * rows, size)
        return read(again(), columns=list(columns.read))
    except FormatError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, MemoryError, ValueError) as error:
        raise _broken(choice.name, error) from None


def _kind(kind: Any) -> str:
    """Return the Arrow name of a polars type, where the difference matters."""
    name = str(kind).lower()
    return "string" if name.startswith(("categorical", "enum")) else name


def write_columns(tables: Iterable[PairTable], layout: Layout, form: str, stream: BinaryIO) -> None:
    """Write three columns: query and document as text, the number as 64-bit float."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra(
            f"writing {'Parquet' if form == 'parquet' else 'Arrow'} needs the library pyarrow",
            fix='pip install "rankgauge[arrow]", or write another format',
        ) from None

    kinds = (pa.string(), pa.string(), pa.float64())
    schema = pa.schema(list(zip(layout.columns, kinds, strict=True)))
    columns = itertools.chain.from_iterable(_columns(table, pa) for table in tables)
    batches = _groups((pa.record_batch(list(part), schema=schema) for part in columns), pa)
    if form == "arrow":
        with pa.ipc.new_file(stream, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return
    import pyarrow.parquet as pq

    with pq.ParquetWriter(stream, schema, compression="snappy") as writer:
        for batch in batches:
            writer.write_batch(batch, row_group_size=_ROWS)


def _groups(batches: Iterable[Any], pa: Any) -> Iterator[Any]:
    """Regroup rows into batches of `_ROWS`, so that the file does not depend on the tables."""
    kept: list[Any] = []
    for batch in batches:
        kept.append(batch)
        while sum(map(len, kept)) >= _ROWS:
            whole = pa.Table.from_batches(kept).combine_chunks()
            kept = whole.slice(_ROWS).to_batches()
            yield from whole.slice(0, _ROWS).to_batches()
    if kept:
        yield from pa.Table.from_batches(kept).combine_chunks().to_batches()


def _columns(table: PairTable, pa: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield query, document, and number columns, up to `_ROWS` rows at a time."""
    names = _texts(table.queries, pa)
    numbers = table.query_numbers()
    for start in range(0, len(table), _ROWS):
        here = slice(start, start + _ROWS)
        queries = names.take(pa.array(numbers[here]))
        # A copy, because pyarrow would keep the reused memory of the table alive.
        yield queries, _texts(table.docs.take(here), pa), pa.array(table.values[here].copy())


def _texts(ids: Ids, pa: Any) -> Any:
    """Return a text column over the packed bytes of these ids."""
    side_by_side = ids.compact()
    ends = np.zeros(len(ids) + 1, dtype=np.int32)
    np.cumsum(ids.lengths, out=ends[1:])
    column = pa.StringArray.from_buffers(
        len(ids), pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(side_by_side.data))
    )
    try:
        column.validate(full=True)
    except ValueError:
        id_texts(ids)  # raises the error for the id that is not UTF-8
        raise
    return column

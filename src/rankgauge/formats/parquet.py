"""Read and write three columns of Parquet and Arrow files."""

from __future__ import annotations

import importlib.util
import io
import itertools
import os
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import numpy as np

from rankgauge.core.ids import Ids
from rankgauge.core.libraries import library
from rankgauge.core.pair_table import PairTable
from rankgauge.core.progress import report
from rankgauge.errors import FormatError, InputError, MissingExtra
from rankgauge.formats.columns import Columns, Layout, columns_of, wrong_columns
from rankgauge.formats.compression import exploded, too_many
from rankgauge.formats.frames import from_columns, from_frame
from rankgauge.formats.lines import is_plain_file, read_bytes, start_of
from rankgauge.formats.rows import PairInput, id_texts

# Rows that are converted at a time; also the row group size in Parquet.
_ROWS = 1 << 20

_PARQUET, _FILE = b"PAR1", b"ARROW1"
# Arrow: bytes before the stream in a file, two message types, header size of a flatbuffer vtable.
_AHEAD, _DICTIONARY, _BATCH, _FIELDS = 8, 2, 3, 4
# Minimum memory per row: two id offsets and a number.
_ROW = 40
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


class _ColumnarFile:
    """A Parquet or Arrow file on disk, or its bytes in memory.

    Attributes:
        name: The name for messages.
        size: Its bytes.
        columns: The columns to read, once chosen.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.name = name
        self.columns: Columns | None = None
        self._path, self._content = "", b""
        path = getattr(stream, "name", None)
        start = start_of(stream) if is_plain_file(stream) and isinstance(path, str | bytes) else b""
        if path and start and os.path.isfile(path):  # noqa: PTH113 - it may be bytes
            self._path, self.size = os.fsdecode(path), os.path.getsize(path)  # noqa: PTH202
        else:
            start = self._content = read_bytes(stream, name)
            self.size = len(start)
        if not start:
            raise FormatError(
                "the file is empty (0 bytes)", path=name, fix="write it again; perhaps writing was interrupted"
            )
        self.is_parquet = start.startswith(_PARQUET)
        self._has_footer = start.startswith(_FILE)

    def source(self) -> Any:
        """Return its path, or a new stream of its bytes."""
        return self._path or io.BytesIO(self._content)

    def parquet(self, **options: Any) -> Any:
        """Open it as a Parquet file."""
        from pyarrow import parquet

        return parquet.ParquetFile(self.source(), **options)

    @contextmanager
    def arrow(self, **options: Any) -> Iterator[Any]:
        """Open it as an Arrow file or stream."""
        import pyarrow as pa

        opened = pa.ipc.open_file if self._has_footer else pa.ipc.open_stream
        with self._arrow_source() as source, opened(source, **options) as reader:
            yield reader

    def _arrow_source(self) -> Any:
        import pyarrow as pa

        return pa.OSFile(self._path) if self._path else pa.BufferReader(self._content)

    def polars(self, **options: Any) -> Any:
        """Read it with polars."""
        import polars as pl

        arrow = pl.read_ipc if self._has_footer else pl.read_ipc_stream
        return (pl.read_parquet if self.is_parquet else arrow)(self.source(), **options)

    def check_size(self, plain: int) -> None:
        """Refuse a file that declares far more bytes than it can contain."""
        if too_many(self.size, plain):
            raise exploded(self.name, (self.size, plain), "with pyarrow or polars", claimed=True)

    def check_buffers(self) -> None:
        """Refuse an Arrow file whose compressed buffers declare too many bytes.

        Each compressed buffer begins with its decompressed size in eight bytes. pyarrow allocates
        that much memory before checking that the data can fill it.
        """
        import pyarrow as pa

        total = 0
        with self._arrow_source() as source:
            source.seek(_AHEAD if self._has_footer else 0)  # a stream follows, then a footer
            # The reader reports an error of the stream.
            with suppress(pa.ArrowException, OSError, MemoryError, struct.error):
                for message in pa.ipc.MessageReader.open_stream(source):
                    body = memoryview(message.body) if message.body is not None else memoryview(b"")
                    for at in _packed_buffers(memoryview(message.metadata)):
                        total += max(0, *struct.unpack_from("<q", body, at))
        self.check_size(total)

    def choose(self, layout: Layout, names: Sequence[str], kinds: Sequence[Any]) -> list[str]:
        """Choose the columns to read among these names, check their types, and return their names."""
        columns = columns_of(names, layout)
        if columns is None:
            what, fix = wrong_columns(names, layout)
            raise FormatError(what, path=self.name, fix=fix)
        for column in columns.read:
            if names.count(column) > 1:
                raise FormatError(
                    f"two columns are named {column!r}", path=self.name, fix="give each column a unique name"
                )
            kind = str(kinds[names.index(column)])
            inner = kind.removeprefix("dictionary<values=")
            if not inner.startswith(_PLAIN):
                raise FormatError(
                    f"column {column!r} has type {kind[:_SAID]}, expected one plain value in each row",
                    path=self.name,
                    fix=_FLAT if inner.startswith(_NESTED) else _CAST,
                )
        self.columns = columns
        return list(columns.read)


@contextmanager
def _reading(name: str, how: str, fix: str = _AGAIN) -> Iterator[Any]:
    """Yield pyarrow, and replace its errors by one that names the file."""
    pa = library("pyarrow", extra="arrow", of=f"reading {name} {how}")
    try:
        yield pa
    except InputError:
        raise
    except (pa.ArrowException, OSError, MemoryError, OverflowError, ValueError) as error:
        raise _broken(name, error, fix) from None


def read_columnar(stream: BinaryIO, origin: PairInput, *, part: bool = False) -> PairTable:
    """Read a Parquet file, an Arrow file (Feather), or an Arrow stream."""
    file = _ColumnarFile(stream, origin.name)
    if importlib.util.find_spec("pyarrow") is None:
        frame = _by_polars(file, origin.layout)
    else:
        with _reading(origin.name, "") as pa:
            if file.is_parquet:
                names, metadata = _parquet_columns(file, origin.layout)
                file.check_size(_plain_size(metadata))
                # With dictionary encoding, a repeated id is stored once. (Metadata of single columns
                # is not read: pyarrow would abort on a broken file.) Files with few bytes per row
                # repeat document ids, or claim rows that they do not have.
                repeated = names[:2] if file.size < 3 * metadata.num_rows else names[:1]
                with file.parquet(metadata=metadata, read_dictionary=repeated) as opened:
                    table = opened.read(columns=names)
                # Text may not be UTF-8.
                table.validate(full=True)
            else:
                with _chosen_arrow(file, origin.layout) as reader:
                    batches = list(_record_batches(file, reader))
                    table = pa.Table.from_batches(batches, schema=None if batches else reader.schema)
            # Each chunk has a fixed cost.
            frame = table.combine_chunks() if table.column(0).num_chunks << 14 > table.num_rows else table
    # Columns were chosen among all names, but only these were read.
    pairs = from_frame(frame, origin, columns=file.columns)
    if not len(pairs) and not part:
        raise no_rows(origin)
    return pairs


def columnar_tables(stream: BinaryIO, name: str, rows: int) -> Iterator[Any]:
    """Yield Arrow tables with all columns of a file, of at most `rows` rows each in Parquet.

    Text may not be UTF-8.
    """
    file = _ColumnarFile(stream, name)
    with _reading(name, "", "write the file again with pandas or polars") as pa:
        if file.is_parquet:
            yield from (pa.Table.from_batches([batch]) for batch in file.parquet().iter_batches(rows))
        else:
            with file.arrow() as reader:
                yield reader.read_all()


def read_rows(stream: BinaryIO, name: str) -> list[dict[str, Any]]:
    """Read all columns, including nested ones, as one mapping per row."""
    file = _ColumnarFile(stream, name)
    with _reading(name, "as records"):
        if file.is_parquet:
            with file.parquet() as opened:
                file.check_size(_plain_size(opened.metadata))
                table = opened.read()
        else:
            file.check_buffers()
            with file.arrow() as reader:
                table = reader.read_all()
        table.validate(full=True)
        rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def columnar_pieces(stream: BinaryIO, origin: PairInput, rows: int, *, part: bool = False) -> Iterator[PairTable]:
    """Yield tables of `rows` consecutive rows of a columnar file."""
    file = _ColumnarFile(stream, origin.name)
    before = 0
    with _reading(origin.name, "in pieces"):
        for batch in (_parquet_batches if file.is_parquet else _arrow_batches)(file, origin.layout, rows):
            assert file.columns is not None  # noqa: S101 - set by the batch reader
            queries, docs, values = map(batch.column, file.columns.read)
            if file.is_parquet:
                queries.validate(full=True)  # Declared indices may be wrong; text is checked later.
            yield from_columns(queries, docs, values, origin, columns=file.columns, before=before)
            before += batch.num_rows
    if not before and not part:
        raise no_rows(origin)


def no_rows(origin: PairInput) -> FormatError:
    """Return the error for a file or folder without rows."""
    return FormatError("there are no rows", path=origin.name, fix=f"use rows of {', '.join(origin.layout.columns)}")


def column_names(stream: BinaryIO, name: str) -> tuple[str, ...]:
    """Return the names of all columns of a columnar file."""
    file = _ColumnarFile(stream, name)
    with _reading(name, "to detect its contents"), file.parquet() if file.is_parquet else file.arrow() as opened:
        return tuple((opened.schema_arrow if file.is_parquet else opened.schema).names)


def _broken(name: str, error: BaseException, fix: str = _AGAIN) -> FormatError:
    """Return the error for a file that the library cannot read."""
    message = str(error).strip().partition("\n")[0][:_SAID] or type(error).__name__
    return FormatError(f"the file cannot be read: {message}", path=name, fix=fix)


def _plain_size(metadata: Any) -> int:
    """Return the declared decompressed size of all columns of a Parquet file."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return sum(group.total_byte_size for group in groups)


def _parquet_columns(file: _ColumnarFile, layout: Layout) -> tuple[list[str], Any]:
    """Return the columns to read of a Parquet file, and its metadata."""
    with file.parquet() as opened:
        schema, metadata = opened.schema_arrow, opened.metadata
    names = file.choose(layout, schema.names, schema.types)
    file.check_size(_ROW * metadata.num_rows)
    return names, metadata


def _parquet_batches(file: _ColumnarFile, layout: Layout, rows: int) -> Iterator[Any]:
    names, metadata = _parquet_columns(file, layout)
    # Without a buffer, the column of a whole row group is read at once, however large it is.
    options = {"read_dictionary": names[:1], "pre_buffer": False, "buffer_size": 1 << 20}
    with file.parquet(metadata=metadata, **options) as opened:
        before = 0
        for batch in opened.iter_batches(rows, columns=names, use_threads=False):
            before += batch.num_rows
            report(before, metadata.num_rows, "read")
            if batch.num_rows:
                yield batch


def _arrow_batches(file: _ColumnarFile, layout: Layout, rows: int) -> Iterator[Any]:
    with _chosen_arrow(file, layout) as reader:
        for batch in _record_batches(file, reader):
            for first in range(0, batch.num_rows, rows):
                yield batch.slice(first, rows)


@contextmanager
def _chosen_arrow(file: _ColumnarFile, layout: Layout) -> Iterator[Any]:
    """Open an Arrow file or stream, restricted to the columns to read."""
    import pyarrow as pa

    file.check_buffers()
    with file.arrow() as reader:
        schema = reader.schema
    chosen = map(schema.names.index, file.choose(layout, schema.names, schema.types))
    with file.arrow(options=pa.ipc.IpcReadOptions(included_fields=list(chosen))) as reader:
        yield reader


def _record_batches(file: _ColumnarFile, reader: Any) -> Iterator[Any]:
    taken = 0
    count = getattr(reader, "num_record_batches", None)
    for batch in reader if count is None else map(reader.get_batch, range(count)):
        taken += batch.num_rows
        file.check_size(_ROW * taken)
        # Declared lengths and offsets may be wrong: trusting them could crash.
        batch.validate(full=True)
        file.check_size(batch.nbytes)
        yield batch


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


def _by_polars(file: _ColumnarFile, layout: Layout) -> Any:
    if importlib.util.find_spec("polars") is None:
        raise MissingExtra(
            "reading a columnar file needs pyarrow or polars, and neither is installed",
            where=file.name,
            fix="pip install 'rankgauge[arrow]'",
        )
    import polars as pl

    try:
        schema = file.polars(n_rows=0).schema
        # The Arrow names of the types, where the difference matters.
        kinds = [re.sub("^(categorical|enum).*", "string", str(kind).lower()) for kind in schema.values()]
        names = file.choose(layout, list(schema), kinds)
        if file.is_parquet:
            file.check_size(_ROW * pl.scan_parquet(file.source()).select(pl.len()).collect().item())
        return file.polars(columns=names)
    except FormatError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, MemoryError, ValueError) as error:
        raise _broken(file.name, error) from None


def write_columns(tables: Iterable[PairTable], layout: Layout, form: str, stream: BinaryIO) -> None:
    """Write three columns: query and document as text, the number as 64-bit float."""
    pa = library("pyarrow", extra="arrow", of=f"writing {'Parquet' if form == 'parquet' else 'Arrow'}")
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

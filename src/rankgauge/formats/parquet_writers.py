"""Judgments and runs as columns of Parquet and Arrow files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from rankgauge.core.ids import Ids, show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import InputError, MissingExtra
from rankgauge.formats.layout import Layout

__all__ = ["write_columns"]

# Rows that are turned into columns at a time; a group of rows in Parquet.
_ROWS = 1 << 20


def write_columns(table: PairTable, layout: Layout, form: str, stream: BinaryIO) -> None:
    """Write three columns: query and document as text, the number as 64-bit float.

    Args:
        table: What to write.
        layout: Judgments or run: it names the columns.
        form: ``parquet`` or ``arrow`` (a file of Arrow IPC, which is Feather).
        stream: Where to.

    Raises:
        InputError: If an id is not UTF-8.
        MissingExtra: If pyarrow is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra(
            f"writing {'Parquet' if form == 'parquet' else 'Arrow'} needs the library pyarrow",
            fix='pip install "rankgauge[arrow]", or write another format',
        ) from None

    kinds = (pa.string(), pa.string(), pa.float64())
    schema = pa.schema(list(zip(layout.columns, kinds, strict=True)))
    batches = (pa.record_batch(list(columns), schema=schema) for columns in _columns(table, pa))
    if form == "arrow":
        with pa.ipc.new_file(stream, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return
    import pyarrow.parquet as pq

    with pq.ParquetWriter(stream, schema, compression="snappy") as writer:
        for batch in batches:
            writer.write_batch(batch, row_group_size=_ROWS)


def _columns(table: PairTable, pa: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Query, document and number of so many rows at a time."""
    names = _texts(table.queries, pa)
    numbers = table.query_numbers()
    for start in range(0, len(table), _ROWS):
        here = slice(start, start + _ROWS)
        queries = names.take(pa.array(numbers[here]))
        yield queries, _texts(table.docs.take(here), pa), pa.array(table.values[here])


def _texts(ids: Ids, pa: Any) -> Any:
    """A column of text over the bytes of these ids, side by side."""
    side_by_side = ids.compact()
    ends = np.zeros(len(ids) + 1, dtype=np.int32)
    np.cumsum(ids.lengths, out=ends[1:])
    column = pa.StringArray.from_buffers(
        len(ids), pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(side_by_side.data))
    )
    try:
        column.validate(full=True)
    except ValueError:
        first = next(value for value in ids.tolist() if not _is_text(value))
        raise InputError(
            f"id '{show_id(first)}' is not UTF-8, so it cannot be written as text "
            f"({ids.not_text()} ids are not)",
            fix="write TREC format, which keeps the bytes",
        ) from None
    return column


def _is_text(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True

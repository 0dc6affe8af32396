"""Read columns in memory: lists, NumPy arrays, and data frames supported by narwhals.

Ids are read directly from column buffers, without a Python object per row: NumPy arrays and columns
of pandas, polars, and pyarrow store values contiguously; their text has the same layout as
:class:`Ids`: packed bytes. Only valid ids are read so. If a value is missing, empty, or otherwise
invalid, the plain reader reads the whole column, checks each value, and reports the row.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Blame, IdRuns, Ids, IntArray
from rankgauge.core.pair_table import PairTable
from rankgauge.errors import InputError, MissingExtra
from rankgauge.formats.columns import (
    Columns,
    columns_of,
    is_missing,
    numbers_of,
    whole_numbers_of,
    wrong_columns,
)
from rankgauge.formats.rows import PairInput, table_of

_SHOWN = 60
_FLOATS = ("float", "double", "halffloat")
_NUMERIC = (*_FLOATS, "int", "uint", "bool")


_Bytes = npt.NDArray[np.uint8]
_SPARE = 8
# Rows per piece: intermediate arrays fit into the CPU cache.
_PIECE = 1 << 14
# Minimum number of rows for which importing pyarrow pays off.
_IMPORT = 1 << 20
# In columns with at least `_MANY` rows, each run of equal values is read once if runs have `_RARE`
# rows on average; the first `_LOOKED_AT` rows decide whether to try.
_MANY = 1 << 17
_LOOKED_AT = 1 << 10
_RARE = 4
_ASCII = 128
_WHOLE = ("int", "uint")
_OFFSETS: dict[str, Any] = {"string": np.int32, "binary": np.int32, "large_string": np.int64, "large_binary": np.int64}
_LARGE = {kind + end: f"large_{kind}" for kind in ("string", "binary") for end in ("", "_view")}
_POLARS_PLAIN = ("String", "Utf8", "Binary")
_POLARS_TEXT = (*_POLARS_PLAIN, "Categorical", "Enum")
# Four decimal digits at a time, as ASCII.
_DIGITS = 4
_POWERS = 10 ** np.arange(20, dtype=np.uint64)


def from_columns(
    queries: Any,
    docs: Any,
    values: Any,
    origin: PairInput,
    *,
    columns: Columns | None = None,
    before: int = 0,
) -> PairTable:
    """Build a table from three columns of equal length: lists, arrays, or data frame series."""
    layout, source, on_error, _ = origin
    names = columns or Columns(*layout.columns)
    blame = blame_row(source, before=before)
    # NumPy would replace a null of polars or pyarrow by NaN.
    column = values.to_native() if hasattr(values, "to_native") else values
    nulls = getattr(column, "null_count", 0)
    if on_error is None and (nulls() if callable(nulls) else nulls):
        row = listed(column.is_null()).index(True)
        raise blame(row, f"the {layout.value} is missing: column {names.value!r} is null", layout.fix)
    query_ids = _ids(queries, names.query, source)
    doc_ids = _ids(docs, names.doc, source)
    numbers = _column(values, names.value, source)
    if not len(query_ids) == len(doc_ids) == len(numbers):
        raise InputError(
            f"the columns have {len(query_ids)}, {len(doc_ids)}, and {len(numbers)} rows",
            where=source,
            fix=f"pass a query, a document, and a {layout.value} for each row",
        )
    if isinstance(numbers, np.ndarray) and numbers.dtype.kind in "iu":
        numbers = whole_numbers_of(numbers, layout, blame)
    elif isinstance(numbers, np.ndarray) and numbers.dtype.kind in "fb":
        with np.errstate(over="ignore"):  # overflow gives infinity, which is refused
            numbers = numbers.astype(np.float64)
    else:
        rows = listed(numbers)
        rows = rows if on_error is None else [math.nan if is_missing(value) else value for value in rows]
        numbers = numbers_of(rows, layout, blame)
    if isinstance(doc_ids, IdRuns):
        doc_ids = doc_ids.spread()
    return table_of(
        query_ids if isinstance(query_ids, Ids | IdRuns) else Ids.of(query_ids, "query id", blame),
        doc_ids if isinstance(doc_ids, Ids) else Ids.of(doc_ids, "document id", blame),
        numbers,
        origin,
        columns=names,
    )


def blame_row(source: str, unit: str = "row", *, before: int = 0) -> Blame:
    """Return a factory of errors with row numbers, counted after `before` earlier rows."""
    return lambda row, what, fix: InputError(what, where=f"{source}, {unit} {before + row + 1}", fix=fix)


def _ids(values: Any, name: str, source: str) -> Ids | IdRuns | npt.NDArray[Any] | list[Any]:
    """Return a column of ids: packed if possible, otherwise values to be checked one by one."""
    ids = packed_runs(values)
    return _column(values, name, source) if ids is None else ids


def _column(values: Any, name: str, source: str) -> npt.NDArray[Any] | list[Any]:
    """Return a column as an array if it is numeric without missing values, otherwise as a list."""
    if isinstance(values, str | bytes | Mapping | AbstractSet) or not isinstance(values, Iterable):
        raise InputError(
            f"column {name!r} is {short(values)}, expected a list or an array",
            where=source,
            fix="pass one value for each row: [...]",
        )
    if not isinstance(values, np.ndarray):
        kind = str(getattr(values, "dtype", getattr(values, "type", ""))).lower()
        if kind.startswith(_NUMERIC) and hasattr(values, "to_numpy"):
            # `to_numpy` of an unchunked pyarrow array refuses conversions that need a copy.
            array = np.asarray(values) if hasattr(values, "buffers") else values.to_numpy()
            # Integers with missing values are converted to floats.
            if array.dtype.kind == "f" if kind.startswith(_FLOATS) else array.dtype.kind in "iub":
                return np.asarray(array)
        return listed(values)
    if values.ndim != 1:
        raise InputError(
            f"column {name!r} is an array of shape {values.shape}, expected one dimension",
            where=source,
            fix="pass one column: array[:, 0]",
        )
    # Only the list conversion respects masks. Importing numpy.ma would take time.
    masked = "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray)
    return values.tolist() if masked else values


def is_frame(data: object) -> bool:
    """Return whether this is a data frame, eager or lazy, that narwhals supports."""
    if isinstance(data, Mapping | Sequence | AbstractSet | np.ndarray):
        return False
    if type(data).__module__ == "builtins":
        return False
    import narwhals as nw

    try:
        nw.from_native(data)  # type: ignore[call-overload]
    except TypeError:
        return hasattr(data, "__arrow_c_stream__") and hasattr(data, "schema")
    except nw.exceptions.NarwhalsError:
        return True  # it is one; the reader reports the error
    return True


def from_frame(data: Any, origin: PairInput, *, columns: Columns | None = None) -> PairTable:
    """Read a data frame."""
    chosen = columns

    def choose(names: list[Any]) -> list[Any]:
        nonlocal chosen
        chosen = columns or columns_of(names, origin.layout)
        if chosen is None:
            what, fix = wrong_columns(names, origin.layout)
            raise InputError(what, where=origin.name, fix=fix)
        return list(chosen.read)

    queries, docs, values = frame_columns(data, origin.name, choose).values()
    return from_columns(queries, docs, values, origin, columns=chosen)


def frame_columns(data: Any, source: str, choose: Callable[[list[Any]], list[Any]] = list) -> dict[Any, Any]:
    """Return the columns of a data frame by name, as narwhals series."""
    import narwhals as nw

    try:
        frame: Any = nw.from_native(data, pass_through=True)
        # Other Arrow data, such as a record batch.
        if frame is data:
            frame = nw.DataFrame.from_arrow(data, backend="pyarrow")
        chosen = choose(frame.collect_schema().names())
        if isinstance(frame, nw.LazyFrame):
            frame = frame.select(chosen).collect()
    except nw.exceptions.DuplicateError:
        raise InputError("two columns have the same name", where=source, fix="give each column a unique name") from None
    except ImportError as error:
        raise MissingExtra(f"{error.name} is needed to read this data frame", fix=f"pip install {error.name}") from None
    return {name: frame[name] for name in chosen}


def is_null(value: object) -> bool:
    """Return whether a cell has no value: None, or the NaN of data frames."""
    return value is None or (isinstance(value, float) and value != value)  # noqa: PLR0124 - NaN


def listed(values: Any) -> list[Any]:
    """Return a list of plain Python values."""
    if isinstance(values, list):
        return values if type(values) is list else list(iter(values))
    for name in ("to_pylist", "tolist", "to_list"):
        if hasattr(values, name) and getattr(values, "ndim", True):
            plain: list[Any] = getattr(values, name)()
            return plain
    return list(values)


def short(value: object) -> str:
    """Format a value for a message: on one line; tables by type only."""
    try:
        text = repr(value)
    except RecursionError:  # nested as deeply as JSON may be
        return type(value).__name__
    if "\n" in text:
        return type(value).__name__
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def packed(column: Any) -> Ids | None:
    """Return the ids of a column of text, bytes, or integers, read from its buffers.

    Example:
        >>> import numpy as np
        >>> packed(np.array([7, 42])).tolist()
        [b'7', b'42']
        >>> packed(np.array([0.5])) is None
        True
    """
    ids = packed_runs(column)
    return ids.spread() if isinstance(ids, IdRuns) else ids


def packed_runs(column: Any) -> Ids | IdRuns | None:
    """Like :func:`packed`, but return runs where most rows have the id of the previous row."""
    library = _library(column)
    if library == "narwhals" and hasattr(column, "to_native"):
        column = column.to_native()
        library = _library(column)
    if library == "pyarrow" and hasattr(column, "type") and hasattr(column, "null_count"):
        return _of_arrow(column)
    # Other array types may have masks or strip blanks.
    if type(column) in {np.ndarray, np.memmap}:
        return _of_array(column)
    if library not in {"pandas", "polars"} or not hasattr(column, "dtype"):
        return None
    kind = str(column.dtype)
    if kind.lower().startswith(_WHOLE):
        # Missing values and intervals do not give an integer array.
        return _of_array(np.asarray(column.to_numpy()))
    return _of_pandas(column, kind) if library == "pandas" else _of_polars(column, kind)


def _library(column: Any) -> str:
    return type(column).__module__.partition(".")[0]


def _of_pandas(column: Any, kind: str) -> Ids | IdRuns | None:
    """Read a pandas series, index, or array: categories by code, text if stored in Arrow."""
    if kind == "category":
        coded = getattr(column, "cat", column)
        return _by_code(coded.categories, np.asarray(coded.codes))
    arrow = getattr(column.dtype, "storage", "").startswith("pyarrow")
    if arrow or hasattr(column.dtype, "pyarrow_dtype"):
        return _of_arrow(getattr(column, "array", column).__arrow_array__())
    return None


def _of_polars(column: Any, kind: str) -> Ids | IdRuns | None:
    """Read text of polars; pyarrow is optional but faster."""
    if column.null_count() or not kind.startswith(_POLARS_TEXT):
        return None
    if kind in _POLARS_PLAIN:
        heads = _heads(column, lambda some: (some[1:] != some[:-1]).arg_true().to_numpy())
        if heads is not None:
            return _runs(_of_polars(column.gather(heads), kind), heads, len(column))
    if "pyarrow" in sys.modules or len(column) > _IMPORT:
        try:
            return _of_arrow(column.to_arrow())
        except ImportError:
            pass
    if kind == "Binary":
        return None
    text = column.cast(str).str
    data = np.frombuffer(text.join("").item().encode() + bytes(_SPARE), dtype=np.uint8)
    lengths = text.len_bytes().to_numpy().astype(np.int64)
    return _sound(data, np.cumsum(lengths) - lengths, lengths)


def _by_code(entries: Any, codes: npt.NDArray[Any]) -> Ids | IdRuns | None:
    """Return the ids of a dictionary-encoded column."""
    if not len(codes) or int(codes.min()) < 0:
        return None
    ids = packed(entries)
    if ids is None:
        try:
            ids = Ids.of(entries.tolist())
        except InputError:
            return None
    heads = _heads(codes, lambda some: np.flatnonzero(some[1:] != some[:-1]))
    if heads is None:
        return IdRuns(ids, np.broadcast_to(np.int64(1), len(codes)), codes)
    return _runs(ids.take(codes[heads]), heads, len(codes))


def _of_arrow(column: Any) -> Ids | IdRuns | None:
    """Read a pyarrow array or chunked array."""
    if column.null_count or not len(column):
        return None
    heads = _heads(column, _changes_of_arrow) if str(column.type) in _OFFSETS else None
    if heads is not None:
        return _runs(_of_arrow(column.take(heads)), heads, len(column))
    if hasattr(column, "chunks"):
        try:
            column = column.combine_chunks()
        except ValueError:
            # All chunks together have too much text for 32 bits, or too many entries for the type of the codes.
            kind = str(getattr(column.type, "value_type", column.type))
            column = column.cast(_LARGE.get(kind, kind)).combine_chunks()
    kind = str(column.type)
    if kind.startswith("dictionary<"):
        return _by_code(column.dictionary, column.indices.to_numpy())
    if kind.startswith(_WHOLE):
        return _of_array(column.to_numpy())
    if kind.endswith("_view"):
        # Not every pyarrow with view types can cast them.
        with suppress(NotImplementedError):
            column, kind = column.cast(_LARGE[kind]), _LARGE[kind]
    return _of_text(column, _OFFSETS[kind]) if kind in _OFFSETS else None


def _changes_of_arrow(chunk: Any) -> IntArray:
    import pyarrow.compute as pc

    return np.flatnonzero(pc.not_equal(chunk[1:], chunk[:-1]).to_numpy(zero_copy_only=False))


def _heads(column: Any, changes: Callable[[Any], IntArray]) -> IntArray | None:
    """Return the first row of each run of equal values; None if runs are too short to pay off."""
    if len(column) < _MANY or _RARE * len(changes(column[:_LOOKED_AT])) > _LOOKED_AT:
        return None
    heads = np.append(0, changes(column).astype(np.int64) + 1)
    return heads if _RARE * len(heads) <= len(column) else None


def _runs(ids: Ids | IdRuns | None, heads: IntArray, count: int) -> IdRuns | None:
    """Return runs of ids: from each row in `heads` to the next one."""
    if ids is None:
        return None
    return IdRuns(ids if isinstance(ids, Ids) else ids.spread(), np.diff(np.append(heads, count)))


def _of_text(chunk: Any, offset: Any) -> Ids | None:
    """Read Arrow text or bytes without a copy (read-only) if the buffer is large enough."""
    _, bounds, content = chunk.buffers()
    if content is None:
        return None
    size = np.dtype(offset).itemsize
    ends = np.frombuffer(bounds, dtype=offset, count=len(chunk) + 1, offset=size * chunk.offset)
    first, last = int(ends[0]), int(ends[-1])
    data = np.frombuffer(content, dtype=np.uint8)[first : last + _SPARE]
    if len(data) < last - first + _SPARE:
        data = _spared(data[: last - first])
    if "string" in str(chunk.type) and int(data.max()) >= _ASCII:
        try:
            chunk.validate(full=True)
        except ValueError:
            return None  # text that is not UTF-8
    starts = ends[:-1].astype(np.int64, copy=False)
    lengths = np.subtract(ends[1:], ends[:-1], dtype=np.int64)
    return _sound(data, starts - first if first else starts, lengths)


def _spared(data: _Bytes) -> _Bytes:
    """Return a copy with the spare bytes that :class:`Ids` requires at the end."""
    copy = np.zeros(len(data) + _SPARE, dtype=np.uint8)
    copy[:-_SPARE] = data
    return copy


def _sound(data: _Bytes, starts: IntArray, lengths: IntArray) -> Ids | None:
    """Return the ids if all are valid: none is empty or contains a NUL."""
    sound = len(lengths) and int(lengths.min()) > 0 and data[:-_SPARE].all()
    return Ids(data, starts, lengths) if sound else None


def _of_array(values: npt.NDArray[Any]) -> Ids | IdRuns | None:
    """Read a NumPy array of integers or contiguous text."""
    if values.ndim != 1 or not values.size or not values.dtype.itemsize:
        return None
    if values.dtype.kind in "iu":
        # Convert each run of equal values once.
        heads = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
        many = _RARE * len(heads) > len(values)
        return _written(values) if many else _runs(_written(values[heads]), heads, len(values))
    if values.dtype.kind == "U":
        points = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("=")).view(np.uint32)
        if int(points.max()) >= _ASCII:
            return None
        values = points.astype(np.uint8).view(f"S{len(points) // len(values)}")
    if values.dtype.kind != "S":
        return None
    # Cells of fixed width, padded with NULs.
    lengths = getattr(np, "strings", np.char).str_len(values).astype(np.int64)
    data = _spared(np.ascontiguousarray(values).view(np.uint8))
    # All bytes except padding must be nonzero; otherwise an id contains a NUL.
    filled = int(np.count_nonzero(data != 0))
    if not int(lengths.min()) or filled != int(lengths.sum()):
        return None
    return Ids(data, np.arange(len(values)) * values.dtype.itemsize, lengths)


@cache
def _decimal_texts() -> npt.NDArray[np.uint32]:
    """Return the text of each number of four decimal digits, as one word."""
    return np.array([b"%04d" % number for number in range(10**_DIGITS)]).view(np.uint32)


def _written(numbers: npt.NDArray[Any]) -> Ids:
    """Write decimal digits right-aligned in fixed-width cells."""
    lowest, highest = int(numbers.min()), int(numbers.max())
    digits = len(str(max(highest, -lowest)))
    words = -(-(digits + (lowest < 0)) // _DIGITS)
    cells = np.zeros((len(numbers) + _SPARE // _DIGITS, words), dtype=np.uint32)
    lengths = np.ones(len(numbers), dtype=np.int64)
    for start in range(0, len(numbers), _PIECE):
        piece = numbers[start : start + _PIECE]
        # As unsigned integers, the negation of the lowest number is representable.
        left = piece.astype(np.uint64)
        if lowest < 0:
            np.negative(left, out=left, where=piece < 0)
        if digits < 10:
            left = left.astype(np.uint32)
        for power in _POWERS[1:digits].astype(left.dtype):
            lengths[start : start + _PIECE] += left >= power
        for word in reversed(range(words)):
            rest = left // 10**_DIGITS
            cells[start : start + len(piece), word] = _decimal_texts()[left - rest * 10**_DIGITS]
            left = rest
    width = words * _DIGITS
    data = cells.view(np.uint8).reshape(-1)
    starts = np.arange(1, len(numbers) + 1) * width - lengths
    if lowest < 0:
        negative = np.flatnonzero(numbers < 0)
        starts[negative] -= 1
        lengths[negative] += 1
        data[starts[negative]] = ord("-")
    return Ids(data, starts, lengths)

"""Read columns in memory: lists, NumPy arrays, and data frames supported by narwhals."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Blame, IdRuns, Ids
from rankgauge.core.pair_table import FloatArray, PairTable
from rankgauge.errors import InputError, MissingExtra
from rankgauge.formats.columns import Columns, Layout, columns_of, wrong_columns
from rankgauge.formats.numbers import is_missing, numbers_of, whole_numbers_of
from rankgauge.formats.rows import OnError, table_of

_SHOWN = 60
_FLOATS = ("float", "double", "halffloat")
_NUMERIC = (*_FLOATS, "int", "uint", "bool")


def from_columns(
    queries: Any,
    docs: Any,
    values: Any,
    layout: Layout,
    *,
    columns: Columns | None = None,
    source: str = "",
    on_error: OnError | None = None,
    before: int = 0,
) -> PairTable:
    """Build a table from three columns of equal length: lists, arrays, or data frame series."""
    names, source = columns or Columns(*layout.columns), source or layout.name
    blame = blame_row(source, before=before)
    if on_error is None:
        _refuse_null(values, names.value, layout, blame)
    query_ids = _ids(queries, names.query, source)
    doc_ids = _ids(docs, names.doc, source)
    numbers = _column(values, names.value, source)
    if not len(query_ids) == len(doc_ids) == len(numbers):
        raise InputError(
            f"the columns have {len(query_ids)}, {len(doc_ids)}, and {len(numbers)} rows",
            where=source,
            fix=f"pass a query, a document, and a {layout.value} for each row",
        )
    return table_of(
        query_ids if isinstance(query_ids, Ids | IdRuns) else Ids.of(query_ids, "query id", blame),
        doc_ids
        if isinstance(doc_ids, Ids)
        else doc_ids.spread()
        if isinstance(doc_ids, IdRuns)
        else Ids.of(doc_ids, "document id", blame),
        _numbers(numbers, layout, blame, lenient=on_error is not None),
        layout,
        source=source,
        columns=names,
        on_error=on_error,
    )


def blame_row(source: str, unit: str = "row", *, before: int = 0) -> Blame:
    """Return a factory of errors with row numbers, counted after `before` earlier rows."""
    return lambda row, what, fix: InputError(what, where=f"{source}, {unit} {before + row + 1}", fix=fix)


def _ids(values: Any, name: str, source: str) -> Ids | IdRuns | npt.NDArray[Any] | list[Any]:
    """Return a column of ids: packed if possible, otherwise values to be checked one by one."""
    from rankgauge.formats.arrow import packed_runs

    ids = packed_runs(values)
    return _column(values, name, source) if ids is None else ids


def _refuse_null(values: Any, name: str, layout: Layout, blame: Blame) -> None:
    """Refuse a null in a column of polars or pyarrow; NumPy would replace it by NaN."""
    column = values.to_native() if hasattr(values, "to_native") else values
    nulls = getattr(column, "null_count", 0)
    if nulls() if callable(nulls) else nulls:
        row = listed(column.is_null()).index(True)
        raise blame(row, f"the {layout.value} is missing: column {name!r} is null", layout.fix)


def _column(values: Any, name: str, source: str) -> npt.NDArray[Any] | list[Any]:
    """Return a column as a NumPy array or a list of plain values."""
    if isinstance(values, str | bytes | Mapping | AbstractSet) or not isinstance(values, Iterable):
        raise InputError(
            f"column {name!r} is {short(values)}, expected a list or an array",
            where=source,
            fix="pass one value for each row: [...]",
        )
    if not isinstance(values, np.ndarray):
        return _series(values)
    if values.ndim != 1:
        raise InputError(
            f"column {name!r} is an array of shape {values.shape}, expected one dimension",
            where=source,
            fix="pass one column: array[:, 0]",
        )
    # Only the list conversion respects masks. Importing numpy.ma would take time.
    masked = "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray)
    return values.tolist() if masked else values


def _series(values: Any) -> npt.NDArray[Any] | list[Any]:
    """Return a series as an array if it is numeric without missing values, otherwise as a list."""
    kind = str(getattr(values, "dtype", getattr(values, "type", ""))).lower()
    if kind.startswith(_NUMERIC) and hasattr(values, "to_numpy"):
        # `to_numpy` of an unchunked pyarrow array refuses conversions that need a copy.
        array = np.asarray(values) if hasattr(values, "buffers") else values.to_numpy()
        # Integers with missing values are converted to floats.
        if array.dtype.kind == "f" if kind.startswith(_FLOATS) else array.dtype.kind in "iub":
            return np.asarray(array)
    return listed(values)


def _numbers(values: npt.NDArray[Any] | list[Any], layout: Layout, blame: Blame, *, lenient: bool) -> FloatArray:
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return whole_numbers_of(values, layout, blame)
    if isinstance(values, np.ndarray) and values.dtype.kind in "fb":
        with np.errstate(over="ignore"):  # overflow gives infinity, which is refused
            return values.astype(np.float64)
    rows = listed(values)
    if lenient:
        rows = [math.nan if is_missing(value) else value for value in rows]
    return numbers_of(rows, layout, blame)


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


def from_frame(
    data: Any,
    layout: Layout,
    source: str = "",
    *,
    columns: Columns | None = None,
    on_error: OnError | None = None,
    before: int = 0,
) -> PairTable:
    """Read a data frame; `before` is the number of earlier rows, for messages."""
    source = source or layout.name
    chosen = columns

    def choose(names: list[Any]) -> list[Any]:
        nonlocal chosen
        chosen = columns or columns_of(names, layout)
        if chosen is None:
            what, fix = wrong_columns(names, layout)
            raise InputError(what, where=source, fix=fix)
        return list(chosen.read)

    queries, docs, values = frame_columns(data, source, choose).values()
    return from_columns(queries, docs, values, layout, columns=chosen, source=source, on_error=on_error, before=before)


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

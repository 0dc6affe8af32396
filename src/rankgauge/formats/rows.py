"""Collect rows of query, document, and number from a reader and build a table.

By default, readers raise an error for the first invalid row. With `on_error`, they report and skip
every invalid row, so that a check finds all faults of a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rankgauge.core import native
from rankgauge.core.ids import Blame, IdRuns, Ids, IntArray, show_id
from rankgauge.core.pair_table import FloatArray, PairTable
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.columns import (
    RUN,
    Columns,
    Layout,
    finite_numbers,
    is_missing,
    not_finite_text,
    numbers_of,
    read_number,
)
from rankgauge.formats.lines import shorten

# Rows written at a time: their Python objects take far more memory than the text.
AT_ONCE = 1 << 16


class RowFault(NamedTuple):
    """A row that was skipped."""

    error: InputError  # error that an evaluation raises for the row
    line: int = 0  # line number; 0 if unknown
    query: str = ""  # query id, if known
    document: str = ""  # document id, if known
    # Whether the only fault is a missing or non-finite score or grade.
    not_finite: bool = False


OnError: TypeAlias = Callable[[RowFault], None]


class PairInput(NamedTuple):
    """An input of judgments or of a run."""

    layout: Layout
    name: str  # name for messages
    on_error: OnError | None = None  # reports invalid rows, which are then skipped
    ranks: bool = False  # whether ranks next to scores are read


class Rows:
    """Rows of a file, added one at a time."""

    def __init__(self, origin: PairInput, *, most: int | None = None) -> None:
        self.origin = origin
        self.layout, self.name, self.on_error, _ = origin
        self._most, self._begun = most, False
        self.with_ranks = origin.ranks and self.layout is RUN
        self.lines: list[int] = []
        self.queries: list[Any] = []
        self.docs: list[Any] = []
        self.values: list[Any] = []
        self.ranks: list[float] = []

    def add(self, line: int, query: Any, doc: Any, value: Any) -> None:
        """Add a row."""
        self.lines.append(line)
        self.queries.append(query)
        self.docs.append(doc)
        self.values.append(value)

    @property
    def full(self) -> bool:
        """Whether the rows form a complete piece of a file that is read in pieces."""
        return self._most is not None and len(self.lines) >= self._most

    @property
    def ended(self) -> bool:
        """Whether pieces were yielded and no rows remain."""
        return self._begun and not self.lines

    def clear(self) -> None:
        """Remove all rows after they were yielded as a piece."""
        self._begun = True
        for column in (self.lines, self.queries, self.docs, self.values, self.ranks):
            column.clear()

    def refuse(
        self,
        line: int,
        what: str,
        fix: str,
        *,
        column: int = 0,
        text: bytes = b"",
        ids: tuple[Any, Any] = ("", ""),
        not_finite: bool = False,
    ) -> None:
        """Raise an error for a row, or report it to `on_error`."""
        error = FormatError(what, path=self.name, line=line, column=column, text=shorten(text), fix=fix)
        self.report(error, ids, not_finite=not_finite)

    def report(self, error: FormatError, ids: tuple[Any, Any] = ("", ""), *, not_finite: bool = False) -> None:
        """Raise this error, or report it to `on_error`."""
        if self.on_error is None:
            raise error
        query, doc = map(_text, ids)
        self.on_error(RowFault(error, error.line, query, doc, not_finite))

    def table(self, columns: Columns | None = None, places: tuple[int, int, int] = (0, 0, 0)) -> PairTable:
        """Return all rows as a table."""
        if self.on_error is not None:
            self._drop_faults(self.on_error)
        if not self.lines:
            raise FormatError("there are no rows", path=self.name, fix=f"pass rows of {', '.join(self.layout.columns)}")
        ranks = np.array(self.ranks) if self.ranks else None
        return table_of(
            Ids.of(self.queries, "query id", self._blame(places[0])),
            Ids.of(self.docs, "document id", self._blame(places[1])),
            numbers_of(self.values, self.layout, self._blame(places[2])),
            self.origin,
            columns=columns,
            lines=np.array(self.lines, dtype=np.int64),
            ranks=None if ranks is None or np.isnan(ranks).any() else ranks,
        )

    def _blame(self, column: int) -> Blame:
        return lambda row, what, fix: FormatError(what, path=self.name, line=self.lines[row], column=column, fix=fix)

    def _drop_faults(self, on_error: OnError) -> None:
        kept = []
        for row, (query, doc, value) in enumerate(zip(self.queries, self.docs, self.values, strict=True)):
            blame = partial(self._fault, row)
            try:
                if not (_is_plain_id(query) and _is_plain_id(doc)):
                    Ids.of([query], "query id", blame)
                    Ids.of([doc], "document id", blame)
                if type(value) is not float or not math.isfinite(value):
                    finite_numbers([value], self.layout, blame)
                kept.append(row)
            except InputError as error:
                not_finite = is_missing(value) or (isinstance(value, float) and not math.isfinite(value))
                on_error(RowFault(error, self.lines[row], _text(query), _text(doc), not_finite))
        for name in ("lines", "queries", "docs", "values", "ranks"):
            column = getattr(self, name)
            column[:] = [column[row] for row in kept] if column else []

    def _fault(self, row: int, _: int, what: str, fix: str) -> InputError:
        return FormatError(what, path=self.name, line=self.lines[row], fix=fix)


def _is_plain_id(value: Any) -> bool:
    if type(value) is str:
        return bool(value) and value.isascii() and "\0" not in value
    return type(value) is bytes and bool(value) and b"\0" not in value


def _text(value: Any) -> str:
    return show_id(value) if isinstance(value, bytes) else str(value)


def table_of(
    queries: Ids | IdRuns,
    docs: Ids,
    values: FloatArray,
    origin: PairInput,
    *,
    columns: Columns | None = None,
    lines: IntArray | None = None,
    ranks: FloatArray | None = None,
) -> PairTable:
    """Build a table from columns of equal length, with a note about nonstandard column names."""
    notes: list[str] = []
    source = origin.name
    if columns is not None and columns[:3] != origin.layout.columns:
        notes.append(f"{source}: columns {columns.query!r}, {columns.doc!r}, {columns.value!r}")
        if columns.has_ranks:
            values = -values
            notes.append(f"{source}: no scores, so documents are ordered by their rank")
    if columns is not None and columns.rivals:
        names = " and ".join(map(repr, columns.rivals))
        raise InputError(
            f"columns {names} have the same name except for case, spaces, and dashes",
            where=source,
            fix="keep the intended one, or rename the others",
        )
    if columns is not None and columns.beside:
        names = ", ".join(map(repr, columns.beside))
        notes.append(f"{source}: other candidates, not used: {names}")
    table = PairTable.of_rows(queries, docs, values, lines=lines, ranks=ranks)
    return finite(table.with_notes(*notes, source=source), origin)


def finite(table: PairTable, origin: PairInput) -> PairTable:
    """Check that all numbers are finite; with `on_error`, keep only the finite rows."""
    good = np.isfinite(table.values)
    if good.all():
        return table
    numbers, layout = table.query_numbers(), origin.layout
    for row in np.flatnonzero(~good).tolist():
        query, doc = show_id(table.queries[int(numbers[row])]), show_id(table.docs[row])
        line = 0 if table.lines is None else int(table.lines[row])
        error = InputError(
            f"{layout.value} {not_finite_text(float(table.values[row]))} of document '{doc}' for query '{query}' "
            "is not a finite number",
            where=table.source + (f", line {line}" if line else ""),
            fix=layout.fix,
        )
        if origin.on_error is None:
            raise error
        origin.on_error(RowFault(error, line, query, doc, not_finite=True))
    kept = table.keep(np.flatnonzero(good))
    # Also drop queries that have no rows left.
    return PairTable.of_rows(
        kept.queries.take(kept.query_numbers()), kept.docs, kept.values, lines=kept.lines, ranks=kept.ranks
    ).with_notes(*table.notes, source=table.source)


def number_or_nan(value: Any) -> float:
    """Return a number, or NaN if the value is not one."""
    try:
        return read_number(value if isinstance(value, bytes) else str(value).encode())
    except ValueError:
        return math.nan


def by_query(tables: Iterable[PairTable], *, whole: bool = False) -> Iterator[tuple[str, PairTable, slice]]:
    """Yield each query with its table and row range; long rankings in parts unless `whole`."""
    for table in tables:
        ends = table.offsets.tolist()
        for number, query in enumerate(id_texts(table.queries)):
            start, stop = ends[number], ends[number + 1]
            step = max(stop - start, 1) if whole else AT_ONCE
            for first in range(start, max(stop, start + 1), step):
                yield query, table, slice(first, min(first + step, stop))


def text_pairs(table: PairTable, rows: slice) -> Iterator[tuple[str, float]]:
    """Return the documents of these rows as text, with their numbers."""
    docs = id_texts(table.docs.take(rows), table.docs)
    return zip(docs, table.values[rows].tolist(), strict=True)


def score_lines(table: PairTable, rows: slice | IntArray, around: tuple[str, str, str], rank: int = 0) -> bytes | None:
    """Write lines with the compiled core; return None without it or if an id may need quotes.

    `around` is the text before the document, between document and score, and after the score. If
    `rank` is not 0, ranks counted from it are written between document and score.
    """
    if native.core is None:
        return None
    before, between, after = (text.encode() for text in around)
    docs, scores = table.docs.take(rows), np.ascontiguousarray(table.values[rows])
    return native.core.row_lines(*docs.columns(), scores, before, between, after, rank)


def id_texts(ids: Ids, column: Ids | None = None) -> list[str]:
    """Return ids as text; the error for invalid UTF-8 names the first such id and their number."""
    try:
        return [value.decode("utf-8") for value in ids.tolist()]
    except UnicodeDecodeError as error:
        many = (column or ids).not_text()
        others = "" if many == 1 else f" ({many} ids are not)"
        raise InputError(
            f"id '{show_id(error.object)}' is not UTF-8, so it cannot be written as text{others}",
            fix="write TREC format, which keeps the bytes",
        ) from None

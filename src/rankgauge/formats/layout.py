"""What the two kinds of input look like: judgments and runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankgauge.errors import InputError
from rankgauge.ids import Blame, Ids, show_id
from rankgauge.table import FloatArray, PairTable

__all__ = [
    "JUDGMENTS",
    "RUN",
    "Columns",
    "Layout",
    "columns_of",
    "finite",
    "finite_numbers",
    "number_text",
    "numbers_of",
    "plain_number",
    "read_number",
    "table_of",
    "wrong_columns",
    "wrong_number",
]

_QUERIES = ("query_id", "qid", "query-id", "q_id", "topic", "topic_id", "query")
_DOCUMENTS = (
    "doc_id",
    "docno",
    "docid",
    "corpus-id",
    "corpus_id",
    "document_id",
    "doc",
    "did",
    "document",
)
_SHOWN = 8
_EXACT = 2**53


class Layout(NamedTuple):
    """The words of one kind of input.

    Attributes:
        name: ``"judgments"`` or ``"run"``: what the source is called where it has no name.
        words: The same in a sentence: ``"judgments"`` or ``"a run"``.
        value: What its number is called: ``"grade"`` or ``"score"``.
        value_columns: Names of the column that holds the number, best first.
        fields: The fields of a line in TREC format.
        example: Such a line.
        mend: What to do about a number that is missing or not finite.
    """

    name: str
    words: str
    value: str
    value_columns: tuple[str, ...]
    fields: str
    example: str
    mend: str

    @property
    def columns(self) -> tuple[str, str, str]:
        """The column names that are written."""
        return "query_id", "doc_id", self.value_columns[0]

    @property
    def mapping(self) -> str:
        """A small mapping that would do, for messages."""
        return f'{{"q1": {{"d1": {self.value}}}}}'


JUDGMENTS = Layout(
    name="judgments",
    words="judgments",
    value="grade",
    value_columns=("relevance", "rel", "grade", "label", "score", "judgment"),
    fields="query iteration document grade",
    example="q1 0 d1 2",
    mend="leave out what was not judged, or give it a grade (-1: pooled but not judged)",
)
RUN = Layout(
    name="run",
    words="a run",
    value="score",
    # A run without scores may say the rank in their place.
    value_columns=("score", "sim", "similarity", "rank"),
    fields="query Q0 document rank score tag",
    example="q1 Q0 d1 1 12.5 mytag",
    mend="leave out what was not scored (padding, masked documents), or give it a finite score",
)


class Columns(NamedTuple):
    """The names of the columns that were chosen."""

    query: str
    doc: str
    value: str


def columns_of(names: Iterable[Any], layout: Layout) -> Columns | None:
    """The names of the query, document and number columns, or None if they are not all there."""
    known: dict[str, str] = {}
    for name in names:
        known.setdefault(str(name).strip().lower(), str(name))
    query, doc, value = (
        next((known[name] for name in wanted if name in known), None)
        for wanted in (_QUERIES, _DOCUMENTS, layout.value_columns)
    )
    return None if query is None or doc is None or value is None else Columns(query, doc, value)


def wrong_columns(names: Iterable[Any], layout: Layout) -> tuple[str, str]:
    """What is wrong with columns that are not those of this input, and the fix."""
    got = [repr(str(name)) for name in names]
    shown = ", ".join(got[:_SHOWN]) + (f" and {len(got) - _SHOWN} more" if got[_SHOWN:] else "")
    what = (
        f"the columns are {shown or 'none'}; {layout.words} "
        f"need{'s' * (layout is RUN)} one of queries, one of documents and one of {layout.value}s"
    )
    return what, f"name them {', '.join(layout.columns)}"


def read_number(text: bytes) -> float:
    """A number as people write it: what Python reads, without ``1_0`` and foreign digits.

    Raises:
        ValueError: If it is none. NaN and infinity are.
    """
    if b"_" in text:
        raise ValueError(text)
    return float(text)


def number_text(value: float, layout: Layout) -> str:
    """A number with all its digits; whole grades without a point."""
    return repr(plain_number(value, layout))


def plain_number(value: float, layout: Layout) -> float | int:
    """The number itself; a grade that is whole as a whole number, but for the zero with a sign."""
    whole = layout is JUDGMENTS and value.is_integer() and abs(value) < _EXACT
    return int(value) if whole and (value or math.copysign(1, value) > 0) else value


def wrong_number(value: Any, layout: Layout) -> tuple[str, str]:
    """What is wrong with a number that is none, or is not finite, and the fix."""
    shown = repr(value)
    if len(shown) > 5 * _SHOWN:
        shown = shown[: 5 * _SHOWN] + "..."
    empty = isinstance(value, str) and not value.strip()
    if empty or value is None or type(value).__name__ == "NAType":
        return f"the {layout.value} is missing", layout.mend
    fix = f"give every {layout.value} as a number"
    if isinstance(value, str | bytes | bytearray):
        return f"{layout.value} {shown} is text, not a number", fix
    return f"{layout.value} {shown} is of type {type(value).__name__}, not a number", fix


def numbers_of(values: Sequence[Any], layout: Layout, blame: Blame) -> FloatArray:
    """Numbers of any kind as 64-bit floats.

    Raises:
        InputError: If something is not a number. Whether it is finite is asked of the whole table.
    """
    bad = tuple(kind for kind in set(map(type, values)) if not _is_number(kind))
    if bad:
        row = next(row for row, value in enumerate(values) if type(value) in bad)
        raise blame(row, *wrong_number(values[row], layout))
    try:
        with np.errstate(over="ignore"):  # too large is infinite, and refused as that
            return np.fromiter(values, dtype=np.float64, count=len(values))
    except (OverflowError, TypeError, ValueError):
        return np.array([_number(value, row, layout, blame) for row, value in enumerate(values)])


def finite_numbers(values: Sequence[Any], layout: Layout, blame: Blame) -> FloatArray:
    """Numbers of any kind as 64-bit floats, all of them finite.

    Raises:
        InputError: For the first that is no number, or is not finite.
    """
    found = numbers_of(values, layout, blame)
    bad = _not_finite(found)
    if bad is not None:
        row, shown = bad
        raise blame(row, f"{layout.value} {shown} is not a finite number", layout.mend)
    return found


def _not_finite(values: FloatArray) -> tuple[int, str] | None:
    """The first number that is not finite, and how it is shown."""
    bad = np.flatnonzero(~np.isfinite(values))
    if not len(bad):
        return None
    value = float(values[bad[0]])
    return int(bad[0]), "NaN" if math.isnan(value) else str(value)


def _is_number(kind: type) -> bool:
    # NumPy's complex numbers would lose a part, its dates would become counts.
    strange = str | bytes | bytearray | np.ndarray | np.complexfloating | np.datetime64
    return hasattr(kind, "__float__") and not issubclass(kind, strange)


def _number(value: Any, row: int, layout: Layout, blame: Blame) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        raise blame(row, *wrong_number(value, layout)) from None


def finite(table: PairTable, layout: Layout) -> PairTable:
    """The table itself, if all its numbers are finite.

    Raises:
        InputError: Naming query, document and, for a file, the line of the first that is not.
    """
    bad = _not_finite(table.values)
    if bad is None:
        return table
    row, shown = bad
    query = show_id(table.queries[int(np.searchsorted(table.offsets, row, side="right")) - 1])
    line = "" if table.lines is None else f", line {int(table.lines[row])}"
    raise InputError(
        f"{layout.value} {shown} of document "
        f"'{show_id(table.docs[row])}' for query '{query}' is not a finite number",
        where=table.source + line,
        fix=layout.mend,
    )


def table_of(
    queries: Ids,
    docs: Ids,
    values: FloatArray,
    layout: Layout,
    *,
    source: str,
    columns: Columns | None = None,
    lines: Sequence[int] | None = None,
) -> PairTable:
    """Three columns of equal length as a table, with a note about columns of unusual names."""
    notes = []
    if columns is not None and (columns.query, columns.doc, columns.value) != layout.columns:
        notes.append(f"{source}: columns {columns.query!r}, {columns.doc!r}, {columns.value!r}")
        if columns.value.strip().lower() == "rank":
            values = -values
            notes.append(f"{source}: no scores, so the documents stand in order of their rank")
    numbers = None if lines is None else np.array(lines, dtype=np.int64)
    table = PairTable.of_rows(queries, docs, values, lines=numbers).said(*notes, source=source)
    return finite(table, layout)

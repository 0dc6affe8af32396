"""What the two kinds of input look like: judgments and runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Blame, Ids, show_id
from rankgauge.core.pair_table import FloatArray, PairTable
from rankgauge.errors import InputError

__all__ = [
    "JUDGMENTS",
    "RUN",
    "Columns",
    "Layout",
    "columns_of",
    "finite",
    "finite_numbers",
    "is_lost",
    "lost_number",
    "number_text",
    "numbers_of",
    "plain_number",
    "read_number",
    "table_of",
    "whole_numbers_of",
    "wrong_columns",
    "wrong_number",
]

# Names of columns as `_word` writes them, the one that counts where there are several first: an id
# before what may be a text.
_QUERIES = (
    "query_id", "qid", "q_id", "queryid", "topic", "topic_id", "topicid", "question_id", "query",
    "query_text",
)  # fmt: skip
_DOCUMENTS = (
    "doc_id", "docno", "docid", "corpus_id", "corpusid", "document_id", "documentid", "doc_no",
    "pid", "passage_id", "passageid", "chunk_id", "product_id", "item_id", "doc", "did", "document",
)  # fmt: skip
_RANKS = ("rank", "position", "pos", "doc_position", "rank_position")
# Where less is better: no score as it stands.
_DISTANCES = ("distance", "dist", "_distance", "distances")
# What files are that have these columns.
_OTHERS = {
    "action_name": "this looks like a log of clicks (UBI): make judgments of it first",
    "user_query": "this looks like a log of queries (UBI), which judges nothing",
    "winner": "this looks like preferences between two answers, which are not measured here",
    "_id": "this looks like texts: --collection reads them",
}
_SHOWN = 8
# A number with a comma, which means one thing here and another there.
_COMMA = re.compile(r"[+-]?\d+(,\d+)+")
_EXACT = 2**53
_WORD, _HALF = 8, 32


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
    value_columns=(
        "relevance",
        "rel",
        "grade",
        "label",
        "rating",
        "score",
        "judgment",
        "judgement",
        "gain",
        "relevance_grade",
        "relevance_label",
        "relevance_judgment",
    ),
    fields="query iteration document grade",
    example="q1 0 d1 2",
    mend="leave out what was not judged, or give it a grade (-1: pooled but not judged)",
)
RUN = Layout(
    name="run",
    words="a run",
    value="score",
    # A run without scores may say the rank in their place.
    value_columns=(
        "score",
        "sim",
        "similarity",
        "_score",
        "similarity_score",
        "retrieval_score",
        "relevance_score",
        "cosine",
        "cosine_similarity",
        *_RANKS,
    ),
    fields="query Q0 document rank score tag",
    example="q1 Q0 d1 1 12.5 mytag",
    mend="leave out what was not scored (padding, masked documents), or give it a finite score",
)


class Columns(NamedTuple):
    """The names of the columns that were chosen.

    Attributes:
        query: That of queries.
        doc: That of documents.
        value: That of the number.
        beside: Others that could be one of these, but for the order of names: not read.
        rivals: Names that are one but for case, blanks and dashes: nobody knows which is meant.
    """

    query: str
    doc: str
    value: str
    beside: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()

    @property
    def read(self) -> tuple[str, str, str]:
        """The names of those that are read."""
        return self.query, self.doc, self.value


def columns_of(names: Iterable[Any], layout: Layout) -> Columns | None:
    """The names of the query, document and number columns, or None if they are not all there."""
    known: dict[str, dict[str, None]] = {}
    for name in names:
        known.setdefault(_word(name), {})[str(name)] = None
    chosen: list[str] = []
    beside: list[str] = []
    rivals: tuple[str, ...] = ()
    for wanted in (_QUERIES, _DOCUMENTS, layout.value_columns):
        there = [word for word in wanted if word in known]
        if not there:
            return None
        first, *others = there
        chosen.append(next(iter(known[first])))
        rivals = rivals or (tuple(known[first]) if len(known[first]) > 1 else ())
        # A rank beside a score is what runs have.
        beside += [next(iter(known[word])) for word in others if word not in _RANKS]
    query, doc, value = chosen
    return Columns(query, doc, value, tuple(beside), rivals)


def _word(name: Any) -> str:
    """A name as it is compared: without case, quotes and blanks around it."""
    plain = str(name).strip().strip("'\"").strip().lower()
    return plain.replace("-", "_").replace(" ", "_")


def wrong_columns(names: Iterable[Any], layout: Layout) -> tuple[str, str]:
    """What is wrong with columns that are not those of this input, and the fix."""
    names = list(names)
    got = [repr(str(name)) for name in names]
    shown = ", ".join(got[:_SHOWN]) + (f" and {len(got) - _SHOWN} more" if got[_SHOWN:] else "")
    what = (
        f"the columns are {shown or 'none'}; {layout.words} "
        f"need{'s' * (layout is RUN)} one of queries, one of documents and one of {layout.value}s"
    )
    fix = f"name them {', '.join(layout.columns)}"
    words = {_word(name): str(name) for name in names}
    near = next((words[word] for word in _DISTANCES if word in words), None)
    if layout is RUN and near is not None:
        fix += f"; {near!r} is no score, as less is better: give it negated"
    else:
        fix += next((f"; {said}" for word, said in _OTHERS.items() if word in words), "")
    return what, fix


def read_number(text: bytes) -> float:
    """A number as people write it: what Python reads, without ``1_0`` and foreign digits.

    Raises:
        ValueError: If it is none, or a whole number that would become another. NaN and infinity
            are numbers.
    """
    if b"_" in text:
        raise ValueError(text)
    number = float(text)
    if abs(number) >= _EXACT and is_lost(text, number):
        raise ValueError(text)
    return number


def is_lost(value: Any, number: float) -> bool:
    """Whether a whole number, perhaps as text, became another as a 64-bit float.

    From 2^53 on not every whole number has a float of its own: two scores would tie. Numbers with a
    fraction are rounded, as everywhere; in text, one of zeros is none.
    """
    if not _EXACT <= abs(number) < math.inf or isinstance(value, float):
        return False
    if isinstance(value, str | bytes):
        text = value if isinstance(value, str) else value.decode("utf-8", "replace")
        whole, _, fraction = text.strip().partition(".")
        value = text if fraction.strip("0") else whole
    try:
        return int(value) != int(number)
    except (TypeError, ValueError, OverflowError):
        return False


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
    lost = lost_number(value, layout)
    if lost is not None:
        return lost
    fix = f"give every {layout.value} as a number"
    if isinstance(value, str) and _COMMA.fullmatch(value.strip()):
        fix += ", with a point before its decimals: a comma may part thousands, too"
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
            found = np.fromiter(values, dtype=np.float64, count=len(values))
    except (OverflowError, TypeError, ValueError):
        found = np.array([_number(value, row, layout, blame) for row, value in enumerate(values)])
    for row in np.flatnonzero(np.abs(found) >= _EXACT).tolist():
        if is_lost(values[row], float(found[row])):
            raise blame(row, *wrong_number(values[row], layout))
    return found


def whole_numbers_of(values: npt.NDArray[Any], layout: Layout, blame: Blame) -> FloatArray:
    """An array of whole numbers as 64-bit floats.

    Raises:
        InputError: For the first that would become another number.
    """
    found: FloatArray = values.astype(np.float64)
    if values.itemsize == _WORD:
        # What is left of each above its lower half, exactly, is that half.
        rest = found - (values >> _HALF).astype(np.float64) * 2.0**_HALF
        lost = np.flatnonzero(rest != (values & (2**_HALF - 1)).astype(np.float64))
        if len(lost):
            raise blame(int(lost[0]), *wrong_number(int(values[lost[0]]), layout))
    return found


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


def lost_number(value: Any, layout: Layout) -> tuple[str, str] | None:
    """The fault and fix of a whole number that is not a 64-bit float; None for others."""
    if not (isinstance(value, str | bytes) or _is_number(type(value))):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if not is_lost(value, number):
        return None
    shown = value.decode() if isinstance(value, bytes) else value
    fix = "subtract the same whole number from all scores, or list the documents, best first"
    what = (
        f"{layout.value} {shown} is not exactly representable as a 64-bit float: it would become "
        f"{int(number)}, and may tie with another {layout.value}"
    )
    return what, fix if layout is RUN else f"give a smaller {layout.value}"


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


def _ambiguous(columns: Columns, source: str) -> list[str]:
    """What is to be said of columns that could be meant as well.

    Raises:
        InputError: If two of them have the same name to us.
    """
    if columns.rivals:
        names = " and ".join(map(repr, columns.rivals))
        raise InputError(
            f"columns {names} have the same name but for case, blanks and dashes",
            where=source,
            fix="keep the one that is meant, or rename the others",
        )
    if not columns.beside:
        return []
    names = ", ".join(map(repr, columns.beside))
    return [f"{source}: not read, though it could be meant, too: {names}"]


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
    notes: list[str] = []
    if columns is not None and columns[:3] != layout.columns:
        notes.append(f"{source}: columns {columns.query!r}, {columns.doc!r}, {columns.value!r}")
        if _word(columns.value) in _RANKS:
            values = -values
            notes.append(f"{source}: no scores, so the documents stand in order of their rank")
    if columns is not None:
        notes += _ambiguous(columns, source)
    numbers = None if lines is None else np.array(lines, dtype=np.int64)
    table = PairTable.of_rows(queries, docs, values, lines=numbers).said(*notes, source=source)
    return finite(table, layout)

"""Column names, terms, and numbers of judgments (with grades) and runs (with scores).

Scores and grades are converted to 64-bit floats, with messages for invalid numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rankgauge.core.ids import Blame
from rankgauge.core.pair_table import FloatArray

# Column names as normalized by `column_word`, in order of preference: ids come before columns that
# may contain text.
_QUERIES = ("query_id", "qid", "q_id", "queryid", "topic", "topic_id", "topicid", "question_id", "query", "query_text")
_DOCUMENTS = (
    "doc_id",
    "docno",
    "docid",
    "corpus_id",
    "corpusid",
    "document_id",
    "documentid",
    "doc_no",
    "pid",
    "passage_id",
    "passageid",
    "chunk_id",
    "product_id",
    "item_id",
    "doc",
    "did",
    "document",
)
_RANKS = ("rank", "position", "pos", "doc_position", "rank_position")
_DISTANCES = ("distance", "dist", "_distance", "distances")
# Columns that identify other kinds of files.
_OTHERS = {
    "action_name": "this looks like a click log (UBI): derive judgments from it first",
    "user_query": "this looks like a query log (UBI), which has no judgments",
    "winner": "this looks like preferences between two answers, which are not supported here",
    "_id": "this looks like texts: --collection reads them",
    "annotations": "this looks like an export of Label Studio: rankgauge judge import reads it",
    "responses": "this looks like an export of Argilla: rankgauge judge import reads it",
}
_SHOWN = 8


_LONGEST = 40
# A number with a comma, whose meaning depends on the locale.
_COMMA = re.compile(r"[+-]?\d+(,\d+)+")
# Integers of smaller magnitude are exact as floats.
EXACT = 2**53
_WORD, _HALF = 8, 32


class Layout(NamedTuple):
    """Names and terms of one kind of input: judgments or runs."""

    name: str  # ``"judgments"`` or ``"run"``: default name of a source
    words: str  # the same within a sentence: ``"judgments"`` or ``"a run"``
    value: str  # name of its number: ``"grade"`` or ``"score"``
    value_columns: tuple[str, ...]  # column names for the number, best first
    fields: str  # fields of a line in TREC format
    example: str  # example of such a line
    fix: str  # fix for a missing or non-finite number

    @property
    def columns(self) -> tuple[str, str, str]:
        """Column names for writing."""
        return "query_id", "doc_id", self.value_columns[0]

    @property
    def mapping(self) -> str:
        """A small mapping, for messages."""
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
    fix="remove unjudged documents, or give them a grade (-1: pooled but not judged)",
)
RUN = Layout(
    name="run",
    words="a run",
    value="score",
    # Runs without scores may have ranks instead.
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
    fix="remove documents without a score (padding, masked documents), or give them a finite score",
)


class Columns(NamedTuple):
    """Names of the columns to read."""

    query: str  # column of queries
    doc: str  # column of documents
    value: str  # column of scores or grades
    beside: tuple[str, ...] = ()  # other columns with a known name, which are not read
    rivals: tuple[str, ...] = ()  # names that are equal except for case, blanks, and dashes: an error

    @property
    def read(self) -> tuple[str, str, str]:
        """Names of the query, document, and number columns."""
        return self.query, self.doc, self.value

    @property
    def has_ranks(self) -> bool:
        """Whether the number is a rank (lower is better)."""
        return column_word(self.value) in _RANKS


def columns_of(names: Iterable[Any], layout: Layout) -> Columns | None:
    """Return the names of the query, document, and number columns, or None if one is missing."""
    known: dict[str, dict[str, None]] = {}
    for name in names:
        known.setdefault(column_word(name), {})[str(name)] = None
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
        # A rank next to a score is expected in runs.
        beside += [next(iter(known[word])) for word in others if word not in _RANKS]
    query, doc, value = chosen
    return Columns(query, doc, value, tuple(beside), rivals)


def column_word(name: Any) -> str:
    """Normalize a column name: lower case, no outer quotes or blanks, underscores within."""
    return str(name).strip().strip("'\"").strip().lower().replace("-", "_").replace(" ", "_")


def wrong_columns(names: Iterable[Any], layout: Layout) -> tuple[str, str]:
    """Return the problem and the fix for columns that do not fit this kind of input."""
    names = list(names)
    got = [repr(str(name)) for name in names]
    shown = ", ".join(got[:_SHOWN]) + (f" and {len(got) - _SHOWN} more" if got[_SHOWN:] else "")
    what = (
        f"the columns are {shown or 'none'}; {layout.words} "
        f"{'needs' if layout is RUN else 'need'} one of queries, one of documents, and one of {layout.value}s"
    )
    fix = f"name them {', '.join(layout.columns)}"
    words = {column_word(name): str(name) for name in names}
    near = next((words[word] for word in _DISTANCES if word in words), None)
    if layout is RUN and near is not None:
        fix += f"; {near!r} is not a score, since lower is better: negate it"
    else:
        fix += next((f"; {advice}" for word, advice in _OTHERS.items() if word in words), "")
    return what, fix


def read_number(text: bytes) -> float:
    """Parse a number like `float`, but reject underscores and inexact integers."""
    if b"_" in text:
        raise ValueError(text)
    number = float(text)
    if abs(number) >= EXACT and is_lost(text, number):
        raise ValueError(text)
    return number


def is_lost(value: Any, number: float) -> bool:
    """Return whether an integer, or text of one, changed when converted to a 64-bit float.

    From 2^53 on, distinct integers can have the same float, so two scores could tie. Fractions are
    rounded as usual; text with a fraction of zeros counts as an integer.
    """
    if not EXACT <= abs(number) < math.inf or isinstance(value, float):
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
    """Format a number with all its digits; integer grades without a decimal point."""
    return repr(plain_number(value, layout))


def plain_number(value: float, layout: Layout) -> float | int:
    """Return the number; a whole grade as an integer, except for -0."""
    whole = layout is JUDGMENTS and value.is_integer() and abs(value) < EXACT
    return int(value) if whole and (value or math.copysign(1, value) > 0) else value


def is_missing(value: Any) -> bool:
    """Return whether the value is missing: None, empty text, or NA of pandas."""
    empty = isinstance(value, str | bytes) and not value.strip()
    return empty or value is None or type(value).__name__ == "NAType"


def wrong_number(value: Any, layout: Layout) -> tuple[str, str]:
    """Return the problem and the fix for a value that is not a finite number."""
    if is_missing(value):
        return f"the {layout.value} is missing", layout.fix
    lost = lost_number(value, layout)
    if lost is not None:
        return lost
    shown = repr(value)
    shown = shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "..."
    if isinstance(value, str):
        with suppress(ValueError):
            if not math.isfinite(float(value)):
                return f"{layout.value} {shown} is not a finite number", layout.fix
    fix = f"write every {layout.value} as a number"
    if isinstance(value, str) and _COMMA.fullmatch(value.strip()):
        fix += ", with a decimal point: a comma may be a thousands separator"
    if isinstance(value, str | bytes | bytearray):
        return f"{layout.value} {shown} is text, not a number", fix
    return f"{layout.value} {shown} is of type {type(value).__name__}, not a number", fix


def lost_number(value: Any, layout: Layout) -> tuple[str, str] | None:
    """Return the problem and the fix for an integer that no 64-bit float represents, or None."""
    if not (isinstance(value, str | bytes) or _is_number(type(value))):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if not is_lost(value, number):
        return None
    shown = value.decode() if isinstance(value, bytes) else value
    fix = "subtract the same integer from all scores, or list the documents, best first"
    what = (
        f"{layout.value} {shown} is not exactly representable as a 64-bit float: it would "
        f"become {int(number)}, and could tie with another {layout.value}"
    )
    return what, fix if layout is RUN else f"use a smaller {layout.value}"


def numbers_of(values: Sequence[Any], layout: Layout, blame: Blame) -> FloatArray:
    """Convert numbers of any type to 64-bit floats."""
    bad = tuple(kind for kind in set(map(type, values)) if not _is_number(kind))
    if bad:
        row = next(row for row, value in enumerate(values) if type(value) in bad)
        raise blame(row, *wrong_number(values[row], layout))
    try:
        with np.errstate(over="ignore"):  # overflow gives infinity, which is refused
            numbers = np.fromiter(values, dtype=np.float64, count=len(values))
    except (OverflowError, TypeError, ValueError):
        numbers = np.empty(len(values))
        for row, value in enumerate(values):
            try:
                numbers[row] = float(value)
            except OverflowError:
                numbers[row] = math.inf
            except (TypeError, ValueError):
                raise blame(row, *wrong_number(value, layout)) from None
    for row in np.flatnonzero(np.abs(numbers) >= EXACT).tolist():
        if is_lost(values[row], float(numbers[row])):
            raise blame(row, *wrong_number(values[row], layout))
    return numbers


def whole_numbers_of(values: npt.NDArray[Any], layout: Layout, blame: Blame) -> FloatArray:
    """Convert an array of integers to 64-bit floats."""
    numbers: FloatArray = values.astype(np.float64)
    if values.itemsize == _WORD:
        # If the conversion is exact, subtracting the upper half leaves exactly the lower half.
        rest = numbers - (values >> _HALF).astype(np.float64) * 2.0**_HALF
        lost = np.flatnonzero(rest != (values & (2**_HALF - 1)).astype(np.float64))
        if len(lost):
            raise blame(int(lost[0]), *wrong_number(int(values[lost[0]]), layout))
    return numbers


def finite_numbers(values: Sequence[Any], layout: Layout, blame: Blame) -> FloatArray:
    """Convert numbers of any type to 64-bit floats; all must be finite."""
    numbers = numbers_of(values, layout, blame)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        shown = not_finite_text(float(numbers[bad[0]]))
        raise blame(int(bad[0]), f"{layout.value} {shown} is not a finite number", layout.fix)
    return numbers


def not_finite_text(value: float) -> str:
    """Return the text of a number that is not finite."""
    return "NaN" if math.isnan(value) else str(value)


def _is_number(kind: type) -> bool:
    # Complex numbers would lose their imaginary part; dates would become counts.
    strange = str | bytes | bytearray | np.ndarray | np.complexfloating | np.datetime64
    return hasattr(kind, "__float__") and not issubclass(kind, strange)

"""Column names and terms of judgments (with grades) and runs (with scores)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

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
}
_SHOWN = 8


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
    plain = str(name).strip().strip("'\"").strip().lower()
    return plain.replace("-", "_").replace(" ", "_")


def wrong_columns(names: Iterable[Any], layout: Layout) -> tuple[str, str]:
    """Return the problem and the fix for columns that do not fit this kind of input."""
    names = list(names)
    got = [repr(str(name)) for name in names]
    shown = ", ".join(got[:_SHOWN]) + (f" and {len(got) - _SHOWN} more" if got[_SHOWN:] else "")
    what = (
        f"the columns are {shown or 'none'}; {layout.words} "
        f"need{'s' * (layout is RUN)} one of queries, one of documents, and one of {layout.value}s"
    )
    fix = f"name them {', '.join(layout.columns)}"
    words = {column_word(name): str(name) for name in names}
    near = next((words[word] for word in _DISTANCES if word in words), None)
    if layout is RUN and near is not None:
        fix += f"; {near!r} is not a score, since lower is better: negate it"
    else:
        fix += next((f"; {advice}" for word, advice in _OTHERS.items() if word in words), "")
    return what, fix

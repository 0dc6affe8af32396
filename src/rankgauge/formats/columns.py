"""Names and words of the two kinds of pairs: judgments (with grades) and runs (with scores)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

# Names of columns as `column_word` writes them. Of several the first counts: an id before what may
# be a text.
_QUERIES = (
    "query_id", "qid", "q_id", "queryid", "topic", "topic_id", "topicid", "question_id", "query",
    "query_text",
)  # fmt: skip
_DOCUMENTS = (
    "doc_id", "docno", "docid", "corpus_id", "corpusid", "document_id", "documentid", "doc_no",
    "pid", "passage_id", "passageid", "chunk_id", "product_id", "item_id", "doc", "did", "document",
)  # fmt: skip
_RANKS = ("rank", "position", "pos", "doc_position", "rank_position")
_DISTANCES = ("distance", "dist", "_distance", "distances")
# What files are that have these columns.
_OTHERS = {
    "action_name": "this looks like a click log (UBI): derive judgments from it first",
    "user_query": "this looks like a query log (UBI), which has no judgments",
    "winner": "this looks like preferences between two answers, which are not supported here",
    "_id": "this looks like texts: --collection reads them",
}
_SHOWN = 8


class Layout(NamedTuple):
    """The words of one kind of input."""

    name: str  # ``"judgments"`` or ``"run"``: the name of a source that has none
    words: str  # the same in a sentence: ``"judgments"`` or ``"a run"``
    value: str  # what its number is called: ``"grade"`` or ``"score"``
    value_columns: tuple[str, ...]  # names of the column that holds the number, best first
    fields: str  # the fields of a line in TREC format
    example: str  # such a line
    fix: str  # what to do about a number that is missing or not finite

    @property
    def columns(self) -> tuple[str, str, str]:
        """The column names that are written."""
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
        "relevance", "rel", "grade", "label", "rating", "score", "judgment", "judgement", "gain",
        "relevance_grade", "relevance_label", "relevance_judgment",
    ),
    fields="query iteration document grade",
    example="q1 0 d1 2",
    fix="remove unjudged documents, or give them a grade (-1: pooled but not judged)",
)  # fmt: skip
RUN = Layout(
    name="run",
    words="a run",
    value="score",
    # A run without scores may have ranks in their place.
    value_columns=(
        "score", "sim", "similarity", "_score", "similarity_score", "retrieval_score",
        "relevance_score", "cosine", "cosine_similarity", *_RANKS,
    ),
    fields="query Q0 document rank score tag",
    example="q1 Q0 d1 1 12.5 mytag",
    fix="remove documents without a score (padding, masked documents), or give them a finite score",
)  # fmt: skip


class Columns(NamedTuple):
    """The names of the columns that are read."""

    query: str  # the column of queries
    doc: str  # the column of documents
    value: str  # the column of scores or grades
    beside: tuple[str, ...] = ()  # further columns of a known name, which are not read
    rivals: tuple[
        str, ...
    ] = ()  # names that are equal except for case, blanks and dashes: an error

    @property
    def read(self) -> tuple[str, str, str]:
        """The names of query, document and number."""
        return self.query, self.doc, self.value

    @property
    def has_ranks(self) -> bool:
        """Whether the number is a rank: less is better."""
        return column_word(self.value) in _RANKS


def columns_of(names: Iterable[Any], layout: Layout) -> Columns | None:
    """The names of the query, document and number columns, or None if they are not all there."""
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
        # Runs have a rank next to a score.
        beside += [next(iter(known[word])) for word in others if word not in _RANKS]
    query, doc, value = chosen
    return Columns(query, doc, value, tuple(beside), rivals)


def column_word(name: Any) -> str:
    """Return a name as it is compared: without case, quotes and blanks around it."""
    plain = str(name).strip().strip("'\"").strip().lower()
    return plain.replace("-", "_").replace(" ", "_")


def wrong_columns(names: Iterable[Any], layout: Layout) -> tuple[str, str]:
    """Return the problem of columns that do not belong to this input, and the fix."""
    names = list(names)
    got = [repr(str(name)) for name in names]
    shown = ", ".join(got[:_SHOWN]) + (f" and {len(got) - _SHOWN} more" if got[_SHOWN:] else "")
    what = (
        f"the columns are {shown or 'none'}; {layout.words} "
        f"need{'s' * (layout is RUN)} one of queries, one of documents and one of {layout.value}s"
    )
    fix = f"name them {', '.join(layout.columns)}"
    words = {column_word(name): str(name) for name in names}
    near = next((words[word] for word in _DISTANCES if word in words), None)
    if layout is RUN and near is not None:
        fix += f"; {near!r} is not a score, since lower is better: negate it"
    else:
        fix += next((f"; {advice}" for word, advice in _OTHERS.items() if word in words), "")
    return what, fix

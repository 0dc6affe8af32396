"""Precision and recall of retrieved tokens, independent of the chunking."""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

from rankgauge.core.arguments import known_name, of_kind
from rankgauge.core.text import keep, many
from rankgauge.corpus.collection import Collection, Document
from rankgauge.errors import FormatError, InputError, MismatchError
from rankgauge.formats.json_files import objects
from rankgauge.formats.lines import Source, numbered_lines, opened, source_name
from rankgauge.formats.texts import id_of, located
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table

Repeats: TypeAlias = Literal["counted", "once"]
_Ranges: TypeAlias = list[tuple[int, int]]
# Names of the query, the document, and the ends of a span.
_KEYS = (("query_id", "qid", "query"), ("doc_id", "docno", "document"), ("start",), ("end",))
_EXAMPLE = '{"query_id": "q1", "doc_id": "d1", "start": 0, "end": 42}'
_TOKEN = re.compile(r"\S+")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A part of a document's text, in characters from 0; `end` is exclusive.

    Raises:
        InputError: If `end` is less than `start`, or `start` is negative.
    """

    document: str
    start: int
    end: int

    def __post_init__(self) -> None:
        whole = all(type(value) is int for value in (self.start, self.end))
        if not whole or not 0 <= self.start <= self.end:
            raise InputError(
                f"a span from {self.start!r:.20} to {self.end!r:.20} is not valid",
                where=f"document {self.document!r}",
                fix="pass whole numbers with 0 <= start <= end",
            )


@dataclass(frozen=True)
class QuerySpans:
    """Counts of tokens (or characters) and values of one query.

    Attributes:
        query_id: The query id.
        relevant: Relevant tokens; each counts once.
        retrieved: Retrieved tokens; see `repeats` of :func:`span_scores`.
        common: Relevant tokens that were retrieved; each counts once.
    """

    query_id: str
    relevant: int
    retrieved: int
    common: int

    @property
    def precision(self) -> float:
        """Share of the retrieved tokens that are relevant; 0 if nothing was retrieved."""
        return self.common / self.retrieved if self.retrieved else 0.0

    @property
    def recall(self) -> float:
        """Share of the relevant tokens that were retrieved."""
        return self.common / self.relevant if self.relevant else math.nan

    @property
    def iou(self) -> float:
        """Intersection over union, common / (relevant + retrieved - common)."""
        union = self.relevant + self.retrieved - self.common
        return self.common / union if union else math.nan


@dataclass(frozen=True, repr=False)
class SpanScores(Result):
    """Precision, recall, and IoU of spans, by query and as means.

    Returned by :func:`span_scores`. Notebooks display it as a table.

    Attributes:
        queries: The counts of each query with a relevant span.
        unit: ``token`` or ``character``.
        repeats: How tokens retrieved more than once are counted.
        left_out: Number of queries with retrieved but no relevant spans.
    """

    queries: tuple[QuerySpans, ...]
    unit: str
    repeats: Repeats
    left_out: int = 0

    def mean(self) -> dict[str, float]:
        """Return the means over the queries with a relevant span."""
        return {
            name: math.fsum(getattr(query, name) for query in self.queries) / len(self.queries)
            for name in ("precision", "recall", "iou")
        }

    def table(self) -> Table:
        """Return a table with a row per query and the means in the last row."""
        rows = [(q.query_id, q.precision, q.recall, q.iou, q.relevant, q.retrieved, q.common) for q in self.queries]
        return Table(
            columns=("query", "precision", "recall", "IoU", "relevant", "retrieved", "common"),
            rows=(*rows, ("mean", *self.mean().values(), None, None, None)),
            notes=keep(
                f"{self.unit}s retrieved more than once count {'each time' if self.repeats == 'counted' else 'once'}",
                self.left_out and f"omitted: {many(self.left_out, 'query')} without a relevant span",
            ),
        )

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        shown = ", ".join(f"{name} {value:.4f}" for name, value in self.mean().items())
        return f"{shown} over {many(len(self.queries), 'query')}"


def span_scores(
    retrieved: Mapping[str, Iterable[Span]],
    relevant: Mapping[str, Iterable[Span]],
    *,
    texts: Collection | Mapping[str, str] | None = None,
    repeats: Repeats = "counted",
) -> SpanScores:
    """Return precision, recall, and intersection over union of retrieved text, in tokens.

    With the relevant tokens E and the retrieved tokens T of a query::

        precision = |E and T| / |T|    recall = |E and T| / |E|
        IoU = |E and T| / (|E| + |T| - |E and T|)

    A token counts once in the intersection and in E. In T, a token in several chunks counts as
    often as it was retrieved, so that overlap lowers precision; with ``repeats="once"``, it counts
    once. The ranks of spans are ignored: pass only the spans that are used.

    Args:
        retrieved: Query id to retrieved spans or chunks.
        relevant: Query id to relevant spans. Queries without relevant spans are omitted; for
            queries without retrieved spans, all three values are 0.
        texts: A collection, or document id to text: tokens are separated by blanks, and a span
            contains the tokens it overlaps. Without texts, characters are counted.
        repeats: ``counted`` or ``once``.

    Raises:
        InputError: If no query has a relevant span, or a text is missing or shorter than a span.
        UnknownName: For an unknown value of `repeats`.
        MismatchError: If no query with relevant spans has retrieved spans.

    Source:
        B. Smith and A. Troynikov: Evaluating Chunking Strategies for Retrieval. Chroma Technical
        Report, 2024.

    Example:
        >>> found = {"q1": [Span("d1", 0, 40), Span("d1", 30, 70)]}
        >>> wanted = {"q1": [Span("d1", 20, 60)]}
        >>> span_scores(found, wanted).mean()
        {'precision': 0.5, 'recall': 1.0, 'iou': 0.5}
    """
    known_name("choice of repeats", repeats, get_args(Repeats))
    wanted = {query: _spans(spans, query) for query, spans in relevant.items()}
    results = {query: _spans(spans, query) for query, spans in retrieved.items()}
    units = _Units(texts)
    ranges_of = {query: units.ranges(spans) for query, spans in wanted.items()}
    asked = {q: of for q, of in ranges_of.items() if any(start < end for part in of.values() for start, end in part)}
    if not asked:
        raise InputError(
            "no query has a relevant span", where="relevant", fix='pass at least one: {"q1": [Span("d1", 0, 42)]}'
        )
    if asked.keys().isdisjoint(results):
        raise MismatchError(
            f"no query with relevant spans has results (expected: {next(iter(asked))!r}, ...)",
            where="span_scores",
            fix="pass spans of the same query ids",
        )
    queries = tuple(
        _counted(query, units.ranges(results.get(query, [])), ranges, repeats) for query, ranges in asked.items()
    )
    return SpanScores(queries, units.name, repeats, len(results.keys() - asked.keys()))


def read_spans(path: Source) -> dict[str, list[Span]]:
    """Read spans from a file of JSON lines with ``query_id``, ``doc_id``, ``start``, and ``end``.

    Raises:
        FormatError: For an invalid line.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "spans.jsonl"
        >>> _ = file.write_text('{"query_id": "q1", "doc_id": "d1", "start": 0, "end": 42}')
        >>> read_spans(file)
        {'q1': [Span(document='d1', start=0, end=42)]}
    """
    name = source_name(path)
    spans: dict[str, list[Span]] = {}
    with opened(path) as stream:
        for number, row in objects(numbered_lines(stream, name), name):
            try:
                query, document, start, end = (_value(row, keys) for keys in _KEYS)
                spans.setdefault(id_of(query), []).append(Span(id_of(document), start, end))
            except InputError as error:
                raise located(error, name, number) from None
    if not spans:
        raise FormatError("there are no spans", path=name, fix=f"use lines of {_EXAMPLE}")
    return spans


def _value(row: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    key = next((key for key in keys if key in row), None)
    if key is None:
        raise InputError(
            f"there is no {keys[0]!r}: the keys are {', '.join(map(repr, row))}", fix=f"use lines of {_EXAMPLE}"
        )
    return row[key]


def _spans(value: Any, query: str) -> list[Span]:
    spans = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    strange = next((span for span in spans if not isinstance(span, Span)), None)
    if strange is not None:
        raise InputError(
            f"got {strange!r:.60}, expected a span", where=f"query {query!r}", fix='pass spans: Span("d1", 0, 42)'
        )
    return spans


class _Units:
    """Converts spans to ranges of counted units, by document."""

    def __init__(self, texts: Any) -> None:
        if isinstance(texts, Collection):
            texts = texts.documents
        of_kind("the texts", texts, Mapping | None, 'pass a Collection, or {"d1": "its text"}', where="texts")
        self._texts = texts
        self.name = "character" if texts is None else "token"
        self._ends: dict[str, tuple[list[int], list[int]]] = {}

    def ranges(self, spans: Iterable[Span]) -> dict[str, _Ranges]:
        ranges: dict[str, _Ranges] = {}
        for span in spans:
            first, end = span.start, span.end
            if self._texts is not None:
                starts, ends = self._tokens(span)
                first = bisect.bisect_right(ends, span.start)
                # An empty span contains no token, even within a token.
                end = max(first, bisect.bisect_left(starts, span.end)) if span.end > span.start else first
            ranges.setdefault(span.document, []).append((first, end))
        return ranges

    def _tokens(self, span: Span) -> tuple[list[int], list[int]]:
        """Return the starts and the ends of the tokens of the document."""
        text = (self._texts or {}).get(span.document)
        text = text.text if isinstance(text, Document) else text
        if not isinstance(text, str) or span.end > len(text):
            what = f"has {len(text)} characters" if isinstance(text, str) else "has no text"
            raise InputError(
                f"the document {what}, but a span is from {span.start} to {span.end}",
                where=f"document {span.document!r}",
                fix="pass the texts in which the offsets were counted, without titles",
            )
        if span.document not in self._ends:
            tokens = [match.span() for match in _TOKEN.finditer(text)]
            self._ends[span.document] = [s for s, _ in tokens], [e for _, e in tokens]
        return self._ends[span.document]


def _counted(query: str, results: Mapping[str, _Ranges], wanted: Mapping[str, _Ranges], repeats: Repeats) -> QuerySpans:
    relevant = retrieved = common = 0
    for document in {**wanted, **results}:
        # Changes of the number of relevant and of retrieved ranges at each position.
        changes: dict[int, list[int]] = {}
        for side, ranges in enumerate((wanted.get(document, ()), results.get(document, ()))):
            for start, end in ranges:
                changes.setdefault(start, [0, 0])[side] += 1
                changes.setdefault(end, [0, 0])[side] -= 1
        asked = times = 0
        for at, until in pairwise(sorted(changes)):
            asked, times = asked + changes[at][0], times + changes[at][1]
            size = until - at
            relevant += size * (asked > 0)
            retrieved += size * (times if repeats == "counted" else times > 0)
            common += size * (asked > 0 and times > 0)
    return QuerySpans(query, relevant, retrieved, common)

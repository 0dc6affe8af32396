"""Measures of spans by ranges agree with slow counts of single positions."""

import json
import math
import re

import pytest
from hypothesis import given, strategies as st

from rankgauge.corpus.collection import Collection
from rankgauge.corpus.spans import Span, read_spans, span_scores
from rankgauge.errors import FormatError, InputError, MismatchError, UnknownName

TEXTS = {"d1": "  one two  three\nfour five,six ", "d2": "a b c d e f g", "d3": "文書 😀 x"}


def spans_in(texts):
    def of(doc):
        ends = st.integers(0, len(texts[doc]))
        return st.tuples(ends, ends).map(lambda pair: Span(doc, min(pair), max(pair)))

    return st.lists(st.sampled_from(sorted(texts)).flatmap(of), max_size=6)


def by_loop(found, wanted, texts, repeats):
    """Return sets of (document, position): of characters, or of tokens by their characters."""

    def positions(span):
        letters = range(span.start, span.end)
        if texts is None:
            return {(span.document, letter) for letter in letters}
        return {
            (span.document, number)
            for number, token in enumerate(re.finditer(r"\S+", texts[span.document]))
            if set(letters) & set(range(*token.span()))
        }

    relevant = set().union(*map(positions, wanted))
    lists = [positions(span) for span in found]
    retrieved = set().union(*lists)
    total = sum(map(len, lists)) if repeats == "counted" else len(retrieved)
    common = len(relevant & retrieved)
    return (common / total if total else 0.0, common / len(relevant), common / (len(relevant) + total - common))


@given(
    found=spans_in(TEXTS),
    wanted=spans_in(TEXTS),
    texts=st.sampled_from([None, TEXTS]),
    repeats=st.sampled_from(["counted", "once"]),
)
def test_ranges_count_what_a_loop_over_positions_counts(found, wanted, texts, repeats):
    # An additional query, so that at least one position is relevant.
    scores = span_scores(
        {"q": found, "sure": [Span("d2", 0, 1)]},
        {"q": wanted, "sure": [Span("d2", 0, 1)]},
        texts=texts,
        repeats=repeats,
    )
    by_query = {one.query_id: one for one in scores.queries}
    if "q" not in by_query:
        assert not any(span.end > span.start for span in wanted) or texts is not None
        return
    one = by_query["q"]
    assert (one.precision, one.recall, one.iou) == by_loop(found, wanted, texts, repeats)


def test_a_worked_example_of_letters():
    scores = span_scores(
        {"q": [Span("d1", 0, 10), Span("d1", 5, 15), Span("d2", 0, 5)]}, {"q": [Span("d1", 8, 20), Span("d1", 18, 20)]}
    )
    # 12 are relevant, 25 are retrieved (5 of them twice), and 7 are both.
    assert scores.mean() == {"precision": 7 / 25, "recall": 7 / 12, "iou": 7 / 30}
    once = span_scores(
        {"q": [Span("d1", 0, 10), Span("d1", 5, 15), Span("d2", 0, 5)]}, {"q": [Span("d1", 8, 20)]}, repeats="once"
    )
    assert once.mean() == {"precision": 7 / 20, "recall": 7 / 12, "iou": 7 / 25}


def test_a_token_counts_for_each_span_that_touches_it():
    texts = {"d": "one two three"}
    scores = span_scores({"q": [Span("d", 2, 5)]}, {"q": [Span("d", 4, 13)]}, texts=texts)
    (one,) = scores.queries
    assert (one.relevant, one.retrieved, one.common) == (2, 2, 1)
    assert scores.unit == "token"


def test_the_mean_is_over_queries_with_relevant_spans():
    scores = span_scores(
        {"q1": [Span("d", 0, 4)], "q3": [Span("d", 0, 4)], "q4": [Span("d", 0, 1)]},
        {"q1": [Span("d", 0, 2)], "q2": [Span("d", 0, 2)], "q4": []},
    )
    assert [one.query_id for one in scores.queries] == ["q1", "q2"]
    assert scores.mean() == {"precision": 0.25, "recall": 0.5, "iou": 0.25}
    assert scores.left_out == 2
    assert "omitted: 2 queries" in scores.table().notes[1]
    assert not math.isnan(scores.queries[1].precision)


def test_other_ids_change_nothing():
    found = {"q": [Span("d1", 0, 9), Span("d2", 3, 5)]}
    wanted = {"q": [Span("d1", 4, 12)]}
    renamed = [{"x": [Span("z" + one.document, one.start, one.end) for one in of["q"]]} for of in (found, wanted)]
    assert span_scores(found, wanted).mean() == span_scores(*renamed).mean()


def test_a_collection_has_the_texts():
    scores = span_scores({"q": [Span("d2", 0, 3)]}, {"q": [Span("d2", 0, 1)]}, texts=Collection.of(TEXTS))
    assert scores.mean()["precision"] == 0.5
    assert repr(scores).startswith("<SpanScores: precision 0.5000")
    assert "IoU" in scores._repr_html_()


def test_spans_beyond_the_text_or_of_none_are_refused():
    with pytest.raises(InputError, match="has 13 characters, but a span is from 0 to 40"):
        span_scores({"q": [Span("d2", 0, 40)]}, {"q": [Span("d2", 0, 1)]}, texts=TEXTS)
    with pytest.raises(InputError, match="has no text"):
        span_scores({"q": [Span("d9", 0, 4)]}, {"q": [Span("d2", 0, 1)]}, texts=TEXTS)
    with pytest.raises(InputError, match="for the texts"):
        span_scores({}, {}, texts=["a"])


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (3, 2), (0.0, 2), (True, 2), ("0", 2)])
def test_an_invalid_span_is_refused(start, end):
    with pytest.raises(InputError, match="0 <= start <= end"):
        Span("d1", start, end)


def test_no_relevant_span_or_no_common_query_is_refused():
    with pytest.raises(InputError, match="no query has a relevant span"):
        span_scores({"q": [Span("d", 0, 1)]}, {"q": [Span("d", 1, 1)]})
    with pytest.raises(MismatchError, match="expected: 'q1'"):
        span_scores({"q": [Span("d", 0, 1)]}, {"q1": [Span("d", 0, 1)]})
    with pytest.raises(UnknownName, match="repeats"):
        span_scores({}, {}, repeats="twice")
    with pytest.raises(InputError, match="expected a span"):
        span_scores({"q": [("d", 0, 1)]}, {"q": []})


def test_spans_are_read_from_lines(tmp_path):
    rows = [
        {"query_id": "q1", "doc_id": "d1", "start": 0, "end": 4},
        {"qid": "q1", "document": 7, "start": 2, "end": 3, "note": "x"},
    ]
    path = tmp_path / "spans.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert read_spans(path) == {"q1": [Span("d1", 0, 4), Span("7", 2, 3)]}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"query_id": "q1", "doc_id": "d1", "start": 0}', "there is no 'end'"),
        ('{"query_id": "q1", "doc_id": "d1", "start": 5, "end": 2}', "from 5 to 2"),
        ('{"query_id": "q1", "doc_id": "d1", "start": 5, "end": NaN}', "line 1"),
        ('{"query_id": "", "doc_id": "d1", "start": 0, "end": 2}', "expected an id"),
        ("[1]", "expected an object"),
        ("", "there are no spans"),
    ],
    ids=["missing", "backwards", "nan", "no-id", "list", "empty"],
)
def test_a_line_that_does_not_fit_is_named(tmp_path, line, said):
    path = tmp_path / "spans.jsonl"
    path.write_text(line)
    with pytest.raises(FormatError, match=said):
        read_spans(path)

"""Conversion of results to hits, and the cached last input of retrievers."""

import math

import pytest
from hypothesis import given, strategies as st

from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers.hits import hits_of
from rankgauge.retrievers.protocol import aligned, holds, index_documents, search


class Documents(list):
    """A list that supports weak references."""


class Keeps:
    """Keeps its last input."""

    def __init__(self):
        self.times = 0

    def index(self, documents):
        self.times += 1
        self.ids = [document.id for document in documents]

    def search(self, queries, k):
        return [self.ids[:k] for _ in queries]


class Made(Keeps):
    """Indexes documents with its parts, each in a different way."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = parts

    def index(self, documents):
        super().index(documents)
        self.given = [change(documents) for _, change in self.parts]
        for (part, _), given_to_it in zip(self.parts, self.given, strict=True):
            index_documents(part, given_to_it)


def same(documents):
    return documents


def cut(documents):
    return Documents(Document(f"{document.id}#1") for document in documents)


DOCUMENTS = Documents([Document("d1"), Document("d2")])
OTHERS = Documents([Document("e1")])


# ---- shapes


@pytest.mark.parametrize(
    "found",
    [
        [("a", 3.0), ("b", 2.0), ("c", 1.0)],
        [("c", 1.0), ("a", 3.0), ("b", 2.0)],
        {"b": 2, "a": 3, "c": 1},
        [{"id": "a", "score": 3}, {"id": "c", "score": 1}, {"id": "b", "score": 2}],
        (row for row in [["a", 3], ["b", 2], ["c", 1]]),
    ],
    ids=["pairs", "pairs in any order", "a mapping", "mappings", "an iterator of lists"],
)
def test_every_shape_with_scores_gives_the_same_hits_best_first(found):
    hits = hits_of(found, 10)
    assert hits.pairs() == [("a", 3.0), ("b", 2.0), ("c", 1.0)]
    assert hits.scored


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([0.0, 0.5, -1.0, 2.0]))), st.integers(1, 9))
def test_hits_are_sorted_stably_without_repeats_and_cut(rows, k):
    ordered = sorted(rows, key=lambda row: -row[1])
    whole = list({name: (name, score) for name, score in reversed(ordered)}.values())
    whole.sort(key=ordered.index)
    hits = hits_of(rows, k)
    assert hits.pairs() == whole[:k]
    assert hits.repeated == len(rows) - len(whole)
    assert hits.beyond == max(0, len(whole) - k)


def test_equal_scores_stay_in_the_order_they_came():
    assert hits_of([("c", 1.0), ("a", 1.0), ("b", 2.0)], 10).ids == ["b", "c", "a"]


def test_of_repeats_the_best_counts():
    assert hits_of([("a", 1.0), ("b", 2.0), ("a", 3.0)], 10).pairs() == [("a", 3.0), ("b", 2.0)]


def test_ids_alone_are_scored_from_their_number_down_to_1():
    hits = hits_of(["b", "a", "b", "c"], 2)
    assert hits.pairs() == [("b", 2.0), ("a", 1.0)]
    assert (hits.scored, hits.repeated, hits.beyond) == (False, 1, 1)


@pytest.mark.parametrize(
    ("scores", "told"),
    [([1, 2, 3], True), ([1, 2], False), ([1, 3, 2], False), ([1, 1, 2], False), ([3], False)],
    ids=str,
)
def test_rising_scores_are_reported(scores, told):
    assert hits_of([(f"d{n}", s) for n, s in enumerate(scores)], 10).ascending is told


@pytest.mark.parametrize("score", [math.nan, math.inf, "high", "1.5", True, [1]], ids=repr)
def test_a_score_is_a_finite_number(score):
    with pytest.raises(InputError, match="expected a finite number"):
        hits_of([("a", 1.0), ("b", score)], 10)


def test_all_have_a_score_or_none():
    with pytest.raises(InputError, match="1 of 2 hits has a score"):
        hits_of([("a", 1.0), {"id": "b"}], 10)


@pytest.mark.parametrize("found", [None, "d1", b"d1", 7, {"ids": ["a"]}], ids=repr)
def test_what_is_no_ranking_is_named(found):
    with pytest.raises(InputError, match="expected a ranking"):
        hits_of(found, 10)


@pytest.mark.parametrize("found", [[["d1"]], [["d1"]] * 3, "d1", None], ids=repr)
def test_there_is_one_ranking_for_each_query(found):
    with pytest.raises(InputError, match=r"the retriever returned .* for 2 queries"):
        aligned(found, 2)


# ---- indexed documents


def test_the_same_documents_are_taken_in_once_and_others_again():
    keeps = Keeps()
    for documents in (DOCUMENTS, DOCUMENTS, OTHERS, DOCUMENTS):
        index_documents(keeps, documents)
    assert keeps.times == 3
    assert holds(keeps, DOCUMENTS)
    assert holds(keeps, OTHERS) is False
    assert holds(Keeps(), DOCUMENTS) is None


def test_a_part_that_was_given_other_documents_since_takes_in_its_own_again():
    part = Keeps()
    made = Made((part, cut))
    index_documents(made, DOCUMENTS)
    index_documents(part, DOCUMENTS)
    assert holds(made, DOCUMENTS) is False
    index_documents(made, DOCUMENTS)
    assert search(part, [Query("q1")], 1)[0].ids == ["d1#1"]
    index_documents(made, DOCUMENTS)
    assert made.times == 2


def test_one_part_cannot_hold_two_collections():
    part = Keeps()
    for parts in ([(part, same), (part, cut)], [(part, same), (Made((part, cut)), same)]):
        with pytest.raises(InputError, match="one Keeps was indexed with two collections"):
            index_documents(Made(*parts), DOCUMENTS)
    index_documents(Made((part, same), (part, same)), DOCUMENTS)


def test_an_index_that_failed_is_made_again():
    class Fails(Keeps):
        def index(self, documents):
            super().index(documents)
            if documents is OTHERS:
                raise OSError("full")

    fails = Fails()
    index_documents(fails, DOCUMENTS)
    with pytest.raises(OSError, match="full"):
        index_documents(fails, OTHERS)
    index_documents(fails, DOCUMENTS)
    assert fails.ids == ["d1", "d2"]


def test_what_cannot_be_remembered_is_given_its_documents_each_time():
    class Slotted:
        __slots__ = ("times",)

        def index(self, documents):
            self.times = getattr(self, "times", 0) + 1

        def search(self, queries, k):
            return []

    slotted = Slotted()
    index_documents(slotted, DOCUMENTS)
    index_documents(slotted, DOCUMENTS)
    assert slotted.times == 2
    assert holds(slotted, DOCUMENTS) is None

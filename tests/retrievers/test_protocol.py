"""Responses of any format become hits; invalid ones are reported with a fix."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rankgauge import Document as RealDocument, InputError, Query
from rankgauge.retrievers import BM25
from rankgauge.retrievers.hits import hits_of
from rankgauge.retrievers.protocol import index_documents, responses_of, search


class Document:
    def __init__(self, **parts):
        self.__dict__.update(parts)


@pytest.mark.parametrize(
    ("found", "ids"),
    [
        (["a", "b"], ["a", "b"]),
        ((name for name in "ab"), ["a", "b"]),
        ([7, 3], ["7", "3"]),
        (np.array([7, 3]), ["7", "3"]),
        ([np.str_("a"), np.int64(3)], ["a", "3"]),
        ([b"a"], ["a"]),
        ({"a": 2.0, "b": 1.0}, ["a", "b"]),
        ({"b": 1, "a": 2}.keys(), ["b", "a"]),
        ([("a", 2), ("b", np.float32(1))], ["a", "b"]),
        ([["a", 2.0], ["b", 1.0]], ["a", "b"]),
        ((["a", 2.0], ["b", 1.0]), ["a", "b"]),
        (([7, 2.5], [3, 1.5]), ["7", "3"]),
        ([Document(id="a", score=2.0), Document(id="b", score=1.0)], ["a", "b"]),
        ([Document(doc_id=7)], ["7"]),
        ([{"_id": "a", "_score": 1.5}], ["a"]),
        ([(Document(id="a"), 0.5)], ["a"]),
        (pd.Series(["a", "b"]), ["a", "b"]),
        ((), []),
    ],
    ids=lambda value: f"{value!r:.40}" if isinstance(value, list) else type(value).__name__,
)
def test_responses_of_many_shapes_are_hits(found, ids):
    assert hits_of(found, 10).ids == ids


@pytest.mark.parametrize(
    ("found", "fix"),
    [
        ({"a", "b"}, "a set has no order"),
        (frozenset("a"), "a set has no order"),
        (pd.DataFrame({"docno": ["a"], "score": [1.0]}), "list(zip(frame"),
        (pl.DataFrame({"docno": ["a"], "score": [1.0]}), "list(zip(frame"),
        ((np.array([7, 3, 5]), np.array([0.9, 0.5, 0.1])), "list(zip(ids, scores))"),
        ((["a", "b", "c"], [0.9, 0.5, 0.1]), "list(zip(ids, scores))"),
        (([7, 3], [0.9, 0.5]), "list(zip(ids, scores))"),
        ((["a"], [0.9]), "list(zip(ids, scores))"),
        (None, "an empty list for nothing found"),
        ("a", "an empty list for nothing found"),
    ],
    ids=["set", "frozenset", "pandas", "polars", "arrays", "lists", "two numbers", "one", "None", "text"],
)
def test_an_invalid_ranking_is_refused_with_the_right_format(found, fix):
    with pytest.raises(InputError, match="the retriever returned") as error:
        hits_of(found, 10)
    assert fix in error.value.fix
    assert "\n" not in error.value.what


@pytest.mark.parametrize(
    "found",
    [["d1\0", "d2"], [("d\0001", 0.5)], {"d1\0": 0.5}, [{"id": "d1\0", "score": 1}], [b"d1\0"], [("é\0", 1)]],
    ids=repr,
)
def test_an_id_with_a_nul_is_refused_by_its_name(found):
    with pytest.raises(InputError, match=r"document id '.+\\x00.*' contains a NUL byte"):
        hits_of(found, 10)


def test_a_class_is_refused_with_the_advice_to_instantiate_it():
    with pytest.raises(InputError, match="the class BM25") as error:
        responses_of(BM25)
    assert "BM25(...)" in error.value.fix


def of_langchain():
    kind = type("BaseRetriever", (), {"__module__": "langchain_core.retrievers"})
    return type("Mine", (kind,), {"invoke": lambda _self, _text: []})()


class Invoked:
    def invoke(self, text):
        return []


class Half:
    def search(self, queries, k):
        return []


@pytest.mark.parametrize(
    ("thing", "fix"),
    [
        (of_langchain(), "rankgauge.retrievers.LangChain(...)"),
        (Invoked(), "its method invoke"),
        (Half(), "index(documents)"),
        (7, "a function of a query's text, or an object with"),
    ],
    ids=["a class of one's own of a framework", "invoke", "search only", "a number"],
)
def test_an_incomplete_retriever_is_refused_with_the_missing_method(thing, fix):
    with pytest.raises(InputError, match="expected a retriever") as error:
        responses_of(thing)
    assert fix in error.value.fix


def test_a_batch_with_too_few_rankings_is_reported():
    class Short:
        def index(self, documents):
            pass

        def search(self, queries, k):
            return []

    with pytest.raises(InputError, match=r"returned 0 rankings for 1 query\n"):
        search(Short(), [Query("q", "text")], 3)


class Meddles:
    """Modifies its input, and its earlier output."""

    def __init__(self):
        self.returned = ["d1", "d2"]

    def index(self, documents):
        self.kept = documents
        if hasattr(documents, "clear"):
            documents.clear()

    def search(self, queries, k):
        if hasattr(queries, "reverse"):
            queries.reverse()
        return [self.returned for _ in queries]


def test_a_retriever_is_not_given_the_lists_of_its_caller():
    queries, documents = [Query("q1"), Query("q2")], [RealDocument("d1")]
    retriever = Meddles()
    index_documents(retriever, documents)
    found = search(retriever, queries, 2)
    retriever.returned.clear()
    assert [query.id for query in queries] == ["q1", "q2"]
    assert [document.id for document in documents] == ["d1"]
    assert [hits.ids for hits in found] == [["d1", "d2"], ["d1", "d2"]]


@pytest.mark.parametrize(
    "endless",
    [
        lambda: (f"d{n}" for n in itertools.count()),
        lambda: itertools.repeat(("d1", 1.0)),
        lambda: map(str, itertools.count()),
    ],
    ids=["generator", "one hit", "map"],
)
def test_an_iterator_that_does_not_end_is_cut_and_is_no_ranking(endless):
    with pytest.raises(InputError, match="more than 1,000,020 hits"):
        hits_of(endless(), 10)


def test_an_iterator_of_more_than_k_hits_is_read_to_its_end():
    found = hits_of(((f"d{n}", float(n)) for n in range(100_000)), 2)
    assert found.pairs() == [("d99999", 99999.0), ("d99998", 99998.0)]
    assert found.beyond == 99_998

"""The protocol tests of retrievers: a correct one passes, and each kind of fault is detected."""

import itertools
import math
import types

import pytest

from rankgauge import Document, InputError, Query
from rankgauge.testing import RetrieverCheck, check_retriever

DOCUMENTS = {
    "d1": "We open at nine.",
    "d2": {"title": "Opening hours", "text": "From nine to five, every day of the week."},
    "d3": "Books are lent for three weeks.",
    "d4": "A lost book is paid for.",
    "d5": "Bring books back before we close at five.",
}
QUERIES = {"q1": "nine", "q2": "books lent", "q3": "five", "q4": "open at nine", "q5": "the week"}


class Words:
    """Counts the words of the query in each document; a small, correct retriever."""

    def __init__(self):
        self.rows = None

    @property
    def settings(self):
        return {"type": "words", "fields": ("title", "text"), "key_env": "WORDS_KEY"}

    @property
    def size(self):
        return sum(map(len, self.rows.values()))

    def usage(self):
        return {"calls": 3, "seconds": 0.5}

    def index(self, documents):
        self.rows = {document.id: document.full_text.lower().split() for document in documents}

    def search(self, queries, k):
        return [self.ranking(query, k) for query in queries]

    def ranking(self, query, k):
        asked = set(query.text.lower().split())
        scores = {name: float(len(asked & set(row))) for name, row in self.rows.items()}
        order = sorted(scores, key=lambda name: (-scores[name], name))
        return [(name, scores[name]) for name in order if scores[name]][:k]


def check(retriever, **options):
    return check_retriever(retriever, DOCUMENTS, QUERIES, **options)


def named(checks, *, passed=True):
    return [one.name for one in checks if one.passed is passed]


def test_a_good_retriever_passes_over_the_sample():
    checks = check_retriever(Words())
    assert all(isinstance(one, RetrieverCheck) and one.passed for one in checks)
    assert len(checks) == 17
    assert {one.remark for one in checks} == {""}


def test_the_index_holds_all_documents_again_afterwards():
    retriever = Words()
    check(retriever)
    assert set(retriever.rows) == set(DOCUMENTS)


@pytest.mark.parametrize(
    ("documents", "queries"),
    [
        (DOCUMENTS, QUERIES),
        ([Document("d1", text="nine")], [Query("q", "nine")]),
        ((one for one in [Document("d1", text="nine")]), iter([Query("q", "nine")])),
    ],
    ids=["mappings", "lists", "generators"],
)
def test_texts_come_in_many_shapes(documents, queries):
    assert not named(check_retriever(Words(), documents, queries), passed=False)


def test_an_async_retriever_passes():
    class Later(Words):
        async def index(self, documents):
            super().index(documents)

        async def search(self, queries, k):
            return super().search(queries, k)

    assert not named(check(Later()), passed=False)


def test_a_callable_passes_and_skipped_checks_are_listed():
    words = Words()
    words.index(Document(name, text=text) for name, text in [("d1", "nine"), ("d9", "five")])
    checks = check_retriever(lambda text, k: words.ranking(Query("", text), k), None, QUERIES)
    left_out = {one.name: one.remark for one in checks if not one.passed}
    assert left_out == {
        "document ids are known": "its documents are unknown",
        "an empty collection returns empty rankings": "a callable has no index()",
        "unusual documents raise no error: empty, title only, other alphabets, duplicates, long": (
            "a callable has no index()"
        ),
        "indexing again replaces the index": "a callable has no index()",
        "settings are plain, without secrets": ("without settings, results of finished runs are not reused"),
    }


def test_the_ids_of_a_callable_are_compared_with_given_documents():
    with pytest.raises(InputError, match="document 'd9' was returned, but is not in the index"):
        check(lambda text: ["d9"] if text else [])


def test_ids_alone_have_no_scores_to_check():
    class Ids(Words):
        def ranking(self, query, k):
            return [name for name, _ in super().ranking(query, k)]

    left_out = [one for one in check(Ids()) if not one.passed]
    assert left_out == [
        RetrieverCheck(
            "scores are finite and in descending order", passed=False, remark="it returns no scores: ranks are used"
        )
    ]


def test_an_index_made_elsewhere_is_not_replaced():
    class Elsewhere(Words):
        def __init__(self):
            self.rows = {name: ["nine", "books"] for name in DOCUMENTS}

        def index(self, documents):
            pass

    assert len(named(check(Elsewhere(), indexing=False), passed=False)) == 3
    with pytest.raises(InputError, match="from an empty collection"):
        check(Elsewhere())


def test_almost_equal_scores_may_change_places_with_the_company():
    class Rounded(Words):
        def search(self, queries, k):
            rankings = super().search(queries, k)
            if len(queries) > 1:
                return rankings
            return [[(name, score) for name, score in rankings[0]][::-1]]

        def ranking(self, query, k):
            return [(name, 1.0) for name, _ in super().ranking(query, k)]

    remarks = {one.remark for one in check(Rounded())}
    assert "documents with almost equal scores change ranks" in remarks


# ---- one faulty retriever of each kind


def bad(**parts):
    """Return a function that creates a retriever with some faulty parts."""
    return types.new_class("Bad", (Words,), exec_body=lambda names: names.update(parts))()


def ranked(change):
    """Return a retriever with changed rankings."""
    return bad(ranking=lambda self, query, k: change(Words.ranking(self, query, k)))


def raises(error):
    raise error


def accumulates(self, documents):
    self.rows = (self.rows or {}) | {one.id: one.full_text.lower().split() for one in documents}


def from_a_list(self, documents):
    Words.index(self, [documents[place] for place in range(len(documents))])


def fails_on_empty(self, documents):
    Words.index(self, documents)
    self.first = [document.full_text[0] for document in documents]


def once_each(self, queries, k):
    """Finds nothing for a query that occurs earlier in the batch."""
    return [[] if query in queries[:place] else self.ranking(query, k) for place, query in enumerate(queries)]


COUNTER = itertools.count()
BAD = {
    "one ranking too few": (
        bad(search=lambda self, queries, k: Words.search(self, queries, k)[1:]),
        "4 rankings for 5 queries",
    ),
    "no ranking": (bad(search=lambda _self, queries, _k: [None for _ in queries]), "returned None"),
    "more than k": (ranked(lambda hits: hits * 30), "hits for k="),
    "k ignored": (bad(ranking=lambda self, query, _k: Words.ranking(self, query, 10**6)), "2 hits for k=1"),
    "twice": (ranked(lambda hits: hits[:1] * min(2, len(hits))), "returned twice"),
    "unknown id": (ranked(lambda _hits: [("x", 9.0)]), "'x' was returned, but is not in"),
    "ascending": (
        ranked(lambda hits: [(name, float(at)) for at, (name, _) in enumerate(hits)]),
        "scores are not in descending order",
    ),
    "NaN": (ranked(lambda hits: [(name, math.nan) for name, _ in hits]), "finite number"),
    "half scored": (ranked(lambda hits: [*hits[:1], *(name for name, _ in hits[1:])]), "has a score"),
    "nothing": (ranked(lambda _hits: []), "nothing was found for any of 5"),
    "needs a list": (bad(index=from_a_list), "it raised TypeError"),
    "fails on an empty query": (
        bad(ranking=lambda self, query, k: query.text[0] and Words.ranking(self, query, k)),
        r"an odd query \(empty\).*it raised IndexError",
    ),
    "fails on letters": (
        bad(
            ranking=lambda self, query, k: (
                (query.text.encode("latin-1", "strict") and Words.ranking(self, query, k)) if query.text else []
            )
        ),
        r"an odd query .*it raised UnicodeEncodeError",
    ),
    "fails when nothing is indexed": (
        bad(index=lambda self, documents: Words.index(self, documents) or max(self.rows)),
        r"index\(\) of an empty collection.*it raised ValueError",
    ),
    "fails on an empty document": (bad(index=fails_on_empty), r"index\(\) of odd documents.*IndexError"),
    "keeps old documents": (bad(index=accumulates), "from an empty collection"),
    "another ranking each time": (
        ranked(lambda hits: [(name, 1.0) for name, _ in hits[:: (-1) ** next(COUNTER)]]),
        "for the same query it returns",
    ),
    "order of queries lost": (
        bad(search=lambda self, queries, k: Words.search(self, sorted(queries, key=lambda query: query.id), k)),
        "with all queries it returns",
    ),
    "a query depends on its batch": (
        bad(search=lambda self, queries, k: [hits[: len(queries)] for hits in Words.search(self, queries, k)]),
        "with all queries it returns",
    ),
    "a query asked twice": (bad(search=once_each), "with all queries it returns"),
    "settings no mapping": (bad(settings="bm25"), "settings: got str, expected a mapping"),
    "settings no JSON": (bad(settings={"model": object()}), "they cannot be written as JSON"),
    "settings with NaN": (bad(settings={"k1": math.nan}), "they cannot be written as JSON"),
    "settings with numbers for keys": (bad(settings={1: 2}), "settings: they change when written"),
    "settings with a secret": (bad(settings={"http": [{"api_key": "s3"}]}), "'api_key' looks like"),
    "settings that change": (
        bad(settings=property(lambda _self: {"n": next(COUNTER)})),
        "settings: they change between two reads",
    ),
    "size no number": (bad(size="big"), "size: got 'big'"),
    "usage no numbers": (bad(usage=lambda _self: {"calls": "many"}), r"usage\(\): got"),
    "no retriever": (7, "expected a retriever"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_retriever_is_caught(kind):
    retriever, message = BAD[kind]
    with pytest.raises(InputError, match=f"(?s){message}") as caught:
        check(retriever)
    assert caught.value.fix


def test_stale_documents_are_caught_where_an_empty_collection_is_one():
    """A retriever that clears its index only for an empty collection keeps old documents."""

    def index(self, documents):
        listed = list(documents)
        accumulates(self, listed)
        if not listed:
            self.rows = {}

    with pytest.raises(InputError, match=r"odd.* was returned, but is not in the index"):
        check_retriever(
            bad(index=index),
            [Document("d1", text="nine"), Document("d2", text="Books"), Document("d3", text="x")],
            [Query("q1", "nine hours"), Query("q2", "books hours")],
        )


def test_a_secret_is_not_shown():
    with pytest.raises(InputError) as caught:
        check(bad(settings={"token": "s3cr3t"}))
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("k", [0, -1, True, 2.5, "10"])
def test_k_is_a_whole_number_from_one(k):
    with pytest.raises(InputError, match="is not valid"):
        check(Words(), k=k)


def test_there_is_something_to_check_with():
    with pytest.raises(InputError, match="no documents for the check"):
        check_retriever(Words(), {}, QUERIES)
    with pytest.raises(InputError, match="no queries for the check"):
        check_retriever(Words(), DOCUMENTS, [])

"""Only documents that pass the filter, and k of them if there are as many."""

import pytest
from overlapping import Overlapping

from rankgauge.corpus.collection import Document, Query
from rankgauge.errors import InputError
from rankgauge.retrievers import Filtered

DOCUMENTS = [
    Document(f"d{n}", text="bike " * (100 - n), fields={"year": 2000 + n % 4, "tags": ["a", n % 2]}) for n in range(60)
]
QUERY = [Query("q1", "bike", {"when": 2003}), Query("q2", "bike")]


def test_only_documents_with_the_value_are_found():
    retriever = Filtered(Overlapping(), field="year", value=2001)
    retriever.index(DOCUMENTS)
    assert [name for name, _ in retriever.search(QUERY, 3)[0]] == ["d1", "d5", "d9"]


def test_the_query_may_say_the_value_and_one_without_is_not_filtered():
    retriever = Filtered(Overlapping(), field="year", query_field="when")
    retriever.index(DOCUMENTS)
    found = [[name for name, _ in row] for row in retriever.search(QUERY, 3)]
    assert found == [["d3", "d7", "d11"], ["d0", "d1", "d2"]]


def test_a_list_wants_any_of_its_values_and_a_field_may_be_a_list():
    retriever = Filtered(Overlapping(), field="year", value=[2001, 2002])
    retriever.index(DOCUMENTS)
    assert [name for name, _ in retriever.search(QUERY, 3)[0]] == ["d1", "d2", "d5"]
    retriever = Filtered(Overlapping(), field="tags", value=1)
    retriever.index(DOCUMENTS)
    assert [name for name, _ in retriever.search(QUERY, 2)[0]] == ["d1", "d3"]


def test_it_asks_deeper_until_enough_pass_or_there_is_no_more():
    inner = Overlapping()
    retriever = Filtered(inner, field="id", value=["d30", "d59"], depth=2)
    retriever.index(DOCUMENTS)
    assert [name for name, _ in retriever.search(QUERY[:1], 2)[0]] == ["d30", "d59"]
    assert inner.asked == [4, 16, 60]
    assert len(retriever.search(QUERY[:1], 5)[0]) == 2


def test_a_callable_is_asked_deeper_too():
    asked = []

    def anything(_, k):
        asked.append(k)
        return [f"d{n}" for n in range(60)][:k]

    retriever = Filtered(anything, field="id", value="d59", depth=1)
    retriever.index(DOCUMENTS[59:])
    assert [name for name, _ in retriever.search(QUERY[:1], 1)[0]] == ["d59"]
    assert asked == [1, 4, 16, 64]


def test_what_the_inner_one_has_is_passed_on():
    inner = Overlapping()
    retriever = Filtered(inner, field="year", value=2001)
    assert retriever.settings["retriever"] == {"type": "overlapping"}
    assert retriever.settings["value"] == 2001
    assert (retriever.usage(), retriever.size) == ({"calls": 0}, None)
    retriever.close()
    assert inner.closed


def test_an_empty_collection_is_found_empty():
    retriever = Filtered(Overlapping(), field="year", value=2001)
    retriever.index([])
    assert retriever.search(QUERY, 5) == [[], []]


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="neither of query_field"):
        Filtered(Overlapping(), field="year")
    with pytest.raises(InputError, match="both of query_field"):
        Filtered(Overlapping(), field="year", query_field="when", value=1)
    with pytest.raises(InputError, match="got 3 for field"):
        Filtered(Overlapping(), field=3, value=1)
    with pytest.raises(InputError, match="depth"):
        Filtered(Overlapping(), field="year", value=1, depth=0)
    with pytest.raises(InputError, match="no document has a field 'yaer'"):
        Filtered(Overlapping(), field="yaer", value=1).index(DOCUMENTS)
    with pytest.raises(InputError, match=r"no document has '2001' in 'year'\nfix: .* such as 2000"):
        Filtered(Overlapping(), field="year", value="2001").index(DOCUMENTS)
    with pytest.raises(InputError, match="no documents yet"):
        Filtered(Overlapping(), field="year", value=1).search(QUERY, 1)


def test_repeats_are_not_taken_for_the_end():
    def repeating(text, k):
        return (["d0"] * 6 + ["d1", "d2"])[:k]

    retriever = Filtered(repeating, field="year", value=2001, depth=1)
    retriever.index(DOCUMENTS)
    assert [name for name, _ in retriever.search(QUERY[:1], 1)[0]] == ["d1"]


def test_a_query_that_has_enough_is_not_asked_again():
    asked = []

    class Counting(Overlapping):
        def search(self, queries, k):
            asked.append([query.id for query in queries])
            return super().search(queries, k)

    retriever = Filtered(Counting(), field="year", query_field="when", depth=1)
    retriever.index(DOCUMENTS)
    retriever.search(QUERY, 3)
    assert asked[0] == ["q1", "q2"]
    assert all(names == ["q1"] for names in asked[1:])
    assert len(asked) == 2

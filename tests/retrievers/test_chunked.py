"""Documents ranked by their chunks: aggregation, and the depth of searches."""

import pytest
from hypothesis import given, strategies as st
from overlapping import Overlapping

from rankgauge.corpus.chunking import FixedChunker, TokenChunker
from rankgauge.corpus.collection import Document, Query
from rankgauge.corpus.spans import Span, span_scores
from rankgauge.errors import InputError, UnknownName
from rankgauge.retrievers import TYPES, Chunked
from rankgauge.retrievers.protocol import Retriever

pytest.importorskip("chonkie", reason="without chonkie (NumPy 2) nothing is cut")

DOCUMENTS = [
    Document("d1", text="bike shop in town bike bike repair on site"),
    Document("d2", text="old town hall and bike path bike path there"),
    Document("d3", text="town museum"),
]
QUERY = [Query("q1", "bike town")]


def chunked(roll_up, **options):
    retriever = Chunked(Overlapping(), TokenChunker(3), roll_up=roll_up, **options)
    retriever.index(DOCUMENTS)
    return retriever


@pytest.mark.parametrize(
    ("roll_up", "wanted"),
    [
        # Scores of the chunks of d1: 1, 3, and 0; of d2: 1, 2, and 0 (bike path there: 1); of d3:
        # 1.
        ("max", [("d1", 3.0), ("d2", 1.0), ("d3", 1.0)]),
        ("first", [("d1", 1.0), ("d2", 1.0), ("d3", 1.0)]),
        ("sum", [("d1", 4.0), ("d2", 3.0), ("d3", 1.0)]),
    ],
)
def test_the_roll_up_is_the_one_declared(roll_up, wanted):
    assert chunked(roll_up).search(QUERY, 10) == [wanted]


def slow(hits, roll_up):
    """Independent check: all chunks of each document, then the policy as documented."""
    documents = {}
    for place, (name, score) in enumerate(hits):
        document, _, number = name.rpartition("#")
        documents.setdefault(document, []).append((place, int(number), score))
    rows = []
    for document, chunks in documents.items():
        scores = [s for _, _, s in chunks]
        if roll_up == "first":
            scores = [s for _, number, s in chunks if number == 1]
        if scores:
            value = sum(scores) if roll_up == "sum" else max(scores)
            of_use = [p for p, number, _ in chunks if roll_up != "first" or number == 1]
            rows.append((-value, min(of_use), document))
    return [(document, -value) for value, _, document in sorted(rows)]


@given(
    texts=st.lists(st.lists(st.sampled_from("abcd"), max_size=9), min_size=1, max_size=6),
    roll_up=st.sampled_from(["max", "first", "sum"]),
    k=st.integers(1, 8),
    depth=st.integers(1, 3),
)
def test_rankings_are_those_of_all_chunks(texts, roll_up, k, depth):
    documents = [Document(f"d{n}", text=" ".join(words)) for n, words in enumerate(texts)]
    inner = Overlapping()
    retriever = Chunked(inner, TokenChunker(2, 1), roll_up=roll_up, depth=depth)
    retriever.index(documents)
    query = [Query("q", "a b")]
    (found,) = retriever.search(query, k)
    asked = inner.asked[-1] if inner.asked else 0
    hits = inner.search(query, asked)[0] if asked else []
    wanted = slow(hits, roll_up)[:k]
    assert found == wanted
    if roll_up != "sum":
        # For these policies, the depth does not matter.
        full = slow(inner.search(query, 10_000)[0], roll_up)
        assert [score for _, score in found] == [score for _, score in full[:k]]


@given(
    texts=st.lists(st.lists(st.sampled_from("abcd"), min_size=1), min_size=1, max_size=6),
    roll_up=st.sampled_from(["max", "first", "sum"]),
)
def test_chunks_as_long_as_the_documents_change_nothing(texts, roll_up):
    documents = [Document(f"d{n}", "a b", " ".join(words)) for n, words in enumerate(texts)]
    whole = Overlapping()
    retriever = Chunked(Overlapping(), FixedChunker(10_000), roll_up=roll_up)
    for one in (whole, retriever):
        one.index(documents)
    query = [Query("q", "a c"), Query("q2", "d")]
    assert retriever.search(query, 4) == whole.search(query, 4)


def test_renaming_the_documents_renames_the_ranking():
    named = Chunked(Overlapping(), TokenChunker(3))
    named.index([Document("x#" + d.id, text=d.text) for d in DOCUMENTS])
    renamed = [[("x#" + name, score) for name, score in row] for row in chunked("max").search(QUERY, 9)]
    assert named.search(QUERY, 9) == renamed


def test_it_asks_deeper_until_there_are_enough_documents():
    many = [Document("long", text="bike " * 90), Document("short", text="one bike")]
    inner = Overlapping()
    retriever = Chunked(inner, TokenChunker(1), depth=2)
    retriever.index(many)
    assert [name for name, _ in retriever.search(QUERY, 2)[0]] == ["long", "short"]
    assert inner.asked == [4, 16, 64, 92]


def test_it_stops_when_the_retriever_has_no_more():
    retriever = chunked("max", depth=3)
    inner = retriever.retriever
    assert len(retriever.search([Query("q", "museum")], 2)[0]) == 1
    assert inner.asked == [6]


def test_only_queries_that_need_it_are_asked_again():
    asked = []

    class Counting(Overlapping):
        def search(self, queries, k):
            asked.append([query.id for query in queries])
            return super().search(queries, k)

    retriever = Chunked(Counting(), TokenChunker(1), depth=1)
    retriever.index([Document("a", text="bike bike bike"), Document("b", text="town hall bike")])
    found = retriever.search([Query("q1", "hall"), Query("q2", "bike")], 2)
    assert [[name for name, _ in row] for row in found] == [["b"], ["a", "b"]]
    assert asked == [["q1", "q2"], ["q2"]]


def test_an_index_that_failed_is_none():
    class Full(Overlapping):
        def index(self, documents):
            super().index(documents)
            if len(self.words) > 2:
                raise OSError("disk full")

    retriever = Chunked(Full(), TokenChunker(3))
    retriever.index(DOCUMENTS[2:])
    with pytest.raises(OSError, match="disk full"):
        retriever.index(DOCUMENTS)
    with pytest.raises(InputError, match="no documents yet"):
        retriever.search(QUERY, 5)


def test_a_sync_or_async_callable_can_be_wrapped():
    async def waiting(_, k):
        return [("d2#0001", 0.9), ("d1#0001", 0.5)][:k]

    retriever = Chunked(waiting, TokenChunker(3))
    retriever.index(DOCUMENTS)
    assert retriever.search(QUERY, 5) == [[("d2", 0.9), ("d1", 0.5)]]
    assert isinstance(retriever, Retriever)


def test_nothing_is_found_in_nothing():
    retriever = Chunked(Overlapping(), FixedChunker(10))
    retriever.index([])
    assert retriever.search(QUERY, 5) == [[]]
    retriever.index([Document("d1"), Document("d2", text="   ")])
    assert retriever.search([*QUERY, Query("q2", "")], 5) == [[], []]


def test_indexing_again_replaces_the_chunks():
    retriever = chunked("max")
    retriever.index([Document("d9", text="a bike")])
    assert retriever.search(QUERY, 5) == [[("d9", 1.0)]]
    assert retriever.spans(QUERY, 5) == [[Span("d9", 0, 6)]]


def test_spans_of_chunks_can_be_measured():
    retriever = chunked("max")
    spans = retriever.spans(QUERY, 2)
    assert [DOCUMENTS[0].text[span.start : span.end] for span in spans[0][:1]] == ["town bike bike "]
    assert [span.document for span in spans[0]] == ["d1", "d1"]
    scores = span_scores({"q1": spans[0]}, {"q1": [spans[0][0]]})
    assert scores.mean()["recall"] == 1.0


def test_settings_contain_the_policy_and_the_inner_settings():
    settings = chunked("sum", depth=7).settings
    assert (settings["roll_up"], settings["depth"], settings["titles"]) == ("sum", 7, True)
    assert settings["retriever"] == {"type": "overlapping"}
    assert settings["chunker"]["type"] == "token"
    assert Chunked(lambda _: [], FixedChunker(3)).settings is None
    assert TYPES["chunked"] == "Chunked"


def test_what_the_inner_one_has_is_passed_on():
    inner = Overlapping()
    retriever = Chunked(inner, FixedChunker(9))
    retriever.index(DOCUMENTS)
    retriever.search(QUERY, 1)
    assert retriever.usage()["calls"] == len(inner.asked)
    assert retriever.size is None
    retriever.close()
    assert inner.closed
    assert Chunked(lambda _: [], FixedChunker(9)).usage() == {}


def test_sums_of_no_scores_or_of_distances_are_refused():
    for found, said in ((["d1#0001"], "no scores"), ([("d1#0001", -0.5)], "negative scores only")):
        retriever = Chunked(lambda _, found=found: found, TokenChunker(3), roll_up="sum")
        retriever.index(DOCUMENTS)
        with pytest.raises(InputError, match=said):
            retriever.search(QUERY, 5)


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="no documents yet"):
        Chunked(Overlapping(), FixedChunker(9)).search(QUERY, 5)
    with pytest.raises(UnknownName, match="mean"):
        Chunked(Overlapping(), FixedChunker(9), roll_up="mean")
    with pytest.raises(InputError, match="depth=0"):
        Chunked(Overlapping(), FixedChunker(9), depth=0)
    retriever = Chunked(lambda _: ["d1"], FixedChunker(9))
    retriever.index(DOCUMENTS)
    with pytest.raises(InputError, match="not an indexed chunk"):
        retriever.search(QUERY, 5)

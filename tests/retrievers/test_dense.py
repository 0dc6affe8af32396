"""Dense retrieval: exact search to the last bit, approximate search with a reported recall."""

import json

import numpy as np
import pytest

from rankgauge import Document, Query
from rankgauge.errors import InputError, UnknownName
from rankgauge.retrievers import Dense, HashingEncoder
from rankgauge.retrievers.protocol import Retriever


class Table:
    """Vectors by text."""

    def __init__(self, vectors):
        self.vectors = vectors
        self.batches = []

    def encode_documents(self, texts):
        self.batches.append(len(texts))
        return np.array([self.vectors[text] for text in texts])

    encode_queries = encode_documents


def corpus(count, width, seed=0, copies=0):
    """Return vectors of documents and queries; some documents are copies of others."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((count, width)).astype(np.float32)
    if copies:
        vectors[rng.integers(count, size=copies)] = vectors[rng.integers(count, size=copies)]
    queries = rng.standard_normal((37, width)).astype(np.float32)
    named = {f"d{n}": row for n, row in enumerate(vectors)}
    return named | {f"q{n}": row for n, row in enumerate(queries)}


def built(vectors, **options):
    retriever = Dense(Table(vectors), **options)
    retriever.index([Document(name, text=name) for name in vectors if name[0] == "d"])
    return retriever, [Query(name, name) for name in vectors if name[0] == "q"]


def exact(vectors, query, similarity):
    """Return pairs by definition, with the widest floats available."""
    q = vectors[query].astype(np.longdouble)
    found = []
    for place, (name, row) in enumerate(vectors.items()):
        if name[0] == "d":
            d = row.astype(np.longdouble)
            score = (d * q).sum()
            if similarity == "cosine":
                score /= np.sqrt((d * d).sum()) * np.sqrt((q * q).sum())
            found.append((-score, place, name))
    return [(name, float(-minus)) for minus, _, name in sorted(found)]


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize(("count", "width", "k"), [(5, 3, 10), (400, 16, 7), (301, 1, 20)])
def test_scores_and_order_are_those_of_the_definition(similarity, count, width, k):
    vectors = corpus(count, width)
    retriever, queries = built(vectors, similarity=similarity)
    for query, ranking in zip(queries, retriever.search(queries, k), strict=True):
        wanted = exact(vectors, query.id, similarity)[:k]
        assert [s for _, s in ranking] == pytest.approx([s for _, s in wanted], abs=2e-6, rel=1e-6)
        if width > 1:
            assert [name for name, _ in ranking] == [name for name, _ in wanted]


@pytest.mark.parametrize("search", ["exact", "usearch"])
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_query_gets_the_same_to_the_last_bit_alone_and_among_others(search, similarity):
    vectors = corpus(700, 67, copies=60)
    retriever, queries = built(vectors, similarity=similarity, search=search)
    together = retriever.search(queries, 25)
    assert together == [retriever.search([query], 25)[0] for query in queries]
    assert together == retriever.search(queries[:20], 25) + retriever.search(queries[20:], 25)


def test_blocks_of_queries_change_nothing(monkeypatch):
    vectors = corpus(300, 9, copies=30)
    retriever, queries = built(vectors)
    whole = retriever.search(queries, 5)
    monkeypatch.setattr("rankgauge.retrievers.dense._CELLS", 700)
    assert retriever.search(queries, 5) == whole


def test_equal_scores_keep_the_order_of_the_collection():
    same = np.array([0.6, 0.8], dtype=np.float32)
    vectors = {f"d{n}": same if n % 3 else -same for n in range(50)} | {"q": same}
    retriever, queries = built(vectors)
    wanted = [f"d{n}" for n in range(50) if n % 3]
    assert [name for name, _ in retriever.search(queries, 12)[0]] == wanted[:12]


def test_a_near_tie_that_32_bits_cannot_tell_is_ranked_right():
    # The products are 1 and 1 + 2**-30, from numbers that 32 bits represent.
    vectors = {
        "d0": np.array([1.0, 0.0], dtype=np.float32),
        "d1": np.array([1.0, 2.0**-30], dtype=np.float32),
        "d2": np.array([0.5, 0.0], dtype=np.float32),
        "q": np.array([1.0, 1.0], dtype=np.float32),
    }
    retriever, queries = built(vectors, similarity="dot")
    assert retriever.search(queries, 1) == [[("d1", 1 + 2.0**-30)]]


def test_many_near_ties_are_ranked_right():
    # The same numbers in other orders: their sums differ only in the last bits, but 32-bit sums
    # differ by more than that.
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(64).astype(np.float32)
    vectors = {}
    for n in range(300):
        row = rng.permutation(numbers)
        row[0] = np.nextafter(row[0], np.float32(9), dtype=np.float32)
        vectors[f"d{n}"] = row
    vectors["q"] = np.ones(64, dtype=np.float32)
    retriever, queries = built(vectors, similarity="dot")
    for k in (1, 5, 50):
        assert retriever.search(queries, k) == [exact(vectors, "q", "dot")[:k]]


def test_documents_are_encoded_in_batches():
    vectors = corpus(100, 4)
    table = Table(vectors)
    retriever = Dense(table, batch=30)
    retriever.index(Document(f"d{n}", text=f"d{n}") for n in range(100))
    assert table.batches == [30, 30, 30, 10]
    assert retriever.search([Query("q", "d77")], 1)[0][0][0] == "d77"


def test_a_vector_of_zeros_has_cosine_0():
    vectors = {"d1": np.zeros(2), "d2": np.array([-1.0, 0]), "q": np.array([2.0, 0])}
    retriever, queries = built(vectors)
    assert retriever.search(queries, 5) == [[("d1", 0.0), ("d2", -1.0)]]
    vectors["q"] = np.zeros(2)
    assert retriever.search(queries, 5) == [[("d1", 0.0), ("d2", 0.0)]]


@pytest.mark.parametrize("search", ["exact", "usearch"])
def test_empty_texts_queries_and_collections_work(search):
    retriever = Dense(HashingEncoder(64), search=search)
    with pytest.raises(InputError, match="no documents yet"):
        retriever.search([Query("q")], 1)
    retriever.index([])
    assert retriever.search([Query("q", "a")], 5) == [[]]
    retriever.index([Document("d1"), Document("d2", text="hours")])
    assert retriever.search([], 5) == []
    assert len(retriever.search([Query("q", "")], 50)[0]) == 2
    assert retriever.search([Query("q", "hours")], 1)[0][0][0] == "d2"
    retriever.index([Document("d3", text="hours")])
    assert [name for name, _ in retriever.search([Query("q", "hours")], 9)[0]] == ["d3"]


def test_the_graph_finds_most_and_tells_how_many():
    vectors = corpus(2000, 24)
    retriever, queries = built(vectors, search="usearch")
    flat, _ = built(vectors)
    true, found = flat.search(queries, 10), retriever.search(queries, 10)
    shares = [len({*dict(a)} & {*dict(b)}) / 10 for a, b in zip(true, found, strict=True)]
    assert retriever.recall_for(queries) == pytest.approx(np.mean(shares))
    assert flat.recall_for(queries) == flat.recall == 1.0
    assert 0.8 < retriever.recall <= 1.0
    assert retriever.size > flat.size == 2000 * 24 * 4
    # Hits have the scores of the exact search.
    assert all(dict(a)[n] == s for a, b in zip(true, found, strict=True) for n, s in b if n in dict(a))
    again, _ = built(vectors, search="usearch")
    assert again.search(queries, 10) == found


def test_a_poor_graph_has_a_poor_recall():
    vectors = corpus(3000, 48)
    poor, queries = built(vectors, search="usearch", connectivity=2, expansion_add=1, expansion_search=1)
    good, _ = built(vectors, search="usearch")
    assert poor.recall < 0.6 < good.recall
    assert poor.recall_for(queries) < 0.6
    # Independent check: each of a hundred documents searches its neighbors, excluding itself.
    shares = []
    flat, _ = built(vectors)
    for n in np.linspace(0, 2999, 100).astype(int):
        own = [Query("q", f"d{n}")]
        true, found = ([name for name, _ in r.search(own, 11)[0] if name != f"d{n}"][:10] for r in (flat, poor))
        shares.append(len({*true} & {*found}) / 10)
    assert poor.recall == pytest.approx(np.mean(shares))
    unmeasured, _ = built(vectors, search="usearch", recall_sample=0)
    assert unmeasured.recall is None


def test_a_function_of_texts_is_an_encoder_without_settings():
    retriever = Dense(lambda texts: [[len(text), 1.0] for text in texts])
    retriever.index([Document("d1", text="aaaa"), Document("d2", text="a")])
    assert [name for name, _ in retriever.search([Query("q", "aaaaaaaa")], 5)[0]] == ["d1", "d2"]
    assert retriever.settings is None
    assert retriever.usage() == {}
    assert isinstance(retriever, Retriever)


def test_settings_hold_what_the_ranking_depends_on():
    one = Dense(HashingEncoder())
    assert json.loads(json.dumps(one.settings)) == one.settings
    assert "connectivity" not in one.settings
    assert Dense(HashingEncoder(), search="usearch").settings["connectivity"] == 16
    assert Dense(HashingEncoder(), similarity="dot").settings != one.settings


@pytest.mark.parametrize(
    ("vectors", "match"),
    [
        ([[1.0, 2.0]], r"returned \(1, 2\) for 2 texts"),
        ([1.0, 2.0], r"returned \(2,\) for 2 texts"),
        ([[1.0], [1.0, 2.0]], "for 2 texts"),
        ([[], []], "for 2 texts"),
        (None, "NoneType for 2 texts"),
        ([["a"], ["b"]], "for 2 texts"),
        ([[1.0, 0.0], [np.nan, 1.0]], "document 'd2'.*NaN"),
        ([[1.0, 0.0], [0.0, -np.inf]], "document 'd2'.*NaN"),
        ([[1e30, 0.0], [0.0, 1.0]], "document 'd1'.*beyond"),
    ],
    ids=str,
)
def test_what_is_no_vector_is_named(vectors, match):
    retriever = Dense(lambda _: vectors)
    with pytest.raises(InputError, match=match):
        retriever.index([Document("d1"), Document("d2")])


def test_a_query_or_a_batch_of_another_width_is_refused():
    retriever = Dense(lambda texts: [[1.0] * len(texts[0])] * len(texts), batch=1)
    retriever.index([Document("d1", text="ab")])
    with pytest.raises(InputError, match=r"returned \(1, 3\)") as caught:
        retriever.search([Query("q", "abc")], 1)
    assert "2 numbers" in caught.value.fix
    with pytest.raises(InputError, match=r"returned \(1, 3\)"):
        retriever.index([Document("d1", text="ab"), Document("d2", text="abc")])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"similarity": "cosin"}, UnknownName),
        ({"search": "faiss"}, UnknownName),
        ({"batch": 0}, InputError),
        ({"connectivity": 1}, InputError),
        ({"recall_sample": -1}, InputError),
        ({"encoder": "minilm"}, InputError),
    ],
    ids=str,
)
def test_invalid_options_are_named(options, error):
    with pytest.raises(error) as caught:
        Dense(**{"encoder": HashingEncoder(), **options})
    assert caught.value.fix


def test_recall_leaves_out_the_document_that_asks():
    retriever, _ = built(corpus(40, 8), search="usearch")
    assert retriever.recall == 1.0

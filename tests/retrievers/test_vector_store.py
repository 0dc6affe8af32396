"""Common behavior of vector stores, with a store that is a list."""

from pathlib import Path

import numpy as np
import pytest

from rankgauge import Document, InputError, Query, RankgaugeError
from rankgauge.retrievers import HashingEncoder
from rankgauge.retrievers.vector_store import (
    Existing,
    VectorStore,
    folder_size,
    id_in,
    secret_of,
    text_of,
)
from rankgauge.testing import check_retriever


class Listed(VectorStore):
    """A store in a dictionary of collections, which may also be filled externally."""

    TYPE = "listed"
    LIBRARIES = ("numpy",)

    def __init__(self, encoder, collections=None, **options):
        known = {
            "collection": "ours", "similarity": "cosine", "existing": False, "replace": False,
            "id_field": None, "filter_field": None,
        }  # fmt: skip
        super().__init__(encoder, **(known | options))
        self.collections = {} if collections is None else collections
        self.limits = []

    def _close(self):
        pass

    def _describe(self):
        rows = self.collections.get(self.collection)
        return None if rows is None else Existing("cosine", len(rows[0][1]) if rows else None)

    def _create(self, dimensions):
        self.collections[self.collection] = []

    def _drop(self):
        del self.collections[self.collection]

    def _add(self, ids, vectors, values):
        self.collections[self.collection] += zip(ids, vectors, values, strict=True)

    def _nearest(self, vectors, limit, value):
        self.limits.append((len(vectors), limit, value))
        rows = [row for row in self.collections[self.collection] if value in {None, row[2]}]
        found = []
        for vector in vectors:
            scored = [(name, float(held @ vector)) for name, held, _ in rows]
            found.append(sorted(scored, key=lambda row: -row[1])[:limit])
        return found


def chunks(count, documents):
    """Return chunks of documents; those of the first are all nearer than those of the others."""
    rows = []
    for n in range(documents):
        angle = n / 10
        for part in range(count):
            vector = np.array([np.cos(angle + part / 1e4), np.sin(angle + part / 1e4)])
            rows.append((f"d{n}", vector.astype(np.float32), None))
    return {"ours": rows}


def east(texts):
    return [[1.0, 0.0]] * len(texts)


def test_another_server_has_other_settings_without_its_secrets(monkeypatch):
    monkeypatch.setenv("STORE_KEY", "s3cr3t-key")

    class Served(Listed):
        def __init__(self, url, key_env=None):
            super().__init__(HashingEncoder(64))
            self.key = self._record_server(url, key_env)

    store = Served("https://me:s3cr3t@one:6333/a?k=s3cr3t", "STORE_KEY")
    other = Served("https://two:6333")
    assert (store.key, other.key) == ("s3cr3t-key", None)
    assert store.settings["server"] == "https://one:6333/a"
    assert store.settings != other.settings


def test_the_retriever_contract_is_satisfied():
    checks = check_retriever(Listed(HashingEncoder(64)))
    assert {check.name for check in checks if not check.passed} == set()


def test_chunks_are_read_deeper_until_there_are_k_documents():
    store = Listed(east, chunks(9, 6), existing=True)
    (ranking,) = store.search([Query("q", "x")], 5)
    assert [name for name, _ in ranking] == ["d0", "d1", "d2", "d3", "d4"]
    assert ranking[0][1] == pytest.approx(1.0)
    assert [limit for _, limit, _ in store.limits] == [5, 20, 80]


def test_chunks_without_end_are_not_read_for_ever():
    store = Listed(east, chunks(5000, 2), existing=True)
    (ranking,) = store.search([Query("q", "x")], 2)
    assert [name for name, _ in ranking] == ["d0"]
    assert store.limits[-1][1] == 128


def test_equal_scores_are_ordered_by_id():
    store = Listed(east)
    store.index([Document(name, text="x") for name in "cab"])
    assert [name for name, _ in store.search([Query("q", "x")], 3)[0]] == ["a", "b", "c"]


def test_vectors_of_zeros_have_no_cosine_and_an_inner_product_of_zero():
    def zero_for_empty(texts):
        return [[float(bool(text)), 0.0] for text in texts]

    documents = [Document("empty"), Document("full", text="x")]
    queries = [Query("1", ""), Query("2", "x")]
    store = Listed(zero_for_empty)
    store.index(documents)
    assert store.search(queries, 9) == [[], [("full", 1.0)]]
    other = Listed(zero_for_empty, similarity="dot")
    other.index(documents)
    assert other.search(queries, 9) == [
        [("empty", 0.0), ("full", 0.0)], [("full", 1.0), ("empty", 0.0)]
    ]  # fmt: skip


def test_queries_are_asked_together_by_what_they_filter_by():
    kinds = ["a", None, 1, True, "a", None]
    store = Listed(east, filter_field="kind")
    store.index([Document("d", text="x", fields={"kind": "a"})])
    queries = [Query(str(n), "x", {"kind": kind}) for n, kind in enumerate(kinds)]
    rankings = store.search(queries, 3)
    assert [bool(ranking) for ranking in rankings] == [True, True, False, False, True, True]
    assert [(count, value) for count, _, value in store.limits] == [
        (2, "a"), (2, None), (1, 1), (1, True)
    ]  # fmt: skip


def test_many_documents_and_queries_come_in_batches():
    sizes = []

    def encode(texts):
        sizes.append(len(texts))
        return east(texts)

    store = Listed(encode)
    store.index(Document(f"d{n}", text="x") for n in range(600))
    assert sizes == [256, 256, 88]
    store.search([Query(str(n), "x") for n in range(130)], 3)
    assert [count for count, _, _ in store.limits] == [64, 64, 2]


@pytest.mark.parametrize(
    ("encoded", "wanted"),
    [
        ([[1.0], [1.0, 2.0]], "returned list for 2 texts"),
        ([[1.0, 2.0]], r"returned \(1, 2\) for 2 texts"),
        ([1.0, 2.0], r"returned \(2,\) for 2 texts"),
        ([[], []], "returned list for 2 texts"),
        ([[1.0], [float("nan")]], "not finite"),
        ([["a"], ["b"]], "returned list for 2 texts"),
        (None, r"returned \(\) for 2 texts"),
    ],
    ids=["ragged", "fewer", "flat", "empty", "nan", "text", "none"],
)
def test_what_is_no_array_of_vectors_is_refused(encoded, wanted):
    with pytest.raises(InputError, match=wanted):
        Listed(lambda _: encoded).index([Document("d1"), Document("d2")])


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"similarity": "cosin"}, "did you mean cosine"),
        ({"existing": True, "replace": True}, "omit one of them"),
        ({"collection": ""}, "for the name"),
        ({"id_field": "id", "filter_field": "id"}, "is both id_field and filter_field"),
        ({"encoder": 7}, "got int, expected an encoder"),
    ],
    ids=["similarity", "existing", "name", "filter", "encoder"],
)
def test_options_that_are_not_possible_are_refused(options, wanted):
    encoder = options.pop("encoder", east)
    with pytest.raises(RankgaugeError, match=wanted):
        Listed(encoder, **options)


def test_settings_are_those_of_the_encoder_and_the_store():
    settings = Listed(HashingEncoder(64), filter_field="kind").settings
    assert settings["encoder"] == {"type": "hashing", "dimensions": 64}
    assert (settings["type"], settings["filter_field"]) == ("listed", "kind")
    assert set(settings["versions"]) == {"numpy"}
    assert Listed(east).settings is None
    assert Listed(HashingEncoder(64), existing=True).settings is None


def test_a_query_encoder_of_another_length_is_refused():
    class Odd(HashingEncoder):
        def encode_queries(self, texts):
            return [[1.0]] * len(texts)

    store = Listed(Odd(64))
    store.index([Document("d1", text="x")])
    with pytest.raises(InputError, match=r"1 numbers.*vectors of 64"):
        store.search([Query("q", "x")], 3)


def test_small_things(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").write_bytes(b"123")
    assert folder_size(tmp_path) == 8
    assert folder_size(tmp_path / "a") == 5
    assert [text_of(value) for value in ("a", 7, True, None)] == ["a", "7", "true", None]
    assert id_in({"id": 7}, "id", "x") == "7"
    with pytest.raises(InputError, match="it has page"):
        id_in({"page": 7}, "id", "x")
    monkeypatch.setenv("KEY", "s3cret")
    assert secret_of("KEY", "x") == "s3cret"
    assert secret_of(None, "x") is None


def test_a_folder_without_a_name_is_removed_with_the_store():
    for end in (Listed.close, lambda owner: None):
        owner = Listed(east)
        folder = Path(owner._record_folder(None))  # noqa: SLF001 - called by each store
        assert folder_size(folder) == owner.size == 0
        end(owner)
        del owner
        assert not folder.exists()


def test_a_document_has_the_score_of_its_best_chunk():
    rows = [("a", [0.6, 0.8]), ("b", [0.8, 0.6]), ("a", [1.0, 0.0]), ("b", [0.0, 1.0])]
    held = [(name, np.array(vector, dtype=np.float32), None) for name, vector in rows]
    store = Listed(east, {"ours": held}, existing=True)
    (ranking,) = store.search([Query("q", "x")], 3)
    assert ranking == [("a", 1.0), ("b", pytest.approx(0.8))]


def test_a_collection_of_others_is_dropped_only_if_it_may_be():
    collections = chunks(2, 2)
    before = list(collections["ours"])
    store = Listed(east, collections)
    with pytest.raises(InputError, match="collection 'ours' already exists"):
        store.index([Document("new", text="x")])
    assert collections["ours"] == before
    store = Listed(east, collections, replace=True)
    for name in ("new", "newer"):
        store.index([Document(name, text="x")])
        assert [row[0] for row in collections["ours"]] == [name]

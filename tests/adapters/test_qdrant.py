"""Qdrant in memory and in a folder."""

import warnings

import pytest
from storing import DOCUMENTS, ENCODER, QUERIES, K, StoreContract

from rankgauge import Document, InputError, Query
from rankgauge.retrievers import Qdrant

pytest.importorskip("qdrant_client", reason="without qdrant-client Qdrant is not tested")


class TestQdrantInMemory(StoreContract):
    lasting = False

    @pytest.fixture
    def place(self):
        return ":memory:"

    def make(self, place, encoder=ENCODER, **options):
        return Qdrant(encoder, location=place, **options)


class TestQdrantInAFolder(StoreContract):
    @pytest.fixture
    def place(self, tmp_path):
        return str(tmp_path / "qdrant")

    def make(self, place, encoder=ENCODER, **options):
        return Qdrant(encoder, location=place, **options)


def filled(folder, payloads, **params):
    """Return a collection created by another application."""
    from qdrant_client import QdrantClient, models

    vectors = ENCODER.encode_documents([text for text, _ in payloads]).tolist()
    size = models.VectorParams(size=96, distance=models.Distance.COSINE)
    client = QdrantClient(path=str(folder))
    client.create_collection("theirs", vectors_config={"body": size} if params else size)
    client.upsert(
        "theirs",
        [
            models.PointStruct(
                id=n + 1, vector={"body": vector} if params else vector, payload=payload
            )
            for n, (vector, (_, payload)) in enumerate(zip(vectors, payloads, strict=True))
        ],
    )
    client.close()


def test_chunks_are_rolled_up_to_documents_by_best_score(tmp_path):
    words = ["late fees", "opening hours", "rooms", "late fines", "printing", "fees"]
    filled(tmp_path, [(f"{w} {n}", {"page": w}) for w in words for n in range(9)])
    store = Qdrant(
        ENCODER, location=str(tmp_path), collection="theirs", existing=True, id_field="page"
    )
    (ranking,) = store.search([Query("q", "late fees")], 5)
    store.close()
    assert ranking[0][0] == "late fees"
    assert len({name for name, _ in ranking}) == 5


def test_ids_of_points_and_named_vectors_can_be_used(tmp_path):
    filled(tmp_path, [("late fees", {}), ("rooms", {})], named=True)
    options = {"location": str(tmp_path), "collection": "theirs", "existing": True}
    store = Qdrant(ENCODER, id_field=None, vector_field="body", **options)
    (ranking,) = store.search([Query("q", "rooms")], 5)
    store.close()
    assert [name for name, _ in ranking] == ["2", "1"]
    unnamed = Qdrant(ENCODER, id_field=None, **options)
    with pytest.raises(InputError, match="vector_field"):
        unnamed.index([])
    unnamed.close()


def test_a_field_without_an_id_is_named(tmp_path):
    filled(tmp_path, [("late fees", {"page": "p1"})])
    store = Qdrant(ENCODER, location=str(tmp_path), collection="theirs", existing=True)
    with pytest.raises(InputError, match=r"'id'; it has page|has nothing"):
        store.search(QUERIES, K)
    store.close()


def test_a_similarity_that_differs_from_the_collection_is_refused(tmp_path):
    filled(tmp_path, [("late fees", {"id": "p1"})])
    store = Qdrant(
        ENCODER, location=str(tmp_path), collection="theirs", existing=True, similarity="l2"
    )
    with pytest.raises(InputError, match="similarity='cosine'"):
        store.index(DOCUMENTS)
    store.close()


def test_a_key_comes_from_the_environment_and_is_never_shown(monkeypatch):
    monkeypatch.delenv("QDRANT_KEY", raising=False)
    with pytest.raises(InputError, match="QDRANT_KEY"):
        Qdrant(ENCODER, location="http://127.0.0.1:9", key_env="QDRANT_KEY")
    monkeypatch.setenv("QDRANT_KEY", "s3cret")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings: the key is not encrypted; the server is unknown
        store = Qdrant(ENCODER, location="http://127.0.0.1:9", key_env="QDRANT_KEY")
        assert "s3cret" not in f"{store.settings}{vars(store)}"
        with pytest.raises(Exception, match="refused") as raised:
            store.index([Document("d1", text="x")])
        store.close()
    assert "s3cret" not in str(raised.value)

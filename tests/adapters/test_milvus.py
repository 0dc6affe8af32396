"""Milvus Lite in a file."""

import pytest
from storing import DOCUMENTS, ENCODER, QUERIES, K, StoreContract, exact

from rankgauge import InputError, RankgaugeError
from rankgauge.retrievers import Milvus

pymilvus = pytest.importorskip("pymilvus", reason="without pymilvus Milvus is not tested")
pytest.importorskip("milvus_lite", reason="without Milvus Lite Milvus is not tested")


class TestMilvus(StoreContract):
    @pytest.fixture
    def place(self, tmp_path):
        return str(tmp_path / "place.db")

    def make(self, place, encoder=ENCODER, **options):
        return Milvus(encoder, location=place, **options)


@pytest.mark.parametrize("index_type", ["hnsw", "auto"])
def test_an_index_finds_nearly_all_of_what_exact_search_finds(tmp_path, index_type):
    store = Milvus(ENCODER, location=str(tmp_path / "x.db"), index_type=index_type)
    store.index(DOCUMENTS)
    shares = []
    for query, ranking in zip(QUERIES, store.search(QUERIES, K), strict=True):
        scores = exact(DOCUMENTS, query, "cosine")
        best = sorted(scores, key=lambda name: -scores[name])[:K]
        shares.append(len({name for name, _ in ranking} & set(best)) / K)
    store.close()
    assert sum(shares) / len(shares) >= 0.95


def test_an_existing_collection_is_searched_by_its_fields(tmp_path):
    client = pymilvus.MilvusClient(str(tmp_path / "x.db"))
    client.create_collection("theirs", dimension=96, metric_type="IP", vector_field_name="body")
    rows = ENCODER.encode_documents([document.full_text for document in DOCUMENTS])
    client.insert(
        "theirs", [{"id": n, "body": row.tolist(), "page": f"p{n}"} for n, row in enumerate(rows)]
    )
    client.close()
    options = {"location": str(tmp_path / "x.db"), "collection": "theirs", "existing": True}

    def tried(**more):
        store = Milvus(ENCODER, **options, **more)
        try:
            store.index([])
            return store.search(QUERIES[:1], 1)
        finally:
            store.close()

    scores = list(exact(DOCUMENTS, QUERIES[0], "dot").values())
    first = f"p{scores.index(max(scores))}"
    ((hit,),) = tried(id_field="page", vector_field="body", similarity="dot")
    assert hit == (first, pytest.approx(max(scores), rel=1e-5))
    with pytest.raises(InputError, match="no field 'vector'; it has id, body"):
        tried(similarity="dot")
    with pytest.raises(InputError, match="similarity='dot'"):
        tried(vector_field="body")


def test_an_unknown_index_type_is_refused():
    with pytest.raises(RankgaugeError, match="flat"):
        Milvus(ENCODER, index_type="flaat")


def test_a_file_without_a_name_is_removed():
    store = Milvus(ENCODER)
    store.index(DOCUMENTS)
    assert store.size > 0
    store.close()
    assert store.size == 0

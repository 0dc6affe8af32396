"""LanceDB in a folder."""

import pytest
from storing import DOCUMENTS, ENCODER, QUERIES, K, StoreContract, agree, exact

from rankgauge import InputError, Query
from rankgauge.retrievers import LanceDB

pyarrow = pytest.importorskip("pyarrow", reason="without pyarrow LanceDB is not tested")
lancedb = pytest.importorskip("lancedb", reason="without lancedb LanceDB is not tested")


class TestLanceDB(StoreContract):
    @pytest.fixture
    def place(self, tmp_path):
        return str(tmp_path / "place")

    def make(self, place, encoder=ENCODER, **options):
        return LanceDB(encoder, location=place, **options)


def test_an_existing_table_is_searched_by_its_columns(tmp_path):
    rows = ENCODER.encode_documents([document.full_text for document in DOCUMENTS])
    zeros = [0.0] * 96
    body = pyarrow.array([*rows.tolist(), zeros, zeros], pyarrow.list_(pyarrow.float32(), 96))
    pages = list(range(len(body)))
    years = [2000 + n % 2 for n in pages]
    lancedb.connect(str(tmp_path)).create_table(
        "pages", data=pyarrow.table({"page": pages, "body": body, "year": years})
    )
    options = {"location": str(tmp_path), "collection": "pages", "existing": True}
    store = LanceDB(ENCODER, id_field="page", vector_field="body", filter_field="year", **options)
    store.index([])
    query = Query("q", "late fees", {"year": 2001})
    (ranking,) = store.search([query], K)
    scores = exact(DOCUMENTS, query, "cosine").values()
    agree(ranking, {str(n): score for n, score in enumerate(scores) if n % 2})
    (everything,) = store.search(QUERIES[:1], 100)
    assert len(everything) == len(DOCUMENTS)
    with pytest.raises(InputError, match="no column 'vector'; it has page, body, year"):
        LanceDB(ENCODER, id_field="page", **options).index([])
    with pytest.raises(InputError, match="'year' of table 'pages' is int64, expected lists"):
        LanceDB(ENCODER, id_field="page", vector_field="year", **options).index([])


def test_a_remote_table_is_refused():
    with pytest.raises(InputError, match="expected the path of a folder"):
        LanceDB(ENCODER, location="db://somewhere")


def test_a_folder_without_a_name_is_removed():
    store = LanceDB(ENCODER)
    store.index(DOCUMENTS)
    assert store.size > 0
    store.close()
    assert store.size == 0

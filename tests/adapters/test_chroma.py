"""Chroma in a folder."""

import pytest
from storing import DOCUMENTS, ENCODER, QUERIES, K, StoreContract, exact, same

from rankgauge import Document, InputError, Query
from rankgauge.retrievers import Chroma

chromadb = pytest.importorskip("chromadb", reason="without chromadb Chroma is not tested")


class TestChroma(StoreContract):
    # Its graph is built at random, so a few of many documents can be unreachable.
    least = 0.95

    @pytest.fixture
    def place(self, tmp_path):
        return str(tmp_path / "place")

    def make(self, place, encoder=ENCODER, **options):
        return Chroma(encoder, location=place, **options)


def quiet():
    return chromadb.Settings(anonymized_telemetry=False)


def test_the_graph_has_the_options_it_was_given(tmp_path):
    store = Chroma(ENCODER, location=str(tmp_path), ef_search=9, ef_construction=7, max_neighbors=5)
    store.index(DOCUMENTS)
    assert store.settings["ef_search"] == 9
    store.close()
    client = chromadb.PersistentClient(str(tmp_path), settings=quiet())
    made = client.get_collection("rankgauge", embedding_function=None).configuration_json["hnsw"]
    client.close()
    assert (made["ef_search"], made["ef_construction"], made["max_neighbors"]) == (9, 7, 5)


def test_chunks_are_rolled_up_to_documents_by_best_score(tmp_path):
    client = chromadb.PersistentClient(str(tmp_path), settings=quiet())
    theirs = client.create_collection(
        "theirs", embedding_function=None, metadata={"hnsw:space": "l2"}
    )
    words = ["late fees", "opening hours", "rooms", "late fines", "printing", "fees"]
    texts = [f"{word} {n}" for word in words for n in range(9)]
    theirs.add(
        ids=[f"c{n}" for n in range(len(texts))],
        embeddings=ENCODER.encode_documents(texts),
        metadatas=[{"page": text[:-2]} for text in texts],
    )
    client.close()
    options = {"location": str(tmp_path), "collection": "theirs", "existing": True}
    store = Chroma(ENCODER, id_field="page", similarity="l2", **options)
    (ranking,) = store.search([Query("q", "late fees")], 5)
    store.close()
    documents = [Document(text, text=text) for text in texts]
    best = {}
    for text, score in exact(documents, Query("q", "late fees"), "l2").items():
        best[text[:-2]] = max(score, best.get(text[:-2], score))
    wanted = sorted(best.values(), reverse=True)[:5]
    assert [score for _, score in ranking] == pytest.approx(wanted, abs=1e-4)
    other = Chroma(ENCODER, **options)
    with pytest.raises(InputError, match="similarity='l2'"):
        other.index([])
    other.close()


def test_unnamed_collections_are_separate_and_removed():
    first, second = Chroma(ENCODER), Chroma(ENCODER)
    first.index(DOCUMENTS)
    before = first.search(QUERIES, K)
    second.index(DOCUMENTS[:3])
    same(first.search(QUERIES, K), before)
    assert first.size > 0
    first.close()
    second.close()
    assert first.size == second.size == 0


def test_telemetry_is_switched_off(tmp_path):
    store = Chroma(ENCODER, location=str(tmp_path))
    # Clients of the same folder must have the same settings.
    with pytest.raises(ValueError, match="different settings"):
        chromadb.PersistentClient(
            str(tmp_path), settings=chromadb.Settings(anonymized_telemetry=True)
        )
    chromadb.PersistentClient(str(tmp_path), settings=quiet()).close()
    store.close()

"""Tests that all vector stores share: the protocol, and exact search with NumPy."""

import contextlib

import numpy as np
import pytest

from rankgauge import Document, InputError, Query
from rankgauge.corpus.collection import read_documents, read_queries
from rankgauge.retrievers import HashingEncoder
from rankgauge.sample import sample_path
from rankgauge.testing import check_retriever

DOCUMENTS = list(read_documents(sample_path("corpus.jsonl")).values())
QUERIES = list(read_queries(sample_path("queries.jsonl")).values())
K = 10
KINDS = ["a", "it's", 'say "so"', "back\\slash", "図", 7, True]


class Uneven(HashingEncoder):
    """Vectors of different lengths, so that cosine, inner product, and distance differ."""

    def encode_documents(self, texts):
        factors = [1 + len(text) % 7 for text in texts]
        return super().encode_documents(texts) * np.array(factors, dtype=np.float32)[:, None]

    encode_queries = encode_documents


ENCODER = Uneven(96)


def exact(documents, query, similarity):
    """Return all scores of a query by definition, in 64 bits."""
    rows = ENCODER.encode_documents([d.full_text for d in documents]).astype(float)
    one = ENCODER.encode_queries([query.text])[0].astype(float)
    if similarity == "cosine":
        scores = (rows @ one) / (np.linalg.norm(rows, axis=1) * np.linalg.norm(one))
    elif similarity == "dot":
        scores = rows @ one
    else:
        scores = -np.linalg.norm(rows - one, axis=1)
    return {document.id: score for document, score in zip(documents, scores, strict=True)}


def agree(ranking, scores, k=K):
    """Return whether a ranking agrees with the scores, up to float32 precision."""
    wanted = sorted(scores.values(), reverse=True)[:k]
    assert [score for _, score in ranking] == pytest.approx(wanted, abs=2e-5, rel=2e-5)
    for name, score in ranking:
        assert score == pytest.approx(scores[name], abs=2e-5, rel=2e-5)
    assert len({name for name, _ in ranking}) == len(ranking)


def same(rankings, others):
    """Return whether rankings are equal up to the last digit."""
    for ranking, other in zip(rankings, others, strict=True):
        assert [name for name, _ in ranking] == [name for name, _ in other]
        assert [score for _, score in ranking] == pytest.approx([score for _, score in other])


def with_kinds():
    """Return the documents, each with a kind; every eighth has none."""
    return [
        Document(d.id, d.title, d.text, {} if n % 8 == 7 else {"kind": KINDS[n % 8]})
        for n, d in enumerate(DOCUMENTS)
    ]


class StoreContract:
    """Tests of a store; subclasses create it in a folder or database `place`."""

    # Whether a place outlives the object.
    lasting = True
    kinds = KINDS
    # The share of all documents that a search for all of them finds.
    least = 1.0

    def make(self, place, **options):
        raise NotImplementedError

    @contextlib.contextmanager
    def made(self, place, **options):
        with contextlib.closing(self.make(place, **options)) as store:
            yield store

    def test_the_retriever_contract_is_satisfied(self, place):
        with self.made(place) as store:
            checks = check_retriever(store)
        assert {check.name for check in checks if not check.passed} <= {"size"}

    @pytest.mark.parametrize("similarity", ["cosine", "dot", "l2"])
    def test_rankings_are_those_of_exact_search(self, place, similarity):
        with self.made(place, similarity=similarity) as store:
            store.index(DOCUMENTS)
            for query, ranking in zip(QUERIES, store.search(QUERIES, K), strict=True):
                agree(ranking, exact(DOCUMENTS, query, similarity))

    def test_all_documents_are_returned_for_a_large_k(self, place):
        with self.made(place) as store:
            store.index(DOCUMENTS)
            (ranking,) = store.search(QUERIES[:1], 1000)
        assert {name for name, _ in ranking} == {document.id for document in DOCUMENTS}

    def test_a_filter_leaves_documents_of_the_querys_field(self, place):
        documents = with_kinds()
        with self.made(place, filter_field="kind") as store:
            store.index(documents)
            queries = [Query(str(kind), "opening hours", {"kind": kind}) for kind in self.kinds]
            rankings = store.search([*queries, QUERIES[0]], K)
        for query, ranking in zip(queries, rankings, strict=False):
            kind = query.fields["kind"]
            some = [d for d in documents if d.fields.get("kind") == kind]
            assert some
            agree(ranking, exact(some, query, "cosine"))
        agree(rankings[-1], exact(documents, QUERIES[0], "cosine"))

    def test_an_unknown_value_finds_nothing_and_a_list_is_refused(self, place):
        with self.made(place, filter_field="kind") as store:
            store.index(with_kinds())
            assert store.search([Query("q", "opening hours", {"kind": "none"})], K) == [[]]
            with pytest.raises(InputError, match="one value"):
                store.search([Query("q", "opening hours", {"kind": ["a"]})], K)

    def test_a_collection_that_is_there_is_searched_as_it_is(self, place):
        if not self.lasting:
            pytest.skip("nothing outlives the object here")
        with self.made(place) as store:
            store.index(DOCUMENTS)
            before = store.search(QUERIES, K)
            assert store.settings["type"] == store.TYPE
        with self.made(place, existing=True) as again:
            again.index(DOCUMENTS[:3])
            same(again.search(QUERIES, K), before)
            assert again.settings is None
        with self.made(place, existing=True) as unasked:
            same(unasked.search(QUERIES[:2], K), before[:2])

    def test_an_existing_collection_is_dropped_only_on_request(self, place):
        if not self.lasting:
            pytest.skip("nothing outlives the object here")
        with self.made(place) as store:
            store.index(DOCUMENTS)
            before = store.search(QUERIES, K)
        with self.made(place) as other, pytest.raises(InputError, match="replace=True"):
            other.index(DOCUMENTS[:3])
        with self.made(place, existing=True) as kept:
            same(kept.search(QUERIES, K), before)
        with self.made(place, replace=True) as other:
            other.index(DOCUMENTS[:3])
            (ranking,) = other.search(QUERIES[:1], K)
            assert {name for name, _ in ranking} <= {d.id for d in DOCUMENTS[:3]}

    def test_a_collection_that_should_be_there_is_missed(self, place):
        with self.made(place, existing=True) as store:
            with pytest.raises(InputError, match="no collection"):
                store.index(DOCUMENTS)
            with pytest.raises(InputError, match="no collection"):
                store.search(QUERIES, K)

    def test_an_encoder_of_another_length_is_refused(self, place):
        if not self.lasting:
            pytest.skip("nothing outlives the object here")
        with self.made(place) as store:
            store.index(DOCUMENTS)
        with (
            self.made(place, existing=True, encoder=HashingEncoder(32)) as other,
            pytest.raises(InputError, match=r"32 numbers.*96"),
        ):
            other.search(QUERIES, K)

    def test_an_index_that_fails_half_way_can_be_made_again(self, place):
        calls = []

        def failing(texts):
            calls.append(len(texts))
            if len(calls) == 2:
                raise RuntimeError("the model is gone")
            return ENCODER.encode_documents(texts)

        many = [Document(f"d{n}", text=f"number {n}") for n in range(300)]
        with self.made(place, encoder=failing) as store:
            with pytest.raises(RuntimeError):
                store.index(many)
            with pytest.raises(InputError, match="index"):
                store.search(QUERIES, K)
            store.index(many)
            (ranking,) = store.search([Query("q", "number 299")], 500)
            assert self.least * 300 <= len(ranking) <= 300
            assert store.settings is None

    def test_ids_are_any_text(self, place):
        names = ["a b", "é図", "it's", 'q"', "x" * 300, "1", "a/b\\c", "00000000-0000"]
        with self.made(place) as store:
            store.index([Document(name, text=f"text {n}") for n, name in enumerate(names)])
            (ranking,) = store.search([Query("q", "text 3")], K)
        assert sorted(name for name, _ in ranking) == sorted(names)

    def test_size_is_of_what_is_on_disk(self, place):
        with self.made(place) as store:
            store.index(DOCUMENTS)
            assert store.size > 96 * 4 * len(DOCUMENTS) if self.lasting else store.size is None

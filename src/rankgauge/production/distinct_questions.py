"""Distinct questions: their texts, frequencies, and vectors."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankgauge.core.libraries import library
from rankgauge.core.text import many
from rankgauge.corpus import Collection
from rankgauge.errors import InputError
from rankgauge.formats.questions import read_questions
from rankgauge.formats.texts import TextSource
from rankgauge.production.log import MANIFEST, EventLog
from rankgauge.production.question_sets import Asked, QuestionSet, asked_lines, asked_rows
from rankgauge.retrievers.encoders import encoder_of, named_encoder
from rankgauge.stats.arrays import FloatArray
from rankgauge.stats.two_sample import unit_rows

_DIMENSIONS = 64
_MOST = 1e100  # largest absolute value of a coordinate
_TOKEN = r"\w+|[^\w\s]+"  # noqa: S105 - a word, or signs
# First words that mark a text without a question mark as a question.
_FIRST_WORDS = re.compile(
    "(wh(at|o|om|ose|en|ere|y|ich)|how|is|are|was|were|do|does|did|can|could|should|would|will|has"
    r"|have|may)\b",
    re.IGNORECASE,
)
_MARKS = ("?", "\uff1f", "\u061f")  # including Chinese and Arabic
TFIDF = "tfidf"


@dataclass(frozen=True)
class DistinctQuestion:
    """A question; texts that differ only in case and whitespace are one question.

    Attributes:
        text: The first spelling.
        ids: Its identifiers.
        count: The number of times it was asked; if unknown, the number of its identifiers.
    """

    text: str
    ids: tuple[str, ...]
    count: int

    @property
    def key(self) -> str:
        """The text in lower case with single spaces."""
        return normalized(self.text)


def distinct_questions(source: Any, where: str) -> list[DistinctQuestion]:
    """Read distinct questions from texts, queries, a collection, a file, or an event log.

    Args:
        source: Texts; objects with ``text`` (and optionally ``id``); a mapping of identifier to
            either; a `Collection`, a `QuestionSet`, or an `EventLog`; the path of a collection,
            a log, a file of questions, or a text file with one question per line. A column
            ``count`` or ``frequency`` has the number of times a question was asked.
        where: The name of the argument, for messages.

    Raises:
        FormatError: If a line cannot be read.
        InputError: If there are no questions.

    Example:
        >>> [question.count for question in distinct_questions(["late fees", "Late  fees", "wifi"], "log")]
        [2, 1]
    """
    by_key: dict[str, list[Asked]] = defaultdict(list)
    for name, text, count in _questions(source, where):
        if key := normalized(text):
            by_key[key].append((name, text, count))
    distinct = (
        DistinctQuestion(" ".join(rows[0][1].split()), tuple(name for name, *_ in rows), sum(row[2] for row in rows))
        for rows in by_key.values()
    )
    questions = [question for question in distinct if question.count]
    if not questions:
        raise InputError(
            "there are no questions", where=where, fix="pass texts, queries, or a file with one question per line"
        )
    return questions


@dataclass(frozen=True)
class Traits:
    """Simple properties of a set of questions.

    Attributes:
        questions: The number of distinct questions.
        asked: The total number of times that the questions were asked.
        words: The mean number of words.
        one_word: The share of one-word questions.
        asking: The share of texts that end with a question mark or begin with a question word.
    """

    questions: int
    asked: int
    words: float
    one_word: float
    asking: float

    @classmethod
    def of(cls, questions: Sequence[DistinctQuestion]) -> Traits:
        """Return the properties of distinct questions."""
        words = [question.text.split() for question in questions]
        asking = [
            question.text.endswith(_MARKS) or _FIRST_WORDS.match(question.text) is not None for question in questions
        ]
        return cls(
            len(questions),
            sum(question.count for question in questions),
            float(np.mean([len(row) for row in words])),
            float(np.mean([len(row) == 1 for row in words])),
            float(np.mean(asking)),
        )


def normalized(text: str) -> str:
    """Return a text in lower case with single spaces.

    Example:
        >>> normalized("  Late   FEES ")
        'late fees'
    """
    return " ".join(text.casefold().split())


def _questions(source: Any, where: str) -> Iterator[Asked]:
    if isinstance(source, str | os.PathLike):
        yield from _opened(source, where)
    elif isinstance(source, Collection):
        yield from _questions(source.queries, where)
    elif isinstance(source, QuestionSet):
        yield from _questions(source.questions, where)
    elif isinstance(source, EventLog):
        yield from ((f"q{number}", *row) for number, row in enumerate(source.texts(), start=1))
    elif isinstance(source, Mapping):
        for name, query in source.items():
            yield str(name), _text(query, where), 1
    elif isinstance(source, Iterable):
        for number, query in enumerate(source, start=1):
            yield str(getattr(query, "id", f"q{number}")), _text(query, where), 1
    else:
        raise InputError(
            f"got {type(source).__name__} for questions",
            where=where,
            fix="pass texts, queries, a collection, an EventLog, or the path of a file",
        )


def _opened(path: str | os.PathLike[str], where: str) -> Iterator[Asked]:
    location = Path(path)
    if location.suffix == ".parquet" or (location / MANIFEST).is_file():
        yield from _questions(EventLog(location), where)
    elif location.is_dir():
        yield from _questions(Collection.read(path), where)
    else:
        is_text = location.suffixes[:1] == [".txt"]
        yield from asked_rows(TextSource.of(path), asked_lines if is_text else _queries)


def _text(query: Any, where: str) -> str:
    text = getattr(query, "text", query)
    if not isinstance(text, str):
        raise InputError(f"got {text!r:.60} for the text of a question", where=where, fix="pass text")
    return text


def _queries(source: TextSource) -> Iterator[Asked]:
    for query in read_questions(source, {})[0].values():
        yield query.id, query.text or query.title, 1


@dataclass(frozen=True, eq=False)
class Embedding:
    """Texts as vectors.

    Attributes:
        name: The name of the encoder.
        whole: (n, m) unit vectors, possibly sparse, for nearest neighbors.
        points: (n, d) vectors reduced to at most 64 dimensions, for the test and for clusters.
    """

    name: str
    whole: Any
    points: FloatArray


def embed(texts: Iterable[str], encoder: Any, seed: int) -> Embedding:
    """Embed texts as vectors.

    Args:
        texts: The texts.
        encoder: If ``tfidf`` or None, TF-IDF weights of words and character n-grams (3 to 5) within
            words, reduced by truncated singular value decomposition. Otherwise an encoder of
            `rankgauge.retrievers` or its name, such as ``model2vec:NAME``, with unit vectors
            reduced to their principal components.
        seed: The seed of the decomposition.

    Raises:
        MissingExtra: If scikit-learn or the library of the encoder is not installed.
        InputError: If an encoder does not return a row of finite numbers for each text.
    """
    rows = list(texts)
    if encoder is None or encoder == TFIDF:
        return _tfidf(rows, seed)
    model = named_encoder(encoder) if isinstance(encoder, str) else encoder_of(encoder)
    try:
        vectors = np.asarray(model.encode_queries(rows), dtype=np.float64)
    except (TypeError, ValueError):
        vectors = np.zeros(0)
    if vectors.ndim != 2 or len(vectors) != len(rows) or not (np.abs(vectors) <= _MOST).all():
        raise InputError(
            f"the encoder returned an array of shape {vectors.shape} or non-finite numbers for "
            f"{many(len(rows), 'text')}",
            where="encoder",
            fix="return one row of finite numbers per text",
        )
    settings = getattr(model, "settings", {})
    name = encoder if isinstance(encoder, str) else settings.get("model") or type(model).__name__
    whole = unit_rows(vectors)
    return Embedding(str(name), whole, principal_components(whole, _DIMENSIONS))


def _tfidf(texts: list[str], seed: int) -> Embedding:
    text = library("sklearn.feature_extraction.text", extra="production", of="TF-IDF")
    decomposition = library("sklearn.decomposition", extra="production", of="TF-IDF")
    from scipy.sparse import hstack

    words = text.TfidfVectorizer(sublinear_tf=True, token_pattern=_TOKEN)
    parts = text.TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    weights = hstack([words.fit_transform(texts), parts.fit_transform(texts)]).tocsr()
    # The word and the n-gram part of a row each have length 1.
    weights /= np.sqrt(2)
    size = min(_DIMENSIONS, weights.shape[0] - 1, weights.shape[1] - 1)
    svd = decomposition.TruncatedSVD(size, random_state=seed)
    with np.errstate(invalid="ignore", divide="ignore"):  # Equal texts have no variance.
        points = np.asarray(svd.fit_transform(weights), dtype=np.float64)
    return Embedding("TF-IDF of words and parts of words", weights, points)


def principal_components(points: FloatArray, count: int) -> FloatArray:
    """Return (n, count) coordinates on the directions of largest variance.

    Signs are chosen so that the largest coefficient of each component is positive.
    """
    centered = points - points.mean(axis=0)
    wide = centered.shape[1] > len(centered)  # The smaller matrix of products has the same components.
    products = centered @ centered.T if wide else centered.T @ centered
    size = len(products)
    eigh = library("scipy.linalg", extra="production", of="principal components").eigh
    chosen = eigh(products, subset_by_index=(max(0, size - count), size - 1))[1][:, ::-1]
    if wide:
        chosen = unit_rows((centered.T @ chosen).T).T
    signs = np.sign(chosen[np.abs(chosen).argmax(axis=0), np.arange(chosen.shape[1])])
    return np.asarray(centered @ (chosen * np.where(signs == 0, 1.0, signs)))

"""Measures of answers without a judge: overlap of words and ids, similarity of embeddings."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from rankgauge.answers.scores import Score
from rankgauge.answers.verdicts import AnswerRecord, quote_occurs
from rankgauge.retrievers.encoders import encoder_of

SIMILARITIES = ("AnswerSimilarity", "QuestionSimilarity", "ContextSimilarity")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
# Scripts without spaces between words; each character is a word.
_HAN = "\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNSPACED = re.compile(f"([{_HAN}])")
_WORD = re.compile(rf"[{_HAN}]|[^\W_{_HAN}]+")
_QUOTATION = re.compile(r"\"([^\"]+)\"|\u201c([^\u201d]+)\u201d|\u00ab([^\u00bb]+)\u00bb")
_QUOTED_WORDS = 3
_LONGEST = 20_000  # words; the time is quadratic in the length


def _normalized(text: str) -> str:
    """Normalize as in SQuAD: lower case, no punctuation, no articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _tokens(text: str) -> list[str]:
    return _UNSPACED.sub(r" \1 ", _normalized(text)).split()


def _undefined(reason: str) -> Score:
    return Score(math.nan, math.nan, math.nan, 0, reason)


def _exactly(value: float) -> Score:
    return Score(value, value, value)


def _harmonic_mean(common: int, first: int, second: int) -> float:
    """Return the harmonic mean of the shares of `common` in `first` and in `second`."""
    return 2 * common / (first + second) if common else 0.0


def _against_references(compare: Callable[[str, str], float | str]) -> Callable[[AnswerRecord], Score]:
    """Return a measure that takes the best value of a comparison over all reference answers."""

    def scored(record: AnswerRecord) -> Score:
        references = [text for text in (record.reference, *record.alternatives) if text and text.strip()]
        if not references:
            return _undefined("there is no reference answer")
        results = [compare(record.answer or "", text) for text in references]
        values = [value for value in results if not isinstance(value, str)]
        if len(values) < len(results):
            return _undefined(next(value for value in results if isinstance(value, str)))
        return _exactly(max(values))

    return scored


def _token_f1(answer: str, reference: str) -> float:
    answered, expected = Counter(_tokens(answer)), Counter(_tokens(reference))
    if not answered or not expected:
        return float(answered == expected and bool(answer.strip()))
    return _harmonic_mean((answered & expected).total(), answered.total(), expected.total())


def _rouge_l(answer: str, reference: str) -> float | str:
    answered, expected = _WORD.findall(answer.lower()), _WORD.findall(reference.lower())
    if max(len(answered), len(expected)) > _LONGEST:
        return f"a text has more than {_LONGEST} words"
    return _harmonic_mean(_longest_common(answered, expected), len(answered), len(expected))


def _longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence; one integer holds a row of the table."""
    places: dict[str, int] = {}
    for place, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << place
    whole = row = (1 << len(first)) - 1
    for word in second:
        matches = row & places.get(word, 0)
        row = ((row + matches) | (row - matches)) & whole
    return len(first) - row.bit_count()


def _k_precision(record: AnswerRecord) -> Score:
    words = Counter(_tokens(record.answer or ""))
    if not words:
        return _undefined("there is no answer")
    known = {word for context in record.contexts for word in _tokens(context.text)}
    return _exactly(sum(n for word, n in words.items() if word in known) / words.total())


def _quote_precision(record: AnswerRecord) -> Score:
    quotations = ("".join(parts) for parts in _QUOTATION.findall(record.answer or ""))
    quotes = [text for text in quotations if len(_tokens(text)) >= _QUOTED_WORDS]
    if not quotes:
        return _undefined("the answer quotes nothing")
    texts = [context.text for context in record.contexts]
    return _exactly(sum(any(quote_occurs(q, text) for text in texts) for q in quotes) / len(quotes))


def _id_precision(record: AnswerRecord) -> Score:
    ids = {context.id for context in record.contexts}
    if not record.gold:
        return _undefined("no contexts are known to answer it")
    if not ids:
        return _undefined("there are no contexts")
    return _exactly(len(ids & set(record.gold)) / len(ids))


def _id_recall(record: AnswerRecord) -> Score:
    gold = set(record.gold)
    if not gold:
        return _undefined("no contexts are known to answer it")
    return _exactly(len(gold & {context.id for context in record.contexts}) / len(gold))


OVERLAPS: Mapping[str, Callable[[AnswerRecord], Score]] = MappingProxyType(
    {
        "ExactMatch": _against_references(lambda answer, reference: float(answer.strip() == reference.strip())),
        "NormalizedMatch": _against_references(
            lambda answer, reference: float(_normalized(answer) == _normalized(reference) and bool(answer.strip()))
        ),
        "TokenF1": _against_references(_token_f1),
        "RougeL": _against_references(_rouge_l),
        "KPrecision": _k_precision,
        "QuotePrecision": _quote_precision,
        "ContextIdPrecision": _id_precision,
        "ContextIdRecall": _id_recall,
    }
)


def similarities(records: Sequence[AnswerRecord], encoder: Any) -> Mapping[str, Sequence[Score]]:
    """Return the similarities of answer, reference, question, and contexts of each record.

    Args:
        records: The records.
        encoder: An encoder of `rankgauge.retrievers`, or its name.
    """
    embedder = encoder_of(encoder)
    answers = [(record.answer or "").strip() for record in records]
    references = [
        [text for text in (record.reference, *record.alternatives) if text and text.strip()] for record in records
    ]
    contexts = [[context.text for context in record.contexts] for record in records]
    passages = {*answers, *(t for some in (*references, *contexts) for t in some if t.strip())}
    vectors = _unit_vectors(embedder.encode_documents, passages - {""})
    asked = _unit_vectors(embedder.encode_queries, {r.question for r in records if r.question.strip()})

    def cosines(vector: Any, others: Iterable[str]) -> list[float]:
        return [float(np.dot(vector, vectors[text])) for text in others if text in vectors]

    scores: dict[str, list[Score]] = {name: [] for name in SIMILARITIES}
    for record, answer, some, texts in zip(records, answers, references, contexts, strict=True):
        question = asked.get(record.question)
        for name, vector, others, reason in (
            ("AnswerSimilarity", vectors.get(answer), some, "there is no reference answer"),
            ("QuestionSimilarity", question, [answer], "there is no answer"),
            ("ContextSimilarity", question, texts, "there are no contexts"),
        ):
            values = [] if vector is None else cosines(vector, others)
            if not values:
                missing = name == "AnswerSimilarity" and not answer
                scores[name].append(_undefined("there is no answer" if missing else reason))
                continue
            value = math.fsum(values) / len(values) if name == "ContextSimilarity" else max(values)
            scores[name].append(_exactly(min(max(value, -1.0), 1.0)))
    return scores


def _unit_vectors(encode: Callable[[Sequence[str]], Any], texts: Iterable[str]) -> dict[str, Any]:
    """Return the embedding of each text, normalized to length 1."""
    ordered = sorted(texts)
    if not ordered:
        return {}
    vectors = np.asarray(encode(ordered), dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return dict(zip(ordered, vectors / np.where(lengths, lengths, 1.0), strict=True))

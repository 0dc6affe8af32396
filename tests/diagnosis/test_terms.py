"""Texts of a collection: near-duplicates and unusual lengths."""

import numpy as np
import pytest

from rankgauge import Collection
from rankgauge.diagnosis.terms import Texts


def texts_of(documents, queries=None):
    return Texts(Collection.of(documents, queries))


def jaccard(one: str, other: str) -> float:
    left, right = ([t[i : i + 5] for i in range(len(t) - 4)] for t in (one.split(), other.split()))
    left, right = {tuple(x) for x in left}, {tuple(x) for x in right}
    return len(left & right) / len(left | right)


def test_likeness_is_the_jaccard_similarity_of_runs_of_five_words():
    one = " ".join(f"w{n}" for n in range(200))
    other = one.replace("w100 ", "other ")
    texts = texts_of({"a": one, "b": other, "c": "short text", "d": "Short, text!", "e": "", "f": ""})
    assert texts.similarity("a", "b") == pytest.approx(jaccard(one, other))
    assert 0.9 < texts.similarity("a", "b") < 1
    assert texts.similarity("a", "a") == 1
    assert texts.similarity("c", "d") == 1
    assert texts.similarity("a", "c") == texts.similarity("e", "f") == texts.similarity("e", "none") == 0
    assert texts.near_duplicates(["a", "c", "b", "d", "e", "f"]) == [
        ("b", "a", texts.similarity("a", "b")),
        ("d", "c", 1.0),
    ]


def test_the_fences_are_those_of_tukey_on_logarithms():
    lengths = [10, 100, 120, 150, 180, 220, 4000]
    texts = texts_of({f"d{n}": "x" * n for n in lengths} | {"empty": ""})
    low, high = np.quantile(lengths, [0.25, 0.75])
    apart = np.log(high) - np.log(low)
    expected = np.exp([np.log(low) - 1.5 * apart, np.log(high) + 1.5 * apart])
    assert texts.fences == pytest.approx(tuple(expected))
    sizes = {n: texts.size(f"d{n}") for n in lengths}
    assert sizes == {10: "short"} | dict.fromkeys([100, 120, 150, 180, 220], "usual") | {4000: "long"}


def test_five_times_the_median_is_long_even_where_a_third_of_the_texts_are():
    usual = {f"d{n}": "x" * (90 + n) for n in range(20)}
    texts = texts_of(usual | {f"l{n}": "x" * 800 for n in range(9)})
    assert {texts.size(doc) for doc in usual} == {"usual"}
    assert {texts.size(f"l{n}") for n in range(9)} == {"long"}


def test_with_similar_texts_only_a_factor_of_two_is_an_outlier():
    texts = texts_of({f"d{n}": "x" * 100 for n in range(9)} | {"a": "x" * 51, "b": "x" * 49})
    assert texts.size("a") == "usual"
    assert texts.size("b") == "short"
    assert texts_of({}).fences == (0.0, float("inf"))

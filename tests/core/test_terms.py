"""Words and terms, and the terms that two texts share."""

import sys

import pytest
from hypothesis import given, strategies as st

from rankgauge.core import terms as terms_module
from rankgauge.core.terms import shared, terms, words


def share(one: str, other: str) -> bool:
    return bool(shared(terms(one), terms(other)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("renew", "renewal"),
        ("DVD", "dvds"),
        ("library", "Libraries"),
        ("borrowed", "borrowing"),
        ("print", "printing"),
        ("stopping", "stop"),
        ("carries", "carry"),
        ("boxes", "box"),
        ("café", "CAFE"),
        ("Straße", "STRASSE"),
        ("ﬁnd", "find"),
        ("fees", "fee"),
        ("speed", "speeds"),
        ("taxi", "Taxis"),
        ("图书馆", "大学图书馆"),
        ("หนังสือ", "หนังสือใหม่"),
        ("हिन्दी", "हिन्दी"),
    ],
)
@pytest.mark.parametrize("stemmer", ["PyStemmer", "none"])
def test_words_of_one_stem_share_a_term(one, other, stemmer, monkeypatch):
    if stemmer == "none":
        monkeypatch.setitem(sys.modules, "Stemmer", None)
        clear = vars(terms_module)["_stemmer"].cache_clear
        clear()
        try:
            assert share(one, other)
            assert share(other, one)
        finally:
            clear()
        return
    assert share(one, other)
    assert share(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("car", "card"),
        ("how do I", "how do I"),
        ("", "renew"),
        ("12345", "123456"),
        ("speed", "spelling"),
        ("图书", "音乐"),
        ("red", "ring"),
    ],
)
def test_other_words_share_none(one, other):
    assert not share(one, other)


def test_function_words_are_no_terms():
    assert terms("What is it that I can't do?") == frozenset()


@given(st.text(), st.text())
def test_any_text_can_be_split_into_terms_and_shares_all_with_itself(one, other):
    asked = terms(one)
    assert shared(asked, asked) == asked
    assert shared(asked, terms(other)) <= asked
    assert shared(asked, terms(f"{other} {one}")) == asked
    assert words(one.upper()) == words(one.upper().lower()) or not one.isascii()

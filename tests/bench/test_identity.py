"""What tells retrievers apart: settings where they are declared, else their code."""

import functools

import pytest

from rankgauge import InputError
from rankgauge.bench.identity import identity_of


class Declares:
    def __init__(self, **settings):
        self.settings = settings

    def __call__(self, text):
        return []


class Looks:
    def __init__(self, name):
        self.name = name

    def __call__(self, text):
        return [self.name]


def test_what_is_said_of_a_retriever_goes_before_what_it_says():
    found = identity_of(Declares(type="bm25", k1=0.9), {"k1": 1.2, "b": 0.4}, "mine")
    assert found.settings == {"type": "bm25", "k1": 1.2, "b": 0.4}
    assert (found.declared, found.word) == (True, "bm25")


def test_equal_settings_are_one_whatever_the_run_is_called():
    one, other = (identity_of(Declares(k=1), None, name) for name in ("a", "b"))
    assert one == other


@pytest.mark.parametrize(
    "other",
    [
        lambda text: ["d2"],
        lambda text: [text],
        lambda text: sorted(["d1"]),
        lambda text: sorted(["d1"], key=lambda name: text),
    ],
    ids=["another constant", "a name", "a call", "a function inside"],
)
def test_other_code_is_another_function(other):
    mine = identity_of(lambda text: ["d1"], None, "mine")
    assert mine.settings != identity_of(other, None, "mine").settings
    assert mine.settings["code"] != identity_of(other, None, "mine").settings["code"]
    assert not mine.declared


def test_constants_inside_a_function_inside_are_looked_at():
    def inside(one):
        return identity_of(one, None, "mine").settings["code"]

    assert inside(lambda text: sorted(text, key=lambda name: name == "d1")) != inside(
        lambda text: sorted(text, key=lambda name: name == "d2")
    )


def test_the_same_code_under_another_name_of_a_run_is_another():
    def make(name):
        return lambda text: [name]

    one, other = (identity_of(make(name), None, name).settings for name in ("d1", "d2"))
    assert one["code"] == other["code"]
    assert one != other


def test_code_of_objects_and_partial_functions_is_seen():
    def retrieve(text, name):
        return [name]

    empty = identity_of(len, None, "mine").settings["code"]
    for seen in (Looks("a"), functools.partial(retrieve, name="d1"), Looks("a").__call__):
        assert identity_of(seen, None, "mine").settings["code"] != empty


def test_settings_are_plain_values():
    with pytest.raises(InputError, match="no plain values"):
        identity_of(Declares(model=object()), None, "mine")

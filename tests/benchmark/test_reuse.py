"""What tells retrievers apart: settings where they are declared, else their name."""

import pytest

from rankgauge import InputError
from rankgauge.benchmark.reuse import identify


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


def test_given_settings_precede_those_of_the_retriever():
    found = identify(Declares(type="bm25", k1=0.9), {"k1": 1.2, "b": 0.4}, "mine")
    assert found.settings == {"type": "bm25", "k1": 1.2, "b": 0.4}
    assert (found.declared, found.word) == (True, "bm25")


def test_equal_settings_are_the_same_under_any_run_name():
    one, other = (identify(Declares(k=1), None, name) for name in ("a", "b"))
    assert one == other


def test_a_retriever_without_settings_is_identified_by_its_and_the_runs_name():
    one, other = (identify(Looks("d1"), None, name) for name in ("a", "b"))
    assert one.settings == {"callable": f"{__name__}.Looks", "run": "a"}
    assert (one.settings != other.settings, one.declared, one.word) == (True, False, "looks")


def test_settings_are_plain_values():
    with pytest.raises(InputError, match="not plain values"):
        identify(Declares(model=object()), None, "mine")

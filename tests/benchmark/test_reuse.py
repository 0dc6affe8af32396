"""The identity of retrievers, and the file that defines them."""

import functools
import os
import sys
import time
import types

import pytest
from counting import Words, worse

from rankgauge import InputError
from rankgauge.benchmark.retriever_run import PartialSettings, are_same, identify, source_of, undescribed
from rankgauge.retrievers import BM25, Dense, Hybrid, LangChain


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


def test_partial_settings_identify_but_do_not_declare():
    one, other = (identify(worse, PartialSettings(arguments=n), "mine") for n in (1, 2))
    assert (one.declared, one.settings == other.settings) == (False, False)
    declared = identify(Declares(k=1), PartialSettings(arguments=1), "mine")
    assert declared == identify(Declares(k=1), None, "mine")


@pytest.mark.usefixtures("main_script")
def test_the_source_is_the_file_of_the_function_or_class():
    @functools.cache
    def cached(text):
        return []

    @functools.wraps(worse)
    def wrapper(text):
        return worse(text)

    mine = [Looks("d1"), Looks("d2").__call__, cached, lambda text: [], encode]
    assert {source_of(one) for one in mine} == {source_of(mine[0])}
    assert source_of(mine[0]).name == "test_reuse.py"
    assert source_of(wrapper) == source_of(worse) == source_of(Words())


@pytest.mark.usefixtures("main_script")
def test_code_without_a_file_of_its_own_has_no_source():
    made = {}
    exec(compile("def find(text): return []", "<input>", "exec"), made)

    class Raises:
        def __getattr__(self, name):
            raise RuntimeError(name)

    libraries = [functools.partial(worse), BM25(), Hybrid([worse, worse]), os.listdir, pytest.fail]
    for one in [made["find"], Raises(), *libraries]:
        assert source_of(one) is None


@pytest.mark.usefixtures("main_script")
def test_an_interactive_program_has_no_source(monkeypatch):
    assert source_of(worse)
    monkeypatch.delattr(sys.modules["__main__"], "__file__")
    assert source_of(worse) is None


@pytest.mark.usefixtures("main_script")
def test_a_file_that_changed_after_it_was_imported_is_no_source(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def find(text): return []")
    module = types.ModuleType("mine")
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    os.utime(path, (0, 0))
    before = source_of(module.find)
    assert before.name == "mine.py"
    path.write_text("def find(text): return [text]")
    assert source_of(module.find) is None
    os.utime(path, (0, 0))
    assert source_of(module.find).digest != before.digest
    os.utime(path, (0, time.time() + 60))
    assert source_of(module.find) is None


class Framework:
    def __init__(self, best):
        self.best = best

    def invoke(self, text):
        return [self.best]


class Slotted:
    __slots__ = ()

    def find(self, text):
        return []


def encode(texts):
    return [[1.0] for _ in texts]


encode.settings = {"model": "e5"}


def test_retrievers_with_equal_settings_are_the_same_if_their_parts_are():
    own, other = Framework("d1"), Framework("d2")
    slotted, words = Slotted(), Words()

    def adapter(source):
        return LangChain(source, settings={"model": "a"})

    same = [
        (BM25(), BM25()),
        (Hybrid([BM25(), Dense(encode)]), Hybrid([BM25(), Dense(encode)])),
        (adapter(own), adapter(own)),
        (own.invoke, own.invoke),
        (slotted.find, slotted.find),
        (words, words),
        (Hybrid([words, BM25()]), Hybrid([words, BM25()])),
    ]
    different = [
        (adapter(own), adapter(other)),
        (own.invoke, other.invoke),
        (slotted.find, Slotted().find),
        (words, Words()),
        (Hybrid([words, BM25()]), Hybrid([Words(), BM25()])),
        (functools.partial(worse), functools.partial(worse)),
        (BM25(), worse),
        (Dense(encode), Dense(functools.wraps(encode)(lambda texts: []))),
    ]
    for pairs, expected in ((same, True), (different, False)):
        for one, two in pairs:
            assert are_same(undescribed(one), undescribed(two)) is expected, (one, two)


def test_an_object_that_no_longer_exists_is_another():
    references = undescribed(Words())
    assert not are_same(references, undescribed(Words()))

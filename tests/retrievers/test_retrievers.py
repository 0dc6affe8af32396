"""The public names of retrievers, and their type names in plans."""

import inspect
import json

import pytest

from rankgauge import retrievers
from rankgauge.retrievers import BM25, Dense, HashingEncoder, Random


@pytest.mark.parametrize("name", sorted(retrievers.__all__))
def test_every_name_is_there(name):
    assert getattr(retrievers, name) is not None
    assert name in dir(retrievers)


@pytest.mark.parametrize("word", sorted(retrievers.TYPES))
def test_every_word_of_plans_makes_a_class_with_keywords(word):
    made = getattr(retrievers, retrievers.TYPES[word])
    kinds = [one.kind for one in inspect.signature(made).parameters.values()]
    assert kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) <= 2
    assert inspect.Parameter.VAR_KEYWORD not in kinds


@pytest.mark.parametrize("made", [BM25(), Dense(HashingEncoder()), HashingEncoder(), Random()])
def test_settings_begin_with_the_word_of_plans(made):
    word = made.settings["type"]
    assert isinstance(made, getattr(retrievers, retrievers.TYPES[word]))
    assert json.loads(json.dumps(made.settings)) == made.settings


def test_an_unknown_name_raises_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuch"):
        _ = retrievers.NoSuch

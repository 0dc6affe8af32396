"""Recommended measures by use case."""

import pytest

from rankgauge import UnknownName, parse
from rankgauge.core import USE_CASES, use_case

ASKED = {
    "qa": {"RR", "Success@1"},
    "search": {"nDCG@10", "P@10"},
    "legal": {"R@100", "P@100"},
    "recommendation": {"nDCG@5", "P@5"},
    "fact-check": {"Success@3", "RR"},
    "rag": {"R@5", "P@5", "RR"},
}


def test_each_use_has_its_measures():
    assert {name: set(case.measures) for name, case in USE_CASES.items()} == ASKED


@pytest.mark.parametrize("name", USE_CASES)
def test_each_use_says_why_and_names_measures_that_exist(name):
    case = use_case(name)
    assert case.why
    for measure in case.measures:
        assert str(parse(measure)) == measure


def test_an_unknown_use_shows_the_nearest():
    with pytest.raises(UnknownName, match="did you mean legal"):
        use_case("leagl")

"""A measure with values computed elsewhere has the same declaration, parser, and means."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from rankgauge import Evaluation, Measure, compare, evaluate, parse
from rankgauge.measures import Declaration, declaration, register
from rankgauge.reports import describe


@pytest.fixture
def faithful() -> Iterator[Measure]:
    """A measure of verdicts, unregistered after the test."""
    known = [dict(table) for table in (declaration.DECLARED, declaration.NAMES)]
    register(
        Declaration(
            "Faithful",
            "Faithfulness: the share of the claims of an answer that its sources support.",
            {"k": None},
            reads="verdicts",
            undefined="skip",
            also={"faithfulness score": {}},
        )
    )
    yield Measure("Faithful")
    for table, before in zip((declaration.DECLARED, declaration.NAMES), known, strict=True):
        for name in table.keys() - before.keys():
            del table[name]


def test_it_is_parsed_written_and_averaged(faithful: Measure) -> None:
    assert parse("Faithful@5") == faithful @ 5 == parse(str(faithful @ 5))
    assert faithful.mean([0.5, float("nan"), 1.0]) == 0.75
    found = faithful.differences(np.array([0.5, np.nan]), np.array([1.0, 1.0]))
    assert found[0] == -0.5
    assert np.isnan(found[1])
    assert describe("faithful").startswith("Faithful: Faithfulness: the share of the claims")


def test_evaluations_hold_and_compare_its_values(faithful: Measure) -> None:
    one = Evaluation.from_values("a", ["q1", "q2"], {faithful @ 5: [0.5, 1.0]})
    other = Evaluation.from_values("b", ["q1", "q2"], {"Faithful@5": [0.25, 1.0]})
    assert one.mean() == {"Faithful@5": 0.75}
    (difference,) = compare([one, other]).differences
    assert difference.measure == faithful @ 5


def test_a_run_does_not_have_its_values(faithful: Measure) -> None:
    with pytest.raises(ValueError, match="it reads verdicts"):
        evaluate({"q": {"d": 1}}, {"q": ["d"]}, faithful)


def test_a_word_that_is_not_in_the_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="'strictness' is not in the vocabulary"):
        register(Declaration("Strict", "Strict.", {"strictness": 1}))


def test_the_identity_of_a_measure_loads_no_run() -> None:
    program = (
        "import sys, types; package = types.ModuleType('rankgauge.measures'); "
        "import rankgauge, pathlib; "
        "package.__path__ = [str(pathlib.Path(rankgauge.__file__).parent / 'measures')]; "
        "sys.modules['rankgauge.measures'] = package; import rankgauge.measures.measure; "
        "print([name for name in sys.modules if name.startswith(('rankgauge.data', "
        "'rankgauge.formats'))])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

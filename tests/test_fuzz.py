"""A part of what ``make fuzz`` throws at the readers, the parser and the linter."""

from __future__ import annotations

import os
from typing import get_args

import pytest
from fuzzing.cases import Target, case_of
from fuzzing.outcomes import FAULT, outcome

# For each target; the whole of it is a million cases.
CASES = int(os.environ.get("RANKGAUGE_FUZZ", "3000")) // 10


@pytest.mark.slow
@pytest.mark.parametrize("target", get_args(Target))
def test_malformed_input_is_read_or_refused_with_words(tmp_path, target):
    said = {
        number: outcome(case_of(11, number, target), tmp_path, timed=False)
        for number in range(CASES)
    }
    assert not {number: what for number, what in said.items() if what.startswith(FAULT)}
    # That all is refused would say nothing about what is read.
    assert any(what == "read" for what in said.values())
    assert any(what.startswith("refused") for what in said.values())


def test_a_case_can_be_made_again():
    assert [case_of(3, n) for n in range(50)] == [case_of(3, n) for n in range(50)]
    assert case_of(3, 1) != case_of(4, 1)

"""A part of the cases of ``make fuzz``: readers, parser, and checks on malformed input."""

from __future__ import annotations

import os
from typing import get_args

import pytest
from fuzzing.cases import Target, case_of
from fuzzing.outcomes import FAULT, outcome

# For each target; `make fuzz` runs a million cases.
CASES = int(os.environ.get("RANKGAUGE_FUZZ", "800")) // 10


@pytest.mark.slow
@pytest.mark.parametrize("target", get_args(Target))
def test_malformed_input_is_read_or_rejected_with_an_error_message(tmp_path, target):
    outcomes = {number: outcome(case_of(11, number, target), tmp_path, timed=False) for number in range(CASES)}
    assert not {number: text for number, text in outcomes.items() if text.startswith(FAULT)}
    # If every case were rejected, the readers would not be tested.
    assert "read" in outcomes.values()
    assert any(text.startswith("rejected") for text in outcomes.values())


def test_a_case_is_determined_by_seed_and_number():
    assert [case_of(3, n) for n in range(50)] == [case_of(3, n) for n in range(50)]
    assert case_of(3, 1) != case_of(4, 1)

"""The ways of other tools: each deviation changes what it names, and nothing else."""

import numpy as np
import pytest

from rankgauge import PROFILES, Case, Policies, Qrels, RankgaugeError, Run, parse, profile_of


@pytest.fixture
def case():
    run = Run.of({"q1": {"a": 0.1234567892, "z": 0.1234567891}})
    return Case(Qrels.of({"q1": {"a": 1}, "q2": {"b": 1}}), run, parse("RR"), Policies())


@pytest.mark.parametrize("name", PROFILES)
def test_a_step_changes_what_it_names_and_nothing_else(name, case):
    parts = {"run": "run", "judgments": "qrels", "policy": "policies", "measure": "measure"}
    for deviation in PROFILES[name].deviations(case.measure):
        changed = deviation.change(case)
        for of, part in parts.items():
            if of != deviation.of:
                assert getattr(changed, part) is getattr(case, part), (deviation.name, of)


def test_scores_in_32_bits_become_ties(case):
    changed = PROFILES["pytrec_eval"].case(case)
    assert len(set(changed.run["q1"].values())) == 1
    assert changed.run["q1"]["a"] == float(np.float32(0.1234567892))


def test_a_name_that_no_profile_has_is_refused_with_the_nearest():
    with pytest.raises(RankgaugeError, match="pytrec_eval"):
        profile_of("pytrek_eval")

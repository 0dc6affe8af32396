"""Causes found where one is seeded, as stated on the page."""

import re

import numpy as np
import pytest
from docs_scripts import DOCS, docs_script

from rankgauge.answers.diagnosis import CAUSES, JUDGE_NOTE, RULES_NOTE, blame

stages = docs_script("limiting_stage")


@pytest.fixture(scope="module")
def seeded():
    bases = list(stages.sample())
    return [each for at, base in enumerate(bases) for each in stages.faults(base, bases[(at + 9) % len(bases)])]


def right(seeded, found):
    same = [a.expected == b.cause for a, b in zip(seeded, found.answers, strict=True)]
    return float(np.mean(same))


def test_every_cause_is_seeded_and_found_by_true_verdicts(seeded):
    assert {each.expected for each in seeded} == {stages.GOOD, *CAUSES}
    found = blame([each.judged() for each in seeded])
    for fault in {(each.expected, each.fault) for each in seeded}:
        some = [n for n, each in enumerate(seeded) if (each.expected, each.fault) == fault]
        share = np.mean([found.answers[n].cause == fault[0] for n in some])
        assert share >= 0.85, fault


def test_the_gain_of_a_cause_is_the_correctness_that_its_faults_lost(seeded):
    found = blame([each.judged() for each in seeded])
    lost = dict.fromkeys(CAUSES, 0.0)
    for each, answer in zip(seeded, found.answers, strict=True):
        if each.expected in CAUSES:  # the answer without a fault has a correctness of 1
            lost[each.expected] += (1 - answer.correctness) / len(seeded)
    assert {cause: found.gain(cause) for cause in CAUSES} == pytest.approx(lost)


@pytest.mark.slow
def test_errors_of_judges_lead_to_wrong_causes_as_often_as_stated(seeded):
    assert 0.75 <= right(seeded, stages.with_errors(seeded)) <= 0.9
    by_rules = stages.by_rules(seeded)
    assert right(seeded, by_rules) >= 0.85
    pairs = list(zip(seeded, by_rules.answers, strict=True))
    stated = [each.expected == answer.cause for each, answer in pairs if answer.stage]
    clean = [bool(answer.stage) for each, answer in pairs if each.expected == stages.GOOD]
    page = (DOCS / "explain" / "diagnosis-accuracy.md").read_text(encoding="utf-8")
    row = next(re.findall(r"(\d+)%", line) for line in page.splitlines() if re.match(r"\| rules +\| sample", line))
    assert [round(100 * np.mean(one)) for one in (stated, clean)] == [int(row[2]), int(row[3])]
    for rate in (row[2], row[3]):
        assert f"{rate}%" in RULES_NOTE
    of_judge = [line for line in page.splitlines() if re.match(r"\| judge of 0.95/0.9 +\| \w+ ", line)]
    assert len(of_judge) == 2
    assert all(f"{rate}%" in JUDGE_NOTE for line in of_judge for rate in re.findall(r"(\d+)%", line)[2:])

"""Causes found where one is seeded, as stated on the page."""

import re

import numpy as np
import pytest
from docs_scripts import DOCS, docs_script

from rankgauge.answers.diagnosis import CAUSES, JUDGE_NOTE, RULES_NOTE, blame
from rankgauge.rendering.tables import to_markdown

stages = docs_script("limiting_stage")


@pytest.fixture(scope="module")
def seeded():
    bases = list(stages.sample())
    return [each for at, base in enumerate(bases) for each in stages.faults(base, bases[(at + 9) % len(bases)])]


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
def test_the_tables_and_notes_have_the_rates_of_the_page(data_folder):
    page = (DOCS / "explain" / "diagnosis-accuracy.md").read_text(encoding="utf-8")
    for _, table in stages.tables(data_folder):
        assert to_markdown(table).strip() in page
    rows = [re.findall(r"(\d+)%", line) for line in page.splitlines() if re.match(r"\| true verdicts +\| \w+ ", line)]
    assert len(rows) == 2
    assert all(int(row[0]) >= 85 for row in rows)
    for judge, note in (("judge of 0.95/0.9", JUDGE_NOTE), ("rules", RULES_NOTE)):
        rows = [line for line in page.splitlines() if re.match(rf"\| {judge} +\| \w+ ", line)]
        assert len(rows) == 2
        assert all(f"{rate}%" in note for row in rows for rate in re.findall(r"(\d+)%", row)[2:])

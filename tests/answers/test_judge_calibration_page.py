"""The page on judge calibration agrees with its script."""

import pytest
from docs_scripts import DOCS, docs_script

from rankgauge.rendering.tables import to_markdown

pytestmark = pytest.mark.slow
script = docs_script("judge_calibration")


def test_simulated_intervals_cover_the_truth_as_the_page_says():
    for judge in script.JUDGES:
        row = script.coverage(judge, 200, 100, draws=400, alike=1)
        assert 0.92 <= float(row[7].split("%")[0]) / 100 <= 0.985, judge


def test_a_good_judge_is_usable_with_200_labels_and_one_near_guessing_never():
    for rate in (0.2, 0.5, 0.8):
        assert script.usable_share((rate, 0.95, 0.9), 200, 200) >= 0.9, rate
    for labels in (50, 200, 1000):
        assert script.usable_share((0.415, 0.94, 0.18), labels, 300) <= 0.02, labels


def test_the_gate_of_judged_answers_has_its_error_limit_and_its_power():
    poor, good = script.PAIRS[0], script.PAIRS[2]
    raw, true, compared = script.verdicts_of_gate(poor, 0.1, 20)
    assert raw["PASS"] >= 16  # without correction
    assert (true["refused"], compared["withheld"]) == (20, 20)
    _, true, _ = script.verdicts_of_gate(good, 0.05, 50)
    assert true["PASS"] <= 6
    _, true, compared = script.verdicts_of_gate(good, 0.1, 20)
    assert true["PASS"] == 0
    assert min(true["FAIL"], compared["worse"]) >= 15


def test_differences_by_labels_of_people_cover_the_truth_for_real_systems(data_folder):
    for row in script.labeled_pairs(data_folder, 20).rows:
        covered, _, passed, failed = (float(cell.rstrip("%")) for cell in row[4:])
        assert covered >= 75, row
        assert max(passed, failed) <= 15, row


@pytest.mark.parametrize("name", ["guesses", "ratings", "graded"])
def test_the_tables_of_labels_of_people_are_those_of_the_page(data_folder, name):
    page = (DOCS / "explain" / "judge-calibration.md").read_text(encoding="utf-8")
    assert to_markdown(getattr(script, name)(data_folder)).strip() in page

"""The page on judge calibration says what its script computes."""

import importlib.util
from pathlib import Path

import pytest

from rankgauge.rendering.tables import to_markdown

DOCS = Path(__file__).parents[2] / "docs"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def script():
    path = DOCS / "_scripts" / "judge_calibration.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_simulated_intervals_cover_the_truth_as_the_page_says(script):
    for judge in script.JUDGES:
        row = script.coverage(judge, 200, 100, draws=400, alike=1)
        assert 0.92 <= float(row[7].split("%")[0]) / 100 <= 0.985, judge


@pytest.mark.parametrize("name", ["guesses", "ratings", "graded"])
def test_the_tables_of_labels_of_people_are_those_of_the_page(script, data_folder, name):
    page = (DOCS / "explain" / "judge-calibration.md").read_text(encoding="utf-8")
    assert to_markdown(getattr(script, name)(data_folder)).strip() in page

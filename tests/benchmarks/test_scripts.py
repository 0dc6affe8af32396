"""Every benchmark script runs on a few rows."""

import re
from pathlib import Path

import pytest
from commands import exponent

SPEED = Path(__file__).parent.parent.parent / "docs" / "explain" / "speed.md"
MARKS = [
    "conditions",
    "files",
    "dicts",
    "frames",
    "calls",
    "commands",
    "jobs",
    "growth",
    "command-growth",
    "start",
    "comparing",
    "updating",
    "statistics",
    "diversity",
    "judging",
    "pages",
    "project",
    "workbench",
    "drift",
    "answers",
    "checking",
    "ties",
    "running",
]


@pytest.fixture
def page(tmp_path):
    page = tmp_path / "speed.md"
    page.write_text("".join(f"<!-- table: {name} -->\n<!-- end -->\n" for name in MARKS))
    return page


def test_the_page_of_speed_has_a_place_for_every_table():
    assert re.findall(r"<!-- table: ([\w-]+) -->", SPEED.read_text(encoding="utf-8")) == MARKS


@pytest.mark.slow
def test_all_tables_are_printed_and_written(script, page, tmp_path):
    text = script("run.py", "--tiny", "--data", tmp_path, "--write", page)
    assert "| 100 × 100 | rankgauge (18) |" in text
    assert re.search(r"\|  \| pytrec_eval \(18\) \|.*\| ≥ 6", text)
    written = page.read_text(encoding="utf-8")
    assert "| 1 × 100 | rankgauge (18) |" in written
    assert "cores, Python" in written
    assert "<!-- table: checking -->\n<!-- end -->" in written
    assert text.count("| queries × documents | engine (measures) |") == 3
    for head in ("queries, dicts", "documents, dicts", "measures, dicts", "measures, files"):
        assert f"| {head}" in text
    assert "| `import rankgauge` |" in text
    assert "| `functional.ndcg_at_k` |" in text
    assert "failed" not in text.replace("trec_eval failed: trec_eval: Quit", "")


def test_an_unknown_table_is_an_error(script):
    with pytest.raises(AssertionError, match="no table dict; there are files, dicts"):
        script("run.py", "dict")


@pytest.mark.slow
def test_comparing_and_running_print_and_write(script, page):
    text = script("comparing.py", "--tiny", "--write", page)
    assert "| 2 × 5 × 1, 10 |" in text
    assert "| 2 × 20 × 1 |" in text
    assert "| Tukey HSD, 20 × 10 |" in text
    assert "| `reliability`, 2 runs of 20 × 10 |" in text
    text = script("running.py", "--queries", 20, "--rounds", 1, "--write", page)
    assert "| four threads with a time limit |" in text
    assert text.strip() in page.read_text(encoding="utf-8")


def test_ties_print_and_write_a_table(script, page):
    text = script("ties.py", "--tiny", "--rounds", 1, "--write", page)
    assert "| 20 × 20 | all equal |" in text
    assert text.strip() in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_commands_are_compared_with_the_evaluations_they_contain(script, page):
    text = script("commands.py", "--tiny", "--write", page)
    assert "| `gate qrels a --update-baseline` | 1 |" in text
    written = page.read_text(encoding="utf-8")
    assert all(one.strip() in written for one in text.split("\n\n"))


def test_an_exponent_is_that_of_the_power():
    lines = [10, 40, 90]
    for power in (0.5, 1.0, 2.0):
        assert exponent(lines, [3 * n**power for n in lines]) == pytest.approx(power)


@pytest.mark.slow
def test_checking_prints_and_writes_a_table_of_files_and_one_of_faults(script, page):
    text = script("checking.py", "--tiny", "--rounds", 1, "--write", page)
    assert "| 50 × 20 |" in text
    assert "| scores with reversed signs |" in text
    assert text.strip() in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_diversity_prints_and_writes_a_table(script, page):
    text = script("diversity.py", "--tiny", "--rounds", 1, "--write", page)
    assert "| 4 queries, 10 documents, 3 subtopics |" in text
    assert text.strip() in page.read_text(encoding="utf-8")


def test_judging_prints_and_writes_a_table(script, page):
    text = script("judging.py", "--tiny", "--rounds", 1, "--write", page)
    assert "| Plackett-Luce fits | 5 |" in text
    assert text.strip() in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_project_prints_and_writes_a_table(script, page):
    text = script("project.py", "--tiny", "--write", page)
    assert "| list 100 evaluations |" in text
    assert text.strip() in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_workbench_prints_and_writes_a_table(script, page):
    text = script("workbench.py", "--tiny", "--write", page)
    assert "| query of a comparison |" in text
    assert text.strip() in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_drift_prints_and_writes_a_table(script, page, data_folder):
    assert data_folder  # the script reads it
    text = script("drift.py", "--tiny", "--write", page)
    assert "| TF-IDF of the questions | 50 | 200 |" in text
    assert text.strip() in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_answers_prints_and_writes_a_table(script, page):
    text = script("answers.py", "--tiny", "--rounds", 1, "--write", page)
    assert "| judge calls of 50 ms, 64 in parallel | 20 |" in text
    assert text.strip() in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_judging_pages_are_measured_without_errors(script, page, tmp_path):
    text = script("judging_pages.py", "--tiny", "--project", tmp_path / "j.db", "--write", page)
    assert re.search(r"^\| 1 \| 60 \| 3 \| 0 \|", text, re.MULTILINE)
    assert re.search(r"^\| 3 \| 60 \| 6 \| 0 \|", page.read_text(), re.MULTILINE)

"""Every script of benchmarks runs to its end, on a few rows."""

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
    "diversity",
    "judging",
    "pages",
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


def test_a_table_is_printed_and_written(script, page, tmp_path):
    said = script("run.py", "dicts", "--tiny", "--data", tmp_path, "--write", page)
    assert "| 100 × 100 | rankgauge (18) |" in said
    assert re.search(r"\|  \| pytrec_eval \(18\) \|.*\| ≥ 5", said)
    written = page.read_text(encoding="utf-8")
    assert "| 1 × 100 | rankgauge (18) |" in written
    assert "cores, Python" in written
    assert "<!-- table: files -->\n<!-- end -->" in written


@pytest.mark.slow
def test_all_tables_are_printed(script, tmp_path):
    said = script("run.py", "--tiny", "--data", tmp_path)
    assert said.count("| queries × documents | engine (measures) |") == 3
    for head in ("queries, dicts", "documents, dicts", "measures, dicts", "measures, files"):
        assert f"| {head}" in said
    assert "| `import rankgauge` |" in said
    assert "| `functional.ndcg_at_k` |" in said
    assert "stopped" not in said.replace("trec_eval stopped: trec_eval: Quit", "")


def test_a_table_that_is_not_known_is_refused(script):
    with pytest.raises(AssertionError, match="no table dict; there are files, dicts"):
        script("run.py", "dict")


@pytest.mark.slow
def test_comparing_and_running_print_and_write(script, page):
    assert "| 2 × 5 × 1, 10 |" in script("comparing.py", "--tiny", "--write", page)
    said = script("running.py", "--queries", 20, "--rounds", 1, "--write", page)
    assert "| four threads with a time limit |" in said
    assert said.strip() in page.read_text(encoding="utf-8")


def test_ties_print_and_write_a_table(script, page):
    said = script("ties.py", "--tiny", "--rounds", 1, "--write", page)
    assert "| 20 × 20 | all equal |" in said
    assert said.strip() in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_commands_are_compared_with_the_evaluations_they_contain(script, page):
    said = script("commands.py", "--tiny", "--write", page)
    assert "| `gate qrels a --update-baseline` | 1 |" in said
    written = page.read_text(encoding="utf-8")
    assert all(one.strip() in written for one in said.split("\n\n"))


def test_an_exponent_is_that_of_the_power():
    lines = [10, 40, 90]
    for power in (0.5, 1.0, 2.0):
        assert exponent(lines, [3 * n**power for n in lines]) == pytest.approx(power)


def test_checking_prints_and_writes_a_table_of_files_and_one_of_faults(script, page):
    said = script("checking.py", "--tiny", "--rounds", 1, "--write", page)
    assert "| 50 × 20 |" in said
    assert "| scores with the other sign |" in said
    assert said.strip() in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_diversity_prints_and_writes_a_table(script, page):
    said = script("diversity.py", "--tiny", "--rounds", 1, "--write", page)
    assert "| 4 queries, 10 documents, 3 subtopics |" in said
    assert said.strip() in page.read_text(encoding="utf-8")


def test_judging_prints_and_writes_a_table(script, page):
    said = script("judging.py", "--tiny", "--rounds", 1, "--write", page)
    assert "| Plackett-Luce fits | 5 |" in said
    assert said.strip() in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_drift_prints_and_writes_a_table(script, page, data_folder):
    assert data_folder  # the script reads it
    said = script("drift.py", "--tiny", "--write", page)
    assert "| TF-IDF of the questions | 50 | 200 |" in said
    assert said.strip() in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_answers_prints_and_writes_a_table(script, page):
    said = script("answers.py", "--tiny", "--rounds", 1, "--write", page)
    assert "| judge calls of 50 ms, 64 at once | 20 |" in said
    assert said.strip() in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_judging_pages_are_measured_without_errors(script, page, tmp_path):
    said = script("judging_pages.py", "--tiny", "--project", tmp_path / "j.db", "--write", page)
    assert re.search(r"^\| 1 \| 60 \| 3 \| 0 \|", said, re.MULTILINE)
    assert re.search(r"^\| 3 \| 60 \| 6 \| 0 \|", page.read_text(), re.MULTILINE)

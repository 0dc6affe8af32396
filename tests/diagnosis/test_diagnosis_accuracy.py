"""The simulation of diagnoses: a small one, and the numbers on its page."""

import pytest
from docs_scripts import DOCS, docs_script

accuracy = docs_script("diagnosis_accuracy")
PAGE = (DOCS / "explain" / "diagnosis-accuracy.md").read_text(encoding="utf-8")
RUN = [("cranfield", "minilm-l6-v2-cosine")]
DRAWS = 10


def rows(section: str) -> list[list[str]]:
    """Return the cells of the table in a section."""
    lines = PAGE.split(f"## {section}\n")[1].split("\n## ")[0].splitlines()
    table = [line for line in lines if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


@pytest.mark.slow
@pytest.mark.parametrize("fault", accuracy.FAULTS, ids=lambda fault: fault.name)
def test_a_seeded_fault_is_named_first(data_folder, fault):
    for strength in fault.strengths:
        (found,) = accuracy.seeded_causes(fault, strength, data_folder, draws=DRAWS, runs=RUN)
        assert found.total() == DRAWS
        assert found[fault.cause] >= 0.85 * DRAWS, (strength, found)


@pytest.mark.slow
def test_a_run_without_a_fault_gets_none(data_folder):
    runs = [*RUN, ("cranfield", "bm25-lucene-k0.9-b0.4-stem")]
    for name, found in accuracy.unmodified(data_folder, DRAWS, runs):
        natural = sum(found[cause] for cause in accuracy.NATURAL)
        assert natural >= 0.95 * DRAWS, (name, found)


def test_the_page_names_each_seeded_fault_first():
    planted = rows("Seeded faults")
    assert [(row[0], row[1], row[2]) for row in planted] == [
        (fault.name, f"{strength:g}", fault.cause) for fault in accuracy.FAULTS for strength in fault.strengths
    ]
    assert min(float(row[3].rstrip("%")) for row in planted) >= 85
    unmodified = rows("Unmodified runs")
    assert len(unmodified) == len(accuracy.UNMODIFIED)
    assert max(float(row[1].rstrip("%")) for row in unmodified) <= 5

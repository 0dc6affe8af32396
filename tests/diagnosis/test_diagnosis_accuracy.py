"""The simulation of diagnoses: a small one, and the numbers on its page."""

import numpy as np
import pytest
from docs_scripts import DOCS, docs_script

import rankgauge

accuracy = docs_script("diagnosis_accuracy")
PAGE = (DOCS / "explain" / "diagnosis-accuracy.md").read_text(encoding="utf-8")
RUN = ("npl", "bm25-lucene-k0.9-b0.4-stem")
FAULTS = {fault.name: fault for fault in accuracy.FAULTS}
DRAWS = 10


def rows(name: str) -> list[list[str]]:
    """Return the cells of a table."""
    lines = PAGE.split(f"<!-- table: {name} -->\n")[1].split("<!-- end -->")[0].splitlines()
    table = [line for line in lines if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def share(cell: str) -> float:
    return float(cell.rstrip("%"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "query ids swapped",
        "judged in another pool, depth",
        "foreign words in queries",
        "wrong stemmer for queries",
        "documents not indexed",
        "first documents reversed",
        "ids with a prefix",
    ],
)
def test_a_seeded_fault_is_named_first(data_folder, name):
    fault = FAULTS[name]
    found = accuracy.seeded(fault, fault.strengths[0], data_folder, RUN, draws=DRAWS)
    assert found.causes.total() >= 0.8 * DRAWS
    assert found.causes[fault.cause] >= 0.9 * found.causes.total(), found


@pytest.mark.slow
def test_the_first_cause_of_a_sound_run_gains_in_other_queries(data_folder):
    causes, nothing, gain = accuracy.unmodified(data_folder, RUN, draws=DRAWS)
    assert (causes["none"], nothing) == (0, 0)
    assert gain > 0.005


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["wrong_ids", "stripped"])
def test_ids_that_differ_for_one_document_in_ten_are_found_but_withhold_nothing(data_folder, seed):
    case = getattr(accuracy, seed)(accuracy.case(data_folder, *RUN), 0.1, np.random.default_rng(1))
    findings = rankgauge.evaluate(case.grades, case.run(), "nDCG@10").input_findings
    assert [(finding.code, finding.severity) for finding in findings] == [("P103", "warning")]


def test_the_page_names_seeded_faults_first():
    planted = rows("faults")
    assert {(row[0], row[2]) for row in planted} <= {(fault.name, fault.cause) for fault in accuracy.FAULTS}
    shares = [share(row[3]) for row in planted if row[3] != "–"]
    assert min(shares) >= 90


def test_the_page_has_no_first_cause_that_gains_nothing():
    unmodified = rows("unmodified")
    assert len(unmodified) == len(accuracy.UNMODIFIED) + len(accuracy.HELD_OUT)
    assert min(share(row[1]) for row in unmodified) >= 60
    assert max(share(row[2]) for row in unmodified) <= 5

"""The simulations of judging: small ones, and the numbers on their page."""

import numpy as np
import pytest
from docs_scripts import DOCS, docs_script

simulations = docs_script("judging_simulations")
PAGE = (DOCS / "explain" / "judging-simulations.md").read_text(encoding="utf-8")


def rows(name: str) -> list[list[str]]:
    """Return the cells of a table of the page."""
    section = PAGE.split(f"<!-- table: {name} -->")[1].split("<!-- end -->")[0]
    table = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def share(text: str) -> float:
    return float(text.rstrip("%")) / 100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judges", "design", "tasks", "questions"),
    [
        ("follow the model", "active", 16, 60),
        ("follow the model", "adaptive", 60, 10),
        ("10% of answers at random", "adaptive", 60, 10),
        ("first preferred by 1", "active", 16, 60),
        ("best, then threshold", "active", 32, 40),
    ],
)
def test_intervals_of_relevance_cover_also_with_careless_judges(judges, design, tasks, questions):
    found = simulations.simulate(design, tasks, simulations.BIASED[judges], questions, seed=11)
    assert found.coverage() >= 0.9
    clear, right = found.resolved()
    assert clear > 0.1
    assert right > 0.98


@pytest.mark.slow
def test_fewer_tasks_are_enough_if_sets_are_chosen_by_what_they_tell():
    full = simulations.simulate("balanced", 32, simulations.by_model, 120, seed=12)
    active = simulations.simulate("active", 20, simulations.by_model, 120, seed=12)
    assert active.concordance(active.fit) > full.concordance(full.fit) - 0.01
    assert active.auc(active.fit) > full.auc(full.fit) - 0.01
    assert active.auc(active.fit) > active.auc(active.share)


@pytest.mark.slow
def test_the_order_survives_judges_who_do_not_follow_the_model():
    found = simulations.simulate("active", 16, simulations.by_threshold, 100, seed=13)
    assert found.concordance(found.fit) > 0.9
    assert found.auc(found.fit) > 0.95
    precision, _ = found.precision_and_recall()
    assert precision > 0.85


@pytest.mark.slow
@pytest.mark.parametrize(("others", "low", "high"), [(0, 0.0, 0.1), (2, 0.4, 1.0)])
def test_a_document_is_split_if_half_of_the_judges_disagree(others, low, high):
    hits = 0
    for number in range(30):
        utilities = np.tile(simulations.draw_utilities(np.random.default_rng(number)), (4, 1))
        utilities[:, 0] = 3.0
        utilities[:others, 0] = -3.0
        state = simulations.judge_question("balanced", 64, simulations.by_model, utilities, seed=number)
        hits += "a" in simulations.split_documents(state)
    assert low <= hits / 30 <= high


def test_the_page_shows_fewer_tasks_to_be_enough_when_the_model_holds():
    table = {(row[0], row[1]): row for row in rows("model")}
    for tasks, columns in (("20", (2, 3)), ("16", (3,))):
        for column in columns:
            active, full = (
                float(table[key][column].split(" / ")[0]) for key in (("active", tasks), ("balanced", "32"))
            )
            assert active > full - 0.005
    assert all(share(row[5]) >= 0.93 for row in rows("model"))


def test_the_page_states_coverage_with_careless_judges_and_the_rates_of_splits():
    assert {row[0] for row in rows("careless")} == set(simulations.BIASED)
    assert all(share(row[4]) >= 0.9 for row in rows("careless") if not row[0].startswith("20%"))
    split = {row[0]: [share(cell) for cell in row[1:]] for row in rows("split")}
    assert max(split["6 who follow the model"] + split["10% of answers at random"]) <= 0.05
    assert split["2 of 4 disagree on one document"][-1] >= 0.8


def test_the_page_shows_an_alpha_of_0_for_judges_who_guess():
    assert all(abs(float(row[2])) < 0.02 for row in rows("guessing"))
    assert float(rows("guessing")[0][3]) > 0.2
    assert all(0.9 <= share(row[3]) <= 0.97 for row in rows("alpha"))


def test_the_page_has_the_numbers_of_the_real_judgments(data_folder):
    for name, found in (
        ("preferences", simulations.preferences(data_folder)),
        ("annotations", simulations.annotations(data_folder)),
    ):
        wanted = [list(row) for row in found]
        if name == "preferences":
            assert float(wanted[1][1]) < 1e-8
            wanted[1][1] = rows(name)[1][1]
        assert rows(name) == wanted


def test_draws_of_utilities_are_those_described():
    drawn = np.concatenate([simulations.draw_utilities(np.random.default_rng(n)) for n in range(500)])
    assert np.mean(np.abs(drawn - 0.7) < 1.1) == pytest.approx(2 / 8, abs=0.01)
    assert np.mean(drawn > 1.9) == pytest.approx(2.5 / 8, abs=0.02)

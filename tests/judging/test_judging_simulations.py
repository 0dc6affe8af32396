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
@pytest.mark.parametrize(("design", "tasks"), [("balanced", 16), ("active", 16), ("active", 32), ("adaptive", 60)])
def test_intervals_of_relevance_cover_also_after_adaptive_stopping(design, tasks):
    found = simulations.simulate(design, tasks, simulations.by_model, 150, seed=11)
    assert 0.925 <= found.coverage() <= 0.975  # 1,200 documents, correlated within a question
    clear, right = found.resolved()
    assert clear > 0.2
    assert right > 0.99


@pytest.mark.slow
def test_fewer_tasks_are_enough_if_sets_are_chosen_by_what_they_tell():
    full = simulations.simulate("balanced", 32, simulations.by_model, 300, seed=12)
    active = simulations.simulate("active", 20, simulations.by_model, 300, seed=12)
    assert active.concordance(active.fit) > full.concordance(full.fit) - 0.01
    assert active.auc(active.fit) > full.auc(full.fit) - 0.01
    half = simulations.simulate("active", 16, simulations.by_model, 300, seed=12)
    same = simulations.simulate("balanced", 16, simulations.by_model, 300, seed=12)
    assert half.auc(half.fit) > full.auc(full.fit) - 0.01
    assert half.concordance(half.fit) > same.concordance(same.fit) + 0.01
    assert half.auc(half.fit) > half.auc(half.share)


@pytest.mark.slow
def test_the_order_survives_judges_who_do_not_follow_the_model():
    found = simulations.simulate("active", 16, simulations.by_threshold, 200, seed=13)
    assert found.concordance(found.fit) > 0.9
    assert found.auc(found.fit) > 0.95
    precision, _ = found.precision_and_recall()
    assert precision > 0.85


def test_the_page_shows_fewer_tasks_to_be_enough_when_the_model_holds():
    table = {(row[0], row[1]): row for row in rows("model")}
    for tasks, columns in (("20", (2, 3)), ("16", (3,))):
        for column in columns:
            active, full = (
                float(table[key][column].split(" / ")[0]) for key in (("active", tasks), ("balanced", "32"))
            )
            assert active > full - 0.005
    assert all(0.93 <= share(row[5]) <= 0.97 for row in rows("model"))
    assert len(rows("threshold")) == len(table)


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

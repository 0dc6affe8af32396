"""The pages of production in a real browser: keyboard only, accessible, and self-contained."""

import pytest
from judging_pages import filled
from production_logs import write_log

from rankgauge.judging import Settings
from rankgauge.production import EventLog

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

pytestmark = pytest.mark.slow


def follow(page, name):
    """Focus a link with the Tab key, and follow it."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.innerText") == name:
            page.keyboard.press("Enter")
            return
    pytest.fail(f"the Tab key does not reach {name}")


def serious(axe, page):
    return [
        (page.url, each["id"], each["nodes"][0]["html"])
        for each in axe.run(page).response["violations"]
        if each["impact"] in {"serious", "critical"}
    ]


@pytest.mark.parametrize(
    "options", [{}, {"color_scheme": "dark"}, {"viewport": {"width": 320, "height": 640}}], ids=str
)
def test_new_questions_are_added_by_keyboard_alone(served, tmp_path, options):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    log = EventLog(write_log(tmp_path / "log.parquet"))
    site = served(filled(tmp_path / "judging.db", 12, 6, Settings(repeats=0.0)), log=log)
    page = site.sign_in("Lena", "lead", **options)
    found = []
    for name, path in (
        ("Production", "/production"),
        ("idk_rate", "/production/metrics/idk_rate"),
        ("Drift", "/production/drift"),
        ("New questions", "/production/sample"),
    ):
        follow(page, name)
        page.wait_for_url(f"**{path}")
        page.wait_for_selector(".busy", state="detached")  # the part that takes long
        found += serious(axe, page)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, path
    follow(page, "Draw")
    page.wait_for_url("**/production/sample?n=30*")
    page.wait_for_selector(".busy", state="detached")
    found += serious(axe, page)
    boxes = page.locator("input[type=checkbox]:checked")
    assert boxes.count() == 30
    boxes.first.focus()
    page.keyboard.press("Space")
    follow(page, "Add the selected questions")
    page.wait_for_url("**/questions")
    added = [each for each in site.project.questions.values() if each.origin == "log"]
    assert len(added) == 29
    assert (found, page.errors, site.foreign) == ([], [], [])


def test_the_picture_of_drift_is_self_contained(served, tmp_path):
    log = EventLog(write_log(tmp_path / "log.parquet"))
    site = served(filled(tmp_path / "judging.db", 12, 6), log=log)
    page = site.sign_in("Lena", "lead")
    page.goto("/production/drift/picture")
    assert page.locator("svg .evaluation").count() == 12
    assert (page.errors, site.foreign) == ([], [])

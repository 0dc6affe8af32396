"""Pages of evaluations in a real browser: the story by keyboard, narrow and dark, without a script, hostile texts."""

import pytest
from evaluated_project import create_evaluated, save_answers

from rankgauge import Baseline, gate
from rankgauge.store import Gates
from rankgauge.web.jobs import Runner

pytestmark = pytest.mark.slow
SCRIPT = "<img src=x onerror=alert(1)><script>alert(2)</script>"
PAIR = "a=1&b=2&m=nDCG%4010"
PAGES = (
    "/",
    "/evaluations",
    "/evaluations/2",
    f"/compare?{PAIR}",
    f"/compare/q1?{PAIR}&doc=d7",
    f"/deciding?{PAIR}",
    "/queries/q1",
    "/documents/d7?query=q1",
    "/explain/2/q1",
    "/evaluations/3/answers",
    "/evaluations/3/answers/q2",
    "/evaluations/3/label",
    "/jobs",
    "/try",
    "/settings",
    "/gates",
    "/gates/1",
)


@pytest.fixture
def site(served, tmp_path):
    evaluated = create_evaluated(tmp_path / "handbook", d7=SCRIPT)
    baseline = Baseline.from_run(evaluated.judgments, evaluated.evaluations.run(1))
    result = gate(evaluated.judgments, evaluated.evaluations.run(2), baseline=baseline)
    Gates(evaluated.file.store).add(result.to_json())
    with Runner(evaluated) as runner:
        yield served(evaluated.judging, evaluations=evaluated, runner=runner)


def test_from_the_verdict_to_a_grade_that_changes_it_by_keyboard(site):
    page = site.sign_in("Lea", "lead")
    page.wait_for_selector(".bottom-line a.button")
    page.locator(".bottom-line a.button").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/compare?*")
    page.get_by_role("region", name="Queries").get_by_role("link").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#compared")
    page.wait_for_load_state()  # keys work once the script has run
    before = page.locator(".result").inner_text()
    for value in ("2", "1", "2"):
        document = page.locator("#grades [name=document]").input_value()
        page.keyboard.press(value)
        page.wait_for_selector(f"#grades button[value='{value}'][aria-pressed='true']")
        assert page.locator("#grades [name=document]").input_value() == document
        page.keyboard.press("u")
        page.wait_for_function("old => document.querySelector('#grades [name=document]').value !== old", arg=document)
    after = page.locator(".result").inner_text()
    assert "as saved" in after
    assert after != before
    assert [judgment.status for judgment in site.project.judgments()] == ["in sight"] * 3
    query = page.locator("h1").inner_text()
    page.keyboard.press("j")
    page.wait_for_function("old => document.querySelector('h1').innerText !== old", arg=query)
    page.go_back()
    page.wait_for_function("old => document.querySelector('h1').innerText === old", arg=query)
    page.keyboard.press("e")
    page.wait_for_url("**/explain/**")
    page.goto(f"/compare?{PAIR}")
    with page.expect_download() as download:
        page.get_by_text("Download as one page").click()
    assert "new#2" in download.value.path().read_text()
    assert page.errors == []
    assert site.foreign == []


def test_a_double_click_on_a_grade_stores_it_once(site):
    page = site.sign_in("Lea", "lead")
    page.goto(f"/compare/q1?{PAIR}&doc=d7")
    page.locator("#grades button[value='2']").dblclick()
    page.wait_for_selector("#grades button[value='2'][aria-pressed='true']")
    with site.project.reading() as stored:
        assert stored.count("choices") == 1


def test_without_a_script_pages_can_be_read_and_documents_graded(site):
    page = site.sign_in("Lea", "lead", java_script_enabled=False)
    page.get_by_role("link", name="Compare them").click()
    page.wait_for_url("**/compare?*")
    page.goto(f"/compare/q1?{PAIR}&doc=d7")
    page.locator("#grades button[value='2']").click()
    assert page.locator("#grades button[value='2']").get_attribute("aria-pressed") == "true"
    page.goto(f"/deciding?{PAIR}")
    page.get_by_role("button", name="blind").click()
    page.wait_for_url("**/judge/*")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_no_page_is_wider_than_the_screen(site, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    save_answers(site.evaluations)
    page = site.sign_in("Lea", "lead", color_scheme=scheme)
    faults = []
    for path in PAGES:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(path)
        page.wait_for_load_state("networkidle")
        faults += [
            (path, violation["id"], [node["html"][:120] for node in violation["nodes"][:3]])
            for violation in axe.run(page).response["violations"]
        ]
        page.set_viewport_size({"width": 390, "height": 800})
        width = page.evaluate("document.documentElement.scrollWidth")
        faults += [] if width <= 390 else [(path, "width", width)]
    assert faults == []
    assert page.errors == []
    assert site.foreign == []


def test_a_lead_runs_a_benchmark_follows_it_and_tries_a_query_that_a_judge_then_judges(site):
    page = site.sign_in("Lea", "lead")
    page.goto("/jobs")
    page.get_by_label("Retriever").select_option("new")
    page.get_by_role("button", name="Run the retrievers").click()
    page.get_by_role("region", name="Jobs").get_by_role("link", name="Evaluations").click(timeout=60_000)
    page.get_by_role("link", name="new#3").wait_for()
    page.goto("/try")
    page.get_by_label("Query").fill("How are ties broken at last?")
    page.keyboard.press("Enter")
    page.locator("section[aria-label=new] .hits li").first.wait_for(timeout=60_000)
    page.get_by_role("button", name="Save as a question").click()
    page.wait_for_url("**/judge/*")
    other = site.sign_in("Ann", "judge")
    other.get_by_role("link", name="Start").click()
    other.get_by_text("How are ties broken at last?").wait_for()
    reader = site.sign_in("Rea", "reader")
    assert reader.goto("/jobs").status == 403
    assert reader.goto("/evaluations/3").status == 200
    assert page.errors == other.errors == site.foreign == []

"""HTML reports in a real browser: narrow screens, requests, accessibility, keyboard."""

import json
import tempfile

import pytest
from browser import found_browser

import rankgauge
from rankgauge import html_report
from rankgauge.answers import (
    RuleJudge,
    diagnose_answers,
    evaluate_answers,
    items_of,
    read_answers,
    sentence_claims,
)
from rankgauge.production import measure_drift
from rankgauge.reports import benchmark_section, drift_page, gate_page

playwright_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

pytestmark = pytest.mark.slow
FOLDER = rankgauge.sample_path("qrels.txt").parent
QRELS = FOLDER / "qrels.txt"
RUNS = [FOLDER / "runs" / "bm25.run", FOLDER / "runs" / "keyword.run"]
LONG = "a-run-with-a-very-long-name-" * 3


def answers():
    """Return the diagnosis of the sample's first prompt."""
    questions = FOLDER / "answers" / "questions.jsonl"
    (found,) = read_answers(FOLDER / "answers" / "prompt-1.jsonl", reference=questions)
    items = {item.key: item for each in found for item in items_of(each, sentence_claims(each))}
    return diagnose_answers(evaluate_answers(found, RuleJudge().judge(list(items.values()))))


def drift():
    """Half of the sample's questions as the set, all of them as the log."""
    lines = (FOLDER / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    return measure_drift(texts[:15], texts, permutations=19)


def several():
    """Five runs with long names."""
    runs = {f"{LONG}{n}": RUNS[n % 2] for n in range(5)}
    return html_report(QRELS, runs, collection=FOLDER)


def bench():
    """A benchmark of two retrievers."""
    plan = rankgauge.BenchmarkPlan.read(FOLDER / "rankgauge.toml")
    with tempfile.TemporaryDirectory() as store:
        outcome = rankgauge.benchmark.run_plan(plan, store=store, timed=0)
        found = outcome.bench.compare(plan.measures)
        return html_report(
            outcome.bench.qrels,
            [run.ranked() for run in found.runs],
            result=found.comparison,
            sections=(benchmark_section(found),),
        )


PAGES = {
    "one run": lambda: html_report(QRELS, RUNS[:1], collection=FOLDER),
    "comparison": lambda: html_report(QRELS, RUNS, collection=FOLDER),
    "diagnosis": lambda: html_report(QRELS, RUNS, collection=FOLDER, diagnosed="worst"),
    "several runs": several,
    "bench": bench,
    "answers": lambda: html_report(answers()),
    "drift": lambda: drift_page(drift()),
    "gate": lambda: gate_page(rankgauge.gate(QRELS, RUNS[1], baseline=rankgauge.Baseline.from_run(QRELS, RUNS[0]))),
}


@pytest.fixture(scope="module")
def chromium():
    with playwright_api.sync_playwright() as tool:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = tool.chromium.launch(executable_path=found_browser(), args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="module", params=PAGES)
def report(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(PAGES[request.param](), encoding="utf-8")
    return path


@pytest.fixture
def opened(chromium, report):
    """Open the report on a screen 400 pixels wide, and record its requests."""
    context = chromium.new_context(viewport={"width": 400, "height": 800}, bypass_csp=True)
    page = context.new_page()
    page.requested = []
    page.on("request", lambda request: page.requested.append(request.url))
    page.goto(report.as_uri())
    yield page
    context.close()


def open_everything(page):
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")


def test_no_page_scrolls_sideways_or_requests_anything(opened, report):
    width = "document.documentElement.scrollWidth"
    assert opened.evaluate(width) <= 400
    open_everything(opened)
    assert opened.evaluate(width) <= 400
    assert [url for url in opened.requested if not url.startswith("data:")] == [report.as_uri()]


def test_titles_of_wide_tables_are_read_without_scrolling(opened):
    open_everything(opened)
    beyond = opened.evaluate(
        "[...document.querySelectorAll('caption')]"
        ".filter(one => one.getBoundingClientRect().right > innerWidth).map(one => one.innerText)"
    )
    assert beyond == []


def test_axe_finds_nothing(opened):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    open_everything(opened)
    for scheme in ("light", "dark"):
        opened.emulate_media(color_scheme=scheme)
        found = axe.run(opened).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == []


def test_whatever_scrolls_is_reached_by_the_keyboard(opened):
    open_everything(opened)
    wide = opened.evaluate(
        "[...document.querySelectorAll('main *, footer *')]"
        ".filter(one => one.scrollWidth > one.clientWidth + 1"
        " && getComputedStyle(one).overflowX === 'auto').map(one => one.tabIndex)"
    )
    assert set(wide) <= {0}


def test_paper_is_light_has_everything_open_and_cuts_no_table_off(opened):
    # A4 with margins of 1 cm.
    opened.set_viewport_size({"width": 718, "height": 1000})
    opened.emulate_media(media="print", color_scheme="dark")
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.evaluate("document.querySelectorAll('details:not([open])').length") == 0
    background = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(255, 255, 255)"
    positions = opened.evaluate("[...document.querySelectorAll('body *')].map(e => getComputedStyle(e).position)")
    assert not {"sticky", "fixed"} & set(positions)
    assert opened.evaluate("document.documentElement.scrollWidth") <= 718

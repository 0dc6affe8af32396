"""The judging pages in a real browser: keys, the outbox, no script, accessibility."""

import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from judging_pages import filled

from rankgauge.judging import Candidate, Document, JudgingProject, Question, Settings, Source

playwright_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")

pytestmark = pytest.mark.slow
_GUARD = 300  # ms after a new task in which the page accepts no choice, with a reserve


def task(page):
    return page.locator("[data-task]").get_attribute("data-task")


def leave(page, before):
    """Wait until another task is shown."""
    page.locator(f"[data-task]:not([data-task='{before}'])").wait_for()


def press(page, key):
    """Press a key that decides, and wait for the next task."""
    before = task(page)
    page.wait_for_timeout(_GUARD)
    page.keyboard.press(key)
    leave(page, before)


def chosen(project):
    """Return outcome, chosen positions, and reason of each judgment with a choice, in order."""
    return [
        (
            each.choice.outcome,
            [each.presentation.documents.index(document) + 1 for document in each.choice.documents],
            each.choice.reason,
        )
        for each in project.judgments()
        if each.choice
    ]


def test_thirty_tasks_by_keyboard_alone(served):
    site = served()
    page = site.sign_in()
    page.keyboard.press("Tab")
    page.get_by_role("link", name="Start").focus()
    page.keyboard.press("Enter")
    page.locator("html.script [data-task]").wait_for()
    keys = ["1", "2", "3", "0", "u"] * 6
    for number, key in enumerate(keys):
        if number % 3 == 0:
            page.keyboard.press("d")
        press(page, key)
        assert page.evaluate("document.activeElement.tagName") == "H1"
    expected = {"1": ("chosen", [1]), "2": ("chosen", [2]), "3": ("chosen", [3])}
    expected |= {"0": ("none", []), "u": ("cannot tell", [])}
    made = chosen(site.project)
    assert [(outcome, best) for outcome, best, _ in made] == [expected[key] for key in keys]
    assert [reason == "information density" for *_, reason in made] == [number % 3 == 0 for number in range(30)]
    assert "30 done" in page.locator(".progress").inner_text()
    assert (page.errors, site.foreign) == ([], [])


def test_undo_reload_and_back_lose_nothing_and_count_nothing_twice(served):
    site = served()
    page = site.sign_in()
    page.goto("/judge")
    first = task(page)
    press(page, "1")
    second = task(page)
    press(page, "z")
    assert task(page) == first
    press(page, "2")
    assert task(page) == second
    page.reload()
    assert task(page) == second
    page.go_back()
    page.locator(f"[data-task='{first}']").wait_for()
    assert page.locator("button[aria-pressed=true]").get_attribute("value") == "2"
    press(page, "3")
    assert task(page) == second
    assert [made[:2] for made in chosen(site.project)] == [("chosen", [3])]


def test_a_double_click_and_a_held_key_choose_once(served):
    site = served()
    page = site.sign_in()
    page.goto("/judge")
    page.wait_for_timeout(_GUARD)
    page.get_by_role("button", name="Document 1").dblclick()
    page.wait_for_timeout(500)
    assert len(chosen(site.project)) == 1
    before = task(page)
    page.wait_for_timeout(_GUARD)
    page.keyboard.down("2")
    for _ in range(5):
        page.keyboard.down("2")  # repeated events of a held key
    page.keyboard.up("2")
    leave(page, before)
    page.wait_for_timeout(500)
    assert len(chosen(site.project)) == 2


def test_keys_are_ignored_in_fields_with_modifiers_and_when_switched_off(served):
    site = served()
    page = site.sign_in()
    page.goto("/judge")
    page.wait_for_timeout(_GUARD)
    before = task(page)
    page.get_by_text("Comment", exact=True).click()
    page.get_by_label("Comment").fill("")
    page.keyboard.type("1 2 0 u z")
    page.locator("h1").focus()
    for key in ("Control+1", "Alt+2", "Meta+0"):
        page.keyboard.press(key)
    page.keyboard.press("?")
    page.get_by_label("Use these keys").uncheck()
    page.locator("h1").focus()
    page.keyboard.press("1")
    page.wait_for_timeout(300)
    assert (task(page), chosen(site.project)) == (before, [])
    assert not page.locator(".key").first.is_visible()
    page.reload()
    page.keyboard.press("1")
    page.wait_for_timeout(300)
    assert chosen(site.project) == []
    page.locator("#help summary").click()
    page.get_by_label("Use these keys").check()
    page.locator("h1").focus()
    press(page, "1")
    assert len(chosen(site.project)) == 1


def test_a_choice_made_offline_is_kept_and_sent_when_the_connection_is_back(served):
    site = served()
    page = site.sign_in()
    page.goto("/judge")
    before = task(page)
    page.wait_for_timeout(_GUARD)
    page.context.set_offline(True)
    page.keyboard.press("2")
    page.locator("#unsaved", has_text="1 unsaved").wait_for()
    assert chosen(site.project) == []
    page.context.set_offline(False)
    leave(page, before)
    assert [made[:2] for made in chosen(site.project)] == [("chosen", [2])]
    assert not page.locator("#unsaved").is_visible()


def test_a_choice_made_offline_can_be_changed_and_undone(served):
    site = served()
    page = site.sign_in()
    page.goto("/judge")
    press(page, "1")
    before = task(page)
    page.wait_for_timeout(_GUARD)
    page.context.set_offline(True)
    for key in ("2", "3", "z"):
        page.keyboard.press(key)
        page.locator("#unsaved", has_text="1 unsaved").wait_for()
        page.wait_for_timeout(200)
    page.context.set_offline(False)
    page.locator("#unsaved").wait_for(state="hidden")
    assert task(page) == before
    assert [made[0] for made in chosen(site.project)] == ["chosen", "undone"]


def test_a_choice_survives_a_closed_page(served):
    site = served()
    page = site.sign_in()
    page.goto("/judge")
    before = task(page)
    page.wait_for_timeout(_GUARD)
    page.route("**/judge/*", lambda route: route.abort())
    page.keyboard.press("3")
    page.locator("#unsaved", has_text="1 unsaved").wait_for()
    context = page.context
    page.close()
    again = context.new_page()
    again.goto(f"/judge/{before}")
    leave(again, before)
    assert [made[:2] for made in chosen(site.project)] == [("chosen", [3])]


def test_a_corrupted_form_is_refused_with_the_reason_and_can_be_discarded(served):
    site = served()
    page = site.sign_in()
    page.goto("/judge")
    page.wait_for_timeout(_GUARD)
    page.eval_on_selector("button[value='2']", "button => { button.value = '7' }")
    page.keyboard.press("2")
    page.get_by_text("there is no document 7").first.wait_for()
    assert chosen(site.project) == []
    page.get_by_role("button", name="Discard").click()
    assert not page.locator("#unsaved").is_visible()
    press(page, "1")
    assert [made[:2] for made in chosen(site.project)] == [("chosen", [1])]


def test_everything_works_without_a_script(served):
    site = served()
    page = site.sign_in(java_script_enabled=False)
    page.get_by_role("link", name="Start").click()
    for name in ("Document 2", "None of these answers it", "Can't tell"):
        page.get_by_label("more detail").check()
        page.get_by_role("button", name=name).click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Document 3").click()
    page.get_by_role("button", name="Judge later").click()
    assert [(outcome, best) for outcome, best, _ in chosen(site.project)] == [
        ("chosen", [2]),
        ("none", []),
        ("chosen", [3]),
        ("later", []),
    ]
    page.wait_for_load_state()
    assert not page.locator("kbd").first.is_visible()
    assert site.foreign == []


def test_a_ranking_by_keys_by_drag_and_without_a_script(served):
    site = served(mode="ranking", shown=5, places=3)
    page = site.sign_in()
    page.goto("/judge")
    page.keyboard.press("4")
    page.keyboard.press("2")
    page.keyboard.press("2")
    page.keyboard.press("1")
    press(page, "Enter")
    before = task(page)
    for number in (5, 3):
        page.locator(f"#document-{number} header").drag_to(page.locator("#ranking"), target_position={"x": 5, "y": 5})
    assert page.locator("#ranking li").all_inner_texts() == ["1. Document 3", "2. Document 5"]
    page.wait_for_timeout(_GUARD)
    page.get_by_role("button", name="Save the ranking").click()
    leave(page, before)
    plain = site.sign_in("Bob", java_script_enabled=False)
    plain.goto("/judge")
    plain.locator("[name=rank-2]").select_option("1")
    plain.get_by_role("button", name="Save the ranking").click()
    assert [best for _, best, _ in chosen(site.project)] == [[4, 1], [3, 5], [2]]


def test_two_people_racing_for_tasks_both_finish(served):
    site = served(overlap=0.0, budget=2, random=0.0, gold=0.0)
    pages = [site.sign_in(name) for name in ("Ann", "Bob")]
    for page in pages:
        page.goto("/judge")
    finished = 0
    while finished < 40 and any(page.locator("[data-task]").count() for page in pages):
        shown = [page for page in pages if page.locator("[data-task]").count()]
        for page in shown:
            page.wait_for_timeout(_GUARD)
            page.keyboard.press("1")
        for page in shown:
            page.wait_for_timeout(_GUARD)
            finished += 1
    for page in pages:
        assert page.get_by_role("heading", name=re.compile("Nothing is left (for you )?to judge")).is_visible()
    made = site.project.judgments()
    sets = [(each.presentation.question, each.presentation.items) for each in made]
    assert all(each.choice is not None for each in made)
    assert len(set(sets)) == len(sets) == 24


EVIL = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
    "<svg onload='window.hacked = 1'><iframe src='https://evil.example'></iframe>"
    "<style>body { display: none }</style> <link rel=stylesheet href='https://evil.example/x.css'>"
    "\u202e\u05e9\u05dc\u05d5\u05dd \U0001f600\n    indented"
)


@pytest.mark.parametrize("suffix", ["", ".md"])
def test_documents_cannot_run_or_load_anything(served, tmp_path, suffix):
    project = JudgingProject.create(tmp_path / "evil.db", Settings(title=EVIL, link="url"))
    project.add_questions([Question("q", EVIL, need=EVIL)])
    names = [f"{name}{suffix}" for name in "abc"]
    project.add_candidates(
        [Candidate("q", name, (Source("run"),)) for name in names],
        [Document(name, {"title": EVIL, EVIL: EVIL, "text": EVIL, "url": "javascript:alert(1)"}) for name in names],
    )
    project.change_guideline(f"{EVIL}\n\n![x](https://evil.example/x.png) [y](javascript:alert(1))")
    site = served(project)
    page = site.sign_in(EVIL[:90])
    for path in ("/", "/judge"):
        page.goto(path)
        page.wait_for_timeout(200)
        assert page.evaluate("window.hacked") is None
        assert page.locator("h1").is_visible()
    assert page.locator("iframe, img, svg, a[href^=javascript]").count() == 0
    assert page.locator(".pane .text").first.inner_text().endswith("    indented")
    assert page.locator(".pane .markdown").count() == (3 if suffix else 0)
    assert (site.foreign, page.errors) == ([], [])


def test_on_a_phone_the_guideline_is_folded_after_the_first_task(served):
    site = served()
    page = site.sign_in(viewport={"width": 390, "height": 844})
    page.goto("/judge")
    guideline, summary = page.locator("#guideline"), page.locator("#guideline summary")
    assert guideline.get_attribute("open") is not None
    press(page, "1")
    assert guideline.get_attribute("open") is None
    page.reload()
    page.locator("html.script [data-task]").wait_for()
    assert guideline.get_attribute("open") is None
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator("#guideline .text").is_visible()
    page.keyboard.press("g")
    assert not page.locator("#guideline .text").is_visible()
    page.keyboard.press("g")
    press(page, "2")
    assert guideline.get_attribute("open") is None
    # A new version is shown once.
    site.project.change_guideline("# New rules")
    press(page, "1")
    assert page.get_by_role("heading", name="New rules").is_visible() == (guideline.get_attribute("open") is not None)
    wide = site.sign_in("Bob")
    wide.goto("/judge")
    press(wide, "1")
    assert wide.locator("#guideline").get_attribute("open") is not None


def test_axe_finds_nothing_serious(served, tmp_path):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for mode in ("choice", "ranking", "graded", "yes-no"):
        found = []
        site = served(filled(tmp_path / f"{mode}.db", 4, 6, Settings(mode=mode)))
        for options in ({}, {"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 844}}):
            page = site.sign_in(f"judge {options}", **options)
            # Only the task depends on the mode.
            for path in ("/", "/judge", "/judge/unknown") if mode == "choice" else ("/judge",):
                page.goto(path)
                found += [
                    (path, each["id"], each["nodes"][0]["html"])
                    for each in axe.run(page).response["violations"]
                    if each["impact"] in {"serious", "critical"}
                ]
        assert found == []


def test_no_page_scrolls_sideways_on_a_phone_or_at_200_percent(served):
    site = served()
    for width, height in ((320, 600), (390, 844), (640, 400), (800, 600), (1280, 720)):
        page = site.sign_in(f"w{width}", viewport={"width": width, "height": height})
        for path in ("/", "/judge", "/judge/unknown"):
            page.goto(path)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, (path, width, wide)
        page.goto("/judge")
        page.get_by_role("button", name="Document 1").scroll_into_view_if_needed()
        assert page.get_by_role("button", name="Document 1").is_visible()


def test_the_next_task_arrives_with_the_reply_to_a_choice(served):
    """One request for each choice, and no page load, so the next task appears at once."""
    site = served()
    page = site.sign_in()
    page.goto("/judge")
    sent, loaded = [], []
    page.on("request", lambda each: "/static/" in each.url or sent.append(each.method))
    page.on("load", lambda _: loaded.append(page.url))
    for _ in range(5):
        before = page.locator("[data-task]").get_attribute("data-task")
        page.wait_for_timeout(_GUARD)
        page.click("button[value='1']")
        page.wait_for_selector(f"[data-task]:not([data-task='{before}'])")
    assert (sent, loaded) == (["POST"] * 5, [])


# ---- a server that is killed


class Killed:
    """A server in a separate process, which can be killed and restarted."""

    def __init__(self, where):
        self.where = where
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self, when=""):
        program = Path(__file__).parents[1] / "judging_server.py"
        arguments = [sys.executable, str(program), self.where, str(self.port), when]
        self.process = subprocess.Popen(arguments)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert self.process.poll() is None, "the server ended"
                time.sleep(0.1)
            else:
                return

    def kill(self):
        self.process.kill()
        self.process.wait(20)


def test_a_server_killed_at_any_step_loses_no_choice(where, chromium):
    project = filled(where, 6, 4, Settings(repeats=0.0))
    secret = project.add_judge("Ann")[1]
    server = Killed(where)
    server.start()
    context = chromium.new_context(base_url=server.url)
    try:
        page = context.new_page()
        page.goto(f"/join/{secret}")
        page.get_by_role("button", name="Sign in").click()
        page.goto("/judge")
        tasks = []
        # Between two steps: before and after a choice is stored, and after the next task is
        # reserved.
        for number, when in enumerate(("", "before", "after", "next")):
            server.kill()
            server.start(when)
            tasks.append(task(page))
            page.wait_for_timeout(_GUARD)
            page.keyboard.press(str(number % 3 + 1))
            if when:
                server.process.wait(30)
                page.locator("#unsaved", has_text="1 unsaved").wait_for()
                server.start()
            leave(page, tasks[-1])
        made = [each for each in project.judgments() if each.choice]
        assert [each.presentation.id for each in made] == tasks
        assert [made[:2] for made in chosen(project)] == [("chosen", [number % 3 + 1]) for number in range(4)]
        with project.reading() as stored:
            assert len(stored.choices()) == 4
    finally:
        context.close()
        server.kill()
        project.close()

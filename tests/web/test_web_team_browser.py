"""Team pages, and the form of deployed applications, in a real browser."""

import html
import http.server
import json
import threading

import pytest
from judging_pages import filled

from rankgauge.judging import Answer, Choice, Settings, vote_report

pytestmark = pytest.mark.slow
_GUARD = 300  # ms after a new task in which the page accepts no choice, with a reserve
SCRIPT = "<img src=x onerror=alert(1)><script>alert(2)</script>"
PAGES = ("/", "/answers", "/questions", "/guideline", "/progress", "/disagreements", "/votes", "/settings", "/people")


def with_team(where):
    """Create a project with a disagreement, answers, and votes, all with hostile texts."""
    project = filled(where, settings=Settings(overlap=1.0, judges=3, title=SCRIPT))
    project.add_answers(
        Answer(f"{name}-{number}", f"q00{number}", f"{SCRIPT} {name}", name, sources=(SCRIPT, name))
        for number in range(3)
        for name in ("v1", "v2")
    )
    for place, name in enumerate((SCRIPT, "Ben")):
        judge, _ = project.add_judge(name)
        shown = project.next_task(judge.id).presentation
        chosen = (sorted(shown.documents)[place],)
        project.record(Choice(judge.id, shown.id, judge.id, "chosen", chosen, comment=SCRIPT))
        pair = project.next_task(judge.id, votes=True).presentation
        project.record(Choice(pair.id, pair.id, judge.id, "chosen", pair.documents[:1]))
    project.add_judge("shop", kind="application", origins=["https://shop.example"])
    return project


def test_answers_are_compared_by_keyboard_alone(served, tmp_path):
    site = served(with_team(tmp_path / "team.db"))
    page = site.sign_in("Ann")
    page.goto("/answers")
    for key in ("1", "b", "0"):
        before = page.locator("[data-task]").get_attribute("data-task")
        page.wait_for_timeout(_GUARD)
        page.keyboard.press(key)
        page.wait_for_function("before => document.querySelector('[data-task]')?.dataset.task !== before", arg=before)
    assert "No answers are left" in page.locator("h1").inner_text()
    made = [each.choice.outcome for each in site.project.judgments() if each.status == "vote"]
    assert made == ["chosen", "chosen", "chosen", "both good", "both bad"]
    assert page.errors == []


def test_a_lead_gives_a_verdict_with_the_script_and_without(served, tmp_path):
    site = served(with_team(tmp_path / "team.db"))
    for script in (True, False):
        page = site.sign_in(f"lead {script}", "lead", java_script_enabled=script)
        page.goto("/disagreements")
        page.get_by_role("button", name="verdict").click()
        page.wait_for_url("**/judge/*")
        page.wait_for_timeout(_GUARD)
        page.get_by_role("button", name="None of these answers it").click()
        page.wait_for_url("**/disagreements")
        assert f"by lead {script}" in page.locator("main").inner_text()
    verdicts = [each for each in site.project.judgments() if each.status == "counted"]
    assert [each.choice.outcome for each in verdicts] == ["none"]


def test_an_admin_invites_and_a_judge_asks_without_a_script(served):
    site = served()
    page = site.sign_in("Ada", "admin", java_script_enabled=False)
    page.goto("/people")
    page.get_by_label("Name", exact=True).first.fill("Eva")
    page.get_by_role("button", name="Invite").click()
    link = page.get_by_role("textbox", name="Link for Eva").input_value()
    page.get_by_role("button", name="Sign out").click()
    assert page.get_by_role("heading", name="You are signed out").is_visible()
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.goto("/questions")
    page.get_by_label("Question", exact=True).fill("Why?")
    page.get_by_role("button", name="Add the question").click()
    assert [each.author for each in site.project.questions.values()][-1] == "Eva"


def test_hostile_texts_are_text_on_every_page(served, tmp_path):
    site = served(with_team(tmp_path / "team.db"))
    page = site.sign_in(f"admin {SCRIPT}", "admin")
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    for path in PAGES:
        page.goto(path)
        assert page.locator("main img, main script").count() == 0, path
    assert (dialogs, site.foreign, page.errors) == ([], [], [])


def test_axe_finds_nothing_serious_on_the_pages_of_a_team(served, tmp_path):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    site = served(with_team(tmp_path / "team.db"))
    found = []
    for options in ({}, {"color_scheme": "dark"}, {"viewport": {"width": 320, "height": 640}}):
        page = site.sign_in(f"admin {options}", "admin", **options)
        for path in PAGES:
            page.goto(path)
            found += [
                (path, each["id"], each["nodes"][0]["html"])
                for each in axe.run(page).response["violations"]
                if each["impact"] in {"serious", "critical"}
            ]
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, (path, options)
    assert found == []


@pytest.fixture
def shop():
    """Yield the address of a site of another origin whose single page can be set."""

    class Page(http.server.BaseHTTPRequestHandler):
        body = ""

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(self.body.encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Page, f"http://localhost:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def embedded(site, token, sources=("d1",)):
    return f"""<!doctype html><title>Shop</title>
<div class="rankgauge-vote" data-token="{token}" data-question="How long do refunds take?">
  <section><div data-answer data-retrieval="v1" data-sources='{json.dumps(sources)}'>Three
    days {html.escape(SCRIPT)}</div></section>
  <section><div data-answer data-retrieval="v2" data-sources='["d2"]'>A week</div></section>
</div>
<script src="{site.url}/static/embed.js" defer></script>"""


def test_a_page_of_another_origin_sends_votes_without_cookies(served, shop, chromium):
    page_of, origin = shop
    site = served()
    _, token = site.project.add_judge("shop", kind="application", origins=[origin])
    page_of.body = embedded(site, token)
    context = chromium.new_context()
    page = context.new_page()
    errors, sent = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda each: sent.append(each) if each.method == "POST" else None)
    first = set()
    for number in range(12):
        page.goto(origin)
        answers = page.locator("[data-answer]").all_inner_texts()
        first.add(answers[0].startswith("A week"))
        page.get_by_role("button", name="The first answer is better").click()
        page.get_by_text("Thank you.").wait_for()
        made = site.project.judgments()
        assert len(made) == number + 1
        shown = made[-1].presentation
        texts = [site.project.answers()[each].text for each in shown.documents]
        assert [text.split()[0] for text in texts] == [text.split()[0] for text in answers]
        assert made[-1].choice.documents == shown.documents[:1]
    assert first == {True, False}
    assert errors == []
    assert all("cookie" not in each.all_headers() for each in sent)
    assert context.cookies() == []
    (pair,) = vote_report(site.project).pairs
    assert (pair.kind, pair.wins + pair.losses) == ("application", 12)
    context.close()


def test_a_page_of_an_origin_that_is_not_listed_sends_none(served, shop, chromium):
    page_of, origin = shop
    site = served()
    _, token = site.project.add_judge("shop", kind="application", origins=["https://else.example"])
    page_of.body = embedded(site, token)
    context = chromium.new_context()
    page = context.new_page()
    page.clock.install()
    page.goto(origin)
    page.get_by_role("button", name="Both are good").click()
    for _ in range(8):
        page.wait_for_timeout(100)
        page.clock.run_for(20_000)
    page.get_by_text("The vote was not saved").wait_for()
    assert site.project.judgments() == []
    context.close()

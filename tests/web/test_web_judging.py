"""The judging pages without scripts: plain forms."""

import contextlib
import itertools
import re
import sqlite3
import sys
import uuid
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest
from judging_pages import ORIGIN, filled, sign_in
from starlette.testclient import TestClient

from rankgauge.judging import Candidate, Document, JudgingProject, Question, Settings, Source
from rankgauge.web import judging_app
from rankgauge.web.pages import markdown_html


def field(page, name):
    return re.search(rf'name="{name}" value="([^"]*)"', page.text).group(1)


def post(client, page, **fields):
    data = {name: field(page, name) for name in ("csrf", "choice", "opened")} | fields
    return client.post(page.url.path, data=data)


def opened(tmp_path, **settings):
    """Return a signed-in client of a project with these settings."""
    project = filled(tmp_path / "judging.db", settings=Settings(**settings))
    client = TestClient(judging_app(project), base_url=ORIGIN)
    sign_in(client, project)
    return project, client


def judged(project):
    """Return outcome, documents, and grades of each judgment with a choice."""
    return [
        (each.choice.outcome, each.choice.documents, each.choice.grades) for each in project.judgments() if each.choice
    ]


def test_a_judge_chooses_a_document_with_a_plain_form(project, client):
    judge = sign_in(client, project)
    page = client.get("/judge")
    following = post(client, page, pick="2", reason="correctness", comment="  clear ")
    first, second = project.judgments()
    assert f"/judge/{first.presentation.id}" == page.url.path
    assert f"/judge/{second.presentation.id}" == following.url.path
    assert first.choice.documents == (first.presentation.documents[1],)
    assert first.choice.judge == judge.id
    assert (first.choice.reason, first.choice.comment) == ("correctness", "clear")
    assert 0 <= first.choice.seconds < 60


@pytest.mark.parametrize("pick", ["none", "cannot tell", "later"])
def test_other_answers_have_a_button_of_their_own(project, client, pick):
    sign_in(client, project)
    post(client, client.get("/judge"), pick=pick)
    assert judged(project) == [(pick, (), ())]


def test_grades_are_numbers_from_the_lowest_label(tmp_path):
    project, client = opened(tmp_path, mode="graded", grades=("no", "partly", "yes"))
    page = client.get("/judge")
    assert page.text.count("<article") == 1
    assert [label in page.text for label in ("no", "partly", "yes")] == [True] * 3
    post(client, page, pick="2")
    assert judged(project) == [("graded", (), (2,))]


def test_yes_is_the_document_chosen_and_no_is_none(tmp_path):
    project, client = opened(tmp_path, mode="yes-no")
    post(client, post(client, client.get("/judge"), pick="1"), pick="none")
    first = project.judgments()[0].presentation
    assert judged(project) == [("chosen", first.documents, ()), ("none", (), ())]


def test_a_ranking_is_made_with_select_boxes_and_may_stop_early(tmp_path):
    project, client = opened(tmp_path, mode="ranking", shown=4)
    page = client.get("/judge")
    post(client, page, pick="ranking", **{"rank-3": "1", "rank-1": "2", "rank-2": ""})
    shown = project.judgments()[0].presentation.documents
    assert judged(project) == [("chosen", (shown[2], shown[0]), ())]


def test_two_documents_with_the_same_rank_are_rejected(tmp_path):
    project, client = opened(tmp_path, mode="ranking", shown=4)
    page = client.get("/judge")
    answer = post(client, page, pick="ranking", **{"rank-3": "1", "rank-1": "1"})
    assert answer.status_code == 400
    assert "two documents have rank 1" in answer.text
    assert judged(project) == []


def test_the_same_form_sent_twice_is_stored_once(project, client):
    sign_in(client, project)
    page = client.get("/judge")
    for _ in range(3):
        assert post(client, page, pick="1").status_code == 200
    assert len(judged(project)) == 1
    with project.reading() as stored:
        assert len(stored.choices()) == 1


def test_another_answer_from_a_page_gone_back_to_is_a_correction(project, client):
    sign_in(client, project)
    page = client.get("/judge")
    for pick in ("1", "2", "2"):
        post(client, page, pick=pick)
    shown = project.judgments()[0].presentation
    assert judged(project) == [("chosen", (shown.documents[1],), ())]
    with project.reading() as stored:
        assert len(stored.choices()) == 2


def test_a_finished_task_shows_what_was_chosen_and_can_be_changed(project, client):
    sign_in(client, project)
    page = client.get("/judge")
    post(client, page, pick="3")
    again = client.get(page.url.path)
    pressed = re.findall(r'value="([^"]*)"[^>]*aria-pressed="true"', again.text)
    assert pressed == ["3"]
    post(client, again, pick="none")
    assert judged(project) == [("none", (), ())]


def test_undo_opens_the_last_task_again_however_often_it_is_sent(project, client):
    sign_in(client, project)
    first = client.get("/judge")
    second = post(client, first, pick="1")
    third = post(client, second, pick="1")
    form = re.search(r'action="(/judge/[^"]+)" id="undo".*?"choice" value="([^"]+)"', third.text, re.DOTALL)
    for _ in range(2):
        back = client.post(form[1], data={"csrf": field(third, "csrf"), "choice": form[2], "pick": "undone"})
        assert back.url.path == second.url.path
    assert [each.choice and each.choice.outcome for each in project.judgments()] == ["chosen", "undone", None]
    assert post(client, back, pick="2").url.path == third.url.path


def test_reload_shows_the_same_task(project, client):
    sign_in(client, project)
    assert {client.get("/judge").url.path for _ in range(3)} == {client.get("/judge").url.path}
    assert len(project.judgments()) == 1


def test_a_choice_after_the_lease_ended_is_stored(project, client):
    judge = sign_in(client, project)
    task = project.next_task(judge.id, now=datetime.now(UTC) - timedelta(hours=2))
    page = client.get(f"/judge/{task.presentation.id}")
    assert "Your answer will still be stored" in page.text
    post(client, page, pick="1")
    assert next(each.status for each in project.judgments()) == "counted"


def test_the_end_says_that_nothing_is_left(tmp_path):
    project = filled(tmp_path / "judging.db", 1, 2, Settings(mode="yes-no", repeats=0, judges=1))
    client = TestClient(judging_app(project), base_url=ORIGIN)
    sign_in(client, project)
    page = client.get("/judge")
    while "/judge/" in page.url.path:
        page = post(client, page, pick="1")
    assert "Nothing is left to judge" in page.text
    assert len(judged(project)) == 2


# ---- permissions


def test_nobody_sees_a_task_without_signing_in(client):
    answer = client.get("/judge")
    assert answer.status_code == 401
    assert "link" in answer.text


def test_a_task_of_another_judge_is_unknown(project, client):
    other, _ = project.add_judge("Bob")
    task = project.next_task(other.id)
    sign_in(client, project)
    path = f"/judge/{task.presentation.id}"
    client.headers["X-CSRF-Token"] = field(client.get("/judge"), "csrf")
    for answer in (
        client.get(path),
        client.post(path, data={"choice": str(uuid.uuid4()), "pick": "1"}),
        client.get(f"/judge/{uuid.uuid4()}"),
        client.post("/judge/none", data={"choice": str(uuid.uuid4()), "pick": "1"}),
    ):
        assert answer.status_code == 404
        assert "You have no such task" in answer.text
    assert judged(project) == []


def test_a_judge_never_sees_where_a_document_came_from(project, client):
    sign_in(client, project)
    page = client.get("/judge").text
    assert not any(word in page for word in ("bm25", "score", "rank ", "active", "9.5"))


# ---- displayed content


def shown_texts(tmp_path, text, *, question="What is it?", settings=None, **fields):
    """Return the page of a task whose documents have this text."""
    project = JudgingProject.create(tmp_path / "texts.db", settings)
    project.add_questions([Question("q", question, need=text)])
    names = ["a", "b"]
    pool = [Candidate("q", name, (Source("run"),)) for name in names]
    project.add_candidates(pool, [Document(name, {"text": text} | fields) for name in names])
    client = TestClient(judging_app(project), base_url=ORIGIN)
    sign_in(client, project)
    return client.get("/judge")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "{{ 7 * 7 }} {% raw %}",
        "</textarea></div></form><form action='https://evil.example'>",
        "]]> <!-- -->",
    ],
)
def test_markup_in_documents_and_questions_is_text(tmp_path, text):
    page = shown_texts(tmp_path, text, question=text, title=text).text
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "evil.example'>" not in page.replace("&#39;&gt;", "")
    assert "49" not in re.sub(r"<[^>]*>", "", page)


def test_terms_of_the_question_are_marked_also_inflected(tmp_path):
    page = shown_texts(tmp_path, "A tie; ties & tied <b>scores</b>", question="How are ties broken?")
    marked = re.findall("<mark>([^<]*)</mark>", page.text)
    assert marked[:3] == ["tie", "ties", "tied"]
    assert "&amp;" in page.text


def test_code_emoji_and_right_to_left_text_are_kept(tmp_path):
    text = "def f():\n\treturn 1\n\n    # \U0001f600 \u05e9\u05dc\u05d5\u05dd \u202e"
    page = shown_texts(tmp_path, text)
    assert text.replace("'", "&#39;") in page.text
    assert 'dir="auto"' in page.text


def test_a_document_of_a_megabyte_is_shown_whole(tmp_path):
    page = shown_texts(tmp_path, ("ties " + "and words " * 14) * 6_600, question="How are ties broken?")
    assert page.text.count("<mark>ties</mark>") == 2 * 6_600


def test_only_web_addresses_become_links_and_images(tmp_path):
    settings = Settings(link="url", image="picture")
    good = {"url": "https://example.org/a?b=1&c", "picture": "https://example.org/a.png"}
    page = shown_texts(tmp_path, "text", settings=settings, **good)
    assert 'href="https://example.org/a?b=1&amp;c"' in page.text
    assert '<img src="https://example.org/a.png"' in page.text
    assert "img-src 'self' http: https:" in page.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "data:text/html,x", "//evil.example", "file:///etc", "http:"]
)
def test_other_addresses_are_not_opened(tmp_path, address):
    settings = Settings(link="url", image="picture")
    page = shown_texts(tmp_path, "text", settings=settings, url=address, picture=address)
    assert 'target="_blank"' not in page.text
    assert "<img" not in page.text


def test_only_configured_fields_are_displayed_in_their_order(tmp_path):
    settings = Settings(fields=("answer", "text"))
    page = shown_texts(tmp_path, "the body", settings=settings, answer="the answer", secret="hidden")
    assert page.text.index("the answer") < page.text.rindex("the body")
    assert "hidden" not in re.sub("<[^>]*>", "", page.text)


def test_html_in_a_guideline_is_text_and_its_version_is_shown(project, client):
    sign_in(client, project)
    project.change_guideline("# Rules\n\n<script>alert(1)</script> ![x](http://x.org/a.png) **be fair**")
    page = client.get("/judge").text
    assert "<strong>be fair</strong>" in page
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "version 2" in page


def test_pages_may_load_nothing_from_elsewhere(project, client):
    sign_in(client, project)
    for path in ("/", "/judge", "/nothing", "/static/judging.js", "/static/theme.css"):
        answer = client.get(path)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert answer.headers["Cache-Control"] in {"no-store", "no-cache"}
        assert not re.findall(r"<script>|<style|\son\w+=|style=", answer.text)


# ---- rejected requests


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pick": "9"}, "there is no document 9"),
        ({"pick": "0"}, "there is no document 0"),
        ({"pick": "²"}, "which is not a choice"),
        ({"pick": ""}, "which is not a choice"),
        ({"pick": "1", "choice": "x"}, "no identifier"),
        ({"pick": "1", "choice": ""}, "no identifier"),
        ({"pick": "1", "reason": "habit"}, "the reason"),
        ({"pick": "1", "comment": "x" * 10_001}, "10,001 characters"),
        ({"pick": "both good"}, "is not an outcome of the mode choice"),
    ],
)
def test_a_corrupted_form_is_refused_and_nothing_is_stored(project, client, fields, message):
    sign_in(client, project)
    page = client.get("/judge")
    answer = post(client, page, **fields)
    assert answer.status_code == 400
    assert message in answer.text.replace("&#39;", "'")
    assert "What to do" in answer.text
    assert judged(project) == []


def test_a_malformed_form_is_refused(project, client):
    sign_in(client, project)
    page = client.get("/judge")
    for body in (b"\xff\xfe", b"&".join([b"a=1"] * 300)):
        answer = client.post(page.url.path, content=body)
        assert answer.status_code == 400
        assert "the form cannot be read" in answer.text


def test_an_oversized_form_is_refused(project, client):
    sign_in(client, project)
    answer = client.post(client.get("/judge").url.path, content=b"comment=" + b"x" * 1_000_001)
    assert answer.status_code == 413
    assert "larger than 1,000,000 bytes" in answer.text


def test_times_that_no_clock_shows_are_unknown(project, client):
    sign_in(client, project)
    for seconds in ("-1", "nan", "1e9", "soon"):
        post(client, client.get("/judge"), pick="1", seconds=seconds)
    assert [each.choice.seconds for each in project.judgments() if each.choice] == [None] * 4


def test_a_locked_database_is_reported_and_the_choice_can_be_sent_again(tmp_path):
    where = tmp_path / "judging.db"
    filled(where).close()
    project = JudgingProject(where, wait=0.2)
    client = TestClient(judging_app(project), base_url=ORIGIN)
    sign_in(client, project)
    page = client.get("/judge")
    other = sqlite3.connect(where, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answer = post(client, page, pick="1")
    assert answer.status_code == 503
    assert "another program is writing" in answer.text
    other.execute("ROLLBACK")
    other.close()
    assert post(client, page, pick="1").status_code == 200
    assert len(judged(project)) == 1


def test_a_full_disk_is_reported_and_the_choice_can_be_sent_again(project, client):
    sign_in(client, project)
    page = client.get("/judge")
    with full_disk():
        answer = post(client, page, pick="1", comment="x" * 9_000)
    assert answer.status_code == 503
    assert "check the disk" in answer.text
    assert post(client, page, pick="1", comment="x" * 9_000).status_code == 200
    assert len(judged(project)) == 1


@contextlib.contextmanager
def full_disk():
    """Limit files to 4 KB, so that writing fails as on a full disk."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # it would be cut off, too
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = written


def test_pages_that_do_not_exist_say_so(client):
    answer = client.get("/nothing")
    assert answer.status_code == 404
    assert "There is no such page" in answer.text
    assert client.post("/judge").status_code == 405


# ---- documents in Markdown


MARKDOWN = """
Refunds take **5 days**, see [the terms](https://example.org/terms?a=1&b) and [more](other.md).

| Method | Days |
|--------|-----:|
| card   | 5 <b>ties</b> |

```python
refund(order)  # <script>
```

![A plan](../img/plan%20b.png) ![remote](https://evil.example/x.png)
"""


def shown_document(tmp_path, name, text, question="How long do refunds take?"):
    """Return the page of a task with one document of this name."""
    project = JudgingProject.create(tmp_path / "documents.db", Settings(mode="yes-no"))
    project.add_questions([Question("q", question)])
    project.add_candidates([Candidate("q", name, (Source("run"),))], [Document(name, {"title": "T", "text": text})])
    client = TestClient(judging_app(project), base_url=ORIGIN)
    sign_in(client, project)
    return client.get("/judge").text


@pytest.mark.parametrize("name", ["guide/refunds.md", "guide/refunds.MD", "guide/refunds.markdown#0003"])
def test_a_document_in_markdown_is_displayed_as_html_with_marked_terms(tmp_path, name):
    page = shown_document(tmp_path, name, MARKDOWN)
    assert "<p><mark>Refunds</mark> <mark>take</mark> <strong>5 days</strong>" in page
    assert (
        '<a href="https://example.org/terms?a=1&amp;b" target="_blank" rel="noopener noreferrer">the terms</a>' in page
    )
    assert "<a>more</a>" in page
    assert '<td class="right">5 &lt;b&gt;ties&lt;/b&gt;</td>' in page
    assert "<pre><code><mark>refund</mark>(order)  # &lt;script&gt;" in page
    assert '<img src="/images/img/plan%20b.png" alt="A plan" loading="lazy">' in page
    assert "[image: remote]" in page
    assert "evil.example" not in page
    assert "style=" not in page


@pytest.mark.parametrize("name", ["guide/refunds.txt", "d7", "refunds.md.txt", "guide.md/d7"])
def test_other_documents_are_displayed_as_they_are(tmp_path, name):
    page = shown_document(tmp_path, name, MARKDOWN)
    assert "**5 days**" in page
    assert "| card   | 5 &lt;b&gt;ties&lt;/b&gt; |" in page
    assert "<img" not in page


class Found(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.attributes = set(), []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.elements.add(tag)
        self.attributes += [(tag, *each) for each in attributes]


TAGS = {"p", "em", "strong", "a", "s", "ul", "ol", "li", "blockquote", "pre", "code", "br", "hr", "img", "mark"}
TAGS |= {"h3", "h4", "h5", "h6", "div", "table", "thead", "tbody", "tr", "th", "td"}
ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>\n\n<svg onload=alert(1)>\n<iframe src=//evil.example>",
    "[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) [d](vbscript:x) [e](//evil.example)",
    "[a](java&#115;cript:alert(1)) [b](&#x6A;avascript:x) [c](\tjavascript:x) [d](<javascript:alert(1)>)",
    '<javascript:alert(1)> <https://a.example/"onclick=alert(1)> [x](https://e.example "a\\" onclick=alert(1)")',
    "![x](javascript:alert(1)) ![y](data:image/svg+xml,<svg>) ![z](//evil.example/x.png) ![w](http://evil.example/x)",
    '![" onerror="alert(1)](x.png) ![x](x.png "" onload=alert(1))',
    "![x](../../../../etc/passwd) ![x](%2e%2e/%2e%2e/etc/passwd) ![x](/../x) ![x](..\\..\\x.png) ![x](\\\\evil\\x.png)",
    '```"><script>alert(1)</script>\nx\n```\n\n~~~ x onclick=alert(1)\n<b>\n~~~',
    "| a | b |\n|:-:|--:|\n| <script> | `<i>` |",
    "[ref]: javascript:alert(1)\n[ref] ![ref]",
    "[ref]: https://e.example\n\n[ref][ref] # x\n\n# head <b>\n\n###### six",
    "&lt;script&gt; &amp;lt; \\<script> &#60;script&#62;",
    "> " * 400 + "a",
    "- " * 300 + "a",
    "[http://[](http://[) ![x](http://[)",
    "\x00 \u202e right",
]


@pytest.mark.parametrize("text", ATTACKS)
def test_markdown_from_anywhere_has_only_harmless_html(text):
    html = markdown_html(text, "script alert head", "a/b.md")
    found = Found(html)
    assert found.elements <= TAGS
    for tag, name, value in found.attributes:
        allowed = {"a": "href target rel title", "img": "src alt loading", "div": "class tabindex role aria-label"}
        assert name in allowed.get(tag, "class start").split(), (tag, name)
        assert name != "src" or (value.startswith("/images/") and "/../" not in value)
        assert name != "href" or value.startswith(("https://", "http://"))


WIDE = "|a" * 400 + "|\n" + "|-" * 400 + "|\n" + "|x\n" * 20_000


@pytest.mark.parametrize("part", ["![", "[", "*_", "- a\n", "> ", "~~a", "`a", "[a](b)", WIDE])
def test_markdown_that_is_slow_to_read_takes_time_in_proportion_to_its_length(part):
    text = (part * 50_000)[:50_000]
    short, long = (calls_of(markdown_html, text[:length], "what is a") for length in (4_000, 16_000))
    assert long < 5 * short
    assert len(markdown_html(text, "what is a")) < 2_000_000


def calls_of(function, *arguments):
    """Return the number of calls and returns of functions in a call, which does not depend on other programs."""
    events = itertools.count()
    sys.setprofile(lambda *_: next(events))
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return next(events)


def test_a_long_document_in_markdown_is_displayed_as_it_is():
    html = markdown_html("**ties** " * 10_000, "ties")
    assert html.startswith("<pre><code>**<mark>ties</mark>**")

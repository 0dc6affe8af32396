"""Team pages: people, questions, guideline, progress, disagreements, answers."""

import html
import re

import pytest
from judging_pages import ORIGIN, fields_of, filled, sign_in
from starlette.testclient import TestClient

from rankgauge.judging import Answer, Choice, Settings, vote_report
from rankgauge.web import judging_app

SCRIPT = "<script>alert('x')</script>"


def send(client, page, action, **fields):
    return client.post(action, data=fields_of(page, action) | fields)


def link_of(page):
    return re.search(r'value="http://testserver(/join/[^"]+)"', page.text)[1]


def judged_differently(project):
    """Create two judges, a set of documents, and a choice by each."""
    ann, ben = (project.add_judge(name)[0] for name in ("Ann", "Ben"))
    for judge, chosen, comment in ((ann, 0, "says why"), (ben, 1, SCRIPT)):
        shown = project.next_task(judge.id).presentation
        first = sorted(shown.documents)
        choice = Choice(judge.id, shown.id, judge.id, "chosen", (first[chosen],), reason="correctness", comment=comment)
        project.record(choice)
    return shown


@pytest.fixture
def shared(tmp_path):
    """Create a project in which three people judge every set."""
    with filled(tmp_path / "shared.db", settings=Settings(overlap=1.0, judges=3)) as project:
        yield project


@pytest.fixture
def lead(shared):
    with TestClient(judging_app(shared), base_url=ORIGIN) as client:
        sign_in(client, shared, "Lena", "lead")
        yield client


def test_an_invited_person_signs_in_with_the_link(project, client):
    sign_in(client, project, "Ada", "admin")
    page = send(client, client.get("/people"), "/people", name=" Ann  Lee ", role="lead")
    other = TestClient(judging_app(project), base_url=ORIGIN)
    assert other.post(link_of(page)).url.path == "/"
    assert [(each.name, each.role) for each in project.judges.values()][1:] == [("Ann Lee", "lead")]
    assert "/join/" not in client.get("/people").text


def test_an_invitation_sent_twice_adds_nobody_twice(project, client):
    sign_in(client, project, "Ada", "admin")
    page = client.get("/people")
    send(client, page, "/people", name="Ann", role="judge")
    again = send(client, page, "/people", name="ann", role="judge")
    assert again.status_code == 400
    assert len(project.judges) == 2


def test_an_admin_changes_roles_creates_links_and_ends_access(project, client):
    sign_in(client, project, "Ada", "admin")
    ann, secret = project.add_judge("Ann")
    page = client.get("/people")
    send(client, page, f"/people/{ann.id}/role", role="lead")
    assert project.judges[ann.id].role == "lead"
    new = link_of(send(client, page, f"/people/{ann.id}/link"))
    other = TestClient(judging_app(project), base_url=ORIGIN)
    assert other.post(f"/join/{secret}").status_code == 404
    assert other.post(new).url.path == "/"
    send(client, page, f"/people/{ann.id}/revoke")
    assert other.get("/").status_code == 401
    assert other.post(new).status_code == 404


def test_an_admin_cannot_lock_the_project(project, client):
    ada = sign_in(client, project, "Ada", "admin")
    data = {"csrf": fields_of(client.get("/people"), "/people")["csrf"], "role": "judge"}
    for action in ("role", "revoke"):
        assert client.post(f"/people/{ada.id}/{action}", data=data).status_code == 400
    assert project.judges[ada.id].role == "admin"
    assert not project.judges[ada.id].revoked


def test_experts_write_questions_and_withdraw_their_own(project, client):
    sign_in(client, project, "Ann")
    page = client.get("/questions")
    assert "in case q000" not in page.text
    page = send(client, page, "/questions", text="Why?", need="to know", answers="q000-1\r\nq000-2, q001-1")
    assert "Why?" in page.text
    name, asked = list(project.questions.items())[-1]
    assert (asked.text, asked.author, asked.origin) == ("Why?", "Ann", "page")
    assert asked.answers == ("q000-1", "q000-2", "q001-1")
    send(client, page, "/questions/withdraw")
    assert name not in project.questions
    csrf = fields_of(page, "/questions")["csrf"]
    answer = client.post("/questions/withdraw", data={"csrf": csrf, "question": "q000"})
    assert answer.status_code == 400
    assert "q000" in project.questions


def test_a_question_that_names_an_unknown_document_is_refused(project, client):
    sign_in(client, project)
    answer = send(client, client.get("/questions"), "/questions", text="Why?", answers="none such")
    assert answer.status_code == 400
    assert "there is no document" in answer.text
    assert len(project.questions) == 5


def test_a_lead_edits_the_guideline_and_a_judge_reads_it(shared, lead):
    page = lead.get("/guideline")
    page = send(lead, page, "/guideline", text=f"# New\r\n\r\n{SCRIPT} **best**")
    assert "version 2" in page.text
    assert SCRIPT not in page.text
    assert shared.guideline() == (2, f"# New\n\n{SCRIPT} **best**")
    assert "version 1" in lead.get("/guideline?version=1").text
    with TestClient(judging_app(shared), base_url=ORIGIN) as client:
        sign_in(client, shared)
        page = client.get("/guideline")
        assert "<strong>best</strong>" in page.text
        assert "<textarea" not in page.text
        assert "Lena" not in page.text


@pytest.mark.parametrize("query", ["version=9", "version=x", "version=²", "version=99999999"])
def test_an_unknown_version_of_the_guideline_is_no_failure(lead, query):
    assert lead.get(f"/guideline?{query}").status_code in {200, 400}


def test_progress_is_shown_by_question_and_judge_without_times(shared, lead):
    judged_differently(shared)
    page = lead.get("/progress").text
    for name in ("Ann", "Ben", "Lena", "in case q004"):
        assert name in page
    assert not re.search(r"second|median|\d s\b|minutes", page)


def test_a_lead_sees_who_chose_what_and_gives_the_final_verdict(shared, lead):
    shown = judged_differently(shared)
    page = lead.get("/disagreements")
    assert "says why" in page.text
    assert SCRIPT not in page.text
    task = send(lead, page, "/disagreements")
    assert task.url.path.startswith("/judge/")
    assert "Choices of the judges" in task.text
    assert "says why" in task.text
    verdict = {"pick": "none", **fields_of(task, task.url.path)}
    after = lead.post(task.url.path, data=verdict)
    assert after.url.path == "/disagreements"
    assert "Final verdict" in after.text
    statuses = [each.status for each in shared.judgments() if each.choice]
    assert statuses == ["adjudicated", "adjudicated", "counted"]
    assert shared.judgments()[-1].presentation.items == shown.items
    again = send(lead, after, "/disagreements")
    assert again.url.path == task.url.path


def test_an_unknown_disagreement_is_refused(shared, lead):
    csrf = fields_of(lead.get("/questions"), "/questions")["csrf"]
    answer = lead.post("/disagreements", data={"csrf": csrf, "presentation": "x"})
    assert answer.status_code == 400


def test_a_judge_compares_answers_on_the_page_of_tasks(project, client):
    project.add_answers(
        Answer(f"{name}-{question}", question, f"{SCRIPT} by {name}", name, sources=(name,))
        for question in ("q000", "q001")
        for name in ("v1", "v2")
    )
    sign_in(client, project)
    first = client.get("/answers")
    assert SCRIPT not in first.text
    assert "Answer 1 is better" in first.text
    second = send(client, first, first.url.path, pick="1")
    assert second.url.path != first.url.path
    done = send(client, second, second.url.path, pick="both good")
    assert "No answers are left" in done.text
    (pair,) = vote_report(project).pairs
    assert (pair.wins + pair.losses, pair.both_good) == (1, 1)
    undone = send(client, done, second.url.path, pick="undone")
    assert undone.url.path == second.url.path
    assert vote_report(project).pairs[0].both_good == 0


def test_an_invalid_vote_is_refused(project, client):
    project.add_answers([Answer("a", "q000", "x", "v1"), Answer("b", "q000", "y", "v2")])
    sign_in(client, project)
    page = client.get("/answers")
    for pick in ("none", "3", "tie", "left"):
        assert send(client, page, page.url.path, pick=pick).status_code == 400
    assert vote_report(project).pairs == ()


def test_a_lead_sees_win_rates_and_credit(shared, lead):
    assert "no votes yet" in lead.get("/votes").text
    shared.add_answers([Answer("a", "q000", "x", f"{SCRIPT} 1", sources=(SCRIPT,)), Answer("b", "q000", "y", "v2")])
    ann, _ = shared.add_judge("Ann")
    shown = shared.next_task(ann.id, votes=True).presentation
    shared.record(Choice("c", shown.id, ann.id, "chosen", ("a",)))
    page = lead.get("/votes").text
    assert "1.000" in page
    assert "Source documents" in page
    assert SCRIPT not in page


def test_names_and_origins_are_text(project, client):
    sign_in(client, project, "Ada", "admin")
    page = send(client, client.get("/people"), "/people", name=SCRIPT, role="judge")
    assert SCRIPT not in page.text
    assert html.escape(SCRIPT) in page.text


def test_settings_are_shown_to_leads(lead):
    page = lead.get("/settings").text
    assert "overlap" in page
    assert "The person who runs this server changes them" in page

"""The expert's pages without a script: plain forms."""

import re

from judging_pages import sign_in


def field(page, name):
    return re.search(rf'name="{name}" value="([^"]*)"', page).group(1)


def test_a_judge_chooses_a_document_with_a_plain_form(project, client):
    judge = sign_in(client, project)
    page = client.get("/judge")
    shown = page.url.path.removeprefix("/judge/")
    client.post(page.url.path, data={"choice": field(page.text, "choice"), "pick": "2"})
    (first, _) = project.judgments()
    assert first.presentation.id == shown
    assert first.choice.documents == (first.presentation.documents[1],)
    assert first.choice.judge == judge.id


def test_nobody_sees_a_task_without_signing_in(client):
    assert client.get("/judge").status_code == 401

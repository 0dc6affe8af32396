"""Judging projects for web tests, and a judge who signs in."""

import html
import re

from rankgauge.judging import Candidate, Document, JudgingProject, Question, Source

ORIGIN = "http://testserver"


def filled(where, questions=5, documents=4, settings=None):
    """Create a project with questions and documents."""
    project = JudgingProject.create(where, settings)
    names = [f"q{number:03d}" for number in range(questions)]
    project.add_questions(Question(name, f"How are ties broken in case {name}?") for name in names)
    pool = [
        Candidate(name, f"{name}-{number}", (Source("bm25", rank=number + 1, score=9.5 - number),))
        for name in names
        for number in range(documents)
    ]
    texts = [Document(each.document, {"title": f"About {each.document}", "text": "Ties are broken."}) for each in pool]
    project.add_candidates(pool, texts)
    return project


def fields_of(page, action):
    """Return the hidden fields of the first form with this action."""
    form = re.search(rf'<form[^>]*action="{re.escape(action)}".*?</form>', page.text, re.DOTALL)[0]
    found = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
    return {name: html.unescape(value) for name, value in found}


def sign_in(client, project, name="Ann", role="judge"):
    """Sign a client in with an invitation; return the judge."""
    judge, secret = project.add_judge(name, role=role)
    answer = client.post(f"/join/{secret}", headers={"Origin": ORIGIN})
    assert answer.url.path == "/", answer.text
    return judge


def token_of(client):
    """Return the token that forms of this session send."""
    return re.search(r'name="csrf" value="([^"]+)"', client.get("/").text)[1]

"""Votes of deployed applications: tokens, origins, limits, and rejected requests."""

import json

import pytest

from rankgauge.judging import vote_report

SHOP = "https://shop.example"


@pytest.fixture
def application(project):
    return project.add_judge("shop", kind="application", origins=[SHOP])


@pytest.fixture
def send(client, application):
    token = application[1]

    def post(body=None, *, token=token, headers=(), **changes):
        content = json.dumps(vote(**changes)) if body is None else body
        return client.post("/api/votes", content=content, headers={"Authorization": f"Bearer {token}", **dict(headers)})

    return post


def vote(**changes):
    return {
        "id": "00000000-0000-4000-8000-000000000001",
        "question": "How long do refunds take?",
        "left": {"text": "Three days.", "retrieval": "v1", "sources": ["a"]},
        "right": {"text": "A week.", "retrieval": "v2", "sources": ["b"]},
        "vote": "left",
    } | changes


def test_a_vote_is_stored_once_however_often_it_is_sent(project, send):
    assert [send().status_code, send().status_code] == [201, 200]
    report = vote_report(project)
    (pair,) = report.pairs
    assert (pair.kind, pair.system, pair.wins, pair.losses) == ("application", "v1", 1, 0)
    assert {(each.document, each.chosen, each.shown) for each in report.credits} == {("a", 1, 1), ("b", 0, 1)}
    assert [each.counted for each in project.judgments()] == [False]


def test_the_same_answer_without_an_identifier_is_one_answer(project, send):
    send()
    send(id="another", vote="both bad")
    assert len(project.answers()) == 2


def test_a_question_of_the_project_is_found_by_its_text(project, send):
    send(question="  How are ties broken in\ncase q001? ")
    assert {each.question for each in project.answers().values()} == {"q001"}


def test_only_pages_of_listed_origins_may_send_votes(project, send, client):
    for origin, status in ((SHOP, 201), ("https://evil.example", 403), ("null", 403)):
        answer = send(headers={"Origin": origin}, id=origin)
        assert answer.status_code == status
        allowed = answer.headers.get("access-control-allow-origin")
        assert allowed == (origin if origin == SHOP else None)
        asked = client.options("/api/votes", headers={"Origin": origin})
        assert asked.status_code == 204
        assert asked.headers.get("access-control-allow-origin") == allowed
        assert "access-control-allow-credentials" not in answer.headers
    assert len(project.judgments()) == 1


def test_the_origin_of_one_application_is_none_of_another(project, send):
    _, token = project.add_judge("blog", kind="application", origins=["https://blog.example"])
    assert send(token=token, headers={"Origin": SHOP}).status_code == 403


def test_a_vote_needs_the_token_of_an_application(project, send, application):
    _, person = project.add_judge("Ann")
    for token in ("", "wrong", person):
        answer = send(token=token)
        assert answer.status_code == 401
        assert answer.json()["fix"]
    project.revoke(application[0].id)
    assert send().status_code == 401
    assert project.judgments() == []


def test_a_vote_sets_no_cookie_and_reads_none(send):
    assert "set-cookie" not in send().headers


@pytest.mark.parametrize(
    "changes",
    [
        {"id": None},
        {"id": ""},
        {"id": "x" * 101},
        {"question": ""},
        {"question": "x" * 501},
        {"question": 3},
        {"vote": "up"},
        {"vote": ["left"]},
        {"left": "text"},
        {"left": None},
        {"right": {"text": "A week.", "sources": "b"}},
        {"right": {"text": 3}},
        {"right": {"sources": [1]}},
        {"right": {"id": 7}},
        {"right": {"id": "x" * 600}},
        {"left": {"id": "a\nb"}},
        {"comment": "x" * 10_001},
        {"left": {"text": "same"}, "right": {"text": "same"}},
        {"left": {"text": "x" * 200_001}},
    ],
)
def test_an_invalid_vote_is_refused_with_a_fix(project, send, changes):
    answer = send(**changes)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]
    assert answer.json()["fix"]
    assert project.judgments() == []


@pytest.mark.parametrize("body", ["", "[]", "{", "7", "\x00", "[" * 100_000])
def test_an_invalid_json_object_is_refused(send, body):
    answer = send(body)
    assert answer.status_code == 400
    assert "JSON" in answer.json()["error"]


def test_an_oversized_vote_is_refused(send):
    assert send("x" * 500_001).status_code == 413


def test_too_many_votes_of_an_application_are_refused_for_a_while(client, send, application):
    for sender in ("somebody else", application[0].id):
        assert send().status_code in {200, 201}
        for _ in range(599):
            client.app.state.votes.add(sender)
    answer = send(id="one too many")
    assert answer.status_code == 429
    assert "seconds" in answer.json()["fix"]

"""Malformed requests of every route, on SQLite and PostgreSQL: a message, never a server error."""

import json
import random
import re
from urllib.parse import quote_from_bytes, urlencode

import pytest
from judging_pages import ORIGIN, filled, sign_in, token_of
from starlette.routing import Route
from starlette.testclient import TestClient

from rankgauge.web import judging_app

FIELDS = (
    "answers",
    "choice",
    "comment",
    "id",
    "kind",
    "name",
    "need",
    "opened",
    "origins",
    "pick",
    "presentation",
    "question",
    "rank-1",
    "rank-2",
    "reason",
    "role",
    "seconds",
    "text",
    "version",
)
# Bytes of texts: lone surrogates, NUL, control characters, numbers that are too large, markup.
TEXTS = (
    b"",
    b"\0",
    b"a\0b",
    b"\xed\xa0\x80",
    b"\xed\xb0\x80",
    b"\xff\xfe",
    b"\xc3",
    "\U0010ffff".encode(),
    b"\x1b[31m",
    "\u202e".encode(),
    b"\r\n",
    b"%",
    b"../..",
    b"1e999",
    b"-1",
    b"9" * 5_000,
    "٣".encode(),
    "²".encode(),
    b"nan",
    b"http://[",
    b"http://a:99999",
    b"https://a.example",
    b"'; --",
    b"<b>",
    b"x" * 20_000,
    b"admin",
    b"person",
    b"application",
    b"1",
    b"2",
    b"none",
    b"00000000-0000-4000-8000-000000000001",
    b"q000",
)
VALUES = (
    None,
    True,
    0,
    -1,
    10**400,
    1.5,
    [],
    {},
    [[]],
    {"a": []},
    ["\ud800"],
    {"text": "\ud800"},
    {"text": "a", "id": ["b"]},
    {"text": "a\0", "id": "\0"},
    {"text": "a", "sources": ["\udfff", 1]},
    {"text": "a", "retrieval": "v1", "sources": ["\0"]},
    {"text": "b", "model": "\ud800"},
    "",
    "\ud800",
    "a\ud800b",
    "\0",
    "left",
    "both good",
    "q000",
    "x" * 300_000,
    "a" * 101,
)
VOTE = {
    "id": "one",
    "question": "q000",
    "vote": "left",
    "comment": "",
    "left": {"text": "a", "retrieval": "v1"},
    "right": {"text": "b", "retrieval": "v2"},
}


@pytest.fixture
def site(where):
    with filled(where) as project:
        app = judging_app(project)
        with TestClient(app, base_url=ORIGIN, raise_server_exceptions=False) as client:
            yield project, client


def headers_of(rng):
    """Return a header with a malformed value, or none."""
    name = rng.choice(["Origin", "Cookie", "Host", "Referer", "Content-Type", "Content-Length", ""])
    value = rng.choice([b"http://[", b"\xff", b"x" * 5_000, b"http://a:b:c", b"rankgauge_session=\xe9"])
    return {name: value} if name else {}


@pytest.mark.slow
def test_malformed_forms_paths_and_headers_are_refused_with_a_message(site):
    project, client = site
    rng = random.Random(31)
    sign_in(client, project, "Admin", "admin")
    other, _ = project.add_judge("Other")
    routes = [
        (method, route.path)
        for route in client.app.routes
        if isinstance(route, Route)
        for method in sorted(route.methods)
    ]
    for number in range(4):
        task = re.search(r'action="(/judge/[^"]+)" id="task"', client.get("/judge").text)
        token = token_of(client)
        for method, route in routes:
            own = {"{presentation}": task[1].split("/")[-1] if task else "x", "{judge}": other.id}
            part = re.search(r"\{\w+\}", route)
            path = route
            if part:
                given = rng.choice([own.get(part[0], "x"), quote_from_bytes(rng.choice(TEXTS)[:5_000])])
                path = route.replace(part[0], given or "x")
            fields = {name: rng.choice(TEXTS) for name in rng.sample(FIELDS, rng.randrange(8))}
            query = urlencode({name: value[:2_000] for name, value in fields.items()})
            body = urlencode(fields | {"csrf": token}).encode()
            if rng.random() < 0.1:
                body = rng.choice(TEXTS)
            headers = {"X-CSRF-Token": token} | (headers_of(rng) if rng.random() < 0.2 else {})
            content = body if method == "POST" else None
            answer = client.request(method, f"{path}?{query}", headers=headers, content=content)
            assert answer.status_code < 500, (number, method, path, fields, headers)
            if route == "/sign-out" and client.get("/").status_code == 401:
                sign_in(client, project, f"Admin {number}", "admin")
                token = token_of(client)


@pytest.mark.slow
def test_malformed_votes_are_refused_with_a_message(site):
    project, client = site
    rng = random.Random(32)
    _, token = project.add_judge("shop", kind="application", origins=["https://shop.example"])
    found = set()
    for number in range(120):
        vote = {**VOTE, "id": str(number)}
        for name in rng.sample([*VOTE, "other"], rng.randrange(3)):
            vote[name] = rng.choice(VALUES)
        body = json.dumps(vote, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
        if rng.random() < 0.1:
            body = rng.choice([b"", b"[" * 100_000, b'"\\ud800"', b"9" * 5_000, b"\xff", b"NaN"])
        headers = {"Authorization": f"Bearer {token}"}
        answer = client.post("/api/votes", content=body, headers=headers)
        assert answer.status_code < 500, (number, vote)
        assert answer.status_code in {200, 201} or answer.json()["fix"]
        found.add(answer.status_code)
    assert {201, 400} <= found


@pytest.mark.parametrize("name", ["id", "question", "comment", "vote", "left"])
def test_a_vote_with_a_lone_surrogate_is_refused(site, name):
    project, client = site
    _, token = project.add_judge("shop", kind="application")
    vote = VOTE | {name: {"text": "\ud800"} if name == "left" else "\ud800"}
    headers = {"Authorization": f"Bearer {token}"}
    answer = client.post("/api/votes", content=json.dumps(vote), headers=headers)
    assert (answer.status_code, answer.json()["where"]) == (400, "body")
    assert not project.answers()


def test_a_guideline_with_a_nul_character_is_refused(site):
    project, client = site
    sign_in(client, project, "Lead", "lead")
    form = {"csrf": token_of(client), "text": "Judge\0well."}
    answer = client.post("/guideline", data=form)
    assert answer.status_code == 400
    assert "NUL" in answer.text
    assert len(project.guideline()[1]) > 20

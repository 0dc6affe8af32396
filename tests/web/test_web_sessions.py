"""Signing in and out: links, cookies, cross-site forms, too many attempts, roles of routes."""

import contextlib
import re
import socket
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.cookies import SimpleCookie

import httpx
import pytest
from judging_pages import ORIGIN, filled, sign_in, token_of
from production_logs import write_log
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from rankgauge.judging import Answer, Choice, JudgingProject, hash_secret
from rankgauge.production import EventLog
from rankgauge.web import judging_app
from rankgauge.web.jobs import Runner
from rankgauge.web.pages import RateLimit
from rankgauge.web.server import _local_secret as local_secret

ROLES = ("judge", "reader", "lead", "admin")
JUDGES = ("judge", "lead", "admin")
READERS = ("reader", "lead", "admin")
LEADS = ("lead", "admin")
ADMINS = ("admin",)
# Every route and its roles; None needs no session.
ROUTES = {
    ("GET", "/"): JUDGES,
    ("GET", "/start"): JUDGES,
    ("GET", "/judge"): JUDGES,
    ("GET", "/judge/{presentation}"): JUDGES,
    ("POST", "/judge/{presentation}"): JUDGES,
    ("GET", "/answers"): JUDGES,
    ("GET", "/questions"): JUDGES,
    ("POST", "/questions"): JUDGES,
    ("POST", "/questions/withdraw"): JUDGES,
    ("GET", "/guideline"): JUDGES,
    ("POST", "/guideline"): LEADS,
    ("GET", "/progress"): LEADS,
    ("GET", "/disagreements"): LEADS,
    ("POST", "/disagreements"): LEADS,
    ("GET", "/votes"): LEADS,
    ("GET", "/settings"): LEADS,
    ("POST", "/settings/backup"): ADMINS,
    ("GET", "/people"): ADMINS,
    ("POST", "/people"): ADMINS,
    ("POST", "/people/{judge}/link"): ADMINS,
    ("POST", "/people/{judge}/role"): ADMINS,
    ("POST", "/people/{judge}/revoke"): ADMINS,
    ("GET", "/join/{secret}"): None,
    ("POST", "/join/{secret}"): None,
    ("POST", "/sign-out"): None,
    ("POST", "/api/votes"): None,
    ("OPTIONS", "/api/votes"): None,
    ("GET", "/static/theme.css"): None,
}


# The routes of a project with evaluations.
EVALUATIONS = {
    ("GET", "/"): ROLES,
    ("GET", "/verdict"): READERS,
    ("GET", "/evaluations"): READERS,
    ("GET", "/evaluations/{id}"): READERS,
    ("GET", "/evaluations/{id}/causes"): READERS,
    ("GET", "/evaluations/{id}/causes/{query:path}"): READERS,
    ("GET", "/compare"): READERS,
    ("GET", "/compare/{query:path}"): READERS,
    ("POST", "/compare/{query:path}"): LEADS,
    ("GET", "/deciding"): READERS,
    ("POST", "/deciding"): LEADS,
    ("GET", "/queries/{query:path}"): READERS,
    ("GET", "/images/{image:path}"): ("judge", *READERS),
    ("GET", "/documents/{document:path}"): READERS,
    ("GET", "/explain/{id}/{query:path}"): READERS,
    ("GET", "/evaluations/{id}/answers"): READERS,
    ("GET", "/evaluations/{id}/answers/{query:path}"): READERS,
    ("POST", "/evaluations/{id}/answers/{query:path}"): LEADS,
    ("GET", "/evaluations/{id}/label"): JUDGES,
    ("POST", "/evaluations/{id}/label"): JUDGES,
    ("GET", "/gates"): READERS,
    ("POST", "/gates"): None,
    ("GET", "/gates/{id}"): READERS,
}

JOBS = {
    ("GET", "/jobs"): LEADS,
    ("POST", "/jobs"): LEADS,
    ("POST", "/jobs/{job:int}/cancel"): LEADS,
    ("GET", "/try"): LEADS,
    ("POST", "/try"): LEADS,
    ("POST", "/try/save"): LEADS,
    ("GET", "/try/{name:path}"): LEADS,
}
PRODUCTION = {
    ("GET", "/production"): LEADS,
    ("GET", "/production/alerts"): LEADS,
    ("GET", "/production/metrics/{metric}"): LEADS,
    ("GET", "/production/drift"): LEADS,
    ("GET", "/production/drift/picture"): LEADS,
    ("GET", "/production/sample"): LEADS,
    ("POST", "/production/questions"): LEADS,
}


WHOLE = ROUTES | EVALUATIONS | PRODUCTION | JOBS


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    return EventLog(write_log(tmp_path_factory.mktemp("log") / "log.parquet"))


def test_the_application_has_these_routes_and_static_files_only(evaluated, log):
    whole = judging_app(evaluated.judging, log=log, evaluations=evaluated, runner=Runner(evaluated))
    for app, routes in ((judging_app(evaluated.judging), ROUTES), (whole, WHOLE)):
        found = {
            (method, route.path)
            for route in app.routes
            if isinstance(route, Route)
            for method in route.methods - {"HEAD"}
        }
        assert found == set(routes)
        assert [route.path for route in app.routes if isinstance(route, Mount)] == ["/static"]


@pytest.mark.parametrize("role", [None, *ROLES])
def test_every_route_rejects_users_without_its_role(evaluated, log, role):
    project = evaluated.judging
    app = judging_app(project, log=log, evaluations=evaluated, runner=Runner(evaluated))
    client = TestClient(app, base_url=ORIGIN, raise_server_exceptions=False)
    if role is not None:
        sign_in(client, project, "Somebody", role)
        client.headers["X-CSRF-Token"] = token_of(client)
    for (method, path), roles in WHOLE.items():
        if roles is None:
            continue
        answer = client.request(method, re.sub(r"\{\w+(:path)?\}", "nobody", path.replace("{job:int}", "7")))
        if role is None:
            assert answer.status_code == 401, path
        elif role not in roles:
            assert answer.status_code == 403, path
        else:
            assert answer.status_code not in {401, 403, 500}, path


def test_the_cookie_of_a_session_is_kept_from_scripts_and_other_sites(project):
    _, secret = project.add_judge("Ann")
    for origin, secure in ((ORIGIN, False), (ORIGIN.replace("http", "https"), True)):
        client = TestClient(judging_app(project), base_url=origin, follow_redirects=False)
        answer = client.post(f"/join/{secret}", headers={"Origin": origin})
        (cookie,) = SimpleCookie(answer.headers["set-cookie"]).values()
        assert cookie["httponly"]
        assert cookie["samesite"].lower() == "lax"
        assert bool(cookie["secure"]) is secure
        assert int(cookie["max-age"]) == 30 * 86_400
        with contextlib.closing(sqlite3.connect(project.path)) as database:
            stored = "\n".join(database.iterdump())
        assert hash_secret(cookie.value) in stored
        assert cookie.value not in stored
        assert secret not in stored


def test_opening_a_link_does_not_sign_in_but_its_button_does_repeatedly(project):
    _, secret = project.add_judge("Ann")
    for _ in range(2):
        client = TestClient(judging_app(project), base_url=ORIGIN)
        assert "Sign in" in client.get(f"/join/{secret}").text
        assert client.get("/").status_code == 401
        assert client.post(f"/join/{secret}").url.path == "/"


def test_the_link_of_the_local_server_is_used_once(project):
    secret = local_secret(project)
    first, second = (TestClient(judging_app(project), base_url=ORIGIN) for _ in range(2))
    assert first.post(f"/join/{secret}").url.path == "/"
    assert second.post(f"/join/{secret}").status_code == 404
    assert first.get("/people").status_code == 200
    again = local_secret(project)
    assert second.post(f"/join/{again}").url.path == "/"
    assert len(project.judges) == 1


@pytest.mark.slow
def test_concurrent_requests_use_the_link_of_the_local_server_once(where):
    uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    project = filled(where)
    with project, contextlib.ExitStack() as running, ThreadPoolExecutor(8) as pool:
        urls = []
        for _ in range(2):
            listening = socket.create_server(("127.0.0.1", 0))
            urls.append(f"http://127.0.0.1:{listening.getsockname()[1]}")
            own = running.enter_context(JudgingProject(where))
            server = uvicorn.Server(uvicorn.Config(judging_app(own), log_level="error"))
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
            thread.start()
            running.callback(thread.join, 20)
            running.callback(server.handle_exit, 0, None)
        for _ in range(3):
            secret = local_secret(project)
            links = [f"{url}/join/{secret}" for url in urls] * 4
            answers = [each.status_code for each in pool.map(httpx.post, links)]
            assert answers.count(303) == 1
            assert set(answers) <= {303, 404, 429}


def test_a_revoked_judge_is_out_at_once(project, client):
    judge = sign_in(client, project)
    task = client.get("/judge")
    project.revoke(judge.id)
    assert client.get("/").status_code == 401
    assert client.post(task.url.path, data={"pick": "1"}).status_code == 401


def test_signing_out_ends_the_session(project, client):
    sign_in(client, project)
    cookies = dict(client.cookies)
    answer = client.post("/sign-out", data={"csrf": token_of(client)})
    assert "signed out" in answer.text
    client.cookies.update(cookies)
    assert client.get("/").status_code == 401


@pytest.mark.parametrize(
    ("token", "headers"),
    [("", {}), ("0" * 64, {}), (None, {"Origin": "http://evil.example"}), (None, {"Origin": "null"}), ("é", {})],
)
def test_forms_of_other_pages_are_refused_and_nothing_is_stored(project, client, token, headers):
    sign_in(client, project)
    page = client.get("/judge")
    choice = re.search(r'name="choice" value="([^"]+)"', page.text)[1]
    data = {"choice": choice, "pick": "1", "csrf": token_of(client) if token is None else token}
    for path in (page.url.path, "/questions", "/sign-out"):
        answer = client.post(path, data=data, headers=headers)
        assert answer.status_code == 403, path
    assert [each.choice for each in project.judgments()] == [None]
    assert client.get("/").status_code == 200


def test_the_token_of_another_session_is_refused(project, client):
    sign_in(client, project, "Ann")
    other = TestClient(judging_app(project), base_url=ORIGIN)
    sign_in(other, project, "Bob")
    answer = client.post("/questions", data={"csrf": token_of(other), "text": "Why?"})
    assert answer.status_code == 403


def test_another_site_cannot_sign_a_browser_in(project, client):
    _, secret = project.add_judge("Eve")
    answer = client.post(f"/join/{secret}", headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert not client.cookies


def test_too_many_links_that_are_not_valid_are_refused_for_a_while(project, client):
    _, secret = project.add_judge("Ann")
    for number in range(10):
        assert client.get(f"/join/wrong-{number}").status_code == 404
    answer = client.get("/join/wrong")
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 300
    # Others share the address: a valid link works, and so do the pages of people signed in.
    assert client.get(f"/join/{secret}").status_code == 200
    assert client.post(f"/join/{secret}").url.path == "/"
    assert client.get("/join/wrong").status_code == 429
    assert client.get("/judge").status_code == 200


def test_a_rate_limit_counts_each_sender_and_all_of_them():
    limit = RateLimit(per_sender=2, total=3, seconds=0.2)
    assert [limit.add("a") > 0, limit.add("a") > 0, limit.add("a") > 0] == [False, False, True]
    assert [limit.add("b") > 0, limit.add("c") > 0] == [False, True]
    time.sleep(0.25)
    assert [limit.add("a"), limit.add("c"), limit.add("c")] == [0, 0, 0]


def test_a_token_of_an_application_is_no_link(project, client):
    _, secret = project.add_judge("shop", kind="application")
    assert client.post(f"/join/{secret}").status_code == 404


def test_no_page_of_a_judge_shows_runs_ranks_scores_or_what_others_chose(project, client):
    """Sources are named `bm25` with scores from 9.5 down; Benedict leaves a comment."""
    project.add_answers(
        [
            Answer(
                "left",
                "q000",
                "text of one answer",
                "secret-retrieval",
                "secret-prompt",
                "secret-model",
                ("secret-source",),
            ),
            Answer("right", "q000", "text of another answer", "secret-other"),
        ]
    )
    ben, _ = project.add_judge("Benedict")
    for number in range(10):
        shown = project.next_task(ben.id).presentation
        project.record(Choice(f"c{number}", shown.id, ben.id, "chosen", shown.documents[:1], comment="hidden comment"))
    sign_in(client, project)
    texts = [
        # Seconds of a time may be "8.5".
        re.sub(' datetime="[^"]*"', "", client.get(path).text)
        for path in ("/", "/judge", "/answers", "/questions", "/guideline")
    ]
    assert "text of one answer" in texts[2]
    for text in texts:
        for word in ("bm25", "9.5", "8.5", "rank", "score", "secret-", "Benedict", "hidden comment"):
            assert word not in text.replace("rankgauge", ""), word


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:8765", 401), ("[::1]:80", 401), ("judging.example", 401), ("evil.example", 421), ("", 421)],
)
def test_names_of_other_sites_are_refused(project, host, status):
    app = judging_app(project, hosts=["judging.example"])
    with TestClient(app, base_url=ORIGIN) as client:
        assert client.get("/", headers={"Host": host}).status_code == status

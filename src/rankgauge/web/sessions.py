"""Who is the judge of a request: links to sign in, and sessions."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rankgauge.judging import Judge, JudgingProject, hash_secret
from rankgauge.web.pages import error_page, render

__all__ = ["routes", "signed_in"]

_COOKIE = "rankgauge_session"
_DAYS = 30


def signed_in(request: Request) -> Judge | None:
    """Return the judge of a request; None if nobody is signed in."""
    token = request.cookies.get(_COOKIE)
    if not token:
        return None
    project: JudgingProject = request.app.state.project
    with project.reading() as stored:
        return stored.session_judge(hash_secret(token), datetime.now(UTC))


def _join(request: Request) -> Response:
    """Sign in with a link."""
    project: JudgingProject = request.app.state.project
    secret = request.path_params["secret"]
    with project.reading() as stored:
        found = stored.judge_by_secret(hash_secret(secret))
    if found is None or found[0].revoked:
        return error_page(
            request, "This link is not valid any more.", status=404,
            fix="Ask for a new one.",
        )  # fmt: skip
    judge = found[0]
    if request.method != "POST":
        return render(request, "join.html", name=judge.name)
    token = secrets.token_urlsafe(32)
    ends = datetime.now(UTC) + timedelta(days=_DAYS)
    with project.writing() as stored:
        stored.add_session(hash_secret(token), judge.id, ends)
    response = RedirectResponse("/", status_code=303)
    response.set_cookie(
        _COOKIE, token, max_age=_DAYS * 86_400, httponly=True, samesite="lax",
        secure=request.url.scheme == "https",
    )  # fmt: skip
    return response


routes = [Route("/join/{secret}", _join, methods=["GET", "POST"])]

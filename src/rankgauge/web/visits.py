"""The request of a judge who is signed in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from rankgauge.judging import ROLES, Judge, JudgingProject
from rankgauge.web.pages import PageError, error_page, read_form, render
from rankgauge.web.sessions import form_token, is_own_form, signed_in

ADMINS = ("admin",)
LEADS = ("lead", *ADMINS)


@dataclass(frozen=True, slots=True)
class Visit:
    """The request of a judge who is signed in."""

    request: Request
    project: JudgingProject
    judge: Judge
    form: Mapping[str, str]

    def render(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page."""
        return render(
            self.request, template, status=status, judge=self.judge,
            csrf=form_token(self.request), **values,
        )  # fmt: skip


def visited(
    handler: Callable[[Visit], Response], *, roles: tuple[str, ...] = ROLES
) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that calls a handler, in a thread, with the judge of the request."""

    def answer(request: Request, form: Mapping[str, str]) -> Response:
        judge = signed_in(request)
        if judge is None:
            return error_page(
                request, "You are not signed in.", status=401,
                fix="Open your sign-in link. Your earlier choices are stored.",
            )  # fmt: skip
        if judge.role not in roles:
            raise PageError(
                403, f"This page is for the role {' or '.join(roles)}; yours is {judge.role}.",
                where=request.url.path, fix="Ask an admin of this project.",
            )  # fmt: skip
        if request.method == "POST" and not is_own_form(request, form):
            raise PageError(
                403, "The form does not come from a page of this session; nothing was stored.",
                where=request.url.path, fix="Go back, reload the page, and try again.",
            )  # fmt: skip
        return handler(Visit(request, request.app.state.project, judge, form))

    async def endpoint(request: Request) -> Response:
        form = await read_form(request) if request.method == "POST" else {}
        return await run_in_threadpool(answer, request, form)

    return endpoint

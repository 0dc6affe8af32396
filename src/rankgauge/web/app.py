"""`judging_app`: the pages of evaluations and of judging as an ASGI application."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankgauge import reports
from rankgauge.errors import RankgaugeError, StorageError
from rankgauge.judging import JudgingProject
from rankgauge.production import EventLog
from rankgauge.project import Project
from rankgauge.web import answers, gates, jobs, judging, pages, production, votes
from rankgauge.web.evaluations import routes as evaluation_routes
from rankgauge.web.workbench import Workbench

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    # Without a referrer, browsers send forms with the origin "null".
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_START = "Go to the start page."
# Message and fix of an HTTP status.
_ERRORS = {
    404: ("There is no such page.", _START),
    405: ("This page does not support this method.", _START),
    500: (
        "The server failed to handle this request.",
        "Try again. Everything stored so far is kept; the cause is in the server's output.",
    ),
}
_POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"


def judging_app(
    project: JudgingProject,
    *,
    log: EventLog | None = None,
    evaluations: Project | None = None,
    runner: jobs.Runner | None = None,
    hosts: Iterable[str] = (),
) -> Starlette:
    """Create the ASGI application of a judging project.

    Args:
        project: The project; several processes may serve it at the same time.
        log: A production log, for pages with its metrics, the drift of the project's questions, and
            new questions sampled from the log. Only leads see these pages.
        evaluations: The project whose evaluations are shown, with the same store.
        runner: The runner of jobs that leads start; without it, there are no jobs.
        hosts: The names of the server. Requests for other host names are refused (protection against
            DNS rebinding), except IP addresses. If empty, all are allowed.
    """
    app = Starlette(
        routes=[
            *([] if evaluations is None else (*evaluation_routes, *answers.routes, *gates.routes)),
            *judging.routes,
            *votes.routes,
            *([] if log is None else production.routes),
            *([] if runner is None else jobs.routes),
            *pages.routes,
            *STATIC,
        ],
        middleware=[Middleware(Headers, images=project.settings.image is not None, hosts=frozenset(hosts))],
        exception_handlers=dict.fromkeys((HTTPException, RankgaugeError, Exception), show_error),
    )
    app.state.project = project
    app.state.workbench = None if evaluations is None else Workbench(evaluations)
    app.state.runner = runner
    app.state.log = None if log is None else production.ProductionLog(log)
    app.state.failed_sign_ins = pages.RateLimit(per_sender=10, total=300, seconds=300)
    app.state.votes = pages.RateLimit(per_sender=600, total=6_000, seconds=60)
    return app


async def _theme(_: Request) -> Response:
    """Return the styles that static reports have, too."""
    return FileResponse(Path(reports.__file__).parent / "templates" / "theme.css")


STATIC = (
    Route("/static/theme.css", _theme),
    Mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static"),
)


class Headers:
    """Middleware that refuses other names, and adds headers against caching and external content to every response."""

    def __init__(self, app: ASGIApp, *, images: bool, hosts: frozenset[str] = frozenset()) -> None:
        self._app, self._hosts = app, hosts
        self._policy = f"{_POLICY}; img-src 'self' http: https:" if images else _POLICY

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request and add the headers to the response."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Cache-Control"] = "no-cache" if scope["path"].startswith("/static/") else "no-store"
                headers.setdefault("Content-Security-Policy", self._policy)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if scope["type"] == "http" and self._hosts and not self._is_own(scope):
            names = ", ".join(sorted(self._hosts))
            refusal = PlainTextResponse(
                f"This server is known as {names}. The person who runs it can add a name.", status_code=421
            )
            await refusal(scope, receive, answer)
        else:
            await self._app(scope, receive, answer)

    def _is_own(self, scope: Scope) -> bool:
        """Return whether a request names this server: by an IP address, or by one of its names."""
        try:
            name = urlsplit(f"//{Request(scope).headers.get('host', '')}").hostname or ""
        except ValueError:
            return False
        try:
            return bool(ip_address(name))
        except ValueError:
            return name in self._hosts


async def show_error(request: Request, error: Exception) -> Response:
    """Respond with the message and the fix of an error, or of the HTTP status."""
    if isinstance(error, RankgaugeError):
        status = getattr(error, "status", 503 if isinstance(error, StorageError) else 400)
        return pages.error_page(request, error.what, where=error.where, fix=error.fix, status=status)
    # An internal error, which the server logs, has no status.
    status = error.status_code if isinstance(error, HTTPException) else 500
    what, fix = _ERRORS.get(status, ("This request cannot be handled.", _START))
    return pages.error_page(request, what, where=request.url.path, fix=fix, status=status)

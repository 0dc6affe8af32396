"""Shared helpers of the pages: templates, forms, redirects, and errors."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankgauge.errors import InputError
from rankgauge.judging import JudgingProject

_MOST_BODY = 1_000_000
_MOST_FIELDS = 200


class PageError(InputError):
    """Error shown as a page with an HTTP status."""

    def __init__(self, status: int, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what, where=where, fix=fix)
        self.status = status


async def read_body(request: Request, most: int) -> bytes:
    """Return the body of a request; reject a body with more bytes."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise PageError(
                413,
                f"The form is larger than {most:,} bytes.",
                where="form",
                fix="Go back and shorten your text; everything stored so far is kept.",
            )
    return body


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form; the last value of a repeated field counts."""
    body = await read_body(request, _MOST_BODY)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        raise InputError(
            f"the form cannot be read: {error}", where="form", fix="reload the page and try again"
        ) from None


def render(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """Render a template as a page."""
    project: JudgingProject | None = request.app.state.project
    values = {
        "judge": None,
        "title": "" if project is None else project.settings.title,
        "csrf": "",
        "has_log": getattr(request.app.state, "log", None) is not None,
        "request": request,
    } | values
    return HTMLResponse(_templates().get_template(template).render(values), status_code=status)


def error_page(request: Request, what: str, *, where: str = "", fix: str = "", status: int = 400) -> Response:
    """Return a page with an error, its location, and its fix."""
    values = {"what": what, "where": where, "fix": fix, "judge": None, "title": "Judging", "has_log": False}
    page = _templates().get_template("error.html").render(values, request=request)
    return HTMLResponse(page, status_code=status)


def see_other(url: str) -> Response:
    """Redirect the browser to another page after a form."""
    return RedirectResponse(url, status_code=303)


@lru_cache(maxsize=1)
def _templates() -> Environment:
    folder = Path(__file__).parent / "templates"
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

"""Shared parts of the pages: templates, forms, redirects, errors, sessions, and text as safe HTML."""

from __future__ import annotations

import hmac
import math
import posixpath
import re
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode

from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from rankgauge.core.terms import shared, terms
from rankgauge.errors import InputError
from rankgauge.judging import Document, Judge, JudgingProject, Settings, Transaction, hash_secret
from rankgauge.project import Project
from rankgauge.reports import environment
from rankgauge.store import HistoryEntry

ADMINS = ("admin",)
LEADS = ("lead", *ADMINS)
JUDGES = ("judge", *LEADS)
READERS = ("reader", *LEADS)
# Name, path, and roles of the groups of pages, and of the pages of judging.
_NAVIGATION = (
    (
        ("Overview", "/", READERS),
        ("Evaluations", "/evaluations", READERS),
        ("Gates", "/gates", READERS),
        ("Judging", "/start", LEADS),
        ("Production", "/production", LEADS),
        ("Try", "/try", LEADS),
        ("Jobs", "/jobs", LEADS),
        ("People", "/people", ADMINS),
    ),
    (
        ("Judge", "/judge", JUDGES),
        ("Answers", "/answers", JUDGES),
        ("Questions", "/questions", JUDGES),
        ("Guideline", "/guideline", JUDGES),
        ("Progress", "/progress", LEADS),
        ("Disagreements", "/disagreements", LEADS),
        ("Votes", "/votes", LEADS),
        ("Settings", "/settings", LEADS),
    ),
)
_COMMAND = re.compile(r"\brankgauge [a-z]|(?<!\S)--[a-z]")
_MOST_BODY = 1_000_000
_MOST_FIELDS = 200
_KEPT = 64  # results
_T = TypeVar("_T")


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
    values = {"judge": None, "csrf": "", "request": request} | values
    if "title" not in values and project is not None:
        values["title"] = _title(request, project)
    judge, state = values["judge"], request.app.state
    role = "" if judge is None else judge.role
    have = {
        "/production": getattr(state, "log", None),
        **dict.fromkeys(("/evaluations", "/gates"), getattr(state, "workbench", None)),
        **dict.fromkeys(("/jobs", "/try"), getattr(state, "runner", None)),
    }
    values["navigation"] = [
        [
            (name, path, path == request.url.path or (path != "/" and request.url.path.startswith(f"{path}/")))
            for name, path, roles in row
            if role in roles and have.get(path, state) is not None
        ]
        for row in _NAVIGATION
    ]
    return HTMLResponse(_templates().get_template(template).render(values), status_code=status)


def _title(request: Request, project: JudgingProject) -> str:
    """Return the title in the settings, or the name of the folder of the evaluations."""
    workbench, title = getattr(request.app.state, "workbench", None), project.settings.title
    return title if workbench is None or title != Settings().title else str(workbench.project.file.folder.name)


def error_page(request: Request, what: str, *, where: str = "", fix: str = "", status: int = 400) -> Response:
    """Return a page with an error, its location, and its fix."""
    return render(
        request,
        "error.html",
        status=status,
        title="Judging",
        what=what,
        where=where,
        fix=fix and (in_words(fix) or "Tell the person who runs this server."),
    )


def in_words(text: str) -> str:
    """Return a sentence of the program without its commands, which visitors of a page cannot type.

    Example:
        >>> in_words("find the likely causes: rankgauge diagnose @latest; or judge more questions")
        'find the likely causes, or judge more questions'
    """
    clauses = (part.strip() for part in re.split(r"(?<=[.;:]) +|(?= \()", text) if not _COMMAND.search(part))
    return re.sub(r"[:;](?= or )", ",", " ".join(clauses)).rstrip(":;, ")


def address(*path: object, **query: object) -> str:
    """Return an address on this server.

    Example:
        >>> address("compare", "a/b", a=1, b=[2, 3], m="")
        '/compare/a%2Fb?a=1&b=2&b=3'
    """
    words = urlencode({name: value for name, value in query.items() if value != ""}, doseq=True)
    return "/" + "/".join(quote(str(part), safe="") for part in path) + ("?" + words if words else "")


def compared(entries: Sequence[HistoryEntry], measure: object, query: str = "", **more: object) -> str:
    """Return the address of a comparison with the first of some evaluations, or of one of its queries."""
    path = ("compare", query) if query else ("compare",)
    return address(*path, a=entries[0].id, b=[entry.id for entry in entries[1:]], m=str(measure), **more)


def see_other(url: str) -> Response:
    """Redirect the browser to another page after a form."""
    return RedirectResponse(url, status_code=303)


@lru_cache(maxsize=1)
def _templates() -> Any:
    templates = environment(Path(__file__).parent / "templates")
    templates.globals |= {"address": address, "compared": compared, "in_words": in_words}
    return templates


_COOKIE = "rankgauge_session"
_DAYS = 30


class RateLimit:
    """Rate limit of events, per sender and in total.

    Counts are kept in the memory of each process.

    Args:
        per_sender: The largest number of events per sender.
        total: The largest number of events from all senders.
        seconds: The length of the window in seconds.

    Example:
        >>> limit = RateLimit(per_sender=2, total=3, seconds=60)
        >>> [limit.add("a"), limit.add("a"), limit.add("a") > 0]
        [0, 0, True]
    """

    def __init__(self, *, per_sender: int, total: int, seconds: float) -> None:
        self._per_sender, self._total, self._seconds = per_sender, total, seconds
        self._lock = threading.Lock()
        self._events: list[tuple[float, str]] = []

    def add(self, sender: str) -> int:
        """Count an event if the limits allow it; return the seconds to wait, or 0."""
        with self._lock:
            now = time.monotonic()
            self._events = [event for event in self._events if event[0] > now - self._seconds]
            times = [at for at, _ in self._events]
            own = [at for at, by in self._events if by == sender]
            ends = [at[0] for at, limit in ((own, self._per_sender), (times, self._total)) if len(at) >= limit]
            if ends:
                return math.ceil(max(ends) + self._seconds - now)
            self._events.append((now, sender))
            return 0


class Results:
    """Results that are kept while they are used; concurrent requests compute each result once."""

    def __init__(self, most: int = _KEPT) -> None:
        self._most = most
        self._kept: dict[Hashable, object] = {}
        self._locks: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def get(self, key: Hashable, compute: Callable[[], _T], position: Callable[[], tuple[int, ...]] = tuple) -> _T:
        """Return the result for a key, and compute it if it is not kept.

        If the result depends on events, `position` returns their number, and a result that was begun before
        the last event is computed again: once for all requests that wait for it.
        """
        asked = position()
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        try:
            with lock:
                kept: Any = self._kept.get(key)
                if kept is None or kept[0] < asked:
                    kept = position(), compute()
        finally:
            with self._lock:
                self._locks.pop(key, None)
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = kept  # the latest one is last
            for old in [*self._kept][: max(0, len(self._kept) - self._most)]:
                self._kept.pop(old, None)
        result: _T = kept[1]
        return result


def form_token(request: Request) -> str:
    """Return the token that forms of this session must send."""
    return hash_secret(f"form {request.cookies.get(_COOKIE, '')}")


def is_own_form(request: Request, form: Mapping[str, str]) -> bool:
    """Return whether a request has the token of this session, in a form or a header."""
    token = request.headers.get("x-csrf-token") or form.get("csrf", "")
    return is_own_origin(request) and hmac.compare_digest(
        token.encode("utf-8", "replace"), form_token(request).encode()
    )


def is_own_origin(request: Request) -> bool:
    """Return whether the browser says that a request comes from a page of this server."""
    origin = request.headers.get("origin")
    return origin is None or origin.partition("://")[2] == request.headers.get("host", "")


def _join(request: Request, _: Mapping[str, str]) -> Response:
    """Sign in with a link, after a button is pressed, because programs open links for previews."""
    project: JudgingProject = request.app.state.project
    pressed = request.method == "POST"
    if pressed and not is_own_origin(request):
        return error_page(request, "The form comes from another site.", status=403, fix="Open your sign-in link.")
    secret = hash_secret(request.path_params["secret"])
    with project.reading() as stored:
        judge = _invited(stored, secret)
    token = secrets.token_urlsafe(32)
    if judge is not None and pressed:
        # Read again: a concurrent request may have used the link.
        with project.writing() as stored:
            judge = _invited(stored, secret, use=True)
            if judge is not None:
                stored.add_session(hash_secret(token), judge.id, datetime.now(UTC) + timedelta(days=_DAYS))
    if judge is None:
        return _invalid_link(request)
    if not pressed:
        return render(request, "join.html", name=judge.name)
    response = RedirectResponse("/", status_code=303)
    response.set_cookie(
        _COOKIE, token, max_age=_DAYS * 86_400, httponly=True, samesite="lax", secure=request.url.scheme == "https"
    )
    return response


def _invited(stored: Transaction, secret: str, *, use: bool = False) -> Judge | None:
    """Return the person whose link has this hash; `use` invalidates a single-use link."""
    stored_judge = stored.judge_by_secret(secret)
    if stored_judge is None or stored_judge[0].revoked or stored_judge[0].kind != "person":
        return None
    judge, more = stored_judge
    if use and more.get("once"):
        # A hash whose secret nobody knows.
        stored.add_judge(judge, hash_secret(secrets.token_urlsafe(32)), {})
    return judge


def _invalid_link(request: Request) -> Response:
    """Respond to an invalid link; only invalid links are limited: people may share an address."""
    wait = request.app.state.failed_sign_ins.add(request.client.host if request.client else "")
    if not wait:
        return error_page(request, "This link is no longer valid.", status=404, fix="Ask for a new link.")
    response = error_page(
        request,
        "Too many invalid links were opened.",
        status=429,
        fix=f"Check the link, or try again in {wait} seconds. Valid links still work.",
    )
    response.headers["Retry-After"] = str(wait)
    return response


def _sign_out(request: Request, form: Mapping[str, str]) -> Response:
    if not is_own_form(request, form):
        return error_page(
            request,
            "You are still signed in: the form was not complete.",
            status=403,
            fix="Go back, reload the page, and try again.",
        )
    with request.app.state.project.writing() as stored:
        stored.end_sessions(token=hash_secret(request.cookies.get(_COOKIE, "")))
    response = render(request, "signed_out.html")
    response.delete_cookie(_COOKIE, httponly=True, samesite="lax")
    return response


def in_thread(handler: Callable[[Request, Mapping[str, str]], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that runs a handler in a thread, with the fields of the form."""

    async def endpoint(request: Request) -> Response:
        form = await read_form(request) if request.method == "POST" else {}
        return await run_in_threadpool(handler, request, form)

    return endpoint


routes = [
    Route("/join/{secret}", in_thread(_join), methods=["GET", "POST"]),
    Route("/sign-out", in_thread(_sign_out), methods=["POST"]),
]


@dataclass(frozen=True, slots=True)
class Visit:
    """Request of a signed-in judge."""

    request: Request
    project: JudgingProject
    judge: Judge
    form: Mapping[str, str]

    @property
    def evaluated(self) -> Project | None:
        """The project whose evaluations are shown; None without one."""
        workbench = self.request.app.state.workbench
        return None if workbench is None else workbench.project

    def named(self, name: str) -> str:
        """Return the name of a judge; readers see it only if the project file has ``judge_names = true``."""
        shown = self.judge.role != "reader" or (self.evaluated and self.evaluated.file.data.get("judge_names"))
        return name if shown else "a judge"

    def render(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page rendered for the judge."""
        values |= {"judge": self.judge, "named": self.named, "csrf": form_token(self.request)}
        return render(self.request, template, status=status, **values)


def visited(
    handler: Callable[[Visit], Response], *, roles: tuple[str, ...] = JUDGES, share: bool = True
) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that runs a handler in a thread, with the judge of the request.

    Its reads share a transaction, unless the handler computes for long.
    """

    def answer(request: Request, form: Mapping[str, str]) -> Response:
        project: JudgingProject = request.app.state.project
        with project.sharing() if share else nullcontext():
            with project.reading() as stored:
                judge = stored.session_judge(hash_secret(request.cookies.get(_COOKIE, "")), datetime.now(UTC))
            if judge is None:
                return error_page(
                    request,
                    "You are not signed in.",
                    status=401,
                    fix="Open your sign-in link. Your earlier choices are stored.",
                )
            if judge.role not in roles:
                raise PageError(
                    403,
                    f"This page is for the role {' or '.join(roles)}; yours is {judge.role}.",
                    where=request.url.path,
                    fix="Ask an admin of this project.",
                )
            if request.method == "POST" and not is_own_form(request, form):
                raise PageError(
                    403,
                    "The form does not come from a page of this session; nothing was stored.",
                    where=request.url.path,
                    fix="Go back, reload the page, and try again.",
                )
            return handler(Visit(request, project, judge, form))

    return in_thread(answer)


_WORD = re.compile(r"([^\W_]+)")
_CODE = {"code", "source_code", "snippet"}
# Documents in Markdown are known by the name of their file, which may be followed by the number of a chunk.
_MARKDOWN = re.compile(r"\.(md|markdown|mdx)(#\d+)?$", re.IGNORECASE)
_MOST_MARKDOWN = 50_000  # characters
_WEB = re.compile(r"https?://[^/?#]", re.IGNORECASE)
_LOCAL = re.compile(r"(?!//)[^:?#]+(?![^?#])")  # a path without a scheme
_FORMS = {
    "text": Markup("{}"),
    "code_inline": Markup("<code>{}</code>"),
    **dict.fromkeys(("fence", "code_block"), Markup("<pre><code>{}</code></pre>\n")),
    "table_open": Markup('<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>\n'),
    "table_close": Markup("</table></div>\n"),
}


@dataclass(frozen=True, slots=True)
class DisplayedDocument:
    """Document as displayed on a page.

    Attributes:
        title: The field ``title``, if displayed.
        parts: Name, text, and kind of text (``code``, ``markdown``, or empty), for each other field.
        image: The URL of an image, or None.
        link: The URL of the document, or None.
    """

    title: Markup
    parts: tuple[tuple[str, Markup, str], ...]
    image: str | None
    link: str | None


def displayed(document: Document, settings: Settings, question: str) -> DisplayedDocument:
    """Return the displayed form of a document, with the terms of the question marked.

    The text of a Markdown file is converted to HTML; other text is displayed as it is.
    """
    names = settings.fields or [name for name in document.fields if name not in {settings.image, settings.link}]
    texts = {name: document.fields[name] for name in names if document.fields.get(name)}
    title = texts.pop("title", "")
    return DisplayedDocument(
        highlighted(title, question),
        tuple(
            (name, markdown_html(text, question, document.id), "markdown")
            if name == "text" and _MARKDOWN.search(document.id)
            else (name, highlighted(text, question), "code" if name in _CODE else "")
            for name, text in texts.items()
        ),
        _address(document, settings.image),
        _address(document, settings.link),
    )


@lru_cache(maxsize=64)
def markdown_html(text: str, question: str = "", document: str = "") -> Markup:
    """Convert Markdown that nobody has checked to HTML, with the terms of a question marked.

    HTML is escaped. Links lead to web addresses only, and images are files of the collection, with paths that
    begin in the folder of a document. A text of more than 50,000 characters is displayed as it is.

    Example:
        >>> print(markdown_html("**Correct** <script>alert(1)</script>"))
        <p><strong>Correct</strong> &lt;script&gt;alert(1)&lt;/script&gt;</p>
    """
    if len(text) > _MOST_MARKDOWN:
        return _FORMS["fence"].format(highlighted(text, question))
    reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    blocks = reader.parse(text)
    for token in (part for block in blocks for part in (block, *(block.children or ()))):
        if token.type in _FORMS:
            token.content = str(_FORMS[token.type].format(highlighted(token.content, question)))
            token.type = "html_inline"  # which is not escaped again
        elif token.type == "image":
            token.type, token.content = "html_inline", _image_html(document, str(token.attrs["src"]), token.content)
        elif token.type == "link_open":
            token.attrs = (
                dict(token.attrs, target="_blank", rel="noopener noreferrer")
                if _WEB.match(str(token.attrs["href"]))
                else {}
            )
        elif token.type.startswith("heading"):  # below the headings of the page
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
        elif "style" in token.attrs:  # the alignment of a cell
            token.attrs = {"class": str(token.attrs["style"]).removeprefix("text-align:")}
    return Markup(reader.renderer.render(blocks, reader.options, {}).strip())  # noqa: S704 - the reader escapes HTML


def _image_html(document: str, source: str, words: str) -> str:
    """Return an image of the collection, whose path is relative to the document; for others, the alternative text."""
    if not (local := _LOCAL.match(source)):
        return str(Markup("[image: {}]").format(words))
    path = posixpath.normpath(posixpath.join("/", posixpath.dirname(document), unquote(local[0])))
    return str(Markup('<img src="/images{}" alt="{}" loading="lazy">').format(quote(path), words))


def _address(document: Document, field: str | None) -> str | None:
    """Return the URL in a field if it is http or https, else None."""
    text = document.fields.get(field or "", "").strip()
    return text if _WEB.match(text) else None


def highlighted(text: str, question: str) -> Markup:
    """Return a text as HTML in which the words of a question, inflected or not, are marked.

    Words match as in a diagnosis, where a vocabulary gap is a document without such words.

    Example:
        >>> print(highlighted("Ties & <b>tie</b> scores", "How are ties broken?"))
        <mark>Ties</mark> &amp; &lt;b&gt;<mark>tie</mark>&lt;/b&gt; scores
    """
    asked, parts = terms(question), _WORD.split(text)
    own = {word: terms(word) for word in {*parts[1::2]}}
    # In scripts without spaces, a word is a clause of several terms.
    marked = {word for word, found in own.items() if found and shared(found, asked) == found}
    return Markup("").join(
        (Markup("<mark>{}</mark>").format if found else escape)("".join(group))
        for found, group in groupby(parts, marked.__contains__)
    )

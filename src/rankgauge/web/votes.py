"""Votes sent by deployed applications: a JSON endpoint, and the script of an embeddable form."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rankgauge.errors import InputError, StorageError
from rankgauge.judging import Answer, Choice, JudgingProject, add_vote, hash_secret
from rankgauge.web.pages import PageError, read_body

_MOST_BODY = 500_000
_MOST_ID = 100
_MOST_QUESTION = 500
_VOTES = {"left": "chosen", "right": "chosen"} | {name: name for name in ("both good", "both bad", "cannot tell")}
_FIELDS = ("id", "question", "vote", "comment")
_EXAMPLE = (
    'send {"id": UUID, "question": TEXT, "left": {"text": TEXT, "retrieval": TEXT, ...},'
    ' "right": {...}, "vote": "left"}'
)


async def _vote(request: Request) -> Response:
    """Store a vote."""
    response = await received(request, _MOST_BODY, _stored)
    return await run_in_threadpool(_allow, request, response)


async def received(request: Request, most: int, store: Callable[[Request, bytes], Response]) -> Response:
    """Return the response to a body of at most this size; errors are returned as JSON."""
    try:
        body = await read_body(request, most)
        return await run_in_threadpool(store, request, body)
    except InputError as error:
        return JSONResponse(
            {"error": error.what, "where": error.where, "fix": error.fix},
            status_code=getattr(error, "status", 503 if isinstance(error, StorageError) else 400),
        )


async def _preflight(request: Request) -> Response:
    """Answer a CORS preflight request."""
    return await run_in_threadpool(_allow, request, Response(status_code=204))


def _allow(request: Request, response: Response) -> Response:
    """Allow only pages of the listed origins to send votes and read the response."""
    origin = request.headers.get("origin", "")
    response.headers["Vary"] = "Origin"
    with request.app.state.project.reading() as stored:
        known = any(origin in origins for origins in stored.origins().values())
    if known:
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Allow-Methods"] = "POST"
        response.headers["Access-Control-Allow-Headers"] = "authorization, content-type"
        response.headers["Access-Control-Max-Age"] = "600"
    return response


def _stored(request: Request, body: bytes) -> Response:
    application, _ = application_of(request)
    project: JudgingProject = request.app.state.project
    vote = _vote_of(body)
    question = _question(project, vote["question"])
    left, right = (_answer(vote.get(side), side, question) for side in ("left", "right"))
    preferred = {"left": (left.id,), "right": (right.id,)}.get(vote["vote"], ())
    choice = Choice(vote["id"], "", application, _VOTES[vote["vote"]], preferred, comment=vote["comment"])
    new = add_vote(project, choice, left, right)
    return JSONResponse({"stored": new}, status_code=201 if new else 200)


def application_of(request: Request) -> tuple[str, Sequence[str]]:
    """Return the application that owns the token of a request, and its origins, if this origin is allowed."""
    project: JudgingProject = request.app.state.project
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    owner = None
    if scheme.lower() == "bearer" and token:
        with project.reading() as stored:
            owner = stored.judge_by_secret(hash_secret(token.strip()))
    if owner is None or owner[0].revoked or owner[0].kind != "application":
        raise PageError(
            401,
            "the token is missing or not valid",
            where="Authorization",
            fix="send Authorization: Bearer TOKEN; an admin creates tokens on the People page",
        )
    origin = request.headers.get("origin")
    if origin is not None and origin not in owner[1].get("origins", ()):
        raise PageError(
            403,
            f"pages of {origin:.100} may not use this token",
            where="Origin",
            fix="list the origin of the application on the People page",
        )
    wait = request.app.state.votes.add(owner[0].id)
    if wait:
        raise PageError(429, "too many requests of this application", fix=f"try again in {wait} seconds")
    return owner[0].id, owner[1].get("origins", ())


def _vote_of(body: bytes) -> dict[str, Any]:
    try:
        vote = json.loads(body)
        json.dumps(vote, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(
            "the body contains a lone surrogate, which is not a character", where="body", fix="send valid Unicode"
        ) from None
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON", where="body", fix=_EXAMPLE) from None
    if not isinstance(vote, dict):
        raise InputError("the body is not a JSON object", where="body", fix=_EXAMPLE)
    vote = {"comment": ""} | vote
    for name in _FIELDS:
        if not isinstance(vote.get(name), str):
            raise InputError(f"{name} is missing or not text", where=name, fix=_EXAMPLE)
    if not 1 <= len(vote["id"]) <= _MOST_ID:
        raise InputError(
            f"the identifier has {len(vote['id']):,} characters",
            where="id",
            fix="send a UUID of the vote; the same vote sent again is stored once",
        )
    if vote["vote"] not in _VOTES:
        raise InputError(f"the vote is {vote['vote']!r:.40}", where="vote", fix=f"send one of {', '.join(_VOTES)}")
    return vote


def _question(project: JudgingProject, text: str) -> str:
    """Return the identifier of the question with this text, or the text if there is none."""
    text = " ".join(text.split())
    if not 1 <= len(text) <= _MOST_QUESTION:
        raise InputError(
            f"the question has {len(text):,} characters",
            where="question",
            fix=f"send up to {_MOST_QUESTION}, or an identifier of the question",
        )
    questions = project.questions
    if text in questions:
        return text
    return next((name for name, question in questions.items() if " ".join(question.text.split()) == text), text)


def _answer(answer: Any, side: str, question: str) -> Answer:
    if not isinstance(answer, Mapping):
        raise InputError(f"the {side} answer is missing", where=side, fix=_EXAMPLE)
    known = {name: answer[name] for name in ("text", "retrieval", "prompt", "model") if name in answer}
    sources = answer.get("sources", ())
    if not isinstance(sources, list | tuple):
        raise InputError("the sources are not a list", where=side, fix='send "sources": ["d1", "d2"]')
    # The default identifier is a hash, equal for equal answers of a system.
    content = json.dumps([question, known, list(sources)], sort_keys=True)
    name = answer.get("id") or str(uuid.uuid5(uuid.NAMESPACE_OID, content))
    return Answer(name, question, **known, sources=tuple(sources))


routes = [Route("/api/votes", _vote, methods=["POST"]), Route("/api/votes", _preflight, methods=["OPTIONS"])]

"""`label_answers`: a page on which a person gives verdicts on claims, contexts, and answers."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rankgauge.answers import (
    LABELS,
    AnswerRecord,
    AnswerSet,
    Item,
    Verdict,
    VerdictStore,
)
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.web.app import STATIC, Headers, show_error
from rankgauge.web.pages import PageError, in_thread, is_own_origin, render, see_other
from rankgauge.web.server import listen, shown_host

# Question, and names of subject and target, by relation.
_PROMPTS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "answer-context": ("Does the context support the claim?", "Claim", "Context"),
        "answer-reference": ("Does the reference support the claim?", "Claim", "Reference"),
        "answer-question": ("Does the claim address the question?", "Claim", ""),
        "reference-context": ("Does the context support the claim?", "Claim", "Context"),
        "reference-answer": ("Does the answer support the claim?", "Claim", "Answer"),
        "nugget-answer": ("Does the answer support the nugget?", "Nugget", "Answer"),
        "citation-context": ("Does the cited context support the sentence?", "Sentence", "Context"),
        "context-question": ("Is the context relevant to the question?", "Context", ""),
        "abstention": ("Does the answer say that it cannot answer?", "Answer", ""),
        "answerability": ("Can the collection answer the question?", "", "Passages found for it"),
        "criterion": ("Does the answer meet the criterion?", "Question and answer", "Criterion"),
    }
)


def verdict_app(
    items: Iterable[Item], records: Mapping[str, AnswerRecord], store: VerdictStore, *, person: str, secret: str = ""
) -> Starlette:
    """Create the ASGI application for the verdicts of a person.

    The person sees one item at a time, in an order that does not depend on the system, without the
    verdicts of other judges. A new verdict on an item replaces the previous verdict.

    Args:
        items: The items to judge; equal items are shown once.
        records: The record of each question.
        store: The store of verdicts.
        person: The name of the person.
        secret: The first part of each path, so that only people with the link have access.
    """
    # Keys are hashes: their order is arbitrary, but the same for all people.
    by_key = {item.key: item for item in sorted(items, key=lambda item: item.key)}
    home = f"/{secret}" if secret else ""

    def show(request: Request) -> Response:
        known = {key: label for key, label in store.labels(person).items() if key in by_key}
        key = request.query_params.get("item") or next((k for k in by_key if k not in known), "")
        if key and key not in by_key:
            raise PageError(404, "There is no such item.", fix="Go to the start page.")
        last = request.query_params.get("last", "")
        values: dict[str, Any] = {
            "title": "Verdicts",
            "home": home,
            "done": len(known),
            "count": len(by_key),
            "person": person,
            "last": last if last in by_key else "",
            "item": by_key.get(key),
        }
        if key:
            item = by_key[key]
            prompt, subject, target = _PROMPTS[item.relation]
            texts = [passage.text for passage in item.passages] or [item.target]
            values |= {
                "prompt": prompt,
                "record": records[item.record],
                "labels": LABELS[item.relation],
                "subject": subject,
                "target": target,
                "texts": list(filter(None, texts)),
                "chosen": known.get(key, ""),
            }
        return render(request, "verdict.html", **values)

    def add(request: Request, form: Mapping[str, str]) -> Response:
        item = by_key.get(form.get("key", ""))
        if not is_own_origin(request) or item is None or form.get("label") not in (LABELS[item.relation]):
            raise PageError(
                400, "The verdict was not stored.", where="form", fix="Go to the start page and repeat the verdict."
            )
        store.add([Verdict(item.key, form["label"], person)])
        return see_other(f"{home}/?last={item.key}")

    app = Starlette(
        routes=[
            Route(f"{home}/", show, methods=["GET"]),
            Route(f"{home}/", in_thread(add), methods=["POST"]),
            *STATIC,
        ],
        middleware=[Middleware(Headers, images=False)],
        exception_handlers={RankgaugeError: show_error},
    )
    app.state.project = None
    return app


def label_answers(
    answers: Iterable[AnswerSet],
    store: VerdictStore,
    person: str,
    *,
    relations: Iterable[str] = ("answer-context", "reference-answer"),
    host: str = "127.0.0.1",
    port: int = 8765,
    echo: Callable[[str], None] = print,
) -> None:
    """Serve a page on which a person gives verdicts on answers, until Ctrl-C.

    Args:
        answers: The answers of one or more systems.
        store: The store of verdicts.
        person: The name of the person in the store.
        relations: The relations to judge, keys of `rankgauge.answers.LABELS`.
        host: The address to listen on.
        port: The port; if 0, any free port.
        echo: Called with the link to open, once the server listens.

    Raises:
        InputError: If a relation is unknown, there are no items, or the port is in use.
    """
    import uvicorn

    sets = list(answers)
    wanted = {*relations, *("criterion" for answer_set in sets if answer_set.criteria)}
    strange = sorted(wanted - set(LABELS))
    if strange:
        raise InputError(
            f"{strange[0]!r} is not a relation", where="relations", fix=f"choose from: {', '.join(LABELS)}"
        )
    items = [item for answer_set in sets for item in answer_set.items() if item.relation in wanted]
    if not items:
        raise InputError(
            f"there is nothing to judge for {', '.join(sorted(wanted))}",
            where="answers",
            fix="use answers with contexts and references, or other relations",
        )
    store.create()
    secret = secrets.token_urlsafe(24)
    records = {record.id: record for answer_set in sets for record in answer_set}
    app = verdict_app(items, records, store, person=person, secret=secret)
    listening = listen(host, port)
    echo(f"http://{shown_host(host)}:{listening.getsockname()[1]}/{secret}/")
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5)
    with listening, contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])

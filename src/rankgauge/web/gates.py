"""Pages of gates: results over time, and the losses behind each. CI sends its results as JSON."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rankgauge.errors import FormatError
from rankgauge.gates import GateNumbers, GateResult
from rankgauge.store import StoredGate
from rankgauge.web.evaluations import ROWS, page_count, page_of, workbench_of
from rankgauge.web.pages import READERS, PageError, Visit, address, compared, visited
from rankgauge.web.votes import application_of, received
from rankgauge.web.workbench import of_answers

_MOST_BODY = 1_000_000
_SIGNS = {"PASS": "good", "IDENTICAL": "good", "FAIL": "bad"}  # CSS classes


def _gates(visit: Visit) -> Response:
    workbench = workbench_of(visit)
    total = workbench.gates.count()
    page = page_of(visit, total)
    rows = [
        _about(visit, stored) | {"decisive": _decisive(workbench.gate(stored))}
        for stored in workbench.gates.results(ROWS, ROWS * (page - 1))
    ]
    return visit.render("gates.html", rows=rows, page=page, pages=page_count(total))


def _about(visit: Visit, stored: StoredGate) -> dict[str, Any]:
    """Return a result, its source, and the CSS class of its sign."""
    judges, result = visit.project.judges, workbench_of(visit).gate(stored)
    return {
        "stored": stored,
        "result": result,
        "commit": (result.commit or "")[:8] + ("*" if result.dirty else ""),
        "source": judges[stored.author].name if stored.author in judges else stored.author,
        "class": _SIGNS.get(stored.verdict, "open"),
    }


def _decisive(result: GateResult) -> tuple[Any, ...]:
    """Return the table row of the check that decides, preferably of a measure."""
    place = min(
        range(len(result.checks)),
        key=lambda place: (result.checks[place].verdict != result.verdict, result.checks[place].numbers is None),
    )
    return result.table().rows[place]


def _gate(visit: Visit) -> Response:
    workbench, number = workbench_of(visit), visit.request.path_params["id"]
    known = number.isascii() and number.isdecimal() and len(number) < 10
    stored = workbench.gates.result(int(number)) if known else None
    if stored is None:
        raise PageError(404, f"There is no result {number:.40}.", where="gates", fix="Choose one from the list.")
    if visit.request.query_params.get("format") == "json":
        return Response(stored.body, media_type="application/json")
    result = workbench.gate(stored)
    entries = workbench.history.entries()
    return visit.render(
        "gate.html",
        about=_about(visit, stored),
        table=replace(result.table(), title="", notes=(*result.sentences()[1:], *result.limits()[1:])),
        losses=[
            (check, _links(visit, check.numbers)) for check in result.checks if check.numbers and check.numbers.losers
        ],
        texts=workbench.queries(entries[-1]) if entries else {},
    )


def _links(visit: Visit, numbers: GateNumbers) -> dict[str, str]:
    """Return the address of each query that lost: its comparison, or its page; none if it is in no evaluation."""
    workbench = workbench_of(visit)
    pair, known = workbench.gated(numbers), workbench.known_queries(ROWS)

    def link(query: str) -> str:
        if pair and of_answers(pair[1]):
            return address("evaluations", pair[1].id, "answers", query)
        return compared(pair, numbers.measure, query) if pair else address("queries", query)

    return {lost.query: link(lost.query) for lost in numbers.losers if pair or lost.query in known}


def _store(request: Request, body: bytes) -> Response:
    """Store a result sent by CI with the token of an application."""
    application, origins = application_of(request)
    if origins:
        raise PageError(
            403,
            "this token is public: it belongs to an application with origins",
            where="Authorization",
            fix="create an application without origins on the People page",
        )
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise FormatError("the body is not UTF-8", path="body", fix="send the file of rankgauge gate --json") from None
    GateResult.from_json(text, where="body")
    new = request.app.state.workbench.gates.add(text, author=application)
    return JSONResponse({"stored": new}, status_code=201 if new else 200)


routes = [
    Route("/gates", visited(_gates, roles=READERS)),
    Route("/gates", partial(received, most=_MOST_BODY, store=_store), methods=["POST"]),
    Route("/gates/{id}", visited(_gate, roles=READERS)),
]

"""Try a query: show the rankings of all retrievers side by side, and save the query as a question to judge."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from starlette.responses import Response
from starlette.routing import Route

from rankgauge.benchmark import LiveRanking
from rankgauge.corpus import Collection, Query
from rankgauge.data import Run
from rankgauge.errors import InputError
from rankgauge.judging import build_pool, write_question
from rankgauge.store import Job
from rankgauge.web.evaluations import workbench_of
from rankgauge.web.jobs import Runner
from rankgauge.web.pages import LEADS, PageError, Visit, address, see_other, visited

_DEPTH = 10
_A_DAY = 500  # live queries, if the project file sets no limit


def _runner(visit: Visit) -> Runner:
    runner: Runner = visit.request.app.state.runner
    return runner


def _text(visit: Visit) -> str:
    values = visit.request.query_params if visit.request.method == "GET" else visit.form
    return " ".join(values.get("q", "").split())[:2_000]


def _queries(visit: Visit) -> tuple[int, list[Job]]:
    """Return the limit of a day, and the latest queries, as many or more."""
    most = _runner(visit).project.file.value(_A_DAY, "live_queries")
    return most, [job for job in _runner(visit).jobs.jobs(most + 100) if job.arguments[0] == "query"]


def _asked(visit: Visit) -> str:
    """Return the text of a query that counted within the limit; reject others, and unknown retrievers."""
    text, name = _text(visit), visit.request.path_params.get("name")
    if name not in {None, *_runner(visit).live} or all(job.arguments[1] != text for job in _queries(visit)[1]):
        raise PageError(404, "This query was not tried.", where="try", fix="Enter it in the form.")
    return text


def _ranking(visit: Visit, name: str, text: str) -> LiveRanking:
    """Return the ranking of a query, which is cached: a saved query has the ranking that was shown."""
    retriever = _runner(visit).live[name]
    return workbench_of(visit).results.get(("live", name, text), lambda: retriever.search(text, _DEPTH))


def _show(visit: Visit) -> Response:
    return visit.render("live.html", text=_text(visit), names=[*_runner(visit).live])


def _ask(visit: Visit) -> Response:
    """Record who tries a query, within the budget of a day; the page then requests each ranking."""
    text, (most, queries) = _text(visit), _queries(visit)
    since = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    asked = [job for job in queries if job.time > since]
    if len(asked) >= most:
        raise PageError(
            429,
            f"{len(asked)} queries were tried in the last 24 hours.",
            where="live_queries in rankgauge.toml",
            fix="Raise the limit and restart the server, or try again later.",
        )
    if text:
        _runner(visit).jobs.add(["query", text], author=visit.judge.name, state="done")
    return see_other(address("try", q=text))


def _hits(visit: Visit) -> Response:
    """Return the documents that a retriever finds for a query that was tried."""
    name, text, runner = visit.request.path_params["name"], _asked(visit), _runner(visit)
    try:
        ranking, reason = _ranking(visit, name, text), ""
    except InputError as error:
        ranking, reason = LiveRanking((), (), 0.0), error.what
    documents = runner.project.collection.documents
    found = [(document, documents.get(document)) for document in ranking.documents]
    return visit.render("live_part.html", ranking=ranking, reason=reason, found=found)


def _save(visit: Visit) -> Response:
    """Save a query as a question, whose documents are then judged without seeing ranks."""
    text, runner = _asked(visit), _runner(visit)
    rankings = []
    for name in runner.live:
        try:
            rankings.append(_ranking(visit, name, text))
        except InputError:  # the page shows why
            continue
    documents = runner.project.collection.documents
    found = {name: documents[name] for ranking in rankings for name in ranking.documents if name in documents}
    if not found:
        raise InputError("no retriever found a document", where="query", fix="try another query")
    question = write_question(visit.project, text, author=visit.judge.name)
    runs = [Run({question.id: dict(zip(ranking.documents, ranking.scores, strict=True))}) for ranking in rankings]
    build_pool(visit.project, Collection(found, {question.id: Query(question.id, text)}), runs, k=_DEPTH)
    return see_other("/judge")


routes = [
    Route("/try", visited(_show, roles=LEADS)),
    Route("/try", visited(_ask, roles=LEADS), methods=["POST"]),
    Route("/try/save", visited(_save, roles=LEADS, share=False), methods=["POST"]),
    Route("/try/{name:path}", visited(_hits, roles=LEADS, share=False)),
]

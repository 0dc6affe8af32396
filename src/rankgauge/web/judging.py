"""Pages for judges: start page, tasks, and the handling of choices."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from starlette.responses import Response
from starlette.routing import Route

from rankgauge.errors import InputError, StorageError
from rankgauge.judging import Choice, Task
from rankgauge.web.pages import PageError, Visit, displayed, markdown_html, see_other, visited
from rankgauge.web.teams import differing_choices

_SPECIAL = {"none", "both good", "both bad", "cannot tell", "later", "undone"}
_MOST_SECONDS = 86_400.0
_RELOAD = "reload the page and choose again; everything stored so far is kept"


def start(visit: Visit) -> Response:
    """Return the start page of a judge."""
    workbench = visit.request.app.state.workbench
    return visit.render(
        "start.html",
        progress=visit.project.progress(visit.judge.id),
        pooled=bool(visit.project.pools),
        settings=visit.project.settings,
        answers=None if workbench is None else workbench.latest_answers(),
    )


def _next(visit: Visit, *, votes: bool = False) -> Response:
    task = visit.project.next_task(visit.judge.id, votes=votes)
    return _done_page(visit, votes=votes) if task is None else see_other(_path(task))


def _show(visit: Visit) -> Response:
    return _page(visit, _task(visit))


def _choose(visit: Visit) -> Response:
    """Store a choice; redirect a form to the next task, but send the next task to the script."""
    task = _task(visit)
    choice = _choice_of(visit, task)
    visit.project.record(choice)
    undone = choice.outcome == "undone"
    if "x-rankgauge" not in visit.request.headers or task.presentation.purpose == "adjudication":
        return see_other(_path(task) if undone else _next_path(task))
    votes = task.presentation.mode == "answers"
    following = _task(visit) if undone else visit.project.next_task(visit.judge.id, votes=votes)
    return _done_page(visit, votes=votes) if following is None else _page(visit, following)


def _next_path(task: Task) -> str:
    """Return the path of the page after a task."""
    if task.presentation.purpose == "adjudication":
        return "/disagreements"
    return "/answers" if task.presentation.mode == "answers" else "/judge"


def _task(visit: Visit) -> Task:
    name = visit.request.path_params["presentation"]
    try:
        return visit.project.task(name, visit.judge.id)
    except StorageError:
        raise
    except InputError:
        raise PageError(
            404,
            "You have no such task.",
            where=f"task {name}",
            fix="Continue with your next task; your earlier choices are stored.",
        ) from None


def _path(task: Task) -> str:
    return f"/judge/{task.presentation.id}"


def _done_page(visit: Visit, *, votes: bool) -> Response:
    response = visit.render(
        "done.html",
        progress=visit.project.progress(visit.judge.id, votes=votes),
        pooled=bool(visit.project.pools),
        choice=str(uuid.uuid4()),
        votes=votes,
    )
    response.headers["X-Location"] = "/answers" if votes else "/judge"
    return response


def _page(visit: Visit, task: Task) -> Response:
    shown, settings = task.presentation, task.settings
    choice = task.choice if task.choice is not None and task.choice.finished else None
    votes = shown.mode == "answers"
    # The displayed fields are fields of documents, not of answers.
    fields = replace(settings, fields=(), image=None, link=None) if votes else settings
    response = visit.render(
        "task.html",
        votes=votes,
        after=_next_path(task),
        differing=differing_choices(visit, task) if shown.purpose == "adjudication" else (),
        task=task,
        shown=shown,
        settings=settings,
        mode=shown.mode,
        made=choice,
        picked=_previous_pick(task, choice),
        max_rank=min(settings.places or len(shown.documents), len(shown.documents)),
        documents=[displayed(document, fields, task.question.text) for document in task.documents],
        guideline=markdown_html(task.guideline),
        expired=task.choice is None and shown.expired(datetime.now(UTC)),
        progress=visit.project.progress(visit.judge.id, votes=votes),
        choice=str(uuid.uuid4()),
        undo=str(uuid.uuid4()),
        opened=int(time.time() * 1000),
    )
    response.headers["X-Location"] = _path(task)
    return response


def _previous_pick(task: Task, choice: Choice | None) -> str:
    """Return the value of the button that the judge pressed before."""
    if choice is None or not (choice.documents or choice.grades):
        return choice.outcome if choice else ""
    if choice.grades:
        return str(choice.grades[0])
    shown = task.presentation
    return "ranking" if shown.mode == "ranking" else str(shown.documents.index(choice.documents[0]) + 1)


# ---- forms


def _choice_of(visit: Visit, task: Task) -> Choice:
    """Return the choice in a form."""
    form, shown = visit.form, task.presentation
    try:
        name = str(uuid.UUID(form.get("choice", "")))
    except ValueError:
        raise InputError(
            "the form is incomplete: it has no identifier of the choice", where="form", fix=_RELOAD
        ) from None
    reason = form.get("reason", "")
    if reason and reason not in dict(task.settings.reasons).values():
        raise InputError(f"the reason {reason!r:.60} is unknown", where="form", fix=_RELOAD)
    comment = form.get("comment", "").strip()
    choice = Choice(name, shown.id, visit.judge.id, "later", reason=reason, comment=comment, seconds=_seconds(form))
    pick = form.get("pick", "")
    if pick in _SPECIAL:
        return replace(choice, outcome=pick)
    if shown.mode == "ranking":
        return replace(choice, outcome="chosen", documents=_ranking(form, shown.documents))
    if not pick.isascii() or not pick.isdecimal() or len(pick) > 2:
        raise InputError(f"the form contains {pick!r:.40}, which is not a choice", where="form", fix=_RELOAD)
    if shown.mode == "graded":
        return replace(choice, outcome="graded", grades=(int(pick),))
    if not 1 <= int(pick) <= len(shown.documents):
        raise InputError(
            f"there is no document {pick} in this task", where="form", fix=f"choose one of {len(shown.documents)}"
        )
    return replace(choice, outcome="chosen", documents=(shown.documents[int(pick) - 1],))


def _ranking(form: Mapping[str, str], documents: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ranked documents, best first."""
    by_rank: dict[int, str] = {}
    for number, document in enumerate(documents, 1):
        rank = form.get(f"rank-{number}", "")
        if not rank:
            continue
        if not rank.isascii() or not rank.isdecimal() or not 1 <= int(rank[:3]) <= 20:
            raise InputError(f"{rank!r:.20} is not a rank", where="form", fix=_RELOAD)
        if int(rank) in by_rank:
            raise InputError(
                f"two documents have rank {int(rank)}",
                where="ranking",
                fix="go back and give each rank to one document",
            )
        by_rank[int(rank)] = document
    return tuple(by_rank[rank] for rank in sorted(by_rank))


def _seconds(form: Mapping[str, str]) -> float | None:
    """Return the display time in seconds, measured by the script or since the page was sent."""
    try:
        seconds = float(form["seconds"]) if "seconds" in form else time.time() - int(form["opened"]) / 1000
    except (KeyError, ValueError, OverflowError):
        return None
    return round(seconds, 1) if 0 <= seconds <= _MOST_SECONDS else None


routes = [
    Route("/", visited(start)),
    Route("/start", visited(start)),
    Route("/judge", visited(_next)),
    Route("/answers", visited(partial(_next, votes=True))),
    Route("/judge/{presentation}", visited(_show)),
    Route("/judge/{presentation}", visited(_choose), methods=["POST"]),
]

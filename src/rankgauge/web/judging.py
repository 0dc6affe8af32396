"""Pages of judging: tasks, questions, guideline, progress, disagreements, votes, people, and settings."""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from rankgauge.errors import InputError, StorageError
from rankgauge.judging import (
    ROLES,
    Choice,
    DisputedSet,
    Document,
    Judge,
    Judgment,
    Task,
    disputed_sets,
    judging_status,
    vote_report,
    write_question,
)
from rankgauge.rendering import shorten
from rankgauge.store import WholeStore
from rankgauge.web.pages import ADMINS, LEADS, PageError, Visit, displayed, markdown_html, see_other, visited

_SPECIAL = {"none", "both good", "both bad", "cannot tell", "later", "undone"}
_MOST_SECONDS = 86_400.0
_MOST_GUIDELINE = 50_000  # characters
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


# ---- people and settings


def _people(visit: Visit, *, invited: Judge | None = None, secret: str = "") -> Response:
    judges = visit.project.judges.values()
    with visit.project.reading() as stored:
        origins = stored.origins()
    return visit.render(
        "people.html",
        people=[judge for judge in judges if judge.kind == "person"],
        others=[judge for judge in judges if judge.kind != "person"],
        done={judge.id: judge.finished for judge in judging_status(visit.project).judges},
        origins=origins,
        roles=ROLES,
        invited=invited,
        secret=secret,
        server=str(visit.request.base_url).rstrip("/"),
    )


def _invite(visit: Visit) -> Response:
    """Add a person or an application, and show the link or token once."""
    form, name = visit.form, " ".join(visit.form.get("name", "").split())
    kind = form.get("kind", "person")
    if kind not in {"person", "application"}:
        raise InputError(f"the kind is {kind!r:.40}", where="form", fix="reload the page")
    if any(judge.name.casefold() == name.casefold() for judge in visit.project.judges.values() if not judge.revoked):
        raise InputError(
            f"the name {name!r:.60} is already taken",
            where="name",
            fix="use another name, or create a new link for this person",
        )
    judge, secret = visit.project.add_judge(
        name,
        role=form.get("role", "judge") if kind == "person" else "judge",
        kind=kind,
        origins=form.get("origins", "").split(),
    )
    return _people(visit, invited=judge, secret=secret)


def _renew(visit: Visit) -> Response:
    judge = _judge(visit)
    return _people(visit, invited=judge, secret=visit.project.invite_again(judge.id))


def _change_role(visit: Visit) -> Response:
    visit.project.change_role(_other(visit).id, visit.form.get("role", ""))
    return see_other("/people")


def _revoke(visit: Visit) -> Response:
    visit.project.revoke(_other(visit).id)
    return see_other("/people")


def _judge(visit: Visit) -> Judge:
    judge = visit.project.judges.get(visit.request.path_params["judge"])
    if judge is None or judge.kind == "model":
        raise InputError("there is no such person", where="people", fix="reload the People page")
    return judge


def _other(visit: Visit) -> Judge:
    """Return the judge of the form, who must be another person: projects must keep an admin."""
    judge = _judge(visit)
    if judge.id == visit.judge.id:
        raise InputError("you cannot change your own role or access", where="people", fix="ask another admin")
    return judge


def _settings(visit: Visit) -> Response:
    with visit.project.reading() as stored:
        versions = stored.versions("settings")
    file = visit.evaluated and visit.evaluated.file
    sizes: dict[str, int] = {}
    if file:
        with WholeStore(file.store) as whole:
            sizes = whole.sizes()
    return visit.render(
        "settings.html", settings=asdict(visit.project.settings), versions=versions, file=file, sizes=sizes
    )


def _backup(visit: Visit) -> Response:
    """Send a backup of the store, which is then removed from this computer."""
    if visit.evaluated is None:
        raise InputError("there is no project", where="backup", fix="serve a project")
    folder = tempfile.mkdtemp(prefix="rankgauge-")
    path = Path(folder, f"rankgauge-{datetime.now(UTC):%Y%m%d-%H%M}.zip")
    try:
        with WholeStore(visit.evaluated.file.store) as whole:
            whole.backup(path)
    except BaseException:
        shutil.rmtree(folder)
        raise
    return FileResponse(path, filename=path.name, background=BackgroundTask(shutil.rmtree, folder))


# ---- questions


def _questions(visit: Visit) -> Response:
    """Show the questions written by a judge; show all questions to leads."""
    lead = visit.judge.role in LEADS
    questions = [
        question
        for question in visit.project.questions.values()
        if lead or (question.origin == "page" and question.author == visit.judge.name)
    ]
    return visit.render("questions.html", questions=questions, lead=lead)


def _ask(visit: Visit) -> Response:
    write_question(
        visit.project,
        visit.form.get("text", ""),
        need=visit.form.get("need", ""),
        answers=visit.form.get("answers", "").replace(",", "\n").splitlines(),
        author=visit.judge.name,
    )
    return see_other("/questions")


def _withdraw(visit: Visit) -> Response:
    question = visit.project.questions.get(visit.form.get("question", ""))
    own = question is not None and question.origin == "page" and question.author == visit.judge.name
    if question is None or not (own or visit.judge.role in LEADS):
        raise InputError("you have no such question", where="questions", fix="reload the Questions page")
    visit.project.add_questions([replace(question, withdrawn=True)])
    return see_other("/questions")


# ---- guideline


def _guideline(visit: Visit) -> Response:
    version = visit.request.query_params.get("version", "")
    latest, text = visit.project.guideline()
    number = int(version) if version.isascii() and version.isdecimal() and len(version) < 6 else latest
    if number != latest:
        number, text = visit.project.guideline(number)
    with visit.project.reading() as stored:
        versions = stored.versions("guideline")
    return visit.render(
        "guideline.html",
        number=number,
        latest=latest,
        text=text,
        shown=markdown_html(text),
        versions=versions,
        lead=visit.judge.role in LEADS,
    )


def _change_guideline(visit: Visit) -> Response:
    text = visit.form.get("text", "").replace("\r\n", "\n")
    if len(text) > _MOST_GUIDELINE:
        raise InputError(
            f"the guideline has {len(text):,} characters", where="guideline", fix=f"write up to {_MOST_GUIDELINE:,}"
        )
    visit.project.change_guideline(text, author=visit.judge.name)
    return see_other("/guideline")


# ---- progress and disagreements


def _progress(visit: Visit) -> Response:
    return visit.render(
        "progress.html",
        report=judging_status(visit.project),
        questions=visit.project.question_progress(),
        disputed=sum(not dispute.verdict for dispute in _disputed(visit)),
    )


def _disputed(visit: Visit) -> list[DisputedSet]:
    return disputed_sets(visit.project.judgments(), visit.project.judges)


def _describe_judgment(judgment: Judgment, names: dict[str, str], grades: tuple[str, ...]) -> str:
    """Return a choice as text; `names` are the names of the documents."""
    choice = judgment.choice
    if choice is None:
        return "open"
    if choice.grades:
        return ", ".join(grades[grade] if grade < len(grades) else str(grade) for grade in choice.grades)
    if judgment.presentation.mode == "yes-no" and choice.outcome in {"chosen", "none"}:
        return "yes" if choice.documents else "no"
    return ", ".join(names.get(document, document) for document in choice.documents) or choice.outcome


def _disagreements(visit: Visit) -> Response:
    disputed = _disputed(visit)
    ids = {name for dispute in disputed for name in dispute.documents}
    names = {name: _title(document) for name, document in visit.project.documents(ids).items()}
    questions, judges = visit.project.questions, visit.project.judges
    grades = visit.project.settings.grades
    rows = [
        {
            "question": questions[dispute.question].text if dispute.question in questions else dispute.question,
            "presentation": dispute.judgments[0].presentation.id,
            "documents": [names.get(name, name) for name in dispute.documents],
            "answers": [
                (judges[judgment.presentation.judge].name, _describe_judgment(judgment, names, grades), judgment.choice)
                for judgment in dispute.judgments
            ],
            "verdict": dispute.verdict and _describe_judgment(dispute.verdict, names, grades),
            "by": dispute.verdict and judges[dispute.verdict.presentation.judge].name,
        }
        for dispute in disputed
    ]
    response = visit.render("disagreements.html", rows=rows)
    # The script shows the Disagreements page after a verdict.
    response.headers["X-Location"] = "/disagreements"
    return response


def differing_choices(visit: Visit, task: Task) -> list[tuple[str, str, Choice | None]]:
    """Return name, answer as text, and choice of each judge of a set of documents."""
    shown, judges = task.presentation, visit.project.judges
    names = {name: f"document {number}" for number, name in enumerate(shown.documents, 1)}
    return [
        (
            judges[judgment.presentation.judge].name,
            _describe_judgment(judgment, names, task.settings.grades),
            judgment.choice,
        )
        for dispute in _disputed(visit)
        if dispute.question == shown.question and shown.items == set(dispute.documents)
        for judgment in dispute.judgments
    ]


def _title(document: Document) -> str:
    title = document.fields.get("title") or next(iter(document.fields.values()), "")
    return f"{document.id}: {shorten(title, 60)}" if title else document.id


def _adjudicate(visit: Visit) -> Response:
    """Present a set of documents for the final verdict."""
    name = visit.form.get("presentation", "")
    for dispute in _disputed(visit):
        if any(judgment.presentation.id == name for judgment in dispute.judgments):
            task = visit.project.adjudicate(dispute.question, dispute.documents, visit.judge.id)
            return see_other(f"/judge/{task.presentation.id}")
    raise InputError(
        "there is no such disagreement",
        where="disagreements",
        fix="reload the Disagreements page: somebody may have changed a choice",
    )


def _votes(visit: Visit) -> Response:
    return visit.render(
        "votes.html",
        report=vote_report(visit.project),
        questions={name: question.text for name, question in visit.project.questions.items()},
    )


routes = [
    Route("/", visited(start)),
    Route("/start", visited(start)),
    Route("/judge", visited(_next)),
    Route("/answers", visited(partial(_next, votes=True))),
    Route("/judge/{presentation}", visited(_show)),
    Route("/judge/{presentation}", visited(_choose), methods=["POST"]),
    Route("/people", visited(_people, roles=ADMINS)),
    Route("/people", visited(_invite, roles=ADMINS), methods=["POST"]),
    Route("/people/{judge}/link", visited(_renew, roles=ADMINS), methods=["POST"]),
    Route("/people/{judge}/role", visited(_change_role, roles=ADMINS), methods=["POST"]),
    Route("/people/{judge}/revoke", visited(_revoke, roles=ADMINS), methods=["POST"]),
    Route("/settings", visited(_settings, roles=LEADS)),
    Route("/settings/backup", visited(_backup, roles=ADMINS), methods=["POST"]),
    Route("/questions", visited(_questions)),
    Route("/questions", visited(_ask), methods=["POST"]),
    Route("/questions/withdraw", visited(_withdraw), methods=["POST"]),
    Route("/guideline", visited(_guideline)),
    Route("/guideline", visited(_change_guideline, roles=LEADS), methods=["POST"]),
    Route("/progress", visited(_progress, roles=LEADS)),
    Route("/disagreements", visited(_disagreements, roles=LEADS)),
    Route("/disagreements", visited(_adjudicate, roles=LEADS), methods=["POST"]),
    Route("/votes", visited(_votes, roles=LEADS)),
]

"""`JudgingProject`: questions, pools, judges, tasks, and judgments."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from rankgauge.core.arguments import choice as one_of
from rankgauge.errors import InputError
from rankgauge.judging.events import (
    KINDS,
    ROLES,
    Answer,
    Candidate,
    Choice,
    Document,
    GoldTask,
    Judge,
    Judgment,
    Presentation,
    Question,
    Settings,
    pairs_of,
)
from rankgauge.judging.store import Transaction
from rankgauge.judging.tasks import ProjectState, next_presentation, next_vote
from rankgauge.store.database import Store

if TYPE_CHECKING:
    from sqlalchemy import Connection

_MOST_NAME = 100  # characters of a judge's name


@dataclass(frozen=True, slots=True)
class Task:
    """Task as displayed to a judge: a presentation and texts, without rank, score, and source.

    Attributes:
        presentation: The presentation.
        question: The question.
        documents: The documents, in the order displayed.
        settings: The settings of the project.
        guideline: The guideline in Markdown.
        choice: The latest choice, or None for an open task.
    """

    presentation: Presentation
    question: Question
    documents: tuple[Document, ...]
    settings: Settings
    guideline: str
    choice: Choice | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a judge and of the project.

    Attributes:
        own: Number of tasks finished by this judge.
        finished: Number of tasks finished by people.
        left: Largest number of remaining tasks of all judges; questions may be resolved earlier.
        available: Largest number of these tasks that this judge can get: others need another judge, who has
            not seen their documents, or are reserved. Without a judge, those that the people of the project
            can get, or a first judge.
        seconds: Median seconds per task of this judge, or None before the first task.
        questions: The number of questions.
        complete: Number of questions with candidates that are resolved or have used up their
            budget.
        last: The identifier of the last task of this judge, or None before the first task.
    """

    own: int
    finished: int
    left: int
    available: int
    seconds: float | None
    questions: int
    complete: int
    last: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionProgress:
    """Progress of a question.

    Attributes:
        question: The question.
        documents: The size of its pool.
        finished: Number of tasks finished by people.
        left: Largest number of remaining tasks.
        split: Documents that some judges choose more often than others (:func:`split_documents`).
    """

    question: Question
    documents: int
    finished: int
    left: int
    split: tuple[str, ...]


class JudgingProject(Store):
    """Judging project: an SQLite file or a PostgreSQL database.

    Experts see a question and two or three documents and choose the best, or none. Presentations
    and choices are stored as immutable events; relevance is computed from them.

    Example:
        >>> import tempfile
        >>> from rankgauge.judging import Candidate, Choice, Document, Question, Source
        >>> project = JudgingProject.create(tempfile.mkdtemp() + "/judging.db")
        >>> pool = [Candidate("q1", name, (Source("bm25", rank=1),)) for name in ("a", "b")]
        >>> project.add_questions([Question("q1", "How are ties broken?")])
        >>> project.add_candidates(pool, [Document(candidate.document) for candidate in pool])
        2
        >>> ann, _ = project.add_judge("Ann")
        >>> task = project.next_task(ann.id)
        >>> sorted(task.presentation.documents)
        ['a', 'b']
        >>> project.record(Choice("c1", task.presentation.id, ann.id, "chosen", ("a",)))
        True
        >>> [judgment.status for judgment in project.judgments()]
        ['counted']
    """

    _first = "create it: rankgauge judge create --questions FILE"

    def __init__(self, where: str | os.PathLike[str] | None = None, *, wait: float = 30.0) -> None:
        """Open a project, as any store; a missing project is reported on first use."""
        super().__init__(where, wait=wait)
        self._state = ProjectState()
        self._lock = threading.Lock()

    @classmethod
    def create(
        cls,
        where: str | os.PathLike[str] | None = None,
        settings: Settings | None = None,
        *,
        guideline: str | None = None,
        author: str = "",
    ) -> Self:
        """Create a project.

        Args:
            where: A path or URL, as for the constructor.
            settings: The settings; if None, judges choose the best of three documents.
            guideline: The guideline in Markdown; if None, the default guideline of the mode.
            author: The creator of the project.

        Raises:
            InputError: If a project already exists or cannot be written.
        """
        project = cls(where)
        with project._database.writing() as connection:
            stored = Transaction(connection)
            if stored.version("settings") is not None:
                raise InputError(
                    "a judging project already exists",
                    where=project.where,
                    fix="name another store: --store FILE, or continue with this project",
                )
            settings = settings or Settings()
            stored.add_settings(settings, author)
            if guideline is None:
                guideline = (Path(__file__).parent / "guidelines" / f"{settings.mode}.md").read_text(encoding="utf-8")
            stored.add_version("guideline", guideline, author)
        return project

    @property
    def path(self) -> Path | None:
        """The path of the SQLite file; None for PostgreSQL."""
        return self._database.path

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Open a read transaction with a consistent snapshot of the project."""
        with self._database.reading() as connection:
            yield self._existing(connection)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Open a write transaction, rolled back on errors."""
        if self.path is not None and not self.path.exists():
            raise self._database.nothing_stored()
        with self._database.writing() as connection:
            yield self._existing(connection)

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Open a read transaction for all reads of this store in this thread, until it writes."""
        with ExitStack() as opened:
            # Another thread must not read later contents before these.
            with self._lock, self._database.errors("read"):
                self._state.update(self._existing(opened.enter_context(self._database.sharing()), new=True))
            yield

    def _existing(self, connection: Connection, *, new: bool = False) -> Transaction:
        stored = Transaction(connection)
        if (new or self._database.shared is None) and stored.version("settings") is None:
            raise self._database.nothing_stored("judging project in this store")
        return stored

    @contextmanager
    def _current(self, *, write: bool = False) -> Iterator[tuple[Transaction, ProjectState]]:
        """Yield a transaction and the state of the project within it, or later than a shared one."""
        with self._lock, self.writing() if write else self.reading() as stored:
            try:
                if self._database.shared is None:
                    self._state.update(stored)
                yield stored, self._state
            except BaseException:
                # The transaction may be rolled back: read the state again next time.
                if write:
                    self._state = ProjectState()
                raise

    # ---- settings and contents

    @property
    def settings(self) -> Settings:
        """The latest settings."""
        with self._current() as (_, state):
            return state.settings

    def change_settings(self, settings: Settings, *, author: str = "") -> int:
        """Store the settings as a new version and return its number."""
        with self.writing() as stored:
            return stored.add_settings(settings, author)

    def guideline(self, version: int | None = None) -> tuple[int, str]:
        """Return the number and text of a version of the guideline, by default the latest."""
        with self.reading() as stored:
            guideline = stored.version("guideline", version)
        if guideline is None:
            raise InputError(
                f"the guideline has no version {version}",
                where=self.where,
                fix="use the number of a version, or none for the latest",
            )
        return guideline

    def change_guideline(self, text: str, *, author: str = "") -> int:
        """Store a new version of the guideline (Markdown) and return its number."""
        if not text.strip():
            raise InputError("the guideline is empty", where="guideline", fix="write its text")
        with self.writing() as stored:
            latest = stored.version("guideline")
            if latest is not None and latest[1] == text:
                return latest[0]
            return stored.add_version("guideline", text, author)

    def add_questions(self, questions: Iterable[Question]) -> None:
        """Add questions; an existing identifier adds a new version of that question."""
        with self.writing() as stored:
            stored.add_questions(questions)

    @property
    def questions(self) -> Mapping[str, Question]:
        """The questions by identifier, without withdrawn questions."""
        with self._current() as (_, state):
            return dict(state.questions)

    @property
    def pools(self) -> Mapping[str, tuple[str, ...]]:
        """The documents in the pool of each question that has a pool."""
        with self._current() as (_, state):
            return dict(state.pools)

    def add_candidates(self, candidates: Iterable[Candidate], documents: Iterable[Document]) -> int:
        """Add candidates with their sources and texts; return the number of new pairs."""
        with self.writing() as stored:
            stored.add_documents(documents)
            return stored.add_candidates(candidates)

    def documents(self, ids: Iterable[str]) -> dict[str, Document]:
        """Return the stored documents among these identifiers."""
        with self.reading() as stored:
            return stored.documents(ids)

    def add_gold(self, tasks: Iterable[GoldTask]) -> None:
        """Add hidden tests with a known answer."""
        with self.writing() as stored:
            stored.add_gold(tasks)

    # ---- answers of systems

    def add_answers(self, answers: Iterable[Answer]) -> None:
        """Add answers of systems.

        Raises:
            InputError: If a different answer has the same identifier.
        """
        by_id = {answer.id: answer for answer in answers}
        with self.writing() as stored:
            for name, known in stored.answers(by_id).items():
                if known != by_id[name]:
                    raise InputError(
                        f"a different answer has the identifier {name!r:.60}",
                        where=self.where,
                        fix="give a changed answer a new identifier",
                    )
            stored.add_answers(by_id.values())

    def answers(self) -> dict[str, Answer]:
        """Return the answers of systems by identifier."""
        with self._current() as (_, state):
            return dict(state.answers)

    # ---- judges

    def add_judge(
        self, name: str, *, role: str = "judge", kind: str = "person", origins: Iterable[str] = ()
    ) -> tuple[Judge, str]:
        """Add a judge; return the judge and the secret of the invitation, which is not stored.

        Args:
            name: The name displayed to leads.
            role: One of `ROLES`.
            kind: ``person``, ``model``, or ``application``.
            origins: For an application, the origins of pages that may send votes, such as
                ``https://shop.example``.
        """
        if role not in ROLES or kind not in KINDS or not name.strip():
            raise InputError(
                f"judge {name!r:.60}, role {role!r:.20}, kind {kind!r:.20}",
                where="judge",
                fix=f"use a name, a role ({', '.join(ROLES)}), and a kind ({', '.join(KINDS)})",
            )
        if len(name.strip()) > _MOST_NAME:
            raise InputError(
                f"the name has {len(name.strip()):,} characters", where="judge", fix=f"use up to {_MOST_NAME}"
            )
        judge = Judge(uuid.uuid4().hex[:12], name.strip(), role, kind)
        secret = secrets.token_urlsafe(24)
        more = {"origins": [_origin(origin) for origin in origins]} if kind == "application" else None
        with self.writing() as stored:
            stored.add_judge(judge, hash_secret(secret), more)
        return judge, secret

    def invite_again(self, judge: str) -> str:
        """Invalidate a judge's invitation and sessions; return the secret of a new invitation."""
        secret = secrets.token_urlsafe(24)
        with self.writing() as stored:
            stored.add_judge(replace(self._known_judge(stored, judge), revoked=False), hash_secret(secret))
            stored.end_sessions(judge=judge)
        return secret

    def change_role(self, judge: str, role: str) -> None:
        """Change the role of a judge."""
        role = one_of("role", role, ROLES)
        with self.writing() as stored:
            stored.add_judge(replace(self._known_judge(stored, judge), role=role))

    @property
    def judges(self) -> Mapping[str, Judge]:
        """The judges by identifier."""
        with self._current() as (_, state):
            return dict(state.judges)

    def revoke(self, judge: str) -> None:
        """Revoke the access of a judge; past choices are kept."""
        with self.writing() as stored:
            stored.add_judge(replace(self._known_judge(stored, judge), revoked=True))
            stored.end_sessions(judge=judge)

    def _known_judge(self, stored: Transaction, judge: str) -> Judge:
        known = stored.judges().get(judge)
        if known is None:
            raise InputError(
                f"there is no judge {judge!r:.60}",
                where=self.where,
                fix=f"list the judges: rankgauge judge status{self.flag}",
            )
        return known

    # ---- tasks

    def next_task(self, judge: str, *, votes: bool = False, now: datetime | None = None) -> Task | None:
        """Return the judge's open task, or reserve the next task, or return None if none is left.

        With `votes`, the task is a vote on two answers: its documents are their texts, without
        systems and sources.

        The same task is returned until a choice is recorded or the lease ends. Concurrent calls are
        safe: tasks are reserved in a write transaction, so that no set of documents is assigned to
        more people than the settings allow.

        Raises:
            InputError: If the judge is unknown or revoked.
        """
        now = now or datetime.now(UTC)
        with self._current() as (stored, state):
            shown = state.open_task(judge, now, votes=votes)
            if shown is not None:
                return _task_of(stored, state, shown)
        with self._current(write=True) as (stored, state):
            if judge not in state.judges or state.judges[judge].revoked:
                raise InputError(
                    f"there is no judge {judge!r:.60}, or the access has ended",
                    where=self.where,
                    fix=f"invite this judge: rankgauge judge invite NAME{self.flag}",
                )
            shown = (
                state.open_task(judge, now, votes=votes)
                or (next_vote if votes else next_presentation)(state, judge, now)
                or state.postponed_task(judge, votes=votes)
            )
            if shown is None:
                return None
            if not shown.sequence:
                shown = stored.append_presentation(shown)
            return _task_of(stored, state, shown)

    def task(self, presentation: str, judge: str) -> Task:
        """Return an existing task of a judge, finished or not.

        Raises:
            InputError: If this judge has no such task.
        """
        with self._current() as (stored, state):
            return _task_of(stored, state, self._own(state, presentation, judge))

    def record(self, choice: Choice) -> bool:
        """Store a choice and return whether it is new.

        The outcome ``undone`` reopens a task, such as the last one of a judge (`Progress.last`).

        A choice that is sent twice is stored once. A choice with a stored identifier but other
        values, sent after going back in the browser, is stored with a new identifier. A choice that
        arrives after the end of the lease is also stored.

        Raises:
            InputError: If the task is unknown or belongs to another judge, or the choice is
                invalid.
        """
        with self._current(write=True) as (stored, state):
            shown = self._own(state, choice.presentation, choice.judge)
            # Stored choices are not validated again: the settings may have changed since.
            known = stored.choice(choice.id)
            if known is not None:
                if (known.presentation, known.judge) != (choice.presentation, choice.judge):
                    raise InputError(
                        f"choice {choice.id!r:.60} belongs to another task",
                        where=self.where,
                        fix="give each choice a unique identifier: a UUID",
                    )
                name = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{choice.id} {choice.values!r}"))
                if choice.values == known.values or stored.choice(name) is not None:
                    return False
                choice = replace(choice, id=name)
            choice.check(shown, state.settings)
            stored.append_choice(choice)
            return True

    def grade(self, judge: str, question: str, document: str, grade: int | None) -> None:
        """Store a grade that a person gave a document in sight of systems and ranks.

        The latest such grade of a person counts: see `DocumentRelevance.in_sight`. A grade that is sent
        twice in succession is stored once.

        Args:
            judge: The identifier of the judge.
            question: The identifier of the question.
            document: The identifier of the document.
            grade: The grade; None undoes the earlier grade.

        Raises:
            InputError: If the project has no such grade.
        """
        with self._current(write=True) as (stored, state):
            shown = next(
                (
                    presentation
                    for presentation in state.by_question.get(question, ())
                    if (presentation.purpose, presentation.judge, presentation.documents)
                    == ("comparison", judge, (document,))
                ),
                None,
            )
            if shown is None and grade is None:
                return
            now = datetime.now(UTC)
            new = shown is None
            shown = shown or replace(
                state.present(judge, question, (document,), purpose="comparison", now=now), mode="graded", expires=""
            )
            said = Choice(str(uuid.uuid4()), shown.id, judge, "undone")
            if grade is not None:
                said = replace(said, outcome="graded", grades=(grade,))
            said.check(shown, state.settings)
            latest = state.latest.get(shown.id)
            if latest is None or latest.values != said.values:
                if new:
                    stored.append_presentation(shown)
                stored.append_choice(said)

    def progress(self, judge: str, *, votes: bool = False) -> Progress:
        """Return the progress of a judge and of the project; with `votes`, of votes on answers."""
        now = datetime.now(UTC)
        with self._current() as (_, state):
            own = state.done[judge, votes]
            last = next(reversed(own), None)
            if votes:
                answers = [answer for answer in state.answers.values() if answer.question in state.questions]
                seen = {state.presentations[presentation].items for presentation in own}
                left = sum(pair not in seen for pair in pairs_of(answers))
                return Progress(
                    own=len(own),
                    finished=len(own),
                    left=left,
                    available=left,
                    seconds=None,
                    questions=len({answer.question for answer in answers}),
                    complete=0,
                    last=last,
                )
            times = sorted(
                seconds
                for presentation in islice(reversed(own), 50)
                if (seconds := state.latest[presentation].seconds) is not None
            )
            known = [state.known(question, now) for question in state.pools]
            people = [
                name
                for name, each in state.judges.items()
                if each.kind == "person"
                and each.role != "reader"
                and not each.revoked
                # Raters in imported files cannot judge here.
                and {shown.purpose for shown in state.by_judge.get(name, ())} != {"import"}
            ]
            available = state.available([judge] if judge else people or [""], now)
            return Progress(
                own=len(own),
                finished=sum(len(question.state.judgments) for question in known),
                # Shared sets are finished even if their question is resolved.
                left=max(available, sum(question.left for question in known)),
                available=available,
                seconds=times[len(times) // 2] if times else None,
                questions=len(state.questions),
                complete=sum(not question.left for question in known),
                last=last,
            )

    @property
    def position(self) -> tuple[int, int]:
        """The numbers of presentations and choices, which change with each new event."""
        with self._current() as (_, state):
            return state.presented, state.chosen

    def judgments(self) -> list[Judgment]:
        """Return all judgments, in the order of presentation."""
        with self._current() as (_, state):
            return state.judgments(state.presentations.values(), datetime.now(UTC))

    def question_progress(self) -> list[QuestionProgress]:
        """Return the progress of each question, in the order the questions were added."""
        now = datetime.now(UTC)
        with self._current() as (_, state):
            progress = []
            for name, question in state.questions.items():
                known = state.known(name, now)
                pool = state.pools.get(name, ())
                judged = len(known.state.judgments)
                progress.append(QuestionProgress(question, len(pool), judged, known.left, known.split))
            return progress

    def adjudicate(self, question: str, documents: Iterable[str], judge: str) -> Task:
        """Return the task for a lead's final verdict on a set of documents.

        Raises:
            InputError: If this set has no judgments.
        """
        items = frozenset(documents)
        with self._current(write=True) as (stored, state):
            same = [presentation for presentation in state.by_question.get(question, ()) if presentation.items == items]
            if not any(state.finished(presentation) for presentation in same):
                raise InputError(
                    f"question {question!r:.60}: nobody has judged these {len(items)} documents",
                    where=self.where,
                    fix="choose one of the disagreements that are listed",
                )
            shown = next(
                (
                    presentation
                    for presentation in same
                    if (presentation.purpose, presentation.judge) == ("adjudication", judge)
                ),
                None,
            )
            if shown is None:
                shown = stored.append_presentation(
                    replace(
                        same[0],
                        id=str(uuid.uuid4()),
                        judge=judge,
                        purpose="adjudication",
                        guideline=state.guideline,
                        time="",
                        expires="",
                        sequence=0,
                    )
                )
            return _task_of(stored, state, shown)

    def _own(self, state: ProjectState, presentation: str, judge: str) -> Presentation:
        shown = state.presentations.get(presentation)
        if shown is None or shown.judge != judge:
            raise InputError(
                f"there is no task {presentation!r:.60} of this judge",
                where=self.where,
                fix="ask for the next task; earlier judgments are kept",
            )
        return shown


def _origin(text: str) -> str:
    """Return an origin as a browser sends it: scheme, host, and port."""
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/"):
        raise InputError(
            f"{text!r:.80} is not an origin", where="origins", fix="use scheme and host: https://shop.example"
        )
    usual = {"http": 80, "https": 443}[parts.scheme]
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + ("" if port in {None, usual} else f":{port}")


def hash_secret(secret: str) -> str:
    """Return the SHA-256 of a random secret in hexadecimal, the form in which it is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _task_of(stored: Transaction, state: ProjectState, shown: Presentation) -> Task:
    if shown.mode == "answers":
        texts = {name: Document(name, {"answer": state.answers[name].text}) for name in shown.documents}
    else:
        texts = stored.documents(shown.documents)
    version = stored.version("guideline", shown.guideline)
    return Task(
        shown,
        state.questions.get(shown.question) or Question(shown.question, shown.question),
        tuple(texts.get(name) or Document(name) for name in shown.documents),
        state.settings,
        version[1] if version else "",
        state.latest.get(shown.id),
    )

"""`project_status`: progress of a judging project, and the next step."""

from __future__ import annotations

import shlex
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rankgauge.core.recommendations import next_step
from rankgauge.core.text import many
from rankgauge.judging.events import Judgment
from rankgauge.judging.pools import pool_warning
from rankgauge.judging.project import JudgingProject
from rankgauge.judging.questions import advice
from rankgauge.rendering import Result, Table

_JUDGES = 4  # judges in a short table


@dataclass(frozen=True, slots=True)
class JudgeStatus:
    """Work of one judge.

    Attributes:
        id: The identifier.
        name: The name.
        role: ``judge``, ``lead``, or ``admin``.
        kind: ``person``, ``model``, or ``application``.
        revoked: Whether the judge's access was revoked.
        finished: The number of tasks with a choice, including "can't tell".
        seconds: Median seconds per task, or None if unknown.
    """

    id: str
    name: str
    role: str
    kind: str
    revoked: bool
    finished: int
    seconds: float | None


@dataclass(frozen=True)
class ProjectStatus(Result):
    """Status of a judging project.

    Attributes:
        where: Path or URL of the project.
        title: The name of the project.
        mode: The judging mode.
        guideline: The latest version of the guideline.
        questions: The number of questions.
        pooled: The number of questions with candidates.
        candidates: The number of pairs of question and candidate document.
        judged: The number of finished tasks that count.
        left: Largest number of remaining tasks; questions may be resolved earlier.
        complete: The number of questions with candidates that are resolved or have used up their
            budget.
        statuses: The number of presentations by the status of their judgment.
        seconds: Median seconds per task of people, or None if unknown.
        judges: The work of each judge.
        next_step: The next step.
        warning: Warning if a language model chose some of the documents, else empty.
    """

    _attributes = "*"

    where: str
    title: str
    mode: str
    guideline: int
    questions: int
    pooled: int
    candidates: int
    judged: int
    left: int
    complete: int
    statuses: dict[str, int]
    seconds: float | None
    judges: tuple[JudgeStatus, ...]
    next_step: str
    warning: str = ""

    def table(self, *, full: bool = False) -> Table:
        """Return one row for each part of the project and for the judges with the most tasks.

        Args:
            full: Whether to list all judges.
        """
        time = _duration(self.left * self.seconds) if self.seconds and self.left else ""
        rows = [
            ("questions", self.questions, ""),
            ("with candidates", self.pooled, many(self.candidates, "pair") + " to judge"),
            ("complete", self.complete, ""),
            ("tasks judged", self.judged, ""),
            ("tasks left", self.left, f"at most{time}" if self.left else ""),
        ]
        judges = self.judges
        if not full and len(judges) > _JUDGES:
            judges = tuple(sorted(judges, key=lambda each: -each.finished)[:_JUDGES])
        rows += [(f"{each.kind} {each.name}", each.finished, ", ".join(_described(each))) for each in judges]
        return Table(
            ("what", "number", "detail"),
            tuple(rows),
            title=self._heading(),
            subtitle=f"{self.title} ({self.mode}): {self.where}",
            notes=tuple(self._notes(len(judges))),
            shortened=frozenset() if full else frozenset({0}),
        )

    def summary(self) -> str:
        """Return the progress and the recommended next step."""
        return f"{self.title}: {self._heading()}. Next: {self.next_step}"

    def _heading(self) -> str:
        return (
            f"{many(self.judged, 'task')} judged, {self.left} left; "
            f"{self.complete} of {many(self.questions, 'question')} complete"
        )

    def _notes(self, judges: int) -> Iterator[str]:
        if judges < len(self.judges):
            yield f"{judges} of {len(self.judges)} judges, by tasks; --full lists all"
        other = ", ".join(
            f"{status} ({number})" for status, number in self.statuses.items() if status != "counted" and number
        )
        if other:
            yield f"not counted: {other}"
        if advice(self.questions):
            yield f"{many(self.questions, 'question')}: {advice(self.questions)}"
        if self.warning:
            yield self.warning
        yield f"next step: {self.next_step}"


def project_status(project: JudgingProject) -> ProjectStatus:
    """Return the status of a project.

    Example:
        >>> import tempfile
        >>> from rankgauge.judging import Question
        >>> project = JudgingProject.create(tempfile.mkdtemp() + "/judging.db")
        >>> project.add_questions([Question("q1", "How are ties broken?")])
        >>> project_status(project).questions
        1
    """
    judgments = project.judgments()
    judges = project.judges
    done: dict[str, list[Judgment]] = {name: [] for name in judges}
    for each in judgments:
        if each.status not in {"open", "expired"} and each.presentation.judge in done:
            done[each.presentation.judge].append(each)
    people = [each for name, finished in done.items() if judges[name].kind == "person" for each in finished]
    pools, questions, progress = project.pools, project.questions, project.progress("")
    guideline, _ = project.guideline()
    settings = project.settings
    pairs = sum(map(len, pools.values()))
    with project.reading() as stored:
        candidates = stored.candidates()
    return ProjectStatus(
        where=project.where,
        title=settings.title,
        mode=settings.mode,
        guideline=guideline,
        questions=len(questions),
        pooled=len(pools),
        candidates=pairs,
        judged=progress.finished,
        left=progress.left,
        complete=progress.complete,
        statuses=dict(Counter(each.status for each in judgments)),
        seconds=_median(people),
        judges=tuple(
            JudgeStatus(
                judge.id, judge.name, judge.role, judge.kind, judge.revoked, len(done[name]), _median(done[name])
            )
            for name, judge in judges.items()
        ),
        warning=pool_warning(source.kind for each in candidates for source in each.sources),
        next_step=_next_step(project.where, len(questions), len(pools), progress.left),
    )


def _next_step(where: str, questions: int, pooled: int, left: int) -> str:
    where = shlex.quote(where)
    if not questions:
        return next_step("judge: no questions", project=where)
    if pooled < questions:
        missing = many(questions - pooled, "question") if pooled else "the questions"
        return next_step("judge: no candidates", project=where, questions=missing)
    return next_step("judge: tasks left" if left else "judge: done", project=where)


def _median(judgments: Sequence[Judgment]) -> float | None:
    known = [each.choice.seconds for each in judgments if each.choice is not None and each.choice.seconds is not None]
    return statistics.median(known) if known else None


def _described(judge: JudgeStatus) -> list[str]:
    parts = [judge.role] if judge.kind == "person" else []
    if judge.seconds is not None:
        parts.append(f"{judge.seconds:.1f} s a task")
    return [*parts, *(["access ended"] if judge.revoked else [])]


def _duration(seconds: float) -> str:
    return f", about {seconds / 3600:.1f} h" if seconds >= 3600 else f", about {seconds / 60:.0f} min"

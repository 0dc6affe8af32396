"""Progress of a judging project with the next step, and the numbers of questions and judgments needed."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

from rankgauge.comparison.differences import paired_differences
from rankgauge.core.arguments import integer, number
from rankgauge.core.project_names import find_project_file
from rankgauge.core.recommendations import next_step
from rankgauge.core.text import keep, many
from rankgauge.errors import InputError
from rankgauge.evaluation.result import Evaluation
from rankgauge.judging.events import Judgment, Settings
from rankgauge.judging.pools import pool_warning
from rankgauge.judging.project import JudgingProject, Progress
from rankgauge.judging.questions import advice
from rankgauge.rendering import Result, Table
from rankgauge.rendering.tables import first_rows
from rankgauge.stats import detectable_difference, moments, planning_sd, queries_needed, units_needed

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
class JudgingStatus(Result):
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
        blocked: The number of these tasks that need more people: nobody judges the same documents twice.
        complete: The number of questions with candidates that are resolved or have used up their
            budget.
        split: The number of questions on whose documents judges are split (:func:`split_documents`).
        statuses: The number of presentations by the status of their judgment.
        seconds: Median seconds per task of people, or None if unknown.
        judges: The work of each judge.
        next_step: The next step.
        workload: The number of tasks for a question, and its reason.
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
    blocked: int
    complete: int
    split: int
    statuses: dict[str, int]
    seconds: float | None
    judges: tuple[JudgeStatus, ...]
    next_step: str
    workload: str
    warning: str = ""

    def table(self) -> Table:
        """Return one row for each part of the project and each judge; most judges are details."""
        # Sets that several people share can exceed the largest number.
        limit = "about" if sum(judge.kind == "person" and not judge.revoked for judge in self.judges) > 1 else "at most"
        hours = self.left * (self.seconds or 0) / 3600
        limit += (f" {hours:.1f} h" if hours >= 1 else f" {60 * hours:.0f} min") if self.seconds else ""
        rows = (
            ("questions", self.questions, ""),
            ("with candidates", self.pooled, many(self.candidates, "pair") + " to judge"),
            ("complete", self.complete, ""),
            ("tasks judged", self.judged, ""),
            (
                "tasks left",
                self.left,
                "; ".join(keep(self.left and limit, self.blocked and f"{self.blocked:,} need more people")),
            ),
        )
        judges = sorted(self.judges, key=lambda judge: -judge.finished) if len(self.judges) > _JUDGES else self.judges
        listed = ((f"{judge.kind} {judge.name}", judge.finished, ", ".join(_described(judge))) for judge in judges)
        other = [f"{name} ({number})" for name, number in self.statuses.items() if name != "counted" and number]
        return Table(
            ("what", "number", "detail"),
            (*rows, *first_rows(listed, _JUDGES)),
            title=self._heading(),
            subtitle=f"{self.title} ({self.mode}): {self.where}",
            notes=keep(
                self.left and self.workload,
                self.split and f"{many(self.split, 'question')} with a split document: rankgauge judge relevance",
                other and f"not counted: {', '.join(other)}",
                advice(self.questions) and f"{many(self.questions, 'question')}: {advice(self.questions)}",
                self.warning,
                f"next step: {self.next_step}",
            ),
            abridged=frozenset({0}),
            unit="judge",
        )

    def summary(self) -> str:
        """Return the progress and the recommended next step."""
        return f"{self.title}: {self._heading()}. Next: {self.next_step}"

    def _heading(self) -> str:
        return (
            f"{many(self.judged, 'task')} judged, {self.left} left; "
            f"{self.complete} of {many(self.questions, 'question')} complete"
        )


def judging_status(project: JudgingProject) -> JudgingStatus:
    """Return the status of a project.

    Example:
        >>> import tempfile
        >>> from rankgauge.judging import Question
        >>> project = JudgingProject.create(tempfile.mkdtemp() + "/judging.db")
        >>> project.add_questions([Question("q1", "How are ties broken?")])
        >>> judging_status(project).questions
        1
    """
    judgments = project.judgments()
    judges = project.judges
    done: dict[str, list[Judgment]] = {name: [] for name in judges}
    for judgment in judgments:
        if judgment.status not in {"open", "expired"} and judgment.presentation.judge in done:
            done[judgment.presentation.judge].append(judgment)
    people = [judgment for name, finished in done.items() if judges[name].kind == "person" for judgment in finished]
    pools, questions, progress = project.pools, project.questions, project.progress("")
    guideline, _ = project.guideline()
    settings = project.settings
    with project.reading() as stored:
        candidates = stored.candidates()
    return JudgingStatus(
        where=project.where,
        title=settings.title,
        mode=settings.mode,
        guideline=guideline,
        questions=len(questions),
        pooled=len(pools),
        candidates=sum(map(len, pools.values())),
        judged=progress.finished,
        left=progress.left,
        blocked=progress.left - progress.available,
        complete=progress.complete,
        split=sum(bool(question.split) for question in project.question_progress()),
        statuses=dict(Counter(judgment.status for judgment in judgments)),
        seconds=_median(people),
        judges=tuple(
            JudgeStatus(
                judge.id, judge.name, judge.role, judge.kind, judge.revoked, len(done[name]), _median(done[name])
            )
            for name, judge in judges.items()
        ),
        warning=pool_warning(source.kind for candidate in candidates for source in candidate.sources),
        next_step=_next_step(project.flag, len(questions), len(pools), progress),
        workload=settings.workload,
    )


def _next_step(flag: str, questions: int, pooled: int, progress: Progress) -> str:
    if not questions:
        return next_step("judge: no questions", flag=flag)
    if pooled < questions:
        missing = many(questions - pooled, "question") if pooled else "the questions"
        sources = " --collection FOLDER --run RUN" if find_project_file() is None else ""
        return next_step("judge: no candidates", flag=flag, questions=missing, sources=sources)
    if progress.available:
        return next_step("judge: tasks left", flag=flag)
    return next_step("judge: more people" if progress.left else "judge: done", flag=flag)


def _median(judgments: Sequence[Judgment]) -> float | None:
    known = [
        judgment.choice.seconds
        for judgment in judgments
        if judgment.choice is not None and judgment.choice.seconds is not None
    ]
    return statistics.median(known) if known else None


def _described(judge: JudgeStatus) -> list[str]:
    parts = [judge.role] if judge.kind == "person" else []
    if judge.seconds is not None:
        parts.append(f"{judge.seconds:.1f} s a task")
    return [*parts, *(["access ended"] if judge.revoked else [])]


# Agreement expected between judges: docs/explain/judging-simulations.md.
_ALPHA, _NONE = 0.5, 0.4
_USUAL = (20, 100)  # questions for a first evaluation, and the usual target


@dataclass(frozen=True)
class JudgingPlan(Result):
    """Numbers of questions and judgments needed to compare systems.

    Returned by :func:`plan_judging`.

    Attributes:
        difference: The difference of means to detect.
        sd: Standard deviation over questions of the difference between two systems.
        power: The probability of detecting the difference.
        alpha: Significance level of the test.
        questions: The number of questions needed.
        documents: Candidates per question.
        tasks: Largest number of tasks per question; questions may be resolved with fewer.
        judgments: Tasks of all questions and people, including repeats.
        overlap: Number of document sets that several people will judge under the settings.
        overlap_needed: Number of document sets that two people must judge to reach `agreement`.
        agreement: Half-width of the 95% interval of Krippendorff's alpha.
        hours: Hours of work, from the seconds per task.
    """

    _attributes = "*"

    difference: float
    sd: float
    power: float
    alpha: float
    questions: int
    documents: int
    tasks: int
    judgments: int
    overlap: int
    overlap_needed: int
    agreement: float
    hours: float

    def table(self) -> Table:
        """Return the numbers needed with their reasons, and detectable differences for usual numbers of questions."""
        usual = [(number, detectable_difference(self.sd, number, self.power, self.alpha)) for number in _USUAL]
        return Table(
            columns=("needed", "number", "because"),
            rows=(
                (
                    "questions",
                    f"{self.questions:,}",
                    f"difference {self.difference:g}, power {self.power:.0%}, sd {self.sd:.3g}",
                ),
                (
                    "tasks for a question",
                    f"{self.tasks:,}",
                    f"{many(self.documents, 'candidate')}; fewer if resolved earlier",
                ),
                ("judgments", f"{self.judgments:,}", "of all questions and people, with repeats"),
                (
                    "sets judged by several",
                    f"{self.overlap_needed:,}",
                    f"alpha ± {self.agreement:g}; the settings give {self.overlap:,}",
                ),
                ("hours", f"{self.hours:,.0f}", "of all people together, at most"),
            ),
            title=f"{many(self.questions, 'question')} and {self.judgments:,} judgments detect a "
            f"difference of {self.difference:g} with {self.power:.0%} power",
            notes=keep(
                self.overlap < self.overlap_needed
                and f"too few sets are judged by several people ({self.overlap:,}): raise `overlap`",
                *(
                    f"with {questions} questions, differences of {difference:.3f} or more are detectable "
                    f"with {self.power:.0%} power"
                    for questions, difference in usual
                ),
            ),
        )

    def data_table(self) -> Table:
        """Return one row of plain values."""
        values = asdict(self)
        return Table(columns=tuple(values), rows=(tuple(values.values()),))


def plan_judging(
    difference: float,
    *,
    sd: float | None = None,
    evaluations: Sequence[Evaluation] = (),
    documents: int = 10,
    settings: Settings | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    agreement: float = 0.1,
    seconds: float = 30.0,
) -> JudgingPlan:
    """Compute the numbers of questions and judgments needed to compare systems.

    The number of questions is that needed by a paired t test to detect the difference
    (``rankgauge.stats.queries_needed``). The number of judgments is questions x candidates x views
    / shown, plus repeats. The overlap is that of ``rankgauge.stats.units_needed`` for an alpha of
    0.5 if "none" is chosen in 40% of the tasks.

    Args:
        difference: The difference of means to detect, such as 0.05 of nDCG@10.
        sd: Standard deviation over questions of the difference; if None, the largest of any pair of
            the evaluations, by their first measure, with the allowance of
            ``rankgauge.stats.planning_sd`` for their number of queries.
        evaluations: Evaluations of different runs on the same queries, at least seven.
        documents: Candidates of each question.
        settings: The settings of the project; if None, the defaults.
        power: The probability of detecting the difference.
        alpha: Significance level of the test.
        agreement: Desired half-width of the 95% interval of Krippendorff's alpha.
        seconds: Seconds per task.

    Raises:
        InputError: If neither `sd` nor two evaluations of the same queries are given.

    Example:
        >>> plan = plan_judging(0.05, sd=0.2)
        >>> plan.questions, plan.tasks, plan.judgments, plan.overlap_needed
        (128, 20, 2695, 169)
    """
    settings = settings or Settings()
    integer("documents", documents)
    number("seconds", seconds)
    spread = _largest_sd(evaluations) if sd is None else sd
    questions = queries_needed(spread, difference, power, alpha)
    tasks = settings.tasks(documents)
    counted = questions * tasks
    shown = settings.shown or 1
    answers = [_NONE, *[(1 - _NONE) / shown] * shown]
    if settings.mode == "graded":
        answers = [1.0] * len(settings.grades)
    judgments = round(counted / (1 - settings.repeats))
    more = settings.judges - 1
    return JudgingPlan(
        difference=difference,
        sd=spread,
        power=power,
        alpha=alpha,
        questions=questions,
        documents=documents,
        tasks=tasks,
        judgments=judgments,
        # Each overlap set takes one task from each of its judges.
        overlap=round(counted * settings.overlap / (1 + more * settings.overlap)) if more else 0,
        overlap_needed=units_needed(agreement, answers, _ALPHA),
        agreement=agreement,
        hours=judgments * seconds / 3600,
    )


def _largest_sd(evaluations: Sequence[Evaluation]) -> float:
    """Return the largest standard deviation of differences between two runs, first measure."""
    largest = math.inf
    if len(evaluations) >= 2 and len({evaluation.query_ids for evaluation in evaluations}) == 1:
        measure = evaluations[0].measures[0]
        differences = [paired_differences(first, second, measure) for first, second in combinations(evaluations, 2)]
        largest = max(
            planning_sd(moments(values)[1], len(values)) if len(values) > 1 else math.inf for values in differences
        )
    if math.isinf(largest):
        raise InputError(
            "the standard deviation of the differences is unknown",
            where="plan_judging",
            fix="pass sd=0.2, for example, or evaluations of two or more runs on the same seven or more queries",
        )
    return largest

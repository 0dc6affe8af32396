"""Planning: the numbers of questions and judgments needed to compare systems."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

from rankgauge.comparison.differences import paired_differences
from rankgauge.core.arguments import integer, number
from rankgauge.core.text import many
from rankgauge.errors import InputError
from rankgauge.evaluation.result import Evaluation
from rankgauge.judging.events import Settings
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table
from rankgauge.stats import detectable_difference, moments, planning_sd, queries_needed, units_needed

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
        """Return one row for each number."""
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
            title=self.summary(),
            notes=tuple(self._notes()),
        )

    def data_table(self) -> Table:
        """Return one row of plain values."""
        values = asdict(self)
        return Table(columns=tuple(values), rows=(tuple(values.values()),))

    def summary(self) -> str:
        """Return the numbers of questions and judgments as one sentence."""
        return (
            f"{many(self.questions, 'question')} and {self.judgments:,} judgments detect a "
            f"difference of {self.difference:g} with {self.power:.0%} power"
        )

    def _notes(self) -> Iterator[str]:
        if self.overlap < self.overlap_needed:
            yield f"too few sets are judged by several people ({self.overlap:,}): raise `overlap`"
        for questions in _USUAL:
            found = detectable_difference(self.sd, questions, self.power, self.alpha)
            yield (
                f"with {questions} questions, differences of {found:.3f} or more are detectable "
                f"with {self.power:.0%} power"
            )


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
    found = math.inf
    if len(evaluations) >= 2 and len({each.query_ids for each in evaluations}) == 1:
        measure = evaluations[0].measures[0]
        pairs = combinations(evaluations, 2)
        moved = [paired_differences(one, other, measure) for one, other in pairs]
        found = max(planning_sd(moments(each)[1], len(each)) if len(each) > 1 else math.inf for each in moved)
    if math.isinf(found):
        raise InputError(
            "the standard deviation of the differences is unknown",
            where="plan_judging",
            fix="pass sd=0.2, for example, or evaluations of two or more runs on the same seven or more queries",
        )
    return found

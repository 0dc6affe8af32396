"""Agreement between judges, within judges, and between models and people."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from rankgauge.core.text import Ratio, keep, many, span
from rankgauge.errors import InputError
from rankgauge.judging.events import GoldTask, Judge, Judgment
from rankgauge.rendering import Result, Table
from rankgauge.rendering.tables import Detail
from rankgauge.stats import Agreement, bootstrap_interval, cohen_kappa, krippendorff_alpha, percent_agreement


@dataclass(frozen=True, slots=True)
class DisputedSet:
    """A set of documents that people judged differently.

    Attributes:
        question: The identifier of the question.
        documents: The documents, in alphabetical order.
        judgments: The judgments of people, in the order of presentation.
        verdict: The final verdict, or None if there is none yet.
    """

    question: str
    documents: tuple[str, ...]
    judgments: tuple[Judgment, ...]
    verdict: Judgment | None


def disputed_sets(judgments: Iterable[Judgment], judges: Mapping[str, Judge]) -> list[DisputedSet]:
    """Return the sets of documents on which people disagree, sets without a verdict first.

    People disagree if they chose different documents (in a ranking: ranked different documents
    first), if only some of them chose "none", or if they gave different grades. "Can't tell",
    repeats, hidden tests, and models are not compared.

    Args:
        judgments: All judgments of a project.
        judges: The judges by identifier.
    """
    people: dict[tuple[str, frozenset[str]], list[Judgment]] = defaultdict(list)
    verdicts: dict[tuple[str, frozenset[str]], Judgment] = {}
    for judgment in judgments:
        shown, key = judgment.presentation, (judgment.presentation.question, judgment.presentation.items)
        judge = judges.get(shown.judge)
        if judgment.choice is None or (judge is not None and judge.kind != "person"):
            continue
        if shown.purpose == "adjudication":
            if judgment.status in {"counted", "cannot tell"}:
                verdicts[key] = judgment
        elif judgment.status in {"counted", "adjudicated"} and judgment.choice.outcome != "cannot tell":
            people[key].append(judgment)
    disputed = [
        DisputedSet(question, tuple(sorted(items)), tuple(own), verdicts.get((question, items)))
        for (question, items), own in people.items()
        # People agree if outcome, first document, and grades are equal.
        if len({(c.outcome, c.documents[:1], c.grades) for judgment in own if (c := judgment.choice)}) > 1
    ]
    return sorted(disputed, key=lambda disputed_set: disputed_set.verdict is not None)


_NONE = -1.0  # code of "none"; documents have the codes 0, 1, ...
_FEW = 100  # with fewer tasks judged by two people, the interval of alpha is wide
_LEVEL, _DRAWS = 0.95, 1000
_MODELS, _LOWEST = 4, 3  # rows in a short table: models, and judges with the lowest agreement
_PAIR = 2  # smallest number of tasks in common for a kappa of two judges

_Task: TypeAlias = tuple[str, frozenset[str]]
_Answers: TypeAlias = Mapping[_Task, Mapping[str, Judgment]]
_Coefficient: TypeAlias = tuple[str, str, str, Agreement]
_Table: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class AgreementRow:
    """One coefficient of agreement.

    Attributes:
        measure: ``alpha``, ``percent agreement``, ``alpha, none or any``, ``alpha, which document``
            (tasks for which every judge chose a document), ``kappa, quadratic``, or ``accepted
            answers`` (share of the hidden tests).
        group: The judges compared: ``people``, ``judge`` (one judge with the others), ``criterion``
            (tasks decided by a criterion), ``repeats`` (the same person twice), ``model`` (with
            people), or ``pair``.
        name: Name of the judge, criterion, model, or pair; empty for ``people`` and ``repeats``.
        scale: ``choices`` or ``grades``.
        estimate: The coefficient with its bootstrap interval over tasks.
    """

    measure: str
    group: str
    name: str
    scale: str
    estimate: Agreement


@dataclass(frozen=True, eq=False)
class JudgingAgreement(Result):
    """Agreement of judges.

    Returned by :func:`measure_agreement`.

    Attributes:
        rows: The coefficients.
        disagreements: Sets that people judged differently (:func:`disputed_sets`).
        people: Number of people who judged.
        tasks: Number of tasks that two or more people judged.
    """

    rows: tuple[AgreementRow, ...]
    disagreements: tuple[DisputedSet, ...]
    people: int
    tasks: int

    _columns = (
        "rows measure group name scale value=estimate.value low=estimate.low high=estimate.high level=estimate.level "
        "units=estimate.units ratings=estimate.ratings reason=estimate.reason"
    )

    def estimate(
        self, measure: str = "alpha", group: str = "people", name: str = "", scale: str = "choices"
    ) -> Agreement:
        """Return one coefficient.

        Raises:
            InputError: If this coefficient was not computed.
        """
        for row in self.rows:
            if (row.measure, row.group, row.name, row.scale) == (measure, group, name, scale):
                return row.estimate
        raise InputError(
            f"there is no {measure!r} of {group} {name!r} for {scale}",
            where="agreement",
            fix="print the agreement to see its rows",
        )

    def table(self) -> Table:
        """Return one row for each coefficient, under the alpha of people.

        Coefficients of most judges, criteria, and pairs are details.
        """
        main = [row for row in self.rows if row.group in {"people", "repeats"}]
        main += [row for row in self.rows if row.group == "model"][:_MODELS]
        judges = [row for row in self.rows if row.group == "judge" and row.measure in {"alpha", "accepted answers"}]
        judges = [row for row in judges if row.estimate.defined]
        main += sorted(judges, key=lambda row: row.estimate.value)[:_LOWEST]
        of_people = (
            f"alpha of {row.scale} {Ratio(row.estimate.value):.2f}"
            + (f" ({interval})" if (interval := span(map(Ratio, (row.estimate.low, row.estimate.high)), ".2f")) else "")
            if row.estimate.defined
            else f"alpha of {row.scale} is undefined: {row.estimate.reason}"
            for row in self.rows
            if (row.measure, row.group) == ("alpha", "people")
        )
        tasks = f"{many(self.tasks, 'task')} by two or more of {self.people} people"
        unsettled = sum(disagreement.verdict is None for disagreement in self.disagreements)
        return Table(
            columns=("agreement", "of", "on", "tasks", "value", "95% CI", Detail("note")),
            rows=tuple(
                (
                    row.measure if row in main else Detail(row.measure),
                    f"{row.group} {row.name}".strip(),
                    row.scale,
                    row.estimate.units,
                    f"{Ratio(row.estimate.value):.2f}" if row.estimate.defined else None,
                    span(map(Ratio, (row.estimate.low, row.estimate.high)), ".2f"),
                    row.estimate.reason,
                )
                for row in self.rows
            ),
            title="; ".join([*of_people, tasks]),
            notes=keep(
                not self.rows and "nobody has judged documents yet",
                self.rows and self.tasks < _FEW and f"fewer than {_FEW} tasks by two people: intervals are wide",
                unsettled and f"{many(unsettled, 'disagreement')} without a final verdict (Disagreements page)",
            ),
            right=frozenset({4}),
            abridged=frozenset({1}),
            unit="coefficient",
        )

    def _data(self) -> dict[str, Any]:
        return {
            "people": self.people,
            "tasks": self.tasks,
            "rows": [asdict(row) for row in self.rows],
            "disagreements": [
                {
                    "question": disagreement.question,
                    "documents": disagreement.documents,
                    "judgments": [asdict(judgment.choice) for judgment in disagreement.judgments if judgment.choice],
                    "settled": disagreement.verdict is not None,
                }
                for disagreement in self.disagreements
            ],
        }


def measure_agreement(
    judgments: Sequence[Judgment],
    judges: Mapping[str, Judge],
    *,
    gold: Iterable[GoldTask] = (),
) -> JudgingAgreement:
    """Compute the agreement between judges on the tasks that several of them judged.

    A choice is coded as "none" or as the position of the chosen document in an order that depends
    only on the document identifiers. (With identifiers as codes, judges who guess would agree
    beyond chance.) Krippendorff's alpha is nominal for choices and ordinal for grades; for
    rankings, the documents ranked first are compared. Intervals are from a bootstrap over tasks.
    Answers that were adjudicated later count; the adjudications themselves do not. "Cannot tell" is
    a missing answer. For a single judge, alpha is 1 - observed / expected disagreement with the
    others on the tasks in common. Models are compared with people and excluded from all other
    coefficients.

    Args:
        judgments: All judgments of a project (:meth:`JudgingProject.judgments`).
        judges: By identifier.
        gold: Hidden tests with their accepted answers.

    Example:
        >>> from rankgauge.judging import Choice, Judgment, Presentation
        >>> rows = [("ann", "a"), ("bob", "a"), ("ann", "c"), ("bob", "d")]
        >>> judgments = [
        ...     Judgment(
        ...         Presentation(str(n), "q", ("a", "b") if n < 2 else ("c", "d"), judge),
        ...         Choice(str(n), str(n), judge, "chosen", (best,)),
        ...         "counted",
        ...     )
        ...     for n, (judge, best) in enumerate(rows)
        ... ]
        >>> agreement = measure_agreement(judgments, {"ann": Judge("ann", "Ann")})
        >>> agreement.estimate("percent agreement").value, len(agreement.disagreements)
        (0.5, 1)
    """
    people: dict[_Task, dict[str, Judgment]] = defaultdict(dict)
    models: dict[_Task, dict[str, Judgment]] = defaultdict(dict)
    repeats: dict[_Task, list[Judgment]] = defaultdict(list)
    accepted = {(gold_task.question, frozenset(gold_task.documents)): gold_task.accepted for gold_task in gold}
    tests: dict[str, list[float]] = defaultdict(list)
    for judgment in judgments:
        shown, choice = judgment.presentation, judgment.choice
        if choice is None or choice.outcome not in {"chosen", "none", "graded"}:
            continue
        task = (shown.question, shown.items)
        if judgment.status in {"counted", "adjudicated"} and shown.purpose != "adjudication":
            people[task].setdefault(shown.judge, judgment)
        elif judgment.status == "model":
            models[task].setdefault(shown.judge, judgment)
        elif judgment.status == "repeat":
            repeats[task].append(judgment)
        elif judgment.status == "gold" and task in accepted and choice.outcome != "graded":
            best = choice.documents[:1]
            right = best[0] in accepted[task] if best else not accepted[task]
            tests[shown.judge].append(float(right))
    ids = {judge for answers in (*people.values(), *models.values()) for judge in answers} | tests.keys()
    # Several judges may share a name.
    count = Counter(judge.name for judge in judges.values())
    names = {judge: judge for judge in ids} | {
        name: judge.name if count[judge.name] == 1 else f"{judge.name} ({name})" for name, judge in judges.items()
    }
    rows: list[AgreementRow] = []
    for scale, graded in (("choices", False), ("grades", True)):
        coefficients = _Coefficients(scale, _of_scale(people, graded), names)
        rows += [
            AgreementRow(measure, group, name, scale, estimate)
            for measure, group, name, estimate in (
                *coefficients.of_people(),
                *coefficients.of_judges(),
                *coefficients.of_criteria(),
                *coefficients.of_repeats(repeats),
                *coefficients.of_models(_of_scale(models, graded)),
                *coefficients.of_pairs(),
            )
        ]
    rows += [
        AgreementRow("accepted answers", "judge", names[judge], "choices", _mean(right, len(right)))
        for judge, right in sorted(tests.items(), key=lambda item: names[item[0]])
    ]
    return JudgingAgreement(
        rows=tuple(rows),
        disagreements=tuple(disputed_sets(judgments, judges)),
        people=len({judge for answers in people.values() for judge in answers}),
        tasks=sum(len(answers) > 1 for answers in people.values()),
    )


@dataclass(frozen=True)
class _Coefficients:
    """Coefficients of one scale: measure, group, name, and estimate."""

    scale: str
    answers: _Answers
    names: Mapping[str, str]

    def of_people(self) -> Iterator[_Coefficient]:
        if not self.answers:
            return
        table = self._table(self.answers)
        yield "alpha", "people", "", self._alpha(table)
        yield "percent agreement", "people", "", percent_agreement(table)
        if self.scale == "choices":
            none = np.where(np.isnan(table), np.nan, table == _NONE)
            yield "alpha, none or any", "people", "", self._alpha(none)
            chosen = np.where(table == _NONE, np.nan, table)
            yield "alpha, which document", "people", "", self._alpha(chosen)

    def of_judges(self) -> Iterator[_Coefficient]:
        judges = _judges(self.answers, self.names)
        for judge in judges if len(judges) > 2 else ():
            with_judge = {t: dict(a) for t, a in self.answers.items() if judge in a}
            own = {task: {judge: answers.pop(judge)} for task, answers in with_judge.items()}
            yield from self._compared("judge", self.names[judge], own, with_judge)

    def of_models(self, answers: _Answers) -> Iterator[_Coefficient]:
        for model in _judges(answers, self.names):
            own = {task: {model: judgments[model]} for task, judgments in answers.items() if model in judgments}
            yield from self._compared("model", self.names[model], own, self.answers)

    def of_criteria(self) -> Iterator[_Coefficient]:
        decided: dict[str, dict[_Task, Mapping[str, Judgment]]] = defaultdict(dict)
        for task, answers in self.answers.items():
            for judgment in answers.values():
                if judgment.choice is not None and judgment.choice.reason and len(answers) > 1:
                    decided[judgment.choice.reason][task] = answers
        for reason, tasks in sorted(decided.items()):
            table = self._table(tasks)
            yield "alpha", "criterion", reason, self._alpha(table)
            yield "percent agreement", "criterion", reason, percent_agreement(table)

    def of_repeats(self, repeats: Mapping[_Task, Sequence[Judgment]]) -> Iterator[_Coefficient]:
        pairs = [
            (_code(self.answers[task][again.presentation.judge]), _code(again))
            for task, judgments in repeats.items()
            for again in judgments
            if again.presentation.judge in self.answers.get(task, {})
        ]
        if pairs:
            yield "alpha", "repeats", "", self._alpha(np.array(pairs))
            yield "percent agreement", "repeats", "", percent_agreement(np.array(pairs))

    def of_pairs(self) -> Iterator[_Coefficient]:
        pairs = combinations(_judges(self.answers, self.names), 2)
        for first, second in pairs if self.scale == "grades" else ():
            both = [a for a in self.answers.values() if first in a and second in a]
            if len(both) >= _PAIR:
                kappa = cohen_kappa(
                    [_code(judgments[first]) for judgments in both],
                    [_code(judgments[second]) for judgments in both],
                    "quadratic",
                )
                yield "kappa, quadratic", "pair", f"{self.names[first]} and {self.names[second]}", kappa

    def _compared(self, group: str, name: str, own: _Answers, others: _Answers) -> Iterator[_Coefficient]:
        """Yield the rows that compare a judge with others on the tasks in common."""
        shares, codes = [], []
        for task, mine in own.items():
            if others_codes := [_code(judgment) for judgment in others.get(task, {}).values()]:
                code = _code(*mine.values())
                shares.append(others_codes.count(code) / len(others_codes))
                codes += [code, *others_codes]
        percent = _mean(shares, len(codes))
        yield "percent agreement", group, name, percent
        if self.scale == "choices":
            yield "alpha", group, name, _chance_corrected(percent, codes)

    @staticmethod
    def _table(answers: _Answers) -> _Table:
        judges = sorted({judge for judgments in answers.values() for judge in judgments})
        column = {judge: at for at, judge in enumerate(judges)}
        table = np.full((len(answers), len(judges)), np.nan)
        for row, judgments in enumerate(answers.values()):
            for judge, judgment in judgments.items():
                table[row, column[judge]] = _code(judgment)
        return table

    def _alpha(self, table: _Table) -> Agreement:
        return krippendorff_alpha(table, "ordinal" if self.scale == "grades" else "nominal")


def _code(judgment: Judgment) -> float:
    """Return the grade, the position of the best document in hash order, or the code of "none"."""
    choice, documents = judgment.choice, judgment.presentation.documents
    if choice is None:
        return math.nan
    if choice.outcome == "graded":
        return float(choice.grades[0])
    if not choice.documents:
        return _NONE

    question = judgment.presentation.question
    hashed = sorted(documents, key=lambda name: hashlib.sha256(f"{question}\0{name}".encode()).digest())
    return float(hashed.index(choice.documents[0]))


def _of_scale(answers: _Answers, graded: bool) -> dict[_Task, dict[str, Judgment]]:  # noqa: FBT001
    """Return only the grades, or only the choices."""
    kept: dict[_Task, dict[str, Judgment]] = {}
    for task, judgments in answers.items():
        mine = {
            judge: judgment
            for judge, judgment in judgments.items()
            if judgment.choice is not None and (judgment.choice.outcome == "graded") == graded
        }
        if mine:
            kept[task] = mine
    return kept


def _judges(answers: _Answers, names: Mapping[str, str]) -> list[str]:
    return sorted({judge for judgments in answers.values() for judge in judgments}, key=names.__getitem__)


def _mean(shares: Sequence[float], answers: int) -> Agreement:
    """Return the mean of the shares with a bootstrap interval over tasks."""
    nan = math.nan
    if not shares:
        return Agreement(nan, nan, nan, _LEVEL, 0, 0, "no task in common")
    mean = math.fsum(shares) / len(shares)
    if len(shares) == 1:
        return Agreement(mean, nan, nan, _LEVEL, 1, answers, "one task: no interval")
    interval = bootstrap_interval(shares, _LEVEL, _DRAWS)
    return Agreement(mean, interval.low, interval.high, _LEVEL, len(shares), answers)


def _chance_corrected(percent: Agreement, codes: Sequence[float]) -> Agreement:
    """Return percent agreement corrected for chance: 1 - observed / expected disagreement."""
    if not percent.units:
        return percent
    total = len(codes)
    expected = 1 - sum(n * (n - 1) for n in Counter(codes).values()) / (total * (total - 1))
    if not expected:
        reason = "all answers are equal, so expected agreement is also perfect"
        return replace(percent, value=math.nan, low=math.nan, high=math.nan, reason=reason)
    value, low, high = (1 - (1 - share) / expected for share in (percent.value, percent.low, percent.high))
    return replace(percent, value=value, low=low, high=high)

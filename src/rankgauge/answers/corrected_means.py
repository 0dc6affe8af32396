"""`correct_means()`: means over answers corrected for the errors of the judge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgauge.answers.calibration import conversations_of, labels_of_people
from rankgauge.answers.evaluation import DEFAULT_MEASURES, AnswerEvaluation, evaluate_answers
from rankgauge.answers.scores import CORRECTABLE, unit_values
from rankgauge.answers.verdicts import AnswerSet, Verdict
from rankgauge.measures.measure import Measure
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Detail, Table, first_rows
from rankgauge.stats import Estimate, naive_rate, prediction_powered_mean, rogan_gladen

_LEVEL = 0.95
_SHOWN = 3  # rows of a short table
_VALID = (
    "valid if the questions with human labels are a random sample (prediction-powered), or if "
    "the judge errs as often on the others (Rogan-Gladen)"
)


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """Mean of a measure, corrected for the errors of the judge.

    Attributes:
        system: The system.
        measure: The measure.
        judged: The uncorrected mean, with an interval that assumes a perfect judge.
        prediction_powered: The mean corrected by labels of people on a random sample of the
            questions.
        rogan_gladen: The mean corrected by sensitivity and specificity, for measures that are a
            share.
        people: The mean over the questions with labels of people, computed from these labels only.
    """

    system: str
    measure: str
    judged: Estimate
    prediction_powered: Estimate
    rogan_gladen: Estimate
    people: Estimate

    @property
    def method(self) -> str:
        """The valid method that is usually most precise, or empty.

        Prediction-powered inference if questions of the system have labels, because its interval is
        then usually the narrowest; otherwise Rogan-Gladen.
        """
        if not math.isnan(self.prediction_powered.value):
            return "prediction-powered"
        return "" if math.isnan(self.rogan_gladen.value) else "Rogan-Gladen"

    @property
    def best(self) -> Estimate:
        """The estimate by `method`."""
        return self.rogan_gladen if self.method == "Rogan-Gladen" else self.prediction_powered


@dataclass(frozen=True, eq=False)
class CorrectedMeans(Result):
    """Means over answers corrected for the errors of the judge. Returned by :func:`correct_means`.

    Attributes:
        means: The means by system and measure.
    """

    means: tuple[CorrectedMean, ...]

    def table(self) -> Table:
        """Return one row for each system and measure; rows after the first are details."""
        several = len({mean.system for mean in self.means}) > 1
        rows = (
            (
                mean.system,
                mean.measure,
                mean.judged.value,
                mean.best.value,
                _interval(mean.best),
                mean.method or _reason(mean),
            )
            for mean in self.means
        )
        return Table(
            columns=("system" if several else Detail("system"), "measure", "judge", "corrected", "95% CI", "method"),
            rows=tuple(first_rows(rows, _SHOWN)),
            title="Means corrected for errors of the judge",
            digits=3,
            notes=(Detail(_VALID) if len(self.means) > _SHOWN else _VALID,),
            unit="mean",
        )

    def data_table(self) -> Table:
        """Return one row for each system, measure, and method."""
        methods = ("judged", "prediction_powered", "rogan_gladen", "people")
        estimates = ((mean, method, getattr(mean, method)) for mean in self.means for method in methods)
        return Table(
            ("system", "measure", "method", "value", "low", "high", "count", "reason"),
            tuple(
                (mean.system, mean.measure, method, e.value, e.low, e.high, e.count, e.reason)
                for mean, method, e in estimates
            ),
        )

    def summary(self) -> str:
        """Return the first corrected means as text."""
        return "; ".join(
            f"{mean.system} {mean.measure}: {mean.judged.value:.3f} by the judge, "
            + (
                f"corrected {mean.best.value:.3f} {_interval(mean.best)}"
                if mean.method
                else f"not corrected: {_reason(mean)}"
            )
            for mean in self.means[:2]
        )


def correct_means(
    answers: AnswerSet | Iterable[AnswerSet],
    judge: Iterable[Verdict],
    human: Iterable[Verdict],
    measures: Any = None,
) -> CorrectedMeans:
    """Correct the means of measures for the errors of the judge, with intervals.

    There are two methods; the result names the better one. *Prediction-powered inference* needs
    labels of people for a random sample of the questions, on all items of each question; it is
    unbiased whatever the errors of the judge. *Rogan-Gladen* uses the sensitivity and specificity
    on all units (claims, contexts, answers) of any system with labels of people; it assumes the
    same error rates on the other units, and is withheld unless the lower bound of sensitivity +
    specificity - 1 is at least 0.5. Questions of the same conversation are a cluster.

    Args:
        answers: The answers of one system or several.
        judge: Verdicts of one judge.
        human: Verdicts of people.
        measures: Names of measures of answers; if omitted, those of `DEFAULT_MEASURES` that can be
            corrected.

    Raises:
        InputError: If there are no answers.
        UnknownName: If a measure is unknown or a measure of rankings.
    """
    sets = (answers,) if isinstance(answers, AnswerSet) else tuple(answers)
    by_judge = {verdict.key: verdict.label for verdict in judge}
    by_people = labels_of_people(human)
    both = [
        [evaluate_answers(answer_set, labels, measures or DEFAULT_MEASURES) for labels in (by_judge, by_people)]
        for answer_set in sets
    ]
    conversations = conversations_of(sets)
    means = []
    for number, (judged, true) in enumerate(both):
        for column, measure in enumerate(judged.measures):
            values = judged.per_query[:, column]
            # Only questions in which people labeled every item count.
            known = [row[column].value if not row[column].missing else math.nan for row in true.scores]
            there = ~np.isnan(values)
            codes = {name: code for code, name in enumerate(dict.fromkeys(conversations.values()))}
            clusters = np.array([codes[conversations[q]] for q in judged.query_ids])[there]
            sample = (values[there], np.array(known)[there], clusters)
            means.append(
                CorrectedMean(
                    judged.run_name,
                    str(measure),
                    naive_rate(sample[0], clusters),
                    prediction_powered_mean(*sample),
                    _rogan_gladen(measure, both, number, conversations),
                    prediction_powered_mean(*sample, power=0.0),
                )
            )
    corrected = [mean for mean in means if mean.method]
    return CorrectedMeans(tuple(means if measures or not corrected else corrected))


def _rogan_gladen(
    measure: Measure, both: Sequence[Sequence[AnswerEvaluation]], target: int, conversations: Mapping[str, str]
) -> Estimate:
    """Return the corrected rate of the target system, with error rates from all systems."""
    nan = math.nan
    if measure.name not in CORRECTABLE or measure.arguments.get("like") is not None:
        return Estimate(nan, nan, nan, _LEVEL, 0, f"{measure} is not a share of units of one kind")
    # The label of the judge, that of people, the question, and the weight of each unit.
    rows: list[tuple[float, float, str, float]] = []
    for number, (judged, human) in enumerate(both):
        for by_judge, by_people in zip(judged.judged, human.judged, strict=True):
            said, true = (unit_values(measure, answer).tolist() for answer in (by_judge, by_people))
            units = [(value, label) for value, label in zip(said, true, strict=True) if not math.isnan(value)]
            rows += [(*unit, by_judge.record.id, 1 / len(units) if number == target else 0.0) for unit in units]
    if not any(weight for *_, weight in rows):
        return Estimate(nan, nan, nan, _LEVEL, 0, "nothing to judge")
    labels, truth, questions, weights = zip(*rows, strict=True)
    return rogan_gladen(labels, truth, [conversations[question] for question in questions], weights)


def _interval(estimate: Estimate) -> str:
    return "" if math.isnan(estimate.low) else f"[{estimate.low:.3f}, {estimate.high:.3f}]"


def _reason(mean: CorrectedMean) -> str:
    return mean.prediction_powered.reason or mean.rogan_gladen.reason

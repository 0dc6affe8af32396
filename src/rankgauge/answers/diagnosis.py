"""`diagnose_answers()`: the stage of a RAG system that limits the answers."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from rankgauge.answers.attribution import Blame, blame
from rankgauge.answers.calibration_result import Calibration
from rankgauge.answers.evaluation import AnswerEvaluation, evaluate_answers, judged_answers, mean_intervals, span
from rankgauge.answers.scores import JudgedAnswer
from rankgauge.answers.verdicts import AnswerRecord, AnswerSet, ClaimSet, Verdict, counted_labels, sentence_claims
from rankgauge.core.arguments import number
from rankgauge.core.text import Ratio, many
from rankgauge.diagnosis.quality import Bands, Quality, qualities
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.evaluation.result import Evaluation, corrected_mean
from rankgauge.measures.measure import parse
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Cell, Table

_AT_LEAST = 0.5
_DECIDING = ("R", "Success")


@dataclass(frozen=True, eq=False)
class AnswerDiagnosis(Result):
    """Measures of retrieval and generation, and the stage to fix first.

    Returned by :func:`diagnose_answers`.

    Attributes:
        answers: The evaluation of the answers.
        retrieval: The evaluation of the rankings; None if no documents with the answer are known.
        qualities: The means of the measures of rankings, with bands and attainable values.
        blame: The first step that failed for each question.
        retrieval_first: The reason to fix retrieval before the prompt or the model, or empty.
        judged: The answers with their claims and labels.
        verdicts: The counted verdicts by item key, with quote and reason; empty if only labels were
            given.
    """

    _schema = "rankgauge/answer-diagnosis/1"
    _attributes = "system=answers.run_name retrieval_first retrieval answers qualities blame"

    answers: AnswerEvaluation
    retrieval: Evaluation | None
    qualities: tuple[Quality, ...]
    blame: Blame
    retrieval_first: tuple[str, ...]
    judged: tuple[JudgedAnswer, ...] = ()
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    def table(self) -> Table:
        """Return the measures of both stages, retrieval first."""
        rows: list[tuple[Cell, ...]] = []
        intervals = mean_intervals(self.retrieval) if self.retrieval else {}
        for each in self.qualities:
            interval = span(intervals[str(each.measure)])
            rows.append(("retrieval", str(each.measure), each.mean, interval, None, _band(each), _attainable(each)))
        for name, (best, ends, judged) in self.answers.estimates().items():
            rows.append(("generation", name, best, span(ends), judged, None, None))
        return Table(
            columns=("stage", "measure", "mean", "95% CI", "by judge", "band", "of attainable"),
            rows=tuple(rows),
            title=f"Retrieval and generation: {self.answers.run_name}",
            digits=3,
            notes=tuple(self._notes()),
        )

    def _notes(self) -> Iterable[str]:
        yield self.summary()
        totals = (f"{cause} {count}" for cause, count in self.blame.totals().items())
        yield f"Causes: {', '.join(totals)}"
        yield f"Judge: {self.answers.stamp}"
        missing = {name: count for name, count in self.answers.missing().items() if count}
        if missing:
            low, high = self.answers.bounds()[next(iter(missing))]
            name, count = next(iter(missing.items()))
            ends = f"{low:.3f} to {high:.3f}"
            yield f"{many(count, 'verdict')} missing for {name}; if all were judged: {ends}"

    def data_table(self) -> Table:
        """Return the rows of `table`, with interval bounds in separate columns."""
        both = {} if self.retrieval is None else mean_intervals(self.retrieval)
        both |= {name: ends for name, (_, ends, _) in self.answers.estimates().items()}
        rated = {str(each.measure): (each.level, each.attainable) for each in self.qualities}
        return Table(
            columns=("stage", "measure", "mean", "low", "high", "by judge", "band", "attainable"),
            rows=tuple(
                (*row[:3], *both[str(row[1])], row[4], *rated.get(str(row[1]), (None, None)))
                for row in self.table().rows
            ),
        )

    def summary(self) -> str:
        """Return the stage to fix first and the reason."""
        if self.retrieval_first:
            return f"Fix retrieval before the prompt or the model: {self.retrieval_first[0]}"
        text = self.blame.summary()
        states = {each["state"] for each in self.answers.judge.get("measures", {}).values()}
        for state in ("not calibrated", "not usable"):
            if state in states:
                text += f" (the judge is {state})"
                break
        return text[:1].upper() + text[1:]


def _band(quality: Quality) -> str | None:
    """Return the band and, unless it is Excellent, the best value that the judgments allow."""
    if quality.highest in {None, "Excellent"}:
        return quality.level
    return f"{quality.level} (best: {quality.highest})"


def _attainable(quality: Quality) -> str | None:
    """Return the attainable value and the attained share."""
    most = quality.attainable
    return f"{Ratio(quality.mean / most):.0%} of {most:.3f}" if most > 0 else None


def diagnose_answers(  # noqa: PLR0913 - each is an option of its own
    answers: AnswerSet,
    verdicts: Mapping[str, str] | Iterable[Verdict],
    measures: Any = None,
    *,
    claims: Callable[[AnswerRecord], ClaimSet] = sentence_claims,
    judge: Mapping[str, Any] | None = None,
    calibration: Calibration | str | os.PathLike[str] | None = None,
    human: Iterable[Verdict] = (),
    bands: Any = None,
    attainable: float = _AT_LEAST,
    k: int = 5,
    encoder: Any = None,
    criteria: Mapping[str, str] = MappingProxyType({}),
) -> AnswerDiagnosis:
    """Measure retrieval and generation, and determine which of them limits the answers.

    Retrieval has priority if mean P@k is below the share `attainable` of the best P@k possible with
    these judgments, or if R@k or Success@k is Poor: no prompt can compensate for a missing context.
    Without known `gold`, it has priority if ContextRecall, corrected for the errors of the judge, is
    Poor.

    Args:
        answers: The answers of one system. Rankings are measured for questions with known `gold`.
        verdicts: As for :func:`evaluate_answers`.
        measures: Names of measures of answers; by default those of :func:`evaluate_answers`.
        claims: Function that returns the claims of a record.
        judge: The judge, as for :func:`evaluate_answers`.
        calibration: The calibration of the judge, or its path.
        human: Verdicts of people on a random sample, as for :func:`evaluate_answers`.
        bands: Bands of the measures of rankings, as for :func:`rankgauge.diagnose`.
        attainable: The share of the attainable P@k below which retrieval has priority.
        k: The cut-off.
        encoder: As for :func:`evaluate_answers`.
        criteria: As for :func:`evaluate_answers`.

    Raises:
        InputError: If there are no answers.
    """
    number("attainable", attainable, high=1.0)
    given = verdicts if isinstance(verdicts, Mapping) else tuple(verdicts)
    labels = given if isinstance(given, Mapping) else counted_labels(given)
    evaluation = evaluate_answers(
        answers,
        given,
        measures,
        claims=claims,
        judge=judge,
        calibration=calibration,
        human=human,
        encoder=encoder,
        criteria=criteria,
    )
    judged = tuple(judged_answers(answers, labels, claims, criteria))
    found = blame(judged, answers.system)
    reasons = {}
    if not isinstance(given, Mapping):
        reasons = {each.key: each for each in given if each.label == labels.get(each.key)}
    qrels = {each.id: dict.fromkeys(each.gold, 1) for each in answers if each.gold}
    if not qrels:
        first = _poor_contexts(evaluation, bands, k)
        return AnswerDiagnosis(evaluation, None, (), found, first, judged, reasons)
    chosen = Bands.of(bands, k=k)
    names = [str(measure) for measure in chosen.measures]
    run = {each.id: _ranking(each) for each in answers if each.gold}
    retrieval = replace(evaluate(qrels, run, names), run_name=answers.system)
    best = evaluate(qrels, {query: list(gold) for query, gold in qrels.items()}, names)
    rated = qualities(retrieval.mean(), best.mean(), chosen)
    return AnswerDiagnosis(
        evaluation, retrieval, rated, found, tuple(_retrieval_first(rated, attainable)), judged, reasons
    )


def _ranking(record: AnswerRecord) -> list[str]:
    ranking = record.ranking or tuple(each.id for each in record.contexts)
    return list(dict.fromkeys(ranking))


def _retrieval_first(rated: Iterable[Quality], attainable: float) -> Iterable[str]:
    for each in rated:
        if each.measure.name == "P" and each.mean < attainable * each.attainable:
            yield (f"{each.measure} is {each.mean:.2f} of {each.attainable:.2f} attainable, below {attainable:.0%}")
        elif each.measure.name in _DECIDING and each.level == "Poor":
            yield f"{each.measure} is {each.mean:.2f}: Poor"


def _poor_contexts(evaluation: AnswerEvaluation, bands: Any, k: int) -> tuple[str, ...]:
    """Return the reason to fix retrieval first, from claims if relevant documents are unknown."""
    measure = parse("ContextRecall")
    recall = corrected_mean(evaluation.settings, measure, evaluation.mean().get(str(measure), math.nan))
    band = next((band for band in Bands.of(bands, k=k) if band.measure.name == "R"), None)
    if band is None or band.level(recall) != "Poor":
        return ()
    return (f"the contexts support {Ratio(recall):.0%} of the claims of the references: Poor",)

"""`evaluate_answers()`: values of measures per question from answers and verdicts."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankgauge.answers.calibration_result import Calibration, stamp_judge
from rankgauge.answers.overlap import OVERLAPS, SIMILARITIES, similarities
from rankgauge.answers.scores import CORRECTABLE, RELATIONS, JudgedAnswer, Score, relations_of, score
from rankgauge.answers.verdicts import AnswerSet, Verdict, conversations_of, counted_labels, labels_of_people
from rankgauge.core.findings import Finding
from rankgauge.core.grouping import group_values
from rankgauge.core.policies import Policies
from rankgauge.core.text import keep, many
from rankgauge.errors import InputError
from rankgauge.evaluation.answer_judge import FEWEST_LABELED
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure, parse_all
from rankgauge.rendering.tables import Detail, Table, by_column
from rankgauge.retrievers.protocol import settings_of
from rankgauge.stats import Estimate, JudgeErrors, prediction_powered_mean

DEFAULT_MEASURES = (
    "AnswerCorrectness",
    "Faithfulness",
    "AnswerRelevance",
    "Completeness",
    "Contradicted",
    "NotStated",
    "ContextRecall",
    "ContextPrecision",
    "Abstention",
)
# Names that people look for in the table of these measures.
_NAMES = "hallucination: Contradicted + NotStated; contexts: -m ContextRelevance"
# Measures without a judge, computed if the records have the required fields.
OVERLAP_MEASURES = ("TokenF1", "RougeL", "KPrecision", "QuotePrecision", "ContextIdPrecision", "ContextIdRecall")


@dataclass(frozen=True, eq=False, repr=False)
class AnswerEvaluation(Evaluation):
    """Evaluation of answers: values per question with bounds for missing verdicts.

    It can be compared, gated, saved, and reported like the evaluation of a run.

    Attributes:
        scores: Value, bounds, number of missing verdicts, and reason for undefined values, by
            question and measure.
        judge: The judge: name, ``person``, its state for each of the ``measures``, and the
            ``stamp`` as a sentence. The settings also contain it, so that it is saved with the
            values.
        judged: The answers with their claims and labels; not saved.
        verdicts: The counted verdicts by item key, with quote and reason; empty if only labels were
            given; not saved.
    """

    scores: Sequence[Sequence[Score]] = ()
    judge: Mapping[str, Any] = field(default_factory=dict)
    judged: Sequence[JudgedAnswer] = field(default=(), compare=False)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict, compare=False)

    def _data(self) -> dict[str, Any]:
        more = {"bounds": self.bounds(), "intervals": mean_intervals(self)}
        return super()._data() | self.extra_fields() | more

    def extra_fields(self) -> dict[str, Any]:
        """Return the judge, and bounds, missing verdicts, and reasons by question and measure."""
        scores = [
            [
                [
                    None if math.isnan(result.low) else result.low,
                    None if math.isnan(result.high) else result.high,
                    result.missing,
                    result.reason,
                ]
                for result in row
            ]
            for row in self.scores
        ]
        return {"judge": dict(self.judge), "scores": scores}

    @classmethod
    def parse_extra_fields(cls, data: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
        """Return the judge and the scores from JSON."""
        rows = data["scores"]
        if [len(rows), *{len(row) for row in rows}] != [shape[0], *([shape[1]] if rows else [])]:
            raise ValueError("the number of scores differs from the number of values")
        scores = [
            [_read_score([value, *rest]) for value, rest in zip(*pair, strict=True)]
            for pair in zip(data["values"], rows, strict=True)
        ]
        judge = dict(data["judge"])
        if not (judge.get("person") or isinstance(judge.get("measures"), Mapping)):
            raise ValueError("the judge has no state for each measure")
        return {"judge": judge, "scores": tuple(map(tuple, scores))}

    @property
    def stamp(self) -> str:
        """The judge, and the number of labels of people in its calibration."""
        return str(self.judge.get("stamp", "unknown judge, not calibrated"))

    @property
    def judge_note(self) -> str:
        """The stamp as a note, with a warning if the judge is not usable."""
        notes = (finding.note for finding in self.findings if finding.message.startswith("judge: "))
        return next(notes, f"judge: {self.stamp}")

    def bounds(self) -> dict[str, tuple[float, float]]:
        """Return the bounds of each mean: with all missing verdicts negative, and all positive.

        They are means over all questions for which the measure is defined, including those that
        :meth:`mean` excludes because missing verdicts could change their value.
        """
        bounds = {}
        for column, measure in enumerate(self.measures):
            known = [row[column] for row in self.scores if not row[column].reason]
            ends = [[result.low for result in known], [result.high for result in known]]
            low, high = (math.fsum(end) / len(end) if end else math.nan for end in ends)
            bounds[str(measure)] = (low, high)
        return bounds

    def table(self) -> Table:
        """Return the mean of each measure with its interval and its number of missing verdicts."""
        missing, bounds = self.missing(), self.bounds()
        means = self.estimates()
        if_all = (span(bounds[name] if missing[name] else (math.nan, math.nan)) for name in means)
        return Table(
            *by_column(
                ("measure", means),
                ("mean", (mean for mean, _, _ in means.values())),
                ("95% CI", (span(ends) for _, ends, _ in means.values())),
                any(judged is not None for *_, judged in means.values())
                and ("by judge", (j for *_, j in means.values())),
                any(missing.values()) and ("if all were judged", if_all),
                ("questions", np.count_nonzero(~np.isnan(self.per_query), axis=0).tolist()),
            ),
            title=f"{self.run_name}: {many(len(self.query_ids), 'question')}",
            notes=(
                *(note if note.startswith(("WARNING", "judge: ")) else Detail(note) for note in self.notes),
                *((_NAMES,) if {"Contradicted", "NotStated"} <= means.keys() else ()),
            ),
            digits=3,
        )

    def estimates(self) -> dict[str, tuple[float | None, tuple[float, float], float | None]]:
        """Return the mean with its 95% interval by measure, and the mean by the judge.

        The mean is corrected for the errors of the judge, and None if that is not possible. The
        mean by the judge is None for people and for measures without a judge.
        """
        about, intervals = self.judge.get("measures", {}), mean_intervals(self)
        estimates: dict[str, tuple[float | None, tuple[float, float], float | None]] = {}
        for name, mean in self.mean().items():
            best, *ends = about.get(name, {}).get("corrected", (None, math.nan, math.nan))
            estimates[name] = (best, (ends[0], ends[1]), mean) if name in about else (mean, intervals[name], None)
        return estimates

    def missing(self) -> dict[str, int]:
        """Return the number of missing verdicts by measure."""
        return {
            str(measure): sum(row[column].missing for row in self.scores)
            for column, measure in enumerate(self.measures)
        }


def mean_intervals(evaluation: Evaluation) -> dict[str, tuple[float, float]]:
    """Return the 95% interval of the mean of each measure; NaN without interval."""
    undefined = (math.nan, math.nan)
    return {str(measure): evaluation.mean_interval(measure) or undefined for measure in evaluation.measures}


def span(ends: tuple[float, float]) -> str | None:
    """Return an interval as text; None if it is NaN or has no width."""
    return None if not ends[0] < ends[1] else f"{ends[0]:.3f} to {ends[1]:.3f}"


def _read_score(data: Sequence[Any]) -> Score:
    """Return a score from JSON, where NaN is null."""
    *numbers, missing, reason = data
    value, low, high = (math.nan if number is None else float(number) for number in numbers)
    return Score(value, low, high, int(missing), str(reason))


def evaluate_answers(
    answers: AnswerSet,
    verdicts: Mapping[str, str] | Iterable[Verdict],
    measures: Any = None,
    *,
    judge: Mapping[str, Any] | None = None,
    calibration: Calibration | str | os.PathLike[str] | None = None,
    human: Iterable[Verdict] = (),
    encoder: Any = None,
) -> AnswerEvaluation:
    """Compute measures of answers from verdicts.

    Questions whose value depends on a missing verdict are excluded from the mean; its bounds
    include them, with all missing verdicts negative and with all positive. If a measure has nothing
    to judge for a question, its value is undefined and excluded from mean and bounds. Each of the
    judged criteria (`AnswerSet.criteria`) adds a measure: ``Criterion(name=polite)`` is the share
    of answers that meet it.

    Args:
        answers: The answers of one system.
        verdicts: Verdicts, or labels by item key. `counted_labels` resolves several verdicts on an
            item; for replicates, the majority counts.
        measures: Names of measures of answers; by default `DEFAULT_MEASURES`, and those of
            `OVERLAP_MEASURES` (with an encoder, also of similarity) that are defined for some
            question.
        judge: The judge: ``name`` and ``prompt``, and ``person=True`` for people, who need no
            calibration. By default, the judges of the verdicts.
        calibration: The calibration of the judge, or its path. Values without a calibration for
            this judge and prompt are marked as not calibrated, those of a judge with too many
            errors as not usable.
        human: Verdicts of people on all items of a random sample of the questions. From 20 labeled
            questions, means and differences are corrected by them (prediction-powered), whatever
            the errors of the judge.
        encoder: The encoder for measures of similarity, such as `AnswerSimilarity`.

    Raises:
        InputError: If there are no answers.
        UnknownName: If a measure is unknown or a measure of rankings.

    Example:
        >>> from rankgauge.answers import AnswerRecord, AnswerSet, Context
        >>> record = AnswerRecord("q1", "How high?", "It is 5 m high.", (Context("a", "5 m."),))
        >>> answers = AnswerSet("a", (record,))
        >>> labels = {i.key: "supported" for i in answers.items() if i.relation == "answer-context"}
        >>> evaluate_answers(answers, labels, "Faithfulness").mean()
        {'Faithfulness': 1.0}
    """
    if not len(answers):
        raise InputError("there are no answers", where=answers.system, fix="pass at least one")
    own = [f"Criterion(name={name})" for name in answers.criteria]
    default = (*DEFAULT_MEASURES, *OVERLAP_MEASURES, *(SIMILARITIES if encoder is not None else ()))
    asked = answer_measures(default if measures is None else measures)
    chosen = tuple(dict.fromkeys((*asked, *answer_measures(own))))
    _check_criteria(chosen, answers.criteria)
    if calibration is not None and not isinstance(calibration, Calibration):
        calibration = Calibration.read(calibration)
    known = () if isinstance(verdicts, Mapping) else tuple(verdicts)
    labels = verdicts if isinstance(verdicts, Mapping) else counted_labels(known)
    judged = [JudgedAnswer.of(record, answers.claims(record), labels, answers.criteria) for record in answers]
    similar = _similar(answers, chosen, encoder)
    columns = {measure: _scores(measure, judged, similar) for measure in chosen}
    if measures is None:
        columns = {
            measure: column
            for measure, column in columns.items()
            if _is_judged(measure) or not all(result.reason for result in column)
        }
    chosen = tuple(columns)
    needed = {str(measure): relations_of(measure) for measure in chosen if _is_judged(measure)}
    if calibration is None:  # relations are not needed
        judges = {"": {(verdict.judge, verdict.prompt) for verdict in known}}
    else:
        judges = _judges(known, judged)
    stamped = stamp_judge(judge, judges, needed, calibration)
    conversations = conversations_of((answers,))
    truth = labels_of_people(human)
    theirs = [JudgedAnswer.of(record, answers.claims(record), truth, answers.criteria) for record in answers if truth]
    for measure, column in columns.items():
        if (about := stamped.get("measures", {}).get(str(measure))) is not None:
            people = {answer.record.id: score(measure, answer) for answer in theirs}
            about["people"] = {
                query: result.value for query, result in people.items() if not (result.missing or result.reason)
            }
            values = {r.id: result.value for r, result in zip(answers, column, strict=True)}
            errors = calibration.errors(measure) if calibration is not None else None
            mean = _corrected(values, about, conversations, errors if measure.name in CORRECTABLE else None)
            if mean is not None:
                about["corrected"] = [mean.value, mean.low, mean.high]
    if talks := {question: first for question, first in conversations.items() if question != first}:
        stamped["conversations"] = talks
    scores = list(zip(*columns.values(), strict=True))
    per_query = np.array([[result.value for result in row] for row in scores], dtype=np.float64)
    groups = tuple(record.group for record in answers)
    used: dict[str, Any] = {"criteria": dict(answers.criteria)} if answers.criteria else {}
    if similar:
        described = settings_of(encoder) or {"type": type(encoder).__name__}
        parts = (described.get(part) for part in ("type", "model", "dimensions", "url"))
        used["encoder"] = " ".join(str(part) for part in parts if part)
    lowered = {verdict.key for verdict in known if verdict.quoted is False and verdict.label == labels.get(verdict.key)}
    quoteless = sum(key in lowered for answer in judged for keys in answer.keys.values() for key in keys)
    return AnswerEvaluation(
        run_name=answers.system,
        query_ids=tuple(record.id for record in answers),
        measures=chosen,
        per_query=per_query,
        policies=Policies(),
        counts={"queries": len(answers)} | _unjudged(chosen, scores),
        groups=groups if any(groups) else None,
        settings={**answers.settings, **used, "judge": stamped},
        findings=(
            *_stamp_finding(stamped, chosen),
            *_findings(chosen, scores),
            *_uncorrected(stamped, chosen),
            *keep(
                quoteless
                and Finding(
                    "",
                    "warning",
                    f"{many(quoteless, 'verdict')} without a valid quote: the quote is missing or does not "
                    'occur in the text; these verdicts count as "not stated" or "not relevant"',
                    fix="read the reasons of these verdicts",
                )
            ),
            *(Finding("", "info", note) for note in answers.notes),
        ),
        scores=tuple(scores),
        judge=stamped,
        judged=judged,
        verdicts={verdict.key: verdict for verdict in known if verdict.label == labels.get(verdict.key)},
    )


def _corrected(
    values: Mapping[str, float], about: Mapping[str, Any], conversations: Mapping[str, str], errors: JudgeErrors | None
) -> Estimate | None:
    """Return the mean corrected for the errors of the judge; None if that is not possible."""
    known = {query: value for query, value in values.items() if not math.isnan(value)}
    said = np.array(list(known.values()))
    people = [about["people"].get(query, math.nan) for query in known]
    clusters = [conversations[query] for query in known]
    if len(people) - np.isnan(people).sum() >= FEWEST_LABELED:
        return prediction_powered_mean(said, people, clusters)
    if about["state"] != "usable" or errors is None or len(set(clusters)) < 2:
        return None
    groups = np.unique(clusters, return_inverse=True)[1]
    sums = np.bincount(groups, (said - said.mean()) / len(said))
    variance = float(sums @ sums) * len(sums) / (len(sums) - 1)
    corrected = errors.corrected(float(said.mean()), variance)
    return None if math.isnan(corrected.value) else corrected


def _check_criteria(measures: Iterable[Measure], criteria: Mapping[str, str]) -> None:
    """Reject the measure of a criterion whose wording is missing."""
    for measure in measures:
        if measure.name == "Criterion" and measure.arguments["name"] not in criteria:
            name = measure.arguments["name"]
            raise InputError(
                f"the criterion {name!r} has no wording",
                where="criteria",
                fix=f'pass it: AnswerSet(criteria={{"{name}": "The answer ..."}}), or on the command line '
                f"--criterion {name}='The answer ...'",
            )


def answer_measures(measures: Any) -> tuple[Measure, ...]:
    """Return the named measures; reject those that are not computed from verdicts."""
    names = (measures,) if isinstance(measures, str | Measure) else tuple(measures)
    parsed = tuple(dict.fromkeys(measure for name in names for measure in parse_all(name)))
    for measure in parsed:
        if not (_is_judged(measure) or measure.name in {*OVERLAPS, *SIMILARITIES}):
            raise InputError(
                f"{measure} is not a measure of answers",
                where="measures",
                fix=f"choose from: {', '.join((*RELATIONS, *OVERLAPS, *SIMILARITIES))}",
            )
    return parsed


def _is_judged(measure: Measure) -> bool:
    return measure.declaration.reads == "verdicts"


def _similar(answers: AnswerSet, measures: Iterable[Measure], encoder: Any) -> Mapping[str, Sequence[Score]]:
    wanted = [str(measure) for measure in measures if measure.name in SIMILARITIES]
    if not wanted:
        return {}
    if encoder is None:
        raise InputError(
            f"{wanted[0]} needs an encoder",
            where="measures",
            fix="pass one: encoder=HashingEncoder(), or a model of sentence-transformers; on the "
            "command line --encoder",
        )
    return similarities(answers.records, encoder)


def _scores(
    measure: Measure, judged: Sequence[JudgedAnswer], similar: Mapping[str, Sequence[Score]]
) -> Sequence[Score]:
    """Return the score of each question."""
    if measure.name in similar:
        return similar[measure.name]
    overlap = OVERLAPS.get(measure.name)
    if overlap is not None:
        return [overlap(answer.record) for answer in judged]
    return [score(measure, answer) for answer in judged]


def _unjudged(measures: Sequence[Measure], scores: Sequence[Sequence[Score]]) -> dict[str, int]:
    """Return the number of questions with an unknown value, by measure, if above 0."""
    counts = {
        f"unjudged {measure}": sum(math.isnan(row[column].value) and not row[column].reason for row in scores)
        for column, measure in enumerate(measures)
    }
    return {name: count for name, count in counts.items() if count}


def _judges(verdicts: Iterable[Verdict], judged: Iterable[JudgedAnswer]) -> dict[str, set[tuple[str, str]]]:
    """Return the name and prompt of the judges with counted verdicts, by relation."""
    latest = {verdict.key: (verdict.judge, verdict.prompt) for verdict in verdicts}
    judges: dict[str, set[tuple[str, str]]] = {}
    for answer in judged:
        for relation, keys in answer.keys.items():
            judges.setdefault(relation, set()).update(latest[key] for key in keys if key in latest)
    return judges


def _stamp_finding(judge: Mapping[str, Any], measures: Sequence[Measure]) -> Iterable[Finding]:
    """Yield the stamp as a note, or as a warning if the judge of a measure is not usable."""
    if not any(map(_is_judged, measures)):
        return
    known = judge.get("measures", {}).values()
    states = {about["state"] for about in known}
    fix = ""
    if "not calibrated" in states:
        fix = "label answers (rankgauge serve), and compare the judge with the labels (rankgauge answers calibrate)"
    elif "not usable" in states:
        fix = "calibrate another judge or prompt, or pass labels of people (--human)"
    elif any(about.get("warning") for about in known):
        fix = "use corrected means and differences, not single verdicts of the judge"
    yield Finding("", "warning" if fix else "info", f"judge: {judge['stamp']}", fix=fix)


def _uncorrected(judge: Mapping[str, Any], measures: Sequence[Measure]) -> Iterable[Finding]:
    """Yield why measures by a usable judge have no corrected mean."""
    known: Mapping[str, Mapping[str, Any]] = judge.get("measures", {})
    reasons = group_values(
        ("too few questions" if measure.name in CORRECTABLE else "not a share of units of one kind", str(measure))
        for measure in measures
        for about in (known.get(str(measure), {}),)
        if about.get("state") == "usable" and "corrected" not in about
    )
    for why, names in reasons.items():
        yield Finding(
            "",
            "info",
            f"no mean corrected for the errors of the judge ({why}): {', '.join(names)}; label all "
            f"items of at least {FEWEST_LABELED} questions",
        )


def _findings(measures: Sequence[Measure], scores: Sequence[Sequence[Score]]) -> Iterable[Finding]:
    missing = {m: sum(row[n].missing for row in scores) for n, m in enumerate(measures)}
    none = _unjudged(measures, scores)
    parts = [
        f"{measure} {count}"
        + (f" ({many(unknown, 'question')})" if (unknown := none.get(f"unjudged {measure}")) else "")
        for measure, count in missing.items()
        if count
    ]
    if parts:
        what = (
            f"verdicts are missing: {', '.join(parts)}; means exclude these questions; bounds "
            "include them, with all missing verdicts negative and with all positive"
        )
        yield Finding("", "warning", what, fix="judge the rest")
    undefined = group_values(
        (pair, str(measure))
        for column, measure in enumerate(measures)
        for pair in Counter(row[column].reason for row in scores if row[column].reason).items()
    )
    for (reason, count), names in undefined.items():
        yield Finding("", "info", f"{many(count, 'question')} undefined because {reason}: {', '.join(names)}")

"""Agreement of a judge of answers with people, and means corrected for the errors of the judge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from rankgauge.answers.calibration_result import Bias, Calibration, MeasureCalibration, RelationCalibration
from rankgauge.answers.evaluation import DEFAULT_MEASURES, AnswerEvaluation, evaluate_answers
from rankgauge.answers.scores import CORRECTABLE, RELATIONS, JudgedAnswer, unit_values
from rankgauge.answers.verdicts import (
    LABELS,
    AnswerSet,
    Item,
    Verdict,
    conversations_of,
    counted_labels,
    items_of,
    labels_of_people,
)
from rankgauge.core.grouping import group_values
from rankgauge.errors import InputError
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Detail, Table, first_rows
from rankgauge.stats import (
    Agreement,
    Estimate,
    clustered_difference,
    clustered_rate,
    cohen_kappa,
    judge_errors,
    krippendorff_alpha,
    naive_rate,
    percent_agreement,
    prediction_powered_mean,
    rogan_gladen,
)

_LEVEL = 0.95  # of intervals
_SHOWN = 3  # corrected means of a short table
_VALID = (
    "valid if the questions with human labels are a random sample (prediction-powered), or if "
    "the judge errs as often on the others (Rogan-Gladen)"
)
_FEW = 10  # smallest number of labels in and outside a group to estimate a bias
_CHOICES = {"first": "second", "second": "first", "tie": "tie"}


def calibrate(
    answers: AnswerSet | Iterable[AnswerSet],
    judge: Iterable[Verdict],
    human: Iterable[Verdict],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> Calibration:
    """Compare the verdicts of a judge with labels of people.

    If an item has several labels of people, or several replicates, the majority counts; of several
    versions of a prompt, the latest counts. Items without a majority are excluded.

    Args:
        answers: The answers of one system or several.
        judge: Verdicts of one judge.
        human: Verdicts of people, on a random sample of the items.
        draws: Number of bootstrap resamples of the questions for kappa and alpha.
        seed: Seed of the bootstrap.

    Raises:
        InputError: If the verdicts are from several judges, or no item has a verdict and a label.

    Example:
        >>> from rankgauge.answers import AnswerRecord
        >>> records = [AnswerRecord(f"q{n}", "Is it?", f"It is {n}.") for n in range(40)]
        >>> answers = AnswerSet("a", tuple(records))
        >>> keys = [item.key for item in answers.items() if item.relation == "abstention"]
        >>> labels = ["abstains", "answers"] * 20
        >>> people = [Verdict(key, label, "ann") for key, label in zip(keys, labels)]
        >>> labels[:5] = ["abstains"] * 5
        >>> judge = [Verdict(key, label, "m") for key, label in zip(keys, labels)]
        >>> calibrate(answers, judge, people).summary()
        'm: calibrated on 40 labels (kappa 0.90, sensitivity 1.00, specificity 0.90)'
    """
    sets = (answers,) if isinstance(answers, AnswerSet) else tuple(answers)
    items = _occurrences(sets)
    verdicts, labels = list(judge), list(human)
    names = sorted({verdict.judge for verdict in verdicts})
    if len(names) > 1:
        raise InputError(
            f"verdicts of {len(names)} judges: {', '.join(names)[:80]}",
            where="calibrate",
            fix="pass those of one judge",
        )
    truth = labels_of_people(labels)
    by_relation = group_values((items[key].item.relation_name, items[key]) for key in truth if key in items)
    conversations = conversations_of(sets)
    options = {"draws": draws, "seed": seed}
    calibrated = (
        _calibrated(relation, some, verdicts, labels, conversations=conversations, options=options)
        for relation, some in sorted(by_relation.items())
    )
    relations = tuple(calibration for calibration in calibrated if calibration is not None)
    if not relations:
        raise InputError(
            f"no item has a label of people ({len(truth)}) and a verdict of the judge ({len(verdicts)})",
            where="calibrate",
            fix="pass labels of items in these answers that the judge judged",
        )
    pair = counted_labels(verdicts), truth
    labeled = {items[key].item.record for key in truth if key in items}
    both = [
        tuple(JudgedAnswer.of(record, answer_set.claims(record), labels, answer_set.criteria) for labels in pair)
        for answer_set in sets
        for record in answer_set
        if record.id in labeled
    ]
    criteria = dict.fromkeys(name for answer_set in sets for name in answer_set.criteria)
    measures = (*RELATIONS, *(f"Criterion(name={name})" for name in criteria))
    errors = (_errors(name, both, conversations) for name in measures)
    return Calibration(relations, tuple(filter(None, errors)))


@dataclass(frozen=True, slots=True)
class _Occurrence:
    """Item with its occurrences in the answers.

    Attributes:
        item: The item.
        systems: The systems with this item.
        first: Whether the item is about the first context.
        last: Whether the item is about the last of several contexts.
    """

    item: Item
    systems: frozenset[str]
    first: bool
    last: bool


def _occurrences(answers: Iterable[AnswerSet]) -> dict[str, _Occurrence]:
    """Return the items of answers by key, with their occurrences."""
    occurrences: dict[str, _Occurrence] = {}
    for answer_set in answers:
        for record in answer_set:
            last = len(record.contexts) - 1
            for item in items_of(record, answer_set.claims(record), answer_set.criteria):
                known = occurrences.get(item.key)
                systems = frozenset({answer_set.system}) | (known.systems if known else frozenset())
                place = item.row if item.relation == "context-question" else item.column
                occurrences[item.key] = _Occurrence(
                    known.item if known else item, systems, place == 0, place == last > 0
                )
    return occurrences


def _calibrated(
    relation: str,
    items: Sequence[_Occurrence],
    verdicts: Sequence[Verdict],
    labels: Sequence[Verdict],
    *,
    conversations: Mapping[str, str],
    options: Mapping[str, Any],
) -> RelationCalibration | None:
    keys = {occurrence.item.key for occurrence in items}
    some = [verdict for verdict in verdicts if verdict.key in keys]
    if not some:
        return None
    some = [verdict for verdict in some if verdict.prompt == some[-1].prompt]
    majorities = counted_labels(some)
    truth = labels_of_people([verdict for verdict in labels if verdict.key in keys])
    both = [occurrence for occurrence in items if occurrence.item.key in majorities]
    if not both:
        return None
    names = LABELS[items[0].item.relation]
    codes = {name: code for code, name in enumerate(names)}
    pairs = [(codes[majorities[o.item.key]], codes[truth[o.item.key]]) for o in both]
    table = np.array(pairs, dtype=np.float64)
    judged, human = table.T
    clusters = [conversations[occurrence.item.record] for occurrence in both]
    positive = (judged == 0, human == 0)
    count = Counter((human, judge) for judge, human in pairs)
    replicates = {(verdict.key, verdict.replicate): codes.get(verdict.label, math.nan) for verdict in some}
    judged_keys = {key for key, _ in replicates}
    repeated = {o.item.key: conversations[o.item.record] for o in items if o.item.key in judged_keys}
    same = percent_agreement(_ratings(replicates, repeated), clusters=list(repeated.values()), **options)
    of_people = {(verdict.key, verdict.judge): codes[verdict.label] for verdict in labels if verdict.key in keys}
    return RelationCalibration(
        relation,
        some[-1].judge,
        some[-1].prompt,
        len(both),
        len({o.item.record for o in both}),
        len(items) - len(both),
        {name: {other: count[codes[name], codes[other]] for other in names} for name in names},
        percent_agreement(table, clusters=clusters, **options),
        max(Counter(human.tolist()).values()) / len(both),
        cohen_kappa(judged, human, clusters=clusters, **options),
        krippendorff_alpha(table, clusters=clusters, **options),
        _rate(positive[0], positive[1], clusters),
        _rate(~positive[0], ~positive[1], clusters),
        judge_errors(positive[0], positive[1] * 1.0, clusters).gain,
        Agreement(1 - same.value, 1 - same.high, 1 - same.low, same.level, same.units, same.ratings, same.reason),
        krippendorff_alpha(_ratings(of_people, sorted(keys)), **options),
        _biases(both, positive[0] * 1.0 - positive[1], clusters),
    )


def _ratings(labels: Mapping[tuple[str, Any], float], keys: Iterable[str]) -> np.ndarray[Any, Any]:
    """Return the labels of items (rows) by person or replicate (columns); NaN without a label."""
    columns = sorted({column for _, column in labels})
    return np.array([[labels.get((key, column), math.nan) for column in columns] for key in keys], dtype=np.float64)


def _errors(
    name: str, answers: Iterable[Sequence[JudgedAnswer]], conversations: Mapping[str, str]
) -> MeasureCalibration | None:
    """Return the errors of the judge in the values of a measure; None without common values."""
    measure = parse(name)
    rows = [
        (judged, true, conversations[by_judge.record.id])
        for by_judge, by_people in answers
        for judged, true in zip(
            *(unit_values(measure, answer).tolist() for answer in (by_judge, by_people)), strict=True
        )
        if not math.isnan(judged + true)
    ]
    if not rows:
        return None
    judged, true, clusters = zip(*rows, strict=True)
    return MeasureCalibration(name, judge_errors(judged, true, clusters))


def _rate(hits: np.ndarray[Any, Any], among: np.ndarray[Any, Any], clusters: Sequence[str]) -> Estimate:
    """Return the share of hits among the selected items."""
    some = [cluster for cluster, there in zip(clusters, among.tolist(), strict=True) if there]
    return clustered_rate(hits[among] * 1.0, np.array(some, dtype=str))


def _biases(items: Sequence[_Occurrence], errors: np.ndarray[Any, Any], clusters: Sequence[str]) -> tuple[Bias, ...]:
    groups = {name: there for name, there in _groups(items) if min(sum(there), len(there) - sum(there)) >= _FEW}
    strict = 1 - (1 - _LEVEL) / max(1, len(groups))
    return tuple(
        Bias(name, clustered_difference(errors, there, clusters, level=strict)) for name, there in groups.items()
    )


def _groups(items: Sequence[_Occurrence]) -> Iterator[tuple[str, list[bool]]]:
    """Yield the groups of items that a judge may favor, with their members."""
    relation = items[0].item.relation
    subject, target = _PARTS.get(relation, ("texts", "texts"))
    for name, lengths in (
        (subject, [len(occurrence.item.subject) for occurrence in items]),
        (target, [len(occurrence.item.target) for occurrence in items]),
    ):
        middle = median(lengths)
        yield f"longer {name}", [length > middle for length in lengths]
    if relation in {"answer-context", "reference-context", "context-question"}:
        yield "the first context", [occurrence.first for occurrence in items]
        yield "the last context", [occurrence.last for occurrence in items]
    systems = sorted(frozenset().union(*(occurrence.systems for occurrence in items)))
    if len(systems) > 1:
        for system in systems:
            yield f"answers of {system}", [occurrence.systems == {system} for occurrence in items]


# Names of the judged text and of the text it is judged against.
_PARTS = {
    "answer-context": ("claims", "contexts"),
    "answer-reference": ("claims", "references"),
    "answer-question": ("claims", "questions"),
    "reference-context": ("claims", "contexts"),
    "reference-answer": ("claims", "answers"),
    "nugget-answer": ("nuggets", "answers"),
    "citation-context": ("claims", "contexts"),
    "context-question": ("contexts", "questions"),
    "abstention": ("answers", "questions"),
    "answerability": ("questions", "texts"),
    "criterion": ("answers", "texts"),
}


@dataclass(frozen=True, slots=True)
class PositionSwap:
    """Pairwise choices of a judge who saw each pair in both orders.

    Attributes:
        choices: ``first`` or ``second`` (in the order of the pair) if the choices in both orders
            agree; otherwise ``tie``.
        consistent: The share of pairs with the same choice in both orders, from 0 to 1.
        first: The share of choices of the text presented first, excluding ties; 0.5 without bias.
    """

    choices: Mapping[Any, str]
    consistent: Estimate
    first: Estimate


def position_swap(forward: Mapping[Any, str], swapped: Mapping[Any, str]) -> PositionSwap:
    """Compare the choices between two answers with the choices in reversed order.

    Args:
        forward: The choice for each pair: ``first``, ``second``, or ``tie``.
        swapped: The choice for each pair with the two answers in reversed order.

    Raises:
        InputError: If the pairs differ, or a choice is invalid.

    Example:
        >>> found = position_swap({1: "first", 2: "first"}, {1: "second", 2: "first"})
        >>> found.choices, found.consistent.value, found.first.value
        ({1: 'first', 2: 'tie'}, 0.5, 0.75)
    """
    wrong = {str(choice) for choice in (*forward.values(), *swapped.values())} - set(_CHOICES)
    if wrong or set(forward) != set(swapped) or not forward:
        raise InputError(
            f"{min(wrong)!r:.40} is not a valid choice" if wrong else "the pairs differ, or there are none",
            where="position_swap",
            fix="pass first, second, or tie for each pair, in both orders",
        )
    agrees = {pair: forward[pair] == _CHOICES[swapped[pair]] for pair in forward}
    shown = [
        (float(choice == "first"), pair)
        for order in (forward, swapped)
        for pair, choice in order.items()
        if choice != "tie"
    ]
    numbers = {pair: number for number, pair in enumerate(forward)}
    return PositionSwap(
        {pair: choice if agrees[pair] else "tie" for pair, choice in forward.items()},
        clustered_rate([float(same) for same in agrees.values()]),
        clustered_rate([hit for hit, _ in shown], [numbers[pair] for _, pair in shown]),
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

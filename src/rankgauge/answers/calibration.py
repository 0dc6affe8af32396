"""`calibrate()`: agreement of a judge of answers with people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from rankgauge.answers.calibration_result import Bias, Calibration, MeasureCalibration, RelationCalibration
from rankgauge.answers.scores import RELATIONS, JudgedAnswer, unit_values
from rankgauge.answers.verdicts import LABELS, AnswerSet, Item, Verdict, counted_labels, items_of
from rankgauge.core.grouping import group_values
from rankgauge.errors import InputError
from rankgauge.measures.measure import parse
from rankgauge.stats import (
    Agreement,
    Estimate,
    clustered_difference,
    clustered_rate,
    cohen_kappa,
    judge_errors,
    krippendorff_alpha,
    percent_agreement,
)

_LEVEL = 0.95  # of intervals
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


def conversations_of(answers: Iterable[AnswerSet]) -> dict[str, str]:
    """Return the first question of the conversation of each question.

    Conversations with the same first turn count as one conversation.
    """
    conversations: dict[str, str] = {}
    records = {record.id: record for answer_set in answers for record in answer_set}
    turns = {
        key: next((text for role, text in record.history if role != "system"), "") for key, record in records.items()
    }
    begun = set(turns.values())
    first: dict[str, str] = {}
    for key, record in records.items():
        turn = turns[key] or (record.question if record.question in begun else "")
        conversations[key] = first.setdefault(turn, key) if turn else key
    return conversations


def labels_of_people(verdicts: Iterable[Verdict]) -> dict[str, str]:
    """Return the majority label of each item that has a majority."""
    numbers: dict[str, int] = {}
    # People count like the replicates of one judge.
    return counted_labels(
        replace(verdict, judge="", prompt="", replicate=numbers.setdefault(verdict.judge, len(numbers)))
        for verdict in verdicts
    )


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

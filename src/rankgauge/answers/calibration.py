"""`calibrate()`: how well a judge of answers agrees with people, and `Calibration`, its record."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from rankgauge.answers.claims import sentence_claims
from rankgauge.answers.records import AnswerRecord, AnswerSet
from rankgauge.answers.verdicts import LABELS, ClaimSet, Item, Verdict, items_of
from rankgauge.core.files import read_text, write_atomically
from rankgauge.core.text import many
from rankgauge.errors import InputError
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Cell, Table
from rankgauge.stats import (
    Agreement,
    Estimate,
    clustered_difference,
    clustered_rate,
    cohen_kappa,
    judge_gain,
    krippendorff_alpha,
    percent_agreement,
)

__all__ = [
    "Bias",
    "Calibration",
    "PositionSwap",
    "RelationCalibration",
    "calibrate",
    "items_by_key",
    "labels_of_people",
    "position_swap",
    "stamp_judge",
]

_SCHEMA = "rankgauge/calibration/1"
_SHOWN = 2  # uncalibrated relations in the summary
_FEW = 10  # labels in a group: fewer tell nothing about a bias
_CHOICES = {"first": "second", "second": "first", "tie": "tie"}


@dataclass(frozen=True, slots=True)
class Bias:
    """Whether a judge is more lenient with some items than with the others.

    Attributes:
        group: The items, such as ``longer claims`` or ``first context``.
        difference: Mean of (label of the judge - label of people) in the group less that of the
            others, labels counted 1 if positive. Intervals are Bonferroni-corrected for the number
            of groups.
    """

    group: str
    difference: Estimate

    @property
    def verdict(self) -> str:
        """``more lenient``, ``stricter`` or ``cannot tell``."""
        if self.difference.low > 0:
            return "more lenient"
        return "stricter" if self.difference.high < 0 else "cannot tell"


@dataclass(frozen=True, slots=True)
class RelationCalibration:
    """How well a judge agrees with people on the items of one relation.

    Positive is the first label of the relation (``supported``, ``relevant``, ...). Intervals treat
    the items of a question, and the questions of a conversation, as a cluster.

    Attributes:
        relation: The relation; of a criterion its name, too.
        judge: The name of the judge.
        prompt: The version of the prompt.
        labels: Items with a label of people and a verdict of the judge.
        questions: Their questions.
        unjudged: Items with a label of people only.
        confusion: Label of people to label of the judge to the number of items.
        agreement: Share of items with the same label.
        base_rate: The agreement of a judge that always gives the most frequent label of people.
        kappa: Cohen's kappa.
        alpha: Krippendorff's alpha, nominal.
        sensitivity: Share of the items that people call positive that the judge calls positive.
        specificity: Share of the others that the judge does not call positive.
        gain: Sensitivity + specificity: 1 for a judge that guesses.
        flips: Share of pairs of replicates that differ; undefined without replicates.
        people: Krippendorff's alpha of the people; undefined if no item has labels of two.
        biases: By length, position and system.
    """

    relation: str
    judge: str
    prompt: str
    labels: int
    questions: int
    unjudged: int
    confusion: Mapping[str, Mapping[str, int]]
    agreement: Agreement
    base_rate: float
    kappa: Agreement
    alpha: Agreement
    sensitivity: Estimate
    specificity: Estimate
    gain: Estimate
    flips: Agreement
    people: Agreement
    biases: tuple[Bias, ...]

    @property
    def reason(self) -> str:
        """Why the judge does not count as calibrated; empty if it does."""
        if self.gain.low > 1:
            return ""
        why = self.gain.reason or "they do not show that it is better than guessing"
        return f"{many(self.labels, 'label')}: {why}"

    @property
    def text(self) -> str:
        """On how many labels the judge was calibrated, and how good it is."""
        return (
            f"calibrated on {many(self.labels, 'label')} (kappa {self.kappa.value:.2f}, "
            f"sensitivity {self.sensitivity.value:.2f}, specificity {self.specificity.value:.2f})"
        )


@dataclass(frozen=True, eq=False)
class Calibration(Result):
    """How well a judge agrees with people, for each relation. Made by :func:`calibrate`.

    It holds for this judge, this version of its prompt, and these relations only.

    Attributes:
        relations: One for each relation with labels of people.
    """

    _schema = _SCHEMA

    relations: tuple[RelationCalibration, ...]

    def uncalibrated(self, relation: str, used: Collection[tuple[str, str]]) -> str:
        """Return why verdicts on a relation are not those of a calibrated judge; empty if they are.

        Args:
            relation: The relation.
            used: Name and version of the prompt of the judges whose verdicts were used.
        """
        found = {each.relation: each for each in self.relations}.get(relation)
        if found is None:
            return f"no labels of people on {relation}"
        for name, prompt in sorted(used):
            if (name, prompt) != (found.judge, found.prompt):
                given, made = _named(name, prompt), _named(found.judge, found.prompt)
                return f"the calibration is of {made}, the verdicts are of {given}"
        return found.reason

    def short_table(self) -> Table:
        """Return a row for each relation, with warnings below: for a terminal."""
        rows: list[tuple[Cell, ...]] = [
            (
                each.relation, each.labels, each.agreement.value, _text(each.kappa),
                each.sensitivity.value, each.specificity.value,
            )
            for each in self.relations
        ]  # fmt: skip
        warnings = [note for note in self._notes() if note.startswith("WARNING")]
        left = [many(n, "more warning")] if (n := len(warnings) - 1) > 0 else []
        biased = sum(b.verdict != "cannot tell" for each in self.relations for b in each.biases)
        return Table(
            columns=("relation", "labels", "agreement", "kappa (95% CI)", "sens.", "spec."),
            rows=tuple(rows),
            title=f"Calibration of {self._judges()}",
            digits=3,
            notes=(
                *warnings[:1],
                f"{', '.join([*left, f'{biased} biases found', 'alpha'])}: --full (full=True)",
            ),
        )

    def table(self) -> Table:
        """Return a row for each relation, with biases that were found below."""
        rows: list[tuple[Cell, ...]] = [
            (
                each.relation, each.labels, each.agreement.value, each.base_rate,
                _text(each.kappa), _text(each.alpha), _text(each.sensitivity),
                _text(each.specificity),
            )
            for each in self.relations
        ]  # fmt: skip
        return Table(
            columns=(
                "relation", "labels", "agreement", "base rate", "kappa", "alpha", "sensitivity",
                "specificity",
            ),
            rows=tuple(rows),
            title=f"Calibration of {self._judges()}",
            digits=3,
            notes=tuple(self._notes()),
        )  # fmt: skip

    def _judges(self) -> str:
        return ", ".join(dict.fromkeys(_named(each.judge, each.prompt) for each in self.relations))

    def _notes(self) -> Iterator[str]:
        yield (
            "95% intervals, with questions (or conversations) as clusters; base rate: agreement if "
            "always the most frequent label is given"
        )
        for each in self.relations:
            if each.reason:
                yield f"WARNING: {each.relation} is uncalibrated: {each.reason}"
            if each.unjudged:
                yield (
                    f"{each.relation}: the judge has no verdict on "
                    f"{many(each.unjudged, 'item')} with a label"
                )
            if each.flips.defined:
                yield f"{each.relation}: {each.flips.value:.1%} of pairs of replicates differ"
            if each.people.defined:
                yield f"{each.relation}: alpha of the people {_text(each.people)}"
            found = [bias for bias in each.biases if bias.verdict != "cannot tell"]
            for bias in found:
                yield f"{each.relation}: {bias.verdict} with {bias.group}, {_text(bias.difference)}"
            unsure = [bias.group for bias in each.biases if bias not in found]
            if unsure:
                yield f"{each.relation}: cannot tell whether it is biased by {', '.join(unsure)}"

    def data_table(self) -> Table:
        """Return a row for each number of each relation, with its interval."""
        rows: list[tuple[Cell, ...]] = []
        for each in self.relations:
            for name in ("agreement", "kappa", "alpha", "sensitivity", "specificity", "gain"):
                found = getattr(each, name)
                rows.append((each.relation, name, found.value, found.low, found.high, found.reason))
            for bias in each.biases:
                found = bias.difference
                rows.append((
                    each.relation, f"bias: {bias.group}", found.value, found.low, found.high,
                    found.reason or bias.verdict,
                ))  # fmt: skip
        return Table(("relation", "number", "value", "low", "high", "note"), tuple(rows))

    def summary(self) -> str:
        """Return the stamp, and for which relations the judge is not calibrated."""
        bad = [each for each in self.relations if each.reason]
        good = {each.relation for each in self.relations} - {each.relation for each in bad}
        parts = [self.stamp(good)] if good else []
        parts += [f"{each.relation} is uncalibrated, {each.reason}" for each in bad[:_SHOWN]]
        return f"{self._judges()[:99]}: {'; '.join(parts)}"

    def stamp(self, relations: Collection[str]) -> str:
        """Return on how many labels the judge was calibrated for relations, and how good it is.

        Args:
            relations: Some of those that it was calibrated for.
        """
        some = [each for each in self.relations if each.relation in relations]
        if len(some) == 1:
            return some[0].text
        labels = many(sum(each.labels for each in some), "label")
        worst = min(some, key=lambda each: each.gain.value, default=None)
        if worst is None:
            return "calibrated on 0 labels"
        return f"calibrated on {labels}, worst on {worst.relation} ({worst.text.split('(', 1)[1]}"

    def _data(self) -> dict[str, Any]:
        return {"relations": list(self.relations)}

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON."""
        with write_atomically(path) as stream:
            stream.write(f"{self.to_json()}\n".encode())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Calibration:
        """Read what `write` wrote.

        Raises:
            InputError: If there is no such file, or it is not by the schema.
        """
        return cls.from_json(read_text(path), where=os.fspath(path))

    @classmethod
    def from_json(cls, text: str, *, where: str = "calibration") -> Calibration:
        """Make a calibration of its JSON.

        Raises:
            InputError: If it is not valid JSON, or not by the schema that this version knows.
        """
        import json

        try:
            data = json.loads(text)
            if data["schema"] != _SCHEMA:
                raise InputError(
                    f"the schema is {data['schema']!r:.60}, wanted {_SCHEMA!r}", where=where,
                    fix="read it with the version of rankgauge that wrote it",
                )  # fmt: skip
            return cls(tuple(map(_relation_of, data["relations"])))
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"this is no calibration in JSON: {error}", where=where,
                fix="give what rankgauge answers calibrate -o wrote",
            ) from None  # fmt: skip


def calibrate(
    answers: AnswerSet | Iterable[AnswerSet],
    judge: Iterable[Verdict],
    human: Iterable[Verdict],
    *,
    claims: Callable[[AnswerRecord], ClaimSet] = sentence_claims,
    criteria: Mapping[str, str] | None = None,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> Calibration:
    """Compare the verdicts of a judge with labels of people.

    Of several labels of people on an item that of the majority counts; of several versions of a
    prompt the latest, and of its replicates the majority. Items without a majority are left out.

    Args:
        answers: The answers of one system or several.
        judge: Verdicts of one judge.
        human: Verdicts of people, on a random sample of the items.
        claims: Gives the claims of a record.
        criteria: Criteria of the user, each a name and its wording.
        level: Confidence of the intervals.
        draws: Resamples of the questions for kappa and alpha.
        seed: Of the draws.

    Raises:
        InputError: If the verdicts are of several judges, or no item has both.

    Example:
        >>> records = [AnswerRecord(f"q{n}", "Is it?", f"It is {n}.") for n in range(40)]
        >>> answers = AnswerSet("a", tuple(records))
        >>> keys = [k for k, o in items_by_key([answers], sentence_claims).items()
        ...         if o.item.relation == "abstention"]
        >>> says = lambda n: ("abstains", "answers")[n % 2]
        >>> people = [Verdict(key, says(n), "ann") for n, key in enumerate(keys)]
        >>> judge = [Verdict(key, says(n // 5 and n), "m") for n, key in enumerate(keys)]
        >>> calibrate(answers, judge, people).summary()
        'm: calibrated on 40 labels (kappa 0.90, sensitivity 1.00, specificity 0.90)'
    """
    sets = (answers,) if isinstance(answers, AnswerSet) else tuple(answers)
    items = items_by_key(sets, claims, criteria or {})
    verdicts, labels = list(judge), list(human)
    names = sorted({each.judge for each in verdicts})
    if len(names) > 1:
        raise InputError(
            f"verdicts of {len(names)} judges: {', '.join(names)[:80]}", where="calibrate",
            fix="give those of one",
        )  # fmt: skip
    by_relation: dict[str, list[_Occurrence]] = {}
    truth, _ = labels_of_people(labels)
    for key in truth:
        if key in items:
            by_relation.setdefault(relation_of(items[key].item), []).append(items[key])
    conversations = conversations_of(sets)
    found = [
        _calibrated(
            relation,
            some,
            verdicts,
            labels,
            conversations=conversations,
            level=level,
            draws=draws,
            seed=seed,
        )
        for relation, some in sorted(by_relation.items())
    ]
    found = [each for each in found if each is not None]
    if not found:
        raise InputError(
            f"no item has a label of people ({len(truth)}) and a verdict of the judge "
            f"({len(verdicts)})",
            where="calibrate", fix="give labels on items of these answers that the judge judged",
        )  # fmt: skip
    return Calibration(tuple(each for each in found if each is not None))


@dataclass(frozen=True, slots=True)
class _Occurrence:
    """An item with where it occurs.

    Attributes:
        item: The item.
        systems: The systems whose answers have it.
        first: Whether its context is the first.
        last: Whether it is the last of several.
    """

    item: Item
    systems: frozenset[str]
    first: bool
    last: bool


def items_by_key(
    answers: Iterable[AnswerSet],
    claims: Callable[[AnswerRecord], ClaimSet],
    criteria: Mapping[str, str] | None = None,
) -> dict[str, _Occurrence]:
    """Return every item of some answers by its key, with where it occurs."""
    found: dict[str, _Occurrence] = {}
    for each in answers:
        for record in each:
            last = len(record.contexts) - 1
            for item in items_of(record, claims(record), criteria or {}):
                known = found.get(item.key)
                systems = frozenset({each.system}) | (known.systems if known else frozenset())
                place = item.row if item.relation == "context-question" else item.column
                found[item.key] = _Occurrence(
                    known.item if known else item, systems, place == 0, place == last > 0
                )
    return found


def conversations_of(answers: Iterable[AnswerSet]) -> dict[str, str]:
    """Return for each question the first question of its conversation, else itself.

    Conversations with the same first turn count as one.
    """
    found: dict[str, str] = {}
    records = {record.id: record for each in answers for record in each}
    turns = {
        key: next((text for role, text in record.history if role != "system"), "")
        for key, record in records.items()
    }
    begun = set(turns.values())
    first: dict[str, str] = {}
    for key, record in records.items():
        turn = turns[key] or (record.question if record.question in begun else "")
        found[key] = first.setdefault(turn, key) if turn else key
    return found


def labels_of_people(verdicts: Iterable[Verdict]) -> tuple[dict[str, str], int]:
    """Return the label that most people give each item, and how many items have no majority."""
    given: dict[str, dict[str, str]] = {}
    for each in verdicts:
        given.setdefault(each.key, {})[each.judge] = each.label
    found = {key: _majority(labels.values()) for key, labels in given.items()}
    known = {key: label for key, label in found.items() if label is not None}
    return known, len(found) - len(known)


def _majority(labels: Iterable[str]) -> str | None:
    (label, most), *others = Counter(labels).most_common(2)
    return None if others and others[0][1] == most else label


def _calibrated(
    relation: str,
    items: Sequence[_Occurrence],
    verdicts: Sequence[Verdict],
    labels: Sequence[Verdict],
    *,
    conversations: Mapping[str, str],
    level: float,
    draws: int,
    seed: int,
) -> RelationCalibration | None:
    keys = {each.item.key for each in items}
    some = [each for each in verdicts if each.key in keys]
    if not some:
        return None
    some = [each for each in some if each.prompt == some[-1].prompt]
    repeats: dict[str, dict[int, str]] = {}
    for each in some:
        repeats.setdefault(each.key, {})[each.replicate] = each.label
    majorities = {key: _majority(labels.values()) for key, labels in repeats.items()}
    truth, _ = labels_of_people([each for each in labels if each.key in keys])
    both = [each for each in items if majorities.get(each.item.key) is not None]
    if not both:
        return None
    names = LABELS[items[0].item.relation]
    codes = {name: code for code, name in enumerate(names)}
    pairs = [(codes[str(majorities[o.item.key])], codes[truth[o.item.key]]) for o in both]
    table = np.array(pairs, dtype=np.float64)
    judged, human = table.T
    clusters = [conversations[each.item.record] for each in both]
    positive = (judged == 0, human == 0)
    count = Counter((human, judge) for judge, human in pairs)
    options: Any = {"level": level, "draws": draws, "seed": seed}
    return RelationCalibration(
        relation, some[-1].judge, some[-1].prompt, len(both), len({o.item.record for o in both}),
        len(items) - len(both),
        {
            name: {other: count[codes[name], codes[other]] for other in names} for name in names
        },
        percent_agreement(table, clusters=clusters, **options),
        max(Counter(human.tolist()).values()) / len(both),
        cohen_kappa(judged, human, clusters=clusters, **options),
        krippendorff_alpha(table, clusters=clusters, **options),
        _rate(positive[0], positive[1], clusters, level),
        _rate(~positive[0], ~positive[1], clusters, level),
        judge_gain(positive[0], positive[1] * 1.0, clusters, level=level),
        _differing(_ratings(repeats, codes, items, conversations), options),
        krippendorff_alpha(_by_person(labels, codes, keys), **options),
        _biases(both, positive[0] * 1.0 - positive[1], clusters, level),
    )  # fmt: skip


def _rate(
    hits: np.ndarray[Any, Any], among: np.ndarray[Any, Any], clusters: Sequence[str], level: float
) -> Estimate:
    """How often items among these are hits."""
    some = [cluster for cluster, there in zip(clusters, among.tolist(), strict=True) if there]
    return clustered_rate(hits[among] * 1.0, np.array(some, dtype=str), level=level)


def _biases(
    items: Sequence[_Occurrence],
    errors: np.ndarray[Any, Any],
    clusters: Sequence[str],
    level: float,
) -> tuple[Bias, ...]:
    groups = {
        name: there
        for name, there in _groups(items)
        if min(sum(there), len(there) - sum(there)) >= _FEW
    }
    strict = 1 - (1 - level) / max(1, len(groups))
    return tuple(
        Bias(name, clustered_difference(errors, there, clusters, level=strict))
        for name, there in groups.items()
    )


def _groups(items: Sequence[_Occurrence]) -> Iterator[tuple[str, list[bool]]]:
    """Groups of items that a judge may favor."""
    relation = items[0].item.relation
    subject, target = _PARTS.get(relation, ("texts", "texts"))
    for name, lengths in (
        (subject, [len(each.item.subject) for each in items]),
        (target, [len(each.item.target) for each in items]),
    ):
        middle = median(lengths)
        yield f"longer {name}", [length > middle for length in lengths]
    if relation in {"answer-context", "reference-context", "context-question"}:
        yield "the first context", [each.first for each in items]
        yield "the last context", [each.last for each in items]
    systems = sorted(frozenset().union(*(each.systems for each in items)))
    if len(systems) > 1:
        for system in systems:
            yield f"answers of {system}", [each.systems == {system} for each in items]


# What is judged, and what it is judged by.
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


def _ratings(
    repeats: Mapping[str, Mapping[int, str]],
    codes: Mapping[str, int],
    items: Sequence[_Occurrence],
    conversations: Mapping[str, str],
) -> tuple[np.ndarray[Any, Any], list[str]]:
    """The labels of each replicate, a row for each item, and the conversation of each."""
    numbers = sorted({number for labels in repeats.values() for number in labels})
    keys = [each for each in items if each.item.key in repeats]
    table = [
        [codes.get(repeats[each.item.key].get(number, ""), math.nan) for number in numbers]
        for each in keys
    ]
    clusters = [conversations[each.item.record] for each in keys]
    return np.array(table, dtype=np.float64), clusters


def _differing(
    ratings: tuple[np.ndarray[Any, Any], list[str]], options: Mapping[str, Any]
) -> Agreement:
    """The share of pairs of replicates that differ."""
    same = percent_agreement(ratings[0], clusters=ratings[1], **options)
    return Agreement(
        1 - same.value, 1 - same.high, 1 - same.low, same.level, same.units, same.ratings,
        same.reason,
    )  # fmt: skip


def _by_person(
    labels: Sequence[Verdict], codes: Mapping[str, int], keys: Collection[str]
) -> np.ndarray[Any, Any]:
    """The label of each person, a row for each item."""
    people = {name: column for column, name in enumerate(sorted({v.judge for v in labels}))}
    rows = {key: row for row, key in enumerate(sorted(keys))}
    table = np.full((len(rows), len(people)), math.nan)
    for each in labels:
        if each.key in rows:
            table[rows[each.key], people[each.judge]] = codes[each.label]
    return table


def relation_of(item: Item) -> str:
    """The relation of an item; of a criterion with its name."""
    return f"{item.relation} {item.name}".rstrip()


def _named(name: str, prompt: str) -> str:
    return f"{name} ({prompt})" if prompt else name


def _text(found: Agreement | Estimate) -> str:
    if math.isnan(found.value):
        return "undefined"
    if math.isnan(found.low):
        return f"{found.value:.3f}"
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _relation_of(data: Mapping[str, Any]) -> RelationCalibration:
    """From what `to_dict` made."""
    parts = dict(data)
    for name in ("agreement", "kappa", "alpha", "flips", "people"):
        parts[name] = Agreement(**_numbers(parts[name]))
    for name in ("sensitivity", "specificity", "gain"):
        parts[name] = Estimate(**_numbers(parts[name]))
    parts["biases"] = tuple(
        Bias(each["group"], Estimate(**_numbers(each["difference"]))) for each in parts["biases"]
    )
    return RelationCalibration(**parts)


def _numbers(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.nan if value is None else value for name, value in data.items()}


def stamp_judge(
    judge: Mapping[str, Any] | None,
    used: Mapping[str, Collection[tuple[str, str]]],
    needed: Mapping[str, Sequence[str]],
    calibration: Calibration | str | os.PathLike[str] | None,
) -> dict[str, Any]:
    """Return who judged, for which measures that judge is calibrated, and a stamp in words.

    Args:
        judge: What is known of the judge: ``name``, ``prompt``, ``person``.
        used: Name and prompt of the judges of each relation; empty if only `judge` is known.
        needed: The relations that each measure needs.
        calibration: The calibration, or its path.
    """
    found = dict(judge or {})
    names = sorted({name for each in used.values() for name, _ in each})
    name = found.setdefault("name", ", ".join(names) or "unknown judge")
    if found.get("person"):
        return found | {"calibrated": list(needed), "stamp": f"{name}, a person"}
    if calibration is None:
        return found | {"calibrated": [], "stamp": f"{name}, uncalibrated"}
    if not isinstance(calibration, Calibration):
        calibration = Calibration.read(calibration)
    given = {(name, str(found.get("prompt", "")))}
    why = {
        measure: [
            reason
            for relation in relations
            if (reason := calibration.uncalibrated(relation, used.get(relation, ()) or given))
        ]
        for measure, relations in needed.items()
    }
    good = [measure for measure, reasons in why.items() if not reasons]
    bad = [measure for measure, reasons in why.items() if reasons]
    stamp = calibration.stamp({each for name in good for each in needed[name]})
    if bad:
        scope = f" for {', '.join(bad)}" if good else ""
        stamp = f"uncalibrated{scope}: {why[bad[0]][0]}"
    return found | {"calibrated": good, "stamp": f"{name}, {stamp}"}


@dataclass(frozen=True, slots=True)
class PositionSwap:
    """Pairwise choices of a judge that saw each pair in both orders.

    Attributes:
        choices: For each pair ``first`` or ``second``, in the order of the pair, if both orders
            agree; otherwise ``tie``.
        consistent: The share of pairs on which both orders agree.
        first: The share of choices for what is shown first, ties left out: 0.5 without a bias.
    """

    choices: Mapping[Any, str]
    consistent: Estimate
    first: Estimate


def position_swap(
    forward: Mapping[Any, str], swapped: Mapping[Any, str], *, level: float = 0.95
) -> PositionSwap:
    """Compare choices between two answers with those in the other order.

    Args:
        forward: For each pair what was chosen: ``first``, ``second`` or ``tie``.
        swapped: The same with the two answers in the other order.
        level: Confidence of the intervals.

    Raises:
        InputError: If the pairs differ, or a choice is none of these.

    Example:
        >>> found = position_swap({1: "first", 2: "first"}, {1: "second", 2: "first"})
        >>> found.choices, found.consistent.value, found.first.value
        ({1: 'first', 2: 'tie'}, 0.5, 0.75)
    """
    wrong = {str(choice) for choice in (*forward.values(), *swapped.values())} - set(_CHOICES)
    if wrong or set(forward) != set(swapped) or not forward:
        raise InputError(
            f"{min(wrong)!r:.40} is no choice" if wrong else "the pairs differ or are none",
            where="position_swap",
            fix="give first, second or tie for each pair, in both orders",
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
        clustered_rate([float(same) for same in agrees.values()], level=level),
        clustered_rate([hit for hit, _ in shown], [numbers[pair] for _, pair in shown],
                       level=level),
    )  # fmt: skip

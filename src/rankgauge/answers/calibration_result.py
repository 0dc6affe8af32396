"""`Calibration`: the agreement of a judge with people, and its statement in results."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankgauge.core.arguments import object_of
from rankgauge.core.files import read_text, write_atomically
from rankgauge.core.text import Ratio, keep, many
from rankgauge.errors import InputError
from rankgauge.evaluation.answer_judge import JudgeState
from rankgauge.measures.measure import Measure
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Detail, Table
from rankgauge.stats import USABLE, Agreement, Estimate, JudgeErrors

_SCHEMA = "rankgauge/calibration/2"
_SHOWN = 2  # largest number of relations without a usable judge listed in the summary


@dataclass(frozen=True, slots=True)
class Bias:
    """Difference in leniency of a judge between a group of items and all others.

    Attributes:
        group: The items, such as ``longer claims`` or ``first context``.
        difference: Mean of (label of the judge - label of people) in the group minus that of the
            others, with 1 for positive labels. Intervals are Bonferroni-corrected for the number of
            groups.
    """

    group: str
    difference: Estimate

    @property
    def verdict(self) -> str:
        """``more lenient``, ``stricter``, or ``cannot tell``."""
        if self.difference.low > 0:
            return "more lenient"
        return "stricter" if self.difference.high < 0 else "cannot tell"


@dataclass(frozen=True, slots=True)
class RelationCalibration:
    """Agreement of a judge with people on the items of one relation.

    Positive is the first label of the relation (``supported``, ``relevant``, ...). Intervals treat
    the items of a question, and the questions of a conversation, as a cluster.

    Attributes:
        relation: The relation; for a criterion, with its name.
        judge: The name of the judge.
        prompt: The version of the prompt.
        labels: Number of items with a label of people and a verdict of the judge.
        questions: Number of questions of these items.
        unjudged: Number of items with a label of people only.
        confusion: Number of items by label of people and label of the judge.
        agreement: Share of items with the same label.
        base_rate: Agreement of a judge that always returns the most frequent label of people.
        kappa: Cohen's kappa.
        alpha: Krippendorff's alpha, nominal.
        sensitivity: Share of items labeled positive by people that the judge labels positive.
        specificity: Share of the other items that the judge does not label positive.
        gain: Sensitivity + specificity - 1: 0 for a judge that guesses.
        flips: Share of pairs of replicates that differ; undefined without replicates.
        people: Krippendorff's alpha of the people; undefined if no item has two labels.
        biases: Biases by length, position, and system.
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
    def state(self) -> JudgeState:
        """``usable`` if the lower bound of `gain` is at least 0.5, the smallest useful value.

        A corrected interval is then at most twice as wide as an uncorrected one.
        """
        if self.gain.reason:
            return "not calibrated"
        return "usable" if self.gain.low >= USABLE else "not usable"

    @property
    def reason(self) -> str:
        """The reason why the judge is not usable, or empty."""
        if self.state == "not calibrated":
            return f"{many(self.labels, 'label')}: {self.gain.reason}"
        if self.state == "usable":
            return ""
        small = f"sensitivity + specificity - 1 is {_text(self.gain)}; its lower bound must be {USABLE:g} or more"
        return f"calibrated on {many(self.labels, 'label')}, {self.warning or small}; {self._quality}"

    @property
    def warning(self) -> str:
        """A warning if the judge agrees less often than the best constant answer, or empty."""
        if self.agreement.value >= self.base_rate:
            return ""
        totals = {label: sum(row.values()) for label, row in self.confusion.items()}
        return (
            f"it agrees with people less often ({Ratio(self.agreement.value):.2f}) than the "
            f"constant answer {max(totals, key=totals.__getitem__)!r} "
            f"({Ratio(self.base_rate):.2f})"
        )

    @property
    def _quality(self) -> str:
        return (
            f"kappa {Ratio(self.kappa.value):.2f}, "
            f"sensitivity {Ratio(self.sensitivity.value):.2f}, "
            f"specificity {Ratio(self.specificity.value):.2f}"
        )

    @property
    def text(self) -> str:
        """The number of labels and the quality of the judge, as text."""
        return f"calibrated on {many(self.labels, 'label')} ({self._quality})" + (
            f", but {self.warning}" if self.warning else ""
        )


@dataclass(frozen=True, slots=True)
class MeasureCalibration:
    """Errors of a judge in the values of a measure.

    Attributes:
        measure: The measure.
        errors: The errors on the units (claims, contexts, or answers) of a measure that is a share
            of units of one kind; otherwise on its values per question.
    """

    measure: str
    errors: JudgeErrors


@dataclass(frozen=True, eq=False)
class Calibration(Result):
    """Agreement of a judge with people, for each relation. Returned by :func:`calibrate`.

    A calibration is valid only for this judge, this version of its prompt, and these relations.

    Attributes:
        relations: The calibration of each relation with labels of people.
        measures: The errors in the values of each measure.
    """

    _schema = _SCHEMA
    _attributes = "relations measures"

    relations: tuple[RelationCalibration, ...]
    measures: tuple[MeasureCalibration, ...] = ()

    def quality(self, measure: str, relations: Mapping[str, Collection[tuple[str, str]]]) -> dict[str, Any]:
        """Return the state of the judge of a measure, its reason, and its errors.

        Args:
            measure: The measure.
            relations: Name and prompt version of the judges whose verdicts were used, by relation
                that the measure needs.

        Returns:
            ``state`` and ``reason``; for a usable judge also ``warning`` (may be empty) and
            ``gain``: sensitivity + specificity - 1 with the bounds of its interval.
        """
        known = {calibration.relation: calibration for calibration in self.relations}
        for relation, used in relations.items():
            if reason := self.uncalibrated(relation, used):
                return {"state": "not calibrated", "reason": reason}
        worst = min((known[name] for name in relations), key=lambda calibration: calibration.gain.low)
        if worst.state != "usable":
            return {"state": worst.state, "reason": worst.reason}
        errors = self.errors(measure)
        if errors is None or errors.reason:
            why = "no question has all labels" if errors is None else errors.reason
            return {"state": "not calibrated", "reason": f"{measure}: {why}"}
        gain = errors.gain
        if gain.low < USABLE:
            why = (
                f"by {many(gain.count, 'label')} for {measure}, the judge shrinks differences to "
                f"{_text(gain)} of their size; the lower bound must be {USABLE:g} or more"
            )
            return {"state": "not usable", "reason": why}
        return {"state": "usable", "reason": "", "warning": worst.warning, "gain": [gain.value, gain.low, gain.high]}

    def errors(self, measure: str | Measure) -> JudgeErrors | None:
        """Return the errors of the judge in the values of a measure, if known."""
        names = {str(measure), str(measure).partition("(")[0]}
        return next((calibration.errors for calibration in self.measures if calibration.measure in names), None)

    def uncalibrated(self, relation: str, used: Collection[tuple[str, str]]) -> str:
        """Return the reason why the judge of a relation is not calibrated, or empty.

        Args:
            relation: The relation.
            used: Name and prompt version of each judge whose verdicts were used.
        """
        calibration = {candidate.relation: candidate for candidate in self.relations}.get(relation)
        if calibration is None:
            return f"no labels of people on {relation}"
        for name, prompt in sorted(used):
            if (name, prompt) != (calibration.judge, calibration.prompt):
                judge, calibrated = _named(name, prompt), _named(calibration.judge, calibration.prompt)
                return f"the calibration is for {calibrated}, the verdicts are by {judge}"
        return calibration.reason if calibration.state == "not calibrated" else ""

    def table(self) -> Table:
        """Return one row for each relation; intervals and notes on detected biases are details."""
        rows = tuple(
            (
                relation.relation,
                relation.labels,
                relation.agreement.value,
                relation.base_rate,
                _text(relation.kappa),
                _text(relation.alpha),
                relation.sensitivity.value,
                _text(relation.sensitivity),
                relation.specificity.value,
                _text(relation.specificity),
            )
            for relation in self.relations
        )
        return Table(
            columns=(
                "relation",
                "labels",
                "agreement",
                Detail("base rate"),
                "kappa (95% CI)",
                Detail("alpha (95% CI)"),
                "sens.",
                Detail("sensitivity (95% CI)"),
                "spec.",
                Detail("specificity (95% CI)"),
            ),
            rows=rows,
            title=f"Calibration of {self._judges()}",
            digits=3,
            notes=tuple(self._notes()),
        )

    def _judges(self) -> str:
        return ", ".join(dict.fromkeys(_named(calibration.judge, calibration.prompt) for calibration in self.relations))

    def _notes(self) -> Iterator[str]:
        yield Detail(
            "95% intervals, with questions (or conversations) as clusters; base rate: agreement of "
            "a judge that always gives the most frequent label"
        )
        for state in dict.fromkeys(relation.state for relation in self.relations if relation.state != "usable"):
            names = ", ".join(relation.relation for relation in self.relations if relation.state == state)
            yield f"WARNING: the judge is {state} for {names}"
        for relation in self.relations:
            name, problem = relation.relation, relation.reason or relation.warning
            unsure = ", ".join(bias.group for bias in relation.biases if bias.verdict == "cannot tell")
            yield from map(
                Detail,
                keep(
                    problem and f"WARNING: {name}: {problem}",
                    relation.unjudged
                    and f"{name}: the judge has no verdict on {many(relation.unjudged, 'item')} with a label",
                    relation.flips.defined
                    and f"{name}: {Ratio(relation.flips.value):.1%} of pairs of replicates differ",
                    relation.people.defined and f"{name}: alpha of the people {_text(relation.people)}",
                    *(
                        f"{name}: {bias.verdict} with {bias.group}, {_text(bias.difference)}"
                        for bias in relation.biases
                        if bias.verdict != "cannot tell"
                    ),
                    unsure and f"{name}: cannot tell whether it is biased by {unsure}",
                ),
            )

    def data_table(self) -> Table:
        """Return one row for each relation and statistic, with its interval."""
        names = ("agreement", "kappa", "alpha", "sensitivity", "specificity", "gain")
        rows = (
            (relation.relation, name, value.value, value.low, value.high, value.reason or verdict)
            for relation in self.relations
            for name, value, verdict in (
                *((name, getattr(relation, name), "") for name in names),
                *((f"bias: {bias.group}", bias.difference, bias.verdict) for bias in relation.biases),
            )
        )
        return Table(("relation", "number", "value", "low", "high", "note"), tuple(rows))

    def summary(self) -> str:
        """Return the stamp, and the relations without calibration."""
        bad = [relation for relation in self.relations if relation.state != "usable"]
        good = {relation.relation for relation in self.relations} - {relation.relation for relation in bad}
        unusable = (f"{relation.relation} {relation.state}: {relation.reason}" for relation in bad[:_SHOWN])
        parts = keep(good and self.stamp(good), *unusable)
        return f"{self._judges()[:99]}: {'; '.join(parts)}"

    def stamp(self, relations: Collection[str]) -> str:
        """Return the number of labels of the calibration and its quality as a sentence.

        Args:
            relations: The relations to include.
        """
        some = [calibration for calibration in self.relations if calibration.relation in relations]
        if len(some) == 1:
            return some[0].text
        labels = many(sum(calibration.labels for calibration in some), "label")
        worst = min(some, key=lambda calibration: calibration.gain.value, default=None)
        if worst is None:
            return "calibrated on 0 labels"
        return f"calibrated on {labels}, worst on {worst.relation} ({worst.text.split('(', 1)[1]}"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the calibration as JSON."""
        with write_atomically(path) as stream:
            stream.write(f"{self.to_json()}\n".encode())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Calibration:
        """Read a calibration written by `write`.

        Raises:
            InputError: If the file does not exist or violates the schema.
        """
        return cls.from_json(read_text(path), where=os.fspath(path))

    @classmethod
    def from_json(cls, text: str, *, where: str = "calibration") -> Calibration:
        """Create a calibration from its JSON.

        Raises:
            InputError: If the text is not valid JSON or violates the schema of this version.
        """
        import json

        try:
            data = json.loads(text)
            if data["schema"] != _SCHEMA:
                raise InputError(
                    f"the schema is {data['schema']!r:.60}, expected {_SCHEMA!r}",
                    where=where,
                    fix="calibrate the judge again: rankgauge answers calibrate -o",
                )
            return cls(
                object_of(tuple[RelationCalibration, ...], data["relations"]),
                object_of(tuple[MeasureCalibration, ...], data["measures"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"not a calibration in JSON: {error}",
                where=where,
                fix="use a file written by rankgauge answers calibrate -o",
            ) from None


def _named(name: str, prompt: str) -> str:
    return f"{name} ({prompt})" if prompt else name


def _text(estimate: Agreement | Estimate) -> str:
    if math.isnan(estimate.value):
        return "undefined"
    if math.isnan(estimate.low):
        return f"{Ratio(estimate.value):.3f}"
    return f"{Ratio(estimate.value):.3f} [{Ratio(estimate.low):.3f}, {Ratio(estimate.high):.3f}]"


def stamp_judge(
    judge: Mapping[str, Any] | None,
    used: Mapping[str, Collection[tuple[str, str]]],
    needed: Mapping[str, Sequence[str]],
    calibration: Calibration | None,
) -> dict[str, Any]:
    """Return the judge, its state for each measure, and the stamp as a sentence.

    Args:
        judge: The known properties of the judge: ``name``, ``prompt``, ``person``.
        used: Name and prompt of the judges of each relation; empty if only `judge` is known.
        needed: The relations needed by each measure.
        calibration: The calibration.
    """
    properties = dict(judge or {})
    names = sorted({name for pairs in used.values() for name, _ in pairs})
    name = properties.setdefault("name", ", ".join(names) or "unknown judge")
    if properties.get("person"):
        return properties | {"stamp": f"{name}, a person"}
    default = {(name, str(properties.get("prompt", "")))}
    known: dict[str, dict[str, Any]] = {measure: {"state": "not calibrated", "reason": ""} for measure in needed}
    if calibration is not None:
        for measure, relations in needed.items():
            judges = {relation: used.get(relation, ()) or default for relation in relations}
            known[measure] = calibration.quality(measure, judges)
    bad = [measure for measure, about in known.items() if about["state"] != "usable"]
    if bad or calibration is None:
        first = known[bad[0]] if bad else {"state": "not calibrated", "reason": ""}
        alike = [measure for measure in bad if known[measure]["state"] == first["state"]]
        scope = f" for {', '.join(alike)}" if len(alike) < len(known) else ""
        why = f": {first['reason']}" if first["reason"] else ""
        stamp = f"{first['state']}{scope}{why}"
    else:
        stamp = calibration.stamp({relation for relations in needed.values() for relation in relations})
    return properties | {"measures": known, "stamp": f"{name}, {stamp}"}

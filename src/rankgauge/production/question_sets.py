"""`QuestionSet`: the questions of an evaluation, with their origins and weights."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from typing import Any, TypeAlias

from rankgauge.core.files import write_atomically
from rankgauge.core.text import keep, many
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.lines import decoded, numbered_lines
from rankgauge.formats.questions import named_rows
from rankgauge.formats.texts import IDS, QUESTIONS, TextSource
from rankgauge.rendering import Result, Table

#: Parts of a question set and their purpose.
PARTS = {
    "core": "frozen: stays in every version, for trends",
    "rotating": "replaced by each new sample: represents the traffic of today",
    "sentinel": "known failures: stays in every version",
}
_TEXTS = (*QUESTIONS, "text", "user_query")
_SHOWN, _WIDTH = 5, 55  # questions listed per change, characters per question
_COUNTS = ("count", "frequency", "freq")
# Identifier, text, and number of times asked.
Asked: TypeAlias = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class EvaluationQuestion:
    """A question of an evaluation set: one line of its file.

    Attributes:
        id: The identifier.
        text: The question.
        origin: ``log``, ``expert``, ``generated``, or another origin.
        part: ``core`` (in every version, for trends), ``rotating`` (replaced by each new sample),
            or ``sentinel`` (a known failure, in every version).
        date: The ISO date on which it was added.
        version: The version of the set.
        frequency: The number of times it was asked in the log, including near-duplicates; None if
            unknown.
        probability: The inclusion probability; None if it was not drawn.
        weight: The number of searches that it represents: frequency / probability. Means with these
            weights are weighted by traffic (Hájek 1971).
        query_weight: The number of distinct questions that it represents: 1 / probability.
        stratum: ``head``, ``torso``, or ``tail`` of the log; empty without strata.
        model: The model that wrote a generated question.
        prompt: The name and version of the prompt.
        document: The document from which it was generated.
    """

    id: str
    text: str
    origin: str = "expert"
    part: str = "rotating"
    date: str = ""
    version: int = 1
    frequency: int | None = None
    probability: float | None = None
    weight: float | None = None
    query_weight: float | None = None
    stratum: str = ""
    model: str = ""
    prompt: str = ""
    document: str = ""


_NUMBERS = {"version": int, "frequency": int, "probability": float, "weight": float, "query_weight": float}
_NAMES = tuple(part.name for part in fields(EvaluationQuestion))


@dataclass(frozen=True)
class QuestionSet(Result):
    """The questions of an evaluation: a frozen core, a rotating part, and sentinels.

    Attributes:
        questions: The questions.

    Example:
        >>> questions = QuestionSet((EvaluationQuestion("q1", "opening hours", part="core"),))
        >>> questions.part("core")[0].text, questions.version
        ('opening hours', 1)
    """

    _attributes = "version questions"

    questions: tuple[EvaluationQuestion, ...] = ()

    def __post_init__(self) -> None:
        """Reject duplicate identifiers and unknown parts."""
        seen: set[str] = set()
        for question in self.questions:
            what = f"id {question.id!r:.60} occurs twice" if question.id in seen else ""
            what = what or (f"part {question.part!r:.60} is unknown" if question.part not in PARTS else "")
            if what or not question.text.strip():
                raise InputError(
                    what or f"question {question.id!r:.60} has no text",
                    where="questions",
                    fix=f"give each question a unique id, a text, and a part ({', '.join(PARTS)})",
                )
            seen.add(question.id)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> QuestionSet:
        """Read a set from JSON lines, CSV, or TSV with columns for the ``id`` and the question.

        Other columns are attributes of `EvaluationQuestion`; missing columns have default values.

        Args:
            path: The file.

        Raises:
            FormatError: If a line cannot be read.
            InputError: If an id is duplicated.
        """
        source = TextSource.of(path)
        questions = [_question(row, source.name, line) for line, row in named_rows(source, None)]
        if not questions:
            raise InputError(
                "there are no questions",
                where=str(path),
                fix='use JSON lines such as {"id": "q1", "text": "opening hours"}',
            )
        return cls(tuple(questions))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the set as JSON lines that only the owner can read: users may name people."""
        lines = [
            json.dumps({k: v for k, v in asdict(question).items() if v not in {None, ""}})
            for question in self.questions
        ]
        with write_atomically(path, private=True) as stream:
            stream.write("".join(f"{line}\n" for line in lines).encode())

    @property
    def version(self) -> int:
        """Version of the set, incremented by each refresh; 0 if the set is empty."""
        return max((question.version for question in self.questions), default=0)

    def part(self, *names: str) -> tuple[EvaluationQuestion, ...]:
        """Return the questions of these parts."""
        return tuple(question for question in self.questions if question.part in names)

    def refresh(
        self,
        drawn: Iterable[EvaluationQuestion],
        *,
        part: str = "rotating",
        sentinels: Iterable[EvaluationQuestion] = (),
        frequencies: Mapping[str, int] | None = None,
    ) -> SetRefresh:
        """Return the next version of the set and its changes.

        The drawn questions replace the rotating part; core and sentinels are kept. A core is drawn
        only once. If only dates would change, the set is returned unchanged.

        Weights treat the set as a sample of the new log: each kept question is in the set with
        probability 1 and represents only its own searches (weight = frequency in the new log, 0 if
        it was not asked), and the drawn questions represent all others.

        Args:
            drawn: A sample of the log that excludes the kept questions.
            part: ``rotating`` or ``core``.
            sentinels: Known failures to add.
            frequencies: The number of times each kept question was asked in the log, by id; if
                None, their weights are kept.

        Raises:
            InputError: If the core would change.
        """
        if part == "core" and self.part("core"):
            raise InputError(
                f"the core has {many(len(self.part('core')), 'question')} and is frozen",
                where="part",
                fix="draw into the rotating part, or start a new set",
            )
        staying = [
            *self.part("core", "sentinel", *(("rotating",) if part == "core" else ())),
            *(replace(question, part="sentinel") for question in sentinels),
        ]
        if frequencies is not None:
            # Their inclusion probability is 1.
            counts = [frequencies.get(question.id, 0) for question in staying]
            staying = [
                replace(question, frequency=count, weight=float(count), query_weight=float(count > 0))
                for question, count in zip(staying, counts, strict=True)
            ]
        after: dict[str, EvaluationQuestion] = {}
        for question in (*staying, *(replace(question, part=part) for question in drawn)):
            after.setdefault(question.id, replace(question, version=self.version + 1))
        undated = [replace(question, version=0, date="") for question in self.questions]
        same = [replace(question, version=0, date="") for question in after.values()] == undated
        return SetRefresh(self, self if same else QuestionSet(tuple(after.values())))

    def table(self) -> Table:
        """Return one row for each part."""
        rows = [
            (name, len(of_part), sum(question.weight or 0.0 for question in of_part), PARTS[name])
            for name in PARTS
            if (of_part := self.part(name))
        ]
        return Table(
            ("part", "questions", "searches represented", "is"),
            tuple(rows),
            title=f"question set, version {self.version}",
        )

    def summary(self) -> str:
        """Return the number of questions of each part."""
        parts = [f"{len(self.part(name))} {name}" for name in PARTS if self.part(name)]
        return f"version {self.version}: {many(len(self.questions), 'question')}" + (
            f" ({', '.join(parts)})" if parts else ""
        )


@dataclass(frozen=True)
class SetRefresh(Result):
    """Question set before and after a refresh.

    Attributes:
        before: The previous version.
        after: The next version; equal to `before` if nothing changed.
    """

    _attributes = "added kept retired before=before.version after=after.version"

    before: QuestionSet
    after: QuestionSet

    @property
    def added(self) -> tuple[EvaluationQuestion, ...]:
        """New questions."""
        known = {question.id for question in self.before.questions}
        return tuple(question for question in self.after.questions if question.id not in known)

    @property
    def retired(self) -> tuple[EvaluationQuestion, ...]:
        """Questions that are no longer in the set."""
        known = {question.id for question in self.after.questions}
        return tuple(question for question in self.before.questions if question.id not in known)

    @property
    def kept(self) -> int:
        """Number of questions in both versions."""
        return len(self.after.questions) - len(self.added)

    def table(self) -> Table:
        """Return one row for each added or retired question, and the totals."""
        rows = (*_first(self.added, "added"), *_first(self.retired, "retired"))
        rest = len(self.added) + len(self.retired) - len(rows)
        after = "" if self.after is self.before else f" → {self.after.version}"
        return Table(
            ("change", "part", "question"),
            rows,
            title=f"question set, version {self.before.version}{after}",
            notes=keep(self.summary(), rest and f"changes not shown: {rest}; --as json lists all of them"),
        )

    def summary(self) -> str:
        """Return the numbers of added, kept, and retired questions."""
        if self.after is self.before:
            return f"nothing changed, still {self.after.summary()}"
        return f"{len(self.added)} added, {self.kept} kept, {len(self.retired)} retired; {self.after.summary()}"


def _first(questions: Iterable[EvaluationQuestion], change: str) -> Iterator[tuple[str, str, str]]:
    for question in islice(questions, _SHOWN):
        text = question.text if len(question.text) <= _WIDTH else f"{question.text[:_WIDTH]}…"
        yield change, question.part, text


def _question(row: Mapping[str, Any], name: str, line: int) -> EvaluationQuestion:
    own = next((row[column] for column in IDS if column in row), None)
    text = next((row[column] for column in _TEXTS if column in row), None)
    if own in {None, ""} or not isinstance(text, str) or not text.strip():
        raise FormatError(
            f"the line has no id or no question: its columns are {', '.join(row)}",
            path=name,
            line=line,
            fix='use {"id": "q1", "text": "opening hours"}',
        )
    values: dict[str, Any] = {
        key: row[key] if key in _NUMBERS else str(row[key]) for key in _NAMES if row.get(key) not in {None, ""}
    }
    for key, kind in _NUMBERS.items():
        if key in values:
            try:
                values[key] = kind(row[key])
            except (TypeError, ValueError):
                values[key] = -1
            if not 0 <= values[key] < float("inf"):
                raise FormatError(f"got {row[key]!r:.40} for {key}", path=name, line=line, fix="use a number from 0")
    return EvaluationQuestion(**values | {"id": str(own), "text": " ".join(text.split())})


def asked_rows(source: TextSource, without_columns: Callable[[TextSource], Iterable[Asked]]) -> Iterator[Asked]:
    """Yield the questions of a table; those of a file without columns are read by another function."""
    number = 0
    for number, (line, row) in enumerate(named_rows(source, None), start=1):
        text = next((row[name] for name in (*_TEXTS, "title") if name in row), None)
        if not isinstance(text, str):
            raise FormatError(
                f"there is no column for the question: the columns are {', '.join(row)}",
                path=source.name,
                line=line,
                fix=f"name it {' or '.join(_TEXTS[:3])}",
            )
        cell = next((row[column] for column in _COUNTS if column in row), 1)
        try:
            count = int(str(cell))
        except ValueError:
            count = -1
        if count < 0:
            raise FormatError(
                f"got {cell!r:.40}, expected a count",
                path=source.name,
                line=line,
                fix="use a whole number: how often the question was asked",
            )
        yield next((str(row[column]) for column in IDS if row.get(column)), f"q{number}"), text, count
    if not number:
        yield from without_columns(source)


def asked_lines(source: TextSource) -> Iterator[Asked]:
    """Yield the lines of a text, each of which is a question."""
    with source.open() as stream:
        for number, line in numbered_lines(stream, source.name):
            yield f"q{number}", decoded(line, source.name, number), 1

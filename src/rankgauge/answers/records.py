"""Answers to evaluate: a question, its retrieved contexts, the answer, and references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rankgauge.core.lazy import registered
from rankgauge.errors import InputError


@dataclass(frozen=True, slots=True)
class Context:
    """Passage given to the model: identifier and text."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Citation:
    """Citation in an answer.

    Attributes:
        context: The identifier of the cited context, which may not exist.
        text: The sentence of the answer with the citation, or empty.
    """

    context: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """Question with the contexts and the answer of one system.

    Attributes:
        id: The identifier of the question, the same for all systems.
        question: The question.
        answer: The answer; None if the system was not asked for one.
        contexts: The passages given to the model, in order.
        reference: The reference answer, or None.
        citations: The citations of the answer.
        history: Role and text of the turns before the question.
        answerable: Whether the collection can answer the question; None if unknown.
        gold: Identifiers of documents known to answer the question.
        ranking: Identifiers of all retrieved documents, best first, if more documents than the
            contexts were retrieved.
        group: The group of the question, such as a topic.
        alternatives: Other correct reference answers.
    """

    id: str
    question: str
    answer: str | None = None
    contexts: tuple[Context, ...] = ()
    reference: str | None = None
    citations: tuple[Citation, ...] = ()
    history: tuple[tuple[str, str], ...] = ()
    answerable: bool | None = None
    gold: tuple[str, ...] = ()
    ranking: tuple[str, ...] = ()
    group: str = ""
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True)
class AnswerSet:
    """Answers of one system.

    Attributes:
        system: The name of the system.
        records: The records, one per question. Blank and missing answers become empty answers,
            which are abstentions; if no record has an answer, they become None.
        settings: Settings of the system, such as the versions of ``retrieval``, ``prompt``, and
            ``model``.
        notes: Notes from reading.
    """

    system: str
    records: tuple[AnswerRecord, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Reject duplicate identifiers, and give all blank answers the same value."""
        answered = any((record.answer or "").strip() for record in self.records)
        blank = "" if answered else None
        records = tuple(
            each if each.answer == blank or (each.answer or "").strip() else replace(each, answer=blank)
            for each in self.records
        )
        object.__setattr__(self, "records", records)
        seen: set[str] = set()
        for number, record in enumerate(self.records, 1):
            if record.id in seen:
                raise InputError(
                    f"question {record.id!r:.60} occurs twice",
                    where=f"record {number}",
                    fix="give each question a unique identifier",
                )
            seen.add(record.id)

    def __iter__(self) -> Iterator[AnswerRecord]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    @classmethod
    def of(
        cls, source: Any, system: str | None = None, *, reference: Any = None, texts: Mapping[str, str] | None = None
    ) -> AnswerSet:
        """Read the answers of one system from any supported source.

        Args:
            source: As for :func:`read_answers`; a set is returned unchanged.
            system: The system to read, or the name of the system if the records have none.
            reference: Questions with reference answers, as for :func:`read_answers`.
            texts: The text of each context identifier, for contexts given by identifier only.

        Raises:
            InputError: If a record cannot be read, or the source has several systems.

        Example:
            >>> AnswerSet.of([{"question": "How high?", "answer": "5 m"}], "a").records[0].answer
            '5 m'
        """
        if isinstance(source, AnswerSet) and reference is None:
            return source
        sets: tuple[AnswerSet, ...] = registered("read_answers")(
            source, system=system, reference=reference, texts=texts
        )
        if len(sets) > 1:
            names = ", ".join(each.system for each in sets)
            raise InputError(
                f"there are answers of {len(sets)} systems: {names}",
                where="system",
                fix="name one: system=..., or read all: read_answers(...)",
            )
        return sets[0]

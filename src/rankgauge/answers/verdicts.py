"""Data of answer measures: answers to evaluate, claims, items to judge, and verdicts.

An answer is a record of a question, its retrieved contexts, the answer, and references.

An item is one small question, such as "does this context support this claim?". Its key is a hash
of its texts, so that equal items of several systems are judged once. A verdict is the reply of a
judge: a person, a language model, a local model, or a rule. An item without one has a missing
verdict.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rankgauge.core.abstention import abstains, split_sentences
from rankgauge.core.lazy import registered
from rankgauge.errors import InputError

if TYPE_CHECKING:
    from rankgauge.store import History


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


_WORD = re.compile(r"\w+")
_SUPPORT = ("supported", "contradicted", "not stated")
_RELEVANCE = ("relevant", "not relevant")
# The relations and their labels; the first label of each is the positive one.
LABELS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "answer-context": _SUPPORT,
        "answer-reference": _SUPPORT,
        "answer-question": _RELEVANCE,
        "reference-context": _SUPPORT,
        "reference-answer": _SUPPORT,
        "nugget-answer": ("supported", "partly supported", "not stated"),
        "citation-context": _SUPPORT,
        "context-question": _RELEVANCE,
        "abstention": ("abstains", "answers"),
        "answerability": ("answerable", "not answerable"),
        "criterion": ("met", "not met"),
    }
)
_ANSWERABILITY = frozenset(LABELS["answerability"])


@dataclass(frozen=True, slots=True)
class Claim:
    """Statement that can be checked on its own.

    Attributes:
        text: The statement.
        vital: For a nugget, whether a good answer must contain it.
    """

    text: str
    vital: bool = True


@dataclass(frozen=True, slots=True)
class ClaimSet:
    """Claims of a question: of the answer and the reference, and nuggets.

    Attributes:
        answer: The claims of the answer; None if not extracted.
        reference: The claims of the reference answer; None if not extracted.
        nuggets: The nuggets of the reference answer; None if not extracted.
    """

    answer: tuple[Claim, ...] | None = None
    reference: tuple[Claim, ...] | None = None
    nuggets: tuple[Claim, ...] | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """Single question for a judge, such as whether a context supports a claim.

    Attributes:
        relation: One of `LABELS`.
        record: The identifier of the question.
        subject: The claim, context, or answer to judge.
        target: The text against which the subject is judged.
        row: The number of the claim (or context, or citation) in its record, from 0.
        column: The number of the context, from 0; 0 for a single target.
        name: The name of a criterion, else empty.
        history: Role and text of the turns before the question, if the question is needed.
        passages: For answerability, the contexts of the record, which are documents of the
            collection.
    """

    relation: str
    record: str
    subject: str
    target: str
    row: int = 0
    column: int = 0
    name: str = ""
    history: tuple[tuple[str, str], ...] = ()
    passages: tuple[Context, ...] = ()

    @property
    def relation_name(self) -> str:
        """The relation, with the name of the criterion if it has one."""
        return f"{self.relation} {self.name}".rstrip()

    @property
    def key(self) -> str:
        """The hash of relation, texts, and history; items with the same key share verdicts."""
        # Written out for speed: an evaluation computes a hundred thousand keys.
        text = (
            f"{len(self.relation)}:{self.relation}{len(self.name)}:{self.name}"
            f"{len(self.subject)}:{self.subject}{len(self.target)}:{self.target}"
        )
        for turn in self.history:
            text += "".join(f"{len(part)}:{part}" for part in turn)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict of a judge on an item.

    Attributes:
        key: The key of the item.
        label: One of the labels of its relation.
        judge: The name of the person, model, or rule.
        prompt: The version of the prompt; empty for people who saw no verdict of another judge.
        quote: The deciding passage of the target, if given by the judge.
        reason: The reason as text.
        quoted: Whether the quote occurs in the target; None if none is needed.
        replicate: The number of the repetition, from 0.
        time: ISO timestamp (UTC) of the verdict.
    """

    key: str
    label: str
    judge: str
    prompt: str = ""
    quote: str = ""
    reason: str = ""
    quoted: bool | None = None
    replicate: int = 0
    time: str = ""


def items_of(
    record: AnswerRecord, claims: ClaimSet, criteria: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Item]:
    """Yield all items of a record that can be judged, in a fixed order.

    Args:
        record: The record.
        claims: Its claims.
        criteria: Criteria of the user, as wordings by name.
    """
    texts = [context.text for context in record.contexts]
    reference = [] if record.reference is None else [record.reference]
    answer = [] if record.answer is None else [record.answer]
    for relation, some, targets in (
        ("answer-context", claims.answer, texts),
        ("answer-reference", claims.answer, reference),
        ("answer-question", claims.answer, [record.question]),
        ("reference-context", claims.reference, texts),
        ("reference-answer", claims.reference, answer),
        ("nugget-answer", claims.nuggets, answer),
    ):
        history = record.history if relation == "answer-question" else ()
        for row, claim in enumerate(some or ()):
            for column, target in enumerate(targets):
                yield Item(relation, record.id, claim.text, target, row, column, history=history)
    yield from _other_items(record, criteria)


def _other_items(record: AnswerRecord, criteria: Mapping[str, str]) -> Iterator[Item]:
    known: dict[str, str] = {}
    for context in record.contexts:  # passages of one document share its identifier
        before = f"{known[context.id]}\n\n" if context.id in known else ""
        known[context.id] = before + context.text
    for row, citation in enumerate(record.citations):
        if citation.context in known:
            yield Item("citation-context", record.id, citation.text, known[citation.context], row)
    for row, context in enumerate(record.contexts):
        yield Item("context-question", record.id, context.text, record.question, row, history=record.history)
    if record.answerable is None:
        yield Item("answerability", record.id, record.question, "", history=record.history, passages=record.contexts)
    if record.answer is not None:
        yield Item("abstention", record.id, record.answer, record.question, history=record.history)
        for name, wording in criteria.items():
            asked = f"{record.question}\n\n{record.answer}"
            yield Item("criterion", record.id, asked, wording, name=name, history=record.history)


def counted_labels(verdicts: Iterable[Verdict]) -> dict[str, str]:
    """Return the counted label for each key.

    If an item has verdicts of several judges or versions of a prompt, those of the last one count;
    for answerability, verdicts of people (without a prompt) take precedence. The last verdict of
    each replicate counts, and over replicates the most frequent label. If two labels are equally
    frequent, the verdict is missing.

    Example:
        >>> labels = ["supported", "not stated", "supported"]
        >>> counted_labels(Verdict("k", label, "m", replicate=n) for n, label in enumerate(labels))
        {'k': 'supported'}
    """
    last: dict[str, tuple[str, str, str]] = {}
    votes: dict[tuple[str, str, str], dict[int, str]] = {}
    for verdict in verdicts:
        key, group = verdict.key, (verdict.key, verdict.judge, verdict.prompt)
        if not (verdict.prompt and verdict.label in _ANSWERABILITY and key in last and not last[key][2]):
            last[key] = group
        votes.setdefault(group, {})[verdict.replicate] = verdict.label
    counted = {}
    for key, group in last.items():
        labels = votes[group].values()
        if len(votes[group]) == 1:  # the usual case
            counted[key] = next(iter(labels))
            continue
        (label, most), (_, next_most), *_ = [*Counter(labels).most_common(2), ("", 0)]
        if most > next_most:
            counted[key] = label
    return counted


def quote_occurs(quote: str, text: str) -> bool:
    """Return whether a quote occurs in a text, ignoring case, spaces, and punctuation.

    Example:
        >>> quote_occurs("The Nile, Africa's longest river", "the Nile: Africa's longest  river.")
        True
    """
    wanted = _words(quote)
    return bool(wanted.strip()) and wanted in _words(text)


def _words(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return f" {' '.join(_WORD.findall(plain))} "


_CITATION = re.compile(r"(?<!\s)\s*+\[(\d+(?:\s*,\s*\d+)*)\]")
_MOST_DIGITS = 9  # digits of a citation number


def without_marks(sentence: str) -> str:
    """Return a sentence without citation marks such as ``[1, 2]``.

    Example:
        >>> without_marks("It rains [2].")
        'It rains.'
    """
    return _CITATION.sub("", sentence)


def cited(answer: str, contexts: Sequence[Context]) -> tuple[Citation, ...]:
    """Return the citations ``[1]``, ``[2, 3]`` of an answer by context numbers from 1.

    If no context has the cited number, the citation keeps the number as its context.

    Example:
        >>> cited("It rains [2].", [Context("a", ""), Context("b", "")])
        (Citation(context='b', text='It rains.'),)
    """
    citations = []
    for sentence in split_sentences(answer):
        text = without_marks(sentence)
        for mark in _CITATION.finditer(sentence):
            for digits in map(str.strip, mark.group(1).split(",")):
                number = int(digits) if len(digits) <= _MOST_DIGITS else 0
                known = 1 <= number <= len(contexts)
                context = contexts[number - 1].id if known else f"[{number or digits}]"
                citations.append(Citation(context, text))
    return tuple(citations)


def sentence_claims(record: AnswerRecord) -> ClaimSet:
    """Return the sentences of answer and reference as claims; abstentions have none."""

    def claims(text: str | None) -> tuple[Claim, ...] | None:
        if text is None:
            return None
        if abstains(text):
            return ()
        return tuple(Claim(without_marks(sentence)) for sentence in split_sentences(text))

    reference = claims(record.reference)
    return ClaimSet(claims(record.answer), reference, reference)


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
        claims: Function that returns the claims of a record; by default its sentences.
        criteria: Criteria of the user, as wordings by name.
    """

    system: str
    records: tuple[AnswerRecord, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    claims: Callable[[AnswerRecord], ClaimSet] = sentence_claims
    criteria: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject duplicate identifiers, and give all blank answers the same value."""
        answered = any((record.answer or "").strip() for record in self.records)
        blank = "" if answered else None
        records = tuple(
            record if record.answer == blank or (record.answer or "").strip() else replace(record, answer=blank)
            for record in self.records
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

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return the fields of each record, by question, to be saved with an evaluation."""
        return {record.id: asdict(record) for record in self.records}

    @classmethod
    def saved(cls, history: History, which: int | str) -> AnswerSet:
        """Return the answers saved with an evaluation.

        Raises:
            InputError: If the evaluation does not exist, or was saved without answers.
        """
        records = []
        for row in history.answers(which).values():
            parts: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in row.items()}
            parts["contexts"] = tuple(Context(**context) for context in parts["contexts"])
            parts["citations"] = tuple(Citation(**citation) for citation in parts["citations"])
            parts["history"] = tuple((role, text) for role, text in parts["history"])
            records.append(AnswerRecord(**parts))
        entry = history.entry(which)
        return cls(entry.run, tuple(records), entry.run_settings)

    def items(self) -> Iterator[Item]:
        """Yield all items of the records that can be judged."""
        for record in self.records:
            yield from items_of(record, self.claims(record), self.criteria)

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
            raise InputError(
                f"there are answers of {len(sets)} systems: {', '.join(answer_set.system for answer_set in sets)}",
                where="system",
                fix="name one: system=..., or read all: read_answers(...)",
            )
        return sets[0]


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

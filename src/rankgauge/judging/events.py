"""Data of a judging project: questions, candidates, presentations, choices, and answers of systems."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from rankgauge.core.arguments import choice as one_of, integer, number
from rankgauge.core.text import many
from rankgauge.errors import InputError

# Outcomes by mode. The latest choice of a presentation counts.
OUTCOMES = {
    "choice": ("chosen", "none", "cannot tell", "later", "undone"),
    "graded": ("graded", "cannot tell", "later", "undone"),
    "ranking": ("chosen", "none", "cannot tell", "later", "undone"),
    "yes-no": ("chosen", "none", "cannot tell", "later", "undone"),
    # For imported votes: their files do not say whether both answers were good or both bad.
    "answers": ("chosen", "both good", "both bad", "tie", "cannot tell", "later", "undone"),
}
ROLES = ("judge", "reader", "lead", "admin")
KINDS = ("person", "model", "application")
IN_SIGHT = "in sight"  # status of a grade that is given beside systems and ranks
_NOT_COUNTED = {"repeat": "repeat", "gold": "gold", "comparison": IN_SIGHT}  # statuses by purpose
_SHOWN = {"choice": (2, 3), "graded": (1, 1), "ranking": (2, 20), "yes-no": (1, 1)}
_DEFAULT_SHOWN = {"choice": 3, "graded": 1, "ranking": 5, "yes-no": 1}
_MOST_TEXT = 10_000  # characters of a comment
_VIEWS = 6  # views per document for useful grades: docs/explain/judging-simulations.md
_REASONS = (("c", "correctness"), ("d", "information density"), ("m", "more detail"))


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a judging project.

    Each change creates a new version; existing presentations keep their mode.

    Attributes:
        title: The name of the project, displayed on every page.
        mode: ``choice`` (the best of 2 or 3 documents, or none), ``graded``, ``ranking`` (the best
            few, in order), or ``yes-no``.
        shown: The number of documents in a task; if None, the default of the mode.
        grades: The labels of the grades 0, 1, ... for ``graded``.
        places: The number of documents to rank in ``ranking`` mode; if None, all documents shown.
        judges: The number of people who judge each overlap set.
        overlap: The share of tasks assigned to `judges` people, from 0 to 1.
        repeats: The share of tasks presented to the same person a second time.
        random: The share of tasks whose documents are drawn at random.
        gold: The share of tasks that are hidden tests, if the project has hidden tests.
        views: Presentations of each document before tasks are chosen by expected information.
        budget: The largest number of tasks per question; if None, enough to show each document six
            times (once for ``graded`` and ``yes-no``).
        lease: Minutes for which a task is reserved for a judge.
        fields: The document fields to display, in this order; if empty, all fields.
        image: The field with the URL of an image.
        link: The field with the URL of the document.
        reasons: Key and name of each criterion that a judge can select as the reason for a choice.
        seed: Seed of random draws.

    Example:
        >>> Settings(mode="graded", grades=("off topic", "related", "answers it")).shown
        1
    """

    title: str = "Judging"
    mode: str = "choice"
    shown: int | None = None
    grades: tuple[str, ...] = ("not relevant", "related", "relevant", "perfect")
    places: int | None = None
    judges: int = 2
    overlap: float = 0.15
    repeats: float = 0.05
    random: float = 0.15
    gold: float = 0.05
    views: int = 2
    budget: int | None = None
    lease: float = 30.0
    fields: tuple[str, ...] = ()
    image: str | None = None
    link: str | None = None
    reasons: tuple[tuple[str, str], ...] = _REASONS
    seed: int = 0

    def __post_init__(self) -> None:
        """Convert sequences, set the default number of documents, and reject impossible values."""
        mode = one_of("mode", self.mode, _SHOWN)
        low, high = _SHOWN[mode]
        shown = _DEFAULT_SHOWN[mode] if self.shown is None else self.shown
        for name, value in (
            ("mode", mode),
            ("shown", integer("shown", shown, least=low, most=high)),
            ("grades", tuple(str(label) for label in self.grades)),
            ("fields", tuple(str(name) for name in self.fields)),
            ("reasons", tuple((str(key), str(name)) for key, name in self.reasons)),
        ):
            object.__setattr__(self, name, value)
        for name in ("judges", "views"):
            integer(name, getattr(self, name))
        for name in ("overlap", "repeats", "random", "gold"):
            number(name, getattr(self, name), high=1.0)
        number("lease", self.lease, above=True)
        for name in ("places", "budget"):
            if getattr(self, name) is not None:
                integer(name, getattr(self, name))
        if not 2 <= len(self.grades) <= 10:
            raise InputError(many(len(self.grades), "grade"), where="grades", fix="use the labels of 2 to 10 grades")
        keys = [key for key, _ in self.reasons]
        taken = [key for key in keys if len(key) != 1 or key in "0123456789bgluz?" or not key.islower()]
        if taken or len(set(keys)) < len(keys):
            raise InputError(
                f"invalid or duplicate key among {', '.join(keys)}",
                where="reasons",
                fix="give each criterion a unique lower-case letter other than b, g, l, u, or z",
            )

    @property
    def workload(self) -> str:
        """The number of tasks for a question, and its reason."""
        if self.budget is not None:
            return f"each question has at most {many(self.budget, 'task')}"
        if self.shown == 1:
            return "each document has one task"
        return (
            f"each document is shown up to {_VIEWS} times, {self.shown} at a time, because one choice says little "
            "about a document; a question ends when its documents are clear"
        )

    def tasks(self, documents: int) -> int:
        """Return the largest number of tasks for a question with this many documents."""
        if self.budget is not None:
            return self.budget
        views = 1 if self.shown == 1 else _VIEWS
        return -(-views * documents // min(self.shown or 1, max(documents, 1)))


@dataclass(frozen=True, slots=True)
class Question:
    """Question for which documents are judged.

    Attributes:
        id: The identifier.
        text: The question as asked.
        need: The information need, if known; displayed to judges below the question.
        author: The author or source of the question.
        origin: ``file``, ``log``, ``page``, ``generated``, or another origin of a question set.
        time: ISO timestamp (UTC) of the addition to the project.
        probability: The inclusion probability of a question drawn from a log; else None.
        answers: Identifiers of documents known to answer it.
        withdrawn: Whether it was withdrawn from judging; its judgments are kept.
    """

    id: str
    text: str
    need: str = ""
    author: str = ""
    origin: str = "file"
    time: str = ""
    probability: float | None = None
    answers: tuple[str, ...] = ()
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """Document to judge: the text of each displayed field, by field name."""

    id: str
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """Origin of a candidate, never shown to judges.

    Attributes:
        name: The name of the run, retriever, or model.
        kind: ``run``, ``search``, ``model``, ``author``, ``random``, or ``import``.
        rank: The rank in the source, from 1, or None.
        score: The score in the source, or None.
        probability: The inclusion probability of a random document; else None.
    """

    name: str
    kind: str = "run"
    rank: int | None = None
    score: float | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """Document in the pool of a question, with all its sources.

    Attributes:
        question: The identifier of the question.
        document: The identifier of the document.
        sources: The runs, retrievers, and other sources that contributed the document.
    """

    question: str
    document: str
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Judge:
    """Person, language model, or application that judges.

    Attributes:
        id: The identifier.
        name: The name displayed to leads.
        role: ``judge``, ``reader`` (sees the evaluations, but does not judge), ``lead`` (sees and
            judges, and adjudicates), or ``admin``.
        kind: ``person``, ``model``, or ``application``. Only judgments by people count.
        revoked: Whether the judge's access was revoked.
    """

    id: str
    name: str
    role: str = "judge"
    kind: str = "person"
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class GoldTask:
    """Hidden test: a set of documents with a known answer.

    Attributes:
        question: The identifier of the question.
        documents: The identifiers of the documents to show.
        accepted: The documents whose choice is correct; if empty, "none" is correct.
    """

    question: str
    documents: tuple[str, ...]
    accepted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Presentation:
    """Set of documents as presented to a judge, stored before the page is sent.

    Attributes:
        id: A UUID.
        question: The identifier of the question.
        documents: The identifiers of the documents (or answers), in the order displayed.
        judge: The identifier of the judge.
        mode: The mode, a key of `OUTCOMES`.
        purpose: The reason for this set: ``active``, ``random``, ``overlap``, ``repeat``, ``gold``,
            ``adjudication``, ``import``, ``vote``, or ``comparison`` (a grade given on a page that
            shows systems and ranks).
        guideline: The version of the guideline that was displayed.
        time: ISO timestamp (UTC) of the presentation.
        expires: ISO timestamp (UTC) of the end of the reservation for this judge.
        seed: The seed of the document order.
        sequence: The position in the store, from 1; 0 before it is stored.
    """

    id: str
    question: str
    documents: tuple[str, ...]
    judge: str
    mode: str = "choice"
    purpose: str = "active"
    guideline: int = 1
    time: str = ""
    expires: str = ""
    seed: int = 0
    sequence: int = 0

    @property
    def items(self) -> frozenset[str]:
        """The set of documents."""
        return frozenset(self.documents)

    def expired(self, now: datetime) -> bool:
        """Return whether the reservation has ended."""
        return bool(self.expires) and datetime.fromisoformat(self.expires) <= now


@dataclass(frozen=True, slots=True)
class Choice:
    """A judge's choice for a presentation. The latest choice counts.

    Attributes:
        id: A UUID created by the page, so that a choice sent twice is stored once.
        presentation: The identifier of the presentation.
        judge: The identifier of the judge.
        outcome: One of `OUTCOMES` of the mode. ``later`` and ``undone`` reopen the task.
        documents: The chosen documents, best first (one for ``choice``, several for ``ranking``),
            or the preferred answer.
        grades: For ``graded``, the grade of each document shown.
        reason: The criterion that decided the choice.
        comment: Free text.
        seconds: Seconds for which the page was displayed, or None if unknown.
        time: ISO timestamp (UTC) at which it was stored.
        sequence: The position in the store, from 1; 0 before it is stored.
    """

    id: str
    presentation: str
    judge: str
    outcome: str
    documents: tuple[str, ...] = ()
    grades: tuple[int, ...] = ()
    reason: str = ""
    comment: str = ""
    seconds: float | None = None
    time: str = ""
    sequence: int = 0

    @property
    def finished(self) -> bool:
        """Whether the task is answered: the judge neither postponed nor undid the choice."""
        return self.outcome not in {"later", "undone"}

    @property
    def values(self) -> tuple[object, ...]:
        """What the judge said."""
        return self.outcome, self.documents, self.grades, self.reason, self.comment

    def check(self, shown: Presentation, settings: Settings) -> None:
        """Raise InputError unless this is a valid choice for the presentation."""
        where = f"choice {self.id}"
        if self.outcome not in OUTCOMES[shown.mode]:
            raise InputError(
                f"{self.outcome!r:.40} is not an outcome of the mode {shown.mode}",
                where=where,
                fix=f"use one of {', '.join(OUTCOMES[shown.mode])}",
            )
        wanted = 0
        if self.outcome == "chosen":
            wanted = (settings.places or len(shown.documents)) if shown.mode == "ranking" else 1
        count = len(self.documents)
        foreign = [document for document in self.documents if document not in shown.documents]
        if foreign or len(set(self.documents)) < count:
            raise InputError(
                f"document {foreign[0]!r:.60} was not shown" if foreign else "a document is chosen twice",
                where=where,
                fix="choose from the documents of the task",
            )
        if count > wanted or (wanted and not count):
            raise InputError(
                f"{many(count, 'document')} chosen",
                where=where,
                fix=f"choose {wanted}" if wanted == 1 else f"choose up to {wanted}",
            )
        graded = len(shown.documents) if self.outcome == "graded" else 0
        most = len(settings.grades) - 1
        if len(self.grades) != graded or any(grade not in range(most + 1) for grade in self.grades):
            raise InputError(
                f"grades {list(self.grades)!r:.60}",
                where=where,
                fix=f"give each document shown a grade from 0 to {most}",
            )
        if max(len(self.comment), len(self.reason)) > _MOST_TEXT:
            raise InputError(
                f"a comment of {len(self.comment):,} characters", where=where, fix=f"write up to {_MOST_TEXT:,}"
            )
        if self.seconds is not None:
            number("seconds", self.seconds)


@dataclass(frozen=True, slots=True)
class Judgment:
    """Presentation with its latest choice and its status.

    Attributes:
        presentation: The presentation.
        choice: The latest choice, or None for an open task.
        status: ``counted``, or the reason why the judgment does not count: ``cannot tell``,
            ``open``, ``expired``, ``repeat``, ``gold``, ``model``, ``adjudicated`` (replaced by a
            final verdict on the same set), ``vote`` (on answers, or by an application), or ``in
            sight`` (of systems and ranks: see `DocumentRelevance.in_sight`).
    """

    presentation: Presentation
    choice: Choice | None
    status: str

    @property
    def counted(self) -> bool:
        """Whether the judgment counts."""
        return self.status == "counted"


def judgments_of(
    presentations: Iterable[Presentation],
    choices: Iterable[Choice],
    judges: Mapping[str, Judge],
    *,
    now: datetime | None = None,
) -> list[Judgment]:
    """Return each presentation with its latest choice and its status.

    Args:
        presentations: The presentations, in any order.
        choices: The choices in stored order; the latest choice of each presentation counts.
        judges: The judges by identifier.
        now: The time at which leases are checked; if None, the current time.
    """
    now = now or datetime.now(UTC)
    latest = {choice.presentation: choice for choice in choices}
    shown = sorted(presentations, key=lambda presentation: presentation.sequence)
    # The latest final verdict on each set.
    settled: dict[tuple[str, frozenset[str]], Choice] = {}
    for presentation in shown:
        choice, key = latest.get(presentation.id), (presentation.question, presentation.items)
        if presentation.purpose == "adjudication" and choice is not None and choice.finished:
            settled[key] = max(settled.get(key, choice), choice, key=lambda verdict: verdict.sequence)

    def status(presentation: Presentation) -> str:
        choice = latest.get(presentation.id)
        if choice is None or not choice.finished:
            return "expired" if presentation.expired(now) else "open"
        kind = judges[presentation.judge].kind if presentation.judge in judges else "person"
        if presentation.mode == "answers" or kind == "application":
            return "vote"
        if kind == "model":
            return "model"
        if presentation.purpose in _NOT_COUNTED:
            return _NOT_COUNTED[presentation.purpose]
        if settled.get((presentation.question, presentation.items), choice) is not choice:
            return "adjudicated"
        return "cannot tell" if choice.outcome == "cannot tell" else "counted"

    return [Judgment(presentation, latest.get(presentation.id), status(presentation)) for presentation in shown]


# Properties in which two systems can differ.
CHANGES = ("retrieval", "prompt", "model")
_MOST_ANSWER = 200_000  # characters of an answer


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a system to a question.

    Attributes:
        id: The identifier of the answer.
        question: The identifier of the question.
        text: The answer as shown to users.
        retrieval: The version of the retrieval.
        prompt: The version of the prompt.
        model: The language model.
        sources: Identifiers of the documents used to generate the answer.
    """

    id: str
    question: str
    text: str = ""
    retrieval: str = ""
    prompt: str = ""
    model: str = ""
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Convert the sources to a tuple and reject values that are not text."""
        sources: Any = self.sources
        if isinstance(sources, str) or not all(isinstance(source, str) for source in sources):
            raise InputError(
                f"the sources are {self.sources!r:.60}",
                where=f"answer {self.id!r:.60}",
                fix="use a list of identifiers of documents",
            )
        for name in ("id", "question", "text", *CHANGES):
            if not isinstance(getattr(self, name), str):
                raise InputError(
                    f"{name} is {getattr(self, name)!r:.60}",
                    where=f"answer {self.id!r:.60}",
                    fix=f"write {name} as text",
                )
        if len(self.text) > _MOST_ANSWER:
            raise InputError(
                f"the answer has {len(self.text):,} characters",
                where=f"answer {self.id!r:.60}",
                fix=f"use up to {_MOST_ANSWER:,}",
            )
        object.__setattr__(self, "sources", tuple(dict.fromkeys(self.sources)))

    @property
    def system(self) -> str:
        """The retrieval version, prompt, and model that produced the answer."""
        return " / ".join(filter(None, (getattr(self, name) for name in CHANGES))) or "unnamed system"


def next_pair(
    answers: Iterable[Answer], votes: Mapping[frozenset[str], int], seen: Iterable[frozenset[str]], rng: random.Random
) -> tuple[Answer, Answer] | None:
    """Return the next two answers to compare, left and right, or None if no pair is left.

    The two answers are to the same question and from different systems. Of the pairs that this
    judge has not seen, the pair with the fewest votes is chosen; ties and sides are random.

    Args:
        answers: The answers to all open questions.
        votes: The number of presentations of each pair.
        seen: Pairs that the judge has seen.
        rng: The random generator.
    """
    seen = set(seen)
    pairs = {names: pair for names, pair in pairs_of(answers).items() if names not in seen}
    if not pairs:
        return None
    fewest = min(votes.get(names, 0) for names in pairs)
    left, right = rng.choice([pair for names, pair in pairs.items() if votes.get(names, 0) == fewest])
    return (left, right) if rng.random() < 0.5 else (right, left)


def pairs_of(answers: Iterable[Answer]) -> dict[frozenset[str], tuple[Answer, Answer]]:
    """Return the pairs of answers to the same question by different systems, by identifiers."""
    by_question: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        by_question[answer.question].append(answer)
    return {
        frozenset((left.id, right.id)): (left, right)
        for group in by_question.values()
        for left, right in combinations(group, 2)
        if left.system != right.system
    }

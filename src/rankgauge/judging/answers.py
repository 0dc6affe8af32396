"""Answers of systems, and selection of the next pair of answers to compare."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from rankgauge.errors import InputError

# Properties in which two systems can differ.
CHANGES = ("retrieval", "prompt", "model")
_UNNAMED = "unnamed system"
_MOST_TEXT = 200_000  # characters of an answer


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
        if isinstance(sources, str) or not all(isinstance(one, str) for one in sources):
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
        if len(self.text) > _MOST_TEXT:
            raise InputError(
                f"the answer has {len(self.text):,} characters",
                where=f"answer {self.id!r:.60}",
                fix=f"use up to {_MOST_TEXT:,}",
            )
        object.__setattr__(self, "sources", tuple(dict.fromkeys(self.sources)))

    @property
    def system(self) -> str:
        """The retrieval version, prompt, and model that produced the answer."""
        return " / ".join(filter(None, (getattr(self, name) for name in CHANGES))) or _UNNAMED

    @property
    def body(self) -> dict[str, Any]:
        """The stored fields besides the identifier."""
        body = asdict(self)
        del body["id"]
        return body


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
    seen, fewest = set(seen), -1
    pairs: list[tuple[Answer, Answer]] = []
    for names, pair in pairs_of(answers).items():
        count = votes.get(names, 0)
        if names in seen or (pairs and count > fewest):
            continue
        if not pairs or count < fewest:
            pairs, fewest = [], count
        pairs.append(pair)
    if not pairs:
        return None
    left, right = rng.choice(pairs)
    return (left, right) if rng.random() < 0.5 else (right, left)


def pairs_of(answers: Iterable[Answer]) -> dict[frozenset[str], tuple[Answer, Answer]]:
    """Return the pairs of answers to the same question by different systems, by identifiers."""
    by_question: dict[str, list[Answer]] = defaultdict(list)
    for each in answers:
        by_question[each.question].append(each)
    return {
        frozenset((left.id, right.id)): (left, right)
        for group in by_question.values()
        for left, right in combinations(group, 2)
        if left.system != right.system
    }

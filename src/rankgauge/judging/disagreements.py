"""Sets of documents that people judged differently, for final verdicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rankgauge.judging.events import Choice, Judge, Judgment


@dataclass(frozen=True, slots=True)
class DisputedSet:
    """A set of documents that people judged differently.

    Attributes:
        question: The identifier of the question.
        documents: The documents, in alphabetical order.
        judgments: The judgments of people, in the order of presentation.
        verdict: The final verdict; None before there is one.
    """

    question: str
    documents: tuple[str, ...]
    judgments: tuple[Judgment, ...]
    verdict: Judgment | None


def disputed_sets(judgments: Iterable[Judgment], judges: Mapping[str, Judge]) -> list[DisputedSet]:
    """Return the sets of documents on which people differ, those without a verdict first.

    People differ if they chose another document (of a ranking: put another first), chose none, or
    gave another grade. "Can't tell", repeats, hidden tests and models are not compared.

    Args:
        judgments: All judgments of a project.
        judges: By identifier.
    """
    people: dict[tuple[str, frozenset[str]], list[Judgment]] = defaultdict(list)
    verdicts: dict[tuple[str, frozenset[str]], Judgment] = {}
    for each in judgments:
        shown, key = each.presentation, (each.presentation.question, each.presentation.items)
        judge = judges.get(shown.judge)
        if each.choice is None or (judge is not None and judge.kind != "person"):
            continue
        if shown.purpose == "adjudication":
            if each.status in {"counted", "cannot tell"}:
                verdicts[key] = each
        elif each.status in {"counted", "adjudicated"} and each.choice.outcome != "cannot tell":
            people[key].append(each)
    found = [
        DisputedSet(question, tuple(sorted(items)), tuple(made), verdicts.get((question, items)))
        for (question, items), made in people.items()
        if len({_first(each.choice) for each in made if each.choice}) > 1
    ]
    return sorted(found, key=lambda each: each.verdict is not None)


def _first(choice: Choice) -> tuple[object, ...]:
    """What is compared of a choice."""
    return (choice.outcome, choice.documents[:1], choice.grades)

"""Recommended measures by use case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class UseCase:
    """A use case of retrieval with its recommended measures.

    Attributes:
        name: Name for lookup.
        title: A short description.
        measures: Names of measures, most important first.
        why: Reason for these measures.
    """

    name: str
    title: str
    measures: tuple[str, ...]
    why: str


USE_CASES: Mapping[str, UseCase] = {
    case.name: case
    for case in (
        UseCase(
            "qa",
            "question answering",
            ("RR", "Success@1"),
            "one good document is enough, and it should be first: RR is 1 / its rank, Success@1 "
            "is how often it is first",
        ),
        UseCase(
            "search",
            "search pages",
            ("nDCG@10", "P@10"),
            "people read a page of ten: nDCG@10 rewards better documents at higher ranks, P@10 "
            "is the useful share of the page",
        ),
        UseCase(
            "rag",
            "retrieval for a language model",
            ("R@5", "P@5", "RR"),
            "the model cannot use passages that it does not get (R@5), is distracted by "
            "irrelevant ones (P@5), and favors the first ones (RR)",
        ),
        UseCase(
            "legal",
            "legal discovery and other exhaustive reviews",
            ("R@100", "P@100"),
            "a missed document is a costly mistake (R@100), and each irrelevant one costs work (P@100)",
        ),
        UseCase(
            "recommendation",
            "recommendation",
            ("nDCG@5", "P@5"),
            "a short list is shown once: order and share of good items in the first five",
        ),
        UseCase(
            "fact-check",
            "fact checking",
            ("Success@3", "RR"),
            "one piece of evidence decides: whether it is in the top three, and at which rank",
        ),
    )
}


def use_case(name: str) -> UseCase:
    """Return the use case with this name.

    Raises:
        UnknownName: If there is none; the error suggests similar names.

    Example:
        >>> use_case("qa").measures
        ('RR', 'Success@1')
    """
    if name not in USE_CASES:
        from rankgauge.errors import UnknownName

        raise UnknownName.of("use case", name, USE_CASES)
    return USE_CASES[name]

"""Policies for ties, queries, duplicates, and undefined and unjudged values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

from rankgauge.core.arguments import integer, option
from rankgauge.errors import InputError, UnknownName

Order: TypeAlias = Literal["trec", "input"]
Ties: TypeAlias = Literal["trec", "input", "best", "worst", "mean"]
Duplicates: TypeAlias = Literal["error", "first", "best"]
Undefined: TypeAlias = Literal["zero", "skip"]
Unjudged: TypeAlias = Literal["not relevant", "removed"]

# Policies for ties that need relevance judgments.
BY_GRADE = frozenset({"best", "worst", "mean"})


@dataclass(frozen=True)
class Policies:
    """Policies for cases that definitions of measures leave open; printed with every number.

    Attributes:
        ties: Order of documents with equal scores: ``trec`` (document id descending, bytewise),
            ``input`` (input order), ``best`` (higher grade first), ``worst`` (lower grade first),
            or ``mean``: the mean of the values over all orders.
        queries: Queries to average: ``all`` judged queries (a query missing from the run has an
            empty ranking), ``intersection`` (judged and in the run), or ``given``.
        duplicates: A repeated document in a ranking is an ``error``; ``first`` keeps its
            first occurrence in the input, ``best`` its highest score.
        undefined: An undefined value counts as ``zero`` in the mean, or is excluded (``skip``).
            Some measures always use ``skip``, because 0 would be a valid value.
        unjudged: Documents without a judgment count as ``not relevant``, or are ``removed`` from
            the rankings first (condensed lists, Sakai 2007), for every measure with the parameter
            `judged_only`.
        draws: Number of random orders for a measure whose mean over all orders has no closed form;
            with 0, these measures are an error. For ``ties="mean"`` only.
        seed: Seed of the draws.

    Example:
        >>> Policies(ties="input").ties
        'input'
    """

    ties: Ties = "trec"
    queries: Literal["all", "intersection", "given"] = "all"
    duplicates: Duplicates = "error"
    undefined: Undefined = "zero"
    unjudged: Unjudged = "not relevant"
    draws: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, choices in (
            ("ties", get_args(Ties)),
            ("queries", ("all", "intersection", "given")),
            ("duplicates", get_args(Duplicates)),
            ("undefined", get_args(Undefined)),
            ("unjudged", get_args(Unjudged)),
        ):
            option(name, getattr(self, name), choices)
        integer("draws", self.draws, least=0, most=1_000_000)
        integer("seed", self.seed, least=0, most=2**63 - 1)
        if self.draws == 1:
            raise InputError("draws=1 gives no standard error", where="policies", fix="draw more: draws=1000")
        if self.seed and not self.draws:
            raise InputError(
                f"seed={self.seed} without draws has no effect", where="policies", fix="set draws=1000, or omit seed"
            )
        if self.draws and self.ties != "mean":
            raise InputError(
                f"draws={self.draws} with ties={self.ties}: only ties=mean draws orders",
                where="policies",
                fix='use ties="mean" (--ties mean), or omit draws',
            )

    def describe(self) -> dict[str, str | int]:
        """Return the policies by name; ``draws`` and ``seed`` only if orders are drawn.

        Example:
            >>> list(Policies().describe())
            ['ties', 'queries', 'duplicates', 'undefined', 'unjudged']
        """
        drawing = () if self.draws else ("draws", "seed")
        return {part.name: getattr(self, part.name) for part in fields(self) if part.name not in drawing}

    def __repr__(self) -> str:
        parts = (f"{name}={value!r}" for name, value in self.describe().items())
        return f"Policies({', '.join(parts)})"


def order_of(ties: str) -> Order:
    """Return a tie order that does not depend on judgments."""
    for order in get_args(Order):
        if ties == order:
            return order
    raise UnknownName(
        f"ties={ties!r:.40} is not valid here", fix="choose one of: trec, input (best and worst need judgments)"
    )

"""Deviations of another tool's computation from ours, with reasons; those shared by several tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from rankgauge.core.pair_table import FloatArray, PairTable, distinct
from rankgauge.core.policies import Policies
from rankgauge.data.join import match, query_of
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.data.subsets import of_queries
from rankgauge.errors import UnknownName
from rankgauge.measures.measure import Measure


class Case(NamedTuple):
    """The inputs of an evaluation with one measure.

    Attributes:
        qrels: The judgments.
        run: The run.
        measure: The measure.
        policies: The policies.
    """

    qrels: Qrels
    run: Run
    measure: Measure
    policies: Policies


Change: TypeAlias = Callable[[Case], Case]


@dataclass(frozen=True)
class Deviation:
    """A deviation of another tool.

    Attributes:
        name: A short name: ``32-bit scores``.
        why: What the tool does, in one sentence.
        of: What it changes: the ``run``, the ``order`` of equal scores (rows of the run and the tie
            policy), the ``judgments``, a ``policy``, or the ``measure``.
        change: Function that applies the deviation to a case. It changes only the part named by
            `of`.
    """

    name: str
    why: str
    of: Literal["run", "order", "judgments", "policy", "measure"]
    change: Change


def apply_all(case: Case, deviations: Iterable[Deviation]) -> Case:
    """Apply the deviations in order."""
    return reduce(lambda changed, deviation: deviation.change(changed), deviations, case)


class Offer(NamedTuple):
    """The measures of a tool."""

    tool: str  # name of the tool
    # For each measure (by our name), the parameters that the tool supports; required ones end in
    # `!`.
    words: Mapping[str, str]
    # What to use instead of unsupported measures, by name.
    near: Mapping[str, str] = {}
    beyond: Mapping[str, str] = {}  # why other measures of the tool cannot be reproduced, by name

    def check(self, measure: Measure) -> None:
        """Refuse a measure that the tool does not have, or that cannot be reproduced."""
        name = measure.name
        if name in self.beyond:
            raise UnknownName(
                f"{measure} of {self.tool} cannot be reproduced: {self.beyond[name]}",
                fix="omit it, or evaluate it without the profile",
            )
        if name not in self.words:
            has = f"it has {', '.join(map(self._shown, self.words))}"
            raise UnknownName(f"{self.tool} has no {measure}", fix=self.near.get(name) or has)
        words, bound = self.words[name].split(), dict(measure.params)
        allowed = [word.rstrip("!") for word in words]
        faults = [f"takes no {word}" for word in bound if word not in allowed]
        faults += [f"needs {w[:-1]}" for w in words if w[-1] == "!" and w[:-1] not in bound]
        faults += ["takes no cut-off relative to R"] * isinstance(bound.get("k"), str)
        if faults:
            raise UnknownName(
                f"{self.tool} has no {measure}: {name} {faults[0]} there",
                fix=self.near.get(name) or f"use {self._shown(name)}",
            )

    def _shown(self, name: str) -> str:
        """Return the name as the user must write it: with ``@k`` if a cutoff is required."""
        return f"{name}@k" if "k!" in self.words[name].split() else name


@dataclass(frozen=True)
class Profile:
    """How another tool computes its numbers.

    Attributes:
        name: Name of the profile, such as ``pytrec_eval``.
        tool: The tool, and the versions it was verified against.
        steps: Function that returns the deviations for a measure, in the order of application.
        offer: The measures of the tool.
        digits: Number of decimals to which means are rounded; None if they are not.
        unrounded: Measures whose means are nevertheless not rounded.
        beware: Numbers that cannot be reproduced, or their requirements; empty if there are none.

    Example:
        >>> from rankgauge import parse
        >>> from rankgauge.evaluation import PROFILES
        >>> [deviation.name for deviation in PROFILES["pytrec_eval"].deviations(parse("nDCG@10"))]
        ['32-bit scores', 'only queries of the run']
    """

    name: str
    tool: str
    steps: Callable[[Measure], tuple[Deviation, ...]]
    offer: Offer | None = None
    digits: int | None = None
    unrounded: tuple[str, ...] = ()
    beware: str = ""

    def deviations(self, measure: Measure) -> tuple[Deviation, ...]:
        """Return the deviations of the tool from our defaults for a measure; empty if they agree.

        Raises:
            UnknownName: If the tool does not have the measure, or it cannot be reproduced.
        """
        if self.offer is not None:
            self.offer.check(measure)
        return self.steps(measure)

    def decimals(self, measure: Measure) -> int | None:
        """Return the number of decimals to which means of a measure are rounded, or None."""
        return None if measure.name in self.unrounded else self.digits


# ---- deviations shared by several tools


def rewritten(name: str, why: str, **params: Any) -> Deviation:
    """Return a deviation that replaces the measure by ours with these parameters."""
    return Deviation(name, why, "measure", lambda case: case._replace(measure=case.measure(**params)))


def of_run(name: str, why: str, change: Callable[[PairTable], PairTable]) -> Deviation:
    """Return a deviation that changes the table of the run."""
    return Deviation(name, why, "run", lambda case: case._replace(run=replace(case.run, table=change(case.run.table))))


def _of_judgments(name: str, why: str, change: Callable[[Case], PairTable]) -> Deviation:
    return Deviation(name, why, "judgments", lambda case: case._replace(qrels=Qrels(change(case))))


def of_grades(name: str, why: str, change: Callable[[FloatArray], FloatArray]) -> Deviation:
    """Return a deviation that changes the grades of the judgments."""
    return _of_judgments(name, why, lambda case: replace(case.qrels.table, values=change(case.qrels.table.values)))


def of_policy(name: str, why: str, **policies: Any) -> Deviation:
    """Return a deviation that sets policies."""
    return Deviation(
        name,
        why,
        "order" if "ties" in policies else "policy",
        lambda case: case._replace(policies=replace(case.policies, **policies)),
    )


# ---- run


def _single(table: PairTable) -> PairTable:
    with np.errstate(over="ignore"):  # overflow gives infinity in the tool, too
        values = table.values.astype(np.float32).astype(np.float64)
    return replace(table, values=values)


def _by_position(table: PairTable) -> PairTable:
    starts = np.repeat(table.offsets[:-1], np.diff(table.offsets))
    return replace(table, values=(starts - np.arange(len(table))).astype(np.float64))


def _without_self(table: PairTable) -> PairTable:
    of_query = np.repeat(table.queries.hashes(), np.diff(table.offsets))
    likely = np.flatnonzero(table.docs.hashes() == of_query)
    same = likely[table.docs.same(likely, table.queries, query_of(table, likely))]
    return table.keep(np.delete(np.arange(len(table)), same)) if len(same) else table


def _without_first(table: PairTable) -> PairTable:
    first = table.offsets[:-1][np.diff(table.offsets) > 0]
    kept = np.ones(len(table), dtype=bool)
    kept[table.best_first(by_id=False)[0][first]] = False
    return table.keep(np.flatnonzero(kept))


SINGLE_PRECISION = of_run("32-bit scores", "scores are 32-bit floats: smaller differences are ties", _single)
AS_GIVEN = of_run("order as given", "documents are ranked in the given order; scores are not read", _by_position)
NO_SELF = of_run(
    "no self-retrieval", "a document whose id is that of the query is removed from its ranking", _without_self
)
NO_FIRST = of_run(
    "first result skipped",
    "the document with the highest score is removed from each ranking; in a tie, the first one given",
    _without_first,
)
POSITIVE_SCORES = of_run(
    "only scores above 0",
    "a document whose score is 0 or less never counts as relevant, at any rank",
    lambda table: table.keep(np.flatnonzero(table.values > 0)),
)


# ---- order of equal scores


INPUT_TIES = of_policy("ties as given", "ties keep the input order (a stable sort)", ties="input")
EXPECTED_TIES = of_policy("ties averaged", "a value is the mean over all orders of tied documents", ties="mean")


def _ascending(case: Case) -> Case:
    table = case.run.table
    order, heads = table.best_first(by_id=False)
    sizes = np.diff(heads)
    tied = np.flatnonzero(np.repeat(sizes > 1, sizes))
    group = np.repeat(np.arange(len(sizes))[sizes > 1], sizes[sizes > 1])
    # Reversed, so that descending order becomes ascending.
    back = order[tied[::-1]]
    order[tied] = back[table.docs.descending(back, len(sizes) - group[::-1])][::-1]
    docs, values = table.docs.take(order), table.values[order]
    table = replace(table, docs=docs, values=values, lines=None, ranks=None)
    return INPUT_TIES.change(case._replace(run=replace(case.run, table=table)))


ASCENDING_IDS = Deviation("ties by ascending id", "ties broken by document id ascending", "order", _ascending)


# ---- judgments


def _of_relevant_queries(case: Case) -> PairTable:
    table = case.qrels.table
    relevant = np.bincount(table.query_numbers()[table.values >= 1], minlength=len(table.queries))
    return of_queries(table, np.flatnonzero(relevant))


def _only_ranked_queries(case: Case) -> PairTable:
    known = set(case.run.table.queries.tolist())
    table = case.qrels.table
    ranked = np.array([query in known for query in table.queries.tolist()], dtype=bool)
    return table.keep(np.flatnonzero(ranked[table.query_numbers()]))


def _without_nonpositive(case: Case) -> PairTable:
    values = case.qrels.table.values.copy()
    rows, judged = match(case.qrels, case.run)
    values[distinct(judged[case.run.table.values[rows] <= 0])] = 0
    return replace(case.qrels.table, values=values)


RETRIEVED_ONLY = _of_judgments(
    "only retrieved documents are known",
    "judgments are given with the scores: a relevant document that was not retrieved is unknown",
    lambda case: case.qrels.table.keep(distinct(match(case.qrels, case.run)[1])),
)
RANKED_QUERIES_JUDGED = _of_judgments(
    "nothing is judged without a ranking",
    "a query that is not in the run counts as one without relevant documents",
    _only_ranked_queries,
)
POSITIVE_SCORES_COUNT = _of_judgments(POSITIVE_SCORES.name, POSITIVE_SCORES.why, _without_nonpositive)
RELEVANT_QUERIES = _of_judgments(
    "only queries with a relevant document",
    "a query without a relevant document is excluded from the mean, not counted as 0",
    _of_relevant_queries,
)
WHOLE_GRADES = of_grades(
    "whole grades",
    "grades are truncated to whole numbers: 0.5 is 0 and 2.9 is 2",
    lambda values: np.trunc(values) + 0.0,
)
BINARY_GRADES = of_grades(
    "binary grades",
    "grades of at least 1 become 1, lower grades 0",
    lambda values: np.where(values >= 1, 1.0, np.minimum(values, 0.0)),
)
NEGATIVES_JUDGED = of_grades(
    "negative grades are judged",
    "a document with a negative grade is judged not relevant, not pooled only",
    lambda values: np.maximum(values, 0.0),
)


@lru_cache(maxsize=64)
def clipped(top: float) -> Deviation:
    """Return the deviation that clips grades at `top`; cached, so that deviations compare equal."""
    return of_grades(
        "grades clipped at the top",
        f"grades above the stated top ({top:g}) count as the top",
        lambda values: np.minimum(values, top),
    )


# ---- policies


RUN_QUERIES_ONLY = of_policy(
    "only queries of the run",
    "a judged query that is not in the run is excluded from the mean, not counted as 0",
    queries="intersection",
)
UNDEFINED_LEFT_OUT = of_policy(
    "undefined values left out", "a query without a value is excluded from the mean, not counted as 0", undefined="skip"
)

"""Cases: the inputs of a number with its values and rankings, and variants that could explain it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from rankgauge.core.grammar import Value
from rankgauge.core.ids import show_id
from rankgauge.core.pair_table import FloatArray
from rankgauge.core.policies import Policies
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.data.subsets import keep_queries
from rankgauge.errors import UnknownName
from rankgauge.evaluation.evaluation import Queries, evaluate, read_queries
from rankgauge.evaluation.profile_deviations import (
    AS_GIVEN,
    ASCENDING_IDS,
    BINARY_GRADES,
    INPUT_TIES,
    RUN_QUERIES_ONLY,
    SINGLE_PRECISION,
    Case,
    Deviation,
    apply_all,
    of_grades,
    of_policy,
    of_run,
)
from rankgauge.evaluation.profiles import PROFILES
from rankgauge.evaluation.result import Evaluation
from rankgauge.explanation.calculation import RankedDocument, RankedQuery, ranked
from rankgauge.measures.measure import Measure, parse

ANY_GRADE = 1e-9


def make_case(
    qrels: Any,
    run: Any,
    measure: str | Measure,
    *,
    queries: Queries,
    policies: Policies,
) -> Case:
    """Return the inputs and policies of a number, reduced to the selected queries."""
    truth = Qrels.of(qrels)
    policy, ids = read_queries(queries)
    if ids is not None:
        truth = keep_queries(truth, ids)
        policy = "all"
    return Case(truth, Run.of(run), parse(measure), replace(policies, queries=policy))


def evaluate_case(case: Case, measures: Sequence[Measure] = (), source: Any = None) -> Evaluation:
    """Evaluate a case, optionally with other measures or another source of the run."""
    run = case.run if source is None else source
    return evaluate(case.qrels, run, measures or case.measure, **asdict(case.policies))


def counted_by_query(evaluation: Evaluation, column: int = 0) -> dict[str, float]:
    """Return the values that are averaged, by query."""
    pairs = zip(evaluation.query_ids, evaluation.counted(evaluation.measures[column]).tolist(), strict=True)
    return {query: value for query, value in pairs if not math.isnan(value)}


def ranked_query(case: Case, query: bytes) -> RankedQuery:
    """Return a query of a case, ranked independently of the join.

    A query missing from the run has no documents.
    """
    judgments = _rows(case.qrels, query)
    grades = dict(judgments)
    scores = _rows(case.run.without_repeats(case.policies.duplicates), query)

    def place(row: int) -> tuple[float, tuple[float, ...]]:
        """Return the sort key of a document: its score, then the tie policy."""
        document, score = scores[row]
        # Ids in descending order; of two ids with a common prefix, the longer is first.
        rule: tuple[float, ...] = (*(-byte - 1 for byte in document), 0)
        match case.policies.ties:
            case "input":
                rule = (row,)
            case "best" | "worst" as side:
                # Unjudged documents are last with ties=best and first with ties=worst.
                grade = grades.get(document, -math.inf)
                rule = (-grade if side == "best" else grade, *rule)
        return -score, rule

    order = sorted(range(len(scores)), key=place)
    documents = [
        RankedDocument(0, show_id(document), score, grades.get(document), 0, 0)
        for document, score in (scores[row] for row in order)
    ]
    shown = sorted(((show_id(d), grade) for d, grade in judgments), key=lambda pair: -pair[1])
    whole = RankedQuery(show_id(query), ranked(documents), tuple(shown), query in case.run.query_index)
    return whole.judged_only() if case.policies.unjudged == "removed" else whole


def _rows(pairs: Qrels | Run, query: bytes) -> list[tuple[bytes, float]]:
    number = pairs.query_index.get(query)
    if number is None:
        return []
    start, stop = pairs.table.offsets[number : number + 2].tolist()
    docs = pairs.table.docs.take(slice(start, stop)).tolist()
    return list(zip(docs, pairs.table.values[start:stop].tolist(), strict=True))


def parameters_of(measure: Measure, query: RankedQuery) -> dict[str, Any]:
    """Return all parameters of a measure; ``rel=best`` and a cut-off relative to R are numbers for the query."""
    words: dict[str, Any] = measure.arguments
    if words.get("rel") == "best":
        highest = max((grade for _, grade in query.judgments), default=0.0)
        # Without a grade above 0, no document is relevant.
        words["rel"] = highest if highest > 0 else math.inf
    if isinstance(words.get("k"), str):
        words["k"] = max(int(float(words["k"][:-1] or 1) * query.relevant(words.get("rel") or 1) + 0.9), 1)
    return words


def level_of(measure: Measure, query: RankedQuery) -> float:
    """Return the lowest relevant grade: the relevance level, or any grade above 0."""
    level = parameters_of(measure, query).get("rel")
    return float(level) if isinstance(level, int | float) else ANY_GRADE


# Combinations of more deviations could explain any number.
_MOST = 3
_LEVELS = (1, 2, 3)
_TOPS = (1, 2, 3, 4, 5)


class Combination(NamedTuple):
    """Deviations that are applied together."""

    name: str
    deviations: tuple[Deviation, ...]
    profile: bool = False


class _Choice(NamedTuple):
    """A deviation of a group; a combination has at most one of each group."""

    group: str
    deviation: Deviation


# ---- deviations of judgments, run, or order


def _once(deviation: Deviation) -> Deviation:
    """Return a deviation that removes duplicate documents before it changes the order."""
    return replace(
        deviation,
        change=lambda case: deviation.change(case._replace(run=case.run.without_repeats(case.policies.duplicates))),
    )


def _reversed(values: FloatArray) -> FloatArray:
    return np.where(values > 0, values.max(initial=0.0) + 1 - values, values)


# The deviation of scores comes first: the others sort by score.
DATA = (
    _Choice("precision", SINGLE_PRECISION),
    _Choice("order", _once(INPUT_TIES)),
    _Choice("order", _once(ASCENDING_IDS)),
    _Choice("order", _once(AS_GIVEN)),
    _Choice(
        "order",
        of_run(
            "lowest score first",
            "the ranking is reversed, as with distances",
            lambda table: replace(table, values=-table.values),
        ),
    ),
    _Choice("grades", BINARY_GRADES),
    _Choice("grades", of_grades("grades reversed", "the best grade counts as the worst", _reversed)),
    _Choice(
        "grades",
        of_grades(
            "grade 0 counts",
            "documents judged not relevant count as relevant",
            lambda values: np.where(values == 0, 1.0, values),
        ),
    ),
)


ORDERS = frozenset(choice.deviation.name for choice in DATA if choice.group == "order")
"""Names of the deviations that change the order of documents."""


# ---- deviations of the measure


# Parameter, name of the deviation, reason, and the other value of the parameter.
_WORDS: tuple[tuple[str, str, str, Value], ...] = (
    ("gain", "gain 2^grade - 1", "the gain is exponential", "exp"),
    ("gain", "gain = grade", "the gain is the grade itself", "linear"),
    ("ideal", "ideal of retrieved documents", "the ideal ranking has only retrieved documents", "retrieved"),
    ("ideal", "ideal of all judged documents", "the ideal ranking has all judged documents", "judged"),
    ("ideal", "ideal of the first k", "the ideal ranking has only the first k documents", "topk"),
    ("b", "no discount at rank 2", "ranks 1 and 2 have the same weight, as first published", 2),
    *(
        ("norm", f"divided by {label}", f"the sum is divided by {what}", norm)
        for norm, label, what in (
            ("R", "R", "all relevant documents, found or not"),
            ("min(k,R)", "min(k, R)", "k or the number of relevant documents, the smaller one"),
            ("k", "k", "k, for any number of relevant documents"),
            ("retrieved", "those found", "the relevant documents found, so misses cost nothing"),
        )
    ),
    *(
        ("rel", f"relevant from grade {level}", f"a document is relevant from grade {level}", level)
        for level in _LEVELS
    ),
    ("judged_only", "judged documents only", "unjudged documents are removed first", True),
    *(("top", f"top grade {top}", f"the scale ends at grade {top}", top) for top in _TOPS),
)


def _of_words(measure: Measure) -> Iterator[_Choice]:
    """Yield variants of a measure with other parameters; impossible ones are dropped later."""
    has = measure.declaration.words
    graded = measure.declaration.reads == "grades"
    for word, name, why, value in _WORDS:
        # Grade 1 is already the lowest grade with a gain.
        if word in has and not (graded and word == "rel" and value == 1):
            yield _worded(word, name, why, value)
    if measure.cutoff is not None:
        for other in (measure.cutoff - 1, measure.cutoff + 1):
            yield _worded("k", f"cut-off {other}", f"{other} ranks are evaluated", other)
        yield _worded("k", "no cut-off", "the whole ranking is evaluated", None)


def _worded(word: str, name: str, why: str, value: Value) -> _Choice:
    return _Choice(
        word,
        Deviation(name, why, "measure", lambda case: case._replace(measure=case.measure(**{word: value}).complete())),
    )


# ---- combinations


def of_measure(measure: Measure) -> Iterator[tuple[Combination, Measure]]:
    """Yield the distinct variants of a measure, the measure itself first."""
    seen: set[Measure] = set()
    for variant in combined(tuple(_of_words(measure)), _MOST):
        try:
            # Deviations of the measure only read the measure of a case.
            changed = apply_all(Case(None, None, measure, None), variant.deviations).measure  # type: ignore[arg-type]
        except UnknownName:
            continue
        if changed not in seen:
            seen.add(changed)
            yield variant, changed


AVERAGED = (
    RUN_QUERIES_ONLY,
    of_policy("undefined excluded", "queries without a relevant document are excluded from the mean", undefined="skip"),
)
"""Deviations of the averaged queries."""


def of_profiles(measure: Measure) -> Iterator[Combination]:
    """Yield the profiles of other tools that have the measure."""
    for profile in PROFILES.values():
        try:
            deviations = profile.deviations(measure)
        except UnknownName:
            continue
        if deviations:
            yield Combination(profile.name, deviations, profile=True)


def combined(choices: Sequence[_Choice], most: int) -> Iterator[Combination]:
    """Yield combinations of at most `most` choices, each of another group, the empty one first."""
    for size in range(most + 1):
        for chosen in combinations(choices, size):
            if len({choice.group for choice in chosen}) == size:
                deviations = tuple(choice.deviation for choice in chosen)
                yield Combination(" + ".join(deviation.name for deviation in deviations), deviations)

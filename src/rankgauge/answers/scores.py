"""Measures of answers: pure functions from verdicts to a value, with bounds for missing verdicts.

Each measure is a logical formula over verdicts, evaluated with three truth values. A claim
*certainly* has a property if existing verdicts imply it, and *possibly* if the missing verdicts
could. The bounds are the shares that certainly and possibly have it, with missing verdicts
negative and positive. The value is known if the bounds are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from rankgauge.answers.verdicts import AnswerRecord, ClaimSet, items_of
from rankgauge.core.grouping import group_values
from rankgauge.data.judged_run import BoolArray
from rankgauge.measures.measure import Measure


class Ternary(NamedTuple):
    """Array of ternary truth values: whether certainly true, and whether possibly true."""

    sure: BoolArray
    possible: BoolArray

    def __and__(self, other: Ternary) -> Ternary:
        return Ternary(self.sure & other.sure, self.possible & other.possible)

    def __or__(self, other: Ternary) -> Ternary:
        return Ternary(self.sure | other.sure, self.possible | other.possible)

    def __invert__(self) -> Ternary:
        return Ternary(~self.possible, ~self.sure)

    def any(self, axis: int = 1) -> Ternary:
        """Return whether any value along an axis of a matrix is true."""
        return Ternary(np.logical_or.reduce(self.sure, axis=axis), np.logical_or.reduce(self.possible, axis=axis))

    @classmethod
    def of(cls, labels: Sequence[str | None], wanted: str) -> Self:
        """Return whether each label equals the wanted label; None is unknown."""
        return cls(
            np.array([label == wanted for label in labels], dtype=bool),
            np.array([label is None or label == wanted for label in labels], dtype=bool),
        )


class Score(NamedTuple):
    """Value of a measure for one question.

    Attributes:
        value: The value; NaN if undefined, or if missing verdicts could change it.
        low: Lower bound over all possible missing verdicts.
        high: Upper bound over all possible missing verdicts.
        missing: The number of missing verdicts.
        reason: The reason why the value is undefined, or empty.
    """

    value: float
    low: float
    high: float
    missing: int = 0
    reason: str = ""


@dataclass(frozen=True)
class JudgedAnswer:
    """Record with its claims and the verdicts on its items.

    Attributes:
        record: The record.
        claims: Its claims.
        labels: The label of each item by relation (of a criterion, ``criterion NAME``); None where
            the verdict is missing.
        keys: The key of each item by relation.
    """

    record: AnswerRecord
    claims: ClaimSet
    labels: Mapping[str, Sequence[str | None]]
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        record: AnswerRecord,
        claims: ClaimSet,
        labels: Mapping[str, str],
        criteria: Mapping[str, str] = MappingProxyType({}),
    ) -> JudgedAnswer:
        """Look up the verdicts on the items of a record.

        Args:
            record: The record.
            claims: Its claims.
            labels: The counted label of each item, by key.
            criteria: Criteria of the user, as wordings by name.
        """
        keys = group_values((item.relation_name, item.key) for item in items_of(record, claims, criteria))
        return cls(record, claims, {name: [labels.get(key) for key in own] for name, own in keys.items()}, keys)

    def known(self, relation: str, label: str = "supported") -> Ternary:
        """Return for each item of a relation whether its label is `label`."""
        return Ternary.of(self.labels.get(relation, ()), label)

    def matrix(self, relation: str, label: str = "supported") -> Ternary:
        """Return the values of `known` as a matrix of claims (rows) and contexts (columns)."""
        columns = len(self.record.contexts)
        claims = self.claims.answer if relation == "answer-context" else self.claims.reference
        shape = (-1, columns) if columns else (len(claims or ()), 0)
        known = self.known(relation, label)
        return Ternary(known.sure.reshape(shape), known.possible.reshape(shape))

    def missing(self, *relations: str) -> int:
        """Return the number of missing verdicts of these relations."""
        return sum(label is None for relation in relations for label in self.labels.get(relation, ()))


class _Undefined(Exception):  # noqa: N818 - not an error: there is nothing to judge
    """Raised if there is nothing to judge; the message is the reason."""


class _Unjudged(Exception):  # noqa: N818 - not an error: a step has not been taken
    """The claims were not extracted."""


def _require_claims(judged: JudgedAnswer, part: str) -> None:
    """Raise an error unless the ``answer``, or the ``reference``, has claims."""
    text, claims, name = judged.record.answer, judged.claims.answer, "answer"
    if part == "reference":
        text, claims, name = judged.record.reference, judged.claims.reference, "reference answer"
    if not (text or "").strip():
        raise _Undefined(f"there is no {name}")
    if claims is None:
        raise _Unjudged
    if not claims:
        raise _Undefined(f"the {name} makes no claim")


def _require_contexts(judged: JudgedAnswer) -> None:
    if not judged.record.contexts:
        raise _Undefined("there are no contexts")


def _share(known: Ternary) -> Score:
    count = len(known.sure)
    low, high = int(known.sure.sum()) / count, int(known.possible.sum()) / count
    return Score(low, low, high)


def _supported_by_context(judged: JudgedAnswer, claims: str = "answer") -> Ternary:
    """Return whether any context supports each claim; without contexts, none is supported."""
    _require_claims(judged, claims)
    return judged.matrix(f"{claims}-context").any()


def _contradicted_by_context(judged: JudgedAnswer) -> Ternary:
    supported = _supported_by_context(judged)
    return judged.matrix("answer-context", "contradicted").any() & ~supported


def _useful(judged: JudgedAnswer) -> Ternary:
    """Return whether each context supports a claim of the reference."""
    _require_contexts(judged)
    _require_claims(judged, "reference")
    return judged.matrix("reference-context").any(axis=0)


def _correct(judged: JudgedAnswer) -> Ternary:
    """Return whether the reference supports each claim of the answer."""
    _require_claims(judged, "answer")
    if not (judged.record.reference or "").strip():
        raise _Undefined("there is no reference answer")
    return judged.known("answer-reference")


def _relevant(judged: JudgedAnswer) -> Ternary:
    """Return whether each context is relevant to the question."""
    _require_contexts(judged)
    return judged.known("context-question", "relevant")


def _addresses_question(judged: JudgedAnswer) -> Ternary:
    """Return whether each claim of the answer addresses the question."""
    _require_claims(judged, "answer")
    return judged.known("answer-question", "relevant")


def _context_ap(judged: JudgedAnswer) -> Score:
    useful = _useful(judged)
    unknown = np.flatnonzero(useful.possible & ~useful.sure)
    # If m of the unknown contexts are useful, the value is highest for the first m of them and
    # lowest for the last m.
    ends = [end for cut in range(len(unknown) + 1) for end in (unknown[:cut], unknown[cut:])]
    ways = [_average_precision(useful.sure, more) for more in ends]
    return Score(_average_precision(useful.sure), min(ways), max(ways))


def _average_precision(useful: BoolArray, more: Sequence[int] | npt.NDArray[np.intp] = ()) -> float:
    useful = useful.copy()
    useful[list(more)] = True
    ranks = np.flatnonzero(useful) + 1
    if not len(ranks):
        return 0.0
    return math.fsum((np.arange(len(ranks)) + 1) / ranks) / len(ranks)


def _covered_claims(judged: JudgedAnswer) -> Ternary:
    """Return whether the answer supports each claim of the reference; a blank answer does not."""
    _require_claims(judged, "reference")
    if not (judged.record.answer or "").strip():
        return Ternary.of(["not stated"] * len(judged.claims.reference or ()), "supported")
    return judged.known("reference-answer")


def _answer_correctness(judged: JudgedAnswer) -> Score:
    covered = _share(_covered_claims(judged))
    if not (judged.record.answer or "").strip() or judged.claims.answer == ():
        # An answer without claims, such as an abstention, covers nothing.
        return Score(0.0, 0.0, 0.0)
    correct = _share(_correct(judged))
    low = _harmonic_mean(correct.low, covered.low)
    return Score(low, low, _harmonic_mean(correct.high, covered.high))


def _harmonic_mean(first: float, second: float) -> float:
    return 2 * first * second / (first + second) if first + second else 0.0


def _noise_sources(judged: JudgedAnswer) -> tuple[Ternary, Ternary]:
    """Return whether each wrong claim comes from a useful context, or only from other contexts."""
    wrong = ~_correct(judged)
    useful, support = _useful(judged), judged.matrix("answer-context")
    by_useful, by_other = (support & useful).any(), (support & ~useful).any()
    return wrong & by_useful, wrong & by_other & ~by_useful


def _context_utilization(judged: JudgedAnswer) -> Score:
    """Return the share of reference claims supported by the contexts that the answer states."""
    _require_contexts(judged)
    supported, used = _supported_by_context(judged, "reference"), _covered_claims(judged)
    both = supported & used
    if not supported.possible.any():
        raise _Undefined("the contexts support no claim of the reference")
    sure = int(supported.sure.sum())
    # Lowest: unknown claims are in the contexts but unused. Highest: they are in both.
    unknown = supported.possible & ~supported.sure
    never = int((unknown & ~used.sure).sum())
    low = int(both.sure.sum()) / (sure + never) if sure + never else 1.0
    can = int((unknown & used.possible).sum())
    high = (int((supported.sure & used.possible).sum()) + can) / (sure + can) if sure + can else 0.0
    return Score(low, low, high)


def _citation_precision(judged: JudgedAnswer) -> Score:
    """Return the share of citations that support their sentence; unknown contexts count as 0."""
    citations = judged.record.citations
    if not citations:
        raise _Undefined("the answer cites nothing")
    known = judged.known("citation-context")
    low, high = int(known.sure.sum()), int(known.possible.sum())
    return Score(low / len(citations), low / len(citations), high / len(citations))


def _supported_by_citation(judged: JudgedAnswer) -> Ternary:
    """Return whether a cited context supports each claim of the answer."""
    _require_claims(judged, "answer")
    cited = {citation.context for citation in judged.record.citations}
    is_cited = np.array([context.id in cited for context in judged.record.contexts], dtype=bool)
    return (judged.matrix("answer-context") & Ternary(is_cited, is_cited)).any()


def _nuggets(judged: JudgedAnswer, *, vital: bool, strict: bool) -> Score:
    if judged.claims.nuggets is None:
        raise _Undefined("there are no nuggets") if not judged.record.reference else _Unjudged()
    chosen = np.array([nugget.vital or not vital for nugget in judged.claims.nuggets], dtype=bool)
    if not chosen.any():
        raise _Undefined("there is no vital nugget" if vital else "there are no nuggets")
    if not (judged.record.answer or "").strip():
        return Score(0.0, 0.0, 0.0)
    whole = judged.known("nugget-answer")
    partly = judged.known("nugget-answer", "partly supported")
    half = 0.0 if strict else 0.5
    low = whole.sure * 1.0 + partly.sure * half
    high = np.where(whole.possible, 1.0, partly.possible * half)
    count = int(chosen.sum())
    least, most = math.fsum(low[chosen]) / count, math.fsum(high[chosen]) / count
    return Score(least, least, most)


def _abstains(judged: JudgedAnswer) -> Ternary:
    if judged.record.answer is None:
        raise _Undefined("there is no answer")
    if not judged.record.answer.strip():
        return Ternary(np.ones(1, dtype=bool), np.ones(1, dtype=bool))
    return judged.known("abstention", "abstains")


def _abstention_if(judged: JudgedAnswer, *, answerable: bool) -> Score:
    """Return whether the system abstains, only for questions that are (or are not) answerable."""
    known = judged.known("answerability", "answerable")
    if judged.record.answerable is not None:
        stated = np.array([judged.record.answerable])
        known = Ternary(stated, stated)
    if not answerable:
        known = ~known
    if not known.possible[0]:
        raise _Undefined(f"the question is {'not ' if answerable else ''}answerable")
    abstained = _share(_abstains(judged))
    return abstained if known.sure[0] else Score(math.nan, abstained.low, abstained.high)


_ALL_CLAIMS = ("answer-reference", "answer-context", "reference-context")
_ABSTENTIONS = ("abstention", "answerability")
# Measures that are a share of units (claims, contexts, answers) with a property, each with the
# relations whose verdicts it needs.
_SHARES: Mapping[str, tuple[Callable[[JudgedAnswer], Ternary], tuple[str, ...]]] = {
    "ContextRelevance": (_relevant, ("context-question",)),
    "ContextPrecision": (_useful, ("reference-context",)),
    "ContextRecall": (lambda judged: _supported_by_context(judged, "reference"), ("reference-context",)),
    "Faithfulness": (_supported_by_context, ("answer-context",)),
    "Contradicted": (_contradicted_by_context, ("answer-context",)),
    "NotStated": (
        lambda judged: ~(_supported_by_context(judged) | _contradicted_by_context(judged)),
        ("answer-context",),
    ),
    "AnswerRelevance": (_addresses_question, ("answer-question",)),
    "Completeness": (_covered_claims, ("reference-answer",)),
    "AnswerPrecision": (_correct, ("answer-reference",)),
    "NoiseFromUseful": (lambda judged: _noise_sources(judged)[0], _ALL_CLAIMS),
    "NoiseFromOthers": (lambda judged: _noise_sources(judged)[1], _ALL_CLAIMS),
    "SelfKnowledge": (
        lambda judged: _correct(judged) & ~_supported_by_context(judged),
        ("answer-reference", "answer-context"),
    ),
    "Hallucination": (
        lambda judged: ~(_correct(judged) | _supported_by_context(judged)),
        ("answer-reference", "answer-context"),
    ),
    "CitationRecall": (_supported_by_citation, ("answer-context",)),
    "Abstention": (_abstains, ("abstention",)),
}
# Other measures, with the relations whose verdicts they need.
_OTHERS: Mapping[str, tuple[Callable[[JudgedAnswer], Score], tuple[str, ...]]] = {
    "ContextAP": (_context_ap, ("reference-context",)),
    "AnswerCorrectness": (_answer_correctness, ("answer-reference", "reference-answer")),
    "ContextUtilization": (_context_utilization, ("reference-context", "reference-answer")),
    "CitationPrecision": (_citation_precision, ("citation-context",)),
    "Nuggets": (partial(_nuggets, vital=False, strict=False), ("nugget-answer",)),
    "StrictNuggets": (partial(_nuggets, vital=False, strict=True), ("nugget-answer",)),
    "VitalNuggets": (partial(_nuggets, vital=True, strict=False), ("nugget-answer",)),
    "StrictVitalNuggets": (partial(_nuggets, vital=True, strict=True), ("nugget-answer",)),
    "WrongAbstention": (partial(_abstention_if, answerable=True), _ABSTENTIONS),
    "RightAbstention": (partial(_abstention_if, answerable=False), _ABSTENTIONS),
}
# Every measure with the relations whose verdicts it needs.
RELATIONS: Mapping[str, tuple[str, ...]] = {
    name: relations for name, (_, relations) in (*_SHARES.items(), *_OTHERS.items())
}
# Shares of units from the verdicts of one relation: they can be corrected for errors of the judge.
CORRECTABLE = frozenset(
    {
        "ContextRelevance",
        "ContextPrecision",
        "ContextRecall",
        "Faithfulness",
        "Contradicted",
        "AnswerRelevance",
        "Completeness",
        "AnswerPrecision",
        "Abstention",
    }
)


def unit_values(measure: Measure, judged: JudgedAnswer) -> npt.NDArray[np.float64]:
    """Return the values whose mean is the value for a question; NaN where verdicts are missing.

    They are 1 or 0 for each unit (claim, context, or answer) if the measure is a share of units of
    one kind; otherwise the value itself. The result is empty for a share that is undefined.
    """
    if measure.name not in CORRECTABLE or measure.arguments.get("like") is not None:
        return np.array([score(measure, judged).value])
    try:
        known = _SHARES[measure.name][0](judged)
    except (_Undefined, _Unjudged):
        known = Ternary.of([], "supported")
    return np.where(known.sure == known.possible, known.sure, math.nan)


def _as_tool(name: str, tool: str, judged: JudgedAnswer) -> float:
    """Return the value that another tool gives for these verdicts (ragas 0.4, deepeval 4.3)."""
    if name == "ContextAP":
        useful = judged.matrix("reference-context").any(axis=0).sure
        ranks = np.flatnonzero(useful) + 1
        total = math.fsum((np.arange(len(ranks)) + 1) / ranks)
        if not len(useful):
            return math.nan
        return total / (len(ranks) + 1e-10) if tool == "ragas" else total / max(len(ranks), 1)
    relation = "reference-context" if name == "ContextRecall" else "answer-context"
    known, against = judged.matrix(relation), judged.matrix(relation, "contradicted")
    # Claims without any verdict are skipped, as in tools that average existing verdicts.
    labels = judged.labels.get(relation, ())
    columns = len(judged.record.contexts)
    rows = [
        row
        for row in range(len(known.sure))
        if any(label is not None for label in labels[row * columns : (row + 1) * columns])
    ]
    if tool == "ragchecker":
        rows = list(range(len(known.sure)))
    if not rows:
        return {"ragas": math.nan, "deepeval": 1.0, "ragchecker": 0.0}[tool]
    good = known.sure[rows].any(axis=1)
    if tool == "deepeval" and name == "Faithfulness":
        good = ~(against.sure[rows].any(axis=1) & ~good)
    return int(good.sum()) / len(rows)


def relations_of(measure: Measure) -> tuple[str, ...]:
    """Return the relations that a measure needs; for a criterion, with its name."""
    if measure.name == "Criterion":
        return (f"criterion {measure.arguments['name']}",)
    return RELATIONS[measure.name]


def score(measure: Measure, judged: JudgedAnswer) -> Score:
    """Compute the value of a measure for one question.

    Args:
        measure: A measure of answers.
        judged: A record with its claims and verdicts.
    """
    relations = relations_of(measure)
    missing = judged.missing(*relations)
    like = measure.arguments.get("like")
    if like is not None:
        value = _as_tool(measure.name, str(like), judged)
        return Score(value, value, value, missing)
    try:
        if measure.name == "Criterion":
            if not (judged.record.answer or "").strip():
                raise _Undefined("there is no answer")  # noqa: TRY301 - as by the other measures
            result = _share(judged.known(relations[0], "met"))
        elif measure.name in _SHARES:
            result = _share(_SHARES[measure.name][0](judged))
        else:
            result = _OTHERS[measure.name][0](judged)
    except _Undefined as reason:
        return Score(math.nan, math.nan, math.nan, 0, str(reason))
    except _Unjudged:
        return Score(math.nan, 0.0, 1.0, max(missing, 1))
    value = result.value if result.low == result.high else math.nan
    return result._replace(value=value, missing=missing)

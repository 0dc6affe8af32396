"""Findings: what is noticed about an input, and the kinds of findings with their codes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

__all__ = [
    "FINDING_KINDS", "SEVERITIES", "Effect", "Evidence", "Finding", "FindingKind", "Location",
    "Severity", "explaining",
]  # fmt: skip

Severity: TypeAlias = Literal["error", "warning", "info"]
#: The worst first.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True)
class Location:
    """Where a finding applies: the known ones of source, line, query and document.

    Attributes:
        source: The path, or the name of the input.
        line: The line, from 1; 0 if unknown.
        query: The query id; empty if no single query is affected.
        document: The document id; empty if no single document is affected.
    """

    source: str
    line: int = 0
    query: str = ""
    document: str = ""


@dataclass(frozen=True)
class Effect:
    """The measured effect of a finding on a mean: as it is, and under a stated condition.

    Where the true mean is unknown (order of equal scores, unjudged documents), two effects give its
    lowest and its highest possible value.

    Attributes:
        run: The run.
        measure: The name of the measure.
        now: The mean of the input as it is; NaN where an evaluation refuses the input.
        then: The mean under the condition `by`.
        by: The condition, such as ``"ids without leading zeros"``.
    """

    run: str
    measure: str
    now: float
    then: float
    by: str

    def __str__(self) -> str:
        return f"{self.change()} ({self.by})"

    def change(self) -> str:
        """Return both means with four decimals; NaN is a dash.

        Example:
            >>> Effect("bm25", "nDCG@10", 0.0, 0.352, "ids without leading zeros").change()
            'nDCG@10 0.0000 → 0.3520'
        """
        return f"{self.measure} {_number(self.now)} → {_number(self.then)}"

    def changes(self) -> bool:
        """Return whether the means differ in four decimals."""
        return _number(self.now) != _number(self.then)


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4f}"


@dataclass(frozen=True)
class Evidence:
    """What a finding was made from.

    Attributes:
        source: The path, or the name of the input.
        count: How often it was found.
        of: Out of how many; 0 if that has no meaning.
        unit: What is counted: ``query``, ``document``, ``judgment``, ``line``.
        locations: The first locations.
        effects: Measured effects; empty if nothing could be measured.
    """

    source: str
    count: int
    of: int = 0
    unit: str = ""
    locations: tuple[Location, ...] = ()
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True)
class Finding:
    """Something noticed about an input or a result that matters for its interpretation.

    Attributes:
        code: The code of its kind, as in :data:`FINDING_KINDS`; empty without one.
        severity: ``error``: it explains the numbers, so that no verdict is drawn from them;
            ``warning``: they may mislead; ``info``: to know.
        message: What was found.
        effect: What it does to the numbers.
        fix: The command or edit that fixes it.
        evidence: Source, counts, locations and measured effects, where they are known.
    """

    code: str
    severity: Severity
    message: str
    effect: str = ""
    fix: str = ""
    evidence: Evidence | None = None

    def __str__(self) -> str:
        text = "; ".join(filter(None, (self.message, self.fix)))
        return f"{text} ({self.code})" if self.code else text

    @property
    def note(self) -> str:
        """The text below a table: warnings and errors are marked."""
        return str(self) if self.severity == "info" else f"WARNING: {self}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, without `evidence` if there is none."""
        data = asdict(self)
        if self.evidence is None:
            del data["evidence"]
        return data


def explaining(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that explain the numbers: with one of them no verdict is drawn.

    Example:
        >>> explaining([Finding("P104", "warning", "2 queries without results")])
        ()
    """
    return tuple(found for found in findings if found.severity == "error")


@dataclass(frozen=True)
class FindingKind:
    """A kind of finding; its code never changes its meaning.

    Attributes:
        code: A letter for what is checked (J judgments, R runs, P the pair of them, M measures,
            T texts, F files) and three digits.
        name: A few words with hyphens, such as ``rank-contradicts-score``.
        severity: As of a :class:`Finding`.
        description: What it is.
        effect: What it does to the numbers.
        fix: How to fix it.
        automatic: ``safe``: a fixed copy loses nothing and is unambiguous; ``on request``: a copy
            is fixed only if the code is named; empty: a person has to decide.
    """

    code: str
    name: str
    severity: Severity
    description: str
    effect: str
    fix: str
    automatic: Literal["safe", "on request", ""] = ""


_ALL = (
    FindingKind(
        "F101", "unreadable-line", "error",
        "lines that cannot be read as judgments or as a run",
        "an evaluation refuses the file; tools that do not look read the line as something else",
        "fix the lines that are named, or write a copy without them",
        "on request",
    ),
    FindingKind(
        "F102", "ids-not-utf8", "info",
        "ids that are not text in UTF-8",
        "they are compared byte by byte; the same id in another encoding does not match",
        "write both files in UTF-8",
    ),
    FindingKind(
        "J101", "judged-twice", "error",
        "a document is judged more than once for one query, each time with the same grade",
        "an evaluation refuses the judgments; other tools count it once or twice",
        "keep one of the lines",
        "safe",
    ),
    FindingKind(
        "J102", "judged-twice-differently", "error",
        "a document is judged more than once for one query, with different grades",
        "the numbers depend on which of the grades a tool happens to keep",
        "decide which grade holds (the last, the highest, that of most judges) and keep it alone",
    ),
    FindingKind(
        "J103", "no-relevant-document", "warning",
        "a judged query has no relevant document",
        "nothing can be found for it: most measures are undefined and count 0 in the mean",
        "judge more documents for it, or leave the query out",
    ),
    FindingKind(
        "J104", "grade-below-rel", "warning",
        "grades above 0 that do not reach the relevance level of the measures",
        "P, R, AP, RR and their like count such documents as not relevant; nDCG counts them a bit",
        "name the level, as in AP(rel=0.5), or write the grades as whole numbers",
    ),
    FindingKind(
        "J105", "grade-out-of-scale", "warning",
        "grades that do not belong to the scale",
        "one grade far above the others rules nDCG; one below -2 is mostly a typing error",
        "look at the judgments that are named",
    ),
    FindingKind(
        "J106", "grade-above-top", "warning",
        "grades above the top grade that ERR takes",
        "ERR refuses them; with another top its values are others",
        "state the top of the scale, as in ERR(top=5)@20",
    ),
    FindingKind(
        "J107", "recall-out-of-reach", "warning",
        "queries have more relevant documents than the cut-off of R",
        "R@k cannot reach 1 for them, so its mean looks worse than the ranking is",
        "choose a deeper cut-off, or Rprec or nDCG, which can reach 1",
    ),
    FindingKind(
        "J108", "only-relevant", "info",
        "the judgments name relevant documents only",
        "nobody knows whether a document without a judgment was looked at: a new retriever that "
        "finds other good documents gets no credit",
        "keep documents that were judged not relevant, with grade 0",
    ),
    FindingKind(
        "R101", "document-twice", "error",
        "a document stands more than once in a ranking",
        "an evaluation refuses it; tools that do not look count it each time, and push others down",
        "keep its best place (chunks of one document: keep the best of them)",
        "on request",
    ),
    FindingKind(
        "R102", "score-not-finite", "error",
        "scores that are NaN or infinite",
        "an evaluation refuses them; elsewhere their place depends on the order of the lines",
        "leave such documents out, or give them a finite score",
        "on request",
    ),
    FindingKind(
        "R103", "rank-contradicts-score", "warning",
        "the rank column says another order than the scores",
        "evaluations go by the scores and ignore the rank; who reads the ranks sees other rankings",
        "find out which holds; write scores that descend with the rank",
        "on request",
    ),
    FindingKind(
        "R104", "ascending-scores", "error",
        "the best documents have the lowest scores: distances were written as scores",
        "every ranking is read from its end",
        "write -distance, or 1 - distance, as the score",
        "on request",
    ),
    FindingKind(
        "R105", "cut-below-k", "warning",
        "rankings are cut above the cut-off of a measure",
        "what stands below the cut counts as not found, so a deeper run looks better than it is",
        "retrieve at least as many documents as the deepest cut-off, the same for every run",
    ),
    FindingKind(
        "R106", "constant-scores", "error",
        "all scores of a ranking are equal",
        "the order is that of the document ids, not that of the retriever",
        "write scores that descend with the rank, or evaluate with ties=input",
    ),
    FindingKind(
        "R107", "scores-collapse-in-32-bits", "warning",
        "scores differ only beyond what 32-bit floats hold",
        "trec_eval 9 and pytrec_eval, and all that is built on them, see equal scores there",
        "subtract what is common to all scores, or write the negative rank as the score",
    ),
    FindingKind(
        "R108", "self-retrieved", "warning",
        "a query retrieves itself: a document has the id of the query",
        "it takes the first rank, and is judged for hardly any query",
        "leave the query's own document out of its ranking",
        "on request",
    ),
    FindingKind(
        "R109", "ties-decide", "warning",
        "documents of different grades have equal scores",
        "the value depends on how equal scores are put in order, which tools do differently",
        "write scores with all their digits, or break ties by a second criterion",
    ),
    FindingKind(
        "R110", "same-as-another-run", "warning",
        "two runs are identical to the last document and score",
        "a comparison of them compares nothing",
        "look whether one was written under two names, or a setting had no effect",
    ),
    FindingKind(
        "P101", "no-common-query", "error",
        "judgments and run have no query in common",
        "there is nothing to evaluate",
        "use the query ids of the judgments in the run; look whether the files belong together",
    ),
    FindingKind(
        "P102", "no-common-document", "error",
        "no document of the run is among the judged ones",
        "every value is 0",
        "use the document ids of the judgments in the run; look whether the files belong together",
    ),
    FindingKind(
        "P103", "ids-written-differently", "error",
        "ids are the same but for the way they are written",
        "what is written differently does not match: found documents count as missed",
        "write the ids the same way in both",
        "safe",
    ),
    FindingKind(
        "P104", "query-missing-from-run", "warning",
        "judged queries are not in the run",
        "they count 0 in the mean; tools that leave them out report a higher one",
        "run the missing queries, or evaluate with queries=intersection and say so",
    ),
    FindingKind(
        "P105", "query-without-judgments", "info",
        "queries of the run have no judgments",
        "they are left out",
        "nothing, if the judgments are meant to cover a part of the queries",
    ),
    FindingKind(
        "P106", "unjudged-at-k", "warning",
        "documents in the first k of the rankings have no judgment",
        "they count as not relevant; if some are relevant the value is too low",
        "judge them, compare only runs that are judged alike, or use Bpref or nDCG(judged_only)",
    ),
    FindingKind(
        "P107", "suspiciously-perfect", "warning",
        "the run is too good to be true",
        "judgments and run may have been made from each other; the value says nothing then",
        "look where the run and the judgments come from",
    ),
    FindingKind(
        "P108", "unrelated-judgments", "error",
        "the rankings fit the judgments of other queries as well as their own",
        "ids meet by accident: the values are those of chance",
        "look whether these judgments are of this collection, and whether its ids were renumbered",
    ),
    FindingKind(
        "P109", "ids-off-by-one", "error",
        "ids are numbers, and those of one side are one higher than those of the other",
        "found documents count as missed, and others as found by accident",
        "number both the same way: one side counts from 0, the other from 1",
    ),
    FindingKind(
        "M101", "single-measure", "info",
        "one measure is reported alone",
        "it hides what it does not look at: nDCG@10 says nothing of what was missed",
        "report one of precision, one of recall and one of order: P@10, R@100, nDCG@10",
    ),
    FindingKind(
        "T101", "empty-text", "warning",
        "documents without text",
        "a retriever of texts cannot find them; where they are judged relevant recall cannot be 1",
        "fetch the texts again, or leave the documents out",
    ),
    FindingKind(
        "T102", "repeated-text", "warning",
        "documents with the same text under different ids",
        "only one of them is judged: the other takes its place and counts as not relevant",
        "keep one of them, or judge all alike",
    ),
    FindingKind(
        "T103", "question-inside-document", "warning",
        "the text of a query stands word for word in a document",
        "it is found by any retriever of words: the values are higher than on real questions",
        "take the question out of the document, or the query out of the test",
    ),
    FindingKind(
        "T104", "document-not-in-collection", "warning",
        "judged or retrieved documents are not in the collection",
        "nobody can find a judged document that is not there; a retrieved one comes from elsewhere",
        "use the collection that was judged and searched, and its ids",
    ),
    FindingKind(
        "T105", "query-not-in-collection", "warning",
        "judged or retrieved queries have no text in the collection",
        "they belong to another set of queries, or to another version of it",
        "use the queries that were judged and searched, and their ids",
    ),
)  # fmt: skip

FINDING_KINDS: Mapping[str, FindingKind] = MappingProxyType({kind.code: kind for kind in _ALL})

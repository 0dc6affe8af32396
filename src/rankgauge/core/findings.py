"""Findings (problems of an input or a result) and the registry of their kinds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from rankgauge.core.text import shortened

Severity: TypeAlias = Literal["error", "warning", "info"]
#: Most severe first.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True)
class Location:
    """Location of a finding, as far as it is known.

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
    """Measured effect of a finding on a mean: the current mean and the mean under a condition.

    Where the true mean is unknown (ties, unjudged documents), two effects give its lowest and
    highest possible values.

    Attributes:
        run: The run.
        measure: The name of the measure.
        before: The mean of the input as given; NaN if an evaluation rejects the input.
        after: The mean under the condition.
        condition: The condition, such as ``"ids without leading zeros"``.
    """

    run: str
    measure: str
    before: float
    after: float
    condition: str

    def __str__(self) -> str:
        return f"{self.change()} ({self.condition})"

    def change(self) -> str:
        """Return both means with four decimals; NaN is shown as a dash.

        Example:
            >>> Effect("bm25", "nDCG@10", 0.0, 0.352, "ids without leading zeros").change()
            'nDCG@10 0.0000 → 0.3520'
        """
        return f"{self.measure} {_number(self.before)} → {_number(self.after)}"

    def changes(self) -> bool:
        """Return whether the means differ when rounded to four decimals."""
        return _number(self.before) != _number(self.after)


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4f}"


@dataclass(frozen=True)
class Evidence:
    """Evidence of a finding.

    Attributes:
        source: The path, or the name of the input.
        count: Number of occurrences.
        of: Total number of units; 0 if not applicable.
        unit: The unit: ``query``, ``document``, ``judgment``, ``line``.
        locations: The first locations.
        effects: Measured effects; empty if nothing could be measured.
        examples: The first occurrences as text, if they have no location.
    """

    source: str = ""
    count: int = 0
    of: int = 0
    unit: str = ""
    locations: tuple[Location, ...] = ()
    effects: tuple[Effect, ...] = ()
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """A problem of an input or a result that affects its interpretation.

    Attributes:
        code: The code of its kind in :data:`rankgauge.checks.FINDING_KINDS`; may be empty.
        severity: ``error`` (the numbers are wrong because of it, so verdicts are withheld),
            ``warning`` (the numbers may mislead), or ``info``.
        message: What was found.
        effect: Its effect on the numbers.
        fix: The command or edit that fixes it.
        evidence: Source, counts, locations, and measured effects, where known.
    """

    code: str
    severity: Severity
    message: str
    effect: str = ""
    fix: str = ""
    evidence: Evidence = Evidence()

    def __post_init__(self) -> None:
        for name in ("message", "effect", "fix"):
            object.__setattr__(self, name, shortened(getattr(self, name)))

    def __str__(self) -> str:
        text = "; ".join(filter(None, (self.message, self.fix)))
        return f"{text} ({self.code})" if self.code else text

    @property
    def note(self) -> str:
        """Text of the note below a table; warnings and errors are marked."""
        return str(self) if self.severity == "info" else f"WARNING: {self}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, without `evidence` if it is empty."""
        data = asdict(self)
        if self.evidence == Evidence():
            del data["evidence"]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Finding:
        """Return the finding of a dictionary created by `to_dict`, without its evidence."""
        return cls(data["code"], data["severity"], data["message"], data.get("effect", ""), data.get("fix", ""))


def explaining(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings of severity ``error``, which withhold all verdicts.

    Example:
        >>> explaining([Finding("P104", "warning", "2 queries without results")])
        ()
    """
    return tuple(finding for finding in findings if finding.severity == "error")


@dataclass(frozen=True)
class FindingKind:
    """A kind of finding; codes keep their meaning across versions.

    Attributes:
        code: A letter for the subject (J judgments, R runs, P judgments with runs, M measures, T
            texts, F files, C comparisons) and three digits.
        name: Hyphenated name, such as ``rank-contradicts-score``.
        severity: Severity, as in :class:`Finding`.
        description: A description of the finding.
        effect: Its effect on the numbers.
        fix: How to fix it.
        automatic: ``safe`` (the fix is unambiguous), ``on request`` (a copy is fixed only if the
            code is named), or empty (it needs a manual fix).
    """

    code: str
    name: str
    severity: Severity
    description: str
    effect: str
    fix: str
    automatic: Literal["safe", "on request", ""] = ""

    def finding(  # noqa: PLR0917 - the order of Evidence
        self,
        message: str,
        source: str,
        count: int,
        of: int = 0,
        unit: str = "",
        *,
        locations: tuple[Location, ...] = (),
        effects: tuple[Effect, ...] = (),
        fix: str = "",
    ) -> Finding:
        """Return a finding of this kind with its evidence; `fix` replaces the default fix."""
        return Finding(
            self.code,
            self.severity,
            message,
            self.effect,
            fix or self.fix,
            Evidence(source, count, of, unit, locations, effects),
        )


# Kinds that packages below `checks` also report; the others are next to the checks.

NO_COMMON_DOCUMENT = FindingKind(
    "P102",
    "no-common-document",
    "error",
    "no document of the run is judged",
    "every value is 0",
    "use the document ids of the judgments in the run; check that the files belong together",
)
IDS_WRITTEN_DIFFERENTLY = FindingKind(
    "P103",
    "ids-written-differently",
    "error",
    "ids differ only in spelling",
    "different spellings do not match: retrieved documents count as missed",
    "write ids the same way in both files",
    "safe",
)
QUERY_MISSING = FindingKind(
    "P104",
    "query-missing-from-run",
    "warning",
    "judged queries are not in the run",
    "they count as 0 in the mean; tools that exclude them report a higher mean",
    "run the missing queries, or evaluate with queries=intersection and say so",
)
IDS_OFF_BY_ONE = FindingKind(
    "P109",
    "ids-off-by-one",
    "error",
    "ids are numbers, and those of one side are one higher than those of the other",
    "retrieved documents count as missed, and others match by accident",
    "number both from 0 or both from 1",
)
ASCENDING_SCORES = FindingKind(
    "R104",
    "ascending-scores",
    "error",
    "the best documents have the lowest scores: distances were written as scores",
    "every ranking is reversed",
    "write -distance, or 1 - distance, as the score",
    "on request",
)
DOCUMENT_NOT_IN_COLLECTION = FindingKind(
    "T104",
    "document-not-in-collection",
    "warning",
    "judged or retrieved documents are not in the collection",
    "a judged document that is missing cannot be retrieved; a retrieved one is from another collection",
    "use the collection that was judged and searched, and its ids",
)

NO_RELEVANT_DOCUMENT = FindingKind(
    "J103",
    "no-relevant-document",
    "warning",
    "a judged query has no relevant document",
    "most measures are undefined for it and count as 0 in the mean",
    "judge more documents for it, or leave the query out",
)

EMPTY_TEXT = FindingKind(
    "T101",
    "empty-text",
    "warning",
    "documents without text",
    "text retrievers cannot find them; if they are relevant, recall cannot reach 1",
    "load the texts again, or remove the documents",
)

REPEATED_TEXT = FindingKind(
    "T102",
    "repeated-text",
    "warning",
    "documents with the same text under different ids",
    "if only one is judged, the other counts as not relevant",
    "keep one of them, or give them all the same grade",
)

QUESTION_INSIDE_DOCUMENT = FindingKind(
    "T103",
    "question-inside-document",
    "warning",
    "the text of a query occurs word for word in a document",
    "any keyword retriever finds it: values are higher than for real questions",
    "remove the question from the document, or the query from the test",
)

QUERY_NOT_IN_COLLECTION = FindingKind(
    "T105",
    "query-not-in-collection",
    "warning",
    "judged or retrieved queries have no text in the collection",
    "they belong to another set of queries, or another version of it",
    "use the queries that were judged and searched, and their ids",
)

INPUT_KINDS: Mapping[str, FindingKind] = MappingProxyType(
    {kind.code: kind for kind in list(globals().values()) if isinstance(kind, FindingKind)}
)

#: Findings of comparisons, by code.
COMPARISON_KINDS: Mapping[str, FindingKind] = MappingProxyType(
    {
        kind.code: kind
        for kind in (
            FindingKind(
                "C101",
                "few-queries",
                "warning",
                "fewer than 25 queries are compared",
                "intervals are wide, and a single query can change the mean",
                "judge more queries; the comparison shows how many queries its difference needs",
            ),
            FindingKind(
                "C102",
                "many-ties",
                "warning",
                "more than one in ten queries have equal scores for judged documents",
                "breaking ties differently could change their values",
                "write scores with more digits; rankgauge sensitivity ties shows the effect",
            ),
            FindingKind(
                "C103",
                "queries-missing",
                "warning",
                "queries are missing from a run",
                "they count as empty rankings",
                "run the missing queries, or compare with queries=intersection and say so",
            ),
            FindingKind(
                "C104",
                "weighted-means",
                "warning",
                "means are weighted, differences are not",
                "the difference of two means is not the mean of the differences",
                "read intervals and tests as those of equally weighted queries",
            ),
            FindingKind(
                "C105",
                "few-differences",
                "warning",
                "fewer than 6 queries differ",
                "no test can be significant",
                "inspect these queries: rankgauge diff",
            ),
            FindingKind(
                "C106",
                "one-query-decides",
                "warning",
                "one query accounts for most of the difference",
                "without it the difference could vanish or change sign",
                "inspect this query: rankgauge explain",
            ),
            FindingKind(
                "C107",
                "relevant-documents-only",
                "warning",
                "the judgments list only relevant documents",
                "the share of unjudged documents in each run is unknown",
                "also record documents judged not relevant",
            ),
            FindingKind(
                "C108",
                "judged-shares-differ",
                "warning",
                "the runs have different shares of judged documents at the top",
                "unjudged documents count as not relevant: the run with more of them is penalized",
                "judge these documents, or also compare with unjudged=removed",
            ),
            FindingKind(
                "C109",
                "depths-differ",
                "warning",
                "the rankings of one run are shorter than those of another",
                "measures without a cut-off favor the deeper run",
                "retrieve the same number of documents, or use measures with a cut-off that all runs reach",
            ),
            FindingKind(
                "C110",
                "rankings-too-short",
                "warning",
                "no ranking of a run reaches the cut-off of the measure",
                "the measure is limited by the depth of the run",
                "retrieve deeper, or use a lower cut-off",
            ),
            FindingKind(
                "C111",
                "skewed-differences",
                "warning",
                "the differences are too skewed for the number of queries (fewer than 25 times the squared skewness)",
                "the p-value may be too small",
                "rely on the interval, or judge more queries",
            ),
            FindingKind(
                "C112",
                "several-settings-changed",
                "warning",
                "more than one setting, or the judge, changed between two evaluations of answers",
                "the difference cannot be attributed to one of the changes",
                "change one at a time, with the same judge",
            ),
        )
    }
)

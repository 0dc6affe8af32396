"""`render` formats every result; the registry lists the reports and their formats."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from rankgauge.core.escaping import for_annotation
from rankgauge.core.grouping import group_values
from rankgauge.errors import InputError, UnknownName
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Format, Table, render_table, short_tables

if TYPE_CHECKING:
    from rankgauge.corpus import Collection
    from rankgauge.diagnosis import Diagnosis

_NUMBER = re.compile(r"[+-]?\d")
FORMATS: tuple[str, ...] = get_args(Format)
# Results with a module for their report.
_MODULES = {
    "AnswerDiagnosis": "answers",
    "AnswerEvaluation": "answers",
    "BenchmarkComparison": "benchmarks",
    "BenchmarkRun": "benchmarks",
    "CheckResult": "checks",
    "Comparison": "comparisons",
    "Diagnosis": "diagnoses",
    "DistributedComparison": "comparisons",
    "HistoryEntries": "comparisons",
    "HistoryEntry": "comparisons",
    "Evaluation": "evaluations",
    "Explanation": "explanations",
    "Exploration": "benchmarks",
    "GateResult": "gates",
    "Reconciliation": "explanations",
    "Reproduction": "explanations",
    "RunDiff": "comparisons",
    "TieReport": "comparisons",
    "Trend": "comparisons",
}


@dataclass(frozen=True)
class Options:
    """Options of a report. Results ignore options that do not apply to them.

    Attributes:
        format: Output format, set by `render`.
        color: Whether to use terminal colors.
        full: Whether to show everything.
        quiet: Whether to show numbers only: tables without titles, marks, and notes.
        per_query: Whether to show the values of every query instead of the means.
        transposed: Whether to show runs as rows and measures as columns.
        strict: Whether JUnit and annotations show INCONCLUSIVE as a failure.
        last: Number of latest history entries to show; default: all.
        measures: Measures of history entries; default: nDCG@10, or the first measure of the latest
            entry.
        diagnosis: Diagnosis of a run of a benchmark, to show after the runs.
        collection: Texts, which reveal more failure patterns in an exploration.
        k: Cut-off of these failure patterns.
    """

    format: str = "table"
    color: bool = False
    full: bool = False
    quiet: bool = False
    per_query: bool = False
    transposed: bool = False
    strict: bool = False
    last: int | None = None
    measures: Sequence[Any] = ()
    diagnosis: Diagnosis | None = None
    collection: Collection | None = None
    k: int = 5

    @property
    def on_terminal(self) -> bool:
        """Whether the report is for a terminal, which limits its width."""
        return self.format == "table"

    @property
    def short(self) -> bool:
        """Whether the report must fit a screen."""
        return self.on_terminal and not self.full


@dataclass(frozen=True)
class Report:
    """Report of a class of results."""

    # Yields tables and formatted texts, in order; by default those of the result.
    blocks: Callable[[Any, Options], Iterable[Table | str]] = lambda result, _options: result.tables()
    # Returns the table of unformatted values for CSV; by default that of the result.
    data: Callable[[Any, Options], Table] = lambda result, _options: result.data_table()
    # Formats that only this class has, or that are not built from its tables.
    formats: Mapping[str, Callable[[Any, Options], str]] = field(default_factory=dict)
    # Whether several results make one report; both functions then take a sequence.
    several: bool = False


_NO_OPTIONS = Options()


def render(result: Result | Sequence[Result], format: str = "table", options: Options = _NO_OPTIONS) -> str:
    """Format results as text.

    Args:
        result: A result, or several results of the same class.
        format: ``table`` (for a terminal), ``markdown``, ``latex``, ``html``, ``csv`` (one table of
            unformatted values), ``json`` (complete; one document per line); for evaluations also
            ``trec`` (as trec_eval prints), for a gate ``junit``, for a gate and a check ``github``
            (annotations).
        options: Options of the report.

    Raises:
        UnknownName: For a format that the result does not have.
        InputError: If there are no results.

    Example:
        >>> import rankgauge
        >>> ev = rankgauge.evaluate({"q1": {"d1"}}, {"q1": ["d1"]}, ["P@1"])
        >>> print(render(ev, "csv"), end="")
        run,P@1
        run,1.0
    """
    results = (result,) if isinstance(result, Result) else tuple(result)
    options = replace(options, format=format)
    if not results:
        raise InputError("there are no results to report", fix="pass at least one")
    kind, report = type(results[0]), Report()
    if kind.__name__ in _MODULES:
        report = importlib.import_module(f"rankgauge.reports.{_MODULES[kind.__name__]}").REPORTS[kind.__name__]
    known = dict.fromkeys((*FORMATS, *report.formats))
    if format not in known:
        raise UnknownName.of("format", format, known)
    if format == "json" and format not in report.formats:
        return "".join(entry.to_json() + "\n" for entry in results)
    parts: list[Table | str] = []
    for group in [results] if report.several else results:
        if format in report.formats:
            parts.append(report.formats[format](group, options))
        else:
            parts += [report.data(group, options)] if format == "csv" else report.blocks(group, options)
    if options.short:
        parts = short_tables(parts)
    if options.quiet:
        parts = [*_numbers(parts)]
    texts = (part if isinstance(part, str) else render_table(part, format, color=options.color) for part in parts)
    return "\n".join(filter(None, texts))


def _numbers(parts: Sequence[Table | str]) -> Iterator[Table | str]:
    """Yield the tables with numbers; titles only if there are several tables."""
    tables = [part for part in parts if isinstance(part, Table)]
    if not tables:
        yield from parts  # formats for programs
    tables = [
        table
        for table in tables
        if any(_NUMBER.match(c) if isinstance(c, str) else c is not None for row in table.rows for c in row)
    ]
    titled = sum(table.title != "" for table in tables) > 1
    for table in tables:
        title = table.title if titled else ""
        yield replace(table, title=title, subtitle="", notes=(), marks={}, starred=False)


# ---- GitHub annotations: workflow commands that show messages next to the code

# GitHub shows ten annotations of each kind per step and silently drops the others.
MOST = 10
_MESSAGE = 4000
_TITLE = 200


class Annotation(NamedTuple):
    """An annotation, printed as an escaped workflow command.

    Example:
        >>> print(Annotation("error", "R101 twice", "d1, d1", "a,b.run", 3))
        ::error file=a%2Cb.run,line=3,title=R101 twice::d1, d1
    """

    kind: str  # ``error``, ``warning``, or ``notice``
    title: str  # title
    message: str  # text
    file: str = ""  # file, if any
    line: int = 0  # line; 0 if unknown

    def __str__(self) -> str:
        words = [f"file={for_annotation(self.file, is_property=True)}"] if self.file else []
        words += [f"line={self.line}"] if self.file and self.line else []
        words += [f"title={for_annotation(self.title[:_TITLE], is_property=True)}"]
        return f"::{self.kind} {','.join(words)}::{for_annotation(self.message[:_MESSAGE])}"


def annotation_lines(annotations: Iterable[Annotation], title: str, hint: str = "") -> str:
    """Return the annotations up to GitHub's limit per kind; the last one counts the rest."""
    by_kind = group_values((annotation.kind, annotation) for annotation in annotations)
    for kind, own in by_kind.items():
        if len(own) > MOST:
            more = f"+{len(own) - MOST + 1} more{hint}"
            own[MOST - 1 :] = [Annotation(kind, title, more)]
    return "".join(f"{annotation}\n" for own in by_kind.values() for annotation in own)

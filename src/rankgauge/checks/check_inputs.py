"""``check()`` and its result: faults of judgments and runs, and their effects on the numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from rankgauge.checks import pair_checks, qrels_checks, run_checks, text_checks
from rankgauge.checks.checked_run import CheckedRun, without_repeats
from rankgauge.checks.pair_checks import check_pair
from rankgauge.checks.qrels_checks import Scale, check_qrels
from rankgauge.checks.readers import open_qrels, open_runs
from rankgauge.checks.run_checks import check_lines, check_run, check_runs, run_notes
from rankgauge.checks.text_checks import check_texts, collection_of
from rankgauge.core.findings import ASCENDING_SCORES, SEVERITIES, Finding, FindingKind, Severity
from rankgauge.corpus import description
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError, UnknownName
from rankgauge.evaluation.context import make_plan
from rankgauge.measures.measure import Measure
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table

_MODULES = (qrels_checks, run_checks, pair_checks, text_checks, description)
_ORDER = "FJRPMT"

#: Subjects: files, judgments, runs, judgments with runs, measures, texts.
FINDING_KINDS: Mapping[str, FindingKind] = MappingProxyType(
    {
        kind.code: kind
        for kind in sorted(
            (v for module in _MODULES for v in vars(module).values() if isinstance(v, FindingKind)),
            key=lambda kind: (_ORDER.index(kind.code[0]), kind.code),
        )
    }
)


@dataclass(frozen=True)
class CheckResult(Result):
    """Findings of a check, most severe first.

    Returned by :func:`check`.

    Attributes:
        findings: Findings, errors first, then by code.
        inputs: Inputs: judgments, then runs.
        measures: Measures of the effects.
        notes: Skipped checks, with reasons.
    """

    _schema = "rankgauge/check/1"

    findings: tuple[Finding, ...]
    inputs: tuple[str, ...]
    measures: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ordered = sorted(self.findings, key=lambda f: (SEVERITIES.index(f.severity), f.code))
        object.__setattr__(self, "findings", tuple(ordered))

    @property
    def codes(self) -> tuple[str, ...]:
        """Distinct codes in the order of the findings."""
        return tuple(dict.fromkeys(finding.code for finding in self.findings))

    def of(self, code: str) -> tuple[Finding, ...]:
        """Return the findings with this code."""
        return tuple(finding for finding in self.findings if finding.code == code)

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the findings of at least this severity."""
        worse = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return tuple(finding for finding in self.findings if finding.severity in worse)

    def table(self) -> Table:
        """Return one row for each finding."""
        columns = ("severity", "code", "name", "source", "message", "effects", "fix")
        rows = (
            {**_record(finding), "effects": "; ".join(map(str, finding.evidence.effects))} for finding in self.findings
        )
        return Table(
            columns=columns,
            rows=tuple(tuple(row[column] for column in columns) for row in rows),
            title=f"{', '.join(self.inputs)}: {self.summary()}",
            notes=self.notes,
        )

    def summary(self) -> str:
        """Return the number of findings by severity."""
        counts = Counter(finding.severity for finding in self.findings)
        parts = [
            f"{counts[name]} {name}{'s' * (counts[name] > 1 and name != 'info')}" for name in SEVERITIES if counts[name]
        ]
        return ", ".join(parts) or "no problems found"

    def to_columns(self) -> dict[str, list[Any]]:
        """Return columns with one row per finding, for any data frame library."""
        names = ("code", "name", "severity", "source", "message", "count", "of", "unit", "fix")
        rows = [_record(finding) for finding in self.findings]
        return {name: [row[name] for row in rows] for name in names}

    def _data(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs,
            "measures": self.measures,
            "findings": [_record(finding) for finding in self.findings],
            "notes": self.notes,
        }


def _record(finding: Finding) -> dict[str, Any]:
    """Return a finding with its evidence as one flat record."""
    kind = FINDING_KINDS[finding.code]
    data = finding.to_dict()
    evidence = data.pop("evidence", None) or asdict(finding.evidence)
    del evidence["examples"]
    for location in evidence["locations"]:
        location["line"] = location["line"] or None
    return {**data, "name": kind.name, "automatic": kind.automatic, **evidence}


_DEFAULT = "nDCG@10"
_READ = "without these lines"


def check(
    qrels: Any,
    runs: Any = (),
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    collection: Any = None,
    ignore: Iterable[str] = (),
    scale: str | None = None,
) -> CheckResult:
    """Check judgments and runs for faults that distort the numbers.

    The effect of a finding is measured by evaluating twice: with the data as given, and as fixed.

    Args:
        qrels: The judgments: anything that :meth:`Qrels.of` accepts.
        runs: A run (anything that :meth:`Run.of` accepts), a list of runs, or a mapping of name to
            run. Optional.
        measures: Measures of the effects; default: ``nDCG@10``.
        collection: Collection whose texts are checked as well: anything that
            :meth:`Collection.load` accepts.
        ignore: Codes to skip.
        scale: Scale of the grades, such as ``"0..3"``.

    Returns:
        The findings, most severe first.

    Raises:
        InputError: If an input cannot be read at all.
        UnknownName: For an unknown measure or code.

    Example:
        >>> result = check({"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 1}}, {"q1": ["d1", "d2"]})
        >>> result.codes
        ('P104',)
        >>> effect = result.findings[0].evidence.effects[0]
        >>> effect.measure, effect.before, effect.after, effect.condition
        ('nDCG@10', 0.5, 1.0, 'queries=intersection')
    """
    chosen = make_plan(measures or _DEFAULT).measures
    ignored = {ignore} if isinstance(ignore, str) else set(ignore)
    for code in sorted(ignored - FINDING_KINDS.keys()):
        raise UnknownName(f"unknown finding code {code!r}", where="ignore", fix=f"codes are {', '.join(FINDING_KINDS)}")
    grades = None if scale is None else Scale.of(scale)
    judged = open_qrels(qrels)
    truth = Qrels(without_repeats(judged.whole, "first"))
    if not len(truth):
        raise InputError("the judgments have no queries", where=judged.source, fix="pass at least one")
    inputs = open_runs(runs)
    checked = [CheckedRun.of(run, truth, chosen, several=len(inputs) > 1) for run in inputs]
    asked = None if measures is None else chosen
    refused = [effect for run in checked for effect in run.effects_if_read(_READ)]
    findings = [
        *check_lines(judged, refused, graded=True),
        *check_qrels(judged.whole, judged.source, checked, asked, scale=grades),
    ]
    for run in checked:
        findings += check_lines(run.check_input, run.effects_if_read(_READ))
        of_run = list(check_run(run))
        ascending = any(finding.code == ASCENDING_SCORES.code for finding in of_run)
        findings += [*of_run, *check_pair(run, ascending=ascending)]
    findings += check_runs(checked)
    if collection is not None:
        # Collection checks are the only ones that load whole runs.
        whole = {run.source: Run(run.check_input.whole, name=run.name) for run in checked}
        findings += check_texts(collection_of(collection, truth), truth, whole, chosen)
    return CheckResult(
        findings=tuple(finding for finding in findings if finding.code not in ignored),
        inputs=(judged.source, *(run.source for run in inputs)),
        measures=tuple(map(str, chosen)),
        notes=tuple(note for run in checked for note in run_notes(run)),
    )

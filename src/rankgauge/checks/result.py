"""Result of a check, and all kinds of findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from rankgauge.checks import pair_checks, qrels_checks, run_checks, text_checks
from rankgauge.core.findings import SEVERITIES, Finding, FindingKind, Severity
from rankgauge.corpus import description
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


_SCHEMA = "rankgauge/check/1"


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

    _schema = _SCHEMA

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
        return tuple(dict.fromkeys(found.code for found in self.findings))

    def of(self, code: str) -> tuple[Finding, ...]:
        """Return the findings with this code."""
        return tuple(found for found in self.findings if found.code == code)

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the findings of at least this severity."""
        worse = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return tuple(found for found in self.findings if found.severity in worse)

    def table(self) -> Table:
        """Return one row for each finding."""
        columns = ("severity", "code", "name", "source", "message", "effects", "fix")
        rows = ({**_record(found), "effects": "; ".join(map(str, found.evidence.effects))} for found in self.findings)
        return Table(
            columns=columns,
            rows=tuple(tuple(row[column] for column in columns) for row in rows),
            title=f"{', '.join(self.inputs)}: {self.summary()}",
            notes=self.notes,
        )

    def summary(self) -> str:
        """Return the number of findings by severity."""
        counts = Counter(found.severity for found in self.findings)
        parts = [
            f"{counts[name]} {name}{'s' * (counts[name] > 1 and name != 'info')}" for name in SEVERITIES if counts[name]
        ]
        return ", ".join(parts) or "no problems found"

    def to_columns(self) -> dict[str, list[Any]]:
        """Return columns with one row per finding, for any data frame library."""
        names = ("code", "name", "severity", "source", "message", "count", "of", "unit", "fix")
        rows = [_record(found) for found in self.findings]
        return {name: [row[name] for row in rows] for name in names}

    def _data(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs,
            "measures": self.measures,
            "findings": [_record(found) for found in self.findings],
            "notes": self.notes,
        }


def _record(found: Finding) -> dict[str, Any]:
    """Return a finding with its evidence as one flat record."""
    kind = FINDING_KINDS[found.code]
    data = found.to_dict()
    evidence = data.pop("evidence", None) or asdict(found.evidence)
    del evidence["examples"]
    for location in evidence["locations"]:
        location["line"] = location["line"] or None
    return {**data, "name": kind.name, "automatic": kind.automatic, **evidence}

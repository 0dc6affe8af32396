"""What a check found, and every kind of finding."""

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

#: Files, judgments, runs, both together, measures, texts.
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
    """The findings of a check, the worst first.

    Returned by :func:`check`.

    Attributes:
        findings: The findings, errors first, then by code.
        inputs: The inputs: the judgments, then the runs.
        measures: The measures of effects.
        notes: Checks that were not made, and why.
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
        """The codes that were found, each once, in the order of the findings."""
        return tuple(dict.fromkeys(found.code for found in self.findings))

    def of(self, code: str) -> tuple[Finding, ...]:
        """Return the findings with this code."""
        return tuple(found for found in self.findings if found.code == code)

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the findings of this severity and of worse ones."""
        worse = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return tuple(found for found in self.findings if found.severity in worse)

    def table(self) -> Table:
        """Return a table with one row per finding."""
        columns = ("severity", "code", "name", "source", "message", "effects", "fix")
        rows = (
            {**_record(found), "effects": "; ".join(map(str, found.evidence.effects))}
            for found in self.findings
        )
        return Table(
            columns=columns,
            rows=tuple(tuple(row[column] for column in columns) for row in rows),
            title=f"{', '.join(self.inputs)}: {self.summary()}",
            notes=self.notes,
        )

    def summary(self) -> str:
        """Return how many findings of each severity there are."""
        counts = Counter(found.severity for found in self.findings)
        parts = [
            f"{counts[name]} {name}{'s' * (counts[name] > 1 and name != 'info')}"
            for name in SEVERITIES
            if counts[name]
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

    def __repr__(self) -> str:
        return f"<CheckResult: {self.summary()}; {', '.join(self.codes) or 'nothing'}>"


def _record(found: Finding) -> dict[str, Any]:
    """Return a finding and its evidence as one flat record of plain values."""
    kind = FINDING_KINDS[found.code]
    data = found.to_dict()
    evidence = data.pop("evidence", None) or asdict(found.evidence)
    del evidence["examples"]
    for location in evidence["locations"]:
        location["line"] = location["line"] or None
    return {**data, "name": kind.name, "automatic": kind.automatic, **evidence}

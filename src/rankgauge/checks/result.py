"""What a check found."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from rankgauge.checks.problems import Problem
from rankgauge.core.findings import SEVERITIES, Effect, Location, Severity
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table

__all__ = ["CheckResult"]

_SCHEMA = "rankgauge/check/1"


@dataclass(frozen=True)
class CheckResult(Result):
    """What a check found, the worst first.

    Made by :func:`check`.

    Attributes:
        problems: The problems, errors first, then by code.
        inputs: What was looked at: the judgments, then the runs.
        measures: The measures by which effects were measured.
        notes: What was not looked at, and why.
    """

    _schema = _SCHEMA

    problems: tuple[Problem, ...]
    inputs: tuple[str, ...]
    measures: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ordered = sorted(
            self.problems,
            key=lambda found: (SEVERITIES.index(found.kind.severity), found.kind.code),
        )
        object.__setattr__(self, "problems", tuple(ordered))

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes that were found, each once, in the order of the problems."""
        return tuple(dict.fromkeys(found.kind.code for found in self.problems))

    def of(self, code: str) -> tuple[Problem, ...]:
        """The problems with this code."""
        return tuple(found for found in self.problems if found.kind.code == code)

    def at_least(self, level: Severity) -> tuple[Problem, ...]:
        """The problems of this level and of worse ones."""
        most = SEVERITIES.index(level)
        return tuple(
            found for found in self.problems if SEVERITIES.index(found.kind.severity) <= most
        )

    def table(self) -> Table:
        """One line for each problem."""
        return Table(
            columns=("level", "code", "name", "where", "what", "effect", "what mends it"),
            rows=tuple(
                (
                    found.kind.severity,
                    found.kind.code,
                    found.kind.name,
                    found.source,
                    found.what,
                    "; ".join(str(effect) for effect in found.effects),
                    found.mend or found.kind.fix,
                )
                for found in self.problems
            ),
            title=f"{', '.join(self.inputs)}: {self.summary()}",
            notes=self.notes,
        )

    def summary(self) -> str:
        """How many problems of which level, in words."""
        counts = {
            level: sum(p.kind.severity == level for p in self.problems) for level in SEVERITIES
        }
        said = [
            f"{number} {level}{'s' * (number > 1 and level != 'info')}"
            for level, number in counts.items()
            if number
        ]
        return ", ".join(said) or "nothing wrong found"

    def to_columns(self) -> dict[str, list[Any]]:
        """Columns, one row a problem, as any data frame library takes them."""
        found = self.problems
        return {
            "code": [problem.kind.code for problem in found],
            "name": [problem.kind.name for problem in found],
            "level": [problem.kind.severity for problem in found],
            "source": [problem.source for problem in found],
            "what": [problem.what for problem in found],
            "count": [problem.count for problem in found],
            "of": [problem.of for problem in found],
            "unit": [problem.unit for problem in found],
            "mend": [problem.mend or problem.kind.fix for problem in found],
        }

    def _data(self) -> dict[str, Any]:
        return {
            "inputs": list(self.inputs),
            "measures": list(self.measures),
            "problems": [_plain(found) for found in self.problems],
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        counts = [
            f"{sum(found.kind.severity == level for found in self.problems)} {level}s"
            for level in SEVERITIES
        ]
        return f"<CheckResult: {', '.join(counts)}; {', '.join(self.codes) or 'nothing'}>"


def _plain(found: Problem) -> dict[str, Any]:
    return {
        "code": found.kind.code,
        "name": found.kind.name,
        "level": found.kind.severity,
        "source": found.source,
        "what": found.what,
        "count": found.count,
        "of": found.of,
        "unit": found.unit,
        "locations": [_of_location(location) for location in found.locations],
        "effects": [_of_effect(effect) for effect in found.effects],
        "mend": found.mend or found.kind.fix,
        "fix": found.kind.automatic,
    }


def _of_location(location: Location) -> dict[str, Any]:
    return {**asdict(location), "line": location.line or None}


def _of_effect(effect: Effect) -> dict[str, Any]:
    """What is no number is null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(effect).items()
    }

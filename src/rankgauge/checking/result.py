"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass

from rankgauge.checking.problems import Level, Problem

__all__ = ["LEVELS", "CheckResult"]

LEVELS: tuple[Level, ...] = ("error", "warning", "hint")


@dataclass(frozen=True)
class CheckResult:
    """What a check found, the worst first.

    Made by :func:`check`.

    Attributes:
        problems: The problems, errors first, then by code.
        inputs: What was looked at: the judgments, then the runs.
        measures: The measures by which effects were measured.
        notes: What was not looked at, and why.
    """

    problems: tuple[Problem, ...]
    inputs: tuple[str, ...]
    measures: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ordered = sorted(
            self.problems, key=lambda found: (LEVELS.index(found.kind.level), found.kind.code)
        )
        object.__setattr__(self, "problems", tuple(ordered))

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes that were found, each once, in the order of the problems."""
        return tuple(dict.fromkeys(found.kind.code for found in self.problems))

    def of(self, code: str) -> tuple[Problem, ...]:
        """The problems with this code."""
        return tuple(found for found in self.problems if found.kind.code == code)

    def __repr__(self) -> str:
        counts = [
            f"{sum(found.kind.level == level for found in self.problems)} {level}s"
            for level in LEVELS
        ]
        return f"<CheckResult: {', '.join(counts)}; {', '.join(self.codes) or 'nothing'}>"

"""Result of a gate: verdict and checks."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from rankgauge.core.arguments import object_of
from rankgauge.core.escaping import for_terminal
from rankgauge.core.exact_sum import TOLERANCE
from rankgauge.core.provenance import current_commit
from rankgauge.core.recommendations import next_step
from rankgauge.core.text import lower_first, many
from rankgauge.errors import FormatError, InputError
from rankgauge.measures.measure import Measure, parse
from rankgauge.rendering.plot_drawing import Panel, Plot, Series
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Cell, Detail, Table, first_rows

GateVerdict: TypeAlias = Literal[
    "PASS", "IDENTICAL", "PASS unless rare collapse", "INCONCLUSIVE", "NOT COMPARABLE", "FAIL"
]

# From best to worst, each with its exit code.
_CODES: dict[GateVerdict, int] = {
    "PASS": 0,
    "IDENTICAL": 0,
    "PASS unless rare collapse": 0,
    "INCONCLUSIVE": 0,
    "NOT COMPARABLE": 4,
    "FAIL": 1,
}
_SEVERITY = {verdict: place for place, verdict in enumerate(_CODES)}
# Verdicts that are not enough with `strict`.
UNSURE = frozenset({"PASS unless rare collapse", "INCONCLUSIVE"})
_STRICT_UNSURE = 3
_SHOWN = 9
_LOSERS = 3  # losers in a short table


@dataclass(frozen=True)
class QueryLoss:
    """A query with a loss.

    Attributes:
        query: Query id.
        before: Value in the baseline.
        after: Value of the run.
        moved: Changed ranks of relevant documents; empty if rankings are unknown.
    """

    query: str
    before: float
    after: float
    moved: str = ""


@dataclass(frozen=True)
class GateNumbers:
    """Comparison of a run with a baseline by one measure.

    Gains are positive if the run is better, even if lower values are better.

    Attributes:
        measure: Measure.
        baseline_mean: Mean of the baseline over the compared queries, corrected for the errors of
            the judge of answers unless `by_judge`.
        mean: Mean of the run over the compared queries, as `baseline_mean`.
        gain: Mean gain.
        lower: One-sided 95% lower bound of the true gain; it allows for unobserved queries that
            lose as much as possible.
        lower_unless_rare: The same if no query outside the sample fails completely.
        upper: One-sided upper bound of the true gain, at level `upper_level`; it allows for
            unobserved queries that gain as much as possible.
        upper_level: 99%, or more if several measures are gated (Holm).
        margin: Accepted loss.
        p_worse: One-sided p-value of "there is no loss", Holm-corrected.
        queries: Number of compared queries.
        wins: Number of queries in which the run is better, by labels of people if available.
        ties: Number of queries with the same value (within the noise, if known).
        losses: Number of queries in which the run is worse.
        queries_needed: Approximate number of queries for PASS or FAIL; None if decided, or above
            ten million.
        testable_margin: Smallest margin that a run without a true loss passes with 80% power, given
            the number of queries and the spread of differences; may be None.
        losers: Queries with the largest losses, worst first.
        by_judge: Whether the means are those by the judge of answers, not corrected for its errors.
        baseline_fingerprint: Fingerprint of the values of the baseline (`values_fingerprint`).
        fingerprint: Fingerprint of the values of the run.
    """

    measure: Measure
    baseline_mean: float
    mean: float
    gain: float
    lower: float
    lower_unless_rare: float
    upper: float
    upper_level: float
    margin: float
    p_worse: float
    queries: int
    wins: int
    ties: int
    losses: int
    queries_needed: int | None = None
    testable_margin: float | None = None
    losers: tuple[QueryLoss, ...] = ()
    by_judge: bool = False
    baseline_fingerprint: str = ""
    fingerprint: str = ""


@dataclass(frozen=True)
class GateCheck:
    """A check of a gate.

    Attributes:
        kind: ``run``, ``contract``, ``floor``, ``baseline``, ``anchor``, or ``latency``.
        name: Checked measure, query, or quantile.
        verdict: ``PASS``, ``IDENTICAL``, ``PASS unless rare collapse``, ``INCONCLUSIVE``, ``NOT
            COMPARABLE``, or ``FAIL``.
        sentence: Verdict as a sentence.
        note: Details for a reviewer; may be empty.
        numbers: Numbers behind the verdict, if a measure was compared with a baseline.
        value: Mean that was compared with a floor.
    """

    kind: Literal["run", "contract", "floor", "baseline", "anchor", "latency"]
    name: str
    verdict: GateVerdict
    sentence: str
    note: str = ""
    numbers: GateNumbers | None = None
    value: float | None = None


@dataclass(frozen=True, repr=False)
class GateResult(Result):
    """Verdict of a gate with its checks.

    Returned by :func:`gate`. Notebooks display it as tables.

    Attributes:
        run_name: Name of the run.
        checks: Checks, in order.
        notes: Notes on the method and on interpretation.
        warnings: Warnings about the verdict.
        unit: Unit of the values: ``query``, or ``question`` for generated answers.
        time: Time of the gate (ISO 8601, see `stamped`); None if unknown.
        commit: Git commit; None if unknown.
        dirty: Whether tracked files had uncommitted changes.
    """

    _schema = "rankgauge/gate/1"
    _attributes = "run=run_name verdict time commit dirty unit checks notes warnings"

    run_name: str
    checks: tuple[GateCheck, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unit: Literal["query", "question"] = "query"
    time: str | None = None
    commit: str | None = None
    dirty: bool = False

    @classmethod
    def from_json(cls, text: str, *, where: str = "gate") -> GateResult:
        """Create a result from its JSON.

        Raises:
            FormatError: If the text is not JSON, or violates the schema of a result.

        Example:
            >>> made = GateResult("new", (GateCheck("contract", "q1", "FAIL", "it has no ranking"),))
            >>> GateResult.from_json(made.to_json()) == made
            True
        """
        try:
            result = cls._parsed(json.loads(text))
            result.tables()  # fails on numbers that cannot be shown
        except (ValueError, OverflowError, RecursionError) as error:
            why = error.what if isinstance(error, InputError) else error
            raise FormatError(
                f"not a result of a gate: {why}", path=where, fix="use a file written by rankgauge gate --json"
            ) from None
        return result

    @classmethod
    def _parsed(cls, data: Any) -> GateResult:
        json.dumps(data, allow_nan=False, ensure_ascii=False).encode()
        if not isinstance(data, dict) or data.get("schema") != cls._schema:
            raise ValueError(f"its schema is not {cls._schema}")
        result: GateResult = object_of(cls, data | {"run_name": data.get("run")}, {Measure: parse})
        if not result.checks or result.verdict != data.get("verdict"):
            raise ValueError("its verdict is not that of its checks")
        if not all(check.numbers is None or check.numbers.margin > 0 for check in result.checks):
            raise ValueError("a margin is not above 0")
        datetime.fromisoformat(result.time or "2000-01-01")
        return result

    def stamped(self) -> GateResult:
        """Return the result with the current time and git commit."""
        commit, now = current_commit(), datetime.now(UTC).isoformat(timespec="seconds")
        return replace(self, time=now, commit=commit.id if commit else None, dirty=commit is not None and commit.dirty)

    @property
    def verdict(self) -> GateVerdict:
        """Worst verdict of the checks; IDENTICAL with the anchor counts as PASS."""
        return max(self.checks, key=_severity).verdict

    def exit_code(self, *, strict: bool = False) -> int:
        """Return 0 for PASS and IDENTICAL, 1 for FAIL, and 4 for NOT COMPARABLE.

        PASS unless rare collapse and INCONCLUSIVE are 0, or 3 if `strict`.
        """
        return _STRICT_UNSURE if strict and self.verdict in UNSURE else _CODES[self.verdict]

    def explanation(self) -> str:
        """Return the verdict and its reasons for a reviewer without knowledge of statistics."""
        warnings = (f"WARNING: {text}" for text in self.warnings)
        lines = (f"- {text}" for text in (*self.limits(), *self.sentences(), *warnings))
        return "\n".join(map(for_terminal, (f"{self.verdict}: {self.run_name}", *lines)))

    def limits(self) -> list[str]:
        """Return sentences on margins that are too small for the number of queries."""
        return [
            f"{check.name}: {many(n.queries, self.unit)} can test a margin of "
            f"{shown_margin(n.testable_margin, n.margin)} or more (about 80% power); with your "
            f"margin of {n.margin:g}, fewer runs without a loss pass"
            for check in self.checks
            if (n := check.numbers) is not None
            and check.verdict in {"INCONCLUSIVE", "IDENTICAL"}
            and _severity(check)
            and n.testable_margin is not None
            and n.testable_margin > n.margin
        ]

    def sentences(self) -> list[str]:
        """Return the results of the checks, worst first; passed contracts are only counted."""
        kept = sum(c.kind == "contract" and c.verdict == "PASS" for c in self.checks)
        sentences = [
            f"{check.verdict}: {check.sentence}" + (f"; {check.note}" if check.note else "")
            for check in sorted(self.checks, key=_severity, reverse=True)
            if check.kind != "contract" or check.verdict != "PASS"
        ]
        return sentences + ([f"PASS: {many(kept, 'contract')} met"] if kept else [])

    def next_step(self) -> str:
        """Return the next step after this verdict."""
        verdict, units = self.verdict, "questions" if self.unit == "question" else "queries"
        decisive = [check for check in self.checks if check.verdict == verdict]
        compared = [check.numbers for check in decisive if check.numbers is not None]
        kinds = {check.kind for check in decisive}
        state: str = verdict
        number = ""
        match verdict:
            case "FAIL":
                state = f"FAIL {'with' if any(n.losers for n in compared) else 'without'} losses"
            case "NOT COMPARABLE" if "run" in kinds:
                state = "faulty run"
            case "NOT COMPARABLE":
                state = f"other inputs than the {'baseline' if 'baseline' in kinds else 'anchor'}"
            case "INCONCLUSIVE":
                needed = [n.queries_needed for n in compared]
                if needed and None not in needed:
                    state += ", number known"
                    number = many(max(map(rounded_up, filter(None, needed))), self.unit)
            case "PASS" if any(n.gain < -TOLERANCE for n in compared):
                # An anchor detects losses that add up.
                anchored = any(check.kind == "anchor" for check in self.checks)
                state += "" if anchored else " with a loss"
        return next_step(f"gate: {state}", units=units, number=number)

    def tables(self) -> tuple[Table, ...]:
        """Return the checks, the queries with the largest losses, and the next step."""
        losers, step = self.losers_table(), f"next step: {lower_first(self.next_step())}"
        return self.table(), *([losers] if losers.rows else []), Table((), (), notes=(step,))

    def table(self) -> Table:
        """Return one row for each check, with the reasons below; margins and most notes on the method are details."""
        return Table(
            # The conclusions name the margin.
            columns=("check", "verdict", "before", "now", "gain", "bounds", Detail("margin"), Detail("W/T/L")),
            rows=tuple(map(_row, self.checks)),
            title=f"{self.verdict}: {self.run_name}",
            right=frozenset({2, 3, 4}),
            notes=(
                *self.limits(),
                *self.sentences(),
                *(f"WARNING: {text}" for text in self.warnings),
                *self.notes[:1],
                *map(Detail, self.notes[1:]),
            ),
        )

    def losers_table(self) -> Table:
        """Return the queries with the largest losses, for each measure that did not pass; most are details."""
        rows: Iterator[tuple[Cell, ...]] = (
            (f"{check.kind} {check.name}", q.query, q.before, q.after, q.moved)
            for check in self.checks
            if check.numbers is not None and check.verdict != "PASS"
            for q in check.numbers.losers[:_SHOWN]
        )
        columns = ("check", self.unit, "before", "now", "relevant documents that fell")
        plural = "Questions" if self.unit == "question" else "Queries"
        return Table(
            columns,
            tuple(first_rows(rows, _LOSERS)),
            title=f"{plural} with the largest losses",
            digits=3,
            abridged=frozenset({4}),
            unit=self.unit,
        )

    def plot(self) -> Plot:
        """Plot the gain by each measure with its bounds, in units of the margin.

        Raises:
            InputError: If no measure was compared with a baseline.
        """
        compared = [(f"{c.kind} {c.name}", c.verdict, c.numbers) for c in self.checks if c.numbers]
        if not compared:
            raise InputError(
                "no measure was compared with a baseline", where="GateResult.plot", fix="pass a baseline to gate()"
            )
        numbers = [n for *_, n in compared]
        series = Series(
            "gain",
            tuple(n.gain / n.margin for n in numbers),
            low=tuple(n.lower / n.margin for n in numbers),
            high=tuple(n.upper / n.margin for n in numbers),
            texts=tuple(f"{n.gain:+.3f} {verdict}" for _, verdict, n in compared),
        )
        panel = Panel(
            "intervals", (series,), across="gain / margin", marks=(-1.0,), ticks=tuple(name for name, *_ in compared)
        )
        text = "; ".join(
            f"{name} {n.gain:+.3f}, bounds {_bounds(n)}, margin {n.margin:g}: {verdict}"
            for name, verdict, n in compared
        )
        caption = (
            "The dashed line is the accepted loss: a check passes if its whole interval is to the "
            "right of it, and passes unless rare collapse if the interval would be if no query "
            "outside the sample failed completely."
        )
        title = f"Gains of {self.run_name} with their bounds"
        return Plot("gate", title, f"Points with intervals. {text}.", (panel,), caption)

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        return f"{self.verdict}: {self.run_name}. {'. '.join(self.sentences()[:1])}"


def _severity(check: GateCheck) -> int:
    """Return the place of a check from best to worst, 0 for PASS."""
    # A run that equals the anchor but not the baseline, such as a rollback, is a change.
    same = check.kind == "anchor" and check.verdict == "IDENTICAL"
    return 0 if same else _SEVERITY[check.verdict]


def values_fingerprint(queries: Iterable[str], values: Iterable[float]) -> str:
    """Return a fingerprint of the values of queries, in any order, without undefined ones."""
    rows = sorted((query, value + 0.0) for query, value in zip(queries, values, strict=True) if not math.isnan(value))
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


def shown_margin(margin: float, like: float) -> str:
    """Return a margin rounded up, so that it passes, with as many digits as another."""
    digits = max(3, 1 - math.floor(math.log10(like)))
    return f"{math.ceil(margin * 10**digits - TOLERANCE) / 10**digits:g}"


def rounded_up(queries: int) -> int:
    """Return an estimated number with two significant digits: it should not look exact."""
    step: int = 10 ** max(0, len(str(queries)) - 2)
    return -(-queries // step) * step


def _row(check: GateCheck) -> tuple[Cell, ...]:
    name = f"{check.kind} {check.name}"
    n = check.numbers
    if n is None:
        now = None if check.value is None else f"{check.value:.3f}"
        return (name, check.verdict, None, now, None, None, None, None)
    source = " (by judge)" if n.by_judge else ""
    return (
        name,
        check.verdict,
        f"{n.baseline_mean:.3f}{source}",
        f"{n.mean:.3f}{source}",
        f"{n.gain:+.3f}",
        _bounds(n) if math.isfinite(n.upper) else None,
        f"{n.margin:g}",
        f"{n.wins}/{n.ties}/{n.losses}",
    )


def _bounds(n: GateNumbers) -> str:
    """Return the bounds of a gain; a loss may be unbounded."""
    return f"{n.lower:+.3f} and {n.upper:+.3f}" if math.isfinite(n.lower) else f"≤ {n.upper:+.3f}"

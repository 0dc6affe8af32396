"""A fixture for retrieval tests: ``def test_retrieval(rankgauge): rankgauge.gate(...)``.

pytest loads this module at startup; rankgauge is imported when a test first uses the fixture.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rankgauge.gates import GateResult

__all__ = ["Gatekeeper"]

_UPDATE = "--rankgauge-update-baseline"
_STRICT = "--rankgauge-strict"
_FORCE = "--rankgauge-force"
_MESSAGE = "rankgauge"
# The test that uses the baseline of the rules or writes a baseline, by path.
_USERS = pytest.StashKey[dict[Path, str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the fixture, named like those of the command line."""
    group = parser.getgroup("rankgauge")
    group.addoption(_UPDATE, action="store_true", help="Write the baselines of gates instead of comparing with them.")
    group.addoption(_FORCE, action="store_true", help="Replace baselines even if their gates fail.")
    group.addoption(
        _STRICT, action="store_true", help="Fail the test if a gate is INCONCLUSIVE or PASS unless rare collapse."
    )


class Gatekeeper:
    """The fixture ``rankgauge``, whose gates decide whether a test passes."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._claimed: set[Path] = set()

    def gate(
        self,
        qrels: Any,
        run: Any = None,
        rules: Any = None,
        *,
        baseline: Any = "",
        anchor: Any = None,
        noise: Iterable[Any] = (),
        latency: tuple[Any, Any] | None = None,
        allow_uncalibrated: bool = False,
    ) -> GateResult | None:
        """Fail the test, with an explanation, unless the run may replace the baseline.

        INCONCLUSIVE and PASS unless rare collapse are warnings, or failures with ``--rankgauge-
        strict``; NOT COMPARABLE is a failure. The summary at the end lists all verdicts. Paths are
        relative to pytest's root directory.

        Args:
            qrels: The judgments; or an evaluation, for example of answers, without a run.
            run: The run.
            rules: The rules; default: those in ``rankgauge.toml`` in pytest's root
                directory or above it.
            baseline: A baseline or its path; default: the path in the rules. None checks only
                contracts and floors.
            anchor: A second baseline; default: that of the rules, else the one written with the
                first baseline.
            noise: Repeated runs of the baseline system.
            latency: Latencies of the baseline and the new run.
            allow_uncalibrated: Whether to take the verdicts of a judge of answers as true
                although it is not calibrated or not usable.

        Returns:
            The result; None if a baseline was written instead.
        """
        from rankgauge import Baseline, Evaluation, GateRules, InputError, RankgaugeError, gate
        from rankgauge.core import find_project_file
        from rankgauge.gates import update_baseline

        wanted = GateRules.of(find_project_file(self._root) if rules is None else self._path(rules))
        shared = isinstance(baseline, str) and not baseline
        held = self._path(wanted.baseline if shared else baseline)
        fixed = self._path(wanted.anchor if anchor is None else anchor)
        config = self._request.config
        try:
            written = config.getoption(_UPDATE) and isinstance(held, Path)
            if written and hasattr(config, "workerinput"):
                raise InputError(
                    "processes of pytest-xdist could overwrite the baselines of each other",
                    where=_UPDATE,
                    fix="update baselines in one process: add -n 0",
                )
            if shared or written:
                self._claim(held.resolve())
            if written:
                new_baseline = (
                    Baseline.from_evaluation(qrels, noise=noise, max_failed=wanted.max_failed)
                    if isinstance(qrels, Evaluation)
                    else Baseline.from_run(qrels, run, wanted, noise=noise)
                )
                replaced = update_baseline(
                    new_baseline, held, wanted, anchor=fixed, force=bool(config.getoption(_FORCE))
                )
                self._add_message(f"wrote {held}" + (f" ({replaced})" if replaced else ""))
                return None
            result = gate(
                qrels,
                run,
                wanted,
                baseline=held,
                noise=noise,
                latency=latency,
                anchor=fixed,
                allow_uncalibrated=allow_uncalibrated,
            )
        except RankgaugeError as error:
            error.fix = _in_pytest(error.fix)
            raise
        self._assert_passed(result)
        return result

    def at_least(self, qrels: Any, run: Any, floors: dict[str, float]) -> GateResult:
        """Fail the test if a mean is below its floor: ``{"nDCG@10": 0.5}``.

        If lower values are better, fail if the mean is above it.
        """
        from rankgauge import GateRules, gate, parse

        measures = {}
        for name, floor in floors.items():
            low, high = parse(name).declaration.bounds
            # Nothing is compared, so any valid margin works.
            measures[name] = {"floor": floor, "margin": min(1.0, (high - low) / 2)}
        result = gate(qrels, run, GateRules.of({"measures": measures}), baseline=None)
        self._assert_passed(result)
        return result

    def _claim(self, path: Path) -> None:
        """Reject a second gate with the same baseline: each would overwrite the other."""
        from rankgauge import InputError

        mine = self._request.node.nodeid
        first = self._request.config.stash.setdefault(_USERS, {}).setdefault(path, mine)
        if first != mine or path in self._claimed:
            raise InputError(
                f"two gates use the baseline {path.name}",
                where=f"{first} and {mine}",
                fix='give each gate a baseline of its own: gate(..., baseline="NAME.json")',
            )
        # A repeated test has a new fixture.
        self._claimed.add(path)

    @property
    def _root(self) -> Path:
        return self._request.config.rootpath

    def _path(self, value: Any) -> Any:
        return self._root / value if isinstance(value, str | os.PathLike) else value

    def _assert_passed(self, result: GateResult) -> None:
        strict = bool(self._request.config.getoption(_STRICT))
        self._add_message(f"{result.verdict}: {result.run_name}")
        if result.exit_code(strict=strict):
            pytest.fail(_explained(result), pytrace=False)
        if result.exit_code(strict=True):
            warnings.warn(pytest.PytestWarning(_explained(result)), stacklevel=3)
            return
        for text in result.warnings:
            if "(C112)" in text:  # several settings of answers changed
                warnings.warn(pytest.PytestWarning(text), stacklevel=3)

    def _add_message(self, text: str) -> None:
        from rankgauge.core.escaping import for_terminal

        self._request.node.user_properties.append((_MESSAGE, for_terminal(text)))


def _in_pytest(text: str) -> str:
    """Replace the command-line option in a text with that of pytest."""
    text = re.sub(r"(rankgauge gate QRELS RUN )?--update-baseline", f"pytest {_UPDATE}", text)
    text = text.replace("--force", _FORCE).replace("--baseline FILE", 'baseline="FILE"')
    return text.replace("--anchor FILE", 'anchor="FILE"')


def _explained(result: GateResult) -> str:
    from rankgauge.core.escaping import for_terminal

    lines = [_in_pytest(result.explanation())]
    for query, before, now, moved in (row[1:] for row in result.losers_table().rows):
        text = f"query {query}: {before:.3f} to {now:.3f}  {moved}"
        lines.append(f"  {for_terminal(text)}")
    return "\n".join(lines)


@pytest.fixture(name="rankgauge")
def gatekeeper(request: pytest.FixtureRequest) -> Gatekeeper:
    """Compare runs with rules and baselines; see :class:`Gatekeeper`."""
    return Gatekeeper(request)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print every verdict, also of passed tests: uncertain ones must be visible."""
    lines = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                messages = [text for name, text in report.user_properties if name == _MESSAGE]
                lines += [f"{text} ({report.nodeid})" for text in messages]
    if lines:
        terminalreporter.section("rankgauge")
        for line in sorted(lines):
            terminalreporter.line(line)

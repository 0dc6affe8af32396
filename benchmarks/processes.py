"""Fresh processes in turn: each engine in one of its own, round after round, and the medians.

Engines take turns within a round, so that a busy moment of the machine falls on all of them. The
means of a peer are compared with ours before its time counts.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from engines import OURS, Engine
from workloads import Work, files

HERE = Path(__file__).parent
PATIENCE = 600  # seconds for one process


class Refused(Exception):  # noqa: N818 - nothing went wrong here: a peer could not
    """An engine that did not do what it was asked, and why."""


@dataclass(frozen=True)
class Took:
    """What one call or one process took.

    Attributes:
        cpu: Seconds of the processor, user and system.
        wall: Seconds by the clock.
        peak: MiB: of a whole process, or what a call needs beyond what was there before it.
        means: What the engine said, by measure.
    """

    cpu: float
    wall: float
    peak: float
    means: dict[str, float] = field(default_factory=dict)


def median(some: Sequence[Took]) -> Took:
    """The median of each number."""
    numbers = (statistics.median(getattr(one, key) for one in some) for key in _NUMBERS)
    return Took(*numbers, some[0].means)


_NUMBERS = ("cpu", "wall", "peak")


def process(
    words: Sequence[str],
    stdin: Path | None = None,
    said: Callable[[str], Any] = lambda _: {},
    environment: Mapping[str, str] | None = None,
) -> Took:
    """What a command takes from its start to its end.

    Raises:
        Refused: If it fails, or is not done in time.
    """
    asked = json.dumps({"words": [*words], "stdin": stdin and str(stdin)})
    launched = [sys.executable, "-I", "-S", str(HERE / "launch.py"), asked]
    found = json.loads(_output(launched, environment))
    if found["status"]:
        raise Refused(_last_line(found["err"]))
    return Took(*(found[key] for key in _NUMBERS), said(found["out"]))


def _output(words: Sequence[str], environment: Mapping[str, str] | None) -> str:
    # Where modules are not kept compiled, those of the working copy would be compiled each time.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **(environment or {})}
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=PATIENCE, env=env
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"not done after {PATIENCE} seconds") from None
    if done.returncode:
        raise Refused(_last_line(done.stderr))
    return done.stdout


def _last_line(text: str) -> str:
    return ([line for line in text.splitlines() if line.strip()] or ["it says nothing"])[-1].strip()


@dataclass(frozen=True)
class Question:
    """One thing that several engines are asked.

    Attributes:
        work: On what.
        form: How: Python and CLI (both of files, cold), dicts, pandas, polars (in memory).
        measures: What.
        pipe: The run comes through standard input.
    """

    work: Work
    form: str
    measures: tuple[str, ...]
    pipe: bool = False

    def ask(self, engine: Engine, data: Path) -> Took:
        """Ask one engine, once, in a fresh process.

        Raises:
            Refused: If it cannot.
        """
        measures = engine.computes(self.measures)
        if self.form not in ("Python", "CLI"):
            asked: dict[str, Any] = {"engine": engine.name, "form": self.form, "measures": measures}
            asked["work"] = asdict(self.work)
            words = (sys.executable, str(HERE / "warm.py"), json.dumps(asked))
            return Took(**json.loads(_output(words, engine.environment)))
        qrels, run = files(self.work, data)
        if self.form == "CLI":
            words = engine.command(str(qrels), "-" if self.pipe else str(run), measures)
            return process(words, run if self.pipe else None, engine.parse, engine.environment)
        words = (
            sys.executable,
            str(HERE / "cold.py"),
            engine.name,
            str(qrels),
            str(run),
            *measures,
        )
        return process(words, said=_pairs, environment=engine.environment)


def _pairs(output: str) -> dict[str, float]:
    rows = [line.split() for line in output.splitlines()]
    return {name: float(value) for name, value in rows}


@dataclass(frozen=True)
class Answers:
    """What came of a question: by engine, and why some have no time."""

    question: Question
    took: dict[str, Took]
    left_out: dict[str, str]


def ask_all(question: Question, peers: Sequence[Engine], rounds: int, data: Path) -> Answers:
    """Ask ours and the peers, in turn, round after round.

    Raises:
        Refused: If ours cannot.
    """
    able = [e for e in peers if question.form in e.forms and e.computes(question.measures)]
    left_out = {
        e.name: "was not run with millions of rows"
        for e in able
        if question.work.large and not e.large
    }
    able = [engine for engine in able if engine.name not in left_out]
    for engine in able:
        if engine.heavy:  # it keeps on disk what it compiles: compiling is not of every day
            _tried(question.form, question.measures, engine, data)
    found: dict[str, list[Took]] = {engine.name: [] for engine in (OURS, *able)}
    for turn in range(rounds):
        try:
            found[OURS.name].append(question.ask(OURS, data))
        except Refused as error:
            raise Refused(f"rankgauge, {question.form}, {question.work}: {error}") from None
        for engine in able:
            if engine.name in left_out or (turn and engine.heavy):
                continue
            try:
                found[engine.name].append(question.ask(engine, data))
            except Refused as error:
                left_out[engine.name] = f"stopped: {error}"
    took = {name: median(some) for name, some in found.items() if name not in left_out}
    ours = took[OURS.name]
    left_out |= {e.name: why for e in able if e.name in took and (why := unlike(e, took, ours))}
    return Answers(question, {n: one for n, one in took.items() if n not in left_out}, left_out)


@cache
def _tried(form: str, measures: tuple[str, ...], engine: Engine, data: Path) -> None:
    """Ask an engine once on a few rows, before its first time is taken."""
    try:
        Question(Work(3, 10, 2), form, measures).ask(engine, data)
    except Refused:
        return  # it will say so itself when its time is taken


def unlike(engine: Engine, took: dict[str, Took], ours: Took) -> str:
    """How its means differ from ours; "" if they agree, or if it has other definitions."""
    if engine.other:
        return ""
    for name, value in took[engine.name].means.items():
        if not math.isclose(value, ours.means[name], rel_tol=0, abs_tol=engine.within(name)):
            return f"says {name} = {value:.6f}, rankgauge says {ours.means[name]:.6f}"
    return ""

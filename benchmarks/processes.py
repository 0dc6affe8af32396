"""Run each engine in fresh processes, round by round, and return medians.

Engines take turns within a round, so that load on the machine affects all of them. The time of a
peer counts only if its means agree with ours.
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
TIMEOUT = 600  # seconds for one process
# For engines that are called in Python: idle threads of OpenBLAS sleep. Otherwise, their busy
# waiting costs every process that imports NumPy 0.1 s of CPU on two cores, and more on more cores.
# Commands run as they are installed.
IDLE = {"OPENBLAS_THREAD_TIMEOUT": "4"}


class EngineError(Exception):
    """An engine failed; the message says why."""


@dataclass(frozen=True)
class Cost:
    """Cost of a call or a process.

    Attributes:
        cpu: CPU seconds, user and system.
        wall: Wall-clock seconds.
        peak: MiB of a whole process, or of a call beyond the memory in use before.
        means: The computed means, by measure.
    """

    cpu: float
    wall: float
    peak: float
    means: dict[str, float] = field(default_factory=dict)


def median(some: Sequence[Cost]) -> Cost:
    """Return the median of each number."""
    numbers = (statistics.median(getattr(one, key) for one in some) for key in _NUMBERS)
    return Cost(*numbers, some[0].means)


_NUMBERS = ("cpu", "wall", "peak")


def process(
    words: Sequence[str],
    stdin: Path | None = None,
    parse: Callable[[str], Any] = lambda _: {},
    environment: Mapping[str, str] | None = None,
) -> Cost:
    """Return the cost of a command as a whole process.

    Raises:
        EngineError: If it fails or takes too long.
    """
    arguments = json.dumps({"words": [*words], "stdin": stdin and str(stdin)})
    command = [sys.executable, "-I", "-S", str(HERE / "launch.py"), arguments]
    found = json.loads(_output(command, environment))
    if found["status"]:
        raise EngineError(_last_line(found["err"]))
    return Cost(*(found[key] for key in _NUMBERS), parse(found["out"]))


def _output(words: Sequence[str], environment: Mapping[str, str] | None) -> str:
    # Let Python cache compiled modules; otherwise each run would compile those of the checkout.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **(environment or {})}
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=TIMEOUT, env=env)
    except subprocess.TimeoutExpired:
        raise EngineError(f"not finished after {TIMEOUT} seconds") from None
    if done.returncode:
        raise EngineError(_last_line(done.stderr))
    return done.stdout


def _last_line(text: str) -> str:
    return ([line for line in text.splitlines() if line.strip()] or ["no output"])[-1].strip()


@dataclass(frozen=True)
class Task:
    """One benchmark task for several engines.

    Attributes:
        work: The workload.
        form: The input: Python or CLI (files, whole process), dicts, pandas, or polars (in memory).
        measures: The measures.
        pipe: Whether the run is read from standard input.
    """

    work: Work
    form: str
    measures: tuple[str, ...]
    pipe: bool = False

    def measure(self, engine: Engine, data: Path) -> Cost:
        """Run one engine once in a fresh process.

        Raises:
            EngineError: If it fails.
        """
        measures = engine.computes(self.measures)
        if self.form not in ("Python", "CLI"):
            arguments: dict[str, Any] = {"engine": engine.name, "form": self.form, "measures": measures}
            arguments["work"] = asdict(self.work)
            words = (sys.executable, str(HERE / "warm.py"), json.dumps(arguments))
            return Cost(**json.loads(_output(words, {**IDLE, **engine.environment})))
        qrels, run = files(self.work, data)
        if self.form == "CLI":
            words = engine.command(str(qrels), "-" if self.pipe else str(run), measures)
            return process(words, run if self.pipe else None, engine.parse, engine.environment)
        words = (sys.executable, str(HERE / "cold.py"), engine.name, str(qrels), str(run), *measures)
        return process(words, parse=_pairs, environment={**IDLE, **engine.environment})


def _pairs(output: str) -> dict[str, float]:
    rows = [line.split() for line in output.splitlines()]
    return {name: float(value) for name, value in rows}


@dataclass(frozen=True)
class Results:
    """Costs of a task by engine, and why some engines have none."""

    task: Task
    took: dict[str, Cost]
    left_out: dict[str, str]


def measure_all(task: Task, peers: Sequence[Engine], rounds: int, data: Path) -> Results:
    """Run rankgauge and the peers in turn, round by round.

    Raises:
        EngineError: If rankgauge fails.
    """
    able = [e for e in peers if task.form.partition(", ")[0] in e.forms and e.computes(task.measures)]
    left_out = {e.name: "was not run with millions of rows" for e in able if task.work.large and not e.large}
    able = [engine for engine in able if engine.name not in left_out]
    for engine in able:
        if engine.heavy:  # compiled code is cached on disk; a first run compiles it
            _warm_up(task.form, task.measures, engine, data)
    found: dict[str, list[Cost]] = {engine.name: [] for engine in (OURS, *able)}
    for turn in range(rounds):
        try:
            found[OURS.name].append(task.measure(OURS, data))
        except EngineError as error:
            raise EngineError(f"rankgauge, {task.form}, {task.work}: {error}") from None
        for engine in able:
            if engine.name in left_out or (turn and engine.heavy):
                continue
            try:
                found[engine.name].append(task.measure(engine, data))
            except EngineError as error:
                left_out[engine.name] = f"failed: {error}"
    took = {name: median(some) for name, some in found.items() if name not in left_out}
    ours = took[OURS.name]
    left_out |= {e.name: why for e in able if e.name in took and (why := disagreement(e, took, ours))}
    return Results(task, {n: one for n, one in took.items() if n not in left_out}, left_out)


@cache
def _warm_up(form: str, measures: tuple[str, ...], engine: Engine, data: Path) -> None:
    """Run an engine once on a few rows, before timing."""
    try:
        Task(Work(3, 10, 2), form, measures).measure(engine, data)
    except EngineError:
        return  # the timed run reports the error


def disagreement(engine: Engine, took: dict[str, Cost], ours: Cost) -> str:
    """Describe how its means differ from ours; "" if they agree or its definitions differ."""
    if engine.other:
        return ""
    for name, value in took[engine.name].means.items():
        if not math.isclose(value, ours.means[name], rel_tol=0, abs_tol=engine.within(name)):
            return f"has {name} = {value:.6f}, rankgauge {ours.means[name]:.6f}"
    return ""

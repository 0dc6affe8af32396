"""How far a run has come: a bar on standard error, with rate and time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

from rankgauge.core.escaping import for_terminal

_EVERY = 0.1
_EVERY_LINE = 0.5
_EVERY_IN_A_LOG = 10.0


class Told(Protocol):
    """What is told of a run's progress."""

    def step(self, *, failed: bool) -> None:
        """One more query has its response."""


class _Silent:
    def step(self, *, failed: bool) -> None:
        """Say nothing."""


def _place(wanted: bool | None) -> str:  # noqa: FBT001 - its only argument
    """Where it is shown: ``terminal``, ``notebook``, ``log``, or empty for nowhere.

    A notebook is no terminal to draw on, but it can begin a line anew.
    """
    notebook = type(sys.stderr).__module__.partition(".")[0] == "ipykernel"
    terminal = sys.stderr.isatty() and not notebook
    if not (terminal or notebook if wanted is None else wanted):
        return ""
    return "terminal" if terminal else "notebook" if notebook else "log"


@contextmanager
def shown(
    what: str, total: int, *, done: int = 0, wanted: bool | None = None, between: bool = False
) -> Iterator[Told]:
    """Show how far the work inside has come; `between`: drawn between two queries only."""
    place, what = _place(wanted), for_terminal(what)
    if not place:
        yield _Silent()
    elif place == "terminal":
        with _drawn(what, total, done=done, between=between) as bar:
            yield bar
    else:
        lines = _Lines(what, total, done, notebook=place == "notebook")
        try:
            yield lines
        finally:
            lines.end()


class _Lines:
    """A line of text that says how far it is: over itself in a notebook, a new one in a log."""

    def __init__(self, what: str, total: int, done: int, *, notebook: bool) -> None:
        self._what, self._total, self._before = what, total, done
        self._notebook = notebook
        self._every = _EVERY_LINE if notebook else _EVERY_IN_A_LOG
        self._begun = self._last = time.monotonic()
        self._seen = self._failures = self._width = 0

    def step(self, *, failed: bool) -> None:
        """Count, and say it now and then."""
        self._seen += 1
        self._failures += failed
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            rate = self._seen / (now - self._begun)
            left = round((self._total - self._before - self._seen) / rate)
            line = (
                f"{self._what}: {self._before + self._seen}/{self._total}, {rate:.1f}/s, "
                f"{timedelta(seconds=left)} left"
            )
            self._say(line + (f", {self._failures} failed" if self._failures else ""))

    def _say(self, line: str) -> None:
        padded = line.ljust(self._width)
        self._width = len(line)
        sys.stderr.write(f"\r{padded}" if self._notebook else f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Take the line away, where that is possible."""
        if self._notebook and self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


@contextmanager
def _drawn(what: str, total: int, *, done: int, between: bool) -> Iterator[Told]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    progress = Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"), TimeRemainingColumn(), TextColumn("{task.fields[bad]}"),
        console=Console(stderr=True), transient=True, auto_refresh=not between,
    )  # fmt: skip
    task = progress.add_task(what, total=total, completed=done, rate="", bad="")
    begun = last = time.monotonic()
    seen = failures = 0

    class Bar:
        def step(self, *, failed: bool) -> None:
            """Count, and look at the clock: drawing each query would cost more than asking it."""
            nonlocal last, seen, failures
            seen += 1
            failures += failed
            now = time.monotonic()
            if now - last >= _EVERY:
                last = now
                progress.update(
                    task,
                    completed=done + seen,
                    rate=f"{seen / (now - begun):.1f}/s",
                    bad=f"[red]{failures} failed[/red]" if failures else "",
                    refresh=between,
                )

    with progress:
        yield Bar()
        progress.update(task, completed=done + seen)


@contextmanager
def busy(what: str, *, wanted: bool | None = None) -> Iterator[None]:
    """Show what is being done, and on a terminal for how long."""
    place, what = _place(wanted), for_terminal(what)
    if place != "terminal":
        if place:
            sys.stderr.write(f"{what}\n")
            sys.stderr.flush()
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    progress = Progress(
        SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    progress.add_task(what, total=None)
    with progress:
        yield

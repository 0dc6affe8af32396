"""Progress of a run on standard error, with rate and remaining time."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rankgauge.core.escaping import for_terminal

_EVERY = 0.1
_EVERY_LINE = 0.5
_EVERY_IN_A_LOG = 10.0


def _display(wanted: bool | None) -> str:  # noqa: FBT001 - its only argument
    """Return the kind of display: ``terminal``, ``notebook``, ``log``, or empty for none.

    A notebook is not a terminal, but can overwrite a line.
    """
    notebook = type(sys.stderr).__module__.partition(".")[0] == "ipykernel"
    terminal = sys.stderr.isatty() and not notebook
    if not (terminal or notebook if wanted is None else wanted):
        return ""
    return "terminal" if terminal else "notebook" if notebook else "log"


class Progress:
    """Count of queries with a response; this base class shows nothing."""

    def __init__(self, total: int = 0, done: int = 0, every: float = math.inf) -> None:
        self._total, self._done, self._every = total, done, every
        self._begun = self._last = time.monotonic()
        self._seen = self._failures = 0

    def step(self, *, failed: bool) -> None:
        """Count one response, and update the display at intervals."""
        self._seen += 1
        self._done += 1
        self._failures += failed
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            bad = f"{self._failures} failed" if self._failures else ""
            self._show(self._seen / (now - self._begun), bad)

    def _show(self, rate: float, bad: str) -> None:
        """Show the count, the rate per second, and the failures."""

    def end(self) -> None:
        """Remove the display if possible."""


class _Line(Progress):
    """A line of text, overwritten in a notebook and repeated in a log."""

    def __init__(self, what: str, total: int, done: int, *, notebook: bool) -> None:
        super().__init__(total, done, _EVERY_LINE if notebook else _EVERY_IN_A_LOG)
        self._what, self._notebook = what, notebook
        self._width = 0

    def _show(self, rate: float, bad: str) -> None:
        left = timedelta(seconds=round((self._total - self._done) / rate))
        parts = [f"{self._what}: {self._done}/{self._total}", f"{rate:.1f}/s", f"{left} left", bad]
        line = ", ".join(filter(None, parts))
        self._write(f"\r{line.ljust(self._width)}" if self._notebook else f"{line}\n")
        self._width = len(line)

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def end(self) -> None:
        if self._notebook and self._width:
            self._write("\r" + " " * self._width + "\r")


class _Bar(Progress):
    """A bar on a terminal; with ``between``, it is drawn only between queries."""

    def __init__(self, what: str, total: int, done: int, *, between: bool) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

        super().__init__(total, done, _EVERY)
        self._between = between
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("[red]{task.fields[bad]}[/red]"),
        )
        self._bar = _rich(columns, auto_refresh=not between)
        self._task = self._bar.add_task(what, total=total, completed=done, rate="", bad="")
        self._bar.start()

    def _show(self, rate: float, bad: str) -> None:
        self._bar.update(self._task, completed=self._done, rate=f"{rate:.1f}/s", bad=bad, refresh=self._between)

    def end(self) -> None:
        self._bar.update(self._task, completed=self._done)
        self._bar.stop()


def _rich(columns: tuple[Any, ...], *, auto_refresh: bool = True) -> Any:
    from rich.console import Console
    from rich.progress import Progress as Rich, TextColumn

    what = TextColumn("{task.description}", markup=False)
    console = Console(stderr=True)
    return Rich(what, *columns, console=console, transient=True, auto_refresh=auto_refresh)


@contextmanager
def show_progress(
    what: str, total: int, *, done: int = 0, wanted: bool | None = None, between: bool = False
) -> Iterator[Progress]:
    """Show the progress of a block; with ``between``, it is drawn only between queries."""
    place, what = _display(wanted), for_terminal(what)
    made = Progress()
    if place == "terminal":
        made = _Bar(what, total, done, between=between)
    elif place:
        made = _Line(what, total, done, notebook=place == "notebook")
    try:
        yield made
    finally:
        made.end()


@contextmanager
def show_activity(what: str, *, wanted: bool | None = None) -> Iterator[None]:
    """Show the current task, and its duration on a terminal."""
    place, what = _display(wanted), for_terminal(what)
    if place != "terminal":
        if place:
            sys.stderr.write(f"{what}\n")
            sys.stderr.flush()
        yield
        return
    from rich.progress import SpinnerColumn, TimeElapsedColumn

    with _rich((SpinnerColumn(), TimeElapsedColumn())) as bar:
        bar.add_task(what, total=None)
        yield

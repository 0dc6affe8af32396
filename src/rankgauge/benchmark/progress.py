"""Progress of a run on standard error, with rate and remaining time."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rankgauge.core.escaping import for_terminal
from rankgauge.core.progress import is_shown, report

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
    """Count of queries with a response, shown at intervals with the rate per second and the failures."""

    def __init__(self, done: int, every: float, show: Callable[[float, str], None]) -> None:
        self.done, self._every, self._show = done, every, show
        self._begun = self._last = time.monotonic()
        self._seen = self._failures = 0

    def step(self, *, failed: bool) -> None:
        """Count one response, and update the display at intervals."""
        self._seen += 1
        self.done += 1
        self._failures += failed
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            self._show(self._seen / (now - self._begun), f"{self._failures} failed" if self._failures else "")


def _rich(columns: tuple[Any, ...], *, auto_refresh: bool = True) -> Any:
    from rich.console import Console
    from rich.progress import Progress as Rich, TextColumn

    what = TextColumn("{task.description}", markup=False)
    return Rich(what, *columns, console=Console(stderr=True), transient=True, auto_refresh=auto_refresh)


@contextmanager
def show_progress(
    what: str, total: int, *, done: int = 0, wanted: bool | None = None, between: bool = False
) -> Iterator[Progress]:
    """Show the progress of a block; with ``between``, it is drawn only between queries."""
    place, what = _display(wanted), for_terminal(what)
    if is_shown():
        progress = Progress(done, _EVERY, lambda _rate, failures: report(progress.done, total, f"{what} {failures}"))
        yield progress
    elif not place:
        yield Progress(done, math.inf, lambda _rate, _failures: None)
    elif place == "terminal":
        with _bar(what, total, done, between=between) as progress:
            yield progress
    else:
        with _line(what, total, done, notebook=place == "notebook") as progress:
            yield progress


@contextmanager
def _bar(what: str, total: int, done: int, *, between: bool) -> Iterator[Progress]:
    """Show a bar on a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("[red]{task.fields[failures]}[/red]"),
    )
    with _rich(columns, auto_refresh=not between) as bar:
        task = bar.add_task(what, total=total, completed=done, rate="", failures="")

        def draw(rate: float, failures: str) -> None:
            bar.update(task, completed=progress.done, rate=f"{rate:.1f}/s", failures=failures, refresh=between)

        progress = Progress(done, _EVERY, draw)
        yield progress


@contextmanager
def _line(what: str, total: int, done: int, *, notebook: bool) -> Iterator[Progress]:
    """Show a line of text, overwritten in a notebook and repeated in a log."""
    width = 0

    def write(rate: float, failures: str) -> None:
        nonlocal width
        left = timedelta(seconds=round((total - progress.done) / rate))
        parts = [f"{what}: {progress.done}/{total}", f"{rate:.1f}/s", f"{left} left", failures]
        line = ", ".join(filter(None, parts))
        _write(f"\r{line.ljust(width)}" if notebook else f"{line}\n")
        width = len(line)

    progress = Progress(done, _EVERY_LINE if notebook else _EVERY_IN_A_LOG, write)
    try:
        yield progress
    finally:
        if notebook and width:
            _write("\r" + " " * width + "\r")


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


@contextmanager
def show_activity(what: str, *, wanted: bool | None = None) -> Iterator[None]:
    """Show the current task, and its duration on a terminal."""
    place, what = _display(wanted), for_terminal(what)
    if place != "terminal":
        if place:
            _write(f"{what}\n")
        yield
        return
    from rich.progress import SpinnerColumn, TimeElapsedColumn

    with _rich((SpinnerColumn(), TimeElapsedColumn())) as bar:
        bar.add_task(what, total=None)
        yield

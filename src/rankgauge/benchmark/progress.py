"""Progress of a run on standard error, with rate and remaining time."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rankgauge.core.escaping import for_terminal
from rankgauge.core.progress import is_shown, report, status_line
from rankgauge.core.text import keep

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


@contextmanager
def show_progress(what: str, total: int, *, done: int = 0, wanted: bool | None = None) -> Iterator[Progress]:
    """Show the progress of a block; it is drawn only between queries."""
    place, what = _display(wanted), for_terminal(what)
    if is_shown():
        progress = Progress(done, _EVERY, lambda _rate, failures: report(progress.done, total, f"{what} {failures}"))
        yield progress
    elif not place:
        yield Progress(done, math.inf, lambda _rate, _failures: None)
    else:
        with _line(what, total, done, place) as progress:
            yield progress


@contextmanager
def _line(what: str, total: int, done: int, place: str) -> Iterator[Progress]:
    """Show a line of text, overwritten on a terminal and in a notebook, and repeated in a log."""
    width = 0
    most = shutil.get_terminal_size().columns - 1 if place == "terminal" else None

    def write(rate: float, failures: str) -> None:
        nonlocal width
        parts = [f"{what}: {progress.done}/{total}"]
        if rate:
            parts += [f"{rate:.1f}/s", f"{timedelta(seconds=round((total - progress.done) / rate))} left"]
        line = ", ".join([*parts, *keep(failures)])[:most]
        _write(f"{line}\n" if place == "log" else f"\r{line.ljust(width)}")
        width = len(line)

    every = {"terminal": _EVERY, "notebook": _EVERY_LINE, "log": _EVERY_IN_A_LOG}[place]
    progress = Progress(done, every, write)
    if place == "terminal":
        write(0.0, "")
    try:
        yield progress
    finally:
        if place != "log" and width:
            _write(f"\r{' ' * width}\r")


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
    with status_line(what):
        yield

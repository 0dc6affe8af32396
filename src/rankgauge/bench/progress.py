"""How far a run has come: a bar on standard error, with rate and time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Told", "busy", "shown"]

_EVERY = 0.1


class Told(Protocol):
    """What is told of a run's progress."""

    def step(self, *, failed: bool) -> None:
        """One more query has its answer."""
        ...


class _Silent:
    def step(self, *, failed: bool) -> None:
        """Say nothing."""


@contextmanager
def shown(
    what: str, total: int, *, done: int = 0, wanted: bool | None = None, between: bool = False
) -> Iterator[Told]:
    """Show how far the work inside has come.

    Args:
        what: What is done.
        total: How many queries there are.
        done: How many of them had their answer before.
        wanted: Whether to show it; where standard error is a terminal if left out.
        between: Draw it between two queries and at no other time: for work that is timed.
    """
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield _Silent()
        return
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
    """Show what is being done and for how long, where nobody knows how much is left.

    Args:
        what: What is done.
        wanted: As for :func:`shown`.
    """
    if not (sys.stderr.isatty() if wanted is None else wanted):
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

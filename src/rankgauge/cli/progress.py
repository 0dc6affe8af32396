"""A sign of life on standard error for work that takes more than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["working"]

_AFTER = 1.0


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner with `what` and the time gone by; nothing if it is quick or not a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    progress = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    progress.add_task(what, total=None)
    timer = threading.Timer(_AFTER, progress.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        progress.stop()

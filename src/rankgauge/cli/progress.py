"""A spinner on standard error for work that takes more than a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

from rankgauge.core.escaping import for_terminal

_AFTER = 1.0


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner with `what` and the elapsed time on a terminal; nothing for quick work."""
    if not sys.stderr.isatty():
        yield
        return
    started: list[Progress] = []
    began = time.monotonic()
    # Quick work does not wait for rich to load.
    timer = threading.Timer(_AFTER, lambda: started.append(_started(what, began)))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        for progress in started:
            progress.stop()


def _started(what: str, began: float) -> Progress:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    progress = Progress(
        SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True, get_time=time.monotonic,
    )  # fmt: skip
    progress.add_task(for_terminal(what), total=None)
    progress.tasks[0].start_time = began
    progress.start()
    return progress

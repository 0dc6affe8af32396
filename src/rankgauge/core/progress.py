"""Progress of long work, reported where it is done and shown by a command."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Called with a share of the work, from 0 to 1, and what was done with it.
Show = Callable[[float, str], None]
_REDRAWN = 0.5  # seconds
_shown: ContextVar[Show | None] = ContextVar("shown", default=None)


@contextmanager
def showing(show: Show) -> Iterator[None]:
    """Show the progress of the work in this block.

    Example:
        >>> with showing(lambda share, done: print(f"{share:.0%} {done}")):
        ...     report(1, 4, "read")
        25% read
    """
    token = _shown.set(show)
    try:
        yield
    finally:
        _shown.reset(token)


def is_shown() -> bool:
    """Return whether progress is shown."""
    return _shown.get() is not None


def report(count: int, total: int, done: str) -> None:
    """Report that `count` of `total` items are done, such as "read"."""
    show = _shown.get()
    if show is not None and total > 0:
        show(count / total, done)


@contextmanager
def status_line(text: str, *, after: float = 0.0) -> Iterator[Callable[[str], None]]:
    """Show a text with the elapsed time on standard error while a block runs; yield a function that replaces it.

    Args:
        text: One line, escaped for a terminal.
        after: Seconds before the line is shown: quick work shows none.
    """
    width, began, ended = 0, time.monotonic(), threading.Event()

    def replace(new: str) -> None:
        nonlocal text
        text = new

    def draw() -> None:
        nonlocal width
        import shutil

        seconds = int(time.monotonic() - began)
        line = f"{text} {seconds // 60}:{seconds % 60:02}"[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write(f"\r{line.ljust(width)}")
        sys.stderr.flush()
        width = len(line)

    def redraw() -> None:
        wait = after or _REDRAWN
        while not ended.wait(wait):
            draw()
            wait = _REDRAWN

    if not after:
        draw()
    thread = threading.Thread(target=redraw, daemon=True)
    thread.start()
    try:
        yield replace
    finally:
        ended.set()
        thread.join()
        if width:
            sys.stderr.write(f"\r{' ' * width}\r")
            sys.stderr.flush()

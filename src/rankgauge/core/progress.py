"""Progress of long work, reported where it is done and shown by a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Called with a share of the work, from 0 to 1, and what was done with it.
Show = Callable[[float, str], None]
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

"""Thread pool with the same results in the same order for any number of threads.

Threads suffice because the compiled core and NumPy release the GIL; processes would have to copy
the data.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from rankgauge.core.arguments import integer

if TYPE_CHECKING:
    from concurrent.futures import Future

_T = TypeVar("_T")
_R = TypeVar("_R")
_MOST = 1024  # jobs
LARGE_FILE = 50 << 20  # bytes, from which on several threads read a file
_current = threading.local()


class _Stopped(BaseException):
    """Ends a thread whose result is no longer needed."""


def map_in_threads(function: Callable[[_T], _R], items: Iterable[_T], jobs: int = 1) -> Iterator[_R]:
    """Yield the result for each item, in the order of the items.

    Items are taken from the iterable in the calling thread, in order and only a few ahead. The
    error of the first failing item is raised. When the caller stops, because of an error or Ctrl-C,
    the threads end at their next `check_stopped`.

    Args:
        function: Called with each item.
        items: The items.
        jobs: Number of threads; 1 calls the function in the calling thread.

    Raises:
        InputError: If `jobs` is not a whole number from 1 to 1,024.

    Example:
        >>> list(map_in_threads(abs, [-1, 2, -3], jobs=2))
        [1, 2, 3]
    """
    check_jobs(jobs)
    return map(function, items) if jobs == 1 else _map(function, items, jobs)


def _map(function: Callable[[_T], _R], items: Iterable[_T], jobs: int) -> Iterator[_R]:
    from concurrent.futures import ThreadPoolExecutor

    stop = threading.Event()
    waiting: deque[Future[_R]] = deque()
    stops = (*getattr(_current, "stops", ()), stop)
    pool = ThreadPoolExecutor(jobs, "rankgauge", initializer=setattr, initargs=(_current, "stops", stops))
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def default_jobs(sources: Iterable[Any]) -> int:
    """Return the number of usable cores if any of the sources is a file of 50 MiB or more, else 1."""
    paths = [source for source in sources if isinstance(source, str | os.PathLike)]
    large = any(os.path.isfile(path) and os.path.getsize(path) >= LARGE_FILE for path in paths)  # noqa: PTH113, PTH202
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST) if large else 1


def check_jobs(jobs: int) -> None:
    """Raise `InputError` for an invalid number of threads."""
    integer("jobs", jobs, most=_MOST)


def check_stopped() -> None:
    """End this thread if its result is no longer needed."""
    if any(stop.is_set() for stop in getattr(_current, "stops", ())):
        raise _Stopped

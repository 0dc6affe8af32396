"""An event loop that runs async retrievers from synchronous code."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

_WAIT = 0.1
_GRACE = 0.5  # seconds for a loop to respond, or for a task to end after cancellation


class _Loop:
    """An event loop in a separate thread, shared by the whole process.

    Async clients (httpx, aiohttp, most database clients) keep connections that are bound to the
    loop that created them: in another loop they fail with "Event loop is closed".
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="rankgauge-loop", daemon=True)
        self.thread.start()
        atexit.register(self.end)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        ended = False
        while not ended:
            # A task of a retriever may raise SystemExit, which would end the loop for all
            # retrievers.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()
                ended = True

    def end(self) -> None:
        """Stop the loop, and wait briefly for its thread."""
        if self.thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self.thread.join(1.0)
        if not self._loop.is_running():
            self._loop.close()

    def result(self, found: Awaitable[Any], cancelled: Callable[[], bool] | None) -> Any:
        """Return the result; on Ctrl-C, cancel the task and wait for it."""
        over = threading.Event()
        tasks: list[asyncio.Task[Any]] = []

        def begin() -> None:
            # A coroutine must be the task itself, so that cancellation before its start closes it.
            work = found if asyncio.iscoroutine(found) else _await(found)
            tasks.append(self._loop.create_task(work))
            tasks[0].add_done_callback(lambda _: over.set())

        def cancel() -> None:
            if tasks:
                tasks[0].cancel()

        self._loop.call_soon_threadsafe(begin)
        try:
            # Short waits: on Windows, a long wait is not interrupted by Ctrl-C.
            while not over.wait(_WAIT):
                if cancelled is not None and cancelled():
                    self._loop.call_soon_threadsafe(cancel)
                    raise asyncio.CancelledError
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(cancel)
            if not over.wait(4 * _GRACE):
                _abandon(self)
            raise
        return tasks[0].result()

    def responds(self) -> bool:
        """Return whether the loop runs a callback within the time limit."""
        pong = threading.Event()
        self._loop.call_soon_threadsafe(pong.set)
        return pong.wait(_GRACE)


_loop: _Loop | None = None
_making = threading.Lock()


def awaited(found: Awaitable[Any], cancelled: Callable[[], bool] | None = None) -> Any:
    """Return the result of an awaitable from synchronous code, even if an event loop is running.

    The awaitable is cancelled once ``cancelled``, which is polled, returns True.
    """
    global _loop  # noqa: PLW0603 - one loop per process
    with _making:
        if _loop is None or not _loop.thread.is_alive():  # a forked process has no loop thread
            _loop = _Loop()
        loop = _loop
    if threading.current_thread() is not loop.thread:
        return loop.result(found, cancelled)
    # Synchronous code called from the loop itself: waiting for the same loop would never end.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _await(found)).result()


def abandon_blocked_loop() -> None:
    """Abandon the event loop if it is blocked; the next call creates another."""
    loop = _loop
    if loop is not None and loop.thread.is_alive() and not loop.responds():
        _abandon(loop)


def _abandon(loop: _Loop) -> None:
    global _loop  # noqa: PLW0603 - as above
    with _making:
        if _loop is loop:
            _loop = None
    # It continues once it is no longer blocked, but the process does not wait for it at exit.
    atexit.unregister(loop.end)


async def _await(found: Awaitable[Any]) -> Any:
    return await found

"""One event loop for retrievers that are async, used from code that is not."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

_WAIT = 0.1
_GRACE = 0.5  # seconds in which a loop, or what was cancelled in it, has to answer


class _Loop:
    """An event loop in a thread of its own, the same one for as long as the process lives.

    Clients for async work (httpx, aiohttp, those of most databases) keep connections that belong to
    the loop they were made in: in a second loop they fail with "Event loop is closed".
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
            # A task of the retriever's own may raise SystemExit, which would end the loop for all.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()
                ended = True

    def end(self) -> None:
        """Stop the loop, and wait for its thread a little."""
        if self.thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self.thread.join(1.0)
        if not self._loop.is_running():
            self._loop.close()

    def result(self, found: Awaitable[Any], given_up: Callable[[], bool] | None) -> Any:
        """Return the result; on Ctrl-C, the task is cancelled and awaited."""
        over = threading.Event()
        tasks: list[asyncio.Task[Any]] = []

        def begin() -> None:
            # One that is cancelled before it begins has to be the task itself: it ends with it.
            work = found if asyncio.iscoroutine(found) else _one(found)
            tasks.append(self._loop.create_task(work))
            tasks[0].add_done_callback(lambda _: over.set())

        def cancel() -> None:
            if tasks:
                tasks[0].cancel()

        self._loop.call_soon_threadsafe(begin)
        try:
            # In short waits: on Windows a long one does not hear the keyboard.
            while not over.wait(_WAIT):
                if given_up is not None and given_up():
                    self._loop.call_soon_threadsafe(cancel)
                    raise asyncio.CancelledError
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(cancel)
            if not over.wait(4 * _GRACE):
                _abandon(self)
            raise
        return tasks[0].result()

    def responds(self) -> bool:
        """Return whether it gets round to a call within a moment."""
        pong = threading.Event()
        self._loop.call_soon_threadsafe(pong.set)
        return pong.wait(_GRACE)


_loop: _Loop | None = None
_making = threading.Lock()


def awaited(found: Awaitable[Any], given_up: Callable[[], bool] | None = None) -> Any:
    """Return the result of an awaitable, from code that is not async; also where a loop is running.

    It is cancelled when it is given up, which is looked at now and then.
    """
    global _loop  # noqa: PLW0603 - one for the process is the point
    with _making:
        if _loop is None or not _loop.thread.is_alive():  # a fork has no thread of its own
            _loop = _Loop()
        loop = _loop
    if threading.current_thread() is not loop.thread:
        return loop.result(found, given_up)
    # Code that is not async, called by code that is: to wait for our own loop would last for ever.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _one(found)).result()


def abandon_blocked_loop() -> None:
    """Abandon the event loop if it is blocked: the next call gets another."""
    loop = _loop
    if loop is not None and loop.thread.is_alive() and not loop.responds():
        _abandon(loop)


def _abandon(loop: _Loop) -> None:
    global _loop  # noqa: PLW0603 - as above
    with _making:
        if _loop is loop:
            _loop = None
    # It goes on once nothing holds it up any more, but nobody waits for that at the end.
    atexit.unregister(loop.end)


async def _one(found: Awaitable[Any]) -> Any:
    return await found

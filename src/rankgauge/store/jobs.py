"""Jobs: commands that one process requests and another one runs, with their progress."""

from __future__ import annotations

import _thread
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from rankgauge.core.progress import showing
from rankgauge.errors import InputError
from rankgauge.store.database import NothingStored, Store
from rankgauge.store.schema import SCHEMA

State: TypeAlias = Literal["waiting", "running", "cancelling", "done", "failed", "cancelled", "interrupted"]
#: A job whose process ended this often without a result is not started again.
ATTEMPTS = 3
EVERY = 2.0  # seconds between heartbeats
_PATIENCE = 20.0  # seconds in which an interrupted job must end
_OPEN = ("waiting", "running", "cancelling")


@dataclass(frozen=True)
class Job:
    """A command with its state and progress.

    Attributes:
        id: The number of the job.
        time: When it was added (UTC, ISO 8601).
        author: Who added it.
        arguments: The arguments of the command, such as ``("bench", "--only", "bm25")``.
        state: ``waiting``, ``running``, ``cancelling``, ``done``, ``failed``, ``cancelled``, or
            ``interrupted`` (its process ended `ATTEMPTS` times).
        attempt: The number of processes that have begun it.
        beat: The number of heartbeats in this attempt.
        share: The completed share, from 0 to 1; None if unknown.
        message: The current step, or why it failed or was cancelled.
        ended: When it ended; None before.
    """

    id: int
    time: str
    author: str
    arguments: tuple[str, ...]
    state: State
    attempt: int
    beat: int
    share: float | None
    message: str
    ended: str | None

    @property
    def open(self) -> bool:
        """Whether the job has not ended."""
        return self.state in _OPEN


class Jobs(Store):
    """The jobs of a store. Any number of processes may add, run, and cancel them.

    The process that claims a job runs it and stores heartbeats. If they stop, another process may
    run the job again. A job has at most `ATTEMPTS` attempts.

    Example:
        >>> import tempfile
        >>> jobs = Jobs(tempfile.mkdtemp() + "/store.db")
        >>> job = jobs.add(["bench"], author="Ann")
        >>> with jobs.running(job.id) as claimed:
        ...     claimed.arguments
        ('bench',)
        >>> jobs.job(job.id).state
        'done'
    """

    def add(self, arguments: Sequence[str], *, author: str, state: State = "waiting") -> Job:
        """Add a job, or record one that is done. If an equal job is waiting, return that job instead."""
        table, words = SCHEMA.table("jobs"), json.dumps([*arguments])
        with self._database.writing() as connection:
            query = table.select().where(table.c.state == "waiting", table.c.arguments == words)
            if (row := connection.execute(query).mappings().first()) is None:
                values = {"time": _now(), "author": author, "arguments": words, "state": state}
                insert = table.insert().values(
                    **values, attempt=0, beat=0, message="", ended=None if state in _OPEN else _now()
                )
                row = connection.execute(insert.returning(table)).mappings().one()
            return _job(row)

    def jobs(self, most: int = 100) -> list[Job]:
        """Return the latest jobs, and all open ones, the latest first."""
        table = SCHEMA.table("jobs")
        newest = table.select().with_only_columns(table.c.id).order_by(table.c.id.desc()).limit(most)
        wanted = table.c.state.in_(_OPEN) | table.c.id.in_(newest.scalar_subquery())
        latest = table.select().where(wanted).order_by(table.c.id.desc())
        try:
            with self._database.reading() as connection:
                return list(map(_job, connection.execute(latest).mappings()))
        except NothingStored:
            return []

    def job(self, number: int) -> Job | None:
        """Return a job, or None if there is no such job."""
        table = SCHEMA.table("jobs")
        with self._database.reading() as connection:
            row = connection.execute(table.select().where(table.c.id == number)).mappings().first()
        return None if row is None else _job(row)

    def cancel(self, number: int, *, by: str) -> None:
        """Cancel a job; a running one ends at its next heartbeat."""
        message = f"cancelled by {by}"
        if not self.change(number, {"state": "waiting"}, state="cancelled", message=message, ended=_now()):
            self.change(number, {"state": "running"}, state="cancelling", message=message)

    def release(self, job: Job) -> None:
        """Let another process run a job that has had no heartbeat since `Job.beat`."""
        if job.state == "running" and job.attempt < ATTEMPTS:
            values: dict[str, Any] = {"state": "waiting"}
        else:
            values = {"state": "cancelled" if job.state == "cancelling" else "interrupted", "ended": _now()}
        self.change(job.id, {"state": job.state, "attempt": job.attempt, "beat": job.beat}, **values)

    def refuse(self, job: Job, why: str) -> None:
        """Mark a waiting job that no process can begin as failed."""
        self.change(job.id, {"state": "waiting", "attempt": job.attempt}, state="failed", message=why, ended=_now())

    @contextmanager
    def running(self, number: int) -> Iterator[Job | None]:
        """Claim a waiting job and run it in this block, whose progress is stored; None if it is not waiting.

        The block is interrupted (`KeyboardInterrupt`) if the job is cancelled, or another process runs it. An
        exception in the block is stored with the job.
        """
        table = SCHEMA.table("jobs")
        job = self.change(number, {"state": "waiting"}, state="running", attempt=table.c.attempt + 1, beat=0)
        if job is None:
            yield None
            return
        heartbeats = _Heartbeats(self, job)
        try:
            with showing(heartbeats.show):
                yield job
        except KeyboardInterrupt:
            # A job that was released waits for another process: it keeps its state.
            heartbeats.end("cancelled", was="cancelling")
            heartbeats.end("interrupted", was="running")
            raise
        except (Exception, SystemExit) as error:
            heartbeats.end("failed", (str(error) or type(error).__name__)[-2_000:])
            raise
        heartbeats.end("done", "")

    def change(self, number: int, expected: Mapping[str, Any], **values: Any) -> Job | None:
        """Change columns of a job if it has the expected values; return it, or None if it does not have them."""
        table = SCHEMA.table("jobs")
        conditions = (table.c[name] == value for name, value in expected.items())
        change = table.update().where(table.c.id == number, *conditions).values(**values).returning(table)
        with self._database.writing() as connection:
            row = connection.execute(change).mappings().first()
        return None if row is None else _job(row)


class _Heartbeats:
    """The progress of a job, stored every few seconds by a thread of its process."""

    def __init__(self, jobs: Jobs, job: Job) -> None:
        self._jobs, self._job = jobs, job
        self._beat, self._doing = 0, ""
        self._share: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show_all, daemon=True)
        self._thread.start()

    def show(self, share: float, doing: str) -> None:
        """Store this progress with the next heartbeat."""
        self._share, self._doing = share, doing

    def end(self, state: State, message: str | None = None, *, was: State | None = None) -> None:
        """Store how the job ended, if it still belongs to this process and its state is `was`, if given."""
        self._ended.set()
        self._thread.join()
        share = {"share": 1.0} if state == "done" else {}
        said = {} if message is None else {"message": message}
        expected = {"attempt": self._job.attempt, "ended": None, **({} if was is None else {"state": was})}
        self._jobs.change(self._job.id, expected, state=state, ended=_now(), **share, **said)

    def _show_all(self) -> None:
        job = self._job
        while not self._ended.wait(EVERY):
            running = {"state": "running", "attempt": job.attempt}
            try:
                if self._jobs.change(job.id, running, beat=self._beat + 1, share=self._share, message=self._doing):
                    self._beat += 1
                    continue
            except InputError:  # such as a lock: the next heartbeat may succeed
                continue
            if os.name == "nt":  # there, os.kill would end the process without cleaning up
                _thread.interrupt_main()
            else:
                os.kill(os.getpid(), signal.SIGINT)
            if not self._ended.wait(_PATIENCE):
                os._exit(1)  # the block ignores the interrupt; another process releases the job
            return


def _job(row: Mapping[Any, Any]) -> Job:
    return Job(**{**row, "arguments": tuple(json.loads(row["arguments"]))})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

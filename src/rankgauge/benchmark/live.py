"""Live queries: a retriever in a process of its own, which is killed if it takes too long."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from rankgauge.benchmark.plan import BenchmarkPlan, PlanBuilder
from rankgauge.benchmark.retriever_run import Corpus
from rankgauge.corpus.collection import Query
from rankgauge.errors import InputError
from rankgauge.retrievers.protocol import attempt, describe_error, search

_BUSY = 30.0  # seconds that a query waits for another one


@dataclass(frozen=True)
class LiveRanking:
    """The ranking of a live query.

    Attributes:
        documents: The ids of the documents, best first.
        scores: Their scores.
        seconds: The time of the search, without indexing.
    """

    documents: tuple[str, ...]
    scores: tuple[float, ...]
    seconds: float


def answer_queries(plan: BenchmarkPlan, name: str, lines: Iterable[str]) -> Iterator[str]:
    """Index the documents of a plan with one of its retrievers, and yield a JSON line for each query.

    Each input line is a JSON list: the text of a query and the number of documents.

    Raises:
        InputError: If the collection cannot be read, or the retriever cannot be created or indexed.
    """
    plan.check()
    bench = plan.load(progress=False)
    retriever = PlanBuilder(plan, bench).named(name)
    limits = plan.retriever(name).limits or bench.limits
    Corpus(bench.collection, progress=False).index(retriever, limits.index_timeout)
    for line in lines:
        text, k = json.loads(line)
        began = time.perf_counter()
        rankings, error = attempt(partial(search, retriever, [Query("live", text)], k))
        seconds = time.perf_counter() - began
        yield json.dumps([describe_error(error)] if error else [rankings[0].ids, rankings[0].scores, seconds])


@dataclass
class LiveRetriever:
    """A retriever that runs in another process, started by the first query.

    Attributes:
        command: The command, which runs :func:`answer_queries` on its standard input.
        folder: The folder in which it runs.
        timeout: Seconds for a query, with indexing for the first one; then the process is killed.
    """

    command: Sequence[str]
    folder: Path
    timeout: float = 120.0
    _process: Any = None  # subprocess.Popen[str]
    _lines: SimpleQueue[str] = field(default_factory=SimpleQueue)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def search(self, text: str, k: int) -> LiveRanking:
        """Return the ranking of a query.

        Raises:
            InputError: If the retriever fails, its process ends, it takes longer than the timeout, or is busy.
        """
        if not self._lock.acquire(timeout=_BUSY):
            raise InputError("it is busy with another query", where="live query", fix="try again later")
        try:
            process = self._process
            if process is None or process.poll() is not None:
                self.close()
                self._process = process = self._start()
            answer = "[]"
            with suppress(OSError, Empty):
                print(json.dumps([text, k]), file=process.stdin, flush=True)
                answer = self._lines.get(timeout=self.timeout)
            values = json.loads(answer)
            if not values:
                self.close()
        finally:
            self._lock.release()
        if len(values) == 3:
            return LiveRanking(tuple(values[0]), tuple(values[1]), values[2])
        raise InputError(
            values[0] if values else f"no response in {self.timeout:g} s", where="live query", fix="check the retriever"
        )

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            with suppress(OSError):  # unsent input
                self._process.stdin.close()

    def _start(self) -> Any:
        errors, pipe = tempfile.TemporaryFile("w+", errors="replace"), subprocess.PIPE  # noqa: SIM115 - closed by the thread
        process: Any = subprocess.Popen(  # noqa: S603 - our own command
            self.command, cwd=self.folder, stdin=pipe, stdout=pipe, stderr=errors, text=True
        )
        self._lines = lines = SimpleQueue[str]()

        def read() -> None:
            with errors, process.stdout as answers:
                for line in answers:
                    lines.put(line)
                errors.seek(0)
                last = deque((line.strip()[:500] for line in errors if line.strip()), maxlen=1)
            lines.put(json.dumps([": ".join([f"the process ended with code {process.wait()}", *last])]))

        threading.Thread(target=read, daemon=True).start()
        return process

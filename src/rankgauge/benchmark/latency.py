"""Latency of single queries; time and peak memory of a block of code."""

from __future__ import annotations

import math
import os
import re
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rankgauge.benchmark.calls import Limits, send_queries
from rankgauge.benchmark.journal import Response
from rankgauge.benchmark.progress import Progress
from rankgauge.core.files import write_atomically
from rankgauge.corpus.collection import Query
from rankgauge.formats.delimited import csv_line
from rankgauge.retrievers.protocol import has_index

_LEVEL = 0.95
_WARMUP = 3  # queries before timing


@dataclass(frozen=True)
class Quantile:
    """A quantile of latencies with its 95% interval, in seconds.

    Attributes:
        value: The smallest latency that at least the given share of queries does not exceed.
        low: The lower end of the interval; NaN with too few queries.
        high: The upper end.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Latency:
    """Latency of a retriever for single queries.

    Intervals are based on order statistics (binomial), and assume only that queries are
    independent.

    Attributes:
        seconds: Query id to seconds, in the order of the calls.
        failures: Number of failed queries, which have no latency.
        warmup: Number of queries sent before timing.

    Source:
        J.-Y. Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010, 2.2.

    Example:
        >>> latency = Latency({f"q{n}": n / 1000 for n in range(1, 101)})
        >>> latency.p50
        Quantile(value=0.05, low=0.04, high=0.061)
        >>> round(latency.throughput, 1)
        19.8
    """

    seconds: Mapping[str, float] = field(default_factory=dict)
    failures: int = 0
    warmup: int = 0

    @property
    def p50(self) -> Quantile | None:
        """Median; None if nothing was timed."""
        return self.quantile(0.5)

    @property
    def p95(self) -> Quantile | None:
        """95th percentile; None for fewer than 20 queries."""
        return self.quantile(0.95)

    @property
    def p99(self) -> Quantile | None:
        """99th percentile; None for fewer than 100 queries."""
        return self.quantile(0.99)

    @property
    def throughput(self) -> float:
        """Queries per second in sequence; NaN if nothing was timed."""
        whole = math.fsum(self.seconds.values())
        return len(self.seconds) / whole if whole > 0 else math.nan

    def quantile(self, share: float) -> Quantile | None:
        """Return a quantile with its interval; None with too few queries.

        Args:
            share: The share of queries, between 0 and 1.
        """
        times = sorted(self.seconds.values())
        count = len(times)
        if not count or count * (1 - share) < 1 - 1e-9:
            return None
        low, high = _ranks(count, share)
        return Quantile(
            times[math.ceil(count * share - 1e-9) - 1],
            times[low - 1] if low else math.nan,
            times[high - 1] if high else math.nan,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the quantiles as plain values, in seconds."""
        data: dict[str, Any] = {"queries": len(self.seconds), "failures": self.failures}
        for name in ("p50", "p95", "p99"):
            quantile = getattr(self, name)
            if quantile is not None:
                data[name] = quantile.value
        if self.seconds:
            data["mean"] = statistics.fmean(self.seconds.values())
            data["throughput"] = self.throughput
        return data

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file of ``query,latency``, the format of the gate's ``--latency``.

        Raises:
            InputError: If the file cannot be written.
        """
        rows = (("query", "latency"), *self.seconds.items())
        with write_atomically(path) as stream:
            stream.writelines(csv_line(map(str, row)).encode() for row in rows)


@lru_cache(maxsize=64)
def _ranks(count: int, share: float) -> tuple[int, int]:
    """Return the ranks (from 1) of the ends of the interval of a quantile; 0 for no end.

    Rank l is the largest with P(B < l) <= (1 - level) / 2, u the smallest with P(B < u) >= level +
    (1 - level) / 2, B binomial of `count` and `share`.
    """
    tail = (1 - _LEVEL) / 2
    low = high = 0
    below = 0.0
    for rank in range(1, count + 1):
        below += math.exp(
            math.lgamma(count + 1)
            - math.lgamma(rank)
            - math.lgamma(count - rank + 2)
            + (rank - 1) * math.log(share)
            + (count - rank + 1) * math.log1p(-share)
        )
        if below <= tail:
            low = rank
        if below >= 1 - tail:
            high = rank
            break
    return low, high


def measure_latency(
    retriever: Any, queries: Sequence[Query], k: int, *, limits: Limits, bar: Progress | None = None
) -> Latency:
    """Time a retriever: single queries in sequence, after a warm-up, without retries."""
    batch = 1 if limits.batch is not None or has_index(retriever) else None
    alone = replace(limits, concurrency=1, batch=batch, retries=0)
    send_queries(retriever, list(queries)[:_WARMUP], k, limits=alone, record=lambda _: None)
    seconds: dict[str, float] = {}
    failures = 0

    def record(response: Response) -> None:
        nonlocal failures
        if response.hits is None:
            failures += 1
        else:
            seconds[response.query] = response.seconds
        if bar is not None:
            bar.step(failed=response.hits is None)

    send_queries(retriever, queries, k, limits=alone, record=record)
    return Latency(seconds, failures, min(_WARMUP, len(queries)))


# ---- time and memory


@dataclass(slots=True)
class ResourceUsage:
    """Time and memory used by a block of code."""

    seconds: float = 0.0  # wall-clock time
    # Peak memory in bytes beyond that of the process before; None if unknown.
    peak: int | None = None


@contextmanager
def measure_resources() -> Iterator[ResourceUsage]:
    """Measure the time and the peak memory of the block."""
    usage = ResourceUsage()
    before = _status_bytes("VmRSS") or _peak()
    with suppress(OSError):  # systems without this file have only the peak since process start
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    start = time.perf_counter()
    try:
        yield usage
    finally:
        usage.seconds = time.perf_counter() - start
        peak = _peak()
        if before is not None and peak is not None:
            usage.peak = max(peak - before, 0)


def _status_bytes(name: str) -> int | None:
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    match = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _peak() -> int | None:
    peak = _status_bytes("VmHWM")
    if peak is not None:
        return peak
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

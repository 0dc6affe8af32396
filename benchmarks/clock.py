"""Inside a process: what one call takes, again and again, and how much more memory it needs."""

from __future__ import annotations

import gc
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ENOUGH = 0.4  # seconds of calls
MOST = 101


def timed(call: Callable[[], Any], enough: float = ENOUGH) -> dict[str, Any]:
    """Medians of CPU and wall seconds, the peak in MiB, and what the first call returned.

    The first call is not timed: it warms what can be warmed. The peak is that of the first call,
    beyond what was in use before it.
    """
    gc.collect()
    before = memory_now()
    found = call()
    peak = memory_peak() - before
    cpu, wall = [], []
    while not cpu or (sum(cpu) < enough and len(cpu) < MOST):
        clock, used = time.perf_counter(), time.process_time()
        call()
        cpu.append(time.process_time() - used)
        wall.append(time.perf_counter() - clock)
    took = {"cpu": statistics.median(cpu), "wall": statistics.median(wall)}
    return {**took, "peak": max(peak, 0.0), "found": found}


def memory_now() -> float:
    """MiB in use; where the system can do it, the peak starts anew from here."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return memory_peak()
    return _status("VmRSS")


def memory_peak() -> float:
    """The most MiB that were in use."""
    if Path("/proc/self/status").exists():
        return _status("VmHWM")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _status(word: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(word)) / 2**10

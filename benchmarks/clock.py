"""Time and memory of repeated calls in this process."""

from __future__ import annotations

import gc
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ENOUGH = 0.4  # total seconds of calls
MOST = 101


def timed(call: Callable[[], Any], enough: float = ENOUGH) -> dict[str, Any]:
    """Return medians of CPU and wall seconds, the peak in MiB, and the result of the first call.

    The first call is a warm-up and not timed. The peak is that of the first call, minus the memory
    in use before.
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
    """Return MiB in use; reset the peak where the system allows it."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return memory_peak()
    return _status("VmRSS")


def memory_peak() -> float:
    """Return the peak in MiB."""
    if Path("/proc/self/status").exists():
        return _status("VmHWM")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _status(word: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(word)) / 2**10

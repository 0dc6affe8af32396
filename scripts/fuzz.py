"""Feed malformed files and names to every reader, the parser, and the checks.

Each case is a function of a seed and a number, so it can be reproduced:

    python scripts/fuzz.py --cases 1000000          # all cores
    python scripts/fuzz.py --seed 7 --only 123456   # one case; keeps its file
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

from fuzzing.cases import Target, case_of
from fuzzing.outcomes import FAULT, outcome

_BATCH = 5_000
_TIMEOUT = 1800
_SHOWN = 40


def main() -> int:
    """Run the cases; return 0 if no fault was found."""
    arguments = _arguments()
    if arguments.only is not None:
        return _one(arguments.seed, arguments.only, arguments.target)
    if arguments.batch is not None:
        _batch(arguments.seed, arguments.batch, arguments.target)
        return 0
    began = time.monotonic()
    starts = range(arguments.first, arguments.first + arguments.cases, _BATCH)
    counts: Counter[str] = Counter()
    faults: list[str] = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        spans = [(start, min(_BATCH, arguments.first + arguments.cases - start)) for start in starts]
        for found, bad in pool.map(lambda span: _run_span(arguments, span), spans):
            counts.update(found)
            faults += bad
            for result in bad:
                print(f"\r{result}", file=sys.stderr)
            done = sum(counts.values())
            print(f"\r{done:,} of {arguments.cases:,}, {len(faults)} faults", end="", file=sys.stderr)
    print(file=sys.stderr)
    for result, count in sorted(counts.items()):
        print(f"{count:>10,}  {result}")
    print(f"{sum(counts.values()):,} cases, seed {arguments.seed}, {time.monotonic() - began:.0f} s")
    for result in faults[:_SHOWN]:
        print(result)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=1_000_000, help="number of cases (default: 1,000,000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0, help="seed of the cases")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--target", choices=get_args(Target), help="test only this target")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="run one case and keep its file")
    parser.add_argument("--batch", type=int, nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def _one(seed: int, number: int, target: Target | None) -> int:
    case = case_of(seed, number, target)
    print(f"{case.target}: {case.kind} {case.name} {case.text!a}")
    if case.name:
        kept = Path(tempfile.mkdtemp()) / case.name
        kept.write_bytes(case.data)
        print(f"{len(case.data)} bytes in {kept}")
    with tempfile.TemporaryDirectory() as folder:
        result = outcome(case, Path(folder))
    print(result)
    return int(result.startswith(FAULT))


def _batch(seed: int, span: tuple[int, int], target: Target | None) -> None:
    """Run the cases of a span; print one line for each, so that a crash shows its case."""
    warnings.simplefilter("error")
    first, count = span
    with tempfile.TemporaryDirectory(dir=_memory_folder()) as folder:
        for number in range(first, first + count):
            case = case_of(seed, number, target)
            sys.stdout.write(f"{number}\t{case.target}\t")
            sys.stdout.flush()
            sys.stdout.write(f"{outcome(case, Path(folder))!a}\n")


def _memory_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - parent of a new folder


def _run_span(arguments: argparse.Namespace, span: tuple[int, int]) -> tuple[Counter[str], list[str]]:
    """Run a span in a separate process; after a crash, report the case and continue."""
    counts: Counter[str] = Counter()
    faults: list[str] = []
    first, count = span
    while count > 0:
        words = [sys.executable, __file__, "--seed", str(arguments.seed), "--batch", str(first), str(count)]
        words += ["--target", arguments.target] if arguments.target else []
        lines, died = _run_process(words)
        for line in lines:
            number, target, result = line.split("\t", 2)
            if not result:
                result = repr(f"{FAULT}: the process died: {died}")
            if FAULT in result:
                faults.append(f"{number} {target}: {result}")
                result = FAULT
            counts[f"{target}: {result.strip(chr(39))}"] += 1
        if len(lines) == 0:
            faults.append(f"{first}: the process printed nothing: {died}")
            break
        first, count = first + len(lines), count - len(lines)
    return counts, faults


def _run_process(words: list[str]) -> tuple[list[str], str]:
    try:
        ended = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    except subprocess.TimeoutExpired as error:
        result = error.stdout or b""
        return (result if isinstance(result, str) else result.decode()).splitlines(), "timeout"
    return ended.stdout.splitlines(), f"{ended.returncode} {ended.stderr[-300:]}"


if __name__ == "__main__":
    sys.exit(main())

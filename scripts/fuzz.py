"""Throw malformed files and names at every reader, the parser and the linter.

Each case is made from a seed and a number, so it can be made again:

    python scripts/fuzz.py --cases 1000000          # all cores
    python scripts/fuzz.py --seed 7 --only 123456   # one case, and its file kept
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
_PATIENCE = 1800
_SHOWN = 40


def main() -> int:
    """The exit code: 0 if nothing was found."""
    asked = _asked()
    if asked.only is not None:
        return _one(asked.seed, asked.only, asked.target)
    if asked.batch is not None:
        _batch(asked.seed, asked.batch, asked.target)
        return 0
    began = time.monotonic()
    starts = range(asked.first, asked.first + asked.cases, _BATCH)
    counts: Counter[str] = Counter()
    faults: list[str] = []
    with ThreadPoolExecutor(asked.jobs) as pool:
        spans = [(start, min(_BATCH, asked.first + asked.cases - start)) for start in starts]
        for found, bad in pool.map(lambda span: _watched(asked, span), spans):
            counts.update(found)
            faults += bad
            for said in bad:
                print(f"\r{said}", file=sys.stderr)
            done = sum(counts.values())
            print(f"\r{done:,} of {asked.cases:,}, {len(faults)} faults", end="", file=sys.stderr)
    print(file=sys.stderr)
    for said, count in sorted(counts.items()):
        print(f"{count:>10,}  {said}")
    print(f"{sum(counts.values()):,} cases, seed {asked.seed}, {time.monotonic() - began:.0f} s")
    for said in faults[:_SHOWN]:
        print(said)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--cases", type=int, default=1_000_000, help="how many (default: a million)"
    )
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once")
    parser.add_argument("--target", choices=get_args(Target), help="only this one")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one case; its file is kept")
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
        said = outcome(case, Path(folder))
    print(said)
    return int(said.startswith(FAULT))


def _batch(seed: int, span: tuple[int, int], target: Target | None) -> None:
    """All cases of a span; one line for each, so that a crash shows which it was."""
    warnings.simplefilter("error")
    first, count = span
    with tempfile.TemporaryDirectory(dir=_quick_folder()) as folder:
        for number in range(first, first + count):
            case = case_of(seed, number, target)
            sys.stdout.write(f"{number}\t{case.target}\t")
            sys.stdout.flush()
            sys.stdout.write(f"{outcome(case, Path(folder))!a}\n")


def _quick_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a folder of its own in it


def _watched(asked: argparse.Namespace, span: tuple[int, int]) -> tuple[Counter[str], list[str]]:
    """A span in a process of its own; where that dies, the case is named and the rest goes on."""
    counts: Counter[str] = Counter()
    faults: list[str] = []
    first, count = span
    while count > 0:
        words = [
            sys.executable,
            __file__,
            "--seed",
            str(asked.seed),
            "--batch",
            str(first),
            str(count),
        ]
        words += ["--target", asked.target] if asked.target else []
        lines, died = _spoken(words)
        for line in lines:
            number, target, said = line.split("\t", 2)
            if not said:
                said = repr(f"{FAULT}: the process died: {died}")
            if FAULT in said:
                faults.append(f"{number} {target}: {said}")
                said = FAULT
            counts[f"{target}: {said.strip(chr(39))}"] += 1
        if len(lines) == 0:
            faults.append(f"{first}: the process said nothing: {died}")
            break
        first, count = first + len(lines), count - len(lines)
    return counts, faults


def _spoken(words: list[str]) -> tuple[list[str], str]:
    try:
        ended = subprocess.run(
            words, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired as error:
        said = error.stdout or b""
        return (said if isinstance(said, str) else said.decode()).splitlines(), "no end"
    return ended.stdout.splitlines(), f"{ended.returncode} {ended.stderr[-300:]}"


if __name__ == "__main__":
    sys.exit(main())

"""Outcome of a case: read, rejected with an error message, or a fault."""

from __future__ import annotations

import json
import math
import os
import re
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import rankgauge as rg
from fuzzing.cases import Case

__all__ = ["FAULT", "outcome"]

FAULT = "FAULT"
_QRELS = {"q1": {"d1": 1, "d2": 0, "7": 2}, "1": {"d1": 1, "007": 1}, "q9": {"d9": 1}}
_SECONDS_PER_MEGABYTE, _LEAST_SECONDS = 1.0, 2.0
# Wall-clock limit, as a multiple of the CPU limit: other work on the machine slows the process.
_WALL_CLOCK_FACTOR = 20
# Bytes that a small file may unpack to without an error; its time limit is that of as many bytes.
_UNPACKED = 24e6
# Memory limit: a multiple of the input size, plus a fixed amount for the reader and unpacking.
_MEMORY_FACTOR, _MEMORY_BYTES = 10, 96 << 20
_ENDS = (".run", ".csv", ".tsv", ".json", ".jsonl", ".parquet", ".txt.gz", ".jsonl.zst")
_LINE_ENDS = re.compile(rb"\r\n|\n|\r")
_BLANK = re.compile(rb"[ \t\n\r\x0b\x0c]+")


class _TooLongError(BaseException):
    """The case takes too long; no ``except Exception`` catches it."""


def outcome(case: Case, folder: Path, *, timed: bool = True) -> str:
    """Return a short description of the outcome; faults begin with `FAULT`.

    Args:
        case: The case.
        folder: A folder for the file of the case.
        timed: Whether slowness is a fault. A case that does not end always is one.
    """
    path = folder / case.name
    if case.name:
        path.write_bytes(case.data)
    before = _peak()
    size = int(_UNPACKED) if case.kind == "bomb" else len(case.data)
    limit = max(_LEAST_SECONDS, _SECONDS_PER_MEGABYTE * size / 1e6)
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, _WALL_CLOCK_FACTOR * limit)
    began = time.process_time()
    try:
        said = _TARGETS[case.target](case, path)
    except rg.RankgaugeError as error:
        said = _rejection(error)
    except _TooLongError:
        said = f"{FAULT}: not finished after {_WALL_CLOCK_FACTOR * limit:.0f} s"
    except Exception as error:  # noqa: BLE001 - any other exception is a fault
        said = f"{FAULT}: {type(error).__name__}: {error!s:.200}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    taken = time.process_time() - began
    if timed and taken > limit:
        said = f"{FAULT}: {taken:.1f} s for {len(case.data)} bytes ({said})"
    grown = _peak() - before
    if grown > _MEMORY_FACTOR * size + _MEMORY_BYTES and "ASAN_OPTIONS" not in os.environ:  # it keeps freed memory
        said = f"{FAULT}: {grown >> 20} MiB for {len(case.data)} bytes ({said})"
    if case.name:
        path.unlink(missing_ok=True)
    return said


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise _TooLongError


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _rejection(error: rg.RankgaugeError) -> str:
    """Check an error message: not empty, printable, and at most 5,000 characters long."""
    text = str(error)
    if not error.what.strip() or not error.what.replace("\n", "").isprintable():
        return f"{FAULT}: empty or unprintable error message: {text!a:.200}"
    if len(text) > 5000:
        return f"{FAULT}: error message of {len(text)} characters: {text!a:.200}"
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{FAULT}: error message that cannot be encoded: {text!a:.200}"
    return f"rejected: {type(error).__name__}"


def _run(case: Case, path: Path) -> str:
    run = rg.read_run(path)
    if not len(run):
        rg.evaluate(_QRELS, run)
        return f"{FAULT}: a run without queries was evaluated"
    table = run.table
    if not all(map(math.isfinite, table.values.tolist())):
        return f"{FAULT}: a non-finite score was read"
    return _all_lines(case, len(table)) or "read"


def _qrels(case: Case, path: Path) -> str:
    qrels = rg.read_qrels(path)
    if not len(qrels):
        rg.evaluate(qrels, {"q1": ["d1"]})
        return f"{FAULT}: judgments without queries were evaluated"
    return _all_lines(case, len(qrels.table)) or "read"


def _all_lines(case: Case, rows: int) -> str:
    """Return a fault if lines were dropped; only for formats whose lines can be counted."""
    if not case.plain or case.kind not in {"run", "qrels"}:
        return ""
    data = case.data.removeprefix(b"\xef\xbb\xbf")
    lines = [line for line in _LINE_ENDS.split(data) if _BLANK.sub(b"", line)]
    said = [line for line in lines if not line.lstrip().startswith(b"#")]
    first = said[0] if said else b""
    if first[:1] in b"{[<" or any(sign in first for sign in (b",", b";", b"|")):
        return ""
    if rows != len(said):
        return f"{FAULT}: {rows} rows read from {len(said)} lines"
    return ""


def _evaluate(_case: Case, path: Path) -> str:
    asked = ["nDCG@10", "P@2", "R@100", "AP", "RR", "Bpref", "Judged@10"]
    streamed = rg.evaluate(_QRELS, path, asked)
    run = rg.read_run(path)
    whole = rg.evaluate(_QRELS, run, asked)
    if streamed.to_json() != whole.to_json():
        return f"{FAULT}: reading in blocks and as a whole give different numbers"
    for measure, mean in whole.mean().items():
        if not 0 <= mean <= 1:
            return f"{FAULT}: {measure} is {mean}"
    found = any(doc in _QRELS.get(query, {}) for query in run for doc in run[query])
    if not found and not any("WARNING" in note for note in whole.notes):
        return f"{FAULT}: no judged document was retrieved, and no note reports it"
    return "read"


def _records(_case: Case, path: Path) -> str:
    rg.evaluate(path, measures=["AP", "nDCG@10"])
    return "read"


def _queries(_case: Case, path: Path) -> str:
    return _texts(rg.corpus.read_queries(path))


def _documents(_case: Case, path: Path) -> str:
    return _texts(rg.corpus.read_documents(path))


def _texts(found: Any) -> str:
    return "read" if len(found) else f"{FAULT}: no text was read, and no error was raised"


def _ids(_case: Case, path: Path) -> str:
    rg.evaluate(_QRELS, {"q1": ["d1"]}, "AP", queries=path)
    return "read"


def _collection(_case: Case, path: Path) -> str:
    rg.Collection.load(path)
    return "read"


def _result(case: Case, _path: Path) -> str:
    rg.Evaluation.from_json(case.data.decode("utf-8", "replace"))
    return "read"


def _name(case: Case, _path: Path) -> str:
    measure = rg.parse(case.text)
    if rg.parse(str(measure)) != measure:
        return f"{FAULT}: {case.text!a} is parsed as {measure}, which is parsed as another measure"
    value = rg.evaluate(_QRELS, {"q1": ["d1", "d2"], "1": ["d5"]}, [measure]).mean()[str(measure)]
    return f"{FAULT}: {measure} is {value}" if math.isinf(value) else "read"


def _check(case: Case, path: Path) -> str:
    """Every input that evaluation rejects has an error in the check, and the result prints."""
    alone = case.number % 3 == 0
    result = rg.check(path) if alone else rg.check(_QRELS, path)
    str(result)
    json.loads(result.to_json())
    for finding in result.findings:
        if finding.evidence.count < 1 or not finding.message or not finding.fix:
            return f"{FAULT}: {finding}"
    try:
        rg.read_qrels(path) if alone else rg.evaluate(_QRELS, path, "AP")
    except rg.InputError as error:
        if all(finding.severity != "error" for finding in result.findings):
            return f"{FAULT}: the check reports no error, but {error}"
    return "read"


def _convert(case: Case, path: Path) -> str:
    """An input that can be read converts to another format and reads back the same."""
    target = path.with_name(f"out{_ENDS[case.number % len(_ENDS)]}")
    try:
        done = rg.convert(path, target)
        # Comparing a million pairs would need more memory than the limit.
        if done.kind in {"qrels", "run"} and not done.losses and case.kind != "bomb":
            read = rg.read_qrels if done.kind == "qrels" else rg.read_run
            if _pairs(read(target)) != _pairs(read(path)):
                return f"{FAULT}: {done}: the output reads back differently"
    finally:
        target.unlink(missing_ok=True)
    return "read"


def _pairs(read: rg.Qrels | rg.Run) -> list[tuple[bytes, bytes, float]]:
    """Return all pairs with their numbers, sorted, since formats may change their order."""
    table = read.table
    queries = table.queries.take(table.query_numbers()).tolist()
    return sorted(zip(queries, table.docs.tolist(), table.values.tolist(), strict=True))


_TARGETS: dict[str, Callable[[Case, Path], str]] = {
    "run": _run,
    "qrels": _qrels,
    "evaluate": _evaluate,
    "records": _records,
    "queries": _queries,
    "documents": _documents,
    "ids": _ids,
    "collection": _collection,
    "result": _result,
    "name": _name,
    "check": _check,
    "convert": _convert,
}
